"""Base class of the environments of all worlds."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import backend, inputs
from jaxsim.pytrees import Leaf, Observation, Params, State, Step, Tree

C = TypeVar("C")


class WholeSteps(ABC):
    """Default interface to the lane engine: every step is computed in full.

    Most lanes need little work in most steps. An environment may override it with cheaper attempts,
    which return a mask of the lanes where they are right. It may also drop the parts of the carried
    state that neither its observation nor the next step reads.
    """

    @property
    def efforts(self) -> tuple[int, ...]:
        """Kinds of `attempt`, the cheapest first; each is right for more lanes than the one before.

        The last is `FULL`, which is right for all.
        """
        return (FULL,)

    def carried(self, state: State) -> State:
        """Return the part of a state that its observation and the next running step read."""
        return state

    def resumed(self, carried: State, length: jax.Array) -> State:
        """Rebuild a state for `attempt` and `observe` from its carried part.

        Args:
          carried: from `carried`.
          length: (L,) int32, steps since the hidden first one.
        """
        return carried

    def attempt(
        self,
        key: jax.Array,
        state: State,
        action: jax.Array,
        params: Params,
        active: jax.Array,
        effort: int,
    ) -> "Attempt":
        """Advance running episodes by one step.

        Args:
          key: (L,) typed key.
          state: from `resumed`, leaves (L,).
          action: (L,) int32.
          params: physics; leaves () or (L,).
          active: (L,) bool; no other lane is right.
          effort: one of the `efforts`.
        """
        result = self.step(key, state, action, params)
        _, after, reward, _, _, info = result
        return Attempt(after, ending(result), active, 0, reward, info["performance"])

    @abstractmethod
    def step(self, key: jax.Array, state: State, action: jax.Array, params: Params) -> Step:
        """Advance one step; see `jaxsim.env.Env.step`."""


class World(WholeSteps):
    """Base of the environments: everything that follows from name, actions and configuration.

    A world adds `start`, `observe`, `step`, `score` and `dt`; see `jaxsim.env` for the contract.

    Attributes:
      name: task name, without a version.
      actions: names of the action codes from 0 on.
      config: static configuration, hashable.
    """

    name: ClassVar[str]
    actions: ClassVar[tuple[str, ...]]
    config: Any

    @property
    def num_actions(self) -> int:
        """Number of actions."""
        return len(self.actions)

    @property
    def max_steps(self) -> int:
        """Steps after which an episode is truncated."""
        return int(self.config.max_steps)

    def checked(self, action: Leaf) -> jax.Array:
        """Return an action of `step` as an array.

        Raises:
          ValueError: it is not an integer, or it is concrete and out of range.
        """
        return jnp.asarray(inputs.action_codes(action, self.num_actions, self.actions))

    def reset(self, key: jax.Array, params: Params) -> tuple[Observation, State]:
        """Start an episode; see `jaxsim.env.Env.reset`."""
        return self.restart(key, self.start(key, params), params)

    def restart(self, key: jax.Array, start: State, params: Params) -> tuple[Observation, State]:
        """Begin an episode at a given state before the hidden first step."""
        observation, state, *_ = self.step(key, start, jnp.zeros_like(start.step), params)
        return observation, state

    @abstractmethod
    def start(self, key: jax.Array, params: Params) -> State:
        """Draw the state before the hidden first step; see `jaxsim.env.Env.start`."""

    @abstractmethod
    def observe(self, state: State) -> Observation:
        """Return the observation of a state; see `jaxsim.env.Env.observe`."""

    def ends(
        self,
        state: State,
        new: State,
        *,
        fallen: jax.Array,
        finite: jax.Array,
        fell_before: jax.Array,
    ) -> "Ends":
        """Apply the rules of `jaxsim.env` for the end of episodes.

        Args:
          state: before the step, with `step` and `done`.
          new: after it, finite or not.
          fallen: whether the task ends with `new`.
          finite: whether the numbers of `new` are.
          fell_before: whether the task has ended with `state`.
        """
        running = ~state.done
        limited = (new.step >= self.max_steps) | ~finite
        # A nonfinite state is dropped, so that observations stay finite.
        keep = running & finite
        kept = jax.tree.map(lambda a, b: jnp.where(keep, a, b), new, state)
        timed_out = state.step >= self.max_steps
        return Ends(
            replace(kept, done=state.done | fallen | limited),
            terminated=jnp.where(running, fallen & finite, fell_before),
            truncated=jnp.where(running, limited, timed_out | ~fell_before),
            # Neither a fall nor a time limit: a nonfinite number ended the episode.
            nonfinite=jnp.where(running, ~finite, ~(fell_before | timed_out)),
        )

    # For `jaxsim.stepper`.

    def quick_step(
        self, key: jax.Array, state: State, action: jax.Array, params: Params
    ) -> tuple[Step, jax.Array]:
        """Advance one step by the cheapest program.

        Args:
          key: () or (L,) typed key.
          state: from `start`, `reset` or `step`.
          action: as for `step`.
          params: as for `step`.

        Returns:
          (result of `step`, () or (L,) bool: whether it is right. Where it is not, call `step`
          instead.)
        """
        return self.step(key, state, action, params), jnp.ones_like(state.step, bool)

    # For `jaxsim.rollout`.

    @property
    def program_class(self) -> Hashable:
        """What environments have in common that one program plays well; see `worlds.sharing`."""
        return self

    @property
    def layout(self) -> backend.Layout:
        """Sizes that suit a rollout on the present backend."""
        return backend.layout()

    def parts(self, params: Params) -> tuple[tuple["World", ...], np.ndarray]:
        """Find simpler environments that give the same result for some rows of a table.

        Args:
          params: NumPy leaves, each () or (V,).

        Returns:
          (environments, this one last; (V,) int32, index of the environment for each row).
        """
        return (self,), np.zeros(rows_of(params), np.int32)

    @abstractmethod
    def score(self, length: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Sum of the rewards and performance of an episode by its length; (...) each."""

    @abstractmethod
    def step_reward(self, number: jax.Array) -> jax.Array:
        """Reward of a step by its number, from 1; (...)."""


def rows_of(params: Params) -> int:
    """Rows of a table of parameters whose leaves are () or (V,): V, or 1 if all are ()."""
    return max(np.size(leaf) for leaf in jax.tree.leaves(params))


FULL = 1 << 30
"""The effort that is right for every lane."""

RUNNING, TERMINATED, TRUNCATED, NONFINITE = range(4)
"""Status of an episode: running, or ended by the task, by a limit or by a nonfinite number."""


def ending(result: Step) -> jax.Array:
    """Status of episodes from a result of `step`; (...) int32."""
    _, _, _, terminated, truncated, info = result
    limited = jnp.where(info["nonfinite"], NONFINITE, jnp.where(truncated, TRUNCATED, RUNNING))
    return jnp.where(terminated, TERMINATED, limited)


class Ends(NamedTuple):
    """How a step leaves episodes; flags () or (L,) bool."""

    state: State
    terminated: jax.Array
    truncated: jax.Array
    nonfinite: jax.Array


class Attempt(NamedTuple):
    """Result of one attempted step; leaves (L,)."""

    state: State
    ending: jax.Array  # int32
    right: jax.Array  # bool, where the rest may be used
    needs: Leaf = 0  # int32, index of the effort that may be right for the other lanes
    reward: Leaf = None  # of the step; None where `step_reward` gives it
    performance: Leaf = None  # after the step; None where `score` gives it


def all_finite(tree: Tree, ndim: int) -> jax.Array:
    """Whether every floating-point number of each lane is finite, by a sum of zeros or NaN.

    Args:
      tree: leaves whose first `ndim` axes are the lanes; fewer axes broadcast.
      ndim: 0 for a single lane, 1 for a batch.

    Returns:
      () or (L,) bool.
    """
    zeros = [
        _over_slots(leaf * 0.0, ndim)
        for leaf in jax.tree.leaves(tree)
        if jnp.issubdtype(jnp.result_type(leaf), jnp.floating)
    ]
    return jnp.isfinite(sum(zeros[1:], zeros[0]))


def _over_slots(number: jax.Array, ndim: int) -> jax.Array:
    """Sum the axes behind the lanes; a reduction over no axis would cost a pass of its own."""
    slots = tuple(range(ndim, jnp.ndim(number)))
    return jnp.sum(number, axis=slots) if slots else number


def configure(kind: type[C], options: Mapping[str, Any], shorthands: Iterable[str] = ()) -> C:
    """Build a world's configuration from the options of `jaxsim.make`.

    Args:
      kind: the world's `Config`.
      options: its fields by name; missing ones take their defaults.
      shorthands: other options that the world accepts, for the error message.

    Raises:
      ValueError: an unknown or invalid option, or float64 without x64.
    """
    names = kind.__dataclass_fields__  # type: ignore[attr-defined]
    for option in options:
        if option not in names:
            allowed = ", ".join([*shorthands, *names])
            raise ValueError(f"unknown option {option!r} (allowed: {allowed})")
    config: Any = kind(**options)
    if config.dtype == "float64" and not jax.config.read("jax_enable_x64"):
        raise ValueError('dtype is "float64"; set jax.config.update("jax_enable_x64", True) first')
    return config
