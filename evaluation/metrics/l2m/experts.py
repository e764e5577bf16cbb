"""Comparison of a learner with single-task experts (STE): performance and sample efficiency."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluation.metrics.l2m.regimes import mean_per_experience, peak
from evaluation.metrics.numerics import (
    Array,
    Numbers,
    divide,
    masked_mean,
    namespace,
    numbers,
    pairwise_sum,
)
from evaluation.metrics.reasons import Reason

LEAST_SATURATION = 0.2
"""Share of the expert's saturation below which a learner's sample efficiency is 0."""


class ExpertCurve(NamedTuple):
    """Training curve of one expert: (n,) performance and number of each row's experience."""

    values: npt.NDArray[np.float64]
    experiences: npt.NDArray[np.int64]


class Experts(NamedTuple):
    """Training curves of single-task experts, S runs for each of the K tasks of a lifetime.

    Attributes:
      values: (..., K, S, Y) performance per row, padded behind ``counts``.
      counts: (..., K, S) integer rows; 0 for no run.
      experiences: (..., K, S, Y) integer number of the experience of each row.
    """

    values: Array
    counts: Array
    experiences: Array


class SampleEfficiency(NamedTuple):
    """Sample efficiency of a learner relative to its experts, with its parts.

    Attributes:
      efficiency: `Numbers` of (..., K, S).
      saturations: (..., K, S) the learner's saturation over the expert's.
      speeds: (..., K, S) the expert's episodes to saturation over the learner's.
      expert_saturation: (..., K, S).
      expert_exp_to_sat: (..., K, S) episodes.
      saturation: (..., K) the learner's.
      exp_to_sat: (..., K) episodes.
    """

    efficiency: Numbers
    saturations: Numbers
    speeds: Numbers
    expert_saturation: Numbers
    expert_exp_to_sat: Numbers
    saturation: Numbers
    exp_to_sat: Numbers


def relative_performance(curves: Array, lengths: Array, experts: Experts) -> Numbers:
    """Summed training performance of a learner divided by that of an expert.

    Args:
      curves: (..., K, X) all training of a task, the regimes in order.
      lengths: (..., K) integer rows of each curve.
      experts: of the tasks.

    Returns:
      `Numbers` of (..., K, S); both sums end with the shorter curve.

    Source: l2metrics 3.1, ste_rel_perf.
    """
    xp = namespace(curves)
    common = xp.minimum(lengths[..., None], experts.counts)
    learner = pairwise_sum(
        xp.where(xp.arange(curves.shape[-1]) < common[..., None], curves[..., None, :], 0)
    )
    rows = xp.arange(experts.values.shape[-1])
    expert = pairwise_sum(xp.where(rows < common[..., None], experts.values, 0))
    ratio = divide(learner, xp.where(expert == 0, 1, expert))
    return numbers(ratio, *_absent(lengths, experts), (expert == 0, Reason.ZERO_STE))


def average_expert(experts: Experts) -> Experts:
    """Average the runs of each task to one expert, row by row, as long as the shortest run.

    Source: l2metrics 3.1, STE averaging method "time".
    """
    xp = namespace(experts.values)
    present = experts.counts > 0
    shortest = xp.min(xp.where(present, experts.counts, np.iinfo(np.int32).max), axis=-1)
    shortest = xp.where(present.any(axis=-1), shortest, 0)
    by_row = xp.swapaxes(experts.values, -1, -2)
    mean, _ = masked_mean(by_row, present[..., None, :])
    rows = xp.arange(mean.shape[-1])
    return Experts(
        mean[..., None, :],
        shortest[..., None],
        xp.broadcast_to(rows, (*mean.shape[:-1], 1, len(rows))),
    )


def sample_efficiency(
    curves: Array,
    experiences: Array,
    lengths: Array,
    experts: Experts,
    repeats: bool = False,
    averaged: bool = False,
    compat: bool = False,
) -> SampleEfficiency:
    """Ratio of a learner's saturation to an expert's, times its speed-up in reaching it.

    Args:
      curves: (..., K, X) all training of a task, the regimes in order.
      experiences: (..., K, X) number of the experience of each row.
      lengths: (..., K) integer rows of each curve.
      experts: of the tasks.
      repeats: whether rows may share an experience; if so, their mean is used (static).
      averaged: whether the experts are those of `average_expert` (static).
      compat: whether to reproduce l2metrics 3.1: it smooths all curves once more, and leaves out
        the learner's saturation if an averaged expert is saturated from the start (static).

    Returns:
      `SampleEfficiency`. The efficiency is 0 if the learner stays below `LEAST_SATURATION` of the
      expert's saturation, or if the least-squares slope of its curve is negative.

    Source: l2metrics 3.1, sample_efficiency.
    """
    xp = namespace(curves)
    dtype = curves.dtype
    means, spans = curves, lengths
    expert_means, expert_spans = experts.values, experts.counts
    if repeats:
        means, spans = mean_per_experience(curves, lengths, experiences)
        expert_means, expert_spans = mean_per_experience(*experts)
    top, when = peak(means, spans, compat)
    expert_top, expert_when = peak(expert_means, expert_spans, compat)
    when, expert_when = when.astype(dtype), expert_when.astype(dtype)
    shape = np.broadcast_shapes(top[..., None].shape, expert_top.shape)
    saturations = xp.broadcast_to(top[..., None], shape) / xp.where(expert_top == 0, 1, expert_top)
    speeds = expert_when / xp.where(when == 0, 1, when)[..., None]
    weak = top[..., None] < LEAST_SATURATION * expert_top
    falls = _slope_sign(curves, experiences, lengths) < 0
    efficiency = xp.where(weak | falls[..., None], 0, saturations * speeds)
    early = ((when == 0)[..., None] | (expert_when == 0), Reason.SATURATED_AT_START)
    absent = _absent(lengths, experts)
    untrained = (lengths == 0, Reason.NO_TRAINING)
    zero = (expert_top == 0, Reason.ZERO_STE)
    no_expert = ((experts.counts == 0).all(axis=-1), Reason.NO_STE)
    early_alone = when == 0
    if averaged and compat:
        early_alone = early_alone | (expert_when[..., 0] == 0)
    at_start = (early_alone, Reason.SATURATED_AT_START)
    return SampleEfficiency(
        numbers(efficiency, *absent, early, zero),
        numbers(saturations, *absent, early, zero),
        numbers(speeds, *absent, early),
        numbers(xp.broadcast_to(expert_top, shape), *absent, early),
        numbers(xp.broadcast_to(expert_when, shape), *absent, early),
        numbers(top, untrained, no_expert, at_start),
        numbers(when, untrained, no_expert, at_start),
    )


def _absent(lengths: Array, experts: Experts) -> tuple[tuple[Array, Reason], ...]:
    return (
        (lengths[..., None] == 0, Reason.NO_TRAINING),
        (experts.counts == 0, Reason.NO_STE),
    )


def _slope_sign(values: Array, experiences: Array, lengths: Array) -> Array:
    """(...) numbers with the sign of the least-squares slope of each curve."""
    xp = namespace(values)
    mask = (xp.arange(values.shape[-1]) < lengths[..., None]) & xp.isfinite(values)
    when = xp.broadcast_to(experiences.astype(values.dtype), values.shape)
    centre, _ = masked_mean(when, mask)
    middle, _ = masked_mean(values, mask)
    product = (when - centre[..., None]) * (values - middle[..., None])
    return pairwise_sum(xp.where(mask, product, 0))


def over_runs(values: Numbers) -> Numbers:
    """Mean over the runs of each task's experts, (..., K); the first run's reason if none."""
    xp = namespace(values.values)
    mask = xp.isfinite(values.values)
    mean, count = masked_mean(xp.nan_to_num(values.values), mask)
    codes = xp.where(count == 0, values.reasons[..., 0], int(Reason.NONE)).astype(np.int32)
    return Numbers(xp.where(count == 0, np.nan, mean), codes)


def pad_experts(curves: Sequence[Sequence[Sequence[ExpertCurve]]], num_tasks: int) -> Experts:
    """Pad curves, given by lifetime, task and run, to (L, K, S, Y)."""
    most = max((len(runs) for tasks in curves for runs in tasks), default=0)
    longest = max(
        (len(run.values) for tasks in curves for runs in tasks for run in runs), default=0
    )
    shape = (len(curves), num_tasks, max(most, 1))
    values, counts = np.zeros((*shape, max(longest, 1))), np.zeros(shape, np.int32)
    experiences = np.zeros(values.shape, np.int64)
    for lifetime, tasks in enumerate(curves):
        for task, runs in enumerate(tasks):
            for number, run in enumerate(runs):
                size = len(run.values)
                values[lifetime, task, number, :size] = run.values
                experiences[lifetime, task, number, :size] = run.experiences
                counts[lifetime, task, number] = size
    return Experts(values, counts, experiences)
