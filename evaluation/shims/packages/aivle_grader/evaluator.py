"""`aivle_grader.evaluator`."""

from evaluation.grader.evaluators import RewardEvaluator, StepCountEvaluator

__all__ = ["RewardEvaluator", "StepCountEvaluator"]
