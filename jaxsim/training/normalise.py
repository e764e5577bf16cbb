"""Running mean and variance of a learner's inputs, as part of its memory."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

CLIP = 8.0
"""Standard deviations at which normalised inputs are clipped."""
FLOOR = 1e-4
"""Smallest standard deviation that is divided by."""


class Moments(NamedTuple):
    """Number, mean and variance of vectors seen so far."""

    number: jax.Array  # ()
    mean: jax.Array  # (F,)
    variance: jax.Array  # (F,)
    factor: jax.Array  # (F,) one by the standard deviation, which is not below `FLOOR`


def init(size: int) -> Moments:
    """Moments before any input: zero and one, with the weight of one vector."""
    return Moments(jnp.float32(1.0), jnp.zeros(size), jnp.ones(size), jnp.ones(size))


def apply(moments: Moments, x: jax.Array) -> jax.Array:
    """Shift and scale vectors (..., F) to mean 0 and variance 1.

    The factor is stored and not computed here: XLA hoists loop invariants separately for every use,
    and then no longer sees that two networks in the loop are one.
    """
    return jnp.clip((x - moments.mean) * moments.factor, -CLIP, CLIP)


def update(moments: Moments, x: jax.Array, mask: jax.Array) -> Moments:
    """Add vectors to the moments.

    Args:
      moments: of earlier vectors.
      x: (..., F) vectors.
      mask: (...) bool, which of them count.

    Source: T. Chan, G. Golub and R. LeVeque, 1979, on joining the moments of two samples.
    """
    weight = mask.astype(x.dtype)[..., None]
    axes = tuple(range(x.ndim - 1))
    count = jnp.sum(weight)
    share = 1 / jnp.maximum(count, 1.0)
    mean = jnp.sum(jnp.where(weight > 0, x, 0.0), axes) * share
    variance = jnp.sum(jnp.where(weight > 0, (x - mean) ** 2, 0.0), axes) * share
    number = moments.number + count
    part, gap = count / number, mean - moments.mean
    total = (1 - part) * moments.variance + part * variance + part * (1 - part) * gap**2
    factor = 1 / jnp.maximum(jnp.sqrt(total), FLOOR)
    return Moments(number, moments.mean + part * gap, total, factor)
