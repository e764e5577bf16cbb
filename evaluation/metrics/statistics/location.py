"""Mean, median, interquartile mean and standard deviation, plain and of weighted lifetimes.

An estimator takes the weights of many resamples at once: how often each one draws each lifetime.
Mean and standard deviation need only sums, which are matrix products over integers. Median and
interquartile mean need the lifetimes in order of their values: their weights count how often a
*rank* is drawn. Ranks are drawn like lifetimes, so the distribution of a column's resamples is the
same, and all columns share one matrix of cumulative weights.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from evaluation.metrics.statistics.arrays import (
    EXACT_BITS,
    Floats,
    Integers,
    as_table,
    centred,
    whole_numbers,
)

STATISTICS: Final = ("mean", "median", "interquartile_mean", "std")
"""Names of the statistics over lifetimes."""


@dataclass(frozen=True)
class Description:
    """Plain statistics over lifetimes; each field has the shape of one lifetime's values.

    Attributes:
      mean: mean over lifetimes with a value; NaN without any.
      std: sample standard deviation (n - 1); NaN below two lifetimes with a value.
      count: number of lifetimes with a value.
      median: median over lifetimes with a value; NaN without any.
      interquartile_mean: mean of their middle half; NaN without any.
    """

    mean: Floats
    std: Floats
    count: Integers
    median: Floats
    interquartile_mean: Floats


def describe(values: npt.ArrayLike) -> Description:
    """Mean, median, interquartile mean, standard deviation and number of lifetimes with a value.

    The interquartile mean is the mean between the quartiles. Of n values in order, the i-th covers
    the shares from (i - 1) / n to i / n; its weight is the part of these between 1/4 and 3/4. If 4
    divides n, this is the mean without the lowest and the highest quarter. Otherwise the two values
    at the ends have fractional weights.

    Args:
      values: (L, ...) one row per lifetime; NaN means no value.

    Returns:
      `Description` of shape (...). Equal values give exactly their value and a spread of exactly 0.

    Raises:
      ValueError: no lifetimes, or an infinite value.

    Source: R. Agarwal et al., Deep Reinforcement Learning at the Edge of the Statistical Precipice
    (2021), section 4.3, for the interquartile mean.
    """
    table, shape = as_table(values)
    valid = np.isfinite(table)
    count = valid.sum(axis=1)
    centre, deviations = centred(table, valid)
    shift = deviations.sum(axis=1) / np.maximum(count, 1)
    residuals = np.where(valid, deviations - shift[:, None], 0.0)
    spread = np.sqrt((residuals**2).sum(axis=1) / np.maximum(count - 1, 1))
    ordered = np.sort(table, axis=1)
    fields = {
        "mean": np.where(count > 0, centre + shift, np.nan),
        "std": np.where(count > 1, spread, np.nan),
        "count": count,
        "median": _median(ordered, count),
        "interquartile_mean": np.where(count > 0, centre + _middle_half(deviations, valid), np.nan),
    }
    return Description(**{name: field.reshape(shape) for name, field in fields.items()})


def _median(ordered: Floats, count: Integers) -> Floats:
    """(C,) medians of ascending rows (C, L) with NaN at their ends."""
    rows = np.arange(len(ordered))
    last = np.maximum(count, 1)
    return _middle(ordered[rows, (last - 1) // 2], ordered[rows, last // 2])


def _middle(left: Floats, right: Floats) -> Floats:
    """Mean of two values; exact if they are equal."""
    return left + (right - left) / 2


def _middle_half(deviations: Floats, valid: npt.NDArray[np.bool_]) -> Floats:
    """(C,) interquartile means of the valid values of each row."""
    ordered = np.sort(np.where(valid, deviations, np.inf), axis=1)
    count = valid.sum(axis=1)[:, None]
    shares = _quarter_weights(np.minimum(np.arange(1, ordered.shape[1] + 1), count), count)
    total = (shares * np.where(np.isfinite(ordered), ordered, 0.0)).sum(axis=1)
    return np.asarray(total / np.maximum(2 * count[:, 0], 1))


def _quarter_weights(cumulative: npt.ArrayLike, total: npt.ArrayLike) -> Floats:
    """Weight of each value in the interquartile mean, in quarters of a draw.

    Args:
      cumulative: (..., n) draws up to and including each value, in ascending order of values.
      total: (..., 1) total draws.

    Returns:
      (..., n) integers that sum to twice the draws.
    """
    quarters = np.asarray(total, np.float64)
    inside = np.clip(4.0 * np.asarray(cumulative), quarters, 3 * quarters)
    return np.diff(inside, axis=-1, prepend=quarters)


class Estimator(Protocol):
    """Statistics of resamples."""

    def __call__(self, weights: Floats) -> Mapping[str, Floats]:
        """Compute statistics for each resample.

        Args:
          weights: (R, L) how often each resample draws each lifetime; integers.

        Returns:
          (R, C) by name; NaN for a resample with too few values.
        """


def estimators(table: Floats, names: Collection[str]) -> Iterator[Estimator]:
    """Yield estimators of some `STATISTICS` of the columns (C, L), each with a value."""
    if "mean" in names:
        yield _ResampledMean(table)
    if "std" in names:
        yield _Spread(table)
    rank_names = [name for name in ("median", "interquartile_mean") if name in names]
    if rank_names:
        yield _Ranked(table, rank_names)


class _DrawnCounts:
    """Number of drawn lifetimes that have a value."""

    def __init__(self, valid: npt.NDArray[np.bool_]) -> None:
        self.columns = len(valid)
        self.incomplete = np.flatnonzero(~valid.all(axis=1))
        self.present = valid[self.incomplete].T.astype(np.float64)

    def __call__(self, weights: Floats) -> Floats:
        """(R, C) integers."""
        counts = np.full((len(weights), self.columns), weights[0].sum())
        if len(self.incomplete):
            counts[:, self.incomplete] = weights @ self.present
        return counts


class _ResampledMean:
    """Means of resamples."""

    def __init__(self, table: Floats) -> None:
        valid = np.isfinite(table)
        self.centre, deviations = centred(table, valid)
        bits = EXACT_BITS - table.shape[1].bit_length()
        whole, self.exponents = whole_numbers(deviations, bits)
        self.whole, self.draws = whole.T, _DrawnCounts(valid)

    def __call__(self, weights: Floats) -> Mapping[str, Floats]:
        draws = self.draws(weights)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = np.ldexp((weights @ self.whole) / draws, -self.exponents)
        return {"mean": self.centre + np.where(draws > 0, means, np.nan)}


class _Spread:
    """Sample standard deviations of resamples.

    n sum(x^2) - sum(x)^2 cancels if the values lie close together. Each value is therefore split
    into a high and a low half, whose sums of products are exact. A resample of equal values has a
    spread of exactly 0.
    """

    def __init__(self, table: Floats) -> None:
        valid = np.isfinite(table)
        _, deviations = centred(table, valid)
        # Sums of products stay below 2^52, and such a sum times the number of draws below 2^62.
        length = table.shape[1].bit_length()
        self.bits = min((EXACT_BITS - length) // 2, (62 - 2 * length) // 2)
        whole, self.exponents = whole_numbers(deviations, 2 * self.bits)
        high = np.floor(np.ldexp(whole, -self.bits))
        low = whole - np.ldexp(high, self.bits)
        self.parts = tuple(part.T for part in (high, low, high * high, high * low, low * low))
        self.draws = _DrawnCounts(valid)

    def __call__(self, weights: Floats) -> Mapping[str, Floats]:
        draws = self.draws(weights).astype(np.int64)
        high, low, high_high, high_low, low_low = (
            (weights @ part).astype(np.int64) for part in self.parts
        )
        scatter = (
            np.ldexp((draws * high_high - high * high).astype(np.float64), 2 * self.bits)
            + np.ldexp((draws * high_low - high * low).astype(np.float64), self.bits + 1)
            + (draws * low_low - low * low)
        )
        pairs = np.where(draws > 1, draws * (draws - 1.0), np.nan)
        return {"std": np.ldexp(np.sqrt(np.maximum(scatter, 0.0) / pairs), -self.exponents)}


class _Ranked:
    """Medians and interquartile means of resamples, for columns grouped by number of values.

    With the weights v_i of `_quarter_weights` and their cumulative sums V_i, from n at V_0 to 3 n
    at V_m, the sum of v_i x_i is 3 n x_m - n x_1 - sum(V_i (x_(i+1) - x_i)), which saves one pass
    over the draws.
    """

    def __init__(self, table: Floats, names: Collection[str]) -> None:
        self.names = names
        self.ordered = np.sort(table, axis=1)
        valid = np.isfinite(self.ordered)
        self.counts = valid.sum(axis=1)
        self.centre, deviations = centred(self.ordered, valid)
        bits = EXACT_BITS - (6 * table.shape[1]).bit_length()
        self.whole, self.exponents = whole_numbers(deviations, bits)

    def __call__(self, weights: Floats) -> Mapping[str, Floats]:
        results = {name: np.empty((len(weights), len(self.ordered))) for name in self.names}
        cumulative = weights.cumsum(axis=1)
        # Offsets make the joined rows ascend, so that one search serves all resamples.
        base = np.arange(len(weights)) * (cumulative[0, -1] + 1)
        stacked = (cumulative + base[:, None]).ravel() if "median" in results else None
        for count in np.unique(self.counts):
            columns = np.flatnonzero(self.counts == count)
            draws = cumulative[:, count - 1]
            if stacked is not None:
                left, right = (
                    np.searchsorted(stacked, nth + base) - np.arange(len(weights)) * len(weights[0])
                    for nth in ((draws + 1) // 2, draws // 2 + 1)
                )
                results["median"][:, columns] = self._medians(left, right, columns, draws)
            if "interquartile_mean" in results:
                upto = cumulative[:, : count - 1]
                results["interquartile_mean"][:, columns] = self._middles(upto, columns, draws)
        return results

    def _medians(self, left: Integers, right: Integers, columns: Integers, draws: Floats) -> Floats:
        """(R, C) means of the values at two ranks."""
        values, last = self.ordered[columns], self.counts[columns[0]] - 1
        pair = (values[:, np.clip(rank, 0, last)] for rank in (left, right))
        return np.where(draws > 0, _middle(*pair), np.nan).T

    def _middles(self, cumulative: Floats, columns: Integers, draws: Floats) -> Floats:
        """(R, C) interquartile means, from the draws up to each value but the last."""
        count, whole = cumulative.shape[1] + 1, self.whole[columns]
        inside = np.clip(4 * cumulative, draws[:, None], 3 * draws[:, None])
        sums = inside @ np.diff(whole[:, :count], axis=1).T
        first, last = np.outer(draws, whole[:, 0]), np.outer(3 * draws, whole[:, count - 1])
        with np.errstate(invalid="ignore", divide="ignore"):
            means = np.ldexp((last - first - sums) / (2 * draws)[:, None], -self.exponents[columns])
        return self.centre[columns] + np.where(draws[:, None] > 0, means, np.nan)
