"""`aivle_grader.abc.test_case`."""

from evaluation.grader.test_case import TestCase

__all__ = ["TestCase"]
