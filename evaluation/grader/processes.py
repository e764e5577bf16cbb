"""An agent in a process of its own, which can be ended at any time and have less memory."""

import multiprocessing
import pickle
import signal
from collections.abc import Mapping
from multiprocessing import connection
from typing import Any, Self

from evaluation.clock import Clock, SystemClock
from evaluation.grader import child
from evaluation.grader.agent import CreateAgent
from evaluation.grader.answers import AnswerReader, CallWriter
from evaluation.grader.containment import end_session
from evaluation.grader.exceptions import AgentError
from evaluation.grader.limits import POLL, Host

START_LIMIT = 60.0
"""Time for a process to start and to import the submission, s; no time limit counts it."""
PATIENCE = 1.0
"""Time for a process to end by itself, s."""


class ProcessHost(Host):
    """Calls an agent in a new child process, which shares nothing with this one.

    States, actions and the arguments of the agent are pickled. An answer may only hold numbers,
    strings, lists, dictionaries and NumPy arrays, so it runs no code here. The child process has
    the rights of its user.

    Args:
      create_agent: a submission's function; it must be importable, at the top level of a module.
      agent_init: its arguments.
      memory_limit: address space of the process, bytes; None for no limit.
      start_limit: time for the process to start and to import the submission, s.
      clock: measures `start_limit`; None for the computer's clock.

    Raises:
      ValueError: a memory limit on a system that has none.
    """

    def __init__(
        self,
        create_agent: CreateAgent,
        agent_init: Mapping[str, object],
        memory_limit: int | None,
        *,
        start_limit: float = START_LIMIT,
        clock: Clock | None = None,
    ) -> None:
        child.check_memory_limit(memory_limit)
        try:
            self._order = pickle.dumps((create_agent, dict(agent_init)))
        except Exception as error:
            raise ValueError(
                f"create_agent and agent_init cannot be sent to a process of the agent's own "
                f"({error}); define the function at the top level of a module"
            ) from error
        context = multiprocessing.get_context("spawn")
        self._connection, self._other_end = context.Pipe()
        self._answers, self._calls = AnswerReader(self._connection), CallWriter(self._connection)
        arguments = (self._other_end, self._order, memory_limit)
        self._process = context.Process(target=child.serve, args=arguments, daemon=True)
        self._start_limit = start_limit
        self._clock = clock or SystemClock()
        self._ready = False
        self._advice = (
            '; a script must run its suite under `if __name__ == "__main__":`'
            if memory_limit is None
            else f"; it may need more memory than {memory_limit} bytes to import the submission"
        )

    def __enter__(self) -> Self:
        """Start the process and wait until it has imported the submission.

        Raises:
          AgentError: it was not imported.
        """
        end = self._clock.now() + self._start_limit
        self._process.start()
        self._other_end.close()
        try:
            self._await_start(end)
            self._answer()
        except BaseException:
            self.__exit__()
            raise
        self._ready = True
        return self

    def _await_start(self, end: float) -> None:
        """Wait until the process reports that it is ready; a start that ends late is refused."""
        while True:
            remaining = end - self._clock.now()
            if remaining <= 0:
                raise AgentError(f"the agent's process did not start in {self._start_limit:g} s")
            if self._has_answer(min(POLL, remaining)):
                return

    def __exit__(self, *error: object) -> None:
        """End the process."""
        self._connection.close()  # ends a process that waits for a call
        if not any(error):
            connection.wait([self._process.sentinel], PATIENCE)
        self._end_session()
        self._process.kill()
        self._process.join()

    def _end_session(self) -> None:
        """End what the agent has started, before its process is waited for."""
        if self._process.pid is not None:
            end_session(self._process.pid)

    def _send(self, method: str, arguments: tuple[object, ...]) -> None:
        try:
            message = pickle.dumps((method, arguments))
        except Exception as error:
            raise TypeError(f"the agent's process cannot be sent the state: {error}") from error
        try:
            self._calls.put(message)
            while not self._calls.sent(self.deadline.patience()):
                self.deadline.check()
        except OSError as error:
            raise self._death() from error

    def _has_answer(self, seconds: float) -> bool:
        return self._answers.arrives(seconds)

    def _answer(self) -> Any:
        try:
            kind, value = child.loads(self._answers.next())
        except (EOFError, OSError) as error:
            raise self._death() from error
        except Exception as error:
            raise AgentError(f"the agent's process sent an invalid answer: {error}") from error
        if kind == child.RETURNED:
            return value
        raise child.exception(value)

    def _death(self) -> AgentError:
        """The error for a process that has ended."""
        if not connection.wait([self._process.sentinel], PATIENCE):
            return AgentError("the agent's process has closed its connection")
        self._end_session()
        self._process.join()
        code = self._process.exitcode
        assert code is not None, "it has ended"
        if code < 0:
            is_signal = -code in set(signal.Signals)
            end = f"was ended by {signal.Signals(-code).name if is_signal else f'signal {-code}'}"
        else:
            end = f"ended with exit code {code}"
        return AgentError(f"the agent's process {end}{'' if self._ready else self._advice}")
