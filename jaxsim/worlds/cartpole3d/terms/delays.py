"""Delays of pushes and sensors, in whole ticks.

Each is compiled only with its term. The codes of the last pushes are one word of the state; the
last readings are stored whole. At the start of an episode, earlier pushes count as "nothing", and
earlier readings equal the first one.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp

from jaxsim.pytrees import Leaf
from jaxsim.worlds.cartpole3d.types import Late, Observation, Params, State

MOST_PUSHES, MOST_READINGS = 8, 3
"""Longest delays, ticks."""

_BITS = 3  # of an action code
_CODE = (1 << _BITS) - 1
_WORD = (1 << _BITS * (MOST_PUSHES + 1)) - 1


def no_pushes(state: State) -> jax.Array:
    """Codes of the last pushes of a new state: none."""
    return jnp.zeros_like(state.step)


def due(state: State, action: jax.Array, params: Params) -> tuple[jax.Array, State]:
    """The push that acts now, and the state that stores the new one.

    Args:
      state: with `pushes`, leaves () or (L,).
      action: () or (L,) code of the agent's action.
      params: the delay, `action_delay`.
    """
    assert state.pushes is not None
    # The action of the hidden first tick is ignored.
    pushes = ((state.pushes << _BITS) | jnp.where(state.step < 0, 0, action)) & _WORD
    delay = jnp.asarray(params.action_delay).astype(jnp.int32)
    return (pushes >> (_BITS * delay)) & _CODE, replace(state, pushes=pushes)


def last(state: State) -> jax.Array:
    """Codes of the last actions of one lane, (8,) int32, the newest first; 0 without delays."""
    word = jnp.int32(0) if state.pushes is None else state.pushes
    return (word >> (_BITS * jnp.arange(MOST_PUSHES))) & _CODE


def same_readings(exact: Observation, state: State, params: Params) -> Late:
    """Readings of a state, repeated for all earlier ticks."""
    return Late(_ticks(params, state.step), (exact,) * (MOST_READINGS + 1))


def read(late: Late, exact: Observation, params: Params) -> Late:
    """Add the readings of a tick."""
    return Late(_ticks(params, late.ticks), (exact, *late.past[:-1]))


def reported(late: Late) -> Observation:
    """Readings that the sensors report now."""

    def chosen(*leaves: Leaf) -> Leaf:
        value, *older = leaves
        for age, leaf in enumerate(older, 1):
            ticks = late.ticks
            if jnp.ndim(leaf) > jnp.ndim(ticks):
                # Outside of a step, slots come after the lanes.
                ticks = ticks[..., None]
            value = jnp.where(ticks == age, leaf, value)
        return value

    return jax.tree.map(chosen, *late.past)


def _ticks(params: Params, like: jax.Array) -> jax.Array:
    delay = jnp.asarray(params.sensor_delay).astype(jnp.int32)
    return jnp.broadcast_to(delay, jnp.shape(like))
