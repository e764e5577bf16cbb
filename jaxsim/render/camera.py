"""Cameras: where a view stands, the ray through each pixel, and where a point appears.

| view | projection | stands |
| --- | --- | --- |
| `corner` | perspective | outside of the room, in front, to the left and above |
| `side` | parallel | in front: x to the right, z up |
| `top` | parallel | above: x to the right, y up |
| `first` | perspective | on the cart, behind the pole, looking forward (+y) |

Pixel (0, 0) is the upper left one; the centre of pixel (row, column) has the coordinates
(column, row).
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.image_settings import MOST_PIXELS, MOST_SAMPLES, VIEWS
from jaxsim.inputs import check_whole
from jaxsim.pytrees import Leaf
from jaxsim.render.scene import Scene
from jaxsim.worlds.cartpole3d.geometry import dot, scale, sub
from jaxsim.worlds.cartpole3d.types import Scalar, Vector

PARALLEL = ("side", "top")

CORNER_EYE = (-1.55, -3.3, 1.25)
"""From the middle of the room, in half widths of the room (x, y) and half heights (z)."""
CORNER_ZOOM = 0.44
"""Half of the visible width at the room's middle, divided by the eye's distance from it."""
CORNER_DROP = 0.12
"""Distance of this view's target below the room's middle, in half heights."""
FIRST_EYE, FIRST_TARGET = (0.0, -1.7, 1.35), (0.0, 3.0, 1.3)
"""From the cart, m."""
FIRST_ZOOM = 0.8
"""Tangent of half the angle of view."""
BACK = 20.0
"""Distance from the room's middle at which parallel rays begin, in half widths of the room."""


@dataclass(frozen=True)
class Camera:
    """Settings of a picture; hashable, static in a compiled program.

    Attributes:
      view: one of `VIEWS`.
      height: pixels.
      width: pixels.
      samples: rays along each side of a pixel, whose mean is its colour.
      margin: of parallel views, border around the room as a share of the room.
      lean: factor of the pole's horizontal part, to make small leans visible.
      thickness: least radius of the drawn pole, pixels.
    """

    view: str = "corner"
    height: int = 240
    width: int = 240
    samples: int = 1
    margin: float = 0.1
    lean: float = 1.0
    thickness: float = 1.0

    def __post_init__(self) -> None:
        """Check the view and the sizes."""
        if self.view not in VIEWS:
            raise ValueError(f"view is {self.view!r}; it must be one of {', '.join(VIEWS)}")
        limits = {"height": MOST_PIXELS, "width": MOST_PIXELS, "samples": MOST_SAMPLES}
        for name, most in limits.items():
            check_whole(name, getattr(self, name), 1, most)


class CameraPose(NamedTuple):
    """Where a camera stands and looks; leaves () or (L,).

    Attributes:
      eye: place, m; of parallel views the place of the ray through the middle.
      right: unit vector to the right in the picture.
      up: unit vector upwards in the picture.
      ahead: unit vector into the picture.
      zoom: half of the picture's shorter side: m of parallel views, else m for each m of depth.
    """

    eye: Vector
    right: Vector
    up: Vector
    ahead: Vector
    zoom: Scalar


def pose(scene: Scene, camera: Camera) -> CameraPose:
    """Return where a camera stands in a scene."""
    half_height = (scene.ceiling - scene.floor) / 2
    middle = Vector(0.0, 0.0, scene.floor + half_height)
    largest = jnp.maximum(scene.half_width, half_height)
    half: Scalar = (1 + camera.margin) * largest
    x, y, z = Vector(1.0, 0.0, 0.0), Vector(0.0, 1.0, 0.0), Vector(0.0, 0.0, 1.0)
    back = BACK * largest
    if camera.view == "side":
        return CameraPose(Vector(0.0, -back, middle.z), x, z, y, half)
    if camera.view == "top":
        half = (1 + camera.margin) * scene.half_width
        return CameraPose(Vector(0.0, 0.0, middle.z + back), x, y, Vector(0.0, 0.0, -1.0), half)
    if camera.view == "first":
        eye, target = (
            Vector(*(place + shift for place, shift in zip(scene.cart, offset, strict=True)))
            for offset in (FIRST_EYE, FIRST_TARGET)
        )
        return _looking(eye, target, FIRST_ZOOM)
    fx, fy, fz = CORNER_EYE
    eye = Vector(fx * largest, fy * largest, middle.z + fz * half_height)
    target = Vector(0.0, 0.0, middle.z - CORNER_DROP * half_height)
    return _looking(eye, target, CORNER_ZOOM)


def _looking(eye: Vector, target: Vector, zoom: float) -> CameraPose:
    """A camera at a place that looks at another, its horizon level."""
    way = sub(target, eye)
    ahead = scale(way, 1 / jnp.sqrt(dot(way, way)))
    flat = 1 / jnp.sqrt(ahead.x * ahead.x + ahead.y * ahead.y)
    right = Vector(ahead.y * flat, -ahead.x * flat, 0.0)
    up = Vector(
        right.y * ahead.z - right.z * ahead.y,
        right.z * ahead.x - right.x * ahead.z,
        right.x * ahead.y - right.y * ahead.x,
    )
    return CameraPose(eye, right, up, ahead, zoom)


def grid(camera: Camera) -> tuple[np.ndarray, np.ndarray]:
    """Return where rays pass through the picture: to the right and up, in half shorter sides.

    Returns:
      Two float32 arrays, (1, W * samples) and (H * samples, 1).
    """
    shorter = min(camera.height, camera.width)
    step = 2 / (shorter * camera.samples)
    wide, high = camera.width * camera.samples, camera.height * camera.samples
    x = (np.arange(wide) + 0.5 - wide / 2) * step
    y = (high / 2 - np.arange(high) - 0.5) * step
    return x[None, :].astype(np.float32), y[:, None].astype(np.float32)


def rays(at: CameraPose, camera: Camera) -> tuple[Vector, Vector]:
    """Return beginning and unit direction of the ray through each sample of one lane's picture.

    Returns:
      Leaves that broadcast to (H * samples, W * samples).
    """
    x, y = (jnp.asarray(part) * at.zoom for part in grid(camera))
    if camera.view in PARALLEL:
        begin = [e + x * r + y * u for e, r, u in zip(at.eye, at.right, at.up, strict=True)]
        return Vector(*begin), at.ahead
    way = [a + x * r + y * u for a, r, u in zip(at.ahead, at.right, at.up, strict=True)]
    length = jax.lax.rsqrt(1 + x * x + y * y)
    return at.eye, Vector(*(part * length for part in way))


def project(scene: Scene, camera: Camera, point: Vector) -> tuple[jax.Array, jax.Array]:
    """Return where a point appears, column and row in pixels; leaves as `point`'s.

    The result is meaningless for points behind the eye of a perspective view.
    """
    at = pose(scene, camera)
    way = sub(point, at.eye)
    depth: Leaf = 1.0 if camera.view in PARALLEL else dot(way, at.ahead)
    half = min(camera.height, camera.width) / 2
    right, up = (dot(way, axis) / (at.zoom * depth) * half for axis in (at.right, at.up))
    return (camera.width - 1) / 2 + right, (camera.height - 1) / 2 - up


def pole_radius(scene: Scene, camera: Camera, at: CameraPose, radius: float) -> jax.Array:
    """Return the radius that a pole is drawn with, m: its own, or `thickness` pixels."""
    pixel = 2 * at.zoom / min(camera.height, camera.width)
    if camera.view not in PARALLEL:
        way = sub(scene.foot, at.eye)
        pixel = pixel * jnp.sqrt(dot(way, way))
    return jnp.maximum(radius, camera.thickness * pixel)
