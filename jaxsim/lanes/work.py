"""The interface of an environment for the engine of lanes, and an adapter to it."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import jax
import numpy as np

from jaxsim.env import Env
from jaxsim.pytrees import Observation, Params, State, Step
from jaxsim.worlds.world import Attempt, WholeSteps


class Work(Hashable, Protocol):
    """The interface of an environment for the engine, over a batch of L lanes.

    `worlds.world.WholeSteps` has the defaults and their meaning. An environment whose sum of
    rewards and performance follow from the number of steps has two more functions, `score` and
    `step_reward` of `World`; the engine then carries neither.
    """

    @property
    def num_actions(self) -> int:
        """Actions are the integers from 0 to this, exclusive."""

    @property
    def max_steps(self) -> int:
        """Steps after which an episode is truncated."""

    @property
    def efforts(self) -> tuple[int, ...]:
        """See `WholeSteps.efforts`."""

    @property
    def start(self) -> Callable[[jax.Array, Params], State]:
        """Draw states before the hidden first step; see `jaxsim.env.Env.start`."""

    @property
    def observe(self) -> Callable[[State], Observation]:
        """Return the observation of states; see `jaxsim.env.Env.observe`."""

    @property
    def carried(self) -> Callable[[State], State]:
        """See `WholeSteps.carried`."""

    @property
    def resumed(self) -> Callable[[State, jax.Array], State]:
        """See `WholeSteps.resumed`."""

    @property
    def attempt(self) -> Callable[..., Attempt]:
        """See `WholeSteps.attempt`."""


def work_of(env: Any) -> Work:
    """Adapt an environment of `jaxsim.env` to `Work`; return it unchanged if it conforms."""
    work: Work = env if hasattr(env, "attempt") else Stepped(env)
    return work


def is_scored(work: Work) -> bool:
    """Whether sums of rewards and performances follow from the numbers of steps."""
    return hasattr(work, "score")


@lru_cache(maxsize=64)
def scores_by_length(work: Any) -> tuple[np.ndarray, np.ndarray]:
    """Sums of rewards and performances of episodes by their lengths, 0 to T; float32, (T + 1,).

    Sums round as in an engine that adds rewards step by step.
    """

    def scores(number: jax.Array) -> tuple[jax.Array, jax.Array]:
        return work.step_reward(number), work.score(number)[1]

    # Outside of the calling program, so that they are compiled alike everywhere.
    with jax.ensure_compile_time_eval():
        result = jax.jit(scores)(np.arange(work.max_steps + 1, dtype=np.int32))
    rewards, performances = (np.array(score, np.float32) for score in result)
    rewards[0] = 0.0
    return np.cumsum(rewards, dtype=np.float32), performances


@dataclass(frozen=True)
class Stepped(WholeSteps):
    """Adapter of an environment with the functions of `jaxsim.env` alone."""

    env: Env

    @property
    def num_actions(self) -> int:
        """Number of actions."""
        return int(self.env.num_actions)

    @property
    def max_steps(self) -> int:
        """Steps after which an episode is truncated."""
        return int(self.env.max_steps)

    def start(self, key: jax.Array, params: Params) -> State:
        """Draw states before the hidden first step."""
        return self.env.start(key, params)

    def observe(self, state: State) -> Observation:
        """Return the observation of states."""
        return self.env.observe(state)

    def step(self, key: jax.Array, state: State, action: jax.Array, params: Params) -> Step:
        """Advance one step."""
        return self.env.step(key, state, action, params)
