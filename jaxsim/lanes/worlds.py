"""The environments of a program with their tables of parameters."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

from jaxsim import counters, rng
from jaxsim.lanes.state import where
from jaxsim.lanes.work import is_scored, scores_by_length
from jaxsim.pytrees import Leaf, Observation, Params, State

T = TypeVar("T")

Varying = list[jax.Array]
"""Leaves of the parameters of lanes that differ between rows of the table."""


class Worlds:
    """Environments, each with a table of parameters; leaves () where rows agree, else (V,)."""

    def __init__(self, works: Sequence[Any], tables: Sequence[Params]) -> None:
        self.works, self.tables = tuple(works), tuple(tables)

    @cached_property
    def scored(self) -> bool:
        """Whether rewards and performances follow from the numbers of steps in all of them."""
        return all(map(is_scored, self.works))

    @cached_property
    def max_steps(self) -> int:
        """Most steps of an episode."""
        return max(work.max_steps for work in self.works)

    def varying(self, row: jax.Array) -> tuple[Varying, ...]:
        """For each environment, the parameters in a row, (L,), that differ between rows."""

        def of(table: Params) -> Varying:
            leaves = [jnp.asarray(leaf) for leaf in jax.tree.leaves(table)]
            return [leaf.at[row].get(mode="clip") for leaf in leaves if leaf.ndim]

        return tuple(map(of, self.tables))

    def params(self, world: int, varying: Varying) -> Params:
        """Parameters of an environment: those that differ, and those that all lanes share."""
        leaves, structure = jax.tree.flatten(self.tables[world])
        by_lane = iter(varying)
        return jax.tree.unflatten(
            structure, [next(by_lane) if jnp.ndim(leaf) else leaf for leaf in leaves]
        )

    def started(self, world: int, key: rng.Words, varying: Varying) -> State:
        """Draw the carried parts of states before the hidden first step."""
        start_key = rng.to_key(rng.fold(key, counters.RESET))
        work = self.works[world]
        return work.carried(work.start(start_key, self.params(world, varying)))

    def adopted(
        self,
        world: int,
        drawn_starts: State,
        use: jax.Array,
        start: State,
        key: rng.Words,
        varying: Varying,
    ) -> State:
        """Replace drawn starts by given ones, if the environment adopts starts.

        Args:
          world: index of the environment.
          drawn_starts: from `started`, leaves (L, ...).
          use: (L,) bool, mask where `start` replaces them.
          start: states before the hidden first step, leaves (L, ...).
          key: of the episodes.
          varying: parameters of the lanes.
        """
        work = self.works[world]
        if not hasattr(work, "adopt"):
            return drawn_starts
        reset_key = rng.to_key(rng.fold(key, counters.RESET))
        state = work.adopt(start, reset_key, self.params(world, varying))
        return where(use, work.carried(state), drawn_starts)

    def observed(self, states: Sequence[State], length: jax.Array, world: Leaf) -> Observation:
        """Return the observation of every lane by its environment."""
        pairs = zip(self.works, states, strict=True)
        return of_lanes(world, [work.observe(work.resumed(state, length)) for work, state in pairs])

    def totals(self, world: Leaf, length: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Sum of rewards and performance of episodes by length; for scored environments."""
        tables = [jax.tree.map(jnp.asarray, scores_by_length(work)) for work in self.works]
        scores = [(reward[length], performance[length]) for reward, performance in tables]
        reward, performance = of_lanes(world, scores)
        return reward, performance

    def step_rewards(self, world: Leaf, number: jax.Array) -> jax.Array:
        """Rewards of steps by their numbers, (L, ...); for scored environments."""
        rewards = [work.step_reward(number) for work in self.works]
        by_lane: jax.Array = of_lanes(world, rewards)
        return by_lane.astype(jnp.float32)


def of_lanes(world: Leaf, values: Sequence[T]) -> T:
    """Select for every lane the value of its environment.

    Args:
      world: (L,) int32, index of the environment of each lane.
      values: one for each environment, leaves (L, ...).
    """
    result = values[0]
    for index, value in enumerate(values[1:], start=1):
        result = where(world == index, value, result)
    return result
