"""Experiments with pure agents: who plays what, starts, learning, and the interactive twin."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from evaluation import scanner
from evaluation.sailon import TA2Logic, batch, interactive
from evaluation.sailon.batch import play_batch
from evaluation.sailon.experiment import Cell, Experiment, Trial
from evaluation.sailon.worlds import groups, original_starts
from jaxsim import agents, rng
from jaxsim.agents import Agent, NoveltyPrediction
from jaxsim.worlds.cartpole3d import wsu_start
from jaxsim.worlds.cartpole3d.generate.start import fitted
from jaxsim.worlds.cartpole3d.original import hints, messages
from jaxsim.worlds.cartpole3d.types import ACTIONS

ONE_THREAD = scanner.MachineOptions(threads=1, segment=2)
"""Programs of two rounds, which most tests share."""


def play(experiment, agent="pd", **arguments):
    player = agents.get(agent) if isinstance(agent, str) else agent
    return play_batch(experiment, player, options=ONE_THREAD, **arguments)


# An agent that writes down what happens to it -----------------------------------------------------


def _clerk():
    """Its threshold tells episodes begun, its probability those learnt from, its level hints."""

    def init(key):
        zero = jnp.int32(0)
        return {"begun": zero, "learnt": zero, "told": jnp.full(5, -2), "key": key}

    def tell(memory, hint):
        codes = (hint.novel, hint.level, hint.entity, hint.attribute, hint.change)
        return {**memory, "told": jnp.stack(codes)}

    def begin(memory, key):
        return {**memory, "begun": memory["begun"] + 1}

    def act(memory, observation, key):
        level = jnp.where(memory["told"][0] > 0, 2 + memory["told"][1], memory["told"][0] + 1)
        counts = memory["learnt"] / 64, memory["begun"] / 64
        return jnp.int32(0), NoveltyPrediction(level, *counts), memory

    def learn(memory, episodes):
        return {**memory, "learnt": memory["learnt"] + 1}

    def named(memory):
        return jnp.where(memory["told"][2] >= 0, 207, 0).astype(jnp.int32)

    return Agent("clerk", act, init, begin, learn, tell, named)


CLERK = _clerk()


def test_episodes_have_the_numbers_of_their_trial_in_every_stretch(draw):
    """What is random in them is counted by these."""
    experiment = draw(trials=1, testing_episodes=5, starts="counter")
    (group, *_) = groups(experiment)
    options = scanner.MachineOptions(threads=1, segment=2)
    root = rng.words(jax.random.key(0))
    trials = batch._Trials(agents.get("pd"), group, experiment, root, options)
    lists = [list(experiment.episodes(trial)) for trial in group.trials]
    for first in (0, 2, 4):
        rounds = trials.rounds([lane[first : first + 2] for lane in lists], first, training=False)
        assert rounds.episode[:, 0].tolist() == [first, first + 1]
        assert (rounds.count == [[first + k < 5] for k in range(2)]).all()


def by_trial(results, name):
    rows = results.tested()
    return [rows[name][rows["trial_id"] == k].tolist() for k in np.unique(rows["trial_id"])]


@pytest.mark.slow
def test_pure_agents_are_told_what_the_protocol_tells_and_start_from_the_training(draw):
    experiment = draw(novelty_visibility=(0, 1), hint_level=(-1, 1), trials=1, starts="counter")
    results = play(experiment, CLERK)
    # Without a hint: 0; not novel: 1; novel without a level: 1; novel with level 3: 5.
    assert by_trial(results, "novelty") == [[0, 0, 0], [1, 1, 1], [1, 5, 5]]
    # Cells are the same but for what is told, and what is random in them is not.
    rewards = by_trial(results, "reward")
    assert len({tuple(of_trial) for of_trial in rewards}) == 3
    assert by_trial(results, "entity") == [[""] * 3, [""] * 3, ["", "block", "block"]]
    assert results.rows["level_probs"][-1].tolist() == [0.0] * 7 + [1.0, 0.0]
    assert hints.ENTITIES[hints.codes(203, 1)[1]] == "block"
    # Two training episodes, then each trial goes on from there by itself.
    rows = results.rows
    assert (rows["novelty_threshold"] * 64).tolist() == [1, 2] + [3, 4, 5] * 3
    assert (rows["novelty_probability"] * 64).tolist() == [0, 1] + [2, 3, 4] * 3
    assert rows["complete"].all() and len(set(rows["length"].tolist())) > 1
    # As decimals: 47 steps take 0.94 s, and not 47 * 0.02, which is 0.9400000000000001.
    np.testing.assert_array_equal(rows["seconds"], rows["length"] / 50)
    np.testing.assert_array_equal(rows["performance"], rows["length"] / 200)


@pytest.mark.long
def test_what_changes_no_result(draw):
    experiment = draw(trials=3, starts="counter")
    moves = []
    plain = play(experiment, progress=lambda *counts: moves.append(counts))
    short = play_batch(
        experiment, agents.get("pd"), options=scanner.MachineOptions(threads=1, segment=4)
    )
    for name, column in plain.rows.items():
        np.testing.assert_array_equal(short.rows[name], column, err_msg=name)
    assert moves[-1] == (11, 11)
    other = play(experiment, seed=1)
    assert (other.rows["reward"] != plain.rows["reward"]).any()
    # One trial fewer leaves the others as they are.
    fewer = Experiment("fewer", experiment.settings, experiment.training, experiment.trials[:2])
    np.testing.assert_array_equal(play(fewer).rows["reward"], plain.rows["reward"][:8])


class Interrupted(Exception):
    """A run has ended between two segments."""


class Interrupting:
    """Ends a run after so many segments with a snapshot, from which the next goes on."""

    ends = ()

    def __init__(self, after, snapshot=None):
        self.after, self.snapshot, self.episodes = after, snapshot, []

    def begin(self, start):
        snapshot = start()
        if self.snapshot is not None:
            shapes = [
                jax.tree.map(np.shape, (s.memory, s.outcome)) for s in (snapshot, self.snapshot)
            ]
            assert shapes[0] == shapes[1]
        return self.snapshot

    def between(self, episodes, take):
        self.episodes.append(episodes)
        self.after -= 1
        if self.after == 0:
            snapshot = take()
            trees = jax.tree.map(np.array, (snapshot.memory, snapshot.outcome))
            self.snapshot = scanner.Snapshot(snapshot.rounds, *trees)
            raise Interrupted


@pytest.mark.slow
def test_an_experiment_goes_on_wherever_it_was_interrupted(draw):
    """Agents with memories, within the training, between parts and within trials."""
    experiment = draw(trials=2, starts="counter")
    who = [CLERK, CLERK]
    whole = batch.play_agents(experiment, who, options=ONE_THREAD)
    snapshot, reached = None, []
    for segments in (1, 1, 3):
        keeper = Interrupting(segments, snapshot)
        with pytest.raises(Interrupted):
            batch.play_agents(experiment, who, options=ONE_THREAD, keeper=keeper)
        snapshot = keeper.snapshot
        reached += keeper.episodes
    # The training, two segments of an agent's trials, and the same of the other.
    keeper = Interrupting(-1, snapshot)
    resumed = batch.play_agents(experiment, who, options=ONE_THREAD, keeper=keeper)
    assert reached + keeper.episodes == [2, 6, 8, 10, 14, 16]
    for one, other in zip(whole, resumed, strict=True):
        for name, column in one.rows.items():
            np.testing.assert_array_equal(other.rows[name], column, err_msg=name)


@pytest.mark.long
def test_levels_of_two_dimensions_are_played_beside(draw):
    seeds = (100_000_000, 100_000_001, 100_000_002)
    trials = (
        Trial(0, 0, Cell(0, 50, "easy", -1), (False, True, True), seeds),
        Trial(1, 0, Cell(0, 51, "hard", -1), (False, True), seeds[:2]),
    )
    settings = draw(novelty=(50, 51), starts="wsu").settings
    # A segment of one episode: in the last one, nobody starts as the original does.
    options = scanner.MachineOptions(threads=1, segment=1)
    experiment = Experiment("flat", settings, (), trials)
    results = play_batch(experiment, agents.get("greedy"), options=options)
    assert results.rows["episode_level"].tolist() == [200, 50, 50, 200, 51]
    assert (results.rows["length"] > 0).all()
    assert results.rows["complete"].all()


@pytest.mark.long
@pytest.mark.nightly
def test_a_detector_leaves_the_episodes_of_its_controller(draw):
    experiment = draw(novelty=(200, 207), trials=2, starts="counter")
    alone, joined = play(experiment), play(experiment, "pd+residual")
    assert joined.rows["novelty"].any()
    silenced = joined.silenced("pd")
    assert silenced.metadata == alone.metadata
    for name, column in alone.rows.items():
        np.testing.assert_array_equal(silenced.rows[name], column, err_msg=name)


# Starts -------------------------------------------------------------------------------------------


def test_starts_of_the_original_by_seed(draw):
    experiment = draw(novelty=(202, 204, 206, 207), trials=1, pre_novel_episodes=1)
    (group,) = groups(experiment)
    env = group.tasks.worlds[0].env
    plans = [plan for trial in group.trials for plan in experiment.episodes(trial)]
    batch = original_starts(plans, env)
    for index, plan in enumerate(plans):
        one = wsu_start(plan.seed, plan.level, plan.difficulty, "float32")
        if plan.level != 202:
            one = fitted(one, env.config)
        got = jax.tree.map(lambda leaf, i=index: leaf[i], batch)
        assert got.pose.x == one.pose.x
        assert got.extra_bounce == one.extra_bounce
        assert got.wind == one.wind
        for slot, block in zip(got.blocks, one.blocks, strict=True):
            np.testing.assert_array_equal(slot.alive, block.alive)
            np.testing.assert_array_equal(np.array(slot.p)[:2], np.array(block.p)[:2])
            np.testing.assert_array_equal(slot.v, block.v)
            assert bool(slot.rail.holds) == (plan.level == 202 and bool(block.alive))


def test_only_the_training_is_told_not_to_be_novel_unasked(draw):
    experiment = draw(trials=1, testing_episodes=5, starts="counter")
    (group, *_) = groups(experiment)
    options = scanner.MachineOptions(threads=1, segment=2)
    root = rng.words(jax.random.key(0))
    trials = batch._Trials(agents.get("pd"), group, experiment, root, options)
    lists = [list(experiment.episodes(trial))[:2] for trial in group.trials]
    visible = np.array([trial.cell.visibility for trial in group.trials])
    for training in (False, True):
        hint = trials.rounds(lists, 0, training).hint
        expected = np.where((visible == 1) | training, 0, -1)
        np.testing.assert_array_equal(hint.novel[0], expected)


# The interactive twin -----------------------------------------------------------------------------


class Twin(TA2Logic):
    """The agent `pd`, which sees nothing but JSON."""

    decide = staticmethod(jax.jit(agents.get("pd").act))

    def answer(self, vector):
        observation, _ = messages.loads_feature_vector(json.dumps(vector))
        action, _, _ = self.decide((), observation, jax.random.key(0))
        return {"action": ACTIONS[int(action)]}

    def training_instance(self, feature_vector, feature_label):
        return self.answer(feature_vector)

    def testing_instance(self, feature_vector, novelty_indicator=None):
        return self.answer(feature_vector)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("starts", ["wsu", "counter"])
def test_an_agent_of_the_interface_gets_what_its_pure_twin_gets(draw, starts):
    experiment = draw(trials=2, starts=starts)
    pure, through_json = play(experiment), interactive.play(experiment, Twin())
    for name in ("performance", "length", "reward", "seconds", "complete", "novelty_initiated"):
        np.testing.assert_array_equal(through_json.rows[name], pure.rows[name], err_msg=name)
    assert len(set(pure.rows["length"].tolist())) > 1


def test_the_name_of_an_agent_is_no_agent(draw):
    with pytest.raises(TypeError, match="agent is 'pd'; it must be an Agent"):
        play_batch(draw(trials=1), "pd")


def test_a_report_out_of_its_bounds_is_refused(draw):
    def act(memory, observation, key):
        return jnp.int32(0), NoveltyPrediction(jnp.int32(0), jnp.float32(5), jnp.float32(1)), memory

    words = "agent wrong predicts a probability of 5; it must be from 0 to 1"
    with pytest.raises(ValueError, match=words):
        play(draw(trials=1, testing_episodes=2), Agent("wrong", act))
