"""Plain pictures of the scene: the side view on the left and the top view on the right.

Both are orthographic, drawn from what the sensors report: the room, the cart, the pole as a line
and the blocks as discs. This is what there is to see, not a picture of a camera.
"""

from itertools import pairwise
from typing import Any, Final

import numpy as np

from evaluation.sciencebirds.codec import Picture

SIZE: Final = 240
"""Height of the picture and width of each view, pixels."""
HALF: Final = 5.5
"""Half of the width of what a view shows, m."""
PIVOT: Final = 0.2
"""Height of the pole's lower end, m."""
CART: Final = 0.5
BLOCK: Final = 0.5
"""Radii of what is drawn, m."""
ROOM: Final = 5.0
CEILING: Final = 10.0

PAPER: Final = (255, 255, 255)
WALL: Final = (150, 150, 150)
CART_COLOUR: Final = (40, 90, 170)
POLE_COLOUR: Final = (200, 60, 30)
BLOCK_COLOUR: Final = (90, 150, 70)


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
    blocks = _blocks(observation)
    views = []
    for down, middle in ((2, CEILING / 2), (1, 0.0)):  # the axis that points up in the picture
        canvas = _Canvas(middle)
        low, high = middle - ROOM, middle + ROOM
        corners = [(-ROOM, low), (ROOM, low), (ROOM, high), (-ROOM, high), (-ROOM, low)]
        for a, b in pairwise(corners):
            canvas.line(np.array(a), np.array(b), WALL)
        # What is nearer to the eye is drawn later: blocks at the front hide those behind.
        for block in sorted(blocks, key=_depth_from_the_side if down == 2 else _depth_from_above):
            canvas.disc(block[[0, down]], block_radius, BLOCK_COLOUR)
        if down == 2:
            canvas.box(cart[[0, 2]] + [0.0, PIVOT], CART, 0.1, CART_COLOUR)
        else:
            canvas.disc(cart[[0, 1]], CART, CART_COLOUR)
        canvas.line(foot[[0, down]], tip[[0, down]], POLE_COLOUR, width=0.06)
        views.append(canvas.pixels)
    return Picture(2 * SIZE, SIZE, np.concatenate(views, axis=1).tobytes())


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


def _depth_from_the_side(point: np.ndarray) -> float:
    return -float(point[1])


def _depth_from_above(point: np.ndarray) -> float:
    return float(point[2])


class _Canvas:
    """A view of `SIZE` by `SIZE` pixels.

    Args:
      middle: what lies halfway up the picture, m.
    """

    def __init__(self, middle: float) -> None:
        self.pixels = np.full((SIZE, SIZE, 3), PAPER, np.uint8)
        centres = (np.arange(SIZE) + 0.5) / SIZE * 2 * HALF - HALF
        self._x, self._y = centres[None, :], middle - centres[:, None]

    def disc(self, centre: np.ndarray, radius: float, colour: tuple[int, int, int]) -> None:
        """Draw a filled circle; m."""
        inside = (self._x - centre[0]) ** 2 + (self._y - centre[1]) ** 2 <= radius**2
        self.pixels[inside] = colour

    def box(
        self, centre: np.ndarray, half_x: float, half_y: float, colour: tuple[int, int, int]
    ) -> None:
        """Draw a filled rectangle; m."""
        inside = (abs(self._x - centre[0]) <= half_x) & (abs(self._y - centre[1]) <= half_y)
        self.pixels[inside] = colour

    def line(
        self, a: np.ndarray, b: np.ndarray, colour: tuple[int, int, int], width: float = 0.05
    ) -> None:
        """Draw a segment; m."""
        along = b - a
        length = max(float(along @ along), 1e-12)
        share = ((self._x - a[0]) * along[0] + (self._y - a[1]) * along[1]) / length
        share = np.clip(share, 0.0, 1.0)
        gap = (self._x - a[0] - share * along[0]) ** 2 + (self._y - a[1] - share * along[1]) ** 2
        self.pixels[gap <= width**2] = colour
