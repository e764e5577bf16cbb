"""The blocks around a cart: place, speed and possible contacts, from an observation.

The walls of the room and the sizes of blocks, cart and pole are given. How blocks fly and bounce is
learned; see `forward_model`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.agents import sight
from jaxsim.agents.reference import lean
from jaxsim.worlds.cartpole3d.types import DT, Observation

BLOCKS = sight.SLOTS
"""Blocks that are tracked, K."""
CENTRE = (0.0, 0.0, 4.95)  # m, of the room
REACH = (4.45, 4.45, 4.5)  # m, from there to where a block touches a wall, by axis
EDGE = 1e-3  # m, within which rounding decides whether it does
APART = 1.02  # m, between the middles of two blocks that do not touch
POLE_TIP, POLE_CLEAR = 1.25, 0.68  # m, height above the cart; distance of a block's middle
CART_CLEAR, CART_OVER = 1.15, 0.95  # m, distance and height of the middle of a block
CART_ROOM = 4.35  # m, |x| and |y| within which the cart touches no wall


class Blocks(NamedTuple):
    """Blocks that are tracked."""

    place: jax.Array  # (..., 3) m, from the centre of the room
    speed: jax.Array  # (..., 3) m/s
    alone: jax.Array  # (...) bool, alive and near nothing but walls


class Around(NamedTuple):
    """Blocks, and whether bodies are near each other."""

    blocks: Blocks  # leaves (K, ...)
    were_alone: jax.Array  # (K,) bool, whether they were alone a tick ago
    calm: jax.Array  # () bool, cart and pole are near nothing
    number: jax.Array  # () blocks, tracked or not


def nothing() -> Around:
    """Return surroundings without blocks."""
    zeros, no = jnp.zeros((BLOCKS, 3)), jnp.zeros(BLOCKS, bool)
    return Around(Blocks(zeros, zeros, no), no, jnp.asarray(True), jnp.float32(0.0))


def of(o: Observation) -> Around:
    """Return the surroundings in an observation of CartPole3D."""
    view = sight.see(o)
    alive = view.block.alive
    place, speed = jnp.stack(view.block.p, axis=-1), jnp.stack(view.block.v, axis=-1)
    near = _near(o, place)
    cart = jnp.maximum(jnp.abs(o.cart_position.x), jnp.abs(o.cart_position.y))
    previous = place - DT * speed
    return Around(
        Blocks(place - jnp.array(CENTRE), speed, alive & ~near & ~_paired(place, alive)),
        alive & ~_near(o, previous) & ~_paired(previous, alive),
        ~jnp.any(near & alive) & (cart < CART_ROOM),
        view.count.astype(jnp.float32),
    )


def _near(o: Observation, place: jax.Array) -> jax.Array:
    """Mask of blocks that may touch cart or pole, (K,), by the reported place of the cart."""
    (lx, ly), _ = lean(o)
    axis = jnp.stack([lx, ly, jnp.sqrt(jnp.maximum(1 - lx * lx - ly * ly, 0.0))])
    offset = place - jnp.stack([o.cart_position.x, o.cart_position.y, o.cart_position.z])
    along = jnp.clip(jnp.sum(offset * axis, axis=-1), 0.0, POLE_TIP)
    squared = jnp.sum((offset - along[:, None] * axis) ** 2, axis=-1)
    flat = offset[:, 0] ** 2 + offset[:, 1] ** 2
    over_cart = (flat < CART_CLEAR**2) & (offset[:, 2] < CART_OVER)
    return (squared < POLE_CLEAR**2) | over_cart


def _paired(place: jax.Array, alive: jax.Array) -> jax.Array:
    """Mask of blocks that may touch another, (K,)."""
    squared = jnp.sum((place[:, None] - place[None, :]) ** 2, axis=-1)
    meet = (squared < APART**2) & alive[:, None] & alive[None, :]
    return jnp.any(meet & ~jnp.eye(BLOCKS, dtype=bool), axis=1)
