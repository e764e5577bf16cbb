"""Possible contacts, from an observation; gaps within rounding count as contacts."""

from dataclasses import replace

import jax
import jax.numpy as jnp

from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d.contact import broadphase as contacts
from jaxsim.worlds.cartpole3d.types import Params, Pose, Scalar, Sphere, Vector

NEAR_PLANE = 2e-4  # m, within which rounding decides whether a block touches a wall
TOUCHING = 1e-4  # m, added to where walls and blocks touch
CART_AT_WALL = 4.4  # m, |x| or |y| from which the cart may touch a wall
EXTRA = 0.02  # m, added to the reach of cart and pole
MOVED = 1e-4  # m, more than rounding


def near(params: Params, pose: Pose, block: Sphere, blur: Scalar = 0.0) -> jax.Array:
    """Mask of the blocks that may touch cart or pole, however the cart is turned, (N,).

    `blur`, m, is the largest error of places.
    """
    grown = replace(params, block_radius=params.block_radius + EXTRA + blur)
    r = geo.rotation(pose.qx, pose.qy, pose.qz, pose.qw)
    cart, pole = contacts.near_structure(grown, pose, r, block)
    return cart | pole


def cart_at_wall(pose: Pose, blur: Scalar = 0.0) -> jax.Array:
    """Whether the cart may touch a side wall."""
    return jnp.maximum(jnp.abs(pose.x), jnp.abs(pose.y)) > CART_AT_WALL - blur


def paired(params: Params, block: Sphere, blur: Scalar = 0.0) -> jax.Array:
    """Mask of the blocks that touch another block, (N,)."""
    places = [jnp.asarray(c) for c in block.p]
    d = Vector(*(c[:, None] - c[None, :] for c in places))
    reach = 2 * params.block_radius + TOUCHING + blur
    meet = (geo.dot(d, d) <= reach * reach) & block.alive[:, None] & block.alive[None, :]
    return jnp.any(meet & ~jnp.eye(len(block.alive), dtype=bool), axis=1)


def gaps(params: Params, p: Vector) -> list[jax.Array]:
    """Gaps between blocks and the nearer wall along each axis, m, (N,) each."""
    side = params.room_half_width - params.block_radius
    low, high = params.room_floor + params.block_radius, params.room_ceiling - params.block_radius
    return [side - jnp.abs(p.x), side - jnp.abs(p.y), jnp.minimum(p.z - low, high - p.z)]


def least_gap(params: Params, p: Vector) -> jax.Array:
    """Gap between blocks and the nearest wall, m, (N,)."""
    each = gaps(params, p)
    return jnp.minimum(jnp.minimum(each[0], each[1]), each[2])


def off_planes(params: Params, p: Vector) -> jax.Array:
    """Whether it is certain, despite rounding, which walls blocks touch, (N,)."""
    each = [jnp.abs(gap) > NEAR_PLANE for gap in gaps(params, p)]
    return each[0] & each[1] & each[2]


def apart(a: Vector, b: Vector) -> jax.Array:
    """Whether places differ by more than rounding."""
    return largest(geo.sub(a, b)) > MOVED


def largest(a: Vector) -> jax.Array:
    """Largest absolute component."""
    return jnp.maximum(jnp.maximum(jnp.abs(a.x), jnp.abs(a.y)), jnp.abs(a.z))
