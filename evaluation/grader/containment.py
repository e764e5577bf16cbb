"""What keeps an agent's process from the grader's own, and ends what the agent leaves behind.

A process of its own is no prison: the agent has the rights of its user. On Linux this module takes
away what these rights allow between two processes of one user, and what is started and left. Other
systems have none of it; there a container is the only wall.
"""

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

SET_DUMPABLE: Final = 4
DROP_FROM_BOUNDING_SET: Final = 24
SET_CHILD_SUBREAPER: Final = 36
"""Options of prctl(2)."""

CAP_SYS_PTRACE: Final = 19
CAPABILITIES_3: Final = 0x20080522
"""Of capabilities(7): the right to reach into other processes, and the version of capset(2)."""

ROUNDS: Final = 100
"""How often leftovers are looked for; a process that forks faster than it is ended stays."""


@contextlib.contextmanager
def contained() -> Iterator[None]:
    """Close this process to agents, and end all processes of theirs when the context is left.

    Within it, others of the same user can neither trace this process nor open its files or memory,
    and whatever an agent starts stays a descendant of this process, also when it leaves its parent.
    """
    if sys.platform != "linux":
        yield
        return
    _prctl(SET_DUMPABLE, 0)
    _prctl(SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        end_leftovers()
        _prctl(SET_CHILD_SUBREAPER, 0)
        _prctl(SET_DUMPABLE, 1)


def step_aside() -> None:
    """Take from this process, an agent's, the means to reach its grader.

    It gets a session of its own, so that all that it starts can be ended with it. Where it is
    root's, it loses the right to reach into processes that `contained` has closed.
    """
    if hasattr(os, "setsid"):
        with contextlib.suppress(OSError):
            os.setsid()
    if sys.platform == "linux":
        _prctl(DROP_FROM_BOUNDING_SET, CAP_SYS_PTRACE)
        _drop_capability(CAP_SYS_PTRACE)


def end_session(pid: int) -> None:
    """End a process that has called `step_aside`, and whatever is in its group.

    Args:
      pid: of a child that has not been waited for, so that the number is still its own.
    """
    with contextlib.suppress(AttributeError, ProcessLookupError, PermissionError):
        if os.getpgid(pid) == pid:
            os.killpg(pid, signal.SIGKILL)


def end_leftovers() -> None:
    """End all descendants that are of another session than this process."""
    own = os.getsid(0)
    for _ in range(ROUNDS):
        strangers = [pid for pid in _descendants(os.getpid()) if _session(pid) not in (own, None)]
        if not strangers:
            return
        for pid in strangers:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def _descendants(pid: int) -> list[int]:
    """All processes below one, the nearest first."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        below = _children(waiting.pop())
        found += below
        waiting += below
    return found


def _children(pid: int) -> list[int]:
    texts = []
    with contextlib.suppress(OSError):  # a process that has ended has no children left
        for task in Path(f"/proc/{pid}/task").iterdir():
            texts.append((task / "children").read_text())
    return [int(word) for text in texts for word in text.split()]


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def _drop_capability(number: int) -> None:
    """Give up a capability for good; one that this process does not have is none to lose."""
    header = (ctypes.c_uint32 * 2)(CAPABILITIES_3, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable: bits 0 to 31, then the rest
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.capget(header, sets) == 0:
            for place in range(3):
                sets[place] &= ~(1 << number)
            libc.capset(header, sets)


def _prctl(option: int, value: int) -> None:
    """Set an option of this process; one that the system refuses stays as it is."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)
