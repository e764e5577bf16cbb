"""Syllabi built in Python.

    from evaluation.l2m import Syllabus, episodes

    lengths = (0.5, 1.0, 2.0)
    syllabus = Syllabus("longer poles")
    for length in lengths:
        syllabus = syllabus.train(episodes("CartPole3D", 30, {"pole/length": length}))
        syllabus = syllabus.test(episodes("CartPole3D", 15, {"pole/length": n}) for n in lengths)
    syllabus.write("longer_poles.json")

A `Syllabus` never changes: `train` and `test` return a longer one. Phases are numbered by
themselves. `continual`, `interference`, `transfer` and `parametric_transfer` make the four
subtypes in the form of the framework document's examples.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evaluation.files import write_whole
from evaluation.l2m import instructions
from evaluation.l2m.document import Document, SyllabusError
from evaluation.l2m.instructions import MAX_EPISODES
from evaluation.l2m.writer import document, episode
from evaluation.schedule import Mode, Schedule, Value

_Named = tuple[str, Mapping[str, Value]]

Tasks = Sequence[str | _Named]
"""Tasks by name, or by name and parameters that they have in all episodes."""


@dataclass(frozen=True)
class Episodes:
    """Some episodes of one task with one set of parameters; see `episodes`."""

    task: str
    count: int
    parameters: Mapping[str, Value]
    sub_episodes: int = 1


def episodes(
    task: str, count: int, parameters: Mapping[str, Value] | None = None, sub_episodes: int = 1
) -> Episodes:
    """Say what is played.

    Args:
      task: name of a task, as `jaxsim tasks` lists them.
      count: number of episodes, from 1.
      parameters: by path, for example `{"pole/length": 2.0}`; the rest take the task's defaults.
      sub_episodes: of each episode, from 1: resets, each with the steps that follow.

    Raises:
      ValueError: a count that is not a whole number from 1. Task and parameters are checked when
        the syllabus is made into a schedule.
    """
    for name, number in (("count", count), ("sub_episodes", sub_episodes)):
        whole = isinstance(number, int) and not isinstance(number, bool)
        if not whole or not 1 <= number <= MAX_EPISODES:
            words = f"it must be a whole number from 1 to {MAX_EPISODES}"
            raise ValueError(f"{name} is {number!r}; {words}")
    return Episodes(task, count, dict(parameters or {}), sub_episodes)


@dataclass(frozen=True)
class Phase:
    """A stretch of training or evaluation.

    Attributes:
      number: from 1.
      mode: "train" or "test".
      episodes: what is played, in order; at least one entry.
      learning: whether the agent may learn; never in a test phase.
    """

    number: int
    mode: Mode
    episodes: tuple[Episodes, ...]
    learning: bool


@dataclass(frozen=True)
class Syllabus:
    """A syllabus under construction; `train` and `test` return a longer one.

    Attributes:
      name: short name, used for log directories.
      author: who wrote it.
      default_params: parameters of every episode, unless it sets them itself.
      phases: what has been added so far.
    """

    name: str
    author: str = ""
    default_params: Mapping[str, Value] = field(default_factory=dict)
    phases: tuple[Phase, ...] = ()

    def train(self, *played: Episodes | Iterable[Episodes], learning: bool = True) -> "Syllabus":
        """Append a train phase.

        Args:
          *played: from `episodes`, or iterables of such.
          learning: whether the agent may learn from it.

        Raises:
          ValueError: nothing is played.
        """
        number = self.phases[-1].number + 1 if self.phases else 1
        return self._with(Phase(number, "train", _flat(played), learning))

    def test(self, *played: Episodes | Iterable[Episodes]) -> "Syllabus":
        """Append a test phase, which belongs to the train phase before it.

        Args:
          *played: from `episodes`, or iterables of such.

        Raises:
          ValueError: nothing is played, or there is no train phase yet.
        """
        if not self.phases:
            raise ValueError("a syllabus begins with training; call train() before test()")
        last = self.phases[-1]
        number = last.number + (last.mode == "test")
        return self._with(Phase(number, "test", _flat(played), False))

    def _with(self, phase: Phase) -> "Syllabus":
        if not phase.episodes:
            raise ValueError(f"a {phase.mode} phase needs episodes; pass some")
        return replace(self, phases=(*self.phases, phase))

    def dumps(self) -> str:
        """Return the syllabus as JSON text, instruction by instruction as it was built.

        Raises:
          ValueError: an unknown task or parameter, a refused value, or no phases.
        """
        text = self._text()
        self._read(text)
        return text

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the syllabus to a file, whole or not at all.

        Raises:
          ValueError: as `dumps`.
        """
        write_whole(Path(path), self.dumps())

    def schedule(self) -> Schedule:
        """Return what is played.

        Raises:
          ValueError: as `dumps`.
        """
        return self._read(self._text())

    def _text(self) -> str:
        return document(self.name, self.author, self.default_params, _instructions(self.phases))

    def _read(self, text: str) -> Schedule:
        try:
            return instructions.read(Document(text, self.name), self.name).schedule
        except SyllabusError as error:
            raise ValueError(f"syllabus {self.name!r}: {error.reason}") from error


def _flat(played: Iterable[Episodes | Iterable[Episodes]]) -> tuple[Episodes, ...]:
    """All episodes of some arguments, in order."""
    flat: list[Episodes] = []
    for item in played:
        flat += [item] if isinstance(item, Episodes) else item
    for item in flat:
        if not isinstance(item, Episodes):
            raise ValueError(f"{item!r} is not what episodes() returns; call episodes(task, count)")
    return tuple(flat)


def _instructions(phases: Iterable[Phase]) -> list[dict[str, Any]]:
    """Instructions that say what the phases say."""
    said: list[dict[str, Any]] = []
    for phase in phases:
        opening: dict[str, Any] = {"$phase": f"{phase.number}.{phase.mode}"}
        if phase.mode == "train" and not phase.learning:
            opening["enable_updates"] = False
        played = [
            {"$repeat": episode(e.task, e.parameters.items(), e.sub_episodes), "count": e.count}
            for e in phase.episodes
        ]
        if phase.mode == "test":
            played = [{"$info": {"disable_updates": True}}, *played, {"$info": {}}]
        said += [opening, *played]
    return said


# The four subtypes --------------------------------------------------------------------------------


def continual(
    name: str, task: str, variants: Sequence[Mapping[str, Value]], *, train: int, test: int
) -> Syllabus:
    """Make a CL syllabus: each variant is trained in turn, and all so far are tested after it.

    Args:
      name: of the syllabus.
      task: the one task.
      variants: parameters, at least two.
      train: episodes of each training block.
      test: episodes of each test block.
    """
    _at_least_two("variants", variants)
    known = [(task, values) for values in variants]
    return _in_turn(name, [([one], known[: i + 1]) for i, one in enumerate(known)], train, test)


def interference(name: str, tasks: Tasks, *, train: int, test: int) -> Syllabus:
    """Make an ANT_A syllabus: tasks are trained in turn, and all so far are tested after each.

    Args:
      name: of the syllabus.
      tasks: at least two.
      train: episodes of each training block.
      test: episodes of each test block.
    """
    _at_least_two("tasks", tasks)
    known = [_named(task) for task in tasks]
    return _in_turn(name, [([one], known[: i + 1]) for i, one in enumerate(known)], train, test)


def transfer(name: str, tasks: Tasks, *, train: int, test: int) -> Syllabus:
    """Make an ANT_B syllabus: tasks are trained in turn, and all are tested after each.

    Args:
      name: of the syllabus.
      tasks: at least two, which should share knowledge.
      train: episodes of each training block.
      test: episodes of each test block.
    """
    _at_least_two("tasks", tasks)
    known = [_named(task) for task in tasks]
    return _in_turn(name, [([one], known) for one in known], train, test)


def parametric_transfer(
    name: str,
    tasks: Sequence[str],
    variants: Sequence[Mapping[str, Value]],
    *,
    train: int,
    test: int,
) -> Syllabus:
    """Make an ANT_C syllabus: every variant of a task is trained, then all of all are tested.

    Args:
      name: of the syllabus.
      tasks: at least two.
      variants: parameters that every task has, at least two.
      train: episodes of each training block.
      test: episodes of each test block.
    """
    _at_least_two("tasks", tasks)
    _at_least_two("variants", variants)
    known = [[(task, values) for values in variants] for task in tasks]
    every = [one for group in known for one in group]
    return _in_turn(name, [(group, every) for group in known], train, test)


def _in_turn(
    name: str, turns: Iterable[tuple[Sequence[_Named], Sequence[_Named]]], train: int, test: int
) -> Syllabus:
    """A syllabus that trains and then tests some tasks in each turn."""
    syllabus = Syllabus(name)
    for trained, tested in turns:
        syllabus = syllabus.train(episodes(task, train, values) for task, values in trained)
        syllabus = syllabus.test(episodes(task, test, values) for task, values in tested)
    return syllabus


def _at_least_two(what: str, items: Sequence[object]) -> None:
    if len(items) < 2:
        raise ValueError(f"{what} has {len(items)} entries; it must have at least 2")


def _named(task: str | _Named) -> _Named:
    return (task, {}) if isinstance(task, str) else task
