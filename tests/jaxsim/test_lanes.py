"""Parts of the engine of lanes, each by itself, against the same on plain leaves."""

from dataclasses import dataclass, field, fields
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim import backend, counters, rng
from jaxsim.agents import Agent, NoveltyPrediction
from jaxsim.lanes import banks, state, work
from jaxsim.lanes.crew import Crew, Spread
from jaxsim.lanes.lists import Rounds
from jaxsim.lanes.minds import Minds
from jaxsim.lanes.worlds import Worlds

LANES = 12
KEY = jax.random.key(3)


def leaves(lanes=LANES, seed=0):
    """A tree with every kind of leaf that lanes have."""
    random = np.random.default_rng(seed)
    return {
        "number": jnp.float32(random.normal(size=lanes)),
        "vector": jnp.float32(random.normal(size=(lanes, 3))),
        "matrix": jnp.float32(random.normal(size=(lanes, 2, 2))),
        "count": jnp.int32(random.integers(-9, 9, lanes)),
        "flags": jnp.asarray(random.random((lanes, 2)) < 0.5),
        "word": jnp.asarray(random.integers(0, 2**32, lanes), jnp.uint32),
        "half": jnp.asarray(random.normal(size=lanes), jnp.bfloat16),
        "key": jax.random.split(jax.random.key(seed), lanes),
        "large": jnp.float32(random.normal(size=(lanes, banks.MOST_ROWS + 1))),
        "larger": jnp.int32(random.integers(0, 9, (lanes, 5, 9))),
    }


MOVES = [True, False] * 5


def words(leaf):
    return np.asarray(rng.words_of(leaf))


def assert_same(one, other):
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(words(a), words(b))


# Banks --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("moves", [MOVES, [not m for m in MOVES], None])
def test_banks_hold_every_leaf(moves):
    tree = leaves()
    layout = banks.Banks.of(tree, moves)
    banked = layout.banked(tree)
    assert_same(layout.tree(banked), tree)
    still, moving = (len(kind.large) for kind in banked)
    assert (still, moving) == ((1, 1) if moves else (0, 2))
    # One bank for integers, truth values and words, and one for each type of numbers.
    for kind in banked:
        assert set(kind.banks) <= {"float32", "int32", "bfloat16"}


def test_lanes_in_banks_move_as_their_leaves_do():
    tree, other = leaves(), leaves(seed=1)
    layout = banks.Banks.of(tree, MOVES)
    banked = layout.banked(tree)
    index = jnp.array([7, 0, LANES + 3])
    chosen = banks.gather(banked, index)
    assert_same(layout.tree(chosen), jax.tree.map(lambda leaf: leaf[jnp.array([7, 0, 11])], tree))
    part = layout.banked(jax.tree.map(lambda leaf: leaf[:3], other))
    # An index past the end drops.
    expected = jax.tree.map(lambda leaf, new: leaf.at[jnp.array([7, 0])].set(new[:2]), tree, other)
    assert_same(layout.tree(banks.scatter(banked, part, index)), expected)
    assert_same(layout.tree(banks.cut(banked, 4, 3)), jax.tree.map(lambda leaf: leaf[4:7], tree))
    expected = jax.tree.map(lambda leaf, new: leaf.at[5:8].set(new[:3]), tree, other)
    assert_same(layout.tree(banks.pasted(banked, part, 5)), expected)


# State --------------------------------------------------------------------------------------------


def test_lanes_are_selected_leaf_by_leaf():
    tree, other = leaves(), leaves(seed=1)
    mask = jnp.arange(LANES) % 3 == 0
    selected = state.where(mask, tree, other)
    for name, leaf in selected.items():
        assert leaf.dtype == other[name].dtype
        expected = np.where(
            np.asarray(mask).reshape(-1, *(1,) * (words(leaf).ndim - 1)),
            words(tree[name]),
            words(other[name]),
        )
        np.testing.assert_array_equal(words(leaf), expected, err_msg=name)
    # A number of another type takes that of the leaf that it replaces.
    assert state.where(mask, jnp.ones(LANES), jnp.zeros(LANES, jnp.int32)).dtype == jnp.int32
    same = state.where(mask, other, other)
    assert all(a is b for a, b in zip(jax.tree.leaves(same), jax.tree.leaves(other), strict=True))


def test_lanes_are_taken_by_index():
    tree = leaves()
    taken = state.gather_lanes(tree, jnp.array([3, LANES + 5]))
    assert_same(taken, jax.tree.map(lambda leaf: leaf[jnp.array([3, LANES - 1])], tree))


def test_an_index_past_the_end_takes_the_last_lane_of_banks():
    tree = leaves()
    layout = banks.Banks.of(tree, MOVES)
    taken = layout.tree(banks.gather(layout.banked(tree), jnp.array([3, LANES + 5])))
    assert_same(taken, jax.tree.map(lambda leaf: leaf[jnp.array([3, LANES - 1])], tree))


# Minds --------------------------------------------------------------------------------------------


def reading(width):
    """An agent that reads one leaf and changes the others."""

    def begin(memory, key):
        return memory | {"drawn": rng.uniform(rng.words(key), 0)}

    def act(memory, observation, key):
        total = memory["total"] + memory["weight"][0] * observation
        drawn = rng.uniform(rng.words(key), 1)
        return (
            jnp.int32(observation),
            NoveltyPrediction.none(),
            memory
            | {
                "total": total,
                "drawn": drawn,
            },
        )

    def init(key):
        return {
            "drawn": jnp.float32(0),
            "total": jnp.float32(0),
            "weight": jax.random.normal(key, (40,)),
        }

    def trace(memory, observation, action):
        return memory["total"] + 1000 * observation + action

    agent = Agent("reading", act, init, begin, trace=trace)
    one, number = jax.eval_shape(init, KEY), jax.ShapeDtypeStruct((), jnp.float32)
    return agent, Minds.of(agent, one, number, width)


@pytest.mark.parametrize("width", [1, 3])
def test_minds_of_lanes_are_those_of_single_agents(width):
    """Begin, act and trace, where neighbours share what they only read."""
    agent, minds = reading(width)
    lives, lanes = 4, 4 * width
    memory = jax.vmap(agent.init)(jax.random.split(KEY, lives))
    shared, local = minds.split(memory)
    assert minds.shared == (False, False, True)
    assert_same(minds.joined(shared, local), memory)
    keys = jax.random.split(jax.random.key(9), lanes)
    observation = jnp.arange(1.0, lanes + 1)
    local = minds.begin(shared, minds.spread(local), keys)
    traces = minds.trace(shared, local, observation, jnp.arange(lanes))
    action, _, after = minds.act(shared, local, observation, keys)
    for lane in range(lanes):
        one = jax.tree.map(lambda leaf, lane=lane: leaf[lane // width], memory)
        one = agent.begin(one, keys[lane])
        np.testing.assert_allclose(
            traces[lane], agent.trace(one, observation[lane], lane), rtol=1e-6
        )
        expected, _, one = agent.act(one, observation[lane], keys[lane])
        assert int(action[lane]) == int(expected)
        for leaf, name in zip(after, ("drawn", "total"), strict=True):
            np.testing.assert_allclose(leaf[lane], one[name], rtol=1e-6)
    for leaf, first in zip(after, minds.first(after), strict=True):
        np.testing.assert_array_equal(first, leaf[::width])


# Worlds -------------------------------------------------------------------------------------------


def test_parameters_of_lanes_are_those_of_their_rows():
    env, params = jaxsim.make("CartPole-v1")
    names = [f.name for f in fields(params)]
    values = {name: np.float32(place + 1) for place, name in enumerate(names)}
    values[names[1]] = np.float32([5, 6, 7])
    values[names[3]] = np.float32([8, 9, 10])
    worlds = Worlds([work.work_of(env)], [type(params)(**values)])
    rows = jnp.array([2, 0, 1, 9])
    (varying,) = worlds.varying(rows)
    assert len(varying) == 2
    for name, leaf in vars(worlds.params(0, varying)).items():
        expected = values[name]
        expected = expected if expected.ndim == 0 else expected[[2, 0, 1, 2]]
        np.testing.assert_array_equal(leaf, expected, err_msg=name)


def test_rewards_of_steps_are_those_of_the_lane_of_their_environment():
    (classic, _), (flat, _) = (jaxsim.make(name) for name in ("CartPole-v1", "CartPole2D-v0"))
    worlds = Worlds([classic, flat], [])
    number, world = jnp.array([4, 4, 9]), jnp.array([0, 1, 1])
    # 1 for each step of the one; the other pays its share of 200 steps, which grows.
    np.testing.assert_allclose(worlds.step_rewards(world, number), [1, 4 / 200, 9 / 200])
    totals = worlds.totals(world, number)
    np.testing.assert_allclose(totals[0], [4, 10 / 200, 45 / 200], rtol=1e-6)
    np.testing.assert_allclose(totals[1], [4 / 500, 4 / 200, 9 / 200], rtol=1e-6)


def test_an_environment_is_work_by_itself_where_it_can_be():
    env, _ = jaxsim.make("CartPole-v1")
    assert work.work_of(env) is env and work.is_scored(env)


# Crews --------------------------------------------------------------------------------------------


def test_threads_are_as_many_as_asked_for():
    usual = backend.cores() if backend.on_cpu() else len(jax.local_devices())
    for threads, number in ((None, usual), (1, 1), (3, 3), (5, 5)):
        spread = Spread(threads=threads)
        assert spread.number == number and len(spread.homes()) == number


def remembering():
    """An agent with a memory of every kind of leaf, drawn from its key."""

    def init(key):
        number = (rng.bits(rng.words(key), 0) >> 8).astype(jnp.int32)
        one = jax.tree.map(lambda leaf: leaf[0], leaves(1))
        return one | {"count": number, "key": key, "lifetime": jnp.uint32(0)}

    def act(memory, observation, key):
        return 0, NoveltyPrediction.none(), memory

    def assign(memory, number):
        return memory | {"lifetime": number}

    return Agent("remembering", act, init, assign=assign)


def crew_of(agent, numbers, **options):
    env, params = jaxsim.make("CartPole-v1")
    return Crew(agent, [env], [params], rng.words(KEY), numbers, **options)


def test_memories_are_those_of_their_lifetimes_in_any_parts():
    numbers = np.arange(100, 290)
    one = crew_of(remembering(), numbers, spread=Spread(threads=1))
    several = crew_of(remembering(), numbers, spread=Spread(chunk=64, threads=3))
    assert len(one.homes) == 1 and len(several.homes) > 1
    memory = several.memory()
    jax.tree.map(np.testing.assert_array_equal, memory, one.memory())
    np.testing.assert_array_equal(memory["lifetime"], numbers)
    words_of = rng.fold(rng.words(KEY), jnp.asarray(numbers, jnp.uint32), counters.AGENT)
    np.testing.assert_array_equal(memory["count"], np.asarray(rng.bits(words_of, 0) >> 8))
    # What comes back, in another order, is what the lifetimes go on with.
    other = jax.tree.map(lambda leaf: leaf[::-1], memory)
    several.remember(other)
    jax.tree.map(np.testing.assert_array_equal, several.memory(), other)
    for part, fresh in zip(several.memories(), one.memories(), strict=False):
        assert jax.tree.map(lambda a: a.dtype, part) == jax.tree.map(lambda a: a.dtype, fresh)


def test_lists_of_parts_are_those_of_their_lifetimes():
    numbers = np.arange(150)
    crew = crew_of(remembering(), numbers, spread=Spread(chunk=64, threads=3))
    each, shared = np.arange(300).reshape(2, 150) + 1, np.array([[7], [8]])
    start = np.arange(900).reshape(2, 150, 3)
    rounds = Rounds(each, shared, shared, shared, start=start)
    parts = [crew.batch(rounds, index) for index in range(len(crew.homes))]
    assert len(parts) > 1
    for name, values in (("episode", each), ("start", start)):
        rows = np.concatenate([np.asarray(getattr(p.rounds, name)) for p in parts], axis=1)
        np.testing.assert_array_equal(rows[:, :150], values)
        assert not np.any(rows[:, 150:])
    for part in parts:
        np.testing.assert_array_equal(part.rounds.count, shared)
    real = np.concatenate([np.asarray(part.real) for part in parts])
    np.testing.assert_array_equal(real, np.arange(real.size) < 150)
    dealt = np.concatenate([np.asarray(part.number) for part in parts])
    np.testing.assert_array_equal(dealt[:150], numbers)


def test_learners_have_one_shape_whatever_the_chunks():
    """Products of matrices round by the shapes of all lanes."""
    trace = Agent(
        "learner",
        remembering().act,
        remembering().init,
        learn=lambda memory, episodes: memory,
        trace=lambda memory, observation, action: action,
    )
    learners = [crew_of(trace, range(500), spread=Spread(chunk, 1)) for chunk in (None, 64, 256)]
    assert len({crew.sizes for crew in learners}) == 1
    players = [crew_of(remembering(), range(500), spread=Spread(c, 1)) for c in (64, 256)]
    assert [crew.sizes.chunk for crew in players] == [64, 256]


@dataclass(frozen=True)
class Paid:
    """An environment of three steps whose performance is none of its rewards."""

    name: str = "Paid"
    num_actions: int = 2
    max_steps: int = 3
    extra: Any = field(default=None, hash=False)

    def start(self, key, params):
        return jnp.full(jax.tree.leaves(params)[0].shape[:1], -1, jnp.int32)

    def observe(self, state):
        return state

    def step(self, key, state, action, params):
        state = state + 1
        reward = jnp.where(state > 0, 2.0 ** -state.astype(jnp.float32), 0.0)
        info = {"performance": 0.1 * state, "nonfinite": state < -1}
        return state, state, reward, state < -1, state >= 3, info


def test_rewards_add_up_and_the_last_performance_counts():
    agent = Agent("still", lambda memory, observation, key: (0, NoveltyPrediction.none(), memory))
    params = {"weight": np.float32([1.0, 2.0])}
    crew = Crew(agent, [Paid()], [params], rng.words(KEY), range(5), spread=Spread(64, 1))
    one = np.ones((2, 1), np.int32)
    rows = crew.play(Rounds(np.arange(2)[:, None], one, 0 * one, 0 * one))
    assert (rows.length == 3).all()
    np.testing.assert_allclose(rows.reward, 0.5 + 0.25 + 0.125)
    np.testing.assert_allclose(rows.performance, 0.3, rtol=1e-6)
