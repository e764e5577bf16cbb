"""Episodes from a seed, one after the other, for adapters whose loops are in Python.

A stream is two random words; the key of a step follows from the stream and a count of its steps.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import PyTreeDef

import jaxsim
from jaxsim import rng, spaces
from jaxsim.env import Env
from jaxsim.packing import Packed
from jaxsim.parameters import Values
from jaxsim.pytrees import Leaf, Observation, State, Tree
from jaxsim.stepper import EpisodeKeys, StepOutcome, Stepper
from jaxsim.wrappers import (
    AutoReset,
    AutoResetState,
    FlattenObservation,
    Mode,
    TimeLimit,
    TimeLimitState,
    reset_key,
)

Results = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]]


class Stream:
    """Episodes of an environment that follow from one seed, one after the other.

    Args:
      env_id: id or task name.
      values: parameters by path.
      options: of the environment.
      shape: () or (L,), of the lanes.
    """

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
        self.actions = spaces.action_space(core)
        self.blank = self._blank()
        self.root: rng.Words | None = None
        self.count = 0
        self.has_begun = False

    def _blank(self) -> State:
        """A state of the right shapes; its values are ignored."""
        key = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), self.shape))
        shapes = jax.eval_shape(self.core.start, key, self.params)
        return jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)

    def seed(self, words: np.ndarray) -> None:
        """Begin a new stream of episodes from (*shape, 2) random words."""
        self.root = rng.Words(jnp.asarray(words[..., 0]), jnp.asarray(words[..., 1]))
        self.count = 0

    def key(self) -> rng.Words:
        """Key of the next step, (*shape,)."""
        assert self.root is not None, "no stream has begun"
        return _fold(self.root, np.uint32(self.count))

    def fitting(self, name: str, state: Tree) -> State:
        """Check and convert a state for the option `name`, or raise `ValueError`."""
        if hasattr(self.core, "adopt") and type(state) is type(self.blank):
            state = self.core.adopt(state, rng.to_key(self.key()), self.params)
        expected: PyTreeDef = jax.tree.structure(self.blank)
        actual: PyTreeDef = jax.tree.structure(state)
        if expected != actual:
            raise ValueError(
                f"option {name!r} is not a state of this environment; pass one that its attribute "
                "state has given, or one of an environment with the same task and options"
            )
        pairs = zip(jax.tree.leaves(state), jax.tree.leaves(self.blank), strict=True)
        for leaf, blank in pairs:
            if jnp.shape(leaf) != blank.shape:
                raise ValueError(
                    f"option {name!r} has a leaf of shape {jnp.shape(leaf)}, not {blank.shape}"
                )
        return jax.tree.map(lambda leaf, like: jnp.asarray(leaf, like.dtype), state, self.blank)


@jax.jit
def _fold(root: rng.Words, count: Leaf) -> rng.Words:
    return rng.fold(root, count)


@jax.jit
def _of_reset(step: rng.Words) -> rng.Words:
    """Key of the episode that a step with automatic reset starts."""
    return rng.words(reset_key(rng.to_key(step)))


def shown(observation: Observation) -> Observation:
    """Convert an observation for adapters: a float32 vector, or a picture of bytes."""
    return observation if observation.dtype == np.uint8 else observation.astype(np.float32)


def _shown(env: Env, observation: Observation) -> jax.Array:
    image: jax.Array = shown(spaces.flatten(env, observation))
    return image


class SingleStream(Stream):
    """The episodes of one environment.

    Each equals that of a lane of a vector environment in mode NEXT_STEP: a reset takes one step of
    the stream, and the key of that step gives the start and the hidden first step.
    """

    def __init__(self, env_id: str, values: Values | None, options: Values) -> None:
        super().__init__(env_id, values, options, ())
        self.stepper = Stepper(self.core, self.params, _shown)

    def begin(self) -> StepOutcome:
        """Start an episode."""
        return self._counted(self.stepper.begin(self._keys(_of_reset(self.key()))))

    def begin_at(self, name: str, start: Tree) -> np.ndarray:
        """Continue from a "state", or from a "start" by way of its hidden first step."""
        state, keys = self.fitting(name, start), self._keys(self.key())
        if name == "start":
            return self._counted(self.stepper.begin_at(state, keys)).observation
        self.stepper.go_on_from(state, keys)
        self.has_begun = True
        return self.stepper.observe()

    def step(self, action: int) -> StepOutcome:
        """Advance one step."""
        self.count += 1
        return self.stepper.step(action)

    @property
    def state(self) -> State:
        """State of the environment, NumPy leaves; None before the first episode."""
        return self.stepper.state

    def _keys(self, first: rng.Words) -> EpisodeKeys:
        assert self.root is not None
        return EpisodeKeys(first, first, self.root, np.uint32(self.count))

    def _counted(self, outcome: StepOutcome) -> StepOutcome:
        """Count the first step of an episode."""
        self.has_begun = True
        self.count += 1
        return outcome


@partial(jax.jit, static_argnames="env")
def _advance(
    env: Env, root: rng.Words, count: Leaf, state: Packed, action: Leaf, params: Packed
) -> tuple[Packed, Packed]:
    """Step with the key that belongs to a count of steps; one program for all instances.

    Args:
      env: environment with automatic reset and vectors for observations.
      root: words of the stream of episodes.
      count: () steps so far.
      state: packed `AutoResetState`.
      action: (L,) int.
      params: of the environment, packed.

    Returns:
      The state, and the other results of `env.step`, both packed.
    """
    key = rng.to_key(rng.fold(root, count))
    observation, after, *rest = env.step(key, state.unpack(), action, params.unpack())
    return Packed.of(after), Packed.of((shown(observation), *rest))


class LaneStream(Stream):
    """The episodes of L lanes, in one compiled program.

    Args:
      env_id: id or task name.
      values: parameters by path.
      options: of the environment.
      lanes: L.
      mode: of the automatic reset.
      most_steps: steps after which an episode is truncated; None for the environment's own limit.
    """

    def __init__(
        self,
        env_id: str,
        values: Values | None,
        options: Values,
        lanes: int,
        mode: Mode,
        most_steps: int | None = None,
    ) -> None:
        super().__init__(env_id, values, options, (lanes,))
        limited = self.core
        if most_steps is not None and most_steps < self.core.max_steps:
            limited = TimeLimit(self.core, most_steps)
        self._limited = limited
        self._packed_params = Packed.of(jax.tree.map(jnp.asarray, self.params))
        # A reset is a step in which all episodes are over.
        self._starts = FlattenObservation(AutoReset(limited, "next_step"))
        self._env = FlattenObservation(AutoReset(limited, mode))
        self._ended = self._playing(self.blank, 0, over=True)
        self._idle = np.zeros(lanes, np.int32)
        self._packed = self._ended

    @property
    def state(self) -> AutoResetState:
        """State with NumPy arrays for leaves."""
        state: AutoResetState = self._packed.read()
        return state

    @property
    def inner(self) -> State:
        """State of the environment itself, NumPy leaves (L, ...)."""
        inner = self.state.inner
        return inner if self._limited is self.core else inner.inner

    def begin(self) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Start an episode in every lane."""
        self._packed = self._ended
        observation, *_, info = self._advance(self._starts, self._idle)
        return observation, info

    def begin_at(self, name: str, start: Tree) -> np.ndarray:
        """Continue from a "state", or from a "start" by way of its hidden first step."""
        inner, count = self.fitting(name, start), -1 if name == "start" else 0
        self._packed, self.has_begun = self._playing(inner, count, over=False), True
        if name == "start":
            return self._advance(self._starts, self._idle)[0]
        return np.array(shown(self._env.observe(self.state)))

    def _playing(self, inner: State, count: int, *, over: bool) -> Packed:
        """Pack a state of the environment after `count` steps, all lanes over or none."""
        if self._limited is not self.core:
            inner = TimeLimitState.at(inner, count, self.shape)
        return Packed.of(AutoResetState(inner, jnp.full(self.shape, over)))

    def step(self, action: np.ndarray) -> Results:
        """Advance every lane."""
        return self._advance(self._env, action)

    def _advance(self, env: Env, action: np.ndarray) -> Results:
        """NumPy observation, reward, terminated, truncated and info of a step."""
        count = np.uint32(self.count)
        self._packed, outcome = _advance(
            env, self.root, count, self._packed, action, self._packed_params
        )
        self.count += 1
        self.has_begun = True
        observation, reward, terminated, truncated, info = outcome.read()
        if "final_obs" in info:
            info["final_obs"] = shown(info["final_obs"])
        return observation, reward, terminated, truncated, info
