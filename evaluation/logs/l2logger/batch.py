"""Writer of l2logger logs from columns, one lifetime per call, with the bytes of the row writer."""

import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from evaluation.json_types import JsonMapping
from evaluation.logs.cells import CheckedRow
from evaluation.logs.coded import Coded, coded
from evaluation.logs.l2logger.format import (
    DEFAULT_SUBTYPE,
    DEFAULT_WORKER,
    EXP_STATUSES,
    STANDARD_COLUMNS,
    WORDS,
)
from evaluation.logs.l2logger.writer import NewLog, check_extra_names, header_of
from evaluation.logs.texts import Lines, coded_texts, moments, number_texts, timestamp_texts

Columns = Mapping[str, Any]
"""Columns by name: an array or sequence of R values, a `Coded`, or one value for all rows."""

_REQUIRED: Final = ("block_num", "exp_num", "block_type", "task_name", "task_params")


def write_columns(
    base_dir: str | os.PathLike[str],
    scenario_name: str,
    columns: Columns,
    metrics_columns: Sequence[str],
    scenario_info: JsonMapping,
    worker_id: str = DEFAULT_WORKER,
    start: datetime | None = None,
) -> Path:
    """Write the log of one lifetime from columns of R episodes, completely or not at all.

    The bytes are those of `write_log` for the same episodes.

    Args:
      base_dir: directory to put the log directory in; made if absent.
      scenario_name: first part of the directory's name; only the last component of a path, up to
        its first dot, is used, as in l2logger.
      columns: name -> an array or sequence of R values, a `Coded` column, or one value for all.
        ``block_num``, ``exp_num``, ``block_type``, ``task_name``, ``task_params`` (mappings) and
        all metrics are required. Defaults are ``"wake"`` for ``block_subtype``, ``"complete"`` for
        ``exp_status``, and the arguments below for ``worker_id`` and ``timestamp`` (datetime64 or
        datetime). Other names are extra columns of text or numbers.
      metrics_columns: names of the metrics.
      scenario_info: content of scenario_info.json.
      worker_id: worker of all rows, unless there is such a column.
      start: when the lifetime started, for the directory's name and for rows without a timestamp;
        now if None.

    Returns:
      The new log directory.

    Raises:
      ValueError: format 1.1 does not allow a value; the message names row and column.
      FileExistsError: the log directory already exists.
      OSError: the files cannot be written.

    Source: l2logger log format 1.1.
    """
    begin = datetime.now() if start is None else start
    log = NewLog.checked(base_dir, scenario_name, metrics_columns, scenario_info, begin)
    defaults = {"worker_id": worker_id, "timestamp": begin}
    table = checked_table({**defaults, **columns}, log.metrics)
    if not table.rows:
        raise ValueError("columns are empty: a log needs at least one episode")
    return log.write(table.header, table.pieces())


@dataclass(frozen=True)
class RowTable:
    """Checked columns of R rows.

    Attributes:
      header: names of the columns in written order.
      rows: R.
      block_num, exp_num: (R,) int64.
      worker_id, block_type: (R,) text.
      texts: text of the columns, in the order of ``header``.
    """

    header: tuple[str, ...]
    rows: int
    block_num: np.ndarray
    exp_num: np.ndarray
    worker_id: Coded[str]
    block_type: Coded[str]
    texts: tuple[pa.LargeStringArray, ...]

    def pieces(self) -> Iterator[tuple[str, memoryview]]:
        """Yield runs of rows with their folder, ``<worker>/<block>-<type>``."""
        if not self.rows:
            return
        rises = np.diff(self.block_num, prepend=self.block_num[:1]) != 0
        place = np.stack([self.worker_id.codes, np.cumsum(rises), self.block_type.codes])
        order = np.arange(self.rows)
        starts, texts = _run_starts(place), list(self.texts)
        if len(starts) > np.unique(place[:, starts], axis=1).shape[1]:
            order = np.lexsort(place)  # stable: rows of one table stay in order
            starts = _run_starts(place[:, order])
            texts = [text.take(pa.array(order)) for text in texts]
        lines = Lines(texts)
        for first, stop in zip(starts, [*starts[1:], self.rows], strict=True):
            row = order[first]
            worker = self.worker_id.values[self.worker_id.codes[row]]
            kind = self.block_type.values[self.block_type.codes[row]]
            yield f"{worker}/{self.block_num[row]}-{kind}", lines.between(first, stop)


def _run_starts(place: np.ndarray) -> list[int]:
    changes = np.any(place[:, 1:] != place[:, :-1], axis=0)
    return [0, *(np.flatnonzero(changes) + 1).tolist()]


def checked_table(columns: Columns, metrics: tuple[str, ...]) -> RowTable:
    """Check columns against format 1.1.

    Args:
      columns: as `write_columns` takes them, with worker and timestamp.
      metrics: names of the metrics.

    Raises:
      ValueError: the message names row and column.
    """
    for name in (*_REQUIRED, *metrics):
        if name not in columns:
            raise ValueError(f"columns have no {name!r}")
    extras = [name for name in columns if name not in STANDARD_COLUMNS and name not in metrics]
    check_extra_names(extras, metrics)
    rows = _length(columns)
    block_num = _numbers("block_num", columns["block_num"], rows)
    exp_num = _numbers("exp_num", columns["exp_num"], rows)
    defaults = {"block_subtype": DEFAULT_SUBTYPE, "exp_status": EXP_STATUSES[0]}
    completed = {**defaults, **columns}
    words = {
        name: _checked(_coded(name, completed[name], rows), functools.partial(check, name))
        for name, check in _CHECKS.items()
    }
    texts = {name: coded_texts(column) for name, column in words.items()}
    texts["block_num"], texts["exp_num"] = number_texts(block_num), number_texts(exp_num)
    texts["timestamp"] = timestamp_texts(_timestamps(columns["timestamp"], rows))
    texts |= {name: number_texts(_metric(name, columns[name], rows)) for name in metrics}
    texts |= {name: _extra(name, columns[name], rows) for name in extras}
    header = header_of(metrics, extras)
    return RowTable(
        header,
        rows,
        block_num,
        exp_num,
        words["worker_id"],
        words["block_type"],
        tuple(texts[name] for name in header),
    )


def _is_column(value: object) -> bool:
    """Whether a value has one element per row."""
    if isinstance(value, str | bytes | Mapping):
        return False
    return isinstance(value, Coded) or (hasattr(value, "__len__") and getattr(value, "ndim", 1) > 0)


def _length(columns: Columns) -> int:
    """Number of rows of all columns."""
    lengths = {name: len(column) for name, column in columns.items() if _is_column(column)}
    if not lengths:
        raise ValueError("columns have no array: give at least exp_num as one value per episode")
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ValueError(f"columns must have equal lengths, not {listed}")
    return next(iter(lengths.values()))


def _coded(name: str, value: Any, rows: int) -> Coded[Any]:
    """A column of text or of parameters."""
    if isinstance(value, Coded):
        return value
    if not _is_column(value):
        return Coded((value,), np.zeros(rows, np.int32))
    if name == "task_params":
        return _coded_objects(value)
    try:
        return coded(value.tolist() if isinstance(value, np.ndarray) else value)
    except TypeError as error:
        raise ValueError(f"column {name!r} must hold text or numbers: {error}") from error


_CHECKS: Final[Mapping[str, Callable[[str, CheckedRow, object], str]]] = {
    "worker_id": lambda name, at, value: at.folder(name, value),
    **dict.fromkeys(WORDS, lambda name, at, value: at.word(name, value, WORDS[name])),
    "task_name": lambda name, at, value: at.text(name, value),
    "task_params": lambda name, at, value: at.params(name, value),
}
"""Checks of the columns of text."""


def _checked(column: Coded[Any], check: Callable[[CheckedRow, object], str]) -> Coded[str]:
    """The text of a column, with each value checked at its first row."""
    places = zip(column.first_rows().tolist(), column.values, strict=True)
    return Coded(
        tuple("" if row < 0 else check(CheckedRow(row), value) for row, value in places),
        column.codes,
    )


def _coded_objects(values: Sequence[Any]) -> Coded[Any]:
    """Encode a column of objects by identity, because mappings cannot be hashed."""
    places: dict[int, int] = {}
    codes = [places.setdefault(id(value), len(places)) for value in values]
    by_identity = {id(value): value for value in values}
    return Coded(tuple(by_identity[key] for key in places), np.array(codes, np.int32))


def _numbers(name: str, value: object, rows: int) -> np.ndarray:
    """Block or episode numbers: whole, from 0, never falling."""
    array = np.asarray(value)
    if array.dtype.kind not in "iu":
        raise ValueError(f"column {name!r} must hold integers, not {array.dtype}")
    numbers = np.broadcast_to(array, (rows,)).astype(np.int64)
    if np.any(numbers < 0):
        row = int(np.argmax(numbers < 0))
        raise CheckedRow(row).error(name, f"must be 0 or more, not {numbers[row]}")
    falls = np.diff(numbers) < 0
    if np.any(falls):
        row = int(np.argmax(falls)) + 1
        raise CheckedRow(row).error(
            name, f"must not fall from {numbers[row - 1]} to {numbers[row]}"
        )
    return numbers


def _timestamps(value: Any, rows: int) -> np.ndarray:
    """Moments of the rows."""
    try:
        times = moments(value if _is_column(value) else [value])
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"column 'timestamp' must hold moments: {error}") from error
    if np.any(np.isnat(times)):
        raise CheckedRow(int(np.argmax(np.isnat(times)))).error("timestamp", "is not a time")
    return np.broadcast_to(times, (rows,))


def _metric(name: str, value: object, rows: int) -> np.ndarray:
    """Numbers; NaN for not measured."""
    array = np.asarray(value)
    if array.dtype.kind not in "iuf":
        raise ValueError(f"column {name!r} must hold numbers, not {array.dtype}")
    numbers = np.broadcast_to(array, (rows,))
    if np.any(np.isinf(numbers)):
        row = int(np.argmax(np.isinf(numbers)))
        raise CheckedRow(row).error(name, "must be finite, or NaN where it was not measured")
    return numbers


def _extra(name: str, value: object, rows: int) -> pa.LargeStringArray:
    """Text or numbers."""
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "iuf":
        return number_texts(value)
    return coded_texts(_checked(_coded(name, value, rows), functools.partial(_extra_text, name)))


def _extra_text(name: str, at: CheckedRow, value: object) -> str:
    cell = at.extra(name, value)
    return "" if cell is None else str(cell)
