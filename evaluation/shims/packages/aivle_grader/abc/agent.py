"""`aivle_grader.abc.agent`."""

from evaluation.grader.agent import Agent

__all__ = ["Agent"]
