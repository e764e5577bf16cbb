"""Counter-based randomness: any number of a sweep can be drawn alone, in any order.

A key is two 32-bit words. `fold` derives a key from a key and counters (lifetime, episode, ...);
`bits`, `uniform` and `normal` draw the number of one slot. All are a few operations a lane, where
splitting a threefry key would cost more than the physics of a step.

At the border, keys are typed JAX keys (`jax.random.key`), so agents may use `jax.random` freely.
"""

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

GOLDEN = 0x9E3779B9  # 2^32 / golden ratio, spreads consecutive counters
NORMAL_LIMIT = 5.5  # no number of `normal` is larger; the largest is the quantile of 1 - 2^-25


class Words(NamedTuple):
    """A counter key: two uint32 leaves of any batch shape."""

    a: jax.Array
    b: jax.Array


@partial(jax.jit, inline=True)
def mix(x: jax.Array) -> jax.Array:
    """Scramble 32 bits reversibly.

    Source: the "lowbias32" constants of C. Wellons' hash prospector, 2018 (public domain).
    """
    x = x ^ (x >> 16)
    x = x * jnp.uint32(0x7FEB352D)
    x = x ^ (x >> 15)
    x = x * jnp.uint32(0x846CA68B)
    return x ^ (x >> 16)


def words(key: jax.Array) -> Words:
    """Take the words of typed keys.

    Args:
      key: (...) typed key, from `jax.random.key` or `to_key`.

    Raises:
      TypeError: a raw uint32 array instead of a typed key.
    """
    if not (hasattr(key, "dtype") and is_typed(key)):
        raise TypeError("expected a typed key: use jax.random.key(seed), not PRNGKey or an array")
    data = jax.random.key_data(key)
    return Words(data[..., 0], data[..., -1])


def is_typed(leaf: jax.Array) -> bool:
    """Whether an array holds typed keys."""
    return bool(jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key))


def words_of(leaf: jax.Array) -> jax.Array:
    """Return an array; of typed keys, their words."""
    return jax.random.key_data(leaf) if is_typed(leaf) else leaf


def to_key(key: Words) -> jax.Array:
    """Make typed threefry keys of any batch shape from counter keys."""
    return jax.random.wrap_key_data(jnp.stack([key.a, key.b], axis=-1), impl="threefry2x32")


def fold(key: Words, *counters: jax.Array | int) -> Words:
    """Derive a key for each value of one or more counters.

    Args:
      key: parent key.
      *counters: integers below 2^32, of shapes that broadcast with the key.
    """
    a, b = key
    for counter in counters:
        step = jnp.asarray(counter).astype(jnp.uint32) * jnp.uint32(GOLDEN) + jnp.uint32(1)
        a, b = mix(a ^ mix(step ^ b)), mix(b + mix(step + a * jnp.uint32(GOLDEN)))
    return Words(a, b)


def bits(key: Words, slot: jax.Array | int) -> jax.Array:
    """Draw 32 bits for one slot of a key."""
    counter = jnp.asarray(slot).astype(jnp.uint32) * jnp.uint32(GOLDEN) + jnp.uint32(1)
    return mix(mix(key.a + counter) ^ key.b)


def uniform(
    key: Words,
    slot: jax.Array | int,
    low: jax.Array | float = 0.0,
    high: jax.Array | float = 1.0,
    dtype: DTypeLike = jnp.float32,
) -> jax.Array:
    """Draw from U[low, high) for one slot.

    The value has 24 random bits in either precision, so that float32 and float64 episodes start
    from the same numbers.
    """
    unit = (bits(key, slot) >> 8).astype(dtype) * jnp.asarray(2.0**-24, dtype)
    return low + (high - low) * unit


def normal(key: Words, slot: jax.Array | int, dtype: DTypeLike = jnp.float32) -> jax.Array:
    """Draw from the standard normal distribution for one slot.

    The value is the quantile of a number with 24 random bits, taken at the middle of its interval,
    so that it is finite: at most `NORMAL_LIMIT` in size.
    """
    middle = 2 * uniform(key, slot, dtype=dtype) + jnp.asarray(2.0**-24 - 1, dtype)
    return jax.lax.erf_inv(middle) * jnp.asarray(math.sqrt(2.0), dtype)
