"""Readers and writers of performance logs.

The names here are those of l2logger logs; `evaluation.logs.learnkit` has the logs of 2019.

| module | subject |
| --- | --- |
| `layouts` | format and overview of a directory |
| `l2logger` | logs of l2logger |
| `learnkit` | logs of the 2019 framework |
| `home` | the folder of logs |
| `export` | records as logs |
| `aggregate` | a log as one table |
| `tables` | readers of tab-separated tables |
| `cells` | checks of single values |
| `arrow` | Arrow columns from and to NumPy |
| `coded` | columns of few distinct values |
| `texts` | columns as CSV text |
| `problems` | problems with file and line |
| `commands` | `jaxsim l2m` |
"""

from typing import TYPE_CHECKING

from evaluation.lazy import exports

if TYPE_CHECKING:
    from evaluation.logs.l2logger import FORMAT_VERSION as FORMAT_VERSION
    from evaluation.logs.l2logger import DataLogger as DataLogger
    from evaluation.logs.l2logger import L2LoggerLog as L2LoggerLog
    from evaluation.logs.l2logger import L2LoggerRow as L2LoggerRow
    from evaluation.logs.l2logger import LogColumns as LogColumns
    from evaluation.logs.l2logger import LogError as LogError
    from evaluation.logs.l2logger import Problem as Problem
    from evaluation.logs.l2logger import RecordError as RecordError
    from evaluation.logs.l2logger import Regime as Regime
    from evaluation.logs.l2logger import check_log as check_log
    from evaluation.logs.l2logger import find_regimes as find_regimes
    from evaluation.logs.l2logger import read_columns as read_columns
    from evaluation.logs.l2logger import read_log as read_log
    from evaluation.logs.l2logger import validate_log as validate_log
    from evaluation.logs.l2logger import write_columns as write_columns
    from evaluation.logs.l2logger import write_log as write_log

__getattr__, __dir__ = exports(__name__)
