"""Static configuration, traced parameters and state of the classic CartPole.

Every physical quantity is a scalar leaf. A leaf may carry any leading batch shape, as long as all
leaves of a call broadcast together: the step is elementwise, so a batch needs no `vmap`.

Symbols: x right, angles from the upright, positive to the right; metres, seconds, kilograms.
"""

import math
from dataclasses import dataclass

import jax

from jaxsim.inputs import check_whole

Scalar = jax.Array | float

ACTIONS = ("left", "right")
"""Names of the action codes 0 and 1."""


@dataclass(frozen=True)
class Config:
    """Static configuration of the compiled program; hashable.

    Attributes:
      max_steps: steps after which an episode is truncated.
      dtype: floating type of state and parameters, "float32" or "float64".
    """

    max_steps: int = 500
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Reject invalid values."""
        check_whole("max_steps", self.max_steps, 1)
        if self.dtype not in ("float32", "float64"):
            raise ValueError(f"dtype is {self.dtype!r}; it must be 'float32' or 'float64'")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Params:
    """Traced numbers of the physics and of the start; all scalars, all batchable."""

    gravity: Scalar = 9.8  # m/s^2, downwards
    force: Scalar = 10.0  # N, size of one push
    cart_mass: Scalar = 1.0  # kg
    pole_mass: Scalar = 0.1  # kg
    pole_length: Scalar = 0.5  # m, pivot to centre of mass: half of the pole, as in Gymnasium
    tau: Scalar = 0.02  # s, length of one step
    position_limit: Scalar = 2.4  # m, distance from the middle that ends an episode
    lean_limit: Scalar = 12 * math.pi / 180  # rad, angle that ends an episode
    start_spread: Scalar = 0.05  # all four numbers start at U(-spread, spread)
    novelty_level: Scalar = 0.0  # level, for the records only: this world has no catalogue


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Motion:
    """Positions and velocities of cart and pole."""

    x: Scalar  # () m, cart
    v: Scalar  # () m/s, cart
    angle: Scalar  # () rad, pole
    rate: Scalar  # () rad/s, pole


Observation = Motion
"""The agent observes the whole motion."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """Everything the next step depends on."""

    motion: Motion
    step: jax.Array  # () int32, agent steps taken; -1 before the hidden first step
    done: jax.Array  # () bool, the episode has ended and the state no longer changes
