"""A cart on a rail and a pole on its hinge: two coordinates, solved in closed form."""

import jax
import jax.numpy as jnp

from jaxsim.worlds.cartpole.types import Motion, Scalar
from jaxsim.worlds.cartpole2d.types import DT, ZONES, Params

MAX_SPEED = 100.0  # m/s and rad/s, the original's limit on every velocity
POLE_WIDTH = 0.06  # m, of the pole's square section
MARGIN = 0.006  # m, added to each length by the original's bounding box
TWELFTH = 0.08333333  # the original's 1/12, cut after eight digits


def pole_inertia(params: Params) -> jax.Array:
    """Inertia of the pole about its centre of mass, kg m^2, ().

    The cut of 1/12 matters: an upright pole amplifies its error of 4e-8 a millionfold in 220 ticks.
    """
    along, across = params.pole_length + MARGIN, POLE_WIDTH + MARGIN
    return jnp.asarray(params.pole_mass * TWELFTH * (along * along + across * across))


def drag_at(x: Scalar, zone_drag: tuple[Scalar, ...]) -> Scalar:
    """Drag coefficient at the cart; the outermost zones extend without end.

    Args:
      x: () m, cart.
      zone_drag: coefficient of each of `ZONES`, () each.
    """
    zone = jnp.trunc(x)
    coefficient = zone_drag[0]
    for whole, drag in zip(ZONES[1:], zone_drag[1:], strict=True):
        coefficient = jnp.where(zone >= whole, drag, coefficient)
    return coefficient


def _drag_forces(
    params: Params, motion: Motion, drag: Scalar, cos: Scalar, sin: Scalar
) -> tuple[Scalar, Scalar]:
    """Generalized forces of -m u (c + c |u|) on the centres of cart and pole, (N, N m)."""
    arm = 0.5 * params.pole_length
    ux, uz = motion.v + arm * cos * motion.rate, -arm * sin * motion.rate
    on_cart = -params.cart_mass * motion.v * (drag + drag * jnp.abs(motion.v))
    factor = -params.pole_mass * (drag + drag * jnp.sqrt(ux * ux + uz * uz))
    return on_cart + factor * ux, arm * (cos * factor * ux - sin * factor * uz)


def accelerations(
    params: Params, motion: Motion, force: Scalar, drag: Scalar
) -> tuple[Scalar, Scalar]:
    """Accelerations of cart and pole.

    Solves M a = r with M = [[mc + mp, mp l cos], [mp l cos, I + mp l^2]], where l is half of the
    pole.

    Args:
      params: physics.
      motion: () leaves.
      force: () N on the cart.
      drag: () coefficient at the cart's place.

    Returns:
      (linear acceleration of the cart, m/s^2; angular acceleration of the pole, rad/s^2).

    Source: Lagrange's equations of a cart with a hinged rigid pole.
    """
    cos, sin = jnp.cos(motion.angle), jnp.sin(motion.angle)
    lever = params.pole_mass * (0.5 * params.pole_length)
    along, turning = _drag_forces(params, motion, drag, cos, sin)
    r0 = force + lever * motion.rate * motion.rate * sin + along
    r1 = params.gravity * lever * sin + turning
    m00, m01 = params.cart_mass + params.pole_mass, lever * cos
    m11 = pole_inertia(params) + lever * (0.5 * params.pole_length)
    determinant = m00 * m11 - m01 * m01
    return (m11 * r0 - m01 * r1) / determinant, (m00 * r1 - m01 * r0) / determinant


def move(params: Params, motion: Motion, push: Scalar, zone_drag: tuple[Scalar, ...]) -> Motion:
    """Advance by one semi-implicit tick: positions move with the new velocities.

    Args:
      params: physics.
      motion: () leaves.
      push: () N on the cart, from the action.
      zone_drag: coefficient of each of `ZONES`, () each.
    """
    force = push + params.side_push * jnp.sign(motion.x)
    drag = drag_at(motion.x, zone_drag)
    linear, angular = accelerations(params, motion, force, drag)
    v = jnp.clip(motion.v + DT * linear, -MAX_SPEED, MAX_SPEED)
    rate = jnp.clip(motion.rate + DT * angular, -MAX_SPEED, MAX_SPEED)
    return Motion(motion.x + DT * v, v, motion.angle + DT * rate, rate)


def out_of_bounds(params: Params, reported: Motion) -> jax.Array:
    """The end test on the reported motion, () bool.

    The original compares the y component of the pole's quaternion, the sine of half its angle,
    with 12 degrees in radians, so that the pole may lean 24.2 degrees.
    """
    off = jnp.abs(reported.x) > params.position_limit
    return off | (jnp.abs(jnp.sin(0.5 * reported.angle)) > params.lean_limit)
