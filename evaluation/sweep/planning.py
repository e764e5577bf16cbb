"""Makes plans: checks a sweep, orders its cells, and sizes its units from a rate."""

import hashlib
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from evaluation.checkpoints.configuration import versions
from evaluation.files import write_whole
from evaluation.sweep import bases, plans
from evaluation.sweep.bases.base import Base, Place, complete
from evaluation.sweep.document import Sweep, load, sweep_from
from evaluation.sweep.grid import Grid, Group, Keys, grid
from evaluation.sweep.plans import FORMAT, INPUTS, Plan

MINUTES: Final = 5.0
MOST_MINUTES: Final = 7 * 24 * 60.0
PROCESS_BYTES: Final = 1_500_000_000
"""Of a process that has compiled a program for CartPole3D; measured, docs/sweeps.md."""
BYTES_A_ROW: Final = 64
"""Of a unit until it is written."""
MOST_INPUT_BYTES: Final = 1 << 26
RATES: Final[Mapping[str, float]] = {"pd": 5e6, "random": 5e6, "nothing": 5e6, "greedy": 5e6}
SLOW_RATE: Final = 2e5
"""Environment steps a second of agents that think or learn, where none was measured."""

Say = Callable[[str], object]


def plan(
    what: Path | str | Mapping[str, Any],
    out: Path | str,
    *,
    minutes: float = MINUTES,
    rate: float | None = None,
    measure: bool = False,
    force: bool = False,
    say: Say = lambda line: None,
) -> Plan:
    """Plan a sweep, and write the plan.

    Args:
      what: a sweep file; or its values, as `tomllib` reads them.
      out: folder of the plan. The same plan may be there already; its results stay.
      minutes: that a unit is to take.
      rate: environment steps a second of one process; None for rates that docs/sweeps.md measured.
      measure: whether to measure it now instead, with a pack of each program.
      force: whether a plan in `out` is replaced; results of units of other sizes are ignored.
      say: is given lines for people.

    Raises:
      ValueError: says what to change; nothing is written.
    """
    folder = Path(out)
    if not 0 < minutes <= MOST_MINUTES:
        raise ValueError(f"minutes is {minutes:g}; it must be above 0 and at most {MOST_MINUTES:g}")
    if rate is not None and not 0 < rate < 1e15:
        raise ValueError(f"rate is {rate:g}; it must be above 0, environment steps a second")
    if isinstance(what, Mapping):
        name, near, sweep = "sweep", Path(), sweep_from(what)
    else:
        path = Path(what)
        name, near, sweep = path.stem, path.parent, load(path)
    _check_folder(folder)
    base = bases.get(sweep.base)
    contents, place = _inputs(base, sweep, near)
    _check(base, sweep, place)
    ordered = _ordered(base, sweep, place)
    entries = {
        value: {"name": name, "sha256": hashlib.sha256(data).hexdigest()}
        for value, (name, data) in contents.items()
    }
    digest = plans.identity(sweep.written, entries)
    there = _there(folder, digest, force)
    if there is not None:
        say(f"{folder} holds this plan already; its units stay as they are")
        return there
    rates = _rates(base, ordered, place, rate, measure, say)
    manifest = {
        "format": FORMAT,
        "name": sweep.name if "name" in sweep.written else name,
        "digest": digest,
        "versions": versions(),
        "sweep": dict(sweep.written),
        "inputs": entries,
        "cells": ordered.cells,
        "packs": ordered.packs,
        "programs": ordered.programs,
        "groups": plans.groups_json(ordered),
        **_expected(base, ordered, place, rates, minutes),
        "columns": _columns(base, sweep),
    }
    for entry_name, data in contents.values():
        write_whole(folder / INPUTS / entry_name, data)
    found = Plan(folder, manifest)
    manifest["units"] = len(found.units)
    plans.write(found)
    return found


def _columns(base: Base, sweep: Sweep) -> list[list[str]]:
    """Columns of the axes in all tables, with their types."""
    taken = {*base.schema().names, "metric", "value", "low", "high", "count", "reason"}
    words = {int: "int64", float: "float64", str: "string"}
    return [[f"axis {a.name}" if a.name in taken else a.name, words[a.kind]] for a in sweep.axes]


def _check_folder(folder: Path) -> None:
    """Refuse a folder that cannot take a plan."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; name a folder")
    if folder.is_dir() and not (folder / plans.FILE).exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty and holds no plan; name another folder")
    above = folder
    while not above.exists():
        above = above.parent
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise ValueError(f"{folder} cannot be written: {above} does not allow it")


def _there(folder: Path, digest: str, force: bool) -> Plan | None:
    """The same plan, if it is there already.

    Raises:
      ValueError: another plan is there.
    """
    if not (folder / plans.FILE).exists() or force:
        return None
    there = plans.load(folder)
    if there.digest != digest:
        raise ValueError(
            f"{folder} holds another plan, {there.manifest['name']!r} of {there.grid.cells:,} "
            "cells; name another folder, or pass --force to replace that plan (its results stay "
            "there and are ignored)"
        )
    return there


def _inputs(base: Base, sweep: Sweep, near: Path) -> tuple[dict[str, tuple[str, bytes]], Place]:
    """Read the files that values name; (name of the copy, content) by value."""
    contents: dict[str, tuple[str, bytes]] = {}
    places: dict[str, Path] = {}
    fields = base.fields()
    listed = [axis for axis in sweep.axes if axis.kind is str and axis.name in fields]
    options = [{axis.name: axis.value(i)} for axis in listed for i in range(axis.size)]
    first = {axis.name: axis.value(0) for axis in sweep.axes}
    for values in ({}, *options):
        for value in base.files(complete(base, {**sweep.fixed, **first, **values})):
            path = Path(value) if Path(value).is_absolute() else near / value
            if not path.is_file() and Path(value).is_file():
                path = Path(value)  # named from where the command is given
            try:
                size = path.stat().st_size
                if size > MOST_INPUT_BYTES:
                    raise ValueError(
                        f"{path} has {size:,} bytes; at most {MOST_INPUT_BYTES:,} are copied"
                    )
                data = path.read_bytes()
            except OSError as error:
                raise ValueError(f"{path} cannot be read: {error.strerror}") from error
            mark = hashlib.sha256(data).hexdigest()[:8]
            contents[value] = f"{mark}-{path.name}", data
            places[value] = path
    return contents, Place(places)


def _check(base: Base, sweep: Sweep, place: Place) -> None:
    """Check every value that an axis has, beside the first of all others."""
    first = dict(sweep.fixed)
    for bundle in sweep.bundles:
        first.update(bundle.values(0))
    base.check(complete(base, first), place)
    for bundle in sweep.bundles:
        if all(axis.ends is not None for axis in bundle.axes) and len(bundle.axes) == 1:
            axis = bundle.axes[0]
            steps: Any = ({axis.name: value} for value in axis.ends or ())
        else:
            number = min(bundle.size, MOST_CHECKED)
            steps = (bundle.values(i * bundle.size // number) for i in range(number))
        for values in steps:
            base.check(complete(base, {**first, **values}), place)


MOST_CHECKED: Final = 4096
"""Steps of a bundle that are checked before anything is written; of more, as many evenly spread."""


def _ordered(base: Base, sweep: Sweep, place: Place) -> Grid:
    def keys(values: Mapping[str, Any]) -> Keys:
        return base.keys(complete(base, values), place)

    first = dict(sweep.fixed)
    for bundle in sweep.bundles:
        first.update(bundle.values(0))
    for name in ("episodes", "lifetimes", "trials", "width"):
        if name in {axis.name for axis in sweep.axes} and name in base.fields():
            raise ValueError(f"{name} cannot be an axis; set it below [fixed]")
    return grid(sweep, keys, base.lanes(complete(base, first)))


def _example(base: Base, ordered: Grid, group: Group) -> dict[str, Any]:
    return complete(base, ordered.cell(group.start).values)


def _rates(
    base: Base, ordered: Grid, place: Place, rate: float | None, measure: bool, say: Say
) -> dict[int, float]:
    """Environment steps a second of each program."""
    found: dict[int, float] = {}
    for group in ordered.groups:
        if group.program in found:
            continue
        values = _example(base, ordered, group)
        if rate is not None:
            found[group.program] = rate
        elif measure:
            found[group.program] = _measured(base, ordered, group, place)
            say(f"program {group.program}: {found[group.program]:,.0f} environment steps a second")
        else:
            found[group.program] = RATES.get(str(values.get("agent")), SLOW_RATE)
    return found


def _measured(base: Base, ordered: Grid, group: Group, place: Place) -> float:
    """Play the first pack twice; the second time nothing is compiled."""
    cells = [ordered.cell(group.start + i) for i in range(min(group.pack, group.abreast))]
    cells = [cell._replace(values=complete(base, cell.values)) for cell in cells]
    base.play(cells, place)
    began = time.perf_counter()
    base.play(cells, place)
    took = time.perf_counter() - began
    return len(cells) * base.steps(_example(base, ordered, group), place) / max(took, 1e-6)


def _expected(
    base: Base, ordered: Grid, place: Place, rates: Mapping[int, float], minutes: float
) -> dict[str, Any]:
    """Sizes of units, and what the sweep will take."""
    packs, steps, seconds, rows, memory = [], 0, 0.0, 0, 0
    for group in ordered.groups:
        values, width = _example(base, ordered, group), min(group.pack, group.abreast)
        each = base.steps(values, place)
        time_of_pack = width * each / rates[group.program]
        packs.append(max(1, min(group.packs, int(60 * minutes / time_of_pack))))
        steps += group.cells * each
        seconds += group.cells * each / rates[group.program]
        episodes = base.episodes(values, place)
        rows += group.cells * episodes
        held = BYTES_A_ROW * episodes * min(packs[-1] * width, group.cells)
        memory = max(memory, base.bytes(values, width, place) + held)
    return {
        "unit_packs": packs,
        "minutes": minutes,
        "rates": {str(program): rate for program, rate in rates.items()},
        "rows": rows,
        "most_steps": steps,
        "most_seconds": seconds,
        "bytes": memory + PROCESS_BYTES,
    }


def place_of(plan: Plan) -> Place:
    """Where a plan is played."""
    return replace(Place(plan.inputs), folder=plan.folder)
