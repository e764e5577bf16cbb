"""Gymnasium environments, single and vector. Needs the extra `gymnasium`.

Importing this module registers every environment of `jaxsim.registered_envs()` under the namespace
"jaxsim":

    import gymnasium
    import jaxsim.adapters.gymnasium

    env = gymnasium.make("jaxsim/CartPole3D-v0", level=203, difficulty="hard")
    envs = gymnasium.make_vec("jaxsim/CartPole3D-v0", num_envs=64, level=203)

One call also works without the second import, since Gymnasium imports what stands before a colon:
`gymnasium.make("jaxsim.adapters.gymnasium:jaxsim/CartPole3D-v0")`.

Observations are float32 vectors (`jaxsim.spaces.flatten`), or uint8 pictures (H, W, C) of an
environment made with `image={...}` (`jaxsim.imaging`); actions are integers. Every number of an
episode follows from the seed: the same seed gives the same episodes. A vector environment seeded
with s gives lane i the seed s + i, and that lane plays the episodes of a single environment seeded
with s + i, up to rounding (in mode NEXT_STEP, as long as the single one is reset right after each
end; in mode SAME_STEP later episodes have other starts).

`render_mode="rgb_array"` draws the room from the side and from above (`jaxsim.render`).

Importing this module also calls `jaxsim.stepper.answer_at_once`, a setting of the whole process
without which a single environment is less than half as fast: import it before JAX computes.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

import jaxsim
from jaxsim import render, spaces, stepper
from jaxsim.adapters.streams import LaneStream, SingleStream, Stream, shown
from jaxsim.env import Env
from jaxsim.inputs import check_whole
from jaxsim.parameters import Values
from jaxsim.pytrees import Leaf, Params, State, Tree
from jaxsim.wrappers import Mode

try:
    import gymnasium
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space
except ImportError as error:
    raise ImportError(
        "this adapter needs Gymnasium 1.1 or newer: pip install 'jaxsim-novelty[gymnasium]'"
    ) from error

NAMESPACE = "jaxsim"
MODES: dict[AutoresetMode, Mode] = {
    AutoresetMode.NEXT_STEP: "next_step",
    AutoresetMode.SAME_STEP: "same_step",
}

RENDER_MODES = ["rgb_array"]
SOLVED = 475 / 500
"""Share of the longest episode that counts as solved: that of Gymnasium's CartPole-v1."""

stepper.answer_at_once()


class JaxsimEnv(gymnasium.Env[np.ndarray, Any]):
    """One environment for Gymnasium; it can be copied and pickled, in the middle of an episode too.

    `info` carries `performance` in [0, 1] and `nonfinite`. After the end of an episode, `step`
    returns the same observation with reward 0 until `reset` is called.

    Args:
      env_id: id or task name in `jaxsim.registered_envs()`.
      values: parameters by path, for example `{"pole/length": 3.0}`.
      render_mode: "rgb_array" for pictures, or None.
      **options: options of the environment, for example `level=203, difficulty="hard"`.

    Raises:
      ValueError: unknown name, parameter or option, or a value out of bounds.
    """

    metadata: dict[str, Any] = {"render_modes": RENDER_MODES, "render_fps": 50}  # noqa: RUF012

    def __init__(
        self,
        env_id: str,
        values: Values | None = None,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        self.render_mode = _checked_render_mode(render_mode)
        self._play = SingleStream(env_id, values, options)
        _warn_of_limit("make", env_id, self._play)
        self.metadata = {**self.metadata, "render_fps": _frames(self._play)}
        self.observation_space = _box(self._play)
        self.action_space = _discrete(self._play)

    @property
    def core(self) -> Env:
        """The wrapped environment of `jaxsim.env`."""
        return self._play.core

    @property
    def params(self) -> Params:
        """Its parameters."""
        return self._play.params

    @property
    def state(self) -> State:
        """Its state, NumPy leaves, as the option "state" of `reset` takes it; None before one."""
        return self._play.state

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode.

        Args:
          seed: begins a new stream of episodes; without it the next one of the stream starts.
          options: `{"state": state}` continues from a state of the environment, and
            `{"start": state}` from one before the hidden first step.

        Returns:
          ((D,) float32 observation, info).

        Raises:
          ValueError: an unknown option, or a state that does not fit.
        """
        chosen = _checked_options(options, ("state", "start"))
        super().reset(seed=seed)
        if seed is not None:
            self._play.seed(_words(seed))
        elif self._play.root is None:
            self._play.seed(_fresh_words(self.np_random, ()))
        for name, state in chosen.items():
            return self._play.begin_at(name, state), {}
        outcome = self._play.begin()
        return outcome.observation, _info(outcome)

    def step(self, action: Leaf) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Advance one step.

        Args:
          action: integer from 0 to `action_space.n - 1`.

        Returns:
          ((D,) float32 observation, reward, terminated, truncated, info).

        Raises:
          ValueError: the action is out of range or not an integer.
        """
        if not self._play.has_begun:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        # An ended episode stays as it is: only `reset` may start the next.
        outcome = self._play.step(int(self._play.actions.checked(action)))
        flags = bool(outcome.terminated), bool(outcome.truncated)
        return outcome.observation, float(outcome.reward), *flags, _info(outcome)

    def render(self) -> np.ndarray | None:
        """Draw the present state: (240, 480, 3) uint8, or None without a render mode.

        Raises:
          gymnasium.error.ResetNeeded: no episode has begun.
        """
        if self.render_mode is None:
            return None
        if not self._play.has_begun:
            raise gymnasium.error.ResetNeeded("call reset() before render()")
        return _picture(self._play, self._play.params, self._play.state)


class JaxsimVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """A batch of environments in one compiled program for Gymnasium.

    `info` has the form of Gymnasium's own vector environments: an array for each name, with a
    mask under "_name"; in SAME_STEP mode also `final_obs` and `final_info` of ended lanes. The
    cost of both modes is that of `jaxsim.wrappers.AutoReset`.

    Args:
      env_id: id or task name in `jaxsim.registered_envs()`.
      num_envs: number of lanes, L.
      values: parameters by path.
      autoreset_mode: NEXT_STEP or SAME_STEP, also by their names "NextStep" and "SameStep".
      render_mode: "rgb_array" for pictures, or None.
      max_episode_steps: steps after which an episode is truncated, if the environment does not end
        it before; None or -1 for the environment's own limit. Rewards do not depend on it.
      **options: options of the environment.

    Raises:
      ValueError: unknown name, parameter, option or mode, or a value out of bounds.
    """

    metadata: dict[str, Any] = {"render_modes": RENDER_MODES, "render_fps": 50}  # noqa: RUF012

    def __init__(
        self,
        env_id: str,
        num_envs: int = 1,
        values: Values | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        max_episode_steps: int | None = None,
        **options: Any,
    ) -> None:
        self.render_mode = _checked_render_mode(render_mode)
        check_whole("num_envs", num_envs, 1)
        mode = _autoreset_mode(autoreset_mode)
        self.num_envs = num_envs
        limit = None if max_episode_steps == -1 else max_episode_steps
        self._play = LaneStream(env_id, values, options, num_envs, MODES[mode], limit)
        if limit is not None and limit == _registered_limit(env_id):
            _warn_of_limit("make_vec", env_id, self._play)
        fps = _frames(self._play)
        self.metadata = {**self.metadata, "render_fps": fps, "autoreset_mode": mode}
        self.single_observation_space = _box(self._play)
        self.single_action_space = _discrete(self._play)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode in every lane.

        Args:
          seed: of lane 0, where lane i gets `seed + i`; or L seeds, None for a lane whose stream
            begins by chance; or None to continue the streams of episodes.
          options: as of a single environment, with leaves (L,).

        Returns:
          ((L, D) float32 observations, info).

        Raises:
          ValueError: an unknown option, another number of seeds than lanes, or a state that does
            not fit.
        """
        chosen = _checked_options(options, ("state", "start"))
        super().reset(seed=seed if isinstance(seed, int) else None)
        if seed is not None:
            fresh = _fresh_words(self.np_random, (self.num_envs,))
            seeds = zip(self._lane_seeds(seed), fresh, strict=True)
            words = [drawn if one is None else _words(one) for one, drawn in seeds]
            self._play.seed(np.stack(words))
        elif self._play.root is None:
            self._play.seed(_fresh_words(self.np_random, (self.num_envs,)))
        for name, state in chosen.items():
            return self._play.begin_at(name, state), {}
        observation, info = self._play.begin()
        return observation, _masked(info, np.ones(self.num_envs, bool))

    @property
    def core(self) -> Env:
        """The wrapped environment of `jaxsim.env`."""
        return self._play.core

    @property
    def params(self) -> Params:
        """Its parameters."""
        return self._play.params

    @property
    def state(self) -> State:
        """States of all lanes, NumPy leaves (L, ...), as the option "state" of `reset` takes."""
        return self._play.inner

    def _lane_seeds(self, seed: Any) -> Sequence[int | None]:
        if np.ndim(seed) == 0:
            check_whole("seed", seed, 0)
            return range(int(seed), int(seed) + self.num_envs)
        if len(seed) != self.num_envs:
            raise ValueError(f"{len(seed)} seeds were given for {self.num_envs} environments")
        for one in seed:
            if one is not None:
                check_whole("seed", one, 0)
        return seed

    def step(
        self, actions: Leaf
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Advance every lane one step.

        Args:
          actions: (L,) integers from 0 to `single_action_space.n - 1`.

        Returns:
          ((L, D) float32 observations, (L,) float64 rewards, (L,) bool terminated, (L,) bool
          truncated, info).

        Raises:
          ValueError: an action is out of range or no integer, or there are not L.
        """
        if not self._play.has_begun:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        actions = self._play.actions.checked(actions, (self.num_envs,))
        observation, reward, terminated, truncated, info = self._play.step(actions)
        if "final_obs" in info:
            info = _with_final(info, terminated | truncated)
        else:
            info = _masked(info, np.ones(self.num_envs, bool))
        return observation, reward.astype(np.float64), terminated, truncated, info

    def render(self) -> tuple[np.ndarray, ...] | None:
        """Draw the present state of every lane; None without a render mode."""
        if self.render_mode is None:
            return None
        if not self._play.has_begun:
            raise gymnasium.error.ResetNeeded("call reset() before render()")
        state, params = self._play.inner, self._play.params

        def lane(tree: Tree, index: int) -> Tree:
            return jax.tree.map(lambda leaf: leaf[index] if np.ndim(leaf) else leaf, tree)

        lanes = range(self.num_envs)
        return tuple(_picture(self._play, lane(params, i), lane(state, i)) for i in lanes)


def register() -> None:
    """Register every environment with Gymnasium, as "jaxsim/" and its id; idempotent."""
    for env_id in jaxsim.registered_envs():
        if f"{NAMESPACE}/{env_id}" not in gymnasium.registry:
            env, _ = jaxsim.make(env_id)
            gymnasium.register(
                f"{NAMESPACE}/{env_id}",
                entry_point=f"{__name__}:{JaxsimEnv.__name__}",
                vector_entry_point=f"{__name__}:{JaxsimVectorEnv.__name__}",
                kwargs={"env_id": env_id},
                max_episode_steps=int(env.max_steps),
                reward_threshold=_solved(env),
                disable_env_checker=True,  # the tests of this package check; it takes time
            )


def _solved(env: Any) -> float:
    """Sum of the rewards of an episode as long as one that solves Gymnasium's CartPole-v1."""
    world = getattr(env, "env", env)  # an episode of leans has the rewards of its ticks
    length = np.float32(round(SOLVED * world.max_steps))
    return round(float(world.score(length)[0]), 3)


def _autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    for option in MODES:
        if mode in (option, option.value):
            return option
    allowed = ", ".join(repr(option.value) for option in MODES)
    raise ValueError(f"autoreset_mode is {mode!r}; it must be one of {allowed}")


def _checked_render_mode(render_mode: str | None) -> str | None:
    if render_mode not in (None, *RENDER_MODES):
        allowed = " or ".join(map(repr, RENDER_MODES))
        raise ValueError(f"render_mode is {render_mode!r}; it must be {allowed} or None")
    return render_mode


def _registered_limit(env_id: str) -> int | None:
    """Steps after which Gymnasium truncates an episode, unless it is given another number."""
    registered = gymnasium.registry.get(f"{NAMESPACE}/{env_id}")
    return registered.max_episode_steps if registered else None


def _warn_of_limit(maker: str, env_id: str, play: Stream) -> None:
    """Warn that a function of Gymnasium truncates episodes that an option makes longer."""
    longest, wanted = _registered_limit(env_id), play.core.max_steps
    if longest and wanted > longest:
        warnings.warn(
            f"gymnasium.{maker} ends episodes after {longest} steps unless it is given "
            f"max_episode_steps={wanted} too",
            stacklevel=3,
        )


def _box(play: Stream) -> gymnasium.spaces.Box:
    """Space of one lane's observations."""
    space = spaces.observation_space(play.core, play.params)
    low, high = shown(space.low), shown(space.high)
    return gymnasium.spaces.Box(low, high, dtype=low.dtype.type)


def _discrete(play: Stream) -> gymnasium.Space[Any]:
    """Space of one lane's actions."""
    return gymnasium.spaces.Discrete(play.actions.n)


def _frames(play: Stream) -> int:
    """Steps of a simulated second, for a video in real time."""
    return round(1 / float(np.max(play.core.dt(play.params))))


def _picture(play: Stream, params: Params, state: State) -> np.ndarray:
    return render.draw(render.scene(play.core, params, state))


def _info(outcome: stepper.StepOutcome) -> dict[str, float | bool]:
    performance, nonfinite = float(outcome.performance), bool(outcome.nonfinite)
    return {"performance": performance, "nonfinite": nonfinite}


def _checked_options(options: dict[str, Any] | None, names: tuple[str, ...]) -> dict[str, Any]:
    selection = dict(options or {})
    for name in selection:
        if name not in names:
            allowed = ", ".join(repr(k) for k in names) or "none"
            raise ValueError(f"unknown reset option {name!r} (allowed: {allowed})")
    if len(selection) > 1:
        raise ValueError(f"reset takes one of the options {', '.join(map(repr, selection))}")
    return selection


def _words(seed: int) -> np.ndarray:
    """Two uint32 words that follow from a seed of any size."""
    return np.random.SeedSequence(int(seed)).generate_state(2)


def _fresh_words(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return generator.integers(2**32, size=(*shape, 2), dtype=np.uint32)


def _masked(info: dict[str, np.ndarray], mask: np.ndarray) -> dict[str, Any]:
    """Add the mask of lanes that have an entry, and set the others to zero."""
    blanked = {name: np.where(mask, value, np.zeros_like(value)) for name, value in info.items()}
    return blanked | {f"_{name}": mask.copy() for name in info}


def _with_final(info: dict[str, np.ndarray], over: np.ndarray) -> dict[str, Any]:
    """Separate the last values of ended episodes from the first values of new ones."""
    last = info.pop("final_obs")
    result = _masked(info, ~over)
    result |= {f"_{name}": np.ones_like(over) for name in info}
    if over.any():
        final = np.full(over.shape, None, object)
        for lane in np.flatnonzero(over):
            final[lane] = last[lane]
        result |= {"final_obs": final, "_final_obs": over.copy()}
        result |= {"final_info": _masked(info, over), "_final_info": over.copy()}
    return result


register()
