"""Cells of `jaxsim run`: a syllabus over many lifetimes; hyper-parameters of a learner are lanes.

A parameter of a task, as "pole/length", is set in every block whose task has it. Lifetimes of
cells that differ in hyper-parameters that are data are played side by side: cell k of a pack has
the lifetimes from k L on, L of each. A cell that is alone is `jaxsim run` with its values.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from evaluation import scanner
from evaluation.l2m.syllabus import load
from evaluation.metrics import DEFAULT_WINDOW
from evaluation.records import MEASURES
from evaluation.report import summarise_records
from evaluation.schedule import Schedule
from evaluation.sweep.axes import Value
from evaluation.sweep.bases import learning
from evaluation.sweep.bases.base import Place, Played, Values, agent_files, paths, typed
from evaluation.sweep.grid import Cell, Keys
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


class Run:
    """The base "run"; see `Base`."""

    name = "run"
    threads = False

    def fields(self) -> Mapping[str, Value | None]:
        """Fields with their defaults."""
        return FIELDS

    def files(self, values: Values) -> list[str]:
        """The syllabus, and the agent's file if it is one."""
        return [str(values["syllabus"]), *agent_files(values)]

    def check(self, values: Values, place: Place) -> None:
        """Check a cell."""
        typed(values, {"syllabus": str, "agent": str, "measure": str})
        typed(values, dict.fromkeys(("lifetimes", "seed", "width", "window"), int))
        scanner.check_lifetimes(values["lifetimes"])
        scanner.check_width(values["width"])
        counters.root(values["seed"])
        if values["measure"] not in MEASURES:
            raise ValueError(
                f"measure is {values['measure']!r}; it must be one of {', '.join(MEASURES)}"
            )
        if values["window"] < 1 or values["window"] % 2 == 0:
            raise ValueError(f"window is {values['window']}; it must be an odd number from 1")
        learning.player_with([values], values["lifetimes"], place)
        learning.worlds(_schedule(values, place))

    def keys(self, values: Values, place: Place) -> Keys:
        """Agent and worlds make the program; all but hyper-parameters that are data the call."""
        schedule = _schedule(values, place)
        program = (
            values["agent"],
            values["width"],
            learning.fixed_settings(values),
            learning.worlds(schedule),
            len(schedule.variants),
        )
        own = paths(values, {}, learning.SETTINGS)
        return Keys(program, tuple(sorted((name, str(v)) for name, v in own.items())))

    def lanes(self, values: Values) -> int:
        """One a lifetime and episode side by side."""
        return int(values["lifetimes"]) * int(values["width"])

    def episodes(self, values: Values, place: Place) -> int:
        """Episodes of all lifetimes."""
        return int(values["lifetimes"]) * _schedule(values, place).num_episodes

    def steps(self, values: Values, place: Place) -> int:
        """Steps of all lifetimes, if every episode is as long as it can be."""
        return int(values["lifetimes"]) * learning.most_steps(_schedule(values, place))

    def bytes(self, values: Values, cells: int, place: Place) -> int:
        """Memory of the lifetimes of a pack."""
        episodes = _schedule(values, place).num_episodes
        return learning.bytes_of(values, cells * int(values["lifetimes"]), episodes, place)

    def schema(self) -> pa.Schema:
        """Columns of the rows."""
        return learning.ROWS

    def play(self, cells: Sequence[Cell], place: Place) -> Played:
        """Play a pack as one schedule."""
        values = cells[0].values
        schedule = _schedule(values, place)
        records = learning.play(
            cells, schedule, int(values["lifetimes"]), int(values["width"]), place
        )
        found = []
        for cell, one in zip(cells, records, strict=True):
            told = cell.values
            report = summarise_records(
                one, str(told["measure"]), int(told["window"]), int(told["seed"])
            )
            found.append(_entries(report.to_json()))
        return Played(learning.rows(cells, records), learning.metrics(cells, found))


def _schedule(values: Values, place: Place) -> Schedule:
    own = paths(values, FIELDS, learning.SETTINGS)
    return learning.schedule_with(_loaded(place.file(values["syllabus"])), own)


@lru_cache(maxsize=64)
def _loaded(path: Path) -> Schedule:
    return load(path)


def _entries(report: Mapping[str, Any]) -> dict[str, Any]:
    """Every metric of a report by name: of the syllabus, of today, and of each block."""
    found = dict(report["metrics"])
    found |= {f"lifelong/{name}": entry for name, entry in report["lifelong"]["metrics"].items()}
    for block in report["blocks"]:
        names = block["metrics"].items()
        found |= {f"block {block['block']}/{name}": entry for name, entry in names}
    return found


BASE: Final = Run()
