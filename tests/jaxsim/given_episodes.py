"""Episodes of `pd` in given worlds, for tests of what is concluded from them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxsim import agents
from jaxsim.worlds.cartpole3d import Params
from tests.conftest import Lanes

SEED = 5  # of starts


class Reports(NamedTuple):
    """Episodes of `pd`, leaves (W, E, T), with the actions that led to them."""

    observations: Any
    actions: np.ndarray
    real: np.ndarray  # whether an episode is still running


def play_worlds(lanes: Lanes, worlds: Sequence[Sequence[Params]], ticks: int) -> Reports:
    """Play one episode with each of the parameters.

    Args:
      lanes: the shared program, in float32.
      worlds: W x E parameters, as many as there are lanes or fewer.
      ticks: reports of an episode, with its first.
    """
    rows = [params for world in worlds for params in world]
    number = len(rows)
    rows += rows[-1:] * (lanes.width - number)
    params = jax.tree.map(lambda *leaves: np.array(leaves, np.float32), *rows)
    observation, state, *_ = lanes.step(lanes.start(SEED, params), 0, params)
    action = np.zeros(lanes.width, np.int32)
    reports = [(observation, action, ~np.asarray(state.done))]
    for _ in range(ticks - 1):
        running = ~np.asarray(state.done)
        action = np.asarray(agents.get("pd").act((), observation, jax.random.key(0))[0])
        observation, state, *_ = lanes.step(state, action, params)
        reports.append((observation, action, running))

    def by_world(*leaves: Any) -> np.ndarray:
        stacked = np.stack([np.asarray(leaf) for leaf in leaves], axis=1)[:number]
        return stacked.reshape(len(worlds), -1, ticks)

    return Reports(*jax.tree.map(by_world, *reports))
