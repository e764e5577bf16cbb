"""Logs of the 2019 lifelong-learning framework (learnkit).

A run of a syllabus is one directory::

    $L2DATA/logs/<syllabus name>-<milliseconds since 1970>/
        worker-<worker>/<ordinal>-<phase, '.' written as '_'>/<class name>/
            block-report.tsv        one row per block: phase, worker, class_name, block, params
            data-log.tsv            one row per sub-episode

The ordinal numbers the phases of the run from 1. An episode (column ``task``) holds one or more
sub-episodes (``sub_task``), each a reset and the steps that follow. Episode numbers are shared by
all workers of a run. A block is a maximal run of episodes with one class and one set of parameters
inside a phase; the block report has its parameters as JSON text.

The order of the columns of data-log.tsv differs between versions, so they are read by name and
written in the order of 2020. The measure of an agent is the column ``reward``. Classification
learning has columns that start with ``score``, filled where ``source`` is ``GET_LABELS``.
"""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from evaluation.json_types import JsonMapping
from evaluation.logs.cells import Scalar
from evaluation.logs.problems import Problem

DATA_FILE: Final = "data-log.tsv"
REPORT_FILE: Final = "block-report.tsv"
REPORT_COLUMNS: Final = ("phase", "worker", "class_name", "block", "params")
STANDARD_COLUMNS: Final = (
    "timestamp",
    "phase",
    "worker",
    "class_name",
    "block",
    "seed",
    "task",
    "sub_task",
    "steps",
    "termination_status",
    "source",
)
REQUIRED_COLUMNS: Final = ("phase", "worker", "class_name", "block", "task")
LAST_COLUMNS: Final = ("action_space", "observation_space")
"""Extra columns that are written after the measures."""
TERMINATIONS: Final = ("DONE", "NOT_DONE")
SOURCES: Final = ("NEXT", "RESET", "GET_LABELS")
WITH_LABELS: Final = "GET_LABELS"
REWARD: Final = "reward"
DEFAULT_WORKER: Final = "env-0"
PHASE: Final = re.compile(r"([1-9][0-9]{0,8})\.(train|test)")


def is_measure(column: str) -> bool:
    """Whether a column of data-log.tsv is a measure of a learner."""
    return column == REWARD or column.startswith("score")


@dataclass(frozen=True, slots=True)
class LearnkitRow:
    """One sub-episode of a log, or one batch of classification learning.

    Attributes:
      phase: ``<number>.train`` or ``<number>.test``.
      class_name: the task.
      params: parameters of the block; any JSON object.
      block: number of the block in the run, from 0.
      task: number of the episode in the run, from 0.
      measures: a number for ``reward`` or for each column that starts with ``score``. NaN means not
        measured.
      sub_task: number of the sub-episode in its episode, from 0.
      worker: name of the worker.
      seed: of the episode; None if not recorded.
      steps: number of steps; None if not recorded.
      termination_status: ``"DONE"`` for a complete sub-episode, else ``"NOT_DONE"``.
      source: call that logged the row: ``"NEXT"``, ``"RESET"`` or ``"GET_LABELS"``.
      timestamp: local time; None if not recorded.
      extras: extra columns; every row of a log has the same ones.
    """

    phase: str
    class_name: str
    params: JsonMapping
    block: int
    task: int
    measures: Mapping[str, float]
    sub_task: int = 0
    worker: str = DEFAULT_WORKER
    seed: int | None = None
    steps: int | None = None
    termination_status: str = "DONE"
    source: str = "NEXT"
    timestamp: datetime | None = None
    extras: Mapping[str, Scalar] = field(default_factory=dict)


class LearnkitBlock(NamedTuple):
    """A maximal run of episodes with one class and one set of parameters inside a phase.

    Attributes:
      block: its number.
      phase: annotation of the phase, ``<number>.train`` or ``<number>.test``.
      phase_number: from 1.
      phase_type: ``"train"`` or ``"test"``.
      class_name: the task.
      params: its parameters.
    """

    block: int
    phase: str
    phase_number: int
    phase_type: str
    class_name: str
    params: JsonMapping


@dataclass(frozen=True)
class LearnkitLog:
    """A whole log of one run.

    Attributes:
      path: its directory.
      measures: names of the columns that are measures.
      blocks: every block that has rows, in order of number.
      rows: all sub-episodes of all workers, stably sorted by (task, sub_task).
      warnings: the problems that do not make it invalid.
    """

    path: Path
    measures: tuple[str, ...]
    blocks: tuple[LearnkitBlock, ...]
    rows: tuple[LearnkitRow, ...]
    warnings: tuple[Problem, ...]


@functools.lru_cache(maxsize=1024)
def parse_phase(phase: str) -> tuple[int, str] | None:
    """Number and type of a phase annotation; None for another text."""
    match = PHASE.fullmatch(phase)
    return (int(match[1]), match[2]) if match else None
