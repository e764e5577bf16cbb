"""Why a number of the 2019 reports is missing, beyond the reasons of the kernels within a block."""

import enum
from typing import Final

import jax
import jax.numpy as jnp

from evaluation.metrics import Metric, Reason


class Reason2019(enum.IntEnum):
    """Why a number is missing. The codes go on where `Reason` leaves room: never renumber them."""

    NO_STE = 101
    ZERO_STE = 102
    TOO_MANY_TRAININGS = 103
    NEVER_TRAINED = 104
    NOTHING_TRAINED_YET = 105
    TRAINED_BEFORE = 106
    NOT_TRAINED_YET = 107
    TRAINED_LAST = 108
    NO_TEST_OF_PAIR = 109
    FIRST_TRAINING = 110
    NO_CHANGE = 111
    TRAINED_IN_PHASE = 112
    NOT_TRAINED_IN_EARLIER_PHASE = 113
    NO_STEPS = 114
    SATURATED_AT_ZERO = 115
    NO_EPISODES = 116
    NOT_RECOVERED = 117

    @property
    def sentence(self) -> str:
        """The reason in words."""
        return _SENTENCES[self]


_SENTENCES: Final = {
    Reason2019.NO_STE: (
        "taskinfo/info.json has no saturation value of a single-task expert for exactly this task"
    ),
    Reason2019.ZERO_STE: (
        "the single-task expert's saturation value is 0, so nothing can be divided by it"
    ),
    Reason2019.TOO_MANY_TRAININGS: "the task has more than one training block",
    Reason2019.NEVER_TRAINED: "the task has no training block in this syllabus",
    Reason2019.NOTHING_TRAINED_YET: "no training block comes before this test block",
    Reason2019.TRAINED_BEFORE: "what is tested has been trained before, so this is not forward",
    Reason2019.NOT_TRAINED_YET: "what is tested has not been trained yet, so this is not reverse",
    Reason2019.TRAINED_LAST: "what is tested was trained last, so nothing was learned in between",
    Reason2019.NO_TEST_OF_PAIR: "no test block shows this pair",
    Reason2019.FIRST_TRAINING: "the first training block has none before it to recover from",
    Reason2019.NO_CHANGE: "task and parameters are those of the training block before",
    Reason2019.TRAINED_IN_PHASE: "the task was trained in this very phase",
    Reason2019.NOT_TRAINED_IN_EARLIER_PHASE: "the task was not trained in an earlier phase",
    Reason2019.NO_STEPS: "the block has no steps",
    Reason2019.SATURATED_AT_ZERO: "the block saturates at episode 0, so nothing can be divided by",
    Reason2019.NO_EPISODES: "the block has no episodes",
    Reason2019.NOT_RECOVERED: (
        "performance never came back to the saturation value of the training block before"
    ),
}


def sentence_of(code: int) -> str:
    """Return the sentence of a code of `Reason` or of `Reason2019`.

    Args:
      code: as in the ``reasons`` of a metric.

    Raises:
      ValueError: no reason has this code.
    """
    if code >= min(Reason2019):
        return Reason2019(code).sentence
    return Reason(code).sentence


def first_reason(*candidates: jax.typing.ArrayLike) -> jax.Array:
    """Return the first candidate that is a reason at all, elementwise, as int32."""
    result = jnp.asarray(candidates[-1], jnp.int32)
    for candidate in reversed(candidates[:-1]):
        result = jnp.where(jnp.asarray(candidate) == Reason.NONE, result, candidate)
    return result.astype(jnp.int32)


def as_metric(values: jax.Array, *reasons: jax.typing.ArrayLike) -> Metric:
    """Return a metric whose values are NaN exactly where a reason stands.

    Args:
      values: (...) numbers; one that is not finite and has no reason gets `Reason.OVERFLOW`.
      *reasons: integer codes that broadcast with ``values``, the first that is set counts.
    """
    overflow = jnp.where(jnp.isfinite(values), Reason.NONE, Reason.OVERFLOW)
    code = jnp.broadcast_to(first_reason(*reasons, overflow), values.shape)
    return Metric(jnp.where(code == Reason.NONE, values, jnp.nan), code)
