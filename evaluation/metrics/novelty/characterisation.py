"""Scores of an agent's characterisation of the novelty."""

from typing import NamedTuple

from evaluation.metrics.numerics import Array, Numbers, namespace, numbers
from evaluation.metrics.reasons import Reason

KINDS = 9
"""Number of the digits of levels, 0 to 8; 0 for none."""

LEAST = 1e-6  # lower bound of probabilities in logarithms


class Characterisation(NamedTuple):
    """Scores of the predicted probabilities of a trial's levels, (...).

    Attributes:
      accuracy: 1 if the most probable level is the true one, else 0.
      log_score: minus the logarithm of the true level's probability.
      brier: sum of squared errors of all probabilities.
    """

    accuracy: Numbers
    log_score: Numbers
    brier: Numbers


def characterisation(probabilities: Array, truth: Array) -> Characterisation:
    """Score the last prediction of a trial's level.

    Args:
      probabilities: (..., 9) of the levels' digits 0 to 8; NaN without a prediction.
      truth: (...) integer true digit; below 0 for a novelty that has none.

    Returns:
      `Characterisation` of (...). The lowest digit of equal probabilities counts. If all are zero,
      the level is wrong.
    """
    xp = namespace(probabilities)
    is_predicted = xp.isfinite(probabilities).all(axis=-1)
    predicted = xp.where(is_predicted[..., None], probabilities, 0)
    one_hot = xp.arange(KINDS) == truth[..., None]
    of_truth = xp.where(one_hot, predicted, 0).sum(axis=-1)
    best = xp.argmax(predicted, axis=-1)
    correct = (best == truth) & (predicted > 0).any(axis=-1)
    missing = (truth < 0, Reason.NOTHING_TO_NAME), (~is_predicted, Reason.NOT_CHARACTERISED)
    error = predicted - one_hot
    return Characterisation(
        numbers(correct.astype(predicted.dtype), *missing),
        numbers(-xp.log(xp.maximum(of_truth, LEAST)), *missing),
        numbers((error * error).sum(axis=-1), *missing),
    )


def slot_accuracy(answer: Array, truth: Array) -> Numbers:
    """Whether one word (entity, attribute or change) is correct, (...).

    Args:
      answer: (...) integer code of the agent's word; below 0 for none.
      truth: (...) code of the generator's word; below 0 for none.
    """
    nothing, silent = (truth < 0, Reason.NOTHING_TO_NAME), (answer < 0, Reason.NOT_CHARACTERISED)
    return numbers((answer == truth) * 1.0, nothing, silent)
