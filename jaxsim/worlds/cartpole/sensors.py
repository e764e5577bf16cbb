"""Sensors without errors: the observation is the motion."""

import jax
import jax.numpy as jnp

from jaxsim.worlds.cartpole.types import Observation, State


def observe(state: State) -> Observation:
    """Read the sensors."""
    return state.motion


def to_vector(observation: Observation) -> jax.Array:
    """Flatten to a vector for learners.

    Args:
      observation: leaves of any batch shape.

    Returns:
      (..., 4) position m, velocity m/s, angle rad, angular velocity rad/s, Gymnasium's order.
    """
    o = observation
    return jnp.stack(jnp.broadcast_arrays(o.x, o.v, o.angle, o.rate), axis=-1)
