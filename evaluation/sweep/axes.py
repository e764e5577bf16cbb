"""Axes of a sweep: names with values, each value computed from its number.

An axis stores its definition and not its values, so that a million values take no memory. Numbers
from a formula are rounded to twelve digits, so that they are the same on every machine, with any
mathematical library.
"""

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from evaluation.json_types import JsonMapping, JsonValue

Value = float | int | str

MOST_VALUES: Final = 10_000_000
"""Most values of an axis."""
DIGITS: Final = 12
MOST_CHECKED_SINGLY: Final = 64
"""Most whole numbers that are checked one by one."""


@dataclass(frozen=True)
class Axis:
    """One parameter and the values that it takes.

    Attributes:
      name: as in the sweep file.
      size: number of values.
      value: function from the number of a value, from 0 on, to the value.
      kind: Python type of all values: int, float or str.
      ends: bounds of all values, or all different ones, checked in place of them; None to check
        each value.
      distinct: most different values that it takes; `size` if None.
    """

    name: str
    size: int
    value: Callable[[int], Value]
    kind: type
    ends: tuple[Value, ...] | None = None
    distinct: int | None = None

    @property
    def most_distinct(self) -> int:
        """Most different values that it takes."""
        return self.size if self.distinct is None else min(self.size, self.distinct)


def axis(name: str, entry: JsonValue, *, repeats: bool = False) -> Axis:
    """Read one axis from a sweep file.

    Args:
      name: of the parameter.
      entry: a list of values, or a table with one of `FORMS`.
      repeats: whether a list may hold a value twice, as beside other axes of a `[[zip]]`.

    Raises:
      ValueError: says what to change.
    """
    if isinstance(entry, list):
        return _listed(name, entry, repeats)
    if not isinstance(entry, Mapping):
        raise ValueError(
            f"axis {name!r} is {entry!r}; it must be a list of values or a table with one of "
            f"{_FORMS}"
        )
    forms = [form for form in FORMS if form in entry]
    if len(forms) != 1:
        raise ValueError(f"axis {name!r} must hold exactly one of {_FORMS}")
    make, options = FORMS[forms[0]]
    unknown = sorted(set(entry) - {forms[0], *options})
    if unknown:
        allowed = ", ".join(options) or "nothing else"
        raise ValueError(
            f"axis {name!r} has {unknown[0]!r}; beside {forms[0]!r} it takes {allowed}"
        )
    return make(name, entry[forms[0]], entry)


def _listed(name: str, values: list[Value], repeats: bool = False) -> Axis:
    if not values:
        raise ValueError(f"axis {name!r} is empty; give at least one value")
    kinds = {type(value) for value in values}
    if kinds == {int, float}:
        values, kinds = [float(value) for value in values], {float}
    if len(kinds) > 1 or not kinds <= {int, float, str}:
        raise ValueError(f"axis {name!r} mixes types or holds none of number and text: {values!r}")
    different = len(set(values))
    if different < len(values) and not repeats:
        raise ValueError(f"axis {name!r} has a value twice; replicates are an axis `seed`")
    for value in values:
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"axis {name!r} has {value}; every value must be finite")
    members = tuple(values)
    kind = next(iter(kinds))
    return Axis(name, len(members), members.__getitem__, kind, distinct=different)


def _linear(name: str, argument: object, options: JsonMapping) -> Axis:
    low, high = _pair(name, "linear", argument)
    count = _points(name, "linear", low == high, options)

    def value(index: int) -> float:
        return low if count == 1 else _rounded(low + (high - low) * index / (count - 1))

    return Axis(name, count, value, float, (low, high))


def _log(name: str, argument: object, options: JsonMapping) -> Axis:
    low, high = _positive(name, "log", _pair(name, "log", argument))
    count = _points(name, "log", low == high, options)

    def value(index: int) -> float:
        share = 0.0 if count == 1 else index / (count - 1)
        return _rounded(math.exp((1 - share) * math.log(low) + share * math.log(high)))

    return Axis(name, count, value, float, (low, high))


def _integers(name: str, argument: object, options: JsonMapping) -> Axis:
    low, high = _whole_pair(name, "integers", argument)
    step = options.get("step", 1)
    if type(step) is not int or step < 1:
        raise ValueError(f"axis {name!r}: step is {step!r}; it must be a whole number from 1")
    count = _bounded(name, (high - low) // step + 1)
    ends = _to_check(range(low, high + 1, step))
    return Axis(name, count, lambda index: low + step * index, int, ends)


def _uniform(name: str, argument: object, options: JsonMapping) -> Axis:
    low, high = _pair(name, "uniform", argument)
    unit = _unit(name, options)
    count = _count(name, options, "draws")
    return Axis(name, count, lambda i: _rounded(low + (high - low) * unit(i)), float, (low, high))


def _loguniform(name: str, argument: object, options: JsonMapping) -> Axis:
    low, high = _positive(name, "loguniform", _pair(name, "loguniform", argument))
    unit, span = _unit(name, options), math.log(high / low)
    count = _count(name, options, "draws")
    return Axis(name, count, lambda i: _rounded(low * math.exp(span * unit(i))), float, (low, high))


def _randint(name: str, argument: object, options: JsonMapping) -> Axis:
    low, high = _whole_pair(name, "randint", argument)
    unit = _unit(name, options)
    count = _count(name, options, "draws")
    different = high - low + 1
    ends = _to_check(range(low, high + 1))
    return Axis(name, count, lambda i: low + int(different * unit(i)), int, ends, different)


def _choice(name: str, argument: object, options: JsonMapping) -> Axis:
    if not isinstance(argument, list):
        raise ValueError(f"axis {name!r}: choice is {argument!r}; it must be a list of values")
    choices, unit = _listed(name, argument), _unit(name, options)
    count = _count(name, options, "draws")
    members = tuple(choices.value(index) for index in range(choices.size))
    different = choices.size
    return Axis(
        name, count, lambda i: members[int(different * unit(i))], choices.kind, members, different
    )


def _to_check(numbers: range) -> tuple[int, ...]:
    """Whole numbers to check: all if they are few, as numbers of levels may have gaps."""
    return tuple(numbers) if len(numbers) <= MOST_CHECKED_SINGLY else (numbers[0], numbers[-1])


Make = Callable[[str, object, JsonMapping], Axis]
FORMS: Final[Mapping[str, tuple[Make, tuple[str, ...]]]] = {
    "linear": (_linear, ("count",)),
    "log": (_log, ("count",)),
    "integers": (_integers, ("step",)),
    "uniform": (_uniform, ("draws", "seed")),
    "loguniform": (_loguniform, ("draws", "seed")),
    "randint": (_randint, ("draws", "seed")),
    "choice": (_choice, ("draws", "seed")),
}
"""Forms of an axis other than a list: the function that makes it, and the other keys it takes."""
_FORMS: Final = ", ".join(FORMS)


def _unit(name: str, options: JsonMapping) -> Callable[[int], float]:
    """Return a function that draws from U[0, 1) by number, axis name and seed alone."""
    seed = options.get("seed", 0)
    if type(seed) is not int or not 0 <= seed < 2**32:
        raise ValueError(f"axis {name!r}: seed is {seed!r}; it must be from 0 to {2**32 - 1}")

    def draw(index: int) -> float:
        text = f"{seed} {name} {index}".encode()
        return (int.from_bytes(hashlib.blake2b(text, digest_size=8).digest()) >> 11) * 2.0**-53

    return draw


def _rounded(number: float) -> float:
    return float(f"{number:.{DIGITS}g}")


def _count(name: str, options: JsonMapping, key: str) -> int:
    count = options.get(key)
    if type(count) is not int or count < 1:
        raise ValueError(f"axis {name!r}: {key} is {count!r}; it must be a whole number from 1")
    return _bounded(name, count)


def _points(name: str, form: str, equal: bool, options: JsonMapping) -> int:
    count = _count(name, options, "count")
    if equal and count > 1:
        raise ValueError(f"axis {name!r}: both ends of {form} are equal; count must be 1")
    return count


def _bounded(name: str, count: int) -> int:
    if count > MOST_VALUES:
        raise ValueError(f"axis {name!r} has {count:,} values; at most {MOST_VALUES:,} are allowed")
    return count


def _pair(name: str, form: str, ends: object) -> tuple[float, float]:
    numbers = ends if isinstance(ends, list) else []
    if len(numbers) != 2 or any(type(n) not in (int, float) for n in numbers):
        raise ValueError(f"axis {name!r}: {form} is {ends!r}; it must be two numbers, [from, to]")
    low, high = float(numbers[0]), float(numbers[1])
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"axis {name!r}: {form} is {ends!r}; both must be finite")
    if low > high:
        raise ValueError(f"axis {name!r}: {form} is {ends!r}; the second must not be less")
    return low, high


def _whole_pair(name: str, form: str, ends: object) -> tuple[int, int]:
    if not isinstance(ends, list) or len(ends) != 2 or any(type(n) is not int for n in ends):
        raise ValueError(f"axis {name!r}: {form} is {ends!r}; it must be two whole numbers")
    if ends[0] > ends[1]:
        raise ValueError(f"axis {name!r}: {form} is {ends!r}; the second must not be less")
    return ends[0], ends[1]


def _positive(name: str, form: str, pair: tuple[float, float]) -> tuple[float, float]:
    if pair[0] <= 0:
        raise ValueError(f"axis {name!r}: {form} is {list(pair)!r}; both must be above 0")
    return pair
