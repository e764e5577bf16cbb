"""Automatic reset against loops written out over the core environment; vector observations."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim import rng, spaces
from jaxsim.testing import check_env
from jaxsim.wrappers import AutoReset, AutoResetState, FlattenObservation, TimeLimit, reset_key

LANES, STEPS = 40, 30  # more lanes than one group of resets holds


@pytest.fixture(scope="module")
def world():
    """Short episodes, some ended by the lean and the others by the limit; quick to compile."""
    env, params = jaxsim.make("CartPole-v1", {"lean_limit": 0.1}, max_steps=9)
    return env, params, jax.jit(env.reset), jax.jit(env.step)


def keys_at(t, lanes=LANES):
    return jax.random.split(jax.random.fold_in(jax.random.key(5), t), lanes)


def actions_at(t, lanes=LANES):
    return jax.random.randint(jax.random.fold_in(jax.random.key(6), t), (lanes,), 0, 2)


def pick(condition, a, b):
    return jax.tree.map(lambda x, y: jnp.where(condition, x, y), a, b)


def by_hand(world, mode):
    """Yield the outcome of each step, each ended lane being reset as the mode says."""
    _, params, reset, step = world
    _, state = reset(keys_at(0), params)
    over = jnp.zeros(LANES, bool)
    for t in range(1, STEPS):
        fresh_obs, fresh = reset(reset_key(keys_at(t)), params)
        obs, after, reward, ended, cut, _ = step(keys_at(t), state, actions_at(t), params)
        final = obs
        if mode == "next_step":
            obs, after = pick(over, (fresh_obs, fresh), (obs, after))
            reward = jnp.where(over, 0.0, reward)
            ended, cut = ended & ~over, cut & ~over
        over = ended | cut
        if mode == "same_step":
            obs, after = pick(over, (fresh_obs, fresh), (obs, after))
        state = after
        yield obs, reward, ended, cut, final


@pytest.fixture(scope="module")
def rollouts(world):
    """Outcomes of each step by mode, of the wrapper."""
    env, params, reset, _ = world
    outcomes = {}
    for mode in ("same_step", "next_step"):
        step = jax.jit(AutoReset(env, mode).step)
        state = AutoResetState(reset(keys_at(0), params)[1], jnp.zeros(LANES, bool))
        outcomes[mode] = []
        for t in range(1, STEPS):
            obs, state, *rest = step(keys_at(t), state, actions_at(t), params)
            outcomes[mode].append((obs, state, *rest))
        assert step._cache_size() == 1
    return outcomes


@pytest.mark.parametrize("mode", ["same_step", "next_step"])
def test_equals_the_loop_by_hand(world, rollouts, mode):
    flat = partial(spaces.flatten, world[0])
    kinds = set()
    for got, want in zip(rollouts[mode], by_hand(world, mode), strict=True):
        obs, _, reward, terminated, truncated, info = got
        np.testing.assert_allclose(flat(obs), flat(want[0]), atol=1e-5)
        np.testing.assert_array_equal(reward, want[1])
        np.testing.assert_array_equal(terminated, want[2])
        np.testing.assert_array_equal(truncated, want[3])
        if mode == "same_step":
            np.testing.assert_allclose(flat(info["final_obs"]), flat(want[4]), atol=1e-5)
        kinds |= {(bool(a), bool(b)) for a, b in zip(terminated, truncated, strict=True)}
    assert {(True, False), (False, True), (False, False)} <= kinds


def test_final_obs_is_the_observation_where_nothing_ended(world, rollouts):
    flat = partial(spaces.flatten, world[0])
    for obs, _, _, terminated, truncated, info in rollouts["same_step"]:
        going_on = ~np.asarray(terminated | truncated)
        same = np.all(np.asarray(flat(obs) == flat(info["final_obs"])), axis=-1)
        np.testing.assert_array_equal(same, going_on)


@pytest.mark.parametrize("mode", ["same_step", "next_step"])
def test_every_reset_is_fresh(rollouts, mode):
    starts = [
        np.asarray(obs.x)[np.asarray(state.inner.step) == 0] for obs, state, *_ in rollouts[mode]
    ]
    starts = np.concatenate(starts)
    assert starts.size > 2 * LANES
    assert np.unique(starts).size > 0.99 * starts.size


def test_next_step_ignores_the_action_that_resets(world):
    env, params, reset, _ = world
    step = jax.jit(AutoReset(env, "next_step").step)
    inner = reset(keys_at(0), params)[1]
    state = AutoResetState(inner, jnp.ones(LANES, bool))
    push = [step(keys_at(3), state, jnp.full(LANES, a), params)[0] for a in (0, 1)]
    flat = [np.asarray(spaces.flatten(env, obs)) for obs in push]
    np.testing.assert_array_equal(*flat)
    first = spaces.flatten(env, reset(reset_key(keys_at(3)), params)[0])
    np.testing.assert_allclose(flat[0], first, atol=1e-5)


class Countdown:
    """Ends after 1 to 4 steps, drawn at the start; as lean as an environment can be."""

    def start(self, key, params):
        drawn = 1 + rng.bits(rng.words(key), 0) % 4
        return {"left": drawn.astype(jnp.int32), "step": jnp.full(key.shape, -1)}

    def reset(self, key, params):
        return self.step(key, self.start(key, params), None, params)[:2]

    def step(self, key, state, action, params):
        running = state["left"] > 0
        counts = running & (state["step"] >= 0)
        left = state["left"] - counts
        new = {"left": left, "step": state["step"] + running}
        return left, new, 1.0 * counts, left == 0, jnp.zeros_like(running), {}


def count_down(mode, vmapped, lanes=70, steps=30):
    env = AutoReset(Countdown(), mode)
    reset, step = env.reset, env.step
    if vmapped:
        reset, step = jax.vmap(reset, (0, None)), jax.vmap(step, (0, 0, None, None))
    _, state = reset(keys_at(0, lanes), ())
    outcomes = []
    for t in range(1, steps):
        obs, state, reward, over, _, info = jax.jit(step)(keys_at(t, lanes), state, 0, ())
        outcomes.append((obs, reward, over, info.get("final_obs", obs)))
    return [np.stack(column) for column in zip(*outcomes, strict=True)]


@pytest.mark.parametrize("mode", ["same_step", "next_step", "freeze"])
def test_single_lanes_under_vmap_equal_the_batch(mode):
    for one, other in zip(count_down(mode, True), count_down(mode, False), strict=True):
        np.testing.assert_array_equal(one, other)


def test_modes_differ_in_what_follows_an_end():
    obs, reward, over, final = count_down("same_step", False)
    assert (final[over] == 0).all() and (obs[over] > 0).all() and (reward == 1).all()
    obs, reward, over, _ = count_down("next_step", False)
    assert (obs[over] == 0).all() and not (over[1:] & over[:-1]).any()
    assert (reward[1:][over[:-1]] == 0).all() and (obs[1:][over[:-1]] > 0).all()
    obs, reward, over, _ = count_down("freeze", False)
    assert over[4:].all() and not reward[5:].any() and not obs[4:].any()


def test_flattened_observations_equal_the_sensors_vector(world):
    env, params, reset, _ = world
    obs, state = reset(keys_at(0), params)
    flat = FlattenObservation(env)
    np.testing.assert_allclose(flat.observe(state), spaces.flatten(env, obs), atol=1e-6)
    assert (flat.name, flat.num_actions, flat.max_steps) == ("CartPole", 2, 9)
    assert hash(flat) == hash(FlattenObservation(env))


@pytest.mark.parametrize("outer_first", [True, False])
def test_flattening_stacks_on_either_side_of_the_reset(world, outer_first):
    env, params, *_ = world
    wrapped = (
        FlattenObservation(AutoReset(env)) if outer_first else AutoReset(FlattenObservation(env))
    )
    state = jax.eval_shape(wrapped.start, keys_at(0), params)
    obs, _, *_, info = jax.eval_shape(wrapped.step, keys_at(0), state, actions_at(0), params)
    assert obs.shape == info["final_obs"].shape == (LANES, 4)


def test_reset_keys_differ_from_the_keys_they_come_from():
    keys = keys_at(0)
    derived = jax.random.key_data(reset_key(keys))
    assert derived.shape == (LANES, 2)
    assert len({tuple(k) for k in np.asarray(derived)}) == LANES
    assert not np.any(np.all(np.asarray(derived) == np.asarray(jax.random.key_data(keys)), -1))


def test_a_limit_truncates_and_changes_nothing_before(world):
    env, params, _, step = world
    limited = TimeLimit(env, 4)
    assert limited.max_steps == 4 and TimeLimit(env, 99).max_steps == 9
    cut_step = jax.jit(limited.step)
    (_, free), (_, cut) = env.reset(keys_at(0), params), limited.reset(keys_at(0), params)
    over = np.zeros(LANES, bool)
    for t in range(1, 8):
        _, free, reward, ended, _, info = step(keys_at(t), free, actions_at(t), params)
        _, cut, limited_reward, *flags, limited_info = cut_step(
            keys_at(t), cut, actions_at(t), params
        )
        going = ~over & (t <= 4)
        np.testing.assert_array_equal(limited_reward, np.where(going, reward, 0.0))
        if t <= 4:
            np.testing.assert_array_equal(flags[0], ended)
            np.testing.assert_array_equal(flags[1], ~np.asarray(ended) & (t == 4))
            kept = info["performance"], [np.asarray(f) for f in flags], jax.tree.leaves(cut.inner)
        over |= np.asarray(flags[0] | flags[1])
    assert over.all()
    # From the end on nothing changes.
    np.testing.assert_array_equal(limited_info["performance"], kept[0])
    np.testing.assert_array_equal(flags, kept[1])
    for now, then in zip(jax.tree.leaves(cut.inner), kept[2], strict=True):
        np.testing.assert_array_equal(now, then)


@pytest.mark.long
def test_a_limited_environment_keeps_the_contract(world):
    check_env(TimeLimit(world[0], 5), world[1])


def test_a_limit_of_no_steps_is_refused(world):
    with pytest.raises(ValueError, match="at least 1"):
        TimeLimit(world[0], 0)


@pytest.mark.parametrize("inner", [AutoReset, lambda env: FlattenObservation(AutoReset(env))])
def test_nothing_that_follows_episodes_wraps_an_automatic_reset(world, inner):
    """A limit would count on through the resets, and a second reset would never come."""
    with pytest.raises(ValueError, match=r"write AutoReset\(TimeLimit\(env, 5\)\)"):
        TimeLimit(inner(world[0]), 5)
    with pytest.raises(ValueError, match="wrap the environment without one"):
        AutoReset(inner(world[0]))


def test_an_unknown_mode_is_refused(world):
    with pytest.raises(ValueError, match="'same_step', 'next_step', 'freeze'"):
        AutoReset(world[0], "always")


def test_the_key_of_a_reset_is_none_that_a_step_draws_from():
    """A step folds its key with small counters."""
    key = jax.random.key(11)
    folded = rng.fold(rng.words(key), np.arange(2000, dtype=np.uint32))
    reset = rng.words(reset_key(key))
    assert not np.any((folded.a == reset.a) & (folded.b == reset.b))
    other = rng.words(reset_key(jax.random.key(12)))
    assert (int(reset.a), int(reset.b)) != (int(other.a), int(other.b))
