"""Reader of 2019 logs that reports every problem with file and line."""

import dataclasses
import itertools
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from evaluation.json_types import JsonMapping
from evaluation.logs.learnkit.format import (
    DATA_FILE,
    REPORT_COLUMNS,
    REPORT_FILE,
    REQUIRED_COLUMNS,
    REWARD,
    SOURCES,
    STANDARD_COLUMNS,
    TERMINATIONS,
    WITH_LABELS,
    LearnkitBlock,
    LearnkitLog,
    LearnkitRow,
    is_measure,
    parse_phase,
)
from evaluation.logs.problems import LogError, Problem, Problems
from evaluation.logs.tables import (
    WORKER_WORDS,
    Cells,
    Placed,
    find_tables,
    read_table,
    usable_worker,
)

_DEFAULTS = {
    "timestamp": "",
    "seed": "",
    "sub_task": "0",
    "steps": "",
    "termination_status": "DONE",
    "source": "NEXT",
}


def read_log(path: str | os.PathLike[str]) -> LearnkitLog:
    """Read and check the log directory of one run.

    Args:
      path: the directory of the run, with those of the workers.

    Returns:
      The `LearnkitLog`, incomplete rows included; its ``warnings`` are about unusual but allowed
      content.

    Raises:
      LogError: the log is not valid; it carries every problem with file and line.

    Source: the lifelong-learning metrics framework of December 2019, and a log written in 2020.
    """
    log, problems = _read(Path(path))
    if log is None:
        raise LogError(problems)
    return log


def check_log(path: str | os.PathLike[str]) -> list[Problem]:
    """Every `Problem` of a log directory.

    Args:
      path: the directory of the run, with those of the workers.

    Returns:
      Problems of block reports, then of tables in path order, then of the order of episodes.
      Errors: missing columns; numbers, phases and words that are not allowed; workers that differ
      from their directory; rows whose block is in no report; blocks with two meanings; block or
      phase numbers that fall while episode numbers rise. Warnings: measures that are not finite,
      missing columns with a default, sub-episodes that are there twice.
    """
    return _read(Path(path))[1]


class _Key(NamedTuple):
    """Key that joins a row with a line of a block report."""

    phase: str
    class_name: str
    worker: str
    block: int


def _read(root: Path) -> tuple[LearnkitLog | None, list[Problem]]:
    """The log, or None if it has an error, and all problems."""
    problems = Problems()
    if not root.is_dir():
        problems.error(root, None, "no such directory")
        return None, problems.problems
    reports = _read_reports(root, problems)
    measures: dict[str, None] = {}
    placed = [
        item
        for path in find_tables(root, DATA_FILE, problems)
        for item in _read_table(path, reports, measures, problems)
    ]
    placed.sort(key=lambda item: (item.row.task, item.row.sub_task))
    blocks = _checked_blocks(placed)
    _check_order(placed)
    if problems.fatal:
        return None, problems.problems
    rows = tuple(item.row for item in placed)
    return LearnkitLog(
        root, tuple(measures), blocks, rows, tuple(problems.problems)
    ), problems.problems


def _read_reports(root: Path, problems: Problems) -> dict[_Key, JsonMapping]:
    """The parameters of every block of every worker."""
    reports: dict[_Key, JsonMapping] = {}
    for path in find_tables(root, REPORT_FILE, problems):
        _, lines = read_table(path, REPORT_COLUMNS, problems) or ((), ())
        for cells in lines:
            key, params = _read_key(cells), cells.object("params")
            if key is not None and reports.setdefault(key, params) != params:
                words = f"{reports[key]} above, and {params} here"
                cells.error(f"the params of block {key.block} are {words}")
    return reports


def _read_key(cells: Cells) -> _Key | None:
    """The key of a line; None, and its problems, if the line is not sound."""
    text, block = cells.text, cells.count("block")
    if parse_phase(text["phase"]) is None:
        expected = "<number from 1>.train or <number from 1>.test"
        cells.error(f"phase must be {expected}, not {text['phase']!r}")
    if not text["class_name"]:
        cells.error("class_name is empty")
    worker, folder = text["worker"], cells.path.parents[2].name
    if not usable_worker(worker):
        cells.error(f"worker must be {WORKER_WORDS}, not {worker!r}")
    elif folder not in (f"worker-{worker}", worker):
        cells.error(f"worker is {worker!r} in the directory {folder!r}")
    if block is None or not cells.sound:
        return None
    return _Key(text["phase"], text["class_name"], worker, block)


def _read_table(
    path: Path,
    reports: Mapping[_Key, JsonMapping],
    measures: dict[str, None],
    problems: Problems,
) -> Iterator[Placed]:
    """Yield the valid rows of a table; add the names of its measures to `measures`."""
    header, lines = read_table(path, REQUIRED_COLUMNS, problems, _DEFAULTS) or ([], ())
    names = [name for name in header if is_measure(name)]
    if header and not names:
        problems.error(path, 1, "there is no column 'reward' and none that starts with 'score'")
    if not names:
        return
    for name, value in _DEFAULTS.items():
        if name not in header and value:
            problems.warning(path, 1, f"the column {name!r} is missing and read as {value!r}")
    measures.update(dict.fromkeys(names))
    unreported: set[_Key] = set()
    for cells in lines:
        key = _read_key(cells)
        row, sound = _parse_row(cells, names), cells.sound
        if key is not None and key not in reports and key not in unreported:
            unreported.add(key)
            block = f"block {key.block} of {key.class_name} in phase {key.phase}"
            cells.error(f"no {REPORT_FILE} of worker {key.worker} names {block}")
        if key is not None and sound:
            params = reports.get(key, {})
            yield Placed(dataclasses.replace(row, block=key.block, params=params), cells)


def _parse_row(cells: Cells, measures: Sequence[str]) -> LearnkitRow:
    """One row without the fields of its key; it is meaningless if its cells are not sound."""
    text = cells.text
    task, sub_task = cells.count("task") or 0, cells.count("sub_task") or 0
    seed, steps = (cells.count(name, optional=True) for name in ("seed", "steps"))
    if text["termination_status"] not in TERMINATIONS:
        words = f"{' or '.join(TERMINATIONS)}, not {text['termination_status']!r}"
        cells.error(f"termination_status must be {words}")
    if text["source"] not in SOURCES:
        cells.warning(f"source is {text['source']!r}, not one of {', '.join(SOURCES)}")
    when = cells.moment("timestamp") if text["timestamp"] else None
    # Only rows with labels have scores.
    labelled = text["source"] == WITH_LABELS
    values = {
        name: cells.number(name) if text[name] or name == REWARD or labelled else math.nan
        for name in measures
    }
    return LearnkitRow(
        phase=text["phase"],
        class_name=text["class_name"],
        params={},
        block=0,
        task=task,
        measures=values,
        sub_task=sub_task,
        worker=text["worker"],
        seed=seed,
        steps=steps,
        termination_status=text["termination_status"],
        source=text["source"],
        timestamp=when,
        extras={k: v for k, v in text.items() if k not in STANDARD_COLUMNS and k not in values},
    )


def _checked_blocks(placed: Sequence[Placed]) -> tuple[LearnkitBlock, ...]:
    """All blocks in order of number, checked to have one meaning each."""
    meanings: dict[int, list[LearnkitBlock]] = {}
    for row, cells in placed:
        number, kind = parse_phase(row.phase) or (0, "")
        block = LearnkitBlock(row.block, row.phase, number, kind, row.class_name, row.params)
        versions = meanings.setdefault(row.block, [block])
        if block in versions:
            continue
        versions.append(block)
        for name in ("phase", "class_name", "params"):
            old, new = getattr(versions[0], name), getattr(block, name)
            if old != new:
                words = f"{old!r} before and {new!r} at episode {row.task}"
                cells.error(f"the {name} of block {row.block} is {words}")
    return tuple(meanings[number][0] for number in sorted(meanings))


def _check_order(placed: Sequence[Placed]) -> None:
    """Check that block and phase numbers do not fall while episode numbers rise."""
    for (before, _), (row, cells) in itertools.pairwise(placed):
        phases = [(parse_phase(one.phase) or (0, ""))[0] for one in (before, row)]
        for name, (last, number) in (
            ("block", (before.block, row.block)),
            ("phase number", phases),
        ):
            if number < last:
                cells.error(f"{name} falls from {last} to {number} at episode {row.task}")
        # A logger of 2020 logs the last sub-episode of a block at NEXT and again at RESET.
        same = (before.task, before.sub_task, before.source) == (row.task, row.sub_task, row.source)
        if same and REWARD in row.measures:
            cells.warning(f"sub-episode {row.sub_task} of episode {row.task} is there twice")
