"""Means and shares of values that come in clusters."""

import numpy as np
import pytest

from evaluation.metrics.statistics import (
    bootstrap_interval,
    of_clusters,
    share_of_clusters,
    wilson,
)

CLUSTERS = np.array([5, 2, 5, 9, 2, 2, 5, 9])
VALUES = np.array([0.1, 0.5, 0.3, 0.9, 0.6, np.nan, 0.2, 0.8])


def test_values_of_clusters_have_the_mean_of_all_and_the_spread_between_clusters():
    values = of_clusters(VALUES, CLUSTERS)
    mean = np.nanmean(VALUES)
    # By hand: sums of deviations of clusters 2, 5 and 9, which have 2, 3 and 2 of 7 values.
    sums = np.array([1.1 - 2 * mean, 0.6 - 3 * mean, 1.7 - 2 * mean])
    np.testing.assert_allclose(values, mean + 3 / 7 * sums)
    assert values.mean() == pytest.approx(mean)
    both = of_clusters(np.stack([VALUES, 2 * VALUES], axis=1), CLUSTERS)
    np.testing.assert_allclose(both, np.stack([values, 2 * values], axis=1))


def test_clusters_of_equal_size_have_their_own_means():
    values = np.arange(6.0) ** 2
    np.testing.assert_allclose(of_clusters(values, [1, 0, 1, 0, 2, 2]), [5, 2, 20.5])


def test_a_cluster_without_a_value_has_none_and_does_not_count():
    values = of_clusters([1.0, 2.0, np.nan, np.nan], [0, 1, 2, 2])
    np.testing.assert_array_equal(values, [1, 2, np.nan])
    assert np.isnan(of_clusters([np.nan, np.nan, np.nan], [0, 0, 1])).all()


def test_values_alone_in_their_clusters_stay_as_they_are():
    values = np.random.default_rng(0).normal(size=(9, 2))
    np.testing.assert_array_equal(of_clusters(values, np.arange(9)[::-1]), values)
    hits = [1, 0, 0, 1, np.nan]
    assert share_of_clusters(hits, np.arange(5), 0.95) == wilson(2, 4, 0.95)


@pytest.mark.parametrize("hit", [0.0, 1.0])
def test_a_share_that_is_alike_in_all_counts_its_clusters(hit):
    ends = share_of_clusters([hit] * 8, CLUSTERS, 0.95)
    assert ends == pytest.approx(wilson(3 * hit, 3, 0.95))
    assert np.isnan(share_of_clusters([np.nan], [0], 0.95)).all()


def test_a_share_has_as_many_hits_as_its_clusters_say():
    """Clusters that are all hits or all misses count once; those of even chance as all hits."""
    alike = share_of_clusters(np.repeat([1, 0, 1, 1], 10), np.repeat(np.arange(4), 10), 0.95)
    # 40 hits of 4 clusters: the variance is that of 4 clusters with n - 1.
    effective = 40 * (0.75 * 0.25 / 39) / (np.var([1, 0, 1, 1], ddof=1) / 4)
    assert alike == pytest.approx(wilson(0.75 * effective, effective, 0.95))
    assert 2.5 < effective < 4
    even = share_of_clusters(np.tile([1, 0], 20), np.repeat(np.arange(4), 10), 0.95)
    assert even == pytest.approx(wilson(20, 40, 0.95))


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_intervals_of_clusters_cover(share):
    """Of 20 novelties with 10 trials each; intervals over trials cover a half to two thirds."""
    random = np.random.default_rng(7)
    clusters, samples, number = np.repeat(np.arange(20), 10), 400, 20
    covered = {"mean": 0, "share": 0}
    for _ in range(samples):
        chance = random.beta(2 * share, 2 * (1 - share), number)
        hits = (random.uniform(size=200) < chance[clusters]).astype(float)
        low, high = share_of_clusters(hits, clusters, 0.95)
        covered["share"] += low <= share <= high
        noisy = of_clusters(chance[clusters] + random.normal(0, 0.05, 200), clusters)
        interval = bootstrap_interval(noisy, resamples=500)
        covered["mean"] += interval.low <= share <= interval.high
    # Three standard errors of 400 samples are .033; 20 skewed values cover less (docs/coverage.md).
    assert all(0.88 < count / samples <= 0.99 for count in covered.values()), covered
