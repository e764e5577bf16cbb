"""Agents and tracks whose every move and delay is written down beforehand.

Levels are the classic CartPole with poles of different lengths: its step compiles fast.
"""

from dataclasses import dataclass, field
from typing import Any

from evaluation.clock import ScriptedClock
from evaluation.gvgai import harness
from evaluation.gvgai.results import Announcer, LevelResult
from evaluation.gvgai.rules import Rules
from evaluation.gvgai.track import Track, TrackLevel
from evaluation.gvgai.trial import TrackLifetime

LENGTHS = (0.5, 0.6, 0.7, 0.8, 0.9)
LEVELS = tuple(TrackLevel("CartPole", (("pole/length", length),)) for length in LENGTHS)

ESCAPE, NIL, LEFT, RIGHT = "ACTION_ESCAPE", "ACTION_NIL", "ACTION_LEFT", "ACTION_RIGHT"


def track(**rules: Any) -> Track:
    return Track("poles", LEVELS, Rules(**rules))


def always(value: Any) -> Any:
    """A script that says the same thing forever."""
    return lambda index: value


def in_turn(*values: Any) -> Any:
    """A script that says one thing after the other, and the last one forever."""
    return lambda index: values[min(index, len(values) - 1)]


@dataclass
class Script:
    """What an agent does, and what it has seen.

    Attributes:
      clock: goes on as the agent takes its time.
      actions: script of actions by the number of the call.
      levels: script of what `result` returns.
      times: seconds by method, a script by the number of the call.
    """

    clock: ScriptedClock = field(default_factory=ScriptedClock)
    actions: Any = field(default_factory=lambda: always(ESCAPE))
    levels: Any = field(default_factory=lambda: always(0))
    times: dict[str, Any] = field(default_factory=dict)
    calls: list[tuple[str, Any]] = field(default_factory=list)
    timers: list[Any] = field(default_factory=list)

    def note(self, method: str, sso: Any, timer: Any) -> int:
        index = sum(name == method for name, _ in self.calls)
        self.calls.append((method, sso))
        self.timers.append(timer)
        self.clock.advance(self.times.get(method, always(0.0))(index))
        return index

    def agent(self) -> type:
        script = self

        class Agent:
            def __init__(self, sso, elapsed_timer):
                script.note("constructor", sso, elapsed_timer)

            def init(self, sso, elapsed_timer):
                script.note("init", sso, elapsed_timer)
                return "ACTION_UP"

            def act(self, sso, elapsed_timer):
                return script.actions(script.note("act", sso, elapsed_timer))

            def result(self, sso, elapsed_timer):
                return script.levels(script.note("result", sso, elapsed_timer))

        return Agent

    def states(self, method: str) -> list[Any]:
        """Observations that a method was given."""
        return [sso for name, sso in self.calls if name == method]


@dataclass
class Run:
    """A trial that is over, with what was heard of it."""

    trial: TrackLifetime
    results: list[LevelResult]
    lines: list[str]

    @property
    def levels(self) -> list[int | None]:
        return [result.level for result in self.results]

    def trained(self) -> list[int | None]:
        return [r.level for r in self.results if r.phase in ("first", "second")]


def run(script: Script, agent: Any = None, seed: int = 0, lifetime: int = 0, **rules: Any) -> Run:
    """Play the track of poles with a script in this process."""
    results: list[LevelResult] = []
    lines: list[str] = []
    trial = harness.run(
        track(**rules),
        agent or script.agent(),
        script.clock,
        Announcer(lines.append, results.append),
        seed=seed,
        lifetime=lifetime,
    )
    return Run(trial, results, lines)
