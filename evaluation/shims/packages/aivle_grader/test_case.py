"""`aivle_grader.test_case`."""

from evaluation.grader.test_case import ReinforcementLearningTestCase

__all__ = ["ReinforcementLearningTestCase"]
