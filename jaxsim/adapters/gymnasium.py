"""Gymnasium environments, single and vector. Needs the extra `gymnasium`.

Importing this module registers every environment of `jaxsim.registered_envs()` under the namespace
"jaxsim":

    import gymnasium
    import jaxsim.adapters.gymnasium

    env = gymnasium.make("jaxsim/CartPole3D-v0", level=203, difficulty="hard")
    envs = gymnasium.make_vec("jaxsim/CartPole3D-v0", num_envs=64, level=203)

One call also works without the second import, since Gymnasium imports what stands before a colon:
`gymnasium.make("jaxsim.adapters.gymnasium:jaxsim/CartPole3D-v0")`.

Observations are float32 vectors (`jaxsim.spaces.flatten`), actions are integers. Every number of an
episode follows from the seed: the same seed gives the same episodes. A vector environment seeded
with s gives lane i the seed s + i, and that lane plays the episodes of a single environment seeded
with s + i (in mode NEXT_STEP, as long as the single one is reset right after each end).
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from jaxsim import rng, spaces
from jaxsim.packing import Packed
from jaxsim.wrappers import AutoReset, AutoResetState, FlattenObservation, Mode

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

Values = Mapping[str, Any]
Outcome = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]]


@partial(jax.jit, static_argnames="env")
def _advance(
    env: Any, root: rng.Words, count: Any, go_on: Any, state: Packed, action: Any, params: Packed
) -> tuple[Packed, Packed]:
    """Step with the key that belongs to a count of steps; one program for all instances.

    Args:
      env: environment with automatic reset and vectors for observations.
      root: words of the stream of episodes.
      count: () steps so far.
      go_on: () bool, an ended episode is followed by the next one; else it stays as it is.
      state: packed `AutoResetState`.
      action: () or (L,) int.
      params: of the environment, packed.

    Returns:
      The state, and what else `env.step` returns, both packed.
    """
    before = state.unpack()
    before = AutoResetState(before.inner, before.over & go_on)
    key = rng.to_key(rng.fold(root, count))
    observation, after, *rest = env.step(key, before, action, params.unpack())
    return Packed.of(after), Packed.of((observation.astype(jnp.float32), *rest))


class _Play:
    """Episodes of () or (L,) lanes: state, randomness and the calls into compiled code."""

    def __init__(
        self, env_id: str, values: Values | None, options: Values, shape: tuple[int, ...]
    ) -> None:
        core, params = jaxsim.make(env_id, values, **options)
        for leaf in jax.tree.leaves(params):
            if jnp.shape(leaf) not in ((), shape):
                raise ValueError(
                    f"parameters have shape {jnp.shape(leaf)}; they must be scalars"
                    + (f" or one for each of {shape[0]} lanes" if shape else "")
                )
        self.core, self.params, self.shape = core, params, shape
        self._packed_params = Packed.of(jax.tree.map(jnp.asarray, params))
        self.env = FlattenObservation(AutoReset(core, "next_step"))
        self.actions = spaces.action_space(core)
        self.idle = np.zeros(shape, np.int32)
        self.blank = self._blank()
        self._ended = Packed.of(AutoResetState(self.blank, jnp.ones(shape, bool)))
        self.root: rng.Words | None = None
        self.count = 0
        self._packed: Packed | None = None

    @property
    def state(self) -> Any:
        """State with NumPy arrays for leaves, or None before the first episode."""
        return self._packed and self._packed.read()

    @state.setter
    def state(self, state: AutoResetState) -> None:
        self._packed = Packed.of(state)

    def _blank(self) -> Any:
        """A state of the right shapes; nothing in it matters."""
        key = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), self.shape))
        shapes = jax.eval_shape(self.core.start, key, self.params)
        return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)

    def seed(self, words: np.ndarray) -> None:
        """Begin a new stream of episodes from (*shape, 2) random words."""
        self.root = rng.Words(jnp.asarray(words[..., 0]), jnp.asarray(words[..., 1]))
        self.count = 0

    def begin(self) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Start an episode in every lane."""
        self._packed = self._ended
        observation, *_, info = self.advance(self.env, self.idle)
        return observation, info

    def begin_at(self, name: str, given: Any) -> np.ndarray:
        """Continue from a "state", or from a "start" by way of its hidden first step."""
        state = AutoResetState(self._checked(name, given), jnp.zeros(self.shape, bool))
        self.state = state
        if name == "start":
            return self.advance(self.env, self.idle)[0]
        return np.array(self.env.observe(state), np.float32)

    def _checked(self, name: str, given: Any) -> Any:
        if hasattr(self.core, "adopt") and type(given) is type(self.blank):
            assert self.root is not None
            key = rng.to_key(rng.fold(self.root, self.count))
            given = self.core.adopt(given, key, self.params)
        want: Any = jax.tree.structure(self.blank)
        got: Any = jax.tree.structure(given)
        if want != got:
            raise ValueError(f"option {name!r} is no state of this environment: {got}, not {want}")
        pairs = zip(jax.tree.leaves(given), jax.tree.leaves(self.blank), strict=True)
        for leaf, blank in pairs:
            if jnp.shape(leaf) != blank.shape:
                raise ValueError(
                    f"option {name!r} has a leaf of shape {jnp.shape(leaf)}, not {blank.shape}"
                )
        return jax.tree.map(lambda leaf, like: jnp.asarray(leaf, like.dtype), given, self.blank)

    def advance(self, env: Any, action: np.ndarray, *, go_on: bool = True) -> Outcome:
        """Step every lane; NumPy observation, reward, terminated, truncated and info.

        Args:
          env: what is stepped.
          action: of the shape of the lanes.
          go_on: whether an ended episode is followed by the next one.
        """
        count, follow = np.uint32(self.count), np.bool_(go_on)
        self._packed, outcome = _advance(
            env, self.root, count, follow, self._packed, action, self._packed_params
        )
        self.count += 1
        observation, reward, terminated, truncated, info = outcome.read()
        if "final_obs" in info:
            info["final_obs"] = info["final_obs"].astype(np.float32)
        return observation, reward, terminated, truncated, info

    def checked(self, action: Any) -> np.ndarray:
        """Return actions to step with, or raise `ValueError`."""
        if self._packed is None:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        return self.actions.checked(action, self.shape)

    def box(self) -> gymnasium.spaces.Box:
        """Return the space of one lane's observations."""
        space = spaces.observation_space(self.core, self.params)
        return gymnasium.spaces.Box(space.low.astype(np.float32), space.high.astype(np.float32))

    def discrete(self) -> gymnasium.Space[Any]:
        """Return the space of one lane's actions."""
        return gymnasium.spaces.Discrete(self.actions.n)


class JaxsimEnv(gymnasium.Env[np.ndarray, Any]):
    """One environment for Gymnasium.

    `info` carries `performance` in [0, 1] and `nonfinite`. After the end of an episode, `step`
    returns the same observation with reward 0 until `reset` is called.

    Args:
      env_id: id or task name in `jaxsim.registered_envs()`.
      values: parameters by path, for example `{"pole/length": 3.0}`.
      render_mode: None; there is nothing to render.
      **options: options of the environment, for example `level=203, difficulty="hard"`.

    Raises:
      ValueError: unknown name, parameter or option, or a value out of bounds.
    """

    def __init__(
        self,
        env_id: str,
        values: Values | None = None,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        _refuse_render_mode(render_mode)
        self._play = _Play(env_id, values, options, ())
        self.observation_space = self._play.box()
        self.action_space = self._play.discrete()

    @property
    def core(self) -> Any:
        """The environment inside, one of `jaxsim.env`."""
        return self._play.core

    @property
    def params(self) -> Any:
        """Its parameters."""
        return self._play.params

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
        for name, given in chosen.items():
            return self._play.begin_at(name, given), {}
        observation, info = self._play.begin()
        return observation, _plain(info)

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Advance one step.

        Args:
          action: integer from 0 to `action_space.n - 1`.

        Returns:
          ((D,) float32 observation, reward, terminated, truncated, info).

        Raises:
          ValueError: the action is out of range or no integer.
        """
        action = self._play.checked(action)
        # An ended episode stays as it is: only `reset` may start the next.
        observation, reward, terminated, truncated, info = self._play.advance(
            self._play.env, action, go_on=False
        )
        return observation, float(reward), bool(terminated), bool(truncated), _plain(info)


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
      render_mode: None; there is nothing to render.
      **options: options of the environment.

    Raises:
      ValueError: unknown name, parameter, option or mode, or a value out of bounds.
    """

    def __init__(
        self,
        env_id: str,
        num_envs: int = 1,
        values: Values | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        _refuse_render_mode(render_mode)
        if num_envs < 1:
            raise ValueError(f"num_envs is {num_envs}; it must be at least 1")
        mode = _autoreset_mode(autoreset_mode)
        self.num_envs = num_envs
        self.metadata = {"render_modes": [], "autoreset_mode": mode}
        self._play = _Play(env_id, values, options, (num_envs,))
        self._env = FlattenObservation(AutoReset(self._play.core, MODES[mode]))
        self.single_observation_space = self._play.box()
        self.single_action_space = self._play.discrete()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self,
        *,
        seed: int | Sequence[int] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode in every lane.

        Args:
          seed: of lane 0, where lane i gets `seed + i`; or L seeds; or None to go on with the
            streams of episodes.
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
            self._play.seed(np.stack([_words(s) for s in self._lane_seeds(seed)]))
        elif self._play.root is None:
            self._play.seed(_fresh_words(self.np_random, (self.num_envs,)))
        for name, given in chosen.items():
            return self._play.begin_at(name, given), {}
        observation, info = self._play.begin()
        return observation, _masked(info, np.ones(self.num_envs, bool))

    @property
    def core(self) -> Any:
        """The environment inside, one of `jaxsim.env`."""
        return self._play.core

    @property
    def params(self) -> Any:
        """Its parameters."""
        return self._play.params

    def _lane_seeds(self, seed: int | Sequence[int]) -> Sequence[int]:
        if isinstance(seed, int | np.integer):
            return range(int(seed), int(seed) + self.num_envs)
        if len(seed) != self.num_envs:
            raise ValueError(f"{len(seed)} seeds were given for {self.num_envs} environments")
        return seed

    def step(
        self, actions: Any
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
        actions = self._play.checked(actions)
        observation, reward, terminated, truncated, info = self._play.advance(self._env, actions)
        if "final_obs" in info:
            info = _with_final(info, terminated | truncated)
        else:
            info = _masked(info, np.ones(self.num_envs, bool))
        return observation, reward.astype(np.float64), terminated, truncated, info


def register() -> None:
    """Register every environment with Gymnasium, as "jaxsim/" and its id; again does no harm."""
    for env_id in jaxsim.registered_envs():
        if f"{NAMESPACE}/{env_id}" not in gymnasium.registry:
            gymnasium.register(
                f"{NAMESPACE}/{env_id}",
                entry_point=f"{__name__}:{JaxsimEnv.__name__}",
                vector_entry_point=f"{__name__}:{JaxsimVectorEnv.__name__}",
                kwargs={"env_id": env_id},
            )


def _autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    for known in MODES:
        if mode in (known, known.value):
            return known
    allowed = ", ".join(repr(known.value) for known in MODES)
    raise ValueError(f"autoreset_mode is {mode!r}; it must be one of {allowed}")


def _refuse_render_mode(render_mode: str | None) -> None:
    if render_mode is not None:
        raise ValueError(f"render_mode is {render_mode!r}; it must be None")


def _checked_options(options: dict[str, Any] | None, known: tuple[str, ...]) -> dict[str, Any]:
    given = dict(options or {})
    for name in given:
        if name not in known:
            allowed = ", ".join(repr(k) for k in known) or "none"
            raise ValueError(f"unknown reset option {name!r} (allowed: {allowed})")
    if len(given) > 1:
        raise ValueError(f"reset takes one of the options {', '.join(map(repr, given))}")
    return given


def _words(seed: int) -> np.ndarray:
    """Two uint32 words that follow from a seed of any size."""
    return np.random.SeedSequence(int(seed)).generate_state(2)


def _fresh_words(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return generator.integers(2**32, size=(*shape, 2), dtype=np.uint32)


def _plain(info: dict[str, np.ndarray]) -> dict[str, Any]:
    """Numbers instead of arrays without axes."""
    return {name: value.item() for name, value in info.items()}


def _masked(info: dict[str, np.ndarray], mask: np.ndarray) -> dict[str, Any]:
    """Add the mask of lanes that have an entry, and blank the others."""
    blanked = {name: np.where(mask, value, np.zeros_like(value)) for name, value in info.items()}
    return blanked | {f"_{name}": mask.copy() for name in info}


def _with_final(info: dict[str, np.ndarray], over: np.ndarray) -> dict[str, Any]:
    """Separate what ended lanes leave behind from what their new episodes begin with."""
    last = info.pop("final_obs")
    result = _masked(
        {name: np.where(over, 0, v).astype(v.dtype) for name, v in info.items()}, ~over
    )
    result |= {f"_{name}": np.ones_like(over) for name in info}
    if over.any():
        final = np.full(over.shape, None, object)
        for lane in np.flatnonzero(over):
            final[lane] = last[lane]
        result |= {"final_obs": final, "_final_obs": over.copy()}
        result |= {"final_info": _masked(info, over), "_final_info": over.copy()}
    return result


register()
