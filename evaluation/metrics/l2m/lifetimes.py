"""Metrics of l2metrics 3.1 for a batch of lifetimes: process the curves, then measure them.

L lifetimes have R regimes of at most T rows, K tasks and S runs of single-task experts. The
functions are pure and take NumPy or JAX arrays; under `jax.jit` the options are static. If all
lifetimes have one plan, structure, experiences and experts may have a leading axis of 1.
"""

from typing import Literal, NamedTuple

import numpy as np

from evaluation.metrics.l2m.experts import (
    Experts,
    SampleEfficiency,
    average_expert,
    over_runs,
    relative_performance,
    sample_efficiency,
)
from evaluation.metrics.l2m.regimes import (
    ROUNDING,
    RegimeNumbers,
    mean_per_experience,
    regime_numbers,
)
from evaluation.metrics.l2m.scaling import (
    TaskRange,
    clamp,
    normalise,
    task_quantiles,
    task_range,
)
from evaluation.metrics.l2m.smoothing import Kind, smooth
from evaluation.metrics.l2m.structure import Structure
from evaluation.metrics.l2m.task_metrics import (
    Transfer,
    lifetime_transfer,
    maintenance,
    over_tasks,
    perf_recovery,
    recovery_times,
    task_average,
    transfer,
)
from evaluation.metrics.numerics import (
    Array,
    Numbers,
    materialised,
    namespace,
    numbers,
    take,
)
from evaluation.metrics.reasons import Reason
from evaluation.metrics.table import OFFSET, SCALE, names_of

TASK_METRICS = names_of("3.1", "task")
"""Metrics with one number per task; their mean or median is a number of the lifetime."""

LIFETIME_METRICS = names_of("3.1")
"""Metrics with one number per lifetime, in the order of the result files."""


SINGLE_RTOL, SINGLE_ATOL = 2e-5, 2e-4
"""Tolerance of float32 against float64 on a processor, |a - b| <= atol + rtol |b|, for performance
normalised to 1 to 101. Counts of episodes and reasons of missing numbers are equal."""

_QUIET = np.errstate(all="ignore")
"""NumPy's warnings are not needed: missing numbers have reasons."""


class MetricOptions(NamedTuple):
    """Settings of the metrics; hashable, static under `jax.jit`.

    Attributes:
      smoothing: window for smoothing training curves; None for no smoothing.
      window: its length; None for a fifth of each regime, see `smoothing.window_lengths`.
      smooth_tests: whether to smooth test regimes too.
      clamp: whether to clamp each task's values to its range or, without a range, to its 10 % and
        90 % quantiles.
      normalisation: to the range of each task, of the whole run, or none.
      scale: length of the range after normalisation.
      offset: its lower end.
      ste_averaging: "metrics" averages the metric over an expert's runs, "time" averages the runs.
      median: whether a lifetime's number is the median over its tasks instead of the mean.
      repeats: whether rows of one regime may share an experience.
      compat: whether to reproduce l2metrics 3.1 with its defects.
    """

    smoothing: Kind | None = "flat"
    window: int | None = None
    smooth_tests: bool = False
    clamp: bool = False
    normalisation: Literal["task", "run", "none"] = "task"
    scale: float = SCALE
    offset: float = OFFSET
    ste_averaging: Literal["metrics", "time"] = "metrics"
    median: bool = False
    repeats: bool = False
    compat: bool = False


class Processed(NamedTuple):
    """Curves after each step.

    Attributes:
      smoothed: (L, R, T) after smoothing.
      clamped: (L, R, T) after clamping.
      values: (L, R, T) after normalisation.
      experts: the experts after all steps.
      ranges: (L, K) ends of the ranges that normalisation maps from.
    """

    smoothed: Array
    clamped: Array
    values: Array
    experts: Experts
    ranges: TaskRange


class LifetimeMetrics(NamedTuple):
    """All metrics of L lifetimes.

    Attributes:
      regimes: (L, R) numbers of each regime.
      recovery: (L, R) recovery times, at the later training regime.
      mrlep: (L, R) maintenance against the most recent learning evaluation, at the test.
      mrtlp: (L, R) maintenance against the most recent training.
      transfer: (L, R) transfer at the test, and the tasks whose training it is attributed to.
      relative: (L, K, S) performance relative to each expert run.
      efficiency: (L, K, S) sample efficiency against each expert run, with its parts.
      tasks: name of `TASK_METRICS` -> (L, K) numbers.
      lifetime: name of `LIFETIME_METRICS` -> (L,) numbers.
      extremes: (L, K) smallest and largest processed value of each task.
    """

    regimes: RegimeNumbers
    recovery: Numbers
    mrlep: Numbers
    mrtlp: Numbers
    transfer: Transfer
    relative: Numbers
    efficiency: SampleEfficiency
    tasks: dict[str, Numbers]
    lifetime: dict[str, Numbers]
    extremes: TaskRange


@_QUIET
def process(
    values: Array,
    structure: Structure,
    experts: Experts,
    options: MetricOptions,
    ranges: TaskRange | None = None,
) -> Processed:
    """Smooth, clamp and normalise, in this order.

    Args:
      values: (L, R, T) performance per row, padded behind each regime's count.
      structure: of the lifetimes.
      experts: training curves, already smoothed regime by regime.
      options: what to do (static).
      ranges: (L or 1, K) range of each task; if None, computed from the data.

    Source: l2metrics 3.1.
    """
    xp = namespace(values)
    inside = _inside(values, structure)
    mask = inside if options.compat else inside & xp.isfinite(values)
    smoothed = _smoothed(values, structure, options)
    clamped = smoothed
    if options.clamp:
        bounds = ranges
        if bounds is None:
            bounds = task_quantiles(smoothed, mask, structure.tasks, *_joined(experts))
        clamped = clamp(smoothed, *_per_regime(bounds, structure))
        experts = experts._replace(values=clamp(experts.values, *_per_run(bounds)))
    if ranges is None:
        ranges = task_range(clamped, mask, structure.tasks, *_joined(experts))
    if options.normalisation == "none":
        return Processed(smoothed, clamped, clamped, experts, ranges)
    basis = _whole_run(ranges) if options.normalisation == "run" else ranges
    guard = not options.compat or options.normalisation == "task"
    if not options.compat:
        basis = _without_rounding(basis)

    def normalised(curves: Array, ends: tuple[Array, Array]) -> Array:
        return normalise(curves, *ends, options.scale, options.offset, guard)

    runs = normalised(experts.values, _per_run(basis))
    values = normalised(clamped, _per_regime(basis, structure))
    return Processed(smoothed, clamped, values, experts._replace(values=runs), ranges)


@_QUIET
def measure(
    values: Array,
    experiences: Array,
    structure: Structure,
    experts: Experts,
    options: MetricOptions,
) -> LifetimeMetrics:
    """Compute every metric from processed curves.

    Args:
      values: (L, R, T) of `process`.
      experiences: (L or 1, R, T) integer number of each row's experience, for slopes.
      structure: of the lifetimes.
      experts: of `process`.
      options: as for `process` (static).

    Source: l2metrics 3.1; without its defects unless ``options.compat``.
    """
    xp = namespace(values)
    compat = options.compat
    if not compat:
        non_finite = _non_finite(values, structure)[..., None]
        (values,) = materialised(xp.where(non_finite, np.nan, values))
    means, spans = values, structure.counts
    if options.repeats:
        means, spans = mean_per_experience(values, spans, experiences)
    regimes = regime_numbers(values, structure.counts, means, spans, structure.train, compat)
    (regimes,) = materialised(regimes._replace(avg_perf=_awake(regimes.avg_perf, structure)))
    recovery = recovery_times(means, spans, regimes.term_perf, structure, compat)
    mrlep = maintenance(regimes.term_perf, structure.reference, structure)
    mrtlp = maintenance(regimes.term_perf, structure.latest_training, structure)
    transfers = transfer(regimes.term_perf, structure, compat)
    flat = values.reshape(*values.shape[:-2], 1, -1)
    (curves,) = materialised(take(flat, structure.curves))
    when = take(experiences.reshape(*experiences.shape[:-2], 1, -1), structure.curves)
    lengths = (structure.curves >= 0).sum(axis=-1)
    averaged = options.ste_averaging == "time"
    reference = average_expert(experts) if averaged else experts
    relative = relative_performance(curves, lengths, reference)
    efficiency = sample_efficiency(
        curves, when, lengths, reference, options.repeats, averaged, compat
    )
    num_tasks = structure.curves.shape[-2]
    train, test = structure.train, structure.counted & ~structure.train

    def average(numbers_of: Numbers, member: Array, missing: Reason) -> Numbers:
        return task_average(numbers_of, member, structure.tasks, num_tasks, missing)

    tasks = {
        "perf_recovery": perf_recovery(recovery, structure, compat),
        "avg_train_perf": average(regimes.avg_perf, train, Reason.NO_TRAINING),
        "avg_eval_perf": average(regimes.avg_perf, test, Reason.NO_TEST),
        "perf_maintenance_mrlep": average(mrlep, test, Reason.NO_REFERENCE_TEST),
        "perf_maintenance_mrtlp": average(mrtlp, test, Reason.NO_REFERENCE_TEST),
        "ste_rel_perf": over_runs(relative),
        "sample_efficiency": over_runs(efficiency.efficiency),
    }
    lifetime = {name: over_tasks(tasks[name], options.median) for name in TASK_METRICS}
    flags = {"forward": transfers.forward, "backward": transfers.backward}
    for kind, values_of in (("ratio", transfers.ratio), ("contrast", transfers.contrast)):
        for direction, attributed in flags.items():
            lifetime[f"{direction}_transfer_{kind}"] = lifetime_transfer(
                values_of, attributed, structure, compat, options.median
            )
    lifetime = {name: lifetime[name] for name in LIFETIME_METRICS}
    no_experts = xp.zeros((*values.shape[:-2], num_tasks, 0), values.dtype)
    mask = _inside(values, structure) & xp.isfinite(values)
    extremes = task_range(values, mask, structure.tasks, no_experts, no_experts == 0)
    return LifetimeMetrics(
        regimes, recovery, mrlep, mrtlp, transfers, relative, efficiency, tasks, lifetime, extremes
    )


def lifetime_metrics(
    values: Array,
    experiences: Array,
    structure: Structure,
    experts: Experts,
    options: MetricOptions,
    ranges: TaskRange | None = None,
) -> LifetimeMetrics:
    """Process the curves, then compute every metric; arguments as for `process` and `measure`."""
    processed = process(values, structure, experts, options, ranges)
    curves, runs = materialised(processed.values, processed.experts)
    return measure(curves, experiences, structure, runs, options)


def _inside(values: Array, structure: Structure) -> Array:
    return namespace(values).arange(values.shape[-1]) < structure.counts[..., None]


def _smoothed(values: Array, structure: Structure, options: MetricOptions) -> Array:
    kind = options.smoothing
    if kind is None:
        return values
    xp = namespace(values)

    def curves(regimes: Array, counts: Array) -> Array:
        return smooth(regimes, counts, options.window, kind, not options.compat)

    if options.smooth_tests:
        return curves(values, structure.counts)
    places = structure.training
    counts = xp.where(places < 0, 0, take(structure.counts, places))
    training = curves(_rows(values, xp.maximum(places, 0)), counts)
    number = xp.cumsum(structure.train, axis=-1) - 1
    return xp.where(structure.train[..., None], _rows(training, xp.maximum(number, 0)), values)


def _rows(values: Array, places: Array) -> Array:
    """(L, M, T) regimes at (L or 1, M) places of (L, R, T) values."""
    return namespace(values).take_along_axis(values, places[..., None], axis=-2)


def _joined(experts: Experts) -> tuple[Array, Array]:
    """(..., K, S Y) values of all runs of each task, and their mask."""
    xp = namespace(experts.values)
    shape = (*experts.values.shape[:-2], -1)
    mask = xp.arange(experts.values.shape[-1]) < experts.counts[..., None]
    mask = xp.broadcast_to(mask, experts.values.shape)
    return experts.values.reshape(shape), mask.reshape(shape)


def _per_regime(ends: TaskRange, structure: Structure) -> tuple[Array, Array]:
    low, high = (take(end, structure.tasks)[..., None] for end in ends)
    return low, high


def _per_run(ends: TaskRange) -> tuple[Array, Array]:
    low, high = (end[..., None, None] for end in ends)
    return low, high


def _whole_run(ranges: TaskRange) -> TaskRange:
    xp = namespace(ranges.low)
    low = xp.min(xp.where(xp.isnan(ranges.low), np.inf, ranges.low), axis=-1, keepdims=True)
    high = xp.max(xp.where(xp.isnan(ranges.high), -np.inf, ranges.high), axis=-1, keepdims=True)
    return TaskRange(
        xp.broadcast_to(low, ranges.low.shape), xp.broadcast_to(high, ranges.high.shape)
    )


def _without_rounding(ranges: TaskRange) -> TaskRange:
    """Ranges with zero width where the width is only the rounding error of smoothing."""
    xp = namespace(ranges.low)
    scale = xp.maximum(xp.abs(ranges.low), xp.abs(ranges.high))
    least = scale * (ROUNDING * float(np.finfo(ranges.low.dtype).eps))
    return TaskRange(
        ranges.low, xp.where(ranges.high - ranges.low <= least, ranges.low, ranges.high)
    )


def _non_finite(values: Array, structure: Structure) -> Array:
    """(L, R) whether a regime has a value that is not finite."""
    return (_inside(values, structure) & ~namespace(values).isfinite(values)).any(axis=-1)


def _awake(averages: Numbers, structure: Structure) -> Numbers:
    """Averages of regimes, missing for tests awake that do not count."""
    xp = namespace(averages.values)
    exists = (structure.tasks >= 0) & (structure.counts > 0)
    ignored = exists & ~structure.counted
    missing = numbers(averages.values, (ignored, Reason.ASLEEP))
    codes = xp.where(averages.reasons == 0, missing.reasons, averages.reasons)
    return Numbers(missing.values, codes)
