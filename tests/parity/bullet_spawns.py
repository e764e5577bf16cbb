"""Blocks that appear while an episode of the live PyBullet scene runs, in NumPy."""

from collections.abc import Iterator

import numpy as np

from jaxsim.worlds.cartpole3d import Params
from jaxsim.worlds.cartpole3d.generate.wsu import wsu_distances, wsu_spawns
from jaxsim.worlds.cartpole3d.types import Sphere, Vector

TICKS = 201  # of an episode, the hidden one included
REACH, HEIGHT = 10.0, np.array([0, 0, 1])  # m
CLEARANCE, LIMIT = 0.75, 4.5  # m
DRAWS = 101  # distances tried; then no block appears
MOST = 3000  # distances drawn in an episode


class Spawns:
    """What the original adds to one episode.

    Args:
      params: physics, scalar leaves.
      seed: of the original generator.
      difficulty: of level 208.
      base: (2,) m, where the cart started.
    """

    def __init__(self, params: Params, seed: int, difficulty: str, base: np.ndarray) -> None:
        self.period, self.base = int(params.spawn_period), base
        self.heading = np.zeros(3)  # m/s, sum of the reported cart velocities since the last block
        self.ahead = bool(params.spawn_ahead)
        self.distances: Iterator[float] = iter(())
        self.anywhere: Iterator[tuple[np.ndarray, np.ndarray]] = iter(())
        if self.period and self.ahead:
            self.distances = iter(wsu_distances(seed, MOST))
        elif self.period:
            self.anywhere = zip(*wsu_spawns(seed, difficulty, TICKS), strict=True)

    def remember(self, velocity: np.ndarray) -> None:
        """Add a cart velocity, (3,) m/s, to the way it is heading; six decimals are reported."""
        self.heading = self.heading + np.round(velocity, 6)

    def due(self, tick: int, places: np.ndarray) -> Sphere | None:
        """The block that appears before a tick.

        Args:
          tick: from 0, the hidden one.
          places: (n, 3) m, of all blocks.
        """
        if not self.period or (tick + 1) % self.period:
            return None
        if not self.ahead:
            return _block(*next(self.anywhere))
        place = self._place_ahead(places)
        self.heading = np.zeros(3)
        return None if place is None else _block(place, np.zeros(3))

    def _place_ahead(self, places: np.ndarray) -> np.ndarray | None:
        ahead = self.heading / np.linalg.norm(self.heading)
        taken = np.array([self.base, [0, 0], *places[:, :2]])
        for _ in range(DRAWS):
            place = REACH * next(self.distances) * ahead + HEIGHT
            clear = np.linalg.norm(taken - place[:2], axis=1).min() >= CLEARANCE
            if clear and np.abs(place[:2]).max() <= LIMIT:
                return place
        return None


def _block(place: np.ndarray, velocity: np.ndarray) -> Sphere:
    return Sphere(Vector(*place), Vector(*velocity), np.bool_(True))
