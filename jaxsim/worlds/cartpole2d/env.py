"""CartPole2D: levels 50 to 53, a cart on a rail with a pole on a hinge and no room around them."""

from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp

from jaxsim import backend, parameters, rng
from jaxsim.parameters import Values
from jaxsim.worlds.cartpole.types import Scalar
from jaxsim.worlds.cartpole2d import dynamics, generate, sensors
from jaxsim.worlds.cartpole2d.levels import PARAMETERS, TASK, params_from_values
from jaxsim.worlds.cartpole2d.types import (
    ACTIONS,
    DT,
    REWARD_STEPS,
    Config,
    Params,
    State,
)
from jaxsim.worlds.cartpole3d.types import Observation
from jaxsim.worlds.world import World, all_finite, configure

Step = tuple[Observation, State, jax.Array, jax.Array, jax.Array, dict[str, jax.Array]]


@dataclass(frozen=True)
class CartPole2D(World):
    """The environment; see `jaxsim.env` for the contract.

    A step is one tick of 0.02 s. The episode terminates when the cart is more than 2.4 m off the
    middle or the pole leans more than 24.2 degrees, both as reported.

    The original ends an episode in no other way. Here it is truncated after `config.max_steps`.
    As in the original, the reward of step k is k/200 however long the episode is, so it passes 1
    after 200 steps; the performance is the last reward but at most 1, which is comparable with
    CartPole3D's.

    Inside a compiled program any action but 1 and 2 is "nothing".
    """

    name = TASK
    actions = ACTIONS

    config: Config = field(default_factory=Config)

    def dt(self, params: Params) -> Scalar:
        """Simulated time of one step, s."""
        return DT

    def start(self, key: jax.Array, params: Params) -> State:
        """Draw the state before the hidden first tick; see `jaxsim.env.Env.start`."""
        shape = jnp.broadcast_shapes(key.shape, *(jnp.shape(p) for p in jax.tree.leaves(params)))
        return generate.draw(jnp.broadcast_to(key, shape), params, self.config)

    def observe(self, state: State) -> Observation:
        """Read the sensors of a state."""
        return sensors.observe(state)

    def step(self, key: jax.Array, state: State, action: jax.Array, params: Params) -> Step:
        """Advance one tick; see `jaxsim.env.Env.step`."""
        rng.words(key)  # nothing is drawn; this rejects a raw key, as in every world
        running = ~state.done
        new = _advance(state, self.checked(action), params)
        end = self.ends(
            state,
            new,
            fallen=_has_fallen(new, params),
            finite=all_finite(new, jnp.ndim(state.step)),
            fell_before=state.done & _has_fallen(state, params),
        )
        share = (state.step + running).astype(self.config.dtype) / REWARD_STEPS
        info = {"performance": jnp.minimum(share, 1.0), "nonfinite": end.nonfinite}
        reward = jnp.where(running, share, 0.0)
        return sensors.observe(end.state), end.state, reward, end.terminated, end.truncated, info

    def score(self, length: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Sum of the rewards and performance of an episode by its length; (...) each."""
        steps = length.astype(self.config.dtype)
        return steps * (steps + 1) / (2 * REWARD_STEPS), jnp.minimum(steps / REWARD_STEPS, 1.0)

    def step_reward(self, number: jax.Array) -> jax.Array:
        """Reward of a step by its number; (...)."""
        return number.astype(self.config.dtype) / REWARD_STEPS


def action_code(action: object) -> int:
    """Code of an action, with the rules of the original.

    Args:
      action: "left", "right" or "nothing"; anything else, numbers too, acts as "nothing".
    """
    return ACTIONS.index(action) if isinstance(action, str) and action in ACTIONS else 0


def _push(action: jax.Array, params: Params, state: State) -> jax.Array:
    """Force of the action on the cart, N; none in the hidden tick."""
    zero = jnp.zeros_like(state.motion.x)
    x = jnp.where(action == 1, params.force, jnp.where(action == 2, -params.force, zero))
    return jnp.where(state.step < 0, zero, x)


def _advance(state: State, action: jax.Array, params: Params) -> State:
    """One tick of motion and sensors."""
    push = _push(action, params, state)
    motion = dynamics.move(params, state.motion, push, state.zone_drag)
    motion = backend.materialise(motion, backend.opaque_one(state.motion.x))
    reported = sensors.report(params, motion)
    return replace(state, motion=motion, reported=reported, step=state.step + 1)


def _has_fallen(state: State, params: Params) -> jax.Array:
    """The end test; the state after the hidden tick is not tested."""
    return (state.step > 0) & dynamics.out_of_bounds(params, state.reported)


def make(values: Values, **options: Any) -> tuple[CartPole2D, Params]:
    """Build the environment and its parameters, for `jaxsim.make`.

    Args:
      values: parameters by path, already checked against the table.
      **options: `level` (50) and `difficulty` as shorthands of the parameters `novelty/level`
        and `novelty/difficulty`; `max_steps`, `dtype` and `engine` of `Config`.

    Raises:
      ValueError: an unknown or invalid option, or float64 without x64.
    """
    shorthands = {"level": "novelty/level", "difficulty": "novelty/difficulty"}
    by_shorthand = {shorthands[k]: options.pop(k) for k in list(options) if k in shorthands}
    parameters.check(PARAMETERS, by_shorthand)
    config = configure(Config, options, shorthands)
    return CartPole2D(config), params_from_values({**values, **by_shorthand}, config)


__all__ = ["PARAMETERS", "CartPole2D", "make"]
