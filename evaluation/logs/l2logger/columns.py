"""Reader of l2logger logs into arrays, for logs of many files and rows.

The tables of a log are read together and their columns converted at once. Logs that this reader
might read differently are left to the row reader, so both accept the same logs and report the same
problems.
"""

import csv
import dataclasses
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from evaluation.json_types import JsonMapping
from evaluation.logs.arrow import to_numpy
from evaluation.logs.coded import Coded, coded, from_arrow
from evaluation.logs.l2logger.format import (
    DATA_FILE,
    DEFAULT_SUBTYPE,
    REQUIRED_COLUMNS,
    STANDARD_COLUMNS,
    TASK_NAME,
    WORDS,
    L2LoggerLog,
)
from evaluation.logs.l2logger.reader import LogInfo, read_header, read_log, task_name_warning
from evaluation.logs.problems import Problem, Problems
from evaluation.logs.tables import WORKER, find_tables, non_finite_warning, read_bytes

_TEXT_COLUMNS: Final = (
    "worker_id",
    "block_type",
    "block_subtype",
    "task_name",
    "task_params",
    "exp_status",
)
_CODED_CHECKS: Final[dict[str, Callable[[str], object]]] = {
    "worker_id": WORKER.fullmatch,
    **{name: words.__contains__ for name, words in WORDS.items()},
    "task_params": lambda text: text.startswith("{"),
}
_NUMBER: Final = re.compile(rb"[0-9eE.+\-nNaAiIfFtTyY]*")
_MAX_LINE: Final = 2**17 - 1  # the csv module of the row reader rejects longer fields
_TIMESTAMP_LENGTH: Final = 22
_DAYS: Final = np.array([0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])


@dataclass(frozen=True)
class LogColumns:
    """A whole log as columns of R rows, stably sorted by (exp_num, block_num).

    Attributes:
      path: its directory.
      format_version: ``log_format_version`` of logger_info.json; ``"1.0"`` if absent.
      metrics_columns: names of the metrics.
      scenario_info: content of scenario_info.json.
      block_num: (R,) int64.
      exp_num: (R,) int64.
      worker_id, block_type, block_subtype, task_name: (R,) text, coded.
      task_params: (R,) JSON objects as text of `json.dumps`, coded.
      complete: (R,) bool, whether the status is ``"complete"``, not ``"incomplete"``.
      timestamp: (R,) datetime64[us], local time.
      metrics: (R,) float64 by name, NaN for not measured.
      extras: extra columns by name, as text, coded.
      warnings: the problems that do not make it invalid.
    """

    path: Path
    format_version: str
    metrics_columns: tuple[str, ...]
    scenario_info: JsonMapping
    block_num: np.ndarray
    exp_num: np.ndarray
    worker_id: Coded[str]
    block_type: Coded[str]
    block_subtype: Coded[str]
    task_name: Coded[str]
    task_params: Coded[str]
    complete: np.ndarray
    timestamp: np.ndarray
    metrics: Mapping[str, np.ndarray]
    extras: Mapping[str, Coded[str]]
    warnings: tuple[Problem, ...]

    def __len__(self) -> int:
        """Number of rows, R."""
        return len(self.exp_num)

    def take(self, rows: np.ndarray | slice) -> "LogColumns":
        """Select rows by an index array, a mask or a slice."""
        names = ("block_num", "exp_num", "complete", "timestamp")
        words = ("worker_id", "block_type", "block_subtype", "task_name", "task_params")
        return dataclasses.replace(
            self,
            **{name: getattr(self, name)[rows] for name in names},
            **{name: getattr(self, name).take(rows) for name in words},
            metrics={name: column[rows] for name, column in self.metrics.items()},
            extras={name: column.take(rows) for name, column in self.extras.items()},
        )

    def regime_numbers(self) -> np.ndarray:
        """Number the maximal runs of equal block number, type, subtype and task name.

        Returns:
          (R,) int64 from 0, never falling. Letter case of the task name and task parameters do not
          split a run. Select the rows that count first: without a run its neighbours may merge.

        Source: l2logger log format 1.1.
        """
        change = np.zeros(len(self), bool)
        tasks = self.task_name.mapped(str.lower)
        for codes in (
            self.block_num,
            self.block_type.codes,
            self.block_subtype.codes,
            tasks.codes,
        ):
            change[1:] |= codes[1:] != codes[:-1]
        return np.cumsum(change)


def read_columns(path: str | os.PathLike[str], lower_case: bool = False) -> LogColumns:
    """Read and check a log directory, of format 1.0 or 1.1, into columns.

    Args:
      path: the log directory, the one that holds logger_info.json.
      lower_case: whether task names are converted to lower case, as in l2logger's reader.

    Returns:
      All rows, incomplete ones too, in the order of `read_log`: tables in path order, then stably
      sorted by (exp_num, block_num).

    Raises:
      LogError: the log is not valid; it carries every problem with file and line.

    Source: l2logger log format 1.1.
    """
    root = Path(path)
    columns = _read_fast(root)
    if columns is None:
        columns = _from_rows(read_log(root))
    if lower_case:
        names = columns.task_name.mapped(str.lower)
        columns = dataclasses.replace(columns, task_name=names)
    return columns


class _Unsure(Exception):
    """The row reader has to read the log."""


def _read_fast(root: Path) -> LogColumns | None:
    """The log, or None if the row reader has to read it."""
    problems = Problems()
    header = read_header(root, problems)
    if header is None or problems.fatal:
        return None
    try:
        return _columns(root, header, problems)
    except (_Unsure, pa.ArrowException, ValueError, RecursionError):
        return None


def _columns(root: Path, header: LogInfo, problems: Problems) -> LogColumns:
    """The log.

    Raises:
      _Unsure: the log is unusual.
      pyarrow.ArrowException: Arrow cannot convert a column.
      ValueError: a value cannot be converted.
    """
    tables = _Tables(find_tables(root, DATA_FILE, problems), problems)
    if problems.fatal:
        raise _Unsure
    names = tables.names
    required = {*REQUIRED_COLUMNS, *header.metrics_columns}
    if len(set(names)) < len(names) or not required <= set(names):
        raise _Unsure
    table = tables.parsed()
    texts = {name: _text(name, table) for name in _TEXT_COLUMNS}
    block_num, exp_num = _counts(table["block_num"]), _counts(table["exp_num"])
    metrics = {name: _metrics(table[name]) for name in header.metrics_columns}
    timestamp = _timestamps(table["timestamp"])
    _warn(texts["task_name"], metrics, table, tables, problems)
    order = _order(block_num, exp_num)
    if np.any(np.diff(block_num[order]) < 0):
        raise _Unsure
    extras = [n for n in names if n not in STANDARD_COLUMNS and n not in metrics]
    status = texts["exp_status"]
    return LogColumns(
        path=root,
        format_version=header.format_version,
        metrics_columns=header.metrics_columns,
        scenario_info=header.scenario_info,
        block_num=block_num[order],
        exp_num=exp_num[order],
        worker_id=texts["worker_id"].take(order),
        block_type=texts["block_type"].take(order),
        block_subtype=texts["block_subtype"].take(order),
        task_name=texts["task_name"].take(order),
        task_params=texts["task_params"].take(order),
        complete=np.array([text == "complete" for text in status.values])[status.codes[order]],
        timestamp=timestamp[order],
        metrics={name: column[order] for name, column in metrics.items()},
        extras={name: _cells(table[name]).take(order) for name in extras},
        warnings=tuple(problems.problems),
    )


def _order(block_num: np.ndarray, exp_num: np.ndarray) -> np.ndarray | slice:
    """Index that sorts rows stably by (exp_num, block_num); a slice if they are sorted."""
    later, block = np.diff(exp_num), np.diff(block_num)
    if np.all((later > 0) | ((later == 0) & (block >= 0))):
        return slice(None)
    return np.lexsort((block_num, exp_num))


class _Tables:
    """The tables of a log, joined under their common header."""

    def __init__(self, paths: list[Path], problems: Problems) -> None:
        self.paths = paths
        self._header = b""
        self._bodies: list[bytes] = []
        for path in paths:
            content = read_bytes(path, problems)
            if not content or b"\r" in content or b"\0" in content:
                raise _Unsure
            header, _, body = content.partition(b"\n")
            self._header = self._header or header
            if header != self._header or b'"' in header:
                raise _Unsure
            self._bodies.append(body if body.endswith(b"\n") or not body else body + b"\n")
        self._ends = np.cumsum([body.count(b"\n") for body in self._bodies])

    @property
    def names(self) -> list[str]:
        """The columns."""
        return self._header.decode().split("\t")

    def parsed(self) -> pa.Table:
        """All rows, as text."""
        content = b"".join((self._header, b"\n", *self._bodies))
        text = np.frombuffer(content, np.uint8)
        longest = np.diff(np.flatnonzero(text == ord("\n")), prepend=-1).max()
        if self._ends[-1] == 0 or longest > _MAX_LINE:
            raise _Unsure
        table = pyarrow.csv.read_csv(
            pa.BufferReader(content),
            read_options=pyarrow.csv.ReadOptions(use_threads=False, block_size=2**30),
            # Quotes stay in the cells. A tab or line feed between quotes splits a cell, which is
            # detected by the number of cells or by an unterminated cell.
            parse_options=pyarrow.csv.ParseOptions(
                delimiter="\t", quote_char=False, ignore_empty_lines=False
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(self.names, pa.string()), strings_can_be_null=False
            ),
        )
        if table.num_rows != self._ends[-1]:
            raise _Unsure
        return table

    def place(self, row: int) -> tuple[Path, int]:
        """The file and line of a row."""
        index = int(np.searchsorted(self._ends, row, side="right"))
        start = self._ends[index - 1] if index else 0
        return self.paths[index], int(row - start) + 2


def _cells(column: pa.ChunkedArray) -> Coded[str]:
    """A column of text without its quotes."""
    raw = from_arrow(column)
    return raw.mapped(_unquoted) if any(text[:1] == '"' for text in raw.values) else raw


def _unquoted(text: str) -> str:
    """The value of a cell, as in the row reader.

    Raises:
      _Unsure: the cell does not end with its text.
    """
    if text[:1] != '"':
        return text
    try:
        (cell,) = next(csv.reader((text,), delimiter="\t", strict=True))
    except csv.Error as error:
        raise _Unsure from error
    return cell


def _text(name: str, table: pa.Table) -> Coded[str]:
    """A column of text, with checked words."""
    if name not in table.column_names:  # format 1.0
        return Coded((DEFAULT_SUBTYPE,), np.zeros(table.num_rows, np.int32))
    column = _cells(table[name])
    if name == "task_params":
        column = column.mapped(lambda text: json.dumps(json.loads(text)) if text else "{}")
    check = _CODED_CHECKS.get(name)
    if check is not None and not all(map(check, column.values)):
        raise _Unsure
    return column


def _bytes(column: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """The joined characters of a column of text, and the length of each row."""
    array = column.combine_chunks()
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    characters = np.frombuffer(data, np.uint8) if data else np.zeros(0, np.uint8)
    return characters[ends[0] : ends[-1]], np.diff(ends)


def _counts(column: pa.ChunkedArray) -> np.ndarray:
    """Whole numbers from 0 of at most 15 digits."""
    characters, lengths = _bytes(column)
    digits = (characters >= ord("0")) & (characters <= ord("9"))
    if not digits.all() or lengths.min() < 1 or lengths.max() > 15:
        raise _Unsure
    return to_numpy(pc.cast(column, pa.int64()), np.int64)


def _metrics(column: pa.ChunkedArray) -> np.ndarray:
    """Numbers; an empty cell is NaN."""
    characters, lengths = _bytes(column)
    if not _NUMBER.fullmatch(characters.tobytes()):
        raise _Unsure
    if lengths.min() == 0:
        column = pc.if_else(pc.equal(pc.binary_length(column), 0), "nan", column)
    return to_numpy(pc.cast(column, pa.float64()), np.float64)


def _timestamps(column: pa.ChunkedArray) -> np.ndarray:
    """Moments with six digits of a second's fraction, (R,) datetime64[us]."""
    characters, lengths = _bytes(column)
    if not np.all(lengths == _TIMESTAMP_LENGTH):
        raise _Unsure
    text = characters.reshape(-1, _TIMESTAMP_LENGTH)
    if not (np.all(text[:, 8] == ord("T")) and np.all(text[:, 15] == ord("."))):
        raise _Unsure
    if np.any(np.delete(text, (8, 15), axis=1) - ord("0") > 9):  # below "0" wraps around
        raise _Unsure
    parts = ((0, 4), (4, 6), (6, 8), (9, 11), (11, 13), (13, 15), (16, 22))
    year, month, day, hour, minute, second, micro = (_whole(text, *part) for part in parts)
    fine = (year > 0) & (month > 0) & (month < 13) & (day > 0) & (hour < 24)
    fine &= (minute < 60) & (second < 60)
    if not fine.all() or np.any(day > _DAYS[month]):
        raise _Unsure
    first = (year - 1970) * 12 + (month - 1)
    date = first.astype("datetime64[M]").astype("datetime64[D]") + (day - 1)
    if np.any(date.astype("datetime64[M]").astype(np.int64) != first):  # 29 February
        raise _Unsure
    within = (hour * 3600 + minute * 60 + second) * 10**6 + micro
    return np.asarray(date.astype("datetime64[us]") + within)


def _whole(text: np.ndarray, start: int, stop: int) -> np.ndarray:
    """The numbers in the digit columns [start, stop) of text."""
    total = np.zeros(len(text), np.int64)
    for column in range(start, stop):
        total = total * 10 + (text[:, column] - ord("0"))
    return total


def _warn(
    tasks: Coded[str],
    metrics: Mapping[str, np.ndarray],
    table: pa.Table,
    tables: _Tables,
    problems: Problems,
) -> None:
    """Add the warnings of the row reader, row by row."""
    unusual = np.array([not TASK_NAME.fullmatch(task) for task in tasks.values])[tasks.codes]
    bad = {name: ~np.isfinite(column) for name, column in metrics.items()}
    for row in np.flatnonzero(np.logical_or.reduce([unusual, *bad.values()])).tolist():
        path, line = tables.place(row)
        if unusual[row]:
            problems.warning(path, line, task_name_warning(tasks.values[tasks.codes[row]]))
        for name, mask in bad.items():
            if mask[row]:
                problems.warning(path, line, non_finite_warning(name, table[name][row].as_py()))


def _from_rows(log: L2LoggerLog) -> LogColumns:
    """Columns of a log that was read row by row."""
    rows = log.rows
    extras = list(dict.fromkeys(name for row in rows for name in row.extras))
    return LogColumns(
        path=log.path,
        format_version=log.format_version,
        metrics_columns=log.metrics_columns,
        scenario_info=log.scenario_info,
        block_num=np.array([row.block_num for row in rows], np.int64),
        exp_num=np.array([row.exp_num for row in rows], np.int64),
        worker_id=coded([row.worker_id for row in rows]),
        block_type=coded([row.block_type for row in rows]),
        block_subtype=coded([row.block_subtype for row in rows]),
        task_name=coded([row.task_name for row in rows]),
        task_params=coded([json.dumps(row.task_params) for row in rows]),
        complete=np.array([row.exp_status == "complete" for row in rows], bool),
        timestamp=np.array([row.timestamp for row in rows], "datetime64[us]"),
        metrics={
            name: np.array([row.metrics[name] for row in rows], np.float64)
            for name in log.metrics_columns
        },
        extras={name: coded([row.extras.get(name, "") for row in rows]) for name in extras},
        warnings=log.warnings,
    )
