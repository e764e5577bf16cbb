"""The three reference agents of CartPole3D: `random`, `nothing` and `pd`."""

from typing import Any

import jax
import jax.numpy as jnp

from jaxsim import rng
from jaxsim.agents.base import Agent, Memory, NoveltyPrediction
from jaxsim.worlds.cartpole3d.types import ACTIONS, Observation, Scalar

RATE_GAIN = 0.3  # s, weight of the lean's rate against the lean

Decision = tuple[jax.Array, NoveltyPrediction, Memory]


def _random(memory: Memory, observation: Any, key: jax.Array) -> Decision:
    """Choose uniformly; the bias of the remainder is below 2^-29."""
    action = rng.bits(rng.words(key), 0) % jnp.uint32(len(ACTIONS))
    return action.astype(jnp.int32), NoveltyPrediction.none(), memory


def _nothing(memory: Memory, observation: Any, key: jax.Array) -> Decision:
    return jnp.int32(0), NoveltyPrediction.none(), memory


def lean(observation: Observation) -> tuple[tuple[Scalar, Scalar], tuple[Scalar, Scalar]]:
    """Horizontal parts of the pole's axis and of its rate of change.

    Returns:
      ((lx, ly), (dlx, dly)): no unit and 1/s, world frame.
    """
    x, y, z, w = observation.pole_quaternion
    wx, wy, wz = observation.pole_velocity
    lx, ly, lz = 2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)
    return (lx, ly), (wy * lz - wz * ly, wz * lx - wx * lz)


def push_along(ux: Scalar, uy: Scalar) -> jax.Array:
    """Action code that pushes along the larger of two signed demands; x on a tie."""
    along_x = jnp.abs(ux) >= jnp.abs(uy)
    right_left = jnp.where(ux > 0, 1, jnp.where(ux < 0, 2, 0))
    forward_backward = jnp.where(uy > 0, 3, 4)
    return jnp.where(along_x, right_left, forward_backward).astype(jnp.int32)


def _pd(memory: Memory, observation: Observation, key: jax.Array) -> Decision:
    """Push the cart under the lean and its rate; no position term, no dead band."""
    (lx, ly), (dlx, dly) = lean(observation)
    action = push_along(lx + RATE_GAIN * dlx, ly + RATE_GAIN * dly)
    return action, NoveltyPrediction.none(), memory


random = Agent("random", _random)
nothing = Agent("nothing", _nothing)
pd = Agent("pd", _pd)
