"""Syllabi built in Python.

    from evaluation.l2m import Syllabus, episodes

    lengths = (0.5, 1.0, 2.0)
    syllabus = Syllabus("longer poles")
    for length in lengths:
        syllabus = syllabus.train(episodes("CartPole3D", 30, {"pole/length": length}))
        syllabus = syllabus.test(episodes("CartPole3D", 15, {"pole/length": n}) for n in lengths)
    syllabus.write("longer_poles.json")

A `Syllabus` is immutable: `train` and `test` return a longer one. Phases are numbered
automatically. `continual`, `interference`, `transfer` and `parametric_transfer` make the four
subtypes in the form of the framework document's examples.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from evaluation.files import write_whole
from evaluation.json_types import JsonObject
from evaluation.l2m import instructions
from evaluation.l2m.document import Document, SyllabusError
from evaluation.l2m.instructions import MAX_EPISODES
from evaluation.l2m.writer import document, episode
from evaluation.schedule import Mode, Schedule, Value
from jaxsim.inputs import check_whole

_Pair = tuple[str, Mapping[str, Value]]

Tasks = Sequence[str | _Pair]
"""Tasks by name, or by name and parameters of all their episodes."""


@dataclass(frozen=True)
class TaskEpisodes:
    """Episodes of one task with one set of parameters; see `episodes`."""

    task: str
    count: int
    parameters: Mapping[str, Value]
    sub_episodes: int = 1


def episodes(
    task: str, count: int, parameters: Mapping[str, Value] | None = None, sub_episodes: int = 1
) -> TaskEpisodes:
    """Describe episodes to play.

    Args:
      task: name of a task, as `jaxsim tasks` lists them.
      count: number of episodes, from 1.
      parameters: by path, for example `{"pole/length": 2.0}`; the rest have the task's defaults.
      sub_episodes: number of sub-episodes of each episode, from 1: resets with the steps that
        follow.

    Raises:
      ValueError: a count is not a whole number from 1. Task and parameters are checked when the
        syllabus is converted to a schedule.
    """
    for name, number in (("count", count), ("sub_episodes", sub_episodes)):
        check_whole(name, number, 1, MAX_EPISODES)
    return TaskEpisodes(task, int(count), dict(parameters or {}), int(sub_episodes))


@dataclass(frozen=True)
class SyllabusPhase:
    """A phase of training or evaluation.

    Attributes:
      number: from 1.
      mode: "train" or "test".
      episodes: episodes in played order; at least one entry.
      learning: whether the agent may learn; never in a test phase.
    """

    number: int
    mode: Mode
    episodes: tuple[TaskEpisodes, ...]
    learning: bool


@dataclass(frozen=True)
class Syllabus:
    """A syllabus under construction; `train` and `test` return a longer one.

    Attributes:
      name: short name, used for log directories.
      author: who wrote it.
      default_params: parameters of every episode that does not set them itself.
      phases: the phases so far.
    """

    name: str
    author: str = ""
    default_params: Mapping[str, Value] = field(default_factory=dict)
    phases: tuple[SyllabusPhase, ...] = ()

    def train(
        self, *items: TaskEpisodes | Iterable[TaskEpisodes], learning: bool = True
    ) -> "Syllabus":
        """Append a train phase.

        Args:
          *items: from `episodes`, or iterables of them.
          learning: whether the agent may learn in it.

        Raises:
          ValueError: there are no episodes.
        """
        number = self.phases[-1].number + 1 if self.phases else 1
        return self._with(SyllabusPhase(number, "train", _flat(items), learning))

    def test(self, *items: TaskEpisodes | Iterable[TaskEpisodes]) -> "Syllabus":
        """Append a test phase of the train phase before it.

        Args:
          *items: from `episodes`, or iterables of them.

        Raises:
          ValueError: there are no episodes, or there is no train phase yet.
        """
        if not self.phases:
            raise ValueError("a syllabus begins with training; call train() before test()")
        last = self.phases[-1]
        number = last.number + (last.mode == "test")
        return self._with(SyllabusPhase(number, "test", _flat(items), False))

    def _with(self, phase: SyllabusPhase) -> "Syllabus":
        if not phase.episodes:
            raise ValueError(f"a {phase.mode} phase needs episodes; pass some")
        return replace(self, phases=(*self.phases, phase))

    def dumps(self) -> str:
        """Return the syllabus as JSON text, with the instructions in built order.

        Raises:
          ValueError: an unknown task or parameter, an invalid value, or no phases.
        """
        text = self._text()
        self._read(text)
        return text

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the syllabus to a file, completely or not at all.

        Raises:
          ValueError: as `dumps`.
        """
        write_whole(Path(path), self.dumps())

    def schedule(self) -> Schedule:
        """Return the syllabus as a schedule.

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


def _flat(items: Iterable[TaskEpisodes | Iterable[TaskEpisodes]]) -> tuple[TaskEpisodes, ...]:
    """Flatten episodes and iterables of episodes, in order."""
    flat: list[TaskEpisodes] = []
    for item in items:
        flat += [item] if isinstance(item, TaskEpisodes) else item
    for item in flat:
        if not isinstance(item, TaskEpisodes):
            raise ValueError(f"{item!r} is not what episodes() returns; call episodes(task, count)")
    return tuple(flat)


def _instructions(phases: Iterable[SyllabusPhase]) -> list[JsonObject]:
    """The phases as instructions of a syllabus."""
    entries: list[JsonObject] = []
    for phase in phases:
        opening: JsonObject = {"$phase": f"{phase.number}.{phase.mode}"}
        if phase.mode == "train" and not phase.learning:
            opening["enable_updates"] = False
        repeats = [
            {"$repeat": episode(e.task, e.parameters.items(), e.sub_episodes), "count": e.count}
            for e in phase.episodes
        ]
        if phase.mode == "test":
            repeats = [{"$info": {"disable_updates": True}}, *repeats, {"$info": {}}]
        entries += [opening, *repeats]
    return entries


# The four subtypes --------------------------------------------------------------------------------


def continual(
    name: str, task: str, variants: Sequence[Mapping[str, Value]], *, train: int, test: int
) -> Syllabus:
    """Make a CL syllabus: variants are trained in turn, and all so far are tested after each.

    Args:
      name: of the syllabus.
      task: the one task.
      variants: parameters, at least two.
      train: episodes of each training block.
      test: episodes of each test block.
    """
    _at_least_two("variants", variants)
    pairs = [(task, values) for values in variants]
    return _in_turn(name, [([one], pairs[: i + 1]) for i, one in enumerate(pairs)], train, test)


def interference(name: str, tasks: Tasks, *, train: int, test: int) -> Syllabus:
    """Make an ANT_A syllabus: tasks are trained in turn, and all so far are tested after each.

    Args:
      name: of the syllabus.
      tasks: at least two.
      train: episodes of each training block.
      test: episodes of each test block.
    """
    _at_least_two("tasks", tasks)
    pairs = [_with_parameters(task) for task in tasks]
    return _in_turn(name, [([one], pairs[: i + 1]) for i, one in enumerate(pairs)], train, test)


def transfer(name: str, tasks: Tasks, *, train: int, test: int) -> Syllabus:
    """Make an ANT_B syllabus: tasks are trained in turn, and all are tested after each.

    Args:
      name: of the syllabus.
      tasks: at least two; they should share knowledge.
      train: episodes of each training block.
      test: episodes of each test block.
    """
    _at_least_two("tasks", tasks)
    pairs = [_with_parameters(task) for task in tasks]
    return _in_turn(name, [([one], pairs) for one in pairs], train, test)


def parametric_transfer(
    name: str,
    tasks: Sequence[str],
    variants: Sequence[Mapping[str, Value]],
    *,
    train: int,
    test: int,
) -> Syllabus:
    """Make an ANT_C syllabus: all variants of a task are trained, then those of all tasks tested.

    Args:
      name: of the syllabus.
      tasks: at least two.
      variants: parameters that every task has, at least two.
      train: episodes of each training block.
      test: episodes of each test block.
    """
    _at_least_two("tasks", tasks)
    _at_least_two("variants", variants)
    groups = [[(task, values) for values in variants] for task in tasks]
    pairs = [pair for group in groups for pair in group]
    return _in_turn(name, [(group, pairs) for group in groups], train, test)


def _in_turn(
    name: str, turns: Iterable[tuple[Sequence[_Pair], Sequence[_Pair]]], train: int, test: int
) -> Syllabus:
    """A syllabus that in each turn trains some tasks and then tests some."""
    syllabus = Syllabus(name)
    for trained, tested in turns:
        syllabus = syllabus.train(episodes(task, train, values) for task, values in trained)
        syllabus = syllabus.test(episodes(task, test, values) for task, values in tested)
    return syllabus


def _at_least_two(argument: str, items: Sequence[object]) -> None:
    if len(items) < 2:
        raise ValueError(f"{argument} has {len(items)} entries; it must have at least 2")


def _with_parameters(task: str | _Pair) -> _Pair:
    return (task, {}) if isinstance(task, str) else task
