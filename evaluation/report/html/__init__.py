"""A report in one HTML file: what is in a report's JSON and in its records, to be read and printed.

Charts are drawn by uPlot 1.6.32 (MIT), which is part of the file: 51 kB
that stand in this folder as they were released. The file asks for nothing from elsewhere.
"""

from evaluation.report.html.page import page as page
from evaluation.report.html.sections import VIEWS as VIEWS
from evaluation.report.html.sections import ends as ends
from evaluation.report.html.sections import lifetimes as lifetimes
from evaluation.report.html.sections import linked as linked
from evaluation.report.html.sections import of_report as of_report
from evaluation.report.html.sections import of_run as of_run
from evaluation.report.html.sections import view_of as view_of
