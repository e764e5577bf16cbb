"""Rows of the registry, and metrics of users."""

import json
import math
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from evaluation import cli
from evaluation.metrics import METRIC_NAMES, Lifetime, MetricError, metric
from evaluation.metrics.l2m.lifetimes import LIFETIME_METRICS, TASK_METRICS
from evaluation.metrics.novelty.measures import SHARES
from evaluation.metrics.reasons import Reason, sentence_of
from evaluation.metrics.registry import check_names, compute, over_lifetimes, row_of
from evaluation.metrics.table import BY_NAME, METRICS, names_of
from evaluation.report.custom import load_rows

ROOT = Path(__file__).parents[3]
VALUES = np.array([[0.1, 0.3, np.nan], [0.2, 0.4, 0.9]])
LIFETIME = Lifetime(
    VALUES, np.array([2, 3]), np.array([True, False]), np.array([0, 1]), ("one", "two")
)


def test_every_row_names_a_function_and_has_a_name_of_its_own():
    assert len(BY_NAME) == len(METRICS)
    for row in METRICS:
        module, _, name = row.kernel.partition(":")
        assert callable(getattr(import_module(f"evaluation.metrics.{module}"), name)), row.name
        assert row.text and row.text[-1] != "." and "\n" not in row.text


def test_names_that_others_use_come_from_the_rows():
    assert names_of("2019")[1:] == METRIC_NAMES and len(METRIC_NAMES) == 6
    assert set(TASK_METRICS) < set(LIFETIME_METRICS) and len(LIFETIME_METRICS) == 11
    assert all(BY_NAME[name].unit == "share" for name in SHARES) and len(SHARES) == 10


def test_a_metric_takes_fields_by_name():
    @metric(direction="lower", unit="share")
    def low_share(counts, values):
        """Share of values below 0.35."""
        return np.nansum(values < 0.35, axis=1) / counts

    row = row_of(low_share)
    assert (row.name, row.text, row.direction) == (
        "low_share",
        "Share of values below 0.35.",
        "lower",
    )
    np.testing.assert_array_equal(compute(row, LIFETIME).values, [1, 1 / 3])


def test_a_block_without_episodes_has_no_number():
    @metric(bounds=(1, 3))
    def sizes(counts):
        return np.where(counts == 0, np.inf, counts)

    numbers = compute(row_of(sizes), LIFETIME._replace(counts=np.array([2, 0])))
    np.testing.assert_array_equal(numbers.values, [2, np.nan])
    assert numbers.reasons.tolist() == [0, Reason.EMPTY]


def test_a_plain_function_takes_two_fields_by_name_or_values_and_counts_by_place():
    def trained(train, values):
        return train * np.nansum(values, axis=1)

    def last(x, n):
        return np.nansum(x, axis=1) / n

    def slip(values, conuts):
        return values

    row = row_of(trained)
    assert row.needs == ("train", "values") and not hasattr(trained, "metric_row")
    np.testing.assert_array_equal(compute(row, LIFETIME).values, [0.4, 0])
    np.testing.assert_array_equal(compute(row_of(last), LIFETIME).values, [0.2, 0.5])
    assert row_of(slip) is None


@pytest.mark.parametrize(
    ("scope", "result", "shape"),
    [("block", [1, 2], (2,)), ("task", [1, 2], (2,)), ("lifetime", 3, ())],
)
def test_scopes_have_shapes(scope, result, shape):
    row = row_of(metric(scope=scope, name="own")(lambda values: result))
    assert compute(row, LIFETIME).values.shape == shape
    numbers = over_lifetimes([row], [LIFETIME] * 3)["own"]
    assert numbers.values.shape == (3, *shape) and not numbers.reasons.any()


def test_a_missing_number_has_the_reason_that_the_metric_gives():
    row = row_of(metric()(lambda values: (np.array([np.nan, 1.0]), "nothing to see")))
    numbers = compute(row, LIFETIME)
    assert [sentence_of(code) for code in numbers.reasons] == ["nothing to see", ""]
    each = row_of(metric()(lambda values: ([np.nan, np.nan], ["first", "second"])))
    assert [sentence_of(code) for code in compute(each, LIFETIME).reasons] == ["first", "second"]
    of_row = row_of(metric(missing="as the row says")(lambda values: [np.nan, 0]))
    assert sentence_of(compute(of_row, LIFETIME).reasons[0]) == "as the row says"


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda values: 1 / 0, "metric 'bad' failed: ZeroDivisionError"),
        (
            lambda values: [1, 2, 3],
            r"returned the shape \(3,\); it must be \(2,\), one number per block",
        ),
        (lambda values: [1, np.nan], "not finite, without a reason"),
        (lambda values: ([1, np.inf], ""), "not finite, without a reason"),
        (lambda values: [1, 3], r"returned \[1.0, 3.0\]; by its row, numbers lie between 0 and 2"),
        (lambda baseline: [1, 2], "asks for baseline; here it can have values, counts"),
    ],
)
def test_what_is_wrong_with_a_metric_is_said(function, words):
    with pytest.raises(MetricError, match=words):
        compute(row_of(metric(name="bad", bounds=(0, 2))(function)), LIFETIME)


def test_two_metrics_of_one_name_are_refused(tmp_path):
    (tmp_path / "mine.py").write_text("def mean(values, counts):\n    return counts\n")
    with pytest.raises(MetricError, match="two metrics of the name 'mean'"):
        load_rows([str(tmp_path / "mine.py")])
    rows = [row_of(metric(name="a")(lambda values: 0))] * 2
    with pytest.raises(MetricError, match="two metrics of the name 'a'"):
        check_names(rows)


def test_words_of_a_row_are_checked():
    with pytest.raises(
        ValueError, match="scope is 'trial'; it must be one of block, task, lifetime"
    ):
        metric(scope="trial")
    with pytest.raises(ValueError, match="direction is 'up'"):
        metric(direction="up")


@pytest.mark.parametrize("bounds", [(0,), (1, 0), ("low", 1), 3, (math.nan, 1), (0, 10**400)])
def test_bounds_that_are_no_range_are_refused(bounds):
    with pytest.raises(ValueError, match="it must be the least and the greatest number"):
        metric(bounds=bounds)


def test_a_bound_of_none_is_no_limit():
    assert metric(bounds=(0, None))(lambda values: 0).metric_row.bounds == (0, math.inf)
    assert metric(bounds=(None, 1))(lambda values: 0).metric_row.bounds == (-math.inf, 1)


def test_the_command_lists_metrics(capsys):
    assert cli.main(["metrics", "--scope", "lifetime", "--needs", "predictions", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == list(names_of("predictions", "lifetime"))
    file = str(ROOT / "examples" / "metrics" / "worst_tenth.py")
    assert cli.main(["metrics", "worst_tenth", "--metric", file]) == 0
    assert "worst tenth of the episodes of each block" in capsys.readouterr().out
    assert cli.main(["metrics", "recoverytime"]) == 2
    assert "did you mean 'recovery_time'" in capsys.readouterr().err
    assert cli.main(["metrics", "--scope", "world"]) == 2
    assert "scope is 'world'" in capsys.readouterr().err
