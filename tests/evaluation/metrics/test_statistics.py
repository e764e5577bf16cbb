"""Bootstrap intervals: against NumPy, on a known distribution, and to the bit."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from evaluation.metrics import (
    MAX_RESAMPLES,
    Numbers,
    Reason,
    bootstrap_interval,
    describe,
    resample_weights,
    summarise,
    syllabus_scores,
)
from evaluation.metrics.statistics import bootstrap
from evaluation.metrics.statistics.arrays import whole_numbers


def sample(lifetimes=40, columns=5, missing=0.0, seed=0):
    generator = np.random.default_rng(seed)
    values = generator.gamma(2.0, 3.0, (lifetimes, columns)) - 4.0
    values[generator.random(values.shape) < missing] = np.nan
    return values


def joined_weights(lifetimes, resamples, seed):
    return np.concatenate(list(resample_weights(lifetimes, resamples, seed)))


def slow_interval(values, weights, level):
    """Percentiles of weighted means, one column and one resample at a time."""
    ends = []
    for column in values.T:
        means = []
        for row in weights:
            draws = [(w, x) for w, x in zip(row, column, strict=True) if not math.isnan(x)]
            total = sum(w for w, _ in draws)
            if total:
                means.append(math.fsum(w * x for w, x in draws) / total)
        ends.append(np.percentile(means, [50 - 50 * level, 50 + 50 * level]))
    return np.array(ends).T


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("level", [0.95, 0.5])
def test_interval_equals_numpy_percentiles_of_the_same_resamples(missing, level):
    values = sample(missing=missing)
    result = bootstrap_interval(values, 3, level, 200, method="percentile")
    low, high = slow_interval(values, joined_weights(40, 200, 3), level)
    np.testing.assert_allclose(result.low, low, rtol=1e-11)
    np.testing.assert_allclose(result.high, high, rtol=1e-11)
    assert (result.reasons == Reason.NONE).all()


def test_describe_equals_numpy():
    values = sample(missing=0.3)
    result = describe(values)
    np.testing.assert_allclose(result.mean, np.nanmean(values, axis=0), rtol=1e-14)
    np.testing.assert_allclose(result.std, np.nanstd(values, axis=0, ddof=1), rtol=1e-13)
    np.testing.assert_array_equal(result.count, np.isfinite(values).sum(axis=0))


def test_interval_covers_the_true_mean_about_as_often_as_it_says():
    values = np.random.default_rng(11).normal(2.0, 3.0, (60, 1000))
    result = bootstrap_interval(values, seed=5, resamples=1000, method="percentile")
    covered = ((result.low <= 2.0) & (result.high >= 2.0)).mean()
    assert 0.91 < covered < 0.965  # .938 is expected of 60 values; +-.027 is 3.5 standard errors


def test_resamples_draw_every_lifetime_alike():
    weights = joined_weights(50, 4000, 1)
    assert (weights.sum(axis=1) == 50).all()
    assert abs(weights.mean(axis=0) - 1).max() < 5 / math.sqrt(4000)
    assert weights.var() == pytest.approx(1 - 1 / 50, rel=0.02)


def test_the_seed_is_honoured():
    values = sample(missing=0.2)
    first = bootstrap_interval(values, seed=9, method="percentile")
    again = bootstrap_interval(values, seed=9, method="percentile")
    other = bootstrap_interval(values, seed=10, method="percentile")
    np.testing.assert_array_equal(first.low, again.low)
    np.testing.assert_array_equal(first.high, again.high)
    assert (first.low != other.low).all()


def test_a_jax_key_is_a_seed():
    values = sample()
    keys = map(jax.random.key, (4, 4, 5))
    low = [bootstrap_interval(values, key, method="percentile").low for key in keys]
    np.testing.assert_array_equal(low[0], low[1])
    assert (low[0] != low[2]).all()


def test_an_interval_does_not_depend_on_its_neighbours():
    values = sample(columns=70, missing=0.1)
    together = bootstrap_interval(values, resamples=300)
    described = describe(values)
    for column in (0, 33, 69):
        alone = bootstrap_interval(values[:, column], resamples=300)
        assert alone.low == together.low[column]
        assert alone.high == together.high[column]
        assert describe(values[:, column]).mean == described.mean[column]
        assert describe(values[:, column]).std == described.std[column]


def test_chunks_of_resamples_and_columns_change_no_bit(monkeypatch):
    values = sample(columns=7, missing=0.2)
    whole = bootstrap_interval(values, resamples=250)
    monkeypatch.setattr(bootstrap, "WEIGHTS_AT_ONCE", 40 * 13)
    monkeypatch.setattr(bootstrap, "RESAMPLED_AT_ONCE", 250 * 2)
    parts = bootstrap_interval(values, resamples=250)
    np.testing.assert_array_equal(whole.low, parts.low)
    np.testing.assert_array_equal(whole.high, parts.high)


@pytest.mark.parametrize("value", [0.1, -1 / 3, 1e300, 5e-324, 0.0, 1e-310])
def test_constant_data_has_an_interval_of_zero_width(value):
    values = np.full((33, 2), value)
    values[:5, 1] = np.nan
    interval, described = bootstrap_interval(values, resamples=100), describe(values)
    for exact in (interval.low, interval.high, described.mean):
        assert (exact == value).all()
    assert (described.std == 0).all()


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1.0, 1e9, 1e300])
def test_scale_changes_nothing_but_the_scale(scale):
    values = sample()
    scaled, unscaled = (
        bootstrap_interval(each, resamples=100, method="percentile")
        for each in (values * scale, values)
    )
    np.testing.assert_allclose(scaled.low, unscaled.low * scale, rtol=1e-10)


def test_two_lifetimes_with_a_value_are_needed():
    values = np.array([[1.0, np.nan, 1.0], [np.nan, np.nan, 3.0], [np.nan, np.nan, np.nan]])
    interval, described = bootstrap_interval(values, method="percentile"), describe(values)
    few = Reason.TOO_FEW_LIFETIMES
    assert interval.reasons.tolist() == [few, few, Reason.NONE]
    np.testing.assert_array_equal(np.isnan(interval.low), [True, True, False])
    np.testing.assert_array_equal(described.mean, [1.0, np.nan, 2.0])
    np.testing.assert_array_equal(described.std, [np.nan, np.nan, math.sqrt(2)])
    assert (interval.low[2], interval.high[2]) == (1.0, 3.0)


def test_a_resample_without_any_value_is_set_aside():
    values = np.full(200, np.nan)
    values[:2] = 1.0, 2.0
    result = bootstrap_interval(values, resamples=500, method="percentile")
    weights = joined_weights(200, 500, 0)
    assert (weights[:, :2].sum(axis=1) == 0).any()
    assert (result.low, result.high) == (1.0, 2.0)


def metric(values, reasons=None):
    array = np.asarray(values, np.float32)
    if reasons is None:
        reasons = np.where(np.isnan(array), Reason.NEVER_RECOVERED, Reason.NONE)
    return Numbers(jnp.asarray(array), jnp.asarray(reasons, jnp.int32))


def test_summary_of_a_metric():
    nan = np.nan
    values = [[1, nan, nan, 4], [3, nan, 5, 4], [5, nan, nan, 4], [3, nan, nan, 4]]
    reasons = np.where(np.isnan(values), Reason.NEVER_RECOVERED, Reason.NONE)
    reasons[:3, 1] = Reason.BLOCK_TOO_SHORT
    summary = summarise(metric(values, reasons), seed=1)
    np.testing.assert_array_equal(summary.mean, [3, nan, 5, 4])
    np.testing.assert_array_equal(summary.count, [4, 0, 1, 4])
    assert summary.lifetimes == 4
    assert summary.reasons.tolist() == [
        Reason.NONE,
        Reason.BLOCK_TOO_SHORT,
        Reason.TOO_FEW_LIFETIMES,
        Reason.NONE,
    ]
    assert summary.missing.tolist() == [
        Reason.NONE,
        Reason.BLOCK_TOO_SHORT,
        Reason.NEVER_RECOVERED,
        Reason.NONE,
    ]
    # Student's interval: 3 values or 4 say too little of a spread for resamples.
    half = 3.182446305 * np.sqrt(8 / 3) / 2
    np.testing.assert_allclose([summary.low[0], summary.high[0]], [3 - half, 3 + half])
    assert (summary.low[3], summary.high[3], summary.std[3]) == (4, 4, 0)


def test_syllabus_score_is_the_mean_over_blocks_of_each_lifetime():
    nan = np.nan
    values = metric([[1, 2, nan], [nan, nan, nan], [4, nan, 6], [0, 0, 3]])
    scores = syllabus_scores(values)
    np.testing.assert_array_equal(scores.values, [1.5, nan, 5, 1])
    none, empty = Reason.NONE, Reason.NO_BLOCK_HAS_VALUE
    assert scores.reasons.tolist() == [none, empty, none, none]
    summary = summarise(syllabus_scores(values))
    assert summary.mean == 2.5
    assert summary.mean.shape == summary.low.shape == ()
    assert (summary.count, summary.lifetimes, summary.missing) == (3, 4, empty)
    assert summary.low < 2.5 < summary.high


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"resamples": MAX_RESAMPLES + 1}, "between 1 and 1,000,000, not 1,000,001"),
        ({"resamples": 0}, "between 1 and"),
        ({"resamples": 10.0}, "must be an integer"),
        ({"level": 0}, "for example 0.95"),
        ({"level": 95}, "for example 0.95"),
        ({"level": math.nan}, "for example 0.95"),
        ({"seed": -1}, "0 or more"),
        ({"seed": 1.5}, r"integer or a jax\.random\.key"),
        ({"seed": True}, r"integer or a jax\.random\.key"),
        ({"values": np.zeros((0, 3))}, "at least one"),
        ({"values": np.array([1.0, np.inf])}, "found infinity"),
    ],
)
def test_bad_arguments_say_what_to_change(change, words):
    with pytest.raises(ValueError, match=words):
        bootstrap_interval(**({"values": sample()} | change))


def test_an_array_of_keys_is_not_a_seed():
    with pytest.raises(ValueError, match="one key"):
        bootstrap_interval(sample(), jax.random.split(jax.random.key(0)))


def test_the_largest_whole_numbers_are_still_exact():
    """Every resampled sum stays below 2^53, where float64 holds whole numbers exactly."""
    bits = 52 - (10_000).bit_length()
    whole, _ = whole_numbers(np.array([[-1.0, 1.0] * 5000, [0.75, -1.0] * 5000]), bits)
    assert np.abs(whole).max() * whole.shape[1] <= 2**53
    assert np.abs(whole).max() >= 2**36
