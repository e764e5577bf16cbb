"""Columns of few distinct values, stored as the values and a code per row."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from evaluation.logs.arrow import to_numpy
from evaluation.logs.tables import INTEGER, real

Value = TypeVar("Value")
Other = TypeVar("Other")


@dataclass(frozen=True)
class Coded(Generic[Value]):
    """A column of R rows in which values repeat.

    Attributes:
      values: the distinct values.
      codes: (R,) int32, position in `values` of each row's value.
    """

    values: tuple[Value, ...]
    codes: np.ndarray

    def __len__(self) -> int:
        """Number of rows, R."""
        return len(self.codes)

    def array(self) -> np.ndarray:
        """The decoded column, (R,) of dtype object."""
        values = np.empty(len(self.values), object)
        values[:] = self.values
        return values[self.codes]

    def take(self, rows: np.ndarray | slice) -> "Coded[Value]":
        """Select rows by an index array, a mask or a slice."""
        return Coded(self.values, self.codes[rows])

    def mapped(self, function: Callable[[Value], Other]) -> "Coded[Other]":
        """Apply a function to the values; those that become equal are joined.

        Args:
          function: returns a hashable value.
        """
        codes: dict[Other, int] = {}
        places = [codes.setdefault(function(value), len(codes)) for value in self.values]
        return Coded(tuple(codes), np.array(places, np.int32)[self.codes])

    def first_rows(self) -> np.ndarray:
        """The first row with each value; -1 for none."""
        rows = np.full(len(self.values), -1)
        rows[self.codes[::-1]] = np.arange(len(self))[::-1]  # the first row is assigned last
        return rows


def coded(column: Sequence[Any] | np.ndarray) -> Coded[Any]:
    """Encode a column of hashable values, in order of first appearance."""
    codes: dict[Any, int] = {}
    rows = [codes.setdefault(value, len(codes)) for value in column]
    return Coded(tuple(codes), np.array(rows, np.int32))


def numbers(column: Coded[str]) -> np.ndarray | None:
    """A column of text as int64 or float64, empty cells as NaN; None for other text."""
    values = column.values
    if values and all(map(INTEGER.fullmatch, values)):
        return np.array([int(value) for value in values], np.int64)[column.codes]
    try:
        return np.array([real(value or "nan") for value in values], np.float64)[column.codes]
    except ValueError:
        return None


def from_arrow(column: pa.Array | pa.ChunkedArray) -> Coded[str]:
    """Encode an Arrow column of text without nulls."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    encoded = column.dictionary_encode()
    return Coded(tuple(encoded.dictionary.to_pylist()), to_numpy(encoded.indices, np.int32))
