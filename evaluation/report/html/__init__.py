"""A report in one HTML file: what is in a report's JSON and in its records, to be read and printed.

Charts are drawn by uPlot 1.6.32 (MIT), which is part of the file: 51 kB
that stand in this folder as they were released. The file asks for nothing from elsewhere.
"""

from evaluation.report.html.page import page
from evaluation.report.html.sections import VIEWS, ends, linked, of_report, of_run, view_of

__all__ = ["VIEWS", "ends", "linked", "of_report", "of_run", "page", "view_of"]
