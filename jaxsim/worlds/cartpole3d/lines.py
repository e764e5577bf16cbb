"""Blocks that slide on horizontal lines, without gravity or drag.

The original builds such a block as a sphere on a prismatic joint, with one position and one speed,
so only the component of an impulse along the line acts.
"""

from dataclasses import replace

import jax.numpy as jnp

from jaxsim.worlds.cartpole3d.types import DT, Rail, Scalar, Sphere, Vector

LEAST_SLOPE = 1e-3
"""Component of a line across a wall below which the iteration computes the bounce."""


def component(rail: Rail, a: Vector) -> Scalar:
    """Return the component of a vector along the line."""
    return rail.x * a.x + rail.y * a.y


def along(rail: Rail, a: Vector) -> Vector:
    """Project a vector onto the line; free blocks keep all of it."""
    size = component(rail, a)
    return either(rail, Vector(rail.x * size, rail.y * size, 0.0 * a.z), a)


def either(rail: Rail, held: Vector, free: Vector) -> Vector:
    """Take `held` where there is a line and `free` elsewhere."""
    return Vector(*(jnp.where(rail.holds, a, b) for a, b in zip(held, free, strict=True)))


def turned_back(rail: Rail, v: Vector, bounced: Vector) -> Vector:
    """Velocity on a line after one side wall, m/s.

    Args:
      rail: of a block whose line crosses the wall at more than `LEAST_SLOPE`.
      v: before the wall.
      bounced: after the wall for a free block; different from `v` along at most one of x and y.
    """
    changes = (
        (after - before) / jnp.where(jnp.abs(slope) < LEAST_SLOPE, 1.0, slope)
        for slope, before, after in ((rail.x, v.x, bounced.x), (rail.y, v.y, bounced.y))
    )
    change = sum(changes)
    return Vector(v.x + rail.x * change, v.y + rail.y * change, v.z)


def arrive(block: Sphere, hidden: Scalar) -> Sphere:
    """Reset the lag of the last tick, except before the hidden tick.

    Args:
      block: with a rail.
      hidden: () bool, whether the hidden first tick is next.
    """
    assert block.rail is not None
    lag, drop = (jnp.where(hidden, c, 0.0) for c in (block.rail.lag, block.rail.drop))
    return replace(block, rail=replace(block.rail, lag=lag, drop=drop))


def glide(block: Sphere, v: Vector) -> Sphere:
    """Move a block for one tick, and by the lag that `arrive` has kept.

    The original normalises a line's direction only after its hidden tick. In that tick collider and
    sensors are further out than the block; the lag moves them back.
    """
    assert block.rail is not None
    rail, slip = block.rail, block.rail.lag
    distance = DT * component(rail, v) + slip
    p = Vector(
        block.p.x + DT * v.x + rail.x * slip,
        block.p.y + DT * v.y + rail.y * slip,
        block.p.z + DT * v.z + rail.drop,
    )
    return Sphere(p, v, block.alive, replace(rail, lag=distance))


def reported(block: Sphere) -> tuple[Vector, Vector]:
    """Reported position and velocity: the place of one tick ago, and zero.

    The original reads the velocity of the line's base, which never moves.
    """
    assert block.rail is not None
    rail, p, v = block.rail, block.p, block.v
    place = Vector(p.x - rail.x * rail.lag, p.y - rail.y * rail.lag, p.z - rail.drop)
    return either(rail, place, p), either(rail, Vector(*(0.0 * c for c in v)), v)
