"""Kernels of the metrics of today: worked examples, precisions, batches and reasons."""

import functools

import jax
import numpy as np
import pytest

from evaluation.metrics.l2m.experts import Experts, pad_experts
from evaluation.metrics.l2m.lifetimes import (
    LIFETIME_METRICS,
    SINGLE_ATOL,
    SINGLE_RTOL,
    TASK_METRICS,
    MetricOptions,
    lifetime_metrics,
    process,
)
from evaluation.metrics.l2m.regimes import mean_per_experience, peak, regime_numbers
from evaluation.metrics.l2m.smoothing import KINDS, smooth
from evaluation.metrics.l2m.structure import find_structure
from evaluation.metrics.l2m.task_metrics import over_tasks
from evaluation.metrics.numerics import Numbers, masked_median, pairwise_sum
from evaluation.metrics.reasons import Reason
from tests.conftest import double_precision

LIFETIMES, ROOM, TASKS = 5, 40, 3
compiled = jax.jit(lifetime_metrics, static_argnames=("options",))


def plan(seed, regimes=14):
    """Arguments of `find_structure` for lifetimes of different plans."""
    rng = np.random.default_rng(seed)
    shape = (LIFETIMES, regimes)
    tasks = rng.integers(0, TASKS, shape)
    tasks[0, -3:] = -1  # this lifetime is shorter
    counts = np.where(tasks < 0, 0, rng.integers(1, ROOM + 1, shape))
    return {
        "tasks": tasks,
        "counts": counts,
        "train": rng.random(shape) < 0.5,
        "sleep": (rng.random(shape) < 0.3) & (np.arange(LIFETIMES) == 1)[:, None],
    }


@functools.cache
def batch(seed=0):
    """Values, experiences, structure and experts of `LIFETIMES` lifetimes."""
    rng = np.random.default_rng(seed)
    arguments = plan(seed)
    structure = find_structure(**arguments, num_tasks=TASKS, room=ROOM)
    shape = (*arguments["counts"].shape, ROOM)
    rows = np.arange(ROOM)
    values = rng.random(shape) + 0.05 * rows
    starts = np.cumsum(arguments["counts"], axis=1) - arguments["counts"]
    experts = Experts(
        rng.random((1, TASKS, 2, 60)) + 0.03 * np.arange(60),
        np.array([[[60, 31], [45, 0], [0, 0]]], np.int32),
        np.broadcast_to(np.arange(60), (1, TASKS, 2, 60)),
    )
    return values, starts[..., None] + rows, structure, experts


def part(arrays, lifetime):
    """One lifetime of a batch; what all share stays."""
    return jax.tree.map(
        lambda a: a[lifetime : lifetime + 1] if a.shape[0] == LIFETIMES else a, arrays
    )


def assert_same_bits(alone, together, lifetime):
    def same(one, many):
        np.testing.assert_array_equal(np.asarray(one)[0], np.asarray(many)[lifetime])

    jax.tree.map(same, alone, together)


def in_precision(arrays, dtype):
    return jax.tree.map(lambda a: a.astype(dtype) if a.dtype.kind == "f" else a, arrays)


def in_jax(arrays, options, dtype):
    with double_precision() if dtype == "float64" else jax.enable_x64(False):
        return jax.tree.map(np.asarray, compiled(*in_precision(arrays, dtype), options))


# ------------------------------------------------------------------ smoothing


def test_odd_windows_lag_in_l2metrics_and_are_centred_here():
    ramp = np.arange(1.0, 11.0)
    lagging = smooth(ramp, np.array(10), 3, "flat", centred=False)
    np.testing.assert_allclose(lagging, [2, 5 / 3, 2, 3, 4, 5, 6, 7, 8, 9])
    centred = smooth(ramp, np.array(10), 3, "flat")
    np.testing.assert_allclose(centred, [5 / 3, 2, 3, 4, 5, 6, 7, 8, 9, 28 / 3])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("window", [None, 4, 7, 30])
@pytest.mark.parametrize("centred", [True, False])
def test_smoothing_is_a_reflected_convolution(kind, window, centred):
    """Against the definition, curve by curve, with counts that ask for windows of all lengths."""
    rng = np.random.default_rng(1)
    counts = np.array([1, 2, 7, 14, 15, 23, 30, 60])
    values = rng.random((len(counts), 60))
    smoothed = smooth(values, counts, window, kind, centred)
    for curve, result, count in zip(values, smoothed, counts, strict=True):
        length = window if window is not None and count >= window else min(count // 5, 100)
        expected = curve[:count]
        if length >= 3:
            weights = np.ones(length) if kind == "flat" else getattr(np, kind)(length)
            start = -(length // 2) if centred else -((length + 1) // 2)
            places = np.arange(count)[:, None] + start + np.arange(length)
            places = np.abs(places)
            places = np.where(places > count - 1, 2 * (count - 1) - places, places)
            expected = expected[places] @ (weights / weights.sum())
        np.testing.assert_allclose(result[:count], expected, rtol=1e-12)


def test_an_unknown_window_is_named():
    with pytest.raises(ValueError, match="'round'; it must be one of flat, hanning"):
        smooth(np.ones(20), np.array(20), None, "round")


# ------------------------------------------------------------------ precisions and batches


@pytest.mark.parametrize(
    "options",
    [
        MetricOptions(),
        MetricOptions(compat=True),
        MetricOptions(clamp=True, median=True, smooth_tests=True, ste_averaging="time"),
        MetricOptions(smoothing="hanning", window=5, normalisation="run", repeats=True),
    ],
)
def test_alone_as_in_a_batch_with_numpy(options):
    together = lifetime_metrics(*batch(), options)
    for lifetime in range(LIFETIMES):
        alone = lifetime_metrics(*part(batch(), lifetime), options)
        assert_same_bits(alone, together, lifetime)


@pytest.mark.parametrize("dtype", ["float64", pytest.param("float32", marks=pytest.mark.long)])
def test_alone_as_in_a_batch_with_jax(dtype):
    together = in_jax(batch(), MetricOptions(), dtype)
    for lifetime in (0, 3):
        alone = in_jax(part(batch(), lifetime), MetricOptions(), dtype)
        assert_same_bits(alone, together, lifetime)


def test_padding_changes_no_bit():
    values, experiences, _, experts = batch()
    arguments = plan(0)
    more = find_structure(**arguments, num_tasks=TASKS, room=ROOM + 13)
    wide = [((0, 0), (0, 0), (0, 13))]
    padded = [np.pad(a, wide[0], constant_values=7) for a in (values, experiences)]
    lean = lifetime_metrics(*batch(), MetricOptions())
    fat = lifetime_metrics(padded[0], padded[1], more, experts, MetricOptions())
    jax.tree.map(np.testing.assert_array_equal, lean.lifetime, fat.lifetime)
    jax.tree.map(np.testing.assert_array_equal, lean.tasks, fat.tasks)
    jax.tree.map(np.testing.assert_array_equal, lean.regimes, fat.regimes)


def test_jax_and_numpy_agree():
    ours = lifetime_metrics(*batch(), MetricOptions())
    theirs = in_jax(batch(), MetricOptions(), "float64")
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-11), ours, theirs)


def test_single_precision_is_as_good_as_is_said():
    double = in_jax(batch(), MetricOptions(), "float64")
    single = in_jax(batch(), MetricOptions(), "float32")

    def same(one, two):
        np.testing.assert_array_equal(one.reasons, two.reasons)
        np.testing.assert_allclose(one.values, two.values, rtol=SINGLE_RTOL, atol=SINGLE_ATOL)

    for name in LIFETIME_METRICS:
        same(single.lifetime[name], double.lifetime[name])
    for name in TASK_METRICS:
        same(single.tasks[name], double.tasks[name])
    for one, two in zip(single.regimes, double.regimes, strict=True):
        same(one, two)
    for times in ("exp_to_sat", "exp_to_term_perf"):
        one, two = (getattr(each.regimes, times).values for each in (single, double))
        np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(single.recovery.values, double.recovery.values)


def test_whatever_is_missing_has_a_reason():
    results = lifetime_metrics(*batch(), MetricOptions())
    pairs = jax.tree.leaves(results, is_leaf=lambda node: isinstance(node, Numbers))
    pairs = [pair for pair in pairs if isinstance(pair, Numbers)]
    assert len(pairs) > 30
    for pair in pairs:
        np.testing.assert_array_equal(np.isnan(pair.values), pair.reasons != Reason.NONE)
        assert {Reason(code).sentence == "" for code in pair.reasons.flat if code} <= {False}


# ------------------------------------------------------------------ the sane definitions


def lifetime(regimes, num_tasks=2, options=None, experts=None):
    """Results of one lifetime of (task, is training, values) regimes, without smoothing."""
    room = max(len(values) for _, _, values in regimes)
    padded = np.zeros((1, len(regimes), room))
    for place, (_, _, values) in enumerate(regimes):
        padded[0, place, : len(values)] = values
    counts = [[len(values) for _, _, values in regimes]]
    structure = find_structure(
        [[task for task, _, _ in regimes]],
        counts,
        [[train for _, train, _ in regimes]],
        [[False] * len(regimes)],
        num_tasks,
        room,
    )
    options = options or MetricOptions(smoothing=None, normalisation="none")
    experiences = np.cumsum([0, *counts[0][:-1]])[None, :, None] + np.arange(room)
    return lifetime_metrics(
        padded, experiences, structure, experts or pad_experts([()], num_tasks), options
    )


RETRAINED = [
    (0, False, [1.0]),
    (1, False, [1.0]),
    (0, True, [1.0, 2.0]),
    (1, True, [1.0, 2.0]),
    (0, False, [2.0]),
    (1, False, [4.0]),
    (1, True, [3.0, 4.0]),
    (0, False, [3.0]),
    (1, False, [5.0]),
]


def test_own_training_is_no_transfer():
    """Between the first two tests both tasks were trained; later only task 1, which moved 0."""
    results = lifetime(RETRAINED)
    assert results.lifetime["backward_transfer_ratio"].values[0] == 3.0 / 2.0
    assert np.isnan(results.lifetime["forward_transfer_ratio"].values[0])
    assert results.lifetime["forward_transfer_ratio"].reasons[0] == Reason.OWN_TRAINING
    booked = lifetime(
        RETRAINED, options=MetricOptions(smoothing=None, normalisation="none", compat=True)
    )
    assert booked.lifetime["forward_transfer_ratio"].values[0] == 4.0  # task 1's own training


def test_every_task_trained_in_between_gets_the_transfer():
    regimes = [
        (2, False, [1.0]),
        (0, True, [1.0, 2.0]),
        (1, True, [1.0, 2.0]),
        (2, False, [3.0]),
        (0, True, [2.0, 2.0]),
        (2, False, [6.0]),
    ]
    results = lifetime(regimes, 3)
    np.testing.assert_array_equal(results.transfer.forward[0, 3], [True, True, False])
    # (0, 2) has the values 3 and 2, (1, 2) the value 3.
    assert results.lifetime["forward_transfer_ratio"].values[0] == pytest.approx(8 / 3)
    compat = MetricOptions(smoothing=None, normalisation="none", compat=True)
    first = lifetime(regimes, 3, compat).lifetime["forward_transfer_ratio"].values[0]
    assert first == pytest.approx(2.5)  # task 1 gets the 3, task 0 the 2


def test_recovery_counts_episodes_until_the_old_level():
    regimes = [
        (0, True, [1.0, 4.0]),
        (0, True, [3.0, 3.5, 4.0]),
        (0, True, [1.0, 2.0]),
        (0, True, [2.0]),
    ]
    results = lifetime(regimes, 1)
    np.testing.assert_array_equal(results.recovery.values[0, 1:], [2, 3, 0])
    assert results.recovery.reasons[0, 0] == Reason.NO_EARLIER_TRAINING
    assert results.tasks["perf_recovery"].values[0, 0] == 1.0  # slopes 1, -3, -1: median -1


def test_an_exact_tie_counts_as_reached_in_compat_mode_too():
    """Without the slack for rounding, equal is enough: of the bar, and of the highest value."""
    compat = MetricOptions(smoothing=None, normalisation="none", compat=True)
    regimes = [(0, True, [4.0]), (0, True, [3.0, 4.0, 5.0, 4.0]), (0, True, [4.0, 4.0])]
    results = lifetime(regimes, 1, compat)
    np.testing.assert_array_equal(results.recovery.values[0, 1:], [1, 0])
    just_below = [(0, True, [4.0]), (0, True, [3.0, np.nextafter(4.0, 0), 5.0])]
    assert lifetime(just_below, 1, compat).recovery.values[0, 1] == 2
    assert lifetime(just_below, 1).recovery.values[0, 1] == 1
    level = np.full((1, 4), 0.3)
    assert peak(level, np.array([4]), compat=True)[1][0] == 0


def test_maintenance_starts_after_the_first_test_that_follows_training():
    regimes = [(0, True, [1.0] * 10), (0, False, [5.0]), (1, True, [1.0]), (0, False, [3.0])]
    results = lifetime(regimes)
    assert results.mrlep.values[0, 3] == -2.0
    assert results.mrtlp.values[0, 3] == 2.0
    assert results.mrlep.reasons[0, 1] == Reason.NO_REFERENCE_TEST
    assert results.tasks["perf_maintenance_mrlep"].values[0, 0] == -2.0


def test_saturation_is_the_peak_of_the_curve_as_it_is():
    values = [0.0] * 10 + [10.0] + [0.0] * 10
    assert lifetime([(0, True, values)], 1).regimes.saturation.values[0, 0] == 10.0
    again = MetricOptions(smoothing=None, normalisation="none", compat=True)
    assert lifetime([(0, True, values)], 1, again).regimes.saturation.values[0, 0] == 2.5


def test_rounding_never_decides_which_peak_is_first():
    values = np.array([[0.1 + 0.2, 0.3, 0.3]])
    assert peak(values[:, ::-1], np.array([3]), compat=False)[1][0] == 0
    assert peak(values[:, ::-1], np.array([3]), compat=True)[1][0] == 2


@pytest.mark.parametrize("normalisation", ["task", "run"])
def test_constant_data_become_the_offset(normalisation):
    regimes = [(0, True, [0.3] * 40), (0, False, [0.3] * 4)]
    options = MetricOptions(normalisation=normalisation)
    results = lifetime(regimes, 1, options)
    assert results.lifetime["avg_train_perf"].values[0] == 1.0
    assert results.lifetime["avg_eval_perf"].values[0] == 1.0


def test_a_value_that_is_not_finite_spoils_its_regime_only():
    regimes = [(0, True, [1.0, np.inf]), (0, True, [1.0, 3.0]), (0, False, [2.0])]
    results = lifetime(regimes, 1, MetricOptions(smoothing=None))
    assert results.regimes.avg_perf.reasons[0, 0] == Reason.NON_FINITE_VALUE
    assert results.regimes.avg_perf.values[0, 1] == 51.0
    assert results.tasks["avg_train_perf"].values[0, 0] == 51.0


def test_experiences_without_a_value_do_not_count():
    """The terminal part begins behind 19 of 20 experiences of training and half of a test."""
    values = np.full((1, 5, 40), np.nan)
    values[0, :2] = np.arange(1.0, 41.0)
    values[0, 1, 7:27] = np.nan
    values[0, 2, :9] = np.arange(1.0, 10.0)
    counts = np.array([[40, 40, 9, 4, 0]])
    train = np.array([[True, True, False, False, False]])
    regimes = regime_numbers(values, counts, values, counts, train)
    until_end, mean = regimes.exp_to_term_perf, regimes.avg_perf
    np.testing.assert_array_equal(until_end.values[0], [38, 19, 4, np.nan, np.nan])
    assert list(until_end.reasons[0, 3:]) == [Reason.NON_FINITE_VALUE, Reason.EMPTY]
    np.testing.assert_allclose(mean.values[0, :3], [20.5, 23.5, 5.0])


def test_experts_are_compared_over_the_shorter_curve():
    experts = Experts(
        np.array([[[[1.0, 2.0, 4.0]]]]), np.array([[[3]]]), np.arange(3)[None, None, None]
    )
    regimes = [(0, True, [2.0, 4.0]), (0, True, [6.0, 8.0])]
    results = lifetime(regimes, 1, experts=experts)
    assert results.tasks["ste_rel_perf"].values[0, 0] == 12.0 / 7.0
    # Saturation 8 after 3 against 4 after 2.
    assert results.tasks["sample_efficiency"].values[0, 0] == pytest.approx(2.0 * 2 / 3)


def test_clamping_moves_values_to_the_quantiles():
    values = np.arange(11.0)[None, None]
    structure = find_structure([[0]], [[11]], [[False]], [[False]], 1, 11)
    options = MetricOptions(smoothing=None, clamp=True, normalisation="none")
    clamped = process(values, structure, pad_experts([()], 1), options).clamped
    np.testing.assert_array_equal(clamped[0, 0], [1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9])


# ------------------------------------------------------------------ parts


def test_rows_of_one_experience_are_averaged():
    values = np.array([1.0, 3.0, 5.0, 6.0, 8.0, 9.0, 99.0])
    means, count = mean_per_experience(values, np.array(6), np.array([4, 4, 5, 7, 7, 7, 7]))
    assert count == 3
    np.testing.assert_allclose(means[:3], [2.0, 5.0, 23 / 3])


def test_pairwise_sums_are_exact_where_they_can_be():
    for size in (1, 2, 3, 17, 64, 100):
        values = np.arange(size, dtype=float)
        assert pairwise_sum(values) == size * (size - 1) / 2
        assert pairwise_sum(values.astype(np.float32)).dtype == np.float32


def test_medians_skip_what_is_masked():
    values = np.array([[5.0, 1.0, 9.0, 3.0], [1.0, 2.0, 3.0, 4.0]])
    mask = np.array([[True, True, False, True], [False] * 4])
    median, count = masked_median(values, mask)
    np.testing.assert_array_equal(median, [3.0, 0.0])
    np.testing.assert_array_equal(count, [3, 0])


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        ([Reason.NO_STE] * 3, Reason.NO_STE),
        ([Reason.NO_STE, Reason.NO_TEST, Reason.NO_STE], Reason.NO_TASK_HAS_VALUE),
        ([Reason.NO_STE, Reason.NONE, Reason.NO_STE], Reason.NONE),
    ],
)
def test_tasks_without_a_value_give_their_reason_if_it_is_one(reasons, expected):
    codes = np.array([reasons], np.int32)
    values = np.where(codes == Reason.NONE, 2.5, np.nan)
    over = over_tasks(Numbers(values, codes))
    assert over.reasons.tolist() == [expected]
    np.testing.assert_array_equal(over.values, [2.5 if expected == Reason.NONE else np.nan])
