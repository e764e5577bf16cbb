"""The text of a syllabus: strict decoding, and errors with line and column."""

import difflib
import json
import math
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

from evaluation import positions
from evaluation.json_types import JsonObject
from evaluation.positions import Path
from jaxsim import parameters

MAX_BYTES = 16 * 2**20
"""Maximum size of a file, bytes."""

MAX_PROBLEMS = 50
"""Maximum of errors that are collected from one text."""

_MAX_DIGITS = 100
_MAX_SHOWN = 60
_NUMBER = re.compile(r"(?P<constant>NaN|-?Infinity)|-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
MAX_DEPTH = 4  # brackets around a parameter: syllabus, instructions, instruction, $repeat

_JSON_HELP = {
    "Expecting value": "expected a value",
    "Expecting property name": 'expected a key in double quotes; is a "}" missing before it?',
    "Expecting ':'": 'expected ":" after the key',
    "Expecting ','": 'expected "," or a closing bracket',
    "Extra data": "the syllabus has ended before this; remove what follows or a bracket too many",
    "Unterminated string": "this string has no closing double quote",
    "Invalid control character": "a line break or control character inside a string; escape it",
    "Invalid \\": "unknown escape in a string; a backslash is written twice",
}
"""Beginning of a message of the decoder -> our message."""


class SyllabusError(ValueError):
    """A syllabus that cannot be read; its text is one line, ``FILE:LINE:COLUMN: reason``.

    Attributes:
      source: the file, or the name of the text.
      line: from 1; 1 if the error is about the file as a whole.
      column: from 1, in characters.
      reason: what is wrong and what to change.
      rule: kind of rule that is broken: "grammar", or "required" for the framework's rule that
        training comes first.
    """

    def __init__(
        self, source: str, line: int, column: int, reason: str, rule: str = "grammar"
    ) -> None:
        """Keep the place and the reason."""
        super().__init__(source, line, column, reason, rule)
        self.source, self.line, self.column, self.reason = source, line, column, reason
        self.rule = rule

    def __str__(self) -> str:
        """Return the error as one line."""
        source = self.source if self.source.isprintable() else repr(self.source)
        return f"{source}:{self.line}:{self.column}: {self.reason}"


class _InvalidValue(Exception):
    """Valid JSON that is not allowed in a syllabus; its place is determined afterwards."""


def read_text(source: str) -> str:
    """Return the text of a file."""
    try:
        with open(source, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SyllabusError(
            source, 1, 1, f"cannot read the syllabus ({reason}); give the path of a JSON file"
        ) from error
    if len(data) > MAX_BYTES:
        reason = f"the file is larger than {MAX_BYTES} bytes; write fewer instructions"
        raise SyllabusError(source, 1, 1, reason)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start].decode()
        line, column = positions.line_column(before, len(before))
        reason = "this byte is not UTF-8 text; save the file as UTF-8"
        raise SyllabusError(source, line, column, reason) from error


@dataclass(frozen=True)
class Document:
    """The text of a syllabus, and its errors.

    Attributes:
      text: JSON text.
      source: the file, or the name of the text.
      problems: collects errors; None to raise the first one.
    """

    text: str
    source: str
    problems: list[SyllabusError] | None = None

    @contextmanager
    def part(self) -> Iterator[None]:
        """Context of a part; if errors are collected, reading continues after it."""
        try:
            yield
        except SyllabusError as error:
            if self.problems is None or len(self.problems) + 1 >= MAX_PROBLEMS:
                raise
            self.problems.append(error)

    def fail(
        self, path: Path, reason: str, *, key: bool = False, rule: str = "grammar"
    ) -> NoReturn:
        """Raise an error at the value at `path`, or at its key."""
        line, column = positions.locate(self.text, path, key=key)
        raise SyllabusError(self.source, line, column, reason, rule)

    def fail_at(self, offset: int, reason: str, cause: Exception) -> NoReturn:
        """Raise an error at a character."""
        line, column = positions.line_column(self.text, offset)
        raise SyllabusError(self.source, line, column, reason) from cause

    def decode(self) -> object:
        """Return the JSON value of the text, stricter than the standard decoder."""
        try:
            return json.loads(
                self.text,
                object_pairs_hook=_unique,
                parse_constant=_reject,
                parse_float=_finite,
                parse_int=_whole,
            )
        except json.JSONDecodeError as error:
            self.fail_at(*_broken(self.text, error), error)
        except _InvalidValue as error:
            self.fail_at(*_first_invalid(self.text), error)
        except RecursionError as error:
            brackets = (entry for entry in positions.walk(self.text) if entry.token in "{[")
            offset = next((e.start for e in brackets if len(e.path) >= MAX_DEPTH), 0)
            self.fail_at(offset, f"brackets are nested deeper than {MAX_DEPTH} levels", error)

    def string(self, path: Path, value: object) -> str:
        """Return `value`, which must be printable text."""
        if not isinstance(value, str) or not value.isprintable():
            self.fail(path, f"{path[-1]!r} is {show(value)}; it must be printable text")
        return value

    def flag(self, path: Path, value: object) -> bool:
        """Return `value`, which must be true or false."""
        if not isinstance(value, bool):
            self.fail(path, f"{path[-1]!r} is {show(value)}; it must be true or false")
        return value

    def mapping(self, path: Path, value: object, subject: str) -> JsonObject:
        """Return `value`, which must be an object."""
        if not isinstance(value, dict):
            self.fail(path, f"{subject} is {show(value)}; it must be an object {{...}}")
        return value

    def keys(self, path: Path, value: Mapping[str, object], allowed: Collection[str]) -> None:
        """Check that all keys are in `allowed`."""
        for key in value:
            if key not in allowed:
                reason = parameters.unknown("key", short(key), allowed)
                self.fail((*path, key), reason, key=True)

    def notes(self, path: Path, value: Mapping[str, object], allowed: Collection[str]) -> None:
        """Check that keys outside `allowed`, notes of the author, do not look misspelt."""
        suspects = (
            key for key in value if key[:1] == "$" or difflib.get_close_matches(short(key), allowed)
        )
        self.keys(path, dict.fromkeys(suspects), allowed)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Make an object whose keys must differ."""
    values = dict(pairs)
    if len(values) != len(pairs):
        raise _InvalidValue
    return values


def _reject(token: str) -> NoReturn:
    """Reject a number: NaN, Infinity or too large."""
    raise _InvalidValue(token)


def _finite(token: str) -> float:
    """Convert a number that must not overflow."""
    value = float(token)
    return value if math.isfinite(value) else _reject(token)


def _whole(token: str) -> int:
    """Convert an integer of a limited number of digits; Python converts at most 4300."""
    return int(token) if len(token) <= _MAX_DIGITS else _reject(token)


def _first_invalid(text: str) -> tuple[int, str]:
    """Find the first value that a decoder hook rejected: (offset, reason)."""
    for entry in positions.walk(text):
        if entry.repeated:
            key = short(str(entry.path[-1]))
            return entry.key, f"key {key!r} stands twice in this object; remove one"
        # The token may have further characters: the decoder stopped before them.
        number = _NUMBER.match(entry.token)
        if number and number["constant"]:
            return entry.start, f"{number[0]} is not JSON; write a finite number"
        if number and _overflows(number[0]):
            return entry.start, f"the number {short(number[0])} is too large"
    raise AssertionError("no value was rejected")


def _overflows(token: str) -> bool:
    """Whether `_finite` or `_whole` rejects a number."""
    digits = token.isdigit() or token[1:].isdigit()
    return len(token) > _MAX_DIGITS if digits else not math.isfinite(float(token))


def _broken(text: str, error: json.JSONDecodeError) -> tuple[int, str]:
    """Place and reason of broken JSON: (offset, reason)."""
    if not text.strip():
        return 0, 'the text is empty; a syllabus is an object with "instructions"'
    comma = _spare_comma(text, error)
    if comma is not None:
        return comma, "broken JSON: remove the comma before the closing bracket"
    if not text[error.pos :].strip():
        return error.pos, "broken JSON: the text ends too early; close the open brackets"
    help_ = (words for start, words in _JSON_HELP.items() if error.msg.startswith(start))
    return error.pos, f"broken JSON: {next(help_, error.msg)}"


def _spare_comma(text: str, error: json.JSONDecodeError) -> int | None:
    """Return the offset of the comma before a closing bracket, if that is the error."""
    if not error.msg.startswith(("Expecting", "Illegal trailing comma")):
        return None
    # Python 3.13 gives the offset of the comma, earlier versions the one after it.
    start = max(text.rfind(",", 0, error.pos + 1), 0)
    comma = re.compile(r",\s*[}\]]").match(text, start)
    return start if comma and comma.end() > error.pos else None


def show(value: object) -> str:
    """Short text of a JSON value for an error."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, str):
        return repr(short(value))
    return short(json.dumps(value))


def short(text: str) -> str:
    """Cut long text, to keep an error readable."""
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "..."


def either(names: Collection[str]) -> str:
    """Join quoted names with commas and a last "or"."""
    quoted = [repr(name) for name in sorted(names)]
    return " or ".join([", ".join(quoted[:-1]), quoted[-1]] if quoted[1:] else quoted)
