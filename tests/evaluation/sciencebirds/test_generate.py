"""From configMeta.xml to config.xml: numbers of test sets, draws of levels, files."""

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from evaluation.sciencebirds import document, generate
from evaluation.sciencebirds.document import Measurement, Meta, MetaTrial, PoolSet, SetLimits

EXAMPLES = Path(__file__).parents[3] / "examples" / "sciencebirds"
MANY = range(50)


def meta_trial(**changes) -> MetaTrial:
    usual = MetaTrial(
        count=1,
        repeats=1,
        notify=(False,),
        checkpoint_time=200,
        checkpoint_interactions=50,
        limits=SetLimits(600, 200, 1, False),
        training=(PoolSet(1, 1, (4, 4)),),
        ordered=True,
        tests=(PoolSet(0, 1, (2, 2), percentage=100),),
    )
    return replace(usual, **changes)


def drawn(seed=0, options=None, **changes):
    return generate.generate(Meta(Measurement(), (meta_trial(**changes),)), seed, options)


def kinds_of_tests(what):
    return [each.levels[0].novelty_level for each in what.trials[0].tests]


@pytest.mark.requirement(27)
@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ((600, 200, 0, 0), 3),
        ((600, 250, 0, 0), 3),
        ((0, 0, 200, 50), 4),
        ((600, 200, 200, 50), 7),
        ((1, 200, 0, 0), 1),
        ((600, 0, 0, 50), 0),
        ((-5, -1, -5, 2), 0),
    ],
)
def test_number_of_all_test_sets(limits, expected):
    assert generate.total_test_sets(*limits) == expected


@pytest.mark.requirement(28)
@pytest.mark.parametrize(
    ("percentage", "expected"), [(100, 7), (50, 4), (33, 3), (34, 3), (1, 1), (0, 0)]
)
def test_number_of_test_sets_of_a_kind(percentage, expected):
    assert generate.test_sets_of(7, percentage) == expected
    tests = (PoolSet(0, 1, (2, 2), percentage=percentage),)
    assert len(drawn(tests=tests).trials[0].tests) == expected


@pytest.mark.requirement(28)
def test_percentages_are_counted_without_rounding_errors():
    for total in range(1, 400):
        for percentage in range(101):
            exact = (total * percentage + 99) // 100
            assert generate.test_sets_of(total, percentage) == exact


@pytest.mark.requirement(29)
def test_as_many_test_sets_as_checkpoints():
    what = drawn(limits=SetLimits(600, 0, 1, False), checkpoint_time=250, checkpoint_interactions=0)
    assert len(what.trials[0].tests) == 3


@pytest.mark.requirement(18)
def test_without_checkpoints_there_is_the_final_test():
    what = drawn(checkpoint_time=0, checkpoint_interactions=-1)
    assert len(what.trials[0].tests) == 1


@pytest.mark.requirement(24)
def test_ordered_test_sets_keep_their_order():
    tests = tuple(PoolSet(level, 1, (2, 2), percentage=33) for level in (3, 1, 2))
    assert kinds_of_tests(drawn(tests=tests)) == [3, 3, 3, 1, 1, 1, 2, 2, 2]


@pytest.mark.requirement(25)
def test_other_test_sets_are_shuffled():
    tests = tuple(PoolSet(level, 1, (2, 2), percentage=33) for level in (3, 1, 2))
    orders = {seed: kinds_of_tests(drawn(seed, tests=tests, ordered=False)) for seed in MANY}
    assert len({tuple(order) for order in orders.values()}) > 25
    assert all(sorted(order) == [1, 1, 1, 2, 2, 2, 3, 3, 3] for order in orders.values())
    assert orders[7] == kinds_of_tests(drawn(7, tests=tests, ordered=False))


@pytest.mark.requirement(9)
@pytest.mark.parametrize(("count", "expected"), [(3, 3), (1, 1), (0, 0), (-1, 0)])
def test_number_of_trials(count, expected):
    what = drawn(count=count)
    assert [trial.number for trial in what.trials] == list(range(expected))
    assert len({trial.training for trial in what.trials}) == expected


@pytest.mark.requirement(10, 11)
@pytest.mark.parametrize("repeats", [-1, 0, 4])
def test_repeats_are_written_as_executions(repeats):
    assert drawn(repeats=repeats).trials[0].executions == repeats


@pytest.mark.requirement(44)
def test_both_is_a_pair_with_the_same_levels():
    what = drawn(count=2, notify=(False, True))
    assert [trial.notify for trial in what.trials] == [False, True, False, True]
    first, second, third, _ = what.trials
    assert (first.training, first.tests) == (second.training, second.tests)
    assert first.training != third.training


@pytest.mark.requirement(45)
def test_amounts_are_drawn_from_their_range():
    pools = (PoolSet(0, 1, (2, 6)), PoolSet(1, 1, (3, 3)))
    amounts = Counter(len(drawn(seed, training=pools).trials[0].training.levels) for seed in MANY)
    assert set(amounts) == {5, 6, 7, 8}


@pytest.mark.requirement(45)
@pytest.mark.parametrize(
    ("absence", "no_difference", "expected"),
    [
        (0.0, 0.0, (10, 0, 0)),
        (0.2, 0.3, (5, 2, 3)),
        (0.25, 0.25, (5, 3, 2)),  # halves go away from zero, what is left over is the rest
        (0.5, 0.5, (0, 5, 5)),
        (0.8, 0.8, (0, 5, 5)),
        (1.0, 0.0, (0, 10, 0)),
    ],
)
def test_shares_of_novelty(absence, no_difference, expected):
    training = (PoolSet(2, 1, (10, 10), absence, no_difference),)
    levels = drawn(training=training).trials[0].training.levels
    kinds = Counter(level.kind for level in levels)
    assert (kinds["novel"], kinds["absent"], kinds["unseen"]) == expected
    assert sum(level.novel for level in levels) == expected[0]


@pytest.mark.requirement(45)
def test_novelty_appears_behind_levels_without():
    training = (PoolSet(0, 1, (5, 9)), PoolSet(3, 2, (20, 20), 0.1))
    for seed in MANY:
        novel = [level.novel for level in drawn(seed, training=training).trials[0].training.levels]
        before = len(novel) - 20
        assert 5 <= before < 9
        assert not any(novel[:before])
        assert sum(novel) == 18


def test_shares_above_one_are_scaled_together():
    assert generate.shares(0.8, 0.8) == (0.0, 0.5, 0.5)
    assert generate.shares(0.9, 0.3) == pytest.approx((0.0, 0.75, 0.25))


def test_levels_of_tests_do_not_repeat_while_there_are_others():
    options = generate.GenerateOptions(pool=14)
    sets = drawn(options=options).trials[0].tests
    numbers = [level.number for each in sets for level in each.levels]
    assert sorted(numbers) == list(range(14))
    more = generate.GenerateOptions(pool=5)
    tests = (PoolSet(0, 1, (9, 9), percentage=100),)
    sets = drawn(options=more, tests=tests).trials[0].tests
    assert [len(each.levels) for each in sets] == [5] * 7


def test_a_test_set_never_has_a_level_twice():
    """Seven sets of six of ten levels: most sets use up one round of the pool and begin another."""
    options = generate.GenerateOptions(pool=10)
    tests = (PoolSet(0, 1, (6, 6), percentage=100),)
    for seed in MANY:
        sets = drawn(seed, options=options, tests=tests).trials[0].tests
        numbers = [[level.number for level in each.levels] for each in sets]
        assert [len(set(each)) for each in numbers] == [6] * 7
        times = Counter(number for each in numbers for number in each)
        assert set(times.values()) <= {3, 4, 5} and len(times) == 10


@pytest.mark.requirement(45)
def test_each_entry_of_tests_has_its_draw_of_an_amount():
    entry = PoolSet(0, 1, (1, 1000), percentage=10)
    different = 0
    for seed in MANY:
        first, second = drawn(seed, tests=(entry, entry)).trials[0].tests
        different += len(first.levels) != len(second.levels)
    assert different > 40


@pytest.mark.requirement(15)
def test_time_limits_of_levels_add_up():
    training = (PoolSet(1, 1, (4, 4)), PoolSet(2, 1, (3, 3)))
    assert drawn(training=training).trials[0].training.limits.time == 600
    per_level = drawn(options=generate.GenerateOptions("per_level"), training=training)
    assert per_level.trials[0].training.limits.time == 4200


@pytest.mark.requirement(48)
def test_one_test_set_of_each_kind():
    tests = tuple(PoolSet(level, 1, (2, 2), percentage=0) for level in (3, 1))
    what = drawn(options=generate.GenerateOptions(test_sets="each_once"), tests=tests)
    assert kinds_of_tests(what) == [3, 1]


@pytest.mark.requirement(3)
def test_sample_of_unordered_sets():
    meta = document.load_meta(EXAMPLES / "unordered_sets.xml")
    (trial,) = generate.generate(meta, 1).trials
    assert len(trial.training.levels) == 100
    assert trial.training.limits.selection
    assert trial.tests
    for each in trial.tests:
        assert len(each.levels) == 10
        assert each.limits.selection
    for each in trial.sets:
        assert {(level.novelty_level, level.novelty_type) for level in each.levels} == {(1, 1)}


@pytest.mark.requirement(4)
def test_sample_of_sequences():
    meta = document.load_meta(EXAMPLES / "sequences.xml")
    (trial,) = generate.generate(meta, 1).trials
    assert len(trial.training.levels) == 100
    assert {(level.novelty_level, level.novelty_type) for level in trial.training.levels} == {
        (1, 1)
    }
    assert [len(each.levels) for each in trial.tests] == [10, 10]
    assert [{level.novelty_level for level in each.levels} for each in trial.tests] == [{0}, {1}]
    assert not any(each.limits.selection for each in trial.sets)


# --- seeds and files -------------------------------------------------------------------------


def test_a_seed_is_honoured():
    assert drawn(5) == drawn(5)
    assert len({drawn(seed).trials[0].training for seed in MANY}) == len(MANY)
    with pytest.raises(ValueError, match="seed is -1; it must be from 0"):
        drawn(-1)


@pytest.mark.parametrize(
    "changes",
    [
        {"count": 10_001},
        {"limits": SetLimits(2_000_000, 0, 1, False), "checkpoint_time": 1},
        {"training": (PoolSet(1, 1, (600_000, 600_000)),), "count": 2},
    ],
)
def test_what_is_too_much_to_run_is_refused(changes):
    with pytest.raises(ValueError, match=r"more than|would have"):
        drawn(**changes)


@pytest.mark.requirement(2)
def test_the_config_follows_its_meta(tmp_path):
    meta, config = tmp_path / "configMeta.xml", tmp_path / "config.xml"
    text = (EXAMPLES / "sequences.xml").read_text()
    meta.write_text(text)
    assert generate.refresh(meta, config, 1)
    first = config.read_bytes()
    os.utime(config, ns=(0, 0))
    assert not generate.refresh(meta, config, 1)
    assert config.stat().st_mtime_ns == 0
    assert config.read_bytes() == first
    meta.write_text(text.replace('amount="100"', 'amount="30"'))
    assert generate.refresh(meta, config, 1)
    assert config.stat().st_mtime_ns > 0
    expected = generate.generate(document.load_meta(meta), 1)
    assert document.load(config) == expected
    assert len(expected.trials[0].training.levels) == 30
    assert generate.refresh(meta, config, 2)
    assert document.load(config) == generate.generate(document.load_meta(meta), 2)


def test_a_config_that_was_not_generated_stays(tmp_path):
    config = tmp_path / "config.xml"
    content = "<evaluation><trials/></evaluation>"
    config.write_text(content)
    with pytest.raises(ValueError, match="`serve --config` runs it as it is"):
        generate.refresh(EXAMPLES / "sequences.xml", config, 1)
    assert config.read_text() == content


@pytest.mark.parametrize("changes", [{"training_time": "x"}, {"test_sets": "x"}, {"pool": 0}])
def test_options_that_are_not_known(changes):
    with pytest.raises(ValueError, match="it must be"):
        generate.GenerateOptions(**changes)
