"""Noisy or rounded readings, computed again from exact ones.

Places and velocities determine each other under any forces, and so do angles and rates. Where
one of the two has exact readings, the other follows.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.agents import sight
from jaxsim.agents.sight import Sighting
from jaxsim.identification.readings import KINDS, quaternions
from jaxsim.worlds.cartpole3d.types import DT, Vector

FROM_PLACES = 1e-4  # m/s and rad/s, error of a velocity that follows from two places
AVERAGED = 25  # readings whose mean has the error of a repaired one, with a margin


def repaired(report: Sighting, sizes: np.ndarray, still: bool = False) -> Sighting:
    """Reports of an episode without the errors of one kind of two.

    Args:
      report: leaves (T + 1, ...).
      sizes: (4,) of the errors by kind; see `sizes_after`.
      still: whether blocks report no velocity although they move, as on lines.
    """
    spoilt = dict(zip(KINDS, sizes > 0, strict=True))
    if spoilt["velocity"] and not spoilt["position"]:
        report = _speeds_from_places(report, still)
    elif spoilt["position"] and not spoilt["velocity"]:
        report = _places_from_speeds(report)
    if spoilt["rate"] and not spoilt["angle"]:
        return replace(report, spin=_vector(_rates(report)))
    if spoilt["angle"] and not spoilt["rate"]:
        return _angles_from_rates(report)
    return report


def sizes_after(sizes: np.ndarray) -> np.ndarray:
    """Sizes of the errors of repaired reports, (4,)."""
    left = sizes.copy()
    for quantity, rate in ((0, 1), (2, 3)):
        if bool(sizes[quantity]) != bool(sizes[rate]):
            left[rate] = FROM_PLACES if sizes[rate] else 0.0
            left[quantity] = sizes[quantity] / AVERAGED**0.5
    return left


def _leaf(numbers: np.ndarray) -> jax.Array:
    return jnp.asarray(numbers, jnp.float32)


def _vector(rows: np.ndarray) -> Vector:
    """A vector from its components on the last axis."""
    return Vector(*(_leaf(rows[..., axis]) for axis in range(3)))


def _rows(vector: Vector) -> np.ndarray:
    """Components on a last axis, in float64."""
    return np.stack([np.asarray(c, float) for c in vector], axis=-1)


def _speeds_from_places(report: Sighting, still: bool) -> Sighting:
    """The cart is reported one tick late: the next place shows its speed."""
    vx, vy = (
        _leaf(_forward(np.asarray(c, float)) / DT) for c in (report.reported.x, report.reported.y)
    )
    report = replace(report, vx=vx, vy=vy)
    if still:
        return report
    v = np.diff(_rows(report.block.p), axis=0) / DT
    first = _rows(sight.before_drag(_vector(v[:1])))
    v = np.concatenate([first, v])
    return replace(report, block=replace(report.block, v=_vector(v)))


def _forward(numbers: np.ndarray) -> np.ndarray:
    """Differences to the next number; the last one is repeated."""
    change = np.diff(numbers, axis=0)
    return np.concatenate([change, change[-1:]])


def _places_from_speeds(report: Sighting) -> Sighting:
    """Sums of the speeds, with the line that fits the readings best."""
    block, r = report.block, report.reported
    alive = np.asarray(block.alive)

    def summed(place: np.ndarray, steps: np.ndarray, mask: np.ndarray) -> np.ndarray:
        path = np.cumsum(steps, axis=0)
        return np.asarray(path + _trend(place - path, mask))

    mask = alive[..., None]
    p = np.where(mask, summed(_rows(block.p), DT * _rows(block.v), mask), 0.0)
    every = np.ones(len(alive), bool)
    x, y = (
        _leaf(summed(np.asarray(place), DT * np.append(0.0, np.asarray(speed)[:-1]), every))
        for place, speed in ((r.x, report.vx), (r.y, report.vy))
    )
    return replace(report, reported=replace(r, x=x, y=y), block=replace(block, p=_vector(p)))


def _trend(off: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Straight line through each column where the mask is set; an offset of speeds makes a slope.

    Args:
      off: (T, ...).
      mask: bool, broadcasts with it.
    """
    time = np.arange(len(off)).reshape((-1,) + (1,) * (off.ndim - 1))
    weight = np.broadcast_to(mask, off.shape).astype(float)
    number = np.maximum(weight.sum(axis=0), 1)
    middle, level = (weight * time).sum(axis=0) / number, (weight * off).sum(axis=0) / number
    square = (weight * (time - middle) ** 2).sum(axis=0)
    slope = (weight * (time - middle) * off).sum(axis=0) / np.maximum(square, 1)
    return np.asarray(level + slope * (time - middle))


def _rates(report: Sighting) -> np.ndarray:
    """Rates of the pole between successive orientations, rad/s, (T + 1, 3)."""
    pose = jax.tree.map(lambda c: np.asarray(c, float), report.reported)
    before, after = (
        jax.tree.map(lambda c, p=part: c[p], pose) for part in (slice(-1), slice(1, None))
    )
    rates = _rows(sight.rate_between(before, after))
    return np.concatenate([rates, rates[-1:]])


def _angles_from_rates(report: Sighting) -> Sighting:
    """Orientations turned on by the rates, from the start that fits the readings best."""
    rates = _rows(report.spin)
    q = np.zeros((len(rates), 4))
    q[:, 3] = 1.0
    for tick in range(len(rates) - 1):
        q[tick + 1] = _times(_turn(DT * rates[tick]), q[tick])
    read = quaternions(report)
    # Turns from the summed orientation back to the start, averaged.
    starts = np.stack([_times(_inverse(a), b) for a, b in zip(q, read, strict=True)])
    starts = starts * np.where(starts[:, 3:] < 0, -1.0, 1.0)
    start = starts.mean(axis=0)
    start = start / np.linalg.norm(start)
    turned = np.stack([_times(a, start) for a in q])
    r = report.reported
    x, y, z, w = (_leaf(turned[:, axis]) for axis in range(4))
    return replace(report, reported=replace(r, qx=x, qy=y, qz=z, qw=w))


def _turn(vector: np.ndarray) -> np.ndarray:
    size = np.linalg.norm(vector)
    share = np.sin(0.5 * size) / size if size else 0.5
    return np.append(vector * share, np.cos(0.5 * size))


def _inverse(q: np.ndarray) -> np.ndarray:
    return q * np.array([-1.0, -1.0, -1.0, 1.0])


def _times(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The rotation b followed by a."""
    vector = a[3] * b[:3] + b[3] * a[:3] + np.cross(a[:3], b[:3])
    return np.append(vector, a[3] * b[3] - a[:3] @ b[:3])
