"""A log of the 2019 layout as columns, with its blocks for metrics."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from evaluation.json_types import JsonValue
from evaluation.logs.layouts import is_l2logger
from evaluation.logs.learnkit import read_log
from evaluation.logs.learnkit.format import WITH_LABELS as LABELS
from evaluation.schedule import Mode

SyllabusType = Literal["agent", "class"]

_WHOLE: Final = ("block", "task", "sub_task", "steps", "seed")
_STANDARD: Final = (
    *("phase", "worker", "class_name", "block", "seed", "task", "sub_task", "steps"),
    *("termination_status", "source"),
)
_SPLIT_NAME: Final = re.compile(r"(train|test)_?(\w+)", re.IGNORECASE)


@dataclass(frozen=True)
class LoggedBlock:
    """One block of a log; it implements `BlockLike` of the metrics.

    Attributes:
      index: number of the block in the log.
      phase: number of its phase.
      mode: "train" or "test".
      class_name: task as logged.
      task: name for comparisons of blocks: the logged name, in classification without "train" or
        "test".
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
    columns: Mapping[str, np.ndarray]
    blocks: tuple[LoggedBlock, ...]

    @property
    def counts(self) -> npt.NDArray[np.int32]:
        """Episodes of each block, (B,)."""
        return np.array([block.count for block in self.blocks], np.int32)

    def by_block(self, column: str, how: str) -> npt.NDArray[np.float64]:
        """Arrange a column as (B, T), one number per episode, see `arranged`.

        Raises:
          ValueError: an unknown column, one without numbers, or an unknown ``how``.
        """
        if column not in self.columns:
            raise ValueError(
                f"{self.name} has no column {column!r}; there are {', '.join(self.columns)}"
            )
        places = self.columns["block"], self.columns["task"]
        return arranged(*places, self.columns[column], how, f"{column} of {self.name}")


def episodes_of(
    block: np.ndarray, task: np.ndarray
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Positions of the rows of a log by block and episode.

    Args:
      block: (R,) number of each row's block, ascending.
      task: (R,) number of each row's episode; rows of one episode are neighbours.

    Returns:
      (R,) position of the block, (R,) position of the episode in it, and (B,) episodes per block.
    """
    _, position = np.unique(block, return_inverse=True)
    new_block = np.diff(position, prepend=-1) != 0
    running = np.cumsum(new_block | (np.diff(task, prepend=-1) != 0)) - 1
    episode = running - running[new_block][position]
    last = np.append(np.diff(running) != 0, True)
    return position, episode, np.bincount(position[last]).astype(np.int32)


def arranged(
    block: np.ndarray, task: np.ndarray, values: np.ndarray, how: str, name: str
) -> npt.NDArray[np.float64]:
    """Arrange rows of a log as (B, T), one number per episode, NaN behind each block's end.

    Args:
      block: (R,) as for `episodes_of`.
      task: (R,) as for `episodes_of`.
      values: (R,) numbers.
      how: "mean", "sum", "count" or "first" over the sub-episodes of an episode.
      name: of the column, for errors.

    Raises:
      ValueError: not numbers, or an unknown ``how``.
    """
    if not np.issubdtype(values.dtype, np.number):
        raise ValueError(f"column {name!r} does not hold numbers")
    if how not in ("mean", "sum", "count", "first"):
        raise ValueError(f"how must be mean, sum, count or first, not {how!r}")
    position, episode, counts = episodes_of(block, task)
    cells, shape = (position, episode), (len(counts), int(counts.max(initial=0)))
    result = np.zeros(shape)
    if how == "first":
        result[position[::-1], episode[::-1]] = values[::-1]
    else:
        np.add.at(result, cells, np.ones(len(values)) if how == "count" else values)
    if how == "mean":
        rows = np.zeros(shape)
        np.add.at(rows, cells, 1)
        result /= np.maximum(rows, 1)
    outside = np.arange(shape[1]) >= counts[:, None]
    return np.where(outside, np.nan, result)


def load_table(
    directory: Path, syllabus_type: SyllabusType = "agent", drop_incomplete: bool = False
) -> BlockTable:
    """Read a log directory of the 2019 layout, by the names of the columns.

    Args:
      directory: with ``<worker>/<phase>/<task>/`` data-log.tsv and block-report.tsv.
      syllabus_type: for ``"class"`` only rows with source GET_LABELS are used; they have scores.
      drop_incomplete: whether rows with termination_status NOT_DONE are left out.

    Raises:
      LogError: the log is not valid; it carries every problem with file and line.
      ValueError: no row is left, or the log is one of l2logger.
    """
    if is_l2logger(directory):
        raise ValueError(
            f"{directory} is a log of l2logger, not of the 2019 layout; for its metrics use "
            f"jaxsim l2metrics -l {directory}"
        )
    log = read_log(directory)
    rows = [
        row
        for row in log.rows
        if (syllabus_type == "agent" or row.source == LABELS)
        and not (drop_incomplete and row.termination_status == "NOT_DONE")
    ]
    if not rows:
        condition = f" with source {LABELS}" if syllabus_type == "class" else ""
        raise ValueError(f"{directory} has no rows{condition} to compute metrics from")
    rows.sort(key=lambda row: (row.block, row.task, row.sub_task))
    columns = {name: _column(name, [getattr(row, name) for row in rows]) for name in _STANDARD}
    columns |= {m: _column(m, [row.measures[m] for row in rows]) for m in log.measures}
    names = dict.fromkeys(name for row in rows for name in row.extras)
    columns |= {name: _column(name, [row.extras.get(name) for row in rows]) for name in names}
    parameters = {b.block: json.dumps(b.params, sort_keys=True) for b in log.blocks}
    return BlockTable(directory.name, columns, _blocks(columns, parameters, syllabus_type))


def _column(name: str, values: Sequence[JsonValue]) -> np.ndarray:
    """A column as numbers if all values are numbers, else as text."""
    if name in _WHOLE:
        return np.array([-1 if value is None else value for value in values], np.int64)
    if name in ("phase", "worker", "class_name", "termination_status", "source"):
        return np.array(values, object)
    try:
        return np.array([float(value) for value in values])
    except (TypeError, ValueError):
        return np.array(["" if value is None else str(value) for value in values], object)


def _blocks(
    columns: Mapping[str, np.ndarray], parameters: Mapping[int, str], kind: SyllabusType
) -> tuple[LoggedBlock, ...]:
    blocks = []
    for index in np.unique(columns["block"]):
        rows = columns["block"] == index
        first = int(np.argmax(rows))
        number, _, word = str(columns["phase"][first]).partition(".")
        mode: Mode = "train" if word == "train" else "test"
        name = str(columns["class_name"][first])
        count = len(np.unique(columns["task"][rows]))
        task = _without_split(name) if kind == "class" else name
        text = parameters[int(index)]
        blocks.append(LoggedBlock(int(index), int(number), mode, name, task, text, count))
    return tuple(blocks)


def _without_split(name: str) -> str:
    """Name of a data set without "train" or "test", common to both parts."""
    match = _SPLIT_NAME.search(name)
    return name[: match.start()] + match[2] if match else name
