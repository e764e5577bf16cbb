"""Probability that one agent does better than another, with interval and test."""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from evaluation.metrics.reasons import Reason
from evaluation.metrics.statistics.arrays import (
    DEFAULT_LEVEL,
    Floats,
    Integers,
    as_table,
    check_level,
)
from evaluation.metrics.statistics.bootstrap import wilson

HALVINGS = 60
"""Halvings of the range in which an end of an interval lies, more than float64 has bits."""


@dataclass(frozen=True)
class Improvement:
    """Probability of improvement; fields have the shape of one lifetime's values.

    Attributes:
      probability: P(first > second) + P(first = second) / 2; NaN if an agent has no value.
      low: lower end of its interval; NaN if missing.
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
    *,
    level: float = DEFAULT_LEVEL,
    paired: bool = False,
) -> Improvement:
    """Probability that a lifetime of the first agent is above one of the second; ties count half.

    Unpaired, every lifetime of the first agent is compared with every lifetime of the second; the
    interval is Newcombe's score interval, widened where DeLong's estimate of the variance is larger
    than Newcombe's, and the test is that of Mann and Whitney (normal approximation with corrections
    for ties and for continuity). Paired, each lifetime is compared with the other agent's lifetime
    at the same position; the interval is Wilson's of the share of pairs, and the test is the exact
    sign test. Lifetimes without a value, and pairs with a missing value, are left out.

    Args:
      first: (L, ...) one row per lifetime of the first agent; NaN means no value.
      second: (M, ...) one row per lifetime of the second agent; pairs need M equal to L.
      level: coverage of the interval.
      paired: whether lifetimes at the same position make a pair.

    Returns:
      `Improvement` of shape (...). An interval needs two lifetimes with a value of each agent.

    Raises:
      ValueError: shapes that do not fit, no lifetimes, an infinite value, or a bad level.

    Source: R. Agarwal et al., Deep Reinforcement Learning at the Edge of the Statistical Precipice
    (2021), section 4.3; H. B. Mann and D. R. Whitney, Annals of Mathematical Statistics 18 (1947);
    R. G. Newcombe, Statistics in Medicine 25 (2006), pages 559 to 573, method 5; E. R. DeLong,
    D. M. DeLong and D. L. Clarke-Pearson, Biometrics 44 (1988).
    """
    check_level(level)
    (one, shape), (other, other_shape) = as_table(first), as_table(second)
    if shape != other_shape:
        raise ValueError(f"the agents' values must have one shape, not {shape} and {other_shape}")
    if paired:
        if one.shape != other.shape:
            raise ValueError(
                f"pairs need as many lifetimes of each agent, not {one.shape[1]} and "
                f"{other.shape[1]}; compare them unpaired"
            )
        return _paired(one, other, level).reshape(shape)
    return _unpaired(one, other, level).reshape(shape)


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


def _paired(one: Floats, other: Floats, level: float) -> Improvement:
    both = np.isfinite(one) & np.isfinite(other)
    number, wins = both.sum(axis=1), (both & (one > other)).sum(axis=1)
    ties = (both & (one == other)).sum(axis=1)
    probability = np.where(number > 0, (wins + ties / 2) / np.maximum(number, 1), np.nan)
    low, high = wilson(wins + ties / 2, np.maximum(number, 1), level)
    pairs = zip(wins, number - wins - ties, strict=True)
    p_values = np.array([_sign_test(*map(int, pair)) for pair in pairs], np.float64)
    return _with_interval(number >= 2, probability, low, high, p_values)


def _with_interval(
    enough: npt.NDArray[np.bool_], probability: Floats, low: Floats, high: Floats, p_value: Floats
) -> Improvement:
    """Leave out interval and p-value where there are not enough lifetimes."""
    low, high, p_value = (np.where(enough, field, np.nan) for field in (low, high, p_value))
    reasons = np.where(enough, Reason.NONE, Reason.TOO_FEW_LIFETIMES).astype(np.int64)
    return Improvement(probability, low, high, p_value, reasons)


def _sign_test(wins: int, losses: int) -> float:
    """Two-sided probability of a split at least as uneven, if both sides are equally likely."""
    decided = wins + losses
    fewer = min(wins, losses)
    terms = [
        math.lgamma(decided + 1) - math.lgamma(k + 1) - math.lgamma(decided - k + 1)
        for k in range(fewer + 1)
    ]
    return min(1.0, 2 * math.fsum(math.exp(term - decided * math.log(2)) for term in terms))


def _unpaired(one: Floats, other: Floats, level: float) -> Improvement:
    columns = [_Column(*pair) for pair in zip(one, other, strict=True)]
    probability = np.array([column.probability() for column in columns], np.float64)
    sizes = np.array([(len(c.first), len(c.second)) for c in columns], np.float64).reshape(-1, 2)
    enough = sizes.min(axis=1, initial=np.inf) >= 2
    known, sizes = np.where(enough, probability, 0.5), np.maximum(sizes, 2)
    variance = np.array([c.variance() if e else 0.0 for c, e in zip(columns, enough, strict=True)])
    low, high = (_end(known, sizes, variance, limit, level) for limit in (0.0, 1.0))
    p_values = np.array(
        [c.p_value() if e else np.nan for c, e in zip(columns, enough, strict=True)]
    )
    return _with_interval(enough, probability, low, high, p_values)


def _end(
    probability: Floats, sizes: Floats, variance: Floats, limit: float, level: float
) -> Floats:
    """End of the score interval between (C,) probabilities and a limit, 0 or 1.

    A probability t is in the interval if the observed one is within z standard errors of it, as
    they would be if t were true. By Newcombe's method 5 the variance is that of exponential
    distributions. It is too small for agents of different spreads, so it is scaled by the ratio of
    the estimated variance to it at the observed probability, if that is above 1.

    Args:
      probability: share of pairs in which the first is larger.
      sizes: (C, 2) lifetimes of each agent, L and M.
      variance: (C,) of the probability, as estimated from the samples.
      limit: at which the search begins.
      level: coverage of the interval.
    """
    z = NormalDist().inv_cdf((1 + level) / 2)
    pairs, size = sizes.prod(axis=1), sizes.mean(axis=1)

    def expected(t: Floats) -> Floats:
        return t * (1 - t) / pairs * (2 * size - 1 - (3 * size - 3) / ((2 - t) * (1 + t)))

    observed = expected(probability)
    scale = np.maximum(1, variance / np.where(observed > 0, observed, np.inf))
    outside, inside = np.full(probability.shape, limit), probability
    for _ in range(HALVINGS):
        t = (outside + inside) / 2
        within = (probability - t) ** 2 <= z * z * scale * expected(t)
        outside, inside = np.where(within, outside, t), np.where(within, t, inside)
    return inside


class _Column:
    """Two ordered samples, and the rank in the first of each value of the second."""

    def __init__(self, first: Floats, second: Floats) -> None:
        self.first, self.second = (np.sort(part[np.isfinite(part)]) for part in (first, second))
        self.smaller = np.searchsorted(self.first, self.second, "left")
        self.not_larger = np.searchsorted(self.first, self.second, "right")

    def probability(self) -> float:
        """Share of pairs in which the first is larger; ties count half; NaN without a pair."""
        pairs = len(self.first) * len(self.second)
        if not pairs:
            return math.nan
        lost = int(self.smaller.sum()) + int(self.not_larger.sum())
        return (2 * pairs - lost) / (2 * pairs)

    def variance(self) -> float:
        """Estimated variance of `probability`, by DeLong; 0 if one sample is above the other."""
        smaller, not_larger = (
            np.searchsorted(self.second, self.first, side) for side in ("left", "right")
        )
        of_first = (smaller + not_larger) / (2 * len(self.second))
        of_second = (self.smaller + self.not_larger) / (2 * len(self.first))
        return float(
            of_first.var(ddof=1) / len(self.first) + of_second.var(ddof=1) / len(self.second)
        )

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
