"""The classic CartPole, step for step Gymnasium's CartPole-v1."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp

from jaxsim import rng
from jaxsim.worlds.cartpole import dynamics, generate, sensors
from jaxsim.worlds.cartpole.levels import PARAMETERS, params_from_values
from jaxsim.worlds.cartpole.types import ACTIONS, Config, Observation, Params, State

Step = tuple[Observation, State, jax.Array, jax.Array, jax.Array, dict[str, jax.Array]]


@dataclass(frozen=True)
class CartPole:
    """The environment; see `jaxsim.env` for the contract.

    Every step is rewarded with 1, the one that ends the episode too. The episode terminates when
    the cart is more than 2.4 m off the middle or the pole leans more than 12 degrees, and is
    truncated after 500 steps; both may happen in one step. The performance is the share of those
    500 steps. The hidden first step changes nothing: the drawn state is the first observation.

    Inside a compiled program any action but 1 pushes to the left.
    """

    config: Config = field(default_factory=Config)

    @property
    def name(self) -> str:
        """Task name."""
        return "CartPole"

    @property
    def num_actions(self) -> int:
        """Left, right."""
        return len(ACTIONS)

    @property
    def max_steps(self) -> int:
        """Steps after which an episode is truncated."""
        return self.config.max_steps

    def start(self, key: jax.Array, params: Params) -> State:
        """Draw the state before the hidden first step; see `jaxsim.env.Env.start`."""
        shape = jnp.broadcast_shapes(key.shape, *(jnp.shape(p) for p in jax.tree.leaves(params)))
        return generate.draw(jnp.broadcast_to(key, shape), params, self.config)

    def reset(self, key: jax.Array, params: Params) -> tuple[Observation, State]:
        """Start an episode; see `jaxsim.env.Env.reset`."""
        start = self.start(key, params)
        observation, state, *_ = self.step(key, start, jnp.zeros_like(start.step), params)
        return observation, state

    def observe(self, state: State) -> Observation:
        """Read the sensors of a state."""
        return sensors.observe(state)

    def step(self, key: jax.Array, state: State, action: jax.Array, params: Params) -> Step:
        """Advance one step; see `jaxsim.env.Env.step`."""
        rng.words(key)  # nothing is drawn, yet a raw key is refused as everywhere
        running = ~state.done
        new = _advance(state, action, params)
        finite = _is_finite(new)
        fallen = _has_fallen(new, params)
        late = (new.step >= self.config.max_steps) | ~finite
        # A state that is not finite is not kept: what agents see stays finite.
        keep = running & finite
        done = state.done | fallen | late
        new = jax.tree.map(lambda a, b: jnp.where(keep, a, b), new, state)
        new = State(new.motion, new.step, done)
        fell_before = state.done & _has_fallen(state, params)
        late_before = state.done & ((state.step >= self.config.max_steps) | ~fell_before)
        terminated = jnp.where(running, fallen & finite, fell_before)
        truncated = jnp.where(running, late, late_before)
        share = (state.step + running).astype(self.config.dtype) / self.config.max_steps
        info = {"performance": share, "nonfinite": running & ~finite}
        reward = (running & (state.step >= 0)).astype(self.config.dtype)
        return sensors.observe(new), new, reward, terminated, truncated, info


def _advance(state: State, action: jax.Array, params: Params) -> State:
    """One step without its consequences; the hidden one only counts."""
    force = jnp.where(action == 1, params.force, -params.force)
    moved = dynamics.move(params, state.motion, force)
    hidden = state.step < 0
    motion = jax.tree.map(lambda a, b: jnp.where(hidden, a, b), state.motion, moved)
    return State(motion, state.step + 1, state.done)


def _has_fallen(state: State, params: Params) -> jax.Array:
    """The end test; the start is not tested."""
    return (state.step > 0) & dynamics.out_of_bounds(params, state.motion)


def _is_finite(state: State) -> jax.Array:
    """Whether every number of the state is finite: any that is not spoils the sum."""
    return jnp.isfinite(sum(number * 0.0 for number in jax.tree.leaves(state.motion)))


def make(values: Mapping[str, Any], **options: Any) -> tuple[CartPole, Params]:
    """Build the environment and its parameters, for `jaxsim.make`.

    Args:
      values: parameters by path.
      **options: `max_steps` and `dtype` of `Config`.

    Raises:
      ValueError: an option that does not exist or does not fit, or float64 without x64.
    """
    known = Config.__dataclass_fields__
    for option in options:
        if option not in known:
            raise ValueError(f"unknown option {option!r} (allowed: {', '.join(known)})")
    config = Config(**options)
    if config.dtype == "float64" and not jax.config.read("jax_enable_x64"):
        raise ValueError('dtype is "float64"; set jax.config.update("jax_enable_x64", True) first')
    return CartPole(config), params_from_values(values, config)


__all__ = ["PARAMETERS", "CartPole", "make"]
