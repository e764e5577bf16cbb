"""The commands `jaxsim l2m ...` about lifelong-learning logs on disk."""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from evaluation.arguments import Commands, add_command
from evaluation.logs.problems import LogError, Problem

INVALID: Final = 1
MAX_WARNINGS: Final = 20
_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")

GROUP_EXAMPLES = """examples:
  jaxsim l2m validate my_syllabus-1575473425-723
  jaxsim l2m aggregate runs/pd/logs/my_syllabus-1575473425-723 -f parquet -o everything
  jaxsim l2m export runs/pd --lifetimes 0-63

A log is the directory of one lifetime, of l2logger 1.0 or 1.1 or of learnkit (2019); the format is
recognised by its files. A bare name that is not a directory here is looked up in $L2DATA/logs.
"""

VALIDATE_EXAMPLES = """examples:
  jaxsim l2m validate my_syllabus-1575473425-723
  jaxsim l2m validate "$(python -m evaluation.info -get lastlog)"

Errors are printed to standard error with file and line, and the exit code is then 1. Warnings do
not change it. Standard output has a table of the regimes (l2logger) or blocks (learnkit).
"""

AGGREGATE_EXAMPLES = """examples:
  jaxsim l2m aggregate my_syllabus-1575473425-723
  jaxsim l2m aggregate my_syllabus-1575473425-723 -f parquet -o everything --cut-off keep

The columns of an l2logger log are those of l2logger's aggregate, regime numbers included, with task
names in lower case. The columns of a learnkit log are those of data-log.tsv and the parameters.
"""

EXPORT_EXAMPLES = """examples:
  jaxsim l2m export runs/pd
  jaxsim l2m export runs/pd --lifetimes 0-63 --out logs
  jaxsim l2m export runs/pd --lifetimes 3,8-11 --format learnkit

Each lifetime becomes a log directory SYLLABUS-TIME, as `jaxsim run --log-lifetime` writes it. The
names are printed when all directories are complete. Numbers are the shortest text that reads back
as the number of records.parquet.
"""


def add_to(commands: Commands) -> Commands:
    """Add the group `l2m` with its commands.

    Args:
      commands: subparsers of the `jaxsim` command.

    Returns:
      The subparsers of the group, for further commands.
    """
    group = add_command(
        commands, "l2m", "validate and convert lifelong-learning logs", GROUP_EXAMPLES
    )
    parts = group.add_subparsers(dest="l2m_command", required=True, metavar="COMMAND")
    validate = add_command(
        parts,
        "validate",
        "check a log and list its regimes, or every problem with file and line",
        VALIDATE_EXAMPLES,
    )
    validate.add_argument("log", metavar="DIR", help="the log directory, or its bare name")
    validate.set_defaults(handler=_validate)
    aggregate = add_command(
        parts, "aggregate", "write all rows of a log into one file", AGGREGATE_EXAMPLES
    )
    aggregate.add_argument("log", metavar="DIR", help="the log directory, or its bare name")
    aggregate.add_argument(
        "-f", "--format", default="tsv", metavar="NAME", help="tsv, csv, feather or parquet (tsv)"
    )
    aggregate.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("data"),
        metavar="FILE",
        help="without suffix (data)",
    )
    aggregate.add_argument(
        "--cut-off",
        metavar="NAME",
        help="keep or drop incomplete episodes (drop in l2logger logs, else keep)",
    )
    aggregate.set_defaults(handler=_aggregate)
    _add_export(parts)
    return parts


def _add_export(parts: Commands) -> None:
    export = add_command(
        parts, "export", "write lifetimes of a finished run as logs", EXPORT_EXAMPLES
    )
    export.add_argument("run", type=Path, metavar="RUN", help="directory of `jaxsim run`")
    export.add_argument(
        "--lifetimes", default="0", metavar="LIST", help="numbers and ranges, or all (0)"
    )
    export.add_argument(
        "--format", default="l2logger", metavar="NAME", help="l2logger or learnkit (l2logger)"
    )
    export.add_argument("--out", type=Path, metavar="DIR", help="where logs go (RUN/logs)")
    export.set_defaults(handler=_export)


def _validate(arguments: argparse.Namespace) -> int:
    from evaluation.logs.home import find_log
    from evaluation.logs.layouts import overview, text_table

    try:
        summary = overview(find_log(arguments.log))
    except LogError as error:
        return _report(error.problems)
    _report(summary.warnings)
    print(f"The log is valid. {summary.title}\n\n{text_table(summary.header, summary.rows)}")
    return 0


def _aggregate(arguments: argparse.Namespace) -> int:
    from evaluation.logs.aggregate import aggregate
    from evaluation.logs.home import find_log

    log = find_log(arguments.log)
    try:
        path = aggregate(log, arguments.output, arguments.format, arguments.cut_off)
    except LogError as error:
        return _report(error.problems)
    print(path)
    return 0


def _export(arguments: argparse.Namespace) -> int:
    from evaluation.logs.export import write_lifetimes
    from evaluation.records import read_run

    records = read_run(arguments.run)
    run = arguments.run if arguments.run.is_dir() else arguments.run.parent
    lifetimes = numbers(arguments.lifetimes, records.num_lifetimes)
    out = arguments.out or run / "logs"
    for path in write_lifetimes(records, out, arguments.format, lifetimes):
        print(path)
    return 0


def numbers(text: str, most: int) -> list[int] | None:
    """Read a list such as "3,8-11"; None for "all".

    Args:
      text: numbers from 0 and inclusive ranges of them, separated by commas.
      most: maximum length of a range.

    Raises:
      ValueError: any other text, or a longer range.
    """
    if text == "all":
        return None
    lifetimes: dict[int, None] = {}
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"lifetimes is {text!r}; it must be as 5, 0-63, 3,8-11 or all")
        first, last = int(match[1]), int(match[2] or match[1])
        if not 0 <= last - first < most:
            raise ValueError(
                f"lifetimes holds {part.strip()}; a range goes upwards, over at most the run's "
                f"{most} lifetimes"
            )
        lifetimes |= dict.fromkeys(range(first, last + 1))
    return list(lifetimes)


def _report(problems: Sequence[Problem]) -> int:
    """Print all errors and the first warnings; return the exit code."""
    warnings = [problem for problem in problems if problem.severity != "error"]
    errors = [problem for problem in problems if problem.severity == "error"]
    for problem in [*warnings[:MAX_WARNINGS], *errors]:
        print(problem, file=sys.stderr)
    if len(warnings) > MAX_WARNINGS:
        more = len(warnings) - MAX_WARNINGS
        print(f"and {more} more warnings", file=sys.stderr)
    return INVALID if errors else 0
