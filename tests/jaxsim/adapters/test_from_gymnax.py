"""Environments of gymnax as tasks: the contract, their own rewards, parameters, and agents."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("gymnax", reason="needs the extra: jaxsim-novelty[gymnax]")

import gymnax

import jaxsim
from jaxsim import agents, registry
from jaxsim.adapters import from_gymnax
from jaxsim.testing import check_env
from jaxsim.training import features

CATCH = "gymnax/Catch-bsuite"
PONG, BREAKOUT = "gymnax/Pong-misc", "gymnax/Breakout-MinAtar"


def test_the_contract_of_environments_holds():
    check_env(*jaxsim.make("gymnax/CartPole-v1", {"max_steps_in_episode": 30}))


def test_every_environment_with_discrete_actions_is_a_task():
    made, refused = [], []
    for name in gymnax.registration.registered_envs:
        if name == "MNISTBandit-bsuite":  # downloads its data
            continue
        try:
            env, params = jaxsim.make(f"gymnax/{name}")
        except ValueError as error:
            assert "actions that are not integers" in str(error)
            refused.append(name)
            continue
        keys = jax.random.split(jax.random.key(0), 3)
        states = jax.eval_shape(env.start, keys, params)
        action = jax.ShapeDtypeStruct((3,), jnp.int32)
        _, after, *_ = jax.eval_shape(env.step, keys, states, action, params)
        assert jax.tree.structure(after) == jax.tree.structure(states)
        assert [(x.shape, x.dtype) for x in jax.tree.leaves(after)] == [
            (x.shape, x.dtype) for x in jax.tree.leaves(states)
        ]
        assert env.dt(params) == 1.0  # no unit is common to all, so steps are counted
        assert env.name == f"gymnax/{name}" == registry.spec(env.name).task
        made.append(name)
    assert {"Pong-misc", "Breakout-MinAtar", "Freeway-MinAtar"} <= set(made)
    assert {"Pendulum-v1", "Swimmer-misc"} <= set(refused)


def test_episodes_are_those_of_gymnax():
    """The ball falls nine rows and then pays 1 or -1, unless the limit comes before."""
    env, params = jaxsim.make(CATCH, {"score/low": -1, "score/high": 1})
    theirs, usual = gymnax.make("Catch-bsuite")
    key = jax.random.key(3)
    state = jax.jit(env.start)(key, params)
    _, inner = jax.jit(theirs.reset_env)(key, usual)
    step, their_step = jax.jit(env.step), jax.jit(theirs.step_env)
    observation, state, reward, *_ = step(key, state, jnp.int32(0), params)  # the hidden one
    np.testing.assert_array_equal(observation, theirs.get_obs(inner))
    assert (int(state.step), float(reward)) == (0, 0.0)
    total, ended, number = 0.0, False, 0
    while not ended:
        number += 1
        key = jax.random.fold_in(key, number)
        action = jnp.int32(number % 3)
        observation, state, reward, terminated, truncated, info = step(key, state, action, params)
        expected, inner, paid, over, _ = their_step(key, inner, action, usual)
        np.testing.assert_array_equal(observation, expected)
        assert (float(reward), bool(terminated)) == (float(paid), bool(over))
        total, ended = total + float(paid), bool(terminated | truncated)
        assert float(info["performance"]) == pytest.approx((min(max(total, -1), 1) + 1) / 2)
    assert (number, bool(terminated), abs(total)) == (9, True, 1.0)
    env, short = jaxsim.make(CATCH, {"max_steps_in_episode": 4})
    short_step = jax.jit(env.step)
    observation, cut = jax.jit(env.reset)(key, short)
    for _ in range(4):
        assert not cut.truncated
        cut = short_step(key, cut, jnp.int32(1), short)[1]
    assert (bool(cut.truncated), bool(cut.terminated), int(cut.step)) == (True, False, 4)
    again = step(key, state, jnp.int32(1), params)
    assert float(again[2]) == 0.0
    assert all(map(np.array_equal, jax.tree.leaves(again[1]), jax.tree.leaves(state)))


def test_parameters_are_those_of_env_params():
    table = registry.spec(PONG).parameters
    assert (table["paddle_y_speed"].default, table["use_ai_policy"].choices) == (1, (0, 1))
    _, params = jaxsim.make(PONG, {"paddle_y_speed": 3, "use_ai_policy": 0})
    assert (int(params.inner.paddle_y_speed), bool(params.inner.use_ai_policy)) == (3, False)
    assert float(params.high) == 1000.0
    env, params = jaxsim.make(PONG, {"max_steps_in_episode": 50})
    assert (env.max_steps, float(params.high)) == (50, 50.0)


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("gymnax/Breakout", {}, "did you mean 'gymnax/Breakout-MinAtar'"),
        ("gymnax/Pendulum-v1", {}, "actions that are not integers"),
        (PONG, {"paddle": 3}, "unknown parameter 'paddle'; did you mean 'paddle_y_speed'"),
        (PONG, {"paddle_y_speed": 1.5}, "a whole number from"),
        (PONG, {"use_ai_policy": 2}, "must be one of 0, 1"),
        (PONG, {"max_steps_in_episode": 0}, "from 1 to"),
        (PONG, {"score/low": 2.0, "score/high": 2.0}, "score/high must be the higher"),
    ],
)
def test_bad_names_and_values_say_what_to_change(name, values, words):
    with pytest.raises(ValueError, match=words):
        jaxsim.make(name, values)


def test_without_gymnax_the_error_names_the_extra():
    program = (
        "import sys; sys.modules['gymnax'] = None\n"
        "import jaxsim\n"
        "try: jaxsim.make('gymnax/Pong-misc')\n"
        "except ValueError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "pip install 'jaxsim-novelty[gymnax]'" in done.stdout, done.stderr


def test_tasks_of_several_environments_look_alike():
    made = [jaxsim.make(name) for name in (CATCH, BREAKOUT, "gymnax/SpaceInvaders-MinAtar")]
    together = from_gymnax.alike([env for env, _ in made])
    assert [env.num_actions for env in together] == [4, 4, 4]
    key = jax.random.key(0)
    for env, (alone, params) in zip(together, made, strict=True):
        observation, part = (
            jax.jit(lambda p, e=e: e.observe(e.start(key, p)))(params) for e in (env, alone)
        )
        assert observation.shape == (600,)
        np.testing.assert_array_equal(observation[: part.size], jnp.ravel(part))
        assert not observation[part.size :].any()
    env, params = together[0], made[0][1]
    _, state = jax.jit(env.reset)(key, params)
    step = jax.jit(env.step)
    left, other, beyond = (step(key, state, jnp.int32(n), params)[0] for n in (0, 2, 3))
    np.testing.assert_array_equal(beyond, left)
    assert not np.array_equal(other, left)


def test_agents_fit_what_an_environment_shows():
    env, params = jaxsim.make(BREAKOUT)
    sight = features.flat(env, params)
    assert (sight.size, sight.body, sight.actions) == (400, features.BODY, 3)
    view = sight.look(env.observe(env.start(jax.random.key(0), params)))
    assert view.body.shape == (features.BODY,)
    assert float(view.body.sum()) * 7 == pytest.approx(float(view.inputs.sum()), rel=1e-5)
    random = agents.fitted("random", env, params)
    keys = jax.random.split(jax.random.key(1), 64)
    actions = jax.vmap(lambda key: random.act((), None, key)[0])(keys)
    assert set(actions.tolist()) == {0, 1, 2}
    for name in ("ppo", "ppo+ewc"):
        agent = agents.fitted(name, env, params)
        memory = jax.eval_shape(agent.init, jax.random.key(0))
        observation = jax.eval_shape(lambda key: env.reset(key, params)[0], jax.random.key(0))
        action, _, after = jax.eval_shape(agent.act, memory, observation, jax.random.key(0))
        assert action.shape == () and agent.name == name
        assert jax.tree.structure(after) == jax.tree.structure(memory)
    assert agents.fitted("pd", env, params) is agents.get("pd")
