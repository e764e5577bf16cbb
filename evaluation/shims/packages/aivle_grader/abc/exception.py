"""`aivle_grader.abc.exception`."""

from evaluation.grader.exceptions import AgentNotFound, TestSuiteNotFound, TimeoutException

__all__ = ["AgentNotFound", "TestSuiteNotFound", "TimeoutException"]
