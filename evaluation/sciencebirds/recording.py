"""The records of a served evaluation: its levels in the table that all protocols share."""

import math
from collections.abc import Mapping
from typing import Any

from evaluation import memory
from evaluation.sciencebirds.document import Evaluation, LevelSet
from evaluation.sciencebirds.game import CartPoleGame, Played
from evaluation.sciencebirds.results import Place
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
    taken = 0
    for trial in evaluation.trials:
        number, levels = max(trial.executions, 0), sum(map(_levels_of, trial.sets))
        what = f"executions of trial {trial.number}, of {levels:,} levels each,"
        remedy = "lower its number_of_executions, or run its executions one by one"
        memory.check_fits(number, LOGGED_BYTES * levels, what, remedy, taken)
        taken += LOGGED_BYTES * levels * number


def _levels_of(level_set: LevelSet) -> int:
    """Levels of a set that come to their ends within its limit of interactions."""
    most = level_set.limits.interactions
    return min(len(level_set.levels), most) if most > 0 else len(level_set.levels)


def prediction_of(values: Mapping[str, Any]) -> Prediction:
    """What a report of novelty says, as the other protocols say it.

    Args:
      values: fields of the request. Its two likelihoods need not sum to one: the probability is
        the share of the first; 0 where that is no number.
    """
    novel, other = values["novel"], values["non_novel"]
    fair = 0 <= novel < math.inf and 0 <= other < math.inf and novel + other > 0
    share = novel / (novel + other) if fair else 0.0
    return Prediction(max(values.get("level", 0), 0), share, THRESHOLD)


class Recorder:
    """Collects what a harness tells of levels.

    A report of novelty belongs to the level that runs, or else to the one before: it is asked for
    when a level is over. Levels are therefore added when the next one is.

    Args:
      game: plays the levels.
      log: where they go.
    """

    def __init__(self, game: CartPoleGame, log: Log) -> None:
        self._game, self._log = game, log
        self._over: tuple[Played, int, bool] | None = None
        self._said = self._said_before = Prediction()

    def level_over(self, place: Place, phase: int) -> None:
        """A level is over, or was left."""
        self.finish()
        self._over = self._game.played(), phase, place.testing
        self._said_before, self._said = self._said, Prediction()

    def novelty_reported(self, values: Mapping[str, Any], running: bool) -> None:
        """The agent has reported, while a level was running or not."""
        if running:
            self._said = prediction_of(values)
        else:
            self._said_before = prediction_of(values)

    def finish(self) -> None:
        """Add the level that is over and not yet added."""
        if self._over is None:
            return
        played, phase, testing = self._over
        self._over = None
        self._log.add(
            *played,
            self._said_before,
            phase=phase,
            mode="test" if testing else "train",
            learning=not testing,
        )
