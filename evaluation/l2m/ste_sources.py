"""Single-task experts (STE) from files and records: plain arrays by task.

An STE is an agent that learned one task only. Its training performance is what the lifelong learner
is measured against: by its saturation value alone, as in the file of 2019, or by whole curves.
"""

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from evaluation.logs.export import task_labels
from evaluation.records import MEASURES, Records
from evaluation.schedule import Schedule

MAX_BYTES: Final = 2**20
"""Larger files are no list of saturation values."""

MAX_NAME: Final = 200
"""Characters of the longest task name."""

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


def from_info_json(path: Path) -> dict[str, float]:
    """Read the saturation values of single-task experts from a `taskinfo/info.json`.

    Args:
      path: of the file, one JSON object from task names to numbers.

    Returns:
      Task name, exactly as in the file, -> saturation value.

    Raises:
      ValueError: the file is not there or is something else; the message begins with the path and
        names the task that is wrong.

    Source: L2M Metrics Framework, 4 Dec 2019, section on data of single-task experts.
    """
    try:
        size = path.stat().st_size
        text = path.read_bytes() if size <= MAX_BYTES else b""
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from error
    if size > MAX_BYTES:
        raise ValueError(f"{path}: has {size:,} bytes; at most {MAX_BYTES:,} are read")
    try:
        pairs = json.loads(text, object_pairs_hook=_Pairs, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ValueError(f"{path}: broken JSON at {place}: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: is no JSON of task names and numbers: {error}") from error
    if not isinstance(pairs, _Pairs):
        raise ValueError(f'{path}: must be an object such as {{"task": 0.95}}')
    values: dict[str, float] = {}
    for task, value in pairs:
        if task in values:
            raise ValueError(f"{path}: task {task!r} is there twice; keep one of the two")
        values[_checked_name(path, task)] = _checked_value(path, task, value)
    return values


class _Pairs(list[tuple[str, Any]]):
    """The entries of a JSON object in order, names that come twice among them."""


def _refuse(token: str) -> Any:
    raise ValueError(f"{token} is not a number of JSON")


def _checked_name(path: Path, task: str) -> str:
    if not task or len(task) > MAX_NAME or _CONTROL.search(task):
        raise ValueError(
            f"{path}: {task!r:.80} is no task name; it must have 1 to {MAX_NAME} characters and no "
            "line breaks"
        )
    return task


def _checked_value(path: Path, task: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        shown = "an object" if isinstance(value, _Pairs) else f"{value!r:.60}"
        raise ValueError(f"{path}: the saturation of {task!r} must be a number, not {shown}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{path}: the saturation of {task!r} is too large a number")
    return number


def from_records(
    records: Records,
    measure: str = "performance",
    lifetimes: Sequence[int] | None = None,
    syllabus: Schedule | None = None,
) -> dict[str, list[npt.NDArray[np.float64]]]:
    """Take lifetimes that trained a single task as runs of its expert.

    A run is the performance in the training blocks, one after the other, without episodes that were
    cut off or have no finite value, as readers of logs leave these out.

    Args:
      records: of a syllabus that trains one task with one set of parameters; it may test others.
      measure: column used as an episode's value, "performance", "reward" or "length".
      lifetimes: numbers of the lifetimes to take; all if None.
      syllabus: the lifelong syllabus that the expert is for, whose logs give the task another name
        than the records' own syllabus would; the records' own if None.

    Returns:
      Name of the task in lower case, as readers of logs have it, -> one (n,) curve a lifetime.

    Raises:
      ValueError: no or several trained tasks, a task that the syllabus does not have, an unknown
        measure or lifetime, or a lifetime without any value.
    """
    if measure not in MEASURES:
        raise ValueError(f"measure is {measure!r}; it must be one of {', '.join(MEASURES)}")
    schedule = records.schedule
    trained = [block.mode == "train" for block in schedule.blocks]
    variants = list(dict.fromkeys(b.variant for b in schedule.blocks if b.mode == "train"))
    if len(variants) != 1:
        found = ", ".join(_in_words(variant) for variant in variants) or "none"
        raise ValueError(
            f"an expert is trained on one task with one set of parameters, but {schedule.name} "
            f"trains {len(variants)}: {found}"
        )
    name = _name(variants[0], syllabus or schedule)
    episodes = np.array(trained)[schedule.episode_blocks()]
    curves = np.asarray(records.columns[measure], np.float64)[:, episodes]
    kept = np.isfinite(curves) & records.columns["complete"][:, episodes]
    first = records.first_lifetime
    everyone = range(first, first + records.num_lifetimes)
    runs = []
    for number in everyone if lifetimes is None else lifetimes:
        row = _row(records, number)
        if not kept[row].any():
            raise ValueError(
                f"lifetime {number} has no complete training episode with a "
                f"finite {measure}; leave it out"
            )
        runs.append(curves[row, kept[row]])
    return {name: runs}


def _row(records: Records, lifetime: int) -> int:
    row = lifetime - records.first_lifetime
    if not 0 <= row < records.num_lifetimes:
        last = records.first_lifetime + records.num_lifetimes - 1
        raise ValueError(
            f"lifetime is {lifetime}; it must be from {records.first_lifetime} to {last}"
        )
    return row


def _name(variant: tuple[str, tuple[tuple[str, Any], ...]], schedule: Schedule) -> str:
    """What logs of a schedule call a task."""
    if variant not in schedule.variants:
        known = "; ".join(_in_words(other) for other in schedule.variants)
        raise ValueError(f"{schedule.name} does not have {_in_words(variant)}; it has {known}")
    return task_labels(schedule)[schedule.variants.index(variant)].lower()


def _in_words(variant: tuple[str, tuple[tuple[str, Any], ...]]) -> str:
    task, parameters = variant
    return " ".join([task, *(f"{path}={value}" for path, value in parameters)])
