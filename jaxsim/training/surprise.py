"""Novelty as surprise: how far an episode is from those that its learner has learned from.

Six numbers describe an episode: the errors of the three laws of the learned model, relative to
their standard errors; the slowest and the fastest start of a block; and the change of the number of
blocks. Mean and spread of each are learned from the episodes that the learner learns from. So is
the tail of the largest deviations, from which the rarity of an episode follows.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.agents.base import NoveltyPrediction
from jaxsim.pytrees import Leaf
from jaxsim.training import around, forward_model, regression
from jaxsim.training.around import Around, Blocks
from jaxsim.training.forward_model import LearnedLaws

NUMBERS = 6
"""Numbers that describe an episode."""
LEAST = (5.0, 5.0, 1.0)
"""Least predictions of each law before its errors count."""
SPREADS = (0.25, 0.25, 0.25, 0.1, 0.1, 0.1)
"""Smallest standard deviations that are divided by."""
WAIT = 128.0
"""Episodes to learn the model from before any is counted."""
ENOUGH = 200.0
"""Episodes to be counted before anything is called unusual."""
WINDOW = 200.0
"""Episodes over which mean and spread are averaged: earlier ones, of a worse model, fade."""
TAIL = 2.0
"""Standard deviations from which an episode belongs to the tail."""
LEAST_TAIL = (0.01, 0.25)
"""Smallest share of episodes in the tail, and smallest mean distance beyond its beginning."""
TAIL_WINDOW = 400.0
"""Episodes over which the tail is averaged."""


class Usual(NamedTuple):
    """Distribution of the numbers of usual episodes."""

    episodes: jax.Array  # () learned from
    number: jax.Array  # (6,) episodes counted, of each number
    mean: jax.Array  # (6,)
    variance: jax.Array  # (6,)
    judged: jax.Array  # () episodes that were compared with the others
    share: jax.Array  # () share of these in the tail
    excess: jax.Array  # () mean distance of the tail's episodes beyond its beginning


class Watch(NamedTuple):
    """State of the episode in play."""

    steps: jax.Array  # () int32, observations so far; before the first nothing is expected
    body: jax.Array  # (D,) predicted body
    speed: jax.Array  # (K, 3) m/s, predicted speeds of blocks
    before: Blocks  # leaves (K, ...), blocks one step before
    calm: jax.Array  # () bool, nothing has hit the body since the episode began
    errors: jax.Array  # (3,) sums of squared errors divided by the squared standard error
    counts: jax.Array  # (3,) numbers of predictions
    slowest: jax.Array  # () m/s, at which a block started along an axis; infinite for none
    fastest: jax.Array  # () m/s; negative for none
    number: jax.Array  # () blocks at the start
    changed: jax.Array  # () largest change of the number of blocks since the start


def usual() -> Usual:
    """Return the distribution before any episode."""
    zero, zeros = jnp.float32(0.0), jnp.zeros(NUMBERS)
    return Usual(zero, zeros, zeros, jnp.ones(NUMBERS), zero, zero, zero)


def watch(body: int) -> Watch:
    """Return the state as an episode begins.

    Args:
      body: numbers of a body, D.
    """
    zero, none, blocks = jnp.float32(0.0), jnp.zeros(3), around.nothing().blocks
    return Watch(
        steps=jnp.int32(0),
        body=jnp.zeros(body),
        speed=blocks.speed,
        before=blocks,
        calm=jnp.asarray(True),
        errors=none,
        counts=none,
        slowest=jnp.float32(jnp.inf),
        fastest=zero - 1,
        number=zero,
        changed=zero,
    )


def compare(model: LearnedLaws, watch: Watch, body: jax.Array, now: Around) -> Watch:
    """Compare an observation with its prediction."""
    previous = forward_model.flight(watch.before)
    error = (body - watch.body) / regression.scale(model.body, forward_model.BODY_FLOOR)
    squared = (now.blocks.speed - watch.speed) ** 2

    def of_blocks(fit: regression.Fit, mask: jax.Array) -> tuple[jax.Array, jax.Array]:
        size = jax.vmap(regression.scale, in_axes=(0, None))(fit, forward_model.SPEED_FLOOR)[:, 0]
        return jnp.sum(jnp.where(mask, squared / size**2, 0.0)), jnp.sum(mask)

    flight_error, flights = of_blocks(model.flying, previous.flies)
    bounce_error, bounces = of_blocks(model.bouncing, previous.bounces)
    errors = jnp.stack([jnp.where(watch.calm, jnp.mean(error**2), 0.0), flight_error, bounce_error])
    counts = jnp.stack([watch.calm, flights, bounces]).astype(jnp.float32)
    start = jnp.where(now.were_alone[:, None], jnp.abs(now.blocks.speed), jnp.nan)
    after_start = watch._replace(
        errors=watch.errors + errors,
        counts=watch.counts + counts,
        changed=jnp.maximum(watch.changed, jnp.abs(now.number - watch.number)),
    )
    at_start = watch._replace(
        slowest=jnp.min(jnp.where(jnp.isnan(start), jnp.inf, start)),
        fastest=jnp.max(jnp.where(jnp.isnan(start), -1.0, start)),
        number=now.number,
    )
    return jax.tree.map(lambda a, b: jnp.where(watch.steps == 0, a, b), at_start, after_start)


def expect(
    model: LearnedLaws, watch: Watch, body: jax.Array, now: Around, action: jax.Array
) -> Watch:
    """Predict the next observation after an action (A,), one-hot."""
    return watch._replace(
        steps=watch.steps + 1,
        body=forward_model.body_after(model, body, action),
        speed=forward_model.speed_after(model, now.blocks),
        before=now.blocks,
        calm=watch.calm & now.calm,
    )


def lesson(watch: Watch, now: Around) -> tuple[Blocks, jax.Array]:
    """Choose a block in turn: the block one step before, and its speed now, (3,) m/s."""
    slot = watch.steps % around.BLOCKS

    def of_slot(leaf: jax.Array) -> jax.Array:
        here = (jnp.arange(around.BLOCKS) == slot).reshape(-1, *(1,) * (leaf.ndim - 1))
        return jnp.sum(jnp.where(here, leaf, 0), axis=0).astype(leaf.dtype)

    return jax.tree.map(of_slot, watch.before), of_slot(now.blocks.speed)


def numbers(watch: Watch) -> jax.Array:
    """Numbers that describe an episode, (6,); NaN for unknown."""
    sizes = jnp.log1p(watch.errors / jnp.maximum(watch.counts, 1.0))
    sizes = jnp.where(watch.counts >= jnp.array(LEAST), sizes, jnp.nan)
    some = watch.fastest >= 0
    starts = [jnp.where(some, -watch.slowest, jnp.nan), jnp.where(some, watch.fastest, jnp.nan)]
    return jnp.concatenate([sizes, jnp.stack([*starts, watch.changed])])


def deviation(usual: Usual, values: jax.Array) -> jax.Array:
    """Largest distance of a number above its usual mean, in standard deviations, (...).

    Args:
      usual: distribution over episodes.
      values: (..., 6) of `numbers`.
    """
    spread = jnp.maximum(jnp.sqrt(usual.variance), jnp.array(SPREADS))
    far = (values - usual.mean) / spread
    mask = ~jnp.isnan(far) & (usual.number >= ENOUGH / 4)
    return jnp.max(jnp.where(mask, far, 0.0), axis=-1)


def judge(usual: Usual, watch: Watch, rate: jax.Array) -> NoveltyPrediction:
    """Predict how probable it is that an episode is novel.

    Args:
      usual: distribution over episodes.
      watch: of this episode.
      rate: () share of usual episodes that may be called unusual.
    """
    probability = 1 - rarity(usual, numbers(watch))
    return NoveltyPrediction(jnp.int32(0), probability, 1 - rate)


def rarity(usual: Usual, values: jax.Array) -> jax.Array:
    """Estimate the share of usual episodes that deviate as much, (); 1 while it is not known.

    The tail is taken as exponential.

    Args:
      usual: distribution over episodes.
      values: (6,) of `numbers`.
    """
    far = deviation(usual, values)
    share, excess = (
        jnp.maximum(a, b) for a, b in zip((usual.share, usual.excess), LEAST_TAIL, strict=True)
    )
    beyond = share * jnp.exp((TAIL - far) / excess)
    return jnp.where((usual.judged >= ENOUGH) & (far > TAIL), beyond, 1.0)


def calibrate(usual: Usual, values: jax.Array, present: Leaf) -> Usual:
    """Update the distribution with episodes.

    Args:
      usual: distribution over earlier episodes.
      values: (W, 6) of `numbers`, at their ends.
      present: (W,) bool, which count, or True for all.
    """
    present = jnp.broadcast_to(present, values.shape[:1])
    episodes = usual.episodes + jnp.sum(present)
    counted = present & (usual.episodes >= WAIT)
    mask = counted[:, None] & ~jnp.isnan(values)
    mean, variance, number = _joined(usual, jnp.where(mask, values, 0.0), mask)
    judged = counted & (jnp.max(usual.number) >= ENOUGH / 4)
    far = deviation(usual, values)
    beyond = judged & (far > TAIL)
    count, tail_count = jnp.sum(judged), jnp.sum(beyond)
    weight = jnp.minimum(usual.judged, TAIL_WINDOW)
    old_tail = weight * usual.share
    share = (old_tail + tail_count) / jnp.maximum(weight + count, 1.0)
    total_excess = old_tail * usual.excess + jnp.sum(jnp.where(beyond, far - TAIL, 0.0))
    excess = total_excess / jnp.maximum(old_tail + tail_count, 1e-6)
    return Usual(episodes, number, mean, variance, usual.judged + count, share, excess)


def _joined(
    usual: Usual, values: jax.Array, mask: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Mean, variance and number with those of more episodes."""
    count = jnp.sum(mask, axis=0).astype(jnp.float32)
    share = 1 / jnp.maximum(count, 1.0)
    mean = jnp.sum(values, axis=0) * share
    variance = jnp.sum(jnp.where(mask, (values - mean) ** 2, 0.0), axis=0) * share
    part = count / jnp.maximum(jnp.minimum(usual.number, WINDOW) + count, 1.0)
    gap = mean - usual.mean
    total = (1 - part) * usual.variance + part * variance + part * (1 - part) * gap**2
    return usual.mean + part * gap, total, usual.number + count
