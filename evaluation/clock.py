"""Clocks: code with time limits takes a `Clock`, so that a test can script the time."""

import time
from typing import Protocol


class Clock(Protocol):
    """A clock that never goes back."""

    def now(self) -> float:
        """Time since a fixed moment, s."""
        ...


class SystemClock:
    """The computer's monotonic clock."""

    def now(self) -> float:
        """Time since a fixed moment, s."""
        return time.monotonic()


class ProcessorClock:
    """The processor time of this process, summed over threads; it does not advance in sleep."""

    def now(self) -> float:
        """Time since a fixed moment, s."""
        return time.process_time()


class ScriptedClock:
    """A clock that only `advance` moves.

    Args:
      start: initial time, s.
    """

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def now(self) -> float:
        """The scripted time, s."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Advance the clock.

        Raises:
          ValueError: a time that is negative or not a number.
        """
        if not seconds >= 0:
            raise ValueError(f"seconds is {seconds}; a clock cannot go back")
        self._now += seconds
