"""Cells of `jaxsim train`: a learner on one task; hyper-parameters that are data are lanes."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from evaluation import scanner
from evaluation.json_types import JsonObject
from evaluation.schedule import Schedule
from evaluation.sweep.axes import Value
from evaluation.sweep.bases import learning
from evaluation.sweep.bases.base import (
    PackResults,
    SweepFiles,
    Values,
    check_level,
    paths,
    typed,
)
from evaluation.sweep.grid import GroupKeys, SweepCell
from evaluation.train.course import TrainingCourse, task_of
from evaluation.train.curve import LearningCurve
from jaxsim import counters

FIELDS: Final[Mapping[str, Value | None]] = {
    "task": "CartPole3D",
    "level": "",
    "difficulty": "",
    "agent": "ppo",
    "episodes": 2000,
    "eval-every": 200,
    "eval-episodes": 20,
    "lifetimes": 64,
    "seed": 0,
    "width": "",
}


class TrainBase:
    """The base "train"; see `Base`."""

    name = "train"
    threads = False

    def fields(self) -> Mapping[str, Value | None]:
        """Fields with their defaults."""
        return FIELDS

    def files(self, values: Values) -> list[str]:
        """The file of the agent, or of its checkpoint, if it is from one."""
        return learning.files(values)

    def check(self, values: Values, place: SweepFiles) -> None:
        """Check a cell."""
        typed(values, {"task": str, "level": int, "difficulty": str, "agent": str}, FIELDS)
        whole_numbers = ("episodes", "eval-every", "eval-episodes", "lifetimes", "seed", "width")
        typed(values, dict.fromkeys(whole_numbers, int), FIELDS)
        check_level(values, FIELDS)
        if values["level"] != "" and values["task"] != FIELDS["task"]:
            raise ValueError("level chooses the task; leave task out")
        course = _course(values)
        course.check(values["episodes"])
        scanner.check_lifetimes(values["lifetimes"])
        scanner.check_width(_width(values))
        counters.root(values["seed"])
        learning.check(values, _schedule(values), place)

    def keys(self, values: Values, place: SweepFiles) -> GroupKeys:
        """Program: agent and worlds. Call: all but the hyper-parameters that are data."""
        fixed = learning.fixed_settings(values)
        program = values["agent"], _width(values), fixed, learning.worlds(_schedule(values))
        call_values = paths(values, {}, learning.SETTINGS)
        return GroupKeys(program, tuple(sorted((name, str(v)) for name, v in call_values.items())))

    def lanes(self, values: Values) -> int:
        """One lane per lifetime and concurrent episode."""
        return int(values["lifetimes"]) * _width(values)

    def episodes(self, values: Values, place: SweepFiles) -> int:
        """Episodes of all lifetimes."""
        return int(values["lifetimes"]) * _schedule(values).num_episodes

    def steps(self, values: Values, place: SweepFiles) -> int:
        """Steps of all lifetimes, if every episode has its greatest length."""
        return int(values["lifetimes"]) * learning.most_steps(_schedule(values))

    def bytes(self, values: Values, cells: int, place: SweepFiles) -> int:
        """Memory of the lifetimes of a pack."""
        lifetimes = cells * int(values["lifetimes"])
        return learning.bytes_of(values, lifetimes, _schedule(values), place)

    def schema(self) -> pa.Schema:
        """Columns of the rows."""
        return learning.ROWS

    def play(self, cells: Sequence[SweepCell], place: SweepFiles) -> PackResults:
        """Play a pack as one course."""
        values = cells[0].values
        records = learning.play(
            cells, _schedule(values), int(values["lifetimes"]), _width(values), place
        )
        entries_of_cells = [_entries(LearningCurve.of(one, int(values["seed"]))) for one in records]
        return PackResults(learning.rows(cells, records), learning.metrics(cells, entries_of_cells))


def _course(values: Values) -> TrainingCourse:
    name = str(values["level"]) if values["level"] != "" else str(values["task"])
    task, parameters = task_of(name, str(values["difficulty"]) or None, ())
    all_parameters = {**dict(parameters), **paths(values, FIELDS, learning.SETTINGS)}
    return TrainingCourse(
        task,
        tuple(sorted(all_parameters.items())),
        int(values["eval-every"]),
        int(values["eval-episodes"]),
    )


def _schedule(values: Values) -> Schedule:
    return _course(values).schedule(int(values["episodes"]))


def _width(values: Values) -> int:
    width = values["width"]
    return _course(values).full_speed_width if width == "" else int(width)


def _entries(curve: LearningCurve) -> JsonObject:
    """Performance in every evaluation, the last one first."""

    def entry(index: int) -> JsonObject:
        numbers = {n: getattr(curve, n)[index] for n in ("mean", "low", "high")}
        finite = {n: float(v) if np.isfinite(v) else None for n, v in numbers.items()}
        reason = {"reason": "a single lifetime has no interval"} if curve.lifetimes < 2 else {}
        return {**finite, "lifetimes": curve.lifetimes, **reason}

    last = len(curve.episodes) - 1
    by_episodes = {f"performance after {int(n)}": entry(i) for i, n in enumerate(curve.episodes)}
    return {"performance": entry(last), **by_episodes}


BASE: Final = TrainBase()
