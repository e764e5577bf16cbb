"""Static configuration, traced parameters and state of CartPole2D.

Every physical quantity is a scalar leaf. A leaf may carry any leading batch shape, as long as all
leaves of a call broadcast together: the step is elementwise, so a batch needs no `vmap`.

Symbols: x right, z up, the pole's angle from the upright, positive to the right; metres, seconds,
kilograms.
"""

import math
from dataclasses import dataclass

import jax

from jaxsim.inputs import check_whole
from jaxsim.worlds.cartpole.types import Motion, Scalar

DT = 0.02  # s, one environment step is one physics tick
REWARD_STEPS = 200  # the reward of step k is k over this
ZONES = (-2, -1, 0, 1, 2)
"""Zones of drag: the cart's position in whole metres, rounded towards zero."""

ACTIONS = ("nothing", "right", "left")
"""Names of the action codes 0 to 2, the same as those of CartPole3D; right is +x."""

ORIGINAL_ACTIONS = ("left", "right", "nothing")
"""The actions of the original, in its order."""

ENGINES = ("stock", "tbplanar")
"""Engine of the start: stock PyBullet, or the patched engine in the official image."""


@dataclass(frozen=True)
class Config:
    """Static configuration of the compiled program; hashable.

    Attributes:
      max_steps: agent steps after which an episode is truncated. The original has no limit; a
        scan over an episode needs one, so this is ten times that of CartPole3D.
      dtype: floating type of state and parameters, "float32" or "float64".
      engine: "stock", or "tbplanar", in which the cart starts at exactly +1 or -1 m.
    """

    max_steps: int = 2000
    dtype: str = "float32"
    engine: str = "stock"

    def __post_init__(self) -> None:
        """Reject invalid values."""
        check_whole("max_steps", self.max_steps, 1)
        if self.dtype not in ("float32", "float64"):
            raise ValueError(f"dtype is {self.dtype!r}; it must be 'float32' or 'float64'")
        if self.engine not in ENGINES:
            raise ValueError(f"engine is {self.engine!r}; it must be 'stock' or 'tbplanar'")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Params:
    """Traced numbers of the physics, the sensors and the start; all scalars, all batchable.

    The defaults are level 50. Derived numbers (inertia, centre of mass, bin widths) are computed
    in the step, never stored.
    """

    gravity: Scalar = 9.8  # m/s^2, downwards
    force: Scalar = 10.0  # N, size of one push
    side_push: Scalar = 0.0  # N, on the cart, away from the middle
    drag_min: Scalar = 0.0  # linear (1/s) and quadratic (1/m) coefficient: each zone of the
    drag_max: Scalar = 0.0  # track draws its own from U(min, max) in each episode
    cart_mass: Scalar = 1.0  # kg
    pole_mass: Scalar = 0.1  # kg
    pole_length: Scalar = 1.0  # m; the centre of mass is in the middle
    bins: Scalar = 0.0  # values each sensor can report; 0 for no rounding
    position_limit: Scalar = 2.4  # m, distance from the middle that ends an episode
    lean_limit: Scalar = 12 * math.pi / 180  # sine of half the angle that ends an episode
    start_spread: Scalar = 0.01  # m, cart starts at U(-spread, spread)
    start_velocity: Scalar = 1.0  # m/s, of the cart
    start_rate: Scalar = 0.4  # rad/s, of the pole
    novelty_level: Scalar = 50.0  # catalogue number, for the records only


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """Everything the next step depends on."""

    motion: Motion
    reported: Motion  # the motion as the sensors report it; input of the end test
    zone_drag: tuple[Scalar, ...]  # drag coefficient in each of `ZONES`, constant in an episode
    step: jax.Array  # () int32, agent steps taken; -1 before the hidden first tick
    done: jax.Array  # () bool, the episode has ended and the state no longer changes
