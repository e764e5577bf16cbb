"""Metrics of today (l2metrics 3.1) from l2logger directories, with the peer's flags and files."""

from typing import TYPE_CHECKING

from evaluation.lazy import exports

if TYPE_CHECKING:
    from evaluation.l2m.l2metrics.analysis import Analysis
    from evaluation.l2m.l2metrics.errors import Kind, L2MetricsError
    from evaluation.l2m.l2metrics.pipeline import Outcome, run
    from evaluation.l2m.l2metrics.result import run_json
    from evaluation.l2m.l2metrics.settings import Settings

_HOMES = {
    "Analysis": "analysis",
    "Kind": "errors",
    "L2MetricsError": "errors",
    "Outcome": "pipeline",
    "Settings": "settings",
    "run": "pipeline",
    "run_json": "result",
}

__all__ = [
    "Analysis",
    "Kind",
    "L2MetricsError",
    "Outcome",
    "Settings",
    "run",
    "run_json",
]

__getattr__, __dir__ = exports(__name__, _HOMES)
