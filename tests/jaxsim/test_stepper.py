"""An episode stepped from Python against a lane of a batch."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim import rng, spaces, stepper
from jaxsim.stepper import EpisodeKeys, Stepper
from tests.compiling import OF_USERS

PROGRAMS = ("draw", "quick", "whole", "observe")
LANES = 64
ROOT = rng.words(jax.random.key(3))


def keys(number=0):
    """Keys of an episode; all differ."""
    start, first, steps = (rng.fold(ROOT, number, kind) for kind in range(3))
    return EpisodeKeys(start, first, steps, jnp.uint32(0))


@pytest.fixture(scope="module")
def solid():
    """CartPole3D, whose levels 200 and 203 share programs: the compiled start and step."""
    env, _ = jaxsim.make("CartPole3D-v0")
    return env, jax.jit(env.start), jax.jit(env.step)


def spread(params):
    """The same parameters in every lane."""
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (LANES,)), params)


def batch(solid, params, actions, number=0):
    """States and outcomes of the same episode, played by a batch of 64 equal lanes."""
    _, begin, step = solid
    (start, first, steps, _), params = spread((keys(number), params))
    state = begin(rng.to_key(start), params)
    key = first
    for count, action in enumerate([0, *actions], 1):
        action = jnp.full(LANES, action, jnp.int32)
        observation, state, *rest, info = step(rng.to_key(key), state, action, params)
        one = jax.tree.map(lambda leaf: np.asarray(leaf[0]), (observation, state, rest, info))
        yield one
        key = rng.fold(steps, count)


@pytest.mark.parametrize(("level", "difficulty", "number"), [(200, "easy", 0), (203, "hard", 1)])
def test_steps_are_those_of_a_lane_of_a_batch(solid, level, difficulty, number):
    env, params = jaxsim.make("CartPole3D-v0", level=level, difficulty=difficulty)
    assert env == solid[0]
    actions = np.random.default_rng(number).integers(0, 5, 120).tolist()
    single, repeated = Stepper(env, params), []
    programs = single._programs

    def counted(*given):
        repeated.append(1)
        return programs.whole(*given)

    single._programs = replace(programs, whole=counted)
    before = None
    for t, (observation, state, reward_and_flags, info) in enumerate(
        batch(solid, params, actions, number)
    ):
        if t:
            # From the same state, so that rounding does not add up.
            at = keys(number)._replace(first=rng.fold(keys(number).steps, t), count=jnp.uint32(t))
            single.go_on_from(before, at)
        outcome = single.step(actions[t - 1]) if t else single.begin(keys(number))
        before = state
        wanted = observation, *reward_and_flags, info["performance"]
        close = partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-5)
        jax.tree.map(close, tuple(outcome)[:5], wanted)
        jax.tree.map(close, single.state, state)
        if reward_and_flags[1] or reward_and_flags[2]:
            break
    # Contacts need the whole program, and most steps do not.
    assert level != 203 or 0 < len(repeated) < t


def test_a_quick_step_is_wrong_only_where_it_says_so(solid):
    env, begin, _ = solid
    quick, step = (jax.jit(f, compiler_options=OF_USERS) for f in (env.quick_step, env.step))
    params = spread(jaxsim.make("CartPole3D-v0", level=203, difficulty="hard")[1])
    key, push = jax.random.split(jax.random.key(0), LANES), jnp.ones(LANES, jnp.int32)
    state, wrong = step(key, begin(key, params), push, params)[1], 0
    for t in range(60):
        key = jax.random.split(jax.random.key(t), LANES)
        want = step(key, state, push, params)
        got, right = quick(key, state, push, params)
        for a, b in zip(jax.tree.leaves(got[1]), jax.tree.leaves(want[1]), strict=True):
            np.testing.assert_array_equal(np.asarray(a)[right], np.asarray(b)[right])
        wrong += int((~right).sum())
        state = want[1]
    assert 0 < wrong < 0.5 * 60 * LANES
    assert bool(jnp.all(right[np.asarray(state.done)]))


def test_worlds_without_a_quick_step_are_played_whole():
    env, params = jaxsim.make("CartPole-v1")
    single = Stepper(env, params, lambda env, observation: spaces.flatten(env, observation))
    first = single.begin(keys())
    assert first.observation.shape == (4,) and first.right
    np.testing.assert_array_equal(single.observe(), first.observation)
    steps, outcome = 0, first
    while not (outcome.terminated or outcome.truncated):
        outcome, steps = single.step(1), steps + 1
    assert 5 < steps < 20 and outcome.terminated


def test_what_is_compiled_before_is_not_compiled_in_an_episode(solid):
    single = Stepper(*jaxsim.make("CartPole3D-v0", level=203, difficulty="hard"))
    single.compile()
    programs = [getattr(single._programs, name) for name in PROGRAMS]
    compiled = [program._cache_size() for program in programs]
    assert all(compiled)
    outcome = single.begin(keys(1))
    while not (outcome.terminated or outcome.truncated):
        outcome = single.step(1)
    single.observe()
    assert [program._cache_size() for program in programs] == compiled


def test_given_states_are_gone_on_from(solid):
    env, params = jaxsim.make("CartPole3D-v0")
    single = Stepper(env, params)
    assert single.state is None
    single.begin(keys())
    single.step(1)
    state = single.state
    want = single.step(2)
    again = Stepper(env, params)
    again.go_on_from(state, keys()._replace(first=rng.fold(keys().steps, 2)))
    got = again.step(2)
    jax.tree.map(np.testing.assert_array_equal, tuple(got), tuple(want))
    starts = solid[1](jax.random.split(jax.random.key(2), LANES), spread(params))
    hidden = again.begin_at(jax.tree.map(lambda leaf: leaf[0], starts), keys())
    assert again.state.step == 0 and hidden.performance == 0


def test_two_steppers_of_one_environment_share_their_programs():
    env, params = jaxsim.make("CartPole-v1")
    one, other = Stepper(env, params), Stepper(*jaxsim.make("CartPole-v1", {"gravity": 3.0}))
    one.begin(keys())
    compiled = one._programs.quick._cache_size()
    other.begin(keys())
    assert other._programs is one._programs
    assert other._programs.quick._cache_size() == compiled


def test_a_process_that_steps_answers_in_the_thread_that_asks(monkeypatch):
    settings = []
    monkeypatch.setattr(jax.config, "update", lambda *setting: settings.append(setting))
    stepper.answer_at_once()
    assert settings == [("jax_cpu_enable_async_dispatch", False)]
