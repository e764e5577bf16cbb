"""What there is to draw: places and sizes, whatever the world."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxsim.embedding import embed
from jaxsim.leaning import Leaned
from jaxsim.worlds.cartpole3d.types import Observation

PIVOT = 0.2
"""Height of the pole's lower end, m."""


@dataclass(frozen=True)
class Scene:
    """Places in the world frame and sizes, all m.

    Attributes:
      cart: (3,) place of the cart.
      lean: (3,) unit vector along the pole.
      blocks: (N, 3) centres of the blocks that are there.
      pole_length: from the pivot to the tip.
      block_radius: of every block.
      half_width: from the middle of the room or the track to its side.
      floor: height of the floor.
      ceiling: height of the ceiling.
    """

    cart: np.ndarray
    lean: np.ndarray
    blocks: np.ndarray
    pole_length: float = 1.0
    block_radius: float = 0.5
    half_width: float = 4.95
    floor: float = -0.05
    ceiling: float = 9.95

    @property
    def foot(self) -> np.ndarray:
        """Lower end of the pole, (3,) m."""
        return self.cart + np.array([0.0, 0.0, PIVOT])

    @property
    def tip(self) -> np.ndarray:
        """Upper end of the pole, (3,) m."""
        return self.foot + self.pole_length * self.lean


def scene(env: Any, params: Any, state: Any) -> Scene:
    """Return the scene that the sensors of an environment report of a state.

    Args:
      env: CartPole3D, CartPole2D, CartPole, or a wrapper that passes their observations on.
      params: its parameters, leaves ().
      state: leaves ().

    Raises:
      TypeError: the observation is of another kind.
    """
    observation = env.observe(state)
    if isinstance(observation, Leaned):
        observation = observation.observation
    if not isinstance(observation, Observation):
        lifted = getattr(embed(env), "lifted", None)
        if lifted is None:
            raise TypeError(f"an observation of {env.name} cannot be drawn")
        observation = lifted(observation)
    return observed(observation, params)


def observed(observation: Observation, params: Any = None) -> Scene:
    """Return the scene of one observation in CartPole3D's form.

    Args:
      observation: leaves (), blocks listed or stacked.
      params: for the sizes, leaves (); None for those of CartPole3D.
    """
    x, y, z, w = (float(part) for part in observation.pole_quaternion)
    lean = [2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)]
    cart = [float(part) for part in observation.cart_position]
    return Scene(np.array(cart), np.array(lean), _blocks(observation), **_sizes(params))


def _sizes(params: Any) -> dict[str, float]:
    """Fields of a scene that parameters hold; a world without a room has its track."""
    names = ("pole_length", "block_radius")
    sizes = {name: float(getattr(params, name)) for name in names if hasattr(params, name)}
    if hasattr(params, "room_half_width"):
        sizes |= {
            "half_width": float(params.room_half_width),
            "floor": float(params.room_floor),
            "ceiling": float(params.room_ceiling),
        }
    elif hasattr(params, "position_limit"):
        limit = float(params.position_limit)
        sizes |= {"half_width": limit, "floor": 0.0, "ceiling": 2 * limit}
    return sizes


def _blocks(observation: Observation) -> np.ndarray:
    """Centres of the blocks that are there and finite, (N, 3) m."""
    rows = [np.zeros((0, 3))]
    for position, alive in zip(observation.block_position, observation.block_alive, strict=True):
        # One block, or many behind one another.
        points = np.stack([np.atleast_1d(np.asarray(part, float)) for part in position], axis=-1)
        rows.append(points[np.atleast_1d(np.asarray(alive, bool))])
    points = np.concatenate(rows)
    return points[np.isfinite(points).all(axis=-1)]
