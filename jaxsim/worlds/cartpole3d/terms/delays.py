"""Pushes that act late and sensors that report late, by whole ticks.

Neither is compiled but with its term: the codes of the last pushes are one word of the state, and
the last readings are kept whole. Before there are as many, nothing was pushed, and the sensors read
the start of the episode.
"""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from jaxsim.worlds.cartpole3d.types import Late, Observation, Params, State

MOST_PUSHES, MOST_READINGS = 8, 3
"""Longest delays, ticks."""

_BITS = 3  # of an action code
_CODE = (1 << _BITS) - 1
_WORD = (1 << _BITS * (MOST_PUSHES + 1)) - 1


def no_pushes(state: State) -> jax.Array:
    """Codes of the last pushes of a state before any."""
    return jnp.zeros_like(state.step)


def due(state: State, action: jax.Array, params: Params) -> tuple[jax.Array, State]:
    """The push that acts now, and the state that remembers the one that was asked for.

    Args:
      state: with `pushes`, leaves () or (L,).
      action: () or (L,) code that an agent asks for.
      params: the delay, `action_delay`.
    """
    assert state.pushes is not None
    # What an agent asks for in the hidden first tick does not count.
    pushes = ((state.pushes << _BITS) | jnp.where(state.step < 0, 0, action)) & _WORD
    late = jnp.asarray(params.action_delay).astype(jnp.int32)
    return (pushes >> (_BITS * late)) & _CODE, replace(state, pushes=pushes)


def same_readings(exact: Observation, state: State, params: Params) -> Late:
    """Readings of a state, as if they had been so for long."""
    return Late(_ticks(params, state.step), (exact,) * (MOST_READINGS + 1))


def read(late: Late, exact: Observation, params: Params) -> Late:
    """Add the readings of a tick."""
    return Late(_ticks(params, late.ticks), (exact, *late.past[:-1]))


def reported(late: Late) -> Observation:
    """What the sensors report now."""

    def chosen(*leaves: Any) -> Any:
        value, *older = leaves
        for age, leaf in enumerate(older, 1):
            ticks = late.ticks
            if jnp.ndim(leaf) > jnp.ndim(ticks):
                # Slots lie behind the lanes outside of a step.
                ticks = ticks[..., None]
            value = jnp.where(ticks == age, leaf, value)
        return value

    return jax.tree.map(chosen, *late.past)


def _ticks(params: Params, like: jax.Array) -> jax.Array:
    late = jnp.asarray(params.sensor_delay).astype(jnp.int32)
    return jnp.broadcast_to(late, jnp.shape(like))
