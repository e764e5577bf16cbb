"""Exceptions of the grader."""


class TimeoutException(Exception):
    """The time limit of a test case is over."""

    def __init__(self, message: str = "Timed out!") -> None:
        super().__init__(message)


class AgentError(Exception):
    """An agent failed without an exception that can be raised here.

    Its process died or cannot talk to this one, or it raised what would stop the grader itself. An
    exception of the agent's own class, raised in a child process, arrives as a subclass of this
    one with the same name: the grader never loads the submission's classes.
    """


class TestSuiteNotFound(ValueError):
    """There is no such test suite."""

    __test__ = False  # not a test of pytest's


class AgentNotFound(ValueError):
    """There is no such agent."""
