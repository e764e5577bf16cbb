"""Observations with a picture, and programs without one that are what they were."""

from dataclasses import replace

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim import counters, render, rng, spaces
from jaxsim.agents import Agent, NoveltyPrediction
from jaxsim.imaging import Imaged, Imaging
from jaxsim.training import features
from tests.compiling import counted

SMALL = {"height": 8, "width": 12}


def made(env_id="CartPole-v1", **image):
    return jaxsim.make(env_id, image={**SMALL, **image})


@pytest.mark.parametrize("grey", [False, True])
def test_an_observation_has_the_picture_of_its_state(grey):
    env, params = made(grey=grey, view="side")
    key = jax.random.key(1)
    observation, state = jax.jit(env.reset)(key, params)
    assert isinstance(observation, Imaged)
    assert observation.image.shape == (8, 12, 1 if grey else 3) == env.shape
    assert observation.image.dtype == jnp.uint8
    stepped = jax.jit(env.step)(key, state, jnp.int32(1), params)
    plain = jax.jit(env.env.step)(key, state.inner, jnp.int32(1), params)
    chex.assert_trees_all_equal(stepped[0].observation, plain[0])
    chex.assert_trees_all_equal(stepped[2:], plain[2:])
    scene = render.scene(env.env, params, stepped[1].inner)
    again = jax.jit(lambda s: render.image(s, env.camera, grey))(scene)
    np.testing.assert_array_equal(stepped[0].image, again)
    np.testing.assert_array_equal(jax.jit(env.observe)(stepped[1]).image, stepped[0].image)


def test_a_batch_with_other_sizes_in_each_lane_has_its_pictures():
    env, params = made()
    batch = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, 3), params)
    batch = replace(batch, pole_length=jnp.array([0.25, 0.5, 1.0]))
    observation, state = jax.jit(env.reset)(jax.random.split(jax.random.key(0), 3), batch)
    assert observation.image.shape == (3, 8, 12, 3)
    assert state.sizes["pole_length"].tolist() == [0.5, 1.0, 2.0]
    assert (observation.image[0] != observation.image[2]).any()


def test_learners_see_the_picture_alone():
    env, params = made()
    space = spaces.observation_space(env, params)
    assert (space.shape, space.dtype) == ((8, 12, 3), np.uint8)
    observation, _ = jax.jit(env.reset)(jax.random.key(0), params)
    assert spaces.flatten(env, observation) is observation.image
    sight = features.flat(env, params)
    assert sight.size == 8 * 12 * 3
    np.testing.assert_array_equal(sight.look(observation).inputs, observation.image.ravel())


@pytest.mark.parametrize("env_id", jaxsim.registered_envs())
def test_without_the_option_an_environment_is_what_it_was(env_id):
    env, params = jaxsim.make(env_id)
    pictured, same = made(env_id)
    assert not isinstance(env, Imaging) and pictured.env == env
    chex.assert_trees_all_equal(params, same)


def test_a_picture_that_nobody_reads_is_no_work():
    env, params = jaxsim.make("CartPole-v1")
    pictured, _ = made()

    def instructions(environment, picture=False):
        def play(key, params):
            state = environment.start(key, params)
            observation, _, reward, *_ = environment.step(key, state, jnp.int32(1), params)
            return (reward, observation.image) if picture else reward

        compiled = counted(jax.jit(play), jax.random.key(0), params)
        return compiled.as_text().count(" = ")

    assert instructions(pictured) == instructions(env)
    assert instructions(pictured, picture=True) > 50 + instructions(env)


@pytest.mark.parametrize(
    ("image", "message"),
    [
        ({"colour": 1}, "unknown image option 'colour'"),
        ({"view": "behind"}, "'sensors/image/view' is 'behind'; it must be one of 'corner'"),
        ({"height": 4096}, "'sensors/image/height' is 4096; it must be a whole number from 0"),
        ({"grey": 2}, "'sensors/image/grey' is 2; it must be one of 0, 1"),
        (64, "image is 64; it must be options by name"),
    ],
)
def test_bad_options_are_refused(image, message):
    with pytest.raises(ValueError, match=message):
        jaxsim.make("CartPole-v1", image=image)


VALUES = {"sensors/image/height": 8, "sensors/image/width": 12, "sensors/image/grey": 1}


@pytest.mark.parametrize("env_id", jaxsim.registered_envs())
def test_parameters_by_path_ask_for_the_same_picture(env_id):
    assert jaxsim.make(env_id, VALUES)[0] == made(env_id, grey=True)[0]
    assert jaxsim.make(env_id, {"sensors/image/width": 5})[0].shape == (5, 5, 3)
    none = jaxsim.make(env_id, {"sensors/image/height": 0})[0]
    assert none == jaxsim.make(env_id)[0]


def test_a_view_without_a_size_and_an_environment_without_pictures_are_refused():
    with pytest.raises(ValueError, match="'sensors/image/view' is 'top', and there is no picture"):
        jaxsim.make("CartPole-v1", {"sensors/image/view": "top"})
    pytest.importorskip("gymnax")
    with pytest.raises(ValueError, match="unknown parameter 'sensors/image/height'"):
        jaxsim.make("gymnax/CartPole-v1", image={})


def by(choose):
    """A pure agent for the classic task."""
    return Agent(
        "by",
        lambda memory, observation, key: (
            jnp.int32(choose(observation)),
            NoveltyPrediction.none(),
            memory,
        ),
    )


@pytest.mark.parametrize(
    "choose",
    [
        lambda observation: observation.angle + observation.rate > 0,
        lambda observation: observation.angle > 0.01,
    ],
    ids=["long", "short"],
)
def test_agents_for_the_other_sensors_play_as_without_a_picture(choose):
    env, params = jaxsim.make("CartPole-v1")
    pictured, _ = made()
    plain, beside = (jaxsim.rollout(of, params, by(choose), episodes=32) for of in (env, pictured))
    np.testing.assert_array_equal(plain.length, beside.length)


def test_a_rollout_shows_its_agent_the_pictures_of_single_steps():
    env, params = made(view="first", grey=True)
    agent = by(lambda observation: jnp.sum(observation.image.astype(jnp.int32)) % 2)
    lengths = jaxsim.rollout(env, params, agent, episodes=8).length
    words = rng.fold(counters.root(0), jnp.arange(8, dtype=jnp.uint32))
    keys = rng.to_key(rng.fold(words, counters.RESET))

    def one(carry, _):
        state, action = carry  # nothing is drawn in steps of the classic task
        observation, state, _, terminated, truncated, _ = env.step(keys, state, action, params)
        action = jax.vmap(lambda one: agent.act((), one, None)[0])(observation)
        return (state, action), terminated | truncated

    start = env.start(keys, params), jnp.zeros(8, jnp.int32)
    over = jax.jit(lambda: jax.lax.scan(one, start, length=64)[1])()
    assert over.any(axis=0).all()
    np.testing.assert_array_equal(lengths, np.argmax(over, axis=0))
    assert len(set(lengths.tolist())) > 3


def test_a_picture_is_of_64_pixels_in_colour_unless_asked_otherwise():
    env, _ = jaxsim.make("CartPole-v1")
    usual = Imaging(env)
    assert (usual.grey, usual.camera) == (False, render.Camera("corner", 64, 64))
