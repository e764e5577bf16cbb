"""Reader of l2logger logs, which reports every problem with file and line."""

import csv
import io
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple

from evaluation.logs.l2logger.format import (
    BLOCK_SUBTYPES,
    BLOCK_TYPES,
    DATA_FILE,
    DEFAULT_SUBTYPE,
    EXP_STATUSES,
    MAX_FILE_BYTES,
    MAX_LOG_BYTES,
    READABLE_VERSIONS,
    SCENARIO_FIELDS,
    STANDARD_COLUMNS,
    TASK_NAME,
    TIMESTAMP_FORMAT,
    WORKER,
    Log,
    LogError,
    LogRow,
    Problem,
    Regime,
    metrics_columns_problem,
)

_OPTIONAL_COLUMNS: Final = ("block_subtype",)
_COUNT: Final = re.compile(r"[0-9]{1,15}")
_INTEGER: Final = re.compile(r"-?[0-9]{1,15}")
_TIMESTAMP: Final = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)\.(\d{1,6})", re.ASCII)


def read_log(path: str | os.PathLike[str]) -> Log:
    """Read and check a log directory, of format 1.0 or 1.1.

    Args:
      path: the log directory, the one that holds logger_info.json.

    Returns:
      The `Log`; its ``warnings`` say what is unusual but allowed.

    Raises:
      LogError: the log is not valid; it carries every problem with file and line.

    Source: l2logger log format 1.1. All rows are kept, incomplete ones too; a file without the
    column block_subtype (format 1.0) reads as ``wake``.
    """
    log, problems = _read(Path(path))
    if log is None:
        raise LogError(problems)
    return log


def validate_log(path: str | os.PathLike[str]) -> list[str]:
    """Every problem of a log directory in words, ``file:line: severity: message``.

    Args:
      path: the log directory.

    Returns:
      Errors and warnings in the order found; empty for a clean log. `check_log` gives the same as
      records, to tell the one from the other.
    """
    return [str(problem) for problem in check_log(path)]


def check_log(path: str | os.PathLike[str]) -> list[Problem]:
    """Every `Problem` of a log directory.

    Args:
      path: the log directory.

    Returns:
      Problems in the order found: info files, then tables in path order, then the order of rows.

    Source: l2logger log format 1.1: required columns, allowed words, whole numbers from 0 that do
    not fall once the rows are stably sorted by (exp_num, block_num), worker names, JSON parameters.
    Warnings: task names without a variant, missing or unknown scenario fields, metrics that are not
    finite, tables whose columns differ.
    """
    return _read(Path(path))[1]


def find_regimes(rows: Iterable[LogRow]) -> tuple[Regime, ...]:
    """Number the maximal runs of rows with equal block number, type, subtype and task name.

    Args:
      rows: episodes in order. Filter them first where a reader should not see all of them: a run
        that vanishes may let its neighbours merge.

    Returns:
      One `Regime` a run. Task parameters do not split a run; letter case of the task name neither.

    Source: l2logger log format 1.1.
    """
    regimes: list[Regime] = []
    start = 0
    for (block, kind, subtype, task), run in groupby(rows, key=_regime_key):
        length = sum(1 for _ in run)
        regimes.append(Regime(len(regimes), block, kind, subtype, task, start, length))
        start += length
    return tuple(regimes)


def _regime_key(row: LogRow) -> tuple[int, str, str, str]:
    return row.block_num, row.block_type, row.block_subtype, row.task_name.lower()


class _Placed(NamedTuple):
    """A row and where it stands on disk."""

    row: LogRow
    path: Path
    line: int


class _Problems:
    """Collects what is wrong."""

    def __init__(self) -> None:
        self.found: list[Problem] = []

    def error(self, path: Path, line: int | None, message: str) -> None:
        self.found.append(Problem(path, line, "error", message))

    def warning(self, path: Path, line: int | None, message: str) -> None:
        self.found.append(Problem(path, line, "warning", message))

    @property
    def fatal(self) -> bool:
        return any(problem.severity == "error" for problem in self.found)


def _read(root: Path) -> tuple[Log | None, list[Problem]]:
    """The log, None if it has an error, and all problems."""
    problems = _Problems()
    if not root.is_dir():
        problems.error(root, None, "no such directory")
        return None, problems.found
    logger_info = _read_info(root / "logger_info.json", problems)
    scenario_info = _read_info(root / "scenario_info.json", problems)
    columns = _read_metrics_columns(root / "logger_info.json", logger_info, problems)
    version = _read_version(root / "logger_info.json", logger_info, problems)
    _check_scenario(root / "scenario_info.json", scenario_info, problems)
    placed = list(_read_tables(root, columns, problems))
    placed.sort(key=lambda item: (item.row.exp_num, item.row.block_num))
    _check_order(placed, problems)
    if problems.fatal or logger_info is None or scenario_info is None:
        return None, problems.found
    rows = tuple(item.row for item in placed)
    regimes = find_regimes(rows)
    log = Log(root, version, columns, scenario_info, rows, regimes, tuple(problems.found))
    return log, problems.found


def _read_info(path: Path, problems: _Problems) -> dict[str, Any] | None:
    """A JSON object from a file, or None and a problem."""
    text = _read_text(path, problems)
    if text is None:
        return None
    try:
        info = json.loads(text)
    except json.JSONDecodeError as error:
        problems.error(path, error.lineno, f"not JSON: {error.msg}")
        return None
    except (ValueError, RecursionError) as error:
        problems.error(path, None, f"not usable JSON: {error}")
        return None
    if not isinstance(info, dict):
        problems.error(path, 1, f"must hold a JSON object, not a {type(info).__name__}")
        return None
    return info


def _read_text(path: Path, problems: _Problems) -> str | None:
    """The text of a file that is not too large, or None and a problem."""
    if path.exists() and not path.is_file():
        problems.error(path, None, "is not a regular file")
        return None
    try:
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            problems.error(path, None, f"has {size:,} bytes; at most {MAX_FILE_BYTES:,} are read")
            return None
        with path.open(encoding="utf-8", newline="") as stream:
            return stream.read()
    except FileNotFoundError:
        problems.error(path, None, "is missing")
    except UnicodeDecodeError as error:
        problems.error(path, None, f"is not UTF-8: {error.reason} at byte {error.start}")
    except OSError as error:
        problems.error(path, None, f"cannot be read: {error.strerror}")
    return None


def _read_metrics_columns(
    path: Path, info: Mapping[str, Any] | None, problems: _Problems
) -> tuple[str, ...]:
    if info is None:
        return ()
    names = info.get("metrics_columns")
    problem = metrics_columns_problem(names)
    if problem or not isinstance(names, list):
        problems.error(path, None, f"metrics_columns {problem}")
        return ()
    return tuple(names)


def _read_version(path: Path, info: Mapping[str, Any] | None, problems: _Problems) -> str:
    version = READABLE_VERSIONS[0] if info is None else info.get("log_format_version", "1.0")
    if version not in READABLE_VERSIONS:
        known = " and ".join(READABLE_VERSIONS)
        problems.warning(path, None, f"log_format_version {version!r} is not known, only {known}")
    return str(version)


def _check_scenario(path: Path, info: Mapping[str, Any] | None, problems: _Problems) -> None:
    if info is None:
        return
    for name, allowed in SCENARIO_FIELDS.items():
        if name not in info:
            problems.warning(path, None, f"{name!r} is missing: one of {', '.join(allowed)}")
        elif str(info[name]).lower() not in allowed:
            listed = ", ".join(allowed)
            problems.warning(path, None, f"{name!r} is {info[name]!r}, not one of {listed}")


def _read_tables(root: Path, columns: tuple[str, ...], problems: _Problems) -> Iterator[_Placed]:
    """The valid rows of all tables, in path order."""
    paths = sorted(root.rglob(DATA_FILE))
    if not paths:
        problems.error(root, None, f"holds no {DATA_FILE}")
    headers: dict[Path, frozenset[str]] = {}
    total = 0
    for path in paths:
        total += path.stat().st_size
        if total > MAX_LOG_BYTES:
            problems.error(root, None, f"holds more than the {MAX_LOG_BYTES:,} bytes that are read")
            return
        yield from _read_table(path, columns, headers, problems)


def _read_table(
    path: Path,
    columns: tuple[str, ...],
    headers: dict[Path, frozenset[str]],
    problems: _Problems,
) -> Iterator[_Placed]:
    text = _read_text(path, problems)
    if text is None:
        return
    reader = csv.reader(io.StringIO(text, newline=""), delimiter="\t", quotechar='"', strict=True)
    try:
        header = next(reader, None)
        if header is None or not _check_header(path, header, columns, headers, problems):
            if header is None:
                problems.error(path, 1, "is empty: the header is missing")
            return
        line = reader.line_num + 1
        for values in reader:
            row = _parse_row(path, line, header, values, columns, problems)
            if row is not None:
                yield _Placed(row, path, line)
            line = reader.line_num + 1
    except csv.Error as error:
        problems.error(path, reader.line_num, f"not a table of tab-separated values: {error}")


def _check_header(
    path: Path,
    header: list[str],
    columns: tuple[str, ...],
    headers: dict[Path, frozenset[str]],
    problems: _Problems,
) -> bool:
    """Whether rows under this header can be read."""
    required = [name for name in STANDARD_COLUMNS if name not in _OPTIONAL_COLUMNS]
    missing = [name for name in (*required, *columns) if name not in header]
    for name in missing:
        problems.error(path, 1, f"the column {name!r} is missing")
    repeated = sorted({name for name in header if header.count(name) > 1})
    for name in repeated:
        problems.error(path, 1, f"the column {name!r} is there twice")
    first = next(iter(headers.items()), (path, frozenset(header)))
    headers[path] = frozenset(header)
    if headers[path] != first[1]:
        names = ", ".join(sorted(headers[path] ^ first[1]))
        problems.warning(path, 1, f"the columns differ from those of {first[0]} in: {names}")
    return not missing and not repeated


def _parse_row(
    path: Path,
    line: int,
    header: list[str],
    values: list[str],
    columns: tuple[str, ...],
    problems: _Problems,
) -> LogRow | None:
    """One row, or None and its problems."""
    if len(values) != len(header):
        problems.error(path, line, f"has {len(values)} fields under {len(header)} columns")
        return None
    cells = dict(zip(header, values, strict=True))
    cells.setdefault("block_subtype", DEFAULT_SUBTYPE)
    before = len(problems.found)
    _check_cells(path, line, cells, problems)
    params = _parse_params(path, line, cells["task_params"], problems)
    when = _parse_timestamp(path, line, cells["timestamp"], problems)
    metrics = {name: _parse_metric(path, line, name, cells[name], problems) for name in columns}
    if any(problem.severity == "error" for problem in problems.found[before:]):
        return None
    return LogRow(
        block_num=int(cells["block_num"]),
        exp_num=int(cells["exp_num"]),
        block_type=cells["block_type"],
        block_subtype=cells["block_subtype"],
        task_name=cells["task_name"],
        task_params=params,
        exp_status=cells["exp_status"],
        timestamp=when,
        metrics=metrics,
        extras={k: v for k, v in cells.items() if k not in STANDARD_COLUMNS and k not in metrics},
        worker_id=cells["worker_id"],
    )


def _check_cells(path: Path, line: int, cells: Mapping[str, str], problems: _Problems) -> None:
    """The columns that are checked without being converted."""
    for name in ("block_num", "exp_num"):
        if not _COUNT.fullmatch(cells[name]):
            problems.error(path, line, f"{name} must be an integer from 0, not {cells[name]!r}")
    for name, allowed in (
        ("block_type", BLOCK_TYPES),
        ("block_subtype", BLOCK_SUBTYPES),
        ("exp_status", EXP_STATUSES),
    ):
        if cells[name] not in allowed:
            listed = ", ".join(allowed)
            problems.error(path, line, f"{name} must be one of {listed}, not {cells[name]!r}")
    if not WORKER.fullmatch(cells["worker_id"]):
        problems.error(
            path,
            line,
            f"worker_id must be letters, digits, '_', '-' and '.', not {cells['worker_id']!r}",
        )
    if not TASK_NAME.fullmatch(cells["task_name"]):
        problems.warning(
            path, line, f"task_name {cells['task_name']!r} is not of the form label_variant"
        )


def _parse_params(path: Path, line: int, text: str, problems: _Problems) -> dict[str, Any]:
    """Parameters from JSON text; empty text means none."""
    if not text:
        return {}
    try:
        params = json.loads(text)
    except (ValueError, RecursionError) as error:
        problems.error(path, line, f"task_params must be JSON: {error}")
        return {}
    if not isinstance(params, dict):
        problems.error(path, line, f"task_params must be a JSON object, not {text!r}")
        return {}
    return params


def _parse_timestamp(path: Path, line: int, text: str, problems: _Problems) -> datetime | None:
    match = _TIMESTAMP.fullmatch(text)
    try:
        if match:
            *whole, fraction = match.groups()
            year, month, day, hour, minute, second = map(int, whole)
            return datetime(year, month, day, hour, minute, second, int(fraction.ljust(6, "0")))
    except ValueError:
        pass  # a field out of range: the same problem as a text of another form
    problems.error(path, line, f"timestamp must look like {TIMESTAMP_FORMAT}, not {text!r}")
    return None


def _parse_metric(path: Path, line: int, name: str, text: str, problems: _Problems) -> int | float:
    """A metric; integers stay integers so that they are written back as they were."""
    if _INTEGER.fullmatch(text):
        return int(text)
    try:
        value = float(text) if text else math.nan
    except ValueError:
        problems.error(path, line, f"{name} must be a number, not {text!r}")
        return math.nan
    if not math.isfinite(value):
        problems.warning(path, line, f"{name} is {text or 'empty'}, not a finite number")
    return value


def _check_order(placed: Sequence[_Placed], problems: _Problems) -> None:
    """Block numbers may not fall while episode numbers rise."""
    previous = 0
    for row, path, line in placed:
        if row.block_num < previous:
            problems.error(
                path,
                line,
                f"block_num falls from {previous} to {row.block_num} at exp_num {row.exp_num}",
            )
        previous = row.block_num
