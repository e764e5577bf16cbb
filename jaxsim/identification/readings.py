"""Errors of the sensors that readings show without any model of the forces.

A place changes by the velocity times the length of a tick, under any forces. So places and
velocities check each other, and so do angles and rates.
"""

from functools import partial
from typing import NamedTuple

import jax
import numpy as np

from jaxsim.agents import touch
from jaxsim.agents.sight import SLOTS, Sighting
from jaxsim.identification.estimates import Estimate
from jaxsim.identification.ticks import CARTPOLE, Ticks
from jaxsim.worlds.cartpole3d.contact import broadphase
from jaxsim.worlds.cartpole3d.types import DT, Params, Sphere

KINDS = ("position", "velocity", "angle", "rate")
SOURCES = {"velocity": "position", "rate": "angle"}
"""Kinds of readings that follow from exact ones of another kind."""
EXACT = 1e-5  # m, m/s, rad and rad/s, size of the error of an exact prediction
LEAST_STEP = 4e-4  # of readings, which have six decimals
ON_STEP = 2e-5  # distance of a rounded reading from a multiple of its step
SIGNIFICANT = 5.0  # standard errors
FEWEST, OUTLIERS = 20, (0.001, 0.999)  # values of a check; quantiles that values are clipped to
LEVER = 12.0  # 1/s^2, angular acceleration by angle, of what noise of angles does to rates
OF_SPEEDS = np.flatnonzero(np.arange(6 * SLOTS) % 6 >= 3) + CARTPOLE
CERTAIN = 3.0  # standard errors of a place, beyond which a contact is certain
ANY_SPEED = 30.0  # m/s, where it is not
AT_WALL = 0.05  # m, gap of a block that may touch a wall in the tick
LEAST_NOISE = 5e-6  # m and rad, deviation of the check from which noise is looked for
DROPPED = 1.0  # m/s and rad/s, error of a velocity or rate that is not reported


class SensorErrors(NamedTuple):
    """Errors of the sensors.

    Attributes:
      values: estimates by field of `Params`.
      sizes: (4,) standard deviation of an error, by kind.
    """

    values: dict[str, Estimate]
    sizes: np.ndarray

    def is_dropped(self, kind: str) -> bool:
        """Whether the readings of a kind are all zero."""
        return f"gain_{kind}" in self.values

    def lacks(self, *kinds: str) -> bool:
        """Whether the readings of some kind are dropped and do not follow from exact ones."""
        return any(self.is_dropped(kind) and not self._follows(kind) for kind in kinds)

    def _follows(self, kind: str) -> bool:
        source = SOURCES.get(kind)
        if source is None or self.is_dropped(source):
            return False
        return not self.sizes[KINDS.index(source)]


def error_scale(ticks: Ticks, sizes: np.ndarray) -> np.ndarray:
    """Size of the error of an exact prediction of each number, (T, 34).

    Args:
      ticks: transitions.
      sizes: (4,) standard deviations of the readings' errors by kind.
    """
    position, velocity, angle, rate = sizes
    place = 2**0.5 * position + DT * velocity
    speed = 2**0.5 * velocity + DT * angle
    tilt = 2**0.5 * angle + DT * rate
    spin = 2**0.5 * rate + DT * LEVER * angle
    of_cartpole = [place, place, speed, speed, tilt, tilt, tilt, spin, spin, spin]
    scale = np.tile([*of_cartpole, *([place] * 3 + [speed] * 3) * SLOTS], (len(ticks.tick), 1))
    if position:
        scale[:, OF_SPEEDS] += np.repeat(_doubt(ticks.before.block, position), 3, axis=1)
    return np.hypot(EXACT, scale)


def _doubt(block: Sphere, position: float) -> np.ndarray:
    """What an uncertain place of a block adds to the error of its next speed, m/s, (T, 4)."""
    nominal, blur = Params(), CERTAIN * position
    gap = np.asarray(touch.least_gap(nominal, block.p))
    paired = jax.vmap(partial(touch.paired, nominal), in_axes=(0, None))
    perhaps = (np.abs(gap) < blur) | np.asarray(paired(block, blur) & ~paired(block, -blur))
    # A wall pushes a block back the faster, the deeper it is in the wall.
    pushed = np.where(gap < blur + AT_WALL, broadphase.ERP / DT * position, 0.0)
    return np.asarray(np.where(perhaps, ANY_SPEED, pushed))


def rounded_or_dropped(ticks: Ticks) -> SensorErrors:
    """Steps that readings are rounded to, and kinds of readings that are all zero."""
    values: dict[str, Estimate] = {}
    sizes = np.zeros(len(KINDS))
    for place, kind in enumerate(KINDS):
        numbers = _readings(ticks.after, kind)
        if numbers.size and not numbers.any():
            values[f"gain_{kind}"] = Estimate(0.0, 0.0)
            sizes[place] = DROPPED if kind in SOURCES else 0.0
            continue
        # A few numbers are multiples of some small step by chance.
        step = step_of(numbers) if numbers.size >= FEWEST else None
        if step is not None:
            values[f"step_{kind}"] = step
            sizes[place] = step.value / 12**0.5
    return SensorErrors(values, sizes)


def _readings(report: Sighting, kind: str) -> np.ndarray:
    """All readings of a kind."""
    r, block = report.reported, report.block
    alive = np.asarray(block.alive)
    if kind == "position":
        whole, parts = (r.x, r.y), block.p
    elif kind == "velocity":
        whole, parts = (report.vx, report.vy), block.v
    elif kind == "angle":
        return rotation_vector(report).reshape(-1)
    else:
        return np.concatenate([np.ravel(c) for c in report.spin])
    of_blocks = [np.asarray(c)[alive] for c in parts]
    # Blocks on lines report no velocity.
    moving = of_blocks if kind == "position" or any(c.any() for c in of_blocks) else []
    return np.concatenate([*(np.ravel(c) for c in whole), *moving])


def quaternions(report: Sighting) -> np.ndarray:
    """Orientations of the pole, (..., 4), in float64."""
    r = report.reported
    return np.stack([np.asarray(c, float) for c in (r.qx, r.qy, r.qz, r.qw)], axis=-1)


def rotation_vector(report: Sighting) -> np.ndarray:
    """Rotation vectors of the pole, rad, (..., 3)."""
    q = quaternions(report)
    q = np.where(q[..., 3:] < 0, -q, q)
    size = np.linalg.norm(q[..., :3], axis=-1, keepdims=True)
    share = np.where(size > 0, 2 * np.arctan2(size, q[..., 3:]) / np.where(size > 0, size, 1), 2.0)
    return np.asarray(q[..., :3] * share)


def step_of(numbers: np.ndarray) -> Estimate | None:
    """Step that all numbers are multiples of; None if they are not rounded."""
    sizes = np.unique(np.abs(numbers.astype(float)))
    gaps = np.diff(sizes)
    gaps = gaps[gaps > LEAST_STEP]
    if not gaps.size or np.any((np.diff(sizes) > ON_STEP) & (np.diff(sizes) < LEAST_STEP)):
        return None
    step = float(gaps.min())
    for _ in range(3):
        multiples = np.round(sizes / step)
        if not multiples.any():
            return None
        step = float((sizes * multiples).sum() / (multiples**2).sum())
    if np.abs(sizes - multiples * step).max() > ON_STEP or step < LEAST_STEP:
        return None
    return Estimate(step, ON_STEP / float((multiples**2).sum()) ** 0.5)


def delayed(ticks: Ticks) -> int:
    """Ticks by which the sensors report late.

    Late sensors first report the cart before the hidden tick that starts an episode: at rest.
    """
    at_rest = (np.asarray(ticks.before.vx) == 0) & (np.asarray(ticks.before.vy) == 0)
    late = []
    for episode in np.unique(ticks.episode):
        of_episode = at_rest[ticks.episode == episode]
        late.append(int(np.argmin(of_episode)) if not of_episode.all() else 0)
    return min(late)


def noisy(ticks: Ticks, nominal: np.ndarray) -> SensorErrors:
    """Noise of readings.

    Args:
      ticks: transitions.
      nominal: (T, 34) errors of nominal predictions.
    """
    before, after = ticks.before.block, ticks.after.block
    moved = [
        np.asarray(b) - np.asarray(a) - DT * np.asarray(v)
        for a, b, v in zip(before.p, after.p, after.v, strict=True)
    ]
    counts = np.repeat(ticks.counts[:, CARTPOLE::6], 3, axis=1)
    of_blocks = np.stack(moved, axis=-1).reshape(len(ticks.episode), -1)
    place = _checked(
        ticks,
        np.concatenate([nominal[:, :2], of_blocks], axis=1),
        np.concatenate([ticks.counts[:, :2], counts], axis=1),
    )
    tilt = _checked(ticks, nominal[:, 4:7], ticks.counts[:, 4:7])
    noise = dict(zip(KINDS, (*place, *tilt), strict=True))
    values = {f"noise_{kind}": one for kind, one in noise.items() if one.value}
    return SensorErrors(values, np.array([one.value for one in noise.values()]))


def _checked(ticks: Ticks, check: np.ndarray, counts: np.ndarray) -> tuple[Estimate, Estimate]:
    """Noise of a quantity and of its rate, from values of their check, (T, C).

    Noise of the quantity enters two successive values with opposite signs; noise of the rate enters
    one. So the former is their covariance, and the latter is what remains of their variance.
    """
    none = Estimate(0.0, 0.0)
    follows = (np.diff(ticks.episode) == 0) & (np.diff(ticks.tick) == 1)
    both = counts[1:] & counts[:-1] & follows[:, None]
    number = int(both.sum())
    if number < FEWEST:
        return none, none
    middle = np.where(counts, check, 0).sum(axis=0) / np.maximum(counts.sum(axis=0), 1)
    off = check - middle
    # Hits are outliers.
    off = np.clip(off, *np.quantile(off[counts], OUTLIERS))
    variance = float((off[1:] ** 2)[both].mean())
    covariance = float((off[1:] * off[:-1])[both].mean())
    if variance < LEAST_NOISE**2:
        return none, none
    error = variance / number**0.5
    quantity = -covariance if -covariance > SIGNIFICANT * error else 0.0
    rate = variance - 2 * quantity
    rate = rate if rate > 2.5 * SIGNIFICANT * error else 0.0

    def deviation(square: float, unit: float) -> Estimate:
        size = square**0.5
        return Estimate(unit * size, unit * error / (2**0.5 * size)) if size else none

    return deviation(quantity, 1.0), deviation(rate, 1 / DT)
