"""Static configuration, traced parameters, state and observation of CartPole3D.

Every physical quantity is a scalar leaf. A leaf may carry lanes of a batch as its leading axis, as
long as all leaves of a call broadcast together: the step is elementwise, so a batch needs no
`vmap`. Up to `UNROLLED` block slots are Spheres of their own, the fastest form; more are stacked in
one Sphere, whose leaves have a further, last axis of slots.

Symbols: x right, y forward, z up, metres, seconds, kilograms. Quaternions are (x, y, z, w).
"""

from dataclasses import dataclass, fields
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import rng
from jaxsim.inputs import check_whole

Scalar = jax.Array | float

DT = 0.02  # s, one environment step is one physics tick
POLE_BOTTOM = 0.05  # m, lower end of the pole above the pivot
PIVOT_HEIGHT = 0.2  # m, pivot and centre of the cart's prism above the cart origin
RESTING = 4.95  # m, height at which an empty block slot is kept, clear of floor and ceiling

TERMS = (
    "actions",
    "attraction",
    "bounce",
    "closed_room",
    "late_pushes",
    "late_readings",
    "lines",
    "noise",
    "one_start",
    "pole_wind",
    "spawn",
    "wind",
)
"""Optional parts: pushes turned and scaled by axis; forces between blocks and towards cart and
origin; restitution drawn for each episode; a room that no block leaves; delayed pushes; delayed
sensors; blocks on lines, with friction; sensor errors; level 112's single start; wind on the pole;
blocks that appear later; wind on cart and blocks."""

UNROLLED = 4
"""Most block slots that are kept as separate Blocks."""
CAPACITIES = (4, 8, 17, 32, 71, 104, 205)
"""Sizes that a capacity is rounded up to, so that programs are shared: those of the catalogue."""

ENGINES = ("stock", "tbplanar")

ACTIONS = ("nothing", "right", "left", "forward", "backward")
"""Names of the action codes 0 to 4; right is +x and forward is +y."""


@dataclass(frozen=True)
class Config:
    """Static configuration of shapes and the compiled program; hashable.

    Attributes:
      max_blocks: capacity of the block slots, N.
      max_steps: agent steps after which an episode is truncated.
      terms: optional parts of the physics that some level of the batch needs, from `TERMS`,
        sorted; other terms are not compiled.
      dtype: floating type of state and parameters, "float32" or "float64".
      engine: engine of the reset: "stock" for PyBullet, or "tbplanar" for the fork in the
        original's official image, which starts blocks on lines elsewhere.
    """

    max_blocks: int = UNROLLED
    max_steps: int = 200
    dtype: str = "float32"
    terms: tuple[str, ...] = ()
    engine: str = "stock"

    def __post_init__(self) -> None:
        """Reject invalid values."""
        check_whole("max_blocks", self.max_blocks, 1)
        check_whole("max_steps", self.max_steps, 1)
        unknown = set(self.terms) - set(TERMS)
        if unknown or tuple(sorted(set(self.terms))) != self.terms:
            raise ValueError(f"terms is {self.terms!r}; it must be sorted names out of {TERMS}")
        if self.dtype not in ("float32", "float64"):
            raise ValueError(f"dtype is {self.dtype!r}; it must be 'float32' or 'float64'")
        if self.engine not in ENGINES:
            raise ValueError(f"engine is {self.engine!r}; it must be 'stock' or 'tbplanar'")

    @property
    def stacked(self) -> bool:
        """Whether all slots share one Sphere with an axis of slots."""
        return self.max_blocks > UNROLLED


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Params:
    """Traced numbers of the physics and of the start; all scalars, all batchable.

    The defaults are level 200. Derived numbers (inertias, contact distances) are computed in the
    step, never stored.
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
    action_delay: Scalar = 0.0  # ticks between an action and its push; see `delays`
    noise_position: Scalar = 0.0  # m, standard deviation of sensor noise; see `noise`
    noise_velocity: Scalar = 0.0  # m/s
    noise_angle: Scalar = 0.0  # rad, about each axis of the world
    noise_rate: Scalar = 0.0  # rad/s
    step_position: Scalar = 0.0  # m, readings are rounded to multiples of this, if > 0
    step_velocity: Scalar = 0.0  # m/s
    step_angle: Scalar = 0.0  # rad, of each component of the rotation vector
    step_rate: Scalar = 0.0  # rad/s
    gain_position: Scalar = 1.0  # factors of readings; 0 for sensors that read zero
    gain_velocity: Scalar = 1.0
    gain_angle: Scalar = 1.0  # of the rotation vector
    gain_rate: Scalar = 1.0
    offset_position: Scalar = 0.0  # m, added to each reading
    offset_velocity: Scalar = 0.0  # m/s
    offset_angle: Scalar = 0.0  # rad, turned about each axis of the world
    offset_rate: Scalar = 0.0  # rad/s
    sensor_delay: Scalar = 0.0  # ticks between a reading and its report; see `delays`
    closed_room: Scalar = 0.0  # 1 for blocks that never leave the room; see `repairs`
    wind_on_pole: Scalar = 0.0  # 1 for wind that also pushes the pole
    pole_drag: Scalar = 1.2  # drag coefficient of the pole in that wind
    aim_share: Scalar = 0.0  # probability that a block starts towards the cart
    aim_speed_min: Scalar = 0.0  # m/s, of such a block
    aim_speed_max: Scalar = 0.0  # m/s
    scatter_speed: Scalar = 0.0  # m/s, other blocks start with U(-1, 1) of this per axis, if > 0
    gather_speed_max: Scalar = 0.0  # m/s, all blocks start towards one point, at U(0, 1) of this
    wind_speed: Scalar = 0.0  # m/s, greatest speed of the wind
    line_near: Scalar = 0.0  # m, blocks slide on lines at least this far from the cart's start
    line_far: Scalar = 0.0  # m, and at most this far, if above 0
    friction_block: Scalar = 0.0  # coefficients multiply for a pair of bodies; walls have none
    friction_cart: Scalar = 0.5
    friction_pole: Scalar = 0.5
    spawn_period: Scalar = 0.0  # ticks between two blocks that appear, the hidden tick included
    spawn_ahead: Scalar = 0.0  # 1: they appear where the cart has been heading, else anywhere
    spawn_speed_min: Scalar = 0.0  # m/s, their smallest initial speed along each axis
    spawn_speed_max: Scalar = 0.0  # m/s
    start_spread: Scalar = 3.0  # m, cart starts at U(-spread, spread) in x and y
    start_push: Scalar = 1.0  # N, force U(-push, push) on the cart in the hidden first tick
    start_lean: Scalar = 0.01  # half width of the six initial pole numbers
    lean_limit: Scalar = float(np.deg2rad(10.0))  # rad, roll or pitch that ends an episode
    novelty_level: Scalar = 200.0  # catalogue number, for the records only


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Pose:
    """Position and orientation of cart and pole."""

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
    """Velocities of cart and pole, in the frames of the integrator."""

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
class Rail:
    """A horizontal line that a block slides on."""

    x: Scalar  # () unit direction; (0, 0) leaves the block free
    y: Scalar  # ()
    lag: Scalar  # () m, along the line, from the reported to the true position
    drop: Scalar  # () m, the same along z; zero after the hidden tick

    @property
    def holds(self) -> jax.Array:
        """() bool, whether there is a line."""
        return jnp.logical_or(self.x != 0, self.y != 0)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Sphere:
    """One sphere, or several stacked on an axis of slots."""

    p: Vector  # () m, centre, world
    v: Vector  # () m/s, world
    alive: jax.Array  # () bool, False for an empty slot
    rail: Rail | None = None  # only with the term "lines"


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Supply:
    """State of the supply of new blocks."""

    base: Vector  # () m, where the cart started; z is 0
    heading: Vector  # () m/s, sum of the reported cart velocities since the last one; z is 0


class ReadingSizes(NamedTuple):
    """One number for each kind of reading."""

    position: Scalar  # m
    velocity: Scalar  # m/s
    angle: Scalar  # rad
    rate: Scalar  # rad/s


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Sensors:
    """Sensor errors of an episode; see `noise`."""

    key: rng.Words  # () of all noise of the episode
    noise: ReadingSizes  # () standard deviations
    step: ReadingSizes  # () readings are rounded to multiples of these; 0 for no rounding
    gain: ReadingSizes  # () factors
    offset: ReadingSizes  # () added to readings


class Late(NamedTuple):
    """Readings of delayed sensors; see `delays`."""

    ticks: jax.Array  # () int32, delay
    past: tuple["Observation", ...]  # exact readings, those of now first


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """Everything the next step depends on."""

    pose: Pose  # after the last tick
    reported: Pose  # before the last tick: input of the sensors and the end test
    velocity: Velocity
    blocks: tuple[Sphere, ...]  # one for each of N slots, or a single stacked one
    extra_bounce: Scalar  # () added to the restitution of walls and blocks in this episode
    wind: Vector  # () direction of the wind: sine and cosine of its angle, z is 0
    push: Vector  # () N, force on the cart in the hidden first tick, world
    step: jax.Array  # () int32, agent steps taken; -1 before the hidden first tick
    done: jax.Array  # () bool, the episode has ended and the state no longer changes
    supply: Supply | None = None  # only with the term "spawn"
    sensors: Sensors | None = None  # None where the term "noise" is not compiled: no errors
    pushes: jax.Array | None = None  # () int32, codes of the last pushes; with "late_pushes" only
    late: Late | None = None  # only with the term "late_readings"


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Observation:
    """Readings of the sensors; cart pose and pole orientation are one tick old.

    Positions in m, velocities in m/s, pole angular velocity in rad/s, all in the world frame.
    An empty block slot reads zero. Blocks are listed, or stacked, as in the state.
    """

    cart_position: Vector  # z is 0
    cart_velocity: Vector  # z is 0
    pole_quaternion: tuple[Scalar, Scalar, Scalar, Scalar]  # x, y, z, w, pole to world
    pole_velocity: Vector  # angular, rad/s
    block_position: tuple[Vector, ...]
    block_velocity: tuple[Vector, ...]
    block_alive: tuple[jax.Array, ...]  # bool


PARAMETER_NAMES = tuple(field.name for field in fields(Params))
