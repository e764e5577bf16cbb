"""`residual`: novelty detection with the simulator itself as forward model.

Each observation is predicted from the one before by one tick of the nominal simulator. Where
nothing but a wall touches a body, prediction and observation agree to the rounding of a report,
about 3e-6 with six decimals, so one tick beyond the threshold of 1e-5 is evidence enough. The first
hit of cart or pole in an episode, and collisions of blocks, are predicted by a whole tick of the
simulator (`jaxsim.agents.hits`). Later hits are ignored, as they depend on the cart's yaw, which is
not observed. That a block moves by its velocity is always checked.

The first observation of an episode has no prediction; it is compared with the start states of the
nominal world. The end of an episode is compared with the end test: an episode that continues with a
fallen pole, or ends while it stands, is evidence of novelty.

A bank of models names the novelty; see `jaxsim.agents.bank`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.agents import bank, hits, limits, sequential, sight, touch
from jaxsim.agents.base import NoveltyHint, NoveltyPrediction
from jaxsim.agents.detection import Detector, Transition
from jaxsim.agents.limits import FREE_LIMIT, NAMED_LIMIT, NoiseLimits
from jaxsim.agents.noise_scale import NoiseScale
from jaxsim.agents.sight import Sighting
from jaxsim.worlds.cartpole3d import dynamics
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d.original import hints
from jaxsim.worlds.cartpole3d.terms.attraction import TARGET_HEIGHT
from jaxsim.worlds.cartpole3d.types import DT, Params, Pose, Scalar, Sphere, Vector

WALL_LIMIT = 0.2  # m/s, of blocks that touch walls
HIT_LIMIT = 0.1  # m/s or rad/s, of all velocities after the first hit of cart or pole
PAIR_LIMIT = 0.01  # m/s, of blocks that hit one another and neither cart nor pole
SURE = 1e4  # strength of evidence that leaves no doubt
NAMING_TICKS = 12  # ticks with evidence that the bank uses
NAMED_BY_BLOCKS = 0.5  # m/s^2, mean error up to which a model explains blocks
EXPLAINED = 0.9  # share of the nominal residual that such a model explains
RESTING = 2.5  # m/s, up to which a new block counts as one that appeared at rest and was pushed
THRESHOLD = 0.5

NOMINAL = Params()
FEWEST, MOST = int(NOMINAL.block_count_min), int(NOMINAL.block_count_max)
SLOWEST, FASTEST = float(NOMINAL.block_speed_min), float(NOMINAL.block_speed_max)
SPEED_MARGIN = 1e-3  # m/s
STEPS = 200  # of an episode without a fall
FALL_MARGIN = 1e-3  # rad, about the lean at which an episode ends
# Largest numbers of cart and pole at the start: those that are drawn, then those after the hidden
# tick with its push and lean (at most 1.01 and .96 of these in 200,000 starts).
START_PLACE, START_TILT = 1.0001 * float(NOMINAL.start_spread), 1.001 * float(NOMINAL.start_lean)
START_SPEED = 1.02 * DT * float(NOMINAL.start_push)  # m/s
START_RATE = START_TILT + DT * (9.9 * 2 * START_TILT + 0.95 * float(NOMINAL.start_push))  # rad/s
AIMED = 1e-4  # sine of the angle at which a block counts as aimed
LEVELS = np.array(bank.LEVELS)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Evidence:
    """Evidence of one episode so far."""

    strength: jax.Array  # () largest residual divided by its limit
    touched: jax.Array  # () bool, cart or pole may have been hit
    still: jax.Array  # () bool, the blocks' reported velocities were zero at the start
    moved: jax.Array  # () bool, a block changed its place
    crowded: jax.Array  # () bool, more blocks at the start than the nominal world has
    aimed: jax.Array  # () bool, a block started straight towards the cart
    gathered: jax.Array  # () bool, all blocks started at one speed outside the nominal range
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
    falls: jax.Array  # () bool, the pole is reported as fallen, or will be in the next report
    free: jax.Array  # (4,) bool, blocks that touched nothing in the last tick
    nominal: jax.Array  # () bool, the episode is known not to be novel


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Memory:
    """Evidence of a lifetime so far."""

    now: Evidence  # of the present episode
    strength: jax.Array  # () largest of all episodes
    nominal: jax.Array  # () bool, whether the episode is known not to be novel
    noise: NoiseScale
    sequence: sequential.Sequence
    votes: jax.Array  # (L,) number of episodes by the level they were named, of `bank.LEVELS`


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
        free=jnp.zeros(sight.SLOTS, bool),
        nominal=no,
    )


def _init() -> Memory:
    return Memory(
        now=_no_evidence(),
        strength=jnp.float32(0),
        nominal=jnp.asarray(False),
        noise=NoiseScale.none(),
        sequence=sequential.Sequence.none(),
        votes=jnp.zeros(len(LEVELS)),
    )


def _tell(memory: Memory, hint: NoveltyHint) -> Memory:
    return replace(memory, nominal=hint.novel == 0)


def _begin(memory: Memory) -> Memory:
    """Count the name of the last episode as a vote, and an end without a fall as evidence."""
    now = memory.now
    early = (now.ticks > 0) & (now.ticks < STEPS) & ~now.falls & ~now.nominal
    strength = jnp.maximum(memory.strength, jnp.where(early, jnp.float32(SURE), 0.0))
    return replace(
        memory,
        now=_no_evidence(),
        strength=strength,
        votes=memory.votes + _vote(now),
    )


def _watch(
    memory: Memory, transition: Transition, exact: bool = False
) -> tuple[Memory, NoveltyPrediction]:
    """See `Detector.watch`; with `exact` sensors, without the estimate of their noise."""
    old, after = memory.now, transition.after
    limit = NoiseLimits.none() if exact else limits.of(memory.noise, memory.nominal)
    at_start, later = _at_start(old, after, limit), _compare(old, transition, limit)
    now = jax.tree.map(partial(jnp.where, transition.first), at_start, later)
    margin = FALL_MARGIN + limit.angle
    past_fall = ~transition.first & _fallen(transition.before.reported, margin)
    present = sight.moving(after)[0]  # by the reported rate
    falls = _fallen(after.reported, -margin) | _fallen(present, -margin - DT * limit.rate)
    strength = jnp.maximum(now.strength, jnp.where(past_fall, jnp.float32(SURE), 0.0))
    now = replace(
        now,
        ticks=old.ticks + 1,
        falls=falls,
        nominal=memory.nominal,
        strength=jnp.where(memory.nominal, 0.0, strength),
    )
    memory = replace(memory, now=now)
    memory = memory if exact else _sequential(memory, transition, limit)
    strength = jnp.maximum(memory.strength, memory.now.strength)
    memory = replace(memory, strength=strength)
    probability = strength / (1 + strength)
    level = jnp.where(probability >= THRESHOLD, named(memory) % hints.LEVELS_PER_GROUP, 0)
    return memory, NoveltyPrediction(level.astype(jnp.int32), probability, jnp.float32(THRESHOLD))


def _sequential(memory: Memory, transition: Transition, limit: NoiseLimits) -> Memory:
    """Add an observation to the sequential test of noisy sensors."""
    now = memory.now
    free = now.free & ~transition.first
    noise = memory.noise.add(*limits.differences(transition, memory.nominal, now.touched, free))
    tick = sequential.Tick(
        limit.deviations,
        transition.action,
        transition.after,
        transition.first,
        ~transition.first & ~now.touched,
        free,
        memory.nominal,
    )
    sequence, evidence = sequential.follow(limit.noisy, memory.sequence, tick)
    now = replace(now, strength=jnp.maximum(now.strength, jnp.minimum(evidence, SURE)))
    return replace(memory, now=now, noise=noise, sequence=sequence)


def named(memory: Memory) -> jax.Array:
    """Catalogue level that most episodes of a lifetime were named, 0 for none; () int32.

    `hints.hint(level, 3)` says what the level changes.
    """
    votes = memory.votes + _vote(memory.now)
    best = jnp.argmax(votes)
    return jnp.where(votes[best] > 0, jnp.asarray(LEVELS, jnp.int32)[best], 0)


def _vote(now: Evidence) -> jax.Array:
    """One-hot vote for the level that an episode's evidence names, (16,)."""
    return (jnp.asarray(LEVELS) == name(now)).astype(jnp.float32)


def name(now: Evidence) -> jax.Array:
    """Catalogue level that the evidence of one episode names, 0 for none; () int32.

    Evidence that other novelties cannot cause comes first: blocks that appear, then velocities
    that are not reported, then cart and pole, then forces on blocks, then walls, then odd starts.
    """
    level = jnp.where(now.crowded, 208, 0)
    level = jnp.where(now.gathered, 103, level)
    level = jnp.where(now.aimed, 203, level)
    level = jnp.where(now.fast_walls, 204, level)
    for match in (_block_level(now), _structure_level(now)):
        level = jnp.where(match > 0, match, level)
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


def _at_start(old: Evidence, report: Sighting, limit: NoiseLimits) -> Evidence:
    """Compare the first observation with the start states of the nominal world."""
    block = report.block
    v = sight.before_drag(block.v)
    p = geo.sub(block.p, geo.scale(block.v, DT))
    blur, margin = limit.blur, SPEED_MARGIN + limit.velocity
    free = block.alive & ~touch.near(NOMINAL, report.reported, replace(block, p=p), blur)
    free = free & ~touch.paired(NOMINAL, replace(block, p=p), blur)
    speed = dynamics.norm(v)
    odd = free & _any_component(v, lambda c: jnp.abs(c) < SLOWEST - margin)
    odd = odd | (free & _any_component(v, lambda c: jnp.abs(c) > FASTEST + margin))
    target = Vector(report.reported.x, report.reported.y, TARGET_HEIGHT)
    # Noisy readings do not show whether a block flies straight at the cart.
    aimed = free & _heads_for(target, p, v, speed) & ~limit.noisy
    still = jnp.all(jnp.where(block.alive, speed, 0.0) < 1e-6) & (report.count > 0)
    crowd = (report.count < FEWEST) | (report.count > MOST)
    novel = jnp.any(odd) | jnp.any(aimed) | still | crowd | _odd_cartpole(report, limit)
    return replace(
        old,
        strength=jnp.where(novel, jnp.float32(SURE), 0.0),
        still=still,
        crowded=report.count > MOST,
        aimed=jnp.any(aimed),
        gathered=jnp.any(odd) & _alike(speed, free),
    )


def _odd_cartpole(start: Sighting, limit: NoiseLimits) -> jax.Array:
    """Whether place, speed or lean of cart or pole is outside the nominal start states."""
    r = start.reported
    numbers = (
        ((r.x, r.y), START_PLACE + limit.position),
        ((start.vx, start.vy), START_SPEED + limit.velocity),
        ((r.qx, r.qy, r.qz), START_TILT + limit.angle),
        ((start.spin.x, start.spin.y), START_RATE + limit.rate),
    )
    odd = [jnp.abs(number) > limit for group, limit in numbers for number in group]
    return jnp.any(jnp.stack(odd))


def _fallen(pose: Pose, margin: Scalar) -> jax.Array:
    """Whether a reported pole has fallen, by more than a margin, rad."""
    r = geo.rotation(pose.qx, pose.qy, pose.qz, pose.qw)
    return jnp.asarray(dynamics.has_fallen(r, NOMINAL.lean_limit + margin))


def _any_component(v: Vector, test: Callable[[Scalar], jax.Array]) -> jax.Array:
    return jnp.asarray(test(v.x) | test(v.y) | test(v.z))


def _heads_for(target: Vector, p: Vector, v: Vector, speed: Scalar) -> jax.Array:
    """Whether blocks fly straight towards a target; the limit allows for rounding."""
    d = geo.sub(target, p)
    across = dynamics.norm(geo.cross(v, d))
    limit = (AIMED * speed + 2e-6) * dynamics.norm(d)
    return jnp.asarray((across < limit) & (geo.dot(v, d) > 0))


def _alike(speed: Scalar, free: jax.Array) -> jax.Array:
    """Whether there are two or more blocks and all have the same speed."""
    low = jnp.min(jnp.where(free, speed, jnp.inf))
    high = jnp.max(jnp.where(free, speed, -jnp.inf))
    return jnp.asarray((jnp.sum(free) > 1) & (high - low < 1e-4))


# Later observations -----------------------------------------------------------------------------


def _compare(old: Evidence, transition: Transition, limit: NoiseLimits) -> Evidence:
    """Compare an observation with the nominal prediction from the one before."""
    before, after = transition.before, transition.after
    pose, _ = sight.moving(before)
    surprise, unexplained = _structure_errors(pose, transition, limit)
    near = touch.near(NOMINAL, pose, before.block, limit.blur)
    touched = old.touched | jnp.any(near) | touch.cart_at_wall(pose, limit.blur)
    explained = ~touched & (unexplained[0] > 1) & (unexplained < 1)
    now = replace(old, touched=touched, structure_ticks=old.structure_ticks + explained)
    now = _count_spawned(now, before, after)
    now, block_strength = _compare_blocks(now, before, after, near, pose, limit)
    structure_strength = jnp.where(touched, 0.0, surprise)
    hit_strength = jnp.where(limit.noisy, 0.0, _compare_hits(old, transition, near, pose))
    spawned = jnp.where(after.count != before.count, SURE, 0.0)
    strengths = (structure_strength, block_strength, hit_strength, spawned)
    return replace(now, strength=jnp.maximum(now.strength, jnp.max(jnp.stack(strengths))))


def _compare_hits(old: Evidence, transition: Transition, near: jax.Array, pose: Pose) -> jax.Array:
    """Strength of the evidence of an episode's first hit, or of blocks that hit one another."""
    before, after = transition.before, transition.after
    predictable = (before.count <= sight.SLOTS) & (after.count == before.count) & ~transition.first
    hit = predictable & jnp.any(near) & ~old.touched & ~touch.cart_at_wall(pose)
    # Hits of a cart that may be turned cannot be predicted; collisions away from it can.
    pair = predictable & ~jnp.any(near) & jnp.any(touch.paired(NOMINAL, before.block))
    expected = hits.after(hit | pair, before, transition.action)
    of_cartpole, of_blocks = hits.errors(expected, after)
    strength = jnp.where(hit, jnp.maximum(of_cartpole, of_blocks) / HIT_LIMIT, 0.0)
    return jnp.maximum(strength, jnp.where(pair, of_blocks / PAIR_LIMIT, 0.0))


def _structure_errors(
    pose: Pose, transition: Transition, limit: NoiseLimits
) -> tuple[jax.Array, jax.Array]:
    """Largest error of cart and pole, each number divided by its limit.

    Returns:
      Error of the nominal model by the limit of normal errors, (); error of each model by the
      limit up to which it explains an observation, (M,).
    """
    models = bank.structure_params()
    _, velocity = sight.predicted(models, transition.before, sight.push(models, transition.action))
    after, spin = transition.after, sight.spin_of(pose, velocity)
    expected, reported = _quaternion(pose), _quaternion(after.reported)
    sign = jnp.where(sum(a * b for a, b in zip(expected, reported, strict=True)) < 0, -1.0, 1.0)
    groups = (
        (limit.place, [pose.x - after.reported.x, pose.y - after.reported.y]),
        (limit.cart_speed, [velocity.vx - after.vx, velocity.vy - after.vy]),
        (limit.turn, [sign * a - b for a, b in zip(expected, reported, strict=True)]),
        (limit.spin, geo.sub(spin, after.spin)),
    )
    sizes = [(noise, jnp.abs(d)) for noise, differences in groups for d in differences]
    surprise = jnp.stack([jnp.ravel(d)[0] / (FREE_LIMIT + noise) for noise, d in sizes])
    unexplained = jnp.broadcast_arrays(*(d / (NAMED_LIMIT + noise) for noise, d in sizes))
    return jnp.max(surprise), jnp.max(jnp.stack(unexplained), axis=0)


def _quaternion(pose: Pose) -> tuple[Scalar, ...]:
    return pose.qx, pose.qy, pose.qz, pose.qw


def _count_spawned(now: Evidence, before: Sighting, after: Sighting) -> Evidence:
    more = after.count > before.count
    rests = dynamics.norm(after.newest) < RESTING
    return replace(now, resting=now.resting + (more & rests), flying=now.flying + (more & ~rests))


def _compare_blocks(
    now: Evidence,
    before: Sighting,
    after: Sighting,
    near: jax.Array,
    pose: Pose,
    limit: NoiseLimits,
) -> tuple[Evidence, jax.Array]:
    """Compare blocks that touch at most walls; return the strength of their evidence as well."""
    block = replace(before.block, alive=before.block.alive & after.block.alive)
    speeds = bank.blocks_after(NOMINAL, block)
    change = geo.sub(after.block.v, speeds)
    shift = geo.sub(after.block.p, sight.place_next(block.p, speeds))
    moved = geo.sub(after.block.p, sight.place_next(block.p, after.block.v))
    place, speed = FREE_LIMIT + limit.place, FREE_LIMIT + limit.block_speed
    jumped = jnp.max(jnp.where(block.alive, touch.largest(moved), 0.0)) / place
    alone = block.alive & ~near & ~touch.paired(NOMINAL, block, limit.blur)
    gap = touch.least_gap(NOMINAL, block.p)
    free = alone & (gap > touch.NEAR_PLANE + limit.blur)
    at_wall = alone & (gap < touch.TOUCHING) & touch.off_planes(NOMINAL, block.p) & ~limit.noisy
    of_speed, of_place = touch.largest(change), touch.largest(shift)
    astray = free & (
        (of_speed > NAMED_LIMIT + limit.block_speed) | (of_place > NAMED_LIMIT + limit.place)
    )
    size = dynamics.norm(change)
    bounced = at_wall & (size > WALL_LIMIT)
    faster = bounced & (dynamics.norm(after.block.v) > dynamics.norm(speeds))
    error = jnp.maximum(of_speed / speed, of_place / place)
    free_strength = jnp.max(jnp.where(free, error, 0.0))
    wall_strength = jnp.max(jnp.where(at_wall, size, 0.0)) / WALL_LIMIT
    now = replace(
        now,
        free=free,
        moved=now.moved | jnp.any(block.alive & touch.apart(after.block.p, block.p)),
        fast_walls=now.fast_walls | jnp.any(faster),
    )
    now = _count_blocks(now, before, block, after, free, jnp.any(astray), pose)
    return now, jnp.maximum(jnp.maximum(free_strength, wall_strength), jumped)


def _count_blocks(
    now: Evidence,
    before: Sighting,
    block: Sphere,
    after: Sighting,
    free: jax.Array,
    astray: jax.Array,
    pose: Pose,
) -> Evidence:
    """Add a tick to the bank's evidence of the blocks."""
    large = replace(NOMINAL, block_radius=bank.WIDE)
    clear = block.alive & ~touch.near(large, pose, block) & ~touch.paired(large, block)
    clear = clear & touch.off_planes(large, block.p)
    change = bank.missed(after.block.v, bank.blocks_after(NOMINAL, block))
    wide = bank.missed(after.block.v, bank.blocks_after(large, block))
    errors = bank.unexplained(before, change, free, wide, clear)
    mask = (astray | (now.block_ticks > 0)) & (now.block_ticks < NAMING_TICKS)
    return replace(
        now,
        block_errors=now.block_errors + jnp.where(mask, errors.total, 0.0),
        block_missed=now.block_missed + jnp.where(mask, errors.missed, 0.0),
        block_counts=now.block_counts + jnp.where(mask, errors.number, 0.0),
        block_ticks=now.block_ticks + mask,
        inward=now.inward + jnp.where(mask, errors.inward, 0.0),
    )


residual = Detector(
    "residual", _watch, _init, _begin, named, _tell, watch_exact=partial(_watch, exact=True)
)
