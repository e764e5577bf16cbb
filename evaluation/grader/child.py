"""The agent's side of its process. It imports little, because the memory limit counts it."""

import builtins
import contextlib
import io
import os
import pickle
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

from evaluation.grader.agent import checked_agent
from evaluation.grader.containment import step_aside
from evaluation.grader.exceptions import AgentError
from evaluation.grader.limits import CREATE

RETURNED, RAISED = "returned", "raised"

# Functions that pickles of NumPy's arrays and numbers name, by version.
_NUMPY = {
    (f"numpy.{core}.{module}", name)
    for core in ("core", "_core")
    for module, name in (
        ("multiarray", "_reconstruct"),
        ("multiarray", "scalar"),
        ("numeric", "_frombuffer"),
    )
}
SAFE = _NUMPY | {("numpy", "ndarray"), ("numpy", "dtype"), ("_codecs", "encode")}
"""Names that an agent's answer may hold; none of them runs code of the submission."""


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in SAFE:
            raise AgentError(
                f"it sent an object of {module}.{name}; an action must be made of numbers, strings "
                "and arrays"
            )
        return super().find_class(module, name)


def loads(data: bytes) -> Any:
    """Read an answer of an agent's process, without running code of the submission."""
    return _Plain(io.BytesIO(data)).load()


def check_memory_limit(memory_limit: int | None) -> None:
    """Refuse a limit on a system that has none.

    Raises:
      ValueError: this system has no limits of address space.
    """
    if memory_limit is not None and sys.platform == "win32":
        raise ValueError("memory_limit needs a POSIX system; leave it out")


def serve(connection: Connection, order: bytes, memory_limit: int | None) -> None:
    """Make an agent and call its methods, until the connection is closed.

    Args:
      connection: to the grader.
      order: pickled function and arguments of the submission.
      memory_limit: bytes of address space, None for no limit.
    """
    step_aside()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the grader ends this process
    with contextlib.suppress(OSError):
        os.dup2(2, 1)  # the agent's output is not part of the result
    try:
        _limit_memory(memory_limit)
        create_agent, agent_init = pickle.loads(order)
        connection.send_bytes(pickle.dumps((RETURNED, None)))
    except BaseException as error:
        connection.send_bytes(pickle.dumps((RAISED, _describe(error))))
        return
    agent: Any = None
    while True:
        try:
            method, arguments = pickle.loads(connection.recv_bytes())
        except (EOFError, OSError):
            return
        try:
            if method == CREATE:
                agent, value = checked_agent(create_agent(**agent_init)), None
            else:
                value = _portable(getattr(agent, method)(*arguments))
            reply = pickle.dumps((RETURNED, value))
        except BaseException as error:
            reply = pickle.dumps((RAISED, _describe(error)))
        connection.send_bytes(reply)


def _limit_memory(memory_limit: int | None) -> None:
    if memory_limit is not None:
        import resource  # POSIX only

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        limit = memory_limit if hard == resource.RLIM_INFINITY else min(memory_limit, hard)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _portable(value: object) -> object:
    """Turn arrays of other libraries into NumPy's."""
    if type(value).__module__.partition(".")[0] in ("builtins", "numpy"):
        return value
    if hasattr(value, "__array__"):
        import numpy as np

        return np.asarray(value)
    return value


def _describe(error: BaseException) -> tuple[str, str, tuple[object, ...]]:
    """An exception as plain values: its name, its message, and its arguments if they are plain."""
    try:
        message = str(error)
    except Exception:
        message = "an exception that cannot be printed"
    simple = all(isinstance(a, str | int | float | None) for a in error.args)
    return type(error).__name__, message, error.args if simple else (message,)


def exception(description: tuple[str, str, tuple[object, ...]]) -> Exception:
    """Build an exception of the same name: one of Python's own, or else an `AgentError`."""
    name, message, arguments = description
    kind = getattr(builtins, name, None)
    if isinstance(kind, type) and issubclass(kind, Exception):
        with contextlib.suppress(TypeError):
            rebuilt = kind(*arguments)
            # Some have more than their arguments, as the name of a file.
            return rebuilt if str(rebuilt) == message else kind(message)
    return type(name, (AgentError,), {"__module__": __name__})(message)
