"""`outlook`: takes the lean with the best outlook, as a baseline for `ppo+leans`."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.agents import Agent, NoveltyPrediction
from jaxsim.agents.leans import LEANS
from jaxsim.lean_actions import Leaned
from jaxsim.pytrees import Tree

UPRIGHT, GAP, ENOUGH, END, SIZE = 3.0, 0.5, 0.1, 0.3, 0.05
"""Weights found by hand on other episodes: of the share of time upright, of the gap, 1/m, up to so
many m, of the lean at the end, 1/rad, and of the size of the lean, 1/rad."""


def _act(
    memory: Tree, observation: Leaned, key: jax.Array
) -> tuple[jax.Array, NoveltyPrediction, Any]:
    ahead, size = observation.outlook, np.hypot(*LEANS.T)
    worth = UPRIGHT * ahead.upright + GAP * jnp.minimum(ahead.gap, ENOUGH)
    best = jnp.argmax(worth - END * ahead.end - SIZE * size)
    return best.astype(jnp.int32), NoveltyPrediction.none(), memory


outlook = Agent("outlook", _act)
