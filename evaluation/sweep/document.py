"""The sweep file: a base command, values that all cells share, and the axes.

base = "evaluate"            # or "run", "train", "sailon evaluate"

[fixed]                      # the same in every cell
episodes = 64

[axes]                       # all combinations
gravity = {linear = [2, 20], count = 20}
agent = ["pd", "random", "greedy"]
seed = {integers = [0, 4]}

[[zip]]                      # axes of one length that vary together, any number of such tables
"pole/length" = [0.5, 1.0, 2.0]
"cart/mass" = [1.0, 2.0, 4.0]
"""

import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evaluation.json_types import JsonMapping, JsonValue
from evaluation.sweep.axes import Axis, Value, axis

MOST_BYTES: Final = 1 << 20
"""Largest sweep file."""
MOST_CELLS: Final = 10_000_000
LANES: Final = 16_384
MOST_LANES: Final = 1 << 22
KEYS: Final = ("base", "name", "lanes", "fixed", "axes", "zip")


@dataclass(frozen=True)
class Bundle:
    """Axes that vary together: one of an `[axes]` table, or all of a `[[zip]]`.

    Attributes:
      axes: of the same size.
    """

    axes: tuple[Axis, ...]

    @property
    def size(self) -> int:
        """Number of steps that they take together."""
        return self.axes[0].size

    def values(self, index: int) -> dict[str, Value]:
        """Value of every axis at one step."""
        return {axis.name: axis.value(index) for axis in self.axes}


@dataclass(frozen=True)
class Sweep:
    """Content of a sweep file.

    Attributes:
      base: name of the base command.
      name: of the sweep, for titles.
      lanes: of a pack, filled with cells that are played in parallel. Results depend on it, and so
        do the numbers of a cell's episodes.
      fixed: values that all cells share.
      bundles: the axes, in the order of the file.
      content: the file's values as plain JSON values.
    """

    base: str
    name: str
    lanes: int
    fixed: Mapping[str, Value]
    bundles: tuple[Bundle, ...]
    content: JsonMapping

    @property
    def axes(self) -> tuple[Axis, ...]:
        """All axes, in the order of the file."""
        return tuple(axis for bundle in self.bundles for axis in bundle.axes)

    @property
    def cells(self) -> int:
        """Number of cells."""
        return math.prod(bundle.size for bundle in self.bundles)


def load(path: Path) -> Sweep:
    """Read a sweep file.

    Raises:
      ValueError: names the file and what to change.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > MOST_BYTES:
        raise ValueError(f"{path} has {len(data):,} bytes; at most {MOST_BYTES:,} are read")
    try:
        return sweep_from(tomllib.loads(data.decode()), path.stem)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is not a TOML file: {error}") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def sweep_from(content: JsonMapping, name: str = "sweep") -> Sweep:
    """Read a sweep from values as `tomllib` gives them.

    Args:
      content: see the module.
      name: used if the values have none.

    Raises:
      ValueError: says what to change.
    """
    unknown = [key for key in content if key not in KEYS]
    if unknown:
        raise ValueError(f"unknown key {unknown[0]!r}; allowed: {', '.join(KEYS)}")
    base, title = content.get("base"), content.get("name", name)
    if not isinstance(base, str):
        raise ValueError('no base is named; write base = "evaluate", or another command')
    if not isinstance(title, str) or not title:
        raise ValueError(f"name is {title!r}; it must be text")
    lanes = content.get("lanes", LANES)
    if type(lanes) is not int or not 1 <= lanes <= MOST_LANES:
        raise ValueError(f"lanes is {lanes!r}; it must be a whole number from 1 to {MOST_LANES}")
    fixed = {key: _scalar(key, value) for key, value in _table(content, "fixed").items()}
    bundles = _bundles(content)
    names = [one.name for bundle in bundles for one in bundle.axes]
    duplicates = [n for n in names if names.count(n) > 1 or n in fixed]
    if duplicates:
        raise ValueError(f"{duplicates[0]!r} is set twice; it may be in one of fixed, axes and zip")
    sweep = Sweep(base, title, lanes, fixed, bundles, json.loads(json.dumps(content)))
    if sweep.cells > MOST_CELLS:
        sizes = " x ".join(f"{bundle.size:,}" for bundle in bundles)
        raise ValueError(
            f"{sizes} are {sweep.cells:,} cells; at most {MOST_CELLS:,} are allowed: take fewer "
            "values, or draw them at random in a [[zip]]"
        )
    return sweep


def _bundles(content: JsonMapping) -> tuple[Bundle, ...]:
    bundles = [Bundle((axis(name, v),)) for name, v in _table(content, "axes").items()]
    zips = content.get("zip", [])
    if not isinstance(zips, list) or not all(isinstance(one, Mapping) and one for one in zips):
        raise ValueError("zip must be tables of axes, each written [[zip]]")
    for table in zips:
        bundle = Bundle(
            tuple(axis(name, value, repeats=len(table) > 1) for name, value in table.items())
        )
        sizes = {one.name: one.size for one in bundle.axes}
        if len(set(sizes.values())) > 1:
            counts = ", ".join(f"{name} has {size:,}" for name, size in sizes.items())
            raise ValueError(f"axes of a [[zip]] must have equally many values: {counts}")
        if all(isinstance(value, list) for value in table.values()):
            steps = [tuple(bundle.values(index).values()) for index in range(bundle.size)]
            if len(set(steps)) < len(steps):
                twice = next(step for step in steps if steps.count(step) > 1)
                raise ValueError(f"a [[zip]] has the values {twice} twice; leave one of them out")
        bundles.append(bundle)
    if not bundles:
        raise ValueError("there are no axes; write at least one below [axes]")
    return tuple(bundles)


def _table(content: JsonMapping, key: str) -> JsonMapping:
    table = content.get(key, {})
    if not isinstance(table, Mapping):
        raise ValueError(f"{key} must be a table, written [{key}]")
    return table


def _scalar(name: str, value: JsonValue) -> Value:
    if isinstance(value, Mapping):
        raise ValueError(
            f'fixed {name!r} is a table; put quotes around a path, as "pole/length" = 1.0'
        )
    if type(value) not in (int, float, str):
        raise ValueError(f"fixed {name!r} is {value!r}; it must be a number or text")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"fixed {name!r} is {value}; it must be finite")
    scalar: Value = value
    return scalar
