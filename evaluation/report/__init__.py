"""Numbers with intervals, as JSON, console tables and plots."""

from typing import TYPE_CHECKING

from evaluation.lazy import exports

if TYPE_CHECKING:
    from evaluation.report.summary import Report, summarise_records

__all__ = ["Report", "summarise_records"]

__getattr__, __dir__ = exports(__name__, dict.fromkeys(__all__, "summary"))
