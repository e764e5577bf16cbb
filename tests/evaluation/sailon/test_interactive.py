"""Experiments with ordinary agents: what they are called with, and what they do wrong."""

import asyncio
import base64
import json
import logging
import math
import threading

import numpy as np
import pytest

from evaluation.clock import ScriptedClock
from evaluation.sailon import TA2Logic, answers, pictures
from evaluation.sailon.interactive import PlayOptions, play
from evaluation.sailon.pictures import Pictures
from evaluation.sailon.text import ExperimentError
from evaluation.sailon.transcript import replay
from jaxsim import render
from jaxsim.worlds.cartpole3d.original import messages
from jaxsim.worlds.cartpole3d.types import ACTIONS

# Compiling the step takes longer than a few seconds.
pytestmark = pytest.mark.slow

REPORT = (0.25, 0.5, 0, {})


class Scripted(TA2Logic):
    """Does the same few things in every episode, and writes down every call."""

    def __init__(self, steps=3, then="give_up"):
        super().__init__()
        self.calls, self.steps, self.then, self.tick = [], steps, then, 0

    def __getattribute__(self, name):
        value = super().__getattribute__(name)
        called = callable(value) and hasattr(TA2Logic, name) and not name.startswith("_")
        if called and name not in ("run", "process_amqp_events"):

            def noted(**values):
                self.calls.append((name, values))
                return value(**values)

            return noted
        return value

    def training_episode_start(self, episode_number):
        self.tick = 0

    def testing_episode_start(self, episode_number):
        self.tick = 0

    def answer(self):
        self.tick += 1
        return {"action": "nothing" if self.tick <= self.steps else self.then}

    def training_instance(self, feature_vector, feature_label):
        return self.answer()

    def testing_instance(self, feature_vector, novelty_indicator=None):
        return self.answer()

    def training_episode_end(self, performance, feedback=None):
        return REPORT

    def testing_episode_end(self, performance, feedback=None):
        return REPORT


def names(agent):
    return [name for name, _ in agent.calls]


def calls_of(agent, method):
    return [values for name, values in agent.calls if name == method]


def column(results, name):
    return results.rows[name].tolist()


# What is called -----------------------------------------------------------------------------------


def test_the_order_of_calls(draw):
    agent = Scripted(steps=1)
    play(draw(trials=1, training_episodes=1), agent)
    tick = ["testing_instance", "testing_performance", "testing_instance", "testing_episode_end"]
    training = [name.replace("testing", "training") for name in tick]
    assert names(agent) == [
        "experiment_start",
        "training_start",
        "training_episode_start",
        *training,
        "training_end",
        "train_model",
        "save_model",
        "trial_start",
        "reset_model",
        "testing_start",
        *["testing_episode_start", *tick] * 3,
        "testing_end",
        "trial_end",
        "experiment_end",
    ]


@pytest.mark.requirement(135)
def test_what_an_agent_is_given(draw):
    agent = Scripted(steps=2)
    play(
        draw(novelty_visibility=(1,), hint_level=(3,), trials=1),
        agent,
        PlayOptions(wall=lambda: 50.0),
    )
    vectors = [v["feature_vector"] for v in calls_of(agent, "testing_instance")]
    first, second, third = vectors[3:6]  # of the second episode, the first novel one
    assert first["hint"] == [
        {"level": 3, "entity": "block", "attribute": "direction", "change": "toward location"}
    ]
    assert len(first["walls"]) == 8
    assert vectors[0]["hint"][0]["level"] is None
    assert "hint" not in second
    stamps = [v["time_stamp"] for v in (first, second, third)]
    assert stamps == pytest.approx([50, 50.02, 50.04])
    assert [v["novelty_indicator"] for v in calls_of(agent, "testing_instance")] == [False] * 3 + [
        True
    ] * 6
    assert {v["feature_label"]["action"] for v in calls_of(agent, "training_instance")} <= {
        "left",
        "right",
        "forward",
        "backward",
    }
    calls = calls_of(agent, "testing_performance")
    assert [v["performance"] for v in calls[:2]] == [0.005, 0.01]
    assert [v["episode_number"] for v in calls_of(agent, "testing_episode_start")] == [0, 1, 2]
    assert calls_of(agent, "trial_start") == [{"trial_number": 0, "novelty_description": {}}]
    assert calls_of(agent, "save_model")[0] == calls_of(agent, "reset_model")[0]
    for vector in vectors:
        messages.parse_feature_vector(vector)


def test_an_agent_that_gives_up_gets_nothing(draw):
    results = play(draw(trials=1), Scripted(steps=2))
    assert column(results, "performance") == [0.0] * 5
    assert column(results, "length") == [2] * 5
    assert column(results, "problem") == [""] * 5
    assert column(results, "novelty_probability") == [0.25] * 5


@pytest.mark.requirement(136)
def test_episodes_that_are_played_to_the_end(draw):
    results = play(draw(trials=1, training_episodes=0), Scripted(steps=300))
    length, performance = column(results, "length"), column(results, "performance")
    assert performance == [round(n / 200, 6) for n in length]
    assert all(20 < n < 200 for n in length)
    assert column(results, "complete") == [True] * 3
    assert column(results, "novelty_initiated") == [False, True, True]


@pytest.mark.requirement(135)
def test_early_ends(draw):
    class Hasty(Scripted):
        end_training_early = end_experiment_early = False

        def testing_episode_end(self, performance, feedback=None):
            self.end_experiment_early = len(calls_of(self, "testing_episode_end")) == 2
            return REPORT

        def training_episode_end(self, performance, feedback=None):
            self.end_training_early = True
            return REPORT

    agent = Hasty(steps=1)
    results = play(draw(), agent)
    problems = column(results, "problem")
    assert problems[0] == "" and "ended the training early" in problems[1]
    assert problems[2:4] == ["", ""]
    assert all("ended the experiment early" in text for text in problems[4:])
    assert (
        np.isnan(results.rows["performance"]).tolist() == [False, True] + [False] * 2 + [True] * 4
    )
    assert names(agent)[-3:] == ["testing_end", "trial_end", "experiment_end"]


def test_training_only_and_one_trial(draw):
    agent = Scripted(steps=1)
    play(draw(), agent, PlayOptions(testing=False))
    assert "trial_start" not in names(agent)
    results = play(draw(), agent, PlayOptions(most_trials=1))
    assert len(calls_of(agent, "trial_start")) == 1
    assert "only 1 of the trials" in column(results, "problem")[-1]


def test_any_object_with_the_methods_will_do(draw):
    class Observer:
        def testing_instance(self, feature_vector, novelty_indicator):
            return {"action": "give_up"}

        def testing_episode_end(self, performance, feedback):
            return 1.0, 0.5, 1, {"level": [{"level_number": 7, "Prob": 1.0}], "entity": "block"}

    results = play(draw(trials=1, training_episodes=0), Observer())
    assert results.metadata["agent"] == "Observer"
    assert column(results, "problem") == [""] * 3
    assert results.rows["level_probs"][0].tolist() == [0.0] * 7 + [1.0, 0.0]
    assert column(results, "entity") == ["block"] * 3


def test_progress_counts_every_episode(draw):
    moves = []
    play(draw(), Scripted(steps=1), PlayOptions(progress=lambda *counts: moves.append(counts)))
    assert [done for done, _ in moves if done] == list(range(1, 9))
    assert {total for _, total in moves} == {8}


FLAGS = ("debug", "fulldebug", "printout", "no_testing", "just_one_trial", "ignore_secret")


@pytest.mark.parametrize("given", [None, *FLAGS])
def test_an_agent_begins_as_its_command_line_says(monkeypatch, tmp_path, given):
    class Idle(TA2Logic):
        def _logger(self):
            return None if given == "printout" else super()._logger()  # it has no handler then

    (tmp_path / "a.ini").write_text("[part]\nname = 100%\n")
    words = [] if given is None else [f"--{given.replace('_', '-')}"]
    monkeypatch.setattr("sys.argv", ["agent.py", *words, "--config", str(tmp_path / "a.ini")])
    agent = Idle()
    assert {name: getattr(agent.arguments, name) for name in FLAGS} == {
        name: name == given for name in FLAGS
    }
    assert agent.config["part"]["name"] == "100%"
    assert agent.possible_answers == []
    assert not agent.end_training_early and not agent.end_experiment_early
    if agent.log is not None:
        verbose = given in ("debug", "fulldebug")
        assert agent.log.level == (logging.DEBUG if verbose else logging.INFO)
        assert not agent.log.handlers


def test_an_agent_that_is_made_twice_logs_each_line_once(monkeypatch, tmp_path):
    class Logging(TA2Logic):
        pass

    log = tmp_path / "agent.log"
    monkeypatch.setattr("sys.argv", ["agent.py", "--logfile", str(log), "--printout"])
    Logging()
    agent = Logging()
    agent.log.info("one line")
    for handler in list(agent.log.handlers):
        agent.log.removeHandler(handler)
        handler.close()
    assert log.read_text() == "one line\n"


# Budget -------------------------------------------------------------------------------------------


class Alarmed(Scripted):
    def testing_episode_end(self, performance, feedback=None):
        return 0.9, 0.5, 1, {}


@pytest.mark.parametrize(
    ("budget", "labels", "counts"),
    [(1.0, "reference", [0, 3, 3]), (1.0, "left", [0, 0, 0]), (-0.1, "reference", [0, 0, 0])],
)
def test_feedback_follows_the_first_report(draw, budget, labels, counts):
    agent = Alarmed(steps=2)
    experiment = draw(trials=1, training_episodes=0, budget=budget, labels=labels)
    results = play(experiment, agent)
    assert column(results, "budget_active") == [False, True, True]
    assert column(results, "feedback") == counts
    feedback = [v["feedback"] for v in calls_of(agent, "testing_performance")]
    assert feedback[:2] == [None, None]
    if counts[1]:
        assert all(set(one) == {"action"} for one in feedback[2:])
    else:
        assert feedback == [None] * 6


def test_feedback_is_drawn_anew_in_every_episode(draw):
    """Half of the ticks have it; which ones follows from seed, trial and episode."""
    episodes = []
    for seed in (3, 4):
        agent = Alarmed(steps=13)
        play(draw(trials=2, training_episodes=0, budget=0.5, seed=seed), agent)
        drawn = [v["feedback"] is not None for v in calls_of(agent, "testing_performance")]
        assert len(drawn) == 2 * 3 * 13
        in_turn = [tuple(drawn[start : start + 13]) for start in range(0, len(drawn), 13)]
        # Nothing was reported before the first of three.
        episodes += [ticks for number, ticks in enumerate(in_turn) if number % 3]
    assert len(set(episodes)) == len(episodes) == 8
    assert 32 < np.sum(episodes) < 72  # of 104, within 4 deviations


class AlarmedOnce(Scripted):
    """Reports novelty after the first episode of all and never again."""

    reported = False

    def testing_episode_end(self, performance, feedback=None):
        probability, self.reported = (0.0 if self.reported else 0.9), True
        return probability, 0.5, 1, {}


def test_a_budget_stays_active_in_its_trial_and_in_no_other(draw):
    experiment = draw(trials=2, training_episodes=0, budget=1.0, labels="left")
    results = play(experiment, AlarmedOnce(steps=1))
    assert column(results, "budget_active") == [False, True, True, False, False, False]


def test_the_label_of_the_original_is_always_left(draw):
    agent = Scripted(steps=4)
    play(draw(trials=1, labels="left"), agent, PlayOptions(testing=False))
    labels = [v["feature_label"] for v in calls_of(agent, "training_instance")]
    assert labels == [{"action": "left"}] * len(labels)


# Phase 1 ------------------------------------------------------------------------------------------


@pytest.mark.requirement(138)
def test_phase_1_counts_the_last_prediction(draw):
    class Predicting(Scripted):
        def testing_instance(self, feature_vector, novelty_indicator=None):
            assert "block_0" in feature_vector and "hint" not in feature_vector
            reply = self.answer()
            level = 3 if self.tick == 2 and len(calls_of(self, "testing_episode_end")) else 0
            return {**reply, "novelty_prediction": level}

        def testing_episode_end(self, performance, feedback=None):
            return None

    results = play(draw(trials=1, training_episodes=0, phase="1"), Predicting(steps=1))
    assert column(results, "novelty") == [0, 3, 3]
    flags = results.rows["novelty_probability"] >= results.rows["novelty_threshold"]
    assert flags.tolist() == [False, True, True]
    assert column(results, "problem") == [""] * 3


# What agents do wrong -----------------------------------------------------------------------------


def test_the_messages_of_2021_are_a_setting(draw):
    """Those of phase 1, in any phase: the example of the page."""
    example = {"messages": "2021", "indicator": "episode", "labels": "pd", "seed": 7}
    vectors = []

    class Agent(TA2Logic):
        def training_instance(self, feature_vector, feature_label):
            assert feature_label["action"] in ("left", "right", "forward", "backward", "nothing")
            return {"action": "give_up"}

        def testing_instance(self, feature_vector, novelty_indicator=None):
            vectors.append(feature_vector)
            return {"action": "give_up"}, {"novelty_prediction": 2}

    results = play(draw(training_episodes=1, **example), Agent())
    vector = vectors[0]
    assert vector["cart"]["z_position"] == 0.1
    assert "block_0" in vector and "blocks" not in vector and "hint" not in vector
    assert [name for name in vector if name[0] in "ti"] == ["time_stamp", "image"]
    assert set(column(results, "novelty_probability")[1:]) == {0.2}


@pytest.mark.requirement(133)
def test_labels_are_those_of_a_chosen_agent(draw):
    labels = {}
    for name in ("reference", "pd", "greedy", "random", "left"):

        class Agent(TA2Logic):
            actions = labels.setdefault(name, [])

            def training_instance(self, feature_vector, feature_label):
                self.actions.append(feature_label["action"])
                return {"action": "nothing" if len(self.actions) < 25 else "give_up"}

        play(draw(training_episodes=1, labels=name), Agent(), PlayOptions(testing=False))
    assert labels["pd"] == labels["reference"]
    assert set(labels["left"]) == {"left"}
    assert set(labels["greedy"]) <= set(ACTIONS) and len(labels["greedy"]) == 25
    assert len({tuple(labels[name]) for name in ("pd", "random")}) == 2
    for wrong in ("nobody", 3):
        with pytest.raises(ValueError, match=r"'labels' is .*it must be 'reference', 'left' or"):
            draw(labels=wrong)


def failing(method, value):
    """An agent whose method returns a value, or raises it if it is an exception."""

    def wrong(self, **values):
        # Everything is right again in the trial after the first.
        if len(calls_of(self, "trial_start")) != 1:
            return getattr(Scripted, method)(self, **values)
        if isinstance(value, BaseException):
            raise value
        return value

    return type("Failing", (Scripted,), {method: wrong})(steps=1)


class Mute(Exception):
    """An exception without words."""

    def __str__(self):
        raise RuntimeError("no words")


@pytest.mark.requirement(134)
@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"action": "up"}, "the action 'up'; it must be one of nothing, right"),
        ({"act": "left"}, "the action None"),
        ("left", "returned 'left'; it must be"),
        (None, "returned None"),
        (KeyError("cart"), "testing_instance raised KeyError: 'cart'"),
        (SystemExit(1), "testing_instance raised SystemExit: 1"),
        (asyncio.CancelledError(), "testing_instance raised CancelledError"),
        ({"action": "left", "novelty_prediction": 11}, "prediction 11; it must be a whole"),
        ({"action": "left", "novelty_prediction": math.nan}, "prediction nan"),
    ],
)
def test_wrong_answers_end_the_episode(draw, value, words):
    results = play(draw(training_episodes=0), failing("testing_instance", value))
    problems = column(results, "problem")
    assert all(words in text for text in problems[:3])
    assert problems[3:] == [""] * 3
    assert column(results, "performance")[:3] == [0.0] * 3
    assert column(results, "complete")[:3] == [False] * 3
    # The agent still hears that the episode is over, and its report counts.
    assert column(results, "novelty_probability")[:3] == [0.25] * 3


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ((1.5, 0.5, 0, {}), "novelty_probability 1.5; it must be from 0 to 1"),
        ((math.nan, 0.5, 0, {}), "novelty_probability nan"),
        ((0.5, -1, 0, {}), "novelty_threshold -1"),
        ((0.5, 0.5, -1, {}), "the novelty -1"),
        ((0.5, 0.5, 0, "much"), "the characterization 'much'"),
        ((0.5, 0.5, 0, {"level": object()}), "that is not JSON"),
        ((0.5, 0.5, 0), "it must be (novelty_probability"),
        ((True, 0.5, 0, {}), "novelty_probability True"),
        ((10**400, 0.5, 0, {}), "novelty_probability a whole number of 1329 bits"),
        ((0.5, 0.5, 2**31, {}), "the novelty 2147483648; it must be a whole number from 0 to 21"),
        ((0.5, 0.5, 0, {"level": math.nan}), "that is not JSON"),
        ((0.5, 0.5, 0, {"entity": "\ud800"}), "that is not JSON"),
        ((0.5, 0.5, 0, {"level": [{"level": 3, "prob": 5}]}), "probability 5 of level 3; it must"),
        ((0.5, 0.5, 0, {"level": [{"level": 3, "prob": -1}]}), "probability -1 of level 3"),
        (ValueError("\ud800"), r"raised ValueError: \ud800"),
        (Mute(), "raised Mute: a Mute that cannot be printed"),
        (ZeroDivisionError("oh"), "testing_episode_end raised ZeroDivisionError: oh"),
    ],
)
def test_wrong_reports_are_no_reports(draw, value, words):
    results = play(draw(training_episodes=0), failing("testing_episode_end", value))
    problems = column(results, "problem")
    assert all(words in text for text in problems[:3]), problems
    assert problems[3:] == [""] * 3
    assert np.isnan(results.rows["novelty_probability"][:3]).all()
    assert column(results, "length")[:3] == [1] * 3


@pytest.mark.parametrize("method", ["trial_start", "reset_model", "testing_start"])
def test_a_trial_that_cannot_start_is_not_played(draw, method):
    results = play(draw(training_episodes=0), failing(method, OSError("no model")))
    problems = column(results, "problem")
    assert all(f"not played: {method} raised OSError: no model" == text for text in problems[:3])
    assert np.isnan(results.rows["performance"][:3]).all()
    assert problems[3:] == [""] * 3


def test_what_fails_outside_of_trials_is_noted(draw):
    class Broken(Scripted):
        def train_model(self):
            raise RuntimeError("out of memory")

    results = play(draw(), Broken(steps=1))
    assert results.metadata["problems"] == ["train_model raised RuntimeError: out of memory"]
    assert column(results, "problem") == [""] * 8


def test_a_call_past_its_limit_breaks_off_the_trial(draw):
    clock = ScriptedClock()

    class Slow(Scripted):
        def testing_instance(self, feature_vector, novelty_indicator=None):
            late = len(calls_of(self, "trial_start")) == 1 and self.tick == 1
            clock.advance(61.0 if late else 59.0)
            return self.answer()

    results = play(draw(), Slow(steps=3), PlayOptions(clock=clock))
    problems = column(results, "problem")[2:]
    assert problems[0] == "testing_instance took longer than its limit of 60 s"
    assert problems[1] == problems[2] == f"not played: {problems[0]}"
    assert problems[3:] == [""] * 3
    assert column(results, "length")[2] == 1
    assert np.isnan(results.rows["performance"][3:5]).all()


def test_train_model_may_take_longer(draw):
    clock = ScriptedClock()

    class Learner(Scripted):
        def train_model(self):
            clock.advance(150.0)

    experiment = draw(trials=1, training_timeout_multiplier=3.0)
    assert play(experiment, Learner(1), PlayOptions(clock=clock)).metadata["problems"] == []
    short = draw(trials=1, training_timeout_multiplier=2.0)
    (problem,) = play(short, Learner(1), PlayOptions(clock=clock)).metadata["problems"]
    assert "limit of 120 s" in problem


def test_an_agent_that_hangs_is_interrupted(draw):
    class Hung(Scripted):
        def testing_instance(self, feature_vector, novelty_indicator=None):
            while len(calls_of(self, "trial_start")) == 1:
                try:
                    threading.Event().wait(30)
                except Exception:
                    continue
            return self.answer()

    results = play(draw(training_episodes=0, normal_timeout_seconds=0.3), Hung(steps=1))
    problems = column(results, "problem")
    assert "took longer than its limit" in problems[0]
    assert problems[3:] == [""] * 3


# Transcripts --------------------------------------------------------------------------------------


@pytest.fixture
def transcripts(draw, tmp_path):
    def write(agent, **values):
        experiment = draw(trials=1, training_episodes=1, **values)
        play(experiment, agent, PlayOptions(transcripts=tmp_path, wall=lambda: 1.5))
        return tmp_path

    return write


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_transcript_holds_every_message(transcripts):
    folder = transcripts(Scripted(steps=1), novelty_visibility=(1,), hint_level=(0,))
    assert sorted(str(p.relative_to(folder)) for p in folder.rglob("*.jsonl")) == [
        "training/episode-00000.jsonl",
        *(f"trial-00000/episode-{k:05}.jsonl" for k in range(3)),
    ]
    header, *records = lines_of(folder / "trial-00000" / "episode-00001.jsonl")
    assert header["episode"]["plan"]["level"] == 203
    assert set(records[0]) == {"cart", "pole", "blocks", "time_stamp", "image", "walls", "hint"}
    assert records[1:4] == [
        {"novelty_indicator": "true"},
        {"action": "nothing"},
        {"performance": 0.005},
    ]
    assert records[5:7] == [{"novelty_indicator": "true"}, {"action": "give_up"}]
    assert records[7:] == [
        {"performance": 0.0},
        {
            "novelty_probability": 0.25,
            "novelty_threshold": 0.5,
            "novelty": 0,
            "novelty_characterization": {},
        },
    ]
    training = lines_of(folder / "training" / "episode-00000.jsonl")
    assert [set(m) for m in training[2:5]] == [{"action"}, {"action"}, {"performance"}]


@pytest.fixture
def unpacked():
    """Decode the field `image` with the public package, as a client does."""
    blosc = pytest.importorskip("blosc", reason="needs the extra: jaxsim-novelty[images]")
    return lambda text: blosc.unpack_array(base64.b64decode(text, validate=True))


def test_a_client_that_asks_for_pictures_gets_those_of_its_observations(draw, tmp_path, unpacked):
    agent = Scripted(steps=2)
    options = PlayOptions(pictures=Pictures(24), transcripts=tmp_path, wall=lambda: 1.5)
    play(draw(labels="left"), agent, options)
    training, testing = (calls_of(agent, f"{mode}_instance") for mode in ("training", "testing"))
    assert training and testing
    for values in training + testing:
        vector = json.loads(json.dumps(values["feature_vector"], allow_nan=False))
        pixels = unpacked(vector["image"])
        assert (pixels.shape, pixels.dtype) == ((24, 24, 3), np.uint8)
        observation, extras = messages.parse_feature_vector(vector)
        assert extras.image == vector["image"]
        # Messages are rounded, and a ray may fall to the other side of an edge.
        drawn = render.draw(render.observed(observation), render.Style(("corner",), 24))
        assert (pixels != drawn).mean() < 0.01
    assert len({values["feature_vector"]["image"] for values in testing}) > 1
    paths = list(tmp_path.rglob("*.jsonl"))
    assert paths and all(not replay(path).differences for path in paths)


@pytest.mark.parametrize("pixels", [0, 1025])
def test_pictures_have_sizes_that_can_be_drawn(pixels):
    with pytest.raises(ValueError, match=f"height is {pixels}; it must be from 1"):
        Pictures(pixels)


def test_pictures_without_blosc_are_refused(monkeypatch):
    monkeypatch.setattr(pictures, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"need blosc: pip install 'jaxsim-novelty\[images\]'"):
        Pictures(64)


def test_predictions_of_phase_1_are_messages_of_their_own(transcripts):
    folder = transcripts(Scripted(steps=1), phase="1")
    records = lines_of(folder / "trial-00000" / "episode-00000.jsonl")[1:]
    assert "block_0" in records[0]
    assert records[1:5] == [
        {"novelty_indicator": "null"},
        {"action": "nothing"},
        {"novelty_prediction": 0},
        {"performance": 0.005},
    ]


@pytest.mark.parametrize("starts", ["wsu", "counter"])
def test_a_transcript_replays(transcripts, starts):
    folder = transcripts(Scripted(steps=30), starts=starts)
    for path in folder.rglob("*.jsonl"):
        result = replay(path)
        answers_given = sum(set(message) == {"performance"} for message in lines_of(path))
        assert (result.steps, result.differences) == (answers_given, ()), path
    path = folder / "trial-00000" / "episode-00002.jsonl"
    lines = path.read_text().splitlines()
    vector = json.loads(lines[5])
    vector["cart"]["x_velocity"] += 0.5
    path.write_text("\n".join([*lines[:5], json.dumps(vector), *lines[6:]]))
    (difference,) = replay(path).differences
    assert difference.startswith("6: cart.x_velocity is ")


def test_an_action_after_the_end_is_a_difference(transcripts):
    folder = transcripts(Scripted(steps=30))
    path = folder / "trial-00000" / "episode-00002.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, *['{"action": "nothing"}'] * 250]))
    result = replay(path)
    end = len(lines) + 1 + result.steps - replay_steps(lines)
    assert result.differences == (f"{end}: the episode is over before this action",)
    assert result.steps <= 200


def replay_steps(lines):
    """Actions that the lines of a transcript of a testing episode play."""
    return sum(set(json.loads(line)) == {"performance"} for line in lines)


def test_a_transcript_of_an_episode_that_there_is_not(transcripts):
    folder = transcripts(Scripted(steps=1))
    path = folder / "training" / "episode-00000.jsonl"
    text = path.read_text()
    changes = (
        ('"seed": 0', '"seed": -1'),
        ('[203, "hard"]', '[299, "hard"]'),
        ('"level": 200', '"level": 999'),
    )
    for old, new in changes:
        assert old in text
        path.write_text(text.replace(old, new, 1))
        with pytest.raises(ExperimentError, match=r":1:1: this episode cannot be opened: "):
            replay(path)


def test_files_that_are_no_transcript(tmp_path):
    path = tmp_path / "other.jsonl"
    for text, place in (('{"action": "left"}', "1:1"), ("[1]", "1:1"), ('{"a"', "1:5")):
        path.write_text(text)
        with pytest.raises(ExperimentError, match=f"{path}:{place}: "):
            replay(path)


# Answers ------------------------------------------------------------------------------------------


@pytest.mark.requirement(134)
def test_forms_of_an_answer():
    assert answers.answer({"action": "left"}, "m") == answers.Answer("left")
    both = ({"action": "right"}, {"novelty_prediction": np.int64(2)})
    assert answers.answer(both, "m") == answers.Answer("right", 2)
    assert answers.verdict((np.float32(0.5), 1, 2.0, None), "m").characterisation == {}


@pytest.mark.parametrize(
    "characterisation",
    [
        {"level": [{"level_number": 2, "probability": 0.75}, {"level_number": 0, "Prob": 0.25}]},
        {"levels": [{"Level": 2, "prob": 0.75}, {"level": 0, "prob": 0.25}]},
        {
            "novelty_characterization": {
                "level": [{"level": 2, "Prob": 0.75}, {"level": 0, "Prob": 0.25}]
            }
        },
    ],
)
def test_forms_of_a_characterisation(characterisation):
    probabilities, words = answers.read_characterisation(characterisation)
    assert probabilities.tolist() == [0.25, 0, 0.75] + [0] * 6
    assert words == ("", "", "")


def test_a_characterisation_that_says_nothing():
    for characterisation in (
        None,
        {},
        {"level": 3},
        {"level": [{"level_number": 99, "probability": 1}]},
        {"level": [{"level_number": 10**400, "probability": 1}]},
        {"level": [{"level_number": 7.9, "probability": 1}]},
        {"level": [{"level_number": 3, "probability": 10**400}]},
    ):
        assert np.isnan(answers.read_characterisation(characterisation)[0]).all()
