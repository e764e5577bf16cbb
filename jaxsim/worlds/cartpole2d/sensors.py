"""Observations in the form of CartPole3D's sensors."""

import jax
import jax.numpy as jnp

from jaxsim.worlds.cartpole.types import Motion, Scalar
from jaxsim.worlds.cartpole2d.types import Params, State
from jaxsim.worlds.cartpole3d.types import Observation, Vector

RANGES = Motion(x=2.4, v=1.0, angle=6.0, rate=10.0)
"""Half ranges of the bins of level 53, m, m/s, rad and rad/s."""

FAKE_BLOCK_IDS = (0, 1, 2)
FAKE_BLOCK = (1.0, 1.0, 3.0)
"""Position, m, of three blocks at rest that are reported but do not exist."""


def nearest_bin(value: Scalar, half_range: Scalar, bins: Scalar) -> jax.Array:
    """Round to the nearest of equally spaced values.

    Args:
      value: () any unit.
      half_range: () the values start at minus this and end one width short of plus this.
      bins: () number of values; 0 leaves `value` unchanged.

    Returns:
      () the nearest value; the lower one on a tie.
    """
    count = jnp.maximum(bins, 1.0)
    width = 2 * half_range / count
    index = jnp.clip(jnp.ceil((value + half_range) / width - 0.5), 0.0, count - 1)
    return jnp.where(bins > 0, index * width - half_range, value)


def report(params: Params, motion: Motion) -> Motion:
    """Reported motion: the motion itself, or the nearest bins of level 53."""
    return jax.tree.map(lambda a, r: nearest_bin(a, r, params.bins), motion, RANGES)


def observe(state: State) -> Observation:
    """Read the sensors; no value is a tick old."""
    reported = state.reported
    zero, one = jnp.zeros_like(reported.x), jnp.ones_like(reported.x)
    zeros = Vector(zero, zero, zero)
    block = Vector(*(c * one for c in FAKE_BLOCK))
    half = 0.5 * reported.angle
    count = len(FAKE_BLOCK_IDS)
    return Observation(
        cart_position=Vector(reported.x, zero, zero),
        cart_velocity=Vector(reported.v, zero, zero),
        pole_quaternion=(zero, jnp.sin(half), zero, jnp.cos(half)),
        pole_velocity=Vector(zero, reported.rate, zero),
        block_position=(block,) * count,
        block_velocity=(zeros,) * count,
        block_alive=(one > 0,) * count,
    )


def to_vector(observation: Observation) -> jax.Array:
    """Flatten to a vector for learners, without constants.

    Args:
      observation: leaves of any batch shape.

    Returns:
      (..., 4) cart position m and velocity m/s, pole angle rad and angular velocity rad/s.
    """
    o = observation
    _, qy, _, qw = o.pole_quaternion
    angle = 2 * jnp.arctan2(qy, qw)
    parts = (o.cart_position.x, o.cart_velocity.x, angle, o.pole_velocity.y)
    return jnp.stack(jnp.broadcast_arrays(*parts), axis=-1)
