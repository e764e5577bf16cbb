"""The gymnax adapter: gymnax' wrappers, and a trainer that knows gymnax alone."""

import json
import runpy
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("gymnax", reason="needs the extra: jaxsim-novelty[gymnax]")

from gymnax.environments import environment, spaces
from gymnax.wrappers.purerl import FlattenObservationWrapper, LogWrapper

import jaxsim
from evaluation import l2m, scanner
from jaxsim.adapters import gymnax as adapter
from jaxsim.adapters.gymnax import to_gymnax
from jaxsim.spaces import flatten
from jaxsim.training import wrap
from jaxsim.worlds.cartpole3d import sensors
from jaxsim.wrappers import AutoReset, FlattenObservation, reset_key

LANES = 64
SMALL = {"blocks/count_min": 0, "blocks/count_max": 0}


@pytest.fixture(scope="module")
def world():
    """Without blocks, and at most forty steps."""
    env, params = jaxsim.make("CartPole3D-v0", SMALL, max_blocks=1, max_steps=40)
    return env, params, to_gymnax(env, params)


@pytest.fixture(scope="module")
def classic():
    """CartPole, quick to compile."""
    env, params = jaxsim.make("CartPole-v1", max_steps=40)
    return env, params, to_gymnax(env, params)


def logged(env):
    """Reset and step of a batch, under gymnax' wrappers."""
    env = LogWrapper(FlattenObservationWrapper(env))
    reset = jax.jit(jax.vmap(env.reset, in_axes=(0, None)))
    step = jax.jit(jax.vmap(env.step, in_axes=(0, 0, 0, None)))
    return reset, step


def keys_at(t):
    return jax.random.split(jax.random.fold_in(jax.random.key(2), t), LANES)


def test_is_a_gymnax_environment_with_its_spaces(world):
    _, params, env = world
    assert isinstance(env, environment.Environment)
    assert env.name == "CartPole3D" and env.num_actions == 5 and env.default_params is params
    assert isinstance(env.action_space(params), spaces.Discrete)
    box = env.observation_space(params)
    assert isinstance(box, spaces.Box) and box.shape == (18,)
    obs = jax.eval_shape(env.reset, jax.random.key(0), params)[0]
    assert obs.shape == box.shape and obs.dtype == box.dtype


@pytest.mark.long
def test_batch_equals_the_core_environment(world):
    env, params, adapted = world
    reset, step = logged(adapted)
    obs, state = reset(keys_at(0), params)
    first, core = env.reset(keys_at(0), params)
    np.testing.assert_allclose(obs, flatten(env, first), atol=1e-5)
    over, ends, core_step = np.zeros(LANES, bool), 0, jax.jit(env.step)
    for t in range(1, 50):
        actions = jnp.full(LANES, t % 5)
        obs, state, reward, terminated, truncated, info = step(keys_at(t), state, actions, params)
        want, core, gain, *flags, _ = core_step(keys_at(t), core, actions, params)
        checked = ~over  # lanes in their first episode
        final = np.asarray(info["final_observation"])
        expected = np.asarray(flatten(env, want))
        np.testing.assert_allclose(final[checked], expected[checked], atol=1e-4)
        gain, reward, *flags, terminated, truncated = map(
            np.asarray, (gain, reward, *flags, terminated, truncated)
        )
        np.testing.assert_allclose(reward[checked], gain[checked], atol=1e-6)
        np.testing.assert_array_equal(terminated[checked], flags[0][checked])
        np.testing.assert_array_equal(truncated[checked], flags[1][checked])
        ended = np.asarray(terminated | truncated)
        np.testing.assert_array_equal(np.asarray(state.env_state.time)[ended], 0)
        np.testing.assert_array_equal(info["returned_episode"], ended)
        ends += ended.sum()
        over = over | ended
    assert bool(over.all()) and ends >= LANES
    assert int(info["returned_episode_lengths"].max()) <= 40


def test_every_episode_starts_afresh(classic):
    env, params, adapted = classic
    reset, step = logged(adapted)
    _, state = reset(keys_at(0), params)
    starts, start_of, ages = [], jax.jit(env.start), np.zeros(LANES, int)
    for t in range(1, 50):
        obs, state, *_, info = step(keys_at(t), state, jnp.zeros(LANES, jnp.int32), params)
        ended = np.asarray(info["returned_episode"])
        ages = np.where(ended, 0, ages + 1)
        np.testing.assert_array_equal(state.env_state.time, ages)
        # The cart is reported where it was drawn, in the first observation.
        drawn = np.asarray(start_of(reset_key(keys_at(t)), params).motion.x)
        np.testing.assert_allclose(np.asarray(obs)[ended, 0], drawn[ended], atol=1e-6)
        starts += np.asarray(obs)[ended, 0].tolist()
    assert len(starts) >= LANES and len(set(starts)) == len(starts)


def test_step_env_reports_the_end_and_does_not_reset(world):
    _, params, env = world
    state = jax.eval_shape(env.reset_env, jax.random.key(0), params)[1]
    out = jax.eval_shape(env.step_env, jax.random.key(0), state, jnp.int32(0), params)
    assert len(out) == 5 and jax.tree.structure(out[1]) == jax.tree.structure(state)


def test_raw_keys_give_the_episodes_of_typed_ones(classic):
    _, params, env = classic
    _, state = env.reset(jax.random.PRNGKey(7), params)
    _, typed = env.reset(jax.random.key(7))
    assert float(state.inner.motion.x) == float(typed.inner.motion.x)


@pytest.mark.parametrize("action", [2, -1, 0.5, True])
def test_bad_actions_are_refused(classic, action):
    _, params, env = classic
    _, state = env.reset(jax.random.key(0), params)
    with pytest.raises(ValueError, match="integer from 0 to 1"):
        env.step(jax.random.key(1), state, action, params)


def test_an_environment_that_resets_itself_is_refused(world):
    with pytest.raises(ValueError, match="without one"):
        to_gymnax(AutoReset(world[0]), world[1])
    with pytest.raises(ValueError, match="without one"):
        to_gymnax(FlattenObservation(AutoReset(world[0])), world[1])


def train(env, params, key, updates, lanes, horizon):
    """Train a linear softmax policy with REINFORCE, in terms of gymnax alone.

    Returns the mean length of the episodes that ended in each update, and the weights.
    """
    size = int(np.prod(env.observation_space(params).shape))
    choices = env.action_space(params).n
    key, key_reset = jax.random.split(key)
    reset = jax.vmap(env.reset, in_axes=(0, None))
    step = jax.vmap(env.step, in_axes=(0, 0, 0, None))
    # Lean and its rate, brought to about the same size; the rest tells little here.
    scale = jnp.zeros(size).at[4:6].set(20.0).at[8:10].set(2.0)

    def collect(weights, carry, key):
        def act(carry, key):
            obs, state = carry
            key_act, key_step = jax.random.split(key)
            inputs = obs * scale
            action = jax.random.categorical(key_act, inputs @ weights)
            keys = jax.random.split(key_step, lanes)
            obs, state, _, terminated, truncated, info = step(keys, state, action, params)
            over = terminated | truncated
            length = jnp.where(over, info["returned_episode_lengths"], 0)
            return (obs, state), (inputs, action, terminated, over, length)

        return jax.lax.scan(act, carry, jax.random.split(key, horizon))

    def update(training, key):
        weights, moment, carry = training
        carry, (inputs, action, terminated, over, length) = collect(weights, carry, key)
        failing = jax.lax.scan(
            lambda later, now: ((-1.0 * now + 0.9 * later), (-1.0 * now + 0.9 * later)),
            jnp.zeros(lanes),
            terminated.astype(jnp.float32),
            reverse=True,
        )[1]
        advantage = (failing - failing.mean()) / (failing.std() + 1e-6)

        def loss(weights):
            chances = jax.nn.log_softmax(inputs @ weights)
            taken = jnp.take_along_axis(chances, action[..., None], -1)[..., 0]
            return -jnp.mean(taken * advantage)

        moment = 0.8 * moment + jax.grad(loss)(weights)
        mean = length.sum() / jnp.maximum(over.sum(), 1)
        return (weights - 2.0 * moment, moment, carry), mean

    @jax.jit
    def run(key):
        weights = jnp.zeros((size, choices))
        carry = reset(jax.random.split(key_reset, lanes), params)
        start = (weights, weights, carry)
        trained, lengths = jax.lax.scan(update, start, jax.random.split(key, updates))
        return lengths, trained[0] * scale[:, None]

    return run(key)


# A steep start and a low ceiling make a short lesson: episodes end at about ten steps.
LESSON = SMALL | {"start/lean": 0.05, "lean_limit": 0.15}


@pytest.fixture(scope="module")
def trained():
    """Mean lengths of episodes in training, and the weights it ended with."""
    core, params = jaxsim.make("CartPole3D-v0", LESSON, max_blocks=1, max_steps=100)
    env = LogWrapper(FlattenObservationWrapper(to_gymnax(core, params)))
    lengths, weights = train(env, params, jax.random.key(0), 60, LANES, 50)
    return np.asarray(lengths), weights


@pytest.mark.long
@pytest.mark.nightly
def test_a_gymnax_trainer_learns_to_balance(trained):
    lengths, _ = trained
    assert lengths[-10:].mean() > 1.5 * lengths[:5].mean(), lengths


@pytest.mark.long
def test_what_it_has_trained_is_wrapped_and_scored(trained):
    lengths, weights = trained
    body = weights[:11]  # all that is not of blocks, of which there are none

    def choose(weights, observation, key):
        return jnp.argmax(sensors.to_vector(observation)[:11] @ weights)

    agent = wrap.policy("reinforce", choose, body)
    episodes = {"$repeat": {"$episode": "CartPole3D", **LESSON}, "count": 2}
    lesson = l2m.loads(json.dumps({"instructions": [{"$phase": "1.train"}, episodes]}))
    records = scanner.play(lesson, agent, lifetimes=LANES, seed=1)
    episode_lengths = records.columns["length"]
    assert records.metadata["agent"] == "reinforce" and episode_lengths.shape == (LANES, 2)
    # Better than before its training, by far, and without noise not worse than at its end.
    assert episode_lengths.mean() > 1.5 * lengths[:5].mean()
    assert episode_lengths.mean() > 0.9 * lengths[-10:].mean()


def test_without_gymnax_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnax.environments", None)
    with pytest.raises(ImportError, match=r"jaxsim-novelty\[gymnax\]"):
        runpy.run_path(adapter.__file__)
