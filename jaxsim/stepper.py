"""Episodes stepped from Python, for Gymnasium and for agents outside of JAX.

`EpisodeKeys.of`, `drawn` and `advanced` are keys, start and step of an episode, or of many lanes,
with the randomness of the lane engine; `evaluation.abreast` compiles them for lanes. `Stepper`
compiles them for one episode: a call into compiled code costs more than the physics of one step, so
a step is one call that takes and returns one array each of state and outcome (`jaxsim.packing`).
Most steps run a small program without contacts between bodies (`World.quick_step`). If it may be
wrong, the whole program repeats the step; it is compiled when it is first needed.

Numbers are those of the same episode in a batch, up to rounding: XLA rounds a few of a hundred
steps of a single lane differently in the last bit, and repeating the lane does not change that.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxsim import counters, rng
from jaxsim.env import Env
from jaxsim.packing import Packed
from jaxsim.pytrees import Leaf, Observation, Params, State, Step, Tree


class EpisodeKeys(NamedTuple):
    """Counter keys at the beginning of an episode; leaves () or (L,).

    Attributes:
      start: draws the start.
      first: of the hidden first step.
      steps: parent of the keys of later steps, `fold(steps, count)`.
      count: of the hidden first step, uint32.
    """

    start: rng.Words
    first: rng.Words
    steps: rng.Words
    count: Leaf

    @classmethod
    def of(cls, episode: rng.Words) -> "EpisodeKeys":
        """Return the keys that follow from the key of an episode, as in the lane engine."""
        steps, none = rng.fold(episode, counters.STEP), jnp.zeros_like(episode.a)
        return cls(rng.fold(episode, counters.RESET), rng.fold(steps, none), steps, none)


class StepCarry(NamedTuple):
    """Data that one step passes to the next; leaves () or (L,).

    Attributes:
      key: of the next step.
      steps: parent of the keys after that.
      count: steps of the stream so far, uint32.
      state: of the environment.
    """

    key: rng.Words
    steps: rng.Words
    count: Leaf
    state: State


class StepOutcome(NamedTuple):
    """Result of a step; leaves () or (L,), NumPy scalars once a `Stepper` has read it.

    Attributes:
      observation: as the environment or the stepper's `view` gives it.
      reward: of the step.
      terminated: the task ended.
      truncated: a limit was reached.
      performance: the task's score so far, in [0, 1].
      nonfinite: the episode met a number that is not finite.
      right: whether the program was right for this step.
    """

    observation: Observation
    reward: Leaf
    terminated: Leaf
    truncated: Leaf
    performance: Leaf
    nonfinite: Leaf
    right: Leaf


StepFunction = Callable[[jax.Array, State, Leaf, Params], tuple[Step, Leaf]]
"""Function (key, state, action, params) -> (what `Env.step` returns, whether it is right)."""


def drawn(
    start: Callable[[jax.Array, Params], State], keys: EpisodeKeys, params: Params
) -> StepCarry:
    """Draw the states before the hidden first step; for traced code.

    Args:
      start: `Env.start`.
      keys: of the episodes.
      params: physics, leaves () or (L,).
    """
    state = start(rng.to_key(keys.start), params)
    return StepCarry(keys.first, keys.steps, keys.count, state)


def advanced(
    step: StepFunction, before: StepCarry, action: Leaf, params: Params
) -> tuple[StepCarry, StepOutcome]:
    """Take a step; for traced code.

    Args:
      step: of an environment.
      before: what the step before has passed on.
      action: () or (L,) int.
      params: physics, leaves () or (L,).
    """
    stepped, right = step(rng.to_key(before.key), before.state, action, params)
    observation, state, reward, terminated, truncated, info = stepped
    count = before.count + 1
    after = StepCarry(rng.fold(before.steps, count), before.steps, count, state)
    flags = terminated, truncated, info["performance"], info["nonfinite"]
    return after, StepOutcome(observation, reward, *flags, right)


View = Callable[[Env, Observation], Observation]
"""Function (env, observation) -> form in which the observation is shown, leaves (); traced."""


def as_it_is(env: Env, observation: Observation) -> Observation:
    """Show an observation unchanged."""
    return observation


class Stepper:
    """Plays episodes of one environment, one at a time.

    Args:
      env: environment; see `jaxsim.env`.
      params: its parameters, leaves ().
      view: form in which observations are shown.
    """

    def __init__(self, env: Any, params: Params, view: View = as_it_is) -> None:
        self.env = env
        self._programs = _Programs.of(env, view)
        self._params = _packed(jax.tree.map(jnp.asarray, params))
        # On the device already: a call takes arrays of NumPy in more slowly.
        self._actions = [jnp.int32(action) for action in range(env.num_actions)]
        self._running: Packed | None = None

    def another(self) -> "Stepper":
        """Return a stepper for other episodes of the same environment and parameters."""
        other = copy(self)
        other._running = None
        return other

    def compile(self) -> None:
        """Compile all that an episode may need, so that none of its steps waits for that."""
        word = rng.Words(jnp.uint32(0), jnp.uint32(0))
        running = self._programs.draw(EpisodeKeys(word, word, word, jnp.uint32(0)), self._params)
        for program in {self._programs.quick, self._programs.whole}:
            program(running, self._actions[0], self._params)
        self._programs.observe(running)

    def begin(self, keys: EpisodeKeys) -> StepOutcome:
        """Draw a start and play the hidden first step; its reward does not count."""
        self._running = self._programs.draw(keys, self._params)
        return self.step(0)

    def begin_at(self, start: State, keys: EpisodeKeys) -> StepOutcome:
        """Begin at a given state before the hidden first step, leaves (), which is played."""
        self.go_on_from(start, keys)
        return self.step(0)

    def go_on_from(self, state: State, keys: EpisodeKeys) -> None:
        """Take a given state, leaves (); the next step has the key `keys.first`."""
        self._running = _packed(StepCarry(keys.first, keys.steps, keys.count, state))

    def step(self, action: int) -> StepOutcome:
        """Advance one step.

        Args:
          action: from 0 to `env.num_actions - 1`; the caller checks it.
        """
        assert self._running is not None, "no episode has begun"
        arguments = self._running, self._actions[action], self._params
        running, shown = self._programs.quick(*arguments)
        outcome: StepOutcome = shown.read()
        if not outcome.right:
            running, shown = self._programs.whole(*arguments)
            outcome = shown.read()
        self._running = running
        return outcome

    @property
    def state(self) -> State:
        """The environment's state, NumPy leaves; None before the first episode."""
        return None if self._running is None else self._running.read().state

    def observe(self) -> Observation:
        """Return the observation of the present state, as `view` gives it."""
        assert self._running is not None, "no episode has begun"
        return self._programs.observe(self._running).read()


def answer_at_once() -> None:
    """Have JAX run computations on a processor in the thread that asks for them.

    By default another thread runs them, and waking it takes longer than a step does. This is a
    setting of the whole process, and it holds only if nothing was computed before. Results do not
    change, but a call returns only when its computation has ended.
    """
    jax.config.update("jax_cpu_enable_async_dispatch", False)


@dataclass(frozen=True)
class _Programs:
    """Compiled functions of one environment and view; states and outcomes are packed.

    Pickled as environment and view, and made again where they are read.

    Attributes:
      env: environment.
      view: form in which observations are shown.
      draw: (keys, params) -> `StepCarry` before the hidden first step.
      quick: (running, action, params) -> (`StepCarry`, `StepOutcome`), which may not be right;
        `whole` where `env` has no `quick_step`.
      whole: the same, always right.
      observe: running -> observation of its state, as `view` gives it.
    """

    env: Any
    view: View
    draw: Callable[[EpisodeKeys, Packed], Packed]
    quick: Callable[[Packed, Leaf, Packed], tuple[Packed, Packed]]
    whole: Callable[[Packed, Leaf, Packed], tuple[Packed, Packed]]
    observe: Callable[[Packed], Packed]

    @staticmethod
    @lru_cache(maxsize=64)
    def of(env: Any, view: View) -> "_Programs":
        """Return the programs of an environment; cached."""
        # Closures, not static arguments: a call would hash and compare them each time.
        whole = jax.jit(partial(_advanced, env, view, partial(_whole_step, env)))
        quick = whole
        if hasattr(env, "quick_step"):
            quick = jax.jit(partial(_advanced, env, view, env.quick_step))
        observe = jax.jit(partial(_observed, env, view))
        return _Programs(env, view, jax.jit(partial(_drawn, env)), quick, whole, observe)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Programs.of, (self.env, self.view)


@jax.jit
def _packed(tree: Tree) -> Packed:
    return Packed.of(tree)


def _drawn(env: Env, keys: EpisodeKeys, params: Packed) -> Packed:
    return Packed.of(drawn(env.start, keys, params.unpack()))


def _observed(env: Env, view: View, running: Packed) -> Packed:
    return Packed.of(view(env, env.observe(running.unpack().state)))


def _advanced(
    env: Env, view: View, step: StepFunction, running: Packed, action: Leaf, params: Packed
) -> tuple[Packed, Packed]:
    after, outcome = advanced(step, running.unpack(), action, params.unpack())
    outcome = outcome._replace(observation=view(env, outcome.observation))
    return Packed.of(after), Packed.of(outcome)


def _whole_step(env: Env, *arguments: Tree) -> tuple[Step, jax.Array]:
    return env.step(*arguments), jnp.ones((), bool)
