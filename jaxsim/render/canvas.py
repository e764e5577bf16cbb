"""Orthographic views of a scene: the room, the cart, the pole as a rod and the blocks as discs.

This is what the sensors report, not what a camera would see.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Literal

import numpy as np

from jaxsim.render.scene import Scene

Colour = tuple[int, int, int]
PAPER: Colour = (255, 255, 255)
WALL: Colour = (150, 150, 150)
CART: Colour = (40, 90, 170)
POLE: Colour = (200, 60, 30)
BLOCK: Colour = (90, 150, 70)

CART_RADIUS = 0.5
CART_HEIGHT = 0.2
POLE_RADIUS = 0.06
WALL_WIDTH = 0.05
"""Sizes as they are drawn, m; at least a pixel."""

View = Literal["side", "top"]
_SIDE, _TOP = (0, 2), (0, 1)  # axes to the right and up


@dataclass(frozen=True)
class Style:
    """How a scene is drawn.

    Attributes:
      views: from the side (x to the right, z up) or from above (x to the right, y up), from left
        to right.
      pixels: height of the picture and width of each view.
      margin: of what a view shows around the room, as a share of the room.
      lean: factor of the pole's horizontal part seen from above, where a small lean shows little.
    """

    views: tuple[View, ...] = ("side", "top")
    pixels: int = 240
    margin: float = 0.1
    lean: float = 1.0


def draw(scene: Scene, style: Style | None = None) -> np.ndarray:
    """Draw a scene.

    Args:
      scene: what there is.
      style: None for the side view and the view from above.

    Returns:
      (pixels, pixels * number of views, 3) uint8.
    """
    style = style or Style()
    return np.concatenate([_view(scene, style, view) for view in style.views], axis=1)


def _view(scene: Scene, style: Style, view: View) -> np.ndarray:
    """Draw everything; what is nearer to the eye comes later."""
    foot, tip = scene.foot, scene.tip
    if view == "top":
        canvas = _Canvas(scene, style, _TOP, 0.0)
        cart = partial(canvas.disc, foot, CART_RADIUS, CART)
        tip = foot + (tip - foot) * [style.lean, style.lean, 1.0]
        depth, sign = 2, 1
    else:
        canvas = _Canvas(scene, style, _SIDE, (scene.floor + scene.ceiling) / 2)
        cart = partial(canvas.box, foot, CART_RADIUS, CART_HEIGHT / 2, CART)
        depth, sign = 1, -1
    if style.margin:
        canvas.walls()
    things: list[tuple[np.ndarray, Callable[[], None]]] = [
        (foot, cart),
        (tip, partial(canvas.rod, foot, tip, POLE_RADIUS, POLE)),
        *((b, partial(canvas.disc, b, scene.block_radius, BLOCK)) for b in scene.blocks),
    ]
    for _, paint in sorted(things, key=lambda thing: sign * float(thing[0][depth])):
        paint()
    return canvas.pixels


class _Canvas:
    """A square view; points are (3,), m.

    Args:
      scene: whose room is shown.
      style: how.
      axes: to the right and up.
      middle: what lies halfway up, m.
    """

    def __init__(self, scene: Scene, style: Style, axes: tuple[int, int], middle: float) -> None:
        self._axes, self._middle = list(axes), middle
        self._half_width = scene.half_width
        self._half_height = scene.half_width if axes == _TOP else (scene.ceiling - scene.floor) / 2
        half = (1 + style.margin) * max(self._half_width, self._half_height)
        self._pixel = 2 * half / style.pixels
        self.pixels = np.full((style.pixels, style.pixels, 3), PAPER, np.uint8)
        centres = (np.arange(style.pixels) + 0.5) * self._pixel - half
        self._x, self._y = centres[None, :], middle - centres[:, None]

    def walls(self) -> None:
        """Draw the room's outline."""
        low, high = self._middle - self._half_height, self._middle + self._half_height
        left, right = -self._half_width, self._half_width
        corners = [(left, low), (right, low), (right, high), (left, high), (left, low)]
        for a, b in pairwise(corners):
            self._segment(np.array(a), np.array(b), WALL_WIDTH, WALL)

    def disc(self, centre: np.ndarray, radius: float, colour: Colour) -> None:
        """Draw a ball."""
        x, y = centre[self._axes]
        radius = max(radius, self._pixel)
        self.pixels[(self._x - x) ** 2 + (self._y - y) ** 2 <= radius**2] = colour

    def box(self, centre: np.ndarray, half_x: float, half_y: float, colour: Colour) -> None:
        """Draw a filled rectangle."""
        x, y = centre[self._axes]
        half_x, half_y = max(half_x, self._pixel), max(half_y, self._pixel)
        self.pixels[(abs(self._x - x) <= half_x) & (abs(self._y - y) <= half_y)] = colour

    def rod(self, a: np.ndarray, b: np.ndarray, radius: float, colour: Colour) -> None:
        """Draw a thick line."""
        self._segment(a[self._axes], b[self._axes], radius, colour)

    def _segment(self, a: np.ndarray, b: np.ndarray, radius: float, colour: Colour) -> None:
        along = b - a
        length = max(float(along @ along), 1e-12)
        share = ((self._x - a[0]) * along[0] + (self._y - a[1]) * along[1]) / length
        share = np.clip(share, 0.0, 1.0)
        gap = (self._x - a[0] - share * along[0]) ** 2 + (self._y - a[1] - share * along[1]) ** 2
        self.pixels[gap <= max(radius, self._pixel) ** 2] = colour
