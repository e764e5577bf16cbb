"""Spaces: samples, membership, checks at the door, and bounds that no observation exceeds."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim import registry, rng, spaces
from jaxsim.embedding import embed
from jaxsim.worlds.cartpole3d import Config, observe, state_from_arrays
from jaxsim.worlds.cartpole3d.terms import noise
from jaxsim.wrappers import AutoReset, FlattenObservation

READ = [f"{name}_{kind}" for name in ("noise", "step") for kind in ("position", "velocity", "rate")]
env_spec = registry.spec("CartPole3D-v0")
KEYS = jax.random.split(jax.random.key(0), 500)


@pytest.fixture(scope="module")
def made():
    return jaxsim.make("CartPole3D-v0", max_steps=10)


def test_discrete_samples_are_members_uniform_and_seeded():
    space = spaces.Discrete(5)
    drawn = space.sample(KEYS)
    assert drawn.shape == KEYS.shape and drawn.dtype == jnp.int32 and space.shape == ()
    assert bool(space.contains(drawn).all())
    assert np.bincount(drawn, minlength=5).min() > 60
    assert int(space.sample(KEYS[3])) == int(drawn[3])


def test_discrete_contains_no_floats_and_nothing_out_of_range():
    space = spaces.Discrete(3)
    assert space.contains(np.array([-1, 0, 2, 3])).tolist() == [False, True, True, False]
    assert not bool(space.contains(1.0))
    assert not bool(space.contains(True))


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (5, "action is 5; it must be an integer from 0 to 4"),
        (-1, "action is -1"),
        (1.0, "dtype float64"),
        (True, "dtype bool"),
        (np.array([1, 2]), r"shape \(2,\), not \(\)"),
    ],
)
def test_checked_refuses(x, words):
    with pytest.raises(ValueError, match=words):
        spaces.Discrete(5).checked(x)


def test_checked_keeps_what_is_right_also_while_tracing():
    space = spaces.Discrete(5)
    assert space.checked(np.int64(4)) == 4
    assert space.checked([0, 1], (2,)).dtype == np.int32
    assert int(jax.jit(space.checked)(jnp.int32(9))) == 9
    with pytest.raises(ValueError, match="dtype float32"):
        jax.jit(space.checked)(1.0)


def test_box_samples_are_members():
    space = spaces.Box(np.array([0.0, -2.0], np.float32), np.array([1.0, 3.0], np.float32))
    drawn = space.sample(KEYS)
    assert drawn.shape == (500, 2) and drawn.dtype == space.dtype == np.float32
    assert bool(space.contains(drawn).all()) and space.contains(drawn).shape == (500,)
    assert np.abs(drawn.mean(0) - np.array([0.5, 0.5])).max() < 0.3
    assert abs(np.corrcoef(drawn.T)[0, 1]) < 0.2
    np.testing.assert_array_equal(space.sample(KEYS[7]), drawn[7])


def test_samples_between_the_largest_floats_are_finite():
    most = np.full(3, np.finfo(np.float32).max, np.float32)
    box = spaces.Box(-most, most)
    drawn = box.sample(KEYS)
    assert bool(box.contains(drawn).all()) and np.isfinite(drawn).all()
    assert abs((np.asarray(drawn) > 0).mean() - 0.5) < 0.06


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_samples_of_all_numbers_of_32_bits_are_uniform(dtype):
    bounds = np.iinfo(dtype)
    box = spaces.Box(np.array([bounds.min], dtype), np.array([bounds.max], dtype))
    drawn = np.asarray(box.sample(KEYS)).ravel()
    assert drawn.dtype == dtype and np.unique(drawn).size > 0.99 * drawn.size
    middle = (int(bounds.min) + int(bounds.max)) / 2
    assert abs((drawn > middle).mean() - 0.5) < 4 * 0.5 / drawn.size**0.5


def test_whole_numbers_are_drawn_with_both_bounds():
    pictures = spaces.Box(np.zeros((2, 3), np.uint8), np.full((2, 3), 255, np.uint8))
    drawn = np.asarray(pictures.sample(KEYS))
    assert drawn.shape == (500, 2, 3) and drawn.dtype == np.uint8
    # 3,000 draws of 256 numbers: one in 125,000 samples lacks the lowest or the highest.
    assert (drawn.min(), drawn.max()) == (0, 255) and abs(drawn.mean() - 127.5) < 7
    few = spaces.Box(np.array([-2], np.int32), np.array([1], np.int32))
    assert np.unique(few.sample(KEYS)).tolist() == [-2, -1, 0, 1]


def test_box_contains_neither_outside_nor_nan_nor_another_shape():
    space = spaces.Box(np.zeros(2, np.float32), np.ones(2, np.float32))
    assert space.contains(np.array([[0, 1], [0, 1.1], [np.nan, 0]])).tolist() == [
        True,
        False,
        False,
    ]
    assert not bool(space.contains(np.zeros((3,))).any())


@pytest.mark.parametrize(
    "build",
    [
        lambda: spaces.Discrete(0),
        lambda: spaces.Discrete(1.5),
        lambda: spaces.Discrete(2, "float32"),
        lambda: spaces.Box(np.zeros(2), np.zeros(3)),
        lambda: spaces.Box(np.ones(1), np.zeros(1)),
        lambda: spaces.Box(np.zeros(1), np.full(1, np.inf)).sample(KEYS[0]),
    ],
)
def test_impossible_spaces_are_refused(build):
    with pytest.raises(ValueError):
        build()


def test_cartpole3d_spaces_fit_first_observations(made, lanes32):
    env, _ = made
    space = spaces.observation_space(env)
    assert spaces.action_space(env) == spaces.Discrete(5)
    assert space.shape == (11 + 7 * 4,) and space.dtype == np.float32
    observation = env.observe(lanes32.start(0))
    assert bool(space.contains(spaces.flatten(env, observation)).all())
    wrapped = spaces.observation_space(AutoReset(FlattenObservation(env)))
    np.testing.assert_array_equal(wrapped.high, space.high)


def test_fastest_possible_motion_is_inside_the_bounds(made):
    env, _ = made
    fastest = {
        "cart_pos": [4.0, -4.0],
        "cart_yaw": 0.7,
        "cart_vel": [70.0, 70.0],
        "cart_yaw_rate": 100.0,
        "pole_jq": [0.0, 0.08, 0.0, np.sqrt(1 - 0.08**2)],
        "pole_jw": [100.0, 100.0, 100.0],
        "block_pos": [[4.0, 4.0, 9.0]],
        "block_vel": [[100.0, -100.0, 100.0]],
        "block_alive": [True],
    }
    # As far as 100 m/s get in an episode: a cart along both of its axes, a block from 9 m upwards.
    way = 100 * 0.02 * env.max_steps
    farthest = {
        "cart_pos": [4 + way * np.sqrt(2), -4 - way * np.sqrt(2)],
        "block_pos": [[4 + way, -4 - way, 9 + way]],
    }
    for arrays in (fastest, fastest | farthest):
        vector = spaces.flatten(env, observe(state_from_arrays(arrays, Config())))
        assert bool(spaces.observation_space(env).contains(vector))
    low, high = spaces.bounds(env, None)
    assert np.isfinite(low).all() and np.isfinite(high).all()
    assert low[11] == 0.0 and high[11] == 1.0  # a block slot is empty or not


@pytest.mark.parametrize("noisy", [False, True])
def test_bounds_are_the_farthest_ways_and_the_largest_errors(noisy):
    """Sensors have gains and offsets of up to 10, in m, m/s and rad/s."""
    env, params = jaxsim.make(
        "CartPole3D-v0", {"sensors/gain_rate": 2} if noisy else {}, max_steps=3
    )
    limits = {name: env_spec.parameters[f"sensors/{name}"].high for name in READ} if noisy else {}

    def read(kind, number):
        if not noisy:
            return number
        drawn, step = limits[f"noise_{kind}"], limits[f"step_{kind}"]
        return 10 * number + 10 + rng.NORMAL_LIMIT * drawn + step / 2

    # 5 ticks of 0.02 s, a hidden one and a late reading included, at 100 m/s along each axis.
    spread = env_spec.parameters["start/spread"].high
    cart = [read("position", spread + 10 * np.sqrt(2)), read("velocity", 100 * np.sqrt(2))]
    sideways, upwards = read("position", 4 + 10), read("position", 5 + 4 + 10)
    rate, speed = read("rate", 100 * (np.sqrt(3) + 1)), read("velocity", 100)
    block = [1, sideways, sideways, upwards, speed, speed, speed]
    high = [cart[0]] * 2 + [cart[1]] * 2 + [1.0001] * 4 + [rate] * 3 + block * env.config.max_blocks
    low, ours = spaces.bounds(env, params)
    np.testing.assert_allclose(ours, high, rtol=1e-5)
    empty = np.isin(np.arange(len(high)) - 11, 7 * np.arange(env.config.max_blocks))
    np.testing.assert_array_equal(low, np.where(empty, 0, -ours))


def test_readings_of_sensors_with_gains_and_offsets_are_inside_the_bounds():
    values = {
        f"sensors/{name}_{kind}": 10
        for name in ("gain", "offset")
        for kind in ("position", "velocity", "rate")
    }
    env, params = jaxsim.make("CartPole3D-v0", values, max_steps=1)
    arrays = {
        "cart_pos": [4.0, -4.0],
        "cart_yaw": 0.0,
        "cart_vel": [90.0, 90.0],
        "cart_yaw_rate": 0.0,
        "pole_jq": [0.0, 0.0, 0.0, 1.0],
        "pole_jw": [80.0, 60.0, 50.0],
        "block_pos": [[4.0, 4.0, 8.0]],
        "block_vel": [[90.0, 90.0, 90.0]],
        "block_alive": [True],
    }
    state = state_from_arrays(arrays, env.config)
    state = replace(state, sensors=noise.attached(state, KEYS[0], params))
    vector = spaces.flatten(env, observe(state))
    assert vector[2] > 900
    assert bool(spaces.observation_space(env, params).contains(vector))


def test_an_environment_without_bounds_gets_infinite_ones():
    class Two:
        num_actions = 2

        def reset(self, key, params):
            return {"a": jnp.zeros(key.shape), "b": jnp.zeros(key.shape)}, None

    space = spaces.observation_space(Two())
    assert space.shape == (2,) and np.isinf(space.high).all()
    assert spaces.flatten(Two(), Two().reset(KEYS, None)[0]).shape == (500, 2)


@pytest.mark.parametrize(
    ("env_id", "options"),
    [
        ("CartPole-v1", {}),
        ("CartPole2D-v0", {}),
        ("CartPole3D-v0", {}),
        ("CartPole3D-v0", {"level": 208}),  # its blocks are one leaf
    ],
)
@pytest.mark.parametrize("shape", [(), (3,)])
def test_unflatten_undoes_flatten(env_id, options, shape):
    env, params = jaxsim.make(env_id, **options)
    env = AutoReset(embed(env) if env_id == "CartPole2D-v0" else env)
    observation = jax.eval_shape(lambda k: env.observe(env.start(k, params)), KEYS[0])
    leaves, structure = jax.tree.flatten(observation)
    random = np.random.default_rng(1)
    drawn = [random.uniform(-1, 1, (*shape, *leaf.shape)) for leaf in leaves]
    pairs = zip(drawn, leaves, strict=True)
    filled = [np.asarray(d > 0 if leaf.dtype == bool else d, leaf.dtype) for d, leaf in pairs]
    observation = jax.tree.unflatten(structure, filled)
    if hasattr(observation, "cart_position"):
        flat = observation.cart_position._replace(z=np.zeros(shape, np.float32))
        speed = observation.cart_velocity._replace(z=np.zeros(shape, np.float32))
        observation = replace(observation, cart_position=flat, cart_velocity=speed)
    vector = spaces.flatten(env, observation)
    lanes = jax.tree.map(lambda p: np.broadcast_to(p, shape), params)
    again = spaces.unflatten(env, lanes, vector)
    assert jax.tree.structure(again) == jax.tree.structure(observation)
    for actual, given in zip(jax.tree.leaves(again), jax.tree.leaves(observation), strict=True):
        assert actual.dtype == given.dtype
        np.testing.assert_array_equal(actual, given)
    assert spaces.unflatten(FlattenObservation(env), params, vector) is vector
    with pytest.raises(ValueError, match="its last axis must have"):
        spaces.unflatten(env, params, vector[..., 1:])
