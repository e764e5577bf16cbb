"""`aivle_grader.abc.evaluator`."""

from evaluation.grader.evaluators import Evaluator
from evaluation.grader.results import EvaluationResult

__all__ = ["EvaluationResult", "Evaluator"]
