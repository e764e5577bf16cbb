"""Reader of 2019 logs, which reports every problem with file and line."""

import dataclasses
import itertools
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

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
    Block,
    Log,
    LogRow,
    is_measure,
    parse_phase,
)
from evaluation.logs.problems import LogError, Problem, Problems
from evaluation.logs.tables import (
    COUNT,
    WORKER_WORDS,
    check_header,
    find_tables,
    parse_number,
    parse_object,
    parse_timestamp,
    read_lines,
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


def read_log(path: str | os.PathLike[str]) -> Log:
    """Read and check the log directory of one run.

    Args:
      path: the directory that holds those of the workers.

    Returns:
      The `Log`, rows that ended with ``NOT_DONE`` included; its ``warnings`` say what is unusual
      but allowed.

    Raises:
      LogError: the log is not valid; it carries every problem with file and line.

    Source: the lifelong-learning metrics framework of December 2019, and a log written in 2020.
    """
    log, problems = _read(Path(path))
    if log is None:
        raise LogError(problems)
    return log


def check_log(path: str | os.PathLike[str]) -> list[Problem]:
    """Every `Problem` of a log directory, in the order found.

    Args:
      path: the directory that holds those of the workers.

    Returns:
      Block reports first, then tables in path order, then the order of episodes. Errors: missing
      columns; numbers, phases and words that are not allowed; workers that are not those of their
      directory; rows whose block no report names; blocks with two meanings; block or phase numbers
      that fall while episode numbers rise. Warnings: measures that are not finite, columns that
      were assumed, sub-episodes that are there twice.
    """
    return _read(Path(path))[1]


class _Key(NamedTuple):
    """What joins a row with a line of a block report."""

    phase: str
    class_name: str
    worker: str
    block: int


class _Placed(NamedTuple):
    """A row and where it stands on disk."""

    row: LogRow
    path: Path
    line: int


def _read(root: Path) -> tuple[Log | None, list[Problem]]:
    """The log, None if it has an error, and all problems."""
    problems = Problems()
    if not root.is_dir():
        problems.error(root, None, "no such directory")
        return None, problems.found
    reports = _read_reports(root, problems)
    measures: dict[str, None] = {}
    placed = [
        item
        for path in find_tables(root, DATA_FILE, problems)
        for item in _read_table(path, reports, measures, problems)
    ]
    placed.sort(key=lambda item: (item.row.task, item.row.sub_task))
    blocks = _checked_blocks(placed, problems)
    _check_order(placed, problems)
    if problems.fatal:
        return None, problems.found
    rows = tuple(item.row for item in placed)
    return Log(root, tuple(measures), blocks, rows, tuple(problems.found)), problems.found


def _read_reports(root: Path, problems: Problems) -> dict[_Key, Mapping[str, Any]]:
    """The parameters of every block of every worker."""
    reports: dict[_Key, Mapping[str, Any]] = {}
    for path in find_tables(root, REPORT_FILE, problems):
        lines = read_lines(path, problems)
        _, header = next(lines, (1, None))
        if header is None or not check_header(path, header, REPORT_COLUMNS, problems):
            continue
        for line, values in lines:
            cells = dict(zip(header, values, strict=True))
            key = _read_key(path, line, cells, problems)
            params = parse_object(path, line, "params", cells["params"], problems)
            if key is None:
                continue
            if reports.setdefault(key, params) != params:
                words = f"{reports[key]} above, and {params} here"
                problems.error(path, line, f"the params of block {key.block} are {words}")
    return reports


def _read_key(path: Path, line: int, cells: Mapping[str, str], problems: Problems) -> _Key | None:
    """What joins a row with a line of a block report, or None and its problems."""
    before = len(problems.found)
    if not COUNT.fullmatch(cells["block"]):
        problems.error(path, line, f"block must be an integer from 0, not {cells['block']!r}")
    if parse_phase(cells["phase"]) is None:
        expected = "<number from 1>.train or <number from 1>.test"
        problems.error(path, line, f"phase must be {expected}, not {cells['phase']!r}")
    if not cells["class_name"]:
        problems.error(path, line, "class_name is empty")
    _check_worker(path, line, cells["worker"], problems)
    if len(problems.found) > before:
        return None
    return _Key(cells["phase"], cells["class_name"], cells["worker"], int(cells["block"]))


def _check_worker(path: Path, line: int, worker: str, problems: Problems) -> None:
    """A worker has a usable name, and its rows lie in its directory."""
    if not usable_worker(worker):
        problems.error(path, line, f"worker must be {WORKER_WORDS}, not {worker!r}")
        return
    folder = path.parents[2].name
    if folder not in (f"worker-{worker}", worker):
        problems.error(path, line, f"worker is {worker!r} in the directory {folder!r}")


def _read_table(
    path: Path,
    reports: Mapping[_Key, Mapping[str, Any]],
    measures: dict[str, None],
    problems: Problems,
) -> Iterator[_Placed]:
    """The valid rows of a table; the names of its measures are added to `measures`."""
    lines = read_lines(path, problems)
    _, header = next(lines, (1, None))
    if header is None or not check_header(path, header, REQUIRED_COLUMNS, problems):
        return
    found = [name for name in header if is_measure(name)]
    if not found:
        problems.error(path, 1, "there is no column 'reward' and none that starts with 'score'")
        return
    for name, value in _DEFAULTS.items():
        if name not in header and value:
            problems.warning(path, 1, f"the column {name!r} is missing and read as {value!r}")
    measures.update(dict.fromkeys(found))
    unreported: set[_Key] = set()
    for line, values in lines:
        cells = {**_DEFAULTS, **dict(zip(header, values, strict=True))}
        key = _read_key(path, line, cells, problems)
        if key is not None and key not in reports and key not in unreported:
            unreported.add(key)
            what = f"block {key.block} of {key.class_name} in phase {key.phase}"
            problems.error(path, line, f"no {REPORT_FILE} of worker {key.worker} names {what}")
        row = _parse_row(path, line, cells, found, problems)
        if row is not None and key is not None:
            params = reports.get(key, {})
            yield _Placed(dataclasses.replace(row, block=key.block, params=params), path, line)


def _parse_row(
    path: Path,
    line: int,
    cells: Mapping[str, str],
    measures: Sequence[str],
    problems: Problems,
) -> LogRow | None:
    """One row without what its key says, or None and its problems."""
    before = len(problems.found)
    numbers = {
        name: _parse_count(path, line, name, cells[name], problems)
        for name in ("task", "sub_task", "seed", "steps")
    }
    if cells["termination_status"] not in TERMINATIONS:
        words = f"{' or '.join(TERMINATIONS)}, not {cells['termination_status']!r}"
        problems.error(path, line, f"termination_status must be {words}")
    if cells["source"] not in SOURCES:
        words = f"{cells['source']!r}, not one of {', '.join(SOURCES)}"
        problems.warning(path, line, f"source is {words}")
    text = cells["timestamp"]
    when = parse_timestamp(path, line, text, problems) if text else None
    values = {name: _parse_measure(path, line, name, cells, problems) for name in measures}
    if any(problem.severity == "error" for problem in problems.found[before:]):
        return None
    return LogRow(
        phase=cells["phase"],
        class_name=cells["class_name"],
        params={},
        block=0,
        task=numbers["task"] or 0,
        measures=values,
        sub_task=numbers["sub_task"] or 0,
        worker=cells["worker"],
        seed=numbers["seed"],
        steps=numbers["steps"],
        termination_status=cells["termination_status"],
        source=cells["source"],
        timestamp=when,
        extras={k: v for k, v in cells.items() if k not in STANDARD_COLUMNS and k not in values},
    )


def _parse_count(path: Path, line: int, name: str, text: str, problems: Problems) -> int | None:
    """A whole number from 0; an empty cell is None where the column may be left out."""
    if COUNT.fullmatch(text):
        return int(text)
    if text or name in ("task", "sub_task"):
        problems.error(path, line, f"{name} must be an integer from 0, not {text!r}")
    return None


def _parse_measure(
    path: Path, line: int, name: str, cells: Mapping[str, str], problems: Problems
) -> int | float:
    """A measure; scores stand in rows with labels only."""
    if not cells[name] and name != REWARD and cells["source"] != WITH_LABELS:
        return math.nan
    return parse_number(path, line, name, cells[name], problems)


def _checked_blocks(placed: Sequence[_Placed], problems: Problems) -> tuple[Block, ...]:
    """All blocks in order of number, each with one meaning."""
    meanings: dict[int, list[Block]] = {}
    for row, path, line in placed:
        number, kind = parse_phase(row.phase) or (0, "")
        block = Block(row.block, row.phase, number, kind, row.class_name, row.params)
        known = meanings.setdefault(row.block, [block])
        if block in known:
            continue
        known.append(block)
        for name in ("phase", "class_name", "params"):
            old, new = getattr(known[0], name), getattr(block, name)
            if old != new:
                words = f"{old!r} before and {new!r} at episode {row.task}"
                problems.error(path, line, f"the {name} of block {row.block} is {words}")
    return tuple(meanings[number][0] for number in sorted(meanings))


def _check_order(placed: Sequence[_Placed], problems: Problems) -> None:
    """Block and phase numbers may not fall while episode numbers rise."""
    for (before, _, _), (row, path, line) in itertools.pairwise(placed):
        _check_falling(before, row, path, line, lambda r: r.block, "block", problems)
        _check_falling(before, row, path, line, _phase_number, "phase number", problems)
        # A logger of 2020 logs the last sub-episode of a block at NEXT and once more at RESET.
        same = (before.task, before.sub_task, before.source) == (row.task, row.sub_task, row.source)
        if same and REWARD in row.measures:
            words = f"sub-episode {row.sub_task} of episode {row.task}"
            problems.warning(path, line, f"{words} is there twice")


def _phase_number(row: LogRow) -> int:
    return (parse_phase(row.phase) or (0, ""))[0]


def _check_falling(
    before: LogRow,
    row: LogRow,
    path: Path,
    line: int,
    number: Callable[[LogRow], int],
    name: str,
    problems: Problems,
) -> None:
    if number(row) < number(before):
        words = f"falls from {number(before)} to {number(row)} at episode {row.task}"
        problems.error(path, line, f"{name} {words}")
