"""An agent with its limits, and its answers to a server's messages.

The harness in this process and the client at a socket call the same `TimedAgent`, so an agent has
the same limits in both.
"""

from collections.abc import Callable
from typing import Any

from evaluation import errors
from evaluation.clock import Clock, ProcessorClock
from evaluation.gvgai import protocol
from evaluation.gvgai.agent import ElapsedTimer, fitting
from evaluation.gvgai.observation import (
    ACTIONS,
    NIL,
    Form,
    SerializableStateObservation,
)
from evaluation.gvgai.rules import Rules

LONGEST_TEXT = 64
"""Characters of an agent's return value that are passed on."""


class TimedAgent:
    """One agent with its clock.

    The time for training begins with `start`. An exception in the constructor or in `init` counts
    as a failure, in `act` and in `result` as overspent time; `error` then holds it.

    Args:
      make: the agent's class.
      clock: measures the time for training and, unless the rules say "processor", its methods.
      rules: its limits.
      form: of observations.

    Attributes:
      error: the last exception of the agent in one line, "" for none.
      seconds: how long the last call took, s.
    """

    def __init__(
        self, make: Callable[..., object], clock: Clock, rules: Rules, form: Form = "JSON"
    ) -> None:
        self.form: Form = form
        self.error, self.seconds = "", 0.0
        self._make, self._clock, self._rules = make, clock, rules
        self._stopwatch = ProcessorClock() if rules.timer == "processor" else clock
        self._start = clock.now()
        self._agent: Any = None

    def start(self, sso: SerializableStateObservation | None) -> str:
        """Make the agent; `sso` is the first observation where there is one already."""
        self._start = self._clock.now()
        limit = self._rules.start_seconds
        done, self._agent = self._timed(self._make, limit, sso)
        late = self._rules.start_late(self.seconds)
        return protocol.START_DONE if done and not late else protocol.START_FAILED

    def init(self, sso: SerializableStateObservation) -> str:
        """Let the agent prepare for a level; its return value is ignored."""
        done, _ = self._timed(self._agent.init, self._rules.init_seconds, sso)
        late = self._rules.init_late(self.seconds)
        return protocol.INIT_DONE if done and not late else protocol.INIT_FAILED

    def act(self, sso: SerializableStateObservation) -> str:
        """Let the agent choose an action."""
        rules = self._rules
        done, action = self._timed(self._agent.act, rules.act_seconds, sso)
        if not done or rules.act_overspent(self.seconds):
            return protocol.END_OVERSPENT
        return ACTIONS[NIL] if rules.act_late(self.seconds) else _text(action)

    def result(self, sso: SerializableStateObservation) -> str:
        """Tell the agent how a level went, and let it choose the next one."""
        rules, elapsed = self._rules, self._clock.now() - self._start
        done, level = self._timed(self._agent.result, float(rules.result_limit(elapsed)), sso)
        if not done or rules.result_overspent(elapsed, self.seconds):
            return protocol.END_OVERSPENT
        if rules.learning_over(self._clock.now() - self._start):
            return protocol.END_VALIDATION if sso.isValidation else protocol.END_TRAINING
        return _text(level)

    def answer(self, payload: str) -> tuple[str, Form | None] | None:
        """Answer a server's message.

        Args:
          payload: text after the number.

        Returns:
          (reply, form), the form None if none is sent along; None for FINISH, which has no reply.
        """
        if payload == protocol.START:
            return self._with_form(self.start(None))
        if payload == protocol.FINISH:
            return None
        sso = SerializableStateObservation(payload)
        method = self._method(sso)
        return self._with_form(method(sso)) if method else (protocol.ERROR, None)

    def _method(
        self, sso: SerializableStateObservation
    ) -> Callable[[SerializableStateObservation], str] | None:
        """Method that answers an observation; None if it is invalid or comes before START."""
        try:
            phase = sso.phase
        except (ValueError, TypeError, RecursionError):
            return None
        methods = {"INIT": self.init, "ACT": self.act, "END": self.result, "ABORT": self.result}
        return methods.get(phase) if self._agent is not None and isinstance(phase, str) else None

    def _with_form(self, text: str) -> tuple[str, Form | None]:
        """Add the form, but not to failures and ends, as in the framework's client."""
        failed = text.endswith("_FAILED") or text.startswith("END_")
        return text, None if failed else self.form

    def _timed(
        self, function: Callable[..., object], limit: float, sso: object
    ) -> tuple[bool, object]:
        """Call the agent; return whether it returned, and its value. Sets `seconds`."""
        timer = ElapsedTimer(self._stopwatch, limit)
        arguments = fitting(function, sso, timer)
        self.error = ""
        start = self._stopwatch.now()
        try:
            return True, function(*arguments)
        except (Exception, SystemExit) as error:
            self.error = errors.one_line(error)
            return False, None
        finally:
            self.seconds = self._stopwatch.now() - start


def _text(value: object) -> str:
    """An agent's return value as a reply; a level may be any kind of whole number."""
    try:
        text = str(value)
    except Exception:
        return "None"
    return text[:LONGEST_TEXT].replace("#", " ").replace("\n", " ").replace("\r", " ")
