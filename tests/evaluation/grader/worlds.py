"""Environments of the tests: the same CartPole in each form that a grader meets.

Starts are given, by seed: each kind plays recorded episodes.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="needs the extra: jaxsim-novelty[gymnasium]")

import gymnasium
from gymnasium.vector import VectorEnv, VectorWrapper

import jaxsim.adapters.gymnasium  # noqa: F401 - registers our environments
from jaxsim.worlds import cartpole

Starts = Mapping[int | None, Sequence[float]]


class OldCartPole:
    """Four values from `step`, a method `seed`, and nothing else: the older generation.

    Args:
      starts: state by seed; that of None before anything is seeded.
      limit: steps after which an episode is over.
    """

    def __init__(self, starts: Starts, limit: int = 200) -> None:
        self.starts, self.limit = starts, limit
        self.next: int | None = None

    def seed(self, seed: int) -> None:
        self.next = seed

    def reset(self) -> np.ndarray:
        self.state = np.array(self.starts[self.next])
        self.steps = 0
        return self.state.copy()

    def step(self, action: int) -> tuple[np.ndarray, float, bool, dict[str, Any]]:
        if action not in (0, 1):
            raise ValueError(f"action is {action!r}")
        x, v, angle, rate = self.state
        push = (10.0 if action else -10.0) + 0.05 * rate**2 * math.sin(angle)
        push /= 1.1
        cos, sin = math.cos(angle), math.sin(angle)
        turn = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        accelerations = np.array([v, push - 0.05 * turn * cos / 1.1, rate, turn])
        self.state = self.state + 0.02 * accelerations
        self.steps += 1
        fallen = bool(abs(self.state[0]) > 2.4 or abs(self.state[2]) > math.radians(12))
        late = self.steps >= self.limit
        info = {"TimeLimit.truncated": not fallen} if late else {}
        return self.state.copy(), 1.0, fallen or late, info


class NewCartPole(gymnasium.Wrapper):
    """Gymnasium's own CartPole, begun at given starts."""

    def __init__(self, starts: Starts, limit: int = 200) -> None:
        super().__init__(gymnasium.make("CartPole-v1", max_episode_steps=limit))
        self.starts = starts

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        _, info = self.env.reset(seed=seed)
        self.unwrapped.state = np.array(self.starts[seed])
        return np.array(self.starts[seed], np.float32), info


def start_of(rows: Any) -> Any:
    """State before the hidden first step, from the four numbers of one lane or of many."""
    columns = np.moveaxis(np.asarray(rows, np.float32), -1, 0)
    return cartpole.generate.initial(cartpole.types.Motion(*columns))


class OurCartPole(gymnasium.Wrapper):
    """Ours, begun at given starts."""

    def __init__(self, starts: Starts, limit: int = 200) -> None:
        super().__init__(gymnasium.make("jaxsim/CartPole-v1", max_steps=limit))
        self.starts = starts

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return self.env.reset(seed=seed, options={"start": start_of(self.starts[seed])})


class OurLanes(VectorWrapper):
    """A batch of ours, begun at given starts."""

    def __init__(self, starts: Starts, limit: int, lanes: int) -> None:
        super().__init__(gymnasium.make_vec("jaxsim/CartPole-v1", num_envs=lanes, max_steps=limit))
        self.starts = starts

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        states = start_of([self.starts[each] for each in seed])
        return self.env.reset(seed=seed, options={"start": states})


KINDS: dict[str, Callable[[Starts, int], Any]] = {
    "gym, four values": OldCartPole,
    "Gymnasium, five values": NewCartPole,
    "jaxsim": OurCartPole,
}


def lanes_of(kind: str, starts: Starts, limit: int, lanes: int) -> VectorEnv:
    """A batch of one kind."""
    if kind == "jaxsim":
        return OurLanes(starts, limit, lanes)
    # A lane that has ended is begun anew, unseeded; nobody looks at that.
    again = {**starts, None: (0.0, 0.0, 0.0, 0.0)}
    return gymnasium.vector.SyncVectorEnv([lambda: NewCartPole(again, limit)] * lanes)
