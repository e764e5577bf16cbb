"""Records of a served evaluation: its levels in the table that all protocols share."""

import math

from evaluation import memory
from evaluation.sciencebirds.codec import Values
from evaluation.sciencebirds.document import Evaluation, LevelSet
from evaluation.sciencebirds.game import CartPoleGame, LevelOutcome
from evaluation.sciencebirds.results import EvaluationPlace
from evaluation.session import LOGGED_BYTES, Log, Prediction

THRESHOLD = 0.5
"""Share of the likelihoods from which novelty counts as detected."""


def check_memory(evaluation: Evaluation) -> None:
    """Check that the records of all executions fit into memory; a level has one row.

    Args:
      evaluation: the trials that are run.

    Raises:
      ValueError: they do not; says how many executions do.
    """
    used = 0
    for trial in evaluation.trials:
        number, levels = max(trial.executions, 0), sum(map(_levels_of, trial.sets))
        what = f"executions of trial {trial.number}, of {levels:,} levels each,"
        remedy = "lower its number_of_executions, or run its executions one by one"
        memory.check_fits(number, LOGGED_BYTES * levels, what, remedy, used)
        used += LOGGED_BYTES * levels * number


def _levels_of(level_set: LevelSet) -> int:
    """Number of levels that can end within a set's limit of interactions."""
    most = level_set.limits.interactions
    return min(len(level_set.levels), most) if most > 0 else len(level_set.levels)


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
