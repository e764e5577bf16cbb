"""Conversion of whole columns to the text of a row-by-row CSV writer, and to rows of text."""

import csv
import io
from collections.abc import Sequence
from datetime import datetime
from typing import IO, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluation.logs.coded import Coded

PARAMS_SHOWN: Final = 25
"""Maximum of characters of a task's parameters in a table."""
_SPECIAL: Final = frozenset('\n\r"')
# Between these, Arrow and Python write the same digits, except the ".0" of whole numbers.
_PLAIN_FROM, _PLAIN_TO = 1e-4, 1e9


def plain_scalar(value: object) -> Any:
    """A NumPy or JAX scalar as a Python number, see `shortest`; other values unchanged."""
    item = getattr(value, "item", None)
    if not callable(item) or getattr(value, "shape", None) != ():
        return value
    if getattr(value, "dtype", None) == np.float32:
        return float(str(np.float32(item())))
    return item()


def shortened(text: str) -> str:
    """Parameters of a task, shortened for a printed table."""
    return text if len(text) <= PARAMS_SHOWN else f"{text[:PARAMS_SHOWN]}..."


def write_line(stream: IO[str], values: Sequence[object]) -> None:
    """Write one row of a table; fields are quoted if necessary."""
    stream.write(_row(values, "\t") + "\n")


def field_text(text: str, delimiter: str = "\t") -> str:
    """A cell of a table, quoted if necessary."""
    if _SPECIAL.isdisjoint(text) and delimiter not in text:
        return text
    return _row((text, ""), delimiter)[:-1]


def _row(values: Sequence[object], delimiter: str) -> str:
    """A row of a table without its end."""
    stream = io.StringIO()
    # Before Python 3.13 only characters of the line terminator are quoted, and "\r" must be.
    csv.writer(stream, delimiter=delimiter, lineterminator="\r\n").writerow(values)
    return stream.getvalue()[:-2]


def coded_texts(column: Coded[str], delimiter: str = "\t") -> pa.LargeStringArray:
    """A column of text, quoted if necessary."""
    values = [field_text(value, delimiter) for value in column.values]
    return pa.array(values, pa.large_string()).take(pa.array(column.codes))


def number_texts(column: np.ndarray) -> pa.LargeStringArray:
    """A column of numbers, each as the shortest text that reads back as the same number.

    Args:
      column: (R,) integers or floats; float32 is written so that it reads back as float32.
    """
    if np.issubdtype(column.dtype, np.integer):
        return pc.cast(pa.array(column), pa.large_string())
    values = shortest(column)
    size = np.abs(values)
    plain = (size >= _PLAIN_FROM) & (size < _PLAIN_TO) & (values != np.trunc(values))
    quick = pc.cast(pa.array(values), pa.large_string())
    if plain.all():
        return quick
    # The rest usually has few distinct values: rewards and lengths that are whole numbers.
    bits, codes = np.unique(values[~plain].view(np.int64), return_inverse=True)
    rest = pa.array([repr(value) for value in bits.view(np.float64).tolist()], pa.large_string())
    return pc.replace_with_mask(quick, pa.array(~plain), rest.take(pa.array(codes)))


def shortest(column: np.ndarray) -> np.ndarray:
    """The float64 numbers with the shortest text that reads back as each number of a column.

    Args:
      column: (R,) floats; float64 is unchanged, float32 becomes for example .075 instead of
        .07499999552965164.
    """
    if column.dtype != np.float32:
        return np.ascontiguousarray(column, np.float64)
    texts = pc.cast(pa.array(np.ascontiguousarray(column)), pa.large_string())
    return np.asarray(pc.cast(texts, pa.float64()).to_numpy(zero_copy_only=False))


def timestamp_texts(column: np.ndarray) -> pa.LargeStringArray:
    """Moments as ``%Y%m%dT%H%M%S.%f``.

    Args:
      column: (R,) datetime64[us], years 1 to 9999.
    """
    day = column.astype("datetime64[D]")
    runs = np.diff(day, prepend=day[:1]) != np.timedelta64(0)
    runs[:1] = True  # only the first row of each date is formatted
    dates = np.array([f"{when:%Y%m%d}".rjust(8, "0") for when in day[runs].tolist()], "S8")
    within = (column - day).astype(np.int64)
    seconds, micros = np.divmod(within, 10**6)
    text = np.empty((len(column), 22), np.uint8)
    text[:, :8] = dates[np.cumsum(runs) - 1].view(np.uint8).reshape(-1, 8)
    text[:, 8], text[:, 15] = ord("T"), ord(".")
    clock = (seconds // 3600) * 10_000 + (seconds // 60 % 60) * 100 + seconds % 60
    for place in range(6):
        text[:, 14 - place] = clock // 10**place % 10 + ord("0")
        text[:, 21 - place] = micros // 10**place % 10 + ord("0")
    offsets = np.arange(len(column) + 1, dtype=np.int64) * 22
    return pa.LargeStringArray.from_buffers(len(column), pa.py_buffer(offsets), pa.py_buffer(text))


def moments(values: "np.ndarray | Sequence[datetime]") -> np.ndarray:
    """Moments as (R,) datetime64[us]; time zones are dropped."""
    if isinstance(values, np.ndarray) and np.issubdtype(values.dtype, np.datetime64):
        return values.astype("datetime64[us]")
    return np.array([when.replace(tzinfo=None) for when in values], "datetime64[us]")


class Lines:
    """The rows of a table as one text."""

    def __init__(self, columns: Sequence[pa.LargeStringArray], delimiter: str = "\t") -> None:
        """Join columns of R rows each."""
        rows = pc.binary_join_element_wise(*columns, pa.scalar(delimiter, pa.large_string()))
        empty = pa.scalar("", pa.large_string())
        self._lines = pc.binary_join_element_wise(rows, empty, pa.scalar("\n", pa.large_string()))
        _, offsets, data = self._lines.buffers()
        self._offsets = np.frombuffer(offsets, np.int64)
        self._data = memoryview(data) if data else memoryview(b"")

    def between(self, start: int, stop: int) -> memoryview:
        """The UTF-8 text of the rows in [start, stop)."""
        return self._data[self._offsets[start] : self._offsets[stop]]
