"""Reader of l2logger logs that reports every problem with file and line."""

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from evaluation.json_types import JsonMapping
from evaluation.logs.l2logger.format import (
    DATA_FILE,
    DEFAULT_SUBTYPE,
    READABLE_VERSIONS,
    REQUIRED_COLUMNS,
    SCENARIO_FIELDS,
    STANDARD_COLUMNS,
    TASK_NAME,
    WORDS,
    L2LoggerLog,
    L2LoggerRow,
    Regime,
    metrics_columns_problem,
)
from evaluation.logs.problems import LogError, Problem, Problems
from evaluation.logs.tables import (
    WORKER,
    WORKER_WORDS,
    Cells,
    Placed,
    find_tables,
    read_object,
    read_table,
)


def read_log(path: str | os.PathLike[str]) -> L2LoggerLog:
    """Read and check a log directory, of format 1.0 or 1.1.

    Args:
      path: the log directory, the one that holds logger_info.json.

    Returns:
      The `L2LoggerLog`; its ``warnings`` are about unusual but allowed content.

    Raises:
      LogError: the log is not valid; it carries every problem with file and line.

    Source: l2logger log format 1.1. All rows are kept, incomplete ones too. Without the column
    block_subtype (format 1.0) the subtype is ``wake``.
    """
    log, problems = _read(Path(path))
    if log is None:
        raise LogError(problems)
    return log


def validate_log(path: str | os.PathLike[str]) -> list[str]:
    """Every problem of a log directory as text, ``file:line: severity: message``.

    Args:
      path: the log directory.

    Returns:
      Errors and warnings in the order of `check_log`, which returns records; empty for a log
      without problems.
    """
    return [str(problem) for problem in check_log(path)]


def check_log(path: str | os.PathLike[str]) -> list[Problem]:
    """Every `Problem` of a log directory.

    Args:
      path: the log directory.

    Returns:
      Problems of info files, then of tables in path order, then of the order of rows.

    Source: l2logger log format 1.1: required columns, allowed words, whole numbers from 0 that do
    not fall after a stable sort of the rows by (exp_num, block_num), worker names, JSON parameters.
    Warnings: task names without a variant, missing or unknown scenario fields, metrics that are not
    finite, tables with different columns.
    """
    return _read(Path(path))[1]


def find_regimes(rows: Iterable[L2LoggerRow]) -> tuple[Regime, ...]:
    """Number the maximal runs of rows with equal block number, type, subtype and task name.

    Args:
      rows: episodes in order. Select the rows that count first: without a run its neighbours may
        merge.

    Returns:
      One `Regime` per run. Task parameters and letter case of the task name do not split a run.

    Source: l2logger log format 1.1.
    """
    regimes: list[Regime] = []
    start = 0
    for (block, kind, subtype, task), run in groupby(rows, key=_regime_key):
        length = sum(1 for _ in run)
        regimes.append(Regime(len(regimes), block, kind, subtype, task, start, length))
        start += length
    return tuple(regimes)


def _regime_key(row: L2LoggerRow) -> tuple[int, str, str, str]:
    return row.block_num, row.block_type, row.block_subtype, row.task_name.lower()


class LogInfo(NamedTuple):
    """Content of the two info files of a log.

    Attributes:
      format_version: ``log_format_version`` of logger_info.json; ``"1.0"`` if absent.
      metrics_columns: names of the metrics; empty if they are not usable.
      scenario_info: content of scenario_info.json.
    """

    format_version: str
    metrics_columns: tuple[str, ...]
    scenario_info: JsonMapping


def read_header(root: Path, problems: Problems) -> LogInfo | None:
    """The info files of a log directory; None if there is no directory."""
    if not root.is_dir():
        problems.error(root, None, "no such directory")
        return None
    logger_info = read_object(root / "logger_info.json", problems)
    scenario_info = read_object(root / "scenario_info.json", problems)
    columns = _read_metrics_columns(root / "logger_info.json", logger_info, problems)
    version = _read_version(root / "logger_info.json", logger_info, problems)
    _check_scenario(root / "scenario_info.json", scenario_info, problems)
    return LogInfo(version, columns, scenario_info or {})


def _read(root: Path) -> tuple[L2LoggerLog | None, list[Problem]]:
    """The log, or None if it has an error, and all problems."""
    problems = Problems()
    header = read_header(root, problems)
    if header is None:
        return None, problems.problems
    placed = list(_read_tables(root, header.metrics_columns, problems))
    placed.sort(key=lambda item: (item.row.exp_num, item.row.block_num))
    _check_order(placed)
    if problems.fatal:
        return None, problems.problems
    rows = tuple(item.row for item in placed)
    log = L2LoggerLog(root, *header, rows, find_regimes(rows), tuple(problems.problems))
    return log, problems.problems


def _read_metrics_columns(
    path: Path, info: JsonMapping | None, problems: Problems
) -> tuple[str, ...]:
    if info is None:
        return ()
    names = info.get("metrics_columns")
    problem = metrics_columns_problem(names)
    if problem or not isinstance(names, list):
        problems.error(path, None, f"metrics_columns {problem}")
        return ()
    return tuple(names)


def _read_version(path: Path, info: JsonMapping | None, problems: Problems) -> str:
    version = READABLE_VERSIONS[0] if info is None else info.get("log_format_version", "1.0")
    if version not in READABLE_VERSIONS:
        listed = " and ".join(READABLE_VERSIONS)
        problems.warning(path, None, f"log_format_version {version!r} is not known, only {listed}")
    return str(version)


def _check_scenario(path: Path, info: JsonMapping | None, problems: Problems) -> None:
    if info is None:
        return
    for name, allowed in SCENARIO_FIELDS.items():
        if name not in info:
            problems.warning(path, None, f"{name!r} is missing: one of {', '.join(allowed)}")
        elif str(info[name]).lower() not in allowed:
            listed = ", ".join(allowed)
            problems.warning(path, None, f"{name!r} is {info[name]!r}, not one of {listed}")


def _read_tables(root: Path, columns: tuple[str, ...], problems: Problems) -> Iterator[Placed]:
    """The valid rows of all tables, in path order."""
    headers: dict[Path, frozenset[str]] = {}
    defaults = {"block_subtype": DEFAULT_SUBTYPE}
    for path in find_tables(root, DATA_FILE, problems):
        table = read_table(path, (*REQUIRED_COLUMNS, *columns), problems, defaults)
        if table is None:
            continue
        header, lines = table
        first, names = next(iter(headers.items()), (path, frozenset(header)))
        headers[path] = frozenset(header)
        if differing := ", ".join(sorted(headers[path] ^ names)):
            problems.warning(path, 1, f"the columns differ from those of {first} in: {differing}")
        for cells in lines:
            row = _parse_row(cells, columns)
            if cells.sound:
                yield Placed(row, cells)


def _parse_row(cells: Cells, columns: tuple[str, ...]) -> L2LoggerRow:
    """One row; it is meaningless if its cells are not sound."""
    block_num, exp_num = (cells.count(name) or 0 for name in ("block_num", "exp_num"))
    for name, allowed in WORDS.items():
        cells.word(name, allowed)
    text = cells.text
    if not WORKER.fullmatch(text["worker_id"]):
        cells.error(f"worker_id must be {WORKER_WORDS}, not {text['worker_id']!r}")
    if not TASK_NAME.fullmatch(text["task_name"]):
        cells.warning(task_name_warning(text["task_name"]))
    params, when = cells.object("task_params"), cells.moment("timestamp")
    metrics = {name: cells.number(name) for name in columns}
    return L2LoggerRow(
        block_num=block_num,
        exp_num=exp_num,
        block_type=text["block_type"],
        block_subtype=text["block_subtype"],
        task_name=text["task_name"],
        task_params=params,
        exp_status=text["exp_status"],
        timestamp=when,
        metrics=metrics,
        extras={k: v for k, v in text.items() if k not in STANDARD_COLUMNS and k not in metrics},
        worker_id=text["worker_id"],
    )


def task_name_warning(name: str) -> str:
    """Warning about a task name without a variant."""
    return f"task_name {name!r} is not of the form label_variant"


def _check_order(placed: Sequence[Placed]) -> None:
    """Check that block numbers do not fall while episode numbers rise."""
    previous = 0
    for row, cells in placed:
        if row.block_num < previous:
            words = f"{previous} to {row.block_num} at exp_num {row.exp_num}"
            cells.error(f"block_num falls from {words}")
        previous = row.block_num
