"""Format of a log directory, and an overview of its content."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from evaluation.logs import learnkit
from evaluation.logs.l2logger import LogColumns, read_columns
from evaluation.logs.learnkit.format import REPORT_FILE
from evaluation.logs.problems import LogError, Problem
from evaluation.logs.texts import shortened

L2LOGGER, LEARNKIT = "l2logger", "learnkit"
_REGIME_COLUMNS: Final = (
    "regime_num",
    "block_num",
    "block_type",
    "block_subtype",
    "task_name",
    "task_params",
    "length",
)
_BLOCK_COLUMNS: Final = (
    "block",
    "phase",
    "class_name",
    "params",
    "episodes",
    "sub_episodes",
    "not_done",
)
_INFO_FILES: Final = ("logger_info.json", "scenario_info.json")


def layout(root: Path) -> str:
    """Recognise the format of a log directory by its files.

    Returns:
      ``"l2logger"`` with an info file, ``"learnkit"`` with a block report below it.

    Raises:
      LogError: it has neither.
    """
    if is_l2logger(root):
        return L2LOGGER
    if is_learnkit(root):
        return LEARNKIT
    words = "is not a log: it has neither logger_info.json (l2logger) nor a"
    raise LogError([Problem(root, None, "error", f"{words} {REPORT_FILE} below it (learnkit)")])


def is_l2logger(root: Path) -> bool:
    """Whether a directory has an info file of l2logger."""
    return any((root / name).exists() for name in _INFO_FILES)


def is_learnkit(root: Path) -> bool:
    """Whether a directory has a block report of 2019 below it and no info file of l2logger."""
    return not is_l2logger(root) and next(root.rglob(REPORT_FILE), None) is not None


@dataclass(frozen=True)
class Overview:
    """Overview of a log.

    Attributes:
      title: the format, and numbers of episodes.
      header: names of the columns.
      rows: one per regime (l2logger) or block (learnkit).
      warnings: the problems that do not make the log invalid.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    warnings: tuple[Problem, ...]


def overview(root: Path) -> Overview:
    """Read and check a log of either format and list its regimes or blocks.

    Raises:
      LogError: the log is not valid; it carries every problem with file and line.
    """
    if layout(root) == LEARNKIT:
        return _of_learnkit(learnkit.read_log(root))
    return _of_l2logger(read_columns(root, lower_case=True))


def _of_l2logger(log: LogColumns) -> Overview:
    """Regimes of the complete episodes, as l2logger counts them."""
    done = log.take(log.complete)
    numbers = done.regime_numbers()
    starts = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
    lengths = np.bincount(numbers).tolist()
    rows = tuple(
        (
            number,
            int(done.block_num[start]),
            *(
                column.values[column.codes[start]]
                for column in (done.block_type, done.block_subtype, done.task_name)
            ),
            shortened(done.task_params.values[done.task_params.codes[start]]),
            length,
        )
        for number, (start, length) in enumerate(zip(starts, lengths, strict=True))
    )
    cut = len(log) - len(done)
    title = f"l2logger {log.format_version}: {len(done)} complete episodes, {cut} incomplete ones"
    return Overview(title, _REGIME_COLUMNS, rows, log.warnings)


def _of_learnkit(log: learnkit.LearnkitLog) -> Overview:
    """Blocks with numbers of their episodes, over all workers."""
    episodes: dict[int, set[int]] = {block.block: set() for block in log.blocks}
    counts, cut = dict.fromkeys(episodes, 0), dict.fromkeys(episodes, 0)
    for row in log.rows:
        episodes[row.block].add(row.task)
        counts[row.block] += 1
        cut[row.block] += row.termination_status != "DONE"
    rows = tuple(
        (
            block.block,
            block.phase,
            block.class_name,
            shortened(json.dumps(block.params)),
            len(episodes[block.block]),
            counts[block.block],
            cut[block.block],
        )
        for block in log.blocks
    )
    workers = len({row.worker for row in log.rows})
    title = f"learnkit: {sum(map(len, episodes.values()))} episodes of {workers} workers"
    return Overview(title, _BLOCK_COLUMNS, rows, log.warnings)


def text_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table for a terminal; numbers are aligned to the right."""
    lines = [tuple(map(str, line)) for line in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    right = [bool(rows) and isinstance(value, int) for value in (rows[0] if rows else header)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if aligned else cell.ljust(width)
            for cell, width, aligned in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    )
