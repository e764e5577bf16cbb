"""Pure agents are graded one episode after the other and in a batch, with the same result."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="needs the extra: jaxsim-novelty[gymnasium]")

import gymnasium

import jaxsim.adapters.gymnasium  # noqa: F401 - registers our environments
from evaluation.grader import (
    PureAgent,
    ReinforcementLearningTestCase,
    RewardEvaluator,
    TestSuite,
    VectorTestCase,
)
from jaxsim import agents, rng

ENV_ID = "jaxsim/CartPole-v1"
RUNS = 12


def _counting(memory, observation, key):
    """Random pushes, but every third to where the pole leans; it counts its steps."""
    coin = (rng.bits(rng.words(key), 0) & 1).astype(jnp.int32)
    leaning = (observation.angle > 0).astype(jnp.int32)
    action = jnp.where(memory % 3 == 0, leaning, coin)
    return action, agents.NoveltyPrediction.none(), memory + 1


counting = agents.Agent(
    "counting", _counting, init=lambda key: jnp.int32(7), begin=lambda memory, key: jnp.int32(0)
)


@pytest.fixture(scope="module")
def worlds():
    return gymnasium.make(ENV_ID), gymnasium.make_vec(ENV_ID, num_envs=RUNS)


@pytest.mark.requirement(70)
def test_a_batch_gives_the_same_dictionary(worlds):
    one, many = worlds
    seeds = list(range(100, 100 + RUNS))

    def graded(kind, env, seed):
        case = kind(500, seeds, "counting", 60.0, RUNS, env, RewardEvaluator())
        return TestSuite(1, [case]).run(lambda: PureAgent(counting, env, seed=seed))

    result = graded(ReinforcementLearningTestCase, one, 3)
    assert result["results"][0]["result"]["error"] is None
    assert graded(VectorTestCase, many, 3) == result
    assert len(set(result["results"][0]["result"]["detail"])) > RUNS // 2
    assert graded(VectorTestCase, many, 4) != result


def test_without_an_environment_it_sees_vectors():
    def act(memory, observation, key):
        return jnp.argmax(observation), agents.NoveltyPrediction.none(), memory

    agent = PureAgent(agents.Agent("largest", act))
    agent.reset()
    assert agent.step(np.array([0.0, 2.0, 1.0])) == 1
    agent.reset()
    np.testing.assert_array_equal(agent.step(np.eye(3)), [0, 1, 2])


def test_another_environment_is_refused():
    with pytest.raises(ValueError, match=r"it must be one of jaxsim\.adapters\.gymnasium"):
        PureAgent(counting, gymnasium.make("CartPole-v1"))
    with pytest.raises(ValueError, match="seed is -1"):
        PureAgent(counting, seed=-1)


def test_memory_goes_on_from_episode_to_episode():
    """As far as the agent's `begin` lets it."""

    def act(memory, observation, key):
        return memory, agents.NoveltyPrediction.none(), memory + 1

    agent = PureAgent(agents.Agent("counter", act, init=lambda key: jnp.int32(0)))
    actions = []
    for _ in range(2):
        agent.reset()
        actions += [agent.step(np.zeros(2)) for _ in range(3)]
    assert actions == [0, 1, 2, 3, 4, 5]
    assert jax.tree.leaves(agent.step(np.zeros(2))) == [6]
