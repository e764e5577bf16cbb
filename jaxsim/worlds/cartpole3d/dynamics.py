"""Free motion of cart, pole and blocks over one tick, in closed form.

The pole hangs on a spherical joint at the cart, its centre of mass a distance l along its axis.
Solving for the pivot's acceleration leaves a 2x2 system with a rank-one term, inverted by
Sherman-Morrison, so no matrix is ever formed.

Frames: "cart" is yawed with the cart; "pole" is fixed in the pole. Local velocity components stay
constant while a frame turns, as in Bullet's multibody integrator, and so they are the state.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.backend import materialise
from jaxsim.pytrees import Leaf
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d import lines
from jaxsim.worlds.cartpole3d.geometry import Rotation
from jaxsim.worlds.cartpole3d.types import DT, Params, Pose, Scalar, Sphere, Vector, Velocity

SPEED_LIMIT = 100.0  # m/s or rad/s, each generalized velocity is clamped to +- this
TURN_LIMIT = (0.25 * jnp.pi) / DT  # rad/s, spin above which the orientation update saturates
CART_RADIUS = 0.5  # m, circumradius of the cart's prism
CART_HALF_HEIGHT = 0.1  # m
POLE_RADIUS = 0.03  # m, circumradius of the pole's prism
AABB_MARGIN = 0.006  # m, added by Bullet to each length of the box that gives the inertia


Moving = tuple[Pose, Velocity, tuple[Sphere, ...]]
Forces = tuple[Vector, list[Vector] | None]
"""Force on the cart (z ignored) and on each block, N, world frame; None for no forces on blocks."""


class Bodies(NamedTuple):
    """Quantities that follow from `Params`: inertias and the coupled system's constants."""

    pole_ix: Scalar  # kg m^2, about an axis across the pole through its centre of mass
    pole_iz: Scalar  # kg m^2, about the pole's axis
    cart_iz: Scalar  # kg m^2, about the vertical
    jx: Scalar  # kg m^2, pole_ix about the pivot
    coupling: Scalar  # kg, part of the pole's mass that does not resist the pivot across the pole
    m0: Scalar  # kg, effective mass of the pivot across the pole
    per_jx: Scalar  # inverses of jx, pole_iz and m0
    per_iz: Scalar
    per_m0: Scalar


def bodies(params: Params) -> Bodies:
    """Derive inertias as Bullet does: from the collider's box, enlarged by its margin."""
    across = 2 * POLE_RADIUS + AABB_MARGIN
    along = params.pole_length + AABB_MARGIN
    wide = 2 * CART_RADIUS + AABB_MARGIN
    pole_ix = params.pole_mass / 12 * (across * across + along * along)
    pole_iz = params.pole_mass / 12 * (2 * across * across)
    cart_iz = params.cart_mass / 12 * (2 * wide * wide)
    far = params.pole_mass * params.pole_com * params.pole_com
    jx = pole_ix + far
    coupling = params.pole_mass * (far / jx)
    m0 = params.cart_mass + params.pole_mass - coupling
    return Bodies(pole_ix, pole_iz, cart_iz, jx, coupling, m0, 1 / jx, 1 / pole_iz, 1 / m0)


def pivot_response(
    params: Params, body: Bodies, r: Rotation, force: Vector, c: Vector, tau: Vector
) -> tuple[Vector, Vector]:
    """Accelerations of the pivot and of the pole for given loads; linear in the loads.

    Args:
      params: physics.
      body: from `bodies`.
      r: pole to cart rotation.
      force: N on the cart, cart frame; z is ignored.
      c: m/s^2, acceleration terms of the pole's centre of mass, pole frame; an impulse P on the
        pole enters as -P / pole mass.
      tau: N m on the pole, pole frame.

    Returns:
      (A, alpha): m/s^2 of the pivot in the cart frame, with z 0, and rad/s^2 of the pole in its
      own frame.
    """
    mp, l = params.pole_mass, params.pole_com
    lever = mp * l * body.per_jx
    bx = tau.x * body.per_jx + lever * c.y
    by = tau.y * body.per_jx - lever * c.x
    pull = geo.rotate(r, Vector(c.x + l * by, c.y - l * bx, c.z))
    rx, ry = force.x - mp * pull.x, force.y - mp * pull.y
    px, py = r.x.z, r.y.z
    share = (px * rx + py * ry) / (body.m0 / body.coupling + (px * px + py * py))
    ax, ay = (rx - share * px) * body.per_m0, (ry - share * py) * body.per_m0
    ux = r.x.x * ax + r.y.x * ay
    uy = r.x.y * ax + r.y.y * ay
    alpha = Vector(bx + lever * uy, by - lever * ux, tau.z * body.per_iz)
    return Vector(ax, ay, 0.0 * ax), alpha


def drag_rate(drag: Scalar, speed: Scalar) -> Scalar:
    """Return the deceleration per unit of velocity, 1/s: linear plus quadratic drag."""
    return drag + drag * speed


def norm(a: Vector) -> Scalar:
    """Return the length of a vector."""
    return jnp.sqrt(geo.dot(a, a))


def clamp(value: Scalar) -> Scalar:
    """Clamp one velocity component to the limit of the integrator."""
    return jnp.clip(value, -SPEED_LIMIT, SPEED_LIMIT)


def pole_spin(velocity: Velocity, r: Rotation) -> Vector:
    """Absolute angular velocity of the pole in its own frame, rad/s."""
    return Vector(
        velocity.wx + r.z.x * velocity.yaw_rate,
        velocity.wy + r.z.y * velocity.yaw_rate,
        velocity.wz + r.z.z * velocity.yaw_rate,
    )


FreeMotion = tuple[Bodies, Rotation, Velocity, list[Vector]]
"""Inertias, pole to cart rotation, velocity of cart and pole, velocity of each block in m/s."""


def free_motion(params: Params, moving: Moving, forces: Forces) -> FreeMotion:
    """Velocities after one tick without contacts, not yet clamped.

    Args:
      params: physics.
      moving: pose, velocities and blocks at the start of the tick.
      forces: on cart and blocks.
    """
    pose, velocity, blocks = moving
    body = bodies(params)
    r = geo.pole_to_cart(pose)
    velocity = accelerate(params, body, pose, r, velocity, forces[0])
    on_blocks: Sequence[Vector | None] = forces[1] or [None] * len(blocks)
    speeds = [
        accelerate_block(params, block, force)
        for block, force in zip(blocks, on_blocks, strict=True)
    ]
    return body, r, velocity, speeds


def accelerate(
    params: Params, body: Bodies, pose: Pose, r: Rotation, velocity: Velocity, force: Vector
) -> Velocity:
    """Velocities after one tick without contacts, not yet clamped.

    Args:
      params: physics.
      body: from `bodies`.
      pose: at the start of the tick.
      r: pole to cart rotation of that pose.
      velocity: at the start of the tick.
      force: N on the cart, world frame.
    """
    l, drag = params.pole_com, params.drag
    omega = pole_spin(velocity, r)
    v_cart = Vector(velocity.vx, velocity.vy, 0.0)
    at_pivot = geo.rotate_back(r, v_cart)
    v_com = Vector(at_pivot.x + l * omega.y, at_pivot.y - l * omega.x, at_pivot.z)
    k_com = drag_rate(drag, norm(v_com))
    arm = l * omega.z
    c = Vector(
        arm * omega.x + params.gravity * r.z.x + k_com * v_com.x,
        arm * omega.y + params.gravity * r.z.y + k_com * v_com.y,
        params.gravity * r.z.z + k_com * v_com.z - l * (omega.x * omega.x + omega.y * omega.y),
    )
    k_spin = drag_rate(drag, norm(omega))
    gyro = (body.pole_iz - body.pole_ix) * omega.z
    slow = body.pole_ix * k_spin
    tau = Vector(
        -(gyro * omega.y + slow * omega.x),
        gyro * omega.x - slow * omega.y,
        -body.pole_iz * k_spin * omega.z,
    )
    k_cart = params.cart_mass * drag_rate(drag, norm(v_cart))
    local = geo.yaw(pose.cos, -pose.sin, force)
    load = Vector(local.x - k_cart * velocity.vx, local.y - k_cart * velocity.vy, 0.0)
    a, alpha = pivot_response(params, body, r, load, c, tau)
    return _advance(velocity, r, a, alpha, drag)


def _advance(velocity: Velocity, r: Rotation, a: Vector, alpha: Vector, drag: Scalar) -> Velocity:
    """Turn accelerations into rates of the frame-fixed components and integrate them."""
    spin = velocity.yaw_rate
    d_spin = -spin * drag_rate(drag, jnp.abs(spin))
    w = Vector(velocity.wx, velocity.wy, velocity.wz)
    transport = geo.cross(w, geo.scale(r.z, spin))
    return Velocity(
        vx=velocity.vx + DT * (a.x + spin * velocity.vy),
        vy=velocity.vy + DT * (a.y - spin * velocity.vx),
        yaw_rate=spin + DT * d_spin,
        wx=w.x + DT * (alpha.x - r.z.x * d_spin + transport.x),
        wy=w.y + DT * (alpha.y - r.z.y * d_spin + transport.y),
        wz=w.z + DT * (alpha.z - r.z.z * d_spin + transport.z),
    )


def accelerate_block(params: Params, block: Sphere, force: Vector | None) -> Vector:
    """Velocity of one block after a tick without contacts, m/s, not yet clamped.

    Args:
      params: physics.
      block: at the start of the tick.
      force: N besides weight and lift, world frame; None for none.
    """
    slowing = DT * params.drag
    factor = (1 - slowing) - slowing * norm(block.v)
    lift = DT * params.gravity * (params.block_buoyancy - 1)
    v = Vector(factor * block.v.x, factor * block.v.y, factor * block.v.z + lift)
    if force is not None:
        v = geo.add(v, geo.scale(force, DT / params.block_mass))
    return v if block.rail is None else lines.either(block.rail, block.v, v)


def move(pose: Pose, velocity: Velocity, one: jax.Array) -> Pose:
    """Advance cart and pole by one tick with the new velocities; `one` is from `opaque_one`."""
    ch, sh = _turn(pose.half_cos, pose.half_sin, 0.5 * DT * velocity.yaw_rate, one)
    cos, sin = ch * ch - sh * sh, 2 * ch * sh
    q = _roll((pose.qx, pose.qy, pose.qz, pose.qw), velocity, one)
    return Pose(
        pose.x + DT * (cos * velocity.vx - sin * velocity.vy),
        pose.y + DT * (sin * velocity.vx + cos * velocity.vy),
        ch,
        sh,
        *q,
    )


def _turn(cos: Scalar, sin: Scalar, angle: Scalar, one: jax.Array) -> tuple[Scalar, Scalar]:
    """Turn a unit vector by an angle of at most 1 rad; a Newton step keeps its length at 1."""
    square = jnp.asarray(angle * angle)
    fix = 1.5 - 0.5 * (cos * cos + sin * sin)
    ca, sa = materialise((fix * _cosine(square, 1.0), fix * angle * _sinc(square, 1.0)), one)
    return cos * ca - sin * sa, sin * ca + cos * sa


def _roll(q: tuple[Scalar, ...], velocity: Velocity, one: jax.Array) -> tuple[Scalar, ...]:
    """Turn the pole by its rate relative to the cart and normalise.

    The half angle per tick stays below pi/8. Above the limit Bullet keeps the axis unsaturated; so
    does this.
    """
    wx, wy, wz = velocity.wx, velocity.wy, velocity.wz
    rate = jnp.asarray(wx * wx + wy * wy + wz * wz)
    square = jnp.minimum(rate, TURN_LIMIT * TURN_LIMIT) * (0.25 * DT * DT)
    qx, qy, qz, qw = q
    cw, half = _cosine(square, math.pi / 8), 0.5 * DT * _sinc(square, math.pi / 8)
    length = (qx * qx + qy * qy + qz * qz + qw * qw) * (cw * cw + half * half * rate)
    fix = 1 / jnp.sqrt(length)
    cw, half = materialise((cw * fix, half * fix), one)
    ax, ay, az = half * wx, half * wy, half * wz
    return (
        qw * ax + qx * cw + qy * az - qz * ay,
        qw * ay + qy * cw + qz * ax - qx * az,
        qw * az + qz * cw + qx * ay - qy * ax,
        qw * cw - qx * ax - qy * ay - qz * az,
    )


def _cosine(square: jax.Array, largest: float) -> jax.Array:
    """Cosine of an angle from its square, to the precision of its type up to a largest angle."""
    return _series(square, largest, [(-1.0) ** k / math.factorial(2 * k) for k in range(12)])


def _sinc(square: jax.Array, largest: float) -> jax.Array:
    """Sine of an angle by the angle, as `_cosine`."""
    return _series(square, largest, [(-1.0) ** k / math.factorial(2 * k + 1) for k in range(12)])


def _series(square: jax.Array, largest: float, coefficients: list[float]) -> jax.Array:
    """Sum a power series of a small number, without terms below rounding."""
    eps = float(jnp.finfo(jnp.result_type(square)).eps)
    terms = [c for k, c in enumerate(coefficients) if abs(c) * largest ** (2 * k) > 0.1 * eps]
    total: Leaf = terms[-1]
    for coefficient in reversed(terms[:-1]):
        total = coefficient + square * total
    return jnp.asarray(total)


def move_block(block: Sphere, v: Vector) -> Sphere:
    """Advance one block by one tick with its new velocity."""
    if block.rail is not None:
        return lines.glide(block, v)
    return Sphere(geo.add(block.p, geo.scale(v, DT)), v, block.alive)


def move_all(
    pose: Pose,
    blocks: tuple[Sphere, ...],
    velocity: Velocity,
    speeds: list[Vector],
    one: jax.Array,
) -> Moving:
    """Clamp the velocities and move everything with them; empty slots rest."""
    velocity, speeds = clamp_all(velocity, blocks, speeds)
    speeds = [
        Vector(*(jnp.where(block.alive, c, 0.0) for c in v))
        for block, v in zip(blocks, speeds, strict=True)
    ]
    velocity, speeds = materialise((velocity, speeds), one)
    moved = tuple(move_block(b, v) for b, v in zip(blocks, speeds, strict=True))
    return move(pose, velocity, one), velocity, moved


def clamp_all(
    velocity: Velocity, blocks: Sequence[Sphere], speeds: Sequence[Vector]
) -> tuple[Velocity, list[Vector]]:
    """Clamp every generalized velocity component; a block on a line has only one."""
    limited = Velocity(*(clamp(getattr(velocity, f)) for f in Velocity.__dataclass_fields__))
    return limited, [_clamp_block(b, v) for b, v in zip(blocks, speeds, strict=True)]


def _clamp_block(block: Sphere, v: Vector) -> Vector:
    free = Vector(*(clamp(c) for c in v))
    if block.rail is None:
        return free
    speed = clamp(lines.component(block.rail, v))
    on_line = Vector(block.rail.x * speed, block.rail.y * speed, 0.0 * v.z)
    return lines.either(block.rail, on_line, free)


def has_fallen(r: Rotation, lean_limit: Scalar) -> Scalar:
    """Whether roll or pitch of the pole passes the limit; yaw drops out of both.

    roll = atan2(R_zy, R_zz) and pitch = -asin(R_zx), compared without inverse functions.
    """
    rolled = jnp.abs(r.z.y) > jnp.tan(lean_limit) * r.z.z
    return rolled | (jnp.abs(r.z.x) > jnp.sin(lean_limit))
