"""`jaxsim.rollout`: whole episodes, the same in any layout, and as the step plays them."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from benchmarks import lockstep
from jaxsim import Spread, agents, backend, counters, rng, rollouts
from jaxsim.agents.base import Agent, NoveltyPrediction
from jaxsim.lanes.crew import Crew
from jaxsim.worlds.cartpole import CartPole
from jaxsim.worlds.cartpole3d import CartPole3D
from jaxsim.worlds.cartpole3d.tick import FREE, WALLED
from jaxsim.worlds.world import FULL
from jaxsim.wrappers import AutoReset, FlattenObservation

EPISODES = 250
SMALL = Spread(chunk=64, threads=1)


def _count(memory, observation, key):
    """Act at random but for every third step, which needs the memory."""
    action = jax.random.randint(key, (), 0, 2)
    return jnp.where(memory % 3 == 0, 0, action), NoveltyPrediction.none(), memory + 1


counting = Agent("counting", _count, init=lambda key: jnp.int32(0))


def same(a, b):
    """Whether all results are equal, bit for bit."""
    return all(
        np.array_equal(getattr(a, field.name), getattr(b, field.name))
        for field in dataclasses.fields(a)
    )


@pytest.fixture(scope="module")
def cartpole():
    return jaxsim.make("CartPole-v1", max_steps=60)


def test_every_episode_is_the_one_that_the_step_plays(cartpole):
    """A plain loop over `env.step` with the same keys, in another order of computation."""
    env, params = cartpole
    result = jaxsim.rollout(env, params, counting, EPISODES, seed=7)
    key = rng.fold(rng.words(jax.random.key(7)), jnp.arange(EPISODES))

    def keys(*counters):
        return rng.to_key(rng.fold(key, *counters))

    state = env.start(keys(counters.RESET), params)
    memory = jnp.zeros(EPISODES, jnp.int32)
    action = jnp.zeros(EPISODES, jnp.int32)
    length, rewards = np.zeros(EPISODES, int), np.zeros(EPISODES)
    over = np.zeros(EPISODES, bool)
    step, act = jax.jit(env.step), jax.jit(jax.vmap(counting.act))
    for count in range(env.max_steps + 1):
        observation, state, reward, terminated, truncated, info = step(
            keys(counters.STEP, count), state, action, params
        )
        length += ~over & (count > 0)
        rewards += np.where(over | (count == 0), 0.0, reward)
        over |= np.asarray(terminated | truncated)
        action, _, memory = act(memory, observation, keys(counters.ACT, count + 1))
    assert over.all()
    np.testing.assert_array_equal(result.length, length)
    np.testing.assert_allclose(result.reward, rewards, rtol=1e-6)
    np.testing.assert_allclose(result.performance, info["performance"], rtol=1e-6)
    np.testing.assert_array_equal(result.terminated, terminated)
    assert result.complete.all()


@pytest.mark.parametrize(
    ("spread", "rounds"),
    [(SMALL, 32), (Spread(chunk=128, threads=2), 2), (Spread(chunk=1024, threads=3), 1)],
    ids=str,
)
def test_the_layout_changes_nothing(cartpole, spread, rounds, monkeypatch):
    usual = jaxsim.rollout(*cartpole, counting, EPISODES)
    layout = backend.layout()._replace(rounds=rounds, enough=64, ticks=3)
    monkeypatch.setattr(backend, "layout", lambda: layout)
    assert same(jaxsim.rollout(*cartpole, counting, EPISODES, spread=spread), usual)


def _coarse(memory, observation, key):
    """Push by where the cart is reported, in steps of 1 mm, so that a tick more or less matters."""
    steps = jnp.floor(1000 * (observation.cart_position.x + observation.cart_position.y))
    return jnp.mod(steps, 5).astype(jnp.int32), NoveltyPrediction.none(), memory


def test_agents_see_what_the_environment_reports():
    """In lanes, which carry a state from step to step, as in a plain loop of steps."""
    env, params = jaxsim.make("CartPole3D-v0", {"blocks/count_max": 2}, max_blocks=2)
    agent, episodes = Agent("coarse", _coarse), 64
    totals = jaxsim.rollout(env, params, agent, episodes, seed=7, spread=SMALL)
    key = rng.fold(counters.root(7), jnp.arange(episodes))
    outcome = jax.jit(functools.partial(lockstep.play_episode, agent, env))(
        jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (episodes,)), params),
        key,
        jnp.ones(episodes, bool),
        jnp.zeros(episodes),
    )[1]
    # A place on the edge of a millimetre may be rounded to either side.
    assert np.mean(totals.length == outcome.length) >= 0.95


def test_long_lists_are_played_part_by_part(cartpole, monkeypatch):
    usual = jaxsim.rollout(*cartpole, counting, EPISODES)
    monkeypatch.setattr(rollouts, "MAX_ROUNDS", 2)
    layout = backend.layout()._replace(enough=64)
    monkeypatch.setattr(backend, "layout", lambda: layout)
    lists = []
    play = Crew.play
    monkeypatch.setattr(
        Crew, "play", lambda crew, rounds: lists.append(rounds.count.shape) or play(crew, rounds)
    )
    assert same(jaxsim.rollout(*cartpole, counting, EPISODES, spread=SMALL), usual)
    assert lists == [(2, 64), (2, 64)]


def test_threads_have_the_precision_of_their_caller(x64):
    """Switched on in one thread, 64-bit types are off in any other."""
    env, params = jaxsim.make("CartPole-v1", max_steps=60, dtype="float64")
    one, two = (
        jaxsim.rollout(env, params, counting, EPISODES, spread=Spread(chunk=64, threads=threads))
        for threads in (1, 2)
    )
    assert same(one, two)
    types = backend.in_threads(lambda _: jnp.zeros(()).dtype, 2, range(4))
    assert types == [np.float64] * 4


def test_episodes_have_the_numbers_that_they_are_given(cartpole):
    """Variants that play the same numbers play the same episodes, whatever is beside them."""
    usual = jaxsim.rollout(*cartpole, counting, EPISODES, spread=SMALL)
    numbers = np.concatenate([np.arange(150), np.arange(100)])
    again = jaxsim.rollout(*cartpole, counting, EPISODES, numbers=numbers, spread=SMALL)
    assert same(again, jax.tree.map(lambda leaf: leaf[numbers], usual))


def test_more_episodes_begin_with_the_same(cartpole):
    few = jaxsim.rollout(*cartpole, counting, 150, spread=SMALL)
    many = jaxsim.rollout(*cartpole, counting, EPISODES, spread=SMALL)
    assert same(few, jax.tree.map(lambda leaf: leaf[:150], many))
    other = jaxsim.rollout(*cartpole, counting, 150, seed=1, spread=SMALL)
    assert not np.array_equal(few.length, other.length)


def test_what_an_agent_says_of_novelty_is_not_computed(cartpole):
    def refuse(memory, observation, key):
        raise AssertionError("nobody asks")

    joined = Agent("joined", refuse, acting=counting)
    usual = jaxsim.rollout(*cartpole, counting, EPISODES)
    assert same(jaxsim.rollout(*cartpole, joined, EPISODES), usual)


def test_variants_play_their_rows(cartpole):
    env, params = cartpole
    heavy = dataclasses.replace(params, force=5 * params.force)
    table = jax.tree.map(lambda *rows: jnp.stack(rows), params, heavy)
    variant = np.arange(EPISODES) % 2
    mixed = jaxsim.rollout(env, table, counting, EPISODES, variant=variant)
    for row, alone in enumerate((params, heavy)):
        expected = jaxsim.rollout(env, alone, counting, EPISODES)
        mine = variant == row
        np.testing.assert_array_equal(mixed.length[mine], expected.length[mine])


def test_an_episode_with_a_number_that_is_not_finite_is_not_complete(cartpole):
    env, params = cartpole
    broken = dataclasses.replace(params, force=np.float32(np.nan))
    result = jaxsim.rollout(env, broken, counting, 150, spread=SMALL)
    assert not result.complete.any()
    assert not result.terminated.any()
    assert (result.length == 1).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"episodes": 0}, "episodes is 0; it must be from 1"),
        ({"episodes": 1 << 29}, "episodes is 536870912"),
        ({"episodes": 1.5}, "episodes is 1.5; it must be a whole number, from 1"),
        ({"seed": 1.5}, "seed is 1.5; it must be a whole number, from 0"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 2**32}, "seed is 4294967296"),
        ({"variant": np.zeros(10, np.int32)}, "all parameters must have shape"),
        ({"variant": np.zeros(9, np.int32)}, r"variant must be \(10,\) integers"),
        ({"variant": np.zeros(10)}, r"variant must be \(10,\) integers"),
        ({"numbers": np.zeros(9, np.int32)}, r"numbers must be \(10,\) integers"),
        ({"numbers": np.full(10, -1)}, "numbers must be from 0 to 268435455"),
        ({"numbers": np.full(10, 1 << 28)}, "numbers must be from 0 to 268435455"),
    ],
)
def test_what_cannot_be_is_refused(cartpole, changes, message):
    arguments = {"episodes": 10} | changes
    with pytest.raises(ValueError, match=message):
        jaxsim.rollout(*cartpole, counting, **arguments)


def test_rows_must_exist(cartpole):
    env, params = cartpole
    table = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), params)
    for rows in ([0, 1, 2], [-1, 0, 1]):
        with pytest.raises(ValueError, match="beyond the 2 of the parameters"):
            jaxsim.rollout(env, table, counting, 3, variant=np.array(rows))
    with pytest.raises(ValueError, match="unless variant says who plays which row"):
        jaxsim.rollout(env, table, counting, 3)


def test_rows_are_played_by_the_simplest_environment_that_has_their_terms():
    levels = [(200, "easy"), (205, "hard"), (206, "easy"), (203, "hard"), (207, "easy")]
    made = [jaxsim.make("CartPole3D-v0", level=level, difficulty=d) for level, d in levels]
    env = made[0][0].covering(made[1][0]).covering(made[2][0])
    table = jax.tree.map(lambda *leaves: np.stack(leaves), *(params for _, params in made))
    parts, place = env.parts(table)
    terms = [set(part.config.terms) for part in parts]
    assert terms == [set(), {"wind"}, {"attraction"}, {"attraction", "wind"}]
    assert parts[-1] == env
    assert place.tolist() == [0, 2, 1, 0, 2]
    # An environment without terms, and one whose only row needs all of them, are played whole.
    for plain, params in (made[0], made[1]):
        assert plain.parts(jax.tree.map(np.asarray, params))[0] == (plain,)


class Apart(CartPole):
    """Its parts play a shorter episode, which shows who played."""

    def parts(self, params):
        simpler = Apart(dataclasses.replace(self.config, max_steps=7))
        return (simpler, self), np.array([0, 1])


def test_one_program_may_play_all_rows(cartpole):
    env, params = cartpole
    table = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), params)
    lengths = [
        jaxsim.rollout(
            Apart(env.config), table, counting, 8, variant=np.arange(8) % 2, divided=divided
        ).length[:2]
        for divided in (True, False)
    ]
    assert lengths[0][0] == 7 < lengths[0][1]
    assert lengths[1][0] > 7


@pytest.mark.parametrize(
    ("level", "closed_form"),
    [
        (200, False),
        (203, False),
        (201, False),
        (115, False),
        (202, False),
        (204, True),
        (206, True),
    ],
)
def test_only_where_blocks_often_leave_the_room_walls_have_a_tick_of_their_own(level, closed_form):
    env, _ = jaxsim.make("CartPole3D-v0", level=level)
    assert (WALLED in env.efforts) == closed_form
    assert env.efforts[-1] == FULL


@pytest.mark.parametrize("level", [200, 201, 202])
def test_what_a_cheap_tick_asks_for_is_there(level):
    """A lane that asked for an effort that is not there would wait for ever."""
    env, params = jaxsim.make("CartPole3D-v0", level=level)
    key = jax.random.split(jax.random.key(0), 2)
    params = jax.tree.map(lambda leaf: jnp.full(2, leaf), params)
    # A start after its hidden tick; compiling that tick would take ten times as long as the test.
    state = dataclasses.replace(jax.jit(env.start)(key, params), step=jnp.zeros(2, jnp.int32))
    # No cheap tick is right where a velocity is no number.
    broken = dataclasses.replace(state.velocity, vx=state.velocity.vx.at[1].set(jnp.nan))
    state = dataclasses.replace(state, velocity=broken)
    action, active = jnp.zeros(2, jnp.int32), jnp.ones(2, bool)
    attempt = jax.jit(env.attempt, static_argnums=5)(key, state, action, params, active, FREE)
    assert np.asarray(attempt.right).tolist() == [True, False]
    assert env.efforts[int(attempt.needs[1])] == FULL


class Laborious(CartPole3D):
    """Every contact is looked for in every tick of every lane."""

    @property
    def efforts(self):
        return (FULL,)


def check_cheap_ticks(levels, episodes, share=1.0):
    """In float64: rounding decides some of the episodes in float32.

    The levels are played one after the other by one environment: it is compiled once.
    """
    made = [
        jaxsim.make("CartPole3D-v0", level=level, difficulty=difficulty, dtype="float64")
        for level, difficulty in levels
    ]
    config = functools.reduce(CartPole3D.covering, (env for env, _ in made)).config
    envs = CartPole3D(config), Laborious(config)
    assert len(envs[0].efforts) >= 3
    spread = Spread(chunk=256, threads=1)
    for level, (_, params) in zip(levels, made, strict=True):
        fast, laborious = (
            jaxsim.rollout(
                env, params, agents.get("pd"), episodes, seed=11, spread=spread, divided=False
            )
            for env in envs
        )
        assert np.mean(fast.length == laborious.length) >= share, level
        assert np.mean(fast.terminated == laborious.terminated) >= share, level


@pytest.mark.long
def test_cheap_ticks_lose_nothing(x64):
    """In the usual room; cart and pole at walls; blocks that walls make too fast for them, that are
    blown through them, or that attract one another."""
    hard = [(level, "hard") for level in (201, 203, 204, 206, 207)]
    check_cheap_ticks([(200, "easy"), *hard], 2048)


@pytest.mark.nightly
@pytest.mark.long
def test_cheap_ticks_lose_nothing_in_the_usual_room(x64):
    """Where walls need no separate tick."""
    check_cheap_ticks([(200, "easy"), (203, "hard")], 25600)


@pytest.mark.nightly
@pytest.mark.long
def test_cheap_ticks_lose_nothing_on_lines(x64):
    """Lines that leave the room. Whether friction can move anything is a question of zero or not,
    which rounding decides even here: 1 of 1,024 episodes."""
    check_cheap_ticks([(202, "hard")], 1024, share=0.99)


def test_the_name_of_an_agent_is_no_agent(cartpole):
    with pytest.raises(TypeError, match=r"agent is 'pd'; it must be an Agent, as jaxsim\.agents"):
        jaxsim.rollout(*cartpole, "pd", 4)


@pytest.mark.parametrize(
    ("functions", "words"),
    [
        ({"act": lambda *a: (0, NoveltyPrediction.none(), a[0] + 0.5)}, "`act` has float32"),
        ({"act": lambda *a: (0, NoveltyPrediction.none(), (a[0],))}, "`act` has another structure"),
        ({"act": lambda *a: (0, a[0])}, r"`act` must return \(action, prediction, memory\)"),
        ({"act": lambda *a: (0, None, a[0])}, "prediction of `act` is a NoneType"),
        ({"act": lambda *a: (jnp.zeros(2, int), NoveltyPrediction.none(), a[0])}, "one action"),
        ({"begin": lambda memory, key: memory + 0.5}, "`begin` has float32"),
    ],
)
def test_an_agent_that_breaks_its_contract_is_refused(cartpole, functions, words):
    """Lanes would cut a number to the type of the memory."""
    with pytest.raises(TypeError, match=words):
        jaxsim.rollout(*cartpole, dataclasses.replace(counting, **functions), 4)


def test_what_has_no_score_is_refused_with_what_to_pass():
    env, params = jaxsim.make("CartPole3D-v0")
    wrapped = FlattenObservation(AutoReset(env))
    with pytest.raises(ValueError, match=r"pass env\.env\.env, the CartPole3D inside"):
        jaxsim.rollout(wrapped, params, agents.get("pd"), 8)
    with pytest.raises(ValueError, match="Nothing has no method `score`"):
        jaxsim.rollout(Nothing(), params, agents.get("pd"), 8)


class Nothing:
    """No environment at all."""

    name = "Nothing"


def test_every_episode_has_an_agent_that_starts_anew(cartpole, monkeypatch):
    """One lane plays four of them one after the other, and none remembers the last."""
    layout = backend.layout()._replace(rounds=4, enough=64)
    monkeypatch.setattr(backend, "layout", lambda: layout)

    def push(memory, observation, key):
        return memory, NoveltyPrediction.none(), jnp.int32(1)  # once as it began, then 1

    def once(key):
        return jnp.where(jax.random.uniform(key) < 0.5, 0, 1)

    env, params = cartpole
    result = jaxsim.rollout(env, params, Agent("push", push, init=once), 256, spread=SMALL)
    key = rng.to_key(rng.fold(rng.words(jax.random.key(0)), jnp.arange(256), counters.INIT))
    first = jax.vmap(once)(key)
    assert 0 < first.sum() < 256
    always = Agent("always", lambda m, o, k: (jnp.int32(1), NoveltyPrediction.none(), m))
    other = jaxsim.rollout(env, params, always, 256, spread=SMALL)
    different = result.length != other.length
    # Only episodes that begin with the other action differ, in every place of the lists.
    assert not different[first == 1].any()
    assert different.reshape(4, 64).any(axis=1).all()
