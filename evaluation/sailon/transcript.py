"""Transcripts: every message of an episode as a line of JSON, and their replay.

The first line identifies the episode. Every tick has the feature vector, the novelty indicator (in
training, the feature label), the agent's action, in phase 1 its novelty prediction, and the
performance, each in the form of the generator's cartpole document. In later phases the last line is
the agent's report of novelty.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from evaluation.files import write_whole
from evaluation.json_types import JsonMapping, JsonObject, JsonValue
from evaluation.sailon import text, worlds
from evaluation.sailon.answers import GIVE_UP
from evaluation.sailon.experiment import EpisodePlan, Experiment, LevelVariant, Trial
from evaluation.sailon.text import ExperimentError, Text
from evaluation.sailon.worlds import TrialGroup
from evaluation.session import Episode, Session
from jaxsim.novelty import Novelty
from jaxsim.pytrees import State
from jaxsim.worlds.cartpole3d.original import messages
from jaxsim.worlds.cartpole3d.types import ACTIONS

FORMAT: Final = "jaxsim-sailon-transcript-1"
PERFORMANCE_DIGITS: Final = 6
INDICATORS: Final = {None: "null", False: "false", True: "true"}
"""The novelty indicator in messages: a word, as the document shows it."""


@dataclass(frozen=True)
class Coordinates:
    """Everything that determines an episode.

    Attributes:
      seed: root of the experiment's randomness.
      lifetime: number of the trial's lifetime, 0 for the training.
      variants: physics that share the environment.
      starts: "wsu" or "counter".
      flat: whether feature vectors have the form of the messages of 2021.
      plan: the episode.
    """

    seed: int
    lifetime: int
    variants: tuple[LevelVariant, ...]
    starts: str
    flat: bool
    plan: EpisodePlan

    @classmethod
    def of(
        cls, experiment: Experiment, group: TrialGroup, trial: Trial | None, plan: EpisodePlan
    ) -> "Coordinates":
        """Coordinates of an episode of a trial, or of the training."""
        settings = experiment.settings
        lifetime = 0 if trial is None else trial.number + 1
        flat = settings.of_2021
        return cls(settings.seed, lifetime, group.variants, settings.starts, flat, plan)

    def to_json(self) -> JsonObject:
        """Return plain JSON values, as the first line of a transcript has them."""
        named = {"indicator": "told"}  # where the format has another name
        fields = vars(self.plan).items()
        plan = {named.get(name, name): value for name, value in fields if name != "variant"}
        names = ("level", "difficulty", "novelty", "sensors")
        plan |= dict(zip(names, self.plan.variant.to_json(), strict=False))
        values = {name: value for name, value in vars(self).items() if name != "variants"}
        return {**values, "played": [one.to_json() for one in self.variants], "plan": plan}

    def open(self, session: Session, group: TrialGroup, starts: Mapping[int, State]) -> Episode:
        """Open the episode in a session of its lifetime.

        Args:
          session: of the lifetime.
          group: group of the episode.
          starts: from `worlds.starts_of_trial`; empty where starts are counted.
        """
        index = self.plan.index
        return session.start(group.variant(self.plan), index, starts.get(index))

    def feature_vector(
        self, episode: Episode, time_stamp: float, image: str | None = None
    ) -> JsonObject:
        """The message about the episode's latest observation, with an encoded picture or none."""
        first = episode.length == 0
        hint = None
        if first and not self.flat:
            hint = self.plan.hint
        try:
            return messages.feature_vector(
                episode.observation,
                first=first,
                hint=hint,
                time_stamp=time_stamp,
                image=image,
                flat_blocks=self.flat,
            )
        except ValueError as error:
            raise ValueError(f"this observation cannot be put into a message: {error}") from error


def performance_of(episode: Episode) -> float:
    """Performance so far, as messages hold it."""
    return round(episode.performance, PERFORMANCE_DIGITS)


class MessageRecorder:
    """Collects the messages of one episode.

    Args:
      path: file that they are written to at the end; None to collect nothing.
      where: the episode.
      training: whether it is one of the training.
    """

    def __init__(self, path: Path | None, where: Coordinates, training: bool) -> None:
        self._path, self._lines = path, []
        header = {"format": FORMAT, "mode": "train" if training else "test", **where.to_json()}
        self.say({"episode": header})

    _lines: list[str]

    def say(self, *entries: JsonMapping) -> None:
        """Add messages."""
        if self._path is not None:
            self._lines += [json.dumps(entry, allow_nan=False) for entry in entries]

    def write(self) -> None:
        """Write the file, whole or not at all."""
        if self._path is not None:
            write_whole(self._path, "\n".join(self._lines) + "\n")


@dataclass(frozen=True)
class Replay:
    """Result of playing a transcript's actions again.

    Attributes:
      steps: actions that were played.
      differences: differences between messages, as ``LINE: difference``.
    """

    steps: int
    differences: tuple[str, ...]


class ReplayObserver(Protocol):
    """Observer of a replay; it also plays the actions."""

    def begin(self, where: Coordinates, episode: Episode) -> None:
        """Called with the episode before its first action."""

    def step(self, action: int) -> None:
        """Play an action."""

    def hear(self, message: JsonMapping) -> None:
        """Called with each message of the transcript."""


class _NoWatch:
    """The default `ReplayObserver`: only plays the actions."""

    def begin(self, where: Coordinates, episode: Episode) -> None:
        self._episode = episode

    def step(self, action: int) -> None:
        self._episode.step(action)

    def hear(self, message: JsonMapping) -> None:
        pass


def replay(path: Path, watch: ReplayObserver | None = None) -> Replay:
    """Play the actions of a transcript again and compare every feature vector and performance.

    Pictures are not compared: they follow from the rest of a feature vector.

    Args:
      path: of the transcript.
      watch: observer; None for none.

    Raises:
      ExperimentError: not a transcript; names line and column.
    """
    lines = list(_lines(path))
    where, training = _header(str(path), lines[0][1] if lines else {})
    try:
        if where.plan.variant not in where.variants:
            raise ValueError('what it plays is not in "played"')
        group = TrialGroup((), where.variants)
        session = Session(group.schedule, seed=where.seed, lifetime=where.lifetime)
        starts: Mapping[int, State] = {}
        if where.starts == "wsu":
            starts = worlds.starts_of_trial([where.plan], group, session.tasks)
        episode = where.open(session, group, starts)
    except ValueError as error:
        reason = f"this episode cannot be opened: {error}"
        raise ExperimentError(str(path), 1, 1, reason) from error
    watch = watch or _NoWatch()
    watch.begin(where, episode)
    differences: list[str] = []
    steps, answered, performance = 0, training, performance_of(episode)
    for number, message in lines[1:]:
        watch.hear(message)
        if "cart" in message:
            image = message.get("image")
            expected = where.feature_vector(
                episode,
                _time(message.get("time_stamp")),
                image if isinstance(image, str) else None,
            )
            if json.loads(json.dumps(expected)) != message:
                differences.append(f"{number}: {_first_difference(expected, message)}")
            answered = not training  # in training the label comes first
        elif "action" in message and not answered:
            answered = True
        elif "action" in message:
            code = _code(str(path), number, message["action"])
            if code is not None and episode.over:
                # What follows can only differ as well.
                differences.append(f"{number}: the episode is over before this action")
                break
            steps += 1
            performance = _step(code, episode, watch)
        elif "performance" in message and message["performance"] != performance:
            differences.append(f"{number}: performance is {performance}")
    return Replay(steps, tuple(differences))


def recorded(path: Path) -> tuple[list[JsonObject], list[int]]:
    """Feature vectors of a transcript and codes of the agent's actions, in their order.

    Raises:
      ExperimentError: not a transcript; names line and column.
    """
    lines = list(_lines(path))
    _, training = _header(str(path), lines[0][1] if lines else {})
    vectors: list[JsonObject] = []
    actions: list[int] = []
    answered = training
    for number, message in lines[1:]:
        if "cart" in message:
            vectors.append(message)
            answered = not training  # in training the label comes first
        elif "action" in message and not answered:
            answered = True
        elif "action" in message:
            code = _code(str(path), number, message["action"])
            actions += [] if code is None else [code]
    return vectors, actions


def _code(source: str, number: int, action: object) -> int | None:
    """Code of an action; None for giving up."""
    if action == GIVE_UP:
        return None
    if action not in ACTIONS:
        raise ExperimentError(source, number, 1, f"{action!r} is not an action")
    return ACTIONS.index(str(action))


def _step(code: int | None, episode: Episode, watch: ReplayObserver) -> float:
    """Play an action; return the performance."""
    if code is None:
        return 0.0
    watch.step(code)
    return performance_of(episode)


def _time(value: object) -> float:
    """Time stamp of a message; 0 for an invalid one, so that the messages differ."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def _lines(path: Path) -> Iterator[tuple[int, JsonObject]]:
    for number, line in enumerate(text.read(path).splitlines(), 1):
        if line.strip():
            value = Text(line, str(path), number).decode()
            if not isinstance(value, dict):
                raise ExperimentError(str(path), number, 1, "a message must be an object {...}")
            yield number, value


def _header(source: str, first: JsonMapping) -> tuple[Coordinates, bool]:
    header = first.get("episode")
    try:
        header = dict(header)  # type: ignore[arg-type]
        if header.pop("format") != FORMAT:
            raise ValueError("another format")
        training = header.pop("mode") == "train"
        plan = _plan(header["plan"])
        variants = tuple(_variant(*one) for one in header["played"])
        seed, lifetime, flat = int(header["seed"]), int(header["lifetime"]), bool(header["flat"])
        return Coordinates(seed, lifetime, variants, str(header["starts"]), flat, plan), training
    except (TypeError, KeyError, ValueError) as error:
        reason = f'not a transcript: its first line must be {{"episode": {{...}}}} of {FORMAT}'
        raise ExperimentError(source, 1, 1, reason) from error


def _plan(values: JsonMapping) -> EpisodePlan:
    index, seed, hint = (int(values[k]) for k in ("index", "seed", "hint_level"))
    indicator = None if values["told"] is None else bool(values["told"])
    variant = _variant(
        values["level"], values["difficulty"], values.get("novelty"), values.get("sensors")
    )
    return EpisodePlan(index, variant, seed, bool(values["novel"]), indicator, hint)


def _variant(
    level: JsonValue, difficulty: JsonValue, novelty: JsonValue = None, sensors: JsonValue = None
) -> LevelVariant:
    change = None if novelty is None else Novelty.from_json(novelty)
    return LevelVariant(int(level), str(difficulty), change, tuple((sensors or {}).items()))


def _first_difference(expected: JsonValue, actual: JsonValue, path: str = "") -> str:
    """Path and values of the first place in which two JSON values differ."""
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        for key in dict.fromkeys([*expected, *actual]):
            if key not in expected or key not in actual or _plain(expected[key]) != actual[key]:
                place = f"{path}.{key}" if path else str(key)
                return _first_difference(expected.get(key), actual.get(key), place)
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for index, (one, other) in enumerate(zip(expected, actual, strict=True)):
            if _plain(one) != other:
                return _first_difference(one, other, f"{path}[{index}]")
    return f"{path} is {expected}, and {actual} in the transcript"


def _plain(value: object) -> JsonValue:
    return json.loads(json.dumps(value))
