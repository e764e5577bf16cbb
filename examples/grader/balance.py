"""A test suite: the classic CartPole, one episode after the other and as a batch.

jaxsim grade examples/grader/balance.py examples/grader/my_agent.py
"""

import gymnasium as gym

import jaxsim.adapters.gymnasium  # noqa: F401 - registers jaxsim/...
from evaluation.grader import (
    ReinforcementLearningTestCase,
    RewardEvaluator,
    StepCountEvaluator,
    TestSuite,
    VectorTestCase,
)

ENV_ID = "jaxsim/CartPole-v1"

test_suite = TestSuite(
    suite_id="balance",
    cases=[
        ReinforcementLearningTestCase(
            t_max=100,
            seeds=[1, 2, 3],
            case_id="short",
            time_limit=60.0,
            n_runs=3,
            env=gym.make(ENV_ID),
            evaluator=StepCountEvaluator(),
        ),
        VectorTestCase(
            t_max=500,
            seeds=list(range(64)),
            case_id="whole episodes",
            time_limit=60.0,
            n_runs=64,
            env=gym.make_vec(ENV_ID, num_envs=64),
            evaluator=RewardEvaluator(),
            agent_init={"rate_gain": 0.4},
        ),
    ],
)
