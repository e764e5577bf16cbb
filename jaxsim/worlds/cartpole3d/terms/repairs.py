"""Repairs of levels whose original does not do what it seems to mean; all are off by default.

* `closed_room` (levels 204 and 206): no block leaves the room. The original's walls are boxes of
  0.1 m, which a fast block passes.
* `wind_on_pole` (level 206): the wind pushes the pole too. In the original the part of the profile
  for the pole is empty.

The third repair, `repairs/pull_to_centroid` for level 205, is a change of sign in
`parameter_table`.
"""

from collections.abc import Sequence
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.worlds.cartpole3d import dynamics, lines
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d.terms.wind import AIR, PER_METRE, PROFILE
from jaxsim.worlds.cartpole3d.types import (
    DT,
    PIVOT_HEIGHT,
    POLE_BOTTOM,
    Params,
    Scalar,
    Sphere,
    State,
    Vector,
    Velocity,
)

HELD = 2e-5  # m, overlap with a wall that stays, so that the next tick has the contact


def keep_inside(params: Params, blocks: Sequence[Sphere]) -> tuple[Sphere, ...]:
    """Put blocks that a tick has moved into a wall back to its face.

    A wall then acts as a half space: a centre never passes a face, and the next tick reverses the
    velocity. In the original, a block that overlaps a wall leaves it faster by four times the depth
    per second; here the depth is almost zero.

    Args:
      params: room and `closed_room`; lanes where that is 0 keep their blocks unchanged. So do
        blocks on lines.
      blocks: after the tick.
    """
    side = params.room_half_width - params.block_radius + HELD
    middle = 0.5 * (params.room_ceiling + params.room_floor)
    up = 0.5 * (params.room_ceiling - params.room_floor) - params.block_radius + HELD
    limits = ((-side, side), (-side, side), (middle - up, middle + up))
    closed = jnp.asarray(params.closed_room) > 0

    def clipped(p: Vector) -> Vector:
        inside = (jnp.clip(c, low, high) for c, (low, high) in zip(p, limits, strict=True))
        return Vector(*(jnp.where(closed, a, b) for a, b in zip(inside, p, strict=True)))

    def put_back(block: Sphere) -> Sphere:
        inside = clipped(block.p)
        if block.rail is not None:
            # A line may lead through walls, and its block must stay on it.
            inside = lines.either(block.rail, block.p, inside)
        return replace(block, p=inside)

    return tuple(put_back(block) for block in blocks)


def force_on_pole(params: Params, state: State) -> Vector:
    """Wind force on the pole, N, world frame, if `wind_on_pole` is 1.

    The drag of a cylinder across the flow, 0.5 rho C d times the integral of u^2 over the height of
    the pole as if it stood upright, along the wind: rho the density of air, C the coefficient
    `pole_drag`, d the pole's diameter, u the profile of the level at each height. The pole's own
    motion is left out.

    Source: S. F. Hoerner, Fluid-Dynamic Drag, 1965, chapter 3: C is 1.2 for a long cylinder at
    Reynolds numbers from 1e3 to 1e5.
    """
    bottom = PIVOT_HEIGHT + POLE_BOTTOM
    squares = _integral(bottom + params.pole_length) - _integral(bottom)
    pressure = 0.5 * AIR * params.pole_drag * 2 * dynamics.POLE_RADIUS
    size = pressure * squares * params.wind_speed * params.wind_speed
    size = jnp.where(jnp.asarray(params.wind_on_pole) > 0, size, 0.0)
    return Vector(size * state.wind.x, size * state.wind.y, jnp.zeros_like(state.pose.x))


def _integral(z: Scalar) -> jax.Array:
    """Integral of the squared profile from the floor to a height, m."""
    table = jnp.asarray(np.concatenate([[0.0], np.cumsum(PROFILE**2)]) / PER_METRE)
    place = jnp.clip(PER_METRE * jnp.asarray(z), 0, len(PROFILE) - 1e-3)
    cell = jnp.floor(place).astype(jnp.int32)
    table = table.astype(place.dtype)
    return table[cell] + (place - cell) * (table[cell + 1] - table[cell])


def blown(params: Params, state: State) -> Velocity:
    """Velocities after the wind's impulse of one tick on the pole.

    It acts at the pole's centre of mass, as Bullet applies a force on a link, at the beginning of
    the tick.
    """
    pose, velocity = state.pose, state.velocity
    r = geo.rotation(pose.qx, pose.qy, pose.qz, pose.qw)
    in_cart = geo.yaw(pose.cos, -pose.sin, force_on_pole(params, state))
    c = geo.scale(geo.rotate_back(r, in_cart), -1 / params.pole_mass)
    none = geo.scale(in_cart, 0.0)
    a, alpha = dynamics.pivot_response(params, dynamics.bodies(params), r, none, c, none)
    return replace(
        velocity,
        vx=velocity.vx + DT * a.x,
        vy=velocity.vy + DT * a.y,
        wx=velocity.wx + DT * alpha.x,
        wy=velocity.wy + DT * alpha.y,
        wz=velocity.wz + DT * alpha.z,
    )
