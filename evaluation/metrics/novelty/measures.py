"""All measures of a batch of trials, one number or reason a trial."""

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
"""Measures that are yes or no in a trial, so that their means are shares."""

SLOTS: Final = ("entity", "attribute", "change")


@dataclass(frozen=True)
class Said:
    """What agents said novelty is at the end of each of T trials, and what it is.

    Attributes:
      probabilities: (T, 9) of the levels' digits; NaN where an agent said nothing.
      digit: (T,) int, true digit, 0 for none.
      words: (T, 3) int codes of entity, attribute and change; below 0 for none.
      true_words: (T, 3) codes of the generator's own words; below 0 where it has none.
    """

    probabilities: Array
    digit: Array
    words: Array
    true_words: Array


def measures(
    trials: Trials, said: Said, visible: npt.ArrayLike, window: int, wsu: bool = False
) -> dict[str, Numbers]:
    """Compute every measure of every trial.

    Args:
      trials: leaves (T, E) and (T,).
      said: what agents said at the end of the trials.
      visible: (T,) bool, whether the agent is told of the novelty.
      window: episodes m at either end of the novel part.
      wsu: see `reaction`.

    Returns:
      `Numbers` of (T,) by name.
    """
    xp = namespace(trials.probability)
    found = detection(trials)
    told = xp.asarray(visible)
    result = detecting(trials, found, told, wsu)
    result |= reaction(trials, window, wsu)._asdict()
    return result | _naming(said, found)


def detecting(
    trials: Trials, found: Detection, told: Array, wsu: bool = False
) -> dict[str, Numbers]:
    """What there is to say of whether and when each trial's novelty was found."""
    dtype = trials.probability.dtype
    none = (trials.button >= trials.count, Reason.NO_NOVELTY)
    nothing = (trials.button == 0, Reason.NOTHING_BEFORE)
    visible = (told, Reason.VISIBLE)

    def number(values: Array, *reasons: tuple[Array, Reason]) -> Numbers:
        return numbers(values.astype(dtype), *reasons)

    delay = delay_of_detected(found, trials)
    return {
        "cdt": number(found.correct, visible, none),
        "found": number(found.true_positives > 0, visible, none),
        "false_alarms": number(found.false_positives > 0, visible, nothing),
        "correct_rejections": correct_rejections(found, trials, wsu),
        "mean_delay": number(
            delay.values, visible, none, (delay.reasons != 0, Reason.NOT_DETECTED)
        ),
        "amoc_wsu": number(amoc_wsu(trials), visible, none),
        "amoc_delay": number(amoc_delay(trials), visible, none, nothing),
    }


def _naming(said: Said, found: Detection) -> dict[str, Numbers]:
    named = characterisation(said.probabilities, said.digit)
    missed = (found.true_positives == 0) & (said.digit != 0)
    right = named.accuracy
    of_found = numbers(
        right.values,
        (right.reasons != 0, Reason.NOT_CHARACTERISED),
        (missed | (said.digit == 0), Reason.NOT_DETECTED),
    )
    result = {
        "level_accuracy": right,
        "level_accuracy_found": of_found,
        "level_log_score": named.log_score,
        "level_brier": named.brier,
    }
    for slot, name in enumerate(SLOTS):
        right = slot_accuracy(said.words[..., slot], said.true_words[..., slot])
        result[f"{name}_accuracy"] = right
    return result


def no_words(number: int) -> npt.NDArray[np.int64]:
    """Codes of T trials in which nothing is said, (T, 3)."""
    return np.full((number, len(SLOTS)), -1)
