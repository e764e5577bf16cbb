"""An agent behind its limits: what a client answers to every message.

The harness in this process and the client at a socket ask the same `TimedAgent`, so that an agent
meets the same limits in both.
"""

from collections.abc import Callable
from typing import Any

from evaluation.clock import Clock, ProcessorClock
from evaluation.gvgai import protocol
from evaluation.gvgai.agent import ElapsedTimer, described, fitting
from evaluation.gvgai.observation import (
    ACTIONS,
    NIL,
    Form,
    SerializableStateObservation,
)
from evaluation.gvgai.rules import Rules

LONGEST_TEXT = 64
"""Characters of what an agent returns that are passed on."""


class TimedAgent:
    """One agent with its clock.

    The time for training begins with `start`. An exception in the constructor or in `init` counts
    as a failure, in `act` and in `result` as overspent time; `error` then tells it.

    Args:
      make: the agent's class.
      clock: measures the time for training and, unless the rules say "processor", its methods.
      rules: its limits.
      form: what observations shall hold.

    Attributes:
      error: the last exception of the agent in one line, "" for none.
      seconds: how long the last call took, s.
    """

    def __init__(
        self, make: Callable[..., Any], clock: Clock, rules: Rules, form: Form = "JSON"
    ) -> None:
        self.form: Form = form
        self.error, self.seconds = "", 0.0
        self._make, self._clock, self._rules = make, clock, rules
        self._stopwatch = ProcessorClock() if rules.timer == "processor" else clock
        self._began = clock.now()
        self._agent: Any = None

    def start(self, sso: SerializableStateObservation | None) -> str:
        """Make the agent; `sso` is the first observation where there is one already."""
        self._began = self._clock.now()
        limit = self._rules.start_seconds
        done, self._agent = self._timed(self._make, limit, sso)
        late = self._rules.start_late(self.seconds)
        return protocol.START_DONE if done and not late else protocol.START_FAILED

    def init(self, sso: SerializableStateObservation) -> str:
        """Let the agent prepare for a level; what it returns does not count."""
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
        rules, learned = self._rules, self._clock.now() - self._began
        done, level = self._timed(self._agent.result, float(rules.result_limit(learned)), sso)
        if not done or rules.result_overspent(learned, self.seconds):
            return protocol.END_OVERSPENT
        if rules.learning_over(self._clock.now() - self._began):
            return protocol.END_VALIDATION if sso.isValidation else protocol.END_TRAINING
        return _text(level)

    def answer(self, payload: str) -> tuple[str, Form | None] | None:
        """Answer a server's message.

        Args:
          payload: what follows the number.

        Returns:
          (reply, form), the form None where none is sent along; None for FINISH, which has no
          reply.
        """
        if payload == protocol.START:
            return self._with_form(self.start(None))
        if payload == protocol.FINISH:
            return None
        sso = SerializableStateObservation(payload)
        method = self._method(sso)
        return self._with_form(method(sso)) if method else (protocol.ERROR, None)

    def _method(self, sso: SerializableStateObservation) -> Callable[[Any], str] | None:
        """What answers an observation; None if it is none or comes before START."""
        try:
            phase = sso.phase
        except (ValueError, TypeError, RecursionError):
            return None
        methods = {"INIT": self.init, "ACT": self.act, "END": self.result, "ABORT": self.result}
        return methods.get(phase) if self._agent is not None and isinstance(phase, str) else None

    def _with_form(self, text: str) -> tuple[str, Form | None]:
        """Failures and the like are sent without a form, as the framework's client does."""
        failed = text.endswith("_FAILED") or text.startswith("END_")
        return text, None if failed else self.form

    def _timed(self, function: Callable[..., Any], limit: float, sso: Any) -> tuple[bool, Any]:
        """Call the agent; whether it returned, and what. The time is in `seconds`."""
        timer = ElapsedTimer(self._stopwatch, limit)
        arguments = fitting(function, sso, timer)
        self.error = ""
        began = self._stopwatch.now()
        try:
            return True, function(*arguments)
        except (Exception, SystemExit) as error:
            self.error = described(error)
            return False, None
        finally:
            self.seconds = self._stopwatch.now() - began


def _text(value: Any) -> str:
    """What an agent returned, as it goes over the line; a level may be any kind of whole number."""
    try:
        text = str(value)
    except Exception:
        return "None"
    return text[:LONGEST_TEXT].replace("#", " ").replace("\n", " ").replace("\r", " ")
