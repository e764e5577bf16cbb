"""Numbers with intervals, as JSON, console tables and plots.

| module | subject |
| --- | --- |
| `commands` | `compare`, `plot`, `metrics` and `score` |
| `summary` | numbers of a report, with intervals |
| `blocks` | metrics of the blocks of a run |
| `lifelong` | metrics of l2metrics 3.1, with intervals |
| `recorded` | metrics of l2metrics 3.1 from records |
| `novelty` | scores of novelty predictions |
| `capabilities` | scores for capabilities of the 2019 document |
| `transfer` | transfer between tasks over several syllabi |
| `compare` | comparison of two runs |
| `results` | result files as arrays over runs |
| `entries` | summaries as plain JSON values |
| `custom` | custom metrics from Python files |
| `custom_metrics` | custom metrics of every lifetime |
| `metric_catalogue` | the table of all metrics |
| `names` | short names of variants |
| `html` | a report as one HTML file |
| `l2m_plots` | plots of logs and records |
| `plot_tables` | reader of tables of episodes, for plots |
| `terminal` | the terminal of tables and progress |
| `tables` | cells and headings of terminal tables |
| `console` | tables of a report |
| `comparison_tables` | tables that compare two runs |
| `progress` | a progress bar |
| `live` | repetition whenever a file changes |
"""

from typing import TYPE_CHECKING

from evaluation.lazy import exports

if TYPE_CHECKING:
    from evaluation.report.summary import Report as Report
    from evaluation.report.summary import summarise_records as summarise_records

__getattr__, __dir__ = exports(__name__)
