"""Records of a served evaluation: its levels in the table that all protocols share."""

import math

from evaluation import memory
from evaluation.sciencebirds.codec import Values
from evaluation.sciencebirds.document import ConfiguredTrial, Evaluation, LevelSet
from evaluation.sciencebirds.game import CartPoleGame, LevelOutcome
from evaluation.sciencebirds.results import EvaluationPlace
from evaluation.session import LOGGED_BYTES, Log, Prediction

THRESHOLD = 0.5
"""Share of the likelihoods from which novelty counts as detected."""


def check_memory(evaluation: Evaluation) -> None:
    """Check that the records of all executions fit into memory; each play of a level has one row.

    Args:
      evaluation: the trials that are run.

    Raises:
      ValueError: they do not; says how many executions do.
    """
    used = 0
    for trial in evaluation.trials:
        number, plays = max(trial.executions, 0), sum(map(_plays_of, trial.sets))
        least = "" if _plays_are_bounded(trial) else "at least "
        what = f"executions of trial {trial.number}, of {least}{plays:,} plays of levels each,"
        remedy = "lower its number_of_executions, or run its executions one by one"
        memory.check_fits(number, LOGGED_BYTES * plays, what, remedy, used)
        used += LOGGED_BYTES * plays * number


def _plays_of(level_set: LevelSet) -> int:
    """Plays of levels that can end within a set's limits; one a level without one of attempts."""
    limits = level_set.limits
    plays = len(level_set.levels) * max(limits.attempts, 1)
    return min(plays, limits.interactions) if limits.interactions > 0 else plays


def _plays_are_bounded(trial: ConfiguredTrial) -> bool:
    """Whether attempts are limited and no test set is played again at another checkpoint."""
    limited = all(each.limits.attempts > 0 for each in trial.sets)
    checkpoints = trial.checkpoint_time > 0 or trial.checkpoint_interactions > 0
    return limited and not (trial.tests and checkpoints)


def prediction_of(values: Values) -> Prediction:
    """Convert a report of novelty to a prediction.

    Args:
      values: fields of the request. Its two likelihoods need not sum to one: the probability is
        the share of the first; 0 where that is not a number.
    """
    novel, non_novel = values["novel"], values["non_novel"]
    valid = 0 <= novel < math.inf and 0 <= non_novel < math.inf and novel + non_novel > 0
    share = novel / (novel + non_novel) if valid else 0.0
    return Prediction(max(values.get("level", 0), 0), share, THRESHOLD)


class LevelRecorder:
    """Observer that adds the levels of a harness to a log.

    A report of novelty belongs to the level that runs, or else to the one before: reports are
    requested when a level is over. A level is therefore added when the next one is over.

    Args:
      game: plays the levels.
      log: of the levels.
    """

    def __init__(self, game: CartPoleGame, log: Log) -> None:
        self._game, self._log = game, log
        self._pending: tuple[LevelOutcome, int, bool] | None = None
        self._prediction = self._prediction_before = Prediction()

    def level_over(self, place: EvaluationPlace, phase: int) -> None:
        """Called when a level is over or was left."""
        self.finish()
        self._pending = self._game.level_result(), phase, place.testing
        self._prediction_before, self._prediction = self._prediction, Prediction()

    def novelty_reported(self, values: Values, running: bool) -> None:
        """Called with a report of novelty, and whether a level is running."""
        if running:
            self._prediction = prediction_of(values)
        else:
            self._prediction_before = prediction_of(values)

    def finish(self) -> None:
        """Add the level that is over and not yet added."""
        if self._pending is None:
            return
        level_result, phase, testing = self._pending
        self._pending = None
        self._log.add(
            *level_result,
            self._prediction_before,
            phase=phase,
            mode="test" if testing else "train",
            learning=not testing,
        )
