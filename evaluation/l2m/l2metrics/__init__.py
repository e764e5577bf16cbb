"""Metrics of today (l2metrics 3.1) from l2logger directories, with the peer's flags and files."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evaluation.l2m.l2metrics.analysis import Analysis, ExtraMetric, RunArrays
    from evaluation.l2m.l2metrics.errors import Kind, L2MetricsError
    from evaluation.l2m.l2metrics.pipeline import Outcome, run
    from evaluation.l2m.l2metrics.result import run_json
    from evaluation.l2m.l2metrics.settings import Settings

_HOMES = {
    "Analysis": "analysis",
    "ExtraMetric": "analysis",
    "Kind": "errors",
    "L2MetricsError": "errors",
    "Outcome": "pipeline",
    "RunArrays": "analysis",
    "Settings": "settings",
    "run": "pipeline",
    "run_json": "result",
}

__all__ = [
    "Analysis",
    "ExtraMetric",
    "Kind",
    "L2MetricsError",
    "Outcome",
    "RunArrays",
    "Settings",
    "run",
    "run_json",
]


def __getattr__(name: str) -> Any:
    # On first use: the parser of the program needs one small module of this package only.
    if name in _HOMES:
        module = import_module(f"evaluation.l2m.l2metrics.{_HOMES[name]}")
        globals()[name] = getattr(module, name)
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
