"""Summaries over lifetimes: mean, spread and a seeded bootstrap interval.

The resampling unit is the *lifetime*. Episodes and blocks of one lifetime share an agent and are
not independent, so they are never resampled on their own. A lifetime without a value is drawn like
any other and then left out of that resample's mean: the interval also carries the uncertainty about
how many lifetimes have a value.

All columns (blocks, metrics) see the same resamples, so an interval does not depend on which other
columns are computed beside it, and intervals of different columns are paired.

The arithmetic is reproducible to the bit. Resampled sums are matrix products over integers that are
small enough to be exact in float64, whatever the order in which a BLAS adds them up, and draws
come from the raw PCG64 stream, which NumPy keeps stable between versions. The price is a
resolution of 2^-(52 - log2 L) of a column's half range, about 1e-12 for 10,000 lifetimes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from evaluation.metrics.l2m.framework2019 import Metric
from evaluation.metrics.l2m.reasons import Reason

DEFAULT_LEVEL: Final = 0.95
DEFAULT_RESAMPLES: Final = 2_000
MAX_RESAMPLES: Final = 1_000_000

_WEIGHTS_AT_ONCE: Final = 2**22
"""Elements of the resample-weight matrix held at a time (32 MiB in float64)."""

_MEANS_AT_ONCE: Final = 2**24
"""Resampled means held at a time (128 MiB in float64)."""

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]
Seed: TypeAlias = int | jax.Array
"""A non-negative integer or a typed key from ``jax.random.key``."""


@dataclass(frozen=True)
class Description:
    """Plain statistics over lifetimes; each field has the shape of one lifetime's values.

    Attributes:
      mean: mean over lifetimes with a value; NaN where there are none.
      std: sample standard deviation (n - 1); NaN below two lifetimes with a value.
      count: how many lifetimes have a value.
    """

    mean: Floats
    std: Floats
    count: Integers


@dataclass(frozen=True)
class Interval:
    """Bootstrap interval of the mean; each field has the shape of one lifetime's values.

    Attributes:
      low: lower end; NaN where there is none.
      high: upper end; NaN where there is none.
      reasons: `Reason.TOO_FEW_LIFETIMES` where there is none, else `Reason.NONE`.
    """

    low: Floats
    high: Floats
    reasons: Integers


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
    """

    mean: Floats
    std: Floats
    low: Floats
    high: Floats
    count: Integers
    lifetimes: int
    reasons: Integers
    missing: Integers


def describe(values: npt.ArrayLike) -> Description:
    """Mean, sample standard deviation and number of lifetimes that have a value.

    Args:
      values: (L, ...) one row a lifetime; NaN means no value.

    Returns:
      `Description` of shape (...). Equal values give exactly their value and a spread of exactly 0.

    Raises:
      ValueError: no lifetimes, or an infinite value.
    """
    table, shape = _table(values)
    valid = np.isfinite(table)
    count = valid.sum(axis=1)
    centre, deviations = _centred(table, valid)
    shift = deviations.sum(axis=1) / np.maximum(count, 1)
    residuals = np.where(valid, deviations - shift[:, None], 0.0)
    spread = np.sqrt((residuals**2).sum(axis=1) / np.maximum(count - 1, 1))
    mean = np.where(count > 0, centre + shift, np.nan)
    std = np.where(count > 1, spread, np.nan)
    return Description(mean.reshape(shape), std.reshape(shape), count.reshape(shape))


def bootstrap_interval(
    values: npt.ArrayLike,
    seed: Seed = 0,
    level: float = DEFAULT_LEVEL,
    resamples: int = DEFAULT_RESAMPLES,
) -> Interval:
    """Percentile-bootstrap interval of the mean over lifetimes.

    Each resample draws L lifetimes with replacement and takes the mean of those that have a value;
    the interval runs between the outer percentiles (linear interpolation) of these means.
    A resample that happens to draw no lifetime with a value is set aside.

    Args:
      values: (L, ...) one row a lifetime; NaN means no value.
      seed: non-negative integer or typed JAX key. Equal seeds give equal bits.
      level: coverage aimed at, between 0 and 1.
      resamples: number of resamples, 1 to `MAX_RESAMPLES`.

    Returns:
      `Interval` of shape (...). Two lifetimes with a value are needed. Equal values give an
      interval of exactly zero width.

    Raises:
      ValueError: no lifetimes, an infinite value, or a bad seed, level or number of resamples.

    Source: B. Efron and R. J. Tibshirani, An Introduction to the Bootstrap (1993), chapter 13.
    """
    _check_level(level)
    _check_resamples(resamples)
    table, shape = _table(values)
    low, high = np.full((2, len(table)), np.nan)
    enough = np.isfinite(table).sum(axis=1) >= 2
    columns = np.flatnonzero(enough)
    step = max(1, _MEANS_AT_ONCE // resamples)
    for start in range(0, len(columns), step):
        tile = columns[start : start + step]
        means = np.sort(_resampled_means(table[tile], seed, resamples), axis=1)
        low[tile] = _percentile(means, (1 - level) / 2)
        high[tile] = _percentile(means, (1 + level) / 2)
    reasons = np.where(enough, Reason.NONE, Reason.TOO_FEW_LIFETIMES).astype(np.int64)
    return Interval(low.reshape(shape), high.reshape(shape), reasons.reshape(shape))


def resample_weights(lifetimes: int, resamples: int, seed: Seed = 0) -> Iterator[Floats]:
    """How often each resample draws each lifetime, a bounded chunk of resamples at a time.

    The chunks depend on ``lifetimes`` only through their height; joined, they are the same matrix
    for any chunk height.

    Args:
      lifetimes: L, 1 or more.
      resamples: rows of the matrix in all.
      seed: non-negative integer or typed JAX key.

    Yields:
      (rows, L) whole numbers as float64; every row sums to L.

    Raises:
      ValueError: a bad seed.
    """
    stream = np.random.PCG64(np.random.SeedSequence(_entropy(seed)))
    height = max(1, _WEIGHTS_AT_ONCE // lifetimes)
    for start in range(0, resamples, height):
        rows = min(height, resamples - start)
        raw = stream.random_raw(rows * lifetimes)
        drawn = ((raw >> np.uint64(11)) * (lifetimes * 2.0**-53)).astype(np.int64)
        drawn += np.repeat(np.arange(rows) * lifetimes, lifetimes)
        counts = np.bincount(drawn, minlength=rows * lifetimes)
        yield counts.reshape(rows, lifetimes).astype(np.float64)


def summarise(
    metric: Metric,
    seed: Seed = 0,
    level: float = DEFAULT_LEVEL,
    resamples: int = DEFAULT_RESAMPLES,
) -> Summary:
    """A metric's mean and interval over lifetimes, for each block.

    Args:
      metric: (L, B) values and reasons; any trailing shape works.
      seed: of the bootstrap; non-negative integer or typed JAX key.
      level: coverage of the interval.
      resamples: number of bootstrap resamples.

    Returns:
      `Summary` of shape (B,).

    Raises:
      ValueError: as `bootstrap_interval`.
    """
    values = np.asarray(metric.values, np.float64)
    description = describe(values)
    interval = bootstrap_interval(values, seed, level, resamples)
    missing = _most_frequent_reason(metric)
    absent = np.where(missing == Reason.NONE, interval.reasons, missing)
    return Summary(
        mean=description.mean,
        std=description.std,
        low=interval.low,
        high=interval.high,
        count=description.count,
        lifetimes=len(values),
        reasons=np.where(description.count == 0, absent, interval.reasons),
        missing=missing,
    )


def syllabus_scores(metric: Metric) -> Metric:
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
    metric: Metric,
    seed: Seed = 0,
    level: float = DEFAULT_LEVEL,
    resamples: int = DEFAULT_RESAMPLES,
) -> Summary:
    """The syllabus score over lifetimes: `summarise` of `syllabus_scores`.

    Args:
      metric: (L, B) values and reasons.
      seed: of the bootstrap; non-negative integer or typed JAX key.
      level: coverage of the interval.
      resamples: number of bootstrap resamples.

    Returns:
      `Summary` of scalars, shape ().

    Raises:
      ValueError: as `bootstrap_interval`.
    """
    return summarise(syllabus_scores(metric), seed, level, resamples)


def _resampled_means(table: Floats, seed: Seed, resamples: int) -> Floats:
    """(C, R) mean of each column in each resample; NaN where a resample has no value."""
    valid = np.isfinite(table)
    centre, deviations = _centred(table, valid)
    whole, exponents = _as_integers(deviations)
    sums = np.empty((resamples, len(table)))
    drawn = np.full_like(sums, table.shape[1])
    patchy = np.flatnonzero(~valid.all(axis=1))
    present = valid[patchy].T.astype(np.float64)
    row = 0
    for weights in resample_weights(table.shape[1], resamples, seed):
        rows = slice(row, row + len(weights))
        sums[rows] = weights @ whole.T
        if len(patchy):
            drawn[rows, patchy] = weights @ present
        row += len(weights)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.ldexp(sums / drawn, -exponents)
    return np.ascontiguousarray((centre + np.where(drawn > 0, means, np.nan)).T)


def _centred(table: Floats, valid: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """The middle of each column's range, and the values measured from there (0 if missing)."""
    least = np.where(valid, table, np.inf).min(axis=1)
    most = np.where(valid, table, -np.inf).max(axis=1)
    anything = valid.any(axis=1)
    centre = (
        np.where(anything, np.where(anything, least, 0) / 2, 0) + np.where(anything, most, 0) / 2
    )
    return centre, np.where(valid, table - centre[:, None], 0.0)


def _as_integers(deviations: Floats) -> tuple[Floats, npt.NDArray[np.int32]]:
    """Columns scaled by powers of two to whole numbers whose resampled sums stay below 2^52."""
    room = 52 - int(deviations.shape[1]).bit_length()
    _, magnitude = np.frexp(np.abs(deviations).max(axis=1))
    exponents = (room - magnitude).astype(np.int32)
    return np.rint(np.ldexp(deviations, exponents[:, None])), exponents


def _percentile(ordered: Floats, share: float) -> Floats:
    """(C,) linear-interpolation percentile of ascending rows (C, R) with NaN at their ends."""
    usable = np.maximum(np.isfinite(ordered).sum(axis=1), 1)
    position = share * (usable - 1)
    below = np.floor(position).astype(np.int64)
    rows = np.arange(len(ordered))
    left = ordered[rows, below]
    right = ordered[rows, np.minimum(below + 1, usable - 1)]
    return np.asarray(left + (right - left) * (position - below))


def _most_frequent_reason(metric: Metric) -> Integers:
    """For each column, the code that most lifetimes without a value carry."""
    absent = np.isnan(np.asarray(metric.values))
    reasons = np.asarray(metric.reasons)
    codes = [code for code in Reason if code is not Reason.NONE]
    votes = np.stack([(absent & (reasons == code)).sum(axis=0) for code in codes])
    winner = np.asarray([int(code) for code in codes], np.int64)[votes.argmax(axis=0)]
    return np.where(votes.any(axis=0), winner, Reason.NONE).astype(np.int64)


def _table(values: npt.ArrayLike) -> tuple[Floats, tuple[int, ...]]:
    """Values as contiguous (columns, lifetimes), and the shape of one lifetime's values."""
    array = np.asarray(values, np.float64)
    if array.ndim < 1 or len(array) < 1:
        raise ValueError("values must have the lifetimes as first axis, and at least one of them")
    if np.isinf(array).any():
        raise ValueError("values must be finite, or NaN where a lifetime has none; found infinity")
    return np.ascontiguousarray(array.reshape(len(array), -1).T), array.shape[1:]


def _entropy(seed: Seed) -> int | list[int]:
    """Seed words for NumPy from an integer or from a typed JAX key."""
    if isinstance(seed, jax.Array) and jnp.issubdtype(seed.dtype, jax.dtypes.prng_key):
        if seed.shape != ():
            raise ValueError(f"seed must be one key, not an array of keys {seed.shape}")
        return [int(word) for word in np.asarray(jax.random.key_data(seed)).ravel()]
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise ValueError(f"seed must be an integer or a jax.random.key, not {type(seed).__name__}")
    if seed < 0:
        raise ValueError(f"seed must be 0 or more, not {seed}")
    return int(seed)


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, for example 0.95, not {level!r}")


def _check_resamples(resamples: int) -> None:
    if isinstance(resamples, bool) or not isinstance(resamples, int):
        raise ValueError(f"resamples must be an integer, not {resamples!r}")
    if not 1 <= resamples <= MAX_RESAMPLES:
        raise ValueError(f"resamples must lie between 1 and {MAX_RESAMPLES:,}, not {resamples:,}")
