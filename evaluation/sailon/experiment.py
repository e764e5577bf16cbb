"""A novelty experiment: training, then trials in which the world may change at a button.

An experiment is a plan that names every episode: its level or novelty, difficulty and seed. It is
drawn once from `ExperimentSettings`, saved, and replayed identically to any number of agents.

Source: the SAIL-ON protocol of the WSU novelty generator, version 0.8.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Final

import numpy as np

from evaluation import memory
from evaluation.files import write_whole
from evaluation.json_types import JsonMapping, JsonObject, JsonValue
from evaluation.sailon import novelties
from evaluation.sailon.novelties import ListedNovelty
from evaluation.sailon.settings import (
    ExperimentSettings,
    settings_from_ini,
    settings_from_json,
)
from evaluation.sailon.text import ExperimentError, Text, read
from evaluation.schedule import Block, Schedule, Variant, level_variant
from jaxsim import parameters
from jaxsim.novelty import Novelty
from jaxsim.worlds.cartpole3d.levels import DIFFICULTIES
from jaxsim.worlds.cartpole3d.original import hints
from jaxsim.worlds.cartpole3d.original.hints import HINT_LEVELS, HINT_WORDS, LEVELS_PER_GROUP

FORMAT: Final = "jaxsim-sailon-1"
NOMINAL, NOMINAL_DIFFICULTY = 200, "easy"

PLANNED_BYTES: Final = 48
"""Least memory of an episode of an experiment, bytes: seed, place and novelty flag."""
TRAINING_SEEDS: Final = (0, 42_949_672)
TESTING_SEEDS: Final = (42_949_672, 4_294_967_295)
"""Smallest and largest seeds of episodes, as the original draws them."""


@dataclass(frozen=True)
class LevelVariant:
    """Physics that episodes are played with.

    Attributes:
      level: of the novelty catalogue.
      difficulty: "easy", "medium" or "hard".
      novelty: changes beyond those of the level; None for none.
      sensors: (path, value) pairs of how the sensors err, see `ExperimentSettings`.
    """

    level: int
    difficulty: str
    novelty: Novelty | None = None
    sensors: tuple[tuple[str, float], ...] = ()

    @property
    def of_schedule(self) -> Variant:
        """Task and parameters in the form of `Schedule.variants`."""
        task, values = level_variant(self.level, self.difficulty)
        more = self.novelty.parameters if self.novelty else ()
        merged = {**dict(self.sensors), **dict(values), **dict(more)}
        return task, tuple(sorted(merged.items()))

    def to_json(self) -> list[JsonValue]:
        """Return plain JSON values: level, difficulty and, if present, novelty and sensors."""
        more = [self.novelty.to_json() if self.novelty else None, dict(self.sensors)]
        while more and not more[-1]:
            del more[-1]
        return [self.level, self.difficulty, *more]


@dataclass(frozen=True)
class Cell:
    """Settings that all trials of a novelty group share.

    Attributes:
      visibility: 1 if the agent is told whether there is novelty, else 0.
      level: of the novelty catalogue; 200 where the novelty is one of a list.
      difficulty: "easy", "medium" or "hard".
      hint_level: how much is told of the novelty, -1 to 3.
      entry: novelty of a list; None for the level's own.
    """

    visibility: int
    level: int
    difficulty: str
    hint_level: int
    entry: ListedNovelty | None = None

    @property
    def novel(self) -> bool:
        """Whether anything is changed."""
        return self.entry is not None or self.level % LEVELS_PER_GROUP != 0

    @property
    def variant(self) -> LevelVariant:
        """Physics of its novel episodes."""
        return LevelVariant(self.level, self.difficulty, self.entry.novelty if self.entry else None)


UNCHANGED: Final = LevelVariant(NOMINAL, NOMINAL_DIFFICULTY)
"""Variant of training episodes, those before the button and mixed-in ones, with exact sensors."""


@dataclass(frozen=True)
class EpisodePlan:
    """One episode of a trial.

    Attributes:
      index: from 0 in its trial, or in the training.
      variant: physics that it is played with.
      seed: of its start where the experiment's starts are the original's.
      novel: whether the cell's novelty is in it.
      indicator: the novelty indicator: None for not told.
      hint_level: how much its first feature vector tells.
    """

    index: int
    variant: LevelVariant
    seed: int
    novel: bool
    indicator: bool | None
    hint_level: int

    @property
    def level(self) -> int:
        """Level of the catalogue; 200 where a novelty of a list is played."""
        return self.variant.level

    @property
    def difficulty(self) -> str:
        """Difficulty of the level."""
        return self.variant.difficulty

    @property
    def hint(self) -> list[JsonObject]:
        """Hint in its first feature vector, see `hints.hint`."""
        novelty = self.variant.novelty
        if novelty is None:
            return hints.hint(self.level, self.hint_level)
        return [hints.shown((None, *words), self.hint_level) for words in novelty.words]


@dataclass(frozen=True)
class Trial:
    """One trial of a cell.

    Attributes:
      number: from 0 in the experiment.
      index: from 0 in its cell.
      cell: its cell.
      novel: whether each episode is drawn from the cell's level rather than from level 200.
      seeds: of each episode.
    """

    number: int
    index: int
    cell: Cell
    novel: tuple[bool, ...]
    seeds: tuple[int, ...]

    @property
    def button(self) -> int:
        """Index of the first novel episode; the trial's length if there is none."""
        has_novelty = self.cell.novel and any(self.novel)
        return self.novel.index(True) if has_novelty else len(self.novel)


@dataclass(frozen=True)
class Experiment:
    """Training and trials, every episode with its level and seed.

    Attributes:
      name: short name, for tables and files.
      settings: of the experiment; protocol and time limits are read from here.
      training: seeds of the training episodes.
      trials: in the order in which they are played.
    """

    name: str
    settings: ExperimentSettings
    training: tuple[int, ...]
    trials: tuple[Trial, ...]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells in the order of their first trials."""
        return tuple(dict.fromkeys(trial.cell for trial in self.trials))

    @property
    def entries(self) -> dict[int, ListedNovelty]:
        """Novelties of a list that are played, by their numbers; empty if levels are played."""
        return {cell.entry.number: cell.entry for cell in self.cells if cell.entry}

    @property
    def unchanged(self) -> LevelVariant:
        """Variant of training episodes, those before the button and mixed-in ones."""
        return self._with_sensors(UNCHANGED)

    def variant(self, cell: Cell) -> LevelVariant:
        """Physics of the novel episodes of a cell."""
        return self._with_sensors(cell.variant)

    def _with_sensors(self, variant: LevelVariant) -> LevelVariant:
        return replace(variant, sensors=self.settings.sensors)

    def training_episodes(self) -> tuple[EpisodePlan, ...]:
        """The episodes of the training."""
        return tuple(
            EpisodePlan(index, self.unchanged, seed, False, None, -1)
            for index, seed in enumerate(self.training)
        )

    def episodes(self, trial: Trial) -> tuple[EpisodePlan, ...]:
        """The episodes of a trial."""
        cell, button = trial.cell, trial.button
        plans = []
        for index, (from_cell, seed) in enumerate(zip(trial.novel, trial.seeds, strict=True)):
            novel = from_cell and cell.novel
            indicator: bool | None = None
            if cell.visibility:
                indicator = novel if self.settings.tells_of_episodes else index >= button
            hint = cell.hint_level if novel else -1
            variant = self.variant(cell) if from_cell else self.unchanged
            plans.append(EpisodePlan(index, variant, seed, novel, indicator, hint))
        return tuple(plans)

    def schedule(self, trial: Trial) -> Schedule:
        """The schedule of a trial."""
        return schedule_of(f"{self.name}-trial-{trial.number}", self.episodes(trial))

    def to_json(self) -> JsonObject:
        """Return plain JSON values; `loads` reads their text."""
        groups = []
        for cell in self.cells:
            trials = [trial for trial in self.trials if trial.cell == cell]
            groups.append(
                {
                    "visibility": cell.visibility,
                    "level": cell.level,
                    "difficulty": cell.difficulty,
                    "hint_level": cell.hint_level,
                    **({"novelty": cell.entry.to_json()} if cell.entry else {}),
                    "trials": [
                        {
                            "novel": "".join("01"[flag] for flag in trial.novel),
                            "seeds": list(trial.seeds),
                        }
                        for trial in trials
                    ],
                }
            )
        return {
            "format": FORMAT,
            "name": self.name,
            "settings": self.settings.to_json(),
            "training": list(self.training),
            "groups": groups,
        }

    def dumps(self) -> str:
        """Return the experiment as JSON text, one line a trial."""
        values = self.to_json()
        groups = values.pop("groups")
        head = json.dumps(values, allow_nan=False)[:-1]
        parts = []
        for group in groups:
            trials = ",\n  ".join(json.dumps(trial) for trial in group.pop("trials"))
            parts.append(f'{json.dumps(group)[:-1]}, "trials": [\n  {trials}]}}')
        body = ",\n".join(parts)
        return f'{head},\n"groups": [\n{body}\n]}}\n'

    def digest(self) -> str:
        """Return 16 hexadecimal digits that identify the experiment under any name."""
        return hashlib.sha256(replace(self, name="").dumps().encode()).hexdigest()[:16]

    def write(self, path: Path) -> None:
        """Write the experiment's file, whole or not at all."""
        write_whole(path, self.dumps())


def schedule_of(name: str, episodes: tuple[EpisodePlan, ...], phase: int = 1) -> Schedule:
    """Compile episodes to a schedule: a block for each run of one variant."""
    blocks: list[Block] = []
    for plan in episodes:
        task, values = plan.variant.of_schedule
        last = blocks[-1] if blocks else None
        if last is not None and last.variant == (task, values):
            blocks[-1] = replace(last, count=last.count + 1)
        else:
            blocks.append(Block(len(blocks), phase, "test", task, values, 1, True))
    return Schedule(name, tuple(blocks), "SAIL-ON")


def generate(settings: ExperimentSettings, name: str = "sailon") -> Experiment:
    """Draw an experiment.

    Args:
      settings: of the experiment.
      name: of the experiment.

    Returns:
      The experiment; equal settings give an equal one.

    Raises:
      ValueError: it does not fit into memory; says how many trials do.
    """
    cells, trial_bytes = tuple(_cells(settings)), PLANNED_BYTES * settings.testing_episodes
    what = f"trials of {settings.testing_episodes:,} episodes in each of {len(cells):,} cells"
    remedy = "lower trials, or make several experiments"
    memory.check_fits(settings.trials, trial_bytes * len(cells), what, remedy)
    draws = _Draws(settings.seed)
    training = draws.seeds(settings.training_episodes, *TRAINING_SEEDS, set())
    trials: list[Trial] = []
    for cell in cells:
        used: set[int] = set()
        for index in range(settings.trials):
            novel = _novel_episodes(settings, draws)
            seeds = draws.seeds(settings.testing_episodes, *TESTING_SEEDS, used)
            trials.append(Trial(len(trials), index, cell, novel, seeds))
    return Experiment(name, settings, training, tuple(trials))


def _cells(settings: ExperimentSettings) -> Iterator[Cell]:
    """The cells: by visibility, then level and difficulty, then hint level."""
    pairs = product(settings.novelty, settings.difficulty)
    worlds: list[tuple[int, str, ListedNovelty | None]] = [(*pair, None) for pair in pairs]
    if settings.novelty_list is not None:
        entries = novelties.load(settings.novelty_list).part(settings.samples, settings.split)
        worlds = [(NOMINAL, NOMINAL_DIFFICULTY, entry) for entry in entries]
    for visibility in settings.novelty_visibility:
        for level, difficulty, entry in worlds:
            cell = Cell(visibility, level, difficulty, -1, entry)
            levels = settings.hint_level if visibility and cell.novel else (-1,)
            yield from (replace(cell, hint_level=number) for number in levels)


def _novel_episodes(settings: ExperimentSettings, draws: "_Draws") -> tuple[bool, ...]:
    """Which episodes of a trial are novel; the first one after the button always is."""
    count, before, share = settings.testing_episodes, settings.before, settings.testing_novelty_p2
    novel = int((count - before) * share)
    rest = count - before - novel
    flags = [False] * before
    if novel:
        flags.append(True)
    return tuple(flags + draws.shuffled([True] * (novel - 1) + [False] * rest))


class _Draws:
    """Whole numbers from the raw stream of a bit generator, which no version of NumPy changes."""

    def __init__(self, seed: int) -> None:
        self._stream = np.random.PCG64(np.random.SeedSequence(seed))

    def below(self, bound: int) -> int:
        """Draw from 0 to `bound - 1`; the bias is below 2^-31 for the bounds used here."""
        return int(self._stream.random_raw()) % bound

    def seeds(self, count: int, low: int, high: int, used: set[int]) -> tuple[int, ...]:
        """Draw unused seeds from `low` to `high`, and record them in `used`."""
        values: list[int] = []
        while len(values) < count:
            seed = low + self.below(high - low + 1)
            if seed not in used:
                used.add(seed)
                values.append(seed)
        return tuple(values)

    def shuffled(self, values: list[bool]) -> list[bool]:
        """Return the values in a random order."""
        values = list(values)
        for place in range(len(values) - 1, 0, -1):
            other = self.below(place + 1)
            values[place], values[other] = values[other], values[place]
        return values


def load(path: Path) -> Experiment:
    """Read an experiment, or draw one from the settings that a file holds.

    Args:
      path: an experiment that `Experiment.write` wrote, settings as JSON, or an ini file of the
        original.

    Raises:
      ExperimentError: the file is none of these; names line and column.
    """
    return loads(read(path), str(path), path.stem)


def loads(content: str, source: str = "<text>", name: str = "sailon") -> Experiment:
    """Read an experiment from text; see `load`."""
    if not content.lstrip().startswith("{"):
        return generate(settings_from_ini(source, content), name)
    text = Text(content, source)
    values = text.decode()
    if "format" not in values:
        return generate(settings_from_json(text, values), name)
    if values["format"] != FORMAT:
        text.fail(("format",), f"'format' is {values['format']!r}; it must be {FORMAT!r}")
    return _experiment(text, values)


def settings_from(path: Path) -> ExperimentSettings:
    """Read settings from a file of JSON or from an ini file of the original."""
    return load(path).settings


def _experiment(text: Text, values: JsonMapping) -> Experiment:
    needed = ("format", "name", "settings", "training", "groups")
    text.mapping((), values, needed)
    if not isinstance(values["name"], str) or not values["name"].isprintable():
        text.fail(("name",), "'name' must be printable text")
    settings = _settings(text, values["settings"])
    training = _seeds(text, ("training",), values["training"], TRAINING_SEEDS)
    trials: list[Trial] = []
    for place, group in enumerate(text.sequence(("groups",), values["groups"], dict, "groups")):
        path = ("groups", place)
        cell = _cell(text, path, group)
        members = text.sequence((*path, "trials"), group["trials"], dict, "trials")
        for index, one in enumerate(members):
            novel, seeds = _trial(text, (*path, "trials", index), one)
            trials.append(Trial(len(trials), index, cell, novel, seeds))
    cells = [trial.cell for trial in trials]
    if len(dict.fromkeys(cells)) != len(values["groups"]):
        text.fail(("groups",), "'groups' has a group without trials or one cell in two groups")
    return Experiment(values["name"], settings, training, tuple(trials))


def _settings(text: Text, values: JsonValue) -> ExperimentSettings:
    if not isinstance(values, dict):
        text.fail(("settings",), "'settings' must be an object {...}")
    try:
        return settings_from_json(Text(json.dumps(values), text.source), values)
    except ExperimentError as error:
        wrong = next((key for key in values if repr(key) in error.reason), None)
        text.fail(("settings",) if wrong is None else ("settings", wrong), error.reason, error)


_CELL: Final[Mapping[str, tuple[JsonValue, ...]]] = {
    "visibility": (0, 1),
    "level": tuple(HINT_WORDS),
    "difficulty": DIFFICULTIES,
    "hint_level": HINT_LEVELS,
}


def _cell(text: Text, path: tuple[str | int, ...], values: JsonValue) -> Cell:
    text.mapping(path, values, (*_CELL, "trials"), ("novelty",))
    for key, allowed in _CELL.items():
        if type(values[key]) is not type(allowed[0]) or values[key] not in allowed:
            options = ", ".join(map(str, allowed))
            shown = parameters.shown(values[key])
            text.fail((*path, key), f"{key!r} is {shown}; it must be one of {options}")
    entry = None
    if "novelty" in values:
        try:
            entry = ListedNovelty.from_json(values["novelty"])
        except ValueError as error:
            text.fail((*path, "novelty"), str(error), error)
        if (values["level"], values["difficulty"]) != (NOMINAL, NOMINAL_DIFFICULTY):
            reason = f"a novelty of a list changes level {NOMINAL}, {NOMINAL_DIFFICULTY}"
            text.fail((*path, "level"), reason)
    return Cell(**{key: values[key] for key in _CELL}, entry=entry)


def _trial(
    text: Text, path: tuple[str | int, ...], values: JsonValue
) -> tuple[tuple[bool, ...], tuple[int, ...]]:
    text.mapping(path, values, ("novel", "seeds"))
    flags = values["novel"]
    if not isinstance(flags, str) or not flags or set(flags) - set("01"):
        text.fail((*path, "novel"), "'novel' must be a digit 0 or 1 for each episode")
    seeds = _seeds(text, (*path, "seeds"), values["seeds"], (0, TESTING_SEEDS[1]))
    if len(seeds) != len(flags):
        reason = f"'seeds' has {len(seeds)} entries for the {len(flags)} episodes of 'novel'"
        text.fail((*path, "seeds"), reason)
    return tuple(flag == "1" for flag in flags), seeds


def _seeds(
    text: Text, path: tuple[str | int, ...], values: JsonValue, bounds: tuple[int, int]
) -> tuple[int, ...]:
    for place, seed in enumerate(text.sequence(path, values, int, "whole numbers")):
        if not bounds[0] <= seed <= bounds[1]:
            reason = f"seed {parameters.shown(seed)} must be from {bounds[0]} to {bounds[1]}"
            text.fail((*path, place), reason)
    return tuple(values)
