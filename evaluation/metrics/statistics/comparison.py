"""Which of two agents does better: the probability of improvement, with interval and test."""

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
    """How often one agent is above another; fields have the shape of one lifetime's values.

    Attributes:
      probability: P(first > second) + P(first = second) / 2; NaN where an agent has no value.
      low: lower end of its bootstrap interval; NaN where there is none.
      high: upper end.
      p_value: two-sided, of the hypothesis that neither agent tends to be above the other; NaN
        where there is no interval.
      reasons: `Reason.TOO_FEW_LIFETIMES` where there is no interval, else `Reason.NONE`.
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
    """How likely a lifetime of the first agent is above one of the second; ties count half.

    Unpaired, every lifetime of the one is compared with every lifetime of the other, each agent's
    lifetimes are resampled on their own, and the test is that of Mann and Whitney (normal
    approximation with corrections for ties and for continuity). Paired, each lifetime is compared
    with the other agent's lifetime of the same position, pairs are resampled, and the test is the
    exact sign test. A lifetime without a value, or a pair that lacks one, is left out.

    Args:
      first: (L, ...) one row a lifetime of the first agent; NaN means no value.
      second: (M, ...) the same of the second agent; M must be L where they are paired.
      seed: of the bootstrap; non-negative integer or typed JAX key.
      level: coverage of the interval.
      resamples: number of resamples, 1 to `MAX_RESAMPLES`.
      paired: whether lifetimes of the same position belong together.

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
    """P-values corrected for how many of them there are, by Holm's step-down method.

    Args:
      p_values: of any shape; NaN counts as no test.

    Returns:
      As many, each at least as large as before and at most 1; NaN where there was none. Rejecting
      those below a level keeps the chance of any false rejection below it.

    Source: S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal
    of Statistics 6 (1979).
    """
    given = np.asarray(p_values, np.float64)
    flat = given.ravel()
    order = np.argsort(flat, kind="stable")[: int(np.isfinite(flat).sum())]
    factors = np.arange(len(order), 0, -1)
    corrected = np.full(flat.shape, np.nan)
    corrected[order] = np.minimum(np.maximum.accumulate(flat[order] * factors), 1.0)
    return corrected.reshape(given.shape)


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
    """Two-sided probability of a split at least as uneven, if either side is as likely."""
    decided = wins + losses
    fewer = min(wins, losses)
    terms = [
        math.lgamma(decided + 1) - math.lgamma(k + 1) - math.lgamma(decided - k + 1)
        for k in range(fewer + 1)
    ]
    return min(1.0, 2 * math.fsum(math.exp(term - decided * math.log(2)) for term in terms))


def _unpaired(one: Floats, other: Floats, seed: Seed, level: float, resamples: int) -> Improvement:
    columns = [_Column(*pair) for pair in zip(one, other, strict=True)]
    drawn = np.full((len(columns), resamples), np.nan)
    # The two agents' lifetimes are drawn from streams of their own.
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
        for row, column in zip(drawn, columns, strict=True):
            if column.enough:
                row[start : start + first.shape[1]] = column.resampled(below, second)
        start += first.shape[1]
    ordered = np.sort(drawn, axis=1)
    low, high = (percentile(ordered, share) for share in ((1 - level) / 2, (1 + level) / 2))
    reasons = np.where(np.isnan(low), Reason.TOO_FEW_LIFETIMES, Reason.NONE).astype(np.int64)
    probability = np.array([column.probability() for column in columns], np.float64)
    p_values = np.array([c.p_value() if c.enough else np.nan for c in columns], np.float64)
    return Improvement(probability, low, high, p_values, reasons)


class _Column:
    """Two samples in order, and for each value of the second its place among the first."""

    def __init__(self, first: Floats, second: Floats) -> None:
        self.first, self.second = (np.sort(part[np.isfinite(part)]) for part in (first, second))
        self.enough = min(len(self.first), len(self.second)) >= 2
        self.smaller = np.searchsorted(self.first, self.second, "left")
        self.not_larger = np.searchsorted(self.first, self.second, "right")

    def probability(self) -> float:
        """Share of pairs in which the first is larger, ties by half; NaN without a pair."""
        pairs = len(self.first) * len(self.second)
        if not pairs:
            return math.nan
        lost = int(self.smaller.sum()) + int(self.not_larger.sum())
        return (2 * pairs - lost) / (2 * pairs)

    def resampled(self, below: Floats, second: Floats) -> Floats:
        """(R,) the same share in each resample; NaN where a resample draws no pair.

        Args:
          below: (L + 1, R) draws of the first agent's values below each rank.
          second: (M, R) draws of each rank of the second agent.
        """
        drawn = below[len(self.first)]
        own = second[: len(self.second)]
        lost = np.einsum("jr,jr->r", own, below[self.smaller] + below[self.not_larger])
        pairs = drawn * own.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(pairs > 0, (2 * pairs - lost) / (2 * pairs), np.nan)

    def p_value(self) -> float:
        """Two-sided, of the test of Mann and Whitney; 1 where all values are equal."""
        number = len(self.first) + len(self.second)
        _, ties = np.unique(np.concatenate([self.first, self.second]), return_counts=True)
        alike = float((ties.astype(np.float64) ** 3 - ties).sum()) / (number * (number - 1))
        pairs = len(self.first) * len(self.second)
        deviation = math.sqrt(max(pairs / 12 * (number + 1 - alike), 0.0))
        if deviation == 0:
            return 1.0
        distance = max(abs(self.probability() - 0.5) * pairs - 0.5, 0.0)
        return math.erfc(distance / deviation / math.sqrt(2))
