"""Environments of Gymnasium behind the interface of gym before version 0.26.

`reset()` returns an observation, `step` four values, and seeds are given to `seed`. The random
numbers are Gymnasium's: a seed starts other episodes here than it did in gym.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import gymnasium

CUT = "TimeLimit.truncated"
"""Key of `info` at the end of an episode that reached its limit of steps."""


class GymEnv(ABC):
    """Base class of environments of the old interface.

    Subclasses define `reset` and `step`, and `render` if they draw.
    """

    metadata: Mapping[str, object] = MappingProxyType({})
    reward_range = (-float("inf"), float("inf"))
    spec: Any = None
    action_space: Any = None
    observation_space: Any = None

    @abstractmethod
    def reset(self) -> Any:
        """Start an episode and return its first observation."""

    @abstractmethod
    def step(self, action: Any) -> tuple[Any, float, bool, dict[str, Any]]:
        """Take a step: observation, reward, whether the episode is over, info."""

    def render(self, mode: str = "human") -> Any:
        """Return or show a picture; nothing by default."""
        return None

    def seed(self, seed: int | None = None) -> list[int | None]:
        """Choose the randomness of later episodes."""
        return [seed]

    def close(self) -> None:
        """Release resources; there are none by default."""
        return

    @property
    def unwrapped(self) -> Any:
        """The environment inside all wrappers."""
        return self


class GymWrapper(GymEnv):
    """Wraps another environment of the old interface; subclasses override methods."""

    def __init__(self, env: Any) -> None:
        self.env = env
        self.metadata, self.spec = env.metadata, getattr(env, "spec", None)
        self.action_space, self.observation_space = env.action_space, env.observation_space
        self.reward_range = getattr(env, "reward_range", GymEnv.reward_range)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.env, name)

    def reset(self) -> Any:
        """Start an episode of the inner environment."""
        return self.env.reset()

    def step(self, action: Any) -> tuple[Any, float, bool, dict[str, Any]]:
        """Take a step of the inner environment."""
        result: tuple[Any, float, bool, dict[str, Any]] = self.env.step(action)
        return result

    def render(self, mode: str = "human") -> Any:
        """Return or show the inner environment's picture."""
        return self.env.render(mode)

    def seed(self, seed: int | None = None) -> list[int | None]:
        """Choose the inner environment's randomness."""
        chosen: list[int | None] = self.env.seed(seed)
        return chosen

    def close(self) -> None:
        """Close the inner environment."""
        self.env.close()

    @property
    def unwrapped(self) -> Any:
        """The environment inside all wrappers."""
        return self.env.unwrapped


class OldEnv(GymEnv):
    """An environment of Gymnasium with the old interface.

    Args:
      env: of Gymnasium.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        self.env = env
        self.metadata, self.spec = dict(env.metadata), env.spec
        self.action_space, self.observation_space = env.action_space, env.observation_space
        self._seed: int | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.env.unwrapped, name)

    def reset(self) -> Any:
        """Start an episode; the first one after `seed` uses that seed."""
        seed, self._seed = self._seed, None
        observation, _ = self.env.reset(seed=seed)
        return observation

    def step(self, action: Any) -> tuple[Any, float, bool, dict[str, Any]]:
        """Take a step; `info` says whether a limit of steps ended the episode."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if truncated:
            info = {**info, CUT: not terminated}
        return observation, float(reward), bool(terminated or truncated), info

    def render(self, mode: str = "human") -> Any:
        """Return or show a picture, if the environment was made for it.

        Raises:
          ValueError: it was made with another `render_mode`.
        """
        if self.env.render_mode != mode:
            raise ValueError(
                f"the environment draws in mode {self.env.render_mode!r}; make it with "
                f"gym.make(..., render_mode={mode!r})"
            )
        return self.env.render()

    def seed(self, seed: int | None = None) -> list[int | None]:
        """Choose the randomness of the next episode and of those after it."""
        self._seed = seed
        return [seed]

    def close(self) -> None:
        """Close the environment of Gymnasium."""
        self.env.close()

    @property
    def unwrapped(self) -> "OldEnv":
        """This environment: there are no wrappers of the old interface inside."""
        return self


def make(env_id: str, **arguments: Any) -> OldEnv:
    """Make an environment that Gymnasium knows, those of `jaxsim/` among them.

    Args:
      env_id: such as "CartPole-v1" or "jaxsim/CartPole3D-v0".
      **arguments: as of `gymnasium.make`.

    Raises:
      gymnasium.error.Error: there is no such environment.
    """
    if env_id.startswith("jaxsim/"):
        import jaxsim.adapters.gymnasium  # noqa: F401  registers them
    return OldEnv(gymnasium.make(env_id, **arguments))
