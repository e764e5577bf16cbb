"""What may touch what, as far as an observation tells; rounding counts as touching."""

from dataclasses import replace

import jax
import jax.numpy as jnp

from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d.contact import broadphase as contacts
from jaxsim.worlds.cartpole3d.types import Block, Params, Pose, Vector

NEAR_PLANE = 2e-4  # m, within which rounding decides whether a block touches a wall
TOUCHING = 1e-4  # m, added to where walls and blocks touch
CART_AT_WALL = 4.4  # m, |x| or |y| from which the cart may touch a wall
EXTRA = 0.02  # m, added to the reach of cart and pole
MOVED = 1e-4  # m, further than rounding


def near(params: Params, pose: Pose, block: Block) -> jax.Array:
    """Which blocks may touch cart or pole, however the cart is turned, (N,)."""
    grown = replace(params, block_radius=params.block_radius + EXTRA)
    r = geo.rotation(pose.qx, pose.qy, pose.qz, pose.qw)
    cart, pole = contacts.near_structure(grown, pose, r, block)
    return cart | pole


def cart_at_wall(pose: Pose) -> jax.Array:
    """Whether the cart may touch a side wall."""
    return jnp.maximum(jnp.abs(pose.x), jnp.abs(pose.y)) > CART_AT_WALL


def paired(params: Params, block: Block) -> jax.Array:
    """Which blocks touch another one, (N,)."""
    places = [jnp.asarray(c) for c in block.p]
    d = Vector(*(c[:, None] - c[None, :] for c in places))
    reach = 2 * params.block_radius + TOUCHING
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
    """Whether rounding leaves no doubt which walls blocks touch, (N,)."""
    each = [jnp.abs(gap) > NEAR_PLANE for gap in gaps(params, p)]
    return each[0] & each[1] & each[2]


def apart(a: Vector, b: Vector) -> jax.Array:
    """Whether places differ by more than rounding."""
    return largest(geo.sub(a, b)) > MOVED


def largest(a: Vector) -> jax.Array:
    """Largest component by size."""
    return jnp.maximum(jnp.maximum(jnp.abs(a.x), jnp.abs(a.y)), jnp.abs(a.z))
