"""Checks of values for a table: each returns the cell or raises an error with row and column."""

import json
import math
import numbers
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

from evaluation.logs.tables import CONTROL, WORKER_WORDS, timestamp_text, usable_worker
from evaluation.logs.texts import plain_scalar

Scalar: TypeAlias = str | int | float | None
"""A cell of an extra column; None for an empty one."""

_PARAMS_ENCODER: Final = json.JSONEncoder(allow_nan=False)


@dataclass(frozen=True)
class CheckedRow:
    """The row that is checked.

    Attributes:
      number: of the row, from 0.
      kind: word for a row in errors.
      failure: class of the errors.
    """

    number: int
    kind: str = "row"
    failure: type[ValueError] = ValueError

    def error(self, column: str, message: str) -> ValueError:
        """An error that names row and column."""
        return self.failure(f"{self.kind} {self.number}, column {column!r}: {message}")

    def word(self, column: str, value: object, allowed: Sequence[str]) -> str:
        """One of the allowed words."""
        if value not in allowed:
            raise self.error(column, f"must be one of {', '.join(allowed)}, not {value!r}")
        return str(value)

    def folder(self, column: str, value: object) -> str:
        """Text that can name a directory, for example a worker."""
        if not isinstance(value, str) or not usable_worker(value):
            raise self.error(column, f"must be {WORKER_WORDS}, not {value!r}")
        return value

    def text(self, column: str, value: object) -> str:
        """Printable text."""
        if not isinstance(value, str) or not value or CONTROL.search(value):
            raise self.error(column, f"must be printable text, not {value!r}")
        return value

    def count(self, column: str, value: object, least: int = 0) -> int:
        """A whole number from 0, not below ``least``."""
        plain = plain_scalar(value)
        if isinstance(plain, bool) or not isinstance(plain, numbers.Integral):
            raise self.error(column, f"must be an integer, not {value!r}")
        whole = operator.index(plain)
        if whole < 0:
            raise self.error(column, f"must be 0 or more, not {whole}")
        if whole < least:
            raise self.error(column, f"must not fall from {least} to {whole}")
        return whole

    def params(self, column: str, value: object) -> str:
        """A mapping as strict JSON text."""
        if not isinstance(value, Mapping):
            raise self.error(column, f"must be a mapping, not {type(value).__name__}")
        try:
            return _PARAMS_ENCODER.encode(dict(value))
        except (TypeError, ValueError, RecursionError) as error:
            raise self.error(column, f"must be strict JSON: {error}") from error

    def measure(self, column: str, value: object) -> int | float:
        """A number; NaN if not measured."""
        plain = plain_scalar(value)
        if isinstance(plain, bool) or not isinstance(plain, int | float):
            raise self.error(column, f"must be a number, not {value!r}")
        if math.isinf(plain):
            raise self.error(column, "must be finite, or NaN where it was not measured")
        return plain

    def extra(self, column: str, value: object) -> Scalar:
        """Text or a number of an extra column; None for an empty cell."""
        plain = plain_scalar(value)
        if plain is not None and not isinstance(plain, str | int | float):
            raise self.error(column, f"must be text or a number, not {value!r}")
        return plain

    def moment(self, column: str, value: object) -> str:
        """The text of a moment in a table."""
        if not isinstance(value, datetime):
            raise self.error(column, f"must be a datetime, not {type(value).__name__}")
        return timestamp_text(value)
