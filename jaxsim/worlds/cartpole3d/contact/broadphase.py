"""Walls in closed form, and conservative tests for all other contacts.

A tick exists in two versions. Most ticks need only walls, and the walls of one block are mutually
orthogonal, so one pass solves them exactly (`bounce_off_walls`). `meets_another` and
`beyond_planes` are conservative tests for everything else; where one holds, `rows` builds all
contacts and `solver` resolves them.
"""

import math
from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d import lines
from jaxsim.worlds.cartpole3d.dynamics import CART_HALF_HEIGHT, CART_RADIUS, POLE_RADIUS
from jaxsim.worlds.cartpole3d.geometry import MARGIN, Rotation
from jaxsim.worlds.cartpole3d.types import (
    DT,
    PIVOT_HEIGHT,
    POLE_BOTTOM,
    Params,
    Pose,
    Rail,
    Scalar,
    Sphere,
    Vector,
)

SLOP = 1e-5  # m, overlap that is not corrected
ERP = 0.08  # share of an overlap that is removed per tick
REST_SPEED = 0.2  # m/s, slower approaches do not bounce
ROUNDING = 1e-5  # m^2, more than the float32 error of a squared distance of up to 3 m
WALL = 0.1  # m, thickness of walls, floor and ceiling
STRAY = 0.01  # m, more than the rounding of a place
BREAKING = 0.02  # gap per unit of a body's size within which a contact is predicted


def separating_speed(approach: Scalar, gap: Scalar, restitution: Scalar) -> Scalar:
    """Target change of the relative normal velocity of one contact.

    Args:
      approach: () relative normal velocity after the free motion, m/s; negative when closing.
      gap: () distance between the surfaces, m; negative when they overlap.
      restitution: () product of the two bodies' coefficients.

    Returns:
      () m/s. An overlap adds four times its depth; a remaining gap may be closed first.
    """
    bounce = jnp.where(jnp.abs(approach) >= REST_SPEED, restitution, 0.0)
    slack = gap + SLOP
    return (
        bounce * jnp.maximum(-approach, 0.0)
        - approach
        - slack * jnp.where(slack > 0, 1 / DT, ERP / DT)
    )


def _room(params: Params) -> tuple[tuple[Scalar, Scalar], ...]:
    """(middle, largest distance from it) of a block's centre along x, y and z, m."""
    reach = params.room_half_width - params.block_radius
    middle = 0.5 * (params.room_ceiling + params.room_floor)
    reach_z = 0.5 * (params.room_ceiling - params.room_floor) - params.block_radius
    return (0.0, reach), (0.0, reach), (middle, reach_z)


def bounce_off_walls(params: Params, block: Sphere, v: Vector, leaving: bool = False) -> Vector:
    """Block velocity after its walls, exact as long as it touches nothing else, m/s.

    Args:
      params: physics.
      block: one that is not `past_a_face`.
      v: after the free motion, m/s.
      leaving: whether blocks often leave the room; only then the result is right outside.
    """
    restitution = params.restitution_wall * params.restitution_block
    sides = _sides(params, block.p)
    inside = ~_has_left(params, sides) if leaving else True
    bounced = Vector(
        *(
            _off_wall(side, gap, inside, speed, restitution)
            for (side, gap), speed in zip(sides, v, strict=True)
        )
    )
    if block.rail is None:
        return bounced
    return lines.either(block.rail, lines.turned_back(block.rail, v, bounced), bounced)


def _sides(params: Params, p: Vector) -> list[tuple[Scalar, Scalar]]:
    """Place along each axis from the middle of the room, and the gap to the nearer wall, m."""
    sides = [c - middle for c, (middle, _) in zip(p, _room(params), strict=True)]
    return [
        (side, reach - jnp.abs(side)) for side, (_, reach) in zip(sides, _room(params), strict=True)
    ]


def _has_left(params: Params, sides: list[tuple[Scalar, Scalar]]) -> jax.Array:
    """Whether a block is outside of the room and no longer touches the walls."""
    deepest = reduce(jnp.minimum, (gap for _, gap in sides))
    return jnp.asarray(deepest < -(WALL + STRAY + 2 * params.block_radius))


def _off_wall(
    side: Scalar, gap: Scalar, inside: jax.Array | bool, speed: Scalar, restitution: Scalar
) -> Scalar:
    """Speed along one axis after the nearer of its two walls; see `separating_speed`."""
    outward = jnp.where(side < 0, -speed, speed)
    bounce = jnp.where(outward >= REST_SPEED, 1 + restitution, 1.0)
    # The rate that fits the sign of the slack gives the larger product.
    slack = gap + SLOP
    push = bounce * outward - jnp.maximum(slack * (1 / DT), slack * (ERP / DT))
    touching = gap <= 0 if inside is True else inside & (gap <= 0)
    push = jnp.where(touching, jnp.maximum(push, 0.0), 0.0)
    return speed - jnp.where(side < 0, -push, push)


def meets_another(params: Params, pose: Pose, r: Rotation, blocks: Sequence[Sphere]) -> jax.Array:
    """Whether a block may touch cart, pole or another block.

    Args:
      params: physics.
      pose: at the start of the tick.
      r: pole to world rotation.
      blocks: at the start of the tick, in single slots.

    Returns:
      () bool, never False where a full tick has a contact. The reach of a prism is that of the
      cylinder around it, plus the gap within which contacts are predicted.
    """
    lengths = reach(params)
    places = [_apart_if_empty(block, number) for number, block in enumerate(blocks)]
    cart, pole = [], []
    for p in places:
        rel = _from_pivot(pose, p)
        cart.append(_cart_measure(rel, lengths))
        pole.append(_pole_measure(params, rel, r))
    near = reduce(jnp.minimum, cart) <= lengths.cart
    near = near | (reduce(jnp.minimum, pole) <= lengths.pole)
    apart = [geo.sub(a, b) for i, a in enumerate(places) for b in places[i + 1 :]]
    if apart:
        near = near | (reduce(jnp.minimum, (geo.dot(d, d) for d in apart)) <= pair_reach(params))
    return near


def beyond_planes(
    params: Params, pose: Pose, r: Rotation, blocks: Sequence[Sphere], leaving: bool = False
) -> jax.Array:
    """Whether there may be a contact with a wall that `bounce_off_walls` does not cover.

    That is cart or pole at a side wall, a block past a face, or a block on a line that is stuck.

    Args:
      params: physics.
      pose: at the start of the tick.
      r: pole to world rotation.
      blocks: at the start of the tick.
      leaving: as for `bounce_off_walls`.

    Returns:
      () bool.
    """
    near = structure_near_wall(params, pose, r) | held_up(params, blocks)
    return reduce(jnp.logical_or, (past_a_face(params, block, leaving) for block in blocks), near)


def held_up(params: Params, blocks: Sequence[Sphere]) -> jax.Array:
    """Whether a block on a line is in a corner, or at a side wall almost parallel to its line."""
    held = jnp.asarray(False)
    for block in blocks:
        if block.rail is not None:
            stuck = _is_held_up(params, block.p, block.rail)
            held = held | (block.alive & block.rail.holds & stuck)
    return held


def _is_held_up(params: Params, p: Vector, rail: Rail) -> jax.Array:
    sides = _sides(params, p)
    at_x, at_y = (gap <= 0 for _, gap in sides[:2])
    along_x, along_y = (jnp.abs(c) < lines.LEAST_SLOPE for c in (rail.x, rail.y))
    held = (at_x & (at_y | along_x)) | (at_y & along_y)
    return jnp.logical_and(held, ~_has_left(params, sides))


def pair_reach(params: Params) -> Scalar:
    """Squared distance within which two blocks touch, m^2."""
    return 4 * params.block_radius * params.block_radius


EMPTY_HEIGHT = 1e4  # m, height and distance of empty slots in the tests


def _apart_if_empty(block: Sphere, number: int) -> Vector:
    """Position of a block; an empty slot is far from everything."""
    away = EMPTY_HEIGHT * (1 + number)
    return Vector(block.p.x, block.p.y, jnp.where(block.alive, block.p.z, away))


class Reach(NamedTuple):
    """Limits of `_cart_measure` and `_pole_measure`."""

    across: Scalar  # 1/m, weight of the squared distance from the cart's axis
    cart: Scalar  # m^2
    pole: Scalar  # m^2


def reach(params: Params) -> Reach:
    """Limits within which a block may touch cart and pole."""
    size = params.block_radius + MARGIN + BREAKING * breaking_size(params)
    capsule = size + POLE_RADIUS
    return Reach(1 / (2 * CART_RADIUS + size), size * size, capsule * capsule + ROUNDING)


def near_structure(
    params: Params, pose: Pose, r: Rotation, block: Sphere
) -> tuple[jax.Array, jax.Array]:
    """Whether a block, or each of stacked ones, may touch the cart, and the pole."""
    rel, lengths = _from_pivot(pose, block.p), reach(params)
    cart = _cart_measure(rel, lengths) <= lengths.cart
    pole = _pole_measure(params, rel, r) <= lengths.pole
    return block.alive & cart, block.alive & pole


def _from_pivot(pose: Pose, p: Vector) -> Vector:
    return Vector(p.x - pose.x, p.y - pose.y, p.z - PIVOT_HEIGHT)


def at_wall(params: Params, p: Vector) -> jax.Array:
    """Whether a block at `p` touches the nearer wall along any axis, or has left the room."""
    return jnp.asarray(reduce(jnp.minimum, (gap for _, gap in _sides(params, p)))) <= 0


def breaking_size(params: Params) -> Scalar:
    """Size of a block that sets the gap within which its contacts are predicted, m."""
    return math.sqrt(3.0) * params.block_radius


def past_a_face(params: Params, block: Sphere, leaving: bool = False) -> jax.Array:
    """Whether a block's centre is past a face of the room, where walls are no longer planes.

    The side walls end at the floor, so their rounded lower edges begin a margin above it.

    Args:
      params: physics.
      block: one, or stacked ones.
      leaving: as for `bounce_off_walls`; if True, blocks out of reach of the walls do not count.
    """
    p = block.p
    side = jnp.maximum(jnp.abs(p.x), jnp.abs(p.y)) > params.room_half_width
    low = p.z < params.room_floor + MARGIN
    past = block.alive & jnp.logical_or(side, low | (p.z > params.room_ceiling))
    return past & ~_has_left(params, _sides(params, p)) if leaving else past


def _cart_measure(rel: Vector, lengths: Reach) -> jax.Array:
    """Measure that is at most `lengths.cart` wherever a sphere may touch the cart's cylinder.

    Wherever rho - R is at most a reach a, it is at least (rho^2 - R^2) / (2 R + a), without a root.
    """
    square = rel.x * rel.x + rel.y * rel.y - CART_RADIUS * CART_RADIUS
    side = lengths.across * jnp.maximum(square, 0.0)
    up = jnp.maximum(jnp.abs(rel.z) - CART_HALF_HEIGHT, 0.0)
    return jnp.asarray(side * side + up * up)


def _pole_measure(params: Params, rel: Vector, r: Rotation) -> jax.Array:
    """Squared distance from the pole's axis between its ends, m^2."""
    axis = Vector(r.x.z, r.y.z, r.z.z)
    along = geo.dot(rel, axis)
    t = jnp.clip(along, POLE_BOTTOM, POLE_BOTTOM + params.pole_length)
    return jnp.asarray(geo.dot(rel, rel) + t * (t - 2 * along))


def structure_near_wall(params: Params, pose: Pose, r: Rotation) -> jax.Array:
    """Whether cart or pole tip may be at a side wall."""
    near_cart = params.room_half_width - CART_RADIUS - MARGIN - BREAKING
    top = POLE_BOTTOM + params.pole_length
    near_tip = params.room_half_width - POLE_RADIUS - MARGIN - BREAKING
    far = jnp.maximum(jnp.abs(pose.x), jnp.abs(pose.y))
    tip = jnp.maximum(jnp.abs(pose.x + top * r.x.z), jnp.abs(pose.y + top * r.y.z))
    return (far > jnp.asarray(near_cart)) | (tip > jnp.asarray(near_tip))
