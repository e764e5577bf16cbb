"""The levels of an evaluation as a schedule, in the order of its document."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Literal

from evaluation.schedule import Block, Schedule, Variant
from evaluation.sciencebirds.document import Evaluation
from evaluation.sciencebirds.levels import LevelPath


def schedule(evaluation: Evaluation, name: str = "sciencebirds", source: str = "") -> Schedule:
    """Return every set of an evaluation once, in the order of the document.

    A session is opened with this schedule, and the engine of pure agents plays it. The order of a
    served evaluation is another one: it depends on limits and on the agent.

    Args:
      evaluation: the trials.
      name: of the schedule.
      source: of the trials, in words.
    """
    blocks: list[Block] = []
    phase = 0
    for trial in evaluation.trials:
        for level_set in trial.sets:
            phase += 1
            training = level_set is trial.training
            for variant, count in _runs(level_set.levels):
                task, parameters = variant
                mode: Literal["train", "test"] = "train" if training else "test"
                index = len(blocks)
                blocks.append(Block(index, phase, mode, task, parameters, count, training))
    return Schedule(name, tuple(blocks), source)


def _runs(levels: Iterable[LevelPath]) -> Iterator[tuple[Variant, int]]:
    """Runs of levels with the same physics, and their lengths."""
    for variant, run in groupby(levels, key=lambda level: level.variant):
        yield variant, sum(1 for _ in run)
