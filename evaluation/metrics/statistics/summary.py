"""Summaries of metrics over lifetimes: statistics, intervals and reasons of missing values."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evaluation.metrics.numerics import Numbers
from evaluation.metrics.reasons import Reason
from evaluation.metrics.statistics.arrays import (
    DEFAULT_LEVEL,
    DEFAULT_RESAMPLES,
    Floats,
    Integers,
    Seed,
)
from evaluation.metrics.statistics.bootstrap import (
    UNBOUNDED,
    Bounds,
    Method,
    bootstrap_intervals,
    wilson,
)
from evaluation.metrics.statistics.location import STATISTICS, describe
from evaluation.metrics.table import SHARES, bounds_of


@dataclass(frozen=True)
class Summary:
    """One metric over all lifetimes; arrays have the shape of one lifetime's values.

    Attributes:
      estimates: each of `STATISTICS` with its interval.
      count: number of lifetimes with a value.
      lifetimes: total number of lifetimes.
      missing: most frequent `Reason` among the lifetimes without a value (the lowest code on a
        tie); `Reason.NONE` if every lifetime has a value.
    """

    estimates: Mapping[str, Numbers]
    count: Integers
    lifetimes: int
    missing: Integers

    @property
    def mean(self) -> Floats:
        """Mean over the lifetimes with a value; NaN without any."""
        return self.estimates["mean"].values

    @property
    def std(self) -> Floats:
        """Sample standard deviation over the lifetimes with a value; NaN below two."""
        return self.estimates["std"].values

    @property
    def low(self) -> Floats:
        """Lower end of the interval of the mean; NaN below two lifetimes."""
        return np.asarray(self.estimates["mean"].low)

    @property
    def high(self) -> Floats:
        """Upper end of the interval of the mean; NaN below two lifetimes."""
        return np.asarray(self.estimates["mean"].high)

    @property
    def reasons(self) -> Integers:
        """Why mean or interval is missing; `Reason.NONE` if neither is."""
        return self.estimates["mean"].reasons


def summarise(
    metric: Numbers,
    seed: Seed = 0,
    level: float = DEFAULT_LEVEL,
    resamples: int = DEFAULT_RESAMPLES,
    method: Method = "calibrated",
    bounds: Bounds = UNBOUNDED,
) -> Summary:
    """Compute a metric's statistics with intervals over lifetimes, for each block.

    Args:
      metric: (L, B) values and reasons; any trailing shape works.
      seed: of the bootstrap; non-negative integer or typed JAX key.
      level: coverage of the intervals.
      resamples: number of bootstrap resamples.
      method: of the intervals, see `Method`.
      bounds: of the values by their definition.

    Returns:
      `Summary` of shape (B,).

    Raises:
      ValueError: as `bootstrap_intervals`.
    """
    one = {"metric": bounds}
    return summarise_all({"metric": metric}, seed, level, resamples, method, one)["metric"]


def summarise_all(
    metrics: Mapping[str, Numbers],
    seed: Seed = 0,
    level: float = DEFAULT_LEVEL,
    resamples: int = DEFAULT_RESAMPLES,
    method: Method = "calibrated",
    bounds: Mapping[str, Bounds] | None = None,
) -> dict[str, Summary]:
    """Summarise several metrics in one pass over the resamples; the same bits as `summarise`.

    Args:
      metrics: (L, ...) values and reasons by name, of the same L lifetimes.
      seed: of the bootstrap; non-negative integer or typed JAX key.
      level: coverage of the intervals.
      resamples: number of bootstrap resamples.
      method: of the intervals, see `Method`.
      bounds: of metrics by name; `bounds_of()` if None.

    Returns:
      `Summary` by name, of the shape of one lifetime's values.

    Raises:
      ValueError: metrics of different numbers of lifetimes, or as `bootstrap_intervals`.
    """
    if not metrics:
        return {}
    values = {name: np.asarray(metric.values, np.float64) for name, metric in metrics.items()}
    joined = _joined(list(values.values()))
    description = describe(joined)
    limits = bounds_of() if bounds is None else bounds
    ends = _joined([_bounds(limits.get(name, UNBOUNDED), array) for name, array in values.items()])
    intervals = bootstrap_intervals(
        joined, STATISTICS, seed, level, resamples, method, (ends[0], ends[1])
    )
    missing = np.concatenate([_most_frequent_reason(metric).ravel() for metric in metrics.values()])
    estimates = {
        name: Numbers(
            getattr(description, name),
            # The lifetimes' own reason says more than "too few of them".
            np.where((description.count == 0) & (missing > Reason.NONE), missing, interval.reasons),
            interval.low,
            interval.high,
        )
        for name, interval in intervals.items()
    }
    summaries, start = {}, 0
    for name, array in values.items():
        shape = array.shape[1:]
        part = slice(start, start + math.prod(shape))
        parts = {key: estimate.part(part).reshape(shape) for key, estimate in estimates.items()}
        counts, reasons = (whole[part].reshape(shape) for whole in (description.count, missing))
        if method == "calibrated" and name in SHARES:
            parts["mean"] = of_share(parts["mean"], array, counts, level)
        summaries[name] = Summary(parts, counts, len(array), reasons)
        start = part.stop
    return summaries


def _bounds(bounds: Bounds, values: Floats) -> Floats:
    """(2, ...) smallest and largest possible value of each of one lifetime's values."""
    return np.stack([np.broadcast_to(bound, values.shape[1:]) for bound in bounds])


def of_share(
    mean: Numbers, values: Floats, counts: Integers, level: float = DEFAULT_LEVEL
) -> Numbers:
    """Give the mean of a share Wilson's interval where all values are zeros and ones.

    Args:
      mean: (...) with its bootstrap interval, which other shares keep.
      values: (L, ...) of the lifetimes, NaN for missing ones.
      counts: (...) values that are there.
      level: coverage of the interval.
    """
    finite = np.isfinite(values)
    yes_no = (~finite | np.isin(values, (0.0, 1.0))).all(axis=0) & (counts > 1)
    hits = np.where(finite & yes_no, values, 0).sum(axis=0)
    low, high = wilson(hits, np.maximum(counts, 1), level)
    wide = np.stack([np.asarray(mean.low), np.asarray(mean.high)])
    ends = np.where(yes_no, np.stack([low, high]), wide)
    return mean._replace(low=ends[0], high=ends[1])


def _joined(arrays: Sequence[Floats]) -> Floats:
    """Join the columns of all arrays, (L, columns)."""
    lengths = sorted({array.shape[0] if array.ndim else 0 for array in arrays})
    if len(lengths) > 1:
        raise ValueError(f"metrics must be of the same lifetimes, not of {lengths}")
    if lengths == [0]:
        raise ValueError("values must have the lifetimes as first axis, and at least one of them")
    return np.concatenate([array.reshape(lengths[0], -1) for array in arrays], axis=1)


def syllabus_scores(metric: Numbers) -> Numbers:
    """Score of each lifetime: the plain mean of a metric over the blocks that have a value.

    Args:
      metric: (L, B) values and reasons.

    Returns:
      `Numbers` of (L,) float64 NumPy arrays; `Reason.NO_BLOCK_HAS_VALUE` if no block has a value.

    Source: L2M Metrics Framework, 4 Dec 2019, chapter 2 ("an average of the scores achieved").
    """
    values = np.asarray(metric.values, np.float64)
    mean = describe(values.T).mean if values.shape[1] else np.full(len(values), np.nan)
    reasons = np.where(np.isnan(mean), Reason.NO_BLOCK_HAS_VALUE, Reason.NONE).astype(np.int32)
    return Numbers(mean, reasons)


def _most_frequent_reason(metric: Numbers) -> Integers:
    """Most frequent reason code of each column among the lifetimes without a value."""
    absent = np.isnan(np.asarray(metric.values))
    reasons = np.asarray(metric.reasons)
    codes = np.unique(np.append(reasons[absent], Reason.EMPTY)).astype(np.int64)
    votes = np.stack([(absent & (reasons == code)).sum(axis=0) for code in codes])
    winner = codes[votes.argmax(axis=0)]
    return np.where(votes.any(axis=0), winner, Reason.NONE).astype(np.int64)
