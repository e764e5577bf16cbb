"""A program of lanes does what a plain loop over lifetimes, rounds, episodes and steps does."""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim import counters, rng
from jaxsim.agents import Agent, NoveltyPrediction
from jaxsim.agents.base import Entry, NoveltyHint
from jaxsim.lanes.crew import Crew, Spread
from jaxsim.lanes.lists import Rounds
from jaxsim.worlds.world import TERMINATED, TRUNCATED

ROOT, WIDTH, MOST = rng.words(jax.random.key(5)), 2, 5
NUMBERS = [7, 3, 11]
WEIGHTS = {0: np.float32([0.6, 1.7]), 1: np.float32([0.3, 0.9, 2.5])}


@dataclass(frozen=True)
class Walk:
    """A place that grows by what is drawn and chosen, until it is beyond a limit."""

    name: str = "walk"
    factor: float = 1.0
    num_actions: int = 3
    max_steps: int = MOST

    def start(self, key, params):
        zero = 0.0 * params["weight"]
        return {"step": jnp.full(key.shape, -1), "place": zero + rng.uniform(rng.words(key), 0)}

    def observe(self, state):
        return self.factor * state["place"]

    @partial(jax.jit, static_argnums=0)
    def step(self, key, state, action, params):
        step = state["step"] + 1
        gain = params["weight"] * rng.uniform(rng.words(key), 1) * (1 + action)
        place = state["place"] + jnp.where(step > 0, gain, 0.001)
        info = {"performance": place / (10 * self.factor), "nonfinite": place < 0}
        reward = self.factor * gain
        after = {"step": step, "place": place}
        return self.observe(after), after, reward, place > 4.0, step >= MOST, info


@jax.jit
def act(memory, observation, key):
    words = rng.words(key)
    action = (3 * rng.uniform(words, 0)).astype(jnp.int32)
    prediction = NoveltyPrediction(
        memory["entry"] % 11, rng.uniform(words, 1) * memory["drawn"], jnp.float32(0.25)
    )
    return action, prediction, memory | {"acts": memory["acts"] + observation}


def learn(memory, episodes):
    """Sums of all that is learned from, of episodes that were played."""
    counted = episodes.played.astype(jnp.float32)
    steps = (jnp.arange(MOST) < episodes.length[:, None]) * counted[:, None]
    acts, places, actions = episodes.trace
    sums = [jnp.sum(counted * number) for number in (episodes.reward, episodes.performance)]
    sums += [jnp.sum(counted * episodes.length), jnp.sum(counted * episodes.terminated)]
    sums += [jnp.sum(steps * number) for number in (acts, places, actions, episodes.rewards)]
    sums += [jnp.sum(counted * number) for number in episodes.final[:2]]
    return memory | {"learnt": memory["learnt"] + jnp.stack(sums)}


AGENT = Agent(
    "diarist",
    act,
    lambda key: {
        "born": rng.uniform(rng.words(key), 0),
        "number": jnp.uint32(0),
        "hint": jnp.int32(-9),
        "entry": jnp.int32(0),
        "drawn": jnp.float32(0),
        "acts": jnp.float32(0),
        "learnt": jnp.zeros(10),
    },
    lambda memory, key: memory | {"drawn": rng.uniform(rng.words(key), 0)},
    learn,
    lambda memory, hint: memory | {"hint": hint.level + 10 * hint.entity + 100 * hint.attribute},
    lambda memory: memory["learnt"][2].astype(jnp.int32),
    trace=lambda memory, observation, action: (memory["acts"], observation, action),
    enter=lambda memory, entry: (
        memory | {"entry": 100 * entry.block + 10 * entry.phase + entry.variant}
    ),
    assign=lambda memory, number: memory | {"number": number},
    fault=lambda memory: memory["hint"] % 7,
    faults=tuple("abcdefg"),
)  # fmt: skip


def lists():
    """Five rounds of each lifetime; the second one ends early."""
    draw = np.random.default_rng(3)
    shape = (5, len(NUMBERS))
    world = draw.integers(0, 2, shape)
    count = np.array([[2, 2, 1], [1, 2, 2], [2, 0, 2], [2, 1, 1], [1, 2, 2]])
    first = np.array([[40, 0, 3], [1, 2, 90], [6, 5, 5], [20, 9, 7], [11, 13, 15]])
    fields = (np.int32(draw.integers(0, 9, shape)) for _ in range(9))
    block, phase, variant, identity, novel, level, entity, attribute, change = fields
    entry = Entry(block, phase, variant, identity, level > 4, level > 2)
    row = np.where(world == 0, draw.integers(0, 2, shape), draw.integers(0, 3, shape))
    return Rounds(
        *map(np.int32, (first, count, world, row)),
        learning=np.array([[1, 0, 1], [1, 1, 0], [0, 1, 1], [1, 1, 1], [1, 0, 0]], bool),
        enters=np.array([[1, 1, 1], [0, 1, 0], [1, 0, 0], [0, 0, 1], [1, 1, 0]], bool),
        entry=entry,
        hint=NoveltyHint(novel, level, entity, attribute, change),
    )


@partial(jax.jit, static_argnums=1)
def step_key(key, counter, number):
    return rng.to_key(rng.fold(key, counter, number))


class Episode(NamedTuple):
    """Results of an episode, and what is learned from its steps."""

    length: int
    ending: int
    reward: float
    performance: float
    prediction: NoveltyPrediction
    traces: list
    rewards: list
    final: tuple


def episode(parent, number, memory, env, weight):
    """Length, ending, reward, performance, prediction, traces and memory of one episode."""
    key = rng.fold(parent, counters.EPISODE, np.uint32(number))
    memory = AGENT.begin(memory, rng.to_key(rng.fold(key, counters.BEGIN)))
    params = {"weight": jnp.float32(weight)}
    state = env.start(rng.to_key(rng.fold(key, counters.RESET)), params)
    _, state, *_ = env.step(
        rng.to_key(rng.fold(key, counters.STEP, np.uint32(0))), state, 0, params
    )
    total, ending, traces, rewards, length = 0.0, 0, [], [], 0
    while not ending:
        length += 1
        observation = env.observe(state)
        key_act = step_key(key, counters.ACT, np.uint32(length))
        action, prediction, after = act(memory, observation, key_act)
        traces.append(AGENT.trace(memory, observation, action))
        memory = after
        key_step = step_key(key, counters.STEP, np.uint32(length))
        _, state, reward, over, late, info = env.step(key_step, state, action, params)
        ending = TERMINATED if over else TRUNCATED if late else 0
        total, rewards = total + float(reward), [*rewards, float(reward)]
    final = AGENT.trace(memory, env.observe(state), 0)
    performance = float(info["performance"])
    result = Episode(length, ending, total, performance, prediction, traces, rewards, final)
    return memory, result


def lifetime(number, rounds, envs):
    """Rows of a lifetime, and the agent's memory after it, by loops."""
    parent = rng.fold(ROOT, np.uint32(number))
    memory = AGENT.assign(
        AGENT.init(rng.to_key(rng.fold(parent, counters.AGENT))), jnp.uint32(number)
    )
    rows = []
    for r in range(5):
        here = jax.tree.map(lambda leaf, r=r: leaf[r], rounds)
        if not here.count:
            break
        memory = AGENT.tell(memory, here.hint)
        if here.enters:
            memory = AGENT.enter(memory, here.entry)
        fault, world = int(AGENT.fault(memory)), int(here.world)
        weight = WEIGHTS[world][here.row]
        results = [
            episode(parent, here.episode + beside, memory, envs[world], weight)
            for beside in range(here.count)
        ]
        memory = results[0][0]
        if here.learning:
            sums = np.zeros(10)
            for _, one in results:
                sums[:4] += (
                    one.reward,
                    one.performance,
                    one.length,
                    one.ending == TERMINATED,
                )
                sums[4:7] += np.sum(one.traces, axis=0)
                sums[7] += sum(one.rewards)
                sums[8:] += one.final[:2]
            memory = memory | {"learnt": memory["learnt"] + sums}
        rows.append((fault, int(memory["learnt"][2]), [one for _, one in results]))
    return rows, memory


@pytest.fixture(scope="module")
def outcome():
    envs = [Walk(), Walk("other walk", 2.5)]
    tables = [{"weight": WEIGHTS[world]} for world in (0, 1)]
    crew = Crew(
        AGENT, envs, tables, ROOT, NUMBERS, width=WIDTH, names=True, spread=Spread(threads=1)
    )
    rows = crew.play(lists())
    return envs, rows, crew.memory()


def test_rows_and_memories_are_those_of_plain_loops(outcome):
    envs, rows, memories = outcome
    lengths, endings = set(), set()
    for p, number in enumerate(NUMBERS):
        expected, memory = lifetime(
            number, jax.tree.map(lambda leaf, p=p: leaf[:, p], lists()), envs
        )
        assert len(expected) == (2 if p == 1 else 5)
        for name, value in memory.items():
            ours = jax.tree.map(lambda leaf, p=p: leaf[p], memories)[name]
            np.testing.assert_allclose(ours, value, rtol=1e-4, atol=1e-4, err_msg=name)
        for r, (fault, named, episodes) in enumerate(expected):
            assert rows.fault[r, p].tolist() == [fault] * WIDTH
            assert rows.named[r, p].tolist() == [named] * WIDTH
            for w, one in enumerate(episodes):
                place = r, p, w
                assert (rows.length[place], rows.ending[place]) == (one.length, one.ending)
                numbers = rows.reward[place], rows.performance[place]
                np.testing.assert_allclose(numbers, (one.reward, one.performance), rtol=1e-4)
                for name in ("level", "probability", "threshold"):
                    ours = getattr(rows.prediction, name)[place]
                    np.testing.assert_allclose(ours, getattr(one.prediction, name), rtol=1e-5)
                lengths.add(one.length)
                endings.add(one.ending)
            for w in range(len(episodes), WIDTH):
                assert rows.length[r, p, w] == rows.reward[r, p, w] == 0
                for name, value in vars(NoveltyPrediction.none()).items():
                    assert getattr(rows.prediction, name)[r, p, w] == value
        assert not rows.length[len(expected) :, p].any()
    assert len(lengths) >= 4 and endings == {TERMINATED, TRUNCATED}


def test_independent_rounds_begin_with_memories_of_their_own():
    """By the number of their episode, of no lifetime; in chunks of lanes too."""
    lanes = 160
    agent = Agent(
        "born",
        lambda memory, observation, key: (0, NoveltyPrediction(0, memory, 0.0), memory),
        lambda key: rng.uniform(rng.words(key), 0),
    )
    one, numbers = np.ones((2, lanes), np.int32), np.arange(2 * lanes, dtype=np.int32)
    numbers = np.random.default_rng(0).permutation(numbers).reshape(2, lanes)
    table, spread = [{"weight": WEIGHTS[0]}], Spread(chunk=64, threads=1)
    numbered = np.arange(lanes)
    crew = Crew(
        agent, [Walk()], table, ROOT, numbered, width=WIDTH, independent=True, spread=spread
    )
    rows = crew.play(Rounds(numbers, one, 0 * one, 0 * one))
    assert crew.sizes.chunk < lanes
    born = rng.uniform(rng.fold(ROOT, numbers.astype(np.uint32), counters.INIT), 0)
    np.testing.assert_allclose(rows.prediction.probability[..., 0], born, rtol=1e-6)
    np.testing.assert_allclose(crew.memory(), born[1], rtol=1e-6)
