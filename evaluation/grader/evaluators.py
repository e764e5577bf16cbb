"""Evaluators: measurements of the episodes that an agent plays."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from evaluation.grader.results import EvaluationResult

FULL_STATE = {
    "state": "observation before the action",
    "action": "action of the agent",
    "reward": "reward for the action",
    "next_state": "observation after the action",
    "done": "whether the episode is over, ended by the task or by a limit of the environment",
    "info": 'the environment\'s; `"TimeLimit.truncated"` is in it if a limit was reached: True if '
    "the task itself had not ended",
    "episode_count": "number of the episode in this run, from 0",
    "t": "number of the step in its episode, from 0",
}
"""Keys of the `full_state` that a test case gives its evaluator."""

FullState = Mapping[str, Any]


class Evaluator(ABC):
    """Records every episode and summarises them at the end.

    Attributes:
      error: exception that ended the present run early; None for none.
      held_per_episode: bytes that it keeps of each episode, at the least.
    """

    error: BaseException | None = None
    held_per_episode: int = 0

    def __init__(self) -> None:
        self.error = None

    @abstractmethod
    def reset(self) -> None:
        """Begin an episode; earlier ones are kept."""

    @abstractmethod
    def step(self, full_state: FullState) -> None:
        """Add a step, with the keys of `FULL_STATE`."""

    @abstractmethod
    def get_result(self) -> EvaluationResult:
        """Summarise all episodes so far, one that was broken off included."""

    def terminate(self, e: BaseException) -> None:
        """Record the exception that ended the run early."""
        self.error = e


class BatchEvaluator(Evaluator):
    """An evaluator that can add many episodes at once, from rewards and lengths."""

    @abstractmethod
    def add_episodes(self, rewards: np.ndarray, lengths: np.ndarray) -> None:
        """Add L episodes, as `reset` and `step` would one after the other.

        Args:
          rewards: (T, L) by step.
          lengths: (L,) number of steps; later rewards do not count.
        """


class RewardEvaluator(BatchEvaluator):
    """Measures the mean return of an episode.

    Each `full_state` must have a finite number "reward".
    """

    held_per_episode = 32  # a number and its place in a list

    def __init__(self) -> None:
        super().__init__()
        self.returns: list[float] = []

    def reset(self) -> None:
        """Begin an episode."""
        self.returns.append(0.0)

    def step(self, full_state: FullState) -> None:
        """Add a reward.

        Raises:
          ValueError: there is none, or it is not a finite number.
          RuntimeError: no episode has begun.
        """
        if not self.returns:
            raise RuntimeError("no episode has begun; call reset() before step()")
        self.returns[-1] += _reward(full_state)

    def add_episodes(self, rewards: np.ndarray, lengths: np.ndarray) -> None:
        """Add L episodes; sums are made in the order of `step`, in double precision.

        Raises:
          ValueError: a reward is not a finite number. Its episode counts up to it, later ones do
            not.
        """
        counted = np.where(np.arange(len(rewards))[:, None] < lengths, rewards, 0.0)
        finite = np.logical_and.accumulate(np.isfinite(counted), axis=0)
        total = np.zeros(len(lengths))
        for reward, is_finite in zip(counted, finite, strict=True):
            total += np.where(is_finite, reward, 0.0)
        broken = np.flatnonzero(~finite.all(axis=0))
        if len(broken):
            lane = broken[0]
            self.returns += total[: lane + 1].tolist()
            _check_finite(float(counted[np.argmin(finite[:, lane]), lane]))
        self.returns += total.tolist()

    def get_result(self) -> EvaluationResult:
        """Return the mean return, with each episode's."""
        mean = sum(self.returns) / len(self.returns) if self.returns else None
        return EvaluationResult(mean, self.error, "reward evaluation", list(self.returns))


class StepCountEvaluator(BatchEvaluator):
    """Measures the mean number of steps of an episode. It ignores `full_state`."""

    def __init__(self) -> None:
        super().__init__()
        self.episodes = 0
        self.steps = 0

    def reset(self) -> None:
        """Begin an episode."""
        self.episodes += 1

    def step(self, full_state: FullState) -> None:
        """Count a step."""
        self.steps += 1

    def add_episodes(self, rewards: np.ndarray, lengths: np.ndarray) -> None:
        """Add L episodes."""
        self.episodes += len(lengths)
        self.steps += int(lengths.sum())

    def get_result(self) -> EvaluationResult:
        """Return the mean number of steps, with the totals."""
        mean = self.steps / self.episodes if self.episodes else None
        totals = {"total_episodes": self.episodes, "total_steps": self.steps}
        name = "step count evaluation (average survival steps)"
        return EvaluationResult(mean, self.error, name, totals)


def _reward(full_state: FullState) -> float:
    try:
        reward = float(full_state["reward"])
    except KeyError as error:
        raise ValueError("full_state has no 'reward', which RewardEvaluator needs") from error
    except (TypeError, ValueError) as error:
        type_name = type(full_state["reward"]).__name__
        raise ValueError(f"reward is a {type_name}; it must be a number") from error
    _check_finite(reward)
    return reward


def _check_finite(reward: float) -> None:
    if not math.isfinite(reward):
        raise ValueError(f"reward is {reward}; it must be a finite number")
