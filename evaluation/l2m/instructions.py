"""Reader of the instructions of a syllabus, which makes the blocks of a schedule."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypeVar

from evaluation.json_types import JsonMapping
from evaluation.l2m.document import Document, either, show
from evaluation.l2m.variants import Variants
from evaluation.positions import Path
from evaluation.schedule import Block, Mode, Schedule

MAX_EPISODES = 10_000_000
"""Maximum of episodes of one lifetime."""

SUB_EPISODES = "sub_episodes"
"""Key of the number of sub-episodes of an episode."""

_TOP = ("name", "author", "contains", "default_params", "instructions")
_PHASE = re.compile(r"(?P<number>[1-9][0-9]{0,8})\.(?P<mode>train|test)")


AnyReader = TypeVar("AnyReader", bound="Reader")


@dataclass(frozen=True)
class Reading:
    """Content of a syllabus, with paths into its text.

    Attributes:
      schedule: its blocks; if errors are collected, without the instructions that have one.
      blocks: for each block, the path of the episode of its first instruction.
      phases: path of the name of each phase by (number, mode), in the order of the text.
      contains: kind of its entries, "episodes" or "datasets".
      task_key: key of the name of a task at the paths of `blocks`, "$episode" or "$dataset".
    """

    schedule: Schedule
    blocks: tuple[Path, ...]
    phases: Mapping[tuple[int, Mode], Path]
    contains: str
    task_key: str


def read(document: Document, name: str, *, foreign: bool = False) -> Reading:
    """Read a syllabus of episodes.

    Args:
      document: its text.
      name: used if the text has none.
      foreign: whether unknown tasks are accepted, with any parameters.

    Raises:
      SyllabusError: as `play`.
    """
    return play(document, document.decode(), name, Reader, foreign=foreign)[0]


def play(
    document: Document, content: object, name: str, kind: type[AnyReader], *, foreign: bool = False
) -> tuple[Reading, AnyReader]:
    """Check the outermost object of a syllabus and play its instructions.

    Args:
      document: its text.
      content: of `Document.decode`.
      name: used if the text has none.
      kind: class of the reader, which defines the content of a syllabus.
      foreign: whether unknown tasks are accepted, with any parameters.

    Returns:
      The content of the syllabus, and the reader after its last instruction.

    Raises:
      SyllabusError: not a valid syllabus; if errors are collected, one that ends the reading.
    """
    top = document.mapping((), content, "the syllabus")
    with document.part():
        document.keys((), top, _TOP)
    if "instructions" not in top:
        document.fail((), 'the syllabus has no "instructions"; add a list of instructions')
    author, defaults = "", {}
    with document.part():
        name = document.string(("name",), top.get("name", name))
        if not name:
            document.fail(("name",), "'name' is empty; write a short name or remove it")
    with document.part():
        if top.get("contains", kind.contains) != kind.contains:
            reason = f"'contains' is {show(top['contains'])}; it must be {kind.contains_rule}"
            document.fail(("contains",), reason)
    with document.part():
        author = document.string(("author",), top.get("author", ""))
    with document.part():
        defaults = document.mapping(
            ("default_params",), top.get("default_params", {}), "'default_params'"
        )
    reader = kind(document, Variants(document, defaults, foreign))
    reader.play(top["instructions"])
    schedule = Schedule(name, tuple(reader.blocks), document.source, author)
    paths = tuple(reader.block_paths)
    return Reading(schedule, paths, reader.phases, kind.contains, kind.task_key), reader


@dataclass
class Reader:
    """Reader of instructions in order, which collects blocks."""

    contains: ClassVar[str] = "episodes"
    contains_rule: ClassVar[str] = '"episodes", or "datasets" in a syllabus for `jaxsim classify`'
    task_key: ClassVar[str] = "$episode"

    document: Document
    variants: Variants
    blocks: list[Block] = field(default_factory=list)
    block_paths: list[Path] = field(default_factory=list)
    phases: dict[tuple[int, Mode], Path] = field(default_factory=dict)
    episodes: int = 0
    phase: int = 0  # 0 before the first phase
    mode: Mode = "train"
    phase_path: Path = ()
    phase_start: int = 0  # number of blocks before the phase
    phase_updates: bool = True  # "enable_updates"; never in a test phase
    phase_valid: bool = True  # False after a phase with an invalid name
    phase_has_error: bool = False  # an instruction of this phase has an error
    disabled: bool = False  # "disable_updates"
    disabled_in_test: bool = False  # set in a test phase

    def play(self, instructions: object) -> None:
        """Play the list of instructions."""
        if not isinstance(instructions, list) or not instructions:
            shown = "empty" if instructions == [] else show(instructions)
            reason = f"'instructions' is {shown}; it must be a list of at least one instruction"
            self.document.fail(("instructions",), reason)
        for index, value in enumerate(instructions):
            self.phase_has_error = not self.instruct(("instructions", index), value) or (
                self.phase_has_error
            )
        with self.document.part():
            self.close_phase()
        if not self.blocks and not self.document.problems:
            reason = f'no {self.contains}; begin with {{"$phase": "1.train"}} and a "$repeat"'
            self.document.fail(("instructions",), reason)

    def instruct(self, path: Path, value: object) -> bool:
        """Play one instruction; return whether it was valid."""
        with self.document.part():
            instruction = self.document.mapping(path, value, "an instruction")
            kinds = self.kinds()
            kind = next((kind for kind in kinds if kind in instruction), None)
            if kind is None:
                reason = f"this instruction has none of the keys {', '.join(kinds)}; add one"
                self.document.fail(path, reason)
            kinds[kind](path, instruction)
            return True
        return False

    def kinds(self) -> dict[str, Callable[[Path, JsonMapping], None]]:
        """Return the methods that play instructions, by the key of their kind."""
        return {
            "$phase": self.open_phase,
            "$repeat": self.repeat,
            "$info": self.inform,
            self.task_key: self.once,
        }

    def open_phase(self, path: Path, instruction: Mapping[str, object]) -> None:
        """Play {"$phase": "<k>.<train|test>", "enable_updates": bool}."""
        with self.document.part():
            self.document.notes(path, instruction, ("$phase", "enable_updates"))
        with self.document.part():
            self.close_phase()
        name_path = (*path, "$phase")
        self.phase_path, self.phase_start = name_path, len(self.blocks)
        self.phase_has_error = False
        with self.document.part():
            self.enter_phase(name_path, instruction["$phase"])
        self.phase_updates = self.mode == "train"
        with self.document.part():
            self.phase_updates = self.enable_updates(path, instruction)
        if self.mode == "train" and self.disabled_in_test:
            self.disabled_in_test = self.disabled = False
            reason = 'updates are still disabled by the test phase; write {"$info": {}} at its end'
            self.document.fail(name_path, reason)

    def enter_phase(self, path: Path, value: object) -> None:
        """Set number and mode of a phase, and check that it may follow the current one."""
        following, first = self.following(), not self.phase
        match = _PHASE.fullmatch(value) if isinstance(value, str) else None
        allowed = match is not None and (not self.phase_valid or match[0] in following)
        # If errors are collected, reading continues with the phase as written.
        self.phase_valid = match is not None
        self.phase = int(match["number"]) if match else self.phase + 1
        if match:
            self.mode = "train" if match["mode"] == "train" else "test"
        self.phases[self.phase, self.mode] = path
        if not allowed:
            reason = f"'$phase' is {show(value)}; here it must be {either(following)}"
            why = "the first is a train phase" if first else "numbers rise by one"
            begins_with_test = first and match is not None and match["mode"] == "test"
            rule = "required" if begins_with_test else "grammar"
            self.document.fail(path, f"{reason} ({why})", rule=rule)

    def following(self) -> set[str]:
        """Return the names of the phases that may follow the current one."""
        higher = self.phase + 1
        names = {f"{higher}.train"}
        if self.phase:
            names.add(f"{higher}.test")
        if self.phase and self.mode == "train":
            names.add(f"{self.phase}.test")
        return names

    def enable_updates(self, path: Path, instruction: Mapping[str, object]) -> bool:
        """Return whether the phase permits learning."""
        if "enable_updates" not in instruction:
            return self.mode == "train"
        flag_path = (*path, "enable_updates")
        enabled = self.document.flag(flag_path, instruction["enable_updates"])
        if enabled and self.mode == "test":
            reason = "a test phase is never learned from; 'enable_updates' must be false or absent"
            self.document.fail(flag_path, reason)
        return enabled

    def close_phase(self) -> None:
        """Check that the phase has episodes."""
        if self.phase and len(self.blocks) == self.phase_start and not self.phase_has_error:
            reason = 'this phase has no episodes; add a "$repeat" after it or remove the phase'
            self.document.fail(self.phase_path, reason)

    def inform(self, path: Path, instruction: Mapping[str, object]) -> None:
        """Play {"$info": {"disable_updates": bool}}."""
        self.document.keys(path, instruction, ("$info",))
        info_path = (*path, "$info")
        info = self.document.mapping(info_path, instruction["$info"], "'$info'")
        self.document.notes(info_path, info, ("disable_updates",))
        flag_path = (*info_path, "disable_updates")
        self.disabled = self.document.flag(flag_path, info.get("disable_updates", False))
        self.disabled_in_test = self.disabled and self.mode == "test"

    def repeat(self, path: Path, instruction: Mapping[str, object]) -> None:
        """Play {"$repeat": EPISODE, "count": N}."""
        self.document.keys(path, instruction, ("$repeat", "count"))
        if "count" not in instruction:
            reason = f'this "$repeat" has no "count"; add the number of {self.contains}'
            self.document.fail(path, reason)
        count = instruction["count"]
        count_path = (*path, "count")
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            reason = f"'count' is {show(count)}; it must be a whole number from 1"
            self.document.fail(count_path, reason)
        inner = (*path, "$repeat")
        episode = self.document.mapping(inner, instruction["$repeat"], "'$repeat'")
        if self.task_key not in episode:
            reason = f'this "$repeat" has no "{self.task_key}"; add the name of one'
            self.document.fail(inner, reason)
        self.add(inner, episode, count, count_path)

    def whole(
        self, path: Path, value: Mapping[str, object], key: str, default: int | None, most: int
    ) -> int:
        """Return a whole number from 1 to `most`."""
        if key not in value and default is not None:
            return default
        if key not in value:
            self.document.fail(path, f'this instruction has no "{key}"; add a whole number')
        number = value[key]
        if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= most:
            reason = f"'{key}' is {show(number)}; it must be a whole number from 1 to {most}"
            self.document.fail((*path, key), reason)
        return number

    def once(self, path: Path, instruction: Mapping[str, object]) -> None:
        """Play a bare {"$episode": TASK, PATH: VALUE}."""
        self.add(path, instruction, 1, path)

    def add(self, path: Path, episode: Mapping[str, object], count: int, count_path: Path) -> None:
        """Append episodes, to the last block if they are equal to its episodes."""
        if not self.phase:
            reason = 'episodes before the first phase; put {"$phase": "1.train"} in front of them'
            self.document.fail(path[:2], reason, rule="required")
        sub_episodes = self.whole(path, episode, SUB_EPISODES, 1, MAX_EPISODES)
        variant = {name: value for name, value in episode.items() if name != SUB_EPISODES}
        task, values = self.variants.variant(path, variant)
        count *= sub_episodes
        self.episodes += count
        if self.episodes > MAX_EPISODES:
            reason = f"a lifetime may have {MAX_EPISODES} episodes and is longer here; lower counts"
            self.document.fail(count_path, reason)
        learning = self.phase_updates and not self.disabled
        index = len(self.blocks)
        block = Block(index, self.phase, self.mode, task, values, count, learning, sub_episodes)
        last = self.blocks[-1] if index > self.phase_start else None
        if last and replace(last, count=count, index=index) == block:
            self.blocks[-1] = replace(last, count=last.count + count)
        else:
            self.blocks.append(block)
            self.block_paths.append(path)
