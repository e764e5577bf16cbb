"""CartPole3D by leans: an action is a lean of the pole, held for some ticks.

    env, params = jaxsim.make("CartPole3DLeans-v0", level=203, difficulty="hard")

Its observation adds an outlook, the predicted result of each lean, to CartPole3D's. Episodes are
those of CartPole3D, tick by tick, and so are rewards and performance: a step's reward is the sum
over its ticks. One decision spans several ticks, so credit assignment is over fewer decisions.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import inputs, rng, spaces
from jaxsim.agents.leans import LEANS, Outlook, outlook, push_towards
from jaxsim.parameters import Values
from jaxsim.pytrees import Leaf, State, Step
from jaxsim.worlds import cartpole3d
from jaxsim.worlds.cartpole3d.types import UNROLLED, Observation, Params
from jaxsim.wrappers import Wrapper

TICKS = 4
"""Ticks of a step."""


class Leaned(NamedTuple):
    """Observation before each step, with the outlook of every lean."""

    observation: Observation
    outlook: Outlook  # leaves (..., A)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class LeaningState:
    """State of `Leaning`.

    Attributes:
      inner: state of the wrapped environment.
      started: () or (L,) bool, whether the hidden first tick was played.
    """

    inner: State
    started: jax.Array


@dataclass(frozen=True)
class Leaning(Wrapper):
    """CartPole3D whose actions are `agents.leans.LEANS`.

    Attributes:
      env: CartPole3D, with few enough blocks that they are looked at one by one.
    """

    def __post_init__(self) -> None:
        """Refuse environments with other observations."""
        blocks = getattr(self.env.config, "max_blocks", None)
        if blocks is None or blocks > UNROLLED:
            raise ValueError(
                f"leans are for CartPole3D with at most {UNROLLED} blocks, and this is "
                f"{self.env.name} with {blocks or 0}; play it by pushes"
            )

    @property
    def name(self) -> str:
        """Task name."""
        return f"{self.env.name}Leans"

    @property
    def num_actions(self) -> int:
        """Number of leans."""
        return len(LEANS)

    @property
    def max_steps(self) -> int:
        """Steps after which an episode is truncated."""
        return -(-int(self.env.max_steps) // TICKS)

    def dt(self, params: Params) -> Leaf:
        """Return the simulated time of one step, s."""
        return TICKS * self.env.dt(params)

    def start(self, key: jax.Array, params: Params) -> LeaningState:
        """Draw the state before the hidden first tick; see `jaxsim.env.Env.start`."""
        inner = self.env.start(key, params)
        return LeaningState(inner, jnp.zeros(jnp.shape(inner.step), bool))

    def observe(self, state: LeaningState) -> Leaned:
        """Return the observation of a state."""
        return _with_outlook(self.env.observe(state.inner))

    def reset(self, key: jax.Array, params: Params) -> tuple[Leaned, LeaningState]:
        """Start an episode; see `jaxsim.env.Env.reset`."""
        state = self.start(key, params)
        ignored = jnp.zeros(jnp.shape(state.started), jnp.int32)
        return self.step(key, state, ignored, params)[:2]

    def step(self, key: jax.Array, state: LeaningState, action: jax.Array, params: Params) -> Step:
        """Hold a lean; see `jaxsim.env.Env.step`."""
        action = jnp.asarray(inputs.action_codes(action, len(LEANS), ()))
        lean = jnp.asarray(LEANS)[jnp.clip(action, 0, len(LEANS) - 1)]
        words = rng.words(key)

        def tick(inner: State, number: jax.Array) -> Step:
            code = push_towards(self.env.observe(inner), lean[..., 0], lean[..., 1])
            return self.env.step(rng.to_key(rng.fold(words, number)), inner, code, params)

        def hold(carry: tuple[jax.Array, Step]) -> tuple[jax.Array, Step]:
            number, (_, inner, total, *_) = carry
            # The first step of a lane is its hidden tick alone.
            waits = ~state.started & (number > 0)
            stepped = tick(inner, number)
            after = jax.tree.map(partial(jnp.where, waits), carry[1], stepped)
            reward = jnp.where(waits, total, total + stepped[2])
            return number + 1, (*after[:2], reward, *after[3:])

        def goes_on(carry: tuple[jax.Array, Step]) -> jax.Array:
            number, (_, _, _, terminated, truncated, _) = carry
            return (number < TICKS) & jnp.any(
                (state.started | (number == 0)) & ~(terminated | truncated)
            )

        shapes = jax.eval_shape(tick, state.inner, jnp.uint32(0))
        zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
        carry = (jnp.uint32(0), (zeros[0], state.inner, *zeros[2:]))
        _, (observation, inner, *rest) = jax.lax.while_loop(goes_on, hold, carry)
        return _with_outlook(observation), LeaningState(inner, jnp.ones_like(state.started)), *rest


def make(values: Values, **options: Any) -> tuple[Leaning, Params]:
    """Build the environment and its parameters; arguments and errors are those of CartPole3D's."""
    env, params = cartpole3d.make(values, **options)
    return Leaning(env), params


def _with_outlook(observation: Observation) -> Leaned:
    return Leaned(observation, outlook(observation))


@spaces.flatten.register
def _(env: Leaning, observation: Leaned) -> jax.Array:
    """CartPole3D's vector, then `upright`, `gap` and `end` of every lean."""
    sensors = spaces.flatten(env.env, observation.observation)
    return jnp.concatenate([sensors, *observation.outlook], axis=-1, dtype=jnp.float32)


@spaces.unflatten.register
def _(env: Leaning, params: Params, vector: Leaf) -> Leaned:
    vector = jnp.asarray(vector)
    sensors = len(spaces.bounds(env.env, params)[0])
    width = sensors + len(Outlook._fields) * len(LEANS)
    if vector.shape[-1:] != (width,):
        raise ValueError(f"vector has shape {vector.shape}; its last axis must have {width}")
    observation = spaces.unflatten(env.env, params, vector[..., :sensors])
    parts = jnp.split(vector[..., sensors:], len(Outlook._fields), axis=-1)
    return Leaned(observation, Outlook(*parts))


@spaces.bounds.register
def _(env: Leaning, params: Params) -> tuple[np.ndarray, np.ndarray]:
    low, high = spaces.bounds(env.env, params)
    zero, one = np.zeros(len(LEANS), low.dtype), np.ones(len(LEANS), low.dtype)
    free = np.inf * one  # a gap and a lean are as large as the world allows
    least, greatest = (zero, -free, zero), (one, free, free)  # in the order of `Outlook`
    return np.concatenate([low, *least]), np.concatenate([high, *greatest])
