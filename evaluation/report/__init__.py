"""Numbers with intervals, as JSON, console tables and plots."""

from typing import TYPE_CHECKING

from evaluation.lazy import exports

if TYPE_CHECKING:
    from evaluation.report.summary import Report as Report
    from evaluation.report.summary import summarise_records as summarise_records

__getattr__, __dir__ = exports(__name__)
