r"""Syllabi: a lifetime of episodes written as JSON.

Source: L2M Metrics Framework, Johns Hopkins University Applied Physics Laboratory,
4 December 2019, chapters 1 to 3.

An example:

```json
{
  "name": "longer pole",
  "author": "A. Author",
  "contains": "episodes",
  "default_params": {"cart/mass": 2.0},
  "instructions": [
    {"$phase": "1.train"},
    {"$repeat": {"$episode": "CartPole3D", "pole/length": 1.5}, "count": 30},

    {"$phase": "1.test"},
    {"$info": {"disable_updates": true}},
    {"$repeat": {"$episode": "CartPole3D", "pole/length": 1.5}, "count": 15},
    {"$repeat": {"$episode": "CartPole3D"}, "count": 15},
    {"$info": {}}
  ]
}
```

The outermost object:

* ``instructions`` (required): a list of at least one instruction, played in order.
* ``name``: a short name; without it, the name of the file without its ending.
* ``author``: who wrote it.
* ``contains``: ``"episodes"``, the only kind there is.
* ``default_params``: parameters of every episode, unless the episode sets them itself. Every task
  of the syllabus must have them.

The instructions:

* ``{"$phase": "<k>.train"}`` or ``{"$phase": "<k>.test"}`` opens a phase and needs at least one
  episode before the next. The first phase is ``1.train``. After ``<k>.train`` comes its own test,
  or a phase numbered one higher; after ``<k>.test`` a phase numbered one higher. With
  ``"enable_updates": false`` beside it the agent does not learn in the phase.
* ``{"$repeat": {"$episode": TASK, PATH: VALUE, ...}, "count": N}`` plays N episodes of a task.
  PATH is a parameter of the task ("pole/length") and VALUE a number or a word.
* ``{"$episode": TASK, PATH: VALUE, ...}`` plays one.
* ``{"$info": {"disable_updates": true}}`` stops learning until the next ``$info``;
  ``{"$info": {}}`` and ``{"$info": {"disable_updates": false}}`` let it go on.

What the agent may learn from: the episodes of a train phase, unless its ``enable_updates`` is
false or an ``$info`` has disabled updates. A test phase is evaluation and never learned from,
bracketed by ``$info`` or not; ``"enable_updates": true`` on a test phase is an error. So is a train
phase that begins while updates are disabled by an ``$info`` of a test phase, because that ``$info``
was left open by mistake. One that stands in a train phase or before the first phase holds as
written, also in the phases after it.

Blocks: neighbouring episodes of a phase with the same task, the same parameters and the same
permission to learn are one block, however many instructions they are written in. Parameters that
equal the task's default are left out and numbers take the type of the default, so equal physics is
the same block. ``"CartPole3D"`` means the newest version of a task; the id of the newest version
("CartPole3D-v0") means the same and is stored without its version, older ids are stored as written.

Anything else is an error: unknown keys, a key twice in an object, NaN and Infinity, a count that is
not a whole number from 1, files over `MAX_BYTES`, lifetimes over `MAX_EPISODES`.
"""

import json
import math
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path as FilePath
from typing import Any, NoReturn

from evaluation.l2m import positions
from evaluation.l2m.positions import Path
from evaluation.schedule import Block, Mode, Schedule, Value
from jaxsim import parameters, registry
from jaxsim.parameters import Parameter
from jaxsim.registry import EnvSpec

MAX_BYTES = 16 * 2**20
"""Largest file that is read, in bytes."""

MAX_EPISODES = 10_000_000
"""Most episodes of one lifetime."""

_MAX_DIGITS = 100
_MAX_SHOWN = 60
_LEVELS = 4  # brackets around a parameter: syllabus, instructions, instruction, $repeat

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
"""Our words for what the decoder says, by the beginning of its message."""


class SyllabusError(ValueError):
    """A syllabus that cannot be read; its text is one line, ``FILE:LINE:COLUMN: reason``.

    Attributes:
      source: the file, or the name given to the text.
      line: from 1; 1 if the file as a whole is at fault.
      column: from 1, in characters.
      reason: what is wrong and what to change.
    """

    def __init__(self, source: str, line: int, column: int, reason: str) -> None:
        """Keep the place and the reason."""
        super().__init__(source, line, column, reason)
        self.source, self.line, self.column, self.reason = source, line, column, reason

    def __str__(self) -> str:
        """Return the one line that people read."""
        source = self.source if self.source.isprintable() else repr(self.source)
        return f"{source}:{self.line}:{self.column}: {self.reason}"


def load(path: str | os.PathLike[str]) -> Schedule:
    """Read a syllabus file.

    Args:
      path: a UTF-8 JSON file; the module's docstring has the grammar.

    Returns:
      The schedule; its `source` is the file's name without its folder.

    Raises:
      SyllabusError: the file cannot be read or is not a valid syllabus.
    """
    source, file = os.fspath(path), FilePath(path)
    return replace(_parse(_read(source), source, file.stem), source=file.name)


def loads(text: str, source: str = "<string>") -> Schedule:
    """Read a syllabus from text.

    Args:
      text: JSON text; the module's docstring has the grammar.
      source: name of the text in errors and in the schedule.

    Raises:
      SyllabusError: the text is not a valid syllabus.
    """
    return _parse(text, source, "syllabus")


def dumps(schedule: Schedule) -> str:
    """Write a schedule as a syllabus; `loads` gives the same blocks again.

    Episodes that must not be learned from are bracketed by ``$info``, one instruction a line.

    Raises:
      ValueError: a syllabus cannot say this, for example learning in a test phase, neighbouring
        blocks that are one, or an unknown task.
    """
    head: dict[str, object] = {"name": schedule.name, "author": schedule.author}
    head |= {"contains": "episodes", "default_params": {}}
    fields = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    lines = (f"    {json.dumps(item, allow_nan=False)}" for item in _instructions(schedule.blocks))
    fields.append('  "instructions": [\n' + ",\n".join(lines) + "\n  ]")
    text = "{\n" + ",\n".join(fields) + "\n}\n"
    if loads(text, "<schedule>").blocks != schedule.blocks:
        raise ValueError(
            "a syllabus cannot say what this schedule says: test blocks must not learn, equal "
            "neighbours must be one block, parameters must differ from the task's defaults"
        )
    return text


def _instructions(blocks: Sequence[Block]) -> Iterator[dict[str, Any]]:
    """Yield the instructions that lead to `blocks`."""
    for (phase, mode), members in groupby(blocks, key=lambda block: (block.phase, block.mode)):
        yield {"$phase": f"{phase}.{mode}"}
        for learning, run in groupby(members, key=lambda block: block.learning):
            if not learning:
                yield {"$info": {"disable_updates": True}}
            for block in run:
                episode = {"$episode": block.task, **dict(block.parameters)}
                yield {"$repeat": episode, "count": block.count}
            if not learning:
                yield {"$info": {}}


# Text -------------------------------------------------------------------------------------------


class _Refused(Exception):
    """Valid JSON that no syllabus holds; where it stands is found afterwards."""


def _read(source: str) -> str:
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


def _parse(text: str, source: str, name: str) -> Schedule:
    """Turn text into a schedule; `name` is used if the text has none."""
    document = _Document(text.removeprefix("\ufeff"), source)
    return _schedule(document, document.decode(), name)


@dataclass(frozen=True)
class _Document:
    """The text, and the errors that point into it."""

    text: str
    source: str

    def fail(self, path: Path, reason: str, *, key: bool = False) -> NoReturn:
        """Raise an error at the value at `path`, or at its key."""
        line, column = positions.locate(self.text, path, key=key)
        raise SyllabusError(self.source, line, column, reason)

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
                parse_constant=_refuse,
                parse_float=_finite,
                parse_int=_whole,
            )
        except json.JSONDecodeError as error:
            self.fail_at(*_broken(self.text, error), error)
        except _Refused as error:
            self.fail_at(*_first_refused(self.text), error)
        except RecursionError as error:
            brackets = (entry for entry in positions.walk(self.text) if entry.token in "{[")
            offset = next((e.start for e in brackets if len(e.path) >= _LEVELS), 0)
            self.fail_at(offset, f"brackets are nested deeper than {_LEVELS} levels", error)

    def string(self, path: Path, value: object) -> str:
        """Return `value`, which must be printable text."""
        if not isinstance(value, str) or not value.isprintable():
            self.fail(path, f"{path[-1]!r} is {_show(value)}; it must be printable text")
        return value

    def flag(self, path: Path, value: object) -> bool:
        """Return `value`, which must be true or false."""
        if not isinstance(value, bool):
            self.fail(path, f"{path[-1]!r} is {_show(value)}; it must be true or false")
        return value

    def mapping(self, path: Path, value: object, what: str) -> dict[str, Any]:
        """Return `value`, which must be an object."""
        if not isinstance(value, dict):
            self.fail(path, f"{what} is {_show(value)}; it must be an object {{...}}")
        return value

    def keys(self, path: Path, value: Mapping[str, object], allowed: Collection[str]) -> None:
        """Refuse keys that are not in `allowed`."""
        for key in value:
            if key not in allowed:
                reason = parameters.unknown("key", _short(key), allowed)
                self.fail((*path, key), reason, key=True)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Refuse an object with a key twice."""
    values = dict(pairs)
    if len(values) != len(pairs):
        raise _Refused
    return values


def _refuse(token: str) -> NoReturn:
    """Refuse NaN and Infinity."""
    raise _Refused(token)


def _finite(token: str) -> float:
    """Refuse a number that only infinity could stand for."""
    value = float(token)
    return value if math.isfinite(value) else _refuse(token)


def _whole(token: str) -> int:
    """Refuse digits that nobody means; Python converts at most 4300 of them."""
    return int(token) if len(token) <= _MAX_DIGITS else _refuse(token)


def _first_refused(text: str) -> tuple[int, str]:
    """Find what a decoder hook refused: (offset, reason)."""
    for entry in positions.walk(text):
        if entry.repeated:
            key = _short(str(entry.path[-1]))
            return entry.key, f"key {key!r} stands twice in this object; remove one"
        if re.fullmatch(r"NaN|-?Infinity", entry.token):
            return entry.start, f"{entry.token} is not JSON; write a finite number"
        if entry.token[0] in "-0123456789" and _overflows(entry.token):
            return entry.start, f"the number {_short(entry.token)} is too large"
    raise AssertionError("nothing was refused")


def _overflows(token: str) -> bool:
    """Say whether `_finite` or `_whole` refuses a number."""
    digits = token.isdigit() or token[1:].isdigit()
    return len(token) > _MAX_DIGITS if digits else not math.isfinite(float(token))


def _broken(text: str, error: json.JSONDecodeError) -> tuple[int, str]:
    """Say where and why text is no JSON: (offset, reason)."""
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
    # Python 3.13 points at the comma, earlier versions behind it.
    start = max(text.rfind(",", 0, error.pos + 1), 0)
    comma = re.compile(r",\s*[}\]]").match(text, start)
    return start if comma and comma.end() > error.pos else None


# Meaning ----------------------------------------------------------------------------------------

_TOP = ("name", "author", "contains", "default_params", "instructions")


def _schedule(document: _Document, value: object, name: str) -> Schedule:
    """Check the outermost object and play its instructions into blocks."""
    top = document.mapping((), value, "the syllabus")
    document.keys((), top, _TOP)
    if "instructions" not in top:
        document.fail((), 'the syllabus has no "instructions"; add a list of instructions')
    name = document.string(("name",), top.get("name", name))
    if not name:
        document.fail(("name",), "'name' is empty; write a short name or remove it")
    if top.get("contains", "episodes") != "episodes":
        reason = f"'contains' is {_show(top['contains'])}; it must be \"episodes\""
        document.fail(("contains",), reason)
    author = document.string(("author",), top.get("author", ""))
    defaults = document.mapping(
        ("default_params",), top.get("default_params", {}), "'default_params'"
    )
    blocks = _Builder(document, defaults).play(top["instructions"])
    return Schedule(name, blocks, document.source, author)


@dataclass
class _Builder:
    """Plays instructions in order and collects blocks."""

    document: _Document
    defaults: Mapping[str, object]
    blocks: list[Block] = field(default_factory=list)
    episodes: int = 0
    phase: int = 0  # 0 before the first
    mode: Mode = "train"
    phase_path: Path = ()
    phase_start: int = 0  # number of blocks when the phase began
    phase_updates: bool = True  # "enable_updates"; never in a test phase
    disabled: bool = False  # "disable_updates"
    disabled_in_test: bool = False  # and it was a test phase that asked for it
    task_defaults: dict[str, dict[str, Value]] = field(default_factory=dict)

    def play(self, instructions: object) -> tuple[Block, ...]:
        """Return the blocks of the list of instructions."""
        if not isinstance(instructions, list) or not instructions:
            shown = "empty" if instructions == [] else _show(instructions)
            reason = f"'instructions' is {shown}; it must be a list of at least one instruction"
            self.document.fail(("instructions",), reason)
        for index, value in enumerate(instructions):
            path = ("instructions", index)
            instruction = self.document.mapping(path, value, "an instruction")
            kind = next((kind for kind in _KINDS if kind in instruction), None)
            if kind is None:
                reason = f"this instruction has none of the keys {', '.join(_KINDS)}; add one"
                self.document.fail(path, reason)
            _KINDS[kind](self, path, instruction)
        self.close_phase()
        if not self.blocks:
            reason = 'no episodes; begin with {"$phase": "1.train"} and a "$repeat"'
            self.document.fail(("instructions",), reason)
        return tuple(self.blocks)

    def open_phase(self, path: Path, instruction: Mapping[str, object]) -> None:
        """Play {"$phase": "<k>.<train|test>", "enable_updates": bool}."""
        self.document.keys(path, instruction, ("$phase", "enable_updates"))
        self.close_phase()
        name_path = (*path, "$phase")
        self.phase, self.mode = self.next_phase(name_path, instruction["$phase"])
        self.phase_path, self.phase_start = name_path, len(self.blocks)
        self.phase_updates = self.enable_updates(path, instruction)
        if self.mode == "train" and self.disabled_in_test:
            reason = 'updates are still disabled by the test phase; write {"$info": {}} at its end'
            self.document.fail(name_path, reason)

    def next_phase(self, path: Path, value: object) -> tuple[int, Mode]:
        """Return number and mode of a phase that may follow the current one."""
        higher = self.phase + 1
        following: dict[str, tuple[int, Mode]] = {f"{higher}.train": (higher, "train")}
        if self.phase:
            following[f"{higher}.test"] = higher, "test"
        if self.phase and self.mode == "train":
            following[f"{self.phase}.test"] = self.phase, "test"
        if not isinstance(value, str) or value not in following:
            reason = f"'$phase' is {_show(value)}; here it must be {_either(following)}"
            rule = "the first is a train phase" if not self.phase else "numbers rise by one"
            self.document.fail(path, f"{reason} ({rule})")
        return following[value]

    def enable_updates(self, path: Path, instruction: Mapping[str, object]) -> bool:
        """Return the phase's own permission to learn."""
        if "enable_updates" not in instruction:
            return self.mode == "train"
        flag_path = (*path, "enable_updates")
        enabled = self.document.flag(flag_path, instruction["enable_updates"])
        if enabled and self.mode == "test":
            reason = "a test phase is never learned from; 'enable_updates' must be false or absent"
            self.document.fail(flag_path, reason)
        return enabled

    def close_phase(self) -> None:
        """Refuse a phase in which nothing was played."""
        if self.phase and len(self.blocks) == self.phase_start:
            reason = 'this phase has no episodes; add a "$repeat" after it or remove the phase'
            self.document.fail(self.phase_path, reason)

    def inform(self, path: Path, instruction: Mapping[str, object]) -> None:
        """Play {"$info": {"disable_updates": bool}}."""
        self.document.keys(path, instruction, ("$info",))
        info_path = (*path, "$info")
        info = self.document.mapping(info_path, instruction["$info"], "'$info'")
        self.document.keys(info_path, info, ("disable_updates",))
        flag_path = (*info_path, "disable_updates")
        self.disabled = self.document.flag(flag_path, info.get("disable_updates", False))
        self.disabled_in_test = self.disabled and self.mode == "test"

    def repeat(self, path: Path, instruction: Mapping[str, object]) -> None:
        """Play {"$repeat": EPISODE, "count": N}."""
        self.document.keys(path, instruction, ("$repeat", "count"))
        if "count" not in instruction:
            self.document.fail(path, 'this "$repeat" has no "count"; add the number of episodes')
        count = instruction["count"]
        count_path = (*path, "count")
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            reason = f"'count' is {_show(count)}; it must be a whole number from 1"
            self.document.fail(count_path, reason)
        inner = (*path, "$repeat")
        episode = self.document.mapping(inner, instruction["$repeat"], "'$repeat'")
        if "$episode" not in episode:
            self.document.fail(inner, 'this "$repeat" has no "$episode"; add the name of a task')
        self.add(inner, episode, count, count_path)

    def once(self, path: Path, instruction: Mapping[str, object]) -> None:
        """Play a bare {"$episode": TASK, PATH: VALUE}."""
        self.add(path, instruction, 1, path)

    def add(self, path: Path, episode: Mapping[str, object], count: int, count_path: Path) -> None:
        """Append episodes, to the last block if they are more of the same."""
        if not self.phase:
            reason = 'episodes before the first phase; put {"$phase": "1.train"} in front of them'
            self.document.fail(path[:2], reason)
        task, values = self.variant(path, episode)
        self.episodes += count
        if self.episodes > MAX_EPISODES:
            reason = f"a lifetime may have {MAX_EPISODES} episodes and is longer here; lower counts"
            self.document.fail(count_path, reason)
        learning = self.phase_updates and not self.disabled
        index = len(self.blocks)
        block = Block(index, self.phase, self.mode, task, values, count, learning)
        last = self.blocks[-1] if index > self.phase_start else None
        if last and (last.variant, last.learning) == (block.variant, learning):
            self.blocks[-1] = replace(last, count=last.count + count)
        else:
            self.blocks.append(block)

    def variant(
        self, path: Path, episode: Mapping[str, object]
    ) -> tuple[str, tuple[tuple[str, Value], ...]]:
        """Return task and parameters of an episode, in their one canonical form."""
        task_path = (*path, "$episode")
        task = self.document.string(task_path, episode["$episode"])
        try:
            spec = registry.spec(_short(task))
        except ValueError as error:
            self.document.fail(task_path, str(error))
        newest = registry.spec(spec.task) is spec
        own = {name: value for name, value in episode.items() if name != "$episode"}
        if spec.env_id not in self.task_defaults:
            self.task_defaults[spec.env_id] = self.values(spec, ("default_params",), self.defaults)
        values = self.task_defaults[spec.env_id] | self.values(spec, path, own)
        try:
            spec.check(values)
        except ValueError as error:
            self.document.fail(path, f"{spec.task}: {error}")
        return spec.task if newest else spec.env_id, _distinct(spec, values)

    def values(self, spec: EnvSpec, path: Path, given: Mapping[str, object]) -> dict[str, Value]:
        """Return checked parameters of a task."""
        checked = {}
        for name, value in given.items():
            if name not in spec.parameters:
                reason = parameters.unknown("parameter", _short(name), spec.parameters)
                self.document.fail((*path, name), f"{spec.task}: {reason}", key=True)
            result = _accept(spec.parameters[name], value)
            if isinstance(result, _Problem):
                self.document.fail((*path, name), result.reason)
            checked[name] = result
        return checked


def _distinct(spec: EnvSpec, values: dict[str, Value]) -> tuple[tuple[str, Value], ...]:
    """Leave out what would be the same without being said; sorted by path."""

    def said(name: str, value: Value) -> bool:
        others = {other: own for other, own in values.items() if other != name}
        return bool(spec.fill(others)[name] != value)

    return tuple(sorted(item for item in values.items() if said(*item)))


_KINDS: dict[str, Callable[[_Builder, Path, Mapping[str, object]], None]] = {
    "$phase": _Builder.open_phase,
    "$repeat": _Builder.repeat,
    "$info": _Builder.inform,
    "$episode": _Builder.once,
}


@dataclass(frozen=True)
class _Problem:
    """Why a value is refused."""

    reason: str


def _accept(parameter: Parameter, value: object) -> Value | _Problem:
    """Return `value` in the type of the parameter, or what is wrong with it."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        shown = f"parameter {parameter.path!r} is {_show(value)}"
        return _Problem(f"{shown}; it must be {parameter.allowed}")
    problem = parameter.problem(value)
    if problem:
        return _Problem(problem)
    if parameter.choices:
        return next(choice for choice in parameter.choices if choice == value)
    return float(value) if isinstance(parameter.default, float) else value


def _show(value: object) -> str:
    """Name a JSON value in an error, in a few words."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, str):
        return repr(_short(value))
    return _short(json.dumps(value))


def _short(text: str) -> str:
    """Cut long text, so that an error stays readable."""
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "..."


def _either(names: Collection[str]) -> str:
    """Join quoted names with commas and a last "or"."""
    quoted = [repr(name) for name in sorted(names)]
    return " or ".join([", ".join(quoted[:-1]), quoted[-1]] if quoted[1:] else quoted)
