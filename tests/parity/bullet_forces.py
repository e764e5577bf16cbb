"""Forces that the levels of CartPole3D add, in NumPy, for one tick of the live PyBullet scene."""

import numpy as np

from jaxsim.worlds.cartpole3d import Params
from jaxsim.worlds.cartpole3d.terms.wind import PROFILE

AIM = 0.5  # m, height at which the cart attracts blocks
AIR = 1.225  # kg/m^3


def on_blocks(
    params: Params, places: np.ndarray, cart: np.ndarray, wind: np.ndarray, share: float
) -> np.ndarray:
    """Lift, attraction and wind.

    Args:
      params: physics, scalar leaves; blocks of finite mass.
      places: (n, 3) m, centres of the blocks.
      cart: (3,) m, where the cart was last reported.
      wind: (2,) direction of the wind.
      share: number in [0, 1) that scales the random attraction.

    Returns:
      (n, 3) N, world frame.
    """
    lift = float(params.block_buoyancy * params.block_mass * params.gravity)
    centroid = float(params.pull_centroid + share * params.pull_centroid_random)
    gusts = np.array([_wind_on_block(float(params.wind_speed), wind, z) for z in places[:, 2]])
    return (
        np.array([0, 0, lift])
        + centroid * _towards(places.mean(axis=0), places)
        + float(params.pull_cart) * _towards(cart + np.array([0, 0, AIM]), places)
        + float(params.pull_origin) * _towards(np.zeros(3), places)
        + gusts
    )


def wind_on_cart(speed: float, wind: np.ndarray, yaw: float) -> np.ndarray:
    """(2,) N, world frame; computed for the frame of the cart, with the yaw in it twice.

    Args:
      speed: m/s, greatest of the profile.
      wind: (2,) its direction, (-sin, cos) of the wind's angle.
      yaw: rad, of the cart as last reported.
    """
    angle = -np.arctan2(-wind[0], wind[1])
    bulge = 0.5 * (np.sqrt(2) - 1)
    area = 0.05 * (bulge * np.sin(4 * angle - 0.5 * np.pi) + 1 + bulge)
    coefficient = 0.5 * np.cos(4 * angle) + 1.5
    low = speed * PROFILE[:4, None] * wind  # (4, 2) m/s
    fx, fy = 0.5 * AIR * area * coefficient * np.sign(wind) * (low**2).sum(axis=0)
    cos, sin = np.cos(yaw), np.sin(yaw)
    local = np.array([fx * cos, -fy * sin])
    return np.array([cos * local[0] - sin * local[1], sin * local[0] + cos * local[1]])


def _wind_on_block(speed: float, wind: np.ndarray, height: float) -> np.ndarray:
    """(3,) N on a block, from the slab of air within 0.25 m of its height."""
    slab = PROFILE[int(20 * (height - 0.25)) : int(20 * (height + 0.25))]
    pressure = 0.5 * AIR * 0.5 * np.pi * 0.25 * 0.5 * ((speed * slab) ** 2).sum()
    return -pressure * np.array([wind[0] ** 2, wind[1] ** 2, 0])


def _towards(target: np.ndarray, places: np.ndarray) -> np.ndarray:
    """(n, 3) unit vectors from places to a target; zero at the target itself."""
    d = target - places
    size = np.linalg.norm(d, axis=1, keepdims=True)
    return d / np.where(size > 0, size, 1)
