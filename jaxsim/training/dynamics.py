"""A learned model of the world, and novelty as its surprise.

The model predicts by how much cart and pole change within a step, from where they are and what is
done. In each episode its errors are averaged; how that average is spread among the episodes that
the learner learns from says what is usual.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.agents.base import NoveltyPrediction
from jaxsim.training import network
from jaxsim.training.network import Network

HIDDEN = 32
ENOUGH = 200.0
"""Episodes to learn from before anything is called unusual."""
WINDOW = 200.0
"""Episodes over which what is usual is averaged: earlier ones, of a worse model, fade."""
TINY = 1e-6
LEAST_TICKS = 5.0
"""Steps of an episode before its average says anything."""


class Usual(NamedTuple):
    """How the logarithm of an episode's mean error is spread."""

    number: jax.Array  # () episodes
    mean: jax.Array  # ()
    variance: jax.Array  # ()


class Watch(NamedTuple):
    """What is remembered of the episode in play."""

    expected: jax.Array  # (D,) what the body was expected to be
    ticks: jax.Array  # () float32, expectations that were compared
    total: jax.Array  # () sum of their errors
    first: jax.Array  # () bool, nothing is expected yet


def init(key: jax.Array, body: int, actions: int) -> Network:
    """Draw a model."""
    return network.init(key, body + actions, (HIDDEN,), body - 1)


def usual() -> Usual:
    """Return the spread before any episode."""
    return Usual(jnp.float32(0.0), jnp.float32(0.0), jnp.float32(1.0))


def watch(body: int) -> Watch:
    """Return what is remembered as an episode begins."""
    return Watch(jnp.zeros(body), jnp.float32(0.0), jnp.float32(0.0), jnp.asarray(True))


def predict(model: Network, body: jax.Array, action: jax.Array) -> jax.Array:
    """Predict the body after a step.

    Args:
      model: from `init`.
      body: (..., D) normalised.
      action: (..., A) one-hot.
    """
    out = network.layers(model, jnp.concatenate([body, action], axis=-1))[-1]
    return body + 0.1 * out


def error(expected: jax.Array, body: jax.Array) -> jax.Array:
    """How far off a prediction is, (...): the mean square, less than in proportion where large.

    A hit by a block is a surprise in any world, so a single one must not outweigh all other steps.
    """
    square = jnp.mean((expected - body) ** 2, axis=-1)
    return square / (1 + 10 * square)


def seen(watch: Watch, body: jax.Array) -> tuple[Watch, jax.Array]:
    """Compare an observation with what was expected; return the error as well."""
    wrong = jnp.where(watch.first, 0.0, error(watch.expected, body))
    ticks = watch.ticks + jnp.where(watch.first, 0.0, 1.0)
    return watch._replace(ticks=ticks, total=watch.total + wrong), wrong


def judge(usual: Usual, watch: Watch, alarm: jax.Array) -> NoveltyPrediction:
    """Say how unusual the episode is: the normal quantile of its mean error among others'.

    Args:
      usual: spread over episodes.
      watch: of this episode.
      alarm: () standard deviations from which it is a detection.
    """
    typical = score(watch.total, watch.ticks)
    away = (typical - usual.mean) / jnp.sqrt(usual.variance + TINY)
    known = (usual.number >= ENOUGH) & (watch.ticks >= LEAST_TICKS)
    probability = jnp.where(known, jax.scipy.stats.norm.cdf(away), 0.0)
    return NoveltyPrediction(jnp.int32(0), probability, jax.scipy.stats.norm.cdf(alarm))


def score(total: jax.Array, ticks: jax.Array) -> jax.Array:
    """Logarithm of the mean error of an episode."""
    return jnp.log(total / jnp.maximum(ticks, 1.0) + TINY)


def calibrate(usual: Usual, errors: jax.Array, there: jax.Array) -> Usual:
    """Learn what is usual from episodes.

    Args:
      usual: what was usual before.
      errors: (W, T) of their steps; of the first there is none.
      there: (W, T) bool, which steps were made.
    """
    ticks = jnp.maximum(jnp.sum(there, axis=1) - 1.0, 0.0)
    scores = score(jnp.sum(jnp.where(there, errors, 0.0), axis=1), ticks)
    counts = ticks >= LEAST_TICKS
    more = jnp.sum(counts.astype(jnp.float32))
    share = 1 / jnp.maximum(more, 1.0)
    mean = jnp.sum(jnp.where(counts, scores, 0.0)) * share
    variance = jnp.sum(jnp.where(counts, (scores - mean) ** 2, 0.0)) * share
    total = jnp.minimum(usual.number, WINDOW) + more
    part, gap = more / jnp.maximum(total, 1.0), mean - usual.mean
    joined = (1 - part) * usual.variance + part * variance + part * (1 - part) * gap**2
    return Usual(usual.number + more, usual.mean + part * gap, joined)
