"""Metrics of l2metrics 3.1 from l2logger directories, with its flags and files.

| module | subject |
| --- | --- |
| `settings` | settings, named as in l2metrics 3.1 |
| `reading` | reader of l2logger directories |
| `runs` | one lifetime as input of metrics |
| `experts` | single-task experts as smoothed learning curves |
| `analysis` | metrics of many runs at once |
| `pipeline` | metrics of directories, with an error each |
| `statistics` | intervals over many logs |
| `result` | numbers of one run as JSON |
| `outputs` | result files as of l2metrics 3.1 |
| `errors` | errors of logs and settings |
| `command` | `jaxsim l2metrics`: its flags |
| `job` | implementation of the command |
| `__main__` | the same with `python -m` |
"""

from typing import TYPE_CHECKING

from evaluation.lazy import exports

if TYPE_CHECKING:
    from evaluation.l2m.l2metrics.analysis import Analysis as Analysis
    from evaluation.l2m.l2metrics.errors import ErrorKind as ErrorKind
    from evaluation.l2m.l2metrics.errors import L2MetricsError as L2MetricsError
    from evaluation.l2m.l2metrics.pipeline import Outcome as Outcome
    from evaluation.l2m.l2metrics.pipeline import run as run
    from evaluation.l2m.l2metrics.result import run_json as run_json
    from evaluation.l2m.l2metrics.settings import LogSettings as LogSettings

__getattr__, __dir__ = exports(__name__)
