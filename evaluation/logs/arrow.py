"""Conversion of Arrow columns from and to NumPy, by their buffers.

pyarrow's conversions import pandas if it is installed, which takes longer than reading a hundred
logs. These use the buffers and need no pandas.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_TYPES = {np.dtype(np.int64): pa.int64, np.dtype(np.int32): pa.int32, np.dtype(float): pa.float64}


def whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A column as one array."""
    if isinstance(column, pa.Array):
        return column
    column = column.unify_dictionaries()
    if column.num_chunks == 1:
        return column.chunk(0)
    if column.num_chunks == 0:
        return pa.array([], column.type)
    return pa.concat_arrays(column.chunks)


def to_numpy(column: pa.ChunkedArray | pa.Array, dtype: npt.DTypeLike) -> np.ndarray:
    """A column of numbers as (n,); a missing value is NaN, or 0 for integers.

    Args:
      column: integers or floating point.
      dtype: of the result.
    """
    array = whole(column)
    if pa.types.is_null(array.type):
        return np.full(len(array), np.nan).astype(dtype)
    valid, data = array.buffers()[:2]
    size, start = len(array), array.offset
    stored = np.dtype(str(array.type).replace("double", "float64").replace("float", "float"))
    values = np.frombuffer(data, stored)[start : start + size] if size else np.zeros(0, stored)
    if array.null_count:
        bits = np.unpackbits(np.frombuffer(valid, np.uint8), bitorder="little")
        missing = np.nan if stored.kind == "f" else 0
        values = np.where(bits[start : start + size], values, missing)
    return values.astype(dtype, copy=False)


def from_numpy(values: np.ndarray) -> pa.Array:
    """(n,) int32, int64, float64 or bool as an array of Arrow."""
    if values.dtype == np.bool_:
        bits = np.packbits(values, bitorder="little")
        return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(bits)])
    data = np.ascontiguousarray(values)
    kind = _TYPES[data.dtype]()
    return pa.Array.from_buffers(kind, len(data), [None, pa.py_buffer(data)])


def from_words(codes: npt.NDArray[np.int32], words: Sequence[str]) -> pa.DictionaryArray:
    """(n,) codes and their words as an array of Arrow."""
    coded = [word.encode() for word in words]
    ends = np.cumsum([0, *map(len, coded)]).astype(np.int32)
    text = pa.StringArray.from_buffers(
        len(coded), pa.py_buffer(ends), pa.py_buffer(b"".join(coded))
    )
    return pa.DictionaryArray.from_arrays(from_numpy(codes.astype(np.int32)), text)


def to_words(column: pa.ChunkedArray) -> tuple[npt.NDArray[np.int32], list[str]]:
    """A dictionary column as (n,) codes and their words."""
    array = whole(column)
    return to_numpy(array.indices, np.int32), array.dictionary.to_pylist()
