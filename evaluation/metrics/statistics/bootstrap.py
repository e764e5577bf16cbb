"""Seeded bootstrap intervals over lifetimes."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Final, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from evaluation.metrics.reasons import Reason
from evaluation.metrics.statistics.arrays import (
    DEFAULT_LEVEL,
    DEFAULT_RESAMPLES,
    Floats,
    Integers,
    Seed,
    as_table,
    check_level,
    check_resamples,
    entropy,
)
from evaluation.metrics.statistics.location import STATISTICS, describe, estimators

WEIGHTS_AT_ONCE: Final = 2**22
"""Maximum of elements of a chunk of resample weights (32 MiB in float64)."""

CACHE_SIZE: Final = 4
"""Number of cached matrices of resample weights, each of at most a quarter of that size."""

RESAMPLED_AT_ONCE: Final = 2**24
"""Maximum of resampled statistics in memory (128 MiB in float64)."""

Method: TypeAlias = Literal["percentile", "bca", "studentised", "calibrated"]
"""Method of an interval.

"percentile" takes percentiles of the resamples; "bca" corrects them for bias and skew. For a mean,
"studentised" takes percentiles of the resampled t statistic, with a spread of at least
`LEAST_SPREAD` of the sample's. "calibrated" has enough coverage in simulation (docs/coverage.md):
for a mean Student's interval, widened to the studentised one, which follows skew, if there are at
least `FEW` values and more than `COARSE` different ones; for other statistics percentiles.
"""

INTERVALS: Final = (
    "95 % over lifetimes: of means by Student's t and bootstrap-t, of shares by Wilson, else by "
    "percentile bootstrap"
)
"""Description of "calibrated" intervals in result files."""

FEW: Final = 8
"""Number of values below which resamples do not estimate a spread well."""

COARSE: Final = 4
"""Number of different values up to which a resample is likely to lack some of them."""

LEAST_SPREAD: Final = 0.25
"""Lower bound of a resample's standard deviation in t values, as a share of the sample's.

If most values lie close together, some resamples draw only these. Without the bound their t values,
and the ends of the interval, would be unbounded. A larger share costs coverage of skewed outcomes.
"""

Bounds: TypeAlias = tuple[npt.ArrayLike, npt.ArrayLike]
"""Smallest and largest possible value, each broadcastable to one lifetime's values."""

UNBOUNDED: Final[Bounds] = (-np.inf, np.inf)


@dataclass(frozen=True)
class Interval:
    """Bootstrap interval; each field has the shape of one lifetime's values.

    Attributes:
      low: lower end; NaN if missing.
      high: upper end; NaN if missing.
      reasons: `Reason.TOO_FEW_LIFETIMES` if the interval is missing, else `Reason.NONE`.
    """

    low: Floats
    high: Floats
    reasons: Integers


def bootstrap_interval(
    values: npt.ArrayLike,
    seed: Seed = 0,
    level: float = DEFAULT_LEVEL,
    resamples: int = DEFAULT_RESAMPLES,
    statistic: str = "mean",
    method: Method = "calibrated",
    bounds: Bounds = UNBOUNDED,
) -> Interval:
    """Bootstrap interval of one statistic over lifetimes; see `bootstrap_intervals`.

    Args:
      values: (L, ...) one row per lifetime; NaN means no value.
      seed: non-negative integer or typed JAX key. Equal seeds give equal bits.
      level: nominal coverage, between 0 and 1.
      resamples: number of resamples, 1 to `MAX_RESAMPLES`.
      statistic: one of `STATISTICS`.
      method: see `Method`.
      bounds: of all values by their definition.

    Returns:
      `Interval` of shape (...).

    Raises:
      ValueError: as `bootstrap_intervals`.
    """
    intervals = bootstrap_intervals(values, (statistic,), seed, level, resamples, method, bounds)
    return intervals[statistic]


def bootstrap_intervals(
    values: npt.ArrayLike,
    statistics: Collection[str] = STATISTICS,
    seed: Seed = 0,
    level: float = DEFAULT_LEVEL,
    resamples: int = DEFAULT_RESAMPLES,
    method: Method = "calibrated",
    bounds: Bounds = UNBOUNDED,
) -> dict[str, Interval]:
    """Bootstrap intervals of several statistics over lifetimes, from the same resamples.

    Each resample draws L lifetimes with replacement and computes the statistic of those that have a
    value. The interval lies between the outer percentiles (linear interpolation) of the resamples.
    A resample with too few values is ignored.

    Args:
      values: (L, ...) one row per lifetime; NaN means no value.
      statistics: some of `STATISTICS`.
      seed: non-negative integer or typed JAX key. Equal seeds give equal bits.
      level: nominal coverage, between 0 and 1.
      resamples: number of resamples, 1 to `MAX_RESAMPLES`.
      method: see `Method`. For a median prefer "percentile": "bca" estimates skew by leaving out
        one lifetime at a time, which works poorly for a median.
      bounds: of all values by their definition; intervals are clipped to them, except those of a
        standard deviation.

    Returns:
      `Interval` of shape (...) by statistic. It needs two lifetimes with a value. Equal values give
      an interval of exactly zero width.

    Raises:
      ValueError: no lifetimes, an infinite value, an unknown statistic or method, or a bad seed,
        level or number of resamples.

    Source: B. Efron and R. J. Tibshirani, An Introduction to the Bootstrap (1993), chapters 12 to
    14.
    """
    _check(statistics, method)
    check_level(level)
    check_resamples(resamples)
    table, shape = as_table(values)
    ends = {name: np.full((2, len(table)), np.nan) for name in statistics}
    columns = np.flatnonzero(np.isfinite(table).sum(axis=1) >= 2)
    deep = max(resamples, table.shape[1] if method == "bca" else 0) * max(len(ends), 1)
    step = max(1, RESAMPLED_AT_ONCE // deep)
    for start in range(0, len(columns), step):
        tile = columns[start : start + step]
        by_name = _resampled(table[tile], statistics, seed, resamples, method)
        if (t_values := by_name.pop(_T, None)) is not None:
            ends["mean"][:, tile] = _of_means(table[tile], t_values, level, method)
        for name, resampled in by_name.items():
            shares: list[Floats] | list[float] = [(1 - level) / 2, (1 + level) / 2]
            if method == "bca":
                shares = _corrected(table[tile], name, resampled, level)
            ends[name][:, tile] = [percentile(resampled, share) for share in shares]
    least, largest = (np.broadcast_to(bound, shape).ravel() for bound in bounds)
    for name in ends.keys() - {"std"}:
        ends[name] = np.clip(ends[name], least, largest)
    return {name: _interval(low, high, shape) for name, (low, high) in ends.items()}


def _check(statistics: Collection[str], method: str) -> None:
    for name in statistics:
        if name not in STATISTICS:
            raise ValueError(f"statistic is {name!r}; it must be one of {', '.join(STATISTICS)}")
    if method not in get_args(Method):
        raise ValueError(f"method is {method!r}; it must be one of {', '.join(get_args(Method))}")


def _interval(low: Floats, high: Floats, shape: tuple[int, ...]) -> Interval:
    reasons = np.where(np.isnan(low), Reason.TOO_FEW_LIFETIMES, Reason.NONE).astype(np.int64)
    return Interval(low.reshape(shape), high.reshape(shape), reasons.reshape(shape))


def bounds_that_hold(bounds: Bounds, values: npt.ArrayLike) -> Bounds:
    """Bounds, infinite where a value is beyond them: such a value has another range by definition.

    Args:
      bounds: of values of (...) shape.
      values: (L, ...), NaN for none.
    """
    table, (least, largest) = np.asarray(values), map(np.asarray, bounds)
    outside = ((table < least) | (table > largest)).any(axis=0)
    return np.where(outside, -np.inf, least), np.where(outside, np.inf, largest)


def resample_weights(lifetimes: int, resamples: int, seed: Seed = 0) -> Iterator[Floats]:
    """How often each resample draws each lifetime, in chunks of bounded size.

    Joined, the chunks are the same matrix for any chunk height.

    Args:
      lifetimes: L, 1 or more.
      resamples: total rows of the matrix.
      seed: non-negative integer or typed JAX key.

    Yields:
      (rows, L) integers as float64; every row sums to L.

    Raises:
      ValueError: a bad seed.
    """
    if resamples * lifetimes > WEIGHTS_AT_ONCE // CACHE_SIZE:
        return weights_of(np.random.SeedSequence(entropy(seed)), lifetimes, resamples)
    words = entropy(seed)
    return iter(
        _cached_weights(tuple(words) if isinstance(words, list) else words, lifetimes, resamples)
    )


@lru_cache(maxsize=CACHE_SIZE)
def _cached_weights(
    words: int | tuple[int, ...], lifetimes: int, resamples: int
) -> tuple[Floats, ...]:
    """Weights, read-only and cached for other tables of as many lifetimes."""
    source = np.random.SeedSequence(words if isinstance(words, int) else list(words))
    chunks = tuple(weights_of(source, lifetimes, resamples))
    for weights in chunks:
        weights.setflags(write=False)
    return chunks


def weights_of(
    source: np.random.SeedSequence, lifetimes: int, resamples: int, widest: int = 1
) -> Iterator[Floats]:
    """`resample_weights` from a seed sequence, for several independent streams.

    Chunks of several streams have one height if ``widest`` is the largest number of lifetimes.
    """
    stream = np.random.PCG64(source)
    height = max(1, WEIGHTS_AT_ONCE // max(lifetimes, widest))
    for start in range(0, resamples, height):
        rows = min(height, resamples - start)
        raw = stream.random_raw(rows * lifetimes)
        draws = ((raw >> np.uint64(11)) * (lifetimes * 2.0**-53)).astype(np.int64)
        draws += np.repeat(np.arange(rows) * lifetimes, lifetimes)
        counts = np.bincount(draws, minlength=rows * lifetimes)
        yield counts.reshape(rows, lifetimes).astype(np.float64)


def percentile(resampled: Floats, share: float | Floats) -> Floats:
    """(C,) linearly interpolated percentiles of ascending rows (C, R) with NaN at their ends."""
    usable = np.maximum(np.isfinite(resampled).sum(axis=1), 1)
    position = share * (usable - 1)
    below = np.floor(position).astype(np.int64)
    rows = np.arange(len(resampled))
    left = resampled[rows, below]
    right = resampled[rows, np.minimum(below + 1, usable - 1)]
    return np.asarray(left + (right - left) * (position - below))


_T: Final = "t"
"""Name of resampled t statistics among the resampled statistics."""


def _resampled(
    table: Floats, statistics: Collection[str], seed: Seed, resamples: int, method: Method
) -> dict[str, Floats]:
    """(C, R) resamples of each statistic in ascending order; missing ones are NaN at the ends.

    If means are studentised, their t statistics replace them.
    """
    weights = resample_weights(table.shape[1], resamples, seed)
    by_t = "mean" in statistics and method in ("studentised", "calibrated")
    results = _each(table, {*statistics, "std"} if by_t else statistics, weights, resamples)
    if by_t:
        centre, error, _ = _standard_error(table)
        spread = results["std"] / np.sqrt(np.isfinite(table).sum(axis=1))
        means = results.pop("mean")
        # A resample with fewer than two values gives NaN and is ignored.
        spread = np.maximum(spread, np.where(error > 0, LEAST_SPREAD * error, 1))
        results[_T] = (means - centre) / spread
        if "std" not in statistics:
            del results["std"]
    return {name: np.sort(values.T, axis=1) for name, values in results.items()}


def _standard_error(table: Floats) -> tuple[Floats, Floats, Integers]:
    """(C,) means, their standard errors and the number of values."""
    described = describe(table.T)
    count = np.asarray(described.count)
    return described.mean, described.std / np.sqrt(count), count


def _of_means(table: Floats, t_values: Floats, level: float, method: Method) -> Floats:
    """(2, C) ends of intervals of means, from (C, R) resampled t statistics."""
    centre, error, count = _standard_error(table)
    shares = (1 + level) / 2, (1 - level) / 2
    ends = np.stack([centre - percentile(t_values, share) * error for share in shares])
    ends = np.where(error > 0, ends, centre)
    if method == "studentised":
        return ends
    from scipy.special import stdtrit  # jax requires scipy; here, so that logs do not import it

    half = stdtrit(count - 1, shares[0]) * error
    ordered = np.sort(table, axis=1)
    different = 1 + (np.diff(ordered, axis=1) > 0).sum(axis=1)
    wider = (count >= FEW) & (different > COARSE)
    low = np.where(wider, np.minimum(ends[0], centre - half), centre - half)
    return np.stack([low, np.where(wider, np.maximum(ends[1], centre + half), centre + half)])


def wilson(
    hits: npt.ArrayLike, number: npt.ArrayLike, level: float = DEFAULT_LEVEL
) -> tuple[Floats, Floats]:
    """Wilson interval of a share.

    Args:
      hits: (...) number of successes.
      number: (...) number of trials, 1 or more.
      level: nominal coverage.

    Returns:
      (...) lower and upper ends.

    Source: E. B. Wilson, Journal of the American Statistical Association 22 (1927).
    """
    z = NormalDist().inv_cdf((1 + level) / 2)
    count = np.asarray(number, np.float64)
    share, weight = np.asarray(hits) / count, z * z / count
    centre = (share + weight / 2) / (1 + weight)
    half = z / (1 + weight) * np.sqrt(share * (1 - share) / count + weight / (4 * count))
    # Rounding would leave an end just beside 0 or 1, and so exclude the share itself.
    low = np.where(share == 0, 0.0, np.maximum(0.0, centre - half))
    high = np.where(share == 1, 1.0, np.minimum(1.0, centre + half))
    return low[()], high[()]


def _each(
    table: Floats, statistics: Collection[str], chunks: Iterator[Floats], rows: int
) -> dict[str, Floats]:
    """(rows, C) of each statistic, from chunks of weights."""
    results = {name: np.empty((rows, len(table))) for name in statistics}
    functions = list(estimators(table, statistics))
    start = 0
    for weights in chunks:
        for estimator in functions:
            for name, values in estimator(weights).items():
                results[name][start : start + len(weights)] = values
        start += len(weights)
    return results


def _corrected(table: Floats, statistic: str, resampled: Floats, level: float) -> list[Floats]:
    """(C,) percentiles at the ends of a bias-corrected and accelerated interval, as shares."""
    lifetimes = table.shape[1]
    ordered = np.sort(table, axis=1)
    estimate = _each(ordered, (statistic,), iter([np.ones((1, lifetimes))]), 1)[statistic].T
    jackknife = _each(ordered, (statistic,), _leaving_one_out(lifetimes), lifetimes)[statistic].T
    jackknife[np.isnan(ordered)] = np.nan
    bias = _normal_quantile(_share_below(resampled, estimate))
    skew = _acceleration(jackknife)
    normal = NormalDist()
    return [
        _normal_share(bias + (bias + z) / np.maximum(1 - skew * (bias + z), 1e-9))
        for z in (normal.inv_cdf((1 - level) / 2), normal.inv_cdf((1 + level) / 2))
    ]


def _leaving_one_out(lifetimes: int) -> Iterator[Floats]:
    """Weights that draw all lifetimes but one, in chunks (rows, L)."""
    height = max(1, WEIGHTS_AT_ONCE // lifetimes)
    for start in range(0, lifetimes, height):
        rows = min(height, lifetimes - start)
        weights = np.ones((rows, lifetimes))
        weights[np.arange(rows), np.arange(start, start + rows)] = 0.0
        yield weights


def _share_below(resampled: Floats, estimate: Floats) -> Floats:
    """(C,) share of resamples below the estimate; ties count half, and 0 and 1 are avoided."""
    usable = np.maximum(np.isfinite(resampled).sum(axis=1), 1)
    below = (resampled < estimate).sum(axis=1) + (resampled == estimate).sum(axis=1) / 2
    return np.clip(below, 0.5, usable - 0.5) / usable


def _acceleration(jackknife: Floats) -> Floats:
    """(C,) jackknife estimate of the acceleration; 0 if the estimate does not vary."""
    with np.errstate(invalid="ignore", divide="ignore"):
        centre = np.nansum(jackknife, axis=1, keepdims=True)
        centre = centre / np.isfinite(jackknife).sum(axis=1, keepdims=True)
        moves = centre - jackknife
        scale = np.nanmax(np.where(np.isfinite(moves), np.abs(moves), 0.0), axis=1, keepdims=True)
        moves = np.nan_to_num(moves / scale)
        skew = (moves**3).sum(axis=1) / (6 * (moves**2).sum(axis=1) ** 1.5)
    return np.where(np.isfinite(skew), skew, 0.0)


def _normal_quantile(shares: Floats) -> Floats:
    normal = NormalDist()
    return np.array([normal.inv_cdf(share) for share in shares])


def _normal_share(quantiles: Floats) -> Floats:
    normal = NormalDist()
    return np.array([normal.cdf(quantile) for quantile in quantiles])
