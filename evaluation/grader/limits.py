"""Limits on time and memory of a submission, and agents under limits.

The time limit of a case counts from the agent's construction on, environment and evaluator
included. It is checked before, during and after each call of the agent; a call that does not return
in time is given up. This needs no signal, so limits work in any thread, may be nested, and may use
any clock. For an environment or an evaluator that hangs see `evaluation.grader.alarm`.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Self

from evaluation.clock import Clock, SystemClock
from evaluation.grader.agent import Agent
from evaluation.grader.exceptions import TimeoutException

POLL = 0.05
"""Longest wait for a call, s, between two looks at the clock."""
LEAST_MEMORY = 1 << 24
"""Smallest memory limit, bytes."""
CREATE = "create_agent"
"""Name of the call that makes the agent."""


@dataclass(frozen=True)
class Limits:
    """Limits of an agent in a test case.

    Attributes:
      time_limit: s; None, 0 or infinity for none.
      memory_limit: address space of the agent's process, bytes; None for none.
      isolate: whether the agent has a process of its own even without a memory limit.
      clock: measures time.
    """

    time_limit: float | None = None
    memory_limit: int | None = None
    isolate: bool = False
    clock: Clock = field(default_factory=SystemClock)

    def __post_init__(self) -> None:
        """Refuse limits out of bounds."""
        limit, memory = self.time_limit, self.memory_limit
        if limit is not None and not (_is_number(limit) and limit >= 0):
            raise ValueError(
                f"time_limit is {limit!r}; it must be a number of seconds, or 0 or None for none"
            )
        if memory is not None and not (isinstance(memory, int) and memory >= LEAST_MEMORY):
            raise ValueError(
                f"memory_limit is {memory!r}; it must be a whole number of bytes from "
                f"{LEAST_MEMORY}, or None for none"
            )

    @property
    def seconds(self) -> float:
        """The time limit, s; infinity for none."""
        return float(self.time_limit) if self.time_limit else math.inf

    @property
    def timed(self) -> bool:
        """Whether there is a time limit."""
        return self.seconds < math.inf

    @property
    def child(self) -> bool:
        """Whether the agent has a process of its own."""
        return self.isolate or self.memory_limit is not None


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


class Deadline:
    """The moment when a time limit is over.

    Args:
      limits: with the limit and the clock.
    """

    def __init__(self, limits: Limits) -> None:
        self._clock = limits.clock
        self._end = self._clock.now() + limits.seconds

    def check(self) -> None:
        """Raise `TimeoutException` if more than the limit has passed."""
        if self._clock.now() > self._end:
            raise TimeoutException

    def patience(self) -> float:
        """Time to wait before the next look at the clock, s."""
        return min(POLL, max(self._end - self._clock.now(), 1e-4))


class Host(ABC):
    """Thread or process of an agent.

    Entering it as a context starts it; leaving it ends it, also in the middle of a call.

    Attributes:
      deadline: when to give up, set after the start.
    """

    deadline: Deadline

    def create(self) -> None:
        """Make the agent."""
        self.call(CREATE)

    def call(self, method: str, *arguments: object) -> Any:
        """Call a method of the agent, and return or raise what it does.

        Raises:
          TimeoutException: the time is over before or after the call, or in the middle of it.
        """
        self.deadline.check()
        self._send(method, arguments)
        while not self._has_answer(self.deadline.patience()):
            self.deadline.check()
        value = self._answer()
        self.deadline.check()
        return value

    @abstractmethod
    def __enter__(self) -> Self:
        """Start it."""

    @abstractmethod
    def __exit__(self, *error: object) -> None:
        """End it."""

    @abstractmethod
    def _send(self, method: str, arguments: tuple[object, ...]) -> None:
        """Send a call of a method; `CREATE` makes the agent.

        Raises:
          TimeoutException: the time is over before the call is taken.
        """

    @abstractmethod
    def _has_answer(self, seconds: float) -> bool:
        """Wait at most `seconds` for the call to end; return whether it has."""

    @abstractmethod
    def _answer(self) -> Any:
        """Return the value of the call that has ended, or raise its exception."""


class LimitedAgent(Agent):
    """Proxy of an agent in a `Host`; other methods can be called in the same way."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def step(self, state: Any) -> Any:
        """Return the agent's action."""
        return self._host.call("step", state)

    def reset(self) -> None:
        """Reset the agent."""
        self._host.call("reset")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *arguments: self._host.call(name, *arguments)
