"""Result files of an evaluation: rows of levels, rows of reports of novelty, and descriptions.

Rows are on disk as soon as they are written, so an evaluation that breaks off loses only the level
that was being played.
"""

import csv
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from evaluation.sciencebirds.codec import Values
from evaluation.sciencebirds.document import ConfiguredTrial
from evaluation.sciencebirds.game import Counts
from evaluation.sciencebirds.levels import LevelPath

LEVEL_COLUMNS: Final = (
    "EvaluationIndex",
    "LevelIndex",
    "Score",
    "LevelStatus",
    "birdsRemaining",
    "pigsRemaining",
    "birdsAtStart",
    "pigsAtStart",
    "trial",
    "levelName",
    "playStatus",
    "informed",
    "novelty",
)
LIKELIHOOD_COLUMNS: Final = (
    "EvaluationIndex",
    "LevelIndex",
    "InteractionIndex",
    "HasNoveltyLikelihood",
    "NoNoveltyLikelihood",
    "novel object IDs",
    "novelty level",
    "novelty description",
    "true novel IDs",
    "complete true novel IDs",
    "trial",
    "levelName",
    "playStatus",
    "informed",
    "novelty",
)
MAX_REPORTED: Final = 64 * 2**20
"""Most bytes of reports and descriptions of an evaluation; later ones are refused."""


@dataclass(frozen=True)
class EvaluationPlace:
    """Place in an evaluation.

    Attributes:
      trial: the trial.
      execution: of the trial, from 1.
      testing: in a test set rather than in training.
      level_index: number of the level in its set, from 1; 0 for none.
      level: the level; None between levels.
    """

    trial: ConfiguredTrial
    execution: int
    testing: bool
    level_index: int
    level: LevelPath | None

    @property
    def columns(self) -> tuple[str, ...]:
        """The last five columns of both tables."""
        level = self.level
        return (
            str(self.trial.number),
            level.path if level else "",
            "test" if self.testing else "training",
            str(self.trial.notify),
            "novel" if level and level.novel else "basic",
        )


def _plain(text: str) -> str:
    """Text for a cell: without commas, line ends and unprintable characters."""
    return " ".join("".join(c if c.isprintable() and c != "," else " " for c in text).split())


@dataclass
class ResultWriter:
    """The files of one evaluation.

    Attributes:
      folder: directory that holds them; it is made with the first row.
      agent: name of the agent, for file names.
      started: when the evaluation began, for file names.
    """

    folder: Path
    agent: str
    started: datetime
    _reported: int = 0
    _files: set[Path] = field(default_factory=set)

    @classmethod
    def below(cls, base: Path, agent: str, port: int, started: datetime) -> "ResultWriter":
        """Files in a new directory of `base`, named as the original names it.

        Raises:
          ValueError: a name of an agent that no file can have, or the directory exists.
        """
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", agent):
            raise ValueError(
                f"agent name is {agent[:80]!r}; it must be letters, digits, '_', '.' and '-', at "
                "most 64, and begin with a letter or a digit"
            )
        folder = base / f"Agent_{agent}_Port_{port}_Evaluation_{started:%Y%m%d%H%M%S}"
        if folder.exists():
            raise ValueError(f"{folder} exists; wait a second, or name another --results")
        folder.mkdir(parents=True)
        return cls(folder, agent, started)

    def level(self, place: EvaluationPlace, score: int, status: str, counts: Counts) -> None:
        """Add a level that is over, or "Playing" for one that was broken off."""
        row = (place.execution, place.level_index, score, status, *counts, *place.columns)
        self._append(self._path(place, "EvaluationData.csv"), LEVEL_COLUMNS, row)

    def likelihood(self, place: EvaluationPlace, interaction: int, values: Values) -> bool:
        """Add a report of novelty; return whether there is still room for it."""
        description = _plain(values.get("description", ""))
        ids = " ".join(str(number) for number in values.get("ids", ()))
        if not self._room(len(description) + len(ids) + 256):
            return False
        row = (
            place.execution,
            place.level_index,
            interaction,
            f"{values['novel']:.9g}",
            f"{values['non_novel']:.9g}",
            ids,
            values.get("level", ""),
            description,
            "",
            "",
            *place.columns,
        )
        self._append(self._path(place, "Likelihood.csv"), LIKELIHOOD_COLUMNS, row)
        return True

    def description(self, place: EvaluationPlace, interaction: int, text: str) -> bool:
        """Add an agent's description unchanged; return whether there is still room."""
        entry = {
            "execution": place.execution,
            "level": place.level.path if place.level else None,
            "level_index": place.level_index,
            "interaction": interaction,
            "text": text,
        }
        line = json.dumps(entry) + "\n"
        if not self._room(len(line)):
            return False
        with self._path(place, "Descriptions.jsonl").open("a", encoding="utf-8") as file:
            file.write(line)
        return True

    def _room(self, size: int) -> bool:
        """Whether there is room for a report; it is taken if there is."""
        fits = self._reported + size <= MAX_REPORTED
        self._reported += size if fits else 0
        return fits

    def _path(self, place: EvaluationPlace, end: str) -> Path:
        group = "informed" if place.trial.notify else "uninformed"
        stamp = f"{self.started:%Y%m%d%H%M%S}"
        name = f"Agent_{self.agent}_Trial_{place.trial.number}_{group}_{stamp}_{end}"
        return self.folder / name

    def _append(self, path: Path, columns: Sequence[str], row: Sequence[object]) -> None:
        """Add a row, under a heading if it is the first."""
        with path.open("a", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if path not in self._files:
                writer.writerow(columns)
                self._files.add(path)
            writer.writerow(row)
