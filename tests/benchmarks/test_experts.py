"""Single-task experts of a syllabus: what they play, and what learners are beside them."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import experts
from benchmarks.experts import ExpertPairs
from evaluation.records import COLUMNS, Records
from evaluation.schedule import Block, Schedule

FIRST = Block(0, 1, "train", "CartPole3D", (), 20, True)
OTHER = replace(FIRST, task="CartPole")
WINDOW = 5


def a_test(block):
    return replace(block, mode="test", learning=False)


def scheduled(*blocks):
    return Schedule("s", tuple(replace(b, index=index) for index, b in enumerate(blocks)))


def records_of(schedule, performance):
    """Records of lifetimes, given what they do in each block, (L, B) or (L, B, T)."""
    given = np.asarray(performance, np.float32)
    if given.ndim == 2:
        given = np.repeat(given[..., None], 20, axis=2)
    columns = {
        name: np.zeros((len(given), schedule.num_episodes), dtype)
        for name, dtype in COLUMNS.items()
    }
    columns["performance"] = given.reshape(len(given), -1)
    columns["complete"] = np.ones_like(columns["complete"])
    return Records(schedule, columns, np.zeros(len(schedule.variants), np.int32))


def test_an_expert_trains_as_long_as_the_syllabus_does():
    syllabus = scheduled(FIRST, a_test(FIRST), a_test(OTHER), OTHER, replace(FIRST, count=7))
    schedules = experts.schedules(syllabus)
    assert [(b.task, b.count, b.learning) for s in schedules.values() for b in s.blocks] == [
        ("CartPole3D", 27, True),
        ("CartPole", 20, True),
    ]
    asked = experts.train(syllabus, lambda schedule: schedule.num_episodes)
    assert asked == {FIRST.variant: 27, OTHER.variant: 20}


@pytest.fixture
def compared():
    """Two lifetimes beside two experts of each task, which come to .5 and 1, and .4 and .8."""
    rise = np.linspace(0, 1, 20)
    syllabus = scheduled(FIRST, a_test(FIRST), a_test(OTHER), OTHER, a_test(FIRST), a_test(OTHER))
    curves = [[1.0, 0.9, 0.2, 1.0, 0.6, 0.8], [0.5, 0.5, 0.4, 0.5, 0.3, 0.4]]
    learners = records_of(
        syllabus,
        np.array(curves)[..., None]
        * np.where([[b.mode == "train"] for b in syllabus.blocks], rise, 1.0),
    )
    alone = {
        block.variant: records_of(scheduled(block), np.array([[top], [top / 2]])[..., None] * rise)
        for block, top in ((FIRST, 1.0), (OTHER, 0.8))
    }
    return learners, alone


def test_transfer_is_a_share_of_what_the_expert_comes_to(compared):
    learners, alone = compared
    metrics = experts.of_2019(learners, alone, WINDOW)
    top = np.linspace(0, 1, 20)[-WINDOW:].mean()  # of a curve that rises to 1
    forward = np.array([[0.2, 0.4], [0.4, 0.8]]) / (0.8 * top)
    np.testing.assert_allclose(metrics["forward_transfer"].values[:, 0], forward, rtol=1e-5)
    reverse = np.array([[0.6, 1.2], [0.3, 0.6]]) / top
    np.testing.assert_allclose(metrics["reverse_transfer"].values[:, 0], reverse, rtol=1e-5)


def test_a_learner_like_its_experts_is_as_efficient(compared):
    """Each lifetime comes to what one of the experts of the first task comes to, and as soon."""
    learners, alone = compared
    metrics = experts.today(learners, alone)
    assert metrics["sample_efficiency"].values.shape == (2, 2, 2)
    order = np.argsort(metrics["sample_efficiency"].values[0, :, 0])  # CartPole3D, then CartPole
    same = metrics["sample_efficiency"].values[:, order[0]]
    np.testing.assert_allclose(np.diag(same), 1.0, rtol=1e-5)
    assert same[0, 1] > 1.9 and same[1, 0] < 0.53  # of performance from 1 to 101
    numbers = experts.compare(learners, alone, WINDOW, seed=3)
    assert set(numbers) == {
        "ste_rel_perf",
        "sample_efficiency",
        "forward_transfer",
        "reverse_transfer",
    }
    for entry in numbers.values():
        assert entry["low"] <= entry["mean"] <= entry["high"] and entry["lifetimes"] == 2


def test_tasks_count_alike_whatever_is_missing():
    values = np.array([[[1.0, 3.0], [np.nan, 10.0]], [[1.0, 3.0], [np.nan, np.nan]]])
    assert experts.entry(ExpertPairs(values, ""), seed=0)["mean"] == pytest.approx((2 + 10) / 2)


def test_a_resample_without_a_value_leaves_an_interval():
    values = np.array([[[np.nan]], [[0.5]], [[0.7]]])
    entry = experts.entry(ExpertPairs(values, ""), seed=0)
    assert (entry["low"], entry["mean"], entry["high"]) == pytest.approx((0.5, 0.6, 0.7))


def test_an_interval_knows_of_lifetimes_and_of_experts():
    draws = np.random.default_rng(0)
    apart = draws.normal(size=(40, 1, 1)) + 3 * draws.normal(size=(1, 1, 40))
    entry = experts.entry(ExpertPairs(apart, ""), seed=0)
    # Spreads that are estimated from 40 draws are off by a ninth, and 2.6 times that is rare.
    half = (entry["high"] - entry["low"]) / 2
    assert half == pytest.approx(1.96 * (10 / 40) ** 0.5, rel=0.3)
    assert experts.entry(ExpertPairs(apart, ""), seed=0) == entry


def test_what_no_pair_has_is_missing_with_its_reason():
    nothing = experts.entry(ExpertPairs(np.full((3, 2, 4), np.nan), "no expert"), seed=0)
    assert nothing["mean"] is None and nothing["reason"] == "no expert"
    alone = {FIRST.variant: records_of(scheduled(FIRST), [[0.5]])}
    learners = records_of(scheduled(FIRST, a_test(FIRST)), [[0.5, 0.5]])
    forward = experts.compare(learners, alone, WINDOW, seed=0)["forward_transfer"]
    assert forward["reason"] == "nothing is tested before it is trained"
