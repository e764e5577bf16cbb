"""Protect the grader's process from an agent's, and end the processes that the agent leaves.

An agent's process has the rights of its user. On Linux this module takes away what these rights
allow between two processes of one user, and ends processes that were left running. Other systems
have none of it; use a container there.
"""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from evaluation.grader.one_group import stay_in_group
from evaluation.grader.system import drop_capability, prctl

SET_DUMPABLE: Final = 4
DROP_FROM_BOUNDING_SET: Final = 24
SET_CHILD_SUBREAPER: Final = 36
"""Options of prctl(2)."""

CAP_SYS_PTRACE: Final = 19
"""The right to reach into other processes, see capabilities(7)."""

PATIENCE: Final = 10.0
"""Time for leftovers to end, s; one that holds much memory takes some."""


@contextlib.contextmanager
def contained() -> Iterator[None]:
    """Protect this process from agents, and end all their processes at the end of the context.

    Inside, processes of the same user can neither trace this process nor open its files or memory,
    and none that starts there has its standard output. A process that an agent starts stays a
    descendant of this one, also when it leaves its parent.

    Raises:
      OSError: a process of an agent cannot be ended.
    """
    if sys.platform != "linux":
        yield
        return
    prctl(SET_DUMPABLE, 0)
    prctl(SET_CHILD_SUBREAPER, 1)
    try:
        with _output_hidden():
            yield
    finally:
        try:
            end_leftovers()
        finally:
            prctl(SET_CHILD_SUBREAPER, 0)
            prctl(SET_DUMPABLE, 1)


@contextlib.contextmanager
def _output_hidden() -> Iterator[None]:
    """Put the standard error in the place of the standard output, which children would inherit."""
    output = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(output, 1)
        os.close(output)


def step_aside() -> None:
    """Take from this process, an agent's, the rights over its grader.

    It gets a session and a group of its own, so that all processes that it starts can be ended with
    it. As root, it loses the right to reach into processes that `contained` protects.
    """
    if hasattr(os, "setsid"):
        with contextlib.suppress(OSError):
            os.setsid()
    if sys.platform == "linux":
        prctl(DROP_FROM_BOUNDING_SET, CAP_SYS_PTRACE)
        drop_capability(CAP_SYS_PTRACE)
    stay_in_group()


def end_session(pid: int) -> None:
    """End a process that has called `step_aside`, and all processes of its group.

    Args:
      pid: of a child that has not been waited for, so that the number is still its own.
    """
    with contextlib.suppress(AttributeError, ProcessLookupError, PermissionError):
        if os.getpgid(pid) == pid:
            os.killpg(pid, signal.SIGKILL)


def end_leftovers() -> None:
    """End all descendants in other sessions than that of this process.

    Where `stay_in_group` works, `end_session` has ended them.

    Raises:
      OSError: some are left, as one that is another process each time it is looked for.
    """
    session = os.getsid(0)
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        # One that has ended in the meantime has no session, and may have left another.
        leftovers = [pid for pid in _descendants(os.getpid()) if _session(pid) != session]
        if not leftovers:
            return
        for pid in leftovers:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
    raise OSError("the agent has left processes that cannot be ended; nothing is graded")


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
