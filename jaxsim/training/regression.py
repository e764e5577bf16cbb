"""Robust recursive least squares with forgetting."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

RIDGE = 1e-6
"""Added to the diagonal of the correlations that are inverted."""
DOUBT = 5.0
"""Standard errors from which a sample counts for less than half.

So samples of another law do not raise the scale of errors while they are fewer than 1 in 25."""
UNKNOWN = 1e3
"""Standard error before any sample."""


class Fit(NamedTuple):
    """A linear map from I features to O targets, and the sums that it is computed from."""

    gram: jax.Array  # (I, I) weighted sum of products of features
    cross: jax.Array  # (I, O) of features and targets
    energy: jax.Array  # (O,) weighted sum of squared errors
    amount: jax.Array  # () sum of weights
    weight: jax.Array  # (I, O)


def init(features: int, targets: int) -> Fit:
    """Return the map to zero, before any sample."""
    square, wide = jnp.zeros((features, features)), jnp.zeros((features, targets))
    return Fit(square, wide, jnp.zeros(targets), jnp.float32(0.0), wide)


def scale(fit: Fit, floor: float) -> jax.Array:
    """Standard error of each target, (O,), not below a floor."""
    spread = jnp.sqrt(fit.energy / jnp.maximum(fit.amount, 1e-6))
    return jnp.where(fit.amount > 0, jnp.maximum(spread, floor), UNKNOWN)


def update(
    fit: Fit, x: jax.Array, y: jax.Array, weight: jax.Array, keep: jax.Array, floor: float
) -> Fit:
    """Learn from samples.

    They are weighted as for Cauchy's distribution of errors, so that a few samples of another law
    do not spoil the map.

    Args:
      fit: learned before.
      x: (B, I) features.
      y: (B, O) targets.
      weight: (B,) how much each sample counts, 0 for none.
      keep: () forgetting factor, the share of the earlier sums that is kept.
      floor: smallest standard error of a target.

    Source: P. Holland and R. Welsch, "Robust regression using iteratively reweighted
    least-squares", 1977.
    """
    far = jnp.mean(((y - x @ fit.weight) / scale(fit, floor)) ** 2, axis=1)
    weight = weight / (1 + far / DOUBT**2)
    weighted = weight[:, None] * x
    gram = keep * fit.gram + weighted.T @ x
    cross = keep * fit.cross + weighted.T @ y
    solution = solve(gram, cross)
    energy = keep * fit.energy + weight @ (y - x @ solution) ** 2
    return Fit(gram, cross, energy, keep * fit.amount + jnp.sum(weight), solution)


def solve(gram: jax.Array, cross: jax.Array) -> jax.Array:
    """Solve gram w = cross for w, (I, O), with a ridge that makes any gram regular.

    Gauss and Jordan's elimination, of features scaled to one; no library is called, see
    `network.orthogonal`.
    """
    size = gram.shape[0]
    unit = jax.lax.rsqrt(jnp.maximum(jnp.diagonal(gram), 1e-30))
    matrix = gram * unit[:, None] * unit[None, :] + RIDGE * jnp.eye(size)
    rows = jnp.concatenate([matrix, cross * unit[:, None]], axis=1)

    def eliminate(index: jax.Array, rows: jax.Array) -> jax.Array:
        here = jnp.arange(size) == index
        pivot = jnp.sum(jnp.where(here[:, None], rows, 0.0), axis=0)
        column = jnp.arange(rows.shape[1]) == index
        pivot = pivot / jnp.sum(jnp.where(column, pivot, 0.0))
        factor = jnp.sum(jnp.where(column, rows, 0.0), axis=1)
        return jnp.where(here[:, None], pivot, rows - factor[:, None] * pivot)

    return jax.lax.fori_loop(0, size, eliminate, rows)[:, size:] * unit[:, None]
