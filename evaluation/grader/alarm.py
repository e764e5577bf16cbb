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
    before = signal.signal(signal.SIGALRM, _ring)
    signal.setitimer(signal.ITIMER_REAL, min(limits.seconds, LONGEST) + GRACE, GRACE)
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
