"""The scanner against a loop in Python, against results by hand, and with CartPole3D."""

from dataclasses import replace
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from benchmarks import lockstep
from evaluation import scanner
from evaluation.metrics import Reason
from evaluation.records import COLUMNS
from evaluation.report import summarise_records
from evaluation.sailon import experiment
from evaluation.sailon.batch import play_batch
from evaluation.sailon.settings import ExperimentSettings
from evaluation.tasks import Tasks
from jaxsim import agents, registry, rng
from jaxsim.agents import Agent, Episodes
from jaxsim.agents.base import NoveltyPrediction
from jaxsim.lanes.crew import Crew, Spread
from tests.evaluation import toy
from tests.evaluation.reached import reached
from tests.evaluation.toy import repeat, say

ONE_THREAD = scanner.MachineOptions(threads=1)


@pytest.fixture(autouse=True, scope="module")
def toy_task():
    with toy.registered():
        yield


def play(schedule, agent, lifetimes=2, seed=0, options=ONE_THREAD, **arguments):
    return scanner.play(
        schedule, agent, lifetimes=lifetimes, seed=seed, options=options, **arguments
    )


@pytest.mark.parametrize(
    ("crew", "engine"),
    [
        (
            "evaluation.scanner.Crew",
            lambda spread: play(
                mixed_schedule(), toy.busy, options=scanner.MachineOptions(*spread)
            ),
        ),
        (
            "evaluation.sailon.batch.Crew",
            lambda spread: play_batch(
                experiment.generate(ExperimentSettings(novelty=(203,), trials=1)),
                agents.get("pd"),
                options=scanner.MachineOptions(*spread),
            ),
        ),
        (
            "jaxsim.rollouts.Crew",
            lambda spread: jaxsim.rollout(
                *jaxsim.make("CartPole-v1"), agents.get("random"), 9, spread=Spread(*spread)
            ),
        ),
    ],
    ids=["lifetimes", "trials", "episodes"],
)
def test_chunk_and_threads_reach_the_engine(crew, engine):
    with reached({crew: None}) as calls:
        engine((128, 3))
    assert [call.arguments["spread"] for call in calls] == [Spread(128, 3)]


def mixed_schedule():
    """Training and testing, several variants, starts and places that are drawn, early ends."""
    easy, drawn = repeat(2), repeat(3, wheel=5)
    short = repeat(3, wheel=5, tolerance=2, target=1)
    return toy.schedule(
        ("1.train", [easy, drawn]),
        ("1.test", [short, easy]),
        ("2.train", [short, drawn]),
        ("2.test", [drawn]),
    )


# The same thing as a loop -------------------------------------------------------------------------

# What a lane's randomness is for, from the seed down: part of what makes an old result come back.
AGENT, EPISODE = 0, 1
RESET, BEGIN, ACT, STEP = 0, 1, 2, 3


def key_of(words, *counters):
    return rng.to_key(rng.fold(words, *counters))


compiled = cache(jax.jit)


def loop_episode(agent, env, params, words, memory):
    """Play one episode of one lifetime, tick by tick."""
    act, step = compiled(agent.act), compiled(env.step)
    memory = compiled(agent.begin)(memory, key_of(words, BEGIN))
    state = compiled(env.start)(key_of(words, RESET), params)
    hidden = step(key_of(words, STEP, 0), state, jnp.int32(0), params)
    observation, state, _, terminated, truncated, info = hidden
    total, length, prediction = jnp.zeros(()), 0, NoveltyPrediction.none()
    complete = not info["nonfinite"]
    while not (terminated or truncated):
        length += 1
        action, prediction, memory = act(memory, observation, key_of(words, ACT, length))
        observation, state, reward, terminated, truncated, info = step(
            key_of(words, STEP, length), state, action, params
        )
        total, complete = total + reward, not info["nonfinite"]
    row = {
        "reward": total,
        "performance": info["performance"],
        "length": length,
        "complete": complete,
        "predicted_level": prediction.level,
        "predicted_probability": prediction.probability,
        "threshold": prediction.threshold,
        "seconds": np.float32(length * env.dt(params)),
    }
    return memory, row, terminated


def loop_lifetime(schedule, agent, seed, lifetime):
    """Rows of one lifetime."""
    tasks = Tasks.of(schedule)
    words = rng.words(jax.random.key(seed))
    memory = agent.init(key_of(words, lifetime, AGENT))
    rows = []
    for episode, index in enumerate(schedule.episode_blocks()):
        block, variant = schedule.blocks[index], schedule.block_variants()[index]
        env, params = tasks.variant(variant)
        episode_words = rng.fold(words, lifetime, EPISODE, episode)
        memory, row, terminated = loop_episode(agent, env, params, episode_words, memory)
        if block.learning:
            result = (row["reward"], row["performance"], row["length"], terminated)
            episodes = Episodes(*(jnp.asarray(value)[None] for value in result))
            memory = compiled(agent.learn)(memory, episodes)
        rows.append(row)
    return rows


def loop(schedule, agent, seed, lifetimes):
    """Columns of a run, one lifetime, episode and tick after the other."""
    rows = [loop_lifetime(schedule, agent, seed, lifetime) for lifetime in range(lifetimes)]
    return {
        name: np.array([[row[name] for row in lifetime] for lifetime in rows], dtype)
        for name, dtype in COLUMNS.items()
    }


def assert_same_columns(columns, expected):
    assert set(columns) == set(expected) == set(COLUMNS)
    for name, dtype in COLUMNS.items():
        assert columns[name].dtype == dtype, name
        np.testing.assert_array_equal(columns[name], expected[name], err_msg=name)


@pytest.fixture(scope="module")
def busy_records():
    return play(mixed_schedule(), toy.busy, lifetimes=3, seed=5)


def test_scan_equals_a_loop(busy_records):
    columns = busy_records.columns
    # The game must not be too simple to tell anything.
    assert len(np.unique(columns["length"])) > 2
    assert len(np.unique(columns["reward"])) > 5
    assert len(np.unique(columns["predicted_probability"])) == columns["reward"].size
    assert_same_columns(columns, loop(mixed_schedule(), toy.busy, seed=5, lifetimes=3))


def test_the_largest_seed_and_permissions_other_than_the_phases():
    learning = [False, True, True, False, True, False, True]
    schedule = toy.with_learning(mixed_schedule(), learning)
    records = play(schedule, toy.busy, lifetimes=1, seed=2**32 - 1)
    assert_same_columns(records.columns, loop(schedule, toy.busy, 2**32 - 1, 1))


@pytest.mark.parametrize(
    ("lifetimes", "options"),
    [
        (1, scanner.MachineOptions(threads=1)),
        (100, scanner.MachineOptions(chunk=128, threads=1, segment=3)),
        (3, scanner.MachineOptions(chunk=64, threads=1, segment=1)),
        (3, scanner.MachineOptions(segment=100)),
    ],
)
def test_spreading_a_run_changes_nothing(busy_records, lifetimes, options):
    records = play(mixed_schedule(), toy.busy, lifetimes, seed=5, options=options)
    shared = min(3, lifetimes)
    for name in COLUMNS:
        assert records.columns[name].shape == (lifetimes, mixed_schedule().num_episodes)
        np.testing.assert_array_equal(
            records.columns[name][:shared], busy_records.columns[name][:shared], err_msg=name
        )


@pytest.mark.parametrize(("first", "lifetimes"), [(2, 1), (1, 2), (1, 70)])
def test_a_part_of_a_longer_run_is_played_again(busy_records, first, lifetimes):
    part = play(mixed_schedule(), toy.busy, lifetimes, seed=5, first_lifetime=first)
    assert (part.first_lifetime, part.num_lifetimes) == (first, lifetimes)
    shared = min(3, first + lifetimes) - first
    for name in COLUMNS:
        np.testing.assert_array_equal(
            part.columns[name][:shared], busy_records.columns[name][first:][:shared], err_msg=name
        )


def test_seed_and_lifetime_both_count(busy_records):
    other = play(mixed_schedule(), toy.busy, lifetimes=3, seed=6)
    drawn = [r.columns["predicted_probability"] for r in (busy_records, other)]
    assert len(np.unique(drawn)) == 2 * drawn[0].size


# The agent contract -------------------------------------------------------------------------------


def learns(schedule):
    """(E,) whether the agent learns from each episode."""
    return np.array([b.learning for b in schedule.blocks])[schedule.episode_blocks()]


def test_init_once_begin_each_episode_learn_while_learning():
    """The memory counts the calls; a prediction shows it."""

    def init(key):
        return {"drawn": rng.uniform(rng.words(key), 0), "begun": 0, "learned": 0}

    def begin(memory, key):
        return {**memory, "begun": memory["begun"] + 1}

    def learn(memory, episodes):
        return {**memory, "learned": memory["learned"] + 1}

    def act(memory, observation, key):
        shown = say(memory["begun"], memory["drawn"], memory["learned"] / 64)
        return 0, shown, memory

    def arrays(key):
        return jax.tree.map(jnp.asarray, init(key))

    schedule = mixed_schedule()
    columns = play(schedule, Agent("counter", act, arrays, begin, learn), lifetimes=70).columns
    episodes = np.arange(schedule.num_episodes)
    learned = np.concatenate([[0], np.cumsum(learns(schedule))[:-1]])
    assert 0 < learned[-1] < episodes[-1]
    np.testing.assert_array_equal(columns["predicted_level"], np.tile(episodes + 1, (70, 1)))
    np.testing.assert_array_equal(64 * columns["threshold"], np.tile(learned, (70, 1)))
    drawn = columns["predicted_probability"]
    assert (drawn == drawn[:, :1]).all()
    assert len(np.unique(drawn)) == 70


def checksum(memory):
    """24 bits that depend on every bit of every leaf, as a float32 that holds them exactly."""
    total = jnp.uint32(0)
    for leaf in jax.tree.leaves(memory):
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            leaf = jax.random.key_data(leaf)
        if leaf.dtype == jnp.float32:
            leaf = jax.lax.bitcast_convert_type(leaf, jnp.uint32)
        for word in leaf.astype(jnp.uint32).ravel():
            total = rng.mix(total ^ word) + jnp.uint32(1)
    return (total >> 8).astype(jnp.float32) * 2.0**-24


def test_a_test_block_leaves_the_memory_bit_for_bit():
    def init(key):
        return {
            "key": key,
            "keys": jax.random.split(key, 2),
            "weights": jax.random.normal(key, (2, 3)),
            "nothing": (),
            "count": jnp.int32(0),
            "flag": jnp.bool_(False),
            "flags": jnp.zeros(3, bool),
        }

    def learn(memory, episodes):
        return {
            "key": jax.random.fold_in(memory["key"], 1),
            "keys": memory["keys"][::-1],
            "weights": memory["weights"] * 1.01,
            "nothing": (),
            "count": memory["count"] + 1,
            "flag": ~memory["flag"],
            "flags": memory["flags"].at[memory["count"] % 3].set(True),
        }

    def act(memory, observation, key):
        return observation["place"] * 0, say(0, checksum(memory)), memory

    schedule = mixed_schedule()
    columns = play(schedule, Agent("keeper", act, init, learn=learn), lifetimes=5).columns
    shown, learning = columns["predicted_probability"], learns(schedule)
    # What is shown during an episode is what the one before it left behind.
    changed = shown[:, 1:] != shown[:, :-1]
    np.testing.assert_array_equal(changed, np.tile(learning[:-1], (5, 1)))


def test_learn_is_given_the_episode_as_the_only_one_of_its_batch():
    def learn(memory, episodes):
        assert [leaf.shape for leaf in jax.tree.leaves(episodes)] == [(1,)] * 4
        return jax.tree.map(lambda leaf: leaf[0], episodes)

    def init(key):
        return Episodes(jnp.zeros(()), jnp.zeros(()), jnp.int32(0), jnp.bool_(False))

    def act(memory, observation, key):
        shown = 10 * memory.length + memory.terminated
        return 2, say(shown, memory.reward, memory.performance), memory

    schedule = toy.schedule(("1.train", [repeat(2), repeat(2, tolerance=0), repeat(2)]))
    columns = play(schedule, Agent("mirror", act, init, learn=learn), lifetimes=1).columns
    # Action 2 is one away from the target: 8 x 3/32, and a tolerance of 0 ends it at once.
    assert columns["reward"].tolist() == [[0.75, 0.75, 0.09375, 0.09375, 0.75, 0.75]]
    assert columns["predicted_level"].tolist() == [[0, 80, 80, 11, 11, 80]]
    assert columns["predicted_probability"].tolist() == [[0, 0.75, 0.75, 0.09375, 0.09375, 0.75]]
    np.testing.assert_array_equal(columns["threshold"], columns["predicted_probability"])


# Several episodes of a lifetime side by side ------------------------------------------------------


@pytest.mark.parametrize(("width", "unconnected"), [(2, 1), (4, 1), (1, 16)])
def test_episodes_side_by_side_are_those_one_after_another(width, unconnected, monkeypatch):
    """Of an agent without memory; blocks of 2 and 3 episodes do not fill every round, and lifetimes
    fill several chunks, so that finished ones leave gaps."""

    def act(memory, observation, key):
        return rng.bits(rng.words(key), 0).astype(jnp.int32) % toy.RING, say(), memory

    agent = Agent("guessing", act)
    options = scanner.MachineOptions(chunk=64, threads=1)
    rounds, alone_or_together = [], []
    for each, most in ((1, 1), (width, unconnected)):
        monkeypatch.setattr(scanner, "MOST_UNCONNECTED", most)
        progress = partial(lambda calls, done, total: calls.append(done), calls := [])
        alone_or_together.append(
            play(
                mixed_schedule(),
                agent,
                lifetimes=100,
                seed=5,
                width=each,
                options=replace(options, segment=1),
                progress=progress,
            )
        )
        rounds.append(len(calls))
    alone, together = alone_or_together
    assert rounds[1] < rounds[0] == mixed_schedule().num_episodes
    for name, column in alone.columns.items():
        np.testing.assert_array_equal(together.columns[name], column)
    assert len(np.unique(alone.columns["reward"])) > 4
    assert together.metadata.get("width", 1) == width and "width" not in alone.metadata


@pytest.mark.parametrize(
    ("agent", "lifetimes", "counts", "expected"),
    [
        (agents.get("pd"), 1, [16], 16),
        (agents.get("pd"), 512, [30, 15], 16),
        (agents.get("pd"), 513, [30, 15], 8),
        (agents.get("pd"), 2048, [100], 4),
        (agents.get("pd"), 8192, [100], 1),
        (agents.get("pd"), 1_000_000, [100], 1),
        (agents.get("pd"), 1, [1, 1, 1], 1),
        (agents.get("pd"), 1, [2], 2),
        (agents.get("pd"), 1, [9], 16),
        (agents.get("pd"), 1, [8], 8),
        (agents.get("pd"), 1, [1, 1, 1, 1, 32], 8),
        (toy.bandit, 1, [16], 1),
        (agents.get("pd+residual"), 1, [16], 1),
        (replace(toy.constant(1), learn=lambda memory, episodes: memory), 1, [16], 1),
    ],
)
def test_few_lifetimes_without_memories_play_many_episodes_at_once(
    agent, lifetimes, counts, expected
):
    """But only as many as fill more than half of the lanes, in all rounds of the blocks."""
    assert scanner.unconnected(agent, lifetimes, counts) == expected


def test_learning_is_from_all_episodes_of_a_round():
    """The agent says how many episodes it has learned from, and of how much reward."""

    def learn(memory, episodes):
        count, total = memory
        reward = jnp.where(episodes.played, episodes.reward, 0).sum()
        return count + episodes.played.sum(), total + reward

    def act(memory, observation, key):
        return 2, say(memory[0], memory[1] / 8), memory

    def init(key):
        return jnp.int32(0), jnp.float32(0)

    schedule = toy.schedule(("1.train", [repeat(5)]), ("1.test", [repeat(2)]))
    agent = Agent("counting", act, init, learn=learn)
    columns = play(schedule, agent, lifetimes=2, width=2).columns
    # 0.75 is the reward of an episode; rounds have 2, 2 and 1, and the test does not teach.
    assert columns["predicted_level"].tolist() == [[0, 0, 2, 2, 4, 5, 5]] * 2
    expected = [[0, 0, 1.5, 1.5, 3, 3.75, 3.75]] * 2
    assert (8 * columns["predicted_probability"]).tolist() == expected


@pytest.mark.parametrize("width", [0, -1, 5000])
def test_widths_that_cannot_be(width):
    with pytest.raises(ValueError, match=f"width is {width}; it must be from 1 to 1024"):
        play(mixed_schedule(), toy.bandit, width=width)


@pytest.mark.requirement(138)
def test_the_last_prediction_of_an_episode_counts():
    def act(memory, observation, key):
        return 2, say(observation["step"], observation["step"] / 16, memory / 16), memory + 1

    def begin(memory, key):
        return jnp.float32(0)

    agent = Agent("narrator", act, lambda key: jnp.float32(99), begin)
    schedule = toy.schedule(("1.train", [repeat(1), repeat(1, tolerance=0), repeat(1)]))
    columns = play(schedule, agent, lifetimes=2).columns
    assert columns["length"].tolist() == [[8, 1, 8]] * 2
    # The last step that an agent acts on is the one before the end.
    assert columns["predicted_level"].tolist() == [[7, 0, 7]] * 2
    assert columns["predicted_probability"].tolist() == [[7 / 16, 0, 7 / 16]] * 2
    assert columns["threshold"].tolist() == [[7 / 16, 0, 7 / 16]] * 2


def test_the_hidden_first_step_is_nobodys():
    """The agent would change its memory, and say so, if it acted before the first observation."""

    def act(memory, observation, key):
        early = observation["step"] < 0
        return 3, say(memory), jnp.where(early, 1000, memory)

    agent = Agent("early bird", act, lambda key: jnp.int32(0))
    columns = play(toy.schedule(("1.train", [repeat(3)])), agent).columns
    assert (columns["predicted_level"] == 0).all()
    assert (columns["length"] == toy.STEPS).all()
    assert (columns["reward"] == 1.0).all()


def test_lanes_that_are_over_wait_unchanged():
    """`play_episode` gives each lane the memory it had when its own episode ended."""
    schedule = toy.schedule(("1.train", [repeat(1, tolerance=0), repeat(1)]))
    ((env, table),) = Tasks.of(schedule).worlds
    params = jax.tree.map(lambda leaf: leaf[jnp.array([0, 1, 1])], table)

    def act(memory, observation, key):
        return 2, say(), {"acted": memory["acted"] + 1, "key": memory["key"]}

    memory = {"acted": jnp.zeros(3, jnp.int32), "key": jax.random.split(jax.random.key(1), 3)}
    words = rng.fold(rng.words(jax.random.key(0)), jnp.arange(3))
    active = jnp.array([True, True, False])
    after, outcome = jax.jit(partial(lockstep.play_episode, Agent("counter", act), env))(
        params, words, active, memory
    )
    assert after["acted"].tolist() == [1, 8, 0]
    assert outcome.length.tolist() == [1, 8, 0]
    assert outcome.terminated[:2].tolist() == [True, False]
    assert (jax.random.key_data(after["key"]) == jax.random.key_data(memory["key"])).all()


def test_a_spoilt_episode_stays_incomplete_while_others_go_on():
    schedule = toy.schedule(("1.train", [repeat(1, spoil=2), repeat(1)]))
    ((env, table),) = Tasks.of(schedule).worlds
    words = rng.fold(rng.words(jax.random.key(0)), jnp.arange(2))
    _, outcome = jax.jit(partial(lockstep.play_episode, toy.constant(3), env))(
        table, words, jnp.ones(2, bool), jnp.zeros(2)
    )
    assert outcome.complete.tolist() == [False, True]
    assert outcome.length.tolist() == [2, 8]


@pytest.mark.parametrize(
    "action",
    [3, np.int32(3), True, jnp.uint8(3), jnp.int32(3)],
    ids=["int", "int32", "bool", "uint8", "array"],
)
def test_actions_of_any_integer_type(action):
    schedule = toy.schedule(("1.train", [repeat(2)]))
    columns = play(schedule, toy.constant(action)).columns
    distance = abs(int(action) - 3)
    assert (columns["reward"] == 8 * (4 - distance) / 32).all()


# An agent that learns, by hand --------------------------------------------------------------------


@pytest.fixture(scope="module")
def bandit_report():
    first, second = repeat(12), repeat(12, target=1)
    schedule = toy.schedule(
        ("1.train", [first]),
        ("1.test", [repeat(5)]),
        ("2.train", [second]),
        ("2.test", [repeat(5), repeat(5, target=1), repeat(5, target=4)]),
    )
    return summarise_records(play(schedule, toy.bandit, lifetimes=4), window=3)


def test_a_learner_gets_better_and_starts_over_after_a_change(bandit_report):
    # Actions 0 to 4 in turn, then the best; target 3, then 1, where the old best one disappoints.
    expected = [
        [1 / 4, 2 / 4, 3 / 4, 1, 3 / 4] + 7 * [1],
        5 * [1],
        [2 / 4, 3 / 4, 1, 3 / 4, 2 / 4, 1 / 4] + 6 * [1],
        5 * [2 / 4],
        5 * [1],
        5 * [1 / 4],
    ]
    values, counts = bandit_report.records.by_block("performance")
    for lifetime in values:
        got = [row[:count].tolist() for row, count in zip(lifetime, counts, strict=True)]
        assert got == expected


NOT = float("nan")

BY_HAND = {
    # Windows of three. Block 0: 1/2, 3/4, 5/6, 11/12, 11/12, 1 from its 6th window, episodes 6-8.
    "saturation_value": [1, 1, 1, 1 / 2, 1, 1 / 4],
    "time_to_saturation": [8, 3, 9, 3, 3, 3],
    # Sum of the ten window means over twelve episodes; of the three over five.
    "normalized_integral": [
        (1 / 2 + 3 / 4 + 5 / 6 + 11 / 12 + 11 / 12 + 5) / 12,
        3 / 5,
        (3 / 4 + 5 / 6 + 3 / 4 + 1 / 2 + 7 / 12 + 3 / 4 + 4) / 12,
        3 / 10,
        3 / 5,
        3 / 20,
    ],
    # Block 2 is back at 0.98 from its 7th window, episodes 7-9; nothing is trained after it.
    "recovery_time": [9, NOT, NOT, NOT, NOT, NOT],
    # Test blocks against the latest training of the same target: none for the last.
    "performance_maintenance_saturation_value": [NOT, 0, NOT, 1 / 2, 0, NOT],
    "performance_maintenance_time_to_saturation": [NOT, 5, NOT, 5, 6, NOT],
}


@pytest.mark.parametrize("name", BY_HAND)
def test_metrics_of_the_learner_by_hand(bandit_report, name):
    summary, expected = bandit_report.blocks[name], np.array(BY_HAND[name])
    for bound in (summary.mean, summary.low, summary.high):
        np.testing.assert_allclose(bound, expected, rtol=1e-6)
    finite = np.isfinite(expected)
    assert (summary.std[finite] == 0).all()
    np.testing.assert_array_equal(summary.count, np.where(finite, 4, 0))
    whole = bandit_report.syllabus[name]
    np.testing.assert_allclose(whole.mean, np.nanmean(expected), rtol=1e-6)


def test_reasons_of_the_learners_missing_metrics(bandit_report):
    recovery = bandit_report.blocks["recovery_time"].missing.tolist()
    test, later = Reason.NOT_A_TEST_BLOCK, Reason.NO_LATER_TRAINING
    train = Reason.NOT_A_TRAINING_BLOCK
    assert recovery == [Reason.NONE, train, later, train, train, train]
    kept = bandit_report.blocks["performance_maintenance_saturation_value"].missing.tolist()
    assert kept == [test, Reason.NONE, test, Reason.NONE, Reason.NONE, Reason.NOT_TRAINED_BEFORE]


# Numbers that are not finite, levels, metadata ----------------------------------------------------


def test_an_episode_with_a_number_that_is_not_finite_is_cut_off_and_marked():
    spoilt = [repeat(1), repeat(1, spoil=3), repeat(1, spoil=0), repeat(1)]
    records = play(toy.schedule(("1.train", spoilt)), toy.constant(3), lifetimes=3)
    columns = records.columns
    assert columns["complete"].tolist() == [[True, False, False, True]] * 3
    assert columns["length"].tolist() == [[8, 3, 0, 8]] * 3
    assert columns["reward"].tolist() == [[1, 3 / 8, 0, 1]] * 3
    assert summarise_records(records, window=1).to_json()["incomplete_episodes"] == 6


def test_lifetimes_can_have_the_randomness_of_others():
    schedule = toy.schedule(("1.train", [repeat(6, wheel=5)]))
    agent = replace(toy.bandit, assign=lambda memory, number: memory)
    usual = play(schedule, agent, lifetimes=5, seed=3).columns
    mixed = play(schedule, agent, lifetimes=4, seed=3, randomness=[4, 0, 4, 1]).columns
    for name, column in mixed.items():
        np.testing.assert_array_equal(column, usual[name][[4, 0, 4, 1]])
    assert (usual["reward"][0] != usual["reward"][4]).any()
    with pytest.raises(ValueError, match="randomness is of 2 lifetimes; lifetimes is 4"):
        play(schedule, agent, lifetimes=4, randomness=[0, 1])
    with pytest.raises(ValueError, match="a number of randomness is -1; it must be from 0"):
        play(schedule, agent, lifetimes=2, randomness=[0, -1])
    with pytest.raises(ValueError, match=r"a number of randomness is 0\.5; it must be a whole"):
        play(schedule, agent, lifetimes=2, randomness=[0.5, 1])


def test_agents_are_assigned_their_lifetimes_whatever_their_randomness():
    schedule = toy.schedule(("1.train", [repeat(2)]))

    def act(memory, observation, key):
        return jnp.int32(0), NoveltyPrediction(memory, jnp.float32(0), jnp.float32(1)), memory

    agent = Agent(
        "counts", act, init=lambda key: jnp.int32(0), assign=lambda memory, n: n.astype(jnp.int32)
    )
    columns = play(schedule, agent, lifetimes=3, first_lifetime=7, randomness=[0, 0, 0]).columns
    assert columns["predicted_level"].tolist() == [[7, 7], [8, 8], [9, 9]]


def test_a_fault_without_a_text_has_its_number():
    schedule = toy.schedule(("1.train", [repeat(2)]))
    fails = replace(toy.constant(0), init=lambda key: jnp.int32(2), fault=lambda memory: memory)
    texts = []
    for faults in ((), ("first", "second")):
        records = play(schedule, replace(fails, faults=faults), lifetimes=1)
        texts.append(records.metadata["faults"][0]["reason"])
    assert texts == ["fault 2", "second"]


def test_true_levels_and_metadata():
    novel = repeat(2, novelty_level=203)
    schedule = toy.schedule(("1.train", [repeat(1), novel]), ("1.test", [repeat(1)]))
    records = play(schedule, toy.constant(0), lifetimes=2, seed=9)
    assert records.novelty_levels.tolist() == [0, 3]
    assert records.first_lifetime == 0
    assert records.schedule == schedule
    assert {name: records.metadata[name] for name in ("agent", "seed", "lifetimes")} == {
        "agent": "always 0",
        "seed": 9,
        "lifetimes": 2,
    }
    assert records.metadata["versions"]["jax"] == jax.__version__


# Progress -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("segment", [1, 5, 17])
def test_progress_rises_to_the_total(segment):
    schedule, calls = mixed_schedule(), []

    def progress(done, total):
        calls.append((done, total))

    options = replace(ONE_THREAD, segment=segment)
    play(schedule, toy.bandit, 3, options=options, progress=progress)
    done, totals = zip(*calls, strict=True)
    assert set(totals) == {3 * schedule.num_episodes}
    assert list(done) == sorted(set(done))
    assert done[0] == 3 * min(segment, schedule.num_episodes)
    assert done[-1] == totals[0]


# Bad arguments ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lifetimes", "width", "parts", "size"),
    [
        (1, 1, 1, 64),
        (1, 3, 1, 64),  # no fewer lifetimes of 3 lanes fill vectors
        (1, 30, 1, 32),
        (1, 64, 1, 8),
        (9, 32, 1, 16),
        (64, 32, 1, 64),
        (130, 32, 1, 256),
    ],
)
def test_no_more_lifetimes_are_made_up_than_fill_vectors(lifetimes, width, parts, size):
    worlds = Tasks.of(toy.schedule(("1.train", [repeat(1)]))).worlds
    crew = Crew(
        toy.busy,
        [world.env for world in worlds],
        [world.params for world in worlds],
        rng.words(jax.random.key(0)),
        range(lifetimes),
        width=width,
        spread=Spread(chunk=64, threads=1),
    )
    assert (len(crew.homes), crew.share) == (parts, size)
    assert size * width % 64 == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"lifetimes": 0}, "lifetimes is 0; it must be from 1 to 1000000"),
        ({"lifetimes": -1}, "lifetimes is -1; it must be from 1"),
        ({"lifetimes": 10**9}, "lifetimes is 1000000000; it must be from 1"),
        ({"first_lifetime": -1}, "first lifetime is -1; it must be from 0 to 999998"),
        ({"first_lifetime": 999_999}, "first lifetime is 999999; it must be from 0 to 999998"),
        ({"seed": -1}, "seed is -1; it must be from 0 to 4294967295"),
        ({"seed": 2**32}, "seed is 4294967296; it must be from 0"),
        ({"options": scanner.MachineOptions(chunk=65)}, "chunk is 65; it must be a multiple of 64"),
        ({"options": scanner.MachineOptions(chunk=0)}, "chunk is 0; it must be a multiple of 64"),
        (
            {"options": scanner.MachineOptions(chunk=-64)},
            "chunk is -64; it must be a multiple of 64",
        ),
        (
            {"options": scanner.MachineOptions(chunk=2**30)},
            "chunk is 1073741824; it must be a multiple",
        ),
        ({"options": scanner.MachineOptions(segment=0)}, "segment is 0; it must be at least 1"),
        ({"options": scanner.MachineOptions(threads=0)}, "threads is 0; it must be from 1 to"),
        ({"options": scanner.MachineOptions(threads=999)}, "threads is 999; it must be from 1 to"),
    ],
    ids=str,
)
def test_bad_arguments(arguments, words):
    schedule = toy.schedule(("1.train", [repeat(1)]))
    with pytest.raises(ValueError, match=words):
        play(schedule, toy.constant(0), **arguments)


def test_the_name_of_an_agent_is_no_agent():
    with pytest.raises(TypeError, match="agent is 'pd'; it must be an Agent"):
        play(toy.schedule(("1.train", [repeat(1)])), "pd", lifetimes=1)


@pytest.mark.parametrize(
    "memory",
    [
        np.zeros(2, np.float32),
        np.zeros((2, 1), np.int32),
        (np.zeros(2, np.int32),),
        {"count": np.zeros(2, np.int32)},
    ],
    ids=["type", "shape", "structure", "names"],
)
def test_memories_of_another_agent(memory):
    schedule = toy.schedule(("1.train", [repeat(1)]))
    agent = replace(toy.constant(0), init=lambda key: jnp.int32(0))
    play(schedule, agent, lifetimes=2, memory=np.zeros(2, np.int32))
    with pytest.raises(ValueError, match=f"memory is of another agent; .* one of {agent.name}"):
        play(schedule, agent, lifetimes=2, memory=memory)


def test_tasks_with_other_observations_or_actions():
    mixed = toy.schedule(("1.train", [repeat(1), repeat(1, task="CartPole")]))
    words = r"'CartPole' has other observations or actions than 'Toy'.*as separate schedules"
    with pytest.raises(ValueError, match=words):
        play(mixed, toy.constant(0))


def two_worlds():
    """The toy by its two rules, in turns, with learning and without."""
    easy, drawn = repeat(2, rules="other"), repeat(3, wheel=5)
    short = repeat(3, wheel=5, tolerance=2, target=1, rules="other")
    return toy.schedule(
        ("1.train", [easy, drawn]),
        ("1.test", [short, easy, repeat(1, wheel=2)]),
        ("2.train", [short, drawn]),
    )


@pytest.fixture(scope="module")
def two_worlds_records():
    return play(two_worlds(), toy.busy, lifetimes=3, seed=5)


def test_several_worlds_equal_a_loop(two_worlds_records):
    tasks = Tasks.of(two_worlds())
    assert (tasks.world.tolist(), tasks.row.tolist()) == ([0, 1, 0, 1], [0, 0, 1, 1])
    assert tasks.dt.tolist() == [0.25, 1.25, 1.25, 0.5]
    columns = two_worlds_records.columns
    assert len(np.unique(columns["reward"])) > 5
    assert_same_columns(columns, loop(two_worlds(), toy.busy, seed=5, lifetimes=3))


@pytest.mark.parametrize(
    "options",
    [
        scanner.MachineOptions(chunk=64, threads=1, segment=1),
        scanner.MachineOptions(chunk=128, threads=1, segment=100),
    ],
)
def test_spreading_a_run_of_several_worlds_changes_nothing(two_worlds_records, options):
    records = play(two_worlds(), toy.busy, 100, seed=5, options=options)
    for name in COLUMNS:
        np.testing.assert_array_equal(
            records.columns[name][:3], two_worlds_records.columns[name], err_msg=name
        )


def test_the_toy_is_gone_outside_its_tests():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            registry, "_SPECS", {k: v for k, v in registry._SPECS.items() if k != "Toy-v0"}
        )
        with toy.registered():
            assert "Toy" in registry.task_names()
        assert "Toy" not in registry.task_names()


# CartPole3D ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.long
def test_levels_with_many_blocks_share_a_schedule_with_others():
    """Blocks on lines, blocks that appear and the nominal level, in one program."""

    def level(number, difficulty):
        values = {"novelty/level": number, "novelty/difficulty": difficulty}
        return repeat(1, task="CartPole3D", **values)

    schedule = toy.schedule(
        (
            "1.train",
            [level(200, "easy"), level(208, "easy"), level(202, "hard"), level(108, "hard")],
        )
    )
    arguments = {"agent": agents.get("pd"), "seed": 1}
    records = play(schedule, lifetimes=64, **arguments)
    more = play(schedule, lifetimes=80, options=scanner.MachineOptions(chunk=64), **arguments)
    for name, column in records.columns.items():
        np.testing.assert_array_equal(more.columns[name][:64], column, err_msg=name)
    performance, _ = records.by_block("performance")
    nominal, flooded, lined, supplied = performance.mean(axis=(0, 2))
    # The original: .905, .681, .776 and .897, with standard deviations of about .25.
    assert flooded < nominal - 0.1 and lined < nominal - 0.02
    assert abs(supplied - 0.897) < 0.1


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ((-1, 0.5, 0.5), "a level of -1; it must be 0 or more"),
        ((1, 7.0, 0.5), "a probability of 7; it must be from 0 to 1"),
        ((1, jnp.nan, 0.5), "a probability of nan; it must be from 0 to 1"),
        ((1, 0.5, -0.5), "a threshold of -0.5; it must be from 0 to 1"),
    ],
)
def test_a_prediction_out_of_its_bounds_is_refused(numbers, words):
    level, *rest = numbers
    prediction = NoveltyPrediction(jnp.int32(level), *map(jnp.float32, rest))
    wrong = Agent("wrong", lambda memory, observation, key: (jnp.int32(0), prediction, memory))
    schedule = toy.schedule(("1.train", [repeat(3)]))
    with pytest.raises(ValueError, match=f"agent wrong predicts {words}"):
        play(schedule, wrong, lifetimes=2)
