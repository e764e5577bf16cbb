"""What contacts ask for, walls in closed form, and the test that spares the rest.

A tick exists in two versions. Most ticks need only walls, and the walls of one block are mutually
orthogonal, so one pass solves them exactly (`bounce_off_walls`). `may_touch` is a conservative
test for everything else; where it holds, `rows` builds all contacts and `solver` resolves them.
"""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp

from jaxsim.backend import mask
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d import lines
from jaxsim.worlds.cartpole3d.dynamics import CART_HALF_HEIGHT, CART_RADIUS, POLE_RADIUS
from jaxsim.worlds.cartpole3d.geometry import MARGIN, Rotation
from jaxsim.worlds.cartpole3d.types import (
    DT,
    PIVOT_HEIGHT,
    POLE_BOTTOM,
    Block,
    Params,
    Pose,
    Scalar,
    Vector,
)

SLOP = 1e-5  # m, overlap that is left alone
ERP = 0.08  # share of an overlap that is removed per tick
REST_SPEED = 0.2  # m/s, slower approaches do not bounce
BREAKING = 0.02  # gap per unit of a body's size within which a contact is predicted


def separating_speed(approach: Scalar, gap: Scalar, restitution: Scalar) -> Scalar:
    """Change of the relative normal velocity that one contact asks for.

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


def wall_gaps(params: Params, p: Vector) -> tuple[tuple[Scalar, Scalar], ...]:
    """(inward sign, gap) of the nearer wall along x, y and z for a block at `p`, m."""
    reach = params.room_half_width - params.block_radius
    middle = 0.5 * (params.room_ceiling + params.room_floor)
    reach_z = 0.5 * (params.room_ceiling - params.room_floor) - params.block_radius
    z = p.z - middle
    return tuple(
        (jnp.where(c < 0, 1.0, -1.0), limit - jnp.abs(c))
        for c, limit in ((p.x, reach), (p.y, reach), (z, reach_z))
    )


def bounce_off_walls(params: Params, block: Block, v: Vector) -> Vector:
    """Block velocity after its walls, exact as long as it touches nothing else, m/s."""
    restitution = params.restitution_wall * params.restitution_block
    bounced = Vector(
        *(
            speed + sign * jnp.where(gap <= 0, _wall_push(speed * sign, gap, restitution), 0.0)
            for speed, (sign, gap) in zip(v, wall_gaps(params, block.p), strict=True)
        )
    )
    # A block on a line that is at a side wall takes the full tick.
    return bounced if block.rail is None else lines.either(block.rail, v, bounced)


def _wall_push(approach: Scalar, gap: Scalar, restitution: Scalar) -> Scalar:
    return jnp.maximum(separating_speed(approach, gap, restitution), 0.0)


def may_touch(
    params: Params, pose: Pose, r: Rotation, blocks: Sequence[Block], one: jax.Array
) -> jax.Array:
    """Whether anything other than one block and its walls may be in contact.

    Args:
      params: physics.
      pose: at the start of the tick.
      r: pole to world rotation.
      blocks: at the start of the tick, in slots of their own.
      one: from `opaque_one`.

    Returns:
      () bool, never False where a full tick would find a contact. The reach of a prism is that
      of the cylinder around it, plus the gap within which contacts are predicted.
    """
    near = _structure_near_wall(params, pose, r)
    for block in blocks:
        cart, pole = near_structure(params, pose, r, block)
        found = (block.alive & past_a_face(params, block.p)) | cart | pole
        if block.rail is not None:
            found = found | (block.alive & block.rail.holds & _at_side_wall(params, block.p))
        near = near | found
    width = pair_reach(params)
    for i, a in enumerate(blocks):
        for b in blocks[i + 1 :]:
            d = geo.sub(a.p, b.p)
            near = near | (a.alive & b.alive & (geo.dot(d, d) <= width))
    return mask(near, one)


def pair_reach(params: Params) -> Scalar:
    """Squared distance within which two blocks touch, m^2."""
    return 4 * params.block_radius * params.block_radius


def near_structure(
    params: Params, pose: Pose, r: Rotation, block: Block
) -> tuple[jax.Array, jax.Array]:
    """Whether a block, or each of stacked ones, may touch the cart and may touch the pole."""
    reach = params.block_radius + MARGIN + BREAKING * breaking_size(params)
    rel = Vector(block.p.x - pose.x, block.p.y - pose.y, block.p.z - PIVOT_HEIGHT)
    return block.alive & _near_cart(rel, reach), block.alive & _near_pole(params, rel, r, reach)


def _at_side_wall(params: Params, p: Vector) -> jax.Array:
    (_, gap_x), (_, gap_y), _ = wall_gaps(params, p)
    return jnp.minimum(gap_x, gap_y) <= 0


def at_wall(params: Params, p: Vector) -> jax.Array:
    """Whether a block at `p` touches the nearer wall along any axis, inside the room."""
    gaps = [gap for _, gap in wall_gaps(params, p)]
    return jnp.minimum(jnp.minimum(gaps[0], gaps[1]), gaps[2]) <= 0


def breaking_size(params: Params) -> Scalar:
    """Size of a block that sets the gap within which its contacts are predicted, m."""
    return math.sqrt(3.0) * params.block_radius


def past_a_face(params: Params, p: Vector) -> jax.Array:
    """Whether a centre is past a face of the room, where walls are no longer planes.

    The side walls end at the floor, so their rounded lower edges begin a margin above it.
    """
    side = jnp.maximum(jnp.abs(p.x), jnp.abs(p.y)) > params.room_half_width
    low = p.z < params.room_floor + MARGIN
    return jnp.logical_or(side, low | (p.z > params.room_ceiling))


def _near_cart(rel: Vector, reach: Scalar) -> jax.Array:
    """Whether a sphere centre is within `reach` of the cart's cylinder."""
    out = jnp.maximum(rel.x * rel.x + rel.y * rel.y, CART_RADIUS * CART_RADIUS)
    # rho - R >= (rho^2 - R^2) / (2 R + reach) wherever rho - R <= reach, without a square root.
    side = (out - CART_RADIUS * CART_RADIUS) / (2 * CART_RADIUS + reach)
    up = jnp.maximum(jnp.abs(rel.z) - CART_HALF_HEIGHT, 0.0)
    return side * side + up * up <= reach * reach


def _near_pole(params: Params, rel: Vector, r: Rotation, reach: Scalar) -> jax.Array:
    """Whether a sphere centre is within `reach` of the pole, taken as a capsule."""
    axis = Vector(r.x.z, r.y.z, r.z.z)
    top = POLE_BOTTOM + params.pole_length
    t = jnp.clip(geo.dot(rel, axis), POLE_BOTTOM, top)
    d = geo.sub(rel, geo.scale(axis, t))
    limit = reach + POLE_RADIUS
    return jnp.asarray(geo.dot(d, d) <= limit * limit)


def _structure_near_wall(params: Params, pose: Pose, r: Rotation) -> jax.Array:
    """Whether cart or pole tip may be at a side wall."""
    near_cart = params.room_half_width - CART_RADIUS - MARGIN - BREAKING
    top = POLE_BOTTOM + params.pole_length
    near_tip = params.room_half_width - POLE_RADIUS - MARGIN - BREAKING
    far = jnp.maximum(jnp.abs(pose.x), jnp.abs(pose.y))
    tip = jnp.maximum(jnp.abs(pose.x + top * r.x.z), jnp.abs(pose.y + top * r.y.z))
    return (far > jnp.asarray(near_cart)) | (tip > jnp.asarray(near_tip))
