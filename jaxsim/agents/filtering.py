"""Kalman filters of noisy readings, and how well each direction explains their innovations.

The filter tracks cart, pole and blocks of the nominal world, one reading after the other (an
extended Kalman filter with sequential updates; Anderson and Moore, Optimal Filtering, 1979,
chapters 6 and 8). Its innovations, the errors of its predictions, are then independent and normal
with known variances. A small change of the world moves their means by its size times a sensitivity,
which obeys the filter's own recursion.

The two axes of cart and pole share one covariance, of (position, velocity, angle, rate). The three
components of a block share one as well.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.agents import bank, directions, sight
from jaxsim.agents.sight import SLOTS, Sighting
from jaxsim.pytrees import Leaf, Tree
from jaxsim.worlds.cartpole3d.types import DT, Params, Pose, Sphere, Vector, Velocity

T = TypeVar("T")

Covariance = tuple[tuple[Leaf, ...], ...]
"""Symmetric matrix: rows of scalars, or of arrays with a number for each block."""

LINEARISED = 0.05  # relative error of what is propagated linearly
EXACT = 1e-4  # deviation of readings without noise: m, m/s, rad, rad/s; a pole is a little twisted
FROM_OTHERS = 0.3  # share of what noise of other kinds does to a kind in a tick, likewise
CLEAR = 3.0  # factor by which noise exceeds these where its size is tested
AXES = 2


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Scores:
    """Evidence of the innovations of one episode so far, for each direction.

    Attributes:
      slope: (J,) derivative of the log likelihood by the direction's size, at zero.
      information: (J,) its variance, in the nominal world.
      surprise: (4, V) log likelihood ratio of noise of another size, by kind; see `SPREADS`.
      largest: () largest innovation, in standard deviations.
    """

    slope: jax.Array
    information: jax.Array
    surprise: jax.Array
    largest: jax.Array

    @classmethod
    def none(cls) -> "Scores":
        """Before any innovation."""
        zeros = jnp.zeros(len(directions.NAMES))
        return cls(zeros, zeros, jnp.zeros((4, len(SPREADS))), jnp.float32(0))


SPREADS = np.array([0.5, 1.4, 2.0, 4.0], np.float32)
"""Factors of the noise's standard deviation that are tested against a factor of one."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FilterState:
    """State of the filter.

    Attributes:
      mean: estimate, as an observation without noise.
      covariance: (4, 4) of one axis of cart and pole.
      sensitivity: 4 arrays (11, 2), error of the mean by unit of each direction of cart and pole.
      block_covariance: (2, 2) of rows (4,), of one component of each block.
      block_sensitivity: 2 arrays (6, 3, 4), of each direction of blocks.
    """

    mean: Sighting
    covariance: Covariance
    sensitivity: tuple[jax.Array, ...]
    block_covariance: Covariance
    block_sensitivity: tuple[jax.Array, ...]

    @classmethod
    def none(cls) -> "FilterState":
        """Before any observation."""
        zero, slots = jnp.float32(0), jnp.zeros(SLOTS)
        axes = jnp.zeros((len(directions.OF_CARTPOLE), AXES))
        components = jnp.zeros((len(directions.OF_BLOCKS), 3, SLOTS))
        nothing = Sighting.nothing()
        return cls(
            replace(nothing, reported=replace(nothing.reported, qw=zero + 1)),
            ((zero,) * 4,) * 4,
            (axes,) * 4,
            ((slots,) * 2,) * 2,
            (components,) * 2,
        )


@cache
def _response() -> tuple[np.ndarray, np.ndarray]:
    """Linear motion of one axis about upright, (4, 4), and effect of a push of 1 N, (4,)."""

    def following(state: np.ndarray, force: float) -> np.ndarray:
        position, velocity, angle, rate = (jnp.float32(c) for c in state)
        zero = jnp.float32(0)
        pose = Pose(
            position, zero, zero + 1, zero, zero, jnp.sin(angle / 2), zero, jnp.cos(angle / 2)
        )
        report = replace(
            Sighting.nothing(), reported=pose, vx=velocity, spin=Vector(zero, rate, zero)
        )
        after, speed = sight.predicted(Params(), report, Vector(force, 0.0, 0.0))
        spin = sight.spin_of(after, speed)
        return np.array([after.x, speed.vx, 2 * jnp.arcsin(after.qy), spin.y], np.float64)

    with jax.ensure_compile_time_eval():
        steps = 0.02 * np.eye(4)
        columns = [(following(d, 0.0) - following(-d, 0.0)) / 0.04 for d in steps]
        push = (following(np.zeros(4), 10.0) - following(np.zeros(4), -10.0)) / 20.0
    return np.stack(columns, axis=1).astype(np.float32), push.astype(np.float32)


def motion() -> np.ndarray:
    """Linear motion of (position, velocity, angle, rate) over a tick about upright, (4, 4)."""
    return _response()[0]


def push_response() -> np.ndarray:
    """Change of velocity and rate in a tick for each N on the cart, (2,)."""
    return _response()[1][[1, 3]]


def rate_per_angle() -> float:
    """Change of the pole's rate in a tick for each radian that it leans, 1/s."""
    return float(_response()[0][3, 2])


def follow(
    track: FilterState,
    scores: Scores,
    deviations: jax.Array,
    action: jax.Array,
    after: Sighting,
    followed: jax.Array,
    free: jax.Array,
) -> tuple[FilterState, Scores]:
    """Predict an observation, score the innovations, and update the filter.

    Args:
      track: estimate of the observation before.
      scores: of the episode.
      deviations: (4,) of the noise by kind.
      action: () int32, action between the two observations.
      after: the observation.
      followed: () bool, whether cart and pole moved freely since; if not, the filter restarts from
        this observation.
      free: (4,) bool, the same for blocks.
    """
    floor = _floor(deviations)
    variance = tuple(deviations[kind] ** 2 + floor[kind] ** 2 for kind in range(4))
    cart = _follow_cartpole(track, variance, action, after, followed)
    blocks = _follow_blocks(track, variance, after, free)
    mean = replace(cart.mean, block=blocks.block, newest=after.newest, count=after.count)
    scores = Scores(
        scores.slope + jnp.concatenate([cart.slope, blocks.slope]),
        scores.information + jnp.concatenate([cart.information, blocks.information]),
        scores.surprise
        + jnp.where((deviations > CLEAR * floor)[:, None], _summed(cart, blocks), 0.0),
        jnp.maximum(scores.largest, jnp.maximum(cart.largest, blocks.largest)),
    )
    track = FilterState(
        mean, cart.covariance, cart.sensitivity, blocks.covariance, blocks.sensitivity
    )
    return track, scores


def _floor(deviations: jax.Array) -> jax.Array:
    """Model errors of the filter, as standard deviations of the readings of each kind, (4,).

    The true errors are smaller, but not independent from tick to tick.
    """
    by_others = FROM_OTHERS * np.abs(motion() - np.eye(4, dtype=np.float32))
    shares = [sum(float(n) * d for n, d in zip(row, deviations, strict=True)) for row in by_others]
    return EXACT + jnp.stack(shares)


def _summed(cart: "_Followed", blocks: "_Followed") -> jax.Array:
    """Log likelihood ratios of noise of another size, summed over all bodies, (4, V)."""
    zero = jnp.zeros(len(SPREADS))
    return jnp.stack(cart.surprise) + jnp.stack([*blocks.surprise, zero, zero])


# One reading after the other --------------------------------------------------------------------


@dataclass(frozen=True)
class _Taken:
    """Update by a reading, or by many that share a variance."""

    covariance: Covariance
    mean: tuple[Leaf, ...]
    sensitivity: tuple[jax.Array, ...]
    slope: jax.Array  # (J,)
    information: jax.Array  # (J,)
    surprise: jax.Array  # (V,)
    largest: jax.Array


def _take(
    covariance: Covariance,
    mean: tuple[Leaf, ...],
    sensitivity: tuple[jax.Array, ...],
    place: int,
    innovation: Leaf,
    variance: Leaf,
    shift: Leaf,
    counted: Leaf,
) -> _Taken:
    """Update with a reading of one component of a state of N components.

    Args:
      covariance: (N, N), leaves () or one number for each block.
      mean: N corrections so far, of the readings' shape.
      sensitivity: N arrays (J, ...).
      place: index of the component.
      innovation: reading minus prediction.
      variance: of the reading's noise.
      shift: (J, ...) effect of directions on the reading itself; 0 for none.
      counted: whether the reading is evidence.
    """
    innovation = innovation - mean[place]
    spread = covariance[place][place] + variance
    gain = [row[place] / spread for row in covariance]
    expected = sensitivity[place] + shift
    weight = jnp.where(counted, 1 / spread, 0.0)
    axes = tuple(range(1, expected.ndim))
    slope = jnp.sum(expected * (innovation * weight), axis=axes)
    information = jnp.sum(expected * expected * weight, axis=axes)
    square = jnp.where(counted, innovation * innovation / spread, 0.0)
    # The same reading with noise of another size.
    other = [covariance[place][place] + factor**2 * variance for factor in SPREADS.tolist()]
    log_ratio = []
    for wide in other:
        ratio = spread / wide
        each = 0.5 * (square * (1 - ratio) + jnp.where(counted, jnp.log(ratio), 0.0))
        log_ratio.append(jnp.sum(jnp.broadcast_to(each, square.shape)))
    size = len(covariance)
    return _Taken(
        tuple(
            tuple(covariance[i][j] - gain[i] * covariance[place][j] for j in range(size))
            for i in range(size)
        ),
        tuple(m + g * innovation for m, g in zip(mean, gain, strict=True)),
        tuple(d - g * expected for d, g in zip(sensitivity, gain, strict=True)),
        slope,
        information,
        jnp.stack(log_ratio),
        jnp.sqrt(jnp.max(square)),
    )


@dataclass(frozen=True)
class _Followed:
    """Result of the update of a body."""

    mean: Tree
    block: Tree
    covariance: Covariance
    sensitivity: tuple[jax.Array, ...]
    slope: jax.Array
    information: jax.Array
    surprise: list[jax.Array]
    largest: jax.Array


def _take_all(
    covariance: Covariance,
    sensitivity: tuple[jax.Array, ...],
    innovations: list[Leaf],
    variance: tuple[Leaf, ...],
    shifts: list[Leaf],
    counted: Leaf,
) -> tuple[tuple[Leaf, ...], Tree]:
    """Update with a reading of each component; return corrections of the mean and the sums."""
    mean: tuple[Leaf, ...] = (jnp.zeros_like(innovations[0]),) * len(innovations)
    steps = []
    for place, innovation in enumerate(innovations):
        step = _take(
            covariance,
            mean,
            sensitivity,
            place,
            innovation,
            variance[place],
            shifts[place],
            counted,
        )
        covariance, mean, sensitivity = step.covariance, step.mean, step.sensitivity
        steps.append(step)
    return mean, (
        covariance,
        sensitivity,
        sum(step.slope for step in steps),
        sum(step.information for step in steps),
        [step.surprise for step in steps],
        jnp.max(jnp.stack([step.largest for step in steps])),
    )


def _propagated(covariance: Covariance, motion: np.ndarray) -> Covariance:
    """Covariance after a linear motion, with the error of linearisation."""
    size = len(covariance)
    half = [
        [_dot(motion[i], [row[j] for row in covariance]) for j in range(size)] for i in range(size)
    ]
    change = motion - np.eye(size, dtype=np.float32)
    result = [[_dot(motion[j], half[i]) for j in range(size)] for i in range(size)]
    for i in range(size):
        errors = [LINEARISED**2 * c**2 for c in change[i]]
        result[i][i] = result[i][i] + _dot(errors, [covariance[k][k] for k in range(size)])
    return tuple(tuple(row) for row in result)


def _dot(numbers: Iterable[float], values: Iterable[Leaf]) -> Leaf:
    """Sum of products with constants; zeros are left out at trace time."""
    products = [float(n) * v for n, v in zip(numbers, values, strict=True) if abs(n) > 1e-9]
    return sum(products[1:], products[0]) if products else 0.0


def _diagonal(variance: tuple[Leaf, ...], like: Leaf) -> Covariance:
    size = len(variance)
    zero = jnp.zeros_like(like)
    return tuple(
        tuple(zero + variance[i] if i == j else zero for j in range(size)) for i in range(size)
    )


def _where(mask: Leaf, a: T, b: T) -> T:
    return jax.tree.map(lambda x, y: jnp.where(mask, x, y), a, b)


# Cart and pole ----------------------------------------------------------------------------------


def _follow_cartpole(
    track: FilterState,
    variance: tuple[Leaf, ...],
    action: jax.Array,
    after: Sighting,
    followed: jax.Array,
) -> _Followed:
    moved_by = motion()
    believed = track.mean
    models = directions.models()
    pose, speed = sight.predicted(models, believed, sight.push(Params(), action))
    spin = sight.spin_of(pose, speed)
    velocity, rate = directions.along_axes(speed, spin)
    by_velocity, by_rate = directions.of_motion(velocity, rate, action, push_response())
    added = [0.0, by_velocity, 0.0, by_rate]
    sensitivity = tuple(_dot(moved_by[i], track.sensitivity) + added[i] for i in range(4))
    covariance = _propagated(track.covariance, moved_by)
    reading = _axes_of(after)
    innovations = [
        reading[0] - jnp.stack([pose.x, pose.y]),
        reading[1] - velocity[:, 0],
        tilt_between(pose, after.reported),
        reading[2] - rate[:, 0],
    ]
    shifts: list[Leaf] = [0.0, 0.0, directions.of_angles(), 0.0]
    mean, (covariance, sensitivity, slope, information, surprise, largest) = _take_all(
        covariance, sensitivity, innovations, variance, shifts, followed
    )
    corrected = _corrected(pose, spin, speed, mean)
    fresh = _fresh(after)
    zero = jnp.float32(0)
    return _Followed(
        _where(
            followed,
            replace(corrected, block=fresh.block, newest=fresh.newest, count=fresh.count),
            fresh,
        ),
        None,
        _where(followed, covariance, _diagonal(variance, zero)),
        tuple(jnp.where(followed, s, -shift) for s, shift in zip(sensitivity, shifts, strict=True)),
        slope,
        information,
        surprise,
        largest,
    )


def _axes_of(report: Sighting) -> list[jax.Array]:
    """Reported position, velocity and rate along the two axes, (2,) each."""
    r = report.reported
    return [
        jnp.stack([r.x, r.y]),
        jnp.stack([report.vx, report.vy]),
        jnp.stack([report.spin.y, -report.spin.x]),
    ]


def tilt_between(a: Pose, b: Pose) -> jax.Array:
    """Rotation from one orientation of the pole to another about its two axes, rad, (2,).

    The axes are those of the pole, which does not twist about itself; about the room's, a turn that
    leans sideways would have a part along the third axis, which the filter leaves out.
    """
    # Vector part of the inverse of a times b; of two signs the nearer one.
    w = a.qw * b.qw + a.qx * b.qx + a.qy * b.qy + a.qz * b.qz
    x = a.qw * b.qx - a.qx * b.qw - a.qy * b.qz + a.qz * b.qy
    y = a.qw * b.qy - a.qy * b.qw - a.qz * b.qx + a.qx * b.qz
    twice = jnp.where(w < 0, -2.0, 2.0)
    return jnp.stack([twice * y, -twice * x])


def _corrected(pose: Pose, spin: Vector, speed: Velocity, mean: tuple[Leaf, ...]) -> Sighting:
    """Corrected predictions of the nominal model; the twist of the pole stays as predicted."""
    nominal = jax.tree.map(lambda leaf: jnp.ravel(leaf)[0], (speed, spin))
    position, velocity, angle, rate = mean
    turn = _turned(pose, angle)
    reported = replace(pose, x=pose.x + position[0], y=pose.y + position[1], **turn)
    return replace(
        Sighting.nothing(),
        reported=reported,
        vx=nominal[0].vx + velocity[0],
        vy=nominal[0].vy + velocity[1],
        spin=Vector(nominal[1].x - rate[1], nominal[1].y + rate[0], nominal[1].z),
    )


def _turned(pose: Pose, angle: jax.Array) -> dict[str, jax.Array]:
    """Orientation turned by small angles about the two axes, of unit length."""
    hx, hy = -0.5 * angle[1], 0.5 * angle[0]
    x, y, z, w = pose.qx, pose.qy, pose.qz, pose.qw
    turned = (x + hx * w + hy * z, y + hy * w - hx * z, z + hx * y - hy * x, w - hx * x - hy * y)
    length = jnp.sqrt(sum(c * c for c in turned))
    return dict(zip(("qx", "qy", "qz", "qw"), (c / length for c in turned), strict=True))


def _fresh(after: Sighting) -> Sighting:
    """First estimate from an observation: at the start the pole is not twisted."""
    r = after.reported
    length = jnp.sqrt(r.qx * r.qx + r.qy * r.qy + r.qw * r.qw)
    reported = replace(
        r, qx=r.qx / length, qy=r.qy / length, qz=jnp.zeros_like(r.qz), qw=r.qw / length
    )
    return replace(after, reported=reported, spin=_level(after.spin))


def _level(spin: Vector) -> Vector:
    """Angular velocity without its vertical component."""
    return Vector(spin.x, spin.y, jnp.zeros_like(spin.z))


# Blocks -----------------------------------------------------------------------------------------

_FALL = np.array([[1.0, DT], [0.0, 1.0]], np.float32)  # of (position, velocity), without drag


def _follow_blocks(
    track: FilterState, variance: tuple[Leaf, ...], after: Sighting, free: jax.Array
) -> _Followed:
    believed = track.mean.block
    v = bank.blocks_after(Params(), believed)
    p = sight.place_next(believed.p, v)
    # A velocity is new when it moves the place: first the change, then the motion.
    given = directions.of_blocks(track.mean)
    d_place, d_speed = track.block_sensitivity
    d_speed = d_speed + given
    d_place = d_place + DT * d_speed
    covariance = _propagated(track.block_covariance, _FALL)
    places, speeds = (jnp.stack(list(a)) for a in (after.block.p, after.block.v))
    expected_p, expected_v = (jnp.stack(list(a)) for a in (p, v))
    mean, (covariance, sensitivity, slope, information, surprise, largest) = _take_all(
        covariance,
        (d_place, d_speed),
        [places - expected_p, speeds - expected_v],
        variance[:2],
        [0.0, 0.0],
        free,
    )
    believed_p = jnp.where(free, expected_p + mean[0], places)
    believed_v = jnp.where(free, expected_v + mean[1], speeds)
    block = Sphere(Vector(*believed_p), Vector(*believed_v), after.block.alive)
    return _Followed(
        None,
        block,
        _where(free, covariance, _diagonal(variance[:2], jnp.zeros(SLOTS))),
        tuple(jnp.where(free, s, 0.0) for s in sensitivity),
        slope,
        information,
        surprise,
        largest,
    )
