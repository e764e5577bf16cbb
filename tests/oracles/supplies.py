"""Blocks that appear in recorded episodes, as the original draws them.

On the device such blocks are drawn from the keys of the ticks. To play an episode of the original,
they come from its own streams instead: all of them in advance at level 208, and at level 108, where
it depends on the cart how many numbers are drawn, by the rule that the device follows.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim.worlds.cartpole3d import State, generate
from jaxsim.worlds.cartpole3d.blocks.slots import inward, outward
from jaxsim.worlds.cartpole3d.blocks.spawn import add_block, place_ahead
from jaxsim.worlds.cartpole3d.types import Vector

MOST_SPAWNS, MOST_DRAWS = 201, 3000  # of one episode


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Supplies:
    """What the original draws for the blocks that appear in some episodes."""

    ahead: Any  # (L,) bool, whether they appear where the cart heads
    period: Any  # (L,) ticks
    positions: Any  # (L, S, 3) m, where they appear if not ahead
    velocities: Any  # (L, S, 3) m/s
    distances: Any  # (L, D) shares of the largest distance ahead, one after the other

    @classmethod
    def of(cls, level: int, difficulty: str, seeds: Iterable[int]) -> "Supplies":
        """Draw them for the episodes of some seeds."""
        _, params = jaxsim.make("CartPole3D-v0", level=level, difficulty=difficulty)
        ahead, period = bool(params.spawn_ahead), int(params.spawn_period)
        lanes = []
        for seed in map(int, seeds):
            p, v = np.zeros((MOST_SPAWNS, 3)), np.zeros((MOST_SPAWNS, 3))
            if not ahead:
                p, v = generate.wsu_spawns(seed, difficulty, MOST_SPAWNS)
            lanes.append(cls(ahead, period, p, v, generate.wsu_distances(seed, MOST_DRAWS)))
        return jax.tree.map(lambda *leaves: np.stack(leaves), *lanes)


def supplied(state: State, supplies: Supplies, tick: Any, used: Any = 0) -> Any:
    """Add the blocks that are due in a tick, from what the original draws.

    Args:
      state: before the tick.
      supplies: of its lanes.
      tick: 1 for the hidden tick.
      used: (L,) distances already drawn; if it is 0 only the state is returned.
    """
    state = inward(state)
    lanes = jnp.arange(state.step.shape[0])
    dtype = state.pose.x.dtype
    due = (tick % supplies.period == 0) & ~state.done
    index = jnp.maximum(tick // jnp.asarray(supplies.period) - 1, 0)

    def of_lane(table: Any) -> Vector:
        return Vector(*jnp.asarray(table, dtype)[lanes, index].T)

    distances = jnp.asarray(supplies.distances, dtype)
    p, placed, count = place_ahead(state, lambda attempt: distances[lanes, used + attempt])
    ahead = jnp.asarray(supplies.ahead)
    place, speed = of_lane(supplies.positions), of_lane(supplies.velocities)
    p = Vector(*(jnp.where(ahead, a, b) for a, b in zip(p, place, strict=True)))
    after = outward(add_block(state, p, speed, due, placed | ~ahead))
    if isinstance(used, int):
        return after
    return after, used + jnp.where(due, count, 0)
