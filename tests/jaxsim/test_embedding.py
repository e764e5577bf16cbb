"""The worlds of two dimensions in CartPole3D's form: against themselves, and beside CartPole3D."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim import agents, rng, spaces
from jaxsim.agents import reference
from jaxsim.embedding import SLOTS, Embedded, embed
from jaxsim.testing import Programs, check_env
from jaxsim.worlds.cartpole3d.types import ACTIONS

LANES, STEPS = 32, 12
NOTHING, RIGHT, LEFT, FORWARD, BACKWARD = range(5)
FLAT = ("CartPole-v1", "CartPole2D-v0")


@pytest.fixture(scope="module", params=FLAT)
def world(request):
    """The environment, what it is embedded in, its parameters, and both steps compiled."""
    env, params = jaxsim.make(request.param)
    return env, embed(env), params, jax.jit(env.step), jax.jit(embed(env).step)


def plays(world, actions):
    """Yield (own result, embedded result) of each step; both start alike.

    `actions` is (STEPS, LANES) codes of CartPole3D; the own actions and forces follow from it.
    """
    env, both, params, flat_step, step = world
    keys = jax.random.split(jax.random.key(1), LANES)
    _, flat = jax.jit(env.reset)(keys, params)
    _, state = jax.jit(both.reset)(keys, params)
    for action in np.asarray(actions):
        sideways = (action == RIGHT) | (action == LEFT)
        if env.name == "CartPole":
            code = (action == RIGHT).astype(np.int32)
            physics = replace(params, force=jnp.where(sideways, params.force, 0.0))
        else:
            code, physics = np.where(sideways, action, NOTHING), params
        expected = flat_step(keys, flat, code, physics)
        got = step(keys, state, action, params)
        flat, state = expected[1], got[1]
        yield expected, got


def test_an_embedded_world_is_itself(world):
    actions = np.random.default_rng(0).integers(0, 5, (60, LANES)).astype(np.int32)
    ended = 0
    for expected, got in plays(world, actions):
        # All but the observation, which has another form: state, reward, flags, info.
        for one, other in zip(*map(jax.tree.leaves, (expected[1:], got[1:])), strict=True):
            np.testing.assert_array_equal(one, other)
        ended = int(np.sum(got[3] | got[4]))
    assert 0 < ended <= LANES


def test_the_observation_has_the_layout_of_the_table(world):
    env = world[0]
    for expected, got in plays(world, np.full((STEPS, LANES), RIGHT, np.int32)):
        o = got[0]
        plain = expected[0]
        if env.name == "CartPole":
            x, v, angle, rate = plain.x, plain.v, plain.angle, plain.rate
        else:
            x, v, rate = plain.cart_position.x, plain.cart_velocity.x, plain.pole_velocity.y
            angle = 2 * jnp.arctan2(plain.pole_quaternion[1], plain.pole_quaternion[3])
        assert (np.asarray(o.cart_position.x) == x).all()
        assert (np.asarray(o.cart_velocity.x) == v).all()
        assert (np.asarray(o.pole_velocity.y) == rate).all()
        np.testing.assert_allclose(o.pole_quaternion[1], np.sin(angle / 2), atol=1e-6)
        np.testing.assert_allclose(o.pole_quaternion[3], np.cos(angle / 2), atol=1e-6)
        rest = (*o.cart_position[1:], *o.cart_velocity[1:], *o.pole_quaternion[::2])
        for zero in (*rest, *o.pole_velocity[::2]):
            assert (np.asarray(zero) == 0).all()
        number = 0 if env.name == "CartPole" else 3
        alive = np.array([np.asarray(flag) for flag in o.block_alive])
        assert alive.tolist() == [[slot < number] * LANES for slot in range(SLOTS)]
        places = np.array(o.block_position)
        assert (places[:number] == np.array([1.0, 1.0, 3.0])[:, None]).all()
        assert (places[number:] == 0).all() and (np.array(o.block_velocity) == 0).all()


def test_right_pushes_the_cart_right_and_nothing_pushes_nowhere(world):
    speeds = {}
    for action in range(5):
        *_, (_, got) = plays(world, np.full((1, LANES), action, np.int32))
        speeds[action] = np.asarray(got[0].cart_velocity.x)
    # 10 N on about 1.1 kg for 0.02 s.
    assert (speeds[RIGHT] - speeds[NOTHING] > 0.1).all()
    assert (speeds[NOTHING] - speeds[LEFT] > 0.1).all()
    assert (speeds[FORWARD] == speeds[NOTHING]).all()
    assert (speeds[BACKWARD] == speeds[NOTHING]).all()


def observation_structure(env, params):
    """Structure, shapes and types of an observation of a batch."""
    keys = jax.random.split(jax.random.key(0), LANES)
    return jax.eval_shape(lambda k: env.observe(env.start(k, params)), keys)


@pytest.mark.parametrize("slots", [4, 8])
@pytest.mark.parametrize("name", FLAT)
def test_it_looks_like_cartpole3d(name, slots):
    env, params = jaxsim.make(name)
    env = embed(env, slots)
    solid, solid_params = jaxsim.make("CartPole3D-v0", max_blocks=slots)
    assert observation_structure(env, params) == observation_structure(solid, solid_params)
    assert spaces.action_space(env) == spaces.action_space(solid) == spaces.Discrete(5)
    box = spaces.observation_space(env)
    assert box.shape == spaces.observation_space(solid).shape == (11 + 7 * slots,)
    observation, _ = jax.jit(env.reset)(jax.random.split(jax.random.key(0), LANES), params)
    vector = spaces.flatten(env, observation)
    assert vector.shape == (LANES, 11 + 7 * slots)
    assert bool(box.contains(vector).all())
    last = np.asarray(vector[:, -7:])
    assert (last == 0).all()


def test_embedding_cartpole3d_gives_it_slots():
    env, _ = jaxsim.make("CartPole3D-v0")
    assert embed(env) == env
    assert embed(env, 8).config.max_blocks == 8
    other = object()
    assert embed(other) is other


def test_too_few_slots():
    env, _ = jaxsim.make("CartPole3D-v0", max_blocks=8)
    with pytest.raises(ValueError, match="slots is 4; it must be at least 8"):
        embed(env, 4)
    with pytest.raises(ValueError, match="slots is 3; it must be at least 4"):
        embed(jaxsim.make("CartPole")[0], 3)


@pytest.mark.parametrize("action", [5, -1, 1.0])
def test_wrong_actions_are_refused(world, action):
    _, env, params, *_ = world
    _, state = jax.jit(env.reset)(jax.random.key(0), params)
    with pytest.raises(ValueError, match="action"):
        env.step(jax.random.key(0), state, action, params)


@pytest.mark.parametrize(("name", "agent"), [(FLAT[0], "nothing"), (FLAT[1], "pd")])
def test_whole_episodes_are_those_of_the_steps(name, agent):
    """`jaxsim.rollout` beside a loop over `step` with the keys that a rollout counts."""
    env, params = jaxsim.make(name, max_steps=120)
    both, agent, lanes = embed(env), agents.get(agent), 64
    outcome = jaxsim.rollout(both, params, agent, lanes, seed=3)
    root = rng.words(jax.random.key(3))
    words = rng.fold(root, jnp.arange(lanes, dtype=jnp.uint32))
    state = jax.jit(both.start)(rng.to_key(rng.fold(words, 0)), params)
    step, act = jax.jit(both.step), jax.jit(jax.vmap(agent.act))
    action, length = jnp.zeros(lanes, jnp.int32), np.zeros(lanes, np.int64)
    over = np.zeros(lanes, bool)
    for tick in range(both.env.config.max_steps + 1):
        key = rng.to_key(rng.fold(words, 4, jnp.uint32(tick)))
        observation, state, _, terminated, truncated, _ = step(key, state, action, params)
        length += ~over & (tick > 0)
        over |= np.asarray(terminated | truncated)
        action, _, _ = act((), observation, rng.to_key(words))
    np.testing.assert_array_equal(outcome.length, length)
    assert len(set(outcome.length.tolist())) > 1
    reward, performance = both.score(jnp.asarray(outcome.length))
    np.testing.assert_array_equal(outcome.reward, reward)
    np.testing.assert_array_equal(outcome.performance, performance)


def test_equal_environments_share_programs():
    one, other = (embed(jaxsim.make("CartPole")[0]) for _ in range(2))
    assert one == other and hash(one) == hash(other) and isinstance(one, Embedded)
    assert one != embed(jaxsim.make("CartPole2D")[0])
    assert one != embed(jaxsim.make("CartPole")[0], 8)


@pytest.mark.parametrize("name", ["random", "nothing", "pd", "greedy"])
def test_the_reference_agents_act_on_it(world, name):
    """`pd` and `greedy` push towards the side that the pole leans to."""
    _, env, params, *_ = world
    agent = getattr(reference, name)
    keys = jax.random.split(jax.random.key(3), 256)
    observation, _ = jax.jit(env.reset)(keys, params)
    action, _, _ = jax.jit(jax.vmap(partial(agent.act, ())))(observation, keys)
    assert set(np.unique(action)) <= set(range(len(ACTIONS)))
    if name in ("pd", "greedy"):
        rate = observation.pole_velocity.y
        leans = 2 * observation.pole_quaternion[1] + reference.RATE_GAIN * rate
        clear = np.abs(leans) > 0.05
        assert clear.sum() > 20
        towards = np.where(np.asarray(leans) > 0, RIGHT, LEFT)
        assert (np.asarray(action)[clear] == towards[clear]).all()


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("name", FLAT)
def test_an_embedded_world_keeps_the_contract(name):
    env, params = jaxsim.make(name, max_steps=40)
    env = embed(env)
    check_env(env, params, programs=Programs(env))
