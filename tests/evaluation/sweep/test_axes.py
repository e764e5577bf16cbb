"""Axes: what is written, and the values that it means."""

import math

import pytest

from evaluation.sweep.axes import MOST_CHECKED_SINGLY, axis


def values(written, name="gravity"):
    parameter = axis(name, written)
    return [parameter.value(index) for index in range(parameter.size)]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ([3, 1.5], [3.0, 1.5]),
        (["pd", "greedy"], ["pd", "greedy"]),
        ({"linear": [1, 3], "count": 5}, [1.0, 1.5, 2.0, 2.5, 3.0]),
        ({"linear": [1, 3], "count": 1}, [1.0]),
        ({"log": [0.01, 100], "count": 5}, [0.01, 0.1, 1.0, 10.0, 100.0]),
        ({"integers": [3, 9], "step": 3}, [3, 6, 9]),
    ],
)
def test_values(written, expected):
    assert values(written) == expected


@pytest.mark.parametrize(
    ("written", "low", "high"),
    [
        ({"uniform": [2, 4], "draws": 500}, 2, 4),
        ({"loguniform": [1e-4, 1e-1], "draws": 500}, 1e-4, 1e-1),
        ({"randint": [5, 9], "draws": 500}, 5, 9),
        ({"choice": [1.0, 2.0, 5.0], "draws": 500}, 1.0, 5.0),
    ],
)
def test_draws(written, low, high):
    drawn = values(written)
    assert drawn == values(written)
    assert all(low <= value <= high for value in drawn)
    assert drawn != values({**written, "seed": 1})
    assert drawn != values(written, name="another")
    # A draw depends on its number alone, not on how many there are.
    assert drawn[:10] == values({**written, "draws": 10})


def test_draws_are_spread_as_said():
    uniform = values({"uniform": [0, 1], "draws": 4000})
    assert abs(sum(uniform) / 4000 - 0.5) < 0.02
    logs = [math.log10(v) for v in values({"loguniform": [1e-4, 1], "draws": 4000})]
    assert abs(sum(logs) / 4000 + 2) < 0.08
    whole = values({"randint": [0, 3], "draws": 4000})
    assert all(900 < whole.count(number) < 1100 for number in range(4))


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ([], "is empty"),
        (3, "must be a list of values or a table with one of linear, log"),
        ([1, "a"], "mixes types"),
        ([True], "mixes types"),
        ([1, 1], "has a value twice"),
        ([float("nan")], "must be finite"),
        ({}, "exactly one of"),
        ({"linear": [0, 1]}, "count is None"),
        ({"linear": [0, 1], "count": 0}, "count is 0"),
        ({"linear": [0, 1], "count": 3, "log": [1, 2]}, "exactly one of"),
        ({"linear": [0, 1], "steps": 3}, "has 'steps'; beside 'linear' it takes count"),
        ({"linear": [1, 0], "count": 3}, "the second must not be less"),
        ({"linear": [0, math.inf], "count": 3}, "both must be finite"),
        ({"linear": ["a", 0], "count": 3}, "must be two numbers"),
        ({"log": [0, 1], "count": 3}, "must be above 0"),
        ({"linear": [2, 2], "count": 3}, "both ends of linear are equal; count must be 1"),
        ({"log": [2, 2], "count": 2}, "both ends of log are equal"),
        ({"integers": [0.5, 1]}, "two whole numbers"),
        ({"integers": [0, 5], "step": 0}, "step is 0"),
        ({"integers": [0, 10**9]}, "1,000,000,001 values; at most 10,000,000"),
        ({"uniform": [0, 1], "draws": 5, "seed": -1}, "seed is -1"),
        ({"choice": 3, "draws": 5}, "must be a list of values"),
    ],
)
def test_bad_axes(written, words):
    with pytest.raises(ValueError, match="axis 'gravity'") as error:
        axis("gravity", written)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_equal_ends_are_one_value():
    assert [axis("gravity", {form: [2, 2], "count": 1}).value(0) for form in ("linear", "log")] == [
        2.0,
        2.0,
    ]


@pytest.mark.parametrize(
    ("written", "different"),
    [
        ([1.0, 2.0], 2),
        ({"linear": [0, 1], "count": 7}, 7),
        ({"integers": [0, 4], "step": 2}, 3),
        ({"uniform": [0, 1], "draws": 9}, 9),
        ({"randint": [1, 3], "draws": 9}, 3),
        ({"randint": [1, 30], "draws": 9}, 9),
        ({"choice": [1, 5], "draws": 9}, 2),
    ],
)
def test_how_many_different_values_there_may_be(written, different):
    one = axis("gravity", written)
    assert one.most_distinct == different
    assert len({one.value(number) for number in range(one.size)}) <= different


@pytest.mark.parametrize("form", ["integers", "randint"])
def test_few_whole_numbers_are_checked_one_by_one(form):
    draws = {"draws": 5} if form == "randint" else {}
    assert axis("level", {form: [3, 6], **draws}).ends == (3, 4, 5, 6)
    assert axis("level", {form: [3, 3 + MOST_CHECKED_SINGLY], **draws}).ends == (
        3,
        3 + MOST_CHECKED_SINGLY,
    )


def test_whole_numbers_end_where_the_last_step_does():
    assert axis("level", {"integers": [0, 9], "step": 4}).ends == (0, 4, 8)
    assert axis("level", {"integers": [0, 999], "step": 10}).ends == (0, 990)
