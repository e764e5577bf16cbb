"""Parameters that a user may set by name: their paths, units and bounds.

A task publishes a table of `Parameter` rows. A syllabus, a command line or Python code names a
row by its `path` ("pole/length"); the value is checked here, before anything is traced.
"""

import difflib
import math
import numbers
import reprlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Values = Mapping[str, Any]
"""Parameters by path: numbers and words, checked or not."""

SHOWN = 60  # characters of a refused value that an error message shows
MOST_LISTED, NEAREST = 24, 8  # names that a message lists, and those it shows of a longer list
_brief = reprlib.Repr()
_brief.maxstring = _brief.maxlong = _brief.maxother = SHOWN


@dataclass(frozen=True)
class Parameter:
    """One number or word that a user may set.

    Attributes:
      path: name in a syllabus, groups separated by "/".
      default: value when it is not set; its type is the type that is accepted.
      unit: physical unit, "" for pure numbers and words.
      low: smallest accepted number; None for words.
      high: largest accepted number; None for words.
      choices: accepted values, if they are a short list.
      description: one line for the reference table.
    """

    path: str
    default: float | int | str
    unit: str = ""
    low: float | None = None
    high: float | None = None
    choices: tuple[float | int | str, ...] = ()
    description: str = ""

    @property
    def allowed(self) -> str:
        """Accepted values in words, for error messages and tables."""
        if self.choices:
            return "one of " + ", ".join(repr(choice) for choice in self.choices)
        kind = "a whole number" if isinstance(self.default, int) else "a number"
        unit = f" {self.unit}" if self.unit else ""
        return f"{kind} from {self.low:g} to {self.high:g}{unit}"

    def problem(self, value: object) -> str | None:
        """Say what is wrong with `value`, or None if it is accepted."""
        if self._accepts(value):
            return None
        return f"parameter {self.path!r} is {shown(value)}; it must be {self.allowed}"

    def _accepts(self, value: object) -> bool:
        # True == 1 in Python, and a JSON true is never meant as a number.
        if isinstance(value, bool):
            return False
        if self.choices:
            # An array has no truth value to compare by.
            return isinstance(value, numbers.Number | str) and value in self.choices
        if not isinstance(value, int | float):
            return False
        if isinstance(self.default, int) and not isinstance(value, int):
            return False
        # Not a float conversion: a JSON integer may be too large for one.
        if isinstance(value, float) and not math.isfinite(value):
            return False
        assert self.low is not None and self.high is not None
        return self.low <= value <= self.high


@dataclass(frozen=True)
class RowMaker:
    """Makes rows for the fields of a world's parameters, with that world's values as defaults.

    Attributes:
      nominal: the world's unchanged parameters.
    """

    nominal: object

    def number(
        self, field: str, path: str, unit: str, low: float, high: float, text: str
    ) -> tuple[str, Parameter]:
        """Return (field, row) of a real number."""
        default = float(getattr(self.nominal, field))
        return field, Parameter(path, default, unit, low, high, description=text)

    def whole(self, field: str, path: str, low: int, high: int, text: str) -> tuple[str, Parameter]:
        """Return (field, row) of a whole number without a unit."""
        default = int(getattr(self.nominal, field))
        return field, Parameter(path, default, "", low, high, description=text)

    def switch(self, field: str, path: str, text: str) -> tuple[str, Parameter]:
        """Return (field, row) of what is off (0) or on (1)."""
        default = int(getattr(self.nominal, field))
        return field, Parameter(path, default, choices=(0, 1), description=text)


def check(table: Mapping[str, Parameter], values: Mapping[str, object]) -> None:
    """Raise `ValueError` naming the first unknown path or refused value.

    Args:
      table: accepted parameters by path.
      values: values by path, as a user wrote them.
    """
    for path, value in values.items():
        if path not in table:
            raise ValueError(unknown("parameter", path, table))
        problem = table[path].problem(value)
        if problem:
            raise ValueError(problem)


def plain(values: Values) -> dict[str, Any]:
    """Replace scalars of NumPy, as those of `np.arange`, by Python's numbers."""
    return {
        path: value.item() if isinstance(value, np.generic) else value
        for path, value in values.items()
    }


def shown(value: object) -> str:
    """Represent any refused value in an error message, shortened."""
    if isinstance(value, int) and value.bit_length() > 4 * SHOWN:
        # Python refuses to write thousands of digits.
        return f"a whole number of {value.bit_length()} bits"
    return _brief.repr(value)


def unknown(kind: str, name: str, allowed: Iterable[str]) -> str:
    """Word the error for a name that does not exist, with the nearest one that does.

    Of long lists only the nearest names are shown.
    """
    names = list(allowed)
    near = difflib.get_close_matches(name[:SHOWN], names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    listed = f"allowed: {', '.join(names)}" if names else "none is allowed here"
    if len(names) > MOST_LISTED:
        nearest = difflib.get_close_matches(name[:SHOWN], names, n=NEAREST, cutoff=0.0)
        listed = f"{len(names)} are allowed, the nearest: {', '.join(nearest)}"
    return f"unknown {kind} {shown(name)}{hint} ({listed})"
