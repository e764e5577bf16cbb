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
from evaluation.json_types import JsonMapping, JsonObject
from evaluation.sweep import bases, plans
from evaluation.sweep.bases.base import Base, SweepFiles, Values, complete
from evaluation.sweep.document import Sweep, load, sweep_from
from evaluation.sweep.grid import CellGroup, Grid, GroupKeys, grid
from evaluation.sweep.plans import FORMAT, INPUTS, Plan

MINUTES: Final = 5.0
MOST_MINUTES: Final = 7 * 24 * 60.0
PROCESS_BYTES: Final = 1_500_000_000
"""Memory of a process that has compiled a program for CartPole3D; measured, docs/sweeps.md."""
BYTES_A_ROW: Final = 64
"""Memory of a row until its unit is written."""
MOST_INPUT_BYTES: Final = 1 << 26
RATES: Final[Mapping[str, float]] = {"pd": 5e6, "random": 5e6, "nothing": 5e6, "greedy": 5e6}
SLOW_RATE: Final = 2e5
"""Environment steps a second of agents that plan or learn, if no rate was measured."""

Say = Callable[[str], object]


def plan(
    what: Path | str | JsonMapping,
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
      out: folder of the plan. If it holds the same plan already, its results stay.
      minutes: target duration of a unit.
      rate: environment steps a second of one process; None for the rates in docs/sweeps.md.
      measure: whether to measure the rate now, with a pack of each program.
      force: whether a plan in `out` is replaced; results of units of other sizes are ignored.
      say: called with lines for people.

    Raises:
      ValueError: says what to change; nothing is written.
    """
    folder = Path(out)
    if not 0 < minutes <= MOST_MINUTES:
        raise ValueError(f"minutes is {minutes:g}; it must be above 0 and at most {MOST_MINUTES:g}")
    if rate is not None and not 0 < rate < 1e15:
        raise ValueError(f"rate is {rate:g}; it must be above 0, environment steps a second")
    if isinstance(what, Mapping):
        name, input_folder, sweep = "sweep", Path(), sweep_from(what)
    else:
        path = Path(what)
        name, input_folder, sweep = path.stem, path.parent, load(path)
    _check_folder(folder)
    base = bases.get(sweep.base)
    contents, place = _inputs(base, sweep, input_folder)
    _check(base, sweep, place)
    cell_grid = _grid(base, sweep, place)
    for group in cell_grid.groups:  # values of two axes may not go together
        base.check(_example(base, cell_grid, group), place)
    entries = {
        value: {"name": name, "sha256": hashlib.sha256(data).hexdigest()}
        for value, (name, data) in contents.items()
    }
    digest = plans.identity(sweep.content, entries)
    existing = _existing(folder, digest, force)
    if existing is not None:
        say(f"{folder} holds this plan already; its units stay as they are")
        return existing
    rates = _rates(base, cell_grid, place, rate, measure, say)
    manifest = {
        "format": FORMAT,
        "name": sweep.name if "name" in sweep.content else name,
        "digest": digest,
        "versions": versions(),
        "sweep": dict(sweep.content),
        "inputs": entries,
        "cells": cell_grid.cells,
        "packs": cell_grid.packs,
        "programs": cell_grid.programs,
        "groups": plans.groups_json(cell_grid),
        **_expected(base, cell_grid, place, rates, minutes),
        "columns": _columns(base, sweep),
    }
    for entry_name, data in contents.values():
        write_whole(folder / INPUTS / entry_name, data)
    new_plan = Plan(folder, manifest)
    manifest["units"] = len(new_plan.units)
    plans.write(new_plan)
    return new_plan


def _columns(base: Base, sweep: Sweep) -> list[list[str]]:
    """Columns of the axes in all tables, with their types."""
    reserved = {*base.schema().names, "metric", "value", "low", "high", "count", "reason"}
    words = {int: "int64", float: "float64", str: "string"}
    return [[f"axis {a.name}" if a.name in reserved else a.name, words[a.kind]] for a in sweep.axes]


def _check_folder(folder: Path) -> None:
    """Refuse a folder that cannot take a plan."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; name a folder")
    if folder.is_dir() and not (folder / plans.FILE).exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty and holds no plan; name another folder")
    parent = folder
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise ValueError(f"{folder} cannot be written: {parent} does not allow it")


def _existing(folder: Path, digest: str, force: bool) -> Plan | None:
    """Load the plan of a folder if it is the same; None if there is none or it is replaced.

    Raises:
      ValueError: the folder has another plan.
    """
    if not (folder / plans.FILE).exists() or force:
        return None
    existing = plans.load(folder)
    if existing.digest != digest:
        raise ValueError(
            f"{folder} holds another plan, {existing.manifest['name']!r} of "
            f"{existing.grid.cells:,} cells; name another folder, or pass --force to replace that "
            "plan (its results stay there and are ignored)"
        )
    return existing


def _inputs(
    base: Base, sweep: Sweep, input_folder: Path
) -> tuple[dict[str, tuple[str, bytes]], SweepFiles]:
    """Read the files that values name; (name of the copy, content) by value."""
    contents: dict[str, tuple[str, bytes]] = {}
    places: dict[str, Path] = {}
    fields = base.fields()
    text_axes = [axis for axis in sweep.axes if axis.kind is str and axis.name in fields]
    options = [{axis.name: axis.value(i)} for axis in text_axes for i in range(axis.size)]
    first = {axis.name: axis.value(0) for axis in sweep.axes}
    for values in ({}, *options):
        for value in base.files(complete(base, {**sweep.fixed, **first, **values})):
            path = Path(value) if Path(value).is_absolute() else input_folder / value
            if not path.is_file() and Path(value).is_file():
                path = Path(value)  # relative to the working directory
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
    return contents, SweepFiles(places)


def _check(base: Base, sweep: Sweep, place: SweepFiles) -> None:
    """Check the values of each axis, with the first values of all others."""
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
"""Most steps of a bundle that are checked before anything is written; evenly spread of more."""


def _grid(base: Base, sweep: Sweep, place: SweepFiles) -> Grid:
    def keys(values: Values) -> GroupKeys:
        return base.keys(complete(base, values), place)

    first = dict(sweep.fixed)
    for bundle in sweep.bundles:
        first.update(bundle.values(0))
    for name in ("episodes", "lifetimes", "trials", "width"):
        if name in {axis.name for axis in sweep.axes} and name in base.fields():
            raise ValueError(f"{name} cannot be an axis; set it below [fixed]")
    return grid(sweep, keys, base.lanes(complete(base, first)))


def _example(base: Base, cell_grid: Grid, group: CellGroup) -> Values:
    return complete(base, cell_grid.cell(group.start).values)


def _rates(
    base: Base, cell_grid: Grid, place: SweepFiles, rate: float | None, measure: bool, say: Say
) -> dict[int, float]:
    """Environment steps a second of each program."""
    rates: dict[int, float] = {}
    for group in cell_grid.groups:
        if group.program in rates:
            continue
        values = _example(base, cell_grid, group)
        if rate is not None:
            rates[group.program] = rate
        elif measure:
            rates[group.program] = _measured(base, cell_grid, group, place)
            say(f"program {group.program}: {rates[group.program]:,.0f} environment steps a second")
        else:
            rates[group.program] = RATES.get(str(values.get("agent")), SLOW_RATE)
    return rates


def _measured(base: Base, cell_grid: Grid, group: CellGroup, place: SweepFiles) -> float:
    """Play the first pack twice; the second time nothing is compiled."""
    cells = [cell_grid.cell(group.start + i) for i in range(min(group.pack, group.call_cells))]
    cells = [cell._replace(values=complete(base, cell.values)) for cell in cells]
    base.play(cells, place)
    start = time.perf_counter()
    base.play(cells, place)
    seconds = time.perf_counter() - start
    return len(cells) * base.steps(_example(base, cell_grid, group), place) / max(seconds, 1e-6)


def _expected(
    base: Base, cell_grid: Grid, place: SweepFiles, rates: Mapping[int, float], minutes: float
) -> JsonObject:
    """Sizes of units, and estimates of the sweep's steps, time, rows and memory."""
    packs, steps, seconds, rows, memory = [], 0, 0.0, 0, 0
    for group in cell_grid.groups:
        values, width = _example(base, cell_grid, group), min(group.pack, group.call_cells)
        cell_steps = base.steps(values, place)
        time_of_pack = width * cell_steps / rates[group.program]
        packs.append(max(1, min(group.packs, int(60 * minutes / time_of_pack))))
        steps += group.cells * cell_steps
        seconds += group.cells * cell_steps / rates[group.program]
        episodes = base.episodes(values, place)
        rows += group.cells * episodes
        row_bytes = BYTES_A_ROW * episodes * min(packs[-1] * width, group.cells)
        memory = max(memory, base.bytes(values, width, place) + row_bytes)
    return {
        "unit_packs": packs,
        "minutes": minutes,
        "rates": {str(program): rate for program, rate in rates.items()},
        "rows": rows,
        "most_steps": steps,
        "most_seconds": seconds,
        "bytes": memory + PROCESS_BYTES,
    }


def place_of(plan: Plan) -> SweepFiles:
    """The `SweepFiles` of a plan."""
    return replace(SweepFiles(plan.inputs), folder=plan.folder)
