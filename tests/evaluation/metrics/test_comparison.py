"""Probability of improvement: against every pair counted, against SciPy, and to the bit."""

import itertools
import math
from statistics import NormalDist

import numpy as np
import pytest

from evaluation.metrics import Reason, holm, probability_of_improvement


def samples(first=12, second=9, columns=4, missing=0.0, seed=0):
    generator = np.random.default_rng(seed)
    one = np.round(generator.normal(0.6, 1.0, (first, columns)), 1)
    other = np.round(generator.normal(0.0, 1.0, (second, columns)), 1)
    for values in (one, other):
        values[generator.random(values.shape) < missing] = np.nan
    return one, other


def share(first, second):
    """Share of pairs in which the first is larger, ties by half, pair by pair."""
    pairs = [(x, y) for x, y in itertools.product(first, second) if x == x and y == y]
    return sum((x > y) + (x == y) / 2 for x, y in pairs) / len(pairs)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_probability_counts_every_pair(missing):
    one, other = samples(missing=missing)
    result = probability_of_improvement(one, other)
    expected = [share(*pair) for pair in zip(one.T, other.T, strict=True)]
    np.testing.assert_allclose(result.probability, expected, rtol=1e-13)
    back = probability_of_improvement(other, one)
    np.testing.assert_allclose(back.probability, 1 - result.probability, rtol=1e-12)
    assert (result.reasons == Reason.NONE).all()


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("spread", [1.0, 0.01])
def test_interval_is_newcombe_s(level, spread):
    """The ends solve (p - t)^2 = z^2 V(t), by a root finder of SciPy."""
    scipy = pytest.importorskip("scipy")
    one, other = samples(missing=0.2)
    one = spread * one
    result = probability_of_improvement(one, other, level=level)
    z = scipy.stats.norm.ppf((1 + level) / 2)
    for column, p in enumerate(result.probability):
        x, y = (values[np.isfinite(values[:, column]), column] for values in (one, other))
        m, n = len(x), len(y)
        wins = (x[:, None] > y) + (x[:, None] == y) / 2
        variance = wins.mean(axis=1).var(ddof=1) / m + wins.mean(axis=0).var(ddof=1) / n

        def expected(t, m=m, n=n):
            terms = m + n - 1 - (1.5 * (m + n) - 3) / ((2 - t) * (1 + t))
            return t * (1 - t) / (m * n) * terms

        scale = max(1, variance / expected(p))

        def excess(t, p=p, expected=expected, scale=scale):
            return (p - t) ** 2 - z**2 * scale * expected(t)

        ends = [scipy.optimize.brentq(excess, *between) for between in ((1e-9, p), (p, 1 - 1e-9))]
        np.testing.assert_allclose([result.low[column], result.high[column]], ends, rtol=1e-9)


def test_p_values_are_those_of_mann_and_whitney():
    stats = pytest.importorskip("scipy.stats")
    one, other = samples(30, 25)
    theirs = stats.mannwhitneyu(one, other, method="asymptotic")
    result = probability_of_improvement(one, other)
    np.testing.assert_allclose(result.p_value, theirs.pvalue, rtol=1e-12)
    np.testing.assert_allclose(result.probability, theirs.statistic / (30 * 25), rtol=1e-12)


def test_paired_compares_lifetimes_of_one_position():
    stats = pytest.importorskip("scipy.stats")
    one, other = samples(20, 20, missing=0.1)
    result = probability_of_improvement(one, other, paired=True)
    for column in range(one.shape[1]):
        x, y = one[:, column], other[:, column]
        both = np.isfinite(x) & np.isfinite(y)
        wins, losses = int((x > y)[both].sum()), int((x < y)[both].sum())
        expected = (wins + (both.sum() - wins - losses) / 2) / both.sum()
        assert result.probability[column] == pytest.approx(expected)
        test = stats.binomtest(wins, wins + losses)
        assert result.p_value[column] == pytest.approx(test.pvalue, rel=1e-9)
        assert result.low[column] <= expected <= result.high[column]


def test_columns_change_no_bit():
    one, other = samples(30, 17, 6, 0.2)
    whole = probability_of_improvement(one, other)
    for column in (0, 5):
        alone = probability_of_improvement(one[:, column], other[:, column])
        assert (alone.low, alone.high) == (whole.low[column], whole.high[column])
        assert alone.p_value == whole.p_value[column]
        assert alone.low.shape == ()


@pytest.mark.parametrize("lifetimes", [(3, 3), (8, 30), (40, 50)])
@pytest.mark.parametrize("truth", [0.6, 0.9])
def test_interval_covers_as_often_as_it_says(lifetimes, truth):
    generator = np.random.default_rng(0)
    shift = math.sqrt(2) * NormalDist().inv_cdf(truth)
    one, other = (generator.normal(0, 1, (number, 500)) for number in lifetimes)
    result = probability_of_improvement(one + shift, other)
    covered = ((result.low <= truth) & (truth <= result.high)).mean()
    # 95 % of 500 samples have a standard error of 1 %; with three lifetimes it covers up to 98.5 %.
    assert 0.9 < covered < 0.99


def test_equal_agents_and_certain_ones():
    same = np.ones((5, 2))
    result = probability_of_improvement(same, same)
    assert (result.probability == 0.5).all()
    assert (result.low < 0.5).all() and (result.high > 0.5).all()
    assert (result.p_value == 1).all()
    sure = probability_of_improvement(same + 1, same)
    assert ((sure.low > 0.5) & (sure.low < 0.9)).all() and (sure.high == 1).all()
    assert (sure.p_value < 0.01).all()


@pytest.mark.parametrize("paired", [False, True])
def test_few_lifetimes_that_are_all_better_are_not_certain(paired):
    result = probability_of_improvement(np.ones((3, 1)), np.zeros((3, 1)), paired=paired)
    assert result.probability == result.high == 1
    # By hand: .50 of Newcombe's equation for three and three, 3 / (3 + 1.96^2) = .44 of Wilson's.
    assert result.low == pytest.approx(0.44 if paired else 0.50, abs=0.005)


@pytest.mark.parametrize("paired", [False, True])
def test_too_few_lifetimes_have_no_interval(paired):
    nan = np.nan
    one = np.array([[1.0, nan, 1.0], [nan, nan, 2.0]])
    other = np.array([[0.5, 1.0, 1.0], [0.5, 1.0, 0.0]])
    result = probability_of_improvement(one, other, paired=paired)
    few = Reason.TOO_FEW_LIFETIMES
    assert result.reasons.tolist() == [few, few, Reason.NONE]
    assert np.isnan(result.probability).tolist() == [False, True, False]
    for missing in (result.low, result.high, result.p_value):
        assert np.isnan(missing).tolist() == [True, True, False]


def test_holm_by_hand():
    corrected = holm([0.01, 0.04, np.nan, 0.03, 0.5])
    np.testing.assert_allclose(corrected, [0.04, 0.09, np.nan, 0.09, 0.5])
    assert holm(np.array([[0.9], [0.8]])).tolist() == [[1.0], [1.0]]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"second": np.zeros((4, 3))}, r"one shape, not \(2,\) and \(3,\)"),
        ({"second": np.zeros((4, 2)), "paired": True}, "3 and 4; compare them unpaired"),
        ({"level": 95}, "for example 0.95"),
        ({"first": np.full((3, 2), np.inf)}, "found infinity"),
        ({"first": np.zeros((0, 2))}, "at least one"),
    ],
)
def test_bad_arguments(change, words):
    arguments = {"first": np.zeros((3, 2)), "second": np.zeros((3, 2))} | change
    with pytest.raises(ValueError, match=words):
        probability_of_improvement(**arguments)
