"""What is played: cells of the novelty catalogue."""

from dataclasses import dataclass
from typing import Literal

DIFFICULTIES = ("easy", "medium", "hard")

MOST_EPISODES = 1 << 24
"""Of one call."""

Cell = tuple[int, str]

Kind = Literal["rollout", "single", "camera"]


@dataclass(frozen=True)
class Workload:
    """Episodes of some levels, side by side.

    Attributes:
      name: in the command's options and its results.
      cells: level and difficulty; each plays an equal share of the episodes.
      one_device: whether only one of the devices plays them.
      most: episodes of a call at most; where a step takes long, more of them would take minutes.
      kind: which of our programs plays it: whole batches of episodes, one at a time, or the camera,
        which draws their starts.
    """

    name: str
    cells: tuple[Cell, ...]
    one_device: bool = False
    most: int = MOST_EPISODES
    kind: Kind = "rollout"


NOMINAL, ONE_DEVICE, MIX, FLOOD = "200", "200_one_device", "mix", "208_hard"
SINGLE, SESSION, GRADER, TA2 = "single", "session", "grader", "ta2"
CAMERA = "camera"

WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        Workload(NOMINAL, ((200, "easy"),)),
        Workload(ONE_DEVICE, ((200, "easy"),), one_device=True),
        Workload("203_hard", ((203, "hard"),)),
        Workload("206", ((206, "easy"),)),
        Workload(MIX, tuple((level, d) for level in range(200, 208) for d in DIFFICULTIES)),
        Workload("108_hard", ((108, "hard"),), most=8192),
        Workload(FLOOD, ((208, "hard"),), most=8192),
        Workload(SINGLE, ((200, "easy"),), kind="single"),
        Workload(SESSION, ((200, "easy"),), kind="single"),
        Workload(GRADER, ((200, "easy"),), kind="single"),
        Workload(TA2, ((200, "easy"),), kind="single"),
        Workload(CAMERA, ((200, "easy"),), kind="camera"),
    )
}
"""What is measured by default, in this order; the first is what a first result is timed with."""
