"""A metric over lifetimes: its statistics, their intervals, and why one is missing."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from evaluation.metrics.l2m import Metric, Reason
from evaluation.metrics.statistics.arrays import (
    DEFAULT_LEVEL,
    DEFAULT_RESAMPLES,
    Floats,
    Integers,
    Seed,
)
from evaluation.metrics.statistics.bootstrap import Method, bootstrap_intervals
from evaluation.metrics.statistics.location import STATISTICS, describe


class MetricLike(Protocol):
    """Numbers and, where one is missing, why: a `Metric`, or the same of NumPy arrays."""

    @property
    def values(self) -> npt.ArrayLike:
        """(L, ...) numbers, NaN where there is none."""

    @property
    def reasons(self) -> npt.ArrayLike:
        """(L, ...) codes of `Reason`."""


@dataclass(frozen=True)
class Estimate:
    """One statistic with its interval; each field has the shape of one lifetime's values.

    Attributes:
      value: the statistic; NaN where too few lifetimes have a value.
      low: lower end of its bootstrap interval; NaN below two lifetimes with a value.
      high: upper end.
      reasons: `Reason` why the value or its interval is missing; `Reason.NONE` where both are
        there.
    """

    value: Floats
    low: Floats
    high: Floats
    reasons: Integers

    def columns(self, part: slice, shape: tuple[int, ...]) -> "Estimate":
        """Some of its columns, in another shape."""
        value, low, high = (
            field[part].reshape(shape) for field in (self.value, self.low, self.high)
        )
        return Estimate(value, low, high, self.reasons[part].reshape(shape))


@dataclass(frozen=True)
class Summary:
    """One metric over all lifetimes; arrays have the shape of one lifetime's values.

    Attributes:
      mean: mean over the lifetimes that have a value; NaN where none has.
      std: sample standard deviation over those lifetimes; NaN below two.
      low: lower end of the bootstrap interval of the mean; NaN below two lifetimes.
      high: upper end.
      count: lifetimes that have a value.
      lifetimes: lifetimes in all.
      reasons: `Reason` why mean or interval is missing; `Reason.NONE` where both are there.
      missing: most frequent `Reason` among the lifetimes without a value (the lowest code on a
        tie); `Reason.NONE` where every lifetime has one.
      estimates: each of `STATISTICS` with its interval, the mean among them.
    """

    mean: Floats
    std: Floats
    low: Floats
    high: Floats
    count: Integers
    lifetimes: int
    reasons: Integers
    missing: Integers
    estimates: Mapping[str, Estimate]


def summarise(
    metric: MetricLike,
    seed: Seed = 0,
    level: float = DEFAULT_LEVEL,
    resamples: int = DEFAULT_RESAMPLES,
    method: Method = "percentile",
) -> Summary:
    """A metric's statistics with intervals over lifetimes, for each block.

    Args:
      metric: (L, B) values and reasons; any trailing shape works.
      seed: of the bootstrap; non-negative integer or typed JAX key.
      level: coverage of the intervals.
      resamples: number of bootstrap resamples.
      method: how the intervals follow from the resamples.

    Returns:
      `Summary` of shape (B,).

    Raises:
      ValueError: as `bootstrap_intervals`.
    """
    return summarise_all({"metric": metric}, seed, level, resamples, method)["metric"]


def summarise_all(
    metrics: Mapping[str, MetricLike],
    seed: Seed = 0,
    level: float = DEFAULT_LEVEL,
    resamples: int = DEFAULT_RESAMPLES,
    method: Method = "percentile",
) -> dict[str, Summary]:
    """`summarise` of several metrics at once: the same bits, with one pass over the resamples.

    Args:
      metrics: (L, ...) values and reasons by name, of the same L lifetimes.
      seed: of the bootstrap; non-negative integer or typed JAX key.
      level: coverage of the intervals.
      resamples: number of bootstrap resamples.
      method: how the intervals follow from the resamples.

    Returns:
      `Summary` by name, of the shape of one lifetime's values.

    Raises:
      ValueError: metrics of different numbers of lifetimes, or as `bootstrap_intervals`.
    """
    if not metrics:
        return {}
    values = {name: np.asarray(metric.values, np.float64) for name, metric in metrics.items()}
    together = _side_by_side(list(values.values()))
    described = describe(together)
    intervals = bootstrap_intervals(together, STATISTICS, seed, level, resamples, method)
    missing = np.concatenate([_most_frequent_reason(metric).ravel() for metric in metrics.values()])
    estimates = {
        name: Estimate(
            getattr(described, name),
            interval.low,
            interval.high,
            # The lifetimes' own reason says more than "too few of them".
            np.where((described.count == 0) & (missing > Reason.NONE), missing, interval.reasons),
        )
        for name, interval in intervals.items()
    }
    summaries, start = {}, 0
    for name, array in values.items():
        shape = array.shape[1:]
        part = slice(start, start + math.prod(shape))
        own = {key: estimate.columns(part, shape) for key, estimate in estimates.items()}
        counts, why = (whole[part].reshape(shape) for whole in (described.count, missing))
        summaries[name] = _summary(own, counts, len(array), why)
        start = part.stop
    return summaries


def _side_by_side(arrays: Sequence[Floats]) -> Floats:
    """(L, columns) of all arrays."""
    lengths = sorted({array.shape[0] if array.ndim else 0 for array in arrays})
    if len(lengths) > 1:
        raise ValueError(f"metrics must be of the same lifetimes, not of {lengths}")
    if lengths == [0]:
        raise ValueError("values must have the lifetimes as first axis, and at least one of them")
    return np.concatenate([array.reshape(lengths[0], -1) for array in arrays], axis=1)


def _summary(
    estimates: Mapping[str, Estimate], count: Integers, lifetimes: int, missing: Integers
) -> Summary:
    mean = estimates["mean"]
    return Summary(
        mean=mean.value,
        std=estimates["std"].value,
        low=mean.low,
        high=mean.high,
        count=count,
        lifetimes=lifetimes,
        reasons=mean.reasons,
        missing=missing,
        estimates=estimates,
    )


def syllabus_scores(metric: MetricLike) -> Metric:
    """One score a lifetime: the plain mean of a metric over the blocks that have a value.

    Args:
      metric: (L, B) values and reasons.

    Returns:
      `Metric` of (L,) float64 NumPy arrays; `Reason.NO_BLOCK_HAS_VALUE` where no block has one.

    Source: L2M Metrics Framework, 4 Dec 2019, chapter 2 ("an average of the scores achieved").
    """
    values = np.asarray(metric.values, np.float64)
    mean = describe(values.T).mean if values.shape[1] else np.full(len(values), np.nan)
    reasons = np.where(np.isnan(mean), Reason.NO_BLOCK_HAS_VALUE, Reason.NONE).astype(np.int32)
    return Metric(mean, reasons)  # type: ignore[arg-type]  # float64 even where JAX has none


def summarise_syllabus(
    metric: MetricLike,
    seed: Seed = 0,
    level: float = DEFAULT_LEVEL,
    resamples: int = DEFAULT_RESAMPLES,
    method: Method = "percentile",
) -> Summary:
    """The syllabus score over lifetimes: `summarise` of `syllabus_scores`.

    Args:
      metric: (L, B) values and reasons.
      seed: of the bootstrap; non-negative integer or typed JAX key.
      level: coverage of the intervals.
      resamples: number of bootstrap resamples.
      method: how the intervals follow from the resamples.

    Returns:
      `Summary` of scalars, shape ().

    Raises:
      ValueError: as `bootstrap_intervals`.
    """
    return summarise(syllabus_scores(metric), seed, level, resamples, method)


def _most_frequent_reason(metric: MetricLike) -> Integers:
    """For each column, the code that most lifetimes without a value carry."""
    absent = np.isnan(np.asarray(metric.values))
    reasons = np.asarray(metric.reasons)
    codes = [code for code in Reason if code is not Reason.NONE]
    votes = np.stack([(absent & (reasons == code)).sum(axis=0) for code in codes])
    winner = np.asarray([int(code) for code in codes], np.int64)[votes.argmax(axis=0)]
    return np.where(votes.any(axis=0), winner, Reason.NONE).astype(np.int64)
