"""Repetition of an action whenever a file changes."""

import time
from collections.abc import Callable
from pathlib import Path


def repeat_on_change(
    act: Callable[[], object],
    path: Path,
    seconds: float,
    wait: Callable[[float], object] = time.sleep,
    rounds: int | None = None,
) -> None:
    """Act now, and again each time a file has changed, until interrupted.

    A file that is missing or half written is tried again at the next check.

    Args:
      act: the action; its ValueError or OSError is raised the first time and ignored later.
      path: the file.
      seconds: time between two checks.
      wait: function that sleeps for a number of seconds; tests replace it.
      rounds: number of checks; None for no limit.

    Raises:
      ValueError: ``seconds`` is not positive.
    """
    if not seconds > 0:
        raise ValueError(f"live is {seconds}; it must be a number of seconds above 0")
    previous = _state(path)
    act()
    while rounds is None or rounds > 0:
        wait(seconds)
        current = _state(path)
        if current is not None and current != previous:
            try:
                act()
                previous = current
            except (ValueError, OSError):
                pass  # half written: the next check tries again
        rounds = None if rounds is None else rounds - 1


def _state(path: Path) -> tuple[int, int] | None:
    """Modification time and size of a file; None if it does not exist."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
