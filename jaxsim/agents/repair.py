"""Estimate of the physics of an episode, from errors of nominal predictions in free ticks.

It fits a constant force on the cart, the length of the pole and the mass of the cart (the best of a
grid, whose models are all predicted at once), or what pushes do; a field that accelerates the
blocks, the restitution of walls, the blocks' radius, and whether blocks slide on lines or cannot be
moved. Each episode begins anew: one to three ticks are enough, and a trial may mix worlds.
"""

from dataclasses import dataclass, replace
from itertools import product

import jax
import jax.numpy as jnp

from jaxsim.agents import bank, pushes, sight, touch
from jaxsim.agents.detection import Transition
from jaxsim.agents.lookahead import ForceField, Model, directions, pull
from jaxsim.agents.pushes import PushEvidence, PushFit
from jaxsim.agents.sight import Sighting
from jaxsim.worlds.cartpole3d import dynamics
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d.contact import broadphase
from jaxsim.worlds.cartpole3d.types import DT, Params, Pose, Sphere, Vector

NOMINAL = Params()
LENGTHS = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)  # m
MASSES = (1.0, 2.0, 5.0, 10.0)  # kg
GRID = tuple(product(LENGTHS, MASSES))
SPREAD, SIZE = 0.01, 1e-4  # rad/s by N, scores of the spread and size of the force a model needs
FORCED, CHANGED = 4e-3, 1.5e-3  # rad/s, scores of a force, and of another length or mass
NO_FORCE = 0.05  # N, force that rounding cannot explain
UNEXPLAINED = 0.05  # rad/s, residual of the best model from which no model is trusted
UNSTEADY = 1.0  # N, distance of a tick's force from its mean from which no model is trusted
DOUBT = 5  # ticks for which no model is trusted then
UNLIKELY = 0.3  # N, error of other pushes, below that of other physics, from which they count
STRAY = 2e-3  # m/s, change of a block's velocity from which a field is fitted
FORGETTING = 0.97
RIDGE = 1e-3
STRUCK = 100.0  # m/s^2, more than a field causes: a block was hit
RESIDUAL, RESIDUAL_SHARE = 0.5, 0.5  # m/s^2 and share of the change; limit of explained blocks
LOST = 0.6  # share of unexplained ticks from which blocks are not predicted
FADING = 0.7
HEAVY = 1e6  # kg, of blocks that cannot be moved
FAST = 1.0  # m/s, at a wall, from which a bounce shows the restitution
DEEP = 0.45  # m, depth in a wall up to which it does
USUAL_BOUNCE = 1.03  # restitution up to which walls count as nominal


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PhysicsEvidence:
    """Evidence of an episode about its physics."""

    touched: jax.Array  # () bool, cart or pole may have been hit
    ticks: jax.Array  # () free ticks of cart and pole
    residual: jax.Array  # (32,) rad/s, of each model of the grid, summed over these ticks
    force_x: jax.Array  # (32,) N, summed
    force_y: jax.Array  # (32,)
    square: jax.Array  # (32,) N^2, summed
    pushes: PushEvidence
    doubt: jax.Array  # () int32, ticks for which no model is trusted
    normal: jax.Array  # (4, 4) of the field's least squares
    moment: jax.Array  # (4,)
    strays: jax.Array  # () bool, blocks are accelerated
    unexplained: jax.Array  # () moving average of the share of blocks the field does not explain
    restitution: jax.Array  # () of walls
    wide: jax.Array  # () bool, blocks are as wide as in level 104
    crowded: jax.Array  # () bool, more blocks than slots; hits of the others look like a field
    still: jax.Array  # () bool, reported velocities of blocks are zero
    moved: jax.Array  # () bool, blocks move although their reported velocities are zero


def no_fit() -> PhysicsEvidence:
    """Without evidence: the nominal world."""
    zero, no, grid = jnp.float32(0), jnp.asarray(False), jnp.zeros(len(GRID))
    return PhysicsEvidence(
        touched=no,
        ticks=zero,
        residual=grid,
        force_x=grid,
        force_y=grid,
        square=grid,
        pushes=PushEvidence.none(),
        doubt=jnp.int32(0),
        normal=jnp.zeros((4, 4)),
        moment=jnp.zeros(4),
        strays=no,
        unexplained=zero,
        restitution=jnp.float32(1),
        wide=no,
        crowded=no,
        still=no,
        moved=no,
    )


def _grid() -> Params:
    lengths, masses = zip(*GRID, strict=True)
    return replace(NOMINAL, pole_length=jnp.array(lengths), cart_mass=jnp.array(masses))


def update(fit: PhysicsEvidence, transition: Transition) -> PhysicsEvidence:
    """Add one transition; the first observation of an episode shows only velocities."""
    block = transition.after.block
    still = jnp.all(~block.alive | (dynamics.norm(block.v) < 1e-6)) & (transition.after.count > 0)
    crowded = fit.crowded | (transition.after.count > sight.SLOTS)
    fit = replace(fit, still=jnp.where(transition.first, still, fit.still & still), crowded=crowded)
    later = _blocks(_structure(fit, transition), transition)
    return jax.tree.map(lambda a, b: jnp.where(transition.first, a, b), fit, later)


# Cart and pole ----------------------------------------------------------------------------------


def _structure(fit: PhysicsEvidence, transition: Transition) -> PhysicsEvidence:
    """Score every pair of length and mass by the pole's residual under the best constant force."""
    pose, _ = sight.moving(transition.before)
    near = touch.near(replace(NOMINAL, block_radius=radius(fit)), pose, transition.before.block)
    touched = fit.touched | jnp.any(near) | touch.cart_at_wall(pose)
    grid = _grid()
    push = sight.push(NOMINAL, transition.action)
    _, velocity = sight.predicted(grid, transition.before, push)
    m0 = dynamics.bodies(grid).m0 / DT
    force = Vector(
        m0 * (transition.after.vx - velocity.vx),
        m0 * (transition.after.vy - velocity.vy),
        jnp.zeros(len(GRID)),
    )
    _, velocity = sight.predicted(grid, transition.before, geo.add(push, force))
    spin = sight.spin_of(pose, velocity)
    residual = jnp.maximum(
        jnp.abs(spin.x - transition.after.spin.x), jnp.abs(spin.y - transition.after.spin.y)
    )
    use = ~touched
    total, turn = pushes.force_between(transition.before, transition.after)
    free = use & _moves(transition)
    grown = replace(
        fit,
        touched=touched,
        ticks=fit.ticks + use,
        residual=fit.residual + jnp.where(use, residual, 0.0),
        force_x=fit.force_x + jnp.where(use, force.x, 0.0),
        force_y=fit.force_y + jnp.where(use, force.y, 0.0),
        square=fit.square + jnp.where(use, force.x**2 + force.y**2, 0.0),
        pushes=pushes.add(fit.pushes, transition.action, total, turn, free),
    )
    best, fx, fy = _best(grown)
    off = jnp.maximum(jnp.abs(force.x - fx), jnp.abs(force.y - fy))
    fails = use & ((residual[best] > UNEXPLAINED) | (off[best] > UNSTEADY))
    other = pushes.fitted(grown.pushes)
    missed = pushes.missed(other, grown.pushes, total)
    pushed = _pushed_otherwise(grown, other)
    fails = jnp.where(pushed, free & ((turn > UNEXPLAINED) | (missed > UNSTEADY)), fails)
    # The ticks that made other physics doubtful are explained once pushes are.
    left = jnp.where(pushed, 0, jnp.maximum(fit.doubt - 1, 0))
    return replace(grown, doubt=jnp.where(fails, DOUBT, left))


def _moves(transition: Transition) -> jax.Array:
    """Whether anything of cart and pole is reported anew; late sensors begin with equal reports."""
    a, b = ((s.vx, s.vy, s.spin.x, s.spin.y) for s in (transition.before, transition.after))
    return jnp.any(jnp.stack([x != y for x, y in zip(a, b, strict=True)]))


def _pushed_otherwise(fit: PhysicsEvidence, other: PushFit) -> jax.Array:
    """Whether other pushes explain an episode and other physics does not, () bool."""
    best, fx, fy = _best(fit)
    ticks = jnp.maximum(fit.ticks, 1)
    spread = jnp.maximum(fit.square[best] / ticks - fx * fx - fy * fy, 0.0)
    turn = pushes.TURN * fit.residual[best] / ticks
    return other.explains & (other.error + UNLIKELY < jnp.sqrt(spread + turn * turn))


def unclear(fit: PhysicsEvidence) -> jax.Array:
    """Whether a tick without a push would show what pushes do, () bool."""
    other = pushes.fitted(fit.pushes)
    undecided = ~fit.touched & other.explains & ~_pushed_otherwise(fit, other)
    return undecided & pushes.unclear(fit.pushes)


def _best(fit: PhysicsEvidence) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Index of the pair of length and mass that explains an episode best, and its mean force, N."""
    ticks = jnp.maximum(fit.ticks, 1)
    fx, fy = fit.force_x / ticks, fit.force_y / ticks
    spread = jnp.sqrt(jnp.maximum(fit.square / ticks - fx * fx - fy * fy, 0.0))
    size = jnp.sqrt(fx * fx + fy * fy)
    # While all pushes are equal, a heavy cart looks like a force against them: one change that
    # explains everything is preferred to two.
    score = fit.residual / ticks + SPREAD * spread + SIZE * size
    score = score + jnp.where(size > NO_FORCE, FORCED, 0.0)
    best = jnp.argmin(score.at[1:].add(CHANGED))
    return best, fx[best], fy[best]


def structure(fit: PhysicsEvidence) -> tuple[jax.Array, jax.Array, Vector]:
    """Pole length, cart mass and force on the cart that explain an episode best; m, kg, N."""
    best, fx, fy = _best(fit)
    lengths, masses = (jnp.array(column) for column in zip(*GRID, strict=True))
    return lengths[best], masses[best], Vector(fx, fy, jnp.float32(0))


# Blocks -----------------------------------------------------------------------------------------


def radius(fit: PhysicsEvidence) -> jax.Array:
    """Radius of the blocks, m."""
    return jnp.where(fit.wide & ~fit.crowded, bank.WIDE, NOMINAL.block_radius)


def _blocks(fit: PhysicsEvidence, transition: Transition) -> PhysicsEvidence:
    before, after = transition.before, transition.after
    block = replace(before.block, alive=before.block.alive & after.block.alive)
    pose, _ = sight.moving(before)
    params = replace(NOMINAL, block_radius=radius(fit))
    alone = block.alive & ~touch.near(params, pose, block) & ~touch.paired(params, block)
    apart = touch.apart(after.block.p, block.p)
    fit = replace(fit, moved=fit.moved | (fit.still & jnp.any(block.alive & apart)))
    alone = alone & ~fit.still
    fit = _bounced(fit, params, before, block, after, alone)
    fit = _widened(fit, pose, block, after, alone)
    free = alone & (touch.least_gap(params, block.p) > touch.NEAR_PLANE)
    return _pulled(fit, before, block, after, free)


def _without_walls(fit: PhysicsEvidence, before: Sighting, block: Sphere) -> Vector:
    """Velocities of blocks after a tick in which they touch nothing, m/s."""
    pulled = pull(field(fit), before.reported.x, before.reported.y, block)
    return geo.add(dynamics.accelerate_block(NOMINAL, block, None), geo.scale(pulled, DT))


def field(fit: PhysicsEvidence) -> ForceField:
    """The field that explains an episode best, m/s^2."""
    used = fit.strays & ~fit.still & ~fit.crowded
    size = jnp.where(used, _solved(fit.normal, fit.moment), 0.0)
    return ForceField(*(size[i] for i in range(4)))


def _bounced(
    fit: PhysicsEvidence,
    params: Params,
    before: Sighting,
    block: Sphere,
    after: Sighting,
    alone: jax.Array,
) -> PhysicsEvidence:
    """Restitution of the walls, from the last bounce."""
    v = _without_walls(fit, before, block)
    middle = 0.5 * (params.room_floor + params.room_ceiling)
    sides = (block.p.x, block.p.y, block.p.z - middle)
    total, number = jnp.float32(0), jnp.float32(0)
    for gap, side, speed, reported in zip(
        touch.gaps(params, block.p), sides, v, after.block.v, strict=True
    ):
        out = jnp.where(side < 0, -speed, speed)
        back = jnp.where(side < 0, reported, -reported)
        use = alone & (gap < -touch.NEAR_PLANE) & (gap > -DEEP) & (out > FAST)
        pushed = broadphase.ERP / DT * jnp.maximum(-gap - broadphase.SLOP, 0.0)
        total = total + jnp.sum(jnp.where(use, (back - pushed) / jnp.where(use, out, 1.0), 0.0))
        number = number + jnp.sum(use)
    restitution = jnp.clip(total / jnp.maximum(number, 1), 0.0, 3.0)
    restitution = jnp.where(restitution < USUAL_BOUNCE, 1.0, restitution)
    return replace(fit, restitution=jnp.where(number > 0, restitution, fit.restitution))


def _widened(
    fit: PhysicsEvidence, pose: Pose, block: Sphere, after: Sighting, alone: jax.Array
) -> PhysicsEvidence:
    """Whether a bounce is explained by wide blocks and by nothing else."""
    large = replace(NOMINAL, block_radius=bank.WIDE)
    clear = alone & ~touch.near(large, pose, block) & ~touch.paired(large, block)
    missed = dynamics.norm(geo.sub(after.block.v, bank.blocks_after(NOMINAL, block)))
    residual = dynamics.norm(geo.sub(after.block.v, bank.blocks_after(large, block)))
    return replace(
        fit, wide=fit.wide | jnp.any(clear & (missed > FAST) & (residual < 0.05 * missed))
    )


def _pulled(
    fit: PhysicsEvidence, before: Sighting, block: Sphere, after: Sighting, free: jax.Array
) -> PhysicsEvidence:
    """Least squares of the field, with forgetting, over blocks that touch nothing."""
    v = dynamics.accelerate_block(NOMINAL, block, None)
    change = bank.missed(after.block.v, v)
    sizes = dynamics.norm(change)
    strays = fit.strays | jnp.any(free & (sizes > STRAY / DT) & (sizes < STRUCK))
    use = (free & strays & (sizes < STRUCK)).astype(jnp.float32)
    basis = _basis(before, block)  # (4 forces, 3 axes, 4 blocks)
    target = jnp.stack(change)
    normal = FORGETTING * fit.normal + jnp.einsum("iab,jab,b->ij", basis, basis, use)
    moment = FORGETTING * fit.moment + jnp.einsum("iab,ab,b->i", basis, target, use)
    size = _solved(normal, moment)
    residual = jnp.sqrt(jnp.sum((target - jnp.einsum("i,iab->ab", size, basis)) ** 2, axis=0))
    number = jnp.sum(free)
    odd = jnp.sum(free & (residual > RESIDUAL + RESIDUAL_SHARE * sizes)) / jnp.maximum(number, 1)
    unexplained = FADING * fit.unexplained + (1 - FADING) * odd
    fitted = jnp.sum(use) > 0
    return replace(
        fit,
        strays=strays,
        normal=jnp.where(fitted, normal, fit.normal),
        moment=jnp.where(fitted, moment, fit.moment),
        unexplained=jnp.where(number > 0, unexplained, fit.unexplained),
    )


def _basis(report: Sighting, block: Sphere) -> jax.Array:
    zero = jnp.zeros_like(block.p.x)
    up = Vector(zero, zero, zero + 1)
    reported = report.reported
    return jnp.stack([jnp.stack(u) for u in (up, *directions(reported.x, reported.y, block))])


def _solved(normal: jax.Array, moment: jax.Array) -> jax.Array:
    """Solution of a small positive definite system, by elimination."""
    rows = jnp.concatenate([normal + RIDGE * jnp.eye(4), moment[:, None]], axis=1)
    for k in range(4):
        row = rows[k] / rows[k, k]
        rows = (rows - rows[:, k : k + 1] * row).at[k].set(row)
    return rows[:, 4]


def model_of(fit: PhysicsEvidence, report: Sighting) -> tuple[Model, Sphere, jax.Array]:
    """Model that explains the evidence, the blocks it predicts, and whether it is trusted.

    Args:
      fit: evidence of the episode.
      report: the present observation.

    Returns:
      Model; blocks, without those that cannot be predicted; () bool.
    """
    length, mass, force = structure(fit)
    other = pushes.fitted(fit.pushes)
    pushed = _pushed_otherwise(fit, other)
    length = jnp.where(pushed, NOMINAL.pole_length, length)
    mass = jnp.where(pushed, NOMINAL.cart_mass, mass)
    force = Vector(*(jnp.where(pushed, 0.0, c) for c in force))
    nominal = NOMINAL.force * jnp.eye(2)
    acting = replace(other, force=jnp.where(pushed, other.force, nominal))
    fixed = fit.still & ~fit.moved
    bounce = jnp.sqrt(jnp.where(fit.crowded, 1.0, fit.restitution))
    params = replace(
        NOMINAL,
        pole_length=length,
        cart_mass=mass,
        block_radius=radius(fit),
        block_mass=jnp.where(fixed, HEAVY, NOMINAL.block_mass),
        restitution_wall=bounce,
        restitution_block=bounce,
    )
    delay = jnp.where(pushed, other.delay, 0)
    model = Model(params, acting.pushes, delay, force, field(fit), fit.still)
    predictable = fit.crowded | (fit.unexplained < LOST)
    block = replace(report.block, alive=report.block.alive & predictable)
    return model, block, fit.doubt == 0
