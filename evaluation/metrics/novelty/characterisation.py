"""Whether an agent named the novelty rightly."""

from typing import NamedTuple

from evaluation.metrics.numerics import Array, Numbers, namespace, numbers
from evaluation.metrics.reasons import Reason

KINDS = 9
"""Digits of levels, 0 to 8, 0 for none."""

LEAST = 1e-6  # probability that a logarithm is taken of


class Characterisation(NamedTuple):
    """How well the levels' probabilities of a trial fit its level, (...).

    Attributes:
      accuracy: 1 if the most probable level is the true one, else 0.
      log_score: minus the logarithm of the true level's probability.
      brier: sum of squared errors of all probabilities.
    """

    accuracy: Numbers
    log_score: Numbers
    brier: Numbers


def characterisation(probabilities: Array, truth: Array) -> Characterisation:
    """Score what an agent said last about the level of a trial.

    Args:
      probabilities: (..., 9) of the levels' digits 0 to 8; NaN where the agent said nothing.
      truth: (...) integer true digit; below 0 for a novelty that has none.

    Returns:
      `Characterisation` of (...). Of equal probabilities the lowest digit counts; where all are
      zero the level is wrong.
    """
    xp = namespace(probabilities)
    said = xp.isfinite(probabilities).all(axis=-1)
    given = xp.where(said[..., None], probabilities, 0)
    right = xp.arange(KINDS) == truth[..., None]
    of_truth = xp.where(right, given, 0).sum(axis=-1)
    best = xp.argmax(given, axis=-1)
    correct = (best == truth) & (given > 0).any(axis=-1)
    missing = (truth < 0, Reason.NOTHING_TO_NAME), (~said, Reason.NOT_CHARACTERISED)
    error = given - right
    return Characterisation(
        numbers(correct.astype(given.dtype), *missing),
        numbers(-xp.log(xp.maximum(of_truth, LEAST)), *missing),
        numbers((error * error).sum(axis=-1), *missing),
    )


def slot_accuracy(said: Array, truth: Array) -> Numbers:
    """Whether one word (entity, attribute or change) is right, (...).

    Args:
      said: (...) integer code of the word; below 0 for an agent that names nothing.
      truth: (...) code of the generator's own word; below 0 where it has none.
    """
    nothing, silent = (truth < 0, Reason.NOTHING_TO_NAME), (said < 0, Reason.NOT_CHARACTERISED)
    return numbers((said == truth) * 1.0, nothing, silent)
