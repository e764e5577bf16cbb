"""`aivle_grader.abc.util`."""

from evaluation.grader.alarm import time_limiter

__all__ = ["time_limiter"]
