"""`residual`: novelty detection with the simulator itself as forward model.

Each observation is predicted from the one before by one tick of the nominal simulator. Where
nothing but a wall touches a body, prediction and observation agree to the rounding of a report,
about 3e-6 where it has six decimals, so that one tick beyond the threshold of 1e-5 is evidence
enough. The first hit of cart or pole in an episode, and what blocks do to one another, is foretold
by a whole tick of the simulator (`jaxsim.agents.hits`); later hits are not looked at, for they hang
on what is not observed. That a block moves by its velocity always is.

The first observation of an episode, which has no prediction, is held against what the nominal world
draws, and its end against the end test: where an episode goes on with a pole that has fallen, or
ends while it stands, the world is another.

What is found is named by a bank of models; see `jaxsim.agents.bank`.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.agents import bank, hits, sight, touch
from jaxsim.agents.base import NoveltyPrediction
from jaxsim.agents.detection import Detector, Transition
from jaxsim.agents.sight import Seen
from jaxsim.worlds.cartpole3d import dynamics
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d.original import hints
from jaxsim.worlds.cartpole3d.terms.attraction import TARGET_HEIGHT
from jaxsim.worlds.cartpole3d.types import DT, Block, Params, Pose, Scalar, Vector

FREE_LIMIT = 1e-5  # of every number of cart, pole and blocks that touch nothing: m, m/s, rad/s
NAMED_LIMIT = 1e-4  # the same, beyond which models are asked, and up to which one explains
WALL_LIMIT = 0.2  # m/s, of blocks that touch walls
HIT_LIMIT = 0.1  # m/s or rad/s, of all velocities after the first hit of cart or pole
PAIR_LIMIT = 0.01  # m/s, of blocks that hit one another and neither cart nor pole
SURE = 1e4  # strength of evidence that is not a matter of degree
NAMING_TICKS = 12  # with evidence, that the bank looks at
NAMED_BY_BLOCKS = 0.5  # m/s^2, mean error up to which a model explains blocks
EXPLAINED = 0.9  # share of what the nominal world leaves that such a model explains
RESTING = 2.5  # m/s, up to which a new block counts as one that rested and was pushed
THRESHOLD = 0.5

NOMINAL = Params()
FEWEST, MOST = int(NOMINAL.block_count_min), int(NOMINAL.block_count_max)
SLOWEST, FASTEST = float(NOMINAL.block_speed_min), float(NOMINAL.block_speed_max)
SPEED_MARGIN = 1e-3  # m/s
STEPS = 200  # of an episode that nothing ends
FALL_MARGIN = 1e-3  # rad, about the lean at which an episode ends
# Largest numbers of cart and pole at the start: those that are drawn, then what the hidden tick
# makes of a push and a lean (at most 1.01 and .96 of these in 200,000 starts).
START_PLACE, START_TILT = 1.0001 * float(NOMINAL.start_spread), 1.001 * float(NOMINAL.start_lean)
START_SPEED = 1.02 * DT * float(NOMINAL.start_push)  # m/s
START_RATE = START_TILT + DT * (9.9 * 2 * START_TILT + 0.95 * float(NOMINAL.start_push))  # rad/s
AIMED = 1e-4  # sine of the angle at which a block counts as aimed
LEVELS = np.array(bank.LEVELS)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Evidence:
    """What one episode has shown so far."""

    strength: jax.Array  # () largest residual by its limit
    touched: jax.Array  # () bool, cart or pole may have been hit
    still: jax.Array  # () bool, the blocks' reported velocities were zero at the start
    moved: jax.Array  # () bool, a block changed its place
    crowded: jax.Array  # () bool, more blocks at the start than the nominal world has
    aimed: jax.Array  # () bool, a block started towards the cart, at an odd speed or not
    gathered: jax.Array  # () bool, all blocks started at one speed
    resting: jax.Array  # () int32, blocks that appeared at rest
    flying: jax.Array  # () int32, blocks that appeared moving
    fast_walls: jax.Array  # () bool, a wall returned a block faster than predicted
    block_errors: jax.Array  # (6,) see `bank.Errors`
    block_missed: jax.Array  # (6,)
    block_counts: jax.Array  # (6,)
    block_ticks: jax.Array  # () int32, ticks in these; 0 before any block strays
    inward: jax.Array  # () m/s^2, summed
    structure_ticks: jax.Array  # (M,) int32, in which a model explains cart and pole
    ticks: jax.Array  # () int32, observations so far
    falls: jax.Array  # () bool, the pole is reported as fallen, or will be next


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Memory:
    """What a lifetime has shown so far."""

    now: Evidence  # of the present episode
    strength: jax.Array  # () largest of all episodes
    votes: jax.Array  # (16,) episodes that were named, by `bank.LEVELS`


def _no_evidence() -> Evidence:
    no, none = jnp.asarray(False), jnp.int32(0)
    models = jnp.zeros(bank.MODELS)
    return Evidence(
        strength=jnp.float32(0),
        touched=no,
        still=no,
        moved=no,
        crowded=no,
        aimed=no,
        gathered=no,
        resting=none,
        flying=none,
        fast_walls=no,
        block_errors=models,
        block_missed=models,
        block_counts=models,
        block_ticks=none,
        inward=jnp.float32(0),
        structure_ticks=jnp.zeros(len(bank.STRUCTURE_LEVELS), jnp.int32),
        ticks=none,
        falls=no,
    )


def _init() -> Memory:
    return Memory(_no_evidence(), jnp.float32(0), jnp.zeros(len(LEVELS)))


def _begin(memory: Memory) -> Memory:
    """Keep what the last episode was named as a vote, and whether it ended where it should."""
    now = memory.now
    early = (now.ticks > 0) & (now.ticks < STEPS) & ~now.falls
    strength = jnp.maximum(memory.strength, jnp.where(early, jnp.float32(SURE), 0.0))
    return Memory(_no_evidence(), strength, memory.votes + _vote(now))


def _watch(memory: Memory, shown: Transition) -> tuple[Memory, NoveltyPrediction]:
    old = memory.now
    begun, gone_on = _at_start(old, shown.after), _compare(old, shown)
    now = jax.tree.map(partial(jnp.where, shown.first), begun, gone_on)
    reported, following = shown.after.reported, sight.moving(shown.after)[0]
    went_on = ~shown.first & _fallen(shown.before.reported, FALL_MARGIN)
    now = replace(
        now,
        ticks=old.ticks + 1,
        falls=_fallen(reported, -FALL_MARGIN) | _fallen(following, -FALL_MARGIN),
        strength=jnp.maximum(now.strength, jnp.where(went_on, jnp.float32(SURE), 0.0)),
    )
    strength = jnp.maximum(memory.strength, now.strength)
    memory = Memory(now, strength, memory.votes)
    probability = strength / (1 + strength)
    level = jnp.where(probability >= THRESHOLD, named(memory) % hints.LEVELS_PER_GROUP, 0)
    said = NoveltyPrediction(level.astype(jnp.int32), probability, jnp.float32(THRESHOLD))
    return memory, said


def named(memory: Memory) -> jax.Array:
    """Catalogue level that most episodes of a lifetime were named, 0 for none; () int32.

    What the level changes is `hints.hint(level, 3)`.
    """
    votes = memory.votes + _vote(memory.now)
    best = jnp.argmax(votes)
    return jnp.where(votes[best] > 0, jnp.asarray(LEVELS, jnp.int32)[best], 0)


def _vote(now: Evidence) -> jax.Array:
    """One for the level that an episode's evidence names, (16,)."""
    return (jnp.asarray(LEVELS) == name(now)).astype(jnp.float32)


def name(now: Evidence) -> jax.Array:
    """Catalogue level that the evidence of one episode names, 0 for none; () int32.

    Evidence that other novelties cannot leave comes first: blocks that appear, then velocities
    that are not reported, then cart and pole, then forces on blocks, then walls, then odd starts.
    """
    level = jnp.where(now.crowded, 208, 0)
    level = jnp.where(now.gathered, 103, level)
    level = jnp.where(now.aimed, 203, level)
    level = jnp.where(now.fast_walls, 204, level)
    for found in (_block_level(now), _structure_level(now)):
        level = jnp.where(found > 0, found, level)
    level = jnp.where(now.still, jnp.where(now.moved, 202, 102), level)
    spawned = jnp.where(now.resting >= now.flying, 108, 208)
    level = jnp.where(now.resting + now.flying > 0, spawned, level)
    return jnp.where(now.strength >= 1, level, 0).astype(jnp.int32)


def _block_level(now: Evidence) -> jax.Array:
    """Level of the model that explains the blocks, 0 if none does."""
    counts = jnp.maximum(now.block_counts, 1)
    errors, missed = now.block_errors / counts, now.block_missed / counts
    explains = errors < jnp.minimum(NAMED_BY_BLOCKS, (1 - EXPLAINED) * missed)
    errors = jnp.where(explains, errors, jnp.inf)
    best = jnp.argmin(errors)
    # A force away from the centroid is another level than one towards it.
    place = jnp.where((best == bank.CENTROID) & (now.inward < 0), bank.AWAY, best)
    return jnp.where(explains[best], jnp.array(bank.BLOCK_LEVELS)[place], 0)


def _structure_level(now: Evidence) -> jax.Array:
    """Level of the model that explains cart and pole most often, 0 if none does."""
    best = jnp.argmax(now.structure_ticks)
    return jnp.where(now.structure_ticks[best] > 0, jnp.array(bank.STRUCTURE_LEVELS)[best], 0)


# First observation of an episode ----------------------------------------------------------------


def _at_start(old: Evidence, seen: Seen) -> Evidence:
    """Hold the first observation against what the nominal world draws."""
    block = seen.block
    v = _before_drag(block.v)
    p = geo.sub(block.p, geo.scale(block.v, DT))
    free = block.alive & ~touch.near(NOMINAL, seen.reported, replace(block, p=p))
    free = free & ~touch.paired(NOMINAL, replace(block, p=p))
    speed = dynamics.norm(v)
    odd = free & _any_component(v, lambda c: jnp.abs(c) < SLOWEST - SPEED_MARGIN)
    odd = odd | (free & _any_component(v, lambda c: jnp.abs(c) > FASTEST + SPEED_MARGIN))
    target = Vector(seen.reported.x, seen.reported.y, TARGET_HEIGHT)
    aimed = free & _heads_for(target, p, v, speed)
    still = jnp.all(jnp.where(block.alive, speed, 0.0) < 1e-6) & (seen.count > 0)
    crowd = (seen.count < FEWEST) | (seen.count > MOST)
    novel = jnp.any(odd) | jnp.any(aimed) | still | crowd | _odd_cartpole(seen)
    return replace(
        old,
        strength=jnp.where(novel, jnp.float32(SURE), 0.0),
        still=still,
        crowded=seen.count > MOST,
        aimed=jnp.any(aimed),
        gathered=jnp.any(odd) & _alike(speed, free),
    )


def _odd_cartpole(start: Seen) -> jax.Array:
    """Whether cart or pole start where, or as fast as, the nominal world does not start them."""
    r = start.reported
    numbers = (
        ((r.x, r.y), START_PLACE),
        ((start.vx, start.vy), START_SPEED),
        ((r.qx, r.qy, r.qz), START_TILT),
        ((start.spin.x, start.spin.y), START_RATE),
    )
    odd = [jnp.abs(number) > limit for group, limit in numbers for number in group]
    return jnp.any(jnp.stack(odd))


def _fallen(pose: Pose, margin: float) -> jax.Array:
    """Whether a reported pole has fallen, by more than a margin, rad."""
    r = geo.rotation(pose.qx, pose.qy, pose.qz, pose.qw)
    return jnp.asarray(dynamics.has_fallen(r, NOMINAL.lean_limit + margin))


def _before_drag(v: Vector) -> Vector:
    """Velocities before a tick of free flight, from those after it."""
    slowing = DT * NOMINAL.drag
    after = dynamics.norm(v)
    before: Any = after
    for _ in range(3):
        before = after / (1 - slowing * (1 + before))
    return geo.scale(v, 1 / (1 - slowing * (1 + before)))


def _any_component(v: Vector, test: Any) -> jax.Array:
    return jnp.asarray(test(v.x) | test(v.y) | test(v.z))


def _heads_for(target: Vector, p: Vector, v: Vector, speed: Scalar) -> jax.Array:
    """Whether something flies straight towards a target; rounding blurs slow flight."""
    d = geo.sub(target, p)
    across = dynamics.norm(geo.cross(v, d))
    limit = (AIMED * speed + 2e-6) * dynamics.norm(d)
    return jnp.asarray((across < limit) & (geo.dot(v, d) > 0))


def _alike(speed: Scalar, free: jax.Array) -> jax.Array:
    """Whether two or more blocks have the same speed, and no block another."""
    low = jnp.min(jnp.where(free, speed, jnp.inf))
    high = jnp.max(jnp.where(free, speed, -jnp.inf))
    return jnp.asarray((jnp.sum(free) > 1) & (high - low < 1e-4))


# Later observations -----------------------------------------------------------------------------


def _compare(old: Evidence, shown: Transition) -> Evidence:
    """Hold an observation against what the nominal simulator makes of the one before."""
    before, after = shown.before, shown.after
    pose, _ = sight.moving(before)
    structure = _structure_errors(pose, shown)
    near = touch.near(NOMINAL, pose, before.block)
    touched = old.touched | jnp.any(near) | touch.cart_at_wall(pose)
    explained = ~touched & (structure[0] > NAMED_LIMIT) & (structure < NAMED_LIMIT)
    now = replace(old, touched=touched, structure_ticks=old.structure_ticks + explained)
    now = _count_spawned(now, before, after)
    now, block_strength = _compare_blocks(now, before, after, near, pose)
    structure_strength = jnp.where(touched, 0.0, structure[0] / FREE_LIMIT)
    hit_strength = _compare_hits(old, shown, near, pose)
    spawned = jnp.where(after.count != before.count, SURE, 0.0)
    strengths = (structure_strength, block_strength, hit_strength, spawned)
    return replace(now, strength=jnp.maximum(now.strength, jnp.max(jnp.stack(strengths))))


def _compare_hits(old: Evidence, shown: Transition, near: jax.Array, pose: Pose) -> jax.Array:
    """Strength of what the first hit of an episode shows, or blocks that hit one another."""
    before, after = shown.before, shown.after
    known = (before.count <= sight.SLOTS) & (after.count == before.count) & ~shown.first
    hit = known & jnp.any(near) & ~old.touched & ~touch.cart_at_wall(pose)
    # What a cart that may be turned hits is not known; but blocks apart from it are.
    pair = known & ~jnp.any(near) & jnp.any(touch.paired(NOMINAL, before.block))
    expected = hits.after(hit | pair, before, shown.action)
    of_cartpole, of_blocks = hits.errors(expected, after)
    strength = jnp.where(hit, jnp.maximum(of_cartpole, of_blocks) / HIT_LIMIT, 0.0)
    return jnp.maximum(strength, jnp.where(pair, of_blocks / PAIR_LIMIT, 0.0))


def _structure_errors(pose: Pose, shown: Transition) -> jax.Array:
    """Largest error of any number of cart and pole, of each model, (M,)."""
    models = bank.structure_params()
    _, velocity = sight.predicted(models, shown.before, sight.push(models, shown.action))
    after, spin = shown.after, sight.spin_of(pose, velocity)
    said, seen = _quaternion(pose), _quaternion(after.reported)
    sign = jnp.where(sum(a * b for a, b in zip(said, seen, strict=True)) < 0, -1.0, 1.0)
    differences = [
        pose.x - after.reported.x,
        pose.y - after.reported.y,
        velocity.vx - after.vx,
        velocity.vy - after.vy,
        *(sign * a - b for a, b in zip(said, seen, strict=True)),
        *geo.sub(spin, after.spin),
    ]
    sizes = jnp.broadcast_arrays(*(jnp.abs(d) for d in differences))
    return jnp.max(jnp.stack(sizes), axis=0)


def _quaternion(pose: Pose) -> tuple[Any, ...]:
    return pose.qx, pose.qy, pose.qz, pose.qw


def _count_spawned(now: Evidence, before: Seen, after: Seen) -> Evidence:
    more = after.count > before.count
    rests = dynamics.norm(after.newest) < RESTING
    return replace(now, resting=now.resting + (more & rests), flying=now.flying + (more & ~rests))


def _compare_blocks(
    now: Evidence, before: Seen, after: Seen, near: jax.Array, pose: Pose
) -> tuple[Evidence, jax.Array]:
    """Look at blocks that touch nothing but walls; return the strength of that as well."""
    block = replace(before.block, alive=before.block.alive & after.block.alive)
    speeds = bank.blocks_after(NOMINAL, block)
    change = geo.sub(after.block.v, speeds)
    shift = geo.sub(after.block.p, sight.place_next(block.p, speeds))
    moved = geo.sub(after.block.p, sight.place_next(block.p, after.block.v))
    jumped = jnp.max(jnp.where(block.alive, touch.largest(moved), 0.0)) / FREE_LIMIT
    alone = block.alive & ~near & ~touch.paired(NOMINAL, block)
    gap = touch.least_gap(NOMINAL, block.p)
    free = alone & (gap > touch.NEAR_PLANE)
    at_wall = alone & (gap < touch.TOUCHING) & touch.off_planes(NOMINAL, block.p)
    error = jnp.maximum(touch.largest(change), touch.largest(shift))
    astray = free & (error > NAMED_LIMIT)
    size = dynamics.norm(change)
    bounced = at_wall & (size > WALL_LIMIT)
    faster = bounced & (dynamics.norm(after.block.v) > dynamics.norm(speeds))
    free_strength = jnp.max(jnp.where(free, error, 0.0)) / FREE_LIMIT
    wall_strength = jnp.max(jnp.where(at_wall, size, 0.0)) / WALL_LIMIT
    now = replace(
        now,
        moved=now.moved | jnp.any(block.alive & touch.apart(after.block.p, block.p)),
        fast_walls=now.fast_walls | jnp.any(faster),
    )
    now = _count_blocks(now, before, block, after, free, jnp.any(astray), pose)
    return now, jnp.maximum(jnp.maximum(free_strength, wall_strength), jumped)


def _count_blocks(
    now: Evidence,
    before: Seen,
    block: Block,
    after: Seen,
    free: jax.Array,
    astray: jax.Array,
    pose: Pose,
) -> Evidence:
    """Add a tick to what the bank has seen of the blocks."""
    large = replace(NOMINAL, block_radius=bank.WIDE)
    clear = block.alive & ~touch.near(large, pose, block) & ~touch.paired(large, block)
    clear = clear & touch.off_planes(large, block.p)
    change = bank.missed(after.block.v, bank.blocks_after(NOMINAL, block))
    wide = bank.missed(after.block.v, bank.blocks_after(large, block))
    errors = bank.unexplained(before, change, free, wide, clear)
    counted = (astray | (now.block_ticks > 0)) & (now.block_ticks < NAMING_TICKS)
    return replace(
        now,
        block_errors=now.block_errors + jnp.where(counted, errors.total, 0.0),
        block_missed=now.block_missed + jnp.where(counted, errors.missed, 0.0),
        block_counts=now.block_counts + jnp.where(counted, errors.number, 0.0),
        block_ticks=now.block_ticks + counted,
        inward=now.inward + jnp.where(counted, errors.inward, 0.0),
    )


residual = Detector("residual", _watch, _init, _begin, named)
