"""Subtypes of syllabi, CL, ANT_A, ANT_B and ANT_C, and their rules.

Source: L2M Metrics Framework, Johns Hopkins University Applied Physics Laboratory,
4 December 2019, chapter 3.

| subtype | assesses | tasks | parameters vary | test phases |
| --- | --- | --- | --- | --- |
| CL | adapting to changes of one task without forgetting | 1 | yes | recommended |
| ANT_A | resistance to catastrophic interference | at least 2 | no | mandatory |
| ANT_B | basic skill transfer, the transfer matrix | at least 2, related | no | mandatory |
| ANT_C | parametric skill transfer, forward and reverse | at least 2 | yes | mandatory |

Kinds of rules, with the severity of a violation:

* required (error): the first block is a train block.
* disallowed (error): CL with more than one task; ANT with only one; ANT without a test phase;
  ANT_A and ANT_B with parameters that vary within a task.
* expected (warning): train phases and test phases alternate, and the last is a test phase. CL and
  ANT_C vary parameters. A trained task is tested afterwards (CL: each of its parameter values, if
  there is any test phase). For ANT_B and ANT_C a task that is trained after another one has been
  tested before.

That the tasks of ANT_B share knowledge cannot be checked.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from evaluation.l2m.instructions import Reading
from evaluation.positions import Path
from evaluation.schedule import Block

Subtype = Literal["CL", "ANT_A", "ANT_B", "ANT_C"]
Rule = Literal["disallowed", "expected"]

SUBTYPES: tuple[Subtype, ...] = ("CL", "ANT_A", "ANT_B", "ANT_C")
_VARIED: tuple[Subtype, ...] = ("CL", "ANT_C")
_TRANSFER: tuple[Subtype, ...] = ("ANT_B", "ANT_C")


@dataclass(frozen=True)
class Violation:
    """A rule of a subtype that a syllabus breaks.

    Attributes:
      rule: "disallowed", an error, or "expected", a warning.
      path: place in the text.
      reason: what is wrong and what to change.
      structural: whether the whole subtype does not fit.
    """

    rule: Rule
    path: Path
    reason: str
    structural: bool = False


def violations(reading: Reading, subtype: Subtype) -> list[Violation]:
    """Return all violations of the rules of a subtype.

    Args:
      reading: the syllabus, with at least one block.
      subtype: one of `SUBTYPES`.
    """
    broken = [*_alternation(reading), *_tasks(reading, subtype), *_variation(reading, subtype)]
    if any(block.mode == "test" for block in reading.schedule.blocks):
        broken += _measurable(reading, subtype)
    elif subtype != "CL":
        reason = f"{subtype} must have test phases; add one after each train phase"
        broken.append(Violation("disallowed", ("instructions",), reason))
    return broken


def infer(reading: Reading) -> Subtype:
    """Return the subtype with the fewest violations; the first of equal ones.

    Errors count first, then a subtype's missing variation, then warnings.
    """

    def cost(subtype: Subtype) -> tuple[int, int, int]:
        broken = violations(reading, subtype)
        errors = sum(violation.rule == "disallowed" for violation in broken)
        return errors, sum(violation.structural for violation in broken), len(broken)

    return min(SUBTYPES, key=cost)


def _alternation(reading: Reading) -> Iterator[Violation]:
    """Check that train and test phases alternate and the last is a test phase."""
    phases = list(reading.phases.items())
    for ((number, mode), _), ((later, same), path) in pairwise(phases):
        if mode == same:
            other = "test" if mode == "train" else "train"
            reason = f"{later}.{same} follows {number}.{mode}; a {other} phase is expected between"
            yield Violation("expected", path, reason)
    (number, mode), path = phases[-1]
    if mode == "train":
        reason = f"no test phase follows {number}.train; one is expected at the end"
        yield Violation("expected", path, reason)


def _tasks(reading: Reading, subtype: Subtype) -> Iterator[Violation]:
    """Check for one task in CL and several in ANT."""
    blocks = reading.schedule.blocks
    first = blocks[0].task
    different = [block for block in blocks if block.task != first]
    if subtype != "CL" and not different:
        reason = f"{subtype} needs at least two tasks, and this syllabus has only {first!r}"
        yield Violation("disallowed", ("instructions",), reason, structural=True)
    if subtype == "CL":
        for block in different:
            reason = f"CL may have one task only: this is {block.task!r} and the first is {first!r}"
            path = (*reading.blocks[block.index], reading.task_key)
            yield Violation("disallowed", path, reason, structural=True)


def _variation(reading: Reading, subtype: Subtype) -> Iterator[Violation]:
    """Check that parameters of a task vary in CL and ANT_C only."""
    firsts: dict[str, Block] = {}
    different = [
        block
        for block in reading.schedule.blocks
        if firsts.setdefault(block.task, block).parameters != block.parameters
    ]
    if subtype in _VARIED:
        if not different:
            reason = f"{subtype} is expected to vary parameters within a task; none varies here"
            yield Violation("expected", ("instructions",), reason, structural=True)
        return
    for block in different:
        names = ", ".join(_difference(firsts[block.task], block))
        reason = (
            f"{subtype} may not vary parameters: {names} of {block.task!r} is not as it was first; "
            "make it equal, or choose ANT_C"
        )
        yield Violation("disallowed", reading.blocks[block.index], reason, structural=True)


def _difference(one: Block, other: Block) -> list[str]:
    """Paths of the parameters in which two blocks differ."""
    a, b = dict(one.parameters), dict(other.parameters)
    return [repr(path) for path in sorted({*a, *b}) if a.get(path) != b.get(path)]


def _measurable(reading: Reading, subtype: Subtype) -> Iterator[Violation]:
    """Check that a trained task is tested afterwards, and for transfer also before."""
    blocks = reading.schedule.blocks

    def subject(block: Block) -> object:
        return block.variant if subtype == "CL" else block.task

    tested_last = {subject(block): block.index for block in blocks if block.mode == "test"}
    tested_first = {subject(block): block.index for block in blocks[::-1] if block.mode == "test"}
    trained_first = {subject(block): block for block in blocks[::-1] if block.mode == "train"}
    for key, block in trained_first.items():
        path = reading.blocks[block.index]
        shown = f"{block.task!r}" + (" with these parameters" if subtype == "CL" else "")
        if tested_last.get(key, -1) < block.index:
            reason = f"{shown} is never tested after this training; add it to a later test phase"
            yield Violation("expected", path, reason)
        later = subtype in _TRANSFER and block.phase > blocks[0].phase
        if later and tested_first.get(key, len(blocks)) > block.index:
            reason = (
                f"{shown} is never tested before this training, so that no transfer to it can be "
                "measured; add it to an earlier test phase"
            )
            yield Violation("expected", path, reason)
