"""Time as an argument: what has a limit reads it from a `Clock`, so that a test can script it."""

import time
from typing import Protocol


class Clock(Protocol):
    """A clock that never goes back."""

    def now(self) -> float:
        """Time since some moment that does not change, s."""
        ...


class SystemClock:
    """The computer's monotonic clock."""

    def now(self) -> float:
        """Time since some moment that does not change, s."""
        return time.monotonic()


class ProcessorClock:
    """The processor time of this process, all threads together; it stands still in sleep."""

    def now(self) -> float:
        """Time since some moment that does not change, s."""
        return time.process_time()


class ScriptedClock:
    """A clock that stands still until it is told to go on.

    Args:
      start: time that it shows first, s.
    """

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def now(self) -> float:
        """Time that the script has come to, s."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Let time pass.

        Raises:
          ValueError: a time that is negative or not a number.
        """
        if not seconds >= 0:
            raise ValueError(f"seconds is {seconds}; a clock only goes on")
        self._now += seconds
