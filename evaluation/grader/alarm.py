"""Time limits by signals, for environments and evaluators that hang."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from evaluation.clock import SystemClock
from evaluation.grader.exceptions import TimeoutException
from evaluation.grader.limits import Limits

GRACE = 1.0
"""Time after a limit, s, for its case to notice it without a signal."""
LONGEST = 1e8


@contextmanager
def backstop(limits: Limits) -> Iterator[None]:
    """Raise `TimeoutException` in the context a second after the time limit, and again.

    Only the main thread of a POSIX system receives signals. Elsewhere, or if another alarm is set,
    nothing happens. The previous handler is restored.
    """
    if not (limits.timed and isinstance(limits.clock, SystemClock) and _free()):
        yield
        return
    with _alarm(min(limits.seconds, LONGEST) + GRACE):
        yield


def begin_anew(seconds: float | None) -> None:
    """Give a running `backstop` or `time_limiter` its whole time from here on, if one is set."""
    main = threading.current_thread() is threading.main_thread()
    if seconds and main and signal.getsignal(signal.SIGALRM) is _ring:
        signal.setitimer(signal.ITIMER_REAL, min(seconds, LONGEST) + GRACE, GRACE)


@contextmanager
def time_limiter(seconds: float | None) -> Iterator[None]:
    """Raise `TimeoutException` in the context as soon as the time is over, and again.

    Args:
      seconds: fractions count; 0, infinity or None for no limit.

    Raises:
      ValueError: a number that is not a time.
      RuntimeError: signals cannot be received here, or another alarm is set.
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
    """Raise after `seconds`, and then every `GRACE` seconds."""
    before = signal.signal(signal.SIGALRM, _ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, GRACE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL if before is None else before)


def _free() -> bool:
    """Whether an alarm can be set, and none is set."""
    main = threading.current_thread() is threading.main_thread()
    return main and hasattr(signal, "setitimer") and not any(signal.getitimer(signal.ITIMER_REAL))


def _ring(*_: object) -> None:
    raise TimeoutException
