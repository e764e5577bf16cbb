"""Metrics of novelty against worked examples, loops in Python and the JAX path."""

import itertools
import json
import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from evaluation.metrics import Numbers, Reason, bootstrap_interval
from evaluation.metrics.novelty import (
    Answers,
    Labels,
    Trials,
    amoc_delay,
    amoc_wsu,
    characterisation,
    confusion,
    correct_rejections,
    delay_of_detected,
    detection,
    kaplan_meier_median,
    measures,
    no_words,
    reaction,
    rows,
    slot_accuracy,
    threshold_index,
    window_of,
)
from evaluation.metrics.novelty.measures import SHARES, SLOTS
from evaluation.metrics.novelty.reaction import _below
from evaluation.metrics.statistics import wilson
from evaluation.metrics.table import bounds_of

PER_TRIAL = {
    "NRP_asym": "asymptotic_nrp",
    "NRP_init": "initial_nrp",
    "NRP_overall": "overall_nrp",
    "OPTI": "opti",
    "IPTI": "ipti",
    "APTI": "apti",
    "APTI_old": "apti_ratio",
    "z_alpha": "deviation",
    "z_beta": "deviation_baseline",
    "pre_a": "performance_pre",
    "post_a": "performance_post",
    "pre_b": "baseline_pre",
    "post_b": "baseline_post",
}
SUMMARY = {
    "M1": "mean_delay",
    "M2": "cdt",
    "M2_1": "false_alarms",
    "M2_2": "correct_rejections",
    "NRP_asym": "asymptotic_nrp",
    "NRP_init": "initial_nrp",
    "NRP_overall": "overall_nrp",
    "OPTI": "opti",
    "IPTI": "ipti",
    "APTI": "apti",
    "APTI_old": "apti_ratio",
    "AMOC": "amoc_wsu",
    "pre_a": "performance_pre",
    "post_a": "performance_post",
    "pre_b": "baseline_pre",
    "post_b": "baseline_post",
    "NRM_alpha": "robust",
    "NRM_beta": "robust_baseline",
}


def four_trials():
    """Trials A to D: found late, false alarm, never found, found at once."""
    base = [0.8, 1.0] * 4 + [0.5] * 12
    good = [1.0, 0.8] * 4 + [0.4, 0.6] + [0.7] * 8 + [0.9, 1.0]
    poor = [1.0, 0.8] * 4 + [0.5] * 12
    probability = [
        [0.1] * 8 + [0.2, 0.3, 0.4] + [0.6] * 9,
        [0.1] * 5 + [0.7, 0.1, 0.1] + [0.6] * 12,
        [0.1] * 8 + [0.2] * 12,
        [0.0] * 8 + [0.9] * 12,
    ]
    agent = np.array([good, poor, poor, good])
    return Trials(
        agent,
        np.array([base] * 4),
        np.array(probability),
        np.full((4, 20), 0.5),
        np.full(4, 8),
        np.full(4, 20),
    )


def trial(probability, button, threshold=0.5, performance=None, baseline=None):
    """One trial of a batch of one."""
    probability = np.array([probability], np.float64)
    nothing = np.full(probability.shape, np.nan)
    rows_of = [nothing if v is None else np.array([v], np.float64) for v in (performance, baseline)]
    length = probability.shape[1]
    thresholds = np.full(probability.shape, threshold)
    return Trials(*rows_of, probability, thresholds, np.array([button]), np.array([length]))


def labels(number, level=201, visibility=0):
    return Labels(
        np.full(number, level),
        np.full(number, "easy"),
        np.full(number, visibility),
        np.full(number, -1),
    )


def no_answers(number, digit=1):
    return Answers(
        np.full((number, 9), np.nan), np.full(number, digit), no_words(number), no_words(number)
    )


# The worked examples ------------------------------------------------------------------------------


def test_detection_of_the_first_example():
    counts = detection(four_trials())
    assert counts.false_positives.tolist() == [0, 1, 0, 0]
    assert counts.true_positives.tolist() == [9, 12, 0, 12]
    assert counts.true_negatives.tolist() == [8, 7, 8, 8]
    assert counts.delay.tolist() == [3, 0, 12, 0]
    assert counts.correct.tolist() == [True, False, False, True]
    share = correct_rejections(counts, four_trials())
    assert share.values.tolist() == [1, 0.875, 1, 1]
    assert amoc_wsu(four_trials()).tolist() == [1, 0.875, 1, 1]


def test_reaction_of_the_first_example():
    got = reaction(four_trials(), 2)
    expected = {
        "asymptotic_nrp": [1.055556, 0.555556, 0.555556, 1.055556],
        "initial_nrp": [0.555556] * 4,
        "overall_nrp": [0.787037, 0.555556, 0.555556, 0.787037],
        "opti": [0.586207, 0.5, 0.5, 0.586207],
        "ipti": [0.5] * 4,
        "apti": [0.655172, 0.5, 0.5, 0.655172],
        "apti_ratio": [1.9, 1, 1, 1.9],
        "deviation": [1.916667, 4, 4, 1.916667],
        "deviation_baseline": [4] * 4,
        "robust": [1, 0, 0, 1],
        "robust_baseline": [0] * 4,
    }
    # The example is printed with six decimals.
    for name, values in expected.items():
        np.testing.assert_allclose(getattr(got, name).values, values, atol=1e-6, err_msg=name)


def test_the_cell_of_the_first_example():
    (cell,) = (
        row
        for row in rows(four_trials(), labels(4), no_answers(4), 2, resamples=200)
        if row.kind == "cell"
    )
    assert (cell.level, cell.difficulty, cell.visibility, cell.trials) == (201, "easy", 0, 4)
    expected = {
        "cdt": 0.5,
        "mean_delay": 1.5,
        "false_alarms": 0.25,
        "correct_rejections": 0.96875,
        "asymptotic_nrp": 0.805556,
        "initial_nrp": 0.555556,
        "overall_nrp": 0.671296,
        "opti": 0.543103,
        "ipti": 0.5,
        "apti": 0.577586,
        "apti_ratio": 1.45,
        "amoc_wsu": 0.96875,
        "robust": 0.5,
        "robust_baseline": 0.0,
    }
    # The example is printed with six decimals.
    for name, value in expected.items():
        assert cell.values[name].values == pytest.approx(value, abs=1e-6), name
    # Delays of 0 and 3: Student's interval of two values is wide, but no delay is below 0.
    delay = cell.values["mean_delay"]
    half = stats.t.ppf(0.975, 1) * 1.5
    assert (delay.low, delay.high) == (0.0, pytest.approx(1.5 + half))


def test_the_example_on_file(recorded_data):
    expected = json.loads(recorded_data("sailon/expected.json").read_text())
    columns = [np.array([t[name] for t in expected["trials"]]) for name in ("perf", "base")]
    columns += [np.array([t[name] for t in expected["trials"]]) for name in ("prob", "thr")]
    button = np.array([t["tau"] for t in expected["trials"]])
    trials = Trials(*columns, button, np.full(4, 20))
    # The file has float64 numbers in full: only the order of sums differs.
    counts, reacted = detection(trials), reaction(trials, expected["m"])
    keys = ("FP", "TP", "FN", "TN", "CDT")
    for place, one in enumerate(expected["per_trial"]):
        got = (
            counts.false_positives,
            counts.true_positives,
            counts.delay,
            counts.true_negatives,
            counts.correct,
        )
        assert [int(column[place]) for column in got] == [one[name] for name in keys]
        assert amoc_wsu(trials)[place] == pytest.approx(one["AMOC"], abs=1e-12)
        for name, field in PER_TRIAL.items():
            value = getattr(reacted, field).values[place]
            assert value == pytest.approx(one[name], abs=1e-12), name
    cell = rows(trials, labels(4), no_answers(4), expected["m"], resamples=10)[0]
    assert set(SUMMARY) == set(expected["summary"])
    for name, field in SUMMARY.items():
        assert cell.values[field].values == pytest.approx(expected["summary"][name], abs=1e-12), (
            name
        )


def test_areas_of_the_second_example():
    probability = np.zeros(10)
    probability[[1, 2, 5, 6, 8]] = 0.9, 0.2, 0.1, 0.8, 0.3
    # Printed with six decimals.
    assert amoc_wsu(trial(probability, 4))[0] == pytest.approx(0.416667, abs=1e-6)
    early, late = [0.3] * 4 + [0] * 6, [0] * 4 + [0.3] * 6
    got = [amoc_wsu(trial(p, 4))[0] for p in ([0] * 10, early, late, [0.5] * 10)]
    assert got == [0, 0, 1, 0]


def test_level_zero_of_the_third_example():
    one = trial([0] * 9 + [0.7], 10)
    counts = detection(one)
    assert (counts.false_positives[0], bool(counts.correct[0])) == (1, False)
    assert correct_rejections(counts, one).values[0] == pytest.approx(0.9)
    assert amoc_wsu(one)[0] == 0
    numbers = measures(one, no_answers(1, 0), [False], 1)
    assert numbers["false_alarms"].values[0] == 1
    for name in ("cdt", "found", "mean_delay", "amoc_wsu", "asymptotic_nrp", "opti"):
        assert numbers[name].reasons[0] == Reason.NO_NOVELTY, name
    quiet = trial([0] * 10, 10)
    assert detection(quiet).false_positives[0] == 0
    assert correct_rejections(detection(quiet), quiet).values[0] == 1


def test_detection_index_of_the_fourth_example():
    novel = np.array([0, 0, 0, 1, 1, 1], bool)
    probability = np.array([0.1, 0.2, 0.6, 0.3, 0.7, 0.9])
    early, right, never = (threshold_index(novel, probability, limit) for limit in (0.5, 0.7, 0.95))
    assert (early.truth, early.reported, early.correct, early.needed) == (4, 3, False, 2)
    assert (right.reported, right.correct, right.needed) == (5, True, 2)
    assert (never.reported, never.correct, never.needed) == (7, False, 1)


def test_characterisation_of_the_example():
    probabilities = np.zeros((2, 9))
    probabilities[:, [0, 3, 7]] = 0.2, 0.5, 0.3
    got = characterisation(probabilities, np.array([3, 7]))
    assert got.accuracy.values.tolist() == [1, 0]
    # Logarithms are printed with six decimals; Brier scores are exact but for rounding in float64.
    np.testing.assert_allclose(got.log_score.values, [0.693147, 1.203973], atol=1e-6)
    np.testing.assert_allclose(got.brier.values, [0.38, 0.78], atol=1e-12)


# Edges --------------------------------------------------------------------------------------------


def test_ties_zeros_and_silence_in_characterisations():
    probabilities = np.array([[0.5] * 9, [0.0] * 9, [math.nan] * 9])
    got = characterisation(probabilities, np.array([0, 0, 0]))
    assert got.accuracy.values[:2].tolist() == [1, 0]
    assert got.log_score.values[1] == pytest.approx(-math.log(1e-6))
    assert got.accuracy.reasons.tolist() == [0, 0, Reason.NOT_CHARACTERISED]
    words = slot_accuracy(np.array([1, 0, -1, 1]), np.array([1, 1, 1, -1]))
    assert words.values[:2].tolist() == [1, 0]
    assert words.reasons[2:].tolist() == [Reason.NOT_CHARACTERISED, Reason.NOTHING_TO_NAME]


def test_nothing_is_divided_by_nothing():
    zeros = trial([0] * 4, 2, performance=[0] * 4, baseline=[0] * 4)
    got = reaction(zeros, 1)
    for name in (
        "asymptotic_nrp",
        "initial_nrp",
        "overall_nrp",
        "opti",
        "ipti",
        "apti",
        "apti_ratio",
    ):
        assert getattr(got, name).reasons[0] == Reason.ZERO_BASELINE, name
    theirs = reaction(zeros, 1, wsu=True)
    assert [theirs.asymptotic_nrp.values[0], theirs.opti.values[0]] == [0, 0]
    # A mean that does not move at all is robust, one that moves without any spread is not.
    assert got.robust.values[0] == 1
    moved = trial([0] * 4, 2, performance=[1, 1, 0.5, 0.5], baseline=[1] * 4)
    assert reaction(moved, 1).robust.values[0] == 0
    at_once = trial([0] * 3, 0, performance=[1] * 3, baseline=[1] * 3)
    share = correct_rejections(detection(at_once), at_once)
    assert share.reasons[0] == Reason.NOTHING_BEFORE
    assert correct_rejections(detection(at_once), at_once, wsu=True).values[0] == 0
    assert reaction(at_once, 1).asymptotic_nrp.reasons[0] == Reason.NOTHING_BEFORE


@pytest.mark.parametrize("level", [0.235, 0.9, 0.1])
def test_a_rounding_error_is_no_spread(level):
    """The mean of equal performances may differ from them in the last bit."""
    steady = trial([0.1] * 14, 7, performance=[level] * 14, baseline=[level] * 14)
    got = reaction(steady, 2)
    assert got.robust.values[0] == 1 and got.deviation.values[0] < 1e-9
    moved = trial([0.1] * 14, 7, performance=[level] * 7 + [level + 0.005] * 7)
    assert reaction(moved, 2).deviation.values[0] == pytest.approx(500)  # 0.005 over 1e-5


def test_why_a_reaction_is_missing():
    unplayed = trial([0] * 4, 2, performance=[1, 1, 1, math.nan], baseline=[1] * 4)
    got = reaction(unplayed, 1)
    assert got.asymptotic_nrp.reasons[0] == Reason.NOT_PLAYED
    assert got.initial_nrp.values[0] == 1
    alone = reaction(trial([0] * 4, 2, performance=[1] * 4), 1)
    assert alone.asymptotic_nrp.reasons[0] == Reason.NO_BASELINE
    assert alone.performance_pre.values[0] == 1
    short = reaction(trial([0] * 4, 2, performance=[1] * 4, baseline=[1] * 4), 0)
    assert short.asymptotic_nrp.reasons[0] == Reason.WINDOW_EMPTY
    assert window_of(20) == 2


def test_an_episode_without_a_report_is_not_flagged():
    one = trial([0, math.nan, math.nan, 0.9], 2)
    counts = detection(one)
    assert (counts.false_positives[0], counts.delay[0], bool(counts.correct[0])) == (0, 1, True)
    assert amoc_wsu(one)[0] == 1


def trapezoids(points):
    pairs = itertools.pairwise(points)
    return sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairs)


def slow_amoc(probability, button):
    """The area by the definition, alarm by alarm."""
    length = len(probability)
    n = length - button + 1
    alarms = [e for e in range(length) if probability[e] > 0]
    alarms.sort(key=lambda e: (-probability[e], e))
    f, s, best, points = 0, 0.0, None, [(0.0, 0.0)]
    for e in alarms:
        if e < button:
            f += 1
        elif best is None or e < best:
            best, s = e, (n - (e - button)) / n
        points.append((float(f), s))
    last_f, last_s = points[-1]
    scaled = [(x / last_f if last_f else x, y / last_s if last_s else y) for x, y in points]
    scaled.append((1.0, scaled[-1][1]))
    return trapezoids(scaled)


def slow_delay(probability, button):
    """The other area, threshold by threshold."""
    length = len(probability)
    points = [(0.0, 1.0)]
    for limit in sorted({p for p in probability if p > 0}, reverse=True):
        flags = [p >= limit for p in probability]
        hits = [e for e in range(button, length) if flags[e]]
        missed = (hits[0] if hits else length) - button
        points.append((sum(flags[:button]) / button, missed / (length - button)))
    points.append((1.0, points[-1][1]))
    return trapezoids(points)


def test_areas_are_those_of_their_definitions():
    draws = np.random.default_rng(0)
    probability = np.round(draws.uniform(size=(200, 12)), 1) * (draws.uniform(size=(200, 12)) < 0.6)
    button = draws.integers(1, 12, 200)
    nothing = np.zeros_like(probability)
    batch = Trials(nothing, nothing, probability, nothing, button, np.full(200, 12))
    pairs = [(p, int(b)) for p, b in zip(probability.tolist(), button, strict=True)]
    # The same sums in float64 in another order.
    np.testing.assert_allclose(amoc_wsu(batch), [slow_amoc(*pair) for pair in pairs], atol=1e-12)
    np.testing.assert_allclose(amoc_delay(batch), [slow_delay(*pair) for pair in pairs], atol=1e-12)


def test_late_alarms_cost_in_the_second_area_only():
    late, soon = [0] * 4 + [0] * 5 + [0.9], [0] * 4 + [0.9] * 6
    assert [amoc_wsu(trial(p, 4))[0] for p in (late, soon)] == [1, 1]
    assert [amoc_delay(trial(p, 4))[0] for p in (late, soon)] == pytest.approx([5 / 6, 0])
    assert amoc_delay(trial([0] * 10, 4))[0] == 1


def test_padding_and_company_change_nothing():
    whole = four_trials()
    alone = [Trials(*(leaf[k : k + 1] for leaf in whole)) for k in range(4)]
    wide = Trials(
        *(np.pad(leaf, ((0, 0), (0, 3)), constant_values=0.99) for leaf in whole[:4]), *whole[4:]
    )
    answers, visible = no_answers(4), [False] * 4
    batch = measures(whole, answers, visible, 2)
    padded = measures(wide, answers, visible, 2)
    for name, both in batch.items():
        np.testing.assert_array_equal(padded[name].values, both.values, err_msg=name)
        for k, one in enumerate(alone):
            got = measures(one, no_answers(1), [False], 2)[name]
            np.testing.assert_array_equal(got.values[0], both.values[k], err_msg=name)
            assert got.reasons[0] == both.reasons[k]


def test_reactions_are_measures_under_their_own_names():
    whole = four_trials()
    measured, reacted = measures(whole, no_answers(4), [False] * 4, 2), reaction(whole, 2, False)
    for name, expected in reacted._asdict().items():
        np.testing.assert_array_equal(measured[name].values, expected.values, err_msg=name)


def test_kernels_run_under_jit():
    whole = four_trials()

    @jax.jit
    def all_of(trials):
        return (
            detection(trials),
            reaction(trials, 2),
            amoc_wsu(trials),
            amoc_delay(trials),
            delay_of_detected(detection(trials), trials),
        )

    ours = all_of(Trials(*map(jnp.asarray, whole)))
    plain = (
        detection(whole),
        reaction(whole, 2),
        amoc_wsu(whole),
        amoc_delay(whole),
        delay_of_detected(detection(whole), whole),
    )
    for got, expected in zip(jax.tree.leaves(ours), jax.tree.leaves(plain), strict=True):
        # JAX computes in float32 here, NumPy in float64: sums of 12 terms, rounded at 6e-8 each.
        np.testing.assert_allclose(got, expected, rtol=2e-6)


# Rows ---------------------------------------------------------------------------------------------


def mixed_rows():
    """Two levels and level 200, two of each told of it, so that a pooled mean is no mean of means.

    Trials B and D are of level 203, A and C of 201; A, B, C and D again are told of it.
    """
    one = four_trials()
    quiet = trial([0.1] * 20, 20, performance=[1.0] * 20, baseline=[0.5] * 20)
    whole = Trials(*(np.concatenate([a, a, b]) for a, b in zip(one, quiet, strict=True)))
    level = np.array([201, 203, 201, 201, 201, 203, 201, 203, 200])
    visibility = np.array([0] * 4 + [1] * 4 + [0])
    labels = Labels(level, np.array(["easy", "hard"] * 4 + ["easy"]), visibility, np.full(9, -1))
    return rows(whole, labels, no_answers(9), 2, resamples=100)


def test_rows_pool_trials_and_keep_level_200_apart():
    by_cell = {(r.kind, r.level, r.difficulty, r.visibility): r for r in mixed_rows()}
    overall = by_cell["all", None, None, 0]
    assert overall.trials == 4
    assert overall.values["cdt"].values == 0.5
    # Three trials of level 201 and one of 203: not the mean of the two levels' shares.
    assert by_cell["level", 201, None, 0].values["cdt"].values == pytest.approx(2 / 3)
    assert by_cell["level", 203, None, 0].values["cdt"].values == 0
    assert by_cell["difficulty", None, "easy", 0].trials == 2
    nominal = by_cell["cell", 200, "easy", 0]
    assert np.isnan(nominal.values["cdt"].values)
    assert nominal.values["cdt"].reasons == Reason.NO_NOVELTY
    assert nominal.values["false_alarms"].values == 0
    visible = by_cell["cell", 201, "easy", 1]
    assert visible.values["cdt"].reasons == Reason.VISIBLE
    assert np.isfinite(visible.values["asymptotic_nrp"].values)


def test_a_cell_without_a_detected_trial_has_no_delay():
    silent = Trials(*(leaf[2:3] for leaf in four_trials()))
    cell = rows(silent, labels(1), no_answers(1), 2, resamples=10)[0]
    assert np.isnan(cell.values["mean_delay"].values)
    assert cell.values["mean_delay"].reasons == Reason.NOT_DETECTED
    assert cell.values["censored_median_delay"].reasons == Reason.NOT_DETECTED
    theirs = rows(silent, labels(1), no_answers(1), 2, resamples=10, wsu=True)[0]
    assert theirs.values["mean_delay"].values == 0


def test_every_value_of_a_cell_is_the_statistic_of_its_trials():
    """Means and a median with bootstrap intervals of the seed, shares with those of Wilson."""
    random = np.random.default_rng(1)
    number, episodes = 9, 12
    novel = np.arange(episodes) >= 4
    probability = random.uniform(0.0, 0.4, (number, episodes))
    for place in range(number - 1):  # the last one detects nothing; delays are 0, 1, ..., 7
        probability[place, 4 + place] = 0.9
    many = Trials(
        random.uniform(0.2, 1, (number, episodes)) - 0.1 * novel,
        random.uniform(0.2, 1, (number, episodes)),
        probability,
        np.full((number, episodes), 0.5),
        np.full(number, 4),
        np.full(number, episodes),
    )
    (cell, *_) = rows(many, labels(number), no_answers(number), 3, seed=7, resamples=50)
    per_trial = measures(many, no_answers(number), np.zeros(number, bool), 3)
    assert sorted(per_trial["mean_delay"].values[:-1].tolist()) == list(range(8))
    bounds = bounds_of(unit=True)
    for name, numbers in per_trial.items():
        finite = numbers.values[np.isfinite(numbers.values)]
        value = cell.values[name]
        assert cell.counts[name] == len(finite), name
        if not len(finite):
            assert np.isnan(value.values) and value.reasons != Reason.NONE, name
            continue
        assert value.values == pytest.approx(finite.mean(), rel=1e-12), name
        if name in SHARES:
            ends = wilson(int(finite.sum()), len(finite), 0.95)
        else:
            interval = bootstrap_interval(numbers.values, 7, 0.95, 50, bounds=bounds[name])
            ends = float(interval.low), float(interval.high)
        np.testing.assert_allclose((value.low, value.high), ends, rtol=1e-12, err_msg=name)
    interval = bootstrap_interval(per_trial["mean_delay"].values, 7, 0.95, 50, "median")
    median = cell.values["median_delay"]
    assert (median.values, cell.counts["median_delay"]) == (3.5, 8)
    assert (median.low, median.high) == (float(interval.low), float(interval.high))
    censored = cell.values["censored_median_delay"]
    assert (censored.values, cell.counts["censored_median_delay"]) == (4.0, number)
    assert censored.low < 4 < censored.high


def test_bounds_hold_where_all_values_of_a_row_lie_between_them():
    """Tables of other programs may have performances that are not between 0 and 1."""
    performance = np.ones((4, 20))
    performance[3, 8:] = 0.4
    for scale in (1, 200):
        trials = four_trials()._replace(performance=scale * performance)
        cell, *_ = rows(trials, labels(4), no_answers(4), 2, resamples=50)
        mean, half = 0.85 * scale, stats.t.ppf(0.975, 3) * 0.15 * scale
        post = cell.values["performance_post"]
        assert (post.values, post.low) == (pytest.approx(mean), pytest.approx(mean - half))
        assert post.high == (1.0 if scale == 1 else pytest.approx(mean + half))
        assert cell.values["correct_rejections"].high == 1.0


def test_intervals_of_a_list_are_over_its_novelties():
    """Trials of one novelty are alike, so ten of them say hardly more than one."""
    random = np.random.default_rng(4)
    number, each, episodes = 12, 5, 12
    clusters = random.permutation(np.repeat(np.arange(number) + 7, each))
    detected = random.uniform(size=number + 7) < 0.6
    level = random.uniform(0.3, 0.9, number + 7)
    trials = Trials(
        np.clip(level[clusters][:, None] + random.normal(0, 0.02, (60, episodes)), 0, 1),
        np.full((60, episodes), 0.5),
        np.where(
            detected[clusters][:, None] & (np.arange(episodes) >= 6 + clusters[:, None] % 4), 0.9, 0
        ),
        np.full((60, episodes), 0.5),
        np.full(60, 4),
        np.full(60, episodes),
    )
    alone, listed = (
        rows(trials, replace(labels(60), clusters=of), no_answers(60), 2, seed=3)[0]
        for of in (None, clusters)
    )
    per_novelty = trials.performance[:, 4:].mean(1)[np.argsort(clusters, kind="stable")]
    half = stats.sem(per_novelty.reshape(number, each).mean(1)) * stats.t.ppf(0.975, number - 1)
    post = listed.values["performance_post"]
    assert post.values == alone.values["performance_post"].values
    assert post.low <= post.values - half + 1e-9 and post.high >= post.values + half - 1e-9
    assert post.high - post.low > 1.8 * (
        alone.values["performance_post"].high - alone.values["performance_post"].low
    )
    share = detected[7:].mean()
    ends = wilson(share * (number - 1), number - 1, 0.95)  # each novelty is one hit or miss
    cdt = listed.values["cdt"]
    assert (cdt.values, cdt.low, cdt.high) == pytest.approx((share, *ends), abs=0.01)
    delays = {int(label % 4) + 2 for label in clusters if detected[label]}
    for name in ("median_delay", "censored_median_delay"):
        one, many = listed.values[name], alone.values[name]
        assert one.values == many.values and {one.low, many.low} <= delays
        assert not one.low > many.low  # more uncertain
        assert np.isnan(one.high) or one.high >= many.high


def test_each_word_of_an_answer_is_compared_with_its_own():
    words, truth = np.array([[0, 1, 2], [5, 4, 3]]), np.array([[0, 9, 2], [3, 4, 3]])
    answers = Answers(np.full((2, 9), np.nan), np.full(2, 3), words, truth)
    two = Trials(*(leaf[:2] for leaf in four_trials()))
    values = measures(two, answers, np.zeros(2, bool), 2)
    named = {name: values[f"{name}_accuracy"].values.tolist() for name in SLOTS}
    assert named == {"entity": [1, 0], "attribute": [0, 1], "change": [1, 1]}


def test_an_agent_that_names_in_some_trials_is_wrong_where_it_names_nothing():
    levels, words = np.full((4, 9), np.nan), np.full((4, 3), -1)
    levels[1], words[1] = np.eye(9)[3], [0, -1, 2]
    truth = np.tile([0, 1, 2], (4, 1))
    values = measures(
        four_trials(), Answers(levels, np.full(4, 3), words, truth), np.zeros(4, bool), 2
    )
    assert values["level_accuracy"].values.tolist() == [0, 1, 0, 0]
    np.testing.assert_array_equal(values["level_log_score"].values, -np.log([1e-6, 1, 1e-6, 1e-6]))
    assert values["level_brier"].values.tolist() == [1, 0, 1, 1]
    assert values["entity_accuracy"].values.tolist() == [0, 1, 0, 0]
    assert values["change_accuracy"].values.tolist() == [0, 1, 0, 0]
    quiet = measures(
        four_trials(), Answers(levels, np.array([0, 3, 3, 3]), words, truth), np.zeros(4, bool), 2
    )["level_accuracy"]
    assert quiet.reasons.tolist() == [Reason.NOT_CHARACTERISED, 0, 0, 0]
    # It names no attribute at all.
    assert set(values["attribute_accuracy"].reasons.tolist()) == {Reason.NOT_CHARACTERISED}


def test_a_deviation_of_two_is_not_robust():
    deviation = Numbers(np.array([1.99, 2.0, 2.01, np.nan]), np.array([0, 0, 0, 5]))
    robust = _below(deviation)
    np.testing.assert_array_equal(robust.values, [1.0, 0.0, 0.0, np.nan])
    assert robust.reasons.tolist() == [0, 0, 0, 5]


def test_intervals_of_shares_are_wilson_s():
    low, high = wilson(15, 30, 0.95)
    # The half width of 15 of 30, by hand with three decimals.
    assert (high - low) / 2 == pytest.approx(0.168, abs=5e-4)
    assert all(wilson(0, n, 0.95)[0] == 0 and wilson(n, n, 0.95)[1] == 1 for n in range(1, 101))


def test_median_delays_with_trials_cut_off():
    is_event = np.array([True, True, False, False])
    delay = np.array([1, 3, 5, 5])
    once = np.ones((1, 4))
    assert kaplan_meier_median(delay, is_event, once).tolist() == [3]
    assert kaplan_meier_median(delay, np.zeros(4, bool), once).tolist() == [math.inf]
    # An early end of watching takes a trial from those at risk: 1/3 then 1/2 of the rest fall.
    cut = kaplan_meier_median(np.array([2, 1, 3]), np.array([True, False, True]), np.ones((1, 3)))
    assert cut.tolist() == [2]


@pytest.mark.parametrize("trials", range(2, 60))
def test_the_median_delay_does_not_depend_on_rounding(trials):
    """With nothing cut off it is the lower median; with half never detected, the last that is."""
    delay, once = np.arange(trials), np.ones((1, trials))
    every = np.ones(trials, bool)
    assert kaplan_meier_median(delay, every, once).tolist() == [-(-trials // 2) - 1]
    censored = np.append(delay, np.full(trials, trials))
    detected, twice = np.arange(2 * trials) < trials, np.ones((1, 2 * trials))
    assert kaplan_meier_median(censored, detected, twice).tolist() == [trials - 1]


def test_confusion_of_instances():
    novel = np.array([0, 0, 1, 1], bool)
    got = confusion(novel, np.array([0.6, 0.1, 0.9, 0.2]), 0.5)
    assert [int(n) for n in got[:4]] == [1, 1, 1, 1]
    assert [float(n) for n in got[4:]] == [0.5] * 4
    none = confusion(~novel[:2] & False, np.zeros(2), 0.5)
    assert [float(n) for n in none[4:]] == [1, 0, 0, 0]
