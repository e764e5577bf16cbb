"""A log of the 2019 layout as columns, with what the metrics need to know of its blocks."""

import csv
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from evaluation.schedule import Mode

DATA_FILE: Final = "data-log.tsv"
REPORT_FILE: Final = "block-report.tsv"
LABELS: Final = "GET_LABELS"

SyllabusType = Literal["agent", "class"]

_REQUIRED: Final = ("phase", "worker", "class_name", "block", "task")
_WHOLE: Final = ("block", "task", "sub_task", "steps", "seed")
_PHASE: Final = re.compile(r"(\d+)[._-]?(train|test)", re.IGNORECASE)
_SPLIT_NAME: Final = re.compile(r"(train|test)_?(\w+)", re.IGNORECASE)


@dataclass(frozen=True)
class LoggedBlock:
    """One block of a log; it has what the metrics ask of a block.

    Attributes:
      index: number of the block in the log.
      phase: number of its phase.
      mode: "train" or "test".
      class_name: task as logged.
      task: what makes two blocks comparable: the logged name, in classification without the part
        that tells training from test data.
      parameters: the parameter values as JSON text with sorted keys.
      count: episodes, or batches in classification.
    """

    index: int
    phase: int
    mode: Mode
    class_name: str
    task: str
    parameters: str
    count: int


@dataclass(frozen=True)
class BlockTable:
    """The rows of one log, ordered by block, episode and sub-episode.

    Attributes:
      name: name of the log directory.
      columns: (R,) arrays by the names of the log.
      blocks: the B blocks by number.
    """

    name: str
    columns: Mapping[str, npt.NDArray[Any]]
    blocks: tuple[LoggedBlock, ...]

    @property
    def counts(self) -> npt.NDArray[np.int32]:
        """Episodes of each block, (B,)."""
        return np.array([block.count for block in self.blocks], np.int32)

    @cached_property
    def _cells(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """(R,) position of each row's block, and of its episode within the block."""
        numbers = np.array([block.index for block in self.blocks])
        block = np.searchsorted(numbers, self.columns["block"])
        task = self.columns["task"]
        new_block = np.diff(block, prepend=-1) != 0
        new_episode = new_block | (np.diff(task, prepend=-1) != 0)
        running = np.cumsum(new_episode) - 1
        starts = running[new_block]
        return block, running - starts[block]

    def by_block(self, column: str, how: str) -> npt.NDArray[np.float64]:
        """Arrange a column as (B, T), one number an episode, NaN behind each block's end.

        Args:
          column: name of a column of numbers.
          how: "mean", "sum", "count" or "first" over the sub-episodes of an episode.

        Raises:
          ValueError: no such column, one without numbers, or an unknown ``how``.
        """
        if column not in self.columns:
            raise ValueError(
                f"{self.name} has no column {column!r}; there are {', '.join(self.columns)}"
            )
        values = self.columns[column]
        if not np.issubdtype(values.dtype, np.number):
            raise ValueError(f"column {column!r} of {self.name} does not hold numbers")
        if how not in ("mean", "sum", "count", "first"):
            raise ValueError(f"how must be mean, sum, count or first, not {how!r}")
        shape = len(self.blocks), max((block.count for block in self.blocks), default=0)
        result = np.zeros(shape)
        if how == "first":
            result[tuple(part[::-1] for part in self._cells)] = values[::-1]
        else:
            np.add.at(result, self._cells, np.ones(len(values)) if how == "count" else values)
        if how == "mean":
            rows = np.zeros(shape)
            np.add.at(rows, self._cells, 1)
            result /= np.maximum(rows, 1)
        outside = np.arange(shape[1]) >= self.counts[:, None]
        return np.where(outside, np.nan, result)


def load_table(
    directory: Path, syllabus_type: SyllabusType = "agent", drop_incomplete: bool = False
) -> BlockTable:
    """Read a log directory of the 2019 layout, by the names of the columns.

    Args:
      directory: holds ``<worker>/<phase>/<task>/data-log.tsv`` with block-report.tsv beside.
      syllabus_type: in ``"class"`` only rows with source GET_LABELS count, which hold scores.
      drop_incomplete: whether rows with termination_status NOT_DONE are left out.

    Raises:
      ValueError: no such log or one that cannot be used; the message names file and line.
    """
    files = sorted(directory.rglob(DATA_FILE))
    if not files:
        raise ValueError(f"{directory} has no {DATA_FILE} in it; give the directory of one log")
    rows = [row for file in files for row in _data_rows(file)]
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: _column(name, [row.get(name) for row in rows]) for name in names}
    keep = _kept(columns, len(rows), syllabus_type, drop_incomplete)
    if not keep.any():
        wanted = " with source GET_LABELS" if syllabus_type == "class" else ""
        raise ValueError(f"{directory} has no rows{wanted} to compute metrics from")
    order = _order(columns)
    order = order[keep[order]]
    columns = {name: column[order] for name, column in columns.items()}
    parameters = _parameters(directory)
    return BlockTable(directory.name, columns, _blocks(columns, parameters, syllabus_type))


def _data_rows(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of one file with numbers where columns must hold them."""
    for line, row in _rows(file, _REQUIRED):
        for name, text in row.items():
            numeric = name in _WHOLE or name == "reward" or name.startswith("score")
            if numeric:
                row[name] = _number(file, line, name, text, name in _WHOLE)
        yield row


def _rows(file: Path, required: tuple[str, ...]) -> Iterator[tuple[int, dict[str, Any]]]:
    with file.open(newline="", encoding="utf-8") as stream:
        reader = csv.DictReader(stream, delimiter="\t")
        absent = [name for name in required if name not in (reader.fieldnames or ())]
        if absent:
            raise ValueError(f"{file}:1: no column {', '.join(absent)}; add it to the header")
        for row in reader:
            if None in row or None in row.values():
                raise ValueError(
                    f"{file}:{reader.line_num}: {len(row)} fields do not fit the header"
                )
            yield reader.line_num, row


def _number(file: Path, line: int, name: str, text: str, whole: bool) -> float | int:
    if not whole and not text.strip():
        return float("nan")
    try:
        return int(text) if whole else float(text)
    except ValueError as error:
        kind = "a whole number" if whole else "a number"
        raise ValueError(f"{file}:{line}: {name} is {text!r}; it must be {kind}") from error


def _column(name: str, values: list[Any]) -> npt.NDArray[Any]:
    if name in _WHOLE:
        return np.array([-1 if value is None else value for value in values], np.int64)
    if name == "reward" or name.startswith("score"):
        return np.array([np.nan if value is None else value for value in values], np.float64)
    texts = ["" if value is None else value for value in values]
    try:
        return np.array([float(text) for text in texts])
    except ValueError:
        return np.array(texts, object)


def _kept(
    columns: Mapping[str, npt.NDArray[Any]], rows: int, kind: SyllabusType, drop_incomplete: bool
) -> npt.NDArray[np.bool_]:
    keep = np.ones(rows, bool)
    if kind == "class":
        keep &= columns["source"] == LABELS if "source" in columns else False
    if drop_incomplete and "termination_status" in columns:
        keep &= columns["termination_status"] != "NOT_DONE"
    return keep


def _order(columns: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.int64]:
    keys = [columns[name] for name in ("sub_task", "task", "block") if name in columns]
    return np.lexsort(keys)


def _parameters(directory: Path) -> dict[int, str]:
    """Parameter values by block, as JSON text with sorted keys."""
    found: dict[int, str] = {}
    for file in sorted(directory.rglob(REPORT_FILE)):
        for line, row in _rows(file, ("block", "params")):
            try:
                values = json.loads(row["params"] or "{}")
            except ValueError as error:
                raise ValueError(f"{file}:{line}: params is not JSON text") from error
            text = json.dumps(values, sort_keys=True)
            block = int(_number(file, line, "block", row["block"], True))
            if found.setdefault(block, text) != text:
                raise ValueError(
                    f"{file}:{line}: block {block} has other params in another block-report.tsv"
                )
    return found


def _blocks(
    columns: Mapping[str, npt.NDArray[Any]], parameters: Mapping[int, str], kind: SyllabusType
) -> tuple[LoggedBlock, ...]:
    blocks = []
    for index in np.unique(columns["block"]):
        rows = columns["block"] == index
        phases, names = set(columns["phase"][rows]), set(columns["class_name"][rows])
        if len(phases) > 1 or len(names) > 1:
            shown = ", ".join(sorted(map(str, phases | names)))
            raise ValueError(f"block {index} has several phases or tasks: {shown}")
        if int(index) not in parameters:
            raise ValueError(f"block {index} has no row in any {REPORT_FILE}; add its params")
        phase, mode = _phase(str(phases.pop()))
        name = str(names.pop())
        count = len(np.unique(columns["task"][rows]))
        task = _without_split(name) if kind == "class" else name
        text = parameters[int(index)]
        blocks.append(LoggedBlock(int(index), phase, mode, name, task, text, count))
    return tuple(blocks)


def _phase(text: str) -> tuple[int, Mode]:
    match = _PHASE.fullmatch(text)
    if not match:
        raise ValueError(f"phase {text!r} is not <number>.train or <number>.test, as in 1.train")
    return int(match[1]), "train" if match[2].lower() == "train" else "test"


def _without_split(name: str) -> str:
    """Name of a data set without "train" or "test": both parts of one set give the same."""
    match = _SPLIT_NAME.search(name)
    return name[: match.start()] + match[2] if match else name
