"""An end to environments and evaluators that hang, where a signal can reach them."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from evaluation.clock import SystemClock
from evaluation.grader.exceptions import TimeoutException
from evaluation.grader.limits import Limits

GRACE = 1.0
"""Time after a limit, s, in which its case may find by itself that the time is over."""
LONGEST = 1e8


@contextmanager
def backstop(limits: Limits) -> Iterator[None]:
    """Raise `TimeoutException` in what runs here a second after the time limit, and again.

    Only the main thread of a POSIX system hears signals; elsewhere, and where somebody else has set
    an alarm, nothing happens. The handler that was there before is put back.
    """
    if not (limits.timed and isinstance(limits.clock, SystemClock) and _free()):
        yield
        return
    with _alarm(min(limits.seconds, LONGEST) + GRACE):
        yield


@contextmanager
def time_limiter(seconds: float | None) -> Iterator[None]:
    """Raise `TimeoutException` in what runs here as soon as the time is over, and again.

    Args:
      seconds: fractions count; 0, infinity or None for no limit.

    Raises:
      ValueError: a number that is no time.
      RuntimeError: no signal can be heard here, or somebody else has set an alarm.
    """
    limits = Limits(seconds)
    if not limits.timed:
        yield
        return
    if not _free():
        raise RuntimeError(
            "time_limiter works in the main thread of a POSIX system, where no alarm is set; give "
            "the test case a time_limit instead"
        )
    with _alarm(min(limits.seconds, LONGEST)):
        yield


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Ring after so long, and then every `GRACE` seconds."""
    before = signal.signal(signal.SIGALRM, _ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, GRACE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL if before is None else before)


def _free() -> bool:
    """Whether an alarm can be set, and nobody else has set one."""
    main = threading.current_thread() is threading.main_thread()
    return main and hasattr(signal, "setitimer") and not any(signal.getitimer(signal.ITIMER_REAL))


def _ring(*_: Any) -> None:
    raise TimeoutException
