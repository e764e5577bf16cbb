"""Metrics of tasks: recovery, performance maintenance and transfer between tasks."""

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
    """Episodes until a task's training reaches the terminal performance of its training before.

    Args:
      values: (..., R, T) processed performance per experience.
      lengths: (..., R) integer experiences of each regime.
      terminal: (..., R) terminal performance of each regime.
      structure: of the lifetimes.
      compat: whether values are compared exactly, without a tolerance for rounding (static).

    Returns:
      `Numbers` of (..., R), at the later training regime: the first index, from 0, with a value of
      at least the earlier terminal performance; the regime's rows + 1 if there is none.

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
    """Speed-up of recovery: minus the Theil-Sen slope of a task's recovery times.

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
    mask = (places >= 0) & xp.isfinite(packed)
    first, second = np.triu_indices(places.shape[-1], 1)
    if not len(first):
        first, second = np.array([0]), np.array([0])
    width = np.maximum(second - first, 1).astype(packed.dtype)
    slopes = (packed[..., second] - packed[..., first]) / xp.asarray(width)
    pair_mask = mask[..., first] & mask[..., second] & xp.asarray(second > first)
    slope, count = masked_median(slopes, pair_mask)
    return numbers(-slope, (count == 0, Reason.TOO_FEW_RECOVERIES))


def maintenance(terminal: Numbers, partners: Array, structure: Structure) -> Numbers:
    """Terminal performance of a later test minus that of the regime it is compared with.

    Args:
      terminal: (..., R) terminal performance.
      partners: (..., R) `Structure.reference` or `Structure.latest_training`.
      structure: of the lifetimes.

    Returns:
      `Numbers` of (..., R) at the test; positive means better than before.

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
    """Transfer from the training of other tasks between two tests of a task.

    Attributes:
      ratio: (..., R) at the later test: its terminal performance over that of the test before.
      contrast: (..., R) their difference over their sum.
      forward: (..., R, K) tasks to whose training it is attributed as forward transfer.
      backward: (..., R, K) tasks to whose training it is attributed as backward transfer.
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
      compat: whether to attribute transfer, as l2metrics 3.1 does, only to the trained task whose
        first appearance is the latest, even if the tested task itself was trained between the tests
        (static). By default it is attributed to every task trained between the tests, and to none
        if the tested task was trained itself.

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
        confounded = structure.own_training[..., None]
        forward, backward = structure.forward & ~confounded, structure.backward & ~confounded
    return Transfer(
        numbers(ratio, *common, (before == 0, Reason.ZERO_BASELINE)),
        numbers(contrast, *common, (total == 0, Reason.ZERO_BASELINE)),
        forward,
        backward,
    )


def lifetime_transfer(
    values: Numbers,
    attributed: Array,
    structure: Structure,
    compat: bool = False,
    median: bool = False,
) -> Numbers:
    """Average all transfers of a lifetime to one number.

    Args:
      values: (..., R) `Transfer.ratio` or `Transfer.contrast`.
      attributed: (..., R, K) `Transfer.forward` or `Transfer.backward`.
      structure: of the lifetimes.
      compat: whether to use only the first value of each pair of tasks, as l2metrics 3.1 (static).
      median: whether to take the median instead of the mean (static).

    Returns:
      `Numbers` of (...).
    """
    xp = namespace(values.values)
    attributed = attributed & xp.isfinite(values.values)[..., None]
    if compat:
        attributed = _first_of_each_pair(attributed, structure.tasks)
    wide = xp.broadcast_to(values.values[..., None], attributed.shape)
    flat = (*attributed.shape[:-2], -1)
    average = masked_median if median else masked_mean
    result, count = average(xp.nan_to_num(wide).reshape(flat), attributed.reshape(flat))
    own_training = (structure.own_training & ~structure.train).any(axis=-1)
    return numbers(
        result,
        ((count == 0) & own_training, Reason.OWN_TRAINING),
        (count == 0, Reason.NO_TRANSFER),
    )


def _first_of_each_pair(attributed: Array, tasks: Array) -> Array:
    xp = namespace(attributed)
    first = xp.zeros_like(attributed)
    for task in range(attributed.shape[-1]):
        of_task = attributed & (tasks == task)[..., None]
        first = first | (of_task & (xp.cumsum(of_task, axis=-2) == 1))
    return first


def task_average(
    values: Numbers, member: Array, tasks: Array, num_tasks: int, missing: Reason
) -> Numbers:
    """Mean of the regimes' numbers of each task.

    Args:
      values: (..., R) numbers of regimes; missing ones are ignored.
      member: (..., R) which regimes to use.
      tasks: (..., R) task of each regime.
      num_tasks: K (static).
      missing: reason for a task without a value.

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
      `Numbers` of (...); if no task has a value, the reason of the tasks if they agree.
    """
    xp = namespace(values.values)
    mask = xp.isfinite(values.values)
    average = masked_median if median else masked_mean
    result, count = average(xp.nan_to_num(values.values), mask)
    combined = numbers(result, (count == 0, Reason.NO_TASK_HAS_VALUE))
    agree = (values.reasons == values.reasons[..., :1]).all(axis=-1) & (count == 0)
    codes = xp.where(agree, values.reasons[..., 0], combined.reasons)
    return Numbers(combined.values, codes)
