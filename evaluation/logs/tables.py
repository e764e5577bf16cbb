"""Readers of tab-separated tables and of the values in their cells, for all log formats."""

import csv
import io
import json
import math
import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from evaluation.json_types import JsonObject
from evaluation.logs.problems import Problems

MAX_FILE_BYTES: Final = 256 * 2**20
"""Maximum size of a file."""
MAX_LOG_BYTES: Final = 2 * 2**30
"""Maximum total size of the files of one log."""
TIMESTAMP_FORMAT: Final = "%Y%m%dT%H%M%S.%f"
COUNT: Final = re.compile(r"[0-9]{1,15}")
INTEGER: Final = re.compile(r"-?[0-9]{1,15}")
NUMBER: Final = re.compile(r"[ -^a-~]*")
"""What a number is written in; Python also takes `1_0` and digits of other scripts for one."""
WORKER: Final = re.compile(r"[0-9a-zA-Z_\-.]+")
WORKER_WORDS: Final = "letters, digits, '_', '-' and '.'"
CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_TIMESTAMP: Final = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)\.(\d{1,6})", re.ASCII)


def usable_worker(worker: str) -> bool:
    """Whether a worker name is allowed and can name a directory."""
    return bool(WORKER.fullmatch(worker)) and worker not in (".", "..")


def find_tables(root: Path, name: str, problems: Problems) -> list[Path]:
    """Paths of all tables of one name below a directory, sorted.

    Tables beyond `MAX_LOG_BYTES` in total are an error and left out; so is a directory that cannot
    be listed.
    """

    def unreadable(error: OSError) -> None:
        problems.error(Path(error.filename), None, f"cannot be read: {error.strerror}")

    walk = os.walk(root, onerror=unreadable)
    paths = sorted(Path(folder, name) for folder, _, files in walk if name in files)
    if not paths:
        problems.error(root, None, f"holds no {name}")
    total = 0
    for index, path in enumerate(paths):
        total += path.lstat().st_size
        if total > MAX_LOG_BYTES:
            problems.error(root, None, f"holds more than the {MAX_LOG_BYTES:,} bytes that are read")
            return paths[:index]
    return paths


def read_bytes(path: Path, problems: Problems) -> bytes | None:
    """The content of a regular file that is not too large, or None and a problem."""
    handle = -1
    try:
        # O_NONBLOCK: do not wait for the writer of a named pipe.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            problems.error(path, None, "is not a regular file")
        elif status.st_size > MAX_FILE_BYTES:
            size, most = f"{status.st_size:,}", f"{MAX_FILE_BYTES:,}"
            problems.error(path, None, f"has {size} bytes; at most {most} are read")
        else:
            return _read_all(handle, status.st_size)
    except FileNotFoundError:
        problems.error(path, None, "is missing")
    except OSError as error:
        problems.error(path, None, f"cannot be read: {error.strerror}")
    finally:
        if handle >= 0:
            os.close(handle)
    return None


def _read_all(handle: int, size: int) -> bytes:
    """The whole content of a file, which may have grown to more than `size` bytes."""
    pieces = [os.read(handle, size + 1)]
    while len(pieces[-1]) > (size if len(pieces) == 1 else 0):
        pieces.append(os.read(handle, 2**20))
    return b"".join(pieces)


def read_text(path: Path, problems: Problems) -> str | None:
    """The text of a file that is not too large, or None and a problem."""
    content = read_bytes(path, problems)
    if content is None:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        problems.error(path, line, f"is not UTF-8: {error.reason} at byte {error.start}")
        return None


def read_object(path: Path, problems: Problems) -> JsonObject | None:
    """A JSON object from a file, or None and a problem."""
    text = read_text(path, problems)
    if text is None:
        return None
    try:
        info = json.loads(text)
    except json.JSONDecodeError as error:
        problems.error(path, error.lineno, f"not JSON: {error.msg}")
        return None
    except (ValueError, RecursionError) as error:
        problems.error(path, None, f"not usable JSON: {error}")
        return None
    if not isinstance(info, dict):
        problems.error(path, 1, f"must hold a JSON object, not a {type(info).__name__}")
        return None
    return info


def read_lines(path: Path, problems: Problems) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines of a table with their numbers, the header first; none if it is empty.

    A line with more or fewer fields than the header is an error and left out.
    """
    text = read_text(path, problems)
    if text is None:
        return
    reader = csv.reader(io.StringIO(text, newline=""), delimiter="\t", quotechar='"', strict=True)
    header: list[str] | None = None
    line = 1
    try:
        for values in reader:
            if header is None:
                header = values
            if len(values) == len(header):
                yield line, values
            else:
                problems.error(path, line, f"has {len(values)} fields under {len(header)} columns")
            line = reader.line_num + 1
    except csv.Error as error:
        problems.error(path, reader.line_num, f"not a table of tab-separated values: {error}")
        return
    if header is None:
        problems.error(path, 1, "is empty: the header is missing")


def check_header(
    path: Path, header: list[str], required: Iterable[str], problems: Problems
) -> bool:
    """Whether rows under this header can be read."""
    missing = [name for name in required if name not in header]
    for name in missing:
        problems.error(path, 1, f"the column {name!r} is missing")
    repeated = sorted(name for name, times in Counter(header).items() if times > 1)
    for name in repeated:
        problems.error(path, 1, f"the column {name!r} is there twice")
    return not missing and not repeated


def read_table(
    path: Path, required: Iterable[str], problems: Problems, defaults: Mapping[str, str] = {}
) -> tuple[list[str], Iterator["Cells"]] | None:
    """The header of a table and its lines, or None and problems if they cannot be read.

    Args:
      path: of the table.
      required: columns that it must have.
      problems: collects the problems.
      defaults: cells of columns that may be missing.
    """
    lines = read_lines(path, problems)
    _, header = next(lines, (1, None))
    if header is None or not check_header(path, header, required, problems):
        return None
    return header, (
        Cells(path, line, {**defaults, **dict(zip(header, values, strict=True))}, problems)
        for line, values in lines
    )


class Cells:
    """One line of a table."""

    def __init__(self, path: Path, line: int, text: Mapping[str, str], problems: Problems) -> None:
        """Keep file, line, the cells by column, and the collector of problems."""
        self.path, self.line, self.text = path, line, text
        self._problems, self._before = problems, len(problems.problems)

    def error(self, message: str) -> None:
        """Add a problem that makes the log invalid."""
        self._problems.error(self.path, self.line, message)

    def warning(self, message: str) -> None:
        """Add a problem that does not prevent reading."""
        self._problems.warning(self.path, self.line, message)

    @property
    def sound(self) -> bool:
        """Whether the line has no error so far."""
        added = self._problems.problems[self._before :]
        return not any(problem.severity == "error" for problem in added)

    def word(self, name: str, allowed: Sequence[str]) -> None:
        """Check that a cell has one of the allowed words."""
        if self.text[name] not in allowed:
            listed = ", ".join(allowed)
            self.error(f"{name} must be one of {listed}, not {self.text[name]!r}")

    def count(self, name: str, optional: bool = False) -> int | None:
        """A whole number from 0; None, and a problem unless it is optional and empty."""
        text = self.text[name]
        if COUNT.fullmatch(text):
            return int(text)
        if text or not optional:
            self.error(f"{name} must be an integer from 0, not {text!r}")
        return None

    def object(self, name: str) -> JsonObject:
        """A JSON object; an empty cell means an empty one."""
        text = self.text[name]
        try:
            value = json.loads(text) if text else {}
        except (ValueError, RecursionError) as error:
            self.error(f"{name} must be JSON: {error}")
            return {}
        if not isinstance(value, dict):
            self.error(f"{name} must be a JSON object, not {text!r}")
            return {}
        return value

    def moment(self, name: str) -> datetime | None:
        """A moment without a time zone; None, and a problem, for another text."""
        match = _TIMESTAMP.fullmatch(self.text[name])
        try:
            if match:
                *whole, fraction = match.groups()
                year, month, day, hour, minute, second = map(int, whole)
                return datetime(year, month, day, hour, minute, second, int(fraction.ljust(6, "0")))
        except ValueError:
            pass  # a field out of range is the same problem as another text
        self.error(f"{name} must look like {TIMESTAMP_FORMAT}, not {self.text[name]!r}")
        return None

    def number(self, name: str) -> int | float:
        """A number; integers stay integers, so that they are written back unchanged."""
        text = self.text[name]
        if INTEGER.fullmatch(text):
            return int(text)
        try:
            value = real(text) if text else math.nan
        except ValueError:
            self.error(f"{name} must be a number, not {text!r}")
            return math.nan
        if not math.isfinite(value):
            self.warning(non_finite_warning(name, text))
        return value


def real(text: str) -> float:
    """A number as C and pandas read it.

    Raises:
      ValueError: it is none, such as ``1_0``.
    """
    if not NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} is not a number")
    return float(text)


class Placed(NamedTuple):
    """A row and its line."""

    row: Any
    at: Cells


def non_finite_warning(name: str, text: str) -> str:
    """Warning about a number that is not finite."""
    return f"{name} is {text or 'empty'}, not a finite number"


def timestamp_text(when: datetime) -> str:
    """The text of a moment in a table."""
    date = f"{when.year:04d}{when.month:02d}{when.day:02d}"
    return f"{date}T{when.hour:02d}{when.minute:02d}{when.second:02d}.{when.microsecond:06d}"
