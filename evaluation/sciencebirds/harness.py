"""The harness turns requests into replies, by a scheduler, a game and files of results.

It has no sockets. The scheduler decides what is allowed and what comes next, and the game plays
levels. A level that is over is written down before its last shot is answered.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from evaluation.clock import Clock
from evaluation.json_types import JsonMapping
from evaluation.sciencebirds import scheduler
from evaluation.sciencebirds.codec import NO_PICTURE, Picture, Request, Values
from evaluation.sciencebirds.codes import EVALUATION_TERMINATED, PLAYING, WON
from evaluation.sciencebirds.document import LARGEST, Evaluation
from evaluation.sciencebirds.game import Game, action_of, polar_action
from evaluation.sciencebirds.levels import LevelPath
from evaluation.sciencebirds.results import EvaluationPlace, ResultWriter
from evaluation.sciencebirds.scheduler import Quirks, Reply, RunState

Answer = tuple[object, ...]
"""Fields of a reply, in the order of the table."""

MAX_VECTORS = 300
"""Most feature vectors in one reply."""


@dataclass(frozen=True)
class HarnessOptions:
    """How an evaluation is run.

    Attributes:
      per_episode: an interaction is a level that was played, rather than a shot.
      tell_levels: agents are told how many levels a set has.
      quirks: differences of the original that are adopted.
    """

    per_episode: bool = False
    tell_levels: bool = False
    quirks: Quirks = field(default_factory=Quirks)


class Observer(Protocol):
    """Observer of an evaluation."""

    def level_over(self, place: EvaluationPlace, phase: int) -> None:
        """Called when a level is over or was left, before the next one is loaded.

        Args:
          place: of the level.
          phase: number from 1; a phase is a set, or a part of one between two tests.
        """
        ...

    def novelty_reported(self, values: Values, running: bool) -> None:
        """Called with a report of novelty, and whether a level is running."""
        ...


class Harness:
    """One evaluation.

    Args:
      evaluation: the trials.
      game: plays levels.
      clock: measures time limits.
      results: files; None to write none.
      options: how it is run.
      observer: called with levels and reports; None for none.
    """

    def __init__(
        self,
        evaluation: Evaluation,
        game: Game,
        *,
        clock: Clock,
        results: ResultWriter | None = None,
        options: HarnessOptions | None = None,
        observer: Observer | None = None,
    ) -> None:
        self._options = options or HarnessOptions()
        self._trials = scheduler.runnable(evaluation)
        self._sets = [level_set for trial in self._trials for level_set in trial.sets]
        self._run = scheduler.Single(
            scheduler.plan_of(
                evaluation, per_episode=self._options.per_episode, quirks=self._options.quirks
            )
        )
        self._game, self._clock, self._results = game, clock, results
        self._start, self._milliseconds = clock.now(), 0
        self._observer = observer
        self._place: EvaluationPlace | None = None
        self._running, self._phase, self._in_phase = False, 0, False
        self._reply = self._happens(scheduler.TICK)

    @property
    def state(self) -> RunState:
        """State of the scheduler."""
        return self._run.state

    @property
    def terminated(self) -> bool:
        """Whether the evaluation has ended and nothing is asked for any more."""
        return self._reply.reported == EVALUATION_TERMINATED

    def answer(self, request: Request) -> bytes | None:
        """Answer a request.

        Returns:
          The reply, b"" where the protocol has none, None where the original never answers.

        Raises:
          OSError: a file cannot be written.
        """
        handler = _HANDLERS[request.message.name]
        values = handler(self, request.values)
        if values is None:
            return None
        return request.message.encode_reply(*values) if request.message.reply else b""

    def close(self) -> None:
        """Write down a level that is broken off."""
        self._leave("Playing")

    # Events ---------------------------------------------------------------------------------

    def _happens(self, kind: int, value: int = 0) -> Reply:
        """Tell the scheduler of an event; write down a level that it ends.

        A shot is an event of the moment at which it was accepted; its time counts with the next
        event.
        """
        elapsed = 0 if kind == scheduler.SHOT else self._elapsed()
        self._reply = self._run.happens(kind, value, elapsed)
        if kind == scheduler.SHOT and value != PLAYING:
            self._leave("Pass" if value == WON else "Fail")
        elif self._reply.status != PLAYING:
            self._leave("Playing")
        return self._reply

    def _elapsed(self) -> int:
        """Time since the last call, ms."""
        # Rounding errors of sums of floats are smaller than this.
        milliseconds = (self._clock.now() - self._start) * 1000 + 1e-6
        now = min(int(milliseconds), LARGEST)
        elapsed, self._milliseconds = now - self._milliseconds, now
        return elapsed

    def _leave(self, status: str) -> None:
        """Write down the level that was played, if there was one."""
        if self._running and self._place is not None:
            if self._results is not None:
                self._results.level(self._place, self._game.score, status, self._game.counts)
            if self._observer is not None:
                self._observer.level_over(self._place, self._phase)
        self._running = False

    def _enter(self, number: int) -> None:
        """Begin level `number`, from 1, of the current set."""
        self._leave("Playing")
        level = self._sets[self._reply.set].levels[number - 1]
        self._place = self._place_of(number, level)
        self._phase += not self._in_phase
        self._in_phase = True
        self._game.load(level)
        self._running = True

    def _place_of(self, number: int, level: LevelPath | None) -> EvaluationPlace:
        reply = self._reply
        trial = self._trials[reply.trial]
        testing = reply.mode == scheduler.TESTING
        return EvaluationPlace(trial, reply.execution + 1, testing, number, level)

    def _report_place(self) -> EvaluationPlace:
        """Place of reports: that of the level that was loaded last in the current set."""
        number = self._reply.level + 1
        levels = self._sets[self._reply.set].levels
        return self._place_of(number, levels[number - 1] if number else None)

    def _level(self) -> LevelPath | None:
        """Level that the game holds: the one that was loaded last, until the next 68."""
        return None if self._place is None else self._place.level

    # Answers --------------------------------------------------------------------------------

    def _state_code(self, values: Values) -> Answer:
        return (self._happens(scheduler.TICK).reported,)

    def _load_level(self, values: Values) -> Answer | None:
        number = min(values["level"], LARGEST)
        return self._loads(scheduler.LOAD, number, lambda answer: number)

    def _load_next(self, values: Values) -> Answer | None:
        return self._loads(scheduler.NEXT, 0, lambda answer: answer)

    def _restart(self, values: Values) -> Answer | None:
        return self._loads(scheduler.RESTART, 0, lambda answer: self._reply.level + 1)

    def _loads(self, kind: int, value: int, number: Callable[[int], int]) -> Answer | None:
        """Load a level; `number` maps the answer to the level's number."""
        answer = self._happens(kind, value).value
        if answer == scheduler.NO_ANSWER:
            return None
        if answer:
            self._enter(number(answer))
        return (answer,)

    def _shoot(self, action: int) -> int:
        """Play an action if that is allowed now; 1 if it was."""
        if not self._happens(scheduler.TICK).playable:
            return 0
        return self._happens(scheduler.SHOT, self._game.shoot(action)).value

    def _cartesian(self, values: Values) -> Answer:
        x, y = (values["dx"], values["dy"]) if "dx" in values else (values["x"], values["y"])
        return (self._shoot(action_of(x, y)),)

    def _polar(self, values: Values) -> Answer:
        return (self._shoot(polar_action(values["radius"], values["angle"])),)

    def _sequence(self, values: Values) -> Answer:
        return ([self._shoot(action_of(x, y)) for x, y, _, _ in values["shots"]],)

    def _record(self, values: Values) -> Answer:
        if not self._happens(scheduler.TICK).playable:
            return ([],)
        action = action_of(values["x"], values["y"])
        status, vectors = self._game.record(action, values["frequency"])
        self._happens(scheduler.SHOT, status)
        return (vectors[:MAX_VECTORS],)

    def _zoom(self, values: Values) -> Answer:
        return (int(self._happens(scheduler.TICK).playable),)

    def _score(self, values: Values) -> Answer:
        self._happens(scheduler.TICK)
        return (self._game.score if self._level() is not None else 0,)

    def _report_likelihood(self, values: Values) -> Answer:
        room = True
        if self._results is not None and self._trials:
            place, count = self._report_place(), self._reply.count
            room = self._results.likelihood(place, count, dict(values))
        if self._observer is not None and room:
            self._observer.novelty_reported(values, self._running)
        self._happens(scheduler.LIKELIHOOD)
        return (int(room),)

    def _report_description(self, values: Values) -> Answer:
        self._happens(scheduler.TICK)
        if self._results is None or not self._trials:
            return (1,)
        place, count = self._report_place(), self._reply.count
        return (int(self._results.description(place, count, values["text"])),)

    def _ready(self, values: Values) -> Answer:
        reply = self._happens(scheduler.READY)
        if reply.value:
            self._in_phase, self._place = False, None
        time, interactions, levels, *rest = reply.header
        return (time, interactions, levels if self._options.tell_levels else 0, *rest)

    def _novelty_info(self, values: Values) -> Answer:
        self._happens(scheduler.TICK)
        if not self._informed():
            return (-1,)
        level = self._level()
        return (int(level is not None and level.novel),)

    def _informed(self) -> bool:
        """Whether novelty may be revealed: that of the level, or else of the announced trial."""
        if self._place is not None:
            return self._place.trial.notify
        return bool(self._trials) and self._trials[self._reply.trial].notify

    def _number_of_levels(self, values: Values) -> Answer:
        tell = self._options.tell_levels and self._sets
        return (len(self._sets[self._reply.set].levels) if tell else 0,)

    def _truth(self, values: Values) -> Answer:
        return (self._vector(),)

    def _truth_and_picture(self, values: Values) -> Answer:
        return (self._vector(), self._picture())

    def _vector(self) -> JsonMapping:
        self._happens(scheduler.TICK)
        return self._game.feature_vector() if self._level() else {}

    def _picture(self) -> Picture:
        return self._game.picture() if self._level() else NO_PICTURE

    def _screenshot(self, values: Values) -> Answer:
        self._happens(scheduler.TICK)
        return (self._picture(),)

    def _initial_screenshot(self, values: Values) -> Answer:
        self._happens(scheduler.TICK)
        return (self._game.first_picture() if self._level() else NO_PICTURE,)

    def _batch(self, values: Values) -> Answer:
        vector = self._vector()
        return ([vector] if vector else [],)

    def _hint(self, values: Values) -> Answer:
        return (self._game.hint() if self._informed() and self._level() else [],)


def _always(*answer: object) -> Callable[[Harness, Values], Answer]:
    return lambda harness, values: answer


_HANDLERS: dict[str, Callable[[Harness, Values], Answer | None]] = {
    "report_groups": _always(),
    "recorded_option": _always(),
    "batch_frames": _always(),
    "configure": _always(0, 0, 0),
    "set_speed": _always(1),
    "screenshot": Harness._screenshot,
    "state": Harness._state_code,
    "current_level": _always(1),
    "number_of_levels": Harness._number_of_levels,
    "all_scores": _always(()),
    "shoot": Harness._cartesian,
    "shoot_polar": Harness._polar,
    "shoot_sequence": Harness._sequence,
    "zoom_out": Harness._zoom,
    "zoom_in": Harness._zoom,
    "shoot_and_record": Harness._record,
    "shoot_fast": Harness._cartesian,
    "shoot_polar_fast": Harness._polar,
    "shoot_sequence_fast": Harness._sequence,
    "load_level": Harness._load_level,
    "restart": Harness._restart,
    "load_next": Harness._load_next,
    "ground_truth_with_screenshot": Harness._truth_and_picture,
    "ground_truth": Harness._truth,
    "noisy_ground_truth_with_screenshot": Harness._truth_and_picture,
    "noisy_ground_truth": Harness._truth,
    "score": Harness._score,
    "report_likelihood": Harness._report_likelihood,
    "report_description": Harness._report_description,
    "ready": Harness._ready,
    "novelty_info": Harness._novelty_info,
    "batch": Harness._batch,
    "initial_screenshot": Harness._initial_screenshot,
    "hint": Harness._hint,
}
