"""Grading of submitted agents: the protocol of aiVLE's grader, on any Gymnasium environment.

import gymnasium as gym
from evaluation.grader import ReinforcementLearningTestCase, RewardEvaluator, TestSuite
"""

from typing import TYPE_CHECKING

from evaluation.lazy import exports

if TYPE_CHECKING:
    from evaluation.grader.agent import Agent
    from evaluation.grader.batched import VectorTestCase
    from evaluation.grader.evaluators import Evaluator, RewardEvaluator, StepCountEvaluator
    from evaluation.grader.exceptions import (
        AgentError,
        AgentNotFound,
        TestSuiteNotFound,
        TimeoutException,
    )
    from evaluation.grader.pure import PureAgent
    from evaluation.grader.results import EvaluationResult, TestResult
    from evaluation.grader.suite import TestSuite
    from evaluation.grader.test_case import ReinforcementLearningTestCase, TestCase

_HOMES = {
    "Agent": "agent",
    "AgentError": "exceptions",
    "AgentNotFound": "exceptions",
    "EvaluationResult": "results",
    "Evaluator": "evaluators",
    "PureAgent": "pure",
    "ReinforcementLearningTestCase": "test_case",
    "RewardEvaluator": "evaluators",
    "StepCountEvaluator": "evaluators",
    "TestCase": "test_case",
    "TestResult": "results",
    "TestSuite": "suite",
    "TestSuiteNotFound": "exceptions",
    "TimeoutException": "exceptions",
    "VectorTestCase": "batched",
}

__all__ = [
    "Agent",
    "AgentError",
    "AgentNotFound",
    "EvaluationResult",
    "Evaluator",
    "PureAgent",
    "ReinforcementLearningTestCase",
    "RewardEvaluator",
    "StepCountEvaluator",
    "TestCase",
    "TestResult",
    "TestSuite",
    "TestSuiteNotFound",
    "TimeoutException",
    "VectorTestCase",
]

__getattr__, __dir__ = exports(__name__, _HOMES)
