"""A metric over lifetimes: its statistics, their intervals, and why one is missing."""

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
      count: lifetimes that have a value.
      lifetimes: lifetimes in all.
      missing: most frequent `Reason` among the lifetimes without a value (the lowest code on a
        tie); `Reason.NONE` where every lifetime has one.
    """

    estimates: Mapping[str, Numbers]
    count: Integers
    lifetimes: int
    missing: Integers

    @property
    def mean(self) -> Floats:
        """Mean over the lifetimes that have a value; NaN where none has."""
        return self.estimates["mean"].values

    @property
    def std(self) -> Floats:
        """Sample standard deviation over those lifetimes; NaN below two."""
        return self.estimates["std"].values

    @property
    def low(self) -> Floats:
        """Lower end of the interval of the mean; NaN below two lifetimes."""
        return np.asarray(self.estimates["mean"].low)

    @property
    def high(self) -> Floats:
        """Upper end of the same."""
        return np.asarray(self.estimates["mean"].high)

    @property
    def reasons(self) -> Integers:
        """Why mean or interval is missing; `Reason.NONE` where both are there."""
        return self.estimates["mean"].reasons


def summarise(
    metric: Numbers,
    seed: Seed = 0,
    level: float = DEFAULT_LEVEL,
    resamples: int = DEFAULT_RESAMPLES,
    method: Method = "calibrated",
    bounds: Bounds = UNBOUNDED,
) -> Summary:
    """A metric's statistics with intervals over lifetimes, for each block.

    Args:
      metric: (L, B) values and reasons; any trailing shape works.
      seed: of the bootstrap; non-negative integer or typed JAX key.
      level: coverage of the intervals.
      resamples: number of bootstrap resamples.
      method: how the intervals follow from the resamples.
      bounds: between which the values lie by their definition.

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
    """`summarise` of several metrics at once: the same bits, with one pass over the resamples.

    Args:
      metrics: (L, ...) values and reasons by name, of the same L lifetimes.
      seed: of the bootstrap; non-negative integer or typed JAX key.
      level: coverage of the intervals.
      resamples: number of bootstrap resamples.
      method: how the intervals follow from the resamples.
      bounds: of metrics by name; `bounds_of()` if None.

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
    known = bounds_of() if bounds is None else bounds
    ends = _side_by_side([_bounds(known.get(name, UNBOUNDED), of) for name, of in values.items()])
    intervals = bootstrap_intervals(
        together, STATISTICS, seed, level, resamples, method, (ends[0], ends[1])
    )
    missing = np.concatenate([_most_frequent_reason(metric).ravel() for metric in metrics.values()])
    estimates = {
        name: Numbers(
            getattr(described, name),
            # The lifetimes' own reason says more than "too few of them".
            np.where((described.count == 0) & (missing > Reason.NONE), missing, interval.reasons),
            interval.low,
            interval.high,
        )
        for name, interval in intervals.items()
    }
    summaries, start = {}, 0
    for name, array in values.items():
        shape = array.shape[1:]
        part = slice(start, start + math.prod(shape))
        own = {key: estimate.part(part).reshape(shape) for key, estimate in estimates.items()}
        counts, why = (whole[part].reshape(shape) for whole in (described.count, missing))
        if method == "calibrated" and name in SHARES:
            own["mean"] = _of_share(own["mean"], array, counts, level)
        summaries[name] = Summary(own, counts, len(array), why)
        start = part.stop
    return summaries


def _bounds(bounds: Bounds, values: Floats) -> Floats:
    """(2, ...) least and largest value of each of one lifetime's."""
    return np.stack([np.broadcast_to(bound, values.shape[1:]) for bound in bounds])


def _of_share(mean: Numbers, values: Floats, counts: Integers, level: float) -> Numbers:
    """The mean of a share with Wilson's interval, where all values are zeros and ones."""
    there = np.isfinite(values)
    yes_no = (~there | np.isin(values, (0.0, 1.0))).all(axis=0) & (counts > 1)
    hits = np.where(there & yes_no, values, 0).sum(axis=0)
    low, high = wilson(hits, np.maximum(counts, 1), level)
    wide = np.stack([np.asarray(mean.low), np.asarray(mean.high)])
    ends = np.where(yes_no, np.stack([low, high]), wide)
    return mean._replace(low=ends[0], high=ends[1])


def _side_by_side(arrays: Sequence[Floats]) -> Floats:
    """(L, columns) of all arrays."""
    lengths = sorted({array.shape[0] if array.ndim else 0 for array in arrays})
    if len(lengths) > 1:
        raise ValueError(f"metrics must be of the same lifetimes, not of {lengths}")
    if lengths == [0]:
        raise ValueError("values must have the lifetimes as first axis, and at least one of them")
    return np.concatenate([array.reshape(lengths[0], -1) for array in arrays], axis=1)


def syllabus_scores(metric: Numbers) -> Numbers:
    """One score a lifetime: the plain mean of a metric over the blocks that have a value.

    Args:
      metric: (L, B) values and reasons.

    Returns:
      `Numbers` of (L,) float64 NumPy arrays; `Reason.NO_BLOCK_HAS_VALUE` where no block has one.

    Source: L2M Metrics Framework, 4 Dec 2019, chapter 2 ("an average of the scores achieved").
    """
    values = np.asarray(metric.values, np.float64)
    mean = describe(values.T).mean if values.shape[1] else np.full(len(values), np.nan)
    reasons = np.where(np.isnan(mean), Reason.NO_BLOCK_HAS_VALUE, Reason.NONE).astype(np.int32)
    return Numbers(mean, reasons)


def _most_frequent_reason(metric: Numbers) -> Integers:
    """For each column, the code that most lifetimes without a value carry."""
    absent = np.isnan(np.asarray(metric.values))
    reasons = np.asarray(metric.reasons)
    codes = np.unique(np.append(reasons[absent], Reason.EMPTY)).astype(np.int64)
    votes = np.stack([(absent & (reasons == code)).sum(axis=0) for code in codes])
    winner = codes[votes.argmax(axis=0)]
    return np.where(votes.any(axis=0), winner, Reason.NONE).astype(np.int64)
