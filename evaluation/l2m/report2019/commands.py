"""The commands ``l2metrics`` and ``calc_metrics`` of the 2019 document, with its flags."""

import argparse
import inspect
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from evaluation.logs.problems import LogError

if TYPE_CHECKING:
    from evaluation.l2m.report2019.base import Metric

USAGE_ERROR: Final = 2
FAILURE: Final = 1

L2METRICS_EXAMPLES: Final = """examples:
  python -m evaluation.l2metrics2019 -log_dir syllabus_CL-1575473425723 -syllabus_subtype CL
  python -m evaluation.l2metrics2019 -log_dir runs/log -syllabus_subtype ANT_B -json m.json

A bare name is looked up in $L2DATA/logs. Saturation values of single-task experts are read from
$L2DATA/taskinfo/info.json. A wrong input is one line on standard error and exit code 2.
"""

CALC_EXAMPLES: Final = """examples:
  python -m evaluation.calc_metrics -syllabus_subtype=CL -log_dir=syllabus_CL-1575473425723
  python -m evaluation.calc_metrics -log_dir=runs/log -metric examples/metrics/worst_tenth.py
  python -m evaluation.calc_metrics -log_dir=runs/log -metric mine.py:WorstEpisode

Without -metric, the custom metric is an example: the mean performance of the whole syllabus.
"""


def l2metrics(argv: Sequence[str] | None = None) -> int:
    """Print the predefined metrics of a log; return the exit code.

    Args:
      argv: arguments without the program's name; those of the process if None.
    """
    parser = _parser("l2metrics2019", "Print the metrics of a log.", L2METRICS_EXAMPLES, "ANT_A")
    return _run(parser, argv)


def calc_metrics(argv: Sequence[str] | None = None) -> int:
    """Print the predefined metrics of a log and a custom one; return the exit code.

    Args:
      argv: arguments without the program's name; those of the process if None.
    """
    about = "Print the metrics of a log, including custom ones."
    parser = _parser("calc_metrics", about, CALC_EXAMPLES, "CL")
    parser.add_argument(
        "-metric",
        "--metric",
        action="append",
        metavar="FILE[:NAME]",
        help="Python file with a metric class or a function of (values, counts); may be repeated",
    )
    return _run(parser, argv)


def _parser(name: str, about: str, examples: str, subtype: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m evaluation.{name}",
        description=about,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )

    def add(flag: str, **options: Any) -> None:
        parser.add_argument(f"-{flag}", f"--{flag}", **options)

    add("log_dir", required=True, metavar="DIR", help="log directory, or its bare name")
    add("syllabus_type", default="agent", metavar="TYPE", help="agent or class (agent)")
    add(
        "syllabus_subtype",
        default=subtype,
        metavar="SUBTYPE",
        help=f"CL, ANT_A, ANT_B or ANT_C ({subtype})",
    )
    add("measure", metavar="COLUMN", help="column of performance (reward, or score in class)")
    add("edition", default="2019", metavar="NAME", help="formulas: 2019, v0.2 or v0.3 (2019)")
    add(
        "index",
        default="end",
        metavar="NAME",
        help="reported episode of a window: end, start or centre (end)",
    )
    add("window", type=int, default=11, metavar="N", help="odd smoothing window (11)")
    add("drop_incomplete", action="store_true", help="leave out rows that are NOT_DONE")
    add("json", type=Path, metavar="FILE", help="also write all results as strict JSON")
    add("tsv", type=Path, metavar="FILE", help="also write a table with one row per number")
    add("plots", type=Path, metavar="DIR", help="also draw each metric as a PNG file")
    return parser


def _run(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> int:
    arguments = parser.parse_args(argv)
    try:
        return _report(arguments)
    except (ValueError, OSError) as error:
        words = error.line() if isinstance(error, LogError) else str(error)
        print(f"{parser.prog}: {' '.join(words.split())}", file=sys.stderr)
        return USAGE_ERROR


def _report(arguments: argparse.Namespace) -> int:
    # Imported here, so that --help does not wait for JAX.
    from evaluation.l2m.report2019.example import GlobalPerformance
    from evaluation.l2m.report2019.report import AgentMetricsReport, ClassificationMetricsReport

    kinds = {"agent": AgentMetricsReport, "class": ClassificationMetricsReport}
    if not arguments.log_dir:
        raise ValueError("-log_dir is empty; give the directory of a log, or its bare name")
    if arguments.syllabus_type not in kinds:
        raise ValueError(f"syllabus_type must be agent or class, not {arguments.syllabus_type!r}")
    names = ("log_dir", "syllabus_subtype", "measure", "window", "edition", "index")
    report = kinds[arguments.syllabus_type](
        **{name: getattr(arguments, name) for name in names},
        drop_incomplete=arguments.drop_incomplete,
    )
    if "metric" in arguments:
        metrics = [_load(text) for text in arguments.metric or ()]
        report.add(metrics or [GlobalPerformance(report.settings.measure)])
    report.calculate()
    for warning in report.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    report.report()
    if arguments.json:
        report.write_json(arguments.json)
    if arguments.tsv:
        report.write_tsv(arguments.tsv)
    if arguments.plots:
        report.plot(arguments.plots)
    return FAILURE if report.failed else 0


def _load(text: str) -> "type[Metric]":
    """Load a metric from ``FILE`` or ``FILE:NAME``."""
    from evaluation.l2m.report2019.base import Metric
    from evaluation.report.custom import load_metric

    metric = load_metric(text, lambda value: _is_metric(value, Metric))
    return metric() if isinstance(metric, type) else metric


def _is_metric(value: object, metric: type) -> bool:
    """Whether an object of a file is a class of metrics or a function of (values, counts)."""
    from evaluation.metrics.registry import row_of

    if isinstance(value, type):
        return issubclass(value, metric) and not inspect.isabstract(value)
    return row_of(value) is not None
