"""Area between learning curves: by hand, against NumPy, and whatever stands in the padding."""

import numpy as np
import pytest

from evaluation.metrics.abc_transfer import abc_transfer_matrix, area_between_curves


def curves(seed=0, lifetimes=6, episodes=20):
    generator = np.random.default_rng(seed)
    return generator.uniform(0, 1, (lifetimes, episodes)), generator.uniform(0, 1, episodes)


def test_area_by_hand():
    """Three episodes at distances of a third: two trapezoids."""
    areas = area_between_curves([1.0, 2.0, 4.0], [0.0, 0.0, 1.0], 3)
    np.testing.assert_allclose(areas, [(1.5 + 2.5) / 3], rtol=1e-6)


@pytest.mark.parametrize("divisions", [1, 3, 4, 7])
def test_parts_add_up_to_numpys_trapezoids(divisions):
    after, baseline = curves()
    areas = area_between_curves(after, baseline, 20, divisions)
    assert areas.shape == (6, divisions)
    whole = np.trapezoid(after - baseline, dx=1 / 20, axis=1)
    np.testing.assert_allclose(np.asarray(areas).sum(axis=1), whole, rtol=1e-4, atol=1e-6)


def test_padding_and_batch_change_nothing():
    after, baseline = curves()
    lengths = np.array([20, 13, 2, 9, 5, 1])
    padded = np.where(np.arange(20) < lengths[:, None], after, np.nan)
    together = np.asarray(area_between_curves(padded, baseline, lengths, 2))
    for row, length in enumerate(lengths):
        alone = area_between_curves(after[row, :length], baseline[:length], length, 2)
        np.testing.assert_allclose(together[row], alone, rtol=1e-5)
    assert np.isnan(together[5]).all()  # one episode makes no area
    assert np.isnan(together[2]).tolist() == [False, True]  # two make one, in the first half


def test_a_value_that_is_not_finite_spoils_its_part_only():
    after, baseline = curves(lifetimes=1)
    after[0, 17] = np.nan
    areas = area_between_curves(after, baseline, 20, 4)
    assert np.isnan(areas[0]).tolist() == [False, False, False, True]


def test_matrix_cuts_to_the_common_length():
    first = {"b": [np.arange(10.0), np.arange(8.0) + 2]}
    after = {("a", "b"): [np.arange(9.0) + 3, np.arange(6.0)]}
    ((pair, areas),) = abc_transfer_matrix(first, after, 1).items()
    assert pair == ("a", "b")
    # The baseline is episode + 1; five trapezoids of height 2 and -1.
    np.testing.assert_allclose(areas, [[2 * 5 / 6], [-5 / 6]], rtol=1e-6)
    assert abc_transfer_matrix(first, after)["a", "b"].shape == (2, 4)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: area_between_curves([1.0], [1.0], 1, 0), "whole number from 1, not 0"),
        (lambda: area_between_curves([1.0, 2.0], [1.0], 1), r"not \(2,\) and \(1,\)"),
        (lambda: abc_transfer_matrix({}, {("a", "b"): [[1.0]]}), "'b' has no baseline"),
        (lambda: abc_transfer_matrix({"b": [[1.0]]}, {("a", "b"): []}), "has no curves"),
        (lambda: abc_transfer_matrix({"b": [[[1.0]]]}, {("a", "b"): [[1.0]]}), r"must be \(n,\)"),
    ],
)
def test_bad_arguments(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_one_episode_in_all_has_no_area():
    assert np.isnan(area_between_curves(np.ones((3, 1)), [0.0], 1, 2)).all()
