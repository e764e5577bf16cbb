"""The scheduler: what is announced when, what is refused, and lanes that equal single runs."""

import random

import jax
import numpy as np
import pytest

from evaluation.sciencebirds import scheduler
from evaluation.sciencebirds.codes import LOST, MAIN_MENU, PLAYING, WON
from evaluation.sciencebirds.document import (
    ConfiguredTrial,
    Evaluation,
    LevelSet,
    Measurement,
    SetLimits,
)
from evaluation.sciencebirds.levels import LevelPath
from tests.evaluation.sciencebirds.scheduler_twin import Twin
from tests.evaluation.sciencebirds.support import TRACES, Run, evaluation, level_set, trial


@pytest.mark.requirement(42)
@pytest.mark.parametrize("name", TRACES)
def test_whole_traces(name):
    what, expected = TRACES[name]
    assert Run(what).trace() == expected


# --- questions for novelty -------------------------------------------------------------------


@pytest.mark.requirement(5)
def test_novelty_is_asked_for_after_every_so_many_interactions():
    what = evaluation(trial(6), step=2, in_training=True)
    assert Run(what).trace() == "11 9 L1 L2 12 L3 L4 12 L5 L6 12 13"


@pytest.mark.requirement(6)
@pytest.mark.parametrize("step", [0, -1])
def test_without_a_step_it_is_never_asked_for(step):
    what = evaluation(trial(4, [2]), step=step, in_training=True, in_tests=True)
    assert "12" not in Run(what).trace().split()


@pytest.mark.requirement(7, 8)
@pytest.mark.parametrize("in_training", [False, True])
@pytest.mark.parametrize("in_tests", [False, True])
def test_it_is_asked_for_in_the_modes_that_say_so(in_training, in_tests):
    what = evaluation(trial(2, [2]), step=1, in_training=in_training, in_tests=in_tests)
    asked_l, asked_t = " 12" * in_training, " 12" * in_tests
    expected = f"11 9 L1{asked_l} L2{asked_l} 8 T1{asked_t} T2{asked_t} 13"
    assert Run(what).trace() == expected


def test_questions_go_on_counting_behind_a_test():
    what = evaluation(trial(4, [1], interactions=2), step=3, in_training=True)
    assert Run(what).trace() == "11 9 L1 L2 8 T1 10 L3 12 L4 8 T1 13"


@pytest.mark.requirement(39)
def test_while_it_is_asked_for_nothing_is_played():
    run = Run(evaluation(trial(level_set(2, attempts=0)), step=1, in_training=True), shots=3)
    run.begin()
    assert run.ask("load_next") == 1
    assert run.shoot() == 1
    assert run.state == 12  # the level runs on
    loads = [run.ask("load_next"), run.ask("load_level", level=1), run.ask("restart")]
    assert [run.shoot(), *loads, run.ask("zoom_in")] == [0] * 5
    assert run.game.fired == 1
    assert list(run.ask("ready").values()) == [0] * 7
    assert run.likelihood() == 1
    assert run.state == PLAYING
    assert run.shoot() == 1 and run.likelihood() == 1
    assert run.shoot() == 1 and run.state == 12  # the level is over
    assert [run.shoot(), run.ask("load_next"), run.ask("load_level", level=1)] == [0, 0, 0]
    assert run.likelihood() == 1
    assert run.ask("load_next") == 2


# --- trials and executions -------------------------------------------------------------------


@pytest.mark.requirement(10)
def test_repeats_come_before_the_next_trial_with_all_attempts():
    run = Run(evaluation(trial(level_set(1, attempts=2), executions=2), trial(2)))
    assert run.trace() == "11 9 L1 L1 11 9 L1 L1 11 9 L1 L2 13"


@pytest.mark.requirement(11)
@pytest.mark.parametrize("executions", [0, -1])
def test_trials_without_repeats_are_not_executed(executions):
    what = evaluation(trial(3, executions=executions), trial(1), trial(2, executions=executions))
    assert Run(what).trace() == "11 9 L1 13"


@pytest.mark.requirement(9)
def test_without_trials_the_evaluation_ends_at_once():
    assert Run(evaluation()).trace() == "13"
    assert Run(evaluation(trial(3, executions=0))).trace() == "13"


@pytest.mark.requirement(40)
def test_the_end_lasts():
    run = Run(evaluation(trial(1)))
    assert run.trace() == "11 9 L1 13"
    refused = [run.ask("load_next"), run.ask("load_level", level=1), run.shoot()]
    assert refused == [0, 0, 0]
    assert list(run.ask("ready").values()) == [0] * 7
    assert run.likelihood() == 1
    assert [run.state] * 3 == [13] * 3


@pytest.mark.requirement(38)
def test_a_trial_of_tests_begins_with_a_test_set():
    run = Run(evaluation(trial(None, [2, 1]), trial(1)))
    assert run.state == 11
    assert run.ask("ready")["mode"] == 1
    assert run.state == 8
    assert Run(evaluation(trial(None, [2, 1]), trial(1))).trace() == "11 8 T1 T2 8 T1 11 9 L1 13"


# --- checkpoints -----------------------------------------------------------------------------


@pytest.mark.requirement(12, 13)
def test_a_checkpoint_by_time_waits_for_the_end_of_the_level():
    run = Run(evaluation(trial(3, [1], time=10)), shots=2)
    run.begin()
    run.ask("load_next")
    run.clock.advance(9.9)
    assert run.state == PLAYING
    run.shoot(), run.shoot()
    assert run.state == WON  # 9.9 s: no test yet
    run.ask("load_next")
    run.clock.advance(0.1)
    assert run.state == PLAYING  # 10.0 s, but the level is not over
    assert run.shoot() == 1 and run.ask("load_next") == 0 and run.shoot() == 1
    assert run.state == 8


@pytest.mark.requirement(12, 14)
def test_a_checkpoint_by_interactions():
    what = evaluation(trial(4, [1, 1], interactions=2))
    assert Run(what).trace() == "11 9 L1 L2 8 T1 10 L3 L4 8 T1 13"


@pytest.mark.requirement(12)
def test_a_checkpoint_by_whichever_limit_comes_first():
    what = evaluation(trial(6, [1, 1, 1], time=30, interactions=3))
    # 9 s a level: the interactions come first; 20 s: the time.
    assert Run(what).trace(seconds=9) == "11 9 L1 L2 L3 8 T1 10 L4 L5 L6 8 T1 13"
    assert Run(what).trace(seconds=20) == "11 9 L1 L2 8 T1 10 L3 L4 8 T1 10 L5 L6 8 T1 13"


@pytest.mark.requirement(13, 14)
@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_of_nothing_is_no_checkpoint(limit):
    what = evaluation(trial(3, [1], time=limit, interactions=limit))
    assert Run(what).trace(seconds=1000) == "11 9 L1 L2 L3 8 T1 13"


@pytest.mark.requirement(29)
def test_a_checkpoint_takes_one_test_set_and_the_next_the_next():
    tests = [1, 2, 3]
    what = evaluation(trial(level_set(9, time=600), tests, time=250))
    # 125 s a level: tests at 250 and 500 s, and the final one at 600.
    expected = "11 9 L1 L2 8 T1 10 L3 L4 8 T1 T2 10 L5 8 T1 T2 T3 13"
    assert Run(what).trace(seconds=125) == expected


def test_where_test_sets_run_out_the_last_one_is_taken_again():
    what = evaluation(trial(3, [2, 1], interactions=1))
    assert Run(what).trace() == "11 9 L1 8 T1 T2 10 L2 8 T1 10 L3 8 T1 13"


@pytest.mark.requirement(18)
@pytest.mark.parametrize("interactions", [0, 1, 2, 3])
def test_the_last_set_is_a_test(interactions):
    trace = Run(evaluation(trial(3, [1], interactions=interactions), trial(2, [1]))).trace()
    for part in trace.split("11")[1:]:
        sets = [code for code in part.split() if code in ("8", "9", "10")]
        assert sets[-1] == "8"


# --- limits of sets --------------------------------------------------------------------------


@pytest.mark.requirement(15, 17)
def test_training_ends_by_its_time_which_stands_still_in_tests():
    what = evaluation(trial(level_set(9, time=50), [3], interactions=2))
    # 20 s a level: 40 s, a test of 60 s that does not count, and 60 s of training.
    assert Run(what).trace(seconds=20) == "11 9 L1 L2 8 T1 T2 T3 10 L3 8 T1 T2 T3 13"


def test_time_stands_still_until_the_agent_is_ready():
    run = Run(evaluation(trial(level_set(2, time=10))))
    run.clock.advance(1e6)
    assert run.begin() == [11, 9]
    run.ask("load_next")
    run.clock.advance(9)
    assert run.state == PLAYING
    run.clock.advance(1)
    assert run.state == 13


@pytest.mark.requirement(15, 18)
def test_time_goes_on_while_a_checkpoint_waits_for_the_level():
    run = Run(evaluation(trial(level_set(5, time=20), [1, 1], interactions=1)), shots=2)
    run.begin()
    run.ask("load_next")
    run.shoot()  # a checkpoint is due
    run.clock.advance(20)
    assert run.state == PLAYING
    run.shoot()
    assert run.begin() == [8]
    run.ask("load_next"), run.shoot(), run.shoot()
    assert run.state == 13  # that was the final test


@pytest.mark.requirement(15)
@pytest.mark.parametrize("time", [0, -1])
def test_training_without_a_time_limit(time):
    what = evaluation(trial(level_set(3, time=time)))
    assert Run(what).trace(seconds=1e5) == "11 9 L1 L2 L3 13"


@pytest.mark.requirement(16, 17)
@pytest.mark.parametrize("limit", [0, -1, 5])
def test_training_ends_by_its_interactions_those_of_tests_not_counted(limit):
    what = evaluation(trial(level_set(8, interactions=limit), [3], interactions=2))
    trace = Run(what).trace()
    assert trace.count("L") == (5 if limit == 5 else 8)


@pytest.mark.requirement(17)
def test_training_ends_when_every_level_has_been_played():
    assert Run(evaluation(trial(2))).trace() == "11 9 L1 L2 13"
    mixed = evaluation(trial(level_set(3, time=25, interactions=3)))
    assert Run(mixed).trace(seconds=10) == "11 9 L1 L2 L3 13"
    assert Run(mixed).trace(seconds=30) == "11 9 L1 13"


def test_a_limit_met_behind_a_checkpoint_makes_the_test_the_final_one():
    run = Run(evaluation(trial(level_set(5, interactions=3), [1, 1], interactions=2)), shots=3)
    run.begin()
    run.ask("load_next")
    for _ in range(3):  # the checkpoint is due after two shots, the training over after three
        assert run.shoot() == 1
    assert run.state == 8
    assert run.begin() == [8]
    run.ask("load_next")
    for _ in range(3):
        run.shoot()
    assert run.state == 13


@pytest.mark.requirement(26)
@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"time": 15}, "T1 T2 13"),
        ({"interactions": 1}, "T1 13"),
        ({"attempts": 2, "interactions": 5}, "T1 T1 T2 T2 T3 13"),
        ({"attempts": 0, "interactions": 4}, "T1 T2 T3 T1 13"),
        ({"selection": True}, "T1 T2 T3 13"),
    ],
)
def test_test_sets_have_limits_of_their_own(limits, expected):
    what = evaluation(trial(1, [level_set(3, **limits)]))
    assert Run(what).trace(seconds=10) == f"11 9 L1 8 {expected}"


def test_an_empty_set_is_over_at_once():
    assert Run(evaluation(trial(0, [1]), trial(0))).trace() == "11 9 8 T1 11 9 13"


# --- loads -----------------------------------------------------------------------------------


@pytest.mark.requirement(19, 20)
def test_a_level_without_attempts_is_not_loaded():
    what = evaluation(trial(level_set(2, attempts=2, selection=True)))
    run = Run(what)
    run.begin()
    for _ in range(2):
        assert run.ask("load_level", level=1) == 1
        run.shoot()
    before = jax.device_get(run.harness.state)
    assert run.ask("load_level", level=1) == 0
    jax.tree.map(np.testing.assert_array_equal, before, jax.device_get(run.harness.state))
    assert len(run.game.loaded) == 2
    assert run.ask("load_level", level=2) == 1


@pytest.mark.requirement(20, 30)
def test_when_no_level_is_left_the_set_is_over():
    run = Run(evaluation(trial(1, [1])), shots=2)
    run.begin()
    assert run.ask("load_next") == 1
    assert run.ask("load_next") == 0  # refused, and the level may be played to its end
    assert run.state == PLAYING
    assert run.shoot() and run.shoot()
    assert run.state == 8


@pytest.mark.requirement(20, 30)
@pytest.mark.parametrize("name", ["load_next", "load_level"])
def test_a_load_when_no_level_is_left_ends_a_trial_at_once(name):
    run = Run(evaluation(trial(1), trial(1)), shots=2)
    run.begin()
    run.ask("load_next")
    run.shoot()
    assert run.ask(name, **({"level": 1} if name == "load_level" else {})) == 0
    assert run.state == 11


@pytest.mark.requirement(30)
def test_the_next_level_is_the_same_while_it_has_attempts():
    what = evaluation(trial(level_set(2, attempts=3)))
    assert Run(what).trace() == "11 9 L1 L1 L1 L2 L2 L2 13"
    assert Run(what).trace(x=0) == "11 9 L1 L1 L1 L2 L2 L2 13"  # lost ones, too


@pytest.mark.requirement(21)
@pytest.mark.parametrize("attempts", [0, -1])
def test_without_a_limit_of_attempts_a_level_is_loaded_any_number_of_times(attempts):
    run = Run(evaluation(trial(level_set(3, attempts=attempts, selection=True))))
    run.begin()
    assert run.ask("load_next") == 1
    assert all(run.ask("load_level", level=1) == 1 for _ in range(1000))
    assert [run.ask("load_next") for _ in range(5)] == [2, 3, 1, 2, 3]


@pytest.mark.requirement(22)
def test_an_unordered_set_is_played_in_any_order():
    run = Run(evaluation(trial(level_set(7, selection=True))))
    run.begin()
    order = random.Random(3).sample(range(1, 8), 7)
    for number in order:
        assert run.ask("load_level", level=number) == 1
        run.shoot()
    assert [level.number + 1 for level in run.game.loaded] == order
    assert run.state == 13


@pytest.mark.parametrize("number", [0, 8, 2**31 - 1, 2**32 - 1])
def test_numbers_of_no_level_are_refused(number):
    run = Run(evaluation(trial(level_set(7, selection=True))))
    run.begin()
    assert run.ask("load_level", level=number) == 0
    assert run.state == MAIN_MENU


@pytest.mark.requirement(23)
def test_a_sequence_is_played_in_order():
    run = Run(evaluation(trial(level_set(3, attempts=2), [2])))
    run.begin()
    answers = []
    for number in (2, 3, 1, 3, 1, 1, 2, 1, 3):
        answers.append(run.ask("load_level", level=number))
        if answers[-1]:
            run.shoot()
    assert answers == [0, 0, 1, 0, 1, 0, 1, 0, 1]
    assert run.ask("load_next") == 3  # its second attempt
    run.shoot()
    assert run.begin() == [8]
    assert run.ask("load_level", level=2) == 0
    assert run.ask("load_level", level=1) == 1


@pytest.mark.requirement(35, 37)
def test_training_goes_on_where_it_was():
    what = evaluation(trial(level_set(4, attempts=2), [2], interactions=3))
    run = Run(what)
    assert run.begin() == [11, 9]
    header = None
    loaded = []
    for _ in range(3):
        loaded.append(run.ask("load_next"))
        run.shoot()
    assert loaded == [1, 1, 2]
    remaining = np.asarray(run.harness.state.current.remaining).tolist()
    assert run.state == 8
    header = run.ask("ready")
    assert (header["mode"], header["attempts"]) == (1, 1)
    for _ in range(2):
        run.ask("load_next")
        run.shoot()
    assert run.state == 10
    assert run.ask("ready")["mode"] == 0
    assert np.asarray(run.harness.state.current.remaining).tolist() == remaining
    assert run.ask("load_next") == 2  # one attempt is left


@pytest.mark.requirement(33)
def test_ready_without_an_announcement_changes_nothing():
    run = Run(evaluation(trial(level_set(3, attempts=2), [1], interactions=2)), shots=4)
    run.begin()
    for prepare in (lambda: None, lambda: run.ask("load_next"), run.shoot, run.shoot):
        prepare()
        assert run.state in (MAIN_MENU, PLAYING)
        before = jax.device_get(run.harness.state)
        assert list(run.ask("ready").values()) == [0] * 7
        jax.tree.map(np.testing.assert_array_equal, before, jax.device_get(run.harness.state))
    assert run.state == PLAYING  # a test is due and waits for the level
    run.shoot(), run.shoot()
    assert run.state == 8


def test_the_end_of_a_trial_breaks_a_level_off_and_a_checkpoint_does_not():
    run = Run(evaluation(trial(level_set(2, interactions=2)), trial(1)), shots=5)
    run.begin()
    run.ask("load_next")
    run.shoot(), run.shoot()
    assert run.state == 11
    assert run.shoot() == 0


def test_levels_as_interactions():
    what = evaluation(trial(level_set(9, interactions=3, attempts=2)), step=2, in_training=True)
    run = Run(what, shots=4, per_episode=True)
    run.begin()
    run.ask("load_next")
    run.shoot()
    assert run.state == PLAYING
    assert run.ask("load_next") == 1  # broken off: that was one
    for _ in range(4):
        assert run.shoot() == 1
    assert run.state == 12
    run.likelihood()
    run.ask("load_next")
    assert [run.shoot() for _ in range(4)] == [1] * 4
    assert run.state == 13


LIMITED = level_set(4, interactions=2, attempts=3)


@pytest.mark.parametrize("request_name", ["load_next", "load_level", "restart"])
@pytest.mark.parametrize(
    ("what", "announced"),
    [
        (evaluation(trial(LIMITED), trial(1)), 11),
        (evaluation(trial(LIMITED)), 13),
        (evaluation(trial(LIMITED, [1])), 8),
    ],
)
def test_a_load_that_meets_a_limit_leaves_the_level_and_loads_none(what, announced, request_name):
    run = Run(what, shots=3, per_episode=True)
    run.begin()
    assert run.ask("load_next") == run.ask("load_next") == 1
    values = {"level": 2} if request_name == "load_level" else {}
    assert run.ask(request_name, **values) == 0
    assert run.state == announced
    assert len(run.game.loaded) == 2
    assert run.shoot() == 0


def test_a_question_about_a_level_that_is_left_comes_before_the_next_level():
    run = Run(evaluation(trial(3), step=1, in_training=True), shots=3, per_episode=True)
    run.begin()
    assert run.ask("load_next") == 1
    assert run.ask("load_next") == 0
    assert run.state == 12
    run.likelihood()
    assert run.state == MAIN_MENU
    assert run.ask("load_next") == 2


def test_a_refused_load_leaves_no_level():
    run = Run(evaluation(trial(level_set(2, interactions=1))), shots=3, per_episode=True)
    run.begin()
    run.ask("load_next")
    assert run.ask("load_level", level=7) == run.ask("restart") == 0
    assert run.state == PLAYING


# --- what the original does otherwise --------------------------------------------------------

B = TRACES["B"][0]
ONE_TEST = evaluation(trial(level_set(5, interactions=5), [2], interactions=2))
SHARED = evaluation(trial(level_set(9, interactions=6), [2], interactions=2))


@pytest.mark.requirement(48)
@pytest.mark.parametrize(
    ("what", "quirks", "expected"),
    [
        (TRACES["A"][0], ["direct_start"], "9 L1 L2 L3 11 L1 L2 13"),
        (ONE_TEST, ["nine_for_eight"], "11 9 L1 L2 9 T1 T2 10 L3 L4 9 T1 T2 10 L5 9 T1 T2 13"),
        (
            evaluation(trial(2, [1, 2], interactions=1)),
            ["all_tests"],
            "11 9 L1 8 T1 8 T1 T2 10 L2 8 T1 8 T1 T2 13",
        ),
        (
            evaluation(trial(level_set(2, attempts=2, interactions=3), [1, 1], interactions=1)),
            ["all_tests"],
            "11 9 L1 8 T1 8 T1 10 L1 8 T1 8 T1 10 L2 8 T1 8 T1 13",
        ),
        (ONE_TEST, ["all_tests", "spent_tests"], "11 9 L1 L2 8 T1 T2 10 L3 L4 8 10 L5 8 13"),
        (evaluation(trial(level_set(9, interactions=4))), ["count_loads"], "11 9 L1 L2 13"),
        (SHARED, ["count_tests"], "11 9 L1 L2 8 T1 T2 10 L3 L4 8 T1 T2 13"),
        (TRACES["C"][0], ["one_execution"], "11 9 L1 L2 L3 13"),
        (ONE_TEST, ["lost_position"], "11 9 L1 L2 8 T1 T2 10 silence"),
        (
            evaluation(trial(level_set(3, attempts=0, interactions=5))),
            ["no_unlimited"],
            "11 9 L2 L3 L2 L3 L2 13",
        ),
        (
            ONE_TEST,
            ["nine_for_eight", "all_tests", "lost_position"],
            "11 9 L1 L2 9 T1 T2 10 silence",
        ),
        (
            evaluation(trial(2, [1, 1], interactions=1)),
            ["nine_for_eight", "all_tests", "lost_position"],
            "11 9 L1 9 T1 8 T1 10 silence",
        ),
    ],
)
def test_a_quirk_changes_the_trace(what, quirks, expected):
    run = Run(what, quirks=quirks)
    assert run.trace() == expected
    assert Run(what).trace() != expected


@pytest.mark.requirement(48)
def test_a_lost_position_may_be_taken_up_again():
    what = evaluation(trial(level_set(2, attempts=3), [1], interactions=4))
    expected = "11 9 L1 L1 L1 L2 8 T1 10 L2 L2 8 T1 13"
    assert Run(what, quirks=["lost_position"]).trace() == expected


@pytest.mark.requirement(48)
def test_numbers_off_by_one():
    run = Run(evaluation(trial(level_set(3, selection=True))), quirks=["off_by_one"])
    run.begin()
    assert run.ask("load_level", level=3) == 0
    assert run.ask("load_level", level=1) == 1
    run = Run(evaluation(trial(3)), quirks=["off_by_one"])
    run.begin()
    assert run.ask("load_level", level=1) is None
    assert run.state == MAIN_MENU


@pytest.mark.requirement(48)
def test_an_unasked_ready_dodges_a_checkpoint():
    run = Run(evaluation(trial(3, [1], time=10)), quirks=["ready_always"])
    run.begin()
    run.ask("load_next")
    run.clock.advance(9)
    assert run.ask("ready")["mode"] == 0
    assert run.state == MAIN_MENU
    run.clock.advance(9)
    assert run.state == MAIN_MENU
    run.clock.advance(1)
    assert run.state == 8


@pytest.mark.requirement(48)
def test_loads_dodge_a_checkpoint():
    for quirks, expected in (((), 0), (["load_always"], 2)):
        run = Run(evaluation(trial(3, [1], interactions=1)), shots=2, quirks=quirks)
        run.begin()
        run.ask("load_next")
        run.shoot()  # a test is due
        assert run.ask("load_next") == expected


@pytest.mark.requirement(48)
def test_a_load_that_counts_is_played_unless_it_ends_the_execution():
    for tests, number, announced in (((), 0, 11), ([1], 2, PLAYING)):
        what = evaluation(trial(level_set(3, interactions=3), tests), trial(1))
        run = Run(what, quirks=["count_loads"])
        run.begin()
        assert (run.ask("load_next"), run.shoot()) == (1, 1)
        assert (run.ask("load_next"), run.state) == (number, announced)


@pytest.mark.requirement(48)
def test_a_load_that_counts_may_ask_for_novelty_while_its_level_runs():
    what = evaluation(trial(2), step=1, in_training=True)
    run = Run(what, quirks=["count_loads"])
    run.begin()
    assert (run.ask("load_next"), run.state) == (1, 12)
    run.likelihood()
    assert run.state == PLAYING


# --- lanes -----------------------------------------------------------------------------------

SHAPE = scheduler.Shape(16, 16, 16)
KINDS = (*range(7), scheduler.SHOT, scheduler.SHOT, scheduler.NEXT, scheduler.NEXT, scheduler.READY)


def random_evaluation(draw: random.Random) -> Evaluation:
    """Any small evaluation."""

    def limits() -> SetLimits:
        return SetLimits(
            draw.choice((0, 0, -1, 3, 20)),
            draw.choice((0, 0, -1, 2, 9)),
            draw.choice((-1, 0, 1, 1, 2)),
            draw.random() < 0.5,
        )

    def some_levels() -> LevelSet:
        levels = tuple(LevelPath.of(0, 1, number) for number in range(draw.choice((0, 1, 2, 3, 5))))
        return LevelSet(limits(), levels)

    trials = []
    for number in range(draw.choice((0, 1, 2, 3))):
        training = some_levels() if draw.random() < 0.8 else None
        tests = tuple(some_levels() for _ in range(draw.choice((0, 1, 1, 2, 3))))
        if training is None and not tests:
            continue
        executions = draw.choice((-1, 1, 1, 2))
        time, interactions = draw.choice((0, -1, 4, 15)), draw.choice((0, -1, 1, 2, 4))
        notify = draw.random() < 0.3
        trials.append(
            ConfiguredTrial(number, executions, time, interactions, notify, training, tests)
        )
    measurement = Measurement(
        draw.choice((-1, 0, 1, 2, 3)), draw.random() < 0.6, draw.random() < 0.6
    )
    return Evaluation(measurement, tuple(trials))


def random_events(draw: random.Random, count: int) -> list[tuple[int, int, int]]:
    """Any events, those that go on more often than those that do not."""
    events = []
    for _ in range(count):
        kind = draw.choice(KINDS)
        value = 0
        if kind == scheduler.SHOT:
            value = draw.choice((PLAYING, WON, LOST))
        if kind == scheduler.LOAD:
            value = draw.choice((-1, 0, 1, 2, 3, 4, 5, 6, 17, 2**31 - 1))
        events.append((kind, value, draw.choice((0, 0, 100, 1000, 2500))))
    return events


def columns(events) -> scheduler.Event:
    """Events of all lanes as arrays."""
    return scheduler.Event(*(np.array(part, np.int32) for part in zip(*events, strict=True)))


@pytest.fixture(scope="module")
def lanes():
    """256 lanes of random events, in one compiled function, with what each was given."""
    draw = random.Random(20)
    whats = [random_evaluation(draw) for _ in range(256)]
    episodes = [draw.random() < 0.3 for _ in whats]
    # Half of the lanes do as the document says, the others as the original in any respects.
    quirks = [
        scheduler.Quirks(*(index % 2 and draw.random() < 0.4 for _ in scheduler.QUIRKS))
        for index in range(len(whats))
    ]
    quirks = [scheduler.Quirks(*map(bool, each)) for each in quirks]
    plans = [
        scheduler.plan_of(what, per_episode=each, quirks=other, shape=SHAPE)
        for what, each, other in zip(whats, episodes, quirks, strict=True)
    ]
    events = [random_events(draw, 60) for _ in whats]
    traced = []

    def counted(plan, state, event):
        traced.append(1)
        return scheduler.step(plan, state, event)

    batch = scheduler.stack(plans)
    state = jax.jit(jax.vmap(scheduler.start))(batch)
    step = jax.jit(jax.vmap(counted))
    replies = []
    for row in zip(*events, strict=True):
        state, reply = step(batch, state, columns(row))
        replies.append(jax.device_get(reply))
    return whats, episodes, quirks, plans, events, replies, len(traced)


@pytest.mark.slow
@pytest.mark.requirement(49)
def test_lanes_equal_single_runs_and_compile_once(lanes):
    _, _, _, plans, events, replies, traces = lanes
    assert traces == 1
    compiled = scheduler._packed_step._cache_size()
    for lane, (plan, lane_events) in enumerate(zip(plans, events, strict=True)):
        single = scheduler.Single(plan)
        for number, event in enumerate(lane_events):
            alone = single.happens(*event)
            reply = replies[number]
            together = tuple(np.asarray(leaf)[lane].tolist() for leaf in reply)
            assert together == (*alone[:3], list(alone.header), *alone[4:]), (lane, number, event)
    assert scheduler._packed_step._cache_size() <= compiled + 1


@pytest.mark.slow
@pytest.mark.requirement(49)
def test_lanes_equal_rules_written_out(lanes):
    whats, episodes, quirks, _, events, replies, _ = lanes
    reported = set()
    for lane, what in enumerate(whats):
        if any(quirks[lane]):
            continue
        twin = Twin(what, per_episode=episodes[lane])
        for number, event in enumerate(events[lane]):
            answer = twin.event(*event)
            reply = replies[number]
            values = (
                int(reply.value[lane]),
                int(reply.reported[lane]),
                bool(reply.playable[lane]),
                reply.header[lane].tolist(),
            )
            assert values == answer, (lane, number, event)
            reported.add(values[1])
    assert reported == {1, 5, 6, 7, 8, 9, 10, 11, 12, 13}


def test_a_shape_that_is_too_small_is_refused():
    with pytest.raises(ValueError, match="needs"):
        scheduler.plan_of(evaluation(trial(40)), shape=SHAPE)
