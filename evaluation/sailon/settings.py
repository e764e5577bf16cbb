"""Settings of experiments: the original's ini keys, or the same keys as JSON."""

import configparser
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Final, Literal

from evaluation import positions
from evaluation.json_types import JsonMapping, JsonObject, JsonValue
from evaluation.sailon.text import ExperimentError, Text
from evaluation.schedule import FIRST_3D
from jaxsim import parameters
from jaxsim.worlds.cartpole3d import PARAMETERS
from jaxsim.worlds.cartpole3d.levels import DIFFICULTIES
from jaxsim.worlds.cartpole3d.original.hints import HINT_LEVELS, HINT_WORDS

Starts = Literal["wsu", "counter"]
Messages = Literal["0.8", "2021"]
Indicator = Literal["button", "episode"]
Split = Literal["known", "held out"]

DOMAIN: Final = "cartpole"
"""Section of an ini file whose keys override those of all other sections."""

PHASES: Final = ("1", "2", "3", "4a", "4b")
MAX_EPISODES: Final = 10_000
MAX_TRIALS: Final = 100_000
_ECHO = 40


@dataclass(frozen=True)
class ExperimentSettings:
    """Settings of an experiment; the names are the original's keys.

    Attributes:
      novelty: levels of the novelty catalogue, 200 for none.
      difficulty: difficulties, each with every level.
      novelty_visibility: 0 for agents that are not told whether there is novelty, 1 for those
        that are.
      hint_level: how much the first feature vector of a novel episode tells, where visibility is
        1 and there is a novelty; -1 elsewhere.
      trials: of each cell.
      training_episodes: of the training before all trials, always of level 200.
      testing_episodes: of a trial.
      pre_novel_episodes: of a trial before novelty comes; None for three tenths of the trial. It
        is half of the trial if the trial has no more episodes than these.
      testing_novelty_p2: share of novel episodes from the first novel one on, rounded down.
      training_novelty_p1: share of novel episodes in training; it must be 0.
      normal_timeout_seconds: time limit of one call of the agent, s.
      training_timeout_multiplier: factor on the time limit for `train_model`.
      budget: probability of feedback per tick once the agent has reported novelty; negative for
        never.
      phase: of the SAIL-ON programme.
      messages: "2021" for those of the framework document of that year: blocks as fields block_0,
        block_1, ..., no hints, and a novelty prediction from 0 to 10 beside every action; "0.8"
        for those of the generator's version 0.8; None for "2021" in phase 1 and "0.8" later.
      seed: root of the plan and of the episodes' seeds.
      starts: "wsu" for the starts that the original draws from an episode's seed, "counter" for
        this package's own.
      labels: agent whose actions are labels and feedback: "reference" for `pd`, or the name of
        any other pure agent, such as "mpc". "left" is the label that the original always sends,
        without feedback.
      novelty_list: list of novelties that the cells have in place of levels: the name of a shipped
        one, or a file; None for levels.
      samples: how many of the list's novelties, from its beginning; None for all.
      split: "known" or "held out" for novelties of these alone; None for both.
      indicator: "button" for an indicator that stays true once novelty has come, as the original
        does it, "episode" for one that tells of each episode; None for "episode" with the messages
        of 2021 and "button" with others.
      sensors: (path, value) pairs of how the sensors err in every episode, training included, such
        as ("sensors/noise_position", 0.01); a novelty overrides them.
    """

    novelty: tuple[int, ...] = (200,)
    difficulty: tuple[str, ...] = DIFFICULTIES
    novelty_visibility: tuple[int, ...] = (0, 1)
    hint_level: tuple[int, ...] = HINT_LEVELS
    trials: int = 30
    training_episodes: int = 10
    testing_episodes: int = 10
    pre_novel_episodes: int | None = None
    testing_novelty_p2: float = 0.8
    training_novelty_p1: float = 0.0
    normal_timeout_seconds: float = 1200.0
    training_timeout_multiplier: float = 100.0
    budget: float = -0.1
    phase: str = "3"
    seed: int = 0
    starts: Starts = "wsu"
    labels: str = "reference"
    messages: Messages | None = None
    indicator: Indicator | None = None
    novelty_list: str | None = None
    samples: int | None = None
    split: Split | None = None
    sensors: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        """Check every value.

        Raises:
          ValueError: a value that is not allowed; it begins with the quoted name of the key.
        """
        for name, check in _CHECKS.items():
            problem = check(getattr(self, name))
            if problem:
                raise ValueError(f"{name!r} is {_shown(getattr(self, name))}; {problem}")
        flat = [level for level in self.novelty if level < FIRST_3D]
        if self.sensors and flat and self.novelty_list is None:
            raise ValueError(f"'sensors' needs levels of CartPole3D, and 'novelty' has {flat[0]}")
        for name in ("samples", "split"):
            if self.novelty_list is None and getattr(self, name) is not None:
                value = getattr(self, name)
                raise ValueError(f"{name!r} is {value!r}; it needs 'novelty_list', or --novelties")

    @property
    def before(self) -> int:
        """Episodes of a trial before novelty comes."""
        count, setting = self.testing_episodes, self.pre_novel_episodes
        episodes = int(0.3 * count) if setting is None else setting
        return episodes if episodes < count else count // 2

    @property
    def tells_of_episodes(self) -> bool:
        """Whether the indicator tells of each episode rather than of the button."""
        return (self.indicator or ("episode" if self.of_2021 else "button")) == "episode"

    @property
    def of_2021(self) -> bool:
        """Whether messages are those of the framework document of 2021."""
        return (self.messages or ("2021" if self.phase == "1" else "0.8")) == "2021"

    def to_json(self) -> JsonObject:
        """Return plain JSON values."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.novelty_list is None:
            values = {name: v for name, v in values.items() if name not in _OF_LISTS}
        sensors = values.pop("sensors")
        values = {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}
        return {**values, "sensors": dict(sensors)} if sensors else values


_OF_LISTS: Final = ("novelty_list", "samples", "split")


def _shown(value: object) -> str:
    return parameters.shown(list(value) if isinstance(value, tuple) else value)


def _several(allowed: tuple[object, ...]) -> Callable[[object], str]:
    def check(values: object) -> str:
        if not isinstance(values, tuple) or not values:
            return "it must be a list of one or more values"
        wrong = [v for v in values if type(v) is not type(allowed[0]) or v not in allowed]
        options = ", ".join(map(str, allowed))
        if wrong:
            return f"{parameters.shown(wrong[0])} in it must be one of {options}"
        return "no value may stand in it twice" if len(set(values)) < len(values) else ""

    return check


def _one(*allowed: object) -> Callable[[object], str]:
    options = ", ".join("null" if v is None else repr(v) for v in allowed)
    return lambda value: "" if value in allowed else f"it must be one of {options}"


def _whole(low: int, high: int, optional: bool = False) -> Callable[[object], str]:
    def check(value: Any) -> str:
        if optional and value is None:
            return ""
        whole = isinstance(value, int) and not isinstance(value, bool)
        return "" if whole and low <= value <= high else f"it must be whole, from {low} to {high}"

    return check


def _real(low: float, high: float) -> Callable[[object], str]:
    def check(value: Any) -> str:
        real = isinstance(value, int | float) and not isinstance(value, bool)
        inside = real and math.isfinite(value) and low <= value <= high
        return "" if inside else f"it must be a number from {low:g} to {high:g}"

    return check


def _label(value: object) -> str:
    if not isinstance(value, str):
        return "it must be 'reference', 'left' or the name of an agent"
    if value in ("reference", "left"):
        return ""
    from jaxsim import agents  # imported here because it is slow

    try:
        agents.get(value)
    except ValueError as error:
        return f"it must be 'reference', 'left' or an agent: {error}"
    return ""


_OF_SENSORS: Final = {
    path: parameter for path, parameter in PARAMETERS.items() if path.startswith("sensors/")
}


def _sensors(value: Any) -> str:
    pairs = isinstance(value, tuple) and all(isinstance(pair, tuple) for pair in value)
    if not pairs:
        return "it must be an object of values by path, as {'sensors/noise_position': 0.01}"
    try:
        parameters.check(_OF_SENSORS, dict(value))
    except ValueError as error:
        return str(error)
    return ""


_CHECKS: Final[dict[str, Callable[[object], str]]] = {
    "novelty": _several(tuple(HINT_WORDS)),
    "difficulty": _several(DIFFICULTIES),
    "novelty_visibility": _several((0, 1)),
    "hint_level": _several(HINT_LEVELS),
    "trials": _whole(1, MAX_TRIALS),
    "training_episodes": _whole(0, MAX_EPISODES),
    "testing_episodes": _whole(1, MAX_EPISODES),
    "pre_novel_episodes": _whole(0, MAX_EPISODES, optional=True),
    "testing_novelty_p2": _real(0, 1),
    "training_novelty_p1": lambda value: (
        "" if value == 0 else "it must be 0: training is level 200"
    ),
    "normal_timeout_seconds": _real(1e-3, 1e9),
    "training_timeout_multiplier": _real(0, 1e9),
    "budget": _real(-1, 1),
    "phase": _one(*PHASES),
    "seed": _whole(0, 2**32 - 1),
    "starts": _one("wsu", "counter"),
    "labels": _label,
    "messages": _one(None, "0.8", "2021"),
    "indicator": _one(None, "button", "episode"),
    "novelty_list": lambda value: (
        "" if value is None or isinstance(value, str) else "it must be the name of a list"
    ),
    "samples": _whole(1, MAX_TRIALS, optional=True),
    "split": _one(None, "known", "held out"),
    "sensors": _sensors,
}


def settings_from_json(text: Text, values: JsonMapping) -> ExperimentSettings:
    """Read settings from a decoded JSON object.

    Raises:
      ExperimentError: an unknown key or a value that is not allowed, with its place.
    """
    text.keys((), values, _CHECKS)
    arguments: dict[str, Any] = {
        n: tuple(v) if isinstance(v, list) else v for n, v in values.items()
    }
    if isinstance(arguments.get("sensors"), dict):
        arguments["sensors"] = tuple(sorted(arguments["sensors"].items()))
    try:
        return ExperimentSettings(**arguments)
    except (ValueError, TypeError) as error:
        name = str(error).split("'")[1] if "'" in str(error) else ""
        text.fail((name,) if name in values else (), str(error), error)


def settings_from_ini(source: str, content: str) -> ExperimentSettings:
    """Read settings from the text of an ini file of the original.

    Keys may stand in any section; those of the section "cartpole" override others. Keys of other
    parts of the original, such as its database, are ignored.

    Raises:
      ExperimentError: with its line; the text is neither JSON nor an ini file, or a value is not
        allowed.
    """
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(content, source)
    except configparser.Error as error:
        line = getattr(error, "lineno", None) or next(iter(getattr(error, "errors", [])), (1,))[0]
        reason = "neither a JSON object nor an ini file: " + " ".join(str(error.message).split())
        raise ExperimentError(source, line, 1, reason) from error
    sections = sorted(parser.sections(), key=lambda name: name.lower() != DOMAIN)
    options: dict[str, str] = {}
    for values in [*(parser[name] for name in sections), parser.defaults()]:
        for key, value in values.items():
            options.setdefault(key, value)
    if not options:
        raise ExperimentError(source, 1, 1, "there are no settings; see jaxsim sailon generate -h")
    arguments = {}
    for key, value in options.items():
        place = _line_of(content, key)
        if key not in _CHECKS:
            hint = parameters.unknown("key", key, _CHECKS)
            if "did you mean" in hint:
                raise ExperimentError(source, *place, hint)
            continue
        try:
            arguments[key] = _converted(key, value)
        except ValueError as error:
            reason = f"{key!r} is {value[:_ECHO]!r}; it must be {_kind(key)}"
            raise ExperimentError(source, *place, reason) from error
    try:
        return ExperimentSettings(**arguments)
    except ValueError as error:
        name = str(error).split("'")[1]
        raise ExperimentError(source, *_line_of(content, name), str(error)) from error


def _line_of(content: str, key: str) -> tuple[int, int]:
    """Line and column of the last place of a key."""
    matches = list(re.finditer(rf"^[ \t]*({re.escape(key)})\s*[=:]", content, re.M | re.I))
    return positions.line_column(content, matches[-1].start(1)) if matches else (1, 1)


def _kind(key: str) -> str:
    value = getattr(ExperimentSettings(), key)
    if key == "sensors":
        return "given as JSON or by --set"
    if isinstance(value, tuple):
        return "numbers with commas between them"
    return "a number" if isinstance(value, float) else "a whole number"


def _converted(key: str, value: str) -> JsonValue:
    default, value = getattr(ExperimentSettings(), key), value.strip().strip("\"'")
    if default == ():
        raise ValueError("it has values by path")
    if isinstance(default, tuple):
        parts = [part.strip().strip("\"'") for part in value.strip("[]").split(",")]
        return tuple(int(part) if isinstance(default[0], int) else part for part in parts)
    if key in ("pre_novel_episodes", "samples") or isinstance(default, int):
        return int(value)
    return float(value) if isinstance(default, float) else value
