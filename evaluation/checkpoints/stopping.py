"""Signals that ask a run to end, handled between two segments."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

STOPPED = 75
"""Exit code of a run that was asked to end and has saved: EX_TEMPFAIL of sysexits.h."""

AGAIN = 0.02
"""Delay before a signal whose exception was lost is sent again, s."""
HEARD = (signal.SIGTERM, signal.SIGINT)
INTERRUPTING = (signal.SIGTERM, signal.SIGHUP) if hasattr(signal, "SIGHUP") else (signal.SIGTERM,)


class Stopped(Exception):
    """A run has saved and ended because it was asked to."""


class Ended(KeyboardInterrupt):
    """A signal other than Ctrl-C asked the process to end; open files are closed as for Ctrl-C.

    Attributes:
      number: of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@contextmanager
def interruptible() -> Iterator[None]:
    """Make SIGTERM and SIGHUP interrupt as Ctrl-C does, so that results are written.

    Nothing changes outside of the main thread, and ignored signals stay ignored, as under nohup.
    Exceptions raised during garbage collection are lost; the signal is then sent again.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {
        number: signal.getsignal(number)
        for number in INTERRUPTING
        if signal.getsignal(number) == signal.SIG_DFL
    }

    def end(number: int, frame: FrameType | None) -> None:
        raise Ended(number)

    previous_hook = sys.unraisablehook

    def again(unraisable: "sys.UnraisableHookArgs") -> None:
        if not isinstance(unraisable.exc_value, Ended):
            previous_hook(unraisable)
            return
        # After a delay, or it would be lost as well.
        number = unraisable.exc_value.number
        threading.Timer(AGAIN, os.kill, (os.getpid(), number)).start()

    for number in handlers:
        signal.signal(number, end)
    sys.unraisablehook = again
    try:
        yield
    finally:
        sys.unraisablehook = previous_hook
        for number, handler in handlers.items():
            signal.signal(number, handler)


@dataclass
class Stop:
    """Whether a run was asked to end.

    Attributes:
      by: name of the signal; None before.
    """

    by: str | None = None


@contextmanager
def hearing(
    say: Callable[[str], object],
    signals: Sequence[signal.Signals] = HEARD,
    words: str = "saving when this segment is over; once more ends it at once",
) -> Iterator[Stop]:
    """Record SIGTERM and Ctrl-C instead of ending; a second signal ends the process at once.

    Outside of the main thread, where Python receives no signals, nothing is recorded.

    Args:
      say: called with a line for people when the first signal comes.
      signals: that are recorded.
      words: text of that line.

    Yields:
      A `Stop`, which the first signal sets.
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    handlers = {number: signal.getsignal(number) for number in signals}

    def restore() -> None:
        for number, handler in handlers.items():
            signal.signal(number, handler)

    def note(number: int, frame: FrameType | None) -> None:
        stop.by = signal.Signals(number).name
        restore()
        say(f"{stop.by}: {words}")

    for number in signals:
        signal.signal(number, note)
    try:
        yield stop
    finally:
        restore()
