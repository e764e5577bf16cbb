"""A vector environment for stable-baselines3. Needs the extra `sb3`.

    from stable_baselines3 import PPO
    from jaxsim.adapters.sb3 import JaxsimVecEnv

    envs = JaxsimVecEnv("CartPole3D-v0", 64, level=203, difficulty="hard")
    PPO("MlpPolicy", envs).learn(1_000_000)

All environments are lanes of one compiled program. `stable_baselines3.common.env_util.make_vec_env`
and `PPO("MlpPolicy", "jaxsim/CartPole3D-v0")` work too, after importing
`jaxsim.adapters.gymnasium`; they play single environments one after the other.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from jaxsim.adapters import gymnasium as adapter
from jaxsim.parameters import Values

try:
    from stable_baselines3.common.vec_env import VecEnv
except ImportError as error:
    raise ImportError(
        "this adapter needs stable-baselines3 2.4 or newer: pip install 'jaxsim-novelty[sb3]'"
    ) from error

Infos = list[dict[str, Any]]
Indices = int | Iterable[int] | None
"""Lanes, by their numbers; None for all."""


class JaxsimVecEnv(VecEnv):  # type: ignore[misc, unused-ignore]
    """A batch of environments in one compiled program for stable-baselines3.

    Episodes are those of `jaxsim.adapters.gymnasium.JaxsimVectorEnv` in mode SAME_STEP. The info
    of the step that ends an episode holds `terminal_observation`, `TimeLimit.truncated`,
    `performance` in [0, 1] and `nonfinite`; the others are empty.

    Args:
      env_id: id or task name in `jaxsim.registered_envs()`.
      num_envs: number of environments, L.
      values: parameters by path.
      seed: of environment 0; environment i gets `seed + i`. None for fresh randomness.
      render_mode: "rgb_array" for pictures, or None.
      max_episode_steps: steps after which an episode is truncated; None for the environment's own.
      **options: options of the environment, for example `level=203, difficulty="hard"`.

    Raises:
      ValueError: unknown name, parameter or option, or a value out of bounds.
    """

    def __init__(
        self,
        env_id: str,
        num_envs: int = 64,
        values: Values | None = None,
        seed: int | None = None,
        render_mode: str | None = None,
        max_episode_steps: int | None = None,
        **options: Any,
    ) -> None:
        self.envs = adapter.JaxsimVectorEnv(
            env_id, num_envs, values, "SameStep", render_mode, max_episode_steps, **options
        )
        self.render_mode = render_mode
        super().__init__(
            num_envs, self.envs.single_observation_space, self.envs.single_action_space
        )
        self.metadata = self.envs.metadata
        self._actions: np.ndarray | None = None
        self.seed(seed)
        self.set_options()

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Set and return the seeds of the next `reset`; None for none."""
        self._seeds = [None if seed is None else seed + lane for lane in range(self.num_envs)]
        return self._seeds

    def set_options(self, options: dict[str, Any] | Sequence[dict[str, Any]] | None = None) -> None:
        """Set the options of the next `reset`; None for none.

        Args:
          options: as `JaxsimVectorEnv.reset` takes them, for all environments.

        Raises:
          ValueError: options for each environment.
        """
        if not (options is None or isinstance(options, dict)):
            raise ValueError("options is a list; give one dict, whose states have leaves (L,)")
        self._options = dict(options or {})

    def reset(self) -> np.ndarray:
        """Start an episode in every environment; (L, D) float32.

        Raises:
          ValueError: options that `JaxsimVectorEnv.reset` refuses.
        """
        seed, options = self._seeds[0], self._options
        self.seed()
        self.set_options()
        observation, _ = self.envs.reset(seed=seed, options=options)
        self.reset_infos: Infos = [{} for _ in range(self.num_envs)]
        return observation

    def step_async(self, actions: np.ndarray) -> None:
        """Take the (L,) actions of the next step."""
        self._actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, Infos]:
        """Advance every environment one step.

        Returns:
          ((L, D) float32 observations, (L,) float32 rewards, (L,) bool, whether the episode ended,
          a dict for each environment).
        """
        observation, reward, terminated, truncated, info = self.envs.step(self._actions)
        over = terminated | truncated
        infos: Infos = [{} for _ in range(self.num_envs)]
        for lane in np.flatnonzero(over):
            final = info["final_info"]
            infos[lane] = {
                "terminal_observation": info["final_obs"][lane],
                "TimeLimit.truncated": bool(truncated[lane] and not terminated[lane]),
                "performance": float(final["performance"][lane]),
                "nonfinite": bool(final["nonfinite"][lane]),
            }
        return observation, reward.astype(np.float32), over, infos

    def get_images(self) -> Sequence[np.ndarray | None]:
        """Draw every environment; none without a render mode."""
        return self.envs.render() or [None] * self.num_envs

    def close(self) -> None:
        """Close the environments."""
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """Return an attribute, which all environments share, once for each."""
        source = self if attr_name == "render_mode" else self.envs
        return [getattr(source, attr_name)] * self._count(indices)

    def set_attr(self, attr_name: str, value: object, indices: Indices = None) -> None:
        """Refuse: the environments are lanes of one program.

        Raises:
          AttributeError: always.
        """
        raise AttributeError(f"{attr_name} cannot be set: the environments are one program")

    def env_method(
        self,
        method_name: str,
        *method_args: object,
        indices: Indices = None,
        **method_kwargs: object,
    ) -> list[Any]:
        """Refuse: the environments are lanes of one program.

        Raises:
          AttributeError: always.
        """
        raise AttributeError(f"{method_name} cannot be called: the environments are one program")

    def env_is_wrapped(self, wrapper_class: type, indices: Indices = None) -> list[bool]:
        """Tell that no environment has a wrapper of its own."""
        return [False] * self._count(indices)

    def _count(self, indices: Indices) -> int:
        return len(list(self._get_indices(indices)))
