"""The worlds of two dimensions behind CartPole3D's observation and actions.

    env = embed(cartpole.CartPole())
    observation, state = env.reset(key, params)  # as CartPole3D's, with four block slots

An agent for CartPole3D then plays CartPole2D and CartPole too, in one lifetime and without being
told which it is in. The layout, for N block slots:

| CartPole3D's | CartPole2D | CartPole |
| --- | --- | --- |
| cart position x, velocity x | as reported | position, velocity |
| cart position and velocity y and z | 0 | 0 |
| pole quaternion | (0, sin a/2, 0, cos a/2) of its angle a | the same |
| pole angular velocity | (0, rate, 0) | (0, rate, 0) |
| blocks | the three that are reported and do not exist, then empty slots | empty slots |
| action 0, nothing | nothing | a push of 0 N, which the classic task itself does not offer |
| actions 1 and 2, right and left | right and left | right and left |
| actions 3 and 4, forward and backward | nothing | a push of 0 N |

An empty slot reads zero and not alive. Nothing is read a tick late, as CartPole3D's poses are.
States, parameters, rewards and ends of episodes are those of the embedded world.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import inputs, spaces
from jaxsim.env import Env
from jaxsim.inputs import check_whole
from jaxsim.pytrees import Params, State, Step, Tree
from jaxsim.worlds import cartpole
from jaxsim.worlds.cartpole import CartPole
from jaxsim.worlds.cartpole2d import CartPole2D
from jaxsim.worlds.cartpole3d import CartPole3D, Observation, sensors
from jaxsim.worlds.cartpole3d.types import ACTIONS, UNROLLED, Vector
from jaxsim.worlds.world import Attempt, rows_of
from jaxsim.wrappers import WorldWrapper

T = TypeVar("T")

SLOTS = UNROLLED
"""Block slots of an observation, unless a task needs more."""
RIGHT, LEFT = ACTIONS.index("right"), ACTIONS.index("left")


@dataclass(frozen=True)
class Embedded(WorldWrapper, ABC):
    """An environment of two dimensions that looks like CartPole3D; see `embed`.

    Attributes:
      env: the embedded environment.
      slots: block slots of the observation.
    """

    slots: int = SLOTS

    def __post_init__(self) -> None:
        """Refuse fewer slots than there are blocks to report."""
        check_whole("slots", self.slots, SLOTS)

    @property
    def num_actions(self) -> int:
        """Number of actions, CartPole3D's."""
        return len(ACTIONS)

    def observe(self, state: State) -> Observation:
        """Return the observation of a state."""
        return self.lifted(self.env.observe(state))

    def reset(self, key: jax.Array, params: Params) -> tuple[Observation, State]:
        """Start an episode; see `jaxsim.env.Env.reset`."""
        observation, state = self.env.reset(key, params)
        return self.lifted(observation), state

    def step(self, key: jax.Array, state: State, action: jax.Array, params: Params) -> Step:
        """Advance one step; see `jaxsim.env.Env.step`. Other codes than 0 to 4 do nothing."""
        action = jnp.asarray(inputs.action_codes(action, len(ACTIONS), ACTIONS))
        observation, *rest = self.env.step(key, state, *self.converted(action, params))
        state, reward, terminated, truncated, info = rest
        return self.lifted(observation), state, reward, terminated, truncated, info

    # Also needed by `jaxsim.rollout`, see `jaxsim.worlds.world.World`.

    def parts(self, params: Params) -> tuple[tuple["Embedded", ...], np.ndarray]:
        """No simpler environment plays any of the rows."""
        return (self,), np.zeros(rows_of(params), np.int32)

    def attempt(
        self,
        key: jax.Array,
        state: State,
        action: jax.Array,
        params: Params,
        active: jax.Array,
        effort: int,
    ) -> Attempt:
        """Advance running episodes by one step; see `jaxsim.worlds.world.World.attempt`."""
        return self.env.attempt(key, state, *self.converted(action, params), active, effort)

    @abstractmethod
    def lifted(self, observation: Tree) -> Observation:
        """Return an observation of the embedded environment in CartPole3D's form."""

    @abstractmethod
    def converted(self, action: jax.Array, params: Params) -> tuple[jax.Array, Params]:
        """Return the embedded environment's action and parameters for an action."""


class _EmbeddedCartPole2D(Embedded):
    """CartPole2D, whose actions and observation are a part of CartPole3D's."""

    def lifted(self, observation: Observation) -> Observation:
        return _padded(observation, self.slots)

    def converted(self, action: jax.Array, params: Params) -> tuple[jax.Array, Params]:
        return jnp.where((action == RIGHT) | (action == LEFT), action, 0), params


class _EmbeddedCartPole(Embedded):
    """CartPole, which must push in every step."""

    def lifted(self, observation: cartpole.Observation) -> Observation:
        o = observation
        zero = jnp.zeros_like(o.x)
        half = 0.5 * o.angle
        flat = Observation(
            cart_position=Vector(o.x, zero, zero),
            cart_velocity=Vector(o.v, zero, zero),
            pole_quaternion=(zero, jnp.sin(half), zero, jnp.cos(half)),
            pole_velocity=Vector(zero, o.rate, zero),
            block_position=(),
            block_velocity=(),
            block_alive=(),
        )
        return _padded(flat, self.slots)

    def converted(
        self, action: jax.Array, params: cartpole.Params
    ) -> tuple[jax.Array, cartpole.Params]:
        right = (action == RIGHT).astype(jnp.int32)
        pushes = (action == RIGHT) | (action == LEFT)
        return right, replace(params, force=jnp.where(pushes, params.force, 0.0))


def _padded(observation: Observation, slots: int) -> Observation:
    """Append empty block slots, and stack them where CartPole3D does."""
    o = observation
    zero = jnp.zeros_like(o.cart_position.x)
    empty = slots - len(o.block_alive)
    nowhere = Vector(zero, zero, zero)
    if slots <= UNROLLED:
        return replace(
            o,
            block_position=o.block_position + (nowhere,) * empty,
            block_velocity=o.block_velocity + (nowhere,) * empty,
            block_alive=o.block_alive + (zero > 0,) * empty,
        )
    return replace(
        o,
        block_position=(_stacked(o.block_position, nowhere, empty),),
        block_velocity=(_stacked(o.block_velocity, nowhere, empty),),
        block_alive=(_stacked(o.block_alive, zero > 0, empty),),
    )


def _stacked(slots: tuple[T, ...], empty_slot: T, count: int) -> T:
    """Stack slots on a last axis, followed by empty ones."""

    def join(none: jax.Array, *leaves: jax.Array) -> jax.Array:
        padding = jnp.broadcast_to(none[..., None], (*none.shape, count))
        return jnp.concatenate([*(leaf[..., None] for leaf in leaves), padding], axis=-1)

    return jax.tree.map(join, empty_slot, *slots)


@singledispatch
def embed(env: Env, slots: int = SLOTS) -> Env:
    """Return an environment with CartPole3D's observation and actions.

    Args:
      env: CartPole3D, CartPole2D or CartPole; any other is returned as it is.
      slots: block slots of the observation, at least 4 and at least those of CartPole3D itself.

    Raises:
      ValueError: too few slots.
    """
    return env


@embed.register
def _(env: CartPole3D, slots: int = SLOTS) -> CartPole3D:
    check_whole("slots", slots, env.config.max_blocks)
    return CartPole3D(replace(env.config, max_blocks=slots))


@embed.register
def _(env: CartPole2D, slots: int = SLOTS) -> Embedded:
    return _EmbeddedCartPole2D(env, slots)


@embed.register
def _(env: CartPole, slots: int = SLOTS) -> Embedded:
    return _EmbeddedCartPole(env, slots)


@spaces.flatten.register
def _(env: Embedded, observation: Observation) -> jax.Array:
    return sensors.to_vector(observation)


spaces.unflatten.register(Embedded, spaces.sensors_of)


@spaces.bounds.register
def _(env: Embedded, params: Params) -> tuple[np.ndarray, np.ndarray]:
    """Only the flags of the blocks and the quaternion's components have bounds in all worlds."""
    high = np.full(11 + 7 * env.slots, np.inf, env.config.dtype)
    high[4:8] = 1 + spaces.ROUNDING
    high[11::7] = 1.0
    low = -high
    low[11::7] = 0.0
    return low, high


__all__ = ["SLOTS", "Embedded", "embed"]
