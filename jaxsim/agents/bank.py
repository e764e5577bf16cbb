"""The model bank: known changes of the physics that may explain errors of nominal predictions.

There are two banks. Models of cart and pole are sets of parameters, and all are predicted at once.
Most models of blocks are a force of unknown size in a known direction, fitted tick by tick. As the
size is free, such a model holds for all difficulties and for strengths in between.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.agents.sight import Sighting
from jaxsim.worlds.cartpole3d import dynamics
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d.contact import broadphase as contacts
from jaxsim.worlds.cartpole3d.levels import CATALOGUE, NAMED
from jaxsim.worlds.cartpole3d.terms.attraction import TARGET_HEIGHT
from jaxsim.worlds.cartpole3d.terms.wind import BLOCK_REACH, CELLS, PER_METRE, PROFILE
from jaxsim.worlds.cartpole3d.types import DT, Params, Scalar, Sphere, Vector

LEVELS = NAMED
"""Catalogue levels that can be named."""

_OF_STRUCTURE = [(101, CATALOGUE[101].overrides[0])]
_OF_STRUCTURE += [(201, overrides) for overrides in CATALOGUE[201].overrides]
STRUCTURE_LEVELS = (0, *(level for level, _ in _OF_STRUCTURE))
"""Level of each model of cart and pole; the first is nominal."""

BLOCK_LEVELS = (104, 106, 107, 207, 206, 105, 205)
"""Level of each model of the blocks. The last model serves two levels; the sign of its force says
which."""
MODELS = len(BLOCK_LEVELS) - 1
CENTROID, AWAY = MODELS - 1, MODELS

WIDE = float(CATALOGUE[104].overrides[0]["block_radius"])  # m
FALLING = -Params().gravity  # m/s^2
TINY = 1e-6  # keeps quotients finite


def structure_params() -> Params:
    """Parameters of the models of cart and pole; leaves that differ are (M,)."""
    names = {name for _, overrides in _OF_STRUCTURE for name in overrides}
    nominal = Params()
    columns = {
        name: jnp.array(
            [
                getattr(nominal, name),
                *(o.get(name, getattr(nominal, name)) for _, o in _OF_STRUCTURE),
            ],
            jnp.float32,
        )
        for name in names
    }
    return Params(**columns)


class Errors(NamedTuple):
    """Residuals of the models of the blocks in one tick."""

    total: jax.Array  # (6,) m/s^2, summed over blocks; in the order of `BLOCK_LEVELS`
    missed: jax.Array  # (6,) m/s^2, residuals of the nominal world for the same blocks
    number: jax.Array  # (6,) blocks
    inward: jax.Array  # () m/s^2, force towards the centroid


def unexplained(
    report: Sighting, change: Vector, free: jax.Array, wide: Vector, clear: jax.Array
) -> Errors:
    """Residual accelerations of blocks after the best fit of each model.

    Args:
      report: the observation before the tick.
      change: (4,) m/s^2, error of a nominal prediction.
      free: (4,) bool, blocks that touch nothing if they have the nominal size.
      wide: (4,) m/s^2, error of a prediction with blocks of level 104.
      clear: (4,) bool, blocks that touch at most walls if they have that size.
    """
    p, alive = report.block.p, report.block.alive
    zero = jnp.zeros_like(p.x)
    number = jnp.maximum(jnp.sum(alive), 1)
    centroid = Vector(*(jnp.sum(jnp.where(alive, c, 0.0)) / number for c in p))
    cart = Vector(report.reported.x, report.reported.y, zero + TARGET_HEIGHT)
    pulls = [towards(target, p) for target in (Vector(zero, zero, zero), cart, centroid)]
    sizes = [_fit(u, change, free) for u in pulls]
    residuals = [geo.sub(change, geo.scale(u, s)) for u, s in zip(pulls, sizes, strict=True)]
    fall = geo.sub(change, Vector(zero, zero, zero + FALLING))
    errors = [wide, fall, residuals[0], residuals[1], _off_wind(p, change, free), residuals[2]]
    masks = [clear & free, *(free,) * (MODELS - 1)]

    def total(vectors: list[Vector]) -> jax.Array:
        sizes = (jnp.where(m, dynamics.norm(e), 0.0) for e, m in zip(vectors, masks, strict=True))
        return jnp.stack([jnp.sum(size) for size in sizes])

    counts = jnp.stack([jnp.sum(m, dtype=jnp.float32) for m in masks])
    return Errors(total(errors), total([change] * MODELS), counts, sizes[2])


def towards(target: Vector, p: Vector) -> Vector:
    """Unit vectors from places to a target."""
    d = geo.sub(target, p)
    return geo.scale(d, 1 / jnp.maximum(dynamics.norm(d), TINY))


def _fit(u: Vector, change: Vector, free: jax.Array) -> jax.Array:
    """Least-squares size of a force along unit vectors, the same for all blocks."""
    along = jnp.sum(jnp.where(free, geo.dot(u, change), 0.0))
    return along / jnp.maximum(jnp.sum(free), 1)


def _off_wind(p: Vector, change: Vector, free: jax.Array) -> Vector:
    """Residual of a wind of the profile of level 206; it blows towards -x and -y only."""
    slab = jnp.where(free, wind_on_block(p.z), 0.0)
    square = jnp.maximum(jnp.sum(slab * slab), TINY)
    x, y = (jnp.minimum(jnp.sum(slab * c) / square, 0.0) for c in (change.x, change.y))
    return Vector(change.x - slab * x, change.y - slab * y, change.z)


def wind_on_block(z: Scalar) -> jax.Array:
    """Sum of the squared wind profile over the layers that push a block at a height."""
    table = jnp.concatenate([jnp.zeros(1), jnp.cumsum(jnp.asarray(PROFILE, jnp.float32) ** 2)])
    low, high = (
        jnp.clip(jnp.trunc(PER_METRE * jnp.asarray(z + reach)).astype(jnp.int32), 0, CELLS)
        for reach in (-BLOCK_REACH, BLOCK_REACH)
    )
    return jnp.maximum(table[high] - table[low], 0.0)


def blocks_after(params: Params, block: Sphere) -> Vector:
    """Velocities of blocks after a tick in which they touch at most walls, m/s."""
    v = dynamics.accelerate_block(params, block, None)
    return Vector(*(dynamics.clamp(c) for c in contacts.bounce_off_walls(params, block, v)))


def missed(observed: Vector, expected: Vector) -> Vector:
    """Unexpected acceleration, m/s^2, from velocities after the tick."""
    return geo.scale(geo.sub(observed, expected), 1 / DT)
