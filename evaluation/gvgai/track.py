"""A learning track: five levels and the rules, as a JSON document and as a `Schedule`.

    {"name": "cartpole3d",
     "levels": [{"task": "CartPole3D", "parameters": {"gravity": 15.0}, "about": "..."}, ...],
     "rules": {"preset": "track", "learning_seconds": 600}}

`about` and `rules` may be left out. Levels 0 to 2 are for training, 3 and 4 for validation.
"""

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from evaluation.gvgai.rules import TRAINING, VALIDATION, Rules, preset
from evaluation.json_types import JsonMapping, JsonObject, JsonValue
from evaluation.schedule import Block, Parameters, Schedule, Value
from jaxsim import parameters, registry

NUM_LEVELS = len(TRAINING) + len(VALIDATION)
LARGEST_FILE = 1 << 20  # bytes

TRAINING_PHASE, VALIDATION_PHASE = 1, 2
"""Phases of the schedule; training by choice belongs to the first."""


@dataclass(frozen=True)
class TrackLevel:
    """One level of a track.

    Attributes:
      task: name of the task, for example "CartPole3D".
      parameters: values by path that differ from the task's defaults, sorted by path.
      about: description in words.
    """

    task: str
    parameters: Parameters = ()
    about: str = ""

    def __post_init__(self) -> None:
        """Refuse a task or parameters that do not exist."""
        spec, values = registry.spec(self.task), dict(self.parameters)
        parameters.check(spec.parameters, values)
        spec.check(values)

    def to_json(self) -> JsonObject:
        """Return plain JSON values."""
        return {"task": self.task, "parameters": dict(self.parameters), "about": self.about}


@dataclass(frozen=True)
class Track:
    """Five levels with the rules by which they are played.

    Attributes:
      name: short name of the game.
      levels: 0 to 2 for training, 3 and 4 for validation.
      rules: limits and repetitions.
      source: origin in words.
    """

    name: str
    levels: tuple[TrackLevel, ...]
    rules: Rules = field(default_factory=Rules)
    source: str = ""

    def __post_init__(self) -> None:
        """Refuse another number of levels."""
        if len(self.levels) != NUM_LEVELS:
            raise ValueError(
                f"the track has {len(self.levels)} levels; it must have {NUM_LEVELS}: "
                f"{_listed(TRAINING)} for training, {_listed(VALIDATION)} for validation"
            )

    @property
    def schedule(self) -> Schedule:
        """Every level once, in order; training by choice continues beyond it."""
        blocks = tuple(
            Block(
                index=number,
                phase=VALIDATION_PHASE if number in VALIDATION else TRAINING_PHASE,
                mode="test" if number in VALIDATION else "train",
                task=level.task,
                parameters=level.parameters,
                count=1,
                learning=number not in VALIDATION,
            )
            for number, level in enumerate(self.levels)
        )
        return Schedule(self.name, blocks, self.source)

    def to_json(self) -> JsonObject:
        """Return the document as plain JSON values."""
        return {
            "name": self.name,
            "levels": [level.to_json() for level in self.levels],
            "rules": self.rules.to_json(),
        }

    def dumps(self) -> str:
        """Return the document as indented strict JSON text; `loads` reads it."""
        return json.dumps(self.to_json(), indent=2, allow_nan=False) + "\n"


def default_track() -> Track:
    """Return the default track."""
    level, difficulty = "novelty/level", "novelty/difficulty"
    levels: tuple[tuple[str, dict[str, Value]], ...] = (
        ("nothing is changed", {}),
        ("a longer pole: level 201, easy", {level: 201, difficulty: "easy"}),
        ("stronger gravity", {"gravity": 15.0}),
        ("a far longer pole: level 201, hard", {level: 201, difficulty: "hard"}),
        (
            "three blocks in four start towards the cart: level 203, hard",
            {level: 203, difficulty: "hard"},
        ),
    )
    track_levels = (TrackLevel("CartPole3D", _sorted(values), about) for about, values in levels)
    return Track("cartpole3d", tuple(track_levels), source="default track")


def load(path: Path) -> Track:
    """Read a track from a file.

    Raises:
      ValueError: it is not a track; says where and what to change.
      OSError: it cannot be read.
    """
    with path.open("rb") as file:
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise ValueError(f"{path}: a track has at most {LARGEST_FILE} bytes")
    return loads(content.decode("utf-8", errors="replace"), str(path))


def loads(text: str, source: str = "track") -> Track:
    """Read a track from JSON text.

    Args:
      text: the document.
      source: its name, for errors.

    Raises:
      ValueError: it is not a track; says where and what to change.
    """
    try:
        document = json.loads(text, object_pairs_hook=_without_twins)
    except json.JSONDecodeError as error:
        raise ValueError(f"{source}:{error.lineno}:{error.colno}: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{source}: {error}") from error
    return _Reader(source).track(document)


def _without_twins(pairs: list[tuple[str, Any]]) -> JsonObject:
    """Decode an object of JSON; refuse a key that stands in it twice."""
    values = dict(pairs)
    if len(values) < len(pairs):
        keys = Counter(key for key, _ in pairs)
        twin = next(key for key, times in keys.items() if times > 1)
        raise ValueError(f"key {twin!r} stands twice in one object; keep one")
    return values


@dataclass(frozen=True)
class _Reader:
    """Reads the parts of a document and says where one is wrong."""

    source: str

    def track(self, document: JsonValue) -> Track:
        values = self._object("the document", document, {"name", "levels"}, {"rules"})
        name = self._text("name", values["name"])
        if not name:
            self._fail("name", "is empty; give the track a name")
        if not isinstance(values["levels"], list):
            self._fail("levels", "must be a list")
        levels = tuple(self._level(f"levels[{n}]", v) for n, v in enumerate(values["levels"]))
        rules = self._rules(values.get("rules", {}))
        try:
            return Track(name, levels, rules, self.source)
        except ValueError as error:
            self._fail("levels", str(error))

    def _level(self, place: str, value: JsonValue) -> TrackLevel:
        values = self._object(place, value, {"task"}, {"parameters", "about"})
        changes = values.get("parameters", {})
        if not isinstance(changes, dict):
            self._fail(f"{place}.parameters", "must be an object of values by path")
        task = self._text(f"{place}.task", values["task"])
        try:
            return TrackLevel(
                task,
                _sorted(registry.spec(task).expand(changes)),
                self._text(f"{place}.about", values.get("about", "")),
            )
        except ValueError as error:
            self._fail(place, str(error))

    def _rules(self, value: JsonValue) -> Rules:
        if not isinstance(value, dict):
            self._fail("rules", "must be an object of values by name")
        changes = {name: v for name, v in value.items() if name != "preset"}
        try:
            return preset(self._text("rules.preset", value.get("preset", "track"))).changed(changes)
        except ValueError as error:
            self._fail("rules", str(error))

    def _object(
        self, place: str, value: JsonValue, needed: set[str], allowed: set[str]
    ) -> JsonMapping:
        if not isinstance(value, dict):
            self._fail(place, "must be an object")
        for name in sorted(needed - set(value)):
            self._fail(place, f"has no {name!r}; add it")
        for name in sorted(set(value) - needed - allowed):
            names = ", ".join(sorted(needed | allowed))
            self._fail(
                place, f"has {parameters.shown(name)}, which is unknown; it may have {names}"
            )
        return value

    def _text(self, place: str, value: JsonValue) -> str:
        if not isinstance(value, str):
            self._fail(place, "must be a text")
        return value

    def _fail(self, place: str, reason: str) -> NoReturn:
        raise ValueError(f"{self.source}: {place}: {reason}")


def _sorted(values: JsonMapping) -> Parameters:
    return tuple(sorted(values.items()))


def _listed(levels: tuple[int, ...]) -> str:
    return ", ".join(map(str, levels))
