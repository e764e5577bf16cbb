"""Clamping of outliers and normalisation of performance, by task."""

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from evaluation.metrics.numerics import Array, namespace, take
from evaluation.metrics.table import OFFSET, SCALE

QUANTILES: Final = (0.1, 0.9)
"""Quantiles of a task's values to which outliers are clamped."""


class TaskRange(NamedTuple):
    """Lowest and highest value of each task; (..., K) each, NaN for a task without values."""

    low: Array
    high: Array


def task_quantiles(
    values: Array, mask: Array, tasks: Array, experts: Array, expert_mask: Array
) -> TaskRange:
    """The 10 % and 90 % quantiles of each task's values, by linear interpolation.

    Args:
      values: (..., R, T) performance of a lifetime's R regimes.
      mask: (..., R, T) which of the values exist.
      tasks: (..., R) integer task of each regime.
      experts: (..., K, Y) performance of the single-task experts of the K tasks.
      expert_mask: (..., K, Y) which of them exist.

    Returns:
      `TaskRange` of (..., K).

    Source: l2metrics 3.1.
    """
    xp = namespace(values)
    lead = np.broadcast_shapes(values.shape[:-2], experts.shape[:-2])
    flat = values.reshape(*values.shape[:-2], -1)
    lows, highs = [], []
    for task in range(experts.shape[-2]):
        member = (mask & (tasks == task)[..., None]).reshape(flat.shape)
        parts = (flat, experts[..., task, :])
        masks = (member, expert_mask[..., task, :])
        wide = [xp.broadcast_to(part, (*lead, part.shape[-1])) for part in parts]
        wide_masks = [xp.broadcast_to(part, (*lead, part.shape[-1])) for part in masks]
        low, high = _quantiles(xp.concatenate(wide, -1), xp.concatenate(wide_masks, -1))
        lows.append(low)
        highs.append(high)
    return TaskRange(xp.stack(lows, axis=-1), xp.stack(highs, axis=-1))


def task_range(
    values: Array, mask: Array, tasks: Array, experts: Array, expert_mask: Array
) -> TaskRange:
    """The smallest and largest value of each task; arguments as for `task_quantiles`."""
    xp = namespace(values)
    member = tasks[..., None, :] == xp.arange(experts.shape[-2])[:, None]

    def extreme(pick: Callable[..., Array], worse: Callable[..., Array], none: float) -> Array:
        regimes = pick(xp.where(mask, values, none), axis=-1)
        by_task = pick(xp.where(member, regimes[..., None, :], none), axis=-1)
        by_expert = pick(xp.where(expert_mask, experts, none), axis=-1, initial=none)
        value = worse(by_task, by_expert)
        return xp.where(value == none, np.nan, value)

    return TaskRange(
        extreme(xp.min, xp.minimum, np.inf),
        extreme(xp.max, xp.maximum, -np.inf),
    )


def _quantiles(values: Array, mask: Array) -> tuple[Array, Array]:
    xp = namespace(values)
    ordered = xp.sort(xp.where(mask, values, np.inf), axis=-1)
    last = mask.sum(axis=-1) - 1
    ends = []
    for share in QUANTILES:
        place = last.astype(values.dtype) * share
        below = xp.floor(place).astype(np.int32)
        two = take(ordered, xp.stack([below, xp.minimum(below + 1, last)], axis=-1))
        part = place - below
        between = two[..., 0] + (two[..., 1] - two[..., 0]) * part
        ends.append(xp.where(last >= 0, between, np.nan))
    return ends[0], ends[1]


def clamp(values: Array, low: Array, high: Array) -> Array:
    """Clamp values to [low, high]; an end that is NaN has no effect."""
    xp = namespace(values)
    values = xp.where(values < low, low, values)
    return xp.where(values > high, high, values)


def normalise(
    values: Array,
    low: Array,
    high: Array,
    scale: float = SCALE,
    offset: float = OFFSET,
    guard: bool = True,
) -> Array:
    """Map [low, high] to [offset, offset + scale]; values outside stay outside.

    Args:
      values: performance of any shape.
      low: lower end of the range, broadcastable.
      high: upper end.
      scale: length of the new range.
      offset: its lower end.
      guard: whether constant data (low equal to high) become ``offset``; otherwise NaN (static).

    Source: l2metrics 3.1, which has no guard for normalisation over a whole run.
    """
    xp = namespace(values)
    width = high - low
    safe = xp.where(width == 0, 1, width)
    scaled = (values - low) / safe * scale + offset
    if guard:
        return xp.where(width == 0, 0 * values + offset, scaled)
    return xp.where(width == 0, np.nan, scaled)
