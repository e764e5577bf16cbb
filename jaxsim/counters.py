"""What the randomness of a run is for: the counters below its seed, the same in both engines.

The key of anything is the run's seed folded with the number of the lifetime, then `AGENT` for the
agent's own start or `EPISODE` and the number of the episode, and below an episode one of the
others; `ACT` and `STEP` are followed by the tick, from 0 for the hidden first step. Episodes that
have nothing to do with one another (`jaxsim.rollout`) belong to no lifetime: the seed is folded
with the number of the episode at once, and each has an agent that starts from `INIT`.
"""

import jax
import numpy as np

from jaxsim import rng

AGENT, EPISODE = 0, 1
RESET, BEGIN, ACT, STEP, INIT = range(5)


def root(seed: int) -> rng.Words:
    """Key of a whole run.

    Raises:
      ValueError: a seed that is not from 0 to 2^32 - 1.
    """
    if not 0 <= seed < 2**32:
        raise ValueError(f"seed is {seed}; it must be from 0 to {2**32 - 1}")
    return rng.Words(*jax.device_put((np.uint32(0), np.uint32(seed))))  # those of its typed key
