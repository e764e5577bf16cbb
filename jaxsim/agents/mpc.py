"""`mpc`: a controller that plans with the simulator and repairs its model as it plays.

A plan is a reference for the pole's lean, tick by tick, that ends in going to a place. Each tick
the best plans of the tick before are followed in the model again; only if none of them is good does
a random search look for better ones: places to go to, leans to hold, and mutations of the best.
What is done is the push that the best plan asks for now. While no model explains cart and pole,
`pd` plays.

The search of one lane is a program of its own: a batch of lanes calls it for one after the other,
and only for those that need it, with all candidates side by side.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from jaxsim.agents import reference, repair, sight
from jaxsim.agents.base import Agent, NoveltyPrediction
from jaxsim.agents.detection import Transition
from jaxsim.agents.repair import Fit
from jaxsim.agents.rollouts import HORIZON, Model, Plan, World, demand, followed, lean
from jaxsim.agents.sight import Seen, see
from jaxsim.worlds.cartpole3d import dynamics
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d.types import DT, Block, Observation, Vector

ELITES = 3
CANDIDATES = 128  # of a generation
GENERATIONS, FIRST_GENERATIONS = 3, 16  # a tick, and at the first tick of an episode
GOOD = 6.0  # cost up to which nothing is searched
STEPS = 200  # of an episode
PLACES, HOLDS = 0.15, 0.40  # shares of candidates: places to go to; up to here, leans to hold
REACH = 3.0  # m, of places
THREATS = 8  # blocks that futures hold, where there may be more than four
PILLAR, HURRY = 0.7, 0.5  # m, height that blocks come close to; m/s, by which later ones are closer
CAPS = (0.03, 0.15)  # rad, largest leans on the way to a place
HOME_CAP = 0.06  # rad, of the default plan
LONGEST_HOLD, LARGEST_HOLD = 50, 0.18  # ticks and rad
LARGEST_MUTATION, SWITCHING = 0.36, 0.3  # rad, and share of mutations that go to a place then


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Memory:
    """What the controller keeps from tick to tick."""

    before: Seen
    action: jax.Array  # () int32
    first: jax.Array  # () bool
    tick: jax.Array  # () int32
    fit: Fit
    plans: Plan  # (H, E) and (E,)


def _home(lanes: int) -> Plan:
    """Going to the middle of the room at once."""
    zero = jnp.zeros(lanes)
    lean = jnp.zeros((HORIZON, lanes))
    return Plan(lean, lean, jnp.zeros(lanes, jnp.int32), zero, zero, zero + HOME_CAP)


def _init(key: jax.Array) -> Memory:
    return Memory(
        Seen.nothing(),
        jnp.int32(0),
        jnp.asarray(True),
        jnp.int32(0),
        repair.no_fit(),
        _home(ELITES),
    )


def _begin(memory: Memory, key: jax.Array) -> Memory:
    return _init(key)


def _act(
    memory: Memory, observation: Observation, key: jax.Array
) -> tuple[jax.Array, NoveltyPrediction, Memory]:
    seen = see(observation)
    shown = Transition(memory.before, memory.action, seen, memory.first)
    fit = repair.learnt(memory.fit, shown)
    model, block, trusted = repair.believed(fit, seen)
    world = _crowded(_world(memory, fit, seen, block), observation)
    left = STEPS - memory.tick
    plans = _joined(_shifted(memory.plans), _home(1))
    costs, used = followed(model, world, plans, left)
    plans = plans._replace(lean_x=used[0], lean_y=used[1])
    plans, costs = _best(plans, costs)
    useful = trusted & ~_fallen(seen) & (left > 0)
    rounds = jnp.where(memory.first, FIRST_GENERATIONS, GENERATIONS)
    rounds = jnp.where(useful & (costs[0] > GOOD), rounds, 0)
    plans, costs = _search(model, world, plans, costs, left, rounds, key)
    action = jnp.where(trusted, _push(world, plans), reference.pd.act((), observation, key)[0])
    action = action.astype(jnp.int32)
    after = Memory(seen, action, jnp.asarray(False), memory.tick + 1, fit, plans)
    return action, NoveltyPrediction.none(), after


def _world(memory: Memory, fit: Fit, seen: Seen, block: Block) -> World:
    """Where everything is now; velocities of blocks on lines are those that moved them."""
    pose, velocity = sight.moving(seen)
    moved = geo.scale(geo.sub(seen.block.p, memory.before.block.p), 1 / DT)
    hidden = fit.still & ~memory.first
    v = Vector(*(jnp.where(hidden, a, b) for a, b in zip(moved, block.v, strict=True)))
    # On lines, places are reported one tick late as well.
    ahead = sight.place_next(block.p, v)
    p = Vector(*(jnp.where(hidden, a, b) for a, b in zip(ahead, block.p, strict=True)))
    return World(pose, velocity, Block(p, v, block.alive))


def _crowded(world: World, observation: Observation) -> World:
    """The world with the blocks that come closest first, where a room may hold more than four."""
    blocks = sight.all_blocks(observation)
    if len(blocks.alive) <= sight.SLOTS:
        return world
    pose, velocity = world.pose, world.velocity
    d = geo.sub(blocks.p, Vector(pose.x, pose.y, PILLAR))
    w = geo.sub(blocks.v, Vector(velocity.vx, velocity.vy, 0.0))
    closest = -geo.dot(d, w) / jnp.maximum(geo.dot(w, w), 1e-6)
    soon = jnp.clip(closest, 0.0, DT * HORIZON)
    distance = dynamics.norm(geo.add(d, geo.scale(w, soon))) + HURRY * soon
    number = min(THREATS, len(blocks.alive))
    _, chosen = jax.lax.top_k(-jnp.where(blocks.alive, distance, jnp.inf), number)
    return world._replace(block=jax.tree.map(lambda leaf: leaf[chosen], blocks))


def _fallen(seen: Seen) -> Any:
    r = seen.reported
    return dynamics.has_fallen(geo.rotation(r.qx, r.qy, r.qz, r.qw), repair.NOMINAL.lean_limit)


def _push(world: World, plans: Plan) -> jax.Array:
    """Action code that the first plan asks for now."""
    pose, velocity = world.pose, world.velocity
    axis, rate = lean(geo.pole_to_cart(pose), velocity)
    x, y = demand(axis, rate, (plans.lean_x[0, 0], plans.lean_y[0, 0]))
    right_left = jnp.where(x > 0, 1, jnp.where(x < 0, 2, 0))
    return jnp.where(y > 0, 3, jnp.where(y < 0, 4, right_left))


# Plans ------------------------------------------------------------------------------------------


def _shifted(plans: Plan) -> Plan:
    """The same plans a tick later; what is given lasts as long."""

    def shift(given: jax.Array) -> jax.Array:
        return jnp.concatenate([given[1:], given[-1:]])

    return plans._replace(
        lean_x=shift(plans.lean_x),
        lean_y=shift(plans.lean_y),
        switch=jnp.maximum(plans.switch - 1, 0),
    )


def _joined(a: Plan, b: Plan) -> Plan:
    return jax.tree.map(lambda x, y: jnp.concatenate([x, y], axis=-1), a, b)


def _best(plans: Plan, costs: jax.Array) -> tuple[Plan, jax.Array]:
    """The cheapest plans, the best first."""
    order = jnp.argsort(costs)[:ELITES]
    return jax.tree.map(lambda leaf: leaf[..., order], plans), costs[order]


def _candidates(plans: Plan, key: jax.Array) -> Plan:
    """A generation: places to go to, leans to hold and then a place, mutations of the best."""
    keys = jax.random.split(key, 3)
    u = jax.random.uniform(keys[0], (14, CANDIDATES))
    kind = u[0]
    elite = jax.random.randint(keys[1], (CANDIDATES,), 0, ELITES)
    base = jax.tree.map(lambda leaf: leaf[..., elite], plans)
    t = jnp.arange(HORIZON)[:, None]
    angle, distance = 2 * jnp.pi * u[1], REACH * jnp.sqrt(u[2])
    place = distance * jnp.cos(angle), distance * jnp.sin(angle)
    cap = CAPS[0] + (CAPS[1] - CAPS[0]) * u[3]
    going_on = jnp.where(u[4] < 0.5, 0, (0.5 * HORIZON * u[5]).astype(jnp.int32))
    held_x, held_y, held_until = _holds(u[6:10], t)
    mutated_x, mutated_y, end = _mutations(
        base, u[10:14], jax.random.uniform(keys[2], (3, CANDIDATES)), t
    )
    goes = kind < PLACES
    holds = ~goes & (kind < HOLDS)
    switches = ~goes & ~holds & (u[5] < SWITCHING)
    new_place = goes | holds | switches
    lean_x = jnp.where(goes, base.lean_x, jnp.where(holds, held_x, mutated_x))
    lean_y = jnp.where(goes, base.lean_y, jnp.where(holds, held_y, mutated_y))
    mutated_switch = jnp.where(switches, end, jnp.maximum(base.switch, end))
    switch = jnp.where(goes, going_on, jnp.where(holds, held_until, mutated_switch))
    return Plan(
        lean_x,
        lean_y,
        switch.astype(jnp.int32),
        jnp.where(new_place, place[0], base.target_x),
        jnp.where(new_place, place[1], base.target_y),
        jnp.where(new_place, cap, base.cap),
    )


def _holds(u: jax.Array, t: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """A lean that is held, and in half of the plans a counter lean after it."""
    angle, size = 2 * jnp.pi * u[0], LARGEST_HOLD * u[1]
    until = 5 + (LONGEST_HOLD - 5) * u[2]
    counter = jnp.maximum(2 * u[3] - 1, 0.0)
    last = until + jnp.where(counter > 0, 5 + 20 * counter, 0.0)
    held = jnp.where(t < until, 1.0, jnp.where(t < last, -counter, 0.0)) * size
    return held * jnp.cos(angle), held * jnp.sin(angle), last


def _mutations(
    base: Plan, u: jax.Array, more: jax.Array, t: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Plans with a lean added, or put in, for some time."""
    angle, size = 2 * jnp.pi * u[0], LARGEST_MUTATION * u[1] ** 3
    start = HORIZON * u[2] * u[3]
    end = start + 3 + (HORIZON - start) * more[0]
    inside = (t >= start) & (t < end)
    x, y = size * jnp.cos(angle), size * jnp.sin(angle)
    kept = jnp.where(more[1] < 0.5, 1.0, 0.0)
    lean_x = jnp.where(inside, kept * base.lean_x + x, base.lean_x)
    lean_y = jnp.where(inside, kept * base.lean_y + y, base.lean_y)
    return lean_x, lean_y, end


# Search -----------------------------------------------------------------------------------------


def _search_one(
    model: Model,
    world: World,
    plans: Plan,
    costs: jax.Array,
    left: jax.Array,
    rounds: jax.Array,
    key: jax.Array,
) -> tuple[Plan, jax.Array]:
    """Look for better plans, for some generations or until one is good."""

    def unfinished(carry: Any) -> jax.Array:
        number, _, costs = carry
        return (number < rounds) & (costs[0] > GOOD)

    def generation(carry: Any) -> Any:
        number, plans, costs = carry
        tried = _candidates(plans, jax.random.fold_in(key, number))
        cost, used = followed(model, world, tried, left)
        tried = tried._replace(lean_x=used[0], lean_y=used[1])
        both = _joined(plans, tried), jnp.concatenate([costs, cost])
        return number + 1, *_best(*both)

    _, plans, costs = jax.lax.while_loop(unfinished, generation, (jnp.int32(0), plans, costs))
    return plans, costs


@jax.custom_batching.custom_vmap
def _search(
    model: Model,
    world: World,
    plans: Plan,
    costs: jax.Array,
    left: jax.Array,
    rounds: jax.Array,
    key: jax.Array,
) -> tuple[Plan, jax.Array]:
    return _search_one(model, world, plans, costs, left, rounds, key)


@_search.def_vmap
def _search_each(size: int, batched: Any, *arguments: Any) -> Any:
    """One lane after the other, so that those that need no search cost nothing."""
    filled = jax.tree.map(
        lambda leaf, has: leaf if has else jnp.broadcast_to(leaf, (size, *jnp.shape(leaf))),
        list(arguments),
        batched,
    )
    out = jax.lax.map(lambda lane: _search(*lane), filled)
    return out, jax.tree.map(lambda _: True, out)


mpc = Agent("mpc", _act, _init, _begin)
