"""Contact rows: each has a target for the change of one relative normal velocity.

Rows of one class are built together: their arrays have a leading axis of rows before the lane
axes. The full tick runs on few lanes, so wide arrays and few operations are fast.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.backend import materialise
from jaxsim.pytrees import Leaf
from jaxsim.worlds.cartpole3d import dynamics
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d.contact.broadphase import BREAKING, WALL, breaking_size
from jaxsim.worlds.cartpole3d.dynamics import (
    CART_HALF_HEIGHT,
    CART_RADIUS,
    POLE_RADIUS,
    Bodies,
)
from jaxsim.worlds.cartpole3d.geometry import MARGIN, Rotation
from jaxsim.worlds.cartpole3d.types import (
    PIVOT_HEIGHT,
    POLE_BOTTOM,
    Params,
    Pose,
    Scalar,
    Sphere,
    Vector,
    Velocity,
)


class ContactRow(NamedTuple):
    """Contacts of one class: the velocities they read and the effect of a unit impulse.

    A row reads `normal` . v of its first block, minus that of its second if it has one, plus
    `read` . g of cart and pole if it touches them. The normal points to the first body.
    """

    active: jax.Array  # (R, ...) bool
    gap: Scalar  # (R, ...) m
    restitution: Scalar
    normal: Leaf = None  # (3, R, ...) world frame; None if it touches no block
    read: Leaf = None  # (6, R, ...) see `generalized`; None if it touches neither cart nor pole
    kick: Leaf = None  # (6, R, ...) change of g per unit impulse


def generalized(velocity: Velocity, r: Rotation) -> jax.Array:
    """Cart and pole velocities that contacts read, (6, ...).

    Pivot x and y (cart frame, m/s), yaw rate, absolute spin of the pole (pole frame, rad/s).
    """
    spin = dynamics.pole_spin(velocity, r)
    return jnp.stack([velocity.vx, velocity.vy, velocity.yaw_rate, *spin])


def _stack(parts: Iterable[Scalar]) -> jax.Array:
    return jnp.stack(jnp.broadcast_arrays(*parts))


def pair_indices(num_blocks: int) -> list[tuple[int, int]]:
    """Pairs of blocks in the order in which they are solved."""
    return [(i, j) for i in range(num_blocks) for j in range(i + 1, num_blocks)]


def wall_rows(params: Params, block: Sphere) -> ContactRow:
    """Rows of stacked blocks against the six boxes of the room; R is (6, N).

    Inside the room this is a plane at each inner face. A block that has passed a face is pushed out
    of the box by the shortest way, so a fast one can leave the room, as in the original.
    """
    parts = [_box_contact(params, block, *box) for box in room_boxes(params)]
    active, gap, normal = (_stack(part) for part in zip(*parts, strict=True))
    restitution = params.restitution_wall * params.restitution_block
    return ContactRow(active, gap, restitution, jnp.moveaxis(normal, 1, 0))


def room_boxes(params: Params) -> list[tuple[Vector, Vector]]:
    """(centre, half extents) of the six boxes of the room, m."""
    half = 0.5 * WALL
    side, outer = params.room_half_width + half, params.room_half_width + WALL
    floor, ceiling = params.room_floor, params.room_ceiling
    # The side walls stand on the floor's upper face and end at the ceiling's upper face.
    height, middle = 0.5 * (ceiling + WALL - floor), 0.5 * (ceiling + WALL + floor)
    zero = 0.0 * side
    # In the order in which the original solves a block that starts in two walls at once.
    return [
        (Vector(zero, -side, middle), Vector(outer, half, height)),
        (Vector(zero, side, middle), Vector(outer, half, height)),
        (Vector(-side, zero, middle), Vector(half, outer, height)),
        (Vector(side, zero, middle), Vector(half, outer, height)),
        (Vector(zero, zero, ceiling + half), Vector(outer, outer, half)),
        (Vector(zero, zero, floor - half), Vector(outer, outer, half)),
    ]


def _box_contact(
    params: Params, block: Sphere, centre: Vector, half: Vector
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Contact of stacked blocks with one box: active, gap, and normal (3, N, ...).

    Bullet's box is a smaller one with a margin around it, which rounds its edges.
    """
    d = geo.sub(block.p, centre)
    core = [h - MARGIN for h in half]
    over = Vector(*(c - jnp.clip(c, -h, h) for c, h in zip(d, core, strict=True)))
    square = geo.dot(over, over)
    outside = square > 0
    length = jnp.sqrt(jnp.where(outside, square, 1.0))
    depth = [h - jnp.abs(c) for c, h in zip(d, half, strict=True)]
    least = jnp.minimum(jnp.minimum(depth[0], depth[1]), depth[2])
    first = [depth[0] <= least, depth[1] <= least, depth[2] <= least]
    nearest = [first[0], first[1] & ~first[0], first[2] & ~first[1] & ~first[0]]
    normal = [
        jnp.where(outside, o / length, jnp.where(n, jnp.where(c < 0, -1.0, 1.0), 0.0))
        for o, n, c in zip(over, nearest, d, strict=True)
    ]
    gap = jnp.where(outside, length - MARGIN, -least) - params.block_radius
    meet = block.alive & (gap <= BREAKING * breaking_size(params))
    for c, h in zip(d, half, strict=True):
        meet = meet & (jnp.abs(c) <= h + params.block_radius)
    return meet, gap, _stack(normal)


def pair_rows(params: Params, a: Sphere, b: Sphere) -> ContactRow:
    """Rows of stacked pairs of blocks; identical centres separate along x."""
    d = geo.sub(a.p, b.p)
    square = geo.dot(d, d)
    apart = square > 0
    length = jnp.sqrt(jnp.where(apart, square, 1.0))
    normal = geo.scale(Vector(jnp.where(apart, d.x, 1.0), d.y, d.z), 1 / length)
    gap = jnp.where(apart, length, 0.0) - 2 * params.block_radius
    restitution = params.restitution_block * params.restitution_block
    return ContactRow(a.alive & b.alive & (gap <= 0), gap, restitution, _stack(normal))


class CartAndPole(NamedTuple):
    """Cart and pole, as rows need them."""

    params: Params
    body: Bodies
    pose: Pose
    local: Rotation  # pole to cart
    world: Rotation  # pole to world
    one: jax.Array  # from `backend.opaque_one`


def _response(s: CartAndPole, force: Vector, c: Vector, tau: Vector) -> tuple[Vector, Vector]:
    """Response to an impulse, materialised as rows use it several times."""
    return materialise(dynamics.pivot_response(s.params, s.body, s.local, force, c, tau), s.one)


def _on_cart(s: CartAndPole, normal: Vector, arm: Vector) -> tuple[jax.Array, jax.Array]:
    """`read` and `kick` of an impulse along `normal` on the cart at `arm`, (6, ...) each.

    Both vectors in the cart frame, the arm from the cart origin. Only the horizontal part of the
    impulse moves the cart; the rails take the rest.
    """
    zero = 0.0 * normal.x
    none = Vector(zero, zero, zero)
    turn = arm.x * normal.y - arm.y * normal.x
    a, alpha = _response(s, normal, none, none)
    read = _stack([normal.x, normal.y, turn, zero, zero, zero])
    return read, _stack([a.x, a.y, turn / s.body.cart_iz, *alpha])


def _on_pole(s: CartAndPole, normal: Vector, arm: Vector) -> tuple[jax.Array, jax.Array]:
    """As `_on_cart` for the pole: both vectors in the pole frame, the arm from the pivot."""
    zero = 0.0 * normal.x
    turn = geo.cross(arm, normal)
    pull = geo.rotate(s.local, normal)
    from_com = Vector(arm.x, arm.y, arm.z - s.params.pole_com)
    c = geo.scale(normal, -1 / s.params.pole_mass)
    tau = geo.cross(from_com, normal)
    a, alpha = _response(s, Vector(zero, zero, zero), c, tau)
    return _stack([pull.x, pull.y, zero, *turn]), _stack([a.x, a.y, zero, *alpha])


class Touch(NamedTuple):
    """Rows of blocks against cart or pole, with the points of contact."""

    row: ContactRow
    arm: Vector  # (R, ...) m, from the cart's origin or the pivot, in the body's frame


def cart_rows(s: CartAndPole, block: Sphere) -> Touch:
    """Rows of stacked blocks against the cart."""
    p = s.params
    offset = Vector(block.p.x - s.pose.x, block.p.y - s.pose.y, block.p.z - PIVOT_HEIGHT)
    local = geo.yaw(s.pose.cos, -s.pose.sin, offset)
    near = geo.nearest_on_prism(local, CART_RADIUS, CART_HALF_HEIGHT, s.one)
    gap = near.distance - MARGIN - p.block_radius
    half = Vector(CART_RADIUS, CART_RADIUS, CART_HALF_HEIGHT)
    turned = Rotation(
        Vector(s.pose.cos, -s.pose.sin, 0.0),
        Vector(s.pose.sin, s.pose.cos, 0.0),
        Vector(0.0, 0.0, 1.0),
    )
    active = (
        block.alive
        & (gap <= BREAKING * jnp.minimum(breaking_size(p), _disc(half, PIVOT_HEIGHT)))
        & _boxes_meet(local, offset, turned, half, p.block_radius)
    )
    read, kick = _on_cart(s, near.normal, near.point)
    row = ContactRow(
        active,
        gap,
        p.restitution_block * p.restitution_cart,
        _stack(geo.yaw(s.pose.cos, s.pose.sin, near.normal)),
        -read,
        -kick,
    )
    return Touch(row, near.point)


def pole_rows(s: CartAndPole, block: Sphere) -> Touch:
    """Rows of stacked blocks against the pole."""
    p = s.params
    middle = POLE_BOTTOM + 0.5 * p.pole_length
    pivot = Vector(block.p.x - s.pose.x, block.p.y - s.pose.y, block.p.z - PIVOT_HEIGHT)
    axis = Vector(s.world.x.z, s.world.y.z, s.world.z.z)
    offset = geo.sub(pivot, geo.scale(axis, middle))
    local = geo.rotate_back(s.world, offset)
    near = geo.nearest_on_prism(local, POLE_RADIUS, 0.5 * p.pole_length, s.one)
    gap = near.distance - MARGIN - p.block_radius
    half = Vector(POLE_RADIUS, POLE_RADIUS, 0.5 * p.pole_length)
    active = (
        block.alive
        & (gap <= BREAKING * jnp.minimum(breaking_size(p), _disc(half, p.pole_com - middle)))
        & _boxes_meet(local, offset, s.world, half, p.block_radius)
    )
    arm = Vector(near.point.x, near.point.y, near.point.z + middle)
    read, kick = _on_pole(s, near.normal, arm)
    row = ContactRow(
        active,
        gap,
        p.restitution_block * p.restitution_pole,
        _stack(geo.rotate(s.world, near.normal)),
        -read,
        -kick,
    )
    return Touch(row, arm)


def tangents(normal: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The two directions in which Bullet's friction acts, (3, ...) unit vectors.

    They span the contact plane and depend on its normal only, not on how the bodies slide.
    """
    x, y, z = normal
    steep = jnp.abs(z) > math.sqrt(0.5)
    k = 1 / jnp.sqrt(y * y + jnp.where(steep, z * z, x * x))
    zero = 0.0 * k
    px, py, pz = (
        jnp.where(steep, zero, -y * k),
        jnp.where(steep, -z * k, x * k),
        jnp.where(steep, y * k, zero),
    )
    return _stack([px, py, pz]), _stack(geo.cross(Vector(x, y, z), Vector(px, py, pz)))


def pair_slides(row: ContactRow) -> list[ContactRow]:
    """Friction rows of pairs of blocks, one for each direction."""
    return [ContactRow(row.active, 0.0, 0.0, direction) for direction in tangents(row.normal)]


def cart_slides(s: CartAndPole, touch: Touch) -> list[ContactRow]:
    """Friction rows of blocks against the cart, one for each direction."""
    return [
        _slide(touch, d, _on_cart(s, geo.yaw(s.pose.cos, -s.pose.sin, Vector(*d)), touch.arm))
        for d in tangents(touch.row.normal)
    ]


def pole_slides(s: CartAndPole, touch: Touch) -> list[ContactRow]:
    """Friction rows of blocks against the pole, one for each direction."""
    return [
        _slide(touch, d, _on_pole(s, geo.rotate_back(s.world, Vector(*d)), touch.arm))
        for d in tangents(touch.row.normal)
    ]


def _slide(touch: Touch, direction: jax.Array, sides: tuple[jax.Array, jax.Array]) -> ContactRow:
    read, kick = sides
    return ContactRow(touch.row.active, 0.0, 0.0, direction, -read, -kick)


def _disc(half: Vector, offset: Scalar) -> Scalar:
    """Radius of the sphere that a body sweeps about its centre of mass, m."""
    grown = [h + 0.5 * dynamics.AABB_MARGIN for h in half]
    return jnp.sqrt(sum(h * h for h in grown)) + jnp.abs(offset)


def _boxes_meet(
    local: Vector, offset: Vector, turned: Rotation, half: Vector, radius: Scalar
) -> jax.Array:
    """Whether a sphere's box meets a hull's, both in the hull's frame and in the world's.

    Args:
      local: () sphere centre from the hull's centre, hull frame, m.
      offset: () the same in the world frame.
      turned: hull to world rotation.
      half: () half extents of the hull, m.
      radius: () of the sphere, m.
    """
    meet = jnp.abs(local.x) <= radius + half.x + 2 * MARGIN
    for d, h in ((local.y, half.y), (local.z, half.z)):
        meet = meet & (jnp.abs(d) <= radius + h + 2 * MARGIN)
    grown = Vector(*(h + MARGIN for h in half))
    for d, row in zip(offset, turned, strict=True):
        meet = meet & (jnp.abs(d) <= radius + geo.box_reach(row, grown) + MARGIN)
    return meet


def structure_rows(s: CartAndPole) -> ContactRow:
    """Rows of cart and pole against the nearer side wall of x and of y; R is 4."""
    p = s.params
    cart = _cart_wall_rows(s)
    pole = _pole_wall_rows(s)
    active, gap, read, kick = (
        jnp.concatenate(pair, axis=axis)
        for pair, axis in zip(zip(cart, pole, strict=True), (0, 0, 1, 1), strict=True)
    )
    shape = (2,) + (1,) * (gap.ndim - 1)
    coefficients = [
        jnp.broadcast_to(p.restitution_wall * coefficient, shape[:1] + gap.shape[1:])
        for coefficient in (p.restitution_cart, p.restitution_pole)
    ]
    return ContactRow(active, gap, jnp.concatenate(coefficients), None, read, kick)


def _outward(position: Scalar) -> jax.Array:
    """Sign of the nearer side wall's outward normal."""
    return jnp.where(position < 0, -1.0, 1.0)


def _cart_wall_rows(s: CartAndPole) -> tuple[jax.Array, ...]:
    """The cart's extreme vertex against the walls of x and y: active, gap, read, kick."""
    cos, sin = s.pose.cos, s.pose.sin
    position = _stack([s.pose.x, s.pose.y])
    sign = _outward(position)
    # The world axes in the cart frame.
    local = Vector(sign * _stack([cos, sin]), sign * _stack([-sin, cos]), 0.0 * sign)
    vx, vy = geo.vertex_direction(local.x, local.y)
    arm = Vector(CART_RADIUS * vx, CART_RADIUS * vy, 0.0 * vx)
    room = s.params.room_half_width - sign * position
    gap = room - geo.dot(arm, local) - MARGIN
    grown = CART_RADIUS + MARGIN
    reach = grown * (jnp.abs(local.x) + jnp.abs(local.y)) + MARGIN
    half = Vector(CART_RADIUS, CART_RADIUS, CART_HALF_HEIGHT)
    active = (room <= reach) & (gap <= BREAKING * _disc(half, PIVOT_HEIGHT))
    return active, gap, *_on_cart(s, geo.scale(local, -1.0), arm)


def _pole_wall_rows(s: CartAndPole) -> tuple[jax.Array, ...]:
    """The pole's extreme top vertex against the walls it leans to: active, gap, read, kick."""
    centre = _stack([s.pose.x, s.pose.y])
    lean = Vector(*(_stack([a, b]) for a, b in zip(s.world.x, s.world.y, strict=True)))
    top = POLE_BOTTOM + s.params.pole_length
    sign = _outward(centre + top * lean.z)
    local = geo.scale(lean, sign)
    vx, vy = geo.vertex_direction(local.x, local.y)
    arm = Vector(POLE_RADIUS * vx, POLE_RADIUS * vy, top + 0.0 * vx)
    gap = s.params.room_half_width - sign * centre - geo.dot(arm, local) - MARGIN
    return gap <= MARGIN, gap, *_on_pole(s, geo.scale(local, -1.0), arm)
