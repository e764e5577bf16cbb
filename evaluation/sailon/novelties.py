"""Lists of novelties: their entries, and reading and writing of their files.

A file is JSON lines: first ``{"format": "jaxsim-novelties-1", "name": ..., ...}``, then a line for
each entry. A shipped list is never edited; a better one gets another number in its name. Every
beginning of a list is balanced over families and difficulties.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final

from evaluation.files import write_whole
from evaluation.json_types import JsonMapping, JsonObject
from evaluation.sailon.text import ExperimentError, Text, read
from jaxsim import parameters
from jaxsim.novelty import FAMILIES, Novelty
from jaxsim.worlds.cartpole3d.levels import DIFFICULTIES

FORMAT: Final = "jaxsim-novelties-1"
SHIPPED: Final = ("open-world-1",)
BOUNDS: Final = (0.1, 0.5)
"""Least difficulties for control (the loss of `pd`) of a medium and of a hard novelty."""

_FIELDS: Final = ("number", "families", "parameters", "held_out", "control", "detection")


EDGES: Final = (0.0, 0.01, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75)
"""Lower edges of the bins of difficulty in reports."""


def bin_of(difficulty: float) -> str:
    """Bin of a difficulty from 0 to 1, as text such as "0.1 to 0.2"."""
    place = sum(difficulty >= edge for edge in EDGES) - 1
    high = (*EDGES[1:], 1.0)[place]
    return f"{EDGES[place]:g} to {high:g}"


def difficulty_class(control: float) -> str:
    """Class of a difficulty for control, from 0 to 1."""
    return DIFFICULTIES[sum(control >= bound for bound in BOUNDS)]


@dataclass(frozen=True)
class ListedNovelty:
    """One novelty of a list.

    Attributes:
      number: from 0 in the list.
      novelty: its changes.
      held_out: whether one of its families is held out, so that no choice was made by it.
      control: difficulty for control, from 0 to 1.
      detection: difficulty for detection, from 0 to 1.
    """

    number: int
    novelty: Novelty
    held_out: bool
    control: float
    detection: float

    @property
    def difficulty(self) -> str:
        """Class of its difficulty for control."""
        return difficulty_class(self.control)

    @property
    def split(self) -> str:
        """Whether it is known or held out, in words."""
        return "held out" if self.held_out else "known"

    def to_json(self) -> JsonObject:
        """Return plain JSON values."""
        return {
            "number": self.number,
            **self.novelty.to_json(),
            "held_out": self.held_out,
            "control": self.control,
            "detection": self.detection,
        }

    @classmethod
    def from_json(cls, value: object) -> "ListedNovelty":
        """Read an entry.

        Raises:
          ValueError: it is not an entry; says what to change.
        """
        if not isinstance(value, Mapping) or set(value) != set(_FIELDS):
            shown = parameters.shown(value)
            raise ValueError(f"an entry is {shown}; it must be an object with {', '.join(_FIELDS)}")
        number = value["number"]
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise ValueError(f"'number' is {parameters.shown(number)}; it must be a whole number")
        if not isinstance(value["held_out"], bool):
            raise ValueError("'held_out' must be true or false")
        for name in ("control", "detection"):
            difficulty = value[name]
            real = isinstance(difficulty, int | float) and not isinstance(difficulty, bool)
            if not (real and 0 <= difficulty <= 1):
                shown = parameters.shown(difficulty)
                raise ValueError(f"{name!r} is {shown}; it must be a number from 0 to 1")
        novelty = {name: value[name] for name in ("families", "parameters")}
        return cls(
            number,
            Novelty.from_json(novelty),
            value["held_out"],
            float(value["control"]),
            float(value["detection"]),
        )


@dataclass(frozen=True)
class NoveltyList:
    """A list of novelties.

    Attributes:
      name: with its version, as "open-world-1".
      entries: in the order of the file.
      about: origin of the list, plain JSON values.
    """

    name: str
    entries: tuple[ListedNovelty, ...]
    about: JsonMapping

    def part(
        self, number: int | None = None, split: str | None = None
    ) -> tuple[ListedNovelty, ...]:
        """Return the first entries, of one split or of both.

        Args:
          number: how many; None for all.
          split: "known", "held out" or None.

        Raises:
          ValueError: there are fewer entries, or no such split.
        """
        if split not in (None, "known", "held out"):
            raise ValueError(f"split is {split!r}; it must be 'known' or 'held out'")
        entries = [one for one in self.entries if split in (None, one.split)]
        if number is not None and not 1 <= number <= len(entries):
            raise ValueError(
                f"{number} novelties are asked for; {self.name} has 1 to {len(entries)}"
                + (f" that are {split}" if split else "")
            )
        return tuple(entries[:number])

    def dumps(self) -> str:
        """Return the text of the file."""
        head = {"format": FORMAT, "name": self.name, **self.about}
        lines = [head, *(one.to_json() for one in self.entries)]
        return "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines)

    def write(self, path: Path) -> None:
        """Write the file, whole or not at all."""
        write_whole(path, self.dumps())


def is_list(name: str) -> bool:
    """Whether this is the name of a shipped list or of a file of a list."""
    return name in SHIPPED or name.endswith(".jsonl")


@cache
def load(name: str) -> NoveltyList:
    """Read a list that is shipped, or a file.

    Args:
      name: of a shipped list, or the path of a file that ends in ``.jsonl``.

    Raises:
      ExperimentError: the file is not a list of this version; names line and column.
      ValueError: no shipped list has that name.
    """
    if name in SHIPPED:
        content = (resources.files("evaluation.sailon") / f"{name}.jsonl").read_text("utf-8")
        return loads(content, name)
    if not is_list(name):
        reason = parameters.unknown("list of novelties", name, SHIPPED)
        raise ValueError(f"{reason}; a file of your own ends in .jsonl")
    return loads(read(Path(name)), name)


def loads(content: str, source: str = "<text>") -> NoveltyList:
    """Read the text of a list; see `load`."""
    lines = [line for line in enumerate(content.splitlines(), 1) if line[1].strip()]
    if not lines:
        raise ExperimentError(source, 1, 1, "the list is empty")
    values = [Text(line, source, number).decode() for number, line in lines]
    head = values[0]
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        shown = parameters.shown(head.get("format") if isinstance(head, dict) else head)
        reason = f"'format' is {shown}; lists of this version have {FORMAT!r}"
        raise ExperimentError(source, lines[0][0], 1, reason)
    name = head.get("name")
    if not isinstance(name, str) or not name.isprintable() or not name:
        raise ExperimentError(source, lines[0][0], 1, "'name' must be printable text")
    held_out = head.get("held_out")
    if held_out is not None and not _are_families(held_out):
        shown = parameters.shown(held_out)
        reason = f"'held_out' is {shown}; it must be a list of names of families"
        raise ExperimentError(source, lines[0][0], 1, reason)
    entries: list[ListedNovelty] = []
    for (number, _), value in zip(lines[1:], values[1:], strict=True):
        try:
            entry = ListedNovelty.from_json(value)
        except ValueError as error:
            raise ExperimentError(source, number, 1, str(error)) from error
        if reason := _contradiction(entry, len(entries), held_out):
            raise ExperimentError(source, number, 1, reason)
        entries.append(entry)
    if not entries:
        raise ExperimentError(source, lines[0][0], 1, "the list has no entry")
    about = {key: value for key, value in head.items() if key not in ("format", "name")}
    return NoveltyList(name, tuple(entries), about)


def _are_families(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) and v in FAMILIES for v in value)


def _contradiction(entry: ListedNovelty, place: int, held_out: list[str] | None) -> str:
    """How an entry contradicts its list; "" if it does not.

    Args:
      entry: of the list.
      place: of the entry, from 0.
      held_out: families that the head of the list holds out; None if it has none.
    """
    if entry.number != place:
        return f"'number' is {entry.number}; entries are numbered from 0 in their order"
    held_out_here = set(entry.novelty.families).intersection(held_out or ())
    if held_out is not None and entry.held_out != bool(held_out_here):
        listed = ", ".join(sorted(held_out_here)) or "none of its families"
        return f"'held_out' must be {json.dumps(not entry.held_out)}: the list holds out {listed}"
    return ""
