"""The reference agents of CartPole3D: `random`, `nothing`, `pd` and `greedy`."""

from functools import partial

import jax
import jax.numpy as jnp

from jaxsim import rng
from jaxsim.agents.base import Agent, Memory, NoveltyPrediction, check_pushes
from jaxsim.pytrees import Tree
from jaxsim.worlds.cartpole3d.types import ACTIONS, DT, Observation, Scalar

RATE_GAIN = 0.3  # s, weight of the lean's rate against the lean

# The upright pole of level 200, linearised; measured in the original.
FALL = 9.861  # 1/s^2, angular acceleration of the pole by its angle
PUSH = 10.0  # N, the push that `greedy` assumes
TURN = 0.9148  # rad/s^2 by N, angular acceleration of the pole by a force on the cart
PUSHES = (
    ("left", -PUSH, 0.0),
    ("right", PUSH, 0.0),
    ("forward", 0.0, PUSH),
    ("backward", 0.0, -PUSH),
    ("nothing", 0.0, 0.0),
)
"""Actions and their forces, N; the first of equal ones wins."""
CODED_PUSHES = tuple((ACTIONS.index(name), (fx, fy)) for name, fx, fy in PUSHES)
"""Forces of `PUSHES` by action code."""

Decision = tuple[jax.Array, NoveltyPrediction, Memory]


def _random(actions: int, memory: Memory, observation: Tree, key: jax.Array) -> Decision:
    """Choose uniformly; the bias of the remainder is below 2^-29 for so few actions."""
    action = rng.bits(rng.words(key), 0) % jnp.uint32(actions)
    return action.astype(jnp.int32), NoveltyPrediction.none(), memory


def _nothing(memory: Memory, observation: Tree, key: jax.Array) -> Decision:
    return jnp.int32(0), NoveltyPrediction.none(), memory


def lean(observation: Observation) -> tuple[tuple[Scalar, Scalar], tuple[Scalar, Scalar]]:
    """Horizontal parts of the pole's axis and of its rate of change.

    Returns:
      ((lx, ly), (dlx, dly)): no unit and 1/s, world frame.
    """
    check_pushes(observation)
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


def roll_pitch(observation: Observation) -> tuple[jax.Array, jax.Array]:
    """Roll and pitch of the pole, rad, as in the end test of the original.

    Roll is positive when the pole leans to -y, pitch when it leans to +x.
    """
    check_pushes(observation)
    x, y, z, w = observation.pole_quaternion
    roll = jnp.arctan2(2 * (y * z + w * x), w * w - x * x - y * y + z * z)
    # Rounding may carry the sine of an upended pole past 1.
    return roll, jnp.arcsin(jnp.clip(2 * (w * y - x * z), -1.0, 1.0))


def after_push(
    observation: Observation, roll: Scalar, pitch: Scalar, fx: float, fy: float
) -> tuple[Scalar, Scalar]:
    """Roll and pitch, rad, one tick later, for a push on the cart, N."""
    rate = observation.pole_velocity
    rolled = roll + DT * (rate.x + DT * (FALL * roll + TURN * fy))
    return rolled, pitch + DT * (rate.y + DT * (FALL * pitch - TURN * fx))


def _greedy(memory: Memory, observation: Observation, key: jax.Array) -> Decision:
    """Look one tick ahead and choose the push that leaves the least roll^2 + pitch^2.

    It is the pre-novelty controller of the UCCS agent with the linearised pole in place of its
    simulator; their actions were equal in 99.0 % of 2,059 ticks of level 200.
    """
    roll, pitch = roll_pitch(observation)
    best = jnp.full_like(roll, jnp.inf)
    action = jnp.zeros(roll.shape, jnp.int32)
    for code, (fx, fy) in CODED_PUSHES:
        rolled, pitched = after_push(observation, roll, pitch, fx, fy)
        cost = rolled * rolled + pitched * pitched
        action = jnp.where(cost < best, code, action)
        best = jnp.minimum(cost, best)
    return action, NoveltyPrediction.none(), memory


def among(actions: int) -> Agent:
    """The agent `random` of environments with another number of actions."""
    return Agent("random", partial(_random, actions))


random = among(len(ACTIONS))
nothing = Agent("nothing", _nothing)
pd = Agent("pd", _pd)
greedy = Agent("greedy", _greedy)
