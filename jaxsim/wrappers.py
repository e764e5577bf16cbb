"""Wrappers for learners: automatic reset, time limits, and observations as vectors.

Wrappers follow the contract of `jaxsim.env` themselves, so they stack, batches go in directly, and
a wrapped environment is hashable. The order is free but for `AutoReset`, which stands above a
`TimeLimit` and never above another `AutoReset`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar, get_args

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import backend, rng, spaces
from jaxsim.inputs import check_whole
from jaxsim.pytrees import Leaf, Observation, Params, State, Step, Tree

T = TypeVar("T")

Mode = Literal["same_step", "next_step", "freeze"]
Make = Callable[[jax.Array, Params], Tree]

SMALLEST_GROUP = 32  # lanes that are reset together, a multiple of the SIMD width
GROUPS = 16  # that cover a batch of any size; about one step in 50 ends an episode
_RESET = 0x7E5E7  # counter that tells the key of a reset from the other uses of a step's key


def reset_key(key: jax.Array) -> jax.Array:
    """Key of the episode that a step starts.

    A step with `key` that resets gives exactly the episode of `env.reset(reset_key(key), params)`.

    Args:
      key: () or (L,) typed key of the step.

    Returns:
      Typed key of the same shape, independent of all else that is drawn from `key`.
    """
    return rng.to_key(rng.fold(rng.words(key), _RESET))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class AutoResetState:
    """State of `AutoReset`.

    Attributes:
      inner: state of the wrapped environment.
      over: () or (L,) bool, the episode has ended and the next step starts another.
    """

    inner: State
    over: jax.Array


@dataclass(frozen=True)
class Wrapper:
    """Base of wrappers; it passes all calls on to another environment.

    Attributes:
      env: the wrapped environment.
    """

    env: Any

    @property
    def name(self) -> str:
        """Task name."""
        return self.env.name

    @property
    def config(self) -> Any:
        """Static configuration."""
        return self.env.config

    @property
    def num_actions(self) -> int:
        """Number of actions."""
        return self.env.num_actions

    @property
    def max_steps(self) -> int:
        """Steps after which an episode is truncated."""
        return self.env.max_steps

    def dt(self, params: Params) -> Leaf:
        """Return the simulated time of one step, s."""
        return self.env.dt(params)

    def start(self, key: jax.Array, params: Params) -> State:
        """Draw the state before the hidden first step; see `jaxsim.env.Env.start`."""
        return self.env.start(key, params)

    def observe(self, state: State) -> Observation:
        """Return the observation of a state."""
        return self.env.observe(state)

    def reset(self, key: jax.Array, params: Params) -> tuple[Observation, State]:
        """Start an episode; see `jaxsim.env.Env.reset`."""
        return self.env.reset(key, params)

    def step(self, key: jax.Array, state: State, action: jax.Array, params: Params) -> Step:
        """Advance one step; see `jaxsim.env.Env.step`."""
        return self.env.step(key, state, action, params)


@dataclass(frozen=True)
class WorldWrapper(Wrapper):
    """A wrapper of a world that is one itself for rollouts; see `jaxsim.worlds.world.World`.

    It adds `parts` and `attempt`.
    """

    @property
    def layout(self) -> backend.Layout:
        """Sizes that suit a rollout on the present backend."""
        return self.env.layout

    @property
    def efforts(self) -> tuple[int, ...]:
        """Kinds of `attempt`, the cheapest first."""
        return self.env.efforts

    def carried(self, state: State) -> State:
        """Part of a state that the next step of a running episode reads."""
        return self.env.carried(state)

    def resumed(self, carried: State, length: jax.Array) -> State:
        """Rebuild a state for the next step from its carried part."""
        return self.env.resumed(carried, length)

    def score(self, length: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Sum of the rewards and performance of an episode by its length; (...) each."""
        return self.env.score(length)

    def step_reward(self, number: jax.Array) -> jax.Array:
        """Reward of a step by its number; (...)."""
        return self.env.step_reward(number)


@dataclass(frozen=True)
class AutoReset(Wrapper):
    """Starts a new episode when one has ended, each with fresh randomness from the step's key.

    Modes:
      same_step: the step that ends an episode also starts the next. It returns the first
        observation of the new episode, with reward, flags and info of the ended one and its last
        observation in `info["final_obs"]` (equal to the observation where no episode ended).
      next_step: the step after the end starts the next episode: it ignores its action and returns
        the first observation with reward 0 and both flags False.
      freeze: an ended episode stays as it is, as without the wrapper.

    Cost: the hidden first step makes a reset as expensive as a step, and drawing a start three
    times as expensive. `next_step` uses the environment's step as that first step and draws starts
    for the ended lanes alone, packed into groups of a sixteenth of the batch, at least 32.
    `same_step` resets the ended lanes in such groups, which takes a second copy of the step in the
    compiled program. On a batch of 1,024 lanes of CartPole3D (XLA:CPU, `cost_analysis()` of the
    compiled step, a loop's body counted once), flops per lane: 2,452 without automatic reset,
    3,443 with `next_step`, 5,040 with `same_step`, and 23,494 where every lane is reset in every
    step and one result selected. Give batches directly: `jax.vmap` of a scalar step comes to
    the last of these.

    A batch with one key for all lanes starts the same episode in all lanes that end together;
    give each lane its own.

    Attributes:
      env: the wrapped environment, without an `AutoReset`.
      mode: as above.
    """

    mode: Mode = "same_step"

    def __post_init__(self) -> None:
        """Refuse an unknown mode, and an environment that resets itself."""
        if self.mode not in get_args(Mode):
            allowed = ", ".join(repr(mode) for mode in get_args(Mode))
            raise ValueError(f"autoreset mode is {self.mode!r}; it must be one of {allowed}")
        if has_auto_reset(self.env):
            raise ValueError("the environment has an AutoReset; wrap the environment without one")

    def start(self, key: jax.Array, params: Params) -> AutoResetState:
        """Draw the state before the hidden first step."""
        return AutoResetState(self.env.start(key, params), jnp.zeros(_batch(key, params), bool))

    def observe(self, state: AutoResetState) -> Observation:
        """Return the observation of a state."""
        return self.env.observe(state.inner)

    def reset(self, key: jax.Array, params: Params) -> tuple[Observation, AutoResetState]:
        """Start an episode."""
        observation, inner = self.env.reset(key, params)
        return observation, AutoResetState(inner, jnp.zeros(_batch(key, params), bool))

    def step(
        self, key: jax.Array, state: AutoResetState, action: jax.Array, params: Params
    ) -> Step:
        """Advance one step, or start an episode, according to the mode."""
        inner = state.inner
        if self.mode == "next_step":
            key, inner = self._restarted(key, state, params)
        observation, inner, reward, terminated, truncated, info = self.env.step(
            key, inner, action, params
        )
        over = terminated | truncated
        if self.mode == "same_step":
            info = {**info, "final_obs": observation}
            keys = jnp.broadcast_to(reset_key(key), over.shape)
            ended = (observation, inner)
            observation, inner = _replace_where(over, self.env.reset, keys, params, ended)
        state = AutoResetState(inner, over & (self.mode == "next_step"))
        return observation, state, reward, terminated, truncated, info

    def _restarted(
        self, key: jax.Array, state: AutoResetState, params: Params
    ) -> tuple[jax.Array, State]:
        """Replace ended episodes by new starts, with the keys of their hidden steps."""
        over = state.over
        keys = jnp.broadcast_to(key, over.shape)
        fresh = reset_key(keys)
        started = _replace_where(over, self.env.start, fresh, params, state.inner)
        return jnp.where(over, fresh, keys), started


def has_auto_reset(env: Any) -> bool:
    """Tell whether an environment or one that it wraps is an `AutoReset`."""
    while env is not None and not isinstance(env, AutoReset):
        env = getattr(env, "env", None)
    return env is not None


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TimeLimitState:
    """State of `TimeLimit`.

    Attributes:
      inner: state of the wrapped environment.
      count: () or (L,) int32, steps so far; -1 before the hidden first step.
      performance: () or (L,) float32, the task's score so far.
    """

    inner: State
    count: jax.Array
    performance: jax.Array

    @classmethod
    def at(cls, inner: State, count: int, shape: tuple[int, ...]) -> "TimeLimitState":
        """Start counting at a state of the wrapped environment."""
        return cls(inner, jnp.full(shape, count, jnp.int32), jnp.zeros(shape))


@dataclass(frozen=True)
class TimeLimit(Wrapper):
    """Truncates episodes before the environment does; rewards and performance do not change.

    Attributes:
      env: the wrapped environment, without an `AutoReset`.
      steps: most steps of an episode, at least 1.
    """

    steps: int = 1

    def __post_init__(self) -> None:
        """Refuse a limit below one step, and an environment that resets itself."""
        check_whole("limit of steps", self.steps, 1)
        if has_auto_reset(self.env):
            raise ValueError(
                "a time limit counts the steps of one episode; write AutoReset(TimeLimit(env, "
                f"{self.steps}))"
            )

    @property
    def max_steps(self) -> int:
        """Steps after which an episode is truncated."""
        return min(self.steps, int(self.env.max_steps))

    def start(self, key: jax.Array, params: Params) -> TimeLimitState:
        """Draw the state before the hidden first step."""
        return TimeLimitState.at(self.env.start(key, params), -1, _batch(key, params))

    def observe(self, state: TimeLimitState) -> Observation:
        """Return the observation of a state."""
        return self.env.observe(state.inner)

    def reset(self, key: jax.Array, params: Params) -> tuple[Observation, TimeLimitState]:
        """Start an episode."""
        observation, inner = self.env.reset(key, params)
        return observation, TimeLimitState.at(inner, 0, _batch(key, params))

    def step(
        self, key: jax.Array, state: TimeLimitState, action: jax.Array, params: Params
    ) -> Step:
        """Advance one step; from the limit on nothing changes, as after any other end."""
        cut = state.count >= self.steps
        observation, inner, reward, terminated, truncated, info = self.env.step(
            key, state.inner, action, params
        )

        def select(new: jax.Array, old: jax.Array) -> jax.Array:
            return jnp.where(cut.reshape(cut.shape + (1,) * (new.ndim - cut.ndim)), old, new)

        inner = jax.tree.map(select, inner, state.inner)
        observation = jax.tree.map(select, observation, self.env.observe(state.inner))
        count = jnp.where(cut | terminated | truncated, state.count, state.count + 1)
        limit = cut | (~(terminated | truncated) & (count >= self.steps))
        performance = jnp.where(cut, state.performance, info["performance"])
        info = {**info, "performance": performance, "nonfinite": info["nonfinite"] & ~cut}
        after = TimeLimitState(inner, count, performance.astype(jnp.float32))
        flags = terminated & ~limit, truncated | limit
        return observation, after, jnp.where(cut, 0.0, reward), *flags, info


@dataclass(frozen=True)
class FlattenObservation(Wrapper):
    """Observations, and `info["final_obs"]` if present, as vectors; see `spaces.flatten`."""

    def observe(self, state: State) -> jax.Array:
        """Return the observation of a state, (..., D)."""
        return spaces.flatten(self.env, self.env.observe(state))

    def reset(self, key: jax.Array, params: Params) -> tuple[jax.Array, State]:
        """Start an episode; the observation is (..., D)."""
        observation, state = self.env.reset(key, params)
        return spaces.flatten(self.env, observation), state

    def step(self, key: jax.Array, state: State, action: jax.Array, params: Params) -> Step:
        """Advance one step; the observation is (..., D)."""
        observation, state, *rest, info = self.env.step(key, state, action, params)
        if "final_obs" in info:
            info = {**info, "final_obs": spaces.flatten(self.env, info["final_obs"])}
        reward, terminated, truncated = rest
        return spaces.flatten(self.env, observation), state, reward, terminated, truncated, info


@spaces.flatten.register
def _(env: Wrapper, observation: Observation) -> jax.Array:
    return spaces.flatten(env.env, observation)


@spaces.flatten.register
def _(env: FlattenObservation, observation: Observation) -> jax.Array:
    return observation


@spaces.unflatten.register
def _(env: Wrapper, params: Params, vector: Leaf) -> Observation:
    return spaces.unflatten(env.env, params, vector)


@spaces.unflatten.register
def _(env: FlattenObservation, params: Params, vector: Leaf) -> Observation:
    return vector


@spaces.bounds.register
def _(env: Wrapper, params: Params) -> tuple[np.ndarray, np.ndarray]:
    return spaces.bounds(env.env, params)


def _batch(key: jax.Array, params: Params) -> tuple[int, ...]:
    """Batch shape of the results of `start` and `reset`."""
    return jnp.broadcast_shapes(key.shape, *(jnp.shape(leaf) for leaf in jax.tree.leaves(params)))


def _replace_where(over: jax.Array, make: Make, key: jax.Array, params: Params, old: T) -> T:
    """Replace the lanes of a pytree that are over.

    Ended lanes are packed into groups, so that the cost of `make` follows their number. A gather
    for every lane unpacks a group: on XLA:CPU a scatter of each leaf is slower.

    Args:
      over: () or (L,) bool.
      make: elementwise function of keys and params that returns the same structure as `old`.
      key: typed key, of the shape of `over`.
      params: leaves () or (L,).
      old: leaves of the shape of `over`, and any trailing one.
    """
    if over.ndim == 0:
        return jax.lax.cond(over, lambda: make(key, params), lambda: old)
    lanes = over.shape[0]
    size = min(lanes, max(SMALLEST_GROUP, lanes // GROUPS))

    def replace_group(carry: tuple[jax.Array, T]) -> tuple[jax.Array, T]:
        pending, result = carry
        slot = jnp.cumsum(pending) - 1
        # Slots of a group without a lane repeat the last lane and are not used.
        index = jnp.nonzero(pending, size=size, fill_value=lanes - 1)[0]
        fresh = make(*jax.tree.map(partial(_take, index), (key, params)))
        member = pending & (slot < size)

        def back(new: jax.Array, was: jax.Array) -> jax.Array:
            lane = member.reshape(lanes, *(1,) * (was.ndim - 1))
            return jnp.where(lane, new.at[slot].get(mode="clip"), was)

        return pending & ~member, jax.tree.map(back, fresh, result)

    return jax.lax.while_loop(lambda carry: jnp.any(carry[0]), replace_group, (over, old))[1]


def _take(index: jax.Array, leaf: jax.Array) -> jax.Array:
    """Gather lanes of a leaf; a scalar is shared by all lanes."""
    return leaf.at[index].get(mode="clip") if jnp.ndim(leaf) else leaf
