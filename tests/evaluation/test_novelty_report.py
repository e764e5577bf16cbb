"""What agents predict of novelty in a run is scored, against scores that are counted by hand."""

import json
from dataclasses import replace

import numpy as np
import pytest

from evaluation.metrics import Reason, bootstrap_interval
from evaluation.metrics.novelty import amoc_delay, amoc_wsu
from evaluation.metrics.novelty.lifetimes import (
    area_under_roc,
    calibration_error,
    trial_spans,
    trials_of,
)
from evaluation.records import COLUMNS, Records
from evaluation.report import summarise_records
from evaluation.report.novelty import novel_variants, novelty_scores, predictions_of
from evaluation.schedule import Block, Schedule

LEVEL = (("novelty/difficulty", "hard"), ("novelty/level", 203))
NOMINAL = (("novelty/difficulty", "hard"), ("novelty/level", 200))
LONG = (("pole/length", 2.0),)

SCHEDULE = Schedule(
    "changes",
    (
        Block(0, 1, "train", "CartPole3D", NOMINAL, 4, True),
        Block(1, 1, "test", "CartPole3D", LEVEL, 3, False),
        Block(2, 2, "train", "CartPole3D", LEVEL, 2, True),
        Block(3, 2, "test", "CartPole3D", NOMINAL, 2, False),
        Block(4, 3, "test", "CartPole3D", LONG, 3, False),
    ),
)
NOVEL = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1], bool)

PROBABILITY = np.array(
    [
        [0.1, 0.1, 0.6, 0.1, 0.1, 0.7, 0.8, 0.9, 0.9, 0.2, 0.1, 0.1, 0.1, 0.1],
        [0.0, 0.0, 0.0, 0.0, 0.9, 0.9, 0.9, 0.9, 0.9, 0.0, 0.0, 0.1, 0.9, 0.9],
    ],
    np.float32,
)
LEVELS = np.where(PROBABILITY >= 0.5, [[2], [3]], 0)


def made_up(probability=PROBABILITY, level=LEVELS, threshold=0.5):
    shape = probability.shape
    columns = {name: np.zeros(shape, dtype) for name, dtype in COLUMNS.items()}
    columns["performance"] += 0.5
    columns["complete"] |= True
    columns |= {"predicted_probability": probability, "predicted_level": level.astype(np.int32)}
    columns["threshold"] = np.full(shape, threshold, np.float32)
    return Records(SCHEDULE, columns, np.array([0, 3, 0], np.int32))


@pytest.mark.requirement(129)
def test_scores_of_lifetimes_are_those_counted_by_hand():
    scores = {name: of.values.tolist() for name, of in novelty_scores(made_up()).lifetime.items()}
    assert scores["true_alarm_rate"] == [4 / 8, 7 / 8]
    assert scores["false_alarm_rate"] == [1 / 6, 0]
    assert scores["lifetime_level_accuracy"] == [0, 1]  # level 2 is said, and level 3 is played
    assert scores["cdt"] == [0, 1]
    assert scores["found"] == [1 / 2, 1]
    assert scores["false_alarms"] == [1 / 2, 0]
    assert scores["correct_rejections"] == [(3 / 4 + 1) / 2, 1]
    assert scores["mean_delay"][1] == 0.5  # 0 and 1 episodes
    assert np.isnan(scores["mean_delay"][0])
    brier = ((PROBABILITY.astype(np.float64) - NOVEL) ** 2).mean(axis=1)
    np.testing.assert_allclose(scores["brier"], brier, rtol=1e-12)


def test_scores_of_blocks_are_those_counted_by_hand():
    scores = novelty_scores(made_up()).blocks
    np.testing.assert_array_equal(
        scores["alarm_rate"].values, [[1 / 4, 2 / 3, 1, 0, 0], [0, 1, 1, 0, 2 / 3]]
    )
    delay = scores["detection_delay"]
    np.testing.assert_array_equal(delay.values[:, 1], [1, 0])
    none = [Reason.NOMINAL_BLOCK, Reason.NO_CHANGE, Reason.NOMINAL_BLOCK]
    assert delay.reasons[:, [0, 2, 3]].tolist() == [none, none]
    assert delay.reasons[0, 4] == Reason.NOT_REPORTED_IN_BLOCK
    assert delay.values[1, 4] == 1
    levels = scores["block_level_accuracy"]
    np.testing.assert_array_equal(levels.values[:, 1], [0, 1])
    assert levels.reasons[:, 4].tolist() == [Reason.NO_LEVEL, Reason.NO_LEVEL]


def test_trials_are_cut_at_the_end_of_each_novel_stretch():
    assert trial_spans(NOVEL) == [(0, 4, 9), (9, 11, 14)]
    predictions = predictions_of(made_up())
    trials = trials_of(predictions, predictions.reported)
    assert trials.button.tolist() == 2 * [[4, 2]]
    assert trials.count.tolist() == 2 * [[9, 5]]
    lifetime = novelty_scores(made_up()).lifetime
    for name, kernel in (("amoc_wsu", amoc_wsu), ("amoc_delay", amoc_delay)):
        np.testing.assert_array_equal(lifetime[name].values, kernel(trials).mean(axis=1))


def test_the_area_under_roc_counts_pairs():
    random = np.random.default_rng(1)
    probability = np.round(random.random((5, 40)), 1)
    novel = random.random(40) < 0.4
    pairs = probability[:, novel, None] - probability[:, None, ~novel]
    expected = ((pairs > 0) + 0.5 * (pairs == 0)).mean(axis=(1, 2))
    np.testing.assert_allclose(area_under_roc(probability, novel), expected, rtol=1e-12)


@pytest.mark.requirement(129)
def test_an_agent_that_is_right_on_average_is_calibrated():
    probability = np.array([[0.25] * 4 + [0.75] * 4, [1.0] * 8])
    novel = np.array([1, 0, 0, 0, 1, 1, 1, 0], bool)
    np.testing.assert_allclose(calibration_error(probability, novel), [0, 0.5], atol=1e-15)


@pytest.mark.requirement(139)
def test_levels_alone_report_novelty_too():
    """The first episode whose last prediction is above 0 counts as found."""
    by_level = made_up(np.zeros_like(PROBABILITY), LEVELS, threshold=1.0)
    both, alone = novelty_scores(made_up()).lifetime, novelty_scores(by_level).lifetime
    for name in ("true_alarm_rate", "false_alarm_rate", "cdt", "found"):
        np.testing.assert_array_equal(alone[name].values, both[name].values)


def test_the_report_has_intervals_over_lifetimes():
    records = made_up(np.tile(PROBABILITY, (4, 1)), np.tile(LEVELS, (4, 1)))
    report = summarise_records(records, window=1, seed=3)
    values = json.loads(json.dumps(report.to_json(), allow_nan=False))["novelty"]
    entry = values["metrics"]["true_alarm_rate"]
    interval = bootstrap_interval(np.array(4 * [4 / 8, 7 / 8]), 3, method="calibrated")
    assert (entry["mean"], entry["lifetimes"]) == (11 / 16, 8)
    assert (entry["low"], entry["high"]) == (float(interval.low), float(interval.high))
    assert [block["novel"] for block in values["blocks"]] == [False, True, True, False, True]
    missing = values["metrics"]["mean_delay"]["missing"]
    assert missing == {"lifetimes": 4, "reason": Reason.NOT_DETECTED.sentence}


def test_nothing_is_scored_where_nothing_is_predicted():
    silent = made_up(np.zeros_like(PROBABILITY), np.zeros_like(LEVELS), threshold=1.0)
    assert predictions_of(silent) is None
    assert "novelty" not in summarise_records(silent, window=1).to_json()


def test_false_alarms_are_scored_where_nothing_is_novel():
    block = Block(0, 1, "train", "CartPole3D", NOMINAL, 14, True)
    same = replace(made_up(), schedule=Schedule("same", (block,)), novelty_levels=np.zeros(1))
    lifetime = novelty_scores(same).lifetime
    expected = (PROBABILITY >= 0.5).mean(axis=1)
    np.testing.assert_allclose(lifetime["false_alarm_rate"].values, expected)
    assert lifetime["auc"].reasons.tolist() == [Reason.NO_NOVELTY] * 2
    content = summarise_records(same, window=1).to_json()["novelty"]
    assert content["metrics"]["false_alarm_rate"]["mean"] == pytest.approx(expected.mean())
    assert content["metrics"]["true_alarm_rate"]["mean"] is None


@pytest.mark.parametrize(
    ("task", "parameters", "novel"),
    [
        ("CartPole3D", (), False),
        ("CartPole3D", (("pole/length", 1.0),), False),
        ("CartPole3D", (("pole/length", 1.5),), True),
        ("CartPole3D", NOMINAL, False),
        ("Unheard", (("size", 1),), True),
    ],
)
def test_a_world_is_novel_where_it_is_not_the_default_one(task, parameters, novel):
    schedule = Schedule("one", (Block(0, 1, "train", task, parameters, 2, True),))
    assert novel_variants(schedule, np.zeros(1, np.int32)).tolist() == [novel]
