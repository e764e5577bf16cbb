"""Writer of l2logger logs from columns: a lifetime a call, with the bytes of the row writer."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from evaluation.files import whole_directory
from evaluation.logs.coded import Coded, coded
from evaluation.logs.l2logger.format import (
    BLOCK_SUBTYPES,
    BLOCK_TYPES,
    DATA_FILE,
    DEFAULT_SUBTYPE,
    EXP_STATUSES,
    STANDARD_COLUMNS,
)
from evaluation.logs.l2logger.writer import (
    check_extra_names,
    checked_metrics_columns,
    directory_name,
    info_texts,
    params_text,
    row_error,
)
from evaluation.logs.tables import CONTROL, usable_worker
from evaluation.logs.texts import (
    Lines,
    coded_texts,
    moments,
    number_texts,
    plain_scalar,
    timestamp_texts,
)

DEFAULT_WORKER: Final = "worker-default"
_REQUIRED: Final = ("block_num", "exp_num", "block_type", "task_name", "task_params")


def write_columns(
    base_dir: str | os.PathLike[str],
    scenario_name: str,
    columns: Mapping[str, Any],
    metrics_columns: Sequence[str],
    scenario_info: Mapping[str, Any],
    worker_id: str = DEFAULT_WORKER,
    start: datetime | None = None,
) -> Path:
    """Write the log of one lifetime from columns of R episodes, whole or not at all.

    The bytes are those of `write_log` on the same episodes.

    Args:
      base_dir: directory to put the log directory in; made if absent.
      scenario_name: first part of the directory's name; of a path only the last part up to its
        first dot is used, as l2logger does.
      columns: by name an array or sequence of R values, a `Coded` column, or one value for all.
        ``block_num``, ``exp_num``, ``block_type``, ``task_name`` and ``task_params`` (mappings) are
        needed; ``block_subtype`` is ``"wake"``, ``exp_status`` ``"complete"``, ``worker_id`` and
        ``timestamp`` (datetime64 or datetime) those below where they are left out. Every metric is
        needed; whatever else is there becomes an extra column of text or numbers.
      metrics_columns: names of the metrics.
      scenario_info: content of scenario_info.json.
      worker_id: worker of all rows, unless it is a column.
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
    name = directory_name(scenario_name, began)
    metrics = checked_metrics_columns(metrics_columns)
    infos = info_texts(metrics, scenario_info)
    defaults = {"worker_id": worker_id, "timestamp": began}
    table = checked_table({**defaults, **columns}, metrics)
    if not table.rows:
        raise ValueError("columns are empty: a log needs at least one episode")
    final = Path(base_dir) / name
    with whole_directory(final) as partial:
        for file_name, text in infos.items():
            (partial / file_name).write_text(text, encoding="utf-8", newline="")
        for folder, content in table.pieces():
            append_piece(partial / folder, table.header, content)
    return final


def append_piece(folder: Path, header: Sequence[str], content: memoryview) -> None:
    """Append rows to the table in a folder; a new table gets its header first."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / DATA_FILE).open("ab") as stream:
        if not stream.tell():
            stream.write("\t".join(header).encode() + b"\n")
        stream.write(content)


@dataclass(frozen=True)
class Table:
    """Checked columns of R rows.

    Attributes:
      header: names of the columns as they are written.
      rows: R.
      block_num, exp_num: (R,) int64.
      worker_id, block_type: (R,) text.
      texts: the columns as they are written.
    """

    header: tuple[str, ...]
    rows: int
    block_num: np.ndarray
    exp_num: np.ndarray
    worker_id: Coded[str]
    block_type: Coded[str]
    texts: tuple[pa.LargeStringArray, ...]

    def pieces(self) -> Iterator[tuple[str, memoryview]]:
        """Runs of rows with the folder that they belong to, ``<worker>/<block>-<type>``."""
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


def checked_table(columns: Mapping[str, Any], metrics: tuple[str, ...]) -> Table:
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
    words = {
        "worker_id": _words("worker_id", columns["worker_id"], rows),
        "block_type": _words("block_type", columns["block_type"], rows, BLOCK_TYPES),
        "block_subtype": _words(
            "block_subtype", columns.get("block_subtype", DEFAULT_SUBTYPE), rows, BLOCK_SUBTYPES
        ),
        "task_name": _words("task_name", columns["task_name"], rows),
        "task_params": _params(columns["task_params"], rows),
        "exp_status": _words(
            "exp_status", columns.get("exp_status", EXP_STATUSES[0]), rows, EXP_STATUSES
        ),
    }
    texts = {name: coded_texts(column) for name, column in words.items()}
    texts["block_num"], texts["exp_num"] = number_texts(block_num), number_texts(exp_num)
    texts["timestamp"] = timestamp_texts(_timestamps(columns["timestamp"], rows))
    texts |= {name: number_texts(_metric(name, columns[name], rows)) for name in metrics}
    texts |= {name: _extra(name, columns[name], rows) for name in extras}
    header = (*STANDARD_COLUMNS, *sorted((*metrics, *extras)))
    return Table(
        header,
        rows,
        block_num,
        exp_num,
        words["worker_id"],
        words["block_type"],
        tuple(texts[name] for name in header),
    )


def _is_column(value: Any) -> bool:
    """Whether a value holds one value a row."""
    if isinstance(value, str | bytes | Mapping):
        return False
    return isinstance(value, Coded) or (hasattr(value, "__len__") and getattr(value, "ndim", 1) > 0)


def _length(columns: Mapping[str, Any]) -> int:
    """Number of rows of all columns."""
    lengths = {name: len(column) for name, column in columns.items() if _is_column(column)}
    if not lengths:
        raise ValueError("columns hold no array: give at least exp_num as one value an episode")
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ValueError(f"columns must have equal lengths, not {listed}")
    return next(iter(lengths.values()))


def _coded(name: str, value: Any, rows: int) -> Coded[Any]:
    """A column of text."""
    if isinstance(value, Coded):
        return value
    if not _is_column(value):
        return Coded((value,), np.zeros(rows, np.int32))
    try:
        return coded(value.tolist() if isinstance(value, np.ndarray) else value)
    except TypeError as error:
        raise ValueError(f"column {name!r} must hold text or numbers: {error}") from error


def _words(name: str, value: Any, rows: int, allowed: tuple[str, ...] | None = None) -> Coded[str]:
    """A column of names, or of words that are allowed."""
    column = _coded(name, value, rows)
    for position, text in enumerate(column.values):
        problem = _word_problem(name, text, allowed)
        if problem and np.any(column.codes == position):
            raise row_error(column.first_row(position), name, f"{problem}, not {text!r}")
    return column


def _word_problem(name: str, text: object, allowed: tuple[str, ...] | None) -> str:
    if allowed is not None:
        return "" if text in allowed else f"must be one of {', '.join(allowed)}"
    if name == "worker_id":
        fine = isinstance(text, str) and usable_worker(text)
        return "" if fine else "must be letters, digits, '_', '-' and '.'"
    fine = isinstance(text, str) and text != "" and not CONTROL.search(text)
    return "" if fine else "must be printable text"


def _params(value: Any, rows: int) -> Coded[str]:
    """The JSON text of parameters, each mapping encoded once."""
    if isinstance(value, Coded):
        column = value
    elif _is_column(value):
        column = _coded_objects(value)
    else:
        column = Coded((value,), np.zeros(rows, np.int32))
    texts = tuple(
        params_text(column.first_row(position), params)
        for position, params in enumerate(column.values)
    )
    return Coded(texts, column.codes)


def _coded_objects(values: Sequence[Any]) -> Coded[Any]:
    """Encode a column of objects by identity, as mappings cannot be hashed."""
    places: dict[int, int] = {}
    codes = [places.setdefault(id(value), len(places)) for value in values]
    by_identity = {id(value): value for value in values}
    return Coded(tuple(by_identity[key] for key in places), np.array(codes, np.int32))


def _numbers(name: str, value: Any, rows: int) -> np.ndarray:
    """Block or episode numbers: whole, from 0, never falling."""
    array = np.asarray(value)
    if array.dtype.kind not in "iu":
        raise ValueError(f"column {name!r} must hold integers, not {array.dtype}")
    numbers = np.broadcast_to(array, (rows,)).astype(np.int64)
    if np.any(numbers < 0):
        row = int(np.argmax(numbers < 0))
        raise row_error(row, name, f"must be 0 or more, not {numbers[row]}")
    falls = np.diff(numbers) < 0
    if np.any(falls):
        row = int(np.argmax(falls)) + 1
        raise row_error(row, name, f"must not fall from {numbers[row - 1]} to {numbers[row]}")
    return numbers


def _timestamps(value: Any, rows: int) -> np.ndarray:
    """Moments of the rows."""
    try:
        times = moments(value if _is_column(value) else [value])
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"column 'timestamp' must hold moments: {error}") from error
    if np.any(np.isnat(times)):
        raise row_error(int(np.argmax(np.isnat(times))), "timestamp", "is not a time")
    return np.broadcast_to(times, (rows,))


def _metric(name: str, value: Any, rows: int) -> np.ndarray:
    """Numbers; NaN where not measured."""
    array = np.asarray(value)
    if array.dtype.kind not in "iuf":
        raise ValueError(f"column {name!r} must hold numbers, not {array.dtype}")
    numbers = np.broadcast_to(array, (rows,))
    if np.any(np.isinf(numbers)):
        row = int(np.argmax(np.isinf(numbers)))
        raise row_error(row, name, "must be finite, or NaN where it was not measured")
    return numbers


def _extra(name: str, value: Any, rows: int) -> pa.LargeStringArray:
    """Text or numbers."""
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "iuf":
        return number_texts(value)
    column = _coded(name, value, rows)
    for position, item in enumerate(column.values):
        if item is not None and not isinstance(plain_scalar(item), str | int | float):
            words = f"must be text or a number, not {item!r}"
            raise row_error(column.first_row(position), name, words)
    return coded_texts(
        Coded(tuple("" if v is None else str(plain_scalar(v)) for v in column.values), column.codes)
    )
