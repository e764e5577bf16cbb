"""Numbers of one task: recovery, performance maintenance and transfer between tasks."""

from typing import NamedTuple

import numpy as np

from evaluation.metrics.l2m.regimes import rounding
from evaluation.metrics.l2m.structure import Structure
from evaluation.metrics.numerics import (
    Array,
    Numbers,
    masked_mean,
    masked_median,
    namespace,
    numbers,
    take,
)
from evaluation.metrics.reasons import Reason


def recovery_times(
    values: Array,
    lengths: Array,
    terminal: Numbers,
    structure: Structure,
    compat: bool = False,
) -> Numbers:
    """Episodes until a task's training is back at where its training before had ended.

    Args:
      values: (..., R, T) processed performance per experience.
      lengths: (..., R) integer experiences of each regime.
      terminal: (..., R) terminal performance of each regime.
      structure: of the lifetimes.
      compat: whether a value that misses the bar by rounding alone has not reached it (static).

    Returns:
      `Numbers` of (..., R), at the later training regime: the first index, from 0, with a value at
      least the earlier terminal performance; the regime's rows + 1 where there is none.

    Source: l2metrics 3.1.
    """
    xp = namespace(values)
    counts, previous = structure.counts, structure.previous_training
    inside = (xp.arange(values.shape[-1]) < lengths[..., None]) & xp.isfinite(values)
    bar = take(terminal.values, previous)
    slack = 0 if compat else rounding(values, inside)
    reached = inside & (values >= (bar - slack)[..., None])
    never = ~reached.any(axis=-1)
    times = xp.where(never, counts + 1, xp.argmax(reached, axis=-1)).astype(values.dtype)
    return numbers(
        times,
        (structure.tasks < 0, Reason.EMPTY),
        (~structure.train, Reason.NOT_A_TRAINING_BLOCK),
        (previous < 0, Reason.NO_EARLIER_TRAINING),
        (~xp.isfinite(bar), Reason.PARTNER_NON_FINITE),
    )


def perf_recovery(times: Numbers, structure: Structure, compat: bool = False) -> Numbers:
    """How fast recovery gets faster: minus the Theil-Sen slope of a task's recovery times.

    Args:
      times: (..., R) of `recovery_times`.
      structure: of the lifetimes.
      compat: whether a lifetime with a single recovery time has none at all; this changes the
        reason only (static).

    Returns:
      `Numbers` of (..., K): minus the median slope between any two recovery times, episodes per
      training regime.

    Source: l2metrics 3.1; P. K. Sen, Journal of the American Statistical Association 63 (1968).
    """
    xp = namespace(times.values)
    places = structure.recoveries
    packed = take(times.values[..., None, :], places)  # (..., K, N)
    there = (places >= 0) & xp.isfinite(packed)
    first, second = np.triu_indices(places.shape[-1], 1)
    if not len(first):
        first, second = np.array([0]), np.array([0])
    width = np.maximum(second - first, 1).astype(packed.dtype)
    slopes = (packed[..., second] - packed[..., first]) / xp.asarray(width)
    both = there[..., first] & there[..., second] & xp.asarray(second > first)
    slope, count = masked_median(slopes, both)
    return numbers(-slope, (count == 0, Reason.TOO_FEW_RECOVERIES))


def maintenance(terminal: Numbers, partners: Array, structure: Structure) -> Numbers:
    """Terminal performance of a later test minus that of the regime it is compared with.

    Args:
      terminal: (..., R) terminal performance.
      partners: (..., R) `Structure.reference` or `Structure.latest_training`.
      structure: of the lifetimes.

    Returns:
      `Numbers` of (..., R) at the test; positive is better than before.

    Source: l2metrics 3.1, MRLEP and MRTLP.
    """
    xp = namespace(terminal.values)
    earlier = take(terminal.values, partners)
    return numbers(
        terminal.values - earlier,
        (structure.tasks < 0, Reason.EMPTY),
        (structure.train, Reason.NOT_A_TEST_BLOCK),
        (~structure.counted, Reason.ASLEEP),
        (partners < 0, Reason.NO_REFERENCE_TEST),
        (~xp.isfinite(terminal.values), Reason.NON_FINITE_VALUE),
        (~xp.isfinite(earlier), Reason.PARTNER_NON_FINITE),
    )


class Transfer(NamedTuple):
    """What the training between two tests of a task did to it.

    Attributes:
      ratio: (..., R) at the later test: its terminal performance over that of the test before.
      contrast: (..., R) their difference over their sum.
      forward: (..., R, K) which tasks' training it is booked to as forward transfer.
      backward: (..., R, K) as backward transfer.
    """

    ratio: Numbers
    contrast: Numbers
    forward: Array
    backward: Array


def transfer(terminal: Numbers, structure: Structure, compat: bool = False) -> Transfer:
    """Compare neighbouring tests of each task.

    Args:
      terminal: (..., R) terminal performance.
      structure: of the lifetimes.
      compat: whether to book, as l2metrics 3.1 does, everything to the one trained task that was
        the last to appear in the lifetime, also what the tested task itself learned between the
        tests (static). By default every task trained
        between the tests gets the value, and no task where the tested one was trained itself.

    Source: l2metrics 3.1.
    """
    xp = namespace(terminal.values)
    after, before = terminal.values, take(terminal.values, structure.baseline)
    shape = after.shape
    total = after + before
    common = (
        (xp.broadcast_to(structure.tasks < 0, shape), Reason.EMPTY),
        (structure.train, Reason.NOT_A_TEST_BLOCK),
        (~structure.counted, Reason.ASLEEP),
        (structure.baseline < 0, Reason.NO_TRANSFER),
        (~xp.isfinite(total), Reason.NON_FINITE_VALUE),
    )
    ratio = after / xp.where(before == 0, 1, before)
    contrast = (after - before) / xp.where(total == 0, 1, total)
    if compat:
        tasks = xp.arange(structure.forward.shape[-1])
        forward = structure.last_forward[..., None] == tasks
        backward = structure.last_backward[..., None] == tasks
    else:
        own = structure.own_training[..., None]
        forward, backward = structure.forward & ~own, structure.backward & ~own
    return Transfer(
        numbers(ratio, *common, (before == 0, Reason.ZERO_BASELINE)),
        numbers(contrast, *common, (total == 0, Reason.ZERO_BASELINE)),
        forward,
        backward,
    )


def lifetime_transfer(
    values: Numbers,
    booked: Array,
    structure: Structure,
    compat: bool = False,
    median: bool = False,
) -> Numbers:
    """One number a lifetime from all its transfers.

    Args:
      values: (..., R) `Transfer.ratio` or `Transfer.contrast`.
      booked: (..., R, K) `Transfer.forward` or `Transfer.backward`.
      structure: of the lifetimes.
      compat: whether to use the first value of each pair of tasks only, as l2metrics 3.1 (static).
      median: whether to take the median instead of the mean (static).

    Returns:
      `Numbers` of (...).
    """
    xp = namespace(values.values)
    booked = booked & xp.isfinite(values.values)[..., None]
    if compat:
        booked = _first_of_each_pair(booked, structure.tasks)
    wide = xp.broadcast_to(values.values[..., None], booked.shape)
    flat = (*booked.shape[:-2], -1)
    average = masked_median if median else masked_mean
    result, count = average(xp.nan_to_num(wide).reshape(flat), booked.reshape(flat))
    own = (structure.own_training & ~structure.train).any(axis=-1)
    return numbers(
        result,
        ((count == 0) & own, Reason.OWN_TRAINING),
        (count == 0, Reason.NO_TRANSFER),
    )


def _first_of_each_pair(booked: Array, tasks: Array) -> Array:
    xp = namespace(booked)
    first = xp.zeros_like(booked)
    for task in range(booked.shape[-1]):
        own = booked & (tasks == task)[..., None]
        first = first | (own & (xp.cumsum(own, axis=-2) == 1))
    return first


def task_average(
    values: Numbers, member: Array, tasks: Array, num_tasks: int, missing: Reason
) -> Numbers:
    """Mean of the regimes' numbers of each task.

    Args:
      values: (..., R) numbers of regimes; those without a value do not count.
      member: (..., R) which regimes do.
      tasks: (..., R) task of each.
      num_tasks: K (static).
      missing: the reason where a task has none.

    Returns:
      `Numbers` of (..., K).
    """
    xp = namespace(values.values)
    mask = (
        (tasks[..., None, :] == xp.arange(num_tasks)[:, None])
        & member[..., None, :]
        & xp.isfinite(values.values)[..., None, :]
    )
    wide = xp.broadcast_to(xp.nan_to_num(values.values)[..., None, :], mask.shape)
    mean, count = masked_mean(wide, mask)
    return numbers(mean, (count == 0, missing))


def over_tasks(values: Numbers, median: bool = False) -> Numbers:
    """Mean, or median, over the tasks that have a value.

    Args:
      values: (..., K) numbers.
      median: whether to take the median (static).

    Returns:
      `Numbers` of (...); where no task has a value, the tasks' own reason if they agree.
    """
    xp = namespace(values.values)
    there = xp.isfinite(values.values)
    average = masked_median if median else masked_mean
    result, count = average(xp.nan_to_num(values.values), there)
    combined = numbers(result, (count == 0, Reason.NO_TASK_HAS_VALUE))
    agree = (values.reasons == values.reasons[..., :1]).all(axis=-1) & (count == 0)
    codes = xp.where(agree, values.reasons[..., 0], combined.reasons)
    return Numbers(combined.values, codes)
