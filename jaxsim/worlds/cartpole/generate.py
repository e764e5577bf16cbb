"""Start states, drawn on the device."""

import jax
import jax.numpy as jnp

from jaxsim import rng
from jaxsim.worlds.cartpole.types import Config, Motion, Params, State


def draw(key: jax.Array, params: Params, config: Config) -> State:
    """Draw the state before the hidden first step, which leaves it unchanged.

    Args:
      key: () or (L,) typed key of the episode.
      params: physics; leaves that broadcast with the key.
      config: precision.
    """
    k = rng.words(key)
    dtype = jnp.dtype(config.dtype)
    spread = params.start_spread
    motion = Motion(*(rng.uniform(k, slot, -1.0, 1.0, dtype) * spread for slot in range(4)))
    return initial(motion)


def initial(motion: Motion) -> State:
    """State before the hidden first step that starts an episode at a given motion."""
    step = jnp.full(jnp.shape(motion.x), -1, jnp.int32)
    return State(motion, step, step >= 0)
