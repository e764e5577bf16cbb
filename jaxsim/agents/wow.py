"""`wow`: the published open-world agent of the UCCS group, re-implemented as a pure agent.

Evidence of extreme-value tests is summed over a trial: an unusual first observation, errors of
one-tick predictions, errors of a forecast of the blocks over 75 ticks, blocks that appear, and
performance that gets worse. Nothing is declared before episode 17, so that usual values are known
first. The controller looks one tick ahead; from two episodes after a detection on it also avoids
blocks.

Differences: for unusual starts and one-tick errors, the paper gives where the tails begin but not
their shapes; `SHAPE` and `SCALE` are our choice. Tails are Weibull's, as in the paper; `published`
has the exponential form of the published code, and its error that keeps only the last number of
cart and pole. The forecast models walls and other blocks, but no hits by the cart. The evidence of
an episode is complete only at its end; each prediction assumes that its episode has just ended.

Source: T. E. Boult, N. M. Windesheim, S. Zhou, C. Pereyda, L. B. Holder, Weibull-Open-World (WOW)
Multi-Type Novelty Detection in CartPole3D, Algorithms 15(10):381, 2022, and a description of the
released agent.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.agents import bank, reference, sight
from jaxsim.agents.base import Agent, NoveltyPrediction
from jaxsim.agents.detection import Detector, Joined, Transition, joined
from jaxsim.agents.lookahead import collided
from jaxsim.agents.sight import Sighting, see
from jaxsim.worlds.cartpole3d import dynamics
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d.types import (
    DT,
    PIVOT_HEIGHT,
    POLE_BOTTOM,
    Observation,
    Params,
    Scalar,
    Sphere,
    Vector,
)

NOMINAL = Params()
SHAPE, SCALE = 1.5, 0.25
"""Assumed Weibull shape and scale of tails whose parameters are not known."""

THRESHOLD = 0.5
QUIET = 17  # episodes before anything is declared
TESTED = range(19, 34)  # episodes in which forecasts and divergences count; later only failures
LISTED = 17  # scores of an episode that are compared with training
TRAINED_MEAN, TRAINED_SPREAD = 0.04, 0.09  # of an episode's scores, in training
USUAL, USUAL_SPREAD = 0.88835, 0.08242  # moving average of performance, in training
WINDOW = 7  # episodes of that average
COMPLETE = 198  # observations of an episode that did not fail
FAIL_RAMP, FAIL_LIMIT, FAIL_ROW = 0.20, 0.25, 4  # shares of failures; failures in a row
NUM_LEVELS = 9

# First observation: largest and smallest usual numbers.
CART_PLACE, CART_SPEED, POLE_RATE, POLE_TURN, LEAN = 3.0, 0.02, 0.028, 0.58, 0.01
BLOCK_SIDE, BLOCK_TOP, BLOCK_FAST, BLOCK_SLOW = 4.5, 9.5, 11.5, 4.5
MOST_BLOCKS, USUAL_BLOCKS = 6, (2, 4)

# One-tick predictions: largest usual errors of cart and pole, and of blocks.
STRUCTURE_ERRORS = (
    0.0257,
    0.0419,
    0.0425,
    0.0448,
    0.0190,
    0.0072,
    0.0844,
    0.0230,
    2.85,
    3.39,
    13.5,
)
PLACE_ERRORS, SPEED_ERRORS = (0.0444, 0.0433, 0.410), (0.422, 0.427, 0.425)
SOME_HITS = 4  # errors of cart and pole that are ignored before they count


class Tail(NamedTuple):
    """Where a tail begins, its Weibull shape and its scale."""

    begin: float
    shape: float
    scale: float


FORECAST = {
    10: (Tail(0.2975, 1.124, 0.520), Tail(0.462, 1.013, 0.524)),
    25: (Tail(2.573, 1.644, 0.452), Tail(4.376, 1.433, 0.822)),
    35: (Tail(6.214, 1.422, 0.253), Tail(9.632, 1.822, 0.473)),
    45: (Tail(10.55, 1.338, 0.541), Tail(20.75, 1.218, 0.472)),
    55: (Tail(19.52, 1.826, 0.593), Tail(28.01, 1.821, 0.463)),
    65: (Tail(19.68, 1.572, 0.542), Tail(38.51, 1.013, 0.472)),
    75: (Tail(8.750, 1.142, 0.577), Tail(35.76, 1.012, 0.472)),
}
"""Tails of a forecast's mean squared error, m^2, of heights and of all places, by tick."""

ENOUGH_ERROR = {55: 28.0, 65: 33.5, 75: math.inf}
"""Error of all places, m^2, above which a late forecast counts without a hit before it, by tick."""

MOST_HEIGHT_ERROR = {75: 17.0}
"""Error of heights, m^2, from which a forecast does not count, by tick."""

ODD_TAGS = (Tail(2.2598, 2.1238, 0.5830), Tail(2.8153, 2.4171, 0.7317))
"""Tails of the tagged violations per episode, in episodes 20 and 21, and from 22 on."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Memory:
    """Evidence of a lifetime so far; see the module."""

    episode: jax.Array  # () int32, from 0; -1 before the first
    ticks: jax.Array  # () int32, observations of the present episode
    listed: jax.Array  # () float, sum of its first scores
    entries: jax.Array  # () int32, number of these scores
    opening: jax.Array  # () float, score of its first observation
    forecast: Sphere  # (4,) blocks as forecast from its first observation
    errors: jax.Array  # () float, evidence of its forecast
    run: jax.Array  # () int32, wrong forecasts in a row
    appeared: jax.Array  # () float, 1 once a block appeared
    hits: jax.Array  # () int32, errors of cart and pole
    tags: jax.Array  # (9,) float, violations by level, of the lifetime
    declared: jax.Array  # () float, evidence of the episodes before
    since: jax.Array  # () int32, episodes since a detection
    diverged: jax.Array  # () int32, episodes in a row that diverged
    failures: jax.Array  # () int32
    failed_row: jax.Array  # () int32, failures in a row
    recent: jax.Array  # (7,) performances of the last episodes


def tail(x: Scalar, at: Tail, published: bool) -> jax.Array:
    """Probability that a usual number is smaller than `x`; zero up to the beginning of the tail."""
    excess = jnp.maximum(jnp.asarray(x) - at.begin, 0.0) / at.scale
    return 1 - jnp.exp(-(at.shape * excess if published else excess**at.shape))


def _beyond(x: Scalar, limit: float, published: bool) -> jax.Array:
    return tail(x, Tail(limit, SHAPE, SCALE * max(1.0, limit)), published)


def _init() -> Memory:
    zero, none = jnp.float32(0), jnp.int32(0)
    return Memory(
        episode=jnp.int32(-1),
        ticks=none,
        listed=zero,
        entries=none,
        opening=zero,
        forecast=Sighting.nothing().block,
        errors=zero,
        run=none,
        appeared=zero,
        hits=none,
        tags=jnp.zeros(NUM_LEVELS),
        declared=zero,
        since=none,
        diverged=none,
        failures=none,
        failed_row=none,
        recent=jnp.full(WINDOW, USUAL, jnp.float32),
    )


# Relations of blocks ----------------------------------------------------------------------------


def _relations(report: Sighting) -> jax.Array:
    """Evidence of blocks that fly at the cart, at one another, or in parallel."""
    p, v, alive = report.block.p, report.block.v, report.block.alive
    speed = jnp.maximum(dynamics.norm(v), 1e-6)
    u = geo.scale(v, 1 / speed)
    zero = jnp.zeros_like(p.x)
    to_cart = geo.sub(Vector(zero + report.reported.x, zero + report.reported.y, zero), p)
    meets = (dynamics.norm(geo.cross(u, to_cart)) < 0.01) & (geo.dot(u, to_cart) > 0)
    at_cart = 0.5 * jnp.any(alive & (speed > 1e-3) & meets)
    cosine, apart = _pairs(p, u)
    both = alive[:, None] & alive[None, :] & ~jnp.eye(sight.SLOTS, dtype=bool)
    both = both & (speed > 1e-3)[:, None] & (speed > 1e-3)[None, :]
    aligned = 0.5 * jnp.any(both & (jnp.abs(cosine) > math.cos(0.1)))
    crossing = 0.2 * jnp.any(both & (apart < 0.025))
    return at_cart + aligned + crossing


def _pairs(p: Vector, u: Vector) -> tuple[jax.Array, jax.Array]:
    """Cosine of the angle, and distance, between the lines of each pair of blocks, (4, 4)."""
    rows = [jnp.asarray(c) for c in (*p, *u)]
    d = Vector(*(c[:, None] - c[None, :] for c in rows[:3]))
    a, b = Vector(*(c[:, None] for c in rows[3:])), Vector(*(c[None, :] for c in rows[3:]))
    across = geo.cross(a, b)
    sine = dynamics.norm(across)
    skew = jnp.abs(geo.dot(d, across)) / jnp.maximum(sine, 1e-3)
    apart = jnp.where(sine < 1e-3, dynamics.norm(geo.cross(d, a)), skew)
    return jnp.asarray(geo.dot(a, b)), apart


# One observation --------------------------------------------------------------------------------


def _opening(report: Sighting, published: bool) -> tuple[jax.Array, jax.Array]:
    """Evidence of a first observation, and the number of violations of blocks in it."""
    far = partial(_beyond, published=published)
    r, b = report.reported, report.block
    cart = far(jnp.abs(r.x), CART_PLACE) + far(jnp.abs(r.y), CART_PLACE)
    cart = cart + far(jnp.abs(report.vx), CART_SPEED) + far(jnp.abs(report.vy), CART_SPEED)
    pole = sum(far(jnp.abs(c), LEAN) for c in (r.qx, r.qy, r.qz))
    pole = pole + far(jnp.abs(report.spin.x), POLE_RATE) + far(jnp.abs(report.spin.y), POLE_RATE)
    pole = pole + far(jnp.abs(report.spin.z), POLE_TURN)
    places = far(jnp.abs(b.p.x), BLOCK_SIDE) + far(jnp.abs(b.p.y), BLOCK_SIDE)
    places = places + far(b.p.z, BLOCK_TOP)
    away = (jnp.maximum(jnp.abs(b.p.x), jnp.abs(b.p.y)) < 4) & (b.p.z > 1) & (b.p.z < 9)
    speeds = sum(far(jnp.abs(c), BLOCK_FAST) for c in b.v)
    slow = tail(BLOCK_SLOW - _slowest(b.v), Tail(0.0, SHAPE, SCALE * BLOCK_SLOW), published)
    odd = jnp.where(b.alive, places + jnp.where(away, speeds + slow, 0.0), 0.0)
    crowd = jnp.where((report.count < 1) | (report.count > MOST_BLOCKS), 1.0, 0.0)
    low, high = USUAL_BLOCKS
    count = jnp.where((report.count < low) | (report.count > high), 1.0, 0.0)
    relations = _relations(report)
    total = jnp.minimum(cart + pole + jnp.sum(odd) + crowd + count + relations, 4.0)
    return jnp.asarray(total), jnp.sum(odd > 0.1)


def _slowest(v: Vector) -> jax.Array:
    return jnp.minimum(jnp.minimum(jnp.abs(v.x), jnp.abs(v.y)), jnp.abs(v.z))


def _structure_error(transition: Transition, published: bool) -> jax.Array:
    """Evidence of the prediction errors of cart and pole."""
    pose, velocity = sight.predicted(
        NOMINAL, transition.before, sight.push(NOMINAL, transition.action)
    )
    report = transition.after
    old = report.reported
    expected, observed = (pose.qx, pose.qy, pose.qz, pose.qw), (old.qx, old.qy, old.qz, old.qw)
    sign = jnp.where(sum(a * b for a, b in zip(expected, observed, strict=True)) < 0, -1.0, 1.0)
    differences = [pose.x - old.x, pose.y - old.y, velocity.vx - report.vx, velocity.vy - report.vy]
    differences += [sign * a - b for a, b in zip(expected, observed, strict=True)]
    differences += list(geo.sub(sight.spin_of(pose, velocity), report.spin))
    each = [
        _excess(d, limit, published) for d, limit in zip(differences, STRUCTURE_ERRORS, strict=True)
    ]
    if published:
        return 0.5 * 0.25 * each[-1]
    return 0.25 * jnp.max(jnp.stack(each))


def _excess(difference: Scalar, limit: float, published: bool) -> jax.Array:
    """Tail probability of an error; errors that exceed the limit by 1 are ignored as collisions."""
    excess = jnp.abs(difference) - limit
    probability = tail(excess, Tail(0.0, SHAPE, SCALE), published)
    return jnp.where((excess > 0) & (excess < 1), probability, 0.0)


def _block_error(before: Sphere, after: Sphere, published: bool) -> jax.Array:
    """Evidence of the prediction errors of blocks, away from walls."""
    speeds = bank.blocks_after(NOMINAL, before)
    off = (*geo.sub(after.p, sight.place_next(before.p, speeds)), *geo.sub(after.v, speeds))
    limits = (*PLACE_ERRORS, *SPEED_ERRORS)
    each = [_excess(d, limit, published) for d, limit in zip(off, limits, strict=True)]
    mask = before.alive & after.alive & _away(after.p, 8.0)
    largest = jnp.max(jnp.where(mask, jnp.max(jnp.stack(each), axis=0), 0.0))
    return jnp.minimum(largest, 0.1)


def _away(p: Vector, top: float) -> jax.Array:
    side = jnp.maximum(jnp.abs(p.x), jnp.abs(p.y))
    return (side <= 4) & (p.z <= top) & (p.z >= 1)


# Forecast of the blocks -------------------------------------------------------------------------


def flown(block: Sphere) -> Sphere:
    """Blocks one tick later in the nominal world, with walls and collisions of blocks, (4,)."""
    v = collided(NOMINAL, block, bank.blocks_after(NOMINAL, block))
    return replace(block, p=sight.place_next(block.p, v), v=v)


def _forecast(memory: Memory, report: Sighting, published: bool) -> Memory:
    """Compare the blocks with their forecast, at some ticks."""
    mask = report.block.alive & memory.forecast.alive
    off = geo.sub(report.block.p, memory.forecast.p)
    side, top = 4.0, 8.0
    use = [
        mask & (jnp.abs(report.block.p.x) <= side) & (jnp.abs(memory.forecast.p.x) <= side),
        mask & (jnp.abs(report.block.p.y) <= side) & (jnp.abs(memory.forecast.p.y) <= side),
        mask & _between(report.block.p.z, top) & _between(memory.forecast.p.z, top),
    ]
    squares = [jnp.where(m, c * c, 0.0) for m, c in zip(use, off, strict=True)]
    number = jnp.maximum(sum(jnp.sum(m) for m in use), 1)
    err = sum(jnp.sum(s) for s in squares) / number
    zerr = jnp.sum(squares[2]) / jnp.maximum(jnp.sum(use[2]), 1)
    share = jnp.sum(squares[2]) / jnp.maximum(sum(jnp.sum(s) for s in squares), 1e-9)
    tick, evidence = memory.ticks, jnp.float32(0)
    for at, (heights, places) in FORECAST.items():
        here = jnp.maximum(tail(zerr, heights, published), tail(err, places, published))
        usable = (memory.run > 0) | (err > ENOUGH_ERROR.get(at, -1.0))
        usable = usable & (zerr < MOST_HEIGHT_ERROR.get(at, math.inf))
        evidence = jnp.where((tick == at) & usable, here, evidence)
    hit = evidence > 0
    due = jnp.any(jnp.stack([tick == at for at in FORECAST]))
    times = jnp.where(tick >= 25, memory.run + 1, 1)
    kind = jnp.where(share > 0.94, 6, jnp.where(share < 0.5, 7, 0))
    tags = memory.tags.at[kind].add(jnp.where(hit & (kind > 0), 1.0, 0.0))
    return replace(
        memory,
        errors=memory.errors + 0.25 * evidence * times,
        run=jnp.where(due, jnp.where(hit, memory.run + 1, 0), memory.run),
        tags=tags,
    )


def _between(z: Scalar, top: float) -> jax.Array:
    return (jnp.asarray(z) <= top) & (jnp.asarray(z) >= 1)


# Episodes ---------------------------------------------------------------------------------------


def _watch(
    memory: Memory, transition: Transition, published: bool
) -> tuple[Memory, NoveltyPrediction]:
    """Add the evidence of one observation, and predict as if the episode ended with it."""
    first, later = (
        _start(memory, transition.after, published),
        _go_on(memory, transition, published),
    )
    memory = jax.tree.map(partial(jnp.where, transition.first), first, later)
    declared = _declared(memory, published)
    level = jnp.where(declared >= THRESHOLD, _level(memory), 0)
    prediction = NoveltyPrediction(level.astype(jnp.int32), declared, jnp.float32(THRESHOLD))
    return memory, prediction


def _start(memory: Memory, report: Sighting, published: bool) -> Memory:
    number, violations = _opening(report, published)
    counted = number > 0.1
    return replace(
        memory,
        ticks=jnp.int32(0),
        listed=jnp.where(counted, number, 0.0),
        entries=counted.astype(jnp.int32),
        opening=jnp.where(counted, number, 0.0),
        forecast=report.block,
        tags=memory.tags.at[2].add(violations.astype(jnp.float32)),
    )


def _go_on(memory: Memory, transition: Transition, published: bool) -> Memory:
    before, after = transition.before, transition.after
    structure = _structure_error(transition, published)
    hits = memory.hits + (structure > 0)
    number = jnp.where(hits > SOME_HITS, structure, 0.0)
    number = number + _block_error(before.block, after.block, published)
    number = number + jnp.minimum(_relations(after), 0.1)
    more = (after.count != before.count).astype(jnp.float32)
    room = memory.entries < LISTED
    memory = replace(
        memory,
        ticks=memory.ticks + 1,
        listed=memory.listed + jnp.where(room, number, 0.0),
        entries=memory.entries + room,
        hits=hits,
        appeared=jnp.maximum(memory.appeared, more),
        forecast=flown(memory.forecast),
        tags=memory.tags.at[8].add(10 * more).at[1].add(0.01 * (structure > 0)),
    )
    return _forecast(memory, after, published)


def _begin(memory: Memory, published: bool) -> Memory:
    """Close the last episode and open the next."""
    had_episode = memory.episode >= 0
    declared = jnp.where(had_episode, _declared(memory, published), 0.0)
    performance = _performance(memory)
    closed = replace(
        memory,
        declared=declared,
        since=jnp.where(declared >= THRESHOLD, memory.since + 1, 0),
        diverged=jnp.where(_divergence(memory) > 0.1, memory.diverged + 1, 0),
        failures=memory.failures + _failed(memory),
        failed_row=jnp.where(_failed(memory), memory.failed_row + 1, 0),
        recent=jnp.roll(memory.recent, 1).at[0].set(performance),
    )
    memory = jax.tree.map(partial(jnp.where, had_episode), closed, memory)
    zero = jnp.float32(0)
    return replace(
        memory,
        episode=memory.episode + 1,
        ticks=jnp.int32(0),
        listed=zero,
        entries=jnp.int32(0),
        opening=zero,
        errors=zero,
        run=jnp.int32(0),
        appeared=zero,
        hits=jnp.int32(0),
    )


def _performance(memory: Memory) -> jax.Array:
    return (memory.ticks + 1) / 200


def _failed(memory: Memory) -> jax.Array:
    return memory.ticks + 1 < COMPLETE


def _divergence(memory: Memory) -> jax.Array:
    """Kullback-Leibler divergence of an episode's scores from those of training, up to 1."""
    mean = memory.listed / jnp.maximum(memory.entries, 1)
    away = jnp.maximum(mean - TRAINED_MEAN, 0.0) / TRAINED_SPREAD
    return jnp.minimum(0.5 * away * away, 1.0)


def _worse(memory: Memory) -> jax.Array:
    """Divergence of the performance from training, where it is worse, times 0.15."""
    recent = jnp.roll(memory.recent, 1).at[0].set(_performance(memory))
    away = jnp.maximum(USUAL - jnp.mean(recent), 0.0) / USUAL_SPREAD
    return 0.15 * jnp.minimum(0.5 * away * away, 1.0)


def _failing(memory: Memory) -> jax.Array:
    """Evidence of failures, 0 to 1; 1 is more than ever in training."""
    failures = memory.failures + _failed(memory)
    row = jnp.where(_failed(memory), memory.failed_row + 1, 0)
    share = failures / (memory.episode + 1)
    ramp = jnp.clip((share - FAIL_RAMP) / (FAIL_LIMIT - FAIL_RAMP), 0.0, 1.0)
    return jnp.where(row > FAIL_ROW, 1.0, ramp)


def _tagged(memory: Memory, published: bool) -> jax.Array:
    """Evidence of the violations of blocks per episode, in episodes 20 to 34."""
    rate = jnp.sum(memory.tags[2:]) / (memory.episode + 1)
    early, late = (tail(rate, at, published) for at in ODD_TAGS)
    e = memory.episode
    return jnp.where((e >= 20) & (e < 35), jnp.where(e < 22, early, late), 0.0)


def _declared(memory: Memory, published: bool) -> jax.Array:
    """Evidence after the present episode; it never decreases."""
    e = memory.episode
    tested = (e >= TESTED.start) & (e < TESTED.stop)
    often = jnp.minimum(0.4 * (1 + memory.diverged), LISTED / jnp.maximum(e - 16, 1))
    worse = jnp.where(e >= 25, _worse(memory), 0.0)
    divergence = jnp.maximum(_divergence(memory) * often, worse)
    weight = jnp.where(tested, memory.errors + divergence, 0.0) + memory.appeared
    failing = _failing(memory)
    total = jnp.where(tested, 0.25 * memory.opening, 0.0)
    total = total + (memory.declared + weight) * jnp.minimum(1.0, weight + failing)
    total = total + _tagged(memory, published)
    alone = (failing >= 1) & (e >= TESTED.stop)
    total = jnp.where(alone, jnp.maximum(total, THRESHOLD), total)
    total = jnp.clip(jnp.maximum(total, memory.declared), 0.0, 1.0)
    return jnp.where(e >= QUIET, total, 0.0)


def _level(memory: Memory) -> jax.Array:
    """Level with the most violations, 0 without any."""
    return jnp.argmax(memory.tags)


# Controller -------------------------------------------------------------------------------------


def _clearance(report: Sighting, lean: tuple[Scalar, Scalar], x: Scalar, y: Scalar) -> jax.Array:
    """Smallest distance between cart or pole and a block, m, up to 10."""
    p, alive = report.block.p, report.block.alive
    side = jnp.maximum(jnp.hypot(p.x - x, p.y - y) - dynamics.CART_RADIUS, 0.0)
    up = jnp.maximum(jnp.abs(p.z - PIVOT_HEIGHT) - dynamics.CART_HALF_HEIGHT, 0.0)
    along = jnp.clip(p.z - PIVOT_HEIGHT, POLE_BOTTOM, POLE_BOTTOM + NOMINAL.pole_length)
    pole = Vector(p.x - x - lean[0] * along, p.y - y - lean[1] * along, p.z - PIVOT_HEIGHT - along)
    near = jnp.minimum(jnp.hypot(side, up), dynamics.norm(pole) - dynamics.POLE_RADIUS)
    gap = jnp.maximum(near - NOMINAL.block_radius, 0.0)
    return jnp.min(jnp.where(alive, gap, 10.0))


def _distance_cost(gap: jax.Array) -> jax.Array:
    """Cost of a distance to the nearest block."""
    far = 1 / jnp.maximum(jnp.minimum(gap - 2, 8.0), 0.1)
    near = 10 + 1 / jnp.maximum(gap, 0.01) ** 2
    cost = jnp.where(gap - 2 > 0.1, far, near)
    return jnp.where(gap > 0.01, cost, 1000 + gap * gap)


def _line_cost(report: Sighting, x: Scalar, y: Scalar) -> jax.Array:
    """Cost of standing in the flight lines of blocks."""
    p, v = report.block.p, report.block.v
    u = geo.scale(v, 1 / jnp.maximum(dynamics.norm(v), 1e-6))
    zero = jnp.zeros_like(p.x)
    away = dynamics.norm(geo.cross(u, geo.sub(Vector(zero + x, zero + y, zero), p)))
    return jnp.sum(jnp.where(report.block.alive & (away < 0.1), 100 + 5 / (0.01 + away**2), 0.0))


def _cautious(observation: Observation) -> jax.Array:
    """The push with the least cost of lean and of near blocks."""
    report = see(observation)
    roll, pitch = reference.roll_pitch(observation)
    best, action = jnp.float32(jnp.inf), jnp.int32(0)
    for code, (fx, fy) in reference.CODED_PUSHES:
        rolled, pitched = reference.after_push(observation, roll, pitch, fx, fy)
        high = jnp.maximum(jnp.abs(rolled), jnp.abs(pitched))
        low = jnp.minimum(jnp.abs(rolled), jnp.abs(pitched))
        slack = 1 - high / NOMINAL.lean_limit
        x = report.reported.x + 2 * DT * report.vx + DT * DT * fx
        y = report.reported.y + 2 * DT * report.vy + DT * DT * fy
        gap = _clearance(report, (pitched, -rolled), x, y)
        steep = 100 / jnp.maximum(slack, 1e-3) ** 4
        cost = jnp.where(slack > 0.9, 151 + 1 / jnp.maximum(slack, 1e-7), steep)
        avoiding = _distance_cost(gap) + _line_cost(report, x, y)
        cost = cost + high * high + low * low + jnp.where(slack >= 0.01, avoiding, 0.0)
        action = jnp.where(cost < best, code, action)
        best = jnp.minimum(cost, best)
    return action


def detector(published: bool = False) -> Detector:
    """The tests of `wow`, to join any controller.

    Args:
      published: whether tails have the form of the published code, with its error.
    """
    return Detector(
        "wow-published" if published else "wow",
        partial(_watch, published=published),
        _init,
        partial(_begin, published=published),
    )


def agent(published: bool = False) -> Agent:
    """The whole agent: its tests, and its controller, which depends on them."""
    watching = joined(reference.greedy, detector(published))

    def act(
        memory: Joined, observation: Observation, key: jax.Array
    ) -> tuple[jax.Array, NoveltyPrediction, Joined]:
        action, prediction, memory = watching.act(memory, observation, key)
        cautious = memory.detector.since >= 2
        action = jnp.where(cautious, _cautious(observation), action).astype(jnp.int32)
        return action, prediction, replace(memory, action=action)

    return replace(watching, name=detector(published).name, act=act, acting=None)
