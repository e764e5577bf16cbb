"""Forces on blocks that some novelties add."""

from collections.abc import Sequence

import jax.numpy as jnp

from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d.blocks import slots
from jaxsim.worlds.cartpole3d.types import Params, Pose, Scalar, Sphere, Vector

TARGET_HEIGHT = 0.5  # m, height at which the cart attracts


def attraction(
    params: Params, reported: Pose, blocks: Sequence[Sphere], share: Scalar
) -> list[Vector]:
    """Forces between blocks and towards cart and origin.

    Args:
      params: physics.
      reported: last reported cart pose; the original attracts to the cart of a tick ago.
      blocks: at the start of the tick.
      share: () number in [0, 1) drawn for this tick.

    Returns:
      N, world frame, one for each block.
    """
    centre = _centroid(blocks, reported.x)
    zero = jnp.zeros_like(reported.x)
    cart = Vector(reported.x, reported.y, zero + TARGET_HEIGHT)
    origin = Vector(zero, zero, zero)
    centroid_pull = params.pull_centroid + params.pull_centroid_random * share
    forces = []
    for block in blocks:
        force = _towards(centre, block.p, centroid_pull)
        force = geo.add(force, _towards(cart, block.p, params.pull_cart))
        forces.append(geo.add(force, _towards(origin, block.p, params.pull_origin)))
    return forces


def _centroid(blocks: Sequence[Sphere], lane: Scalar) -> Vector:
    """Mean position of the blocks; `lane` is any leaf without slots."""
    dtype = jnp.result_type(lane)
    numbers = (slots.over(jnp.sum, b.alive.astype(dtype), lane) for b in blocks)
    count = jnp.maximum(sum(numbers), 1)

    def total(axis: int) -> Scalar:
        present = (jnp.where(b.alive, b.p[axis], 0.0) for b in blocks)
        return sum(slots.over(jnp.sum, c, lane) for c in present)

    return Vector(*(total(axis) / count for axis in range(3)))


def _towards(target: Vector, p: Vector, size: Scalar) -> Vector:
    """Force of a given size from p towards a target; zero at the target itself."""
    d = geo.sub(target, p)
    square = geo.dot(d, d)
    away = square > 0
    factor = jnp.where(away, size / jnp.sqrt(jnp.where(away, square, 1.0)), 0.0)
    return geo.scale(d, factor)
