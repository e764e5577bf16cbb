"""The 2019 metrics against a slow twin in exact fractions, worked examples and a real log."""

import csv
import json
import math
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.metrics import (
    METRIC_NAMES,
    Numbers,
    Pairing,
    Reason,
    block_metrics,
    moving_average,
    normalized_integral,
    pair_blocks,
    performance_maintenance,
    recovery_time,
    saturation_value,
    time_to_saturation,
)

STEPS = 200  # performance in the tests is a whole number of these
ALONE = Pairing(np.zeros(1, np.int32), np.zeros(1, np.int32))
RECOVERY = partial(recovery_time, pairing=ALONE)


@dataclass(frozen=True)
class Block:
    mode: str
    task: str
    parameters: tuple[object, ...]
    count: int


# ------------------------------------------------------------------ the slow, obvious twin


def twin_windows(block, window):
    return [Fraction(sum(block[i : i + window]), window) for i in range(len(block) - window + 1)]


def twin_saturation(block, window):
    windows = twin_windows(block, window)
    return max(windows) if windows else Reason.BLOCK_TOO_SHORT


def twin_time(block, window):
    windows = twin_windows(block, window)
    return windows.index(max(windows)) + window if windows else Reason.BLOCK_TOO_SHORT


def twin_integral(block, window):
    windows = twin_windows(block, window)
    return sum(windows) / len(block) if windows else Reason.BLOCK_TOO_SHORT


def twin_recovery(blocks, position, performance, window):
    if blocks[position].mode != "train":
        return Reason.NOT_A_TRAINING_BLOCK
    for later in range(position + 1, len(blocks)):
        if (blocks[later].mode, blocks[later].task) == ("train", blocks[position].task):
            break
    else:
        return Reason.NO_LATER_TRAINING
    best = twin_saturation(performance[position], window)
    if isinstance(best, Reason):
        return best
    windows = twin_windows(performance[later], window)
    if not windows:
        return Reason.PARTNER_TOO_SHORT
    for first, mean in enumerate(windows):
        if mean >= best - Fraction(2, 100) * abs(best):
            return first + window
    return Reason.NEVER_RECOVERED


def twin_maintenance(blocks, position, performance, window, metric):
    if blocks[position].mode != "test":
        return Reason.NOT_A_TEST_BLOCK
    for earlier in reversed(range(position)):
        same = (blocks[earlier].task, blocks[earlier].parameters) == (
            blocks[position].task,
            blocks[position].parameters,
        )
        if same and blocks[earlier].mode == "train":
            break
    else:
        return Reason.NOT_TRAINED_BEFORE
    tested, trained = metric(performance[position], window), metric(performance[earlier], window)
    if isinstance(tested, Reason):
        return tested
    return Reason.PARTNER_TOO_SHORT if isinstance(trained, Reason) else trained - tested


def twin_metrics(blocks, performance, window):
    everything = range(len(blocks))
    return {
        "saturation_value": [twin_saturation(block, window) for block in performance],
        "time_to_saturation": [twin_time(block, window) for block in performance],
        "normalized_integral": [twin_integral(block, window) for block in performance],
        "recovery_time": [twin_recovery(blocks, b, performance, window) for b in everything],
        "performance_maintenance_saturation_value": [
            twin_maintenance(blocks, b, performance, window, twin_saturation) for b in everything
        ],
        "performance_maintenance_time_to_saturation": [
            twin_maintenance(blocks, b, performance, window, twin_time) for b in everything
        ],
    }


def assert_equals_twin(result, expected, lifetime, tolerance):
    assert set(expected) == set(METRIC_NAMES), "twin_metrics has each metric, and no other"
    for name in METRIC_NAMES:
        for block, want in enumerate(expected[name]):
            value = float(result[name].values[lifetime, block])
            reason = Reason(int(result[name].reasons[lifetime, block]))
            if isinstance(want, Reason):
                assert math.isnan(value), (name, block)
                assert reason is want, (name, block)
                continue
            assert reason is Reason.NONE, (name, block)
            slack = 0 if "time" in name else tolerance
            assert abs(value - float(want)) <= slack, (name, block)


# ------------------------------------------------------------------ random schedules

BLOCKS = 7
EPISODES = 24


@st.composite
def lifetimes(draw):
    """A schedule and one lifetime of it, in whole steps; short and repetitive on purpose."""
    blocks = [
        Block(
            draw(st.sampled_from(["train", "test"])),
            draw(st.sampled_from("ab")),
            (draw(st.sampled_from([1, 2])),),
            draw(st.integers(0, EPISODES)),
        )
        for _ in range(BLOCKS)
    ]
    level = st.integers(-STEPS, STEPS) if draw(st.booleans()) else st.integers(48, 51)
    performance = [draw(st.lists(level, min_size=b.count, max_size=b.count)) for b in blocks]
    return blocks, performance


def padded(performance, dtype, fill=np.nan):
    values = np.full((1, len(performance), EPISODES), fill, dtype)
    for row, block in zip(values[0], performance, strict=True):
        row[: len(block)] = np.array(block) / STEPS
    return values


@pytest.mark.requirement(113)
@pytest.mark.parametrize("window", [1, 5])
@settings(max_examples=60, deadline=None, derandomize=True)
@given(case=lifetimes())
def test_every_metric_equals_the_exact_twin(case, window):
    blocks, performance = case
    exact = [[Fraction(step, STEPS) for step in block] for block in performance]
    result = block_metrics(padded(performance, np.float32), blocks, window)
    assert_equals_twin(result, twin_metrics(blocks, exact, window), 0, 3e-6)


def test_float64_stays_float64_and_is_closer():
    generator = np.random.default_rng(1)
    blocks = [Block("train", "a", (), EPISODES), Block("test", "a", (), EPISODES)]
    performance = generator.integers(0, STEPS, (2, EPISODES)).tolist()
    exact = [[Fraction(step, STEPS) for step in block] for block in performance]
    with jax.enable_x64(True):
        result = block_metrics(padded(performance, np.float64), blocks, 5)
        assert {metric.values.dtype for metric in result.values()} == {jnp.dtype("float64")}
        assert {metric.reasons.dtype for metric in result.values()} == {jnp.dtype("int32")}
        assert_equals_twin(result, twin_metrics(blocks, exact, 5), 0, 1e-15)
    single = block_metrics(padded(performance, np.float32), blocks, 5)
    assert {metric.values.dtype for metric in single.values()} == {jnp.dtype("float32")}


# ------------------------------------------------------------------ worked examples


@cache
def compiled(kernel, *arguments, **options):
    """A kernel as one program, of which calls take values and counts."""
    return jax.jit(lambda values, counts: kernel(values, counts, *arguments, **options))


def single(kernel, episodes, *args, **kwargs):
    values = np.full((1, EPISODES), np.nan, np.float32)
    values[0, : len(episodes)] = episodes
    result = compiled(kernel, *args, **kwargs)(values, np.array([len(episodes)]))
    return float(result.values[0]), Reason(int(result.reasons[0]))


RAMP = [0, 0, 3, 6, 9, 9, 9, 0]  # windows of 3: 1 3 6 8 9 6


@pytest.mark.requirement(113, 114, 115)
def test_worked_example_within_a_block():
    np.testing.assert_allclose(moving_average(np.array(RAMP), 3), [1, 3, 6, 8, 9, 6], rtol=1e-6)
    assert single(saturation_value, RAMP, 3) == (9, Reason.NONE)
    assert single(time_to_saturation, RAMP, 3) == (7, Reason.NONE)
    assert single(time_to_saturation, RAMP, 3, "start") == (5, Reason.NONE)
    assert single(time_to_saturation, RAMP, 3, "centre") == (6, Reason.NONE)
    assert single(normalized_integral, RAMP, 3)[0] == pytest.approx(33 / 8)
    assert single(normalized_integral, RAMP, 3, length="windows")[0] == pytest.approx(33 / 6)


@pytest.mark.requirement(116)
def test_worked_example_between_blocks():
    blocks = [
        Block("train", "pole", ("long",), 4),
        Block("test", "pole", ("long",), 3),
        Block("train", "pole", ("short",), 6),
        Block("test", "pole", ("long",), 3),
        Block("test", "pole", ("short",), 3),
        Block("test", "cart", ("long",), 3),
    ]
    performance = [
        [0, 100, 100, 100],  # saturation 100 at episode 4
        [100, 100, 100],  # kept
        [0, 98, 98, 98, 100, 100],  # 98 is within 2 %, at episode 4; 298/3 at episode 6
        [70, 70, 70],  # 30 lower than when trained
        [100, 100, 100],  # better than when trained
        [0, 0, 0],
    ]
    values = padded([[STEPS * x for x in block] for block in performance], np.float32)
    result = block_metrics(values, blocks, 3)
    assert list(result) == list(METRIC_NAMES)
    table = {name: np.asarray(metric.values[0]) for name, metric in result.items()}
    nan = np.nan
    np.testing.assert_allclose(table["recovery_time"], [4, nan, nan, nan, nan, nan])
    np.testing.assert_allclose(
        table["performance_maintenance_saturation_value"],
        [nan, 0, nan, 30, 298 / 3 - 100, nan],
        rtol=1e-6,
        atol=1e-5,  # a difference of two numbers near 100 in float32
    )
    np.testing.assert_allclose(
        table["performance_maintenance_time_to_saturation"], [nan, 1, nan, 1, 3, nan]
    )
    reasons = result["performance_maintenance_saturation_value"].reasons[0]
    assert Reason(int(reasons[5])) is Reason.NOT_TRAINED_BEFORE
    assert Reason(int(result["recovery_time"].reasons[0, 2])) is Reason.NO_LATER_TRAINING


@pytest.mark.parametrize("level", [0.1, -0.1, 1 / 3, 0.0, -7.3])
def test_a_constant_block_saturates_in_its_first_window(level):
    episodes = [level] * 24
    assert single(saturation_value, episodes)[0] == pytest.approx(level, rel=1e-6)
    assert single(time_to_saturation, episodes) == (11, Reason.NONE)
    assert single(RECOVERY, episodes) == (11, Reason.NONE)


def test_equal_means_in_another_order_are_a_tie():
    tens = [0.1, 0.2, 0.3, 0.7, 0.6]  # rotations differ in their last bit when they are summed
    assert single(time_to_saturation, tens * 4, 5) == (5, Reason.NONE)


@pytest.mark.requirement(116)
def test_recovery_of_negative_performance_may_be_lower_not_higher():
    values = jnp.array([[-1.0] * 3, [-1.02] * 3, [-1.03] * 3])
    for partner, expected in ((1, Reason.NONE), (2, Reason.NEVER_RECOVERED)):
        pairing = Pairing(np.array([partner, 0, 0]), np.zeros(3, np.int32))
        result = compiled(partial(recovery_time, pairing=pairing), window=3)(values, np.full(3, 3))
        assert int(result.reasons[0]) == expected


# ------------------------------------------------------------------ missing numbers


@pytest.mark.parametrize(
    ("episodes", "reason"),
    [
        ([1.0] * 4, Reason.BLOCK_TOO_SHORT),
        ([], Reason.BLOCK_TOO_SHORT),
        ([1.0, np.nan, 1.0, 1.0, 1.0], Reason.NON_FINITE_VALUE),
        ([1.0, 1.0, 1.0, 1.0, -np.inf], Reason.NON_FINITE_VALUE),
        ([3e38] * 5, Reason.OVERFLOW),
    ],
)
def test_a_missing_number_is_nan_with_its_reason(episodes, reason):
    for kernel in (saturation_value, time_to_saturation, normalized_integral):
        value, given_reason = single(kernel, episodes, 5)
        assert math.isnan(value)
        assert given_reason is reason


def test_reasons_name_the_partner_where_it_is_the_partner():
    blocks = [Block("train", "a", (), 5), Block("train", "a", (), 5), Block("test", "a", (), 5)]
    values = np.ones((1, 3, 5), np.float32)
    values[0, 1, 2] = np.nan
    result = block_metrics(values, blocks, 5)
    reasons = {name: [Reason(int(r)) for r in m.reasons[0]] for name, m in result.items()}
    assert reasons["recovery_time"] == [
        Reason.PARTNER_NON_FINITE,
        Reason.NO_LATER_TRAINING,
        Reason.NOT_A_TRAINING_BLOCK,
    ]
    assert reasons["performance_maintenance_saturation_value"][2] is Reason.PARTNER_NON_FINITE


def test_every_reason_has_a_sentence():
    sentences = {reason: reason.sentence for reason in Reason}
    assert sentences.pop(Reason.NONE) == ""
    assert all(sentences.values())
    assert len(set(sentences.values())) == len(sentences)


# ------------------------------------------------------------------ batches, padding, compilation


def batch(lifetimes=37):
    generator = np.random.default_rng(7)
    blocks = [
        Block("train", "a", (1,), 24),
        Block("test", "a", (1,), 11),
        Block("train", "a", (2,), 17),
        Block("test", "a", (1,), 10),
        Block("test", "a", (2,), 12),
        Block("train", "a", (1,), 24),
    ]
    return generator.normal(size=(lifetimes, 6, 24)).astype(np.float32), blocks


def assert_same_bits(left, right):
    jax.tree.map(np.testing.assert_array_equal, left, right)


def test_a_lifetime_alone_equals_itself_in_a_batch():
    values, blocks = batch()
    together = block_metrics(values, blocks)
    for lifetime in (0, 18, 36):
        alone = block_metrics(values[lifetime : lifetime + 1], blocks)
        row = slice(lifetime, lifetime + 1)
        assert_same_bits(alone, jax.tree.map(lambda leaf, row=row: leaf[row], together))


def test_padding_changes_no_bit():
    values, blocks = batch(3)
    rubbish = np.full((3, 6, 77), np.nan, np.float32)
    for position, block in enumerate(blocks):
        rubbish[:, position, : block.count] = values[:, position, : block.count]
    assert_same_bits(block_metrics(values, blocks), block_metrics(rubbish, blocks))


def test_kernels_run_inside_jit_and_vmap_with_traced_counts():
    values, blocks = batch(3)
    counts = np.array([block.count for block in blocks])
    direct = saturation_value(values, counts)
    traced = jax.jit(saturation_value)(values, jnp.asarray(counts))
    mapped = jax.jit(jax.vmap(saturation_value, in_axes=(0, None)))(jnp.asarray(values), counts)
    for other in (traced, mapped):
        np.testing.assert_allclose(direct.values, other.values, rtol=1e-6)
        np.testing.assert_array_equal(direct.reasons, other.reasons)


def test_counts_may_differ_between_lifetimes():
    values = np.tile(np.arange(6.0, dtype=np.float32), (2, 1, 1))
    result = compiled(saturation_value, 3)(values, np.array([[6], [4]]))
    np.testing.assert_allclose(result.values, [[4.0], [2.0]], rtol=1e-6)


@pytest.mark.parametrize("window", [1, 3, 7, 11, 101])
def test_moving_average_has_no_drift(window):
    values = np.random.default_rng(3).normal(1e4, 1.0, 20_000).astype(np.float32)
    exact = np.convolve(values.astype(np.float64), np.ones(window) / window, "valid")
    bound = (2 * math.log2(window) + 2) * np.finfo(np.float32).eps * np.abs(values).max()
    assert np.abs(np.asarray(moving_average(values, window)) - exact).max() <= bound


def test_moving_average_shorter_than_its_window_is_empty():
    assert moving_average(np.ones((3, 4)), 5).shape == (3, 0)


def test_integers_and_whole_lists_are_welcome():
    assert float(saturation_value([[1, 2, 3]], [3], 1).values[0]) == 3.0


# ------------------------------------------------------------------ pairs


def test_pairs_of_a_schedule():
    blocks = [
        Block("train", "a", (1,), 5),
        Block("train", "a", (2,), 5),
        Block("train", "b", (1,), 5),
        Block("test", "a", (1,), 5),
        Block("train", "a", (1,), 5),
        Block("test", "a", (1,), 5),
        Block("test", "b", (2,), 5),
    ]
    pairs = pair_blocks(blocks)
    none = int(Reason.NONE)
    train, test = int(Reason.NOT_A_TRAINING_BLOCK), int(Reason.NOT_A_TEST_BLOCK)
    last, never = int(Reason.NO_LATER_TRAINING), int(Reason.NOT_TRAINED_BEFORE)
    assert pairs.recovery.reasons.tolist() == [none, none, last, train, last, train, train]
    assert pairs.recovery.partners[:2].tolist() == [1, 4]
    assert pairs.maintenance.reasons.tolist() == [test, test, test, none, test, none, never]
    assert pairs.maintenance.partners[[3, 5]].tolist() == [0, 4]


@pytest.mark.requirement(117)
def test_maintenance_of_any_metric():
    metric = Numbers(jnp.array([[5.0, 3.0]]), jnp.zeros((1, 2), jnp.int32))
    pairs = pair_blocks([Block("train", "a", (), 1), Block("test", "a", (), 1)])
    maintenance = performance_maintenance(metric, pairs.maintenance)
    np.testing.assert_array_equal(maintenance.values, [[np.nan, 2.0]])
    # A lifetime without a value gives its reason, and takes none from another.
    short, none = int(Reason.BLOCK_TOO_SHORT), int(Reason.NONE)
    of_lifetimes = jnp.array([[none, none], [short, none], [none, short]], jnp.int32)
    metric = Numbers(jnp.array([[5.0, 3.0], [jnp.nan, 3.0], [5.0, jnp.nan]]), of_lifetimes)
    maintenance = performance_maintenance(metric, pairs.maintenance)
    assert maintenance.reasons[:, 1].tolist() == [none, Reason.PARTNER_TOO_SHORT, short]


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("window", "words"),
    [
        (4, "use 3 or 5"),
        (0, "use 1"),
        (-3, "odd positive"),
        (2.5, "odd positive"),
        (True, "odd positive"),
    ],
)
def test_a_bad_window_says_what_to_change(window, words):
    values, blocks = batch(1)
    counts = np.full(6, 24)
    for call in (
        lambda: moving_average(values, window),
        lambda: saturation_value(values, counts, window),
        lambda: block_metrics(values, blocks, window),
    ):
        with pytest.raises(ValueError, match=words):
            call()


def test_bad_arguments_say_what_to_change():
    values, blocks = batch(1)
    counts = np.full(6, 24)
    cases = {
        "index must be one of end, start, centre": lambda: time_to_saturation(
            values, counts, index="middle"
        ),
        "length must be 'episodes' or 'windows'": lambda: normalized_integral(
            values, counts, length="n"
        ),
        "between 0 and the 24 episodes": lambda: saturation_value(values, counts + 1),
        "give one count per block": lambda: saturation_value(values, counts[:5]),
        "counts must be integers": lambda: saturation_value(values, counts * 1.0),
        "real numbers": lambda: moving_average(values * 1j),
        "at least one axis": lambda: moving_average(3.0),
        r"values must be \(lifetimes, 6 blocks, episodes\)": lambda: block_metrics(
            values[0], blocks
        ),
        "at least one block": lambda: block_metrics(values, []),
        "block 1: mode must be 'train' or 'test', not 'learn'": lambda: pair_blocks(
            [blocks[0], Block("learn", "a", (), 3)]
        ),
        "block 0: parameters must be hashable": lambda: pair_blocks(
            [Block("train", "a", {"pole/length": 1.0}, 3)]
        ),
    }
    for words, call in cases.items():
        with pytest.raises(ValueError, match=words):
            call()


# ------------------------------------------------------------------ a real log of that time


def learnkit_blocks(folder):
    """Mean reward per (block, episode number) over sub-episodes and workers, by block."""
    rewards = defaultdict(lambda: defaultdict(list))
    for path in sorted(folder.rglob("data-log.tsv")):
        with path.open(newline="") as stream:
            for row in csv.DictReader(stream, delimiter="\t"):
                rewards[int(row["block"])][int(row["task"])].append(float(row["reward"]))
    return [
        [math.fsum(rewards[block][episode]) / len(rewards[block][episode]) for episode in episodes]
        for block, episodes in sorted((b, sorted(e)) for b, e in rewards.items())
    ]


def test_a_log_of_2020_gives_what_the_document_says(recorded_data):
    folder = recorded_data("l2m/learnkit_2020")
    expected = json.loads((folder / "out" / "seed_formula.json").read_text())
    blocks = learnkit_blocks(folder)
    counts = np.array([len(block) for block in blocks])
    values = np.full((1, len(blocks), counts.max()), np.nan)
    for row, block in zip(values[0], blocks, strict=True):
        row[: len(block)] = block
    with jax.enable_x64(True):
        saturation, first, used, integral, mean = (
            np.asarray(compiled(kernel, **options)(values, counts).values[0])
            for kernel, options in (
                (saturation_value, {}),
                (time_to_saturation, {"index": "start"}),
                (time_to_saturation, {}),
                (normalized_integral, {}),
                (normalized_integral, {"length": "windows"}),
            )
        )
    columns = {
        "n_episodes": counts,
        "first_window_index_0based": first - 1,
        "episodes_consumed_at_saturation(window_end,1based)": used,
        "saturation_value": saturation,
        "normalized_integral_sumS_over_n": integral,
        "normalized_integral_sumS_over_lenS": mean,
    }
    assert len(expected) == len(blocks) == 12
    for name, column in columns.items():
        numbers = [expected[str(block)][name] for block in range(12)]
        np.testing.assert_allclose(column, numbers, rtol=1e-13, err_msg=name)
