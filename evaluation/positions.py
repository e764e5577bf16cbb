"""Line and column of a value inside JSON text.

The standard decoder keeps no positions. Errors are rare, so the text is read a second time only
when one is reported.
"""

import json
import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

Path = tuple[str | int, ...]
"""Keys and indices that lead from the outermost value to an inner one."""

# Possessive quantifiers: a string of many megabytes needs no memory for backtracking.
_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\],:]|[^\s{}\[\],:"]+')


class TextValue(NamedTuple):
    """One value of the text.

    Attributes:
      path: its path.
      start: offset of its first character.
      key: offset of the key it belongs to; `start` for array elements and the outermost value.
      token: its text if it is a string, number or word, else its opening bracket.
      repeated: whether its object has had the same key before.
    """

    path: Path
    start: int
    key: int
    token: str
    repeated: bool


def walk(text: str) -> Iterator[TextValue]:
    """Yield every value in the order of the text, containers before what they hold.

    Args:
      text: JSON text. It need only be valid as far as the caller consumes the iterator.
    """
    path: list[str | int] = []
    names: list[set[str]] = []  # keys so far of each open container
    wants_key = repeated = False
    key = 0
    for match in _TOKEN.finditer(text):
        token, start = match[0], match.start()
        if token in "}]":
            path.pop()
            names.pop()
            wants_key = False
        elif token == ",":
            last = path[-1]
            wants_key = isinstance(last, str)
            path[-1] = last if isinstance(last, str) else last + 1
        elif token == ":":
            wants_key = False
        elif wants_key:
            name = json.loads(token)
            repeated = name in names[-1]
            names[-1].add(name)
            path[-1], key = name, start
        else:
            keyed = bool(path) and isinstance(path[-1], str)
            yield TextValue(tuple(path), start, key if keyed else start, token, keyed and repeated)
            if token in "{[":
                wants_key = token == "{"
                path.append("" if wants_key else 0)
                names.append(set())


def locate(text: str, path: Path, *, key: bool = False) -> tuple[int, int]:
    """Find a value, or the key in front of it.

    Args:
      text: valid JSON text.
      path: keys and indices from the outermost value.
      key: whether to return the position of the key.

    Returns:
      (line, column), both from 1.

    Raises:
      KeyError: there is no value at `path`.
    """
    for entry in walk(text):
        if entry.path == path:
            return line_column(text, entry.key if key else entry.start)
    raise KeyError(path)


def locate_all(text: str, paths: Collection[Path]) -> dict[Path, tuple[int, int]]:
    """Find many values in one walk.

    Args:
      text: valid JSON text.
      paths: keys and indices from the outermost value.

    Returns:
      (line, column), both from 1, of each path that exists.
    """
    positions, line, counted = {}, 1, 0
    for entry in walk(text):
        if entry.path in paths:
            line += text.count("\n", counted, entry.start)
            counted = entry.start
            positions[entry.path] = line, entry.start - text.rfind("\n", 0, entry.start)
    return positions


def line_column(text: str, offset: int) -> tuple[int, int]:
    """Return (line, column) of a character, both from 1, counted in characters."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)
