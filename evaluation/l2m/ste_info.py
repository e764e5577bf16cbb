"""Saturation values of single-task experts (STE): the file ``taskinfo/info.json`` of 2019."""

import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NoReturn

from evaluation.files import read_json, write_whole
from evaluation.json_types import JsonValue

FILE_NAME: Final = "info.json"

MAX_BYTES: Final = 2**20
"""Maximum size of a file of saturation values."""

MAX_NAME: Final = 200
"""Maximum of characters of a task name."""

_REFUSED: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")  # and what no file of text holds


def from_info_json(path: Path) -> dict[str, float]:
    """Read the saturation values of single-task experts from a `taskinfo/info.json`.

    Args:
      path: of the file, a JSON object that maps task names to numbers.

    Returns:
      Task name, exactly as in the file, -> saturation value.

    Raises:
      ValueError: the file is missing or invalid; the message begins with the path and names the
        wrong task.

    Source: L2M Metrics Framework, 4 Dec 2019, section on data of single-task experts.
    """
    content = "task names and numbers"
    pairs = read_json(path, MAX_BYTES, content, object_pairs_hook=_Pairs, parse_constant=_reject)
    if not isinstance(pairs, _Pairs):
        raise ValueError(f'{path}: must be an object such as {{"task": 0.95}}')
    values: dict[str, float] = {}
    for task, value in pairs:
        if task in values:
            raise ValueError(f"{path}: task {task!r} is there twice; keep one of the two")
        values[_checked_name(path, task)] = _checked_value(path, task, value)
    return values


class _Pairs(list[tuple[str, JsonValue]]):
    """The entries of a JSON object in order, repeated names included."""


def _reject(token: str) -> NoReturn:
    raise ValueError(f"{token} is not a number of JSON")


def _checked_name(path: Path, task: str) -> str:
    if not task or len(task) > MAX_NAME or _REFUSED.search(task):
        raise ValueError(
            f"{path}: {task!r:.80} is not a task name; it must have 1 to {MAX_NAME} characters and "
            "no line breaks or lone surrogates"
        )
    return task


def _checked_value(path: Path, task: str, value: JsonValue) -> float:
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


def stored_saturations(directory: Path) -> dict[str, float]:
    """Saturation values in a store of experts, by task as written; empty for none.

    Args:
      directory: of the store.

    Raises:
      ValueError: as `from_info_json`.
    """
    path = directory / FILE_NAME
    return from_info_json(path) if path.exists() else {}


def store_saturations(directory: Path, values: Mapping[str, float]) -> None:
    """Add saturation values to a store; a new value of a task replaces the old one.

    Raises:
      ValueError: the stored file is invalid.
    """
    _write(directory, stored_saturations(directory) | dict(values))


def drop_saturations(directory: Path, tasks: Iterable[str]) -> None:
    """Delete the saturation values of some tasks; the file too if none is left.

    Raises:
      ValueError: the stored file is invalid.
    """
    stored, names = stored_saturations(directory), set(tasks)
    remaining = {task: value for task, value in stored.items() if task not in names}
    if not remaining:
        (directory / FILE_NAME).unlink(missing_ok=True)
    elif len(remaining) < len(stored):
        _write(directory, remaining)


def _write(directory: Path, values: Mapping[str, float]) -> None:
    write_whole(directory / FILE_NAME, json.dumps(values, indent=2, allow_nan=False) + "\n")
