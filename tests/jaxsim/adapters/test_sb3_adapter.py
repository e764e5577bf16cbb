"""stable-baselines3: by id, and through the vector environment. Run with `make test-sb3`."""

import runpy
import sys
import time

import gymnasium
import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="needs large packages: run `make test-sb3`")

from stable_baselines3 import PPO
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecMonitor

from jaxsim.adapters import gymnasium as adapter
from jaxsim.adapters.sb3 import JaxsimVecEnv

ENV_ID = "jaxsim/CartPole3D-v0"
# Quick to compile, and episodes of at most nine steps.
SMALL = {
    "values": {"lean_limit": 0.03, "blocks/count_min": 1, "blocks/count_max": 1},
    "max_blocks": 1,
    "max_steps": 9,
}
LANES = 6


def actions_at(t):
    return np.random.default_rng([9, t]).integers(0, 5, LANES)


@pytest.mark.filterwarnings("ignore")
def test_an_agent_learns_by_id():
    PPO("MlpPolicy", ENV_ID, n_steps=64, batch_size=64).learn(64)
    envs = make_vec_env(ENV_ID, n_envs=2, env_kwargs=SMALL)
    assert envs.reset().shape == (2, 18)
    check_env(gymnasium.make(ENV_ID, **SMALL).unwrapped)


def test_the_vector_environment_plays_gymnasiums_episodes():
    ours = JaxsimVecEnv("CartPole3D-v0", LANES, seed=7, **SMALL)
    theirs = adapter.JaxsimVectorEnv("CartPole3D-v0", LANES, autoreset_mode="SameStep", **SMALL)
    np.testing.assert_array_equal(ours.reset(), theirs.reset(seed=7)[0])
    ended = cut = 0
    for t in range(30):
        observation, rewards, dones, infos = ours.step(actions_at(t))
        want, reward, terminated, truncated, info = theirs.step(actions_at(t))
        np.testing.assert_array_equal(observation, want)
        np.testing.assert_array_equal(rewards, reward.astype(np.float32))
        np.testing.assert_array_equal(dones, terminated | truncated)
        assert rewards.dtype == np.float32 and len(infos) == LANES
        for lane in range(LANES):
            if not dones[lane]:
                assert infos[lane] == {}
                continue
            np.testing.assert_array_equal(
                infos[lane]["terminal_observation"], info["final_obs"][lane]
            )
            assert infos[lane]["TimeLimit.truncated"] == (truncated[lane] and not terminated[lane])
            assert 0 < infos[lane]["performance"] <= 1
            ended, cut = ended + 1, cut + infos[lane]["TimeLimit.truncated"]
    assert ended > cut > 0


def test_an_agent_learns_on_the_vector_environment():
    envs = VecMonitor(JaxsimVecEnv("CartPole3D-v0", LANES, seed=1, **SMALL))
    agent = PPO("MlpPolicy", envs, n_steps=32, batch_size=64, n_epochs=1)
    agent.learn(2 * 32 * LANES)
    assert 1 <= np.mean([e["l"] for e in agent.ep_info_buffer]) <= 9


def test_what_stable_baselines_asks_of_environments():
    envs = JaxsimVecEnv("CartPole3D-v0", 2, seed=3, render_mode="rgb_array", **SMALL)
    first = envs.reset()
    envs.seed(3)
    np.testing.assert_array_equal(envs.reset(), first)
    assert (envs.reset() != first).any()
    assert envs.get_attr("render_mode") == ["rgb_array"] * 2
    assert envs.env_is_wrapped(VecMonitor, [0]) == [False]
    assert len(envs.get_images()) == 2 and envs.render().ndim == 3
    for refused in (lambda: envs.set_attr("x", 1), lambda: envs.env_method("x")):
        with pytest.raises(AttributeError, match="one program"):
            refused()
    envs.close()


def test_options_are_those_of_the_next_reset():
    envs = JaxsimVecEnv("CartPole3D-v0", LANES, seed=5, **SMALL)
    envs.reset()
    for t in range(2):
        reached = envs.step(actions_at(t))[0]
    envs.set_options({"state": envs.envs.state})
    np.testing.assert_array_equal(envs.reset(), reached)
    assert (envs.reset() != reached).any()
    envs.set_options({"stat": 1})
    with pytest.raises(ValueError, match="unknown reset option 'stat'"):
        envs.reset()
    with pytest.raises(ValueError, match="options is a list; give one dict"):
        envs.set_options([{}] * LANES)


def test_it_keeps_most_of_the_speed_of_gymnasiums_vector_environment():
    """A ratio of one run; the adapter adds a list of dicts and a copy of the rewards."""
    lanes, steps = 64, 400
    actions = np.random.default_rng(0).integers(0, 5, (steps, lanes))
    ours = JaxsimVecEnv("CartPole3D-v0", lanes, seed=0)
    theirs = adapter.JaxsimVectorEnv("CartPole3D-v0", lanes, autoreset_mode="SameStep")
    ours.reset(), theirs.reset(seed=0)
    seconds = {}
    for _ in range(2):
        for envs in (ours, theirs):
            started = time.process_time()
            for action in actions:
                envs.step(action)
            seconds[type(envs)] = time.process_time() - started
    assert seconds[JaxsimVecEnv] < 1.5 * seconds[adapter.JaxsimVectorEnv]


def test_without_stable_baselines_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "stable_baselines3.common.vec_env", None)
    with pytest.raises(ImportError, match=r"jaxsim-novelty\[sb3\]"):
        runpy.run_module("jaxsim.adapters.sb3")
