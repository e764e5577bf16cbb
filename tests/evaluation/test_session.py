"""The session engine against the scanner, and what it says to wrong input."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from evaluation import l2m, scanner, session
from evaluation.clock import ScriptedClock, SystemClock
from evaluation.records import COLUMNS, read
from evaluation.session import EpisodeResult, Log, Prediction, PurePlayer, Session
from jaxsim import agents
from jaxsim.agents import Agent, NoveltyPrediction
from tests.evaluation import toy
from tests.evaluation.toy import repeat


@pytest.fixture(autouse=True, scope="module")
def toy_task():
    with toy.registered():
        yield


def schedule():
    """Several variants and two worlds, starts and places that are drawn, early ends."""
    easy, drawn = repeat(2), repeat(3, wheel=5)
    short, other = repeat(3, wheel=5, tolerance=2, target=1), repeat(2, wheel=3, rules="other")
    return toy.schedule(
        ("1.train", [easy, drawn, other]), ("1.test", [short, easy]), ("2.train", [short, drawn])
    )


@pytest.mark.parametrize("lifetime", [0, 2])
def test_a_session_plays_what_the_scanner_plays(lifetime):
    plan = schedule()
    both = scanner.play(
        plan, toy.busy, lifetimes=3, seed=5, options=scanner.MachineOptions(threads=1)
    )
    calls = []
    one = session.play(
        plan,
        PurePlayer(toy.busy, seed=5, lifetime=lifetime),
        seed=5,
        lifetime=lifetime,
        progress=lambda *counts: calls.append(counts),
    )
    assert one.schedule == both.schedule
    assert one.first_lifetime == lifetime
    assert calls == [(n + 1, plan.num_episodes) for n in range(plan.num_episodes)]
    np.testing.assert_array_equal(one.novelty_levels, both.novelty_levels)
    for name, dtype in COLUMNS.items():
        assert one.columns[name].dtype == dtype
        np.testing.assert_array_equal(
            one.columns[name][0], both.columns[name][lifetime], err_msg=name
        )


def test_both_engines_show_agents_the_same_pictures_of_several_worlds():
    plan = l2m.loads(
        json.dumps(
            {
                "name": "pictures",
                "author": "a test",
                "contains": "episodes",
                "default_params": {"sensors/image/height": 4, "sensors/image/grey": 1},
                "instructions": [
                    {"$phase": "1.train"},
                    {"$repeat": {"$episode": "CartPole"}, "count": 2},
                    {"$repeat": {"$episode": "CartPole2D"}, "count": 2},
                ],
            }
        )
    )

    def act(memory, observation, key):
        action = jnp.sum(observation.image.astype(jnp.int32)) % 5
        return action, agents.NoveltyPrediction.none(), memory

    agent = agents.Agent("by picture", act)
    both = scanner.play(plan, agent, lifetimes=2, seed=1, options=scanner.MachineOptions(threads=1))
    one = session.play(plan, PurePlayer(agent, seed=1), seed=1)
    for name in COLUMNS:
        np.testing.assert_array_equal(one.columns[name][0], both.columns[name][0], err_msg=name)
    assert len(set(both.columns["length"].ravel().tolist())) > 2


def test_a_pure_agent_needs_a_player():
    with pytest.raises(TypeError, match=r"busy is a pure agent; pass session\.PurePlayer\(agent\)"):
        session.play(schedule(), toy.busy)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"$episode": "CartPole"}, {"$episode": "CartPole", "sensors/image/height": 4}),
        ({"$episode": "CartPole3D"}, {"$episode": "CartPole3D", "sensors/image/height": 4}),
        ({"$episode": "CartPole3D"}, {"$episode": "CartPole3DLeans"}),
    ],
)
def test_tasks_that_show_other_things_are_refused(first, second):
    for one, other in ((first, second), (second, first)):
        plan = l2m.loads(toy.syllabus(("1.train", [one]), ("1.test", [other])))
        with pytest.raises(ValueError, match=r"has other observations .*must be the same in all"):
            Session(plan)


@pytest.mark.slow
@pytest.mark.long
def test_a_session_plays_cartpole3d_as_the_scanner_does():
    plan = l2m.loads(
        toy.syllabus(
            ("1.train", [repeat(4, "CartPole3D")]),
            ("1.test", [repeat(4, "CartPole3D", novelty_level=205, novelty_difficulty="hard")]),
        )
    )
    pd = agents.get("pd")
    both = scanner.play(plan, pd, lifetimes=1, seed=1, options=scanner.MachineOptions(threads=1))
    one = session.play(plan, PurePlayer(pd, seed=1), seed=1)
    # Programs are compiled differently, and a last bit may grow into another episode; not in these.
    for name in COLUMNS:
        np.testing.assert_array_equal(one.columns[name], both.columns[name], err_msg=name)


def test_every_world_of_a_session_is_compiled_when_asked_for():
    lifetime = Session(schedule())
    lifetime.compile()
    steppers = [stepper for stepper, _ in lifetime._worlds.values()]
    programs = [
        getattr(stepper._programs, name)
        for stepper in steppers
        for name in ("draw", "quick", "whole", "observe")
    ]
    compiled = [program._cache_size() for program in programs]
    assert len(steppers) == len(set(lifetime.tasks.world.tolist())) == 2
    assert all(compiled)
    for number in range(lifetime.schedule.num_episodes):
        lifetime.episode(number).step(1)
    assert [program._cache_size() for program in programs] == compiled


def test_an_episode_step_by_step():
    lifetime = Session(toy.schedule(("1.train", [repeat(1, target=2), repeat(1, tolerance=0)])))
    episode = lifetime.episode(0)
    assert (episode.number, episode.over, episode.length, episode.reward) == (0, False, 0, 0)
    assert episode.observation == {"place": 0, "step": 0}
    assert episode.state.step == 0
    observation = episode.step(1)
    assert observation == episode.observation == {"place": 0, "step": 1}
    assert (episode.length, episode.reward, episode.performance) == (1, 3 / 32, 3 / 32)
    # Broken off here, it is not complete.
    assert episode.result() == EpisodeResult(3 / 32, 3 / 32, 1, False, False, 0.25)
    while not episode.over:
        episode.step(2)
    assert episode.result() == EpisodeResult(31 / 32, 31 / 32, 8, False, True, 2.0)
    with pytest.raises(RuntimeError, match="over"):
        episode.step(2)
    short = lifetime.start(1, 7)
    short.step(0)
    assert short.result() == EpisodeResult(1 / 32, 1 / 32, 1, True, True, 0.25)


def test_a_number_that_is_not_finite_makes_an_episode_incomplete():
    episode = Session(toy.schedule(("1.train", [repeat(1, spoil=3)]))).episode(0)
    while not episode.over:
        episode.step(3)
    assert not episode.result().complete


@pytest.mark.parametrize("action", [-1, toy.RING, 1.5, "left", None, [1], np.zeros(2, int)])
def test_wrong_actions_change_nothing(action):
    episode = Session(toy.schedule(("1.train", [repeat(1)]))).episode(0)
    with pytest.raises(ValueError, match="action"):
        episode.step(action)
    assert (episode.length, episode.over) == (0, False)


@pytest.mark.parametrize(
    "given",
    [(-1, 0.5, 0.5), (2.7, 0.5, 0.5), (1, 1.5, 0.5), (1, float("nan"), 0.5), (1, 0.5, -0.1)],
)
def test_wrong_predictions(given):
    with pytest.raises(ValueError, match="novelty"):
        Prediction(*given).checked()
    assert Prediction(np.int32(3), np.float32(0.5)).checked() == Prediction(3, 0.5, 1.0)
    for bounds in (Prediction(0, 0.0, 0.0), Prediction(10, 1.0, 1.0)):
        assert bounds.checked() == bounds


@pytest.mark.parametrize("action", [jnp.float32(1.9), jnp.int32(-1), jnp.int32(toy.RING)])
def test_a_pure_player_with_a_wrong_action_is_refused(action):
    none = NoveltyPrediction.none()
    agent = Agent("wrong", lambda memory, observation, key: (action, none, memory))
    with pytest.raises(ValueError, match="action"):
        session.play(toy.schedule(("1.train", [repeat(1)])), PurePlayer(agent))


def test_a_player_with_a_wrong_prediction_is_refused():
    class Liar:
        name = "liar"

        def begin(self, episode):
            pass

        def act(self, observation):
            return 0, Prediction(1, 2.0)

        def end(self, result, learning):
            pass

    with pytest.raises(ValueError, match="probability is 2"):
        session.play(toy.schedule(("1.train", [repeat(1)])), Liar())


def test_a_pure_agent_has_a_memory_of_its_own_up_to_the_last_lifetime():
    keys = agents.Agent("keys", toy.busy.act, init=jax.random.key_data)
    memories = [PurePlayer(keys, lifetime=k)._memory.tolist() for k in (0, 2**31, 2**32 - 1)]
    assert len({tuple(memory) for memory in memories}) == 3


@pytest.mark.parametrize("name", ["seed", "lifetime"])
def test_seeds_and_lifetimes_have_bounds(name):
    for value in (-1, 2**32):
        words = f"{name} is {value}; it must be from 0 to 4294967295"
        with pytest.raises(ValueError, match=words):
            Session(schedule(), **{name: value})
    for value in (0, 2**32 - 1):
        Session(schedule(), **{name: value})


def test_episodes_and_variants_that_there_are_not():
    lifetime = Session(schedule())
    with pytest.raises(IndexError, match="episode is 18; the schedule has 18"):
        lifetime.episode(18)
    with pytest.raises(IndexError, match="variant is -1"):
        lifetime.start(-1, 0)


def test_a_log_of_episodes_in_any_order(tmp_path):
    lifetime = Session(schedule())
    log = Log("chosen", "by hand", {"agent": "tester"})
    with pytest.raises(ValueError, match="no episode"):
        log.records()
    for number, (variant, mode) in enumerate(
        [(2, "train"), (2, "train"), (0, "test"), (2, "test")]
    ):
        episode = lifetime.start(variant, number)
        while not episode.over:
            episode.step(3)
        log.add(lifetime, variant, episode.result(), Prediction(number, 0.5), mode=mode)
    assert len(log) == 4
    log.records().write(tmp_path / "records.parquet")
    records = read(tmp_path / "records.parquet")
    assert [(b.index, b.mode, b.count) for b in records.schedule.blocks] == [
        (0, "train", 2),
        (1, "test", 1),
        (2, "test", 1),
    ]
    variants = schedule().variants
    assert records.schedule.variants == (variants[2], variants[0])
    assert records.columns["predicted_level"].tolist() == [[0, 1, 2, 3]]
    assert records.metadata["agent"] == "tester"


def test_keys_are_those_of_the_scanner():
    lifetime = Session(schedule(), seed=3, lifetime=4)
    assert lifetime.agent_key().dtype == jax.random.key(0).dtype
    keys = [lifetime.agent_key()]
    for number in (0, 1):
        episode = lifetime.episode(number)
        keys += [episode.begin_key(), episode.act_key()]
        episode.step(0)
        keys.append(episode.act_key())
    assert len({tuple(jax.random.key_data(key).tolist()) for key in keys}) == len(keys)


def test_clocks():
    clock = ScriptedClock(2.0)
    clock.advance(0.5)
    assert clock.now() == 2.5
    for wrong in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="clock"):
            clock.advance(wrong)
    real = SystemClock()
    assert 0 <= real.now() <= real.now()


def test_neighbours_in_a_log_are_one_block_only_if_all_is_equal():
    lifetime = Session(schedule())
    done = lifetime.episode(0)
    while not done.over:
        done.step(0)
    log = Log("chosen", "by hand")
    same = {"phase": 1, "mode": "train", "learning": True}
    for change in ({}, {}, {"learning": False}, {}, {"mode": "test"}, {}, {"phase": 2}, {}):
        log.add(lifetime, 0, done.result(), **{**same, **change})
    log.add(lifetime, 1, done.result(), **same)
    blocks = log.records().schedule.blocks
    assert [block.count for block in blocks] == [2, 1, 1, 1, 1, 1, 1, 1]
    assert [block.learning for block in blocks] == [True, False, *(True,) * 6]
