"""Lifelong-learning protocol of the L2M Metrics Framework (4 December 2019): syllabi."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evaluation.l2m.syllabus import SyllabusError, dumps, load, loads

__all__ = ["SyllabusError", "dumps", "load", "loads"]


def __getattr__(name: str) -> Any:
    # On first use: the simulator behind syllabi is no business of those who only read logs.
    if name in __all__:
        globals()[name] = getattr(import_module("evaluation.l2m.syllabus"), name)
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
