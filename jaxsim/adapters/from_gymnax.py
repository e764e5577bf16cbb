"""Environments of gymnax as tasks of this package. Needs the extra `gymnax`.

env, params = jaxsim.make("gymnax/Breakout-MinAtar", {"max_steps_in_episode": 200})
observation, state = env.reset(key, params)

Parameters are the numbers of the environment's `EnvParams`, by name, and two that define its
performance: the returns that count as 0 (``score/low``) and as 1 (``score/high``).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import prod
from typing import Any, Final, TypeVar

import jax
import jax.numpy as jnp

from jaxsim import parameters, rng
from jaxsim.env_spec import GYMNAX, EnvSpec
from jaxsim.parameters import Parameter, Values
from jaxsim.pytrees import Leaf, Observation, Tree
from jaxsim.worlds.world import all_finite

T = TypeVar("T")

try:
    from gymnax import registration
    from gymnax.environments import spaces
except ImportError as error:
    raise ValueError(
        f"tasks {GYMNAX}... need gymnax 1.0 or newer: pip install 'jaxsim-novelty[gymnax]'"
    ) from error

LARGEST: Final = 1_000_000_000
"""Largest absolute value of a parameter."""
LONGEST: Final = 1_000_000
"""Steps of the longest episode."""
STEPS: Final = "max_steps_in_episode"
LOW, HIGH = "score/low", "score/high"
STEP_SECONDS: Final = 1.0
"""Simulated time of a step: gymnax has no common unit, so steps are counted."""

Step = tuple[Observation, "TaskState", jax.Array, jax.Array, jax.Array, dict[str, jax.Array]]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TaskParams:
    """Parameters of a task.

    Attributes:
      inner: the environment's own, `EnvParams`.
      low: return that is performance 0.
      high: return that is performance 1.
      novelty_level: 0, because the novelty catalogue has no level of these environments.
    """

    inner: Tree
    low: Leaf
    high: Leaf
    novelty_level: Leaf


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TaskState:
    """State of a task, leaves () or (L,).

    Attributes:
      inner: of the environment.
      observation: of the state.
      step: int32, -1 before the hidden first step.
      total: float32, sum of the rewards.
      terminated: bool, the task has ended.
      truncated: bool, a limit was reached.
      nonfinite: bool, a number that is not finite has ended the episode.
    """

    inner: Tree
    observation: Observation
    step: jax.Array
    total: jax.Array
    terminated: jax.Array
    truncated: jax.Array
    nonfinite: jax.Array


@dataclass(frozen=True)
class GymnaxTask:
    """An environment of gymnax with discrete actions; see `jaxsim.env` for the contract.

    Attributes:
      name: of the task, as "gymnax/Breakout-MinAtar".
      max_steps: of the longest episode.
      size: length of observations that are flattened and padded with zeros, so that several tasks
        share it; 0 for unchanged observations.
      codes: number of action codes, 0 for the environment's; codes beyond these are action 0.
    """

    name: str
    max_steps: int
    size: int = 0
    codes: int = 0

    @property
    def num_actions(self) -> int:
        """Actions are the integers from 0 to this, exclusive."""
        return self.codes or _gymnax_env(self.name)[0].num_actions

    @property
    def numbers(self) -> int:
        """Numbers of an observation, flattened."""
        env, params = _gymnax_env(self.name)
        observation, _ = jax.eval_shape(env.reset_env, jax.random.key(0), params)
        return sum(prod(leaf.shape) for leaf in jax.tree.leaves(observation))

    def covering(self, other: Any) -> "GymnaxTask":
        """Return an environment that covers both.

        Raises:
          ValueError: there is none.
        """
        longer = replace(self, max_steps=max(self.max_steps, getattr(other, "max_steps", 0)))
        if replace(longer, max_steps=0) != replace(other, max_steps=0):
            raise ValueError(f"{self.name} does not play {other}")
        return longer

    def dt(self, params: TaskParams) -> float:
        """Simulated time of one step, s."""
        return STEP_SECONDS

    def start(self, key: jax.Array, params: TaskParams) -> TaskState:
        """Draw the state before the hidden first step; see `jaxsim.env.Env.start`."""
        return self._over_lanes(self._start, params, key)

    def observe(self, state: TaskState) -> Observation:
        """Return the observation of a state."""
        return state.observation

    def reset(self, key: jax.Array, params: TaskParams) -> tuple[Observation, TaskState]:
        """Start an episode; see `jaxsim.env.Env.reset`."""
        start = self.start(key, params)
        observation, state, *_ = self.step(key, start, jnp.zeros_like(start.step), params)
        return observation, state

    def step(self, key: jax.Array, state: TaskState, action: jax.Array, params: TaskParams) -> Step:
        """Advance one step; see `jaxsim.env.Env.step`."""
        return self._over_lanes(self._step, params, key, state, action)

    def _over_lanes(
        self, function: Callable[..., T], params: TaskParams, key: jax.Array, *arguments: Tree
    ) -> T:
        """Call a function of one lane for a lane, or for each of a batch."""
        rng.words(key)  # refuses a raw key
        if not key.ndim:
            return function(params, key, *arguments)
        defaults = default_params(self.name)
        axes = jax.tree.map(lambda leaf, one: 0 if leaf.ndim > one.ndim else None, params, defaults)
        return jax.vmap(function, in_axes=(axes, 0, *(0 for _ in arguments)))(
            params, key, *arguments
        )

    def _start(self, params: TaskParams, key: jax.Array) -> TaskState:
        observation, inner = _gymnax_env(self.name)[0].reset_env(key, params.inner)
        no, zero = jnp.zeros((), bool), jnp.zeros((), jnp.float32)
        inner = jax.tree.map(_strong, inner)
        return TaskState(inner, self._observed(observation), jnp.full((), -1), zero, no, no, no)

    def _step(
        self, params: TaskParams, key: jax.Array, state: TaskState, action: jax.Array
    ) -> Step:
        env, _ = _gymnax_env(self.name)
        running, hidden = ~(state.terminated | state.truncated), state.step < 0
        action = jnp.where(action < env.num_actions, action, 0)
        observation, inner, reward, over, _ = env.step_env(key, state.inner, action, params.inner)
        reward = jnp.asarray(reward, jnp.float32)
        at_limit = env.is_truncated(inner, params.inner) | (state.step + 1 >= self.max_steps)
        after = (inner, self._observed(observation), state.total + reward)
        before = (state.inner, state.observation, state.total)
        finite = jnp.where(hidden, all_finite(before, 0), all_finite(after, 0))
        plays = running & ~hidden & finite
        reward = jnp.where(plays, reward, 0.0)

        def select(new: T, old: T) -> T:
            return jax.tree.map(lambda n, o: jnp.where(plays, n, o).astype(o.dtype), new, old)

        nonfinite = state.nonfinite | (running & ~finite)
        new = TaskState(
            select(inner, state.inner),
            select(after[1], state.observation),
            state.step + running,
            select(after[2], state.total),
            state.terminated | (plays & over),
            state.truncated | (plays & at_limit) | nonfinite,
            nonfinite,
        )
        share = (new.total - params.low) / (params.high - params.low)
        info = {"performance": jnp.clip(share, 0.0, 1.0), "nonfinite": nonfinite}
        return new.observation, new, reward, new.terminated, new.truncated, info

    def _observed(self, observation: Observation) -> Observation:
        """The observation for agents, flattened and padded if `size` is set."""
        if not self.size:
            return jax.tree.map(_strong, observation)
        leaves = [jnp.ravel(leaf).astype(jnp.float32) for leaf in jax.tree.leaves(observation)]
        flat = jnp.concatenate(leaves)
        return jnp.pad(flat, (0, self.size - flat.size))


def _strong(leaf: Leaf) -> jax.Array:
    """An array without a weak type."""
    return jnp.asarray(leaf, jnp.asarray(leaf).dtype)


def alike(envs: Sequence[GymnaxTask]) -> list[GymnaxTask]:
    """Give environments one length of observations and one number of actions, for one agent."""
    size, codes = (max(getattr(env, name) for env in envs) for name in ("numbers", "num_actions"))
    return [replace(env, size=size, codes=codes) for env in envs]


@lru_cache
def _gymnax_env(name: str) -> tuple[Any, Any]:
    """The environment of a task with its default parameters.

    Raises:
      ValueError: gymnax has none, cannot make it, or its actions are not integers.
    """
    inner = name.removeprefix(GYMNAX)
    if inner not in registration.registered_envs:
        names = [f"{GYMNAX}{other}" for other in registration.registered_envs]
        raise ValueError(parameters.unknown("task", name, names))
    try:
        env, params = registration.make(inner)
    except Exception as error:  # one downloads its data
        raise ValueError(f"gymnax cannot make {inner}: {error}") from error
    if not isinstance(env.action_space(params), spaces.Discrete):
        raise ValueError(
            f"task {name!r} has actions that are not integers, and all agents here give integers; "
            "use one with discrete actions"
        )
    return env, params


@lru_cache
def spec(name: str) -> EnvSpec:
    """Return the entry of a task in the registry.

    Raises:
      ValueError: gymnax has no such environment, or none with discrete actions.
    """
    table = {row.path: row for row in _rows(_gymnax_env(name)[1])}
    steps = table[STEPS].default
    defaults = {path: row.default for path, row in table.items()}

    def fill(values: Values) -> Values:
        return defaults | {HIGH: float(values.get(STEPS, steps))} | dict(values)

    def check(values: Values) -> None:
        low, high = fill(values)[LOW], fill(values)[HIGH]
        if not low < high:
            raise ValueError(f"{LOW} is {low} and {HIGH} is {high}; {HIGH} must be the higher")

    limits = frozenset((STEPS, LOW, HIGH))
    return EnvSpec(name, partial(_make, name), table, fill, check, limits)


def _rows(params: object) -> list[Parameter]:
    rows = []
    for name, value in vars(params).items():
        text = "of gymnax' EnvParams"
        if name == STEPS:
            row = Parameter(name, int(value), "steps", 1, LONGEST, description=text)
        elif isinstance(value, bool):
            row = Parameter(name, int(value), choices=(0, 1), description=text)
        elif isinstance(value, int | float):
            row = Parameter(name, value, "", -LARGEST, LARGEST, description=text)
        else:  # an array
            continue
        rows.append(row)
    longest = float(getattr(params, STEPS))
    low = "return that is performance 0"
    high = "return that is performance 1; as many as an episode has steps if it is not set"
    return [
        *rows,
        Parameter(LOW, 0.0, "", -LARGEST, LARGEST, description=low),
        Parameter(HIGH, longest, "", -LARGEST, LARGEST, description=high),
    ]


def default_params(name: str, values: Values | None = None) -> TaskParams:
    """Parameters of a task, with some values by path."""
    filled = spec(name).fill(values or {})
    defaults = _gymnax_env(name)[1]
    settings = {
        field: type(value)(filled[field])
        for field, value in vars(defaults).items()
        if field in filled
    }
    inner = jax.tree.map(_strong, defaults.replace(**settings))
    low, high = (jnp.float32(filled[end]) for end in (LOW, HIGH))
    return TaskParams(inner, low, high, jnp.int32(0))


def _make(name: str, values: Values) -> tuple[GymnaxTask, TaskParams]:
    """Build a task and its parameters, for `jaxsim.make`."""
    spec(name).check(values)
    return GymnaxTask(name, int(spec(name).fill(values)[STEPS])), default_params(name, values)
