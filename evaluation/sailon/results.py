"""Results of an experiment: one row an episode, on disk as Parquet or as the generator's CSV.

Columns of the WSU generator's analysis files keep their names, so such a file can be read as well.
Columns that it lacks get defaults.
"""

import csv
import io
import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from evaluation.files import write_whole
from evaluation.json_types import JsonMapping, JsonValue
from evaluation.metrics.novelty import Answers, Labels, Trials, no_words
from evaluation.metrics.novelty.characterisation import KINDS
from evaluation.records import COLUMNS as RECORD_COLUMNS
from evaluation.records import NOT_OURS, Records
from evaluation.sailon import novelties
from evaluation.sailon.experiment import Experiment, Trial, loads
from evaluation.sailon.novelties import ListedNovelty
from evaluation.sailon.text import ExperimentError, read
from jaxsim.novelty import Novelty
from jaxsim.worlds.cartpole3d.original.hints import HINT_WORDS, LEVELS_PER_GROUP

T = TypeVar("T")

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


# Reading ----------------------------------------------------------------------------------------


def load_results(path: Path) -> Results:
    """Read results: a Parquet file of `Results.write`, or a CSV file of the generator's analysis.

    Raises:
      ValueError: the file is neither, or is damaged; an `ExperimentError` names line and column.
    """
    if path.suffix.lower() == ".csv":
        return read_csv(read(path), str(path))
    try:
        return _from_table(pq.read_table(path, page_checksum_verification=True), str(path))
    except FileNotFoundError as error:
        raise ValueError(f"{path} does not exist") from error
    except (pa.ArrowException, OSError, *NOT_OURS) as error:
        raise ValueError(f"{path} is not a file of SAIL-ON results, or is damaged") from error


def _from_table(table: pa.Table, source: str) -> Results:
    """Rebuild results; any exception means that `Results.table` did not make the table."""
    metadata = json.loads((table.schema.metadata or {})[METADATA_KEY])
    text = metadata.pop("experiment")
    experiment = None if text is None else loads(text, source)
    kinds = {
        name: kind
        for name, kind in COLUMNS.items()
        if name != "sample" or name in table.column_names  # not in files of earlier versions
    }
    rows = {name: _column(table[name], kind) for name, kind in kinds.items()}
    flat = table[PROBABILITIES].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    rows[PROBABILITIES] = flat.reshape(-1, KINDS)
    return Results(complete_rows(rows, table.num_rows), experiment, metadata)


def _column(column: pa.ChunkedArray, kind: type[np.generic]) -> np.ndarray:
    """Values of a column, of the type that `Results.table` writes."""
    values: np.ndarray = column.to_numpy(zero_copy_only=False)
    if values.dtype != (object if kind is np.str_ else kind) or column.null_count:
        raise ValueError(f"a column of {column.type} with {column.null_count} empty cells")
    return values


def read_csv(content: str, source: str) -> Results:
    """Read the text of a CSV file of the generator's analysis.

    Raises:
      ExperimentError: a column is missing, or a cell has the wrong type.
    """
    lines = list(csv.reader(io.StringIO(content)))
    header = lines[0] if lines else []
    missing = [name for name in NEEDED if name not in header]
    if missing:
        reason = f"column {missing[0]!r} is missing; needed: {', '.join(NEEDED)}"
        raise ExperimentError(source, 1, 1, reason)
    body = [(number, cells) for number, cells in enumerate(lines[1:], 2) if cells]
    for number, line in body:
        if len(line) != len(header):
            reason = f"{len(line)} cells for the {len(header)} columns of the first line"
            raise ExperimentError(source, number, 1, reason)
    rows: dict[str, np.ndarray] = {}
    for place, name in enumerate(header):
        cells = [(number, line[place].strip()) for number, line in body]
        if name == PROBABILITIES:
            probabilities = [_parsed(source, n, name, _probabilities, cell) for n, cell in cells]
            rows[name] = np.array(probabilities, np.float64).reshape(len(cells), KINDS)
        elif name in COLUMNS:
            kind = COLUMNS[name]
            values = [_parsed(source, n, name, _READERS[kind], cell) for n, cell in cells]
            rows[name] = np.array(values, object if kind is np.str_ else kind)
    if "hint_level" not in rows:
        rows["hint_level"] = np.full(len(body), -1, np.int32)
    if "trial_id" not in rows:
        rows["trial_id"] = rows["trial_index"]
    if not body:
        raise ExperimentError(source, 1, 1, "there is no row below the first line")
    return Results(complete_rows(rows, len(body)))


def _parsed(source: str, line: int, name: str, parse: Callable[[str], T], cell: str) -> T:
    try:
        return parse(cell)
    except ValueError as error:
        raise ExperimentError(source, line, 1, f"{name} is {cell[:40]!r}; {error}") from error


def _truth(cell: str) -> bool:
    words = {"true": True, "1": True, "false": False, "0": False}
    if cell.lower() not in words:
        raise ValueError("it must be True or False")
    return words[cell.lower()]


def _whole(cell: str) -> int:
    try:
        number = int(cell or 0)
    except ValueError as error:
        raise ValueError("it must be a whole number") from error
    if abs(number) >= 2**31:
        raise ValueError("it must be a whole number of at most 31 bits")
    return number


def _real(cell: str) -> float:
    try:
        return float(cell or "nan")
    except ValueError as error:
        raise ValueError("it must be a number") from error


def _probabilities(cell: str) -> list[float]:
    numbers = [_real(part) for part in cell.replace(",", " ").split()]
    if numbers and len(numbers) != KINDS:
        raise ValueError(f"it must be {KINDS} numbers")
    return numbers or [np.nan] * KINDS


_READERS: Mapping[type[np.generic], Callable[[str], JsonValue]] = {
    np.int32: _whole,
    np.float64: _real,
    np.bool_: _truth,
    np.str_: str,
}

# Data of metrics --------------------------------------------------------------------------------


@dataclass(frozen=True)
class TrialData:
    """Trials of an agent beside those of a baseline, for `evaluation.metrics.novelty`.

    Attributes:
      trials: padded arrays.
      labels: the cell of each trial.
      predictions: of the agent at the end of each trial, and the truth.
    """

    trials: Trials
    labels: Labels
    predictions: Answers


def trial_data(agent: Results, baseline: Results | None) -> TrialData:
    """Arrange results trial by trial, each beside the baseline's trial.

    Trials are paired by their place among the trials of their cell.

    Args:
      agent: results.
      baseline: results of the baseline in the same experiment; None for none.

    Raises:
      ValueError: no trials, or two results of different experiments.
    """
    rows = agent.tested()
    if baseline is not None and agent.experiment and baseline.experiment:
        digests = agent.experiment.digest(), baseline.experiment.digest()
        if digests[0] != digests[1]:
            raise ValueError(
                f"agent and baseline played different experiments ({' and '.join(digests)}); let "
                "both play the same experiment file"
            )
    groups = _grouped(rows)
    if not groups:
        raise ValueError("the results hold no episode of a trial")
    size = max(len(places) for _, places in groups)

    def padded(column: np.ndarray) -> npt.NDArray[np.float64]:
        table = np.full((len(groups), size), np.nan)
        for line, (_, places) in enumerate(groups):
            table[line, : len(places)] = column[places]
        return table

    baseline_performance = np.full((len(groups), size), np.nan)
    if baseline is not None:
        baseline_rows = baseline.tested()
        by_trial = {
            key: baseline_rows["performance"][places] for key, places in _grouped(baseline_rows)
        }
        for line, (key, places) in enumerate(groups):
            values = by_trial.get(key, np.zeros(0))[: len(places)]
            baseline_performance[line, : len(values)] = values
    count = np.array([len(places) for _, places in groups])
    flags = [rows["novelty_initiated"][places] for _, places in groups]
    # A novelty of a list has no digit to name.
    digits = np.array(
        [NO_DIGIT if key[4] != NO_SAMPLE else key[1] % LEVELS_PER_GROUP for key, _ in groups]
    )
    button = np.array([int(column.argmax()) if column.any() else len(column) for column in flags])
    button = np.where(digits == 0, count, button)
    trials = Trials(
        padded(rows["performance"]),
        baseline_performance,
        padded(rows["novelty_probability"]),
        padded(rows["novelty_threshold"]),
        button,
        count,
    )
    entries = {} if agent.experiment is None else agent.experiment.entries
    return TrialData(trials, _labels(groups, entries), _predictions(rows, groups, digits, entries))


Key = tuple[int, int, str, int, int, int]
"""Visibility, level, difficulty, hint level, sample and place of a trial."""

NO_DIGIT: Final = -1


def _grouped(rows: Rows) -> list[tuple[Key, npt.NDArray[np.int64]]]:
    """Places of the rows of each trial, in the order of episodes."""
    members: dict[tuple[Any, ...], list[int]] = {}
    names = ("novelty_visibility", "novelty_level", "novelty_difficulty", "hint_level", "sample")
    columns = [rows[name].tolist() for name in (*names, "trial_index", "trial_id")]
    for place, key in enumerate(zip(*columns, strict=True)):
        members.setdefault(key, []).append(place)
    counts: dict[Hashable, int] = {}
    groups = []
    for key in sorted(members):
        cell = key[:5]
        number = counts.get(cell, 0)
        counts[cell] = number + 1
        places = np.array(members[key])
        order = np.argsort(rows["episode_index"][places], kind="stable")
        groups.append(((*cell, number), places[order]))
    return groups


def _labels(
    groups: list[tuple[Key, npt.NDArray[np.int64]]], entries: Mapping[int, ListedNovelty]
) -> Labels:
    """Labels of the trials; for novelties of a list, their families and classes."""
    keys = [key for key, _ in groups]
    visibility, level, difficulty, hint, sample, _ = zip(*keys, strict=True)
    if not entries:
        return Labels(np.array(level), np.array(difficulty), np.array(visibility), np.array(hint))
    trial_entries = [entries[number] for number in sample]
    return Labels(
        np.array([entry.novelty.name for entry in trial_entries]),
        np.array([entry.difficulty for entry in trial_entries]),
        np.array(visibility),
        np.array(hint),
        {
            "split": np.array([entry.split for entry in trial_entries]),
            "control": np.array([novelties.bin_of(entry.control) for entry in trial_entries]),
            "detection": np.array([novelties.bin_of(entry.detection) for entry in trial_entries]),
        },
    )


def nearest_words(novelty: Novelty, words: Sequence[str]) -> tuple[str, str, str]:
    """Words of the family of a novelty that agrees with most of the given words.

    Args:
      novelty: of one or several families.
      words: entity, attribute and change that an agent names.
    """

    def agreement(true: tuple[str, str, str]) -> int:
        return sum(a == b for a, b in zip(words, true, strict=True))

    return max(novelty.words, key=agreement)


def _last(valid: npt.NDArray[np.int64], places: npt.NDArray[np.int64]) -> int:
    """Place of the last episode that was played; of the last one if none was."""
    return int(valid[-1] if valid.size else places[-1])


def _predictions(
    rows: Rows,
    groups: list[tuple[Key, npt.NDArray[np.int64]]],
    digits: npt.NDArray[np.int64],
    entries: Mapping[int, ListedNovelty],
) -> Answers:
    valid = np.isfinite(rows["performance"])
    last = np.array([_last(places[valid[places]], places) for _, places in groups])
    words, truth = no_words(len(groups)), no_words(len(groups))
    for line, (key, _) in enumerate(groups):
        named = [str(rows[name][last[line]]).strip().lower() for name in SLOTS]
        hint = HINT_WORDS.get(key[1], (None, None, None))
        if key[4] in entries:
            hint = nearest_words(entries[key[4]].novelty, named)
        for slot, (word, right) in enumerate(zip(named, hint, strict=True)):
            truth[line, slot] = -1 if right is None else 1
            # An agent that names any word is wrong in the slots that it leaves open.
            words[line, slot] = int(word == right) if any(named) else -1
    return Answers(rows[PROBABILITIES][last], digits, words, truth)
