"""Metrics of l2metrics 3.1 from l2logger directories, with its flags and files."""

from typing import TYPE_CHECKING

from evaluation.lazy import exports

if TYPE_CHECKING:
    from evaluation.l2m.l2metrics.analysis import Analysis as Analysis
    from evaluation.l2m.l2metrics.errors import Kind as Kind
    from evaluation.l2m.l2metrics.errors import L2MetricsError as L2MetricsError
    from evaluation.l2m.l2metrics.pipeline import Outcome as Outcome
    from evaluation.l2m.l2metrics.pipeline import run as run
    from evaluation.l2m.l2metrics.result import run_json as run_json
    from evaluation.l2m.l2metrics.settings import Settings as Settings

__getattr__, __dir__ = exports(__name__)
