"""A report in one HTML file: what is in a report's JSON and in its records, to be read and printed.

Charts are drawn by uPlot 1.6.32 (MIT), which is part of the file: 51 kB, against 1 MB of Plotly's
basic bundle and 0.8 MB of Vega-Lite with Vega. The file asks for nothing from elsewhere.
"""

from evaluation.report.html.page import page
from evaluation.report.html.sections import of_report, of_run

__all__ = ["of_report", "of_run", "page"]
