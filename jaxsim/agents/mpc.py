"""`mpc`: model-predictive control with the simulator, which repairs its model in play.

A plan is a reference for the pole's lean, tick by tick, and then a place to go to. Each tick rolls
out the best plans of the tick before again, and two fixed ones: go to the middle of the room, and
act as `pd`. If none of them is good and clear of all blocks, a random search looks for better
plans: places to go to, leans to hold, and mutations of the best. The action is the push that the
best plan needs now. While no model explains cart and pole, `pd` acts. Where pushes act late, or
the state is known late, plans begin with the world as it will be when the push acts.

A batch screens the plans of all lanes at once. It then searches lane by lane, only for those that
need it, with all candidates of the lane at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim import rng
from jaxsim.agents import derived, reference, repair, sight
from jaxsim.agents.base import Agent, NoveltyPrediction
from jaxsim.agents.derived import SpeedEvidence
from jaxsim.agents.detection import Transition
from jaxsim.agents.lookahead import (
    FALL,
    HORIZON,
    BodyState,
    LeanPlan,
    Model,
    ahead,
    demand,
    lean,
    rollout,
    screen,
)
from jaxsim.agents.pushes import LATEST
from jaxsim.agents.repair import PhysicsEvidence
from jaxsim.agents.sight import Sighting, see
from jaxsim.backend import batch_rule, materialise, opaque_one
from jaxsim.pytrees import Leaf, Tree
from jaxsim.worlds.cartpole3d import dynamics
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d.types import DT, Observation, Sphere, Vector

ELITES = 3
GOOD = 6.0  # cost up to which nothing is searched; less than `lookahead.NEAR`
STEPS = 200  # of an episode
PLACES, HOLDS = 0.15, 0.40  # shares of candidates: places to go to; up to here, leans to hold
REACH = 3.0  # m, of places
THREATS = 8  # blocks of a rollout, where there may be more than four
PILLAR, HURRY = 0.7, 0.5  # m, height of the point that threats approach; m/s, weight of time
CAPS = (0.03, 0.15)  # rad, largest leans on the way to a place
HOME_CAP = 0.06  # rad, of the default plan
LONGEST_HOLD, LARGEST_HOLD = 50, 0.18  # ticks and rad
DRAWS = 17  # random numbers of a candidate
LARGEST_MUTATION, SWITCHING = 0.36, 0.3  # rad, and share of mutations that go to a place then


class Budget(NamedTuple):
    """Effort of the search where no plan is good."""

    candidates: int = 64  # of a generation, the present plans included
    generations: int = 12  # a tick, at most
    again: int = 1  # generations where the search is stuck
    every: int = 4  # ticks; in each that is a multiple of it, a stuck search is full
    first: int = 72  # generations at the first tick of an episode


BUDGET = Budget()


class Replanned(NamedTuple):
    """What a tick's search leaves."""

    plans: LeanPlan  # (H, E) and (E,), the best first
    stuck: jax.Array  # () bool, whether a search ended with a plan that stands, but is not good
    rollouts: jax.Array  # () int32


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Memory:
    """Memory of the controller."""

    before: Sighting
    actions: jax.Array  # (9,) int32, the newest first
    first: jax.Array  # () bool
    tick: jax.Array  # () int32
    speeds: SpeedEvidence
    fit: PhysicsEvidence
    plans: LeanPlan  # (H, E) and (E,)
    stuck: jax.Array  # () bool, whether the last search was; see `Replanned`
    rollouts: jax.Array  # () int32, rollouts of the episode


def home(lanes: int) -> LeanPlan:
    """Plans that go to the middle of the room at once."""
    zero = jnp.zeros(lanes)
    lean = jnp.zeros((HORIZON, lanes))
    return LeanPlan(lean, lean, jnp.zeros(lanes, jnp.int32), zero, zero, zero + HOME_CAP)


def _upright(lanes: int) -> LeanPlan:
    """Plans without any lean, wherever the cart goes: the behaviour of `pd`."""
    return home(lanes)._replace(switch=jnp.full(lanes, HORIZON, jnp.int32))


def _init(key: jax.Array) -> Memory:
    return Memory(
        Sighting.nothing(),
        jnp.zeros(LATEST + 1, jnp.int32),
        jnp.asarray(True),
        jnp.int32(0),
        SpeedEvidence.none(),
        repair.no_fit(),
        home(ELITES),
        jnp.asarray(False),
        jnp.int32(0),
    )


def _begin(memory: Memory, key: jax.Array) -> Memory:
    return _init(key)


def _act(
    memory: Memory, observation: Observation, key: jax.Array
) -> tuple[jax.Array, NoveltyPrediction, Memory]:
    report = see(observation)
    newest = Transition(memory.before, memory.actions[0], report, memory.first)
    free = ~memory.fit.touched & ~memory.fit.crowded
    speeds, transition, changed = derived.follow(memory.speeds, newest, free)
    fit = jax.tree.map(partial(jnp.where, changed), repair.no_fit(), memory.fit)
    fit = repair.update(fit, transition)
    model, block, trusted = repair.model_of(fit, transition.after)
    late = model.delay + speeds.late
    now = crowded(_world(transition, fit, block), observation)
    world = ahead(model, now, memory.actions, late)
    remaining = STEPS - memory.tick - late
    useful = trusted & ~fallen(report) & (remaining > 0)
    rounds = generations(BUDGET, memory.tick, memory.stuck, useful)
    plans, stuck, rollouts = replan(
        BUDGET.candidates, model, world, memory.plans, remaining, rounds, key
    )
    usual = reference.pd.act((), observation, key)[0]
    usual = jnp.where(speeds.late, push(model, world, _upright(1)), usual)
    action = jnp.where(trusted, push(model, world, plans), usual)
    action = jnp.where(repair.unclear(fit), 0, action).astype(jnp.int32)
    after = Memory(
        report,
        jnp.concatenate([action[None], memory.actions[:-1]]),
        jnp.asarray(False),
        memory.tick + 1,
        speeds,
        fit,
        plans,
        stuck,
        memory.rollouts + rollouts,
    )
    return action, NoveltyPrediction.none(), after


def _world(transition: Transition, fit: PhysicsEvidence, block: Sphere) -> BodyState:
    """The state of a report; velocities of blocks on lines come from their last two places."""
    report = transition.after
    pose, velocity = sight.moving(report)
    mean_velocity = geo.scale(geo.sub(report.block.p, transition.before.block.p), 1 / DT)
    hidden = fit.still & ~transition.first
    v = Vector(*(jnp.where(hidden, a, b) for a, b in zip(mean_velocity, block.v, strict=True)))
    # On lines, places are reported one tick late as well.
    later = sight.place_next(block.p, v)
    p = Vector(*(jnp.where(hidden, a, b) for a, b in zip(later, block.p, strict=True)))
    return BodyState(pose, velocity, Sphere(p, v, _placed(block).alive))


def crowded(world: BodyState, observation: Observation) -> BodyState:
    """The world with the blocks that come closest first, where a room may hold more than four.

    Blocks of the world come before those of the observation, which may hide how they move.
    """
    blocks = _placed(sight.all_blocks(observation))
    if len(blocks.alive) <= sight.SLOTS:
        return world
    blocks = jax.tree.map(
        lambda first, reported: jnp.concatenate([first, reported[len(first) :]]),
        world.block,
        blocks,
    )
    pose, velocity = world.pose, world.velocity
    d = geo.sub(blocks.p, Vector(pose.x, pose.y, PILLAR))
    w = geo.sub(blocks.v, Vector(velocity.vx, velocity.vy, 0.0))
    closest = -geo.dot(d, w) / jnp.maximum(geo.dot(w, w), 1e-6)
    soon = jnp.clip(closest, 0.0, DT * HORIZON)
    distance = dynamics.norm(geo.add(d, geo.scale(w, soon))) + HURRY * soon
    number = min(THREATS, len(blocks.alive))
    _, chosen = jax.lax.top_k(-jnp.where(blocks.alive, distance, jnp.inf), number)
    return world._replace(block=jax.tree.map(lambda leaf: leaf[chosen], blocks))


def _placed(block: Sphere) -> Sphere:
    """Blocks but those at the origin, in the floor: no sensor reads their place."""
    somewhere = (block.p.x != 0) | (block.p.y != 0) | (block.p.z != 0)
    return replace(block, alive=block.alive & somewhere)


def fallen(report: Sighting) -> Leaf:
    """Whether the reported pole has fallen."""
    r = report.reported
    return dynamics.has_fallen(geo.rotation(r.qx, r.qy, r.qz, r.qw), repair.NOMINAL.lean_limit)


def push(model: Model, world: BodyState, plans: LeanPlan) -> jax.Array:
    """Action code of the push that the first plan needs now."""
    pose, velocity = world.pose, world.velocity
    axis, rate = lean(geo.pole_to_cart(pose), velocity)
    x, y = demand(model.pushes, axis, rate, (plans.lean_x[0, 0], plans.lean_y[0, 0]))
    right_left = jnp.where(x > 0, 1, jnp.where(x < 0, 2, 0))
    return jnp.where(y > 0, 3, jnp.where(y < 0, 4, right_left))


# Plans ------------------------------------------------------------------------------------------


def _shifted(plans: LeanPlan) -> LeanPlan:
    """The same plans a tick later; the explicit references keep their length."""

    def shift(leaf: jax.Array) -> jax.Array:
        return jnp.concatenate([leaf[1:], leaf[-1:]])

    return plans._replace(
        lean_x=shift(plans.lean_x),
        lean_y=shift(plans.lean_y),
        switch=jnp.maximum(plans.switch - 1, 0),
    )


def _joined(a: LeanPlan, b: LeanPlan) -> LeanPlan:
    return jax.tree.map(lambda x, y: jnp.concatenate([x, y], axis=-1), a, b)


def _best(plans: LeanPlan, costs: jax.Array) -> tuple[LeanPlan, jax.Array]:
    """The cheapest plans, the best first; of one lane or of a batch."""
    order = jnp.argsort(costs, axis=0)[:ELITES]

    def select(leaf: jax.Array) -> jax.Array:
        where = jnp.broadcast_to(order, leaf.shape[: leaf.ndim - order.ndim] + order.shape)
        return jnp.take_along_axis(leaf, where, axis=leaf.ndim - order.ndim)

    return jax.tree.map(select, plans), select(costs)


def _with_usual(plans: LeanPlan) -> LeanPlan:
    """Plans, (..., E, ...), and the two fixed plans behind them."""
    lanes = plans.cap.shape[1:]
    both = _joined(home(1), _upright(1))

    def joined(leaf: jax.Array, usual: jax.Array) -> jax.Array:
        number = usual.ndim - 1
        usual = usual.reshape(usual.shape + (1,) * len(lanes))
        usual = jnp.broadcast_to(usual, usual.shape[: number + 1] + lanes)
        return jnp.concatenate([leaf, usual], axis=number)

    return jax.tree.map(joined, plans, both)


def _candidates(number: int, plans: LeanPlan, key: rng.Words) -> LeanPlan:
    """A generation: places to go to, leans to hold and then a place, mutations of the best."""
    numbers = rng.uniform(key, jnp.arange(DRAWS * number).reshape(DRAWS, number))
    one = opaque_one(numbers[0])
    u = materialise(tuple(numbers), one)
    kind = u[0]
    elite = (ELITES * u[14]).astype(jnp.int32)

    def of_elite(leaf: jax.Array) -> jax.Array:
        """Leaf of one elite each; faster than a gather."""
        chosen = leaf[..., -1:]
        for i in range(ELITES - 1):
            chosen = jnp.where(elite == i, leaf[..., i : i + 1], chosen)
        return chosen

    base = jax.tree.map(of_elite, plans)
    t = jnp.arange(HORIZON)[:, None]
    place = _polar(u[1], REACH * jnp.sqrt(u[2]))
    cap = CAPS[0] + (CAPS[1] - CAPS[0]) * u[3]
    going_on = jnp.where(u[4] < 0.5, 0, (0.5 * HORIZON * u[5]).astype(jnp.int32))
    held_x, held_y, held_until = _holds(u[6:10], t, one)
    mutated_x, mutated_y, end = _mutations(base, u[10:14], u[15:], t, one)
    goes = kind < PLACES
    holds = ~goes & (kind < HOLDS)
    switches = ~goes & ~holds & (u[5] < SWITCHING)
    new_place = goes | holds | switches
    lean_x = jnp.where(goes, base.lean_x, jnp.where(holds, held_x, mutated_x))
    lean_y = jnp.where(goes, base.lean_y, jnp.where(holds, held_y, mutated_y))
    mutated_switch = jnp.where(switches, end, jnp.maximum(base.switch, end))
    switch = jnp.where(goes, going_on, jnp.where(holds, held_until, mutated_switch))
    return LeanPlan(
        lean_x,
        lean_y,
        switch.astype(jnp.int32),
        jnp.where(new_place, place[0], base.target_x),
        jnp.where(new_place, place[1], base.target_y),
        jnp.where(new_place, cap, base.cap),
    )


def _holds(
    u: Sequence[jax.Array], t: jax.Array, one: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """A held lean, and in half of the plans a counter lean after it."""
    until = 5 + (LONGEST_HOLD - 5) * u[2]
    counter = jnp.maximum(2 * u[3] - 1, 0.0)
    last = until + jnp.where(counter > 0, 5 + 20 * counter, 0.0)
    x, y = _polar(u[0], LARGEST_HOLD * u[1])
    x, y, until, last, counter = materialise((x, y, until, last, counter), one)
    hold = jnp.where(t < until, 1.0, jnp.where(t < last, -counter, 0.0))
    return hold * x, hold * y, last


def _mutations(
    base: LeanPlan, u: Sequence[jax.Array], more: Sequence[jax.Array], t: jax.Array, one: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Plans with a lean added or replaced for some time."""
    start = HORIZON * u[2] * u[3]
    end = start + 3 + (HORIZON - start) * more[0]
    scale = jnp.where(more[1] < 0.5, 1.0, 0.0)
    x, y = _polar(u[0], LARGEST_MUTATION * u[1] ** 3)
    x, y, start, end, scale = materialise((x, y, start, end, scale), one)
    inside = (t >= start) & (t < end)
    lean_x = jnp.where(inside, scale * base.lean_x + x, base.lean_x)
    lean_y = jnp.where(inside, scale * base.lean_y + y, base.lean_y)
    return lean_x, lean_y, end


def _polar(turn: jax.Array, size: jax.Array) -> tuple[jax.Array, jax.Array]:
    """A vector of a size in a direction, in full turns."""
    angle = 2 * jnp.pi * turn
    return size * jnp.cos(angle), size * jnp.sin(angle)


# Search -----------------------------------------------------------------------------------------


def generations(budget: Budget, tick: jax.Array, stuck: jax.Array, useful: jax.Array) -> jax.Array:
    """Generations of a tick at most: many where a search may still change much.

    A search ends with a good plan after a generation or hardly ever. Where it is stuck, few
    generations continue from its best plans in most ticks. Where the pole falls in all plans, the
    search is full.

    Args:
      budget: effort of the search.
      tick: () int32, of the episode.
      stuck: () bool, whether the last search was; see `Replanned`.
      useful: () bool, whether to search at all.
    """
    few = stuck & (tick % budget.every != 0)
    usual = jnp.where(few, budget.again, budget.generations)
    return jnp.where(useful, jnp.where(tick == 0, budget.first, usual), 0)


def replan(
    number: int,
    model: Model,
    world: BodyState,
    plans: LeanPlan,
    remaining: jax.Array,
    rounds: jax.Array,
    key: jax.Array,
) -> Replanned:
    """Improve the plans of the tick before.

    Args:
      number: candidates of a generation.
      model: the physics.
      world: the present state, leaves () and (N,).
      plans: the best of the tick before.
      remaining: () ticks until the episode is over.
      rounds: () int32, generations at most; 0 searches for nothing.
      key: of the search.
    """
    return _replanner(number)(model, world, plans, remaining, rounds, rng.words(key))


@cache
def _replanner(number: int) -> Callable[..., Replanned]:
    """Planner of one lane with a number of candidates; a batch is one program."""

    @jax.custom_batching.custom_vmap
    def one(*arguments: Tree) -> Tree:
        several = jax.tree.map(lambda leaf: leaf[None], arguments)
        return jax.tree.map(lambda leaf: leaf[0], _plan_lanes(number, *several))

    one.def_vmap(batch_rule(partial(_plan_lanes, number)))
    return one


def _plan_lanes(
    number: int,
    model: Model,
    world: BodyState,
    plans: LeanPlan,
    remaining: jax.Array,
    rounds: jax.Array,
    root: rng.Words,
) -> Replanned:
    """Screen the plans of all lanes at once, then search lane by lane.

    Lanes with a good plan that stays clear of blocks need no search. Leaves are (L, ...).
    """

    def last(tree: Tree) -> Tree:
        return jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 0, -1), tree)

    previous = _shifted(last(plans))
    candidates = _with_usual(previous)
    costs, used = screen(last(model), last(world), candidates, remaining)
    best, costs = _best(candidates._replace(lean_x=used[0], lean_y=used[1]), costs)
    rounds = jnp.where(costs[0] > GOOD, rounds, 0)
    lanes = (model, world, jax.tree.map(lambda leaf: jnp.moveaxis(leaf, -1, 0), best), remaining)
    order = jnp.argsort(rounds == 0)

    def search(index: jax.Array, after: Replanned) -> Replanned:
        lane = order[index]
        arguments = jax.tree.map(lambda leaf: leaf[lane], (*lanes, rounds, root))
        new = _search(number, *arguments)
        return jax.tree.map(lambda leaf, row: leaf.at[lane].set(row), after, new)

    before = Replanned(lanes[2], jnp.zeros_like(rounds, bool), jnp.full_like(rounds, ELITES + 2))
    return jax.lax.fori_loop(0, jnp.sum(rounds > 0), search, before)


def _search(
    number: int,
    model: Model,
    world: BodyState,
    plans: LeanPlan,
    remaining: jax.Array,
    rounds: jax.Array,
    root: rng.Words,
) -> Replanned:
    """Search for better plans, for some generations or until one is good.

    The number of rollouts includes those of the previous plans.
    """

    def unfinished(carry: Tree) -> jax.Array:
        done, _, costs = carry
        return (done < rounds) & (costs[0] > GOOD)

    def generation(carry: Tree) -> Tree:
        done, plans, costs = carry
        usual = _with_usual(plans)
        candidates = jax.tree.map(
            lambda new, old: jnp.concatenate([old, new[..., ELITES + 2 :]], axis=-1),
            _candidates(number, plans, rng.fold(root, done)),
            usual,
        )
        cost, used = rollout(model, world, candidates, remaining, costs[-1])
        candidates = candidates._replace(lean_x=used[0], lean_y=used[1])
        return done + 1, *_best(candidates, cost)

    none = jnp.full(ELITES, jnp.inf)
    done, plans, costs = jax.lax.while_loop(unfinished, generation, (jnp.int32(0), plans, none))
    stuck = (costs[0] > GOOD) & (costs[0] < FALL)
    return Replanned(plans, stuck, ELITES + 2 + number * done)


mpc = Agent("mpc", _act, _init, _begin, costly=True)
