"""Spaces of actions and of flat observations, as functions of an environment.

    space = spaces.observation_space(env)  # Box of shape (39,) for CartPole3D with 4 blocks
    vector = spaces.flatten(env, observation)  # (..., 39)

An environment whose observation has a documented vector form registers it with
`flatten.register`, `unflatten.register` and `bounds.register`; any other is flattened leaf after
leaf, without bounds.
"""

import math
from dataclasses import dataclass
from functools import partial, singledispatch

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import inputs, rng
from jaxsim.env import Env
from jaxsim.pytrees import Leaf, Params, Tree
from jaxsim.worlds.cartpole3d import CartPole3D, Observation, sensors
from jaxsim.worlds.cartpole3d.blocks.placement import BLOCK_MIDDLE, BLOCK_SPREAD
from jaxsim.worlds.cartpole3d.dynamics import SPEED_LIMIT
from jaxsim.worlds.cartpole3d.parameter_table import PARAMETERS
from jaxsim.worlds.cartpole3d.types import DT, Vector

ROUNDING = 1e-4  # room for rounding around a unit quaternion


@dataclass(frozen=True)
class Discrete:
    """The integers from 0 to n, exclusive.

    Attributes:
      n: how many there are.
      dtype: integer type of samples.
    """

    n: int
    dtype: str = "int32"

    def __post_init__(self) -> None:
        """Refuse a space without elements or with elements that are not integers."""
        inputs.check_whole("n", self.n, 1)
        if not np.issubdtype(np.dtype(self.dtype), np.integer):
            raise ValueError(f"dtype is {self.dtype!r}; it must be an integer type")

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one element."""
        return ()

    def sample(self, key: jax.Array) -> jax.Array:
        """Draw uniformly; the bias of the remainder is below n 2^-32.

        Args:
          key: (...) typed key.

        Returns:
          (...) integers.
        """
        return (rng.bits(rng.words(key), 0) % jnp.uint32(self.n)).astype(self.dtype)

    def contains(self, x: Leaf) -> jax.Array:
        """Tell for each element of an array whether it is in the space.

        Args:
          x: (...) anything with a dtype; only integers are contained.

        Returns:
          (...) bool.
        """
        x = jnp.asarray(x)
        if not jnp.issubdtype(x.dtype, jnp.integer):
            return jnp.zeros(x.shape, bool)
        return (x >= 0) & (x < self.n)

    def checked(self, x: Leaf, shape: tuple[int, ...] = ()) -> Leaf:
        """Return elements that a caller passed, after checking them outside traced code.

        Args:
          x: integer or integer array; of traced arrays only shape and dtype can be checked.
          shape: shape that it must have.

        Returns:
          `shape` array of `dtype`.

        Raises:
          ValueError: another shape, not integers, or a number out of range.
        """
        if shape == () and type(x) in _INTEGERS and 0 <= x < self.n:
            return np.asarray(x, self.dtype)  # the usual case of Python loops
        if np.shape(x) != shape:
            raise ValueError(
                f"action has shape {np.shape(x)}, not {shape}; it must be an integer from 0 to "
                f"{self.n - 1}"
            )
        return inputs.action_codes(x, self.n).astype(self.dtype)


_INTEGERS = (int, np.int32, np.int64)  # not bool, which is a subclass of int


@dataclass(frozen=True, eq=False)
class Box:
    """Arrays between two bounds, both included.

    Attributes:
      low: smallest element by element; -inf for none.
      high: greatest, of the same shape and type.
    """

    low: np.ndarray
    high: np.ndarray

    def __post_init__(self) -> None:
        """Refuse bounds that do not fit together."""
        if self.low.shape != self.high.shape or self.low.dtype != self.high.dtype:
            raise ValueError("low and high must have the same shape and dtype")
        if not np.all(self.low <= self.high):
            raise ValueError("low must not be above high, and neither may be NaN")

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one element."""
        return self.low.shape

    @property
    def dtype(self) -> np.dtype:
        """Type of one element."""
        return self.low.dtype

    def sample(self, key: jax.Array) -> jax.Array:
        """Draw uniformly between the bounds; of whole numbers, both included.

        Args:
          key: (...) typed key.

        Returns:
          (..., *shape).

        Raises:
          ValueError: a bound is infinite, so that there is no uniform distribution.
        """
        if not (np.all(np.isfinite(self.low)) and np.all(np.isfinite(self.high))):
            raise ValueError("a box with infinite bounds has no uniform distribution to draw from")
        words = rng.words(key)
        spread = words.a.shape + (1,) * len(self.shape)
        words = rng.Words(words.a.reshape(spread), words.b.reshape(spread))
        slots = jnp.arange(math.prod(self.shape)).reshape(self.shape)
        low, high = jnp.asarray(self.low), jnp.asarray(self.high)
        if np.issubdtype(self.dtype, np.integer):
            size = high.astype(jnp.uint32) - low.astype(jnp.uint32) + 1
            bits = rng.bits(words, slots)
            # The size of a box of all numbers of 32 bits overflows to 0.
            offset = jnp.where(size == 0, bits, bits % jnp.maximum(size, 1))
            return low + offset.astype(self.dtype)
        # Of half the size, as the distance between the bounds may overflow.
        return 2 * rng.uniform(words, slots, low / 2, high / 2, self.dtype)

    def contains(self, x: Leaf) -> jax.Array:
        """Tell whether arrays are in the box; NaN never is.

        Args:
          x: (..., *shape).

        Returns:
          (...) bool; False for any other trailing shape.
        """
        x = jnp.asarray(x)
        size = len(self.shape)
        batch = x.shape[: max(x.ndim - size, 0)]
        if x.shape != batch + self.shape:
            return jnp.zeros(batch, bool)
        inside = (x >= self.low) & (x <= self.high)
        return jnp.all(inside, axis=tuple(range(-size, 0)))


def action_space(env: Env) -> Discrete:
    """Return the action space of an environment."""
    return Discrete(env.num_actions)


def observation_space(env: Env, params: Params = None) -> Box:
    """Return the space of an environment's flattened observations.

    Args:
      env: the environment.
      params: parameters, needed only for an environment without bounds of its own.
    """
    return Box(*bounds(env, params))


@singledispatch
def flatten(env: Env, observation: Tree) -> jax.Array:
    """Flatten an observation to a vector.

    Args:
      env: the environment it is from.
      observation: leaves of any batch shape.

    Returns:
      (..., D); for CartPole3D as in `sensors.to_vector`. An environment without a vector form of
      its own must have leaves that are scalars for one lane; they are stacked.
    """
    leaves = jnp.broadcast_arrays(*jax.tree.leaves(observation))
    return jnp.stack(leaves, axis=-1, dtype=jnp.float32)


@flatten.register
def _(env: CartPole3D, observation: Observation) -> jax.Array:
    return sensors.to_vector(observation)


@singledispatch
def unflatten(env: Env, params: Params, vector: Leaf) -> Tree:
    """Inverse of `flatten`.

    Args:
      env: the environment that the observation is from.
      params: its parameters, of any batch shape.
      vector: (..., D).

    Returns:
      The observation, leaves (...). For CartPole3D the height of the cart and its vertical
      velocity, which are not in the vector, are 0.

    Raises:
      ValueError: D does not fit.
    """
    leaves, structure = jax.tree.flatten(_observation_of_one(env, params))
    columns = _columns(vector, len(leaves))
    pairs = zip(columns, leaves, strict=True)
    return jax.tree.unflatten(structure, [column.astype(leaf.dtype) for column, leaf in pairs])


def sensors_of(env: Env, params: Params, vector: Leaf) -> Observation:
    """`unflatten` for environments with CartPole3D's observation."""
    slots = _observation_of_one(env, params).block_alive  # one by one, or all in one leaf
    counts = [math.prod(slot.shape) for slot in slots]
    x, y, vx, vy, *pole = _columns(vector, 11 + 7 * sum(counts))
    zero = jnp.zeros_like(x)
    alive, position, velocity = [], [], []
    for slot, count in zip(slots, counts, strict=True):
        numbers, pole[7:] = pole[7 : 7 + 7 * count], pole[7 + 7 * count :]
        block = jnp.stack(numbers, axis=-1).reshape(*x.shape, *slot.shape, 7)
        alive.append(block[..., 0] > 0)
        position.append(Vector(*(block[..., i] for i in (1, 2, 3))))
        velocity.append(Vector(*(block[..., i] for i in (4, 5, 6))))
    return Observation(
        cart_position=Vector(x, y, zero),
        cart_velocity=Vector(vx, vy, zero),
        pole_quaternion=(pole[0], pole[1], pole[2], pole[3]),
        pole_velocity=Vector(*pole[4:7]),
        block_position=tuple(position),
        block_velocity=tuple(velocity),
        block_alive=tuple(alive),
    )


unflatten.register(CartPole3D, sensors_of)


def _observation_of_one(env: Env, params: Params) -> Tree:
    """Shapes and types of an observation of one lane."""
    one = jax.tree.map(lambda leaf: jnp.ravel(leaf)[0], params)
    return jax.eval_shape(lambda key: env.observe(env.start(key, one)), jax.random.key(0))


def _columns(vector: Leaf, width: int) -> list[jax.Array]:
    """The elements of a vector, (...) each."""
    vector = jnp.asarray(vector)
    if vector.ndim < 1 or vector.shape[-1] != width:
        raise ValueError(f"vector has shape {vector.shape}; its last axis must have {width}")
    return [vector[..., index] for index in range(width)]


@singledispatch
def bounds(env: Env, params: Params) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the greatest value of each element of `flatten`, both (D,)."""
    observation, _ = jax.eval_shape(env.reset, jax.random.key(0), params)
    vector = jax.eval_shape(lambda o: flatten(env, o), observation)
    high = np.full(vector.shape, np.inf, vector.dtype)
    return -high, high


@bounds.register
def _(env: CartPole3D, params: Params) -> tuple[np.ndarray, np.ndarray]:
    """Bounds that no episode exceeds, because each velocity is clamped.

    Components clamped to c in one frame reach c sqrt(2) in the plane and c sqrt(3) in space in
    another frame. A body moves at most that far a tick from the farthest start. Noisy sensors scale
    and shift these numbers and add noise and rounding, all at their largest.
    """
    config = env.config
    read = partial(_largest_reading, env)
    time = DT * (config.max_steps + 2)
    cart_speed = SPEED_LIMIT * math.sqrt(2)
    spin = SPEED_LIMIT * (math.sqrt(3) + 1)
    start, sideways = _highest("start/spread"), BLOCK_SPREAD + SPEED_LIMIT * time
    cart = [read("position", start + cart_speed * time)] * 2 + [read("velocity", cart_speed)] * 2
    pole = [1 + ROUNDING] * 4 + [read("rate", spin)] * 3
    places = [read("position", place) for place in (sideways, sideways, BLOCK_MIDDLE + sideways)]
    block = [1.0, *places, *[read("velocity", SPEED_LIMIT)] * 3]
    high = np.array(cart + pole + block * config.max_blocks, config.dtype)
    low = -high
    low[len(cart) + len(pole) :: len(block)] = 0.0
    return low, high


def _largest_reading(env: CartPole3D, kind: str, number: float) -> float:
    """Largest reading of a number up to the given one, in its unit."""
    if "noise" not in env.config.terms:
        return number
    names = ("gain", "offset", "noise", "step")
    gain, offset, noise, step = (_highest(f"sensors/{name}_{kind}") for name in names)
    return gain * number + offset + rng.NORMAL_LIMIT * noise + 0.5 * step


def _highest(path: str) -> float:
    return PARAMETERS[path].high or 0.0
