"""Novelty as surprise: how far an episode is from what its learner has found to be usual.

Six numbers tell of an episode: how large the errors of the three laws of the learned model are,
beside their standard errors; the slowest and the fastest that a block starts; and whether blocks
came or went. Mean and spread of each are learned from the episodes that the learner learns from,
and so is the tail of the farthest of them, from which follows how rarely an episode is so far off.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.agents.base import NoveltyPrediction
from jaxsim.training import around, forward_model, regression
from jaxsim.training.around import Around, Blocks
from jaxsim.training.forward_model import Model

NUMBERS = 6
"""Numbers that tell of an episode."""
LEAST = (5.0, 5.0, 1.0)
"""Predictions of each law before its errors say anything."""
SPREADS = (0.25, 0.25, 0.25, 0.1, 0.1, 0.1)
"""Smallest standard deviations that are divided by."""
WAIT = 128.0
"""Episodes to learn the model from before any is counted."""
ENOUGH = 200.0
"""Episodes to be counted before anything is called unusual."""
WINDOW = 200.0
"""Episodes over which what is usual is averaged: earlier ones, of a worse model, fade."""
TAIL = 2.0
"""Standard deviations from which an episode belongs to the tail."""
LEAST_TAIL = (0.01, 0.25)
"""Smallest share of episodes in the tail, and smallest mean distance beyond its beginning."""
TAIL_WINDOW = 400.0
"""Episodes over which the tail is averaged."""


class Usual(NamedTuple):
    """How the numbers of episodes are spread."""

    episodes: jax.Array  # () learned from
    number: jax.Array  # (6,) episodes counted, of each number
    mean: jax.Array  # (6,)
    variance: jax.Array  # (6,)
    judged: jax.Array  # () episodes that were held against the others
    share: jax.Array  # () of them in the tail
    excess: jax.Array  # () mean distance of these beyond its beginning


class Watch(NamedTuple):
    """What is remembered of the episode in play."""

    steps: jax.Array  # () int32, observations so far; before the first nothing is expected
    body: jax.Array  # (D,) what the body is expected to be
    speed: jax.Array  # (K, 3) m/s, what blocks are expected to do
    before: Blocks  # leaves (K, ...), what they were
    calm: jax.Array  # () bool, nothing has hit the body since the episode began
    errors: jax.Array  # (3,) sums of squared errors by the square of the standard error
    counts: jax.Array  # (3,) how many
    slowest: jax.Array  # () m/s, at which a block started along an axis; infinite for none
    fastest: jax.Array  # () m/s; negative for none
    number: jax.Array  # () blocks at the start
    changed: jax.Array  # () most blocks that were more or fewer than at the start


def usual() -> Usual:
    """Return the spread before any episode."""
    zero, zeros = jnp.float32(0.0), jnp.zeros(NUMBERS)
    return Usual(zero, zeros, zeros, jnp.ones(NUMBERS), zero, zero, zero)


def watch(body: int) -> Watch:
    """Return what is remembered as an episode begins.

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


def seen(model: Model, watch: Watch, body: jax.Array, now: Around) -> Watch:
    """Compare an observation with what was expected."""
    was = forward_model.flight(watch.before)
    off = (body - watch.body) / regression.scale(model.body, forward_model.BODY_FLOOR)
    missed = (now.blocks.speed - watch.speed) ** 2

    def of_blocks(fit: regression.Fit, mask: jax.Array) -> tuple[jax.Array, jax.Array]:
        size = jax.vmap(regression.scale, in_axes=(0, None))(fit, forward_model.SPEED_FLOOR)[:, 0]
        return jnp.sum(jnp.where(mask, missed / size**2, 0.0)), jnp.sum(mask)

    flown, flights = of_blocks(model.flying, was.flies)
    returned, returns = of_blocks(model.bouncing, was.bounces)
    errors = jnp.stack([jnp.where(watch.calm, jnp.mean(off**2), 0.0), flown, returned])
    counts = jnp.stack([watch.calm, flights, returns]).astype(jnp.float32)
    start = jnp.where(now.began[:, None], jnp.abs(now.blocks.speed), jnp.nan)
    later = watch._replace(
        errors=watch.errors + errors,
        counts=watch.counts + counts,
        changed=jnp.maximum(watch.changed, jnp.abs(now.number - watch.number)),
    )
    begun = watch._replace(
        slowest=jnp.min(jnp.where(jnp.isnan(start), jnp.inf, start)),
        fastest=jnp.max(jnp.where(jnp.isnan(start), -1.0, start)),
        number=now.number,
    )
    return jax.tree.map(lambda a, b: jnp.where(watch.steps == 0, a, b), begun, later)


def expect(model: Model, watch: Watch, body: jax.Array, now: Around, action: jax.Array) -> Watch:
    """Say what comes next, behind an action (A,), one-hot."""
    return watch._replace(
        steps=watch.steps + 1,
        body=forward_model.body_after(model, body, action),
        speed=forward_model.speed_after(model, now.blocks),
        before=now.blocks,
        calm=watch.calm & now.calm,
    )


def lesson(watch: Watch, now: Around) -> tuple[Blocks, jax.Array]:
    """Choose a block in turn: what it was before, and its speed now, (3,) m/s."""
    slot = watch.steps % around.BLOCKS

    def chosen(leaf: jax.Array) -> jax.Array:
        here = (jnp.arange(around.BLOCKS) == slot).reshape(-1, *(1,) * (leaf.ndim - 1))
        return jnp.sum(jnp.where(here, leaf, 0), axis=0).astype(leaf.dtype)

    return jax.tree.map(chosen, watch.before), chosen(now.blocks.speed)


def numbers(watch: Watch) -> jax.Array:
    """What tells of an episode, (6,); not a number where nothing does."""
    sizes = jnp.log1p(watch.errors / jnp.maximum(watch.counts, 1.0))
    sizes = jnp.where(watch.counts >= jnp.array(LEAST), sizes, jnp.nan)
    some = watch.fastest >= 0
    starts = [jnp.where(some, -watch.slowest, jnp.nan), jnp.where(some, watch.fastest, jnp.nan)]
    return jnp.concatenate([sizes, jnp.stack([*starts, watch.changed])])


def away(usual: Usual, told: jax.Array) -> jax.Array:
    """How many standard deviations the farthest number lies above the usual, (...).

    Args:
      usual: spread over episodes.
      told: (..., 6) of `numbers`.
    """
    spread = jnp.maximum(jnp.sqrt(usual.variance), jnp.array(SPREADS))
    far = (told - usual.mean) / spread
    known = ~jnp.isnan(far) & (usual.number >= ENOUGH / 4)
    return jnp.max(jnp.where(known, far, 0.0), axis=-1)


def judge(usual: Usual, watch: Watch, rate: jax.Array) -> NoveltyPrediction:
    """Say how unusual an episode is.

    Args:
      usual: spread over episodes.
      watch: of this episode.
      rate: () share of usual episodes that may be called unusual.
    """
    probability = 1 - rarity(usual, numbers(watch))
    return NoveltyPrediction(jnp.int32(0), probability, 1 - rate)


def rarity(usual: Usual, told: jax.Array) -> jax.Array:
    """Estimate the share of usual episodes that are as far off, (); 1 while it is not known.

    The tail is taken as exponential.

    Args:
      usual: spread over episodes.
      told: (6,) of `numbers`.
    """
    far = away(usual, told)
    share, excess = (
        jnp.maximum(a, b) for a, b in zip((usual.share, usual.excess), LEAST_TAIL, strict=True)
    )
    beyond = share * jnp.exp((TAIL - far) / excess)
    return jnp.where((usual.judged >= ENOUGH) & (far > TAIL), beyond, 1.0)


def calibrate(usual: Usual, told: jax.Array, played: Any) -> Usual:
    """Learn what is usual from episodes.

    Args:
      usual: what was usual before.
      told: (W, 6) of `numbers`, at their ends.
      played: (W,) bool, which count, or True for all.
    """
    played = jnp.broadcast_to(played, told.shape[:1])
    episodes = usual.episodes + jnp.sum(played)
    counted = played & (usual.episodes >= WAIT)
    mask = counted[:, None] & ~jnp.isnan(told)
    mean, variance, number = _joined(usual, jnp.where(mask, told, 0.0), mask)
    held = counted & (jnp.max(usual.number) >= ENOUGH / 4)
    far = away(usual, told)
    beyond = held & (far > TAIL)
    more, odd = jnp.sum(held), jnp.sum(beyond)
    known = jnp.minimum(usual.judged, TAIL_WINDOW)
    old = known * usual.share
    share = (old + odd) / jnp.maximum(known + more, 1.0)
    over = old * usual.excess + jnp.sum(jnp.where(beyond, far - TAIL, 0.0))
    excess = over / jnp.maximum(old + odd, 1e-6)
    return Usual(episodes, number, mean, variance, usual.judged + more, share, excess)


def _joined(
    usual: Usual, told: jax.Array, mask: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Mean, variance and number with those of more episodes."""
    more = jnp.sum(mask, axis=0).astype(jnp.float32)
    share = 1 / jnp.maximum(more, 1.0)
    mean = jnp.sum(told, axis=0) * share
    variance = jnp.sum(jnp.where(mask, (told - mean) ** 2, 0.0), axis=0) * share
    part = more / jnp.maximum(jnp.minimum(usual.number, WINDOW) + more, 1.0)
    gap = mean - usual.mean
    joined = (1 - part) * usual.variance + part * variance + part * (1 - part) * gap**2
    return usual.mean + part * gap, joined, usual.number + more
