"""The simulation that measures the coverage of intervals."""

import json
import sys

import numpy as np
import pytest

from benchmarks import coverage


@pytest.mark.parametrize("name", coverage.PAIRS)
def test_the_probability_of_improvement_of_a_pair_is_what_its_row_says(name):
    pair = coverage.PAIRS[name]
    random = np.random.default_rng(0)
    first, second = (draw(random, (100_000,)) for draw in (pair.first, pair.second))
    wins = (first > second) + (first == second) / 2
    # Five standard errors of a share.
    assert wins.mean() == pytest.approx(pair.truth, abs=5 * 0.5 / len(wins) ** 0.5)


def test_percentiles_are_those_of_resampled_lifetimes():
    random = np.random.default_rng(1)
    first, second = random.normal(1, 1, (12, 3)), random.normal(0, 1, (12, 3))
    drawn = random.integers(0, 12, (2, 1_000, 12))
    wins = [x[:, None] > y for x, y in zip(first.T, second.T, strict=True)]
    shares = [
        [one_column[np.ix_(*rows)].mean() for one_column in wins]
        for rows in zip(*drawn, strict=True)
    ]
    expected = np.quantile(shares, [0.025, 0.975], axis=0)
    # An end of 1,000 resamples has a standard error of some .01; these are two such sets.
    np.testing.assert_allclose(coverage._percentiles(first, second), expected, atol=0.04)


def test_one_statistic_is_measured_and_the_others_stay(tmp_path, monkeypatch, capsys):
    out = tmp_path / "coverage.json"
    kept = {"statistic": "mean", "outcomes": "normal", "lifetimes": 8, "methods": {}}
    old = {"statistic": coverage.IMPROVEMENT, "outcomes": "old", "lifetimes": 8, "methods": {}}
    out.write_text(json.dumps({"samples": 20, "rows": [old, kept]}))
    words = ["coverage", "--samples", "20", "--statistic", "improvement", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", words)
    monkeypatch.setattr(coverage, "PAIR_SIZES", (4,))
    coverage.main()
    rows = json.loads(out.read_text())["rows"]
    assert rows[0] == kept
    assert [row["outcomes"] for row in rows[1:]] == list(coverage.PAIRS)
    assert all(0 <= cell["covered"] <= 1 for row in rows[1:] for cell in row["methods"].values())
    monkeypatch.setattr(sys, "argv", [word.replace("20", "30") for word in words])
    with pytest.raises(SystemExit):
        coverage.main()
    assert "the file has 20 samples" in capsys.readouterr().err
