"""Results of an experiment: one row an episode, on disk as Parquet or as the generator's CSV.

Columns of the WSU generator's analysis files keep their names, so such a file can be read as well.
Columns that it lacks get defaults.
"""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from evaluation.files import write_whole
from evaluation.json_types import JsonMapping, JsonValue
from evaluation.metrics.novelty.characterisation import KINDS
from evaluation.records import COLUMNS as RECORD_COLUMNS
from evaluation.records import Records
from evaluation.sailon.experiment import Experiment, Trial
from jaxsim.worlds.cartpole3d.original.hints import LEVELS_PER_GROUP

METADATA_KEY: Final = b"jaxsim-sailon"
TRAINING: Final = -1
"""Number of the trial that training episodes are filed under."""

COLUMNS: Final[Mapping[str, type[np.generic]]] = {
    "trial_index": np.int32,  # from 0 in its cell; -1 in training
    "trial_id": np.int32,  # from 0 in the experiment; -1 in training
    "novelty_level": np.int32,  # of the trial
    "novelty_difficulty": np.str_,
    "novelty_visibility": np.int32,
    "hint_level": np.int32,  # of the cell
    "sample": np.int32,  # number of the novelty in its list; -1 where a level is the novelty
    "episode_index": np.int32,  # from 0 in its trial
    "episode_level": np.int32,  # that was played
    "performance": np.float64,  # in [0, 1]; NaN if the episode was not played
    "reward": np.float64,  # sum of the episode's rewards
    "length": np.int32,  # steps
    "seconds": np.float64,  # simulated time
    "complete": np.bool_,  # played to its end, every number finite
    "novelty_initiated": np.bool_,  # whether the first novel episode has come
    "novelty_probability": np.float64,  # that the agent reported; NaN for nothing valid
    "novelty_threshold": np.float64,  # NaN for nothing valid
    "novelty": np.int32,  # whole number that the agent reported, 0 for none
    "entity": np.str_,  # words of the agent's characterisation, "" for none
    "attribute": np.str_,
    "change": np.str_,
    "budget_active": np.bool_,  # whether feedback may have been given
    "feedback": np.int32,  # number of steps with feedback
    "problem": np.str_,  # error of the agent, "" for none
}
"""Columns of one number or word."""

PROBABILITIES: Final = "level_probs"
"""Column of the nine probabilities of the levels' digits; NaN where there are none."""

NEEDED: Final = (
    "trial_index",
    "novelty_level",
    "novelty_difficulty",
    "novelty_visibility",
    "episode_index",
    "performance",
    "novelty_initiated",
    "novelty_probability",
    "novelty_threshold",
)
"""Columns that a CSV file of the generator's analysis must have."""

SLOTS: Final = ("entity", "attribute", "change")

_DEFAULTS: Final[Mapping[type[np.generic], JsonValue]] = {
    np.int32: 0,
    np.float64: np.nan,
    np.bool_: True,
    np.str_: "",
}

NO_SAMPLE: Final = -1
_COLUMN_DEFAULTS: Final = {"complete": False, "budget_active": False, "sample": NO_SAMPLE}
"""Defaults of columns that differ from that of their type."""

Rows = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Results:
    """One row for each episode of an experiment, training first, then trial by trial.

    Attributes:
      rows: (R,) arrays by name, those of `COLUMNS`, and (R, 9) `level_probs`.
      experiment: the experiment; None for results of a CSV file.
      metadata: agent, seed, versions; plain JSON values.
    """

    rows: Rows
    experiment: Experiment | None = None
    metadata: JsonMapping = field(default_factory=dict)

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.rows["performance"])

    def tested(self) -> Rows:
        """The rows of all trials, without the training."""
        mask = self.rows["trial_index"] != TRAINING
        return {name: column[mask] for name, column in self.rows.items()}

    def silenced(self, agent: str) -> "Results":
        """The same results as if no novelty had been reported.

        Args:
          agent: name of the agent in the new results.
        """
        rows = dict(self.rows)
        report = {"novelty": 0, "novelty_probability": 0.0, "novelty_threshold": 1.0}
        for name, value in (report | dict.fromkeys(SLOTS, "")).items():
            rows[name] = np.full_like(rows[name], value)
        rows[PROBABILITIES] = np.zeros_like(rows[PROBABILITIES])
        rows[PROBABILITIES][:, 0] = 1.0
        return Results(rows, self.experiment, {**self.metadata, "agent": agent})

    def broken_off(self, reason: str) -> "Results":
        """The same results with a reason for each episode that was not played."""
        problem = self.rows["problem"].copy()
        problem[np.isnan(self.rows["performance"]) & (problem == "")] = f"not played: {reason}"
        return Results({**self.rows, "problem": problem}, self.experiment, self.metadata)

    def records(self, trial: Trial) -> Records:
        """One trial as `Records`.

        Raises:
          ValueError: the results hold no experiment.
        """
        if self.experiment is None:
            raise ValueError("these results hold no experiment, so no schedule of a trial")
        schedule = self.experiment.schedule(trial)
        mask = self.rows["trial_id"] == trial.number
        names = {
            "predicted_level": "novelty",
            "predicted_probability": "novelty_probability",
            "threshold": "novelty_threshold",
        }
        columns = {
            name: self.rows[names.get(name, name)][mask][None].astype(dtype)
            for name, dtype in RECORD_COLUMNS.items()
        }
        levels = [dict(values)["novelty/level"] for _, values in schedule.variants]
        digits = np.array([int(level) % LEVELS_PER_GROUP for level in levels], np.int32)
        return Records(schedule, columns, digits, trial.number + 1, dict(self.metadata))

    def table(self) -> pa.Table:
        """Return the results as an Arrow table, with the experiment in its metadata."""
        arrays = {name: pa.array(self.rows[name]) for name in COLUMNS}
        flat = pa.array(np.ascontiguousarray(self.rows[PROBABILITIES]).ravel())
        arrays[PROBABILITIES] = pa.FixedSizeListArray.from_arrays(flat, KINDS)
        metadata = dict(self.metadata)
        metadata["experiment"] = self.experiment.dumps() if self.experiment else None
        text = json.dumps(metadata, allow_nan=False)
        return pa.table(arrays).replace_schema_metadata({METADATA_KEY: text.encode()})

    def write(self, path: Path) -> None:
        """Write a Parquet file, or a CSV file if the name ends in ``.csv``, whole or not at all."""
        if path.suffix == ".csv":
            write_whole(path, self.to_csv())
            return
        sink = pa.BufferOutputStream()
        pq.write_table(self.table(), sink, compression="zstd", write_page_checksum=True)
        write_whole(path, sink.getvalue().to_pybytes())

    def to_csv(self) -> str:
        """Return all trials in the form of the generator's analysis files, without the training."""
        rows = self.tested()
        names = [*COLUMNS, PROBABILITIES]
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(names)
        for place in range(len(rows["performance"])):
            cells = [_cell(rows[name][place]) for name in names]
            writer.writerow(cells)
        return out.getvalue()


def _cell(value: object) -> JsonValue:
    if isinstance(value, np.ndarray):
        return "" if np.isnan(value).any() else " ".join(repr(float(v)) for v in value)
    if isinstance(value, np.floating):
        return "" if np.isnan(value) else repr(float(value))
    return value.item() if isinstance(value, np.generic) else value


# Plans as rows ----------------------------------------------------------------------------------


def planned(experiment: Experiment) -> dict[str, np.ndarray]:
    """Rows for every episode of an experiment, with nothing played yet."""
    columns: dict[str, list[JsonValue]] = {name: [] for name in _PLANNED}
    for plan in experiment.training_episodes():
        training = (TRAINING, TRAINING, plan.level, plan.difficulty, 0, -1, NO_SAMPLE)
        _append(columns, (*training, plan.index, plan.level, False))
    for trial in experiment.trials:
        cell = trial.cell
        for plan in experiment.episodes(trial):
            values = (trial.index, trial.number, cell.level, cell.difficulty, cell.visibility)
            sample = cell.entry.number if cell.entry else NO_SAMPLE
            more = (cell.hint_level, sample, plan.index, plan.level, plan.index >= trial.button)
            _append(columns, (*values, *more))
    count = len(columns["trial_index"])
    rows = {name: np.array(columns[name], COLUMNS[name]) for name in _PLANNED}
    return complete_rows(rows, count)


_PLANNED = (
    "trial_index",
    "trial_id",
    "novelty_level",
    "novelty_difficulty",
    "novelty_visibility",
    "hint_level",
    "sample",
    "episode_index",
    "episode_level",
    "novelty_initiated",
)


def _append(columns: dict[str, list[JsonValue]], values: Sequence[JsonValue]) -> None:
    for column, value in zip(columns.values(), values, strict=True):
        column.append(value)


def complete_rows(rows: Rows, count: int) -> dict[str, np.ndarray]:
    """Add the columns that are missing, filled with their defaults."""
    whole = dict(rows)
    for name, kind in COLUMNS.items():
        if name not in whole:
            default = _COLUMN_DEFAULTS.get(name, _DEFAULTS[kind])
            dtype = object if kind is np.str_ else kind
            whole[name] = np.full(count, default, dtype)
    if PROBABILITIES not in whole:
        whole[PROBABILITIES] = np.full((count, KINDS), np.nan)
    return whole
