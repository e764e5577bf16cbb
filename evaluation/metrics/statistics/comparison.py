"""Probability that one agent does better than another, with interval and test."""

import math
from dataclasses import dataclass

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
from evaluation.metrics.statistics.bootstrap import bootstrap_interval, percentile, weights_of
from evaluation.metrics.statistics.location import describe


@dataclass(frozen=True)
class Improvement:
    """Probability of improvement; fields have the shape of one lifetime's values.

    Attributes:
      probability: P(first > second) + P(first = second) / 2; NaN if an agent has no value.
      low: lower end of its bootstrap interval; NaN if missing.
      high: upper end.
      p_value: two-sided, of the hypothesis that neither agent tends to be above the other; NaN
        without an interval.
      reasons: `Reason.TOO_FEW_LIFETIMES` without an interval, else `Reason.NONE`.
    """

    probability: Floats
    low: Floats
    high: Floats
    p_value: Floats
    reasons: Integers

    def reshape(self, shape: tuple[int, ...]) -> "Improvement":
        """The same numbers in another shape."""
        fields = (self.probability, self.low, self.high, self.p_value)
        probability, low, high, p_value = (field.reshape(shape) for field in fields)
        return Improvement(probability, low, high, p_value, self.reasons.reshape(shape))


def probability_of_improvement(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    seed: Seed = 0,
    level: float = DEFAULT_LEVEL,
    resamples: int = DEFAULT_RESAMPLES,
    paired: bool = False,
) -> Improvement:
    """Probability that a lifetime of the first agent is above one of the second; ties count half.

    Unpaired, every lifetime of the first agent is compared with every lifetime of the second, each
    agent's lifetimes are resampled separately, and the test is that of Mann and Whitney (normal
    approximation with corrections for ties and for continuity). Paired, each lifetime is compared
    with the other agent's lifetime at the same position, pairs are resampled, and the test is the
    exact sign test. Lifetimes without a value, and pairs with a missing value, are left out.

    Args:
      first: (L, ...) one row per lifetime of the first agent; NaN means no value.
      second: (M, ...) one row per lifetime of the second agent; pairs need M equal to L.
      seed: of the bootstrap; non-negative integer or typed JAX key.
      level: coverage of the interval.
      resamples: number of resamples, 1 to `MAX_RESAMPLES`.
      paired: whether lifetimes at the same position make a pair.

    Returns:
      `Improvement` of shape (...). An interval needs two lifetimes with a value of each agent.

    Raises:
      ValueError: shapes that do not fit, no lifetimes, an infinite value, or a bad seed, level or
        number of resamples.

    Source: R. Agarwal et al., Deep Reinforcement Learning at the Edge of the Statistical Precipice
    (2021), section 4.3; H. B. Mann and D. R. Whitney, Annals of Mathematical Statistics 18 (1947).
    """
    check_level(level)
    check_resamples(resamples)
    (one, shape), (other, other_shape) = as_table(first), as_table(second)
    if shape != other_shape:
        raise ValueError(f"the agents' values must have one shape, not {shape} and {other_shape}")
    if paired:
        if one.shape != other.shape:
            raise ValueError(
                f"pairs need as many lifetimes of each agent, not {one.shape[1]} and "
                f"{other.shape[1]}; compare them unpaired"
            )
        return _paired(one, other, seed, level, resamples).reshape(shape)
    return _unpaired(one, other, seed, level, resamples).reshape(shape)


def holm(p_values: npt.ArrayLike) -> Floats:
    """Correct p-values for their number, by Holm's step-down method.

    Args:
      p_values: of any shape; NaN counts as no test.

    Returns:
      Corrected p-values, each at least as large as before and at most 1; NaN stays NaN. Rejecting
      those below a level keeps the probability of any false rejection below that level.

    Source: S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal
    of Statistics 6 (1979).
    """
    array = np.asarray(p_values, np.float64)
    flat = array.ravel()
    order = np.argsort(flat, kind="stable")[: int(np.isfinite(flat).sum())]
    factors = np.arange(len(order), 0, -1)
    corrected = np.full(flat.shape, np.nan)
    corrected[order] = np.minimum(np.maximum.accumulate(flat[order] * factors), 1.0)
    return corrected.reshape(array.shape)


def _paired(one: Floats, other: Floats, seed: Seed, level: float, resamples: int) -> Improvement:
    both = np.isfinite(one) & np.isfinite(other)
    wins = np.where(both, (one > other) + (one == other) / 2, np.nan)
    interval = bootstrap_interval(wins.T, seed, level, resamples)
    tests = [
        _sign_test(int((row == 1).sum()), int((row == 0).sum())) if reason == Reason.NONE else None
        for row, reason in zip(wins, interval.reasons, strict=True)
    ]
    p_values = np.array(tests, np.float64)
    mean = describe(wins.T).mean
    return Improvement(mean, interval.low, interval.high, p_values, interval.reasons)


def _sign_test(wins: int, losses: int) -> float:
    """Two-sided probability of a split at least as uneven, if both sides are equally likely."""
    decided = wins + losses
    fewer = min(wins, losses)
    terms = [
        math.lgamma(decided + 1) - math.lgamma(k + 1) - math.lgamma(decided - k + 1)
        for k in range(fewer + 1)
    ]
    return min(1.0, 2 * math.fsum(math.exp(term - decided * math.log(2)) for term in terms))


def _unpaired(one: Floats, other: Floats, seed: Seed, level: float, resamples: int) -> Improvement:
    columns = [_Column(*pair) for pair in zip(one, other, strict=True)]
    resampled = np.full((len(columns), resamples), np.nan)
    # The two agents' lifetimes are drawn from separate streams.
    streams = [
        weights_of(
            np.random.SeedSequence(entropy(seed), spawn_key=(number,)),
            lifetimes,
            resamples,
            max(one.shape[1], other.shape[1]),
        )
        for number, lifetimes in enumerate((one.shape[1], other.shape[1]))
    ]
    start = 0
    for first, second in zip(*streams, strict=True):
        first, second = (np.ascontiguousarray(weights.T) for weights in (first, second))
        below = np.vstack([np.zeros((1, first.shape[1])), first.cumsum(axis=0)])
        for row, column in zip(resampled, columns, strict=True):
            if column.has_interval:
                row[start : start + first.shape[1]] = column.resampled(below, second)
        start += first.shape[1]
    ordered = np.sort(resampled, axis=1)
    low, high = (percentile(ordered, share) for share in ((1 - level) / 2, (1 + level) / 2))
    reasons = np.where(np.isnan(low), Reason.TOO_FEW_LIFETIMES, Reason.NONE).astype(np.int64)
    probability = np.array([column.probability() for column in columns], np.float64)
    p_values = np.array([c.p_value() if c.has_interval else np.nan for c in columns], np.float64)
    return Improvement(probability, low, high, p_values, reasons)


class _Column:
    """Two ordered samples, and the rank in the first of each value of the second."""

    def __init__(self, first: Floats, second: Floats) -> None:
        self.first, self.second = (np.sort(part[np.isfinite(part)]) for part in (first, second))
        self.has_interval = min(len(self.first), len(self.second)) >= 2
        self.smaller = np.searchsorted(self.first, self.second, "left")
        self.not_larger = np.searchsorted(self.first, self.second, "right")

    def probability(self) -> float:
        """Share of pairs in which the first is larger; ties count half; NaN without a pair."""
        pairs = len(self.first) * len(self.second)
        if not pairs:
            return math.nan
        lost = int(self.smaller.sum()) + int(self.not_larger.sum())
        return (2 * pairs - lost) / (2 * pairs)

    def resampled(self, below: Floats, second: Floats) -> Floats:
        """(R,) `probability` in each resample; NaN in a resample without a pair.

        Args:
          below: (L + 1, R) draws of the first agent's values below each rank.
          second: (M, R) draws of each rank of the second agent.
        """
        first_draws = below[len(self.first)]
        second_draws = second[: len(self.second)]
        lost = np.einsum("jr,jr->r", second_draws, below[self.smaller] + below[self.not_larger])
        pairs = first_draws * second_draws.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(pairs > 0, (2 * pairs - lost) / (2 * pairs), np.nan)

    def p_value(self) -> float:
        """Two-sided p-value of the Mann-Whitney test; 1 if all values are equal."""
        number = len(self.first) + len(self.second)
        _, ties = np.unique(np.concatenate([self.first, self.second]), return_counts=True)
        alike = float((ties.astype(np.float64) ** 3 - ties).sum()) / (number * (number - 1))
        pairs = len(self.first) * len(self.second)
        deviation = math.sqrt(max(pairs / 12 * (number + 1 - alike), 0.0))
        if deviation == 0:
            return 1.0
        distance = max(abs(self.probability() - 0.5) * pairs - 0.5, 0.0)
        return math.erfc(distance / deviation / math.sqrt(2))
