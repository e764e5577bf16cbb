"""Reading and strict decoding of experiment files; errors name line and column."""

import json
import math
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from evaluation import positions
from evaluation.json_types import JsonMapping, JsonObject, JsonValue
from jaxsim import parameters

MAX_BYTES: Final = 256 * 2**20
"""Largest file that is read, in bytes."""


class ExperimentError(ValueError):
    """A file that cannot be read; its text is one line, ``FILE:LINE:COLUMN: reason``.

    Attributes:
      source: the file.
      line: from 1.
      column: from 1, in characters.
      reason: what is wrong and what to change.
    """

    def __init__(self, source: str, line: int, column: int, reason: str) -> None:
        """Keep the place and the reason."""
        super().__init__(source, line, column, reason)
        self.source, self.line, self.column, self.reason = source, line, column, reason

    def __str__(self) -> str:
        """Return the error as one line."""
        source = self.source if self.source.isprintable() else repr(self.source)
        return f"{source}:{self.line}:{self.column}: {self.reason}"


class _Refused(Exception):
    """A number that is not JSON, or a key that stands twice in an object."""


@dataclass(frozen=True)
class Text:
    """JSON text; errors name line and column.

    Attributes:
      content: the text.
      source: the file it is from.
      first_line: number of its first line in that file.
    """

    content: str
    source: str
    first_line: int = 1

    def decode(self) -> JsonValue:
        """Return the JSON value.

        Raises:
          ExperimentError: not JSON, NaN or infinity, a key that stands twice, or too deep.
        """
        try:
            return json.loads(
                self.content,
                object_pairs_hook=_unique,
                parse_constant=_refuse,
                parse_float=_finite,
            )
        except json.JSONDecodeError as error:
            self._at(error.lineno, error.colno, f"broken JSON: {error.msg}", error)
        except _Refused as error:
            self._at(*self._refused(), str(error), error)
        except (RecursionError, ValueError) as error:
            self._at(1, 1, f"this JSON cannot be read: {error}", error)

    def fail(
        self,
        path: positions.Path,
        reason: str,
        cause: Exception | None = None,
        *,
        key: bool = False,
    ) -> NoReturn:
        """Raise an error at the value at `path`, or at its key."""
        try:
            line, column = positions.locate(self.content, path, key=key)
        except KeyError:
            line, column = 1, 1
        self._at(line, column, reason, cause)

    def keys(self, path: positions.Path, value: JsonMapping, allowed: Collection[str]) -> None:
        """Refuse keys that are not in `allowed`."""
        for key in value:
            if key not in allowed:
                self.fail((*path, key), parameters.unknown("key", key, allowed), key=True)

    def mapping(
        self,
        path: positions.Path,
        value: JsonValue,
        needed: Collection[str],
        optional: Collection[str] = (),
    ) -> JsonObject:
        """Return `value` if it is an object with all keys of `needed` and at most `optional`."""
        if not isinstance(value, dict):
            self.fail(path, f"{_name(path)} must be an object {{...}}")
        self.keys(path, value, [*needed, *optional])
        for key in needed:
            if key not in value:
                self.fail(path, f"key {key!r} is missing here; needed: {', '.join(needed)}")
        return value

    def sequence(
        self, path: positions.Path, value: JsonValue, kind: type, what: str
    ) -> list[JsonValue]:
        """Return `value` if it is a list of values of one type."""
        if not isinstance(value, list):
            self.fail(path, f"{_name(path)} must be a list of {what}")
        for place, one in enumerate(value):
            if not isinstance(one, kind) or isinstance(one, bool):
                shown = parameters.shown(one)
                self.fail((*path, place), f"{shown} in {_name(path)} must be one of its {what}")
        return value

    def _at(self, line: int, column: int, reason: str, cause: Exception | None) -> NoReturn:
        raise ExperimentError(self.source, self.first_line + line - 1, column, reason) from cause

    def _refused(self) -> tuple[int, int]:
        """Place of the value that a decoder hook refused; the text after it may be broken."""
        try:
            for entry in positions.walk(self.content):
                if entry.repeated or _is_no_number(entry.token):
                    place = entry.key if entry.repeated else entry.start
                    return positions.line_column(self.content, place)
        except (IndexError, ValueError):
            return 1, 1
        return 1, 1


def _is_no_number(token: str) -> bool:
    """Whether a token is a number that no finite float stands for."""
    if token.lstrip("-")[:1] not in set("0123456789NI"):
        return False
    try:
        return not math.isfinite(float(token))
    except ValueError:
        return True


def _name(path: positions.Path) -> str:
    return repr(next((part for part in reversed(path) if isinstance(part, str)), "the whole text"))


def _unique(pairs: list[tuple[str, Any]]) -> JsonObject:
    values = dict(pairs)
    if len(values) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name, times in Counter(names).items() if times > 1)
        raise _Refused(f"key {twice!r} stands twice in this object; remove one")
    return values


def _refuse(token: str) -> NoReturn:
    raise _Refused(f"{token} is not JSON; write a finite number")


def _finite(token: str) -> float:
    value = float(token)
    return value if math.isfinite(value) else _refuse(token)


def read(path: Path) -> str:
    """Return the text of a file.

    Raises:
      ExperimentError: it cannot be read, is too large, or is not UTF-8.
    """
    source = str(path)
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ExperimentError(source, 1, 1, f"cannot be read ({reason})") from error
    if len(data) > MAX_BYTES:
        raise ExperimentError(source, 1, 1, f"the file is larger than {MAX_BYTES} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start].decode()
        place = positions.line_column(before, len(before))
        raise ExperimentError(source, *place, "this byte is not UTF-8 text") from error
