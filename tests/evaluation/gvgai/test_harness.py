"""An agent in this process: order of levels, limits and what they cost, by a scripted clock."""

import re
import time

import numpy as np
import pytest

from evaluation.clock import ScriptedClock, SystemClock
from evaluation.gvgai import ElapsedTimer, TrackAgent, harness
from evaluation.gvgai.phases import Call
from evaluation.gvgai.player import TimedAgent
from evaluation.gvgai.results import Announcer
from evaluation.gvgai.rules import PRESETS, TIMERS, Rules
from evaluation.gvgai.track import Track, TrackLevel
from evaluation.gvgai.trial import TrackLifetime
from tests.evaluation import toy
from tests.evaluation.gvgai.scripted import (
    ESCAPE,
    LEFT,
    LEVELS,
    NIL,
    RIGHT,
    Script,
    always,
    in_turn,
    run,
    track,
)

HOUR = 3600.0
LINE = re.compile(
    r"\[(TRAINING|VALIDATION)\] Result \(1->win; 0->lose\): level:([0-4]), "
    r"Player0:(-100|-1|0|1), Player0-Score:(-?[0-9.]+), timesteps:([0-9]+)"
)


def training(*seconds):
    """Times of `result`: the last one uses the training up."""
    return {"result": in_turn(*seconds)}


def trained_for(results, **values):
    """A script that breaks every level off, whose training takes a number of results."""
    return Script(times=training(*[0.0] * (results - 1), 599.9, 0.2, 0.0), **values)


# Order of levels ----------------------------------------------------------------------------------


@pytest.mark.requirement(73, 74)
def test_the_first_phase_is_levels_0_1_2_whatever_is_returned():
    done = run(trained_for(4, levels=in_turn(2, 0, 1)))
    assert done.levels[:4] == [0, 1, 2, 1]
    assert [r.phase for r in done.results[:4]] == ["first"] * 3 + ["second"]


@pytest.mark.requirement(73, 76)
def test_then_levels_are_chosen_until_the_time_is_up():
    done = run(trained_for(6, levels=in_turn(9, 9, 2, 0, 1)))
    assert done.levels == [0, 1, 2, 2, 0, 1, 1, 3, 4]
    assert [r.phase for r in done.results] == ["first"] * 3 + ["second"] * 4 + ["validation"] * 2
    assert done.trial.call == Call.FINISH
    assert done.trial.reason == ""


@pytest.mark.requirement(73, 77)
def test_a_level_that_is_none_becomes_a_random_training_level():
    choices = (-1, 3, 4, 7, "abc", None, 2.0, [1])
    script = trained_for(3 + len(choices), levels=in_turn(0, 0, *choices))
    chosen = run(script).trained()[3:]
    assert set(chosen) <= {0, 1, 2}
    again = trained_for(3 + len(choices), levels=in_turn(0, 0, *choices))
    assert run(again).trained()[3:] == chosen
    levels = [run(trained_for(9, levels=always(7)), seed=seed).trained()[3:] for seed in (0, 1)]
    assert levels[0] != levels[1]


def test_any_kind_of_whole_number_chooses_a_level():
    done = run(trained_for(5, levels=in_turn(0, 0, np.int64(2), True, "1")))
    # A truth value is not a number of a level: "True" is none.
    assert done.levels[3] == 2


@pytest.mark.requirement(78)
def test_training_takes_ten_minutes_or_five():
    assert Rules().learning_seconds == PRESETS["track"].learning_seconds == 600
    assert PRESETS["gvgai2017"].learning_seconds == 300
    for rules in (PRESETS["track"], PRESETS["gvgai2017"]):
        # Each level takes 20 s. The one in play at the deadline is played to its end, no other.
        script = Script(times={"init": always(0.5), "result": always(0.0), "act": always(0.03)})
        script.actions = lambda index: ESCAPE if index % 10 == 9 else NIL
        limit = rules.learning_seconds / 100
        done = run(script, learning_seconds=limit)
        spent = 0.5 + 10 * 0.03
        assert len(done.trained()) == int(np.ceil(limit / spent))
        assert done.levels[-2:] == [3, 4]


@pytest.mark.requirement(79)
@pytest.mark.parametrize(("seconds", "validated"), [(0.9, True), (1.0, True), (1.1, False)])
def test_a_result_after_the_deadline_has_one_second(seconds, validated):
    script = Script(times={"init": in_turn(0.0, 0.9), "result": in_turn(0.0, seconds, 0.0)})
    done = run(script, learning_seconds=0.8)
    assert len(script.states("result")) == (4 if validated else 2)
    assert done.levels == [0, 1, 3, 4] if validated else [0, 1]
    assert done.trial.call == (Call.FINISH if validated else Call.CLOSED)
    assert ("result" in done.trial.reason) != validated


@pytest.mark.requirement(79)
@pytest.mark.parametrize(
    ("seconds", "grace", "call"),
    [
        (0.5, True, Call.FINISH),
        (1.5, True, Call.FINISH),
        (1.6, True, Call.CLOSED),
        (0.5, False, Call.FINISH),
        (0.6, False, Call.CLOSED),
    ],
)
def test_a_result_during_which_the_time_runs_out(seconds, grace, call):
    script = Script(times=training(seconds, 0.0))
    done = run(script, learning_seconds=0.5, grace_on_crossing=grace)
    assert done.trial.call == call
    assert done.levels == ([0, 3, 4] if call == Call.FINISH else [0])


@pytest.mark.requirement(79)
@pytest.mark.parametrize(
    ("seconds", "answer"), [(0.4, "2"), (0.5, "END_TRAINING"), (1.5, "END_TRAINING")]
)
def test_a_client_says_that_its_time_has_run_out_meanwhile(seconds, answer):
    script = Script(levels=always(2), times={"result": always(seconds)})
    player = TimedAgent(script.agent(), script.clock, Rules(learning_seconds=0.5))
    player.answer("START")
    assert player.answer('{"phase":"END","isValidation":false}')[0] == answer


@pytest.mark.requirement(78)
def test_a_clients_time_begins_when_the_server_starts():
    script = Script(levels=always(2))
    player = TimedAgent(script.agent(), script.clock, Rules(learning_seconds=0.5))
    script.clock.advance(HOUR)
    player.answer("START")
    assert player.answer('{"phase":"END","isValidation":false}')[0] == "2"


@pytest.mark.requirement(80)
@pytest.mark.parametrize("times", [1, 10])
def test_validation_is_levels_3_and_4_in_turn(times):
    done = run(Script(times=training(HOUR / 6, 0.0)), validation_times=times)
    assert done.levels == [0] + [3, 4] * times
    assert Rules().validation_times == 1
    assert PRESETS["gvgai2017"].validation_times == 10


def test_an_overspent_result_in_validation_costs_the_rest_of_the_repetition():
    times = {"init": in_turn(0.6, 0.0), "result": in_turn(0.0, 1.5, 0.0, 0.0, 1.5)}
    done = run(Script(times=times), learning_seconds=0.5, validation_times=3)
    assert done.levels == [0, 3, 3, 4, 3]
    assert done.trial.call == Call.FINISH


def test_training_ends_after_the_most_plays():
    done = run(Script(), most_plays=7)
    assert done.levels == [0, 1, 2, 0, 0, 0, 0, 3, 4]


# Limits -------------------------------------------------------------------------------------------


@pytest.mark.requirement(81)
@pytest.mark.parametrize(("seconds", "plays"), [(0.99, True), (1.0, False), (1.01, False)])
def test_the_constructor_has_one_second(seconds, plays):
    script = Script(times={"constructor": always(seconds), "result": in_turn(HOUR / 6, 0.0)})
    done = run(script)
    if plays:
        assert done.levels == [0, 3, 4]
        return
    (result,) = done.results
    assert (result.phase, result.level, result.winner, result.score) == ("start", None, -100, -1000)
    assert script.calls == script.calls[:1]
    assert done.trial.call == Call.CLOSED
    assert "constructor" in done.trial.reason


@pytest.mark.requirement(82)
def test_a_constructor_may_take_the_observation_and_a_timer_or_nothing():
    parameters = []

    class Both(TrackAgent):
        def __init__(self, sso, elapsed_timer):
            parameters.append((sso.phase, sso.gameTick, elapsed_timer.remainingTimeMillis()))

        def act(self, sso, elapsed_timer):
            return ESCAPE

        def result(self, sso, elapsed_timer):
            return 0

    class Nothing:
        def init(self, sso, timer): ...

        act, result = Both.act, Both.result

    class Any(Nothing):
        def __init__(self, *arguments):
            parameters.append(len(arguments))

    for agent in (Both, Nothing, Any):
        done = run(Script(), agent, most_plays=1)
        assert done.levels == [0, 3, 4]
    assert parameters == [("INIT", 0, 1000.0), 2]


@pytest.mark.requirement(83)
def test_the_timer():
    clock = ScriptedClock(5.0)
    timer = ElapsedTimer(clock, 0.04)
    assert (timer.elapsedMillis(), timer.remainingTimeMillis()) == (0.0, 40.0)
    clock.advance(0.03)
    twin = timer.copy()
    assert (timer.elapsedMillis(), timer.remainingTimeMillis()) == (30.0, 10.0)
    assert not timer.exceededMaxTime()
    timer.setMaxTimeMillis(100)
    assert (timer.remainingTimeMillis(), twin.remainingTimeMillis()) == (70.0, 10.0)
    clock.advance(0.03)
    assert (twin.elapsedMillis(), twin.remainingTimeMillis()) == (60.0, -20.0)
    assert twin.exceededMaxTime() and not timer.exceededMaxTime()


@pytest.mark.requirement(83)
def test_every_method_has_a_timer_with_its_limit():
    limits = {}

    class Timed(TrackAgent):
        def __init__(self, sso, elapsed_timer):
            limits["constructor"] = elapsed_timer.remainingTimeMillis()

        def init(self, sso, elapsed_timer):
            limits["init"] = elapsed_timer.remainingTimeMillis()

        def act(self, sso, elapsed_timer):
            limits["act"] = elapsed_timer.remainingTimeMillis()
            script.clock.advance(0.01)
            return ESCAPE

        def result(self, sso, elapsed_timer):
            limits.setdefault("result", elapsed_timer.remainingTimeMillis())
            script.clock.advance(600.0 if elapsed_timer.remainingTimeMillis() > 1000 else 0.0)
            limits["late result"] = elapsed_timer.remainingTimeMillis()
            return 0

    script = Script()
    run(script, Timed)
    assert limits == {
        "constructor": 1000.0,
        "init": 1000.0,
        "act": 40.0,
        "result": 600_990.0,  # what is left of ten minutes, and the grace
        "late result": 1000.0,
    }


@pytest.mark.requirement(85)
@pytest.mark.parametrize(("seconds", "plays"), [(0.5, True), (0.99, True), (1.01, False)])
def test_init_comes_before_every_level_and_has_one_second(seconds, plays):
    script = trained_for(3, levels=always(0))
    script.times["init"] = in_turn(0.0, seconds, 0.0)
    done = run(script)
    methods = [name for name, _ in script.calls]
    if plays:
        assert methods == ["constructor"] + ["init", "act", "result"] * len(done.results)
        # What init returns is an action that nobody plays.
        assert {sso.avatarLastAction for sso in script.states("act")} == {NIL}
        return
    # It costs its level, and `result` is asked as after any other.
    calls = ["constructor", "init", "act", "result", "init", "result", "init"]
    assert methods[: len(calls)] == calls
    lost = done.results[1]
    assert (lost.level, lost.winner, lost.score, lost.ticks) == (1, -100, -1000.0, 0)
    observation = script.states("result")[1]
    assert (observation.gameWinner, observation.gameScore, observation.phase) == (
        "PLAYER_DISQ",
        -1000.0,
        "END",
    )
    assert done.levels[:3] == [0, 1, 2]
    assert done.trial.call == Call.FINISH


@pytest.mark.parametrize(
    ("scope", "levels"),
    [("level", [3, 4, 3, 4]), ("phase", [3, 3, 4])],
)
def test_what_a_late_init_in_validation_costs(scope, levels):
    script = Script(times={**training(HOUR / 6, 0.0), "init": in_turn(0.0, 1.5, 0.0)})
    done = run(script, validation_times=2, scope=scope)
    assert [(r.level, r.winner) for r in done.results[:2]] == [(0, -1), (3, -100)]
    assert done.levels[1:] == levels
    assert done.trial.call == Call.FINISH


def test_a_late_init_in_training_ends_the_track_of_the_published_server():
    script = trained_for(3, levels=always(0))
    script.times["init"] = in_turn(0.0, 1.5, 0.0)
    done = run(script, scope="phase")
    assert done.levels == [0, 1]
    assert done.trial.call == Call.CLOSED


@pytest.mark.parametrize("timer", TIMERS)
def test_processor_time_stands_still_while_an_agent_sleeps(timer):
    rules = Rules(act_seconds=0.1, act_hard_seconds=0.15, most_plays=1, timer=timer)

    class Sleeper(TrackAgent):
        def act(self, sso, elapsed_timer):
            if sso.gameTick == 0:
                time.sleep(0.3)
                return LEFT
            return ESCAPE

        def result(self, sso, elapsed_timer):
            return 0

    results = []
    announcer = Announcer(keep=results.append)
    harness.run(Track("poles", LEVELS, rules), Sleeper, SystemClock(), announcer)
    first = results[0]
    assert (first.overspent, first.ticks) == ((True, 0) if timer == "wall" else (False, 1))


@pytest.mark.requirement(86)
@pytest.mark.parametrize(
    ("millis", "action"),
    [(0, LEFT), (40, LEFT), (41, NIL), (50, NIL), (51, None), (3000, None)],
)
def test_an_action_has_forty_milliseconds(millis, action):
    script = Script(times={"act": in_turn(0.03, millis / 1e3, 0.0)})
    script.actions = in_turn(RIGHT, LEFT, ESCAPE)
    done = run(script, most_plays=1)
    level = done.results[0]
    assert level.act_max_ms == max(millis, 30)
    if action:
        assert [sso.avatarLastAction for sso in script.states("act")[:3]] == [NIL, RIGHT, action]
        assert (level.ticks, level.overspent, level.aborted) == (2, False, True)
    else:
        assert (level.ticks, level.overspent, level.aborted) == (1, True, False)
    assert done.levels == [0, 3, 4]


@pytest.mark.requirement(87)
@pytest.mark.parametrize(
    ("policy", "line", "fields"),
    [
        ("disqualify", "Player0:-100, Player0-Score:-1000.0", ("PLAYER_DISQ", -1000.0)),
        ("abort_level", "Player0:-1, Player0-Score:2.0", ("NO_WINNER", 2.0)),
    ],
)
def test_what_an_overspent_action_costs(policy, line, fields):
    script = Script(times={"act": in_turn(0.0, 0.0, 0.2, 0.0)})
    script.actions = in_turn(LEFT, RIGHT, LEFT, ESCAPE)
    done = run(script, most_plays=2, on_overspent=policy)
    results = [text for text in done.lines if "Result" in text]
    expected = f"[TRAINING] Result (1->win; 0->lose): level:0, {line}, timesteps:2"
    assert results[0] == expected
    sso = script.states("result")[0]
    assert (sso.gameWinner, sso.gameScore) == fields
    assert (sso.phase, sso.avatarLastAction) == ("ABORT", ESCAPE)
    # The level is lost, not the track.
    assert done.levels == [0, 1, 3, 4]
    assert done.trial.call == Call.FINISH


# What the agent is told ---------------------------------------------------------------------------


@pytest.mark.requirement(75, 89)
def test_results_come_once_at_the_end_of_each_level_normal_or_forced():
    falls = Script(actions=always(LEFT))
    done = run(falls, most_plays=2)
    ends = falls.states("result")
    assert len(ends) == len(done.results) == 4
    for sso, result in zip(ends, done.results, strict=True):
        assert (sso.phase, sso.isGameOver, sso.gameWinner) == ("END", True, "PLAYER_LOSES")
        assert (sso.gameTick, sso.gameScore) == (result.ticks, result.score)
        assert sso.avatarLastAction == LEFT
        assert not sso.isAvatarAlive
    forced = Script()
    run(forced, most_plays=2)
    for sso in forced.states("result"):
        assert (sso.phase, sso.isGameOver, sso.gameWinner) == ("ABORT", False, "NO_WINNER")
        assert sso.isAvatarAlive


@pytest.mark.requirement(88)
def test_escape_breaks_a_level_off_and_the_next_level_is_honoured():
    script = trained_for(5, levels=in_turn(0, 0, 1, 2), actions=in_turn(LEFT, ESCAPE))
    done = run(script)
    assert done.levels[3:5] == [1, 2]
    for sso in script.states("result"):
        assert (sso.phase, sso.avatarLastAction) == ("ABORT", ESCAPE)
    first = done.results[0]
    assert (first.aborted, first.winner, first.ticks, first.score) == (True, -1, 1, 1.0)


@pytest.mark.requirement(89)
def test_result_may_take_the_observation_only():
    class Agent:
        results = 0

        def init(self, sso): ...

        def act(self, sso):
            return ESCAPE

        def result(self, sso):
            Agent.results += 1
            return 1

    done = run(Script(), Agent, most_plays=5)
    assert done.levels == [0, 1, 2, 1, 1, 3, 4]
    assert Agent.results == 7


@pytest.mark.requirement(90)
def test_what_is_no_action_or_not_available_does_nothing():
    answers = (LEFT, "ACTION_UP", "gibberish", "", None, 4, "ACTION_USE", NIL, RIGHT, ESCAPE)
    script = Script(actions=in_turn(*answers))
    run(script, most_plays=1)
    first = script.states("act")[: len(answers)]
    actions = [sso.avatarLastAction for sso in first[1:]]
    assert actions == [LEFT] + [NIL] * 7 + [RIGHT]
    assert first[0].availableActions == [LEFT, RIGHT]


@pytest.mark.requirement(75)
def test_what_an_agent_raises_counts_against_it_and_is_told():
    class Raises(TrackAgent):
        def act(self, sso, elapsed_timer):
            raise ZeroDivisionError("as it\nhappens")

        def result(self, sso, elapsed_timer):
            return 0

    done = run(Script(), Raises, most_plays=1)
    assert [r.winner for r in done.results] == [-100] * 3
    assert {r.error for r in done.results} == {"ZeroDivisionError: as it happens"}

    class Broken(Raises):
        def __init__(self, sso, elapsed_timer):
            raise OSError("no model")

    class Leaves(Raises):
        def act(self, sso, elapsed_timer):
            raise SystemExit(0)

    done = run(Script(), Leaves, most_plays=1, on_overspent="abort_level")
    assert [(r.winner, r.error) for r in done.results] == [(-1, "SystemExit: 0")] * 3

    done = run(Script(), Broken)
    assert (done.results[0].winner, done.results[0].error) == (-100, "OSError: no model")
    assert done.trial.reason == "the constructor failed or was late (OSError: no model)"


# Results ------------------------------------------------------------------------------------------


@pytest.mark.requirement(93)
def test_result_lines_and_winner_codes():
    script = Script(actions=lambda i: LEFT if i % 2 else RIGHT, times=training(0.0, HOUR, 0.0))
    script.times["act"] = lambda index: 0.2 if index == 3 else 0.0
    done = run(script, most_plays=3)
    lines = [text for text in done.lines if "Result" in text]
    for text, result in zip(lines, done.results, strict=True):
        match = LINE.fullmatch(text)
        assert match, text
        kind, level, winner, score, ticks = match.groups()
        assert kind == ("VALIDATION" if result.level in (3, 4) else "TRAINING")
        assert (int(level), int(winner)) == (result.level, result.winner)
        assert (float(score), int(ticks)) == (result.score, result.ticks)
    assert done.results[0].winner == -100
    assert done.lines[0] == "[PHASE] Starting First Phase of Training in 3 levels."


@pytest.mark.requirement(93)
def test_phases_are_announced():
    done = run(trained_for(4))
    phases = [text for text in done.lines if text.startswith("[PHASE]")]
    assert phases == [
        "[PHASE] Starting First Phase of Training in 3 levels.",
        "[PHASE] Starting Second Phase of Training in 3 levels.",
        "[PHASE] Starting Validation in 2 levels.",
        "[PHASE] End Validation in 2 levels.",
    ]


@pytest.mark.requirement(95)
def test_a_run_comes_back_by_its_seed_and_lifetime():
    def play(**where):
        script = trained_for(6, levels=always(7), actions=always(LEFT))
        return run(script, **where).results

    assert play(seed=4) == play(seed=4)
    assert play(seed=4) != play(seed=5)
    starts = []
    for lifetime in (0, 1):
        script = trained_for(3, actions=always(ESCAPE))
        run(script, seed=4, lifetime=lifetime)
        starts.append([sso.avatarPosition for sso in script.states("init")])
    assert starts[0] != starts[1]
    # Every play starts elsewhere.
    assert len({tuple(place) for place in starts[0]}) == len(starts[0])


def test_the_levels_played_become_records():
    done = run(trained_for(4, actions=always(LEFT)), seed=3)
    records = done.trial.log.records()
    assert records.schedule.name == "poles" and records.first_lifetime == 0
    third = run(trained_for(2, actions=always(LEFT)), seed=3, lifetime=3).trial.log.records()
    assert third.first_lifetime == third.metadata["lifetime"] == 3
    assert (records.metadata["agent"], records.metadata["seed"]) == ("Agent", 3)
    np.testing.assert_array_equal(records.columns["length"][0], [r.ticks for r in done.results])
    modes = [b.mode for b in records.schedule.blocks for _ in range(b.count)]
    assert modes == ["train"] * (len(done.results) - 2) + ["test"] * 2
    assert [b.learning for b in records.schedule.blocks[-2:]] == [False, False]


@pytest.mark.parametrize("form", ["JSON", "IMAGE"])
def test_the_first_observation_has_the_form_that_was_asked_for(form):
    pictures = []

    class Failing:
        def __init__(self, sso, timer):
            pictures.append(sso.imageArray)
            raise ValueError("enough")

    harness.run(track(), Failing, ScriptedClock(), form=form)
    assert [picture is not None for picture in pictures] == [form == "IMAGE"]


def test_a_task_that_reports_something_else_is_refused():
    with toy.registered():
        other = Track("toys", (TrackLevel("Toy"),) * 5)
        with pytest.raises(ValueError, match="task 'Toy' does not report what CartPole3D"):
            TrackLifetime(other, ScriptedClock())


def test_a_trial_that_is_over_takes_no_reply():
    done = run(Script(), most_plays=1)
    with pytest.raises(RuntimeError, match="takes no reply"):
        done.trial.reply("ACTION_NIL")
    done.trial.hang_up()
    assert done.trial.call == Call.FINISH
