"""Limits and repetitions of a track, and checks of times against the limits.

Times are those of the agent's side: from the call of a method to its return, transport left out.
"""

from dataclasses import asdict, dataclass, fields, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from evaluation.json_types import JsonMapping, JsonObject, JsonValue

TRAINING = (0, 1, 2)
"""Levels an agent trains on, in the order in which it meets them first."""
VALIDATION = (3, 4)
"""Levels it is judged on, in order."""

SCORE_DISQUALIFIED = -1000.0
LONGEST = 86_400.0  # s, of any limit
MOST_PLAYS = 1_000_000

Overspent = Literal["disqualify", "abort_level"]
OVERSPENT: tuple[Overspent, ...] = ("disqualify", "abort_level")
Scope = Literal["level", "phase"]
SCOPES: tuple[Scope, ...] = ("level", "phase")
Timer = Literal["wall", "processor"]
TIMERS: tuple[Timer, ...] = ("wall", "processor")


@dataclass(frozen=True)
class Rules:
    """Limits of an agent.

    Attributes:
      start_seconds: the constructor must return before this, s.
      init_seconds: each `init` must return before this, s.
      act_seconds: an action that comes later than this is replaced by ACTION_NIL, s.
      act_hard_seconds: an action that comes later than this ends the level, s.
      learning_seconds: time for training from the constructor on, s.
      grace_seconds: time for `result` once that is used up, s.
      grace_on_crossing: whether a `result` that begins in time, and during which the time for
        training runs out, has the grace as well. The framework's client counts it as overspent.
      validation_times: how often the validation levels are played.
      on_overspent: effect of an overspent action on the level: "disqualify" (winner -100, score
        -1000) or "abort_level" (no winner, score kept). The next level follows in either case.
      scope: cost of an `init` that fails or is late. With "level" it is the level in play, as for
        any disqualification, and `result` is called as after any level. With "phase", as on the
        published server, it is the track in training and the repetition in validation.
      timer: measure of constructor, `init`, `act` and `result`: "wall", or "processor", the
        processor time of the agent's whole process, which stands still while it sleeps. The time
        for training is wall time in either case.
      most_plays: plays in training after which validation follows, so that an agent that breaks off
        every level at once cannot fill memory and disk.
      original_fields: fill `isValidation` and `gameTick` as the original server does: the first is
        true in INIT only, the second is -1 in every INIT but the first.
    """

    start_seconds: float = 1.0
    init_seconds: float = 1.0
    act_seconds: float = 0.04
    act_hard_seconds: float = 0.05
    learning_seconds: float = 600.0
    grace_seconds: float = 1.0
    grace_on_crossing: bool = True
    validation_times: int = 1
    on_overspent: Overspent = "disqualify"
    scope: Scope = "level"
    timer: Timer = "wall"
    most_plays: int = 10_000
    original_fields: bool = False

    def __post_init__(self) -> None:
        """Refuse limits that are out of bounds or out of order."""
        for field in fields(self):
            if field.name.endswith("_seconds"):
                _check_seconds(field.name, getattr(self, field.name))
        if self.act_hard_seconds < self.act_seconds:
            raise ValueError(
                f"act_hard_seconds is {self.act_hard_seconds}; it must be at least act_seconds, "
                f"{self.act_seconds}"
            )
        for name, most in (("validation_times", 1000), ("most_plays", MOST_PLAYS)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
                raise ValueError(f"{name} is {value!r}; it must be a whole number from 1 to {most}")
        options = (("on_overspent", OVERSPENT), ("scope", SCOPES), ("timer", TIMERS))
        for name, allowed in options:
            value = getattr(self, name)
            if value not in allowed:
                raise ValueError(f"{name} is {value!r}; it must be {' or '.join(allowed)}")
        for name in ("grace_on_crossing", "original_fields"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} is {getattr(self, name)!r}; it must be true or false")

    def changed(self, values: JsonMapping) -> "Rules":
        """Return the rules with other values by name.

        Raises:
          ValueError: an unknown name, or a value out of bounds.
        """
        names = [field.name for field in fields(self)]
        for name in values:
            if name not in names:
                raise ValueError(f"rule {name!r} is unknown; the rules are {', '.join(names)}")
        return replace(self, **values)

    def to_json(self) -> JsonObject:
        """Return plain JSON values."""
        return asdict(self)

    # Checks of times, which may be arrays of any shape, one a lane. -------------------------------

    def start_late(self, seconds: npt.ArrayLike) -> np.ndarray:
        """Whether a constructor took too long: no time was left when it returned."""
        return microseconds(seconds) >= microseconds(self.start_seconds)

    def init_late(self, seconds: npt.ArrayLike) -> np.ndarray:
        """Whether an `init` took too long."""
        return microseconds(seconds) >= microseconds(self.init_seconds)

    def act_late(self, seconds: npt.ArrayLike) -> np.ndarray:
        """Whether an action came too late to be played."""
        return microseconds(seconds) > microseconds(self.act_seconds)

    def act_overspent(self, seconds: npt.ArrayLike) -> np.ndarray:
        """Whether an action came so late that it ends the level."""
        return microseconds(seconds) > microseconds(self.act_hard_seconds)

    def learning_over(self, elapsed: npt.ArrayLike) -> np.ndarray:
        """Whether the time for training is used up, `elapsed` s after it began."""
        return microseconds(elapsed) >= microseconds(self.learning_seconds)

    def result_limit(self, elapsed: npt.ArrayLike) -> np.ndarray:
        """Time for a `result` that begins `elapsed` s after training began, s.

        It is the rest of the time for training, plus the grace if none is left or
        `grace_on_crossing` is set.
        """
        remaining = np.maximum(np.round(np.subtract(self.learning_seconds, elapsed), 6), 0.0)
        grace = np.where(
            self.learning_over(elapsed) | self.grace_on_crossing, self.grace_seconds, 0.0
        )
        return remaining + grace

    def result_overspent(self, elapsed: npt.ArrayLike, seconds: npt.ArrayLike) -> np.ndarray:
        """Whether a `result` that began at `elapsed` and took `seconds` took too long."""
        return microseconds(seconds) > microseconds(self.result_limit(elapsed))


def microseconds(seconds: npt.ArrayLike) -> np.ndarray:
    """Whole microseconds, so that no limit depends on the last bit of a difference of times."""
    return np.rint(np.multiply(seconds, 1e6)).astype(np.int64)


def _check_seconds(name: str, value: JsonValue) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value <= LONGEST:
        raise ValueError(
            f"{name} is {value!r}; it must be a number above 0 and up to {LONGEST:g} s"
        )


PRESETS: dict[str, Rules] = {
    "track": Rules(),
    "document": Rules(act_hard_seconds=1.0),
    "gvgai2017": Rules(
        learning_seconds=300.0,
        grace_on_crossing=False,
        validation_times=10,
        on_overspent="abort_level",
        scope="phase",
        original_fields=True,
    ),
}
"""Rules by name.

"track" reads the track's description with its two sentences on `init` and `act` put right, and
with the framework's hard limit; "document" takes every limit as printed; "gvgai2017" are the rules
of the published server.
"""


def preset(name: str) -> Rules:
    """Return rules by name.

    Raises:
      ValueError: no such preset.
    """
    if name not in PRESETS:
        raise ValueError(f"preset is {name!r}; it must be one of {', '.join(PRESETS)}")
    return PRESETS[name]
