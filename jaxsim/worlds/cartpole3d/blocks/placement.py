"""Positions and velocities of new blocks, drawn by counter."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp

from jaxsim import rng
from jaxsim.pytrees import Leaf, Tree
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d import grouping
from jaxsim.worlds.cartpole3d.types import Scalar, Vector

CLEARANCE = 1.0  # m, blocks appear at least this far from where the cart started, horizontally
BLOCK_SPREAD = 4.0  # m, blocks appear at U(-spread, spread) in x and y
BLOCK_MIDDLE = 5.0  # m, centre of the same range in z
REDRAWS = 64  # most positions tried for one block; all fail with probability 0.05^64
TOGETHER = 8  # attempts that `rarely_fitting` makes for all lanes
GROUP = 64  # remaining lanes that continue together


def redrawn(
    draw: Callable[[jax.Array | int], Vector], fits: Callable[[Vector], jax.Array], most: int
) -> tuple[Vector, jax.Array]:
    """Draw again, lane by lane, until a vector fits.

    Args:
      draw: attempt, from 0 -> vector.
      fits: vector -> whether it is accepted.
      most: largest number of attempts.

    Returns:
      The first vector that fits, or the last one drawn; and the number of draws, int32.
    """

    def again(carry: tuple[jax.Array, Vector, jax.Array]) -> tuple[jax.Array, Vector, jax.Array]:
        attempt, v, draws = carry
        keep = fits(v)
        fresh = draw(attempt)
        v = Vector(*(jnp.where(keep, a, b) for a, b in zip(v, fresh, strict=True)))
        return attempt + 1, v, jnp.where(keep, draws, attempt + 1)

    def unfinished(carry: tuple[jax.Array, Vector, jax.Array]) -> jax.Array:
        return (carry[0] < most) & ~jnp.all(fits(carry[1]))

    first = draw(0)
    shape = jnp.shape(fits(first))
    first = Vector(*(jnp.broadcast_to(c, shape) for c in first))
    start = (jnp.int32(1), first, jnp.ones(shape, jnp.int32))
    _, v, draws = jax.lax.while_loop(unfinished, again, start)
    return v, draws


def rarely_fitting(
    draw: Callable[[Tree, jax.Array | int], Vector],
    fits: Callable[[Tree, Vector], jax.Array],
    most: int,
    inputs: Tree,
) -> Vector:
    """As `redrawn`, for vectors that rarely fit.

    After `TOGETHER` attempts the remaining lanes continue in small groups, so that a lane with many
    attempts does not delay all others.

    Args:
      draw: inputs, attempt -> vector.
      fits: inputs, vector -> whether it is accepted.
      most: largest number of attempts.
      inputs: tree of arrays that broadcast to one shape.

    Returns:
      The first vector that fits, or the last one drawn; of that shape.
    """
    shape = jnp.broadcast_shapes(*(jnp.shape(leaf) for leaf in jax.tree.leaves(inputs)))

    def flat(leaf: Leaf) -> jax.Array:
        return jnp.broadcast_to(leaf, shape).reshape(-1)

    inputs = jax.tree.map(flat, inputs)
    v, _ = redrawn(partial(draw, inputs), partial(fits, inputs), TOGETHER)

    def go_on(inputs: Tree, v: Vector, needed: jax.Array) -> Vector:
        def again(carry: tuple[jax.Array, Vector]) -> tuple[jax.Array, Vector]:
            attempt, v = carry
            keep, fresh = fits(inputs, v), draw(inputs, attempt)
            return attempt + 1, Vector(
                *(jnp.where(keep, a, b) for a, b in zip(v, fresh, strict=True))
            )

        def unfinished(carry: tuple[jax.Array, Vector]) -> jax.Array:
            return (carry[0] < most) & jnp.any(needed & ~fits(inputs, carry[1]))

        return jax.lax.while_loop(unfinished, again, (jnp.int32(TOGETHER), v))[1]

    v = grouping.replaced(go_on, GROUP, ~fits(inputs, v), (inputs, v), v)
    return Vector(*(jnp.reshape(c, shape) for c in v))


def clear_of(k: rng.Words, base: jax.Array | int, x: Scalar, y: Scalar, dtype: jnp.dtype) -> Vector:
    """Draw a position in the room that is clear of (x, y).

    Args:
      k: counter key.
      base: first of the 3 `REDRAWS` slots to draw from.
      x: () m.
      y: () m.
      dtype: floating type.
    """

    def position(attempt: jax.Array | int) -> Vector:
        slot = base + 3 * attempt
        spread = BLOCK_SPREAD
        px, py, pz = (rng.uniform(k, slot + i, -spread, spread, dtype) for i in range(3))
        return Vector(px, py, pz + BLOCK_MIDDLE)

    def clear(p: Vector) -> jax.Array:
        return jnp.asarray((p.x - x) ** 2 + (p.y - y) ** 2 >= CLEARANCE**2)

    return redrawn(position, clear, REDRAWS)[0]


def signed(
    k: rng.Words, base: jax.Array | int, low: Scalar, high: Scalar, dtype: jnp.dtype
) -> Vector:
    """Draw each component from +-[low, high); takes 6 slots from `base`."""
    sizes = (rng.uniform(k, base + i, dtype=dtype) * (high - low) + low for i in range(3))
    return Vector(*(sign(k, base + 3 + i) * size for i, size in enumerate(sizes)))


def sign(k: rng.Words, slot: jax.Array | int) -> jax.Array:
    """Draw -1 or 1."""
    return jnp.where(rng.bits(k, slot) >> 31 == 1, -1.0, 1.0)


def at_speed(p: Vector, target: Vector, speed: Scalar) -> Vector:
    """Velocity of a given size from p towards a target."""
    d = geo.sub(target, p)
    return geo.scale(d, speed / jnp.sqrt(jnp.maximum(geo.dot(d, d), 1e-12)))
