"""Vectors, rotations and the 32-sided prism, on scalar leaves.

Everything here is elementwise: the parts of a `Vector` may be scalars or arrays of one shape.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.backend import materialise, opaque_one
from jaxsim.worlds.cartpole3d.types import Pose, Scalar, Vector

SIDES = 32
MARGIN = 0.001  # m, collision margin around the prism
SECTOR = 2 * math.pi / SIDES  # rad between two vertices
FACE = math.cos(math.pi / SIDES)  # distance of a face from the axis, per circumradius
HALF_EDGE = math.sin(math.pi / SIDES)  # half the length of an edge, per circumradius

_MID_FACES = [((k + 0.5) * SECTOR) for k in range(SIDES // 8)]
_VERTICES = [(k * SECTOR) for k in range(SIDES // 8 + 1)]


def add(a: Vector, b: Vector) -> Vector:
    """Return a + b."""
    return Vector(a.x + b.x, a.y + b.y, a.z + b.z)


def sub(a: Vector, b: Vector) -> Vector:
    """Return a - b."""
    return Vector(a.x - b.x, a.y - b.y, a.z - b.z)


def scale(a: Vector, s: Scalar) -> Vector:
    """Return s a."""
    return Vector(a.x * s, a.y * s, a.z * s)


def dot(a: Vector, b: Vector) -> Scalar:
    """Return a . b."""
    return a.x * b.x + a.y * b.y + a.z * b.z


def cross(a: Vector, b: Vector) -> Vector:
    """Return a x b."""
    return Vector(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x)


class Rotation(NamedTuple):
    """A rotation matrix by its rows."""

    x: Vector
    y: Vector
    z: Vector


def rotation(qx: Scalar, qy: Scalar, qz: Scalar, qw: Scalar) -> Rotation:
    """Matrix of a unit quaternion (x, y, z, w)."""
    x2, y2, z2 = 2 * qx, 2 * qy, 2 * qz
    xx, yy, zz = qx * x2, qy * y2, qz * z2
    xy, xz, yz = qx * y2, qx * z2, qy * z2
    wx, wy, wz = qw * x2, qw * y2, qw * z2
    return Rotation(
        Vector(1 - (yy + zz), xy - wz, xz + wy),
        Vector(xy + wz, 1 - (xx + zz), yz - wx),
        Vector(xz - wy, yz + wx, 1 - (xx + yy)),
    )


def pole_to_cart(pose: Pose) -> Rotation:
    """Rotation of a pose, materialised as many functions use it."""
    return materialise(rotation(pose.qx, pose.qy, pose.qz, pose.qw), opaque_one(pose.x))


def rotate(r: Rotation, a: Vector) -> Vector:
    """Return R a."""
    return Vector(dot(r.x, a), dot(r.y, a), dot(r.z, a))


def rotate_back(r: Rotation, a: Vector) -> Vector:
    """Return R^T a."""
    return Vector(
        r.x.x * a.x + r.y.x * a.y + r.z.x * a.z,
        r.x.y * a.x + r.y.y * a.y + r.z.y * a.z,
        r.x.z * a.x + r.y.z * a.y + r.z.z * a.z,
    )


def yawed(cos: Scalar, sin: Scalar, r: Rotation) -> Rotation:
    """Return Rz(yaw) R."""
    row_x = Vector(*(cos * a - sin * b for a, b in zip(r.x, r.y, strict=True)))
    row_y = Vector(*(sin * a + cos * b for a, b in zip(r.x, r.y, strict=True)))
    return Rotation(row_x, row_y, r.z)


def yaw(cos: Scalar, sin: Scalar, a: Vector) -> Vector:
    """Return Rz(yaw) a."""
    return Vector(cos * a.x - sin * a.y, sin * a.x + cos * a.y, a.z)


def _nearest_direction(
    x: Scalar, y: Scalar, angles: list[float], borders: list[float]
) -> tuple[jax.Array, jax.Array]:
    """Unit vector, out of a fan that repeats in every octant, nearest to (x, y).

    Args:
      x: () any planar vector; the zero vector is taken as +x.
      y: ()
      angles: directions of the fan between 0 and 45 degrees, rising, rad.
      borders: angles between them at which the next one becomes nearest, rad.

    Returns:
      (cos, sin) of that direction. No trigonometry at run time: the octant is folded away by
      signs and a swap, and slopes are compared with constants.
    """
    ax, ay = jnp.abs(x), jnp.abs(y)
    steep = ay > ax
    big, small = jnp.where(steep, ay, ax), jnp.where(steep, ax, ay)
    cos = jnp.full_like(big, math.cos(angles[0]))
    sin = jnp.full_like(big, math.sin(angles[0]))
    for angle, border in zip(angles[1:], borders, strict=True):
        beyond = small > math.tan(border) * big
        cos = jnp.where(beyond, math.cos(angle), cos)
        sin = jnp.where(beyond, math.sin(angle), sin)
    cx, cy = jnp.where(steep, sin, cos), jnp.where(steep, cos, sin)
    return jnp.where(x < 0, -cx, cx), jnp.where(y < 0, -cy, cy)


def face_direction(x: Scalar, y: Scalar) -> tuple[jax.Array, jax.Array]:
    """Outward normal of the prism face whose sector holds the direction (x, y)."""
    return _nearest_direction(x, y, _MID_FACES, _VERTICES[1:-1])


def vertex_direction(x: Scalar, y: Scalar) -> tuple[jax.Array, jax.Array]:
    """Direction of the prism vertex nearest to the direction (x, y)."""
    return _nearest_direction(x, y, _VERTICES, _MID_FACES)


class Nearest(NamedTuple):
    """Point of a prism that is nearest to a given point."""

    point: Vector  # on the prism without its margin, in the prism's frame, m
    normal: Vector  # unit, from the prism to the point
    distance: Scalar  # signed, m; negative when the point is inside


def nearest_on_prism(p: Vector, radius: Scalar, half_height: Scalar, one: jax.Array) -> Nearest:
    """Closest point of a 32-sided prism, exactly.

    Args:
      p: () point in the prism's frame: origin at its centre, axis z, m.
      radius: () circumradius of the 32-gon, vertices at multiples of 11.25 degrees, m.
      half_height: () m.
      one: from `backend.opaque_one`.

    Returns:
      Closest point, direction and signed distance. A point inside leaves through the nearest of
      the face of its own sector and the two ends.

    The sector boundaries are the bisectors of neighbouring faces, so the sector of the point also
    holds its closest point: rotate the face normal to +x and clamp.
    """
    fx, fy = materialise(face_direction(p.x, p.y), one)
    u, w = fx * p.x + fy * p.y, fx * p.y - fy * p.x
    face = radius * FACE
    edge = radius * HALF_EDGE
    cu, cw = jnp.minimum(u, face), jnp.clip(w, -edge, edge)
    cz = jnp.clip(p.z, -half_height, half_height)
    du, dw, dz = u - cu, w - cw, p.z - cz
    square = du * du + dw * dw + dz * dz
    outside = square > 0
    length = materialise(jnp.sqrt(jnp.where(outside, square, 1.0)), one)
    # Inside: the shorter of the two ways out.
    depth_side, depth_end = face - u, half_height - jnp.abs(p.z)
    side = depth_side <= depth_end
    up = jnp.where(p.z < 0, -1.0, 1.0)
    nu = jnp.where(outside, du / length, jnp.where(side, 1.0, 0.0))
    nw = jnp.where(outside, dw / length, 0.0)
    nz = jnp.where(outside, dz / length, jnp.where(side, 0.0, up))
    cu = jnp.where(outside | ~side, cu, face)
    cz = jnp.where(outside | side, cz, up * half_height)
    distance = jnp.where(outside, length, -jnp.where(side, depth_side, depth_end))
    cu, cw, cz, nu, nw, nz, distance = materialise((cu, cw, cz, nu, nw, nz, distance), one)
    return Nearest(
        Vector(fx * cu - fy * cw, fy * cu + fx * cw, cz),
        Vector(fx * nu - fy * nw, fy * nu + fx * nw, nz),
        distance,
    )


def box_reach(row: Vector, half: Vector) -> Scalar:
    """Half extent, along the axis `row`, of a box turned so that `row` is a row of its matrix."""
    return jnp.abs(row.x) * half.x + jnp.abs(row.y) * half.y + jnp.abs(row.z) * half.z
