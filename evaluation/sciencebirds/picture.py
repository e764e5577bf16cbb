"""Plain pictures of the scene: the side view on the left and the top view on the right.

Both are orthographic, drawn from what the sensors report: the room, the cart, the pole as a line
and the blocks as discs. This is what there is to see, not a picture of a camera.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Final

import numpy as np

from evaluation.sciencebirds.codec import Picture

SIZE: Final = 240
"""Height of the picture and width of each view, pixels."""
HALF: Final = 5.5
"""Half of the width of what a view shows, m."""
ROOM: Final = 5.0
CEILING: Final = 10.0
WALL_WIDTH: Final = 0.05
PIVOT: Final = 0.2
"""Height of the pole's lower end, m."""
CART: Final = 0.5
CART_HEIGHT: Final = 0.2
BLOCK: Final = 0.5
POLE: Final = 0.06
"""Sizes of what is drawn, m; radii but for the height."""

Colour = tuple[int, int, int]
PAPER: Final[Colour] = (255, 255, 255)
WALL: Final[Colour] = (150, 150, 150)
CART_COLOUR: Final[Colour] = (40, 90, 170)
POLE_COLOUR: Final[Colour] = (200, 60, 30)
BLOCK_COLOUR: Final[Colour] = (90, 150, 70)

SIDE: Final = (0, 2)
TOP: Final = (0, 1)
"""Axes of a view: to the right and up."""


def draw(observation: Any, pole_length: float = 1.0, block_radius: float = BLOCK) -> Picture:
    """Draw an observation.

    Args:
      observation: CartPole3D's, with scalar leaves; m.
      pole_length: m.
      block_radius: m.

    Returns:
      A picture of 2 `SIZE` by `SIZE` pixels.
    """
    cart = np.array([float(part) for part in observation.cart_position])
    foot = cart + np.array([0.0, 0.0, PIVOT])
    tip = foot + pole_length * _axis(observation.pole_quaternion)
    things: list[_Thing] = [
        (foot, partial(_paint_cart, foot)),
        (tip, partial(_paint_pole, foot, tip)),
        *((block, partial(_paint_block, block, block_radius)) for block in _blocks(observation)),
    ]
    views = (_view(things, SIDE, CEILING / 2, 1, -1), _view(things, TOP, 0.0, 2, 1))
    return Picture(2 * SIZE, SIZE, np.concatenate(views, axis=1).tobytes())


def _view(
    things: Sequence["_Thing"], axes: tuple[int, int], middle: float, depth: int, sign: int
) -> np.ndarray:
    """Draw everything; what is nearer to the eye comes later.

    Args:
      things: points that say how near they are, and how they are drawn.
      axes: to the right and up.
      middle: what lies halfway up, m.
      depth: axis along which the eye looks.
      sign: of the direction towards the eye.
    """
    canvas = _Canvas(axes, middle)
    canvas.room()
    for _, paint in sorted(things, key=lambda thing: sign * float(thing[0][depth])):
        paint(canvas)
    return canvas.pixels


def _axis(quaternion: Any) -> np.ndarray:
    """Direction of the pole, world frame, (3,)."""
    x, y, z, w = (float(part) for part in quaternion)
    return np.array([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)])


def _blocks(observation: Any) -> list[np.ndarray]:
    """Positions of the blocks that are there, m, (3,) each."""
    found: list[np.ndarray] = []
    for position, alive in zip(observation.block_position, observation.block_alive, strict=True):
        # One block, or many behind one another.
        points = np.stack([np.atleast_1d(np.asarray(part, float)) for part in position], axis=-1)
        found += list(points[np.atleast_1d(np.asarray(alive, bool))])
    return [point for point in found if np.isfinite(point).all()]


class _Canvas:
    """A view of `SIZE` by `SIZE` pixels; points are (3,), m.

    Args:
      axes: to the right and up.
      middle: what lies halfway up the picture, m.
    """

    def __init__(self, axes: tuple[int, int], middle: float) -> None:
        self.axes, self.middle = axes, middle
        self.pixels = np.full((SIZE, SIZE, 3), PAPER, np.uint8)
        centres = (np.arange(SIZE) + 0.5) / SIZE * 2 * HALF - HALF
        self._x, self._y = centres[None, :], middle - centres[:, None]

    def room(self) -> None:
        """Draw the walls."""
        low, high = self.middle - ROOM, self.middle + ROOM
        corners = [(-ROOM, low), (ROOM, low), (ROOM, high), (-ROOM, high), (-ROOM, low)]
        for a, b in pairwise(corners):
            self._segment(np.array(a), np.array(b), WALL_WIDTH, WALL)

    def disc(self, centre: np.ndarray, radius: float, colour: Colour) -> None:
        """Draw a ball."""
        x, y = centre[list(self.axes)]
        self.pixels[(self._x - x) ** 2 + (self._y - y) ** 2 <= radius**2] = colour

    def box(self, centre: np.ndarray, half_x: float, half_y: float, colour: Colour) -> None:
        """Draw a filled rectangle."""
        x, y = centre[list(self.axes)]
        self.pixels[(abs(self._x - x) <= half_x) & (abs(self._y - y) <= half_y)] = colour

    def line(self, a: np.ndarray, b: np.ndarray, radius: float, colour: Colour) -> None:
        """Draw a rod."""
        axes = list(self.axes)
        self._segment(a[axes], b[axes], radius, colour)

    def _segment(self, a: np.ndarray, b: np.ndarray, radius: float, colour: Colour) -> None:
        along = b - a
        length = max(float(along @ along), 1e-12)
        share = ((self._x - a[0]) * along[0] + (self._y - a[1]) * along[1]) / length
        share = np.clip(share, 0.0, 1.0)
        gap = (self._x - a[0] - share * along[0]) ** 2 + (self._y - a[1] - share * along[1]) ** 2
        self.pixels[gap <= radius**2] = colour


_Thing = tuple[np.ndarray, Callable[[_Canvas], None]]


def _paint_cart(foot: np.ndarray, canvas: _Canvas) -> None:
    if canvas.axes == TOP:
        canvas.disc(foot, CART, CART_COLOUR)
    else:
        canvas.box(foot, CART, CART_HEIGHT / 2, CART_COLOUR)


def _paint_pole(foot: np.ndarray, tip: np.ndarray, canvas: _Canvas) -> None:
    canvas.line(foot, tip, POLE, POLE_COLOUR)


def _paint_block(block: np.ndarray, radius: float, canvas: _Canvas) -> None:
    canvas.disc(block, radius, BLOCK_COLOUR)
