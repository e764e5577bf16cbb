"""One episode in every lane, all lanes in the same step: a plain loop beside the engine of lanes.

Studies that sweep over controllers or parameters use it; protocols are played by `jaxsim.lanes`.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from jaxsim import counters, rng
from jaxsim.agents import Agent, NoveltyPrediction
from jaxsim.lanes.state import where
from jaxsim.pytrees import Params, Tree


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class LockstepTotals:
    """Totals of one episode; leaves (L,)."""

    reward: jax.Array
    performance: jax.Array
    length: jax.Array  # int32
    terminated: jax.Array  # bool
    complete: jax.Array  # bool
    prediction: NoveltyPrediction


def play_episode(
    agent: Agent, env: Any, params: Params, key: rng.Words, active: jax.Array, memory: Tree
) -> tuple[Any, LockstepTotals]:
    """Play one episode in every lane until the last active one is over.

    Args:
      agent: pure agent for one lane.
      env: environment; see `jaxsim.env`.
      params: physics; scalar leaves, or (L,).
      key: (L,) counter keys of the episodes.
      active: (L,) bool; other lanes are padding.
      memory: agent memories, leaves (L, ...).

    Returns:
      (memory, outcome), leaves (L, ...); each lane's memory is that of the end of its episode.
    """
    state = env.start(rng.to_key(rng.fold(key, counters.RESET)), params)
    memory = jax.vmap(agent.begin)(memory, rng.to_key(rng.fold(key, counters.BEGIN)))

    def step(carry: Tree) -> Tree:
        tick, over, observation, state, memory, outcome = carry
        act_key = rng.to_key(rng.fold(key, counters.ACT, tick))
        action, prediction, new_memory = jax.vmap(agent.act)(memory, observation, act_key)
        step_key = rng.to_key(rng.fold(key, counters.STEP, tick))
        observation, state, reward, terminated, truncated, info = env.step(
            step_key, state, action, params
        )
        after = LockstepTotals(
            outcome.reward + reward,
            info["performance"],
            outcome.length + 1,
            terminated,
            ~info["nonfinite"],
            prediction,
        )
        # The hidden first step ignores the agent's action.
        idle = over | (tick == 0)
        memory = where(idle, memory, new_memory)
        after = where(idle, outcome, after)
        return tick + 1, over | terminated | truncated, observation, state, memory, after

    def unfinished(carry: Tree) -> jax.Array:
        return jnp.any(~carry[1])

    carry: Tree = jnp.uint32(0), ~active, env.observe(state), state, memory, _nothing_yet(active)
    *_, memory, outcome = jax.lax.while_loop(unfinished, step, carry)
    return memory, outcome


def _nothing_yet(active: jax.Array) -> LockstepTotals:
    """Totals before the first step."""
    zero, count = jnp.zeros(active.shape), jnp.zeros(active.shape, jnp.int32)
    prediction = jax.tree.map(
        lambda leaf: jnp.broadcast_to(leaf, active.shape), NoveltyPrediction.none()
    )
    return LockstepTotals(zero, zero, count, ~active, jnp.ones_like(active), prediction)
