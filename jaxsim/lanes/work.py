"""What the engine of lanes asks of an environment, and every environment in that form."""

from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.worlds.base import FULL, Attempt, ending


class Work(Hashable, Protocol):
    """Steps of an environment by rising effort, over a batch of L lanes.

    Most lanes need little work in most steps. An environment may offer cheap steps that say for
    which lanes they are right; the engine repeats the others with more effort. It may also leave
    out of the carried state whatever the next step does not read. `World` offers both with
    defaults; `work_of` gives other environments one effort.

    An environment whose sum of rewards and performance follow from the number of steps has two more
    functions, `score` and `step_reward` of `World`; the engine then carries neither.
    """

    @property
    def num_actions(self) -> int:
        """Actions are the integers from 0 to this, exclusive."""

    @property
    def max_steps(self) -> int:
        """Steps after which an episode is truncated."""

    @property
    def efforts(self) -> tuple[int, ...]:
        """Kinds of `attempt`, the cheapest first; the last, `FULL`, is right for all lanes."""

    def start(self, key: jax.Array, params: Any) -> Any:
        """Draw states before the hidden first step, leaves (L, ...)."""

    def observe(self, state: Any) -> Any:
        """Return the observation of states, leaves (L, ...)."""

    def carried(self, state: Any) -> Any:
        """Return what of a state the next step of a running episode reads."""

    def resumed(self, carried: Any, length: jax.Array) -> Any:
        """Return a state that `attempt` and `observe` take for the one that was carried.

        Args:
          carried: from `carried`.
          length: (L,) int32, steps since the hidden first one.
        """

    def attempt(
        self,
        key: jax.Array,
        state: Any,
        action: jax.Array,
        params: Any,
        active: jax.Array,
        effort: int,
    ) -> Attempt:
        """Advance running episodes by one step.

        Args:
          key: (L,) typed key of the step.
          state: from `resumed`, leaves (L, ...).
          action: (L,) int32.
          params: physics; leaves () or (L,).
          active: (L,) bool; the result is right for none of the others.
          effort: one of the `efforts`.
        """


def work_of(env: Any) -> Work:
    """Return an environment of `jaxsim.env` as work for lanes; itself if it is that already."""
    work: Work = env if hasattr(env, "attempt") else WholeSteps(env)
    return work


def is_scored(work: Any) -> bool:
    """Whether sums of rewards and performances follow from the numbers of steps."""
    return hasattr(work, "score")


@lru_cache(maxsize=64)
def scores_by_length(work: Any) -> tuple[np.ndarray, np.ndarray]:
    """Sums of rewards and performances of episodes by their lengths, 0 to T; float32, (T + 1,).

    Sums round as those of an engine that adds the rewards up step by step.
    """
    number = np.arange(work.max_steps + 1, dtype=np.int32)
    # Outside of the program that asks for them, so that they are compiled alike everywhere.
    with jax.ensure_compile_time_eval():
        rewards = np.array(work.step_reward(jnp.asarray(number)), np.float32)
        performances = np.array(work.score(jnp.asarray(number))[1], np.float32)
    rewards[0] = 0.0
    return np.cumsum(rewards, dtype=np.float32), performances


@dataclass(frozen=True)
class WholeSteps:
    """An environment that knows only whole steps; see `Work`."""

    env: Any

    @property
    def num_actions(self) -> int:
        """Number of actions."""
        return int(self.env.num_actions)

    @property
    def max_steps(self) -> int:
        """Steps after which an episode is truncated."""
        return int(self.env.max_steps)

    @property
    def efforts(self) -> tuple[int, ...]:
        """There is one."""
        return (FULL,)

    def start(self, key: jax.Array, params: Any) -> Any:
        """Draw states before the hidden first step."""
        return self.env.start(key, params)

    def observe(self, state: Any) -> Any:
        """Return the observation of states."""
        return self.env.observe(state)

    def carried(self, state: Any) -> Any:
        """Return the whole state."""
        return state

    def resumed(self, carried: Any, length: jax.Array) -> Any:
        """Return the state."""
        return carried

    def attempt(
        self,
        key: jax.Array,
        state: Any,
        action: jax.Array,
        params: Any,
        active: jax.Array,
        effort: int,
    ) -> Attempt:
        """Advance running episodes by one step; reward and performance are those of the step."""
        result = self.env.step(key, state, action, params)
        _, after, reward, _, _, info = result
        return Attempt(after, ending(result), active, 0, reward, info["performance"])
