"""Results are those of the original grader, on environments of each kind."""

import json

import numpy as np
import pytest

from evaluation.clock import ScriptedClock
from evaluation.grader import (
    Evaluator,
    ReinforcementLearningTestCase,
    RewardEvaluator,
    StepCountEvaluator,
    TestSuite,
    VectorTestCase,
)
from tests.evaluation.grader import players
from tests.evaluation.grader.worlds import KINDS, OldCartPole, lanes_of

EVALUATORS: dict[str, type[Evaluator]] = {"reward": RewardEvaluator, "steps": StepCountEvaluator}
SEED_FIRST = range(14)
BALANCING = {8, 9, 12}  # thousands of steps, too many for a batch that is a loop


def suite_of(recording, env, kind=ReinforcementLearningTestCase, **options):
    values = recording.values
    case = kind(
        t_max=values["t_max"],
        seeds=values["seeds"],
        case_id=0,
        time_limit=values["time_limit"],
        n_runs=values["n_runs"],
        env=env,
        evaluator=EVALUATORS[values["evaluator"]](),
        **options,
    )
    return TestSuite(recording.expected["suite_id"], [case])


def cases(kinds, numbers=SEED_FIRST):
    """Recorded cases on kinds of environments."""
    return [(kind, number) for kind in kinds for number in numbers]


@pytest.mark.requirement(56, 57, 62, 65)
@pytest.mark.parametrize(("kind", "number"), cases(KINDS))
def test_results_equal_the_recorded_ones(seed_first, kind, number):
    recording = seed_first[number]
    suite = suite_of(recording, KINDS[kind](recording.starts, recording.limit))
    results = suite.run(recording.policy)
    assert results == recording.expected
    assert json.loads(json.dumps(results, allow_nan=False)) == results


def test_there_are_fourteen_such_cases(seed_first):
    assert len(seed_first) == len(SEED_FIRST)
    assert {n for n in SEED_FIRST if seed_first[n].values["agent"] == "PD"} - {13} == BALANCING


@pytest.mark.requirement(70)
@pytest.mark.parametrize(
    ("kind", "number"),
    cases(["jaxsim"]) + cases(["Gymnasium, five values"], set(SEED_FIRST) - BALANCING),
)
def test_a_batch_gives_the_recorded_results(seed_first, kind, number):
    recording = seed_first[number]
    env = lanes_of(kind, recording.starts, recording.limit, recording.values["n_runs"])
    suite = suite_of(recording, env, VectorTestCase)
    assert suite.run(recording.policy) == recording.expected


@pytest.mark.requirement(64)
@pytest.mark.parametrize("kind", ["gym, four values", "Gymnasium, five values"])
def test_the_legacy_order_gives_what_the_original_gave(recordings, kind):
    """There, each episode begins as the seed of the one before says."""
    upstream = [r for r in recordings if r.values["mode"] == "upstream"]
    assert len(upstream) == 12
    for recording in upstream:
        # Seeded once by hand before the run.
        starts = recording.starts | {None: recording.starts[recording.values["seeds"][0]]}
        env = KINDS[kind](starts, recording.limit)
        suite = suite_of(recording, env, seed_order="legacy")
        assert suite.run(recording.policy) == recording.expected


@pytest.mark.requirement(68)
@pytest.mark.parametrize("place", [0, 1])
def test_an_agent_that_fails_keeps_what_was_recorded(golden, seed_first, place):
    values = golden["errors"][place]
    assert values["agent"] == "CrashAt"
    recording = type(seed_first[0])(values, seed_first[0].starts)
    suite = suite_of(recording, OldCartPole(recording.starts))
    results = suite.run(players.CrashAt)
    (expected,), (result,) = recording.expected["results"], results["results"]
    assert result["result"]["error"] == {"type": "RuntimeError", "message": "boom"}
    assert repr(suite.results[0].result.error) == expected["result"]["error"]
    fields = {k: v for k, v in expected["result"].items() if k != "error"}
    assert {k: v for k, v in result["result"].items() if k != "error"} == fields


@pytest.mark.requirement(59)
def test_a_slow_agent_is_cut_off_where_the_original_cut_it_off(golden, seed_first):
    values = golden["errors"][2]
    assert values["agent"] == "Sleeper" and values["time_limit"] == 1
    recording = type(seed_first[0])(values, seed_first[0].starts)
    clock = ScriptedClock()
    suite = suite_of(recording, OldCartPole(recording.starts), clock=clock)
    suite.run(lambda: players.Slow(clock, 0.3))
    expected, result = recording.expected["results"][0]["result"], suite.results[0].result
    assert repr(result.error) == expected["error"]
    assert (result.results, result.value) == (expected["detail"], expected["value"])


@pytest.mark.requirement(59)
def test_a_time_limit_of_zero_is_none(golden, seed_first):
    values = golden["errors"][6]
    assert values["note"] == "time_limit=0"
    recording = type(seed_first[0])(values, seed_first[0].starts)
    suite = suite_of(recording, OldCartPole(recording.starts))
    assert suite.run(players.Always) == recording.expected


@pytest.mark.requirement(53)
def test_an_evaluator_that_is_used_again_goes_on_counting(golden, seed_first):
    evaluator = StepCountEvaluator()
    env = OldCartPole(seed_first[0].starts)
    case = ReinforcementLearningTestCase(5, [2333, 2333], 4, 60, 2, env, evaluator)
    suite = TestSuite("reuse", [case])
    results = [suite.run(players.Alternate) for _ in range(2)]
    assert results == golden["evaluator_reuse"]
    assert str(results[1]) == golden["print_form"]


@pytest.mark.requirement(64)
def test_seeds_reproduce_their_own_episodes(seed_first):
    """In any company and order: nothing is shifted."""
    starts = seed_first[0].starts
    env = OldCartPole(starts)

    def returns(seeds):
        evaluator = RewardEvaluator()
        case = ReinforcementLearningTestCase(500, seeds, 0, 0, len(seeds), env, evaluator)
        return case.evaluate(players.Alternate).results

    together = returns(list(range(10)))
    assert returns([7, 3, 3]) == [together[7], together[3], together[3]]
    assert len(set(together)) > 5
    np.testing.assert_array_equal(returns([]), [])
