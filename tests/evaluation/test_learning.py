"""Agents that learn from the steps of their episodes, in both engines."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from evaluation import scanner, session
from evaluation.records import COLUMNS
from evaluation.schedule import Block, Schedule
from jaxsim import agents, rng, training
from jaxsim.agents import Agent
from jaxsim.lanes.minds import Minds
from jaxsim.training import Settings, features
from tests.compiling import counted
from tests.evaluation import toy
from tests.evaluation.toy import repeat, say

SMALL = Settings(hidden=(16,), updates=4, samples=64, learning_rate=0.03)


@pytest.fixture(autouse=True, scope="module")
def toy_task():
    with toy.registered():
        yield


def play(schedule, agent, lifetimes=2, **arguments):
    arguments.setdefault("options", scanner.MachineOptions(threads=1))
    return scanner.play(schedule, agent, lifetimes=lifetimes, **arguments)


def schedule_of_blocks():
    """Phases of several blocks, blocks of early ends, and the same variant again."""
    easy, drawn = repeat(2), repeat(3, wheel=5)
    short = repeat(3, wheel=5, tolerance=2, target=1)
    return toy.schedule(
        ("1.train", [easy, drawn]),
        ("1.test", [short, easy]),
        ("2.train", [short, drawn]),
    )


# The contract -------------------------------------------------------------------------------------


def digest(leaf):
    """A number that depends on every number and its place, the same in any order of summing."""
    flat = jnp.ravel(leaf).astype(jnp.uint32)
    places = jnp.arange(flat.size, dtype=jnp.uint32)
    return jnp.sum(rng.mix(flat * jnp.uint32(31) + places))


def tracing_agent():
    """Guesses; says what it has been given to learn from, entered and been assigned."""

    def init(key):
        return {"taught": jnp.uint32(0), "told": jnp.uint32(0), "number": jnp.uint32(99)}

    def act(memory, observation, key):
        shown = (memory["taught"] ^ memory["told"]) >> 8
        guess = rng.bits(rng.words(key), 0).astype(jnp.int32) % toy.RING
        return guess, say(memory["number"], shown.astype(jnp.float32) * 2.0**-24), memory

    def trace(memory, observation, action):
        return {"place": observation["place"], "pair": jnp.stack([observation["step"], action])}

    def learn(memory, episodes):
        mask = jnp.arange(toy.STEPS) < episodes.length[:, None]
        if episodes.played is not None:
            mask &= episodes.played[:, None]
        kept = [
            jnp.where(mask, episodes.trace["place"], 0),
            jnp.where(mask[..., None], episodes.trace["pair"], 0),
            jnp.where(mask, episodes.rewards * 32, 0),
            jnp.where(mask[:, 0], episodes.final["place"], 0),
            jnp.where(mask[:, 0], episodes.final["pair"][:, 0], 0),
        ]
        taught = memory["taught"]
        for leaf in kept:
            taught = rng.mix(taught ^ digest(leaf))
        return {**memory, "taught": taught}

    def enter(memory, entry):
        values = (entry.block, entry.phase, entry.variant, entry.learning, entry.new_phase)
        return {**memory, "told": rng.mix(memory["told"] ^ digest(jnp.stack(values)))}

    def assign(memory, number):
        return {**memory, "number": number}

    return Agent("tracing", act, init, learn=learn, trace=trace, enter=enter, assign=assign)


def test_both_engines_give_an_agent_the_same_steps_blocks_and_number():
    schedule, agent = schedule_of_blocks(), tracing_agent()
    records = play(schedule, agent, lifetimes=3, seed=4)
    shown = records.columns["predicted_probability"]
    # Ten of sixteen episodes teach, and six blocks are entered: as many values are shown.
    assert len(np.unique(shown[0])) > 10
    assert records.columns["predicted_level"].tolist() == [[i] * 16 for i in range(3)]
    for lifetime in (0, 2):
        check_a_session(schedule, agent, records, lifetime)


def check_a_session(schedule, agent, records, lifetime):
    """A session with seed 4 has the records of the scanner."""
    player = session.PurePlayer(agent, seed=4, lifetime=lifetime)
    alone = session.play(schedule, player, seed=4, lifetime=lifetime)
    for name in COLUMNS:
        np.testing.assert_array_equal(
            alone.columns[name][0], records.columns[name][lifetime], err_msg=name
        )


def test_an_episode_that_its_hidden_first_step_ends_teaches_the_same_in_both_engines():
    schedule, agent = toy.schedule(("1.train", [repeat(1, spoil=0), repeat(2)])), tracing_agent()
    records = play(schedule, agent, seed=4)
    assert records.columns["length"][:, 0].tolist() == [0, 0]
    assert not records.columns["complete"][:, 0].any()
    check_a_session(schedule, agent, records, lifetime=1)


def test_steps_are_rows_of_observation_action_and_reward():
    """By hand: place 0, action 2, target 3; an episode that ends early keeps one step."""

    def init(key):
        shape = (2, toy.STEPS)
        none = jnp.full(shape, -1, jnp.int32)
        return {"trace": (none, none), "rewards": jnp.zeros(shape), "final": (none[:, 0],) * 2}

    def learn(memory, episodes):
        given = {"trace": episodes.trace, "rewards": episodes.rewards, "final": episodes.final}
        assert jax.tree.map(jnp.shape, given) == jax.tree.map(jnp.shape, memory)
        right = (
            (episodes.trace[0][0] == jnp.arange(8)).all()
            & (episodes.trace[1] == 2)[0].all()
            & (episodes.rewards[0] == 3 / 32).all()
            & (episodes.final[0][0] == episodes.length[0])
            & (episodes.final[1][0] == 0)
        )
        seven = jnp.where(right, 7, 5)
        return jax.tree.map(lambda leaf: jnp.full_like(leaf, seven.astype(leaf.dtype)), given)

    def act(memory, observation, key):
        return jnp.int32(2), say(memory["final"][0][0] + 1), memory

    def trace(memory, observation, action):
        return observation["step"], action

    agent = Agent("reader", act, init, learn=learn, trace=trace)
    columns = play(toy.schedule(("1.train", [repeat(4)])), agent, width=2).columns
    assert columns["predicted_level"].tolist() == [[0, 0, 8, 8]] * 2


def test_what_an_episode_only_reads_is_not_copied():
    agent = training.get("ppo", SMALL)
    env, params = jaxsim.make("CartPole3D-v0")
    key = jax.eval_shape(lambda: jax.random.key(0))
    observation = jax.eval_shape(lambda k: env.observe(env.start(k, params)), key)
    memory = jax.eval_shape(agent.init, key)
    shared, local = Minds.of(agent, memory, observation, 3).split(memory)
    # All but what is remembered of the episode in play.
    assert len(local) == len(jax.tree.leaves(memory.watch))
    # Some numbers beside thousands of weights.
    assert sum(leaf.size for leaf in local) < 0.05 * sum(leaf.size for leaf in shared)


def cost(agent, schedule, lifetimes=64, width=1):
    """Flops and bytes of a program that plays 16 rounds."""
    run = scanner._ScannerRun(schedule, agent, range(lifetimes), seed=0, width=width)
    crew, stretches = run.crew(scanner.MachineOptions(threads=1)), run.stretches(16, 0, ())
    program, batch = jax.jit(crew.program(16)), crew.batch(stretches[0].rounds, 0)
    analysis = counted(program, batch).cost_analysis()
    return analysis["flops"], analysis["bytes accessed"]


def test_an_agent_pays_for_a_trace_only_while_it_learns():
    """Elsewhere its program is that of an agent without one, and as small as it was."""
    tracing = replace(
        toy.busy,
        trace=lambda memory, observation, action: observation["place"],
        learn=lambda memory, episodes: {**memory, "trial": episodes.trace.sum()},
    )
    taught = schedule_of_blocks()
    tested = replace(taught, blocks=tuple(replace(b, learning=False) for b in taught.blocks))
    plain = cost(toy.busy, tested)
    assert cost(tracing, tested) == plain
    assert plain[0] <= 1.01 * 242_641 and plain[1] <= 1.01 * 563_026


def test_a_fault_ends_a_lifetime_in_the_records_and_no_other():
    """From the third learned episode on, of lifetime 1 only."""

    def init(key):
        return {"number": jnp.uint32(0), "learned": jnp.int32(0)}

    def learn(memory, episodes):
        return {**memory, "learned": memory["learned"] + 1}

    def fault(memory):
        return jnp.where((memory["number"] == 1) & (memory["learned"] >= 3), 2, 0)

    agent = Agent(
        "frail",
        lambda memory, observation, key: (2, say(), memory),
        init,
        learn=learn,
        assign=lambda memory, number: {**memory, "number": number},
        fault=fault,
        faults=("it is tired", "it fell ill"),
    )
    schedule = schedule_of_blocks()
    records = play(schedule, agent, lifetimes=3)
    episodes = np.arange(16)
    expected = np.array([episodes < 16, episodes < 3, episodes < 16])
    np.testing.assert_array_equal(records.columns["complete"], expected)
    assert records.metadata["faults"] == [{"lifetime": 1, "episode": 3, "reason": "it fell ill"}]
    alone = session.play(schedule, session.PurePlayer(agent, lifetime=1), lifetime=1)
    np.testing.assert_array_equal(alone.columns["complete"], expected[1:2])
    assert "faults" not in play(schedule, agent, lifetimes=1).metadata
    # Lifetimes have the numbers of the longer run.
    (broken,) = play(schedule, agent, lifetimes=3, first_lifetime=1).metadata["faults"]
    assert broken["lifetime"] == 1


# Learners -----------------------------------------------------------------------------------------


def toy_learner(name="ppo", settings=SMALL):
    return training.get(name, settings, features.flat(*jaxsim.make("Toy-v0")))


def learning_schedule(rounds=16):
    drawn = repeat(8 * rounds, wheel=5)
    return toy.schedule(("1.train", [drawn]), ("1.test", [repeat(16, wheel=5)]))


@pytest.fixture(scope="module")
def learned():
    return play(learning_schedule(), toy_learner(), lifetimes=70, width=8, seed=2)


SWEEP = replace(
    SMALL,
    learning_rate=(0.03, 0.0, 0.03, 0.03),
    clip=(0.2, 0.1, 0.2, 0.2),
    reward_weight=(0.0, 0.0, 3e38, 1.0),
    survival_reward=(1.0, 1.0, 1.0, 0.0),
    discount=(0.98, 0.98, 0.98, 0.0),
)
"""Lifetimes in turn: as `SMALL`, without learning, paid beyond all bounds, paid by the task."""


@pytest.fixture(scope="module")
def swept():
    return play(learning_schedule(40), toy_learner(settings=SWEEP), 64, width=8, seed=2)


def assert_every_fourth(swept, learned):
    """As far as both train, in parts of 64 and of 128 lifetimes."""
    for name in COLUMNS:
        ours, theirs = (r.columns[name][:64:4, : 8 * 16] for r in (swept, learned))
        np.testing.assert_array_equal(ours, theirs, err_msg=name)


@pytest.mark.slow
def test_ppo_learns_where_to_land(swept):
    """The best action depends on the place; chance earns .65 and the best plan 1."""
    performance, _ = swept.by_block("performance")
    # Chance and a little; and nearly all of what can be earned.
    assert performance[3::4, 0, :8].mean() < 0.68
    assert performance[3::4, 1, :16].mean() > 0.9


@pytest.mark.slow
def test_learning_does_not_depend_on_how_a_run_is_spread(learned):
    """Products of matrices round the same in any company; see also `assert_every_fourth`."""
    options = scanner.MachineOptions(threads=1, segment=3)
    other = play(learning_schedule(), toy_learner(), 3, width=8, seed=2, options=options)
    for name in COLUMNS:
        np.testing.assert_array_equal(other.columns[name], learned.columns[name][:3], err_msg=name)


def test_a_step_that_is_kept_evaluates_the_network_once():
    """Acting and keeping share it; one evaluation more is that of an episode's last observation."""
    env, params = jaxsim.make("Toy-v0")
    agent = training.get("ppo", Settings(hidden=(64, 64)), features.flat(env, params))
    # Learning costs nothing, so that what is left is to act and to keep.
    agent = replace(agent, learn=lambda memory, episodes: memory)
    schedule, lifetimes, width = learning_schedule(16), 8, 64
    kept = cost(agent, schedule, lifetimes, width)[0]
    alone = cost(replace(agent, trace=None), schedule, lifetimes, width)[0]
    # One evaluation of the network is about 9,300 flops a lane: that of the last observation.
    assert kept - alone <= 1.2 * 9_300 * lifetimes * width


def words(leaf):
    """All bits of an array, as uint32 in a row."""
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    if leaf.dtype == jnp.float32:
        leaf = jax.lax.bitcast_convert_type(leaf, jnp.uint32)
    return jnp.ravel(leaf).astype(jnp.uint32)


def shown_memory(agent):
    """The agent, but that it says a checksum of its memory beside the episode in play."""

    def act(memory, observation, key):
        action, _, new = agent.act(memory, observation, key)
        kept = jax.tree.leaves(replace(memory, watch=(), learning=()))
        # One digest of all leaves together: one of each takes far longer to compile.
        total = digest(jnp.concatenate([words(leaf) for leaf in kept]))
        return action, say(0, (total >> 8).astype(jnp.float32) * 2.0**-24), new

    return replace(agent, act=act)


def shown_by(name):
    """What a learner says of its memory: 2 lifetimes, two rounds of 4 episodes a training block."""
    first, other = repeat(8, wheel=5), repeat(8, wheel=5, target=1)
    schedule = toy.schedule(
        ("1.train", [first]),
        ("1.test", [repeat(6, wheel=5), repeat(6)]),
        ("2.train", [other]),
        ("3.train", [first]),
    )
    # Compared within one program: what it does not touch it does not round.
    records = play(schedule, shown_memory(toy_learner(name)), lifetimes=2, width=4)
    return records.columns["predicted_probability"]


@pytest.fixture(scope="module")
def shown():
    return {name: shown_by(name) for name in ("ppo", "ppo+replay", "ste")}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ppo", "ppo+replay"])
def test_a_test_block_leaves_a_learner_bit_for_bit(shown, name):
    """Parameters, optimiser, statistics, all of it; while learning every round changes it."""
    checksums = shown[name]
    # Rehearsal takes a phase in as the next begins, which is before its first episode.
    assert (checksums[:, 8:20] == checksums[:, 8:9]).all()
    rounds = checksums[:, [0, 4, 8, 24]]
    assert all(len(np.unique(row)) == 4 for row in rounds)
    assert (checksums[:, 20:24] == checksums[:, 20:21]).all()


@pytest.mark.slow
def test_variants_do_what_their_names_say(shown):
    """A learner that starts afresh plays like one just born; an expert learns one thing only."""
    plain, expert = shown["ppo"][0], shown["ste"][0]
    assert (plain[:8:4] != expert[:8:4]).all()
    assert len(np.unique(plain)) == 6
    # Of the second training block nothing is learned, of the third something.
    assert (expert[8:32] == expert[8]).all() and expert[32] != expert[8]


@pytest.mark.slow
def test_a_number_that_is_not_finite_ends_its_lifetime_and_no_other(learned, swept):
    """Every fourth lifetime is paid beyond all bounds."""
    complete = swept.columns["complete"]
    broken = np.arange(64) % 4 == 2
    assert complete[~broken].all()
    assert complete[broken, :8].all() and not complete[broken, 8:].any()
    assert len(swept.metadata["faults"]) == 16
    assert swept.metadata["faults"][0] == {
        "lifetime": 2,
        "episode": 8,
        "reason": "the loss is not a finite number",
    }
    assert_every_fourth(swept, learned)
    # A frozen memory still plays.
    assert (swept.columns["length"][broken] > 0).all()


@pytest.mark.slow
def test_a_sweep_is_one_program_of_lifetimes_like_those_alone(learned, swept):
    assert_every_fourth(swept, learned)
    idle, taught = (r.columns["reward"][1:64:4, : 8 * 16] for r in (swept, learned))
    assert (idle != taught).any()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "ppo",
        *(pytest.param(n, marks=pytest.mark.long) for n in training.LEARNERS if n != "ppo"),
    ],
)
def test_both_engines_play_a_learner(name):
    """Products round otherwise alone than in a batch, but choices are the same."""
    schedule = toy.schedule(
        ("1.train", [repeat(3, wheel=5)]),
        ("1.test", [repeat(2, wheel=5)]),
        ("2.train", [repeat(3, wheel=5, target=1)]),
        ("2.test", [repeat(2, wheel=5)]),
    )
    agent = toy_learner(name)
    records = play(schedule, agent, lifetimes=1, seed=1)
    alone = session.play(schedule, session.PurePlayer(agent, seed=1), seed=1)
    for column in ("reward", "length", "complete"):
        np.testing.assert_array_equal(alone.columns[column], records.columns[column])


def test_detectors_join_learners():
    agent = agents.get("ppo+ewc+residual")
    assert agent.name == "ppo+ewc+residual" and agent.trace and agent.faults
    assert agents.get("pd+residual").trace is None
    for name in agents.LEARNERS:
        assert agents.get(name).name == name
    assert set(agents.LEARNERS) == set(training.LEARNERS)
    with pytest.raises(ValueError, match="'ewcc'"):
        agents.get("ppo+ewcc")


NOTICING = Settings(hidden=(16,), updates=1, samples=64, learning_rate=1e-4)
"""A learner that hardly gets better at its task."""


def level(number):
    return (("novelty/difficulty", "hard"), ("novelty/level", number))


@pytest.fixture(scope="module")
def noticed():
    """Of a learner on level 200 and, without learning, on it and on novel levels."""
    tests = [
        Block(index, 1, "test", "CartPole3D", level(number), 16, False)
        for index, number in enumerate((200, 101, 106, 201), 1)
    ]
    schedule = Schedule("s", (Block(0, 1, "train", "CartPole3D", level(200), 480, True), *tests))
    return schedule, play(schedule, training.get("ppo", NOTICING), lifetimes=4, width=32)


@pytest.mark.long
def test_a_learner_notices_what_is_novel_and_calls_nothing_else_so(noticed):
    columns = noticed[1].columns
    alarms = columns["predicted_probability"] >= columns["threshold"]
    assert (columns["threshold"] < 1).all()
    # A rate of one in a thousand leaves one in twelve to be called among 544 of four lifetimes.
    assert alarms[:, :496].sum() <= 4
    assert alarms[:, 496:].mean() > 0.95
    # Before it knows what is usual it says nothing.
    assert (columns["predicted_probability"][:, :200] == 0).all()


@pytest.mark.slow
@pytest.mark.long
def test_what_is_noticed_does_not_depend_on_how_a_run_is_spread(noticed):
    """The last lifetimes alone, in the places of the first, and in other stretches."""
    schedule, whole = noticed
    agent, options = training.get("ppo", NOTICING), scanner.MachineOptions(threads=1, segment=7)
    again = play(schedule, agent, lifetimes=2, first_lifetime=2, width=32, options=options)
    for name in ("predicted_probability", "performance"):
        np.testing.assert_array_equal(again.columns[name], whole.columns[name][2:])
