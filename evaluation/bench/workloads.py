"""Workloads: cells of the novelty catalogue."""

from dataclasses import dataclass
from typing import Literal

from evaluation.difficulties import DIFFICULTIES

MOST_EPISODES = 1 << 24
"""Largest number of episodes of a call."""

Cell = tuple[int, str]

Kind = Literal["rollout", "single", "camera"]


@dataclass(frozen=True)
class Workload:
    """Episodes of some levels, played in parallel.

    Attributes:
      name: in the command's options and its results.
      cells: level and difficulty; each plays an equal share of the episodes.
      syllabus: file name of an example that is played in place of cells.
      one_thread: whether only one thread plays them.
      most: largest number of episodes of a call; of slow levels, more would take minutes.
      divided: whether the simplest environment that has the terms of a cell plays it.
      kind: our program that plays it: whole batches of episodes, one at a time, or the camera,
        which draws their starts.
    """

    name: str
    cells: tuple[Cell, ...] = ()
    syllabus: str = ""
    one_thread: bool = False
    most: int = MOST_EPISODES
    divided: bool = True
    kind: Kind = "rollout"


_EVERY_LEVEL = tuple((level, each) for level in range(200, 208) for each in DIFFICULTIES)

NOMINAL, ONE_THREAD, MIX, FLOOD = "200", "200_one_thread", "mix", "208_hard"
RUN, RUN_ROLLOUT = "run", "run_rollout"
SINGLE, SESSION, GRADER, TA2 = "single", "session", "grader", "ta2"
CAMERA = "camera"

SYLLABUS = "cl_pole_length.json"
LIFETIMES = 2048
"""Number of lifetimes that play the syllabus."""

WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        Workload(NOMINAL, ((200, "easy"),)),
        Workload(ONE_THREAD, ((200, "easy"),), one_thread=True),
        Workload("203_hard", ((203, "hard"),)),
        Workload("206", ((206, "easy"),)),
        Workload(MIX, _EVERY_LEVEL),
        Workload("mix_whole", _EVERY_LEVEL, divided=False),
        Workload("108_hard", ((108, "hard"),), most=8192),
        Workload(FLOOD, ((208, "hard"),), most=8192),
        Workload(RUN, syllabus=SYLLABUS),
        Workload(RUN_ROLLOUT, syllabus=SYLLABUS),
        Workload(SINGLE, ((200, "easy"),), kind="single"),
        Workload(SESSION, ((200, "easy"),), kind="single"),
        Workload(GRADER, ((200, "easy"),), kind="single"),
        Workload(TA2, ((200, "easy"),), kind="single"),
        Workload(CAMERA, ((200, "easy"),), kind="camera"),
    )
}
"""Workloads by name, measured by default in this order; the first one times the first result."""
