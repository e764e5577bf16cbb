"""An agent in a thread of its own, so that its caller can give it up."""

import contextlib
import ctypes
import queue
import threading
from collections.abc import Mapping
from typing import Any, Self

from evaluation.grader.agent import CreateAgent, checked_agent
from evaluation.grader.exceptions import AgentError
from evaluation.grader.limits import CREATE, Host

Call = tuple[str, tuple[object, ...]]


class GivenUp(BaseException):
    """Ends an agent that was given up; the agent's `except Exception` does not catch it."""


class ThreadHost(Host):
    """Calls an agent in a daemon thread.

    A thread cannot be ended from outside. One that was given up gets an exception as soon as it
    runs Python code again, and ends with it. An agent that catches it, or never comes back from a
    call into a library, runs until the process ends.

    Args:
      create_agent: a submission's function.
      agent_init: its arguments.
    """

    def __init__(self, create_agent: CreateAgent, agent_init: Mapping[str, object]) -> None:
        self._create_agent, self._agent_init = create_agent, agent_init
        self._calls: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        self._outcome: tuple[Any, BaseException | None] = (None, None)
        self._busy = False
        self._thread = threading.Thread(target=self._serve, name="graded agent", daemon=True)

    def __enter__(self) -> Self:
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Let the thread end, and give up the call that it is in."""
        # In this order: a thread that has ended may have left its identity to another.
        if self._busy and self._thread.ident is not None:
            identity, kind = ctypes.c_ulong(self._thread.ident), ctypes.py_object(GivenUp)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(identity, kind)
        self._calls.put(None)

    def _send(self, method: str, arguments: tuple[object, ...]) -> None:
        self._busy = True
        self._calls.put((method, arguments))

    def _has_answer(self, seconds: float) -> bool:
        try:
            self._outcome = self._answers.get(timeout=seconds)
        except queue.Empty:
            return False
        self._busy = False
        return True

    def _answer(self) -> Any:
        value, error = self._outcome
        self._outcome = (None, None)
        if isinstance(error, Exception | SystemExit):
            raise error
        if error is not None:
            raise AgentError(f"the agent raised {type(error).__name__}") from error
        return value

    def _serve(self) -> None:
        """Make the agent and call its methods, until there is no more to call."""
        # If the agent is given up here, no caller waits for an answer.
        with contextlib.suppress(GivenUp):
            agent = None
            while call := self._calls.get():
                method, arguments = call
                try:
                    if method == CREATE:
                        agent = checked_agent(self._create_agent(**self._agent_init))
                        value = None
                    else:
                        value = getattr(agent, method)(*arguments)
                    self._answers.put((value, None))
                except GivenUp:
                    return
                except BaseException as error:
                    self._answers.put((None, error))
