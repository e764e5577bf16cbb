"""All measures of a batch of trials, one number or reason per trial."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from evaluation.metrics.novelty.characterisation import characterisation, slot_accuracy
from evaluation.metrics.novelty.detection import (
    Detection,
    amoc_delay,
    amoc_wsu,
    correct_rejections,
    delay_of_detected,
    detection,
)
from evaluation.metrics.novelty.reaction import reaction
from evaluation.metrics.novelty.trials import Trials
from evaluation.metrics.numerics import Array, Numbers, namespace, numbers
from evaluation.metrics.reasons import Reason
from evaluation.metrics.table import METRICS

SHARES: Final = tuple(r.name for r in METRICS if r.scope == "trial" and r.unit == "share")
"""Measures that are yes or no in a trial; their means are shares."""

SLOTS: Final = ("entity", "attribute", "change")


@dataclass(frozen=True)
class Answers:
    """Agents' characterisations of the novelty at the end of each of T trials, and the truth.

    Attributes:
      probabilities: (T, 9) of the levels' digits; NaN without an answer.
      digit: (T,) int, true digit, 0 for none.
      words: (T, 3) int codes of entity, attribute and change; below 0 for none.
      true_words: (T, 3) codes of the generator's words; below 0 for none.
    """

    probabilities: Array
    digit: Array
    words: Array
    true_words: Array


def measures(
    trials: Trials, answers: Answers, visible: npt.ArrayLike, window: int, wsu: bool = False
) -> dict[str, Numbers]:
    """Compute every measure of every trial.

    Args:
      trials: leaves (T, E) and (T,).
      answers: characterisations at the end of the trials.
      visible: (T,) bool, whether the agent is told of the novelty.
      window: episodes m at either end of the novel part.
      wsu: see `reaction`.

    Returns:
      `Numbers` of (T,) by name.
    """
    xp = namespace(trials.probability)
    counts = detection(trials)
    result = detecting(trials, counts, xp.asarray(visible), wsu)
    result |= reaction(trials, window, wsu)._asdict()
    return result | _naming(answers, counts)


def detecting(
    trials: Trials, counts: Detection, visible: Array, wsu: bool = False
) -> dict[str, Numbers]:
    """Compute the measures of detection of every trial."""
    dtype = trials.probability.dtype
    none = (trials.button >= trials.count, Reason.NO_NOVELTY)
    none_before = (trials.button == 0, Reason.NOTHING_BEFORE)
    is_visible = (visible, Reason.VISIBLE)

    def number(values: Array, *reasons: tuple[Array, Reason]) -> Numbers:
        return numbers(values.astype(dtype), *reasons)

    delay = delay_of_detected(counts, trials)
    return {
        "cdt": number(counts.correct, is_visible, none),
        "found": number(counts.true_positives > 0, is_visible, none),
        "false_alarms": number(counts.false_positives > 0, is_visible, none_before),
        "correct_rejections": correct_rejections(counts, trials, wsu),
        "mean_delay": number(
            delay.values, is_visible, none, (delay.reasons != 0, Reason.NOT_DETECTED)
        ),
        "amoc_wsu": number(amoc_wsu(trials), is_visible, none),
        "amoc_delay": number(amoc_delay(trials), is_visible, none, none_before),
    }


def _naming(answers: Answers, counts: Detection) -> dict[str, Numbers]:
    """Measures of naming; an agent that names in some trials is wrong where it names nothing."""
    xp = namespace(answers.probabilities)
    silent = ~xp.isfinite(answers.probabilities).all(axis=-1)
    # At level 200 there is nothing to name.
    named_nothing = silent & ~silent.all() & (answers.digit != 0)
    levels = xp.where(named_nothing[..., None], 0.0, answers.probabilities)
    scores = characterisation(levels, answers.digit)
    missed = (counts.true_positives == 0) & (answers.digit != 0)
    accuracy = scores.accuracy
    of_detected = numbers(
        accuracy.values,
        (accuracy.reasons != 0, Reason.NOT_CHARACTERISED),
        (missed | (answers.digit == 0), Reason.NOT_DETECTED),
    )
    result = {
        "level_accuracy": accuracy,
        "level_accuracy_found": of_detected,
        "level_log_score": scores.log_score,
        "level_brier": scores.brier,
    }
    for slot, name in enumerate(SLOTS):
        words, true = answers.words[..., slot], answers.true_words[..., slot]
        named_nothing = (words < 0) & (words >= 0).any()
        # Any word but the true one.
        result[f"{name}_accuracy"] = slot_accuracy(xp.where(named_nothing, true + 1, words), true)
    return result


def no_words(number: int) -> npt.NDArray[np.int64]:
    """Codes of T trials without words, (T, 3)."""
    return np.full((number, len(SLOTS)), -1)
