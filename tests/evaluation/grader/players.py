"""Agents of the tests. They import little: child processes import this module as well."""

import os
import signal
import threading
import time
from typing import Any, ClassVar

from evaluation.grader import Agent


class Always(Agent):
    """Does the same in every state, or in every one of a batch."""

    def __init__(self, action: int = 0) -> None:
        self.action = action

    def step(self, state: Any) -> Any:
        return self.action + 0 * self.lanes(state)

    def reset(self) -> None:
        pass

    @staticmethod
    def lanes(state: Any) -> Any:
        """Zero, or one for each lane, from the shape of a batch."""
        first = state[..., 0]
        return (first != first).astype(int) if getattr(first, "ndim", 0) else 0


class Alternate(Always):
    """0, 1, 0, 1, ... from the start of each episode."""

    def step(self, state: Any) -> Any:
        self.action = 1 - self.action
        return super().step(state)

    def reset(self) -> None:
        self.action = 1


class PoleSign(Always):
    """Pushes to where the pole leans."""

    def step(self, state: Any) -> Any:
        chosen = state[..., 2] > 0
        return chosen.astype(int) if getattr(chosen, "ndim", 0) else int(chosen)


class PD(PoleSign):
    """Balances: looks at the rate too."""

    def step(self, state: Any) -> Any:
        chosen = state[..., 2] + 0.5 * state[..., 3] > 0
        return chosen.astype(int) if getattr(chosen, "ndim", 0) else int(chosen)


class CrashAt(Always):
    """Fails after a number of steps, counted over episodes."""

    def __init__(self, steps: int = 12) -> None:
        super().__init__()
        self.remaining = steps

    def step(self, state: Any) -> Any:
        if not self.remaining:
            raise RuntimeError("boom")
        self.remaining -= 1
        return super().step(state)


class Slow(Always):
    """Takes its time, by a clock that it moves on."""

    def __init__(self, clock: Any, seconds: float) -> None:
        super().__init__()
        self.clock, self.seconds = clock, seconds

    def step(self, state: Any) -> Any:
        self.clock.advance(self.seconds)
        return super().step(state)


class Hanging(Always):
    """Never comes back, until it is told to."""

    release = threading.Event()
    after: ClassVar[list[str]] = []

    def step(self, state: Any) -> Any:
        self.release.wait()
        self.after.append("went on")


class Spinning(Always):
    """Computes for ever."""

    def step(self, state: Any) -> Any:
        while True:
            pass


class Stubborn(Always):
    """Computes for ever, and catches what it can."""

    def step(self, state: Any) -> Any:
        while True:
            try:
                while True:
                    pass
            except Exception:
                continue


class CustomError(Exception):
    """An exception that cannot be made from its message alone."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"{what}: {why}")


class Raising(Always):
    """Raises something."""

    errors: ClassVar[dict[str, Any]] = {
        "own": lambda: CustomError("state", "too far"),
        "key": lambda: KeyError("angle"),
        "exit": lambda: SystemExit(3),
        "file": lambda: FileNotFoundError(2, "none", "model"),
        "memory": MemoryError,
        "half a character": lambda: ValueError("\ud800"),
        "endless": lambda: ValueError("a" * 10_000),
    }

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what

    def step(self, state: Any) -> Any:
        raise self.errors[self.what]()


class Failing(Always):
    """Cannot be made."""

    def __init__(self) -> None:
        raise RuntimeError("no model file")


class Returning(Always):
    """Returns nonsense."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what

    def step(self, state: Any) -> Any:
        nonsense = {"none": None, "text": "left", "far": 7, "nan": float("nan"), "fatal": Fatal()}
        return nonsense.get(self.what, self)


class Dying(Always):
    """Ends its process."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how

    def step(self, state: Any) -> Any:
        if self.how == "exit":
            os._exit(5)
        os.kill(os.getpid(), signal.SIGKILL)


class Hungry(Always):
    """Wants memory."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.store = bytearray(size)


class Sleeping(Always):
    """Sleeps a little in every step."""

    def step(self, state: Any) -> Any:
        time.sleep(0.02)
        return super().step(state)


def incomplete() -> Any:
    """Makes what is no agent."""
    return object()


class ForOne(Always):
    """Knows nothing of batches."""

    def step(self, state: Any) -> Any:
        return 0


def incomplete_for_batches() -> Any:
    """Makes an agent that answers for one lane only."""
    return ForOne()


class Fatal:
    """Ends the process that unpickles it."""

    def __reduce__(self) -> Any:
        return os._exit, (4,)
