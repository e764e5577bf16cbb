"""The equations of motion, in the order of operations of Gymnasium's CartPole-v1."""

import jax
import jax.numpy as jnp

from jaxsim.worlds.cartpole.types import Motion, Params, Scalar


def accelerations(params: Params, motion: Motion, force: Scalar) -> tuple[Scalar, Scalar]:
    """Accelerations of cart and pole, without friction.

    Args:
      params: physics.
      motion: () leaves.
      force: () N on the cart.

    Returns:
      (linear acceleration of the cart, m/s^2; angular acceleration of the pole, rad/s^2).

    Source: A. G. Barto, R. S. Sutton and C. W. Anderson, 1983, as corrected by R. V. Florian,
    "Correct equations for the dynamics of the cart-pole system", 2007, equations 23 and 24
    without friction; the pole is a uniform rod.
    """
    mass = params.cart_mass + params.pole_mass
    lever = params.pole_mass * params.pole_length
    cos, sin = jnp.cos(motion.angle), jnp.sin(motion.angle)
    push = (force + lever * (motion.rate * motion.rate) * sin) / mass
    reduced = params.pole_length * (4.0 / 3.0 - params.pole_mass * (cos * cos) / mass)
    angular = (params.gravity * sin - cos * push) / reduced
    return push - lever * angular * cos / mass, angular


def move(params: Params, motion: Motion, force: Scalar) -> Motion:
    """Advance by one explicit Euler step: positions move with the old velocities.

    Args:
      params: physics.
      motion: () leaves.
      force: () N on the cart.
    """
    linear, angular = accelerations(params, motion, force)
    return Motion(
        motion.x + params.tau * motion.v,
        motion.v + params.tau * linear,
        motion.angle + params.tau * motion.rate,
        motion.rate + params.tau * angular,
    )


def out_of_bounds(params: Params, motion: Motion) -> jax.Array:
    """Whether the cart left the track or the pole fell, () bool; exactly on a limit is inside."""
    off = jnp.abs(motion.x) > params.position_limit
    return off | (jnp.abs(motion.angle) > params.lean_limit)
