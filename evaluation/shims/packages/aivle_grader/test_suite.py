"""`aivle_grader.test_suite`."""

from evaluation.grader.results import TestResult
from evaluation.grader.suite import TestSuite

__all__ = ["TestResult", "TestSuite"]
