"""Experiments with an ordinary Python agent, one feature vector at a time.

An error of an agent is recorded with its reason, and the experiment continues. A wrong answer or an
exception ends the episode with the performance so far. An invalid report of novelty counts as no
report. A call that takes longer than its limit ends the trial.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import jax
import numpy as np

from evaluation import errors
from evaluation.clock import Clock, SystemClock
from evaluation.json_types import JsonObject
from evaluation.sailon import batch, results, worlds
from evaluation.sailon.answers import (
    GIVE_UP,
    Answer,
    Fault,
    NoveltyReport,
    answer,
    read_characterisation,
    verdict,
)
from evaluation.sailon.experiment import EpisodePlan, Experiment, Trial
from evaluation.sailon.labels import LEFT, EpisodeLabels
from evaluation.sailon.pictures import Pictures
from evaluation.sailon.results import Results
from evaluation.sailon.transcript import INDICATORS, Coordinates, MessageRecorder, performance_of
from evaluation.sailon.worlds import TrialGroup
from evaluation.session import Episode, Session
from jaxsim import __version__
from jaxsim.parameters import shown
from jaxsim.pytrees import State
from jaxsim.worlds.cartpole3d.types import ACTIONS

Progress = Callable[[int, int], None]
MAX_REASON = 300  # characters


@dataclass(frozen=True)
class PlayOptions:
    """Options of an experiment with a Python agent.

    Attributes:
      clock: measures time limits.
      wall: time of day, s, for the time stamps of feature vectors.
      transcripts: directory for a transcript of every episode; None for none.
      pictures: for the field `image` of feature vectors; None for null there, the original's
        default.
      models: directory for the agent's model; None for one that is removed at the end.
      testing: whether trials are played after the training.
      most_trials: number of trials that are played; None for all.
      progress: called as `progress(episodes done, episodes in all)`.
      trial_over: called after each trial with the results so far.
    """

    clock: Clock = field(default_factory=SystemClock)
    wall: Callable[[], float] = time.time
    transcripts: Path | None = None
    pictures: Pictures | None = None
    models: Path | None = None
    testing: bool = True
    most_trials: int | None = None
    progress: Progress | None = None
    trial_over: Callable[[Results], None] | None = None


class _OutOfTime(BaseException):
    """Raised inside a call of the agent; its `except Exception` does not catch it."""


class _TrialOver(Exception):
    """The trial or the experiment ends early; the message is the reason."""


def play(
    experiment: Experiment, agent: Any, options: PlayOptions | None = None, name: str | None = None
) -> Results:
    """Play an experiment with an agent.

    Args:
      experiment: to play.
      agent: a `TA2Logic`, or any object that has some of its methods.
      options: clock, transcripts and limits.
      name: of the agent, for tables; None for that of its class.

    Returns:
      The results. Episodes that were not played have performance NaN and a reason.
    """
    options = options or PlayOptions()
    name = name or type(agent).__name__
    if options.models is not None:
        return _Game(experiment, agent, options, options.models).play(name)
    with TemporaryDirectory(prefix="jaxsim-sailon-") as folder:
        return _Game(experiment, agent, options, Path(folder)).play(name)


class _Game:
    """One experiment with one agent."""

    def __init__(
        self, experiment: Experiment, agent: Any, options: PlayOptions, models: Path
    ) -> None:
        self.experiment, self.agent, self.options = experiment, agent, options
        self.settings = experiment.settings
        self.rows = results.planned(experiment)
        self.groups = {t.number: g for g in worlds.groups(experiment) for t in g.trials}
        secret = experiment.digest()
        self.model = str(models / f"model.TA2.cartpole.{secret}.file")
        models.mkdir(parents=True, exist_ok=True)
        self.problems: list[str] = []
        self.alarm = _Alarm()
        self.done, self.name = 0, ""

    def play(self, name: str) -> Results:
        """Play everything and return the results."""
        self.name = name
        with self.alarm.installed():
            self._tell("experiment_start")
            try:
                self._train()
                if self.options.testing:
                    self._test()
            finally:
                self._tell("experiment_end")
        return self._results()

    def _results(self) -> Results:
        """The results so far."""
        versions = {"jaxsim-novelty": __version__, "jax": jax.__version__}
        metadata: JsonObject = {"agent": self.name, "engine": "session", "versions": versions}
        metadata |= {"seed": self.settings.seed, "problems": self.problems}
        return Results(self.rows, self.experiment, metadata)

    # Training -----------------------------------------------------------------------------------

    def _train(self) -> None:
        self._tell("training_start")
        group = worlds.training_group(self.experiment)
        session = Session(group.schedule, seed=self.settings.seed, lifetime=0)
        plans = self.experiment.training_episodes()
        player = _Player(self, session, group, None, plans)
        row = 0
        try:
            for row, plan in enumerate(plans):
                player.episode(plan, row)
                if getattr(self.agent, "end_training_early", False):
                    raise _TrialOver("the agent ended the training early")
        except _TrialOver as over:
            self._skip(range(row + 1, len(self.experiment.training)), f"not played: {over}")
        self._tell("training_end")
        limit = self.settings.normal_timeout_seconds * self.settings.training_timeout_multiplier
        self._tell("train_model", limit=limit)
        self._tell("save_model", filename=self.model)

    def _tell(self, method: str, limit: float | None = None, **values: object) -> None:
        """Call a method outside of episodes; errors are added to `problems`."""
        try:
            self.call(method, limit, **values)
        except Fault as fault:
            self.problems.append(str(fault))

    # Testing ------------------------------------------------------------------------------------

    def _test(self) -> None:
        first = len(self.experiment.training)
        ended = ""
        for trial in self.experiment.trials:
            rows = range(first, first + len(trial.seeds))
            most = self.options.most_trials
            if not ended and most is not None and trial.number >= most:
                ended = f"only {most} of the trials were asked for"
            if ended:
                self._skip(rows, f"not played: {ended}")
            else:
                ended = self._trial(trial, rows)
                if self.options.trial_over:
                    self.options.trial_over(self._results())
            first += len(trial.seeds)

    def _trial(self, trial: Trial, rows: range) -> str:
        """Play a trial; return why the experiment ends with it, "" if it continues."""
        group = self.groups[trial.number]
        session = Session(group.schedule, seed=self.settings.seed, lifetime=trial.number + 1)
        plans = self.experiment.episodes(trial)
        player = _Player(self, session, group, trial, plans)
        next_row = rows.start
        try:
            self.call("trial_start", trial_number=trial.number, novelty_description={})
            self.call("reset_model", filename=self.model)
            self.call("testing_start")
            for plan, row in zip(plans, rows, strict=True):
                next_row = row + 1
                player.episode(plan, row)
                if getattr(self.agent, "end_experiment_early", False):
                    raise _TrialOver(self._end_reason())
        except (Fault, _TrialOver) as over:
            self._skip(range(next_row, rows.stop), f"not played: {over}")
        for method in ("testing_end", "trial_end"):
            self._tell(method)
        early = getattr(self.agent, "end_experiment_early", False)
        return self._end_reason() if early else ""

    def _end_reason(self) -> str:
        """Why the experiment ends early: the agent's reason if it gives one."""
        return getattr(self.agent, "end_reason", "") or "the agent ended the experiment early"

    def _skip(self, rows: range, reason: str) -> None:
        for row in rows:
            self.rows["problem"][row] = reason[:MAX_REASON]
        self.advance(len(rows))

    def advance(self, episodes: int) -> None:
        """Count episodes that are played or skipped."""
        self.done += episodes
        if self.options.progress:
            self.options.progress(self.done, len(self.rows["performance"]))

    # Calls --------------------------------------------------------------------------------------

    def call(self, method: str, limit: float | None = None, **values: object) -> Any:
        """Call a method of the agent, if it has it.

        Raises:
          Fault: it raised, or took too long.
        """
        function = getattr(self.agent, method, None)
        if function is None:
            return None
        limit = self.settings.normal_timeout_seconds if limit is None else limit
        late = f"{method} took longer than its limit of {limit:g} s"
        started = self.options.clock.now()
        try:
            with self.alarm(limit):
                value = function(**values)
        except _OutOfTime as error:
            raise Fault(late, hung=True) from error
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit, and asyncio's CancelledError, too
            raise Fault(f"{method} raised {errors.one_line(error)}"[:MAX_REASON]) from error
        if self.options.clock.now() - started > limit:
            raise Fault(late, hung=True)
        return value


class _Alarm:
    """Interrupts Python code that runs longer than a limit, where the system can do that."""

    def __init__(self) -> None:
        self._limit = 0.0
        main = threading.current_thread() is threading.main_thread()
        self._works = main and hasattr(signal, "setitimer")

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Install the signal handler; restore the previous one at the end."""
        if not self._works:
            yield
            return
        before = signal.signal(signal.SIGALRM, _ring)
        try:
            yield
        finally:
            signal.signal(signal.SIGALRM, before)

    def __call__(self, limit: float) -> Self:
        """Set the limit of the code that runs next, s."""
        self._limit = limit
        return self

    def __enter__(self) -> None:
        if self._works:
            # The timer repeats, in case the agent catches the first exception.
            signal.setitimer(signal.ITIMER_REAL, self._limit, self._limit)

    def __exit__(self, *_: object) -> None:
        if self._works:
            signal.setitimer(signal.ITIMER_REAL, 0)


def _ring(number: int, frame: object) -> None:
    raise _OutOfTime


class _Player:
    """Plays the episodes of a trial, or of the training."""

    def __init__(
        self,
        game: _Game,
        session: Session,
        group: TrialGroup,
        trial: Trial | None,
        plans: Sequence[EpisodePlan],
    ) -> None:
        self.game, self.session, self.group, self.trial = game, session, group, trial
        self.training = trial is None
        self.mode = "training" if self.training else "testing"
        self.budget_active = False
        lifetime = 0 if trial is None else trial.number + 1
        self.starts: Mapping[int, State] = {}
        if game.settings.starts == "wsu":
            self.starts = worlds.starts_of_trial(plans, group, session.tasks)
        self.labels = EpisodeLabels(game.settings.labels, game.settings.seed, lifetime)

    def episode(self, plan: EpisodePlan, row: int) -> None:
        """Play an episode and write its row.

        Raises:
          _TrialOver: the agent hung.
        """
        game = self.game
        where = Coordinates.of(game.experiment, self.group, self.trial, plan)
        recorder = MessageRecorder(self._path(plan), where, self.training)
        episode = where.open(self.session, self.group, self.starts)
        turn = _Turn(self, plan, where, episode, recorder)
        self.labels.begin(plan.index)
        game.rows["budget_active"][row] = self.budget_active
        report, problem = NoveltyReport(), ""
        try:
            game.call(f"{self.mode}_episode_start", episode_number=plan.index)
            turn.play()
            report = turn.end()
        except Fault as fault:
            problem, hung = str(fault), fault.hung
            recorder.say({"problem": problem})
            if not hung and not turn.ended:
                report, hung = self._end_after(turn)
            self._write(row, turn, report, problem)
            recorder.write()
            if hung:
                raise _TrialOver(problem) from fault
            return
        self._write(row, turn, report, problem)
        recorder.write()

    def _end_after(self, turn: "_Turn") -> tuple[NoveltyReport, bool]:
        """Let the agent end a failed episode; return its report, and whether it hung."""
        try:
            return turn.end(), False
        except Fault as fault:
            return NoveltyReport(), fault.hung

    def _path(self, plan: EpisodePlan) -> Path | None:
        folder = self.game.options.transcripts
        if folder is None:
            return None
        part = "training" if self.trial is None else f"trial-{self.trial.number:05}"
        return folder / part / f"episode-{plan.index:05}.jsonl"

    def _write(self, row: int, turn: "_Turn", report: NoveltyReport, problem: str) -> None:
        """Write a row, and activate the budget if novelty was reported."""
        rows, result = self.game.rows, turn.episode.result()
        probabilities, words = read_characterisation(report.characterisation)
        values = {
            "performance": turn.performance,
            "reward": result.reward,
            "length": result.length,
            "seconds": round(result.seconds, 6),
            "complete": result.complete and not problem,
            "novelty_probability": report.probability,
            "novelty_threshold": report.threshold,
            "novelty": report.novelty,
            "level_probs": probabilities,
            "feedback": turn.feedbacks,
            "problem": problem[:MAX_REASON],
            **dict(zip(results.SLOTS, words, strict=True)),
        }
        for name, value in values.items():
            rows[name][row] = value
        self.budget_active = self.budget_active or report.detected
        self.game.advance(1)


class _Turn:
    """One episode between agent and world."""

    def __init__(
        self,
        player: _Player,
        plan: EpisodePlan,
        where: Coordinates,
        episode: Episode,
        recorder: MessageRecorder,
    ) -> None:
        self.player, self.plan, self.where = player, plan, where
        self.episode, self.recorder = episode, recorder
        self.settings = player.game.settings
        self.performance = performance_of(episode)
        self.prediction: int | None = None
        self.feedbacks = 0
        self.ended = False
        self.feedback: JsonObject | None = None
        self.start = player.game.options.wall()
        self.tick = float(np.round(episode.env.dt(episode.params), 6))
        entropy = [self.settings.seed, where.lifetime, plan.index]
        self.draws = np.random.PCG64(np.random.SeedSequence(entropy))

    def play(self) -> None:
        """Ask the agent until the episode is over."""
        method = f"{self.player.mode}_performance"
        while self._step():
            self.recorder.say({"performance": self.performance})
            self.player.game.call(method, performance=self.performance, feedback=self.feedback)
        self.recorder.say({"performance": self.performance})

    def end(self) -> NoveltyReport:
        """Tell the agent that the episode is over; return what it reports."""
        self.ended = True
        method = f"{self.player.mode}_episode_end"
        performance, feedback = self.performance, self.feedback
        value = self.player.game.call(method, performance=performance, feedback=feedback)
        if self.settings.of_2021:
            return self._of_predictions()
        report = verdict(value, method)
        self.recorder.say(report.message())
        return report

    def _of_predictions(self) -> NoveltyReport:
        """Report of the last prediction: in messages of 2021 there is no other."""
        level = self.prediction or 0
        probability, threshold = batch.from_prediction(np.array(level))
        characterisation = {"level": [{"level_number": level, "probability": 1.0}]}
        return NoveltyReport(float(probability), float(threshold), level, characterisation)

    def _step(self) -> bool:
        """Play one tick; return whether the episode continues."""
        stamp = self.start + self.episode.length * self.tick
        pictures = self.player.game.options.pictures
        image = None if pictures is None else pictures.draw(self.episode)
        vector = self.where.feature_vector(self.episode, stamp, image)
        label = self._label()
        reply = self._ask(vector, label)
        self.recorder.say({"action": reply.action})
        if self.settings.of_2021 and not self.player.training:
            self.prediction = reply.prediction or 0
            self.recorder.say({"novelty_prediction": self.prediction})
        self.feedback = self._feedback(label)
        if reply.action == GIVE_UP:
            self.performance = 0.0
            return False
        self.episode.step(ACTIONS.index(reply.action))
        self.performance = performance_of(self.episode)
        return not self.episode.over

    def _ask(self, vector: JsonObject, label: dict[str, str]) -> Answer:
        self.recorder.say(vector)
        method = f"{self.player.mode}_instance"
        values: JsonObject
        if self.player.training:
            self.recorder.say(label)
            values = {"feature_vector": vector, "feature_label": dict(label)}
        else:
            self.recorder.say({"novelty_indicator": INDICATORS[self.plan.indicator]})
            values = {"feature_vector": vector, "novelty_indicator": self.plan.indicator}
        value = self.player.game.call(method, **values)
        try:
            return answer(value, method)
        except Fault:
            self.recorder.say({"answer": shown(value)})
            raise

    def _label(self) -> dict[str, str]:
        """The right action where a label is used, else `LEFT`."""
        needed = self.player.training or self.player.budget_active
        if not needed:
            return {"action": LEFT}
        return {"action": self.player.labels.action(self.episode.observation)}

    def _feedback(self, label: dict[str, str]) -> JsonObject | None:
        """The right action, with the probability of the budget, once novelty was reported."""
        share = int(self.draws.random_raw()) / 2**64
        due = self.player.budget_active and share < self.settings.budget
        if not due or self.player.labels.fixed or self.player.training:
            return None
        self.feedbacks += 1
        return dict(label)
