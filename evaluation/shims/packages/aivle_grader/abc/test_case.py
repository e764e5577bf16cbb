"""`aivle_grader.abc.test_case`."""

from evaluation.grader.cases import TestCase

__all__ = ["TestCase"]
