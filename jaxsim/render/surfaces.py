"""Where rays meet spheres, cylinders and the walls of a room.

Everything is elementwise: the parts of rays are arrays over pixels, the parts of bodies scalars.
Directions are unit vectors. A miss has the distance `FAR`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.worlds.cartpole3d.geometry import add, dot, scale, sub
from jaxsim.worlds.cartpole3d.types import Scalar, Vector

FAR = 1e6  # m
TINY = 1e-9


class Cylinder(NamedTuple):
    """A cylinder with flat ends.

    Attributes:
      base: centre of one end, m.
      axis: unit vector from there to the other.
      length: m.
      radius: m.
    """

    base: Vector
    axis: Vector
    length: Scalar
    radius: Scalar


def sphere(begin: Vector, way: Vector, centre: Vector, radius: Scalar) -> jax.Array:
    """Return the distance along each ray to a sphere, m."""
    to = sub(centre, begin)
    along = dot(to, way)
    # By the part across the ray: exact for rays that begin far away, too.
    across = sub(to, scale(way, along))
    inside = radius * radius - dot(across, across)
    distance = along - jnp.sqrt(jnp.maximum(inside, 0.0))
    return jnp.where((inside > 0) & (distance > 0), distance, FAR)


def cylinder(begin: Vector, way: Vector, body: Cylinder) -> tuple[jax.Array, jax.Array]:
    """Return the distance along each ray to a cylinder, m, and whether it meets an end."""
    to = sub(begin, body.base)
    way_along, to_along = dot(body.axis, way), dot(body.axis, to)
    way_across = sub(way, scale(body.axis, way_along))
    to_across = sub(to, scale(body.axis, to_along))
    a = jnp.maximum(dot(way_across, way_across), TINY)
    b = dot(way_across, to_across)
    square = body.radius * body.radius
    inside = b * b - a * (dot(to_across, to_across) - square)
    side = (-b - jnp.sqrt(jnp.maximum(inside, 0.0))) / a
    height = to_along + side * way_along
    meets_side = (inside > 0) & (height > 0) & (height < body.length) & (side > 0)

    steep = jnp.where(jnp.abs(way_along) < TINY, TINY, way_along)
    end = (jnp.where(way_along < 0, body.length, 0.0) - to_along) / steep
    offset = add(to_across, scale(way_across, end))
    meets_end = (dot(offset, offset) < square) & (end > 0)

    side = jnp.where(meets_side, side, FAR)
    end = jnp.where(meets_end, end, FAR)
    return jnp.minimum(side, end), end < side


def room(
    begin: Vector, way: Vector, low: Vector, high: Vector
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return where rays leave a room: the faces that look towards the eye.

    Returns:
      Distance, m, `FAR` for rays that miss the room; and whether the face there is one of x, and
      one of z.
    """
    leave, enter = [], []
    for b, w, lo, hi in zip(begin, way, low, high, strict=True):
        slow = jnp.where(jnp.abs(w) < TINY, TINY, w)
        one, other = (lo - b) / slow, (hi - b) / slow
        leave.append(jnp.maximum(one, other))
        enter.append(jnp.minimum(one, other))
    x, y, z = leave
    distance = jnp.minimum(jnp.minimum(x, y), z)
    first = jnp.maximum(jnp.maximum(enter[0], enter[1]), enter[2])
    distance = jnp.where((distance > first) & (distance > 0), distance, FAR)
    return distance, x <= jnp.minimum(y, z), z < jnp.minimum(x, y)
