"""Cells of `jaxsim run`: a syllabus over many lifetimes; hyper-parameters of a learner are lanes.

A parameter of a task, as "pole/length", is set in every block whose task has it. Cells that differ
only in hyper-parameters that are data are played in parallel: with L lifetimes each, cell k of a
pack has the L lifetimes from k L on. A cell alone in its pack equals `jaxsim run` with its values.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

import pyarrow as pa

from evaluation import scanner
from evaluation.json_types import JsonMapping, JsonObject
from evaluation.l2m.syllabus import load
from evaluation.metrics import DEFAULT_WINDOW
from evaluation.records import MEASURES
from evaluation.report import summarise_records
from evaluation.schedule import Schedule
from evaluation.sweep.axes import Value
from evaluation.sweep.bases import learning
from evaluation.sweep.bases.base import PackResults, SweepFiles, Values, paths, typed
from evaluation.sweep.grid import GroupKeys, SweepCell
from jaxsim import counters

FIELDS: Final[Mapping[str, Value | None]] = {
    "syllabus": None,
    "agent": "pd",
    "lifetimes": 64,
    "seed": 0,
    "width": 1,
    "measure": "performance",
    "window": DEFAULT_WINDOW,
}


class RunBase:
    """The base "run"; see `Base`."""

    name = "run"
    threads = False

    def fields(self) -> Mapping[str, Value | None]:
        """Fields with their defaults."""
        return FIELDS

    def files(self, values: Values) -> list[str]:
        """The syllabus, and the file of the agent, or of its checkpoint, if it is from one."""
        return [str(values["syllabus"]), *learning.files(values)]

    def check(self, values: Values, place: SweepFiles) -> None:
        """Check a cell."""
        typed(values, {"syllabus": str, "agent": str, "measure": str}, FIELDS)
        typed(values, dict.fromkeys(("lifetimes", "seed", "width", "window"), int), FIELDS)
        scanner.check_lifetimes(values["lifetimes"])
        scanner.check_width(values["width"])
        counters.root(values["seed"])
        if values["measure"] not in MEASURES:
            raise ValueError(
                f"measure is {values['measure']!r}; it must be one of {', '.join(MEASURES)}"
            )
        if values["window"] < 1 or values["window"] % 2 == 0:
            raise ValueError(f"window is {values['window']}; it must be an odd number from 1")
        learning.check(values, _schedule(values, place), place)

    def keys(self, values: Values, place: SweepFiles) -> GroupKeys:
        """Program: agent and worlds. Call: all but the hyper-parameters that are data."""
        schedule = _schedule(values, place)
        program = (
            values["agent"],
            values["width"],
            learning.fixed_settings(values),
            learning.worlds(schedule),
            len(schedule.variants),
        )
        call_values = paths(values, {}, learning.SETTINGS)
        return GroupKeys(program, tuple(sorted((name, str(v)) for name, v in call_values.items())))

    def lanes(self, values: Values) -> int:
        """One lane per lifetime and concurrent episode."""
        return int(values["lifetimes"]) * int(values["width"])

    def episodes(self, values: Values, place: SweepFiles) -> int:
        """Episodes of all lifetimes."""
        return int(values["lifetimes"]) * _schedule(values, place).num_episodes

    def steps(self, values: Values, place: SweepFiles) -> int:
        """Steps of all lifetimes, if every episode has its greatest length."""
        return int(values["lifetimes"]) * learning.most_steps(_schedule(values, place))

    def bytes(self, values: Values, cells: int, place: SweepFiles) -> int:
        """Memory of the lifetimes of a pack."""
        lifetimes = cells * int(values["lifetimes"])
        return learning.bytes_of(values, lifetimes, _schedule(values, place), place)

    def schema(self) -> pa.Schema:
        """Columns of the rows."""
        return learning.ROWS

    def play(self, cells: Sequence[SweepCell], place: SweepFiles) -> PackResults:
        """Play a pack as one schedule."""
        values = cells[0].values
        schedule = _schedule(values, place)
        records = learning.play(
            cells, schedule, int(values["lifetimes"]), int(values["width"]), place
        )
        entries_of_cells = []
        for cell, one in zip(cells, records, strict=True):
            fields = cell.values
            report = summarise_records(
                one, str(fields["measure"]), int(fields["window"]), int(fields["seed"])
            )
            entries_of_cells.append(_entries(report.to_json()))
        return PackResults(learning.rows(cells, records), learning.metrics(cells, entries_of_cells))


def _schedule(values: Values, place: SweepFiles) -> Schedule:
    parameters = paths(values, FIELDS, learning.SETTINGS)
    return learning.schedule_with(_loaded(place.file(values["syllabus"])), parameters)


@lru_cache(maxsize=64)
def _loaded(path: Path) -> Schedule:
    return load(path)


def _entries(report: JsonMapping) -> JsonObject:
    """All metrics of a report by name: of the syllabus, lifelong ones, and of each block."""
    entries = dict(report["metrics"])
    entries |= {f"lifelong/{name}": entry for name, entry in report["lifelong"]["metrics"].items()}
    for block in report["blocks"]:
        names = block["metrics"].items()
        entries |= {f"block {block['block']}/{name}": entry for name, entry in names}
    return entries


BASE: Final = RunBase()
