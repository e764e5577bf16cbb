"""Median, interquartile mean and spread with their intervals: against slow twins, to the bit."""

import math
import statistics as plain

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import stdtrit

from evaluation.metrics import (
    STATISTICS,
    Numbers,
    Reason,
    bootstrap_interval,
    bootstrap_intervals,
    describe,
    resample_weights,
    summarise,
    summarise_all,
)
from evaluation.metrics.statistics import bootstrap


def interquartile_mean(values):
    """Every value four times: the lowest and the highest quarter of these can always be cut off."""
    fourfold = sorted(4 * list(values))
    return plain.fmean(fourfold[len(values) : 3 * len(values)])


SLOW = {
    "mean": plain.fmean,
    "median": plain.median,
    "interquartile_mean": interquartile_mean,
    "std": plain.stdev,
}


def sample(lifetimes=23, columns=6, missing=0.0, seed=0):
    generator = np.random.default_rng(seed)
    values = generator.gamma(2.0, 3.0, (lifetimes, columns)) - 4.0
    values[generator.random(values.shape) < missing] = np.nan
    values[:, -1] = np.round(values[:, -1])  # ties
    return values


def present(column):
    return [x for x in column if not math.isnan(x)]


@pytest.mark.parametrize("lifetimes", [1, 2, 3, 4, 5, 7, 8, 23])
def test_plain_statistics_equal_slow_twins(lifetimes):
    values = sample(lifetimes)
    described = describe(values)
    for name, slow in SLOW.items():
        expected = [
            slow(column) if name != "std" or lifetimes > 1 else math.nan for column in values.T
        ]
        np.testing.assert_allclose(getattr(described, name), expected, rtol=1e-12, atol=1e-13)


def test_values_that_are_missing_are_left_out():
    values = sample(missing=0.4)
    described = describe(values)
    for name, slow in SLOW.items():
        expected = [slow(present(column)) for column in values.T]
        np.testing.assert_allclose(getattr(described, name), expected, rtol=1e-12)


def test_interquartile_mean_by_hand():
    """Of five, the second and the fourth count three quarters: 2.5 values in all."""
    column = np.array([100.0, 4.0, 2.0, -50.0, 7.0])
    assert describe(column).interquartile_mean == pytest.approx((0.75 * 2 + 4 + 0.75 * 7) / 2.5)
    assert describe(np.array([9.0, 1.0, 2.0, 4.0])).interquartile_mean == 3.0


def test_plain_statistics_equal_scipy_where_the_definitions_meet():
    stats = pytest.importorskip("scipy.stats")
    values = sample(24)
    described = describe(values)
    np.testing.assert_allclose(described.interquartile_mean, stats.trim_mean(values, 0.25))
    np.testing.assert_allclose(described.median, np.median(values, axis=0))


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("name", STATISTICS)
def test_intervals_equal_percentiles_of_slow_resamples(name, missing):
    values = sample(missing=missing)
    result = bootstrap_interval(values, 3, 0.9, 150, name, "percentile")
    weights = np.concatenate(list(resample_weights(len(values), 150, 3)))
    for column, low, high in zip(values.T, result.low, result.high, strict=True):
        # Ranks of a column are drawn for what needs the values in order.
        values_drawn = column if name in ("mean", "std") else np.sort(column)
        draws = [present(np.repeat(values_drawn, row.astype(int))) for row in weights]
        statistics = [SLOW[name](d) for d in draws if len(d) > (name == "std")]
        np.testing.assert_allclose([low, high], np.percentile(statistics, [5, 95]), rtol=1e-9)


def test_all_at_once_are_the_same_bits_as_one_by_one(monkeypatch):
    values = sample(40, 9, missing=0.2)
    whole = bootstrap_intervals(values, seed=4, resamples=300)
    assert tuple(whole) == STATISTICS
    monkeypatch.setattr(bootstrap, "WEIGHTS_AT_ONCE", 40 * 13)
    monkeypatch.setattr(bootstrap, "RESAMPLED_AT_ONCE", 300 * 4 * 2)
    for name in STATISTICS:
        for column in (0, 5, 8):
            alone = bootstrap_interval(values[:, column], 4, resamples=300, statistic=name)
            assert (alone.low, alone.high) == (whole[name].low[column], whole[name].high[column])


@pytest.mark.parametrize("value", [0.1, -1 / 3, 1e300, 5e-324, 0.0])
@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_constant_values_have_intervals_of_zero_width(value, method):
    values = np.full((9, 2), value)
    values[:3, 1] = np.nan
    for name, interval in bootstrap_intervals(values, resamples=50, method=method).items():
        assert (interval.low == interval.high).all()
        assert (interval.low == (0 if name == "std" else value)).all()
    described = describe(values)
    assert (described.median == value).all()
    assert (described.interquartile_mean == value).all()


def test_a_resample_of_one_lifetime_drawn_again_and_again_has_no_spread():
    result = bootstrap_interval(np.array([0.1, 0.1 + 1e-9]), 0, 0.99, 500, "std")
    assert result.low == 0
    assert result.high == pytest.approx(1e-9 * math.sqrt(0.5), rel=1e-6)


def test_spread_is_exact_beside_an_outlier():
    values = np.concatenate([1e6 + np.random.default_rng(0).normal(size=30), [-1e6]])
    weights = next(resample_weights(31, 200, 0))
    without = weights[weights[:, -1] == 0]
    expected = [np.std(np.repeat(values, row.astype(int)), ddof=1) for row in without]
    from evaluation.metrics.statistics.location import estimators

    (estimator,) = estimators(values[None], ("std",))
    np.testing.assert_allclose(estimator(without)["std"][:, 0], expected, rtol=1e-5)


@pytest.mark.parametrize("name", ["mean", "median", "interquartile_mean"])
def test_intervals_cover_as_often_as_they_say(name):
    values = np.random.default_rng(2).normal(2.0, 3.0, (60, 800))
    result = bootstrap_interval(values, 5, 0.9, 800, name)
    covered = ((result.low <= 2.0) & (result.high >= 2.0)).mean()
    assert 0.86 < covered < 0.94


def test_bca_is_that_of_scipy():
    """The same resamples cannot be had; 4,000 of them leave about 1 % of the width open."""
    stats = pytest.importorskip("scipy.stats")
    column = np.random.default_rng(3).exponential(2.0, 25)
    ours = bootstrap_interval(column, 1, 0.9, 4000, "mean", "bca")
    plain_ends = bootstrap_interval(column, 1, 0.9, 4000, method="percentile")
    theirs = stats.bootstrap(
        (column,),
        np.mean,
        confidence_level=0.9,
        n_resamples=4000,
        method="BCa",
        rng=np.random.default_rng(0),
    ).confidence_interval
    width = theirs.high - theirs.low
    assert ours.low == pytest.approx(theirs.low, abs=0.05 * width)
    assert ours.high == pytest.approx(theirs.high, abs=0.05 * width)
    # A long tail to the right pulls both ends up.
    assert ours.low > plain_ends.low
    assert ours.high > plain_ends.high


def test_bca_leaves_lifetimes_without_a_value_out():
    column = np.random.default_rng(3).exponential(2.0, 25)
    patchy = np.concatenate([column, np.full(3, np.nan)])
    ends = bootstrap_interval(patchy, 1, 0.9, 2000, "mean", "bca")
    whole = bootstrap_interval(column, 1, 0.9, 2000, "mean", "bca")
    assert ends.low == pytest.approx(whole.low, rel=0.05)
    assert ends.high == pytest.approx(whole.high, rel=0.05)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"statistic": "mode"}, "'mode'; it must be one of mean, median, interquartile_mean, std"),
        ({"method": "normal"}, "'normal'; it must be one of percentile, bca"),
    ],
)
def test_unknown_names_say_what_there_is(change, words):
    with pytest.raises(ValueError, match=words):
        bootstrap_interval(sample(), **change)


# Metrics ------------------------------------------------------------------------------------------


def metric(values):
    array = np.asarray(values, np.float64)
    reasons = np.where(np.isnan(array), Reason.NEVER_RECOVERED, Reason.NONE)
    return Numbers(jnp.asarray(array, jnp.float32), jnp.asarray(reasons, jnp.int32))


def test_many_metrics_at_once_are_the_same_bits_as_one_by_one():
    metrics = {
        "a": metric(sample(20, 4, 0.3)),
        "scalar": metric(sample(20, 1)[:, 0]),
        "b": metric(sample(20, 3, seed=1)),
    }
    together = summarise_all(metrics, seed=2, resamples=200)
    assert list(together) == list(metrics)
    for name, one in metrics.items():
        alone = summarise(one, seed=2, resamples=200)
        assert together[name].mean.shape == one.values.shape[1:]
        np.testing.assert_array_equal(together[name].missing, alone.missing)
        for statistic in STATISTICS:
            ours, single = together[name].estimates[statistic], alone.estimates[statistic]
            for field in ("values", "low", "high", "reasons"):
                np.testing.assert_array_equal(getattr(ours, field), getattr(single, field))
    assert summarise_all({}) == {}


def test_every_missing_statistic_has_a_reason():
    nan = np.nan
    summary = summarise(metric([[1, nan, nan], [2, nan, 5], [4, nan, nan]]))
    few, never = Reason.TOO_FEW_LIFETIMES, Reason.NEVER_RECOVERED
    for name, estimate in summary.estimates.items():
        assert estimate.reasons.tolist() == [Reason.NONE, never, few]
        assert np.isnan(estimate.low).tolist() == [False, True, True]
        assert np.isnan(estimate.values).tolist() == [False, True, name == "std"]
    np.testing.assert_array_equal(summary.estimates["median"].values, [2, nan, 5])
    assert summary.estimates["mean"].low[0] == summary.low[0]


def test_one_lifetime_has_values_and_no_intervals():
    summary = summarise(metric([[1.0, np.nan]]))
    for estimate in summary.estimates.values():
        assert np.isnan(estimate.low).all()
        assert (estimate.reasons != Reason.NONE).all()
    assert summary.estimates["interquartile_mean"].values[0] == 1.0


def test_metrics_of_different_lifetimes_are_refused():
    with pytest.raises(ValueError, match=r"same lifetimes, not of \[2, 3\]"):
        summarise_all({"a": metric([[1.0], [2.0]]), "b": metric([[1.0], [2.0], [3.0]])})


# Methods for means --------------------------------------------------------------------------------


def test_a_studentised_interval_is_that_of_its_resampled_t_values():
    values = np.random.default_rng(3).lognormal(size=20)
    interval = bootstrap_interval(values, 1, 0.9, 500, method="studentised")
    weights = np.concatenate(list(bootstrap.resample_weights(20, 500, 1)))
    means = weights @ values / 20
    spreads = np.sqrt((weights @ values**2 / 20 - means**2) * 20 / 19)
    narrow = spreads < values.std(ddof=1) / 4
    assert narrow.any()
    spreads[narrow] = values.std(ddof=1) / 4
    t = (means - values.mean()) / (spreads / np.sqrt(20))
    error = values.std(ddof=1) / np.sqrt(20)
    low, high = values.mean() - np.quantile(t, [0.95, 0.05]) * error
    np.testing.assert_allclose([interval.low, interval.high], [low, high], rtol=1e-6)
    assert interval.high - values.mean() > values.mean() - interval.low  # the tail is above


def close_together(size, columns):
    """Performances most of which are near 1, so that some resamples have hardly any spread."""
    random = np.random.default_rng(size)
    low = random.random((size, columns)) < 0.3
    return np.where(low, random.random(low.shape), random.beta(20, 1, low.shape))


@pytest.mark.parametrize("size", [8, 12, 30])
def test_values_close_together_do_not_widen_an_interval_without_bound(size):
    values = close_together(size, 500)
    interval = bootstrap_interval(values, method="calibrated", resamples=1000)
    half = stdtrit(size - 1, 0.975) * values.std(axis=0, ddof=1) / np.sqrt(size)
    # Without a least spread of resamples this is up to 26 at 8 values, 9 at 12 and 3.5 at 30.
    assert ((interval.high - interval.low) / (2 * half)).max() < 2.3


def test_a_difference_of_performances_lies_between_its_bounds():
    lost = np.array([-0.99, -0.98, -0.99, -0.97, -0.96, -0.98, 0.2, -0.95])
    free = bootstrap_interval(lost, method="calibrated")
    bound = bootstrap_interval(lost, method="calibrated", bounds=(-1, 1))
    assert free.low < -1 < free.high == bound.high < 1
    assert bound.low == -1


def test_every_column_has_bounds_of_its_own():
    values = np.array([[0.2, 2.0], [1.0, 1.0], [1.0, 3.0]])
    intervals = bootstrap_intervals(values, method="calibrated", bounds=(0, [1, np.inf]))
    assert intervals["mean"].low.tolist() == [0, 0]
    assert intervals["mean"].high[0] == 1
    assert intervals["mean"].high[1] > 3
    free = bootstrap_intervals(values, method="calibrated")
    np.testing.assert_array_equal(intervals["std"].high, free["std"].high)


def test_calibrated_intervals_of_few_or_coarse_values_are_students():
    few = bootstrap_interval([1.0, 2.0, 4.0], method="calibrated")
    half = 4.30265273 * np.std([1, 2, 4], ddof=1) / np.sqrt(3)
    np.testing.assert_allclose([few.low, few.high], [7 / 3 - half, 7 / 3 + half], rtol=1e-6)
    coarse = np.repeat([0.0, 1.0], [15, 5])
    interval = bootstrap_interval(coarse, method="calibrated")
    half = 2.09302405 * coarse.std(ddof=1) / np.sqrt(20)
    np.testing.assert_allclose([interval.low, interval.high], [0.25 - half, 0.25 + half], rtol=1e-6)
    equal = bootstrap_interval(np.full(9, 0.3), method="calibrated")
    assert (equal.low, equal.high) == (0.3, 0.3)


def test_each_of_many_calibrated_intervals_is_the_one_of_its_column_alone():
    random = np.random.default_rng(3)
    skewed, coarse = random.exponential(size=20), np.repeat([0.0, 1.0], [15, 5])
    columns = np.stack([coarse, skewed, np.full(20, 0.3), coarse], axis=1)
    together = bootstrap_interval(columns, 5, method="calibrated")
    for place, column in enumerate(columns.T):
        alone = bootstrap_interval(column, 5, method="calibrated")
        assert (together.low[place], together.high[place]) == (alone.low, alone.high)


def test_shares_of_lifetimes_have_wilsons_interval():
    values = metric(np.repeat([0.0, 1.0], [3, 27]))
    summaries = summarise_all({"cdt": values, "mean": values})
    share, mean = summaries["cdt"], summaries["mean"]
    z, n, p = 1.959963985, 30, 0.9
    centre, weight = p + z * z / (2 * n), 1 + z * z / n
    half = z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    expected = [(centre - half) / weight, (centre + half) / weight]
    np.testing.assert_allclose([share.low[()], share.high[()]], expected, rtol=1e-6)
    assert mean.high[()] != share.high[()]


@pytest.mark.slow
@pytest.mark.parametrize("size", [8, 30])
def test_calibrated_intervals_of_means_hold_what_they_should(size):
    values = np.random.default_rng(size).normal(size=(size, 1500))
    interval = bootstrap_interval(values, method="calibrated", resamples=1000)
    covered = ((interval.low <= 0) & (interval.high >= 0)).mean()
    assert 0.93 <= covered <= 0.97


def test_bounds_of_each_metric_are_those_that_are_given():
    """Here of three lifetimes, whose intervals are wide."""
    values = Numbers(np.array([0.2, 0.9, 1.0]), np.zeros(3, np.int32))
    metrics = {"mean": values, "other": values}
    free = summarise_all(metrics)
    bound = summarise_all(metrics, bounds={"mean": (0, 1)})
    assert free["mean"].low < 0 and free["mean"].high > 1
    assert (bound["mean"].low, bound["mean"].high) == (0, 1)
    assert (bound["other"].low, bound["other"].high) == (free["other"].low, free["other"].high)
