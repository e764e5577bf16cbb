"""Agents of the track: their base class, their timer, and how a file is loaded."""

import contextlib
import importlib.util
import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evaluation import errors
from evaluation.clock import Clock
from evaluation.gvgai.observation import SerializableStateObservation

CLASS_NAME = "Agent"
"""Name of the class in an agent's file."""


class ElapsedTimer:
    """Tells a method how much of its time is left.

    The names are those of the framework's timer, for agents that were written for it.

    Args:
      clock: measures time.
      seconds: the limit, s.
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock, self._seconds, self._start = clock, seconds, clock.now()

    def elapsedMillis(self) -> float:
        """Time since the method was called, ms, to the microsecond."""
        return round(1e3 * (self._clock.now() - self._start), 3)

    def remainingTimeMillis(self) -> float:
        """Time until the limit, ms, to the microsecond; negative when it has passed."""
        return round(1e3 * self._seconds - self.elapsedMillis(), 3)

    def exceededMaxTime(self) -> bool:
        """Whether the limit has passed."""
        return self.remainingTimeMillis() < 0

    def copy(self) -> "ElapsedTimer":
        """Return an independent timer with the same start and limit."""
        twin = ElapsedTimer(self._clock, self._seconds)
        twin._start = self._start
        return twin

    def setMaxTimeMillis(self, millis: float) -> None:
        """Change the limit of this timer; the rules ignore it."""
        self._seconds = millis / 1e3


class TrackAgent(ABC):
    """Base class of agents; a class with the same methods need not derive from it.

    The constructor is given the first observation and a timer, or nothing if it takes nothing.
    `sso` is a `SerializableStateObservation`, `elapsed_timer` an `ElapsedTimer` with the limit of
    the call. No model of the game is given.
    """

    def __init__(  # noqa: B027 - an empty constructor is allowed
        self, sso: SerializableStateObservation | None = None, elapsed_timer: Any = None
    ) -> None:
        """Prepare for the track; at most 1 s."""

    def init(self, sso: SerializableStateObservation, elapsed_timer: ElapsedTimer) -> object:
        """Prepare for a level, at most 1 s; the return value is ignored."""
        return None

    @abstractmethod
    def act(self, sso: SerializableStateObservation, elapsed_timer: ElapsedTimer) -> str:
        """Return the name of an action, within 40 ms; "ACTION_ESCAPE" breaks the level off."""

    @abstractmethod
    def result(self, sso: SerializableStateObservation, elapsed_timer: ElapsedTimer) -> int:
        """Learn from a level that is over; return the next training level, 0, 1 or 2."""


def load_class(path: Path) -> type:
    """Import the class `Agent` from a file.

    The file can import modules beside it.

    Raises:
      ValueError: no such file, it cannot be imported, or has no such class.
    """
    if not path.is_file():
        raise ValueError(
            f"agent {path} is not a file; name a Python file with a class {CLASS_NAME}"
        )
    spec = importlib.util.spec_from_file_location(f"_gvgai_agent_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"agent {path} is not a Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        with contextlib.chdir("."):  # also for agents that go to another folder
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise ValueError(f"agent {path} cannot be imported: {errors.one_line(error)}") from error
    agent_class = getattr(module, CLASS_NAME, None)
    if not isinstance(agent_class, type):
        raise ValueError(f"agent {path} has no class {CLASS_NAME}; define one")
    if inspect.isabstract(agent_class):
        missing = ", ".join(sorted(getattr(agent_class, "__abstractmethods__", ())))
        raise ValueError(f"agent {path}: class {CLASS_NAME} lacks {missing}; define them")
    for name in ("init", "act", "result"):
        if not callable(getattr(agent_class, name, None)):
            raise ValueError(f"agent {path}: class {CLASS_NAME} has no method {name}; define it")
    return agent_class


def fitting(function: Callable[..., object], *arguments: object) -> tuple[object, ...]:
    """Return the arguments that a function takes: all, or the first few.

    A function without a known signature gets all.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return arguments
    for count in range(len(arguments), -1, -1):
        try:
            signature.bind(*arguments[:count])
        except TypeError:
            continue
        return arguments[:count]
    return arguments
