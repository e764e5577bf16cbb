"""A gymnax environment, for wrappers and trainers written for gymnax 1.0. Needs the extra `gymnax`.

env, params = jaxsim.make("CartPole3D-v0", level=203)
env = LogWrapper(to_gymnax(env, params))
observation, state = jax.vmap(env.reset, in_axes=(0, None))(keys, params)
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxsim import spaces
from jaxsim.env import Env
from jaxsim.pytrees import Leaf, Params, State, Tree
from jaxsim.wrappers import AutoReset, AutoResetState, FlattenObservation, has_auto_reset

try:
    from gymnax.environments import environment
    from gymnax.environments import spaces as gymnax_spaces
except ImportError as error:
    raise ImportError(
        "this adapter needs gymnax 1.0 or newer: pip install 'jaxsim-novelty[gymnax]'"
    ) from error

Step = tuple[jax.Array, "GymnaxState", jax.Array, jax.Array, jax.Array, dict[str, jax.Array]]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class GymnaxState:
    """State that gymnax code carries.

    Attributes:
      inner: state of the wrapped environment.
      time: () int32, steps of this episode.
      terminated: () bool, the task has ended.
      truncated: () bool, a limit was reached.
    """

    inner: State
    time: jax.Array
    terminated: jax.Array
    truncated: jax.Array


class GymnaxEnv(environment.Environment):
    """An environment of this package that follows gymnax' contract; see `to_gymnax`."""

    def __init__(self, env: Env, params: Params) -> None:
        self._core = FlattenObservation(env)
        self._auto = FlattenObservation(AutoReset(env, "same_step"))
        self._params = params

    @property
    def default_params(self) -> Params:
        """Parameters for calls without any."""
        return self._params

    @property
    def name(self) -> str:
        """Task name."""
        return self._core.name

    @property
    def num_actions(self) -> int:
        """Number of actions."""
        return self._core.num_actions

    def reset(self, key: jax.Array, params: Params = None) -> tuple[jax.Array, GymnaxState]:
        """Start an episode.

        Args:
          key: () key, typed or raw.
          params: parameters; None for `default_params`.

        Returns:
          ((D,) observation, state).
        """
        return self._reset(_typed(key), self._or_default(params))

    def step(self, key: jax.Array, state: GymnaxState, action: Leaf, params: Params = None) -> Step:
        """Advance one step; a step that ends an episode also starts the next.

        Args:
          key: () key, typed or raw.
          state: from `reset` or `step`.
          action: () integer in [0, num_actions).
          params: parameters; None for `default_params`.

        Returns:
          ((D,) observation, state, reward, terminated, truncated, info), where info holds
          `final_observation`, `terminated`, `truncated`, `performance` and `nonfinite`.

        Raises:
          ValueError: the action is not an integer, or out of range where it is not traced.
        """
        action = spaces.action_space(self._core).checked(action)
        return self._step(_typed(key), state, action, self._or_default(params))

    def reset_env(self, key: jax.Array, params: Params) -> tuple[jax.Array, GymnaxState]:
        """Start an episode, as `reset`."""
        return self.reset(key, params)

    def step_env(
        self, key: jax.Array, state: GymnaxState, action: Leaf, params: Params
    ) -> tuple[jax.Array, GymnaxState, jax.Array, jax.Array, dict[str, jax.Array]]:
        """Advance one step without automatic reset; the state tells whether it is truncated."""
        action = spaces.action_space(self._core).checked(action)
        observation, inner, reward, terminated, truncated, info = self._core.step(
            _typed(key), state.inner, action, params
        )
        state = GymnaxState(inner, state.time + 1, terminated, truncated)
        return observation, state, reward, terminated, info

    @partial(jax.jit, static_argnames="self")
    def _reset(self, key: jax.Array, params: Params) -> tuple[jax.Array, GymnaxState]:
        observation, inner = _in_batches(self._core.reset)(key, params)
        return observation, _fresh(inner)

    @partial(jax.jit, static_argnames="self")
    def _step(self, key: jax.Array, state: GymnaxState, action: jax.Array, params: Params) -> Step:
        auto = AutoResetState(state.inner, jnp.zeros_like(state.truncated))
        observation, auto, reward, terminated, truncated, info = _in_batches(self._auto.step)(
            key, auto, action, params
        )
        info["final_observation"] = info.pop("final_obs")
        info |= {"terminated": terminated, "truncated": truncated}
        over = terminated | truncated
        time = jnp.where(over, 0, state.time + 1)
        state = GymnaxState(auto.inner, time, jnp.zeros_like(over), jnp.zeros_like(over))
        return observation, state, reward, terminated, truncated, info

    def observe(
        self, key: jax.Array, state: GymnaxState, action: Leaf, params: Params
    ) -> jax.Array:
        """Return the (D,) observation of a state."""
        return self._core.observe(state.inner)

    def get_obs(
        self, state: GymnaxState, params: Params = None, key: jax.Array | None = None
    ) -> jax.Array:
        """Return the (D,) observation of a state."""
        return self._core.observe(state.inner)

    def is_terminated(self, state: GymnaxState, params: Params) -> jax.Array:
        """Tell whether the task has ended."""
        return state.terminated

    def is_truncated(self, state: GymnaxState, params: Params) -> jax.Array:
        """Tell whether a limit was reached."""
        return state.truncated

    def action_space(self, params: Params = None) -> gymnax_spaces.Discrete:
        """Return the space of actions."""
        return gymnax_spaces.Discrete(self.num_actions)

    def observation_space(self, params: Params = None) -> gymnax_spaces.Box:
        """Return the space of observations."""
        box = spaces.observation_space(self._core, self._or_default(params))
        return gymnax_spaces.Box(box.low, box.high, box.shape, box.dtype)

    def _or_default(self, params: Params) -> Params:
        return self._params if params is None else params


def to_gymnax(env: Env, params: Params) -> GymnaxEnv:
    """Present an environment to gymnax code.

    Observations are vectors (`jaxsim.spaces.flatten`). Episodes reset themselves as in gymnax, each
    with fresh randomness. Under `jax.vmap` a step is played as one batch, so that contacts and
    resets cost only in the lanes that have them.

    Args:
      env: from `jaxsim.make`.
      params: default parameters; others of the same structure may be passed to `reset` and `step`.

    Raises:
      ValueError: the environment already resets itself.
    """
    if has_auto_reset(env):
        raise ValueError("to_gymnax adds the automatic reset; give it the environment without one")
    return GymnaxEnv(env, params)


def _typed(key: jax.Array) -> jax.Array:
    """Convert raw keys, which gymnax code may use, to typed keys."""
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return key
    return jax.random.wrap_key_data(key)


def _fresh(inner: State) -> GymnaxState:
    no = jnp.zeros((), bool)
    return GymnaxState(inner, jnp.int32(0), no, no)


def _in_batches(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make `jax.vmap` call an elementwise function with the whole batch instead of mapping it.

    Args:
      function: of pytrees whose leaves are scalars or (L,).
    """
    batched = jax.custom_batching.custom_vmap(function)

    @batched.def_vmap
    def rule(size: int, mapped: Tree, *arguments: Tree) -> tuple[Tree, Tree]:
        # Parameters may stay shared; other shared arguments are broadcast to the lanes.
        *inputs, params = (
            jax.tree.map(partial(_lanes, size), argument, flags)
            if index < len(mapped) - 1
            else argument
            for index, (argument, flags) in enumerate(zip(arguments, mapped, strict=True))
        )
        out = function(*inputs, params)
        return out, jax.tree.map(lambda _: True, out)

    return batched


def _lanes(size: int, leaf: jax.Array, mapped: bool) -> jax.Array:
    return leaf if mapped else jnp.broadcast_to(leaf, (size, *leaf.shape))
