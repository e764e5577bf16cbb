"""Grading of submitted agents: the protocol of aiVLE's grader, on any Gymnasium environment.

    import gymnasium as gym
    from evaluation.grader import ReinforcementLearningTestCase, RewardEvaluator, TestSuite

| module | subject |
| --- | --- |
| `suite` | suites of test cases |
| `cases` | test cases: episodes with limits and an evaluator |
| `batched` | test cases with all episodes in parallel |
| `evaluators` | measurements of episodes |
| `results` | results as objects and strict JSON |
| `exceptions` | exceptions of the grader |
| `agent` | the interface of graded agents |
| `pure` | pure agents as graded agents |
| `environments` | both generations of Gym interfaces |
| `loading` | suites and submissions by name |
| `limits` | limits of time and memory |
| `hosting` | the choice of direct calls, a thread or a process by limits |
| `alarm` | time limits by signals |
| `threads` | an agent in its own thread |
| `processes` | an agent in its own process |
| `child` | the agent's side of that process |
| `answers` | its messages, received piece by piece |
| `containment` | protection from the agent's processes |
| `one_group` | a filter that keeps them in one process group |
| `system` | calls of Linux that Python lacks |
| `commands` | `jaxsim grade` |
"""

from typing import TYPE_CHECKING

from evaluation.lazy import exports

if TYPE_CHECKING:
    from evaluation.grader.agent import Agent as Agent
    from evaluation.grader.batched import VectorTestCase as VectorTestCase
    from evaluation.grader.cases import (
        ReinforcementLearningTestCase as ReinforcementLearningTestCase,
    )
    from evaluation.grader.cases import TestCase as TestCase
    from evaluation.grader.evaluators import Evaluator as Evaluator
    from evaluation.grader.evaluators import RewardEvaluator as RewardEvaluator
    from evaluation.grader.evaluators import StepCountEvaluator as StepCountEvaluator
    from evaluation.grader.exceptions import AgentError as AgentError
    from evaluation.grader.exceptions import AgentNotFound as AgentNotFound
    from evaluation.grader.exceptions import TestSuiteNotFound as TestSuiteNotFound
    from evaluation.grader.exceptions import TimeoutException as TimeoutException
    from evaluation.grader.pure import PureAgent as PureAgent
    from evaluation.grader.results import EvaluationResult as EvaluationResult
    from evaluation.grader.results import TestResult as TestResult
    from evaluation.grader.suite import TestSuite as TestSuite

__getattr__, __dir__ = exports(__name__)
