"""Cells of `jaxsim sailon evaluate`; levels, difficulties and visibilities are trials of a pack.

A pack is one experiment: its trials are lanes of one program, and agent and baseline play the same
trials. A cell alone in its pack equals `jaxsim sailon evaluate` with its values.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from evaluation.json_types import JsonObject
from evaluation.metrics.reasons import Reason, sentence_of
from evaluation.metrics.table import BY_NAME
from evaluation.report.entries import number
from evaluation.sailon import evaluate
from evaluation.sailon.experiment import generate
from evaluation.sweep.axes import Value
from evaluation.sweep.bases import learning
from evaluation.sweep.bases.base import (
    PackResults,
    SweepFiles,
    Values,
    agent_files,
    agent_of,
    no_such,
    typed,
)
from evaluation.sweep.grid import GroupKeys, SweepCell

FIELDS: Final[Mapping[str, Value | None]] = {
    "agent": "pd",
    "baseline": "pd",
    "level": 200,
    "difficulty": "easy",
    "visibility": 0,
    "hint-level": -1,
    "trials": evaluate.TRIALS,
    "episodes": evaluate.EPISODES,
    "button": "",
    "training": 0,
    "seed": 0,
    "starts": "counter",
}
_PLACES: Final = {name: place for place, name in enumerate(BY_NAME)}
TOGETHER: Final = ("level", "difficulty", "visibility")
"""Fields in which the cells of one experiment may differ."""
COPIED: Final[Mapping[str, pa.DataType]] = {
    "trial_index": pa.int32(),
    "episode_index": pa.int32(),
    "performance": pa.float64(),
    "length": pa.int32(),
    "complete": pa.bool_(),
    "novelty_initiated": pa.bool_(),
    "novelty_probability": pa.float64(),
    "novelty_threshold": pa.float64(),
    "novelty": pa.int32(),
}
ROWS: Final = pa.schema([("cell", pa.int64()), *COPIED.items(), ("baseline", pa.float64())])
STEPS: Final = 200
BYTES_A_ROW: Final = 1024


class SailonBase:
    """The base "sailon evaluate"; see `Base`."""

    name = "sailon evaluate"
    threads = False

    def fields(self) -> Mapping[str, Value | None]:
        """Fields with their defaults."""
        return FIELDS

    def files(self, values: Values) -> list[str]:
        """Files of agent and baseline, if they are from files."""
        return [*agent_files(values), *agent_files(values, "baseline")]

    def check(self, values: Values, place: SweepFiles) -> None:
        """Check a cell."""
        unknown_names = [name for name in values if name not in FIELDS]
        if unknown_names:
            raise no_such(unknown_names[0], list(FIELDS))
        text = ("agent", "baseline", "difficulty", "starts")
        typed(values, dict.fromkeys(text, str), FIELDS)
        typed(values, dict.fromkeys([name for name in FIELDS if name not in text], int), FIELDS)
        _job([values], place).settings()
        _job([values], place).playing()

    def keys(self, values: Values, place: SweepFiles) -> GroupKeys:
        """Program: agents and starts. Call: all fields but those of `TOGETHER`."""
        call_values = tuple((name, values[name]) for name in FIELDS if name not in TOGETHER)
        return GroupKeys((values["agent"], values["baseline"], values["starts"]), call_values)

    def lanes(self, values: Values) -> int:
        """One lane per trial."""
        return int(values["trials"])

    def episodes(self, values: Values, place: SweepFiles) -> int:
        """Episodes of all trials."""
        return int(values["trials"]) * int(values["episodes"])

    def steps(self, values: Values, place: SweepFiles) -> int:
        """Steps of agent and baseline, if every episode has its greatest length."""
        return 2 * STEPS * self.episodes(values, place)

    def bytes(self, values: Values, cells: int, place: SweepFiles) -> int:
        """Memory of the results of a pack."""
        return BYTES_A_ROW * cells * self.episodes(values, place)

    def schema(self) -> pa.Schema:
        """Columns of the rows."""
        return ROWS

    def play(self, cells: Sequence[SweepCell], place: SweepFiles) -> PackResults:
        """Play a pack as experiments."""
        by_cell: dict[int, tuple[pa.Table, JsonObject]] = {}
        for members in _experiments(cells):
            job = _job([cell.values for cell in members], place)
            # Not `checked`: nothing is written to a directory.
            result = evaluate.play(job, generate(job.settings(), "evaluation"))
            for cell in members:
                by_cell[cell.number] = _of_cell(cell, result)
        rows = pa.concat_tables([by_cell[cell.number][0] for cell in cells])
        return PackResults(
            rows, learning.metrics(cells, [by_cell[cell.number][1] for cell in cells])
        )


def _job(values: Sequence[Values], place: SweepFiles) -> evaluate.EvaluationPlan:
    first = values[0]

    def each(name: str) -> tuple[Any, ...]:
        return tuple(dict.fromkeys(one[name] for one in values))

    return evaluate.EvaluationPlan(
        agent_of(first, place),
        Path(),
        baseline=agent_of(first, place, "baseline"),
        levels=each("level"),
        difficulties=each("difficulty"),
        visibilities=each("visibility"),
        hint_level=first["hint-level"],
        trials=first["trials"],
        episodes=first["episodes"],
        button=None if first["button"] == "" else first["button"],
        training=first["training"],
        seed=first["seed"],
        starts=first["starts"],
    )


def _experiments(cells: Sequence[SweepCell]) -> list[list[SweepCell]]:
    """Groups of cells with all combinations of their levels, difficulties and visibilities."""
    values = [tuple(cell.values[name] for name in TOGETHER) for cell in cells]
    sizes = [len(set(column)) for column in zip(*values, strict=True)]
    if len(set(values)) == len(values) == np.prod(sizes):
        return [list(cells)]
    rows: dict[tuple[Value, ...], list[SweepCell]] = {}
    for cell, (_, *rest) in zip(cells, values, strict=True):
        rows.setdefault(tuple(rest), []).append(cell)
    return list(rows.values())


def _of_cell(cell: SweepCell, result: evaluate.EvaluationResults) -> tuple[pa.Table, JsonObject]:
    values = cell.values
    tested, baseline = result.agent.tested(), result.baseline.tested()
    mask = (
        (tested["novelty_level"] == values["level"])
        & (tested["novelty_difficulty"] == values["difficulty"])
        & (tested["novelty_visibility"] == values["visibility"])
    )
    arrays = [pa.array(np.full(int(mask.sum()), cell.number, np.int64))]
    arrays += [pa.array(tested[name][mask], kind) for name, kind in COPIED.items()]
    arrays.append(pa.array(baseline["performance"][mask], pa.float64()))
    (row,) = [
        row
        for row in result.analysis.rows
        if row.kind == "cell"
        and (row.level, row.difficulty, row.visibility)
        == (values["level"], values["difficulty"], values["visibility"])
    ]
    entries = {
        name: {
            "mean": number(value.values),
            "low": number(value.low),
            "high": number(value.high),
            "lifetimes": row.counts[name],
            "reason": None if value.reasons == Reason.NONE else sentence_of(value.reasons),
        }
        for name, value in sorted(row.values.items(), key=lambda item: _PLACES[item[0]])
    }
    return pa.Table.from_arrays(arrays, schema=ROWS), entries


BASE: Final = SailonBase()
