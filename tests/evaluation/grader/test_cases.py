"""Agents, evaluators, test cases and suites: what is called when, and what they refuse."""

import json
import math
import re
from collections import Counter
from typing import ClassVar

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="needs the extra: jaxsim-novelty[gymnasium]")

import gymnasium

from evaluation.grader import (
    Agent,
    EvaluationResult,
    Evaluator,
    ReinforcementLearningTestCase,
    RewardEvaluator,
    StepCountEvaluator,
    TestCase,
    TestResult,
    TestSuite,
    VectorTestCase,
)
from evaluation.grader.evaluators import FULL_STATE
from evaluation.grader.results import LONGEST_TEXT, RESULT_FIELDS, error_to_json, plain
from tests.evaluation.grader import players
from tests.evaluation.grader.worlds import KINDS, NewCartPole, OldCartPole, lanes_of

pytestmark = pytest.mark.optimised

START = (0.02, 0.01, 0.05, -0.01)
STARTS = {None: START} | dict.fromkeys(range(20), START)


class Listener(Evaluator):
    """Keeps all that it is told."""

    def __init__(self, calls=None):
        super().__init__()
        self.calls = [] if calls is None else calls
        self.episodes = []

    def reset(self):
        self.calls.append("evaluator reset")
        self.episodes.append([])

    def step(self, full_state):
        self.calls.append("evaluator step")
        self.episodes[-1].append(full_state)

    def get_result(self):
        return EvaluationResult(len(self.episodes), self.error, "listening", {"told": self.calls})


def case_of(evaluator, env=None, n_runs=2, seeds=None, t_max=500, **options):
    env = OldCartPole(STARTS) if env is None else env
    return ReinforcementLearningTestCase(
        t_max,
        list(range(n_runs)) if seeds is None else seeds,
        "case",
        options.pop("time_limit", 0),
        n_runs,
        env,
        evaluator,
        options.pop("agent_init", None),
        **options,
    )


# Agents and evaluators ----------------------------------------------------------------------------


@pytest.mark.requirement(50)
@pytest.mark.parametrize("left_out", ["step", "reset"])
def test_an_incomplete_agent_cannot_be_made(left_out):
    methods = {"step": lambda self, state: 0, "reset": lambda self: None}
    assert type("Whole", (Agent,), methods)().step(None) == 0
    del methods[left_out]
    with pytest.raises(TypeError, match=left_out):
        type("Part", (Agent,), methods)()


@pytest.mark.requirement(52)
@pytest.mark.parametrize("left_out", ["step", "reset", "get_result"])
def test_an_incomplete_evaluator_cannot_be_made(left_out):
    methods = {
        "step": lambda self, full_state: None,
        "reset": lambda self: None,
        "get_result": lambda self: EvaluationResult(1.0, self.error),
    }
    whole = type("Whole", (Evaluator,), methods)()
    assert whole.error is None
    whole.terminate(error := ValueError("x"))
    assert whole.error is error
    del methods[left_out]
    with pytest.raises(TypeError, match=left_out):
        type("Part", (Evaluator,), methods)()


@pytest.mark.requirement(51, 52)
def test_who_is_called_when():
    calls = []

    class Telling(players.PoleSign):
        def reset(self):
            calls.append("agent reset")

        def step(self, state):
            calls.append("agent step")
            return super().step(state)

    class World(OldCartPole):
        def seed(self, seed):
            calls.append(f"seed {seed}")
            super().seed(seed)

        def reset(self):
            calls.append("env reset")
            return super().reset()

        def step(self, action):
            calls.append("env step")
            return super().step(action)

    listener = Listener(calls)
    case_of(listener, World(STARTS), n_runs=3, seeds=[4, 5, 6], t_max=2).evaluate(Telling)
    start = ["env reset", "agent reset", "evaluator reset"]
    rounds = ["agent step", "env step", "evaluator step"] * 2
    assert calls == [w for seed in (4, 5, 6) for w in [f"seed {seed}", *start, *rounds]]


@pytest.mark.requirement(54)
@pytest.mark.parametrize("kind", KINDS)
def test_an_evaluator_is_told_everything_once_for_each_action(kind):
    listener = Listener()
    case_of(listener, KINDS[kind](STARTS, 30)).evaluate(players.PD)
    assert [len(episode) for episode in listener.episodes] == [30, 30]
    for number, episode in enumerate(listener.episodes):
        np.testing.assert_allclose(episode[0]["state"], START, atol=1e-7)
        for t, full_state in enumerate(episode):
            assert set(full_state) == set(FULL_STATE)
            assert len(FULL_STATE) == 8
            assert (full_state["episode_count"], full_state["t"]) == (number, t)
            assert full_state["reward"] == 1.0 and isinstance(full_state["info"], dict)
            assert full_state["done"] is (t == 29)
            assert full_state["action"] == players.PD().step(full_state["state"])
            if t:
                np.testing.assert_array_equal(full_state["state"], episode[t - 1]["next_state"])
        # A limit of the environment ended it, not the task.
        assert episode[-1]["info"]["TimeLimit.truncated"] is True
        assert "TimeLimit.truncated" not in episode[-2]["info"]


@pytest.mark.requirement(70)
@pytest.mark.parametrize("kind", ["jaxsim", "Gymnasium, five values"])
def test_a_batch_tells_an_evaluator_the_same(kind):
    starts = {0: START, 1: (0.0, 0.0, 0.0, 0.5), 2: (0.03, 0.0, -0.04, 0.0), None: START}
    one, many = Listener(), Listener()
    case_of(one, KINDS[kind](starts, 60), n_runs=3).evaluate(players.PoleSign)
    env = lanes_of(kind, starts, 60, 3)
    VectorTestCase(500, [0, 1, 2], 0, 0, 3, env, many).evaluate(players.PoleSign)
    assert one.error is many.error is None
    assert one.calls == many.calls
    assert len({len(episode) for episode in one.episodes}) == 3
    for expected, actual in zip(one.episodes, many.episodes, strict=True):
        for a, b in zip(expected, actual, strict=True):
            assert list(a) == list(b)
            np.testing.assert_array_equal(a.pop("state"), b.pop("state"))
            np.testing.assert_array_equal(a.pop("next_state"), b.pop("next_state"))
            assert a == b


def test_a_batch_is_over_with_its_last_episode():
    asked = []

    class Asked(players.Always):
        def step(self, state):
            asked.append(len(state))
            return super().step(state)

    env, steps = lanes_of("Gymnasium, five values", STARTS, 200, 2), StepCountEvaluator()
    result = VectorTestCase(500, [0, 1], 0, 0, 2, env, steps).evaluate(Asked)
    assert result.results == {"total_episodes": 2, "total_steps": 16}
    assert asked == [2] * 8


@pytest.mark.requirement(70)
def test_a_batch_respects_what_a_subclass_has_changed():
    class Discounted(RewardEvaluator):
        def reset(self):
            super().reset()
            self.weight = 1.0

        def step(self, full_state):
            super().step({"reward": self.weight * full_state["reward"]})
            self.weight *= 0.9

    one, many = Discounted(), Discounted()
    case_of(one, NewCartPole(STARTS)).evaluate(players.Always)
    env = lanes_of("Gymnasium, five values", STARTS, 200, 2)
    for t_max in (0, 500):
        result = VectorTestCase(t_max, [0, 1], 0, 0, 2, env, many).evaluate(players.Always)
        assert result.error is None
    assert one.returns[0] == pytest.approx((1 - 0.9**8) / 0.1)
    assert many.returns == [0.0, 0.0, *one.returns]


@pytest.mark.requirement(53, 55, 56, 57)
def test_built_in_evaluators_sum_up():
    rewards, steps = RewardEvaluator(), StepCountEvaluator()
    for evaluator in (rewards, steps):
        assert evaluator.get_result().value is None
        for episode in ([1, 2.5], [], [np.float32(0.5)]):
            evaluator.reset()
            for reward in episode:
                evaluator.step({"reward": reward} if evaluator is rewards else {})
    values = rewards.get_result().get_json()
    assert list(values) == list(RESULT_FIELDS) == ["name", "detail", "value", "error"]
    assert values == {
        "name": "reward evaluation",
        "detail": [3.5, 0.0, 0.5],
        "value": 4 / 3,
        "error": None,
    }
    assert steps.get_result().get_json() == {
        "name": "step count evaluation (average survival steps)",
        "detail": {"total_episodes": 3, "total_steps": 3},
        "value": 1.0,
        "error": None,
    }
    # What was given away does not change any more.
    before = rewards.get_result()
    rewards.reset()
    assert before.results == [3.5, 0.0, 0.5]


@pytest.mark.requirement(70)
def test_many_episodes_at_once_sum_up_the_same():
    """To the last bit: sums are made in the same order."""
    random = np.random.default_rng(0)
    for _ in range(20):
        rewards = random.normal(size=(random.integers(0, 9), random.integers(0, 5))) * 1e3
        lengths = random.integers(0, len(rewards) + 1, rewards.shape[1])
        for kind in (RewardEvaluator, StepCountEvaluator):
            one, many = kind(), kind()
            for lane, length in enumerate(lengths):
                one.reset()
                for reward in rewards[:length, lane]:
                    one.step({"reward": reward})
            many.add_episodes(rewards, lengths)
            assert many.get_result().get_json() == one.get_result().get_json()


@pytest.mark.parametrize("reward", [math.nan, math.inf])
def test_many_episodes_at_once_end_at_a_reward_as_one_after_the_other(reward):
    rewards = np.arange(12.0).reshape(3, 4)
    rewards[1, 2], rewards[0, 3], rewards[2, 0] = reward, math.nan, math.nan
    lengths = np.array([2, 3, 3, 3])  # the first reward that counts and is not finite is [1, 2]
    one, many = RewardEvaluator(), RewardEvaluator()
    with pytest.raises(ValueError) as expected:
        for lane, length in enumerate(lengths):
            one.reset()
            for step_reward in rewards[:length, lane]:
                one.step({"reward": step_reward})
    with pytest.raises(ValueError, match=rf"^{re.escape(str(expected.value))}$"):
        many.add_episodes(rewards, lengths)
    assert many.returns == one.returns == [4.0, 15.0, 2.0]


@pytest.mark.requirement(56)
@pytest.mark.parametrize(
    ("full_state", "words"),
    [
        ({}, "has no 'reward'"),
        ({"reward": None}, "reward is a NoneType; it must be a number"),
        ({"reward": "much"}, "reward is a str; it must be a number"),
        ({"reward": math.nan}, "reward is nan; it must be a finite number"),
        ({"reward": -math.inf}, "reward is -inf"),
        ({"reward": [1.0, 2.0]}, "reward is a list"),
    ],
)
def test_a_reward_that_is_none_is_an_error(full_state, words):
    evaluator = RewardEvaluator()
    with pytest.raises(RuntimeError, match="call reset"):
        evaluator.step({"reward": 1.0})
    evaluator.reset()
    with pytest.raises(ValueError, match=words):
        evaluator.step(full_state)


@pytest.mark.requirement(56)
def test_missing_rewards_are_in_the_result():
    class Silent(TestCase):
        def run(self, agent):
            for _ in range(self.n_runs):
                self.evaluator.reset()
                self.evaluator.step({"state": 0})

    values = Silent(0, 0, 1, None, None, RewardEvaluator()).evaluate(players.Always).get_json()
    assert values["error"]["type"] == "ValueError" and "reward" in values["error"]["message"]
    counted = Silent(0, 0, 1, None, None, StepCountEvaluator()).evaluate(players.Always)
    assert (counted.value, counted.error) == (1.0, None)


# Test cases ---------------------------------------------------------------------------------------


@pytest.mark.requirement(58)
def test_a_test_case_has_six_properties():
    class Plain(TestCase):
        def run(self, agent):
            self.agent = agent

    env, evaluator = object(), StepCountEvaluator()
    case = Plain("x", 1.5, 3, {"depth": 2}, env, evaluator)
    assert (case.case_id, case.time_limit, case.n_runs) == ("x", 1.5, 3)
    assert (case.agent_init, case.env, case.evaluator) == ({"depth": 2}, env, evaluator)
    with pytest.raises(TypeError, match="run"):
        TestCase("x", 1.5, 3, {}, env, evaluator)


@pytest.mark.requirement(61)
def test_the_agent_is_made_with_its_arguments():
    arguments = []

    def create_agent(**agent_init):
        arguments.append(agent_init)
        return players.Always()

    for agent_init in ({"depth": 2, "name": "x"}, None, {}):
        result = case_of(StepCountEvaluator(), agent_init=agent_init).evaluate(create_agent)
        assert result.error is None
    assert arguments == [{"depth": 2, "name": "x"}, {}, {}]


@pytest.mark.requirement(51, 60)
@pytest.mark.parametrize("n_runs", [0, 1, 10])
def test_as_many_episodes_as_asked_for(n_runs):
    calls = Counter()

    class Counting(players.Always):
        def reset(self):
            calls["reset"] += 1

    result = case_of(RewardEvaluator(), n_runs=n_runs).evaluate(Counting)
    assert (calls["reset"], len(result.results), result.error) == (n_runs, n_runs, None)
    assert result.value == (8.0 if n_runs else None)


@pytest.mark.requirement(64)
def test_at_most_t_max_steps():
    for t_max in (0, 25):
        result = case_of(StepCountEvaluator(), t_max=t_max, n_runs=3).evaluate(players.PD)
        assert result.results == {"total_episodes": 3, "total_steps": 3 * t_max}


WRONG = {
    "n_runs negative": (
        {"n_runs": -1, "seeds": []},
        "n_runs is -1; it must be a whole number from 0",
    ),
    "n_runs a fraction": ({"n_runs": 1.5, "seeds": []}, "n_runs is 1.5"),
    "n_runs a truth": ({"n_runs": True, "seeds": []}, "n_runs is True"),
    "t_max negative": ({"t_max": -1}, "t_max is -1; it must be a whole number from 0"),
    "t_max a word": ({"t_max": "5"}, "t_max is '5'"),
    "seeds too few": ({"seeds": [1]}, "1 seeds were given for 2 runs; give one for each, or none"),
    "seeds too many": ({"seeds": [1, 2, 3]}, "3 seeds were given for 2 runs"),
    "seed order": ({"seed_order": "late"}, "it must be 'seed_first' or 'legacy'"),
    "time limit negative": ({"time_limit": -1}, "time_limit is -1; it must be a number of seconds"),
    "time limit nan": ({"time_limit": math.nan}, "time_limit is nan"),
    "time limit a word": ({"time_limit": "1"}, "time_limit is '1'"),
    "memory limit small": ({"memory_limit": 512}, "memory_limit is 512; it must be a whole number"),
    "memory limit a fraction": ({"memory_limit": 1e9}, "memory_limit is 1000000000.0"),
}


@pytest.mark.requirement(64)
@pytest.mark.parametrize("name", WRONG)
def test_numbers_that_cannot_work_are_refused(name):
    options, words = WRONG[name]
    with pytest.raises(ValueError, match=words):
        case_of(StepCountEvaluator(), **dict(options))


def test_numbers_of_numpy_will_do():
    options = {"n_runs": np.int64(2), "t_max": np.int32(5), "time_limit": np.float32(9)}
    env = NewCartPole(STARTS)
    result = case_of(StepCountEvaluator(), env, seeds=np.arange(2), **options)
    outcome = result.evaluate(players.Always)
    assert (outcome.results["total_episodes"], outcome.error) == (2, None)


class NoMode(gymnasium.vector.VectorWrapper):
    """Lanes that do not say when they reset, as those of older packages."""

    metadata: ClassVar = {"render_modes": []}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: gymnasium.make("CartPole-v1"),
            r"not a vector environment; make one with gymnasium",
        ),
        (lambda: gymnasium.make_vec("CartPole-v1", num_envs=3), "3 lanes for 2 runs"),
        (
            lambda: gymnasium.make_vec("jaxsim/CartPole-v1", num_envs=2, autoreset_mode="SameStep"),
            "mode SameStep; it must be NextStep",
        ),
        (lambda: NoMode(gymnasium.make_vec("CartPole-v1", num_envs=2)), "mode None; it must be"),
    ],
)
def test_a_batch_needs_lanes_that_fit(make, words):
    with pytest.raises(ValueError, match=words):
        VectorTestCase(5, [0, 1], 0, 0, 2, make(), StepCountEvaluator())


def test_an_agent_of_a_batch_must_answer_for_every_lane():
    env = lanes_of("Gymnasium, five values", STARTS, 9, 2)
    case = VectorTestCase(5, [0, 1], 0, 0, 2, env, StepCountEvaluator())
    result = case.evaluate(lambda: players.CrashAt(3))
    assert (result.value, str(result.error)) == (3.0, "boom")
    case.evaluator = StepCountEvaluator()
    values = case.evaluate(players.incomplete_for_batches).get_json()
    assert "one action for each state" in values["error"]["message"]
    assert values["value"] == 0.0


@pytest.mark.requirement(62)
def test_environments_that_are_none_are_named():
    class Three(OldCartPole):
        def step(self, action):
            return super().step(action)[:3]

    class Unseeded:
        def reset(self):
            return np.array(START)

        def step(self, action):
            return np.array(START), 1.0, True, False, {}

    def message(env, seeds):
        result = case_of(StepCountEvaluator(), env, seeds=seeds).evaluate(players.Always)
        return str(result.error)

    assert "Three.step returned 3 values; it must return" in message(Three(STARTS), [1, 2])
    assert "Unseeded has neither reset(seed=...) nor seed(...)" in message(Unseeded(), [1, 2])
    assert message(Unseeded(), []) == "None"


@pytest.mark.requirement(62, 64)
def test_seeds_reach_environments_that_take_anything():
    """Wrappers of either generation pass on what they are given."""
    seeds = []

    class Old(OldCartPole):
        def reset(self, **kwargs):
            assert not kwargs
            seeds.append(self.next)
            return super().reset()

    class New(NewCartPole):
        def reset(self, **kwargs):
            seeds.append(kwargs.get("seed"))
            return super().reset(**kwargs)

    for env in (Old(STARTS), New(STARTS)):
        case_of(StepCountEvaluator(), env, seeds=[5, 9]).evaluate(players.Always)
    assert seeds == [5, 9, 5, 9]


# Suites and results -------------------------------------------------------------------------------


@pytest.mark.requirement(65)
def test_a_suite_plays_its_cases_in_order():
    cases = [case_of(StepCountEvaluator()), case_of(RewardEvaluator())]
    suite = TestSuite("both", cases)
    assert suite.test_cases == cases and suite.results == []
    results = suite.run(players.Always)
    assert list(results) == ["suite_id", "results"] and results["suite_id"] == "both"
    assert [each["result"]["value"] for each in results["results"]] == [8.0, 8.0]
    assert [type(each) for each in suite.results] == [TestResult, TestResult]
    text = str(suite.results[1])
    assert text == repr(suite.results[1]) == f"<Case case> {results['results'][1]['result']}"
    assert TestSuite("none", []).run(players.Always) == {"suite_id": "none", "results": []}


def test_a_suite_of_something_else_is_refused():
    with pytest.raises(TypeError, match=r"cases\[1\] is a str; it must be an object of a subclass"):
        TestSuite(0, [case_of(StepCountEvaluator()), "case"])


@pytest.mark.requirement(68)
@pytest.mark.parametrize("time_limit", [0, 5.0])
@pytest.mark.parametrize(
    ("create_agent", "kind", "words"),
    [
        (players.Failing, "RuntimeError", "no model file"),
        (players.incomplete, "TypeError", "object, which has no method step and no method reset"),
        (lambda: None, "TypeError", "NoneType, which has no method step"),
        (lambda depth: players.Always(), "TypeError", "depth"),
        (None, "TypeError", "create_agent is a NoneType; it must be a function"),
        (lambda: players.Raising("own"), "CustomError", "state: too far"),
        (lambda: players.Raising("key"), "KeyError", "'angle'"),
        (lambda: players.Raising("exit"), "SystemExit", "3"),
        (lambda: players.Raising("memory"), "MemoryError", ""),
        (lambda: players.Raising("half a character"), "ValueError", "\\ud800"),
        (lambda: players.Raising("endless"), "ValueError", "aaa..."),
        (lambda: players.Returning("none"), "ValueError", "action is None"),
        (lambda: players.Returning("text"), "ValueError", "action is 'left'"),
        (lambda: players.Returning("far"), "ValueError", "action is 7"),
        (lambda: players.Returning("nan"), "ValueError", "action is nan"),
        (lambda: players.Returning("object"), "ValueError", "action is <tests."),
    ],
)
def test_errors_are_in_the_result_and_the_next_case_is_played(
    create_agent, kind, words, time_limit
):
    """The agent of the first case fails; that of the second does not."""
    calls = []

    def create(**agent_init):
        calls.append(agent_init)
        return create_agent() if len(calls) == 1 else players.Always()

    cases = [case_of(RewardEvaluator(), time_limit=time_limit) for _ in range(2)]
    bad = create if callable(create_agent) else create_agent
    suite = TestSuite(0, cases)
    results = suite.run(bad)
    first, second = (each["result"] for each in results["results"])
    assert first["error"]["type"] == kind and words in first["error"]["message"]
    assert len(first["error"]["message"]) <= 2000
    assert type(suite.results[0].result.error).__name__ == kind
    assert second["value"] == (8.0 if callable(create_agent) else None)
    text = json.dumps(results, allow_nan=False, ensure_ascii=False)
    assert json.loads(text.encode("utf-8")) == results


@pytest.mark.requirement(68)
def test_errors_of_ones_own_classes_are_in_the_result():
    class Broken(StepCountEvaluator):
        def get_result(self):
            raise ZeroDivisionError("no episodes")

    class Forgetful(StepCountEvaluator):
        def get_result(self):
            return None

    class Odd(TestCase):
        def run(self, agent):
            raise LookupError("no map")

        def evaluate(self, create_agent):
            raise LookupError("later")

    cases = [
        case_of(Broken()),
        case_of(Forgetful()),
        Odd(3, 0, 1, None, None, StepCountEvaluator()),
        case_of(StepCountEvaluator()),
    ]
    results = TestSuite(0, cases).run(players.Always)["results"]
    errors = [each["result"]["error"] and each["result"]["error"]["type"] for each in results]
    assert errors == ["ZeroDivisionError", "TypeError", "LookupError", None]
    assert [each["result"]["value"] for each in results] == [None, None, None, 8.0]


def test_the_error_of_one_run_is_not_that_of_the_next():
    evaluator = StepCountEvaluator()
    suite = TestSuite(0, [case_of(evaluator), case_of(evaluator)])
    agents = iter([players.CrashAt(3), players.Always()])
    first, second = suite.run(lambda: next(agents))["results"]
    assert first["result"]["error"]["message"] == "boom" and second["result"]["error"] is None
    assert second["result"]["detail"] == {"total_episodes": 3, "total_steps": 19}


def test_an_interrupt_stops_a_suite():
    class Interrupted(players.Always):
        def step(self, state):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        TestSuite(0, [case_of(StepCountEvaluator())]).run(Interrupted)


@pytest.mark.requirement(55, 68)
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float32(0.5), 0.5),
        (np.arange(3), [0, 1, 2]),
        ({1: (1, None), "x": {True}}, {"1": [1, None], "x": "{True}"}),
        (math.inf, None),
        ([np.nan, 1.0], [None, 1.0]),
        (1 + 2j, "(1+2j)"),
        ("\ud800", "\\ud800"),
        (True, True),
        (10**400, 10**400),
        pytest.param(10**5000, "a whole number of 16610 bits", id="long"),
        pytest.param({10**5000: 1}, {"<int>": 1}, id="long key"),
        ("x" * 5000, "x" * 5000),  # what is text keeps its length; what becomes text does not
        ({"x" * 5000: 1}, {"x" * (LONGEST_TEXT - 3) + "...": 1}),
    ],
)
def test_anything_becomes_strict_json(value, expected):
    assert plain(value) == expected
    assert json.loads(json.dumps(plain(value), allow_nan=False)) == expected


def test_an_error_has_its_type_and_its_message():
    assert error_to_json(None) is None
    assert error_to_json(KeyError(" a\n")) == {"type": "KeyError", "message": "' a\\n'"}
    error = ValueError(" first\nsecond \n" + LONGEST_TEXT * "x")
    message = ("first\nsecond \n" + LONGEST_TEXT * "x")[: LONGEST_TEXT - 3] + "..."
    assert error_to_json(error) == {"type": "ValueError", "message": message}


@pytest.mark.requirement(68)
def test_what_cannot_be_told_does_not_fail():
    class Mute:
        def __repr__(self):
            raise RuntimeError("no")

        __str__ = __repr__

    class MuteError(Exception):
        __str__ = Mute.__repr__

    loop = []
    loop.append(loop)
    result = EvaluationResult(Mute(), MuteError(), Mute(), {"x": Mute(), "loop": loop})
    values = json.loads(json.dumps(result.get_json(), allow_nan=False))
    assert values["value"] == values["name"] == values["detail"]["x"] == "<Mute>"
    assert values["error"] == {
        "type": "MuteError",
        "message": "a MuteError that cannot be printed",
    }


@pytest.mark.requirement(55)
def test_a_score_that_is_no_number_is_null_with_its_reason():
    values = EvaluationResult(math.nan, None).get_json()
    assert values["value"] is None and values["detail"] == [] and values["name"] == "score"
    message = "value is nan, which JSON has no number for"
    assert values["error"] == {"type": "ValueError", "message": message}
    assert str(EvaluationResult(1.0, None)) == str(EvaluationResult(1.0, None).get_json())


def test_every_field_of_a_result_is_in_its_json_and_its_text():
    inner = EvaluationResult(1.5, ValueError("too late"), "measure", ["a", 2])
    result = TestResult(7, inner)
    expected = {
        "name": "measure",
        "detail": ["a", 2],
        "value": 1.5,
        "error": {"type": "ValueError", "message": "too late"},
    }
    assert inner.get_json() == expected
    assert result.get_json() == {"case_id": 7, "result": expected}
    assert str(result) == repr(result) == f"<Case 7> {expected}"
    usual = EvaluationResult(None, None)
    assert usual.get_json() == {"name": "score", "detail": [], "value": None, "error": None}
    endless = EvaluationResult(float("inf"), None).get_json()
    assert endless["value"] is None and "inf" in endless["error"]["message"]
