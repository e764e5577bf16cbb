"""Families that show at the start of an episode, in new blocks, or at its end."""

from functools import reduce
from math import gcd
from typing import NamedTuple

import numpy as np

from jaxsim.agents import sight, touch
from jaxsim.agents.sight import Sighting
from jaxsim.identification.estimates import Estimate, between, greatest
from jaxsim.identification.readings import rotation_vector
from jaxsim.worlds.cartpole3d import dynamics
from jaxsim.worlds.cartpole3d.terms.attraction import TARGET_HEIGHT
from jaxsim.worlds.cartpole3d.types import DT, Config, Params

NOMINAL = Params()
Values = dict[str, Estimate]
Named = dict[str, Values]
"""Estimates of each family that explains something, by field."""

SIGMAS = 5.0  # of noise, up to which a number may be nominal
MARGIN = 2e-3  # m/s, of speeds
LEAST_SHARE = 0.6  # least speed of blocks as a share of the greatest, in families of speed
AT_REST = 2.5  # m/s, up to which a new block was at rest
AIMED = 2e-4  # rad, between a block's velocity and the way to the cart
PUSH_MARGIN, LEAN_MARGIN = 1.05, 1.002  # factors of the nominal bounds
PULLING_LEAN = 0.03  # rad, of a pole that pulls the cart at the start
FALL_MARGIN = 1e-4  # rad
STEPS = Config().max_steps


class ReportedEpisode(NamedTuple):
    """Reports of one episode, leaves (T + 1, ...), and whether it ended with the last of them."""

    reports: Sighting
    ended: bool


def of_starts(
    episodes: list[ReportedEpisode], sizes: np.ndarray, slack: float, params: Params
) -> Named:
    """Families that show in first reports.

    Args:
      episodes: one or more.
      sizes: (4,) standard deviations of the readings' errors, by kind.
      slack: m/s, by which unusual forces may change a block's speed in a tick.
      params: of cart and pole, as estimated.
    """
    position, velocity, angle, _ = sizes
    named: Named = {}
    counts = {int(one.reports.count[0]) for one in episodes}
    if len(counts) == 1 and not NOMINAL.block_count_min <= min(counts) <= NOMINAL.block_count_max:
        count = Estimate(float(min(counts)), 0.0)
        named["block_number"] = {"block_count_min": count, "block_count_max": count}
    named |= _of_blocks(episodes, SIGMAS * velocity + MARGIN + slack, SIGMAS * position)
    mass = float(dynamics.bodies(params).m0)
    speeds = np.array([[one.reports.vx[0], one.reports.vy[0]] for one in episodes])
    pushes = np.abs(speeds) * mass / DT
    # The pole pulls the cart as well, and so does a wind.
    pull = params.gravity * params.pole_mass * PULLING_LEAN
    limit = PUSH_MARGIN * NOMINAL.start_push + pull + SIGMAS * velocity * mass / DT
    if pushes.max() > limit and not params.wind_speed:
        named["start_push"] = {"start_push": greatest(pushes.reshape(-1))}
    # The quaternion of the start is (r, 1), normalised.
    turns = np.stack([rotation_vector(one.reports)[0] for one in episodes])
    leans = np.abs(np.tan(0.5 * turns))
    if leans.max() > LEAN_MARGIN * NOMINAL.start_lean + SIGMAS * angle:
        named["start_lean"] = {"start_lean": greatest(leans.reshape(-1))}
    return named


def _of_blocks(episodes: list[ReportedEpisode], margin: float, blur: float) -> Named:
    """Families of the blocks' first velocities."""
    speeds, aimed, sizes, gathered = [], [], [], []
    number = 0
    for one in episodes:
        block = one.reports.block
        pair = (block.p, sight.before_drag(block.v))
        p, v = (np.stack([np.asarray(c)[0] for c in a], axis=-1) for a in pair)
        alive = np.asarray(block.alive)[0]
        apart = _apart(p, alive, blur)
        cart = np.array([*_start_of(one), TARGET_HEIGHT])
        heads = _heads_for(cart, p - DT * v, v) & apart
        number += int(apart.sum())
        size = np.linalg.norm(v, axis=-1)
        aimed += size[heads].tolist()
        speeds += np.abs(v[apart & ~heads]).reshape(-1).tolist()
        if alive.sum() > 1:
            gathered.append(np.ptp(size[alive]) < max(1e-3, margin - MARGIN))
        sizes.append(size[alive].max(initial=0.0))
    if sum(int(one.reports.count[0]) for one in episodes) and max(sizes) < 1e-6:
        return {"block_lines": {}}
    if not number:
        return {}
    low, high = NOMINAL.block_speed_min - margin, NOMINAL.block_speed_max + margin
    rest = np.array(speeds)
    odd = rest.size > 0 and bool(((rest < low) | (rest > high)).any())
    if gathered and all(gathered) and odd:
        return {"block_gather": {"gather_speed_max": greatest(np.array(sizes))}}
    if aimed and margin < 2 * MARGIN:
        share = len(aimed) / number
        return {
            "block_aim": {
                "aim_share": Estimate(share, (share * (1 - share) / number + 1e-4) ** 0.5),
                "aim_speed_max": greatest(np.array(aimed)),
            }
        }
    if not odd:
        return {}
    if rest.max() * LEAST_SHARE <= rest.min() + margin:
        return {"block_speed": {"block_speed_max": between(rest, LEAST_SHARE)}}
    return {"block_scatter": {"scatter_speed": greatest(rest)}}


def _start_of(one: ReportedEpisode) -> tuple[float, float]:
    """First reported place of the cart, m."""
    x, y = (np.asarray(c) for c in (one.reports.reported.x, one.reports.reported.y))
    return float(x[0]), float(y[0])


def _apart(p: np.ndarray, alive: np.ndarray, blur: float) -> np.ndarray:
    """Blocks that touched no wall and no other block before the first report, (N,)."""
    reach = 2 * NOMINAL.block_radius + touch.TOUCHING + 0.5 + blur
    distance = np.linalg.norm(p[:, None] - p[None], axis=-1)
    meet = (distance < reach) & alive[:, None] & alive[None] & ~np.eye(len(p), dtype=bool)
    side = NOMINAL.room_half_width - NOMINAL.block_radius - 0.3 - blur
    inside = (np.abs(p[:, :2]) < side).all(axis=1)
    inside &= (p[:, 2] > NOMINAL.room_floor + 0.8 + blur) & (p[:, 2] < NOMINAL.room_ceiling - 0.8)
    return np.asarray(alive & ~meet.any(axis=1) & inside)


def _heads_for(target: np.ndarray, p: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Whether blocks fly straight towards a target, (N,)."""
    way = target - p
    across = np.linalg.norm(np.cross(v, way), axis=-1)
    product = np.linalg.norm(v, axis=-1) * np.linalg.norm(way, axis=-1)
    return np.asarray((across < AIMED * product + 1e-5) & ((v * way).sum(axis=-1) > 0))


def of_supply(episodes: list[ReportedEpisode]) -> Named:
    """Families of blocks that appear in the course of an episode."""
    ticks, speeds = [], []
    for one in episodes:
        count = np.asarray(one.reports.count)
        newest = np.stack([np.asarray(c) for c in one.reports.newest], axis=-1)
        for place in np.flatnonzero(np.diff(count) > 0) + 1:
            ticks.append(int(place) + 1)
            speeds.append(np.abs(newest[place]))
    if not ticks:
        return {}
    # The hidden tick of the start counts.
    period = Estimate(float(reduce(gcd, ticks)), 0.0)
    numbers = np.array(speeds)
    if np.linalg.norm(numbers, axis=1).max() < AT_REST:
        return {"block_supply": {"spawn_period": period}}
    greatest_speed = between(numbers.reshape(-1), LEAST_SHARE)
    return {"block_flood": {"spawn_period": period, "spawn_speed_max": greatest_speed}}


def of_ends(episodes: list[ReportedEpisode]) -> Named:
    """The lean at which episodes end, if it is not the nominal one.

    An episode that ends with less lean than some tick had without an end was cut off by a limit of
    steps, and so were several episodes that are all equally long.
    """
    leans = [_leans(one.reports)[1:] for one in episodes]
    lengths = [len(one) for one, episode in zip(leans, episodes, strict=True) if episode.ended]
    are_cut = len(lengths) > 1 and len(set(lengths)) == 1
    passed = max(float(one[:-1].max(initial=0.0)) for one in leans)
    low, high = passed, np.inf
    for one, episode in zip(leans, episodes, strict=True):
        last = float(one[-1])
        if episode.ended and not are_cut and len(one) != STEPS and last > passed:
            high = min(high, last)
        else:
            low = max(low, last)
    if low <= NOMINAL.lean_limit + FALL_MARGIN and high >= NOMINAL.lean_limit - FALL_MARGIN:
        return {}
    high = high if np.isfinite(high) else 0.5
    return {"fall_angle": {"lean_limit": Estimate(0.5 * (low + high), abs(high - low) / 12**0.5)}}


def _leans(report: Sighting) -> np.ndarray:
    """Larger of roll and pitch, rad, (T + 1,); see `dynamics.has_fallen`."""
    r = report.reported
    x, y, z, w = (np.asarray(c, float) for c in (r.qx, r.qy, r.qz, r.qw))
    roll = np.arctan2(np.abs(2 * (y * z + w * x)), 1 - 2 * (x * x + y * y))
    pitch = np.arcsin(np.clip(np.abs(2 * (x * z - w * y)), 0, 1))
    return np.asarray(np.maximum(roll, pitch))
