"""`aivle_grader.test_case`."""

from evaluation.grader.cases import ReinforcementLearningTestCase

__all__ = ["ReinforcementLearningTestCase"]
