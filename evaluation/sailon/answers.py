"""Checks of what agents return: actions, novelty predictions, characterisations."""

import json
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Final, TypeGuard

import numpy as np
import numpy.typing as npt

from evaluation.errors import message_of
from evaluation.json_types import JsonMapping, JsonObject, JsonValue
from evaluation.metrics.novelty.characterisation import KINDS
from jaxsim.parameters import shown
from jaxsim.worlds.cartpole3d.types import ACTIONS

GIVE_UP: Final = "give_up"
"""The action that ends an episode with performance 0."""

LARGEST: Final = sys.float_info.max
MOST_NOVELTY: Final = 2**31 - 1  # columns of results are int32
HIGHEST: Final = 10  # of novelty predictions in phase 1
FIELDS: Final = (
    "novelty_probability",
    "novelty_threshold",
    "novelty",
    "novelty_characterization",
)


class Fault(Exception):
    """An error of an agent; `hung` if a call took too long."""

    def __init__(self, reason: str, hung: bool = False) -> None:
        """Keep the reason."""
        super().__init__(reason)
        self.hung = hung


@dataclass(frozen=True)
class Answer:
    """An agent's answer to a feature vector.

    Attributes:
      action: a word of `ACTIONS`, or `GIVE_UP`.
      prediction: novelty prediction from 0 to 10 of phase 1; None for none.
    """

    action: str
    prediction: int | None = None


@dataclass(frozen=True)
class NoveltyReport:
    """An agent's report of novelty at the end of an episode.

    Attributes:
      probability: in [0, 1]; NaN without a valid report.
      threshold: in [0, 1]; NaN without a valid report.
      novelty: a whole number from 0 to `MOST_NOVELTY`.
      characterisation: plain JSON values.
    """

    probability: float = math.nan
    threshold: float = math.nan
    novelty: int = 0
    characterisation: JsonMapping | None = None

    @property
    def detected(self) -> bool:
        """Whether the agent calls the episode novel."""
        return self.probability >= self.threshold

    def message(self) -> JsonObject:
        """Return the fields by their names in messages; all None without a valid report."""
        values = (self.probability, self.threshold, self.novelty, self.characterisation or {})
        none = math.isnan(self.probability)
        return {name: None if none else v for name, v in zip(FIELDS, values, strict=True)}


def answer(value: object, method: str) -> Answer:
    """Check what `training_instance` or `testing_instance` returned.

    In phase 1 a novelty prediction may stand beside the action or in a second object:
    ``{"action": "left", "novelty_prediction": 1}`` or ``({"action": ...}, {...})``.

    Raises:
      Fault: none of these.
    """
    fields: dict[object, Any] = {}
    for part in value if isinstance(value, tuple | list) else (value,):
        if not isinstance(part, Mapping):
            raise Fault(f'{method} returned {shown(value)}; it must be {{"action": "..."}}')
        fields |= part
    action = fields.get("action")
    if not isinstance(action, str) or action not in (*ACTIONS, GIVE_UP):
        allowed = ", ".join((*ACTIONS, GIVE_UP))
        raise Fault(f"{method} returned the action {shown(action)}; it must be one of {allowed}")
    prediction = fields.get("novelty_prediction")
    if prediction is None:
        return Answer(action)
    whole = isinstance(prediction, Integral) and not isinstance(prediction, bool)
    if not whole or not 0 <= int(prediction) <= HIGHEST:
        raise Fault(
            f"{method} returned the novelty prediction {shown(prediction)}; it must be a whole "
            f"number from 0 to {HIGHEST}"
        )
    return Answer(action, int(prediction))


def verdict(value: object, method: str) -> NoveltyReport:
    """Check what `training_episode_end` or `testing_episode_end` returned.

    Raises:
      Fault: no tuple of four, or one whose numbers are out of bounds.
    """
    if not isinstance(value, tuple | list) or len(value) != len(FIELDS):
        raise Fault(f"{method} returned {shown(value)}; it must be ({', '.join(FIELDS)})")
    probability, threshold, novelty, characterisation = value
    for name, number in zip(FIELDS, (probability, threshold), strict=False):
        if not _within(number, 0, 1):
            raise Fault(f"{method} returned the {name} {shown(number)}; it must be from 0 to 1")
    if not _within(novelty, 0, MOST_NOVELTY) or int(novelty) != novelty:
        allowed = f"it must be a whole number from 0 to {MOST_NOVELTY}"
        raise Fault(f"{method} returned the novelty {shown(novelty)}; {allowed}")
    if characterisation is not None and not isinstance(characterisation, Mapping):
        text = shown(characterisation)
        raise Fault(f"{method} returned the characterization {text}; it must be an object")
    try:
        text = json.dumps(characterisation or {}, default=_plain, allow_nan=False)
        plain = json.loads(text)
        json.dumps(plain, ensure_ascii=False).encode()  # refuses what no file of text can hold
    except (TypeError, ValueError, RecursionError) as error:
        reason = f"a characterization that is not JSON: {message_of(error)}"
        raise Fault(f"{method} returned {reason}") from error
    shares = read_characterisation(plain)[0]
    for level in np.flatnonzero((shares < 0) | (shares > 1)):
        reason = f"the probability {shares[level]:g} of level {level}; it must be from 0 to 1"
        raise Fault(f"{method} returned {reason}")
    return NoveltyReport(float(probability), float(threshold), int(novelty), plain)


def _within(number: Any, low: float, high: float) -> TypeGuard[float]:
    """Whether it is a number in a range; also of integers beyond the floats."""
    real = isinstance(number, Real) and not isinstance(number, bool)
    return real and bool(low <= number <= high)


def _plain(value: object) -> JsonValue:
    """Convert NumPy numbers and arrays to Python values."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not JSON")


def read_characterisation(
    characterisation: JsonMapping | None,
) -> tuple[npt.NDArray[np.float64], tuple[str, str, str]]:
    """Read a characterisation: probabilities of the levels' digits, then entity, attribute, change.

    Levels are a list of objects with a number (``level_number``, ``level`` or ``Level``) and a
    probability (``probability``, ``Prob`` or ``prob``), under ``level`` or ``levels``; all may be
    nested in ``novelty_characterization``, as agents of the generator do it.

    Returns:
      ((9,) probabilities, NaN for none; words, "" for none).
    """
    fields: JsonMapping = characterisation or {}
    if isinstance(fields.get("novelty_characterization"), Mapping):
        fields = fields["novelty_characterization"]
    probabilities = np.full(KINDS, np.nan)
    levels = fields.get("level", fields.get("levels"))
    for entry in levels if isinstance(levels, list) else []:
        if isinstance(entry, Mapping):
            number = _first(entry, "level_number", "level", "Level")
            share = _first(entry, "probability", "Prob", "prob")
            if number is not None and share is not None and number in range(KINDS):
                probabilities = np.nan_to_num(probabilities)
                probabilities[int(number)] = share
    words = (fields.get(name) for name in ("entity", "attribute", "change"))
    entity, attribute, change = (word if isinstance(word, str) else "" for word in words)
    return probabilities, (entity, attribute, change)


def _first(entry: JsonMapping, *names: str) -> float | None:
    """The first of several fields that holds a finite number."""
    for name in names:
        value = entry.get(name)
        if _within(value, -LARGEST, LARGEST):
            return float(value)
    return None
