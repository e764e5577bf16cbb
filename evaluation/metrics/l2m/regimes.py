"""Numbers of one regime: saturation, terminal performance and averages."""

from typing import NamedTuple

import numpy as np

from evaluation.metrics.l2m.smoothing import smooth
from evaluation.metrics.numerics import (
    Array,
    Numbers,
    masked_mean,
    namespace,
    numbers,
    take,
)
from evaluation.metrics.reasons import Reason

ROUNDING = 128
"""Largest difference of equal values by rounding alone, in steps of the floating-point type."""


class RegimeNumbers(NamedTuple):
    """`Numbers` of (..., R) for each regime.

    Attributes:
      saturation: highest performance of the curve.
      exp_to_sat: episodes before it is first reached.
      term_perf: terminal performance: the mean of the last tenth of a training regime, or of a
        whole test regime.
      exp_to_term_perf: episodes before the middle of the part that ``term_perf`` averages.
      avg_perf: mean over all episodes.
    """

    saturation: Numbers
    exp_to_sat: Numbers
    term_perf: Numbers
    exp_to_term_perf: Numbers
    avg_perf: Numbers


def regime_numbers(
    values: Array,
    counts: Array,
    means: Array,
    lengths: Array,
    train: Array,
    compat: bool = False,
) -> RegimeNumbers:
    """Compute the numbers of every regime.

    Args:
      values: (..., R, T) processed performance per row, padded behind ``counts``. Values that are
        not finite count as missing.
      counts: (..., R) integer rows of each regime.
      means: (..., R, T) performance per experience, from `mean_per_experience`; all numbers but
        ``avg_perf`` are computed from it.
      lengths: (..., R) integer experiences of each regime.
      train: (..., R) whether the agent learns in it.
      compat: whether to smooth every curve once more before its peak is taken, as l2metrics 3.1
        does (static).

    Source: l2metrics 3.1.
    """
    xp = namespace(values)
    highest, first = peak(means, lengths, compat)
    begin = xp.where(train, 9 * lengths // 10, 0)
    rows = xp.arange(values.shape[-1])
    finite = xp.isfinite(means)
    mask = (rows < lengths[..., None]) & finite
    end = (rows >= begin[..., None]) & mask
    terminal, terminal_count = masked_mean(means, end)
    mean, mean_count = masked_mean(values, (rows < counts[..., None]) & xp.isfinite(values))
    number = mask.sum(axis=-1)
    until_end = xp.where(train, 19 * number // 20, number // 2).astype(values.dtype)
    shape = mean.shape
    empty = (xp.broadcast_to(counts, shape) == 0, Reason.EMPTY)
    no_value = (mean_count == 0, Reason.NON_FINITE_VALUE)
    return RegimeNumbers(
        numbers(highest, empty, no_value),
        numbers(first.astype(values.dtype), empty, no_value),
        numbers(terminal, empty, (terminal_count == 0, Reason.NON_FINITE_VALUE)),
        numbers(xp.broadcast_to(until_end, shape), empty, no_value),
        numbers(mean, empty, no_value),
    )


def peak(values: Array, counts: Array, compat: bool) -> tuple[Array, Array]:
    """Highest value of each curve and the index, from 0, at which it is first reached.

    Values that differ by rounding only count as equal. l2metrics 3.1 smooths the curve once more
    and takes the exact maximum.

    Args:
      values: (..., T) curves, padded behind ``counts``.
      counts: (...) integer lengths.
      compat: whether to reproduce l2metrics 3.1 (static).

    Returns:
      (...) values, -inf for an empty curve, and (...) integer indices.
    """
    xp = namespace(values)
    inside = (xp.arange(values.shape[-1]) < counts[..., None]) & xp.isfinite(values)
    curve = smooth(values, counts, centred=False) if compat else values
    curve = xp.where(inside, curve, -np.inf)
    highest = xp.max(curve, axis=-1)
    bar = highest if compat else highest - rounding(values, inside)
    return highest, xp.argmax(curve >= bar[..., None], axis=-1)


def rounding(values: Array, inside: Array) -> Array:
    """(...) largest difference of equal values of a curve after smoothing, by rounding alone."""
    xp = namespace(values)
    scale = xp.max(xp.where(inside, xp.abs(values), 0), axis=-1)
    return scale * (ROUNDING * float(np.finfo(values.dtype).eps))


def mean_per_experience(values: Array, counts: Array, experiences: Array) -> tuple[Array, Array]:
    """Mean over the neighbouring rows that share an experience.

    Args:
      values: (..., T) performance per row, padded behind ``counts``.
      counts: (...) integer rows.
      experiences: (..., T) integer number of each row's experience.

    Returns:
      (..., T) means, padded, and (...) numbers of experiences.
    """
    xp = namespace(values)
    room = values.shape[-1]
    rows = xp.arange(room)
    valid = rows < counts[..., None]
    changed = experiences[..., 1:] != experiences[..., :-1]
    one = xp.ones_like(changed[..., :1])
    starts = xp.concatenate([xp.ones_like(valid[..., :1]), changed | ~one], axis=-1)
    started = xp.where(starts, rows, 0)
    total, span = xp.where(valid, values, 0), 1
    while span < room:  # a running maximum, by doubling
        earlier = xp.concatenate(
            [xp.zeros_like(started[..., :span]), started[..., :-span]], axis=-1
        )
        started, span = xp.maximum(started, earlier), 2 * span
    behind, span = rows - started, 1
    while span < room:  # sums since the start of the experience, by doubling
        earlier = xp.concatenate([xp.zeros_like(total[..., :span]), total[..., :-span]], axis=-1)
        total, span = total + xp.where(behind >= span, earlier, 0), 2 * span
    next_starts = xp.concatenate([starts[..., 1:], xp.ones_like(starts[..., :1])], axis=-1)
    last = valid & (next_starts | (rows == counts[..., None] - 1))
    order = xp.argsort(~last, axis=-1, stable=True)
    return take(total / (behind + 1), order), last.sum(axis=-1)
