"""Settings of a process that plays units, made before NumPy is imported."""

import os
from typing import Final

from evaluation.sweep.plans import Plan

THREADED: Final = ("evaluate",)
"""Base commands whose units are played in threads."""


def prepare(plan: Plan) -> None:
    """Limit NumPy's matrix products to one thread if units are played in threads.

    More threads would only wait for each other: the metrics of cells of 1,024 episodes took 7.4
    microseconds of the processor an episode with two threads and 4.2 with one, on two cores.
    """
    if plan.base in THREADED:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
