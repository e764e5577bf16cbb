"""The classic CartPole, step for step Gymnasium's CartPole-v1."""

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp

from jaxsim import rng
from jaxsim.parameters import Values
from jaxsim.worlds.cartpole import dynamics, generate, sensors
from jaxsim.worlds.cartpole.levels import PARAMETERS, params_from_values
from jaxsim.worlds.cartpole.types import ACTIONS, Config, Observation, Params, Scalar, State
from jaxsim.worlds.world import World, all_finite, configure

Step = tuple[Observation, State, jax.Array, jax.Array, jax.Array, dict[str, jax.Array]]


@dataclass(frozen=True)
class CartPole(World):
    """The environment; see `jaxsim.env` for the contract.

    Every step is rewarded with 1, the one that ends the episode too. The episode terminates when
    the cart is more than 2.4 m off the middle or the pole leans more than 12 degrees, and is
    truncated after 500 steps; both may happen in one step. The performance is the share of those
    500 steps. The hidden first step changes nothing: the drawn state is the first observation.

    Inside a compiled program any action but 1 pushes to the left.
    """

    name = "CartPole"
    actions = ACTIONS

    config: Config = field(default_factory=Config)

    def dt(self, params: Params) -> Scalar:
        """Simulated time of one step, s."""
        return params.tau

    def start(self, key: jax.Array, params: Params) -> State:
        """Draw the state before the hidden first step; see `jaxsim.env.Env.start`."""
        shape = jnp.broadcast_shapes(key.shape, *(jnp.shape(p) for p in jax.tree.leaves(params)))
        return generate.draw(jnp.broadcast_to(key, shape), params, self.config)

    def observe(self, state: State) -> Observation:
        """Read the sensors of a state."""
        return sensors.observe(state)

    def step(self, key: jax.Array, state: State, action: jax.Array, params: Params) -> Step:
        """Advance one step; see `jaxsim.env.Env.step`."""
        rng.words(key)  # nothing is drawn; this rejects a raw key, as in every world
        running = ~state.done
        new = _advance(state, self.checked(action), params)
        # A position of inf m is out of bounds, but did not end the episode.
        finite_before = all_finite(state, jnp.ndim(state.step))
        end = self.ends(
            state,
            new,
            fallen=_has_fallen(new, params),
            finite=all_finite(new, jnp.ndim(state.step)),
            fell_before=state.done & _has_fallen(state, params) & finite_before,
        )
        share = (state.step + running).astype(self.config.dtype) / self.config.max_steps
        info = {"performance": share, "nonfinite": end.nonfinite}
        reward = (running & (state.step >= 0)).astype(self.config.dtype)
        return sensors.observe(end.state), end.state, reward, end.terminated, end.truncated, info

    def score(self, length: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Sum of the rewards and performance of an episode by its length; (...) each."""
        steps = length.astype(self.config.dtype)
        return steps, steps / self.config.max_steps

    def step_reward(self, number: jax.Array) -> jax.Array:
        """Reward of a step by its number; (...)."""
        return jnp.ones_like(number, self.config.dtype)


def _advance(state: State, action: jax.Array, params: Params) -> State:
    """One step of the motion; the hidden step only increases the count."""
    force = jnp.where(action == 1, params.force, -params.force)
    after = dynamics.move(params, state.motion, force)
    hidden = state.step < 0
    motion = jax.tree.map(lambda a, b: jnp.where(hidden, a, b), state.motion, after)
    return State(motion, state.step + 1, state.done)


def _has_fallen(state: State, params: Params) -> jax.Array:
    """The end test; the start is not tested."""
    return (state.step > 0) & dynamics.out_of_bounds(params, state.motion)


def make(values: Values, **options: Any) -> tuple[CartPole, Params]:
    """Build the environment and its parameters, for `jaxsim.make`.

    Args:
      values: parameters by path, already checked against the table.
      **options: `max_steps` and `dtype` of `Config`.

    Raises:
      ValueError: an unknown or invalid option, or float64 without x64.
    """
    config = configure(Config, options)
    return CartPole(config), params_from_values(values, config)


__all__ = ["PARAMETERS", "CartPole", "make"]
