"""Metrics of learning within a block, in the three editions of the 2019 framework.

The editions differ in the smoothing and in how an episode is counted:

* ``"2019"``, the document of 4 December 2019: windows that extend beyond a block are discarded. The
  reported number of episodes is the window's last, first or middle one, counted from 1.
* ``"v0.2"``, the package of December 2019: the block is reflected at both edges (the edge episode
  is not repeated), so a block of n episodes has n + window - 1 windows. The reported number is the
  window's position, from 0.
* ``"v0.3"``, the package of March 2020: as v0.2, cut to n windows. A block shorter than the window
  is smoothed over half of its length, and not at all if that is below 3.

``values`` is (..., B, T), padded behind ``counts`` (B,); a result is a `Numbers` of (..., B). The
results of a lifetime do not depend on the batch, bit by bit.
"""

import functools
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from evaluation.metrics import (
    DEFAULT_WINDOW,
    BlockLike,
    IndexConvention,
    Pairing,
    Reason,
    saturation_value,
    time_to_saturation,
)
from evaluation.metrics.l2m.framework2019 import as_real, first_reason
from evaluation.metrics.numerics import Numbers, divide, numbers, pairwise_sum

Edition: TypeAlias = Literal["2019", "v0.2", "v0.3"]
"""Edition of the formulas: of the document, or of one of its two packages."""

EDITIONS: Final = ("2019", "v0.2", "v0.3")

_LEAST_WINDOW: Final = 3  # below it, v0.3 does not smooth


class PhasedBlockLike(BlockLike, Protocol):
    """A block with the number of its phase."""

    @property
    def phase(self) -> int:
        """Number of the phase, from 1."""


class _Series(NamedTuple):
    """Moving averages of every block and which of them exist, (..., B, W); the rest is (..., B)."""

    means: jax.Array
    inside: jax.Array
    tolerance: jax.Array
    reasons: jax.Array


def check_edition(edition: str) -> None:
    """Raise an error for an unknown edition.

    Raises:
      ValueError: not one of `EDITIONS`.
    """
    if edition not in EDITIONS:
        raise ValueError(f"edition must be one of {', '.join(EDITIONS)}, not {edition!r}")


def saturation(
    values: ArrayLike, counts: ArrayLike, window: int = DEFAULT_WINDOW, edition: Edition = "2019"
) -> Numbers:
    """Highest moving average of each block.

    Args:
      values: (..., B, T) performance per episode, padded behind ``counts``.
      counts: (B,) or (..., B) integer episodes per block, at most T.
      window: odd number of episodes under the moving average (static).
      edition: edition of the smoothing (static).

    Returns:
      `Numbers` of (..., B) in the unit of ``values``.

    Raises:
      ValueError: an unknown edition, and as `saturation_value`.
    """
    check_edition(edition)
    document = functools.partial(saturation_value, window=window)
    if edition == "2019":
        return document(values, counts)
    jax.eval_shape(document, values, counts)  # checks the arguments
    series = _reflected(values, counts, window, edition == "v0.3")
    return numbers(_best(series), series.reasons)


def episodes_to_saturation(
    values: ArrayLike,
    counts: ArrayLike,
    window: int = DEFAULT_WINDOW,
    edition: Edition = "2019",
    index: IndexConvention = "end",
) -> Numbers:
    """Episodes until the moving average first reaches the block's saturation value.

    Args:
      values: (..., B, T) performance per episode, padded behind ``counts``.
      counts: (B,) or (..., B) integer episodes per block, at most T.
      window: odd number of episodes under the moving average (static).
      edition: edition of the smoothing and of counting episodes (static).
      index: which episode of a window is reported in the edition ``"2019"`` (static).

    Returns:
      `Numbers` of (..., B) in episodes. Averages that differ by rounding only count as equal.

    Raises:
      ValueError: an unknown edition, and as `time_to_saturation`.
    """
    check_edition(edition)
    document = functools.partial(time_to_saturation, window=window, index=index)
    if edition == "2019":
        return document(values, counts)
    jax.eval_shape(document, values, counts)  # checks the arguments
    series = _reflected(values, counts, window, edition == "v0.3")
    reached = _reached(series, _best(series), series.tolerance)
    return numbers(_first(reached, series), series.reasons)


def pair_changes(blocks: Sequence[BlockLike]) -> Pairing:
    """Pair each training block with the one before it, if task or parameters have changed.

    Args:
      blocks: the B blocks of one lifetime in the order they are played.

    Returns:
      `Pairing` of (B,) int32 arrays; the earlier block may have any task.

    Source: l2metrics 0.3, metric RecoveryTime.
    """
    partners, reasons = _unpaired(len(blocks), Reason.NOT_A_TRAINING_BLOCK)
    before: int | None = None
    for position, block in enumerate(blocks):
        if block.mode != "train":
            continue
        if before is None:
            reasons[position] = Reason.FIRST_TRAINING
        else:
            partners[position] = before
            other = blocks[before]
            same = (other.task, other.parameters) == (block.task, block.parameters)
            reasons[position] = Reason.NO_CHANGE if same else Reason.NONE
        before = position
    return Pairing(partners, reasons)


def pair_first_training(blocks: Sequence[PhasedBlockLike]) -> Pairing:
    """Pair each test block with its task's first training block, if that is in an earlier phase.

    A task that is also trained in the phase of the test is left out: nothing came between.

    Args:
      blocks: the B blocks of one lifetime in the order they are played.

    Returns:
      `Pairing` of (B,) int32 arrays, for `performance_maintenance`.

    Source: l2metrics 0.3, metric PerfDifferenceANT.
    """
    partners, reasons = _unpaired(len(blocks), Reason.NOT_A_TEST_BLOCK)
    first: dict[str, int] = {}
    phases: dict[str, set[int]] = {}
    for position, block in enumerate(blocks):
        if block.mode == "train":
            first.setdefault(block.task, position)
            phases.setdefault(block.task, set()).add(block.phase)
            continue
        trained = phases.get(block.task, set())
        partners[position] = first.get(block.task, 0)
        if block.phase in trained:
            reasons[position] = Reason.TRAINED_IN_PHASE
        elif not trained:
            reasons[position] = Reason.NOT_TRAINED_IN_EARLIER_PHASE
        else:
            reasons[position] = Reason.NONE
    return Pairing(partners, reasons)


def _unpaired(blocks: int, reason: Reason) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(blocks, np.int32), np.full(blocks, reason, np.int32)


def recovery_since_change(
    values: ArrayLike,
    counts: ArrayLike,
    pairing: Pairing,
    window: int = DEFAULT_WINDOW,
    edition: Edition = "v0.3",
) -> Numbers:
    """Position of the first moving average that reaches the earlier block's saturation value.

    Args:
      values: (..., B, T) performance per episode, padded behind ``counts``.
      counts: (B,) or (..., B) integer episodes per block, at most T.
      pairing: from `pair_changes`.
      window: odd number of episodes under the moving average (static).
      edition: ``"v0.2"`` or ``"v0.3"`` (static); `recovery_time` is that of the document.

    Returns:
      `Numbers` of (..., B) at the later block; `Reason.NOT_RECOVERED` if performance never comes
      back (v0.3 printed "No Recovery", v0.2 -999).

    Raises:
      ValueError: the edition ``"2019"`` or an unknown one.

    Source: l2metrics 0.3, metric RecoveryTime; there is no slack of 2 %.
    """
    if edition not in ("v0.2", "v0.3"):
        raise ValueError(f"edition must be v0.2 or v0.3, not {edition!r}; 2019 is recovery_time")
    series = _reflected(values, counts, window, edition == "v0.3")
    partners = jnp.asarray(pairing.partners)
    before = jnp.take(_best(series), partners, axis=-1)
    slack = jnp.maximum(series.tolerance, jnp.take(series.tolerance, partners, axis=-1))
    reached = _reached(series, before, slack)
    never = jnp.where(jnp.any(reached, axis=-1), Reason.NONE, Reason.NOT_RECOVERED)
    earlier = jnp.take(series.reasons, partners, axis=-1)
    return numbers(
        _first(reached, series), jnp.asarray(pairing.reasons), series.reasons, earlier, never
    )


def average_of(totals: ArrayLike, shares: ArrayLike, counts: ArrayLike) -> Numbers:
    """Sum of one column of a block divided by the sum of another.

    Rewards over rows (sub-episodes) give the average reward; rewards over steps give the reward per
    step.

    Args:
      totals: (..., B, T) numerator per episode, padded behind ``counts``.
      shares: (..., B, T) denominator per episode, 0 or more.
      counts: (B,) or (..., B) integer episodes per block.

    Returns:
      `Numbers` of (..., B); `Reason.NO_STEPS` where the denominator is 0.

    Source: l2metrics 0.3, metrics avg_achieved_reward and reward_per_step.
    """
    array = as_real(totals)
    valid = _valid(array, counts)
    bad = jnp.any(valid & ~jnp.isfinite(array), axis=-1)
    total = pairwise_sum(jnp.where(valid & jnp.isfinite(array), array, 0))
    share = pairwise_sum(jnp.where(valid, jnp.asarray(shares, array.dtype), 0))
    empty = jnp.broadcast_to(jnp.asarray(counts), total.shape) == 0
    ratio = divide(total, jnp.where(share > 0, share, 1))
    return numbers(
        ratio,
        jnp.where(empty, Reason.NO_EPISODES, Reason.NONE),
        jnp.where(bad, Reason.NON_FINITE_VALUE, Reason.NONE),
        jnp.where(share > 0, Reason.NONE, Reason.NO_STEPS),
    )


def average_learning(
    totals: ArrayLike,
    counts: ArrayLike,
    time: Numbers,
    training: ArrayLike,
    edition: Edition = "2019",
    offsets: ArrayLike | None = None,
) -> Numbers:
    """Reward per episode until saturation.

    Args:
      totals: (..., B, T) reward of an episode, summed over its sub-episodes.
      counts: (B,) or (..., B) integer episodes per block.
      time: (..., B) `episodes_to_saturation` of the same edition.
      training: (B,) whether a block is a training block.
      edition: ``"2019"`` sums the first e episodes, the others the episodes numbered 0 to e; all
        divide by e (static).
      offsets: (B, T) number of each episode minus that of the block's first; 0, 1, 2, ... if None.

    Returns:
      `Numbers` of (..., B), for training blocks.

    Raises:
      ValueError: an unknown edition.

    Source: l2metrics 0.3, metric average_learning.
    """
    check_edition(edition)
    array = as_real(totals)
    places = jnp.arange(array.shape[-1]) if offsets is None else jnp.asarray(offsets)
    last = jnp.nan_to_num(time.values)[..., None] - (1 if edition == "2019" else 0)
    valid = _valid(array, counts) & (places <= last)
    total = pairwise_sum(jnp.where(valid & jnp.isfinite(array), array, 0))
    divisor = jnp.where(time.values > 0, time.values, 1).astype(array.dtype)
    return numbers(
        divide(total, divisor),
        jnp.where(jnp.asarray(training), Reason.NONE, Reason.NOT_A_TRAINING_BLOCK),
        time.reasons,
        jnp.where(time.values == 0, Reason.SATURATED_AT_ZERO, Reason.NONE),
    )


# Parts ------------------------------------------------------------------------------------------


@functools.partial(jax.jit, static_argnames=("window", "crop"))
def _reflected(values: ArrayLike, counts: ArrayLike, window: int, crop: bool) -> _Series:
    """Moving averages of blocks reflected at their edges; see the module's docstring."""
    array = as_real(values)
    valid = _valid(array, counts)
    lengths = jnp.broadcast_to(jnp.asarray(counts), array.shape[:-1])
    finite = jnp.isfinite(array)
    clean = jnp.where(valid & finite, array, 0)
    means, inside = _means(clean, lengths, window, crop)
    if crop:
        for short in sorted({_short_window(n) for n in range(window)}):
            affected = (lengths < window) & (_short_windows(lengths) == short)
            other, exists = _means(clean, lengths, short, crop)
            means = jnp.where(affected[..., None], other, means)
            inside = jnp.where(affected[..., None], exists, inside)
    least = 1 if crop else window
    reasons = first_reason(
        jnp.where(lengths < least, Reason.BLOCK_TOO_SHORT, Reason.NONE),
        jnp.where(jnp.any(valid & ~finite, axis=-1), Reason.NON_FINITE_VALUE, Reason.NONE),
    )
    # A sum has `window` additions with an error of half an epsilon each; two sums are compared.
    scale = jnp.max(jnp.abs(clean), axis=-1, initial=0)
    return _Series(means, inside, scale * window * float(np.finfo(array.dtype).eps), reasons)


def _means(
    clean: jax.Array, lengths: jax.Array, window: int, crop: bool
) -> tuple[jax.Array, jax.Array]:
    """Moving averages over one window, and which of them a block has."""
    reach = window - 1
    position = jnp.arange(-reach, clean.shape[-1] + reach)
    last = lengths[..., None] - 1
    source = jnp.abs(position)
    source = jnp.where(source > last, 2 * last - source, source)
    padded = jnp.take_along_axis(clean, jnp.clip(source, 0, clean.shape[-1] - 1), axis=-1)
    spans = (1,) * (padded.ndim - 1) + (window,)
    sums = jax.lax.reduce_window(
        padded, jnp.zeros((), padded.dtype), jax.lax.add, spans, (1,) * padded.ndim, "valid"
    )
    windows = lengths + (0 if crop else reach)
    if crop:
        start = max(window // 2 - 1, 0)
        sums = sums[..., start : start + clean.shape[-1]]
    inside = jnp.arange(sums.shape[-1]) < windows[..., None]
    return sums / window, inside


def _short_window(length: int) -> int:
    half = length // 2
    return half if half >= _LEAST_WINDOW else 1


def _short_windows(lengths: jax.Array) -> jax.Array:
    return jnp.where(lengths // 2 >= _LEAST_WINDOW, lengths // 2, 1)


def _best(series: _Series) -> jax.Array:
    return jnp.max(jnp.where(series.inside, series.means, -jnp.inf), axis=-1)


def _reached(series: _Series, level: jax.Array, slack: jax.Array) -> jax.Array:
    return series.inside & (series.means >= (level - slack)[..., None])


def _first(reached: jax.Array, series: _Series) -> jax.Array:
    return jnp.argmax(reached, axis=-1).astype(series.means.dtype)


def _valid(array: jax.Array, counts: ArrayLike) -> jax.Array:
    """Which episodes are inside their block, (..., B, T)."""
    lengths = jnp.broadcast_to(jnp.asarray(counts), array.shape[:-1])
    return jnp.arange(array.shape[-1]) < lengths[..., None]
