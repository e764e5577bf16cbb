"""The editions of the 2019 metrics against a slow twin, worked examples and their own outputs."""

import json
import math
from dataclasses import dataclass, replace
from functools import partial

import jax
import numpy as np
import pytest

from evaluation.l2m.report2019.precision import double_precision
from evaluation.l2m.report2019.table import load_table
from evaluation.metrics import Numbers, Reason, summarise
from evaluation.metrics.editions2019 import (
    average_learning,
    average_of,
    episodes_to_saturation,
    pair_changes,
    pair_first_training,
    recovery_since_change,
    saturation,
)
from evaluation.metrics.transfer2019 import (
    expert_values,
    pair_transfer,
    ste_relative,
    transfer,
    transfer_matrix,
)
from tests.conftest import SHARED

LEARNKIT = SHARED / "l2m" / "learnkit_2020"
recorded = pytest.mark.skipif(not LEARNKIT.is_dir(), reason=f"no recorded log at {LEARNKIT}")


@dataclass(frozen=True)
class Block:
    mode: str
    task: str
    parameters: tuple[object, ...] = ()
    phase: int = 1
    count: int = 1


TRAIN, TEST = "train", "test"
BEST = jax.jit(saturation, static_argnums=(2, 3))
TIME = jax.jit(episodes_to_saturation, static_argnums=(2, 3))
MATRIX = jax.jit(transfer_matrix)


def twin_series(block, window, edition):
    """Moving averages of one block, written as plainly as can be."""
    x = np.asarray(block, float)
    if edition == "2019":
        return np.convolve(x, np.ones(window) / window, "valid") if len(x) >= window else None
    if len(x) < window:
        if edition == "v0.2" or not len(x):
            return None
        window = len(x) // 2
        if window < 3:
            return x
    padded = np.pad(x, window - 1, "reflect") if window > 1 else x
    smooth = np.convolve(padded, np.ones(window) / window, "valid")
    if edition == "v0.2":
        return smooth
    start = max(window // 2 - 1, 0)
    return smooth[start : start + len(x)]


def padded(blocks):
    counts = np.array([len(block) for block in blocks])
    values = np.full((len(blocks), max(counts.max(), 1)), np.nan)
    for row, block in zip(values, blocks, strict=True):
        row[: len(block)] = block
    return values, counts


@pytest.mark.parametrize("edition", ["2019", "v0.2", "v0.3"])
@pytest.mark.parametrize("window", [1, 5, 11])
def test_an_edition_equals_its_twin_at_every_length(edition, window, x64):
    generator = np.random.default_rng(window)
    blocks = [generator.integers(0, 9, n) / 8 for n in range(0, 2 * window + 6)]
    values, counts = padded(blocks)
    best = BEST(values, counts, window, edition)
    time = TIME(values, counts, window, edition)
    for position, block in enumerate(blocks):
        series = twin_series(block, window, edition)
        if series is None:
            assert math.isnan(best.values[position])
            assert best.reasons[position] == time.reasons[position] == Reason.BLOCK_TOO_SHORT
            continue
        first = int(np.argmax(series >= series.max() - 1e-12))
        np.testing.assert_allclose(best.values[position], series.max(), rtol=1e-12)
        assert time.values[position] == first + (window if edition == "2019" else 0)


def test_values_that_are_not_finite_or_behind_the_end_are_told_apart():
    values = np.array([[1.0, np.inf, 1.0, 1.0], [1.0, 2.0, 3.0, np.inf]])
    for edition in ("v0.2", "v0.3"):
        result = BEST(values, np.array([4, 3]), 3, edition)
        assert result.reasons.tolist() == [Reason.NON_FINITE_VALUE, Reason.NONE]


def test_a_lifetime_alone_has_the_bits_it_has_in_a_batch():
    values = np.random.default_rng(2).normal(size=(9, 3, 30)).astype(np.float32)
    counts = np.array([30, 7, 12])
    blocks = [Block(TRAIN, "a"), Block(TRAIN, "b"), Block(TRAIN, "a")]
    training, expert = np.ones(3, bool), np.array([0.7, 0.3, 0.7])
    pairs, transfers = pair_changes(blocks), pair_transfer([*blocks[:2], Block(TEST, "a")])

    @jax.jit
    def everything(values):
        best = saturation(values, counts, 11, "v0.3")
        time = episodes_to_saturation(values, counts, 11, "v0.3")
        relative = ste_relative(best, expert)
        return (
            best,
            time,
            recovery_since_change(values, counts, pairs, 11, "v0.3"),
            average_of(values, abs(values), counts),
            average_learning(values, counts, time, training, "v0.3"),
            relative,
            transfer_matrix(relative, transfers.reverse),
        )

    together = everything(values)
    for lifetime in (0, 4, 8):
        alone = everything(values[lifetime : lifetime + 1])
        row = slice(lifetime, lifetime + 1)
        jax.tree.map(
            np.testing.assert_array_equal, alone, jax.tree.map(lambda x, r=row: x[r], together)
        )


def test_single_precision_is_within_rounding_of_double():
    values = np.random.default_rng(8).normal(size=(50, 4, 60))
    counts = np.array([60, 30, 8, 11])
    for edition in ("2019", "v0.2", "v0.3"):
        single = BEST(values.astype(np.float32), counts, 11, edition)
        with double_precision():
            double = BEST(values, counts, 11, edition)
        assert single.values.dtype == np.float32
        assert double.values.dtype == np.float64
        # Values are rounded (half an epsilon of at most 5), and so are the sums of 11 of them.
        np.testing.assert_allclose(single.values, double.values, rtol=0, atol=5e-6)
        np.testing.assert_array_equal(single.reasons, double.reasons)


# ------------------------------------------------------------------ pairs


def codes(pairing):
    return [int(code) for code in pairing.reasons]


def test_recovery_compares_with_the_training_before_whatever_its_task():
    blocks = [
        Block(TRAIN, "a", (1,)),
        Block(TEST, "a", (1,)),
        Block(TRAIN, "a", (1,)),
        Block(TRAIN, "a", (2,)),
        Block(TRAIN, "b", (2,)),
    ]
    pairing = pair_changes(blocks)
    assert codes(pairing) == [
        Reason.FIRST_TRAINING,
        Reason.NOT_A_TRAINING_BLOCK,
        Reason.NO_CHANGE,
        Reason.NONE,
        Reason.NONE,
    ]
    assert pairing.partners[3:].tolist() == [2, 3]


def test_recovery_is_the_first_window_that_is_back_or_says_never(x64):
    values, counts = padded([[0, 0, 4, 4, 4], [0, 0, 4, 4, 4], [9, 1, 1, 1, 1]])
    blocks = [Block(TRAIN, "a"), Block(TRAIN, "b"), Block(TRAIN, "a")]
    pairs = pair_changes(blocks)
    result = jax.jit(lambda *of: recovery_since_change(*of, pairs, 3, "v0.3"))(values, counts)
    # Windows of block 1, reflected at its edges: 4/3 (4, 0, 0 turned), 0, 4/3, 8/3, 4.
    assert result.values[1] == 4
    assert result.reasons[2] == Reason.NOT_RECOVERED
    with pytest.raises(ValueError, match="recovery_time"):
        recovery_since_change(values, counts, pairs, 3, "2019")


def test_a_difference_needs_training_in_an_earlier_phase_only():
    blocks = [
        Block(TRAIN, "a", phase=1),
        Block(TEST, "a", phase=1),
        Block(TEST, "b", phase=1),
        Block(TRAIN, "b", phase=2),
        Block(TEST, "a", phase=2),
        Block(TEST, "b", phase=2),
    ]
    pairing = pair_first_training(blocks)
    assert codes(pairing)[1:] == [
        Reason.TRAINED_IN_PHASE,
        Reason.NOT_TRAINED_IN_EARLIER_PHASE,
        Reason.NOT_A_TEST_BLOCK,
        Reason.NONE,
        Reason.TRAINED_IN_PHASE,
    ]
    assert pairing.partners[4] == 0


def kernel(values, reasons=None):
    values = np.asarray(values, np.float32)
    reasons = np.zeros(values.shape, np.int32) if reasons is None else np.asarray(reasons)
    return Numbers(jax.numpy.asarray(values), jax.numpy.asarray(reasons))


def test_experts_that_are_missing_or_zero_give_reasons_and_not_infinity():
    blocks = [Block(TRAIN, name) for name in ("a", "b", "c", "d")]
    experts = expert_values(blocks, {"a": 2.0, "b": 0.0, "d": -4.0})
    result = ste_relative(kernel([1.0, 1.0, 1.0, 1.0]), experts)
    np.testing.assert_array_equal(result.values, [0.5, np.nan, np.nan, -0.25])
    assert codes(result) == [
        Reason.NONE,
        Reason.ZERO_STE_SATURATION,
        Reason.NO_STE_SATURATION,
        Reason.NONE,
    ]


def parametric():
    """Two variants of a, tested with b; then b, tested with both; then a again."""
    return [
        Block(TRAIN, "a", (1,)),
        Block(TRAIN, "a", (2,)),
        Block(TEST, "a", (1,)),
        Block(TEST, "b", (1,)),
        Block(TRAIN, "b", (1,)),
        Block(TEST, "a", (1,)),
        Block(TEST, "a", (2,)),
        Block(TEST, "b", (1,)),
        Block(TEST, "c", (1,)),
    ]


def test_transfer_goes_from_what_was_trained_last():
    pairs = pair_transfer(parametric())
    assert pairs.units == ("a", "b", "c")
    assert np.flatnonzero(pairs.forward.reasons == Reason.NONE).tolist() == [3, 8]
    assert np.flatnonzero(pairs.reverse.reasons == Reason.NONE).tolist() == [5, 6]
    assert pairs.reverse.reasons[7] == pairs.reverse.reasons[2] == Reason.TRAINED_LAST
    relative = kernel(np.arange(9))
    forward, reverse = (MATRIX(relative, d) for d in (pairs.forward, pairs.reverse))
    nan = np.nan
    np.testing.assert_array_equal(forward.values, [[nan, 3, nan], [nan, nan, 8], [nan] * 3])
    np.testing.assert_array_equal(reverse.values, [[nan] * 3, [5.5, nan, nan], [nan] * 3])
    assert int(forward.reasons[0, 0]) == Reason.NO_TEST_OF_PAIR
    one_way = transfer(relative, pairs.forward)
    assert one_way.values[3] == 3
    assert one_way.reasons[5] == Reason.TRAINED_BEFORE


def test_variants_transfer_to_one_another():
    pairs = pair_transfer(parametric(), by="variant")
    source, target = pairs.units.index(("a", (2,))), pairs.units.index(("a", (1,)))
    assert pairs.reverse.cells[source, target].tolist()[0] == 2
    with pytest.raises(ValueError, match="'task' or 'variant'"):
        pair_transfer(parametric(), by="worker")


def test_a_cell_averages_the_tests_that_have_a_value_and_else_says_why():
    blocks = [Block(TRAIN, "a"), Block(TEST, "b"), Block(TEST, "b"), Block(TEST, "c")]
    relative = kernel(
        [1, np.nan, 3, np.nan], [0, Reason.BLOCK_TOO_SHORT, 0, Reason.NO_STE_SATURATION]
    )
    matrix = MATRIX(relative, pair_transfer(blocks).forward)
    assert matrix.values[0, 1] == 3
    assert matrix.reasons[0, 2] == Reason.NO_STE_SATURATION


def test_one_training_only_where_that_is_asked_for():
    pairs = pair_transfer(parametric(), single_training=True)
    assert pairs.forward.reasons[8] == Reason.NEVER_TRAINED
    assert pairs.reverse.reasons[5] == Reason.TOO_MANY_TRAININGS
    assert pairs.forward.reasons[3] == Reason.NONE


def test_a_test_before_any_training_transfers_nothing():
    pairs = pair_transfer([Block(TEST, "a"), Block(TRAIN, "a")])
    assert pairs.forward.reasons[0] == Reason.NOTHING_TRAINED_YET
    assert pairs.sources.tolist() == [-1, -1]


def test_transfer_of_many_lifetimes_at_once():
    blocks = [replace(block, count=9) for block in parametric()]
    values = np.random.default_rng(4).uniform(size=(20, 9, 12)).astype(np.float32)
    counts = np.array([block.count for block in blocks], np.int32)
    experts = expert_values(blocks, {"a": 0.5, "b": 2.0})

    @partial(jax.jit, static_argnames="by")
    def transfers(values, by="task"):
        pairs = pair_transfer(blocks, by)
        relative = ste_relative(saturation(values, counts, 5), experts)
        values = {"ste_relative_saturation_value": relative}
        for word, direction in (("forward", pairs.forward), ("reverse", pairs.reverse)):
            values[f"{word}_transfer"] = transfer(relative, direction)
            values[f"{word}_transfer_matrix"] = transfer_matrix(relative, direction)
        return values

    together = transfers(values)
    best = np.stack([np.convolve(row[:9], np.ones(5) / 5, "valid") for row in values[:, 3]])
    np.testing.assert_allclose(
        together["forward_transfer"].values[:, 3], best.max(axis=-1) / 2, rtol=1e-5
    )
    assert together["reverse_transfer_matrix"].values.shape == (20, 3, 3)
    alone = transfers(values[7:8])
    for name in together:
        np.testing.assert_array_equal(alone[name].values[0], together[name].values[7])
        np.testing.assert_array_equal(alone[name].reasons[0], together[name].reasons[7])
    variants = transfers(values, by="variant")
    assert variants["forward_transfer_matrix"].values.shape == (20, 4, 4)


# ------------------------------------------------------------------ averages


def test_averages_are_sums_over_sums():
    totals, steps = np.array([[6.0, 4.0, np.nan], [1.0, 1.0, 1.0]]), np.ones((2, 3))
    average = jax.jit(average_of)
    result = average(totals, steps * 5, np.array([2, 3]))
    np.testing.assert_allclose(result.values, [1.0, 0.2], rtol=1e-6)
    assert average(totals, 0 * steps, np.array([2, 0])).reasons.tolist() == [
        Reason.NO_STEPS,
        Reason.NO_EPISODES,
    ]


def test_average_learning_of_the_document_divides_by_the_episodes_it_sums():
    totals, counts = np.array([[1.0, 2.0, 3.0, 9.0]] * 2), np.array([4, 4])
    training = np.array([True, False])
    time = kernel([3, 3])
    assert average_learning(totals, counts, time, training).values[0] == 2.0
    # The package sums the episodes 0 to 3 and divides by 3.
    assert average_learning(totals, counts, time, training, "v0.3").values[0] == 5.0
    zero = average_learning(totals, counts, kernel([0, 0]), training, "v0.3")
    assert codes(zero) == [Reason.SATURATED_AT_ZERO, Reason.NOT_A_TRAINING_BLOCK]


def test_every_reason_has_its_own_sentence_and_code():
    sentences = [reason.sentence for reason in Reason if reason is not Reason.NONE]
    assert len(set(sentences)) == len(sentences)
    assert all(sentences)
    assert (Reason.OWN_TRAINING, Reason.NO_STE_SATURATION, Reason.NOT_RECOVERED) == (27, 101, 117)


def test_summaries_over_lifetimes_keep_the_reasons_of_2019():
    """Two lifetimes without a value, and what most of them lack."""
    never, none = Reason.NOT_RECOVERED, Reason.NONE
    metric = Numbers(np.array([[np.nan, 1.0], [np.nan, 2.0]]), np.array([[never, none]] * 2))
    summary = summarise(metric, resamples=10)
    assert summary.missing.tolist() == summary.reasons.tolist() == [never, none]


def test_an_unknown_edition_says_which_there_are():
    with pytest.raises(ValueError, match=r"2019, v0\.2, v0\.3, not '2021'"):
        saturation(np.ones((1, 3)), np.array([3]), 3, "2021")


# ------------------------------------------------------------------ what the packages computed


@pytest.fixture(scope="module")
def log():
    return load_table(next(LEARNKIT.glob("syllabus*")))


@recorded
def test_the_numbers_of_version_0_2(log, x64):
    text = (LEARNKIT / "out" / "v020_CL" / "metrics.json").read_text()
    (expected,) = json.loads(text)["metrics"].values()
    best = BEST(log.by_block("reward", "mean"), log.counts, 11, "v0.2")
    time = TIME(log.by_block("reward", "mean"), log.counts, 11, "v0.2")
    np.testing.assert_allclose(best.values, list(expected["saturation_value"].values()), rtol=1e-12)
    np.testing.assert_array_equal(time.values, list(expected["eps_to_saturation"].values()))
