"""A run that was left between two segments and gone on with is the run that was not."""

from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from evaluation import scanner
from evaluation.checkpoints import loading, store
from evaluation.records import COLUMNS
from evaluation.scanner import MachineOptions, Snapshot
from jaxsim import rng, training
from jaxsim.agents import Agent
from jaxsim.lanes import crew
from tests.evaluation import toy
from tests.evaluation.checkpoints.test_store import assert_same
from tests.evaluation.toy import repeat

LIFETIMES = 70


@pytest.fixture(autouse=True, scope="module")
def toy_task():
    with toy.registered():
        yield


def schedule():
    """Blocks that no segment divides, two worlds, training and testing."""
    drawn, short = repeat(7, wheel=5), repeat(5, wheel=5, tolerance=2, target=1)
    other = repeat(3, wheel=3, rules="other")
    return toy.schedule(
        ("1.train", [drawn, other]), ("1.test", [short]), ("2.train", [other, drawn])
    )


def hoarding(agent):
    """The same agent with more in its memory: other types, nothing, and what is weakly typed."""

    def init(key):
        odd = {"nothing": (), "empty": jnp.zeros((0, 2)), "half": jnp.bfloat16(0.5), "count": 0}
        return agent.init(key), odd, (jax.random.key_data(key), [jax.random.fold_in(key, 1)])

    def begin(memory, key):
        inner, odd, rest = memory
        return agent.begin(inner, key), {**odd, "count": odd["count"] + 1}, rest

    def act(memory, observation, key):
        action, prediction, inner = agent.act(memory[0], observation, key)
        return (action + memory[1]["count"] // 3) % toy.RING, prediction, (inner, *memory[1:])

    def learn(memory, episodes):
        inner, odd, rest = memory
        half = (odd["half"] + episodes.performance[0]).astype(jnp.bfloat16) % 1
        return agent.learn(inner, episodes), {**odd, "half": half}, rest

    return Agent(f"hoarding {agent.name}", act, init, begin, learn)


AGENT = hoarding(toy.busy)


class Left(Exception):
    """A run was left."""


@dataclass
class Leaver:
    """Takes a snapshot of each segment, and leaves a run after some."""

    after: int | None = None
    start: Snapshot | None = None
    ends: tuple[int, ...] = ()
    taken: list[Snapshot] = field(default_factory=list)
    episodes: list[int] = field(default_factory=list)
    first: Snapshot | None = None

    def begin(self, start):
        self.first = start()
        return self.start

    def between(self, episodes, take):
        self.episodes.append(episodes)
        self.taken.append(take())
        if len(self.taken) == self.after:
            raise Left


def play(keeper=None, width=1, options=None, **arguments):
    options = options or MachineOptions(threads=1, segment=4)
    return scanner.play(
        schedule(),
        AGENT,
        lifetimes=arguments.pop("lifetimes", LIFETIMES),
        seed=5,
        width=width,
        options=options,
        keeper=keeper,
        **arguments,
    )


def assert_same_records(one, other):
    assert set(one.columns) == set(other.columns) >= set(COLUMNS)
    for name, column in one.columns.items():
        assert column.tobytes() == other.columns[name].tobytes(), name


@pytest.fixture(scope="module")
def whole():
    """A run in one go, three episodes side by side, and the snapshots after each segment."""
    keeper = Leaver()
    records = play(keeper, width=3)
    assert len(np.unique(records.columns["reward"])) > 5
    return records, keeper


def test_a_keeper_is_shown_everything_that_was_played(whole):
    records, keeper = whole
    assert keeper.first.rounds == 0
    assert keeper.first.outcome["reward"].shape == (LIFETIMES, 0)
    assert keeper.episodes[-1] == schedule().num_episodes
    assert keeper.taken[-1].outcome["reward"].tobytes() == records.columns["reward"].tobytes()


def leave_and_go_on(width, folder):
    """Through the disk, twice, with other segments and chunks; the records and the last keeper."""
    first = Leaver(after=1)
    with pytest.raises(Left):
        play(first, width)
    second = Leaver(after=1, start=through_disk(first, folder / "first"))
    with pytest.raises(Left):
        play(second, width, MachineOptions(chunk=64, threads=1, segment=3))
    assert second.taken[0].rounds == 7
    third = Leaver(start=through_disk(second, folder / "second"))
    return play(third, width, MachineOptions(threads=1, segment=2)), third


@pytest.mark.long
def test_a_run_is_left_and_gone_on_with(tmp_path):
    records, _ = leave_and_go_on(1, tmp_path)
    assert_same_records(records, play())


@pytest.mark.long
def test_a_run_with_episodes_side_by_side_is_left_and_gone_on_with(whole, tmp_path):
    records, uninterrupted = whole
    again, keeper = leave_and_go_on(3, tmp_path)
    assert_same_records(again, records)
    assert_same(keeper.taken[-1].memory, uninterrupted.taken[-1].memory)


def through_disk(keeper, folder):
    known = {"configuration": {"lifetimes": LIFETIMES}, "versions": {}}
    about = {**known, "episodes": keeper.taken[-1].rounds}
    step = store.save(folder, keeper.taken[-1], about)
    return store.load(step, store.read_manifest(step), keeper.first)


def test_a_run_that_was_over_gives_its_records_again(whole, monkeypatch):
    records, keeper = whole
    monkeypatch.setattr(scanner.Crew, "play", None)  # nothing is left to play
    assert_same_records(play(Leaver(start=keeper.taken[-1]), width=3), records)


def test_segments_end_where_they_are_asked_to():
    keeper = Leaver(ends=(7, 15))
    play(keeper)
    assert keeper.episodes == [4, 7, 11, 15, 19, 23, 25]


def test_lifetimes_start_with_what_they_are_given(whole):
    """Of an agent that has played, in the order of the lifetimes."""
    records, keeper = whole
    taught = Leaver()
    again = play(taught, width=3, memory=keeper.taken[-1].memory)
    assert_same(taught.first.memory, keeper.taken[-1].memory)
    assert not np.array_equal(again.columns["reward"], records.columns["reward"])


class Looker(Leaver):
    """Leaves a run before it begins."""

    def begin(self, start):
        super().begin(start)
        raise Left


def test_lifetimes_of_every_chunk_start_with_what_they_are_given(whole):
    known = whole[1].taken[-1].memory
    looker = Looker()
    with pytest.raises(Left):
        play(looker, memory=known, options=MachineOptions(threads=1, segment=4, chunk=64))
    assert_same(looker.first.memory, known)


def test_what_lifetimes_know_must_be_as_many(whole):
    _, keeper = whole
    with pytest.raises(ValueError, match="memory is of 70 lifetimes; lifetimes is 71"):
        play(memory=keeper.taken[-1].memory, lifetimes=71)


def test_memories_keep_their_types_weak_ones_too():
    memory = jax.vmap(AGENT.init)(jax.random.split(jax.random.key(0), 4))
    known = jax.tree.map(lambda leaf: np.asarray(rng.words_of(leaf))[1:3], memory)
    laid = crew._laid_over(memory, known)
    assert memory[1]["count"].weak_type

    def kind(leaf):
        return leaf.shape, leaf.dtype, getattr(leaf, "weak_type", False)

    assert jax.tree.map(kind, laid) == jax.tree.map(kind, memory)
    expected = jax.tree.map(lambda leaf: leaf[jnp.array([1, 2, 2, 3])], memory)
    bare = [jax.tree.map(lambda leaf: np.asarray(rng.words_of(leaf)), t) for t in (laid, expected)]
    assert_same(*bare)


def test_lifetimes_with_one_memory_differ_in_its_randomness():
    """Of two saved memories: lifetimes 0 and 1 have them as they are."""
    agent = training.get("ppo+reset", training.Settings(hidden=(4,)))
    memories = jax.vmap(agent.init)(jax.random.split(jax.random.key(3), 2))
    known = jax.tree.map(lambda leaf: np.asarray(rng.words_of(leaf)), memories)
    saved = loading.SavedAgent(agent, "ppo+reset", known)
    memory = loading._of_lifetimes(saved, np.arange(1, 6))
    plain = jax.tree.map(lambda leaf: leaf[[1, 0, 1, 0, 1]], known)
    assert_same(replace(memory, key=None), replace(plain, key=None))
    np.testing.assert_array_equal(memory.key[0], known.key[1])
    assert len(np.unique(memory.key, axis=0)) == 5
    np.testing.assert_array_equal(
        loading._of_lifetimes(saved, np.arange(3, 5)).key, memory.key[2:4]
    )
