"""A report as one HTML file, made from the report's JSON and the records of the run.

Charts are drawn by uPlot 1.6.32 (MIT). Its 51 kB are in this folder as released, and are part of
the file. The file loads nothing from elsewhere.
"""

from evaluation.report.html.page import page as page
from evaluation.report.html.sections import VIEWS as VIEWS
from evaluation.report.html.sections import ends as ends
from evaluation.report.html.sections import lifetimes as lifetimes
from evaluation.report.html.sections import linked as linked
from evaluation.report.html.sections import of_report as of_report
from evaluation.report.html.sections import of_run as of_run
from evaluation.report.html.sections import view_of as view_of
