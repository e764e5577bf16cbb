"""Protect the grader's process from an agent's, and end the processes that the agent leaves.

An agent's process has the rights of its user. On Linux this module takes away what these rights
allow between two processes of one user, and ends processes that were left running. Other systems
have none of it; use a container there.
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
"""The right to reach into other processes, see capabilities(7), and the version of capset(2)."""

ROUNDS: Final = 100
"""How often leftovers are looked for; a process that forks faster than it is ended stays."""


@contextlib.contextmanager
def contained() -> Iterator[None]:
    """Protect this process from agents, and end all their processes at the end of the context.

    Inside, processes of the same user can neither trace this process nor open its files or memory.
    A process that an agent starts stays a descendant of this one, also when it leaves its parent.
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
    """Take from this process, an agent's, the rights over its grader.

    It gets a session of its own, so that all processes that it starts can be ended with it. As
    root, it loses the right to reach into processes that `contained` protects.
    """
    if hasattr(os, "setsid"):
        with contextlib.suppress(OSError):
            os.setsid()
    if sys.platform == "linux":
        _prctl(DROP_FROM_BOUNDING_SET, CAP_SYS_PTRACE)
        _drop_capability(CAP_SYS_PTRACE)


def end_session(pid: int) -> None:
    """End a process that has called `step_aside`, and all processes of its group.

    Args:
      pid: of a child that has not been waited for, so that the number is still its own.
    """
    with contextlib.suppress(AttributeError, ProcessLookupError, PermissionError):
        if os.getpgid(pid) == pid:
            os.killpg(pid, signal.SIGKILL)


def end_leftovers() -> None:
    """End all descendants in other sessions than that of this process."""
    session = os.getsid(0)
    for _ in range(ROUNDS):
        leftovers = [
            pid for pid in _descendants(os.getpid()) if _session(pid) not in (session, None)
        ]
        if not leftovers:
            return
        for pid in leftovers:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def _descendants(pid: int) -> list[int]:
    """All descendants of a process, parents before their children."""
    descendants: list[int] = []
    waiting = [pid]
    while waiting:
        children = _children(waiting.pop())
        descendants += children
        waiting += children
    return descendants


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
    """Give up a capability for good, if this process has it."""
    header = (ctypes.c_uint32 * 2)(CAPABILITIES_3, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable: bits 0 to 31, then the rest
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.capget(header, sets) == 0:
            for place in range(3):
                sets[place] &= ~(1 << number)
            libc.capset(header, sets)


def _prctl(option: int, value: int) -> None:
    """Set an option of this process; a refusal of the system is ignored."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)
