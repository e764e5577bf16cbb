"""CartPole3D: balance a pole on a cart in a room full of flying blocks."""

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import backend, parameters, rng
from jaxsim.parameters import Values
from jaxsim.pytrees import Tree
from jaxsim.worlds.cartpole3d import dynamics, generate, sensors
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d.blocks import slots
from jaxsim.worlds.cartpole3d.levels import SAME_START
from jaxsim.worlds.cartpole3d.parameter_table import (
    PARAMETERS,
    needed_terms,
    params_from_values,
    slots_for,
)
from jaxsim.worlds.cartpole3d.terms import actions, delays
from jaxsim.worlds.cartpole3d.tick import (
    FREE,
    LEAVE,
    SINGLE,
    WALLED,
    Move,
    advance,
    free_tick,
    full_tick,
    single_tick,
    walled_tick,
)
from jaxsim.worlds.cartpole3d.types import (
    ACTIONS,
    DT,
    UNROLLED,
    Config,
    Observation,
    Params,
    Scalar,
    State,
    Vector,
)
from jaxsim.worlds.world import (
    FULL,
    RUNNING,
    TERMINATED,
    TRUNCATED,
    Attempt,
    World,
    all_finite,
    configure,
    ending,
    rows_of,
)

MOVES: dict[int, Move] = {
    FREE: free_tick,
    SINGLE: single_tick,
    WALLED: walled_tick,
}
"""Tick functions of the efforts below `FULL`."""

SEPARABLE = frozenset(
    {
        "actions",
        "attraction",
        "bounce",
        "closed_room",
        "late_pushes",
        "late_readings",
        "lines",
        "pole_wind",
        "wind",
    }
)
"""Terms that can be compiled out for lanes that do not use them."""

MOST_PARTS = 8
"""Most environments that the lanes of a batch are divided among, the simplest first."""

MANY_BLOCKS_LANES, MANY_BLOCKS_CHUNK = 2048, 64
"""Lanes of a device and of a chunk, on a CPU with stacked slots."""
ACCELERATOR_LANES, ACCELERATOR_GROUP = 65_536, 1024
"""Lanes of a device and of a group, on an accelerator with stacked slots; from its memory, not
measured."""

Step = tuple[Observation, State, jax.Array, jax.Array, jax.Array, dict[str, jax.Array]]


@dataclass(frozen=True)
class CartPole3D(World):
    """The environment; see `jaxsim.env` for the contract.

    A step is one tick of 0.02 s. The episode terminates when roll or pitch of the pole, as
    reported (one tick old), passes 10 degrees, and is truncated after 200 steps. The reward of
    step k is k/200; the performance is the last reward.
    """

    name = "CartPole3D"
    actions = ACTIONS

    config: Config = field(default_factory=Config)

    def dt(self, params: Params) -> Scalar:
        """Simulated time of one step, s."""
        return DT

    def start(self, key: jax.Array, params: Params) -> State:
        """Draw the state before the hidden first tick; see `jaxsim.env.Env.start`."""
        rng.words(key)  # rejects a raw key before its shape can fail to broadcast
        shape = jnp.broadcast_shapes(key.shape, *(jnp.shape(p) for p in jax.tree.leaves(params)))
        start = generate.draw(jnp.broadcast_to(key, shape), params, self.config)
        if "one_start" in self.config.terms:
            same_start = generate.wsu_start(0, SAME_START, dtype=self.config.dtype)
            same_start = generate.fitted(same_start, self.config)
            same_start = jax.tree.map(
                lambda leaf: leaf.reshape(leaf.shape + (1,) * len(shape)), same_start
            )
            same = params.novelty_level == SAME_START
            start = jax.tree.map(lambda a, b: jnp.where(same, a, b), same_start, start)
        return self.adopt(slots.outward(start), key, params)

    def adopt(self, state: State, key: jax.Array, params: Params) -> State:
        """Add this environment's sensors to a state from elsewhere, for example `from_wsu_seed`.

        Args:
          state: leaves () or (L,).
          key: () or (L,) typed key of the sensors' noise.
          params: sizes of that noise.

        Returns:
          The state; unchanged if it fits this environment already.
        """
        return sensors.attach(state, key, params, self.config.terms)

    def restart(self, key: jax.Array, start: State, params: Params) -> tuple[Observation, State]:
        """Begin an episode at a given start, for example `wsu_start(seed)`."""
        start = slots.inward(self.adopt(start, key, params))
        after = generate.begin(start, params, self.config, _tick_key(key))
        state = slots.outward(sensors.follow(after, params, self.config.terms))
        return sensors.observe(state), state

    def covering(self, other: "CartPole3D") -> "CartPole3D":
        """Return the environment that can play the episodes of both.

        Raises:
          ValueError: they differ in more than capacity and terms.
        """
        if not isinstance(other, CartPole3D):  # a wrapper exposes the configuration of its world
            raise ValueError(f"no environment covers both {self} and {other}")
        a, b = self.config, other.config
        terms = tuple(sorted({*a.terms, *b.terms}))
        both = replace(a, terms=terms, max_blocks=max(a.max_blocks, b.max_blocks))
        if replace(b, terms=terms, max_blocks=both.max_blocks) != both:
            raise ValueError(f"no environment covers both {a} and {b}")
        return CartPole3D(both)

    def observe(self, state: State) -> Observation:
        """Read the sensors of a state."""
        return sensors.observe(state)

    def step(self, key: jax.Array, state: State, action: jax.Array, params: Params) -> Step:
        """Advance one tick; see `jaxsim.env.Env.step`."""
        state = slots.inward(state)
        force, pushed = _apply_action(self.checked(action), params, self.config, state)
        new, _ = advance(params, self.config, _tick_key(key), pushed, force, ~state.done)
        return self._result(state, new, params)

    def quick_step(
        self, key: jax.Array, state: State, action: jax.Array, params: Params
    ) -> tuple[Step, jax.Array]:
        """Advance one tick with contacts of blocks and walls only; see `World.quick_step`."""
        if self.config.max_blocks > UNROLLED:
            return super().quick_step(key, state, action, params)
        force, pushed = _apply_action(self.checked(action), params, self.config, state)
        tick_key, running = _tick_key(key), ~state.done
        new, moved = advance(params, self.config, tick_key, pushed, force, running, free_tick)
        return self._result(state, new, params), moved.right | state.done

    @property
    def program_class(self) -> Hashable:
        """The configuration without terms and capacity, and the solver of contacts.

        Only single slots have cheap ticks, and lines make many blocks slower. Empty slots of many
        cost little.
        """
        stacked = self.config.stacked
        lines = stacked and "lines" in self.config.terms
        return replace(self.config, terms=(), max_blocks=UNROLLED), stacked, lines

    @property
    def layout(self) -> backend.Layout:
        """Sizes for a rollout: with many blocks, few lanes fill cache and memory."""
        usual = backend.layout()
        if self.config.max_blocks <= UNROLLED:
            return usual
        if backend.on_cpu():
            return usual._replace(lanes=MANY_BLOCKS_LANES, chunk=MANY_BLOCKS_CHUNK)
        lanes, group = ACCELERATOR_LANES, ACCELERATOR_GROUP
        groups = (group,) * len(usual.groups)
        return usual._replace(lanes=lanes, chunk=lanes, enough=lanes, groups=groups)

    @property
    def exact_sensors(self) -> bool:
        """Whether sensors report what is there in every episode, without errors or delay."""
        return not {"noise", "late_readings"} & {*self.config.terms}

    @property
    def efforts(self) -> tuple[int, ...]:
        """Efforts by terms and capacity; with stacked slots only the full one.

        The effort for walls is compiled only where blocks often leave the room; elsewhere it takes
        longer to compile than it saves, also with long poles and strong pushes. So it does with
        lines, whose friction makes it larger: at level 202 it takes some thirty seconds of the
        processor, and saves a tenth of the time of playing.
        """
        terms = self.config.terms
        if self.config.max_blocks > UNROLLED:
            return (FULL,)
        walled = () if LEAVE.isdisjoint(terms) or "lines" in terms else (WALLED,)
        return (FREE, SINGLE, *walled, FULL)

    def parts(self, params: Params) -> tuple[tuple[World, ...], np.ndarray]:
        """Environments with fewer terms; see `World.parts`."""
        separable = [term for term in self.config.terms if term in SEPARABLE]
        rows = rows_of(params)
        if not separable or len(self.efforts) == 1:
            return super().parts(params)
        needed = needed_terms(params)
        flags = np.stack([np.broadcast_to(needed[term], rows) for term in separable], axis=-1)
        sets, place = np.unique(flags, axis=0, return_inverse=True)
        order = np.argsort(sets.sum(axis=1), kind="stable")[: MOST_PARTS - 1]
        parts: list[World] = []
        number = np.full(rows, -1, np.int32)
        for index in order:
            idle = {term for term, used in zip(separable, sets[index], strict=True) if not used}
            if idle:
                number[place.reshape(-1) == index] = len(parts)
                terms = tuple(term for term in self.config.terms if term not in idle)
                parts.append(CartPole3D(replace(self.config, terms=terms)))
        number[number < 0] = len(parts)
        return (*parts, self), number

    def carried(self, state: State) -> Tree:
        """The part of a state that its observation and the next running step read."""
        removed: Any = {"step": None, "done": None}
        return replace(state, **removed)

    def resumed(self, carried: Tree, length: jax.Array) -> State:
        """The full state from its carried part."""
        return replace(carried, step=length, done=length >= self.max_steps)

    def attempt(
        self,
        key: jax.Array,
        state: State,
        action: jax.Array,
        params: Params,
        active: jax.Array,
        effort: int,
    ) -> Attempt:
        """Advance running episodes by one tick; see `World.attempt`."""
        state = slots.inward(state)
        force, pushed = _apply_action(self.checked(action), params, self.config, state)
        tick_key, move = _tick_key(key), MOVES.get(effort, full_tick)
        new, moved = advance(params, self.config, tick_key, pushed, force, active, move)
        if effort == FULL:
            result = self._result(replace(state, done=~active), new, params)
            return Attempt(result[1], ending(result), active)
        new = sensors.follow(new, params, self.config.terms)
        otherwise = jnp.where(new.step >= self.max_steps, TRUNCATED, RUNNING)
        ended = jnp.where(_fallen(new, params), TERMINATED, otherwise)
        # Efforts are their own indices; one that does not exist here is a full tick.
        needs = jnp.minimum(moved.needs, len(self.efforts) - 1)
        return Attempt(slots.outward(new), ended, moved.right, needs)

    def score(self, length: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Sum of the rewards and performance of an episode by its length; (...) each."""
        steps = length.astype(self.config.dtype)
        return steps * (steps + 1) / (2 * self.max_steps), steps / self.max_steps

    def step_reward(self, number: jax.Array) -> jax.Array:
        """Reward of a step by its number; (...)."""
        return number.astype(self.config.dtype) / self.max_steps

    def _result(self, state: State, new: State, params: Params) -> Step:
        """Result of `step` from the states before and after the tick; episodes end in it."""
        running = ~state.done
        one = backend.opaque_one(state.pose.x)
        new = sensors.follow(new, params, self.config.terms)
        # The reported pose is left out, as it is from the last tick. (A test of the whole old state
        # halves the speed: 490,000 steps a second against 1,110,000, 1,024 lanes on one busy core.)
        read = {"reported": (), "late": slots.late_finiteness(new) if new.late else ()}
        numbers = vars(new) | read | {"blocks": slots.finiteness(new)}
        finite = backend.mask(all_finite(numbers, jnp.ndim(state.step)), one)
        end = self.ends(
            state,
            new,
            fallen=backend.mask(_fallen(new, params), one),
            finite=finite,
            fell_before=state.done & _fallen(state, params),
        )
        share = (state.step + running).astype(self.config.dtype) / self.config.max_steps
        info = {"performance": share, "nonfinite": end.nonfinite}
        reward = jnp.where(running, share, 0.0)
        new = slots.outward(end.state)
        return sensors.observe(new), new, reward, end.terminated, end.truncated, info


def _tick_key(key: jax.Array) -> rng.Words:
    """Counter key of one tick, different from those of the start but for that of its lines.

    They share it where start and hidden tick have one key, as in `reset`: the line of the first
    block and the random pull of that tick then follow from one number.
    """
    return rng.fold(rng.words(key), 1)


def _apply_action(
    action: jax.Array, params: Params, config: Config, state: State
) -> tuple[Vector, State]:
    """Force on the cart, N, and the state, which stores the push where pushes are delayed.

    Raises:
      ValueError: a state without the sensors or pushes of this environment.
    """
    sensors.check(state, config.terms)
    if "late_pushes" in config.terms:
        action, state = delays.due(state, action, params)
    return _force(action, params, config, state), state


def _force(action: jax.Array, params: Params, config: Config, state: State) -> Vector:
    """Force on the cart, N, world frame at any yaw; the drawn push in the hidden tick."""
    zero = jnp.zeros_like(state.pose.x)
    size = params.force * params.action_sign
    x = jnp.where(action == 1, size, jnp.where(action == 2, -size, zero))
    y = jnp.where(action == 3, size, jnp.where(action == 4, -size, zero))
    if "actions" in config.terms:
        x, y = actions.redirect(params, x, y)
    hidden = state.step < 0
    push = state.push
    return Vector(jnp.where(hidden, push.x, x), jnp.where(hidden, push.y, y), zero)


def _fallen(state: State, params: Params) -> jax.Array:
    """The end test, on the pole before the last tick."""
    old = state.reported
    r = geo.rotation(old.qx, old.qy, old.qz, old.qw)
    return (state.step > 0) & dynamics.has_fallen(r, params.lean_limit)


def make(values: Values, *, host: bool = False, **options: Any) -> tuple[CartPole3D, Params]:
    """Build the environment and its parameters, for `jaxsim.make`.

    Args:
      values: parameters by path, already checked against the table.
      host: whether parameters stay NumPy arrays, which is faster to stack.
      **options: `level` (200) and `difficulty` as shorthands of the parameters `novelty/level`
        and `novelty/difficulty`; `max_blocks`, `max_steps`, `dtype` and `engine` of `Config`.
        `max_blocks` defaults to the smallest usual capacity that holds every episode.

    Raises:
      ValueError: an unknown or invalid option.
    """
    shorthands = {"level": "novelty/level", "difficulty": "novelty/difficulty"}
    by_shorthand = {shorthands[k]: options.pop(k) for k in list(options) if k in shorthands}
    parameters.check(PARAMETERS, by_shorthand)
    values = {**values, **by_shorthand}
    if options.get("max_blocks") is None:
        options["max_blocks"] = slots_for(values, options.get("max_steps", Config().max_steps))
    params, config = params_from_values(values, configure(Config, options, shorthands), host)
    return CartPole3D(config), params


__all__ = ["PARAMETERS", "CartPole3D", "make"]
