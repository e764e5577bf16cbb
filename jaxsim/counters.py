"""Counters that random keys of a run are folded from, the same in both engines.

A key is the run's seed folded with the number of the lifetime, then with `AGENT` for the agent's
start, or with `EPISODE`, the number of the episode, and one of the other counters. `ACT` and `STEP`
are followed by the tick, from 0 for the hidden first step. Independent episodes (`jaxsim.rollout`)
belong to no lifetime: the seed is folded with the number of the episode at once, and the agent of
each starts from `INIT`.
"""

import jax
import numpy as np

from jaxsim import rng
from jaxsim.inputs import check_whole

AGENT, EPISODE = 0, 1
RESET, BEGIN, ACT, STEP, INIT = range(5)


def root(seed: int) -> rng.Words:
    """Key of a whole run.

    Raises:
      ValueError: a seed that is not from 0 to 2^32 - 1.
    """
    check_whole("seed", seed, 0, 2**32 - 1)
    return rng.Words(*jax.device_put((np.uint32(0), np.uint32(seed))))  # those of its typed key
