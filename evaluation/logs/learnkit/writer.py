"""Writers of 2019 logs: of a whole run, or row by row during a run."""

import copy
import json
import math
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from evaluation.closing import Closing
from evaluation.files import whole_directory
from evaluation.json_types import JsonMapping
from evaluation.logs import home
from evaluation.logs.cells import CheckedRow, Scalar
from evaluation.logs.learnkit.format import (
    DATA_FILE,
    LAST_COLUMNS,
    REPORT_COLUMNS,
    REPORT_FILE,
    REWARD,
    SOURCES,
    STANDARD_COLUMNS,
    TERMINATIONS,
    LearnkitRow,
    is_measure,
    parse_phase,
)
from evaluation.logs.tables import CONTROL, WORKER, WORKER_WORDS
from evaluation.logs.texts import write_line


def write_log(
    base_dir: str | os.PathLike[str],
    name: str,
    rows: Iterable[LearnkitRow],
    start: datetime | None = None,
    syllabus: str | None = None,
) -> Path:
    """Write the log of one run, completely or not at all.

    The same rows give the same bytes.

    Args:
      base_dir: directory to put the log directory in, usually ``$L2DATA/logs``; made if absent.
      name: of the syllabus, first part of the directory's name.
      rows: the sub-episodes in played order; block and episode numbers may not fall.
      start: when the run started, for the directory's name; now if None.
      syllabus: text of the syllabus, written as ``<name>.json``; None for no file.

    Returns:
      The new log directory, ``<name>-<milliseconds since 1970>``.

    Raises:
      ValueError: the format does not allow a value; the message names row and column.
      FileExistsError: the log directory already exists.
      OSError: the files cannot be written.

    Source: the lifelong-learning metrics framework of December 2019.
    """
    final = Path(base_dir) / home.milliseconds_name(_checked_name(name), start or datetime.now())
    with whole_directory(final) as partial:
        if syllabus is not None:
            (partial / f"{name}.json").write_text(syllabus, encoding="utf-8", newline="")
        with _Tree(partial) as tree:
            for row in rows:
                tree.add(row)
            if not tree.count:
                raise ValueError("rows is empty: a log needs at least one sub-episode")
    return final


class RunLogger(Closing):
    """Log a run of a syllabus while it is played; threads may share a logger.

    Every row is on disk when `log` returns. Block and episode numbers may be left out: a new block
    begins when phase, class or parameters change, and a row without a number is a new episode.

    Example:
      >>> with RunLogger("pole") as logger:  # doctest: +SKIP
      ...     logger.log("1.train", "CartPole3D", reward=200.0, steps=200)

    Attributes:
      directory: the log directory.
    """

    def __init__(
        self,
        name: str,
        base_dir: str | os.PathLike[str] | None = None,
        start: datetime | None = None,
    ) -> None:
        """Make the log directory.

        Args:
          name: of the syllabus, first part of the directory's name.
          base_dir: directory to put the log directory in; ``$L2DATA/logs`` if None.
          start: when the run started; now if None.

        Raises:
          ValueError: the name cannot be that of a directory.
          FileExistsError: the log directory already exists.
        """
        base = home.logs_folder() if base_dir is None else Path(base_dir)
        begin = start or datetime.now()
        self.directory = base / home.milliseconds_name(_checked_name(name), begin)
        self.directory.mkdir(parents=True)
        self._tree = _Tree(self.directory, flush=True)
        self._lock = threading.Lock()
        self._last: LearnkitRow | None = None

    def log(
        self,
        phase: str,
        class_name: str,
        params: JsonMapping | None = None,
        *,
        block: int | None = None,
        task: int | None = None,
        timestamp: datetime | None = None,
        measures: Mapping[str, float] | None = None,
        reward: float | None = None,
        **columns: Any,
    ) -> LearnkitRow:
        """Log one sub-episode.

        Args:
          phase: ``<number>.train`` or ``<number>.test``.
          class_name: the task.
          params: parameters of the block; None for no parameters.
          block: number of the block; if None, that of the previous row or the next number.
          task: number of the episode; if None, the next number.
          timestamp: local time; now if None.
          measures: columns whose names start with ``score``, and ``reward`` if not given below.
          reward: of the sub-episode.
          **columns: any other field of `LearnkitRow`: ``sub_task``, ``worker``, ``seed``,
            ``steps``, ``termination_status``, ``source``, ``extras``.

        Returns:
          The written row.

        Raises:
          ValueError: the format does not allow a value; nothing is written.
        """
        values = {**({} if reward is None else {REWARD: reward}), **(measures or {})}
        with self._lock:
            last = self._last
            row = LearnkitRow(
                phase=phase,
                class_name=class_name,
                params=copy.deepcopy(params or {}),
                block=self._next_block(phase, class_name, params or {}) if block is None else block,
                task=(0 if last is None else last.task + 1) if task is None else task,
                measures=values,
                timestamp=timestamp or datetime.now(),
                **columns,
            )
            self._tree.add(row)
            self._last = row
        return row

    def _next_block(self, phase: str, class_name: str, params: JsonMapping) -> int:
        last = self._last
        if last is None:
            return 0
        same = (last.phase, last.class_name) == (phase, class_name)
        same = same and _canonical(last.params) == _canonical(params)
        return last.block if same else last.block + 1

    def close(self) -> None:
        """Close all files; no row can be logged afterwards."""
        with self._lock:
            self._tree.close()


def _canonical(params: JsonMapping) -> str:
    """Text of parameters that does not depend on their order; "" for what is not JSON."""
    try:
        return json.dumps(params, sort_keys=True)
    except (TypeError, ValueError):
        return ""


def _checked_name(name: str) -> str:
    if not WORKER.fullmatch(name) or name.startswith("."):
        words = f"{WORKER_WORDS} and not begin with '.'"
        raise ValueError(f"the name of a run must be {words}, not {name!r}")
    return name


class _Tree(Closing):
    """The open files of a log, and the state for checks of its next row."""

    def __init__(self, root: Path, flush: bool = False) -> None:
        self.count = 0
        self._root = root
        self._flush = flush
        self._closed = False
        self._header: list[str] = []
        self._last: LearnkitRow | None = None
        self._phases: dict[str, int] = {}
        self._blocks: dict[int, tuple[str, str, str]] = {}
        self._reported: set[tuple[str, int]] = set()
        self._folder: Path | None = None
        self._stream: IO[str] | None = None

    def close(self) -> None:
        """Close the open file; no row can be added afterwards."""
        self._closed = True
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def add(self, row: LearnkitRow) -> None:
        """Check a row and append it to its table.

        Raises:
          ValueError: the format does not allow it; nothing is written.
        """
        if self._closed:
            raise ValueError("the log is closed: no row can be added")
        at, header = CheckedRow(self.count), self._header or _header(row)
        cells = _cells(at, row, self._last, header)
        params = at.params("params", row.params)
        meaning = (row.phase, row.class_name, _canonical(row.params))
        if self._blocks.get(row.block, meaning) != meaning:
            words = " ".join(self._blocks[row.block])
            raise at.error("block", f"is {row.block}, which is {words}; number a new block")
        self._header, self._last = header, row
        self._blocks[row.block] = meaning
        ordinal = self._phases.setdefault(row.phase, len(self._phases) + 1)
        phase = f"{ordinal}-{row.phase.replace('.', '_')}"
        folder = self._root / f"worker-{row.worker}" / phase / row.class_name
        self._open(folder)
        if (row.worker, row.block) not in self._reported:
            self._reported.add((row.worker, row.block))
            report = (row.phase, row.worker, row.class_name, cells["block"], params)
            _append(folder / REPORT_FILE, report)
        self._append([cells[name] for name in header])
        self.count += 1

    def _open(self, folder: Path) -> None:
        """Open the table of a folder for appending."""
        if folder == self._folder and self._stream is not None:
            return
        if self._stream is not None:
            self._stream.close()
        folder.mkdir(parents=True, exist_ok=True)
        table = folder / DATA_FILE
        is_new = not table.exists()
        self._stream = table.open("a", encoding="utf-8", newline="")
        self._folder = folder
        if is_new:
            _append(folder / REPORT_FILE, REPORT_COLUMNS)
            self._append(self._header)

    def _append(self, values: Sequence[Scalar]) -> None:
        assert self._stream is not None
        write_line(self._stream, values)
        if self._flush:
            self._stream.flush()


def _append(path: Path, values: Sequence[Scalar]) -> None:
    with path.open("a", encoding="utf-8", newline="") as stream:
        write_line(stream, values)


def _header(row: LearnkitRow) -> list[str]:
    """The columns of a log, in the order of the framework of 2020."""
    last = [name for name in LAST_COLUMNS if name in row.extras]
    extras = [name for name in row.extras if name not in last]
    return [*STANDARD_COLUMNS, *extras, *row.measures, *last]


def _cells(
    at: CheckedRow, row: LearnkitRow, last: LearnkitRow | None, header: Sequence[str]
) -> dict[str, Scalar]:
    """The checked cells of a row."""
    phase = parse_phase(row.phase)
    if phase is None:
        words = "<number from 1>.train or <number from 1>.test"
        raise at.error("phase", f"must be {words}, not {row.phase!r}")
    before = 0 if last is None else (parse_phase(last.phase) or (0, ""))[0]
    if phase[0] < before:
        raise at.error("phase", f"must not fall from {before} to {row.phase!r}")
    least = {} if last is None else {"block": last.block, "task": last.task}
    counts = {name: getattr(row, name) for name in ("block", "task", "sub_task", "seed", "steps")}
    optional = [name for name in ("seed", "steps") if counts[name] is None]
    cells: dict[str, Scalar] = {
        "phase": row.phase,
        "worker": at.folder("worker", row.worker),
        "class_name": at.folder("class_name", row.class_name),
        "termination_status": at.word("termination_status", row.termination_status, TERMINATIONS),
        "source": at.word("source", row.source, SOURCES),
        "timestamp": "" if row.timestamp is None else at.moment("timestamp", row.timestamp),
        **{
            name: None if name in optional else at.count(name, value, least.get(name, 0))
            for name, value in counts.items()
        },
    }
    _check_columns(at, row, header)
    for name, value in row.measures.items():
        number = at.measure(name, value)
        cells[name] = None if math.isnan(number) and name != REWARD else number
    return cells | {name: at.extra(name, value) for name, value in row.extras.items()}


def _check_columns(at: CheckedRow, row: LearnkitRow, header: Sequence[str]) -> None:
    if not row.measures:
        raise at.error(REWARD, "is missing, and so is any column that starts with 'score'")
    for name in row.measures:
        if not is_measure(name) or CONTROL.search(name):
            raise at.error(name, "a measure is 'reward' or starts with 'score'")
    for name in row.extras:
        if not name or name in STANDARD_COLUMNS or is_measure(name) or CONTROL.search(name):
            raise at.error(name, "an extra column needs a printable name of its own")
    differing = set(header) ^ {*STANDARD_COLUMNS, *row.measures, *row.extras}
    if differing:
        raise at.error(", ".join(sorted(differing)), "every row must have the columns of row 0")
