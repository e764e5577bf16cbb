"""Maps cell numbers to values, and cells to packs and units, without a list of all cells.

Cells that differ only in traced numbers share a *program*. Of these, cells that can be
played in one call form *packs*, in parallel as lanes. Several packs are a *unit*, which one
process plays before it writes. Axes are ordered so that packs are consecutive cells: what changes
the program varies slowest, then what needs a call of its own (the seed), then what becomes lanes.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import accumulate, product
from typing import Final, NamedTuple

from evaluation.sweep.axes import Value
from evaluation.sweep.document import Bundle, Sweep

MOST_PROBED: Final = 1024
"""Most steps of a bundle that are probed for what they change; evenly spread if it has more. An
axis of at most so many different values, or of words, is probed at each of them all the same."""
MOST_GROUPS: Final = 4096
MOST_KEPT: Final = 4096
"""Steps of a bundle whose values are cached."""


Steps = tuple[tuple[int, Sequence[int]], ...]
"""Steps of bundles, each after the index of the bundle."""


class GroupKeys(NamedTuple):
    """Keys that group cells by program and call.

    Attributes:
      program: equal for cells that the same compiled program plays.
      call: equal, within a program, for cells that can be played in one call.
    """

    program: Hashable
    call: Hashable


class SweepCell(NamedTuple):
    """One point of a sweep.

    Attributes:
      number: from 0 on.
      values: of all axes and fixed names, by name.
    """

    number: int
    values: Mapping[str, Value]


class Unit(NamedTuple):
    """Packs that one process plays before it writes.

    Attributes:
      number: from 0 on.
      group: number of their group.
      packs: the first cell of each, and the end of the last.
    """

    number: int
    group: int
    packs: tuple[int, ...]

    @property
    def first(self) -> int:
        """Number of the first cell."""
        return self.packs[0]

    @property
    def cells(self) -> int:
        """Number of cells."""
        return self.packs[-1] - self.packs[0]


@dataclass(frozen=True)
class CellGroup:
    """Cells of one program, as a product of parts of the axes.

    Attributes:
      program: number of the program.
      slow: (index, steps) of each bundle whose steps need separate calls.
      fast: (index, steps) of each bundle whose steps become lanes.
      pack: most cells of a pack.
      start: number of the first cell.
    """

    program: int
    slow: Steps
    fast: Steps
    pack: int
    start: int

    @property
    def call_cells(self) -> int:
        """Cells that one call could play."""
        return math.prod(len(steps) for _, steps in self.fast)

    @property
    def cells(self) -> int:
        """Number of cells."""
        return self.call_cells * math.prod(len(steps) for _, steps in self.slow)

    @property
    def packs(self) -> int:
        """Number of packs."""
        return self.cells // self.call_cells * -(-self.call_cells // self.pack)

    def steps(self, place: int) -> dict[int, int]:
        """Step of every bundle, by the bundle's index, of a cell counted from the group's first."""
        step_of = {}
        for bundle, steps in reversed((*self.slow, *self.fast)):
            place, digit = divmod(place, len(steps))
            step_of[bundle] = steps[digit]
        return step_of

    def pack_start(self, number: int) -> int:
        """First cell of a pack, counted from the group's first; the end for number `packs`."""
        call, part = divmod(number, -(-self.call_cells // self.pack))
        return call * self.call_cells + part * self.pack


@dataclass(frozen=True)
class Grid:
    """All cells of a sweep.

    Attributes:
      sweep: content of the sweep file.
      groups: cells by program.
      programs: number of different programs.
    """

    sweep: Sweep
    groups: tuple[CellGroup, ...]
    programs: int
    _starts: list[int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_starts", [group.start for group in self.groups])

    @cached_property
    def cells(self) -> int:
        """Number of cells."""
        return self.sweep.cells

    @cached_property
    def _values(self) -> list[Callable[[int], Mapping[str, Value]]]:
        """Values of each bundle at a step, cached: neighbouring cells share most steps."""
        return [lru_cache(MOST_KEPT)(bundle.values) for bundle in self.sweep.bundles]

    @property
    def packs(self) -> int:
        """Number of packs."""
        return sum(group.packs for group in self.groups)

    def cell(self, number: int) -> SweepCell:
        """Return one cell, from its number alone."""
        if not 0 <= number < self.cells:
            raise IndexError(f"cell {number} of {self.cells}")
        group = self.groups[bisect_right(self._starts, number) - 1]
        steps = group.steps(number - group.start)
        values = dict(self.sweep.fixed)
        for place, values_at in enumerate(self._values):
            values.update(values_at(steps[place]))
        return SweepCell(number, values)


@dataclass(frozen=True)
class Units:
    """The units of a grid, as a sequence.

    Attributes:
      grid: all cells.
      sizes: most packs of a unit, for each group.
    """

    grid: Grid
    sizes: tuple[int, ...]
    _ends: list[int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        counts = [
            -(-group.packs // size)
            for group, size in zip(self.grid.groups, self.sizes, strict=True)
        ]
        object.__setattr__(self, "_ends", list(accumulate(counts)))

    def __len__(self) -> int:
        """Number of units."""
        return self._ends[-1]

    def __getitem__(self, number: int) -> Unit:
        """Return one unit, from its number alone."""
        if not 0 <= number < len(self):
            raise IndexError(f"unit {number} of {len(self)}")
        place = bisect_right(self._ends, number)
        group, size = self.grid.groups[place], self.sizes[place]
        first = (number - (self._ends[place - 1] if place else 0)) * size
        last = min(first + size, group.packs)
        starts = [group.start + group.pack_start(pack) for pack in range(first, last)]
        end = group.start + (group.cells if last == group.packs else group.pack_start(last))
        return Unit(number, place, (*starts, end))

    def group_units(self, place: int) -> range:
        """Numbers of the units of a group."""
        return range(self._ends[place - 1] if place else 0, self._ends[place])


def grid(sweep: Sweep, keys: Callable[[Mapping[str, Value]], GroupKeys], lanes: int) -> Grid:
    """Order the cells of a sweep.

    Args:
      sweep: content of a sweep file.
      keys: returns the keys of a cell from its values.
      lanes: of one cell.

    Raises:
      ValueError: more combinations of programs than are allowed.
    """
    first = dict(sweep.fixed)
    for bundle in sweep.bundles:
        first.update(bundle.values(0))
    parts = [_parts(bundle, first, keys) for bundle in sweep.bundles]
    number = math.prod(len(classes) for classes, _ in parts)
    if number > MOST_GROUPS:
        raise ValueError(f"the axes ask for {number:,} programs; at most {MOST_GROUPS:,} are built")
    pack = max(1, sweep.lanes // lanes)
    groups: list[CellGroup] = []
    programs: dict[Hashable, int] = {}
    start = 0
    for classes in product(*(classes for classes, _ in parts)):
        values = dict(first)
        for bundle, steps in zip(sweep.bundles, classes, strict=True):
            values.update(bundle.values(steps[0]))
        program = programs.setdefault(keys(values).program, len(programs))
        slow = tuple((i, s) for i, s in enumerate(classes) if parts[i][1])
        fast = tuple((i, s) for i, s in enumerate(classes) if not parts[i][1])
        group = CellGroup(program, slow, fast, pack, start)
        groups.append(group)
        start += group.cells
    return Grid(sweep, tuple(groups), len(programs))


def _parts(
    bundle: Bundle, first: Mapping[str, Value], keys: Callable[[Mapping[str, Value]], GroupKeys]
) -> tuple[list[Sequence[int]], bool]:
    """Steps of a bundle grouped by program, and whether some need separate calls."""
    groups = _steps_alike(bundle)
    key_of = [keys({**first, **bundle.values(steps[0])}) for steps in groups]
    spread = [keys({**first, **bundle.values(index)}) for index in _spread(bundle.size)]
    different = {*key_of, *spread}
    calls = len(different) > len({key.program for key in different})
    classes: dict[Hashable, list[int]] = {}
    for steps, key in zip(groups, key_of, strict=True):
        classes.setdefault(key.program, []).extend(steps)
    if len(classes) == 1:
        return [range(bundle.size)], calls
    return [sorted(steps) for steps in classes.values()], calls


def _steps_alike(bundle: Bundle) -> list[Sequence[int]]:
    """Steps of a bundle that differ at most in numbers of which there are too many to probe."""
    if bundle.size <= MOST_PROBED:
        return [[index] for index in range(bundle.size)]
    few = [one for one in bundle.axes if one.kind is str or one.most_distinct <= MOST_PROBED]
    if not few:
        return [range(bundle.size)]
    alike: dict[Hashable, list[int]] = {}
    for index in range(bundle.size):
        alike.setdefault(tuple(one.value(index) for one in few), []).append(index)
    return list(alike.values())


def _spread(size: int) -> Sequence[int]:
    """Steps of a bundle of any size, evenly spread and with both ends; none if it is small."""
    if size <= MOST_PROBED:
        return ()
    return [i * (size - 1) // (MOST_PROBED - 1) for i in range(MOST_PROBED)]
