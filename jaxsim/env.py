"""The environment contract. Every world follows it; `jaxsim.testing` checks it.

    env, params = jaxsim.make("CartPole3D-v0", {"pole/length": 3.0})
    obs, state = env.reset(key, params)
    obs, state, reward, terminated, truncated, info = env.step(key, state, action, params)

* Pure functions: everything an episode depends on is in the arguments. Keys are typed
  (`jax.random.key`); the key of `reset` determines the start, the key of `step` what is random in
  that step.
* `params` is a pytree of traced numbers: changing one never recompiles. What changes shapes or the
  program is in `env.config`, which is hashable.
* Elementwise: keys, states, actions and params may all carry a leading batch axis of L lanes, or
  be scalars. `jax.vmap` works too, but costs more: a batch given directly spends contact work only
  on the lanes that have contact.
* Every episode has a hidden first step. `start` gives the state before it; from there `step`
  ignores the action, and its observation is the episode's first. `reset` does both.
* `terminated` (the task ended) and `truncated` (a limit was reached) are separate; an episode is
  over when either holds. There is no auto-reset: from then on `step` returns the state unchanged,
  reward 0 and the same flags.
* No number that is not finite leaves `step` unflagged: if the state would no longer be finite, the
  episode ends as truncated with `info["nonfinite"]` set, in this step and from then on. The state
  stays what it was, so all that is returned is finite if what was given is. (The state of an
  episode that is over is returned unchanged, even if it is not finite.)
* `info["performance"]` is the task's score so far in [0, 1].
"""

from typing import Protocol

import jax

from jaxsim.pytrees import Leaf, Observation, Params, State, Step


class Env(Protocol):
    """An environment: static parts as attributes, everything else as arguments."""

    @property
    def name(self) -> str:
        """Task name, for example "CartPole3D"."""
        ...

    @property
    def num_actions(self) -> int:
        """Actions are the integers from 0 to this, exclusive."""
        ...

    @property
    def max_steps(self) -> int:
        """Steps after which an episode is truncated."""
        ...

    def dt(self, params: Params) -> Leaf:
        """Return the simulated time of one step, s, () or (L,).

        Args:
          params: physics, scalar leaves or (L,).
        """
        ...

    def start(self, key: jax.Array, params: Params) -> State:
        """Draw the state before the hidden first step.

        Args:
          key: () or (L,) typed key.
          params: physics, scalar leaves or (L,).
        """
        ...

    def observe(self, state: State) -> Observation:
        """Return the observation of a state, as `reset` and `step` do.

        A state always reads the same: noise of the sensors follows from what is in it.
        """
        ...

    def reset(self, key: jax.Array, params: Params) -> tuple[Observation, State]:
        """Start an episode.

        Args:
          key: () or (L,) typed key.
          params: physics, scalar leaves or (L,).

        Returns:
          (observation, state).
        """
        ...

    def step(self, key: jax.Array, state: State, action: jax.Array, params: Params) -> Step:
        """Advance one step.

        Args:
          key: () or (L,) typed key.
          state: from `reset` or `step`.
          action: () or (L,) int in [0, num_actions). Another type is refused, and so is a number
            out of range where it is known. In traced code it does what the world says: nothing,
            in CartPole3D and CartPole2D; a push to the left, in CartPole.
          params: as for `reset`.

        Returns:
          (observation, state, reward, terminated, truncated, info).
        """
        ...
