"""Signals that ask a run to end, heard between two segments."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

STOPPED = 75
"""Exit code of a run that was asked to end, has saved and can go on: EX_TEMPFAIL of sysexits.h."""

AGAIN = 0.02
"""s, until a signal is sent again that came where nothing can be raised."""
HEARD = (signal.SIGTERM, signal.SIGINT)
INTERRUPTING = (signal.SIGTERM, signal.SIGHUP) if hasattr(signal, "SIGHUP") else (signal.SIGTERM,)


class Stopped(Exception):
    """A run has saved and ended because it was asked to."""


class Ended(KeyboardInterrupt):
    """The process was asked to end by a signal other than Ctrl-C; what is open closes alike.

    Attributes:
      number: of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@contextmanager
def interruptible() -> Iterator[None]:
    """Have SIGTERM and SIGHUP interrupt as Ctrl-C does, so that results are written.

    Outside of the main thread nothing changes, nor does a signal that is ignored, as under nohup.
    What is raised while an object is collected is lost: the signal is sent again then.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {
        number: signal.getsignal(number)
        for number in INTERRUPTING
        if signal.getsignal(number) == signal.SIG_DFL
    }

    def end(number: int, frame: FrameType | None) -> None:
        raise Ended(number)

    lost = sys.unraisablehook

    def again(unraisable: Any) -> None:
        if not isinstance(unraisable.exc_value, Ended):
            lost(unraisable)
            return
        # A little later, when this is over, or it would be lost as well.
        number = unraisable.exc_value.number
        threading.Timer(AGAIN, os.kill, (os.getpid(), number)).start()

    for number in before:
        signal.signal(number, end)
    sys.unraisablehook = again
    try:
        yield
    finally:
        sys.unraisablehook = lost
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass
class Stop:
    """Whether a run was asked to end.

    Attributes:
      by: name of the signal; None while nothing has asked.
    """

    by: str | None = None


@contextmanager
def hearing(
    say: Callable[[str], object],
    signals: Sequence[signal.Signals] = HEARD,
    words: str = "saving when this segment is over; once more ends it at once",
) -> Iterator[Stop]:
    """Note SIGTERM and Ctrl-C instead of ending at once; a second one ends at once.

    Outside of the main thread, where Python hears no signals, nothing is noted.

    Args:
      say: is given a line for people when the first signal comes.
      signals: that are noted.
      words: of that line.

    Yields:
      What was noted.
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.getsignal(number) for number in signals}

    def restore() -> None:
        for number, handler in before.items():
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
