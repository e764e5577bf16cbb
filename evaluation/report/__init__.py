"""Numbers with intervals, as JSON and as console tables."""

from evaluation.report.summary import Report, summarise_records

__all__ = ["Report", "summarise_records"]
