"""Doing something again whenever a file changes."""

import time
from collections.abc import Callable
from pathlib import Path


def repeat_on_change(
    act: Callable[[], object],
    watched: Path,
    seconds: float,
    wait: Callable[[float], object] = time.sleep,
    rounds: int | None = None,
) -> None:
    """Act now, and again each time a file has changed, until interrupted.

    A file that is missing or half written when it is looked at is looked at again later.

    Args:
      act: what is done; a ValueError or OSError of the first time is passed on, later ones are not.
      watched: the file.
      seconds: between two looks.
      wait: sleeps for so many seconds; an argument for tests.
      rounds: looks after the first; without end if None.

    Raises:
      ValueError: ``seconds`` that are not positive.
    """
    if not seconds > 0:
        raise ValueError(f"live is {seconds}; it must be a number of seconds above 0")
    seen = _state(watched)
    act()
    while rounds is None or rounds > 0:
        wait(seconds)
        now = _state(watched)
        if now is not None and now != seen:
            try:
                act()
                seen = now
            except (ValueError, OSError):
                pass  # half written: the next look tries again
        rounds = None if rounds is None else rounds - 1


def _state(path: Path) -> tuple[int, int] | None:
    """What tells one version of a file from the next; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
