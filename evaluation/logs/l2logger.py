"""Reader and writer of l2logger logs, format version 1.1.

A log is one lifetime on disk::

    <base>/<scenario name>-<seconds since 1970, '.' written as '-'>/
        logger_info.json            {"metrics_columns": [...], "log_format_version": "1.1"}
        scenario_info.json          free, usually complexity, difficulty and scenario_type
        <worker>/<block number>-<train|test>/data-log.tsv

A TSV row is one episode (an "experience"): the nine columns of `STANDARD_COLUMNS`, then the metrics
in the order of ``metrics_columns``, then any further fields in alphabetical order. Text is UTF-8,
lines end in a line feed, a field is quoted only where it has to be, ``task_params`` is JSON text
and ``timestamp`` is local time. The byte layout is that of logs written by l2logger 1.8.2.
"""

import csv
import io
import json
import math
import numbers
import operator
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

FORMAT_VERSION: Final = "1.1"
READABLE_VERSIONS: Final = ("1.0", "1.1")
DATA_FILE: Final = "data-log.tsv"
STANDARD_COLUMNS: Final = (
    "block_num",
    "exp_num",
    "worker_id",
    "block_type",
    "block_subtype",
    "task_name",
    "task_params",
    "exp_status",
    "timestamp",
)
BLOCK_TYPES: Final = ("train", "test")
BLOCK_SUBTYPES: Final = ("wake", "sleep")
EXP_STATUSES: Final = ("complete", "incomplete")
SCENARIO_FIELDS: Final = {
    "complexity": ("1-low", "2-intermediate", "3-high"),
    "difficulty": ("1-easy", "2-medium", "3-hard"),
    "scenario_type": ("condensed", "dispersed", "permuted", "alternating", "ste", "custom"),
}
"""Fields that evaluators look for in scenario_info.json, and their values."""

MAX_FILE_BYTES: Final = 256 * 2**20
"""Largest single file that is read."""

MAX_LOG_BYTES: Final = 2 * 2**30
"""Largest sum of the files of one log that is read."""

_PARAMS_ENCODER: Final = json.JSONEncoder(allow_nan=False)
_TIMESTAMP_FORMAT: Final = "%Y%m%dT%H%M%S.%f"
_OPTIONAL_COLUMNS: Final = ("block_subtype",)
_DEFAULT_SUBTYPE: Final = "wake"
_WORKER: Final = re.compile(r"[0-9a-zA-Z_\-.]+")
_TASK_NAME: Final = re.compile(r"[0-9a-zA-Z]+_[0-9a-zA-Z]+")
_COUNT: Final = re.compile(r"[0-9]{1,15}")
_INTEGER: Final = re.compile(r"-?[0-9]{1,15}")
_TIMESTAMP: Final = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)\.(\d{1,6})", re.ASCII)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")

Scalar: TypeAlias = str | int | float | None


@dataclass(frozen=True, slots=True)
class LogRow:
    """One episode of a log.

    Attributes:
      block_num: number of the block, from 0, never falling.
      exp_num: number of the episode in the lifetime, from 0, never falling.
      block_type: ``"train"`` or ``"test"``.
      block_subtype: ``"wake"`` or ``"sleep"``.
      task_name: by convention ``<task label>_<variant label>``, letters and digits.
      task_params: the task's parameters; any JSON object.
      exp_status: ``"complete"`` or ``"incomplete"``.
      timestamp: end of the episode; its wall-clock fields are written as they are (the format means
        local time). None, for writing only: the start of the log.
      metrics: a number for each of the log's ``metrics_columns``. NaN means not measured.
      extras: further columns; every row of a log has the same ones.
      worker_id: None, for writing only: the worker of the log.
    """

    block_num: int
    exp_num: int
    block_type: str
    block_subtype: str
    task_name: str
    task_params: Mapping[str, Any]
    exp_status: str
    timestamp: datetime | None
    metrics: Mapping[str, float]
    extras: Mapping[str, Scalar] = field(default_factory=dict)
    worker_id: str | None = None


class Regime(NamedTuple):
    """A maximal run of episodes with equal block number, type, subtype and task name.

    Attributes:
      regime_num: from 0.
      block_num: number of the block.
      block_type: ``"train"`` or ``"test"``.
      block_subtype: ``"wake"`` or ``"sleep"``.
      task_name: in lower case.
      start: position of its first row.
      length: number of rows.
    """

    regime_num: int
    block_num: int
    block_type: str
    block_subtype: str
    task_name: str
    start: int
    length: int


@dataclass(frozen=True)
class Problem:
    """Something wrong with a log on disk.

    Attributes:
      path: the file or directory.
      line: 1-based line in it, or None where it is not about a line.
      severity: ``"error"``: the log is not valid; ``"warning"``: readers cope.
      message: what is wrong and what is expected.
    """

    path: Path
    line: int | None
    severity: str
    message: str

    def __str__(self) -> str:
        """The problem as ``file:line: severity: message``."""
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{place}: {self.severity}: {self.message}"


class LogError(ValueError):
    """A log on disk is not valid; ``problems`` holds every one found, warnings included."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        """Keep the problems and put the errors among them into the message."""
        self.problems = tuple(problems)
        super().__init__("\n".join(str(p) for p in problems if p.severity == "error"))


@dataclass(frozen=True)
class Log:
    """A whole log.

    Attributes:
      path: its directory.
      format_version: ``log_format_version`` of logger_info.json; ``"1.0"`` where it is absent.
      metrics_columns: names of the metrics.
      scenario_info: content of scenario_info.json.
      rows: all episodes, stably sorted by (exp_num, block_num). Text is as in the file.
      regimes: the runs in ``rows``.
      warnings: the problems that do not make it invalid.
    """

    path: Path
    format_version: str
    metrics_columns: tuple[str, ...]
    scenario_info: Mapping[str, Any]
    rows: tuple[LogRow, ...]
    regimes: tuple[Regime, ...]
    warnings: tuple[Problem, ...]


# ---------------------------------------------------------------------------------------------
# Writing
# ---------------------------------------------------------------------------------------------


def write_log(
    base_dir: str | os.PathLike[str],
    scenario_name: str,
    rows: Sequence[LogRow],
    metrics_columns: Sequence[str],
    scenario_info: Mapping[str, Any],
    worker_id: str = "worker-default",
    start: datetime | None = None,
) -> Path:
    """Write the log of one lifetime, whole or not at all.

    Everything is checked before the first byte; the files are then written to a hidden directory
    next to the final one and moved into place with one rename.

    Args:
      base_dir: directory to put the log directory in; made if absent.
      scenario_name: first part of the directory's name; of a path only the last part up to its
        first dot is used, as l2logger does.
      rows: the episodes in order.
      metrics_columns: the metrics that every row has.
      scenario_info: content of scenario_info.json.
      worker_id: worker of the rows that name none.
      start: when the lifetime started, for the directory's name and for rows without a timestamp;
        now if None.

    Returns:
      The new log directory.

    Raises:
      ValueError: something that format 1.1 does not allow; the message names row and column.
      FileExistsError: the log directory is already there.
      OSError: the files cannot be written.

    Source: l2logger log format 1.1.
    """
    began = datetime.now() if start is None else start
    name = _directory_name(scenario_name, began)
    columns = _checked_metrics_columns(metrics_columns)
    info_texts = {
        "logger_info.json": _info_text(
            {"metrics_columns": list(columns), "log_format_version": FORMAT_VERSION}
        ),
        "scenario_info.json": _checked_scenario_info(scenario_info),
    }
    header, records = _checked_records(rows, columns, worker_id, began)
    final = Path(base_dir) / name
    if final.exists():
        raise FileExistsError(f"{final} already exists: give another start time or base directory")
    partial = final.with_name(f".{name}-{secrets.token_hex(4)}.partial")
    partial.mkdir(parents=True)
    try:
        for file_name, text in info_texts.items():
            (partial / file_name).write_text(text, encoding="utf-8", newline="")
        _write_tables(partial, header, records)
        partial.rename(final)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return final


def _directory_name(scenario_name: str, start: datetime) -> str:
    label = Path(scenario_name).name.split(".")[0]
    if not label or _CONTROL.search(label):
        raise ValueError(
            f"scenario_name must have a printable part before its first dot, not {scenario_name!r}"
        )
    return f"{label}-{start.timestamp()}".replace(".", "-")


def _checked_metrics_columns(names: Sequence[str]) -> tuple[str, ...]:
    problem = _metrics_columns_problem(names if not isinstance(names, str) else None)
    if problem:
        raise ValueError(f"metrics_columns {problem}")
    return tuple(names)


def _metrics_columns_problem(names: object) -> str:
    """What is wrong with a list of metric names; empty if nothing."""
    if not isinstance(names, list | tuple) or not names:
        return "must be a non-empty list of names"
    if not all(isinstance(name, str) and name and not _CONTROL.search(name) for name in names):
        return f"must be non-empty printable strings, not {names!r}"
    if len(set(names)) < len(names):
        return f"must be distinct, not {names!r}"
    taken = sorted(set(names) & set(STANDARD_COLUMNS))
    return f"must not use the standard names {', '.join(taken)}" if taken else ""


def _checked_scenario_info(info: Mapping[str, Any]) -> str:
    for name, allowed in SCENARIO_FIELDS.items():
        if name in info and str(info[name]).lower() not in allowed:
            raise ValueError(
                f"scenario_info {name!r} must be one of {', '.join(allowed)}, not {info[name]!r}"
            )
    try:
        return _info_text(info)
    except (TypeError, ValueError) as error:
        raise ValueError(f"scenario_info must be strict JSON: {error}") from error


def _info_text(info: Mapping[str, Any]) -> str:
    return json.dumps(dict(info), indent=2, allow_nan=False)


class _Record(NamedTuple):
    """A checked row: where it goes and its fields as they are written."""

    worker_id: str
    block_num: int
    block_type: str
    fields: tuple[Scalar, ...]


def _checked_records(
    rows: Sequence[LogRow], columns: tuple[str, ...], worker_id: str, start: datetime
) -> tuple[list[str], list[_Record]]:
    """The header and all rows ready to be written."""
    if not rows:
        raise ValueError("rows is empty: a log needs at least one episode")
    extras = _checked_extra_names(rows[0].extras, columns)
    records = []
    blocks = episodes = 0
    for number, row in enumerate(rows):
        blocks = _checked_number(number, "block_num", row.block_num, blocks)
        episodes = _checked_number(number, "exp_num", row.exp_num, episodes)
        records.append(_checked_record(number, row, columns, extras, worker_id, start))
    return [*STANDARD_COLUMNS, *columns, *extras], records


def _checked_extra_names(extras: Mapping[str, Scalar], columns: tuple[str, ...]) -> list[str]:
    for name in extras:
        if not isinstance(name, str) or not name or _CONTROL.search(name):
            raise ValueError(f"row 0, column {name!r}: an extra column needs a printable name")
        if name in STANDARD_COLUMNS or name in columns:
            raise ValueError(f"row 0, column {name!r}: an extra column needs a name of its own")
    return sorted(extras)


def _checked_record(
    number: int,
    row: LogRow,
    columns: tuple[str, ...],
    extras: list[str],
    worker_id: str,
    start: datetime,
) -> _Record:
    worker = worker_id if row.worker_id is None else row.worker_id
    for column, value, allowed in (
        ("block_type", row.block_type, BLOCK_TYPES),
        ("block_subtype", row.block_subtype, BLOCK_SUBTYPES),
        ("exp_status", row.exp_status, EXP_STATUSES),
    ):
        if value not in allowed:
            raise _row_error(number, column, f"must be one of {', '.join(allowed)}, not {value!r}")
    if not isinstance(worker, str) or not _usable_worker(worker):
        raise _row_error(
            number, "worker_id", f"must be letters, digits, '_', '-' and '.', not {worker!r}"
        )
    name = row.task_name
    if not isinstance(name, str) or not name or _CONTROL.search(name):
        raise _row_error(number, "task_name", f"must be printable text, not {name!r}")
    when = start if row.timestamp is None else row.timestamp
    if not isinstance(when, datetime):
        raise _row_error(number, "timestamp", f"must be a datetime, not {type(when).__name__}")
    fields = (
        operator.index(row.block_num),
        operator.index(row.exp_num),
        worker,
        row.block_type,
        row.block_subtype,
        name,
        _params_text(number, row.task_params),
        row.exp_status,
        _timestamp_text(when),
        *_metric_fields(number, row.metrics, columns),
        *_extra_fields(number, row.extras, extras),
    )
    return _Record(worker, operator.index(row.block_num), row.block_type, fields)


def _row_error(number: int, column: str, message: str) -> ValueError:
    return ValueError(f"row {number}, column {column!r}: {message}")


def _usable_worker(worker: str) -> bool:
    """Whether a worker name is allowed and names a directory of its own."""
    return bool(_WORKER.fullmatch(worker)) and worker not in (".", "..")


def _checked_number(number: int, column: str, value: object, least: int) -> int:
    """A block or episode number: a whole number not below the one before it."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise _row_error(number, column, f"must be an integer, not {value!r}")
    whole = operator.index(value)
    if whole < 0:
        raise _row_error(number, column, f"must be 0 or more, not {whole}")
    if whole < least:
        raise _row_error(number, column, f"must not fall from {least} to {whole}")
    return whole


def _params_text(number: int, params: Mapping[str, Any]) -> str:
    if not isinstance(params, Mapping):
        kind = type(params).__name__
        raise _row_error(number, "task_params", f"must be a mapping, not {kind}")
    try:
        return _PARAMS_ENCODER.encode(dict(params))
    except (TypeError, ValueError, RecursionError) as error:
        raise _row_error(number, "task_params", f"must be strict JSON: {error}") from error


def _timestamp_text(when: datetime) -> str:
    return f"{when.year:04d}{when:%m%dT%H%M%S.%f}"  # %Y does not pad years below 1000


def _metric_fields(
    number: int, metrics: Mapping[str, float], columns: tuple[str, ...]
) -> list[Scalar]:
    for name in columns:
        if name not in metrics:
            raise _row_error(number, name, "is a metric of this log and missing in this row")
    for name in metrics:
        if name not in columns:
            raise _row_error(number, str(name), "is not among metrics_columns; use extras for it")
    return [_metric_field(number, name, metrics[name]) for name in columns]


def _metric_field(number: int, name: str, value: object) -> Scalar:
    plain = _plain(value)
    if isinstance(plain, bool) or not isinstance(plain, int | float):
        raise _row_error(number, name, f"must be a number, not {value!r}")
    if math.isinf(plain):
        raise _row_error(number, name, "must be finite, or NaN where it was not measured")
    return plain


def _extra_fields(number: int, extras: Mapping[str, Scalar], names: list[str]) -> list[Scalar]:
    if set(extras) != set(names):
        raise _row_error(
            number,
            ", ".join(sorted(map(str, set(extras) ^ set(names)))),
            f"every row must have the extra columns of row 0 ({', '.join(names) or 'none'})",
        )
    fields = [_plain(extras[name]) for name in names]
    for name, value in zip(names, fields, strict=True):
        if value is not None and not isinstance(value, str | int | float):
            raise _row_error(number, name, f"must be text or a number, not {value!r}")
    return fields


def _plain(value: object) -> Any:
    """A NumPy or JAX scalar as the Python number it holds; anything else as it is."""
    item = getattr(value, "item", None)
    return item() if callable(item) and getattr(value, "shape", None) == () else value


def _write_tables(root: Path, header: list[str], records: Iterable[_Record]) -> None:
    """One file a worker and block, each with a header."""
    tables: dict[tuple[str, str], list[tuple[Scalar, ...]]] = {}
    for record in records:
        place = (record.worker_id, f"{record.block_num}-{record.block_type}")
        tables.setdefault(place, []).append(record.fields)
    for (worker, block), lines in tables.items():
        folder = root / worker / block
        folder.mkdir(parents=True)
        with (folder / DATA_FILE).open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, delimiter="\t", quotechar='"', lineterminator="\n")
            writer.writerow(header)
            writer.writerows(lines)


# ---------------------------------------------------------------------------------------------
# Reading
# ---------------------------------------------------------------------------------------------


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
    problem = _metrics_columns_problem(names)
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
    cells.setdefault("block_subtype", _DEFAULT_SUBTYPE)
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
    if not _WORKER.fullmatch(cells["worker_id"]):
        problems.error(
            path,
            line,
            f"worker_id must be letters, digits, '_', '-' and '.', not {cells['worker_id']!r}",
        )
    if not _TASK_NAME.fullmatch(cells["task_name"]):
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
    problems.error(path, line, f"timestamp must look like {_TIMESTAMP_FORMAT}, not {text!r}")
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
