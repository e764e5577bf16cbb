"""What CartPole3D is made of: static configuration, traced parameters, state, observation.

Every physical quantity is a scalar leaf. A leaf may carry any leading batch shape, as long as all
leaves of a call broadcast together: the step is elementwise, so a batch needs no `vmap`.

Symbols: x right, y forward, z up, metres, seconds, kilograms. Quaternions are (x, y, z, w).
"""

from dataclasses import dataclass, fields
from typing import NamedTuple

import jax
import numpy as np

from jaxsim import rng

Scalar = jax.Array | float

DT = 0.02  # s, one environment step is one physics tick
POLE_BOTTOM = 0.05  # m, lower end of the pole above the pivot
PIVOT_HEIGHT = 0.2  # m, pivot and centre of the cart's prism above the cart origin

TERMS = (
    "actions",
    "attraction",
    "bounce",
    "closed_room",
    "noise",
    "one_start",
    "pole_wind",
    "wind",
)
"""Optional parts: pushes turned and scaled by axis; forces between blocks and towards things;
restitution drawn for each episode; a room that no block leaves; noise and rounding of the sensors;
level 112's single start; wind on the pole; wind on cart and blocks."""

ACTIONS = ("nothing", "right", "left", "forward", "backward")
"""Names of the action codes 0 to 4; right is +x and forward is +y."""


@dataclass(frozen=True)
class Config:
    """What changes shapes or the compiled program; hashable.

    Attributes:
      max_blocks: capacity of the block slots, N.
      max_steps: agent steps after which an episode is truncated.
      terms: parts of the physics that some level of the batch needs and most do not, out of
        `TERMS`, sorted; a term that is not named is not compiled.
      dtype: floating type of state and parameters, "float32" or "float64".
    """

    max_blocks: int = 4
    max_steps: int = 200
    dtype: str = "float32"
    terms: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse values that cannot work."""
        if self.max_blocks < 1:
            raise ValueError(f"max_blocks is {self.max_blocks}; it must be at least 1")
        if self.max_steps < 1:
            raise ValueError(f"max_steps is {self.max_steps}; it must be at least 1")
        unknown = set(self.terms) - set(TERMS)
        if unknown or tuple(sorted(set(self.terms))) != self.terms:
            raise ValueError(f"terms is {self.terms!r}; it must be sorted names out of {TERMS}")
        if self.dtype not in ("float32", "float64"):
            raise ValueError(f"dtype is {self.dtype!r}; it must be 'float32' or 'float64'")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Params:
    """Traced numbers of the physics and of the start; all scalars, all batchable.

    The defaults are level 200. What follows from these numbers (inertias, contact distances) is
    computed in the step, never stored.
    """

    gravity: Scalar = 9.8  # m/s^2, downwards
    force: Scalar = 10.0  # N, size of one push
    drag: Scalar = float(np.float32(0.04))  # linear (1/s) and quadratic (1/m) coefficient
    cart_mass: Scalar = 1.0  # kg
    pole_mass: Scalar = 0.1  # kg
    pole_length: Scalar = 1.0  # m, of the collider and the inertia
    pole_com: Scalar = 1.0  # m, centre of mass above the pivot
    block_radius: Scalar = 0.5  # m
    block_mass: Scalar = 1.0  # kg
    block_buoyancy: Scalar = 1.0  # share of a block's weight that an upward force cancels
    block_count_min: Scalar = 2.0  # fewest blocks at the start
    block_count_max: Scalar = 4.0  # most blocks at the start
    block_speed_min: Scalar = 6.0  # m/s, smallest initial speed along each axis
    block_speed_max: Scalar = 10.0  # m/s, largest initial speed along each axis
    restitution_wall: Scalar = 1.0  # coefficients multiply for a pair of bodies
    restitution_block: Scalar = 1.0
    restitution_cart: Scalar = 0.0
    restitution_pole: Scalar = 0.0
    room_half_width: Scalar = 4.95  # m, inner faces of the side walls at +- this
    room_floor: Scalar = -0.05  # m, height of the floor
    room_ceiling: Scalar = 9.95  # m, height of the ceiling
    bounce_spread: Scalar = 0.0  # walls and blocks bounce by up to this more, drawn per episode
    pull_centroid: Scalar = 0.0  # N, on each block towards the blocks' centroid; < 0 is away
    pull_centroid_random: Scalar = 0.0  # N, the same times a number drawn from [0, 1) each tick
    pull_cart: Scalar = 0.0  # N, on each block towards the cart as last reported, 0.5 m high
    pull_origin: Scalar = 0.0  # N, on each block towards the world's origin
    action_sign: Scalar = 1.0  # -1 swaps right with left and forward with backward
    action_scale_x: Scalar = 1.0  # factor of the pushes right and left
    action_scale_y: Scalar = 1.0  # factor of the pushes forward and backward
    action_turn: Scalar = 0.0  # degrees, all pushes turned, counter-clockwise seen from above
    noise_position: Scalar = 0.0  # m, standard deviation of what sensors add; see `noise`
    noise_velocity: Scalar = 0.0  # m/s
    noise_angle: Scalar = 0.0  # rad, about each axis of the world
    noise_rate: Scalar = 0.0  # rad/s
    step_position: Scalar = 0.0  # m, readings are rounded to multiples of this, if > 0
    step_velocity: Scalar = 0.0  # m/s
    step_angle: Scalar = 0.0  # rad, of each component of the rotation vector
    step_rate: Scalar = 0.0  # rad/s
    closed_room: Scalar = 0.0  # 1 for blocks that never leave the room; see `repairs`
    wind_on_pole: Scalar = 0.0  # 1 for wind that also pushes the pole
    pole_drag: Scalar = 1.2  # drag coefficient of the pole in that wind
    aim_share: Scalar = 0.0  # probability that a block starts towards the cart
    aim_speed_min: Scalar = 0.0  # m/s, of such a block
    aim_speed_max: Scalar = 0.0  # m/s
    scatter_speed: Scalar = 0.0  # m/s, other blocks start with U(-1, 1) of this per axis, if > 0
    gather_speed_max: Scalar = 0.0  # m/s, all blocks start towards one point, at U(0, 1) of this
    wind_speed: Scalar = 0.0  # m/s, greatest speed of the wind
    start_spread: Scalar = 3.0  # m, cart starts at U(-spread, spread) in x and y
    start_push: Scalar = 1.0  # N, force U(-push, push) on the cart in the hidden first tick
    start_lean: Scalar = 0.01  # half width of the six initial pole numbers
    lean_limit: Scalar = float(np.deg2rad(10.0))  # rad, roll or pitch that ends an episode
    novelty_level: Scalar = 200.0  # catalogue number, for the records only


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Pose:
    """Where cart and pole are."""

    x: Scalar  # () m, cart
    y: Scalar  # () m, cart
    half_cos: Scalar  # () cosine of half the cart's yaw
    half_sin: Scalar  # () sine of half the cart's yaw
    qx: Scalar  # () pole to cart quaternion
    qy: Scalar  # ()
    qz: Scalar  # ()
    qw: Scalar  # ()

    @property
    def cos(self) -> Scalar:
        """Cosine of the cart's yaw."""
        return self.half_cos * self.half_cos - self.half_sin * self.half_sin

    @property
    def sin(self) -> Scalar:
        """Sine of the cart's yaw."""
        return 2 * self.half_cos * self.half_sin


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Velocity:
    """How fast cart and pole move, in the frames that the integrator keeps."""

    vx: Scalar  # () m/s, cart, in the cart frame
    vy: Scalar  # () m/s, cart, in the cart frame
    yaw_rate: Scalar  # () rad/s, cart
    wx: Scalar  # () rad/s, pole relative to cart, in the pole frame
    wy: Scalar  # () rad/s
    wz: Scalar  # () rad/s


class Vector(NamedTuple):
    """Three scalar leaves; arithmetic lives in `geometry`."""

    x: Scalar
    y: Scalar
    z: Scalar


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Block:
    """One free sphere."""

    p: Vector  # () m, centre, world
    v: Vector  # () m/s, world
    alive: jax.Array  # () bool, False for an empty slot


class Sizes(NamedTuple):
    """One number for each kind of reading."""

    position: Scalar  # m
    velocity: Scalar  # m/s
    angle: Scalar  # rad
    rate: Scalar  # rad/s


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Sensors:
    """How the sensors of an episode err; see `noise`."""

    key: rng.Words  # () of all noise of the episode
    noise: Sizes  # () standard deviations
    step: Sizes  # () readings are rounded to multiples of these; 0 for as they are


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """Everything the next step depends on."""

    pose: Pose  # after the last tick
    reported: Pose  # before the last tick: what the sensors and the end test see
    velocity: Velocity
    blocks: tuple[Block, ...]  # N = Config.max_blocks of them
    extra_bounce: Scalar  # () added to the restitution of walls and blocks in this episode
    wind: Vector  # () direction of the wind: sine and cosine of its angle, z is 0
    push: Vector  # () N, force on the cart in the hidden first tick, world
    step: jax.Array  # () int32, agent steps taken; -1 before the hidden first tick
    done: jax.Array  # () bool, the episode has ended and the state no longer changes
    sensors: Sensors | None = None  # None where the term "noise" is not compiled: no errors


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Observation:
    """What the sensors report; cart pose and pole orientation are one tick old.

    Positions in m, velocities in m/s, pole angular velocity in rad/s, all in the world frame.
    An empty block slot reads zero.
    """

    cart_position: Vector  # z is 0
    cart_velocity: Vector  # z is 0
    pole_quaternion: tuple[Scalar, Scalar, Scalar, Scalar]  # x, y, z, w, pole to world
    pole_velocity: Vector  # angular, rad/s
    block_position: tuple[Vector, ...]
    block_velocity: tuple[Vector, ...]
    block_alive: tuple[jax.Array, ...]  # bool


PARAMETER_NAMES = tuple(field.name for field in fields(Params))
