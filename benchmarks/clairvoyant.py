"""`clairvoyant`: the planner of `mpc` with full information, as a reference for agents.

It gets the simulator's state and the level's parameters, which no agent may see, and it searches
four times as much. It does not know future random draws (blocks that will appear, and the forces of
level 105, of which it expects the mean), friction, or the wind on blocks. It is not an upper bound:
it is a random search, with the planner's contacts.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.agents import Agent, NoveltyPrediction, mpc, repair, sight
from jaxsim.agents.lookahead import BodyState, ForceField, LeanPlan, Model, Pushes, ahead
from jaxsim.agents.mpc import Budget
from jaxsim.pytrees import Leaf
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d.terms import actions, delays, wind
from jaxsim.worlds.cartpole3d.types import (
    Observation,
    Params,
    Pose,
    Sphere,
    State,
    Vector,
    Velocity,
)

BUDGET = Budget(candidates=64, generations=36, first=192)


class Everything(NamedTuple):
    """Input of the planner in place of an observation."""

    observation: Observation
    state: State
    params: Params


class PlannerMemory(NamedTuple):
    """Memory of the planner from tick to tick."""

    tick: jax.Array  # () int32
    plans: LeanPlan
    rollouts: jax.Array  # () int32, futures followed in the episode


@dataclass(frozen=True)
class Opened:
    """An environment whose observations are `Everything`; `params` has leaves (L,)."""

    env: Any
    params: Params

    def start(self, key: jax.Array, params: Params) -> State:
        """Draw a start; see `jaxsim.env.Env.start`."""
        return self.env.start(key, params)

    def observe(self, state: State) -> Everything:
        """Return the observation with state and parameters."""
        return Everything(self.env.observe(state), state, self.params)

    def step(self, key: jax.Array, state: State, action: jax.Array, params: Params) -> Any:
        """Advance one step; see `jaxsim.env.Env.step`."""
        observation, state, *rest = self.env.step(key, state, action, params)
        return Everything(observation, state, params), state, *rest


def _model(params: Params, state: State) -> Model:
    """The true physics, as far as the planner models them."""
    bounce = [c + state.extra_bounce for c in (params.restitution_wall, params.restitution_block)]
    physics = replace(
        params,
        block_mass=jnp.minimum(params.block_mass, repair.HEAVY),
        restitution_wall=bounce[0],
        restitution_block=bounce[1],
    )
    zero = jnp.zeros_like(params.pull_cart)
    centroid = params.pull_centroid + 0.5 * params.pull_centroid_random
    field = ForceField(zero, params.pull_cart, centroid, params.pull_origin)
    size = params.force * params.action_sign
    directions = ((size, jnp.zeros_like(size)), (jnp.zeros_like(size), size))
    pushes = Pushes.of(*(actions.redirect(params, x, y) for x, y in directions))
    delay = jnp.asarray(params.action_delay).astype(jnp.int32)
    on_cart = wind.on_cart(params, state)
    return Model(physics, pushes, delay, on_cart, field, params.line_far > 0)


def _world(state: State) -> BodyState:
    """Poses of all bodies in the planner's frame, in which carts do not turn."""
    p, v = state.pose, state.velocity
    c, s = p.half_cos, p.half_sin
    turned = (c * p.qx - s * p.qy, c * p.qy + s * p.qx, c * p.qz + s * p.qw, c * p.qw - s * p.qz)
    pose = Pose(p.x, p.y, jnp.ones_like(p.x), jnp.zeros_like(p.x), *turned)
    moving = geo.yaw(p.cos, p.sin, Vector(v.vx, v.vy, jnp.zeros_like(v.vx)))
    velocity = Velocity(moving.x, moving.y, moving.z, v.wx, v.wy, v.wz)
    return BodyState(pose, velocity, _blocks(state))


def _blocks(state: State) -> Sphere:
    """All blocks in the planner's form, (N,)."""

    def joined(leaves: Leaf) -> jax.Array:
        return jnp.concatenate([jnp.atleast_1d(leaf) for leaf in leaves])

    p = Vector(*map(joined, zip(*(block.p for block in state.blocks), strict=True)))
    v = Vector(*map(joined, zip(*(block.v for block in state.blocks), strict=True)))
    return Sphere(p, v, joined(block.alive for block in state.blocks))


def _act(
    memory: PlannerMemory, everything: Everything, key: jax.Array
) -> tuple[jax.Array, NoveltyPrediction, PlannerMemory]:
    view = sight.see(everything.observation)
    now = mpc.crowded(_world(everything.state), everything.observation)
    model = _model(everything.params, everything.state)
    world = ahead(model, now, delays.last(everything.state), model.delay)
    remaining = mpc.STEPS - memory.tick - model.delay
    useful = ~mpc.fallen(view) & (remaining > 0)
    # It searches in full in every tick, stuck or not.
    rounds = mpc.generations(BUDGET, memory.tick, jnp.asarray(False), useful)
    new = mpc.replan(BUDGET.candidates, model, world, memory.plans, remaining, rounds, key)
    action = mpc.push(model, world, new.plans).astype(jnp.int32)
    after = PlannerMemory(memory.tick + 1, new.plans, memory.rollouts + new.rollouts)
    return action, NoveltyPrediction.none(), after


def _init(key: jax.Array) -> PlannerMemory:
    return PlannerMemory(jnp.int32(0), mpc.home(mpc.ELITES), jnp.int32(0))


def _begin(memory: PlannerMemory, key: jax.Array) -> PlannerMemory:
    return _init(key)


clairvoyant = Agent("clairvoyant", _act, _init, _begin)
