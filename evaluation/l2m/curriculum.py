"""Curricula: lifetimes as blocks of learning and evaluation, as the tella framework has them.

    from evaluation.l2m import EvalBlock, InterleavedEvalCurriculum, LearnBlock, TaskBlock
    from evaluation.l2m import TaskVariant

    pole = [TaskVariant("CartPole3D", 30, {"pole/length": n}, f"{n} m") for n in (1.0, 2.0)]
    curriculum = InterleavedEvalCurriculum(
        learn=[LearnBlock([TaskBlock([variant])]) for variant in pole],
        evaluation=EvalBlock([TaskBlock(pole)]),
    )
    schedule = curriculum.schedule()  # eval, (learn, eval) twice
    records = scanner.play(schedule, agents.get("pd"), lifetimes=256)

Blocks hold task blocks, of one task each, and those hold variants. Lengths are numbers of
episodes. Seeds belong to a run, whose lifetimes can each be played again alone.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from evaluation.l2m.build import Syllabus, episodes
from evaluation.l2m.document import SyllabusError
from evaluation.schedule import Block, Mode, Schedule, Value


@dataclass(frozen=True)
class TaskVariant:
    """Some episodes of a task with one set of parameters.

    Attributes:
      task: name of the task, the label of its task block.
      num_episodes: from 1.
      params: parameters by path.
      label: name of the variant, for people.
    """

    task: str
    num_episodes: int
    params: Mapping[str, Value] = field(default_factory=dict)
    label: str = "Default"


@dataclass(frozen=True)
class TaskBlock:
    """Variants of one task.

    Attributes:
      variants: at least one, all of the same task.
    """

    variants: Sequence[TaskVariant]


@dataclass(frozen=True)
class LearnBlock:
    """Tasks that the agent learns from.

    Attributes:
      tasks: at least one.
    """

    tasks: Sequence[TaskBlock]


@dataclass(frozen=True)
class EvalBlock:
    """Tasks that the agent is evaluated on, without learning.

    Attributes:
      tasks: at least one.
    """

    tasks: Sequence[TaskBlock]


@dataclass(frozen=True)
class Curriculum:
    """A sequence of blocks.

    Attributes:
      blocks: at least one.
      name: short name, used for log directories.
    """

    blocks: Sequence[LearnBlock | EvalBlock]
    name: str = "curriculum"

    def schedule(self) -> Schedule:
        """Return what is played.

        A learning block opens a train phase with a higher number, and an evaluation block the test
        phase of the same number if it follows learning, else one with a higher number.

        Raises:
          ValueError: what `validate` would report, all of it.
        """
        problems = validate(self)
        if problems:
            raise ValueError("; ".join(problems))
        blocks: list[Block] = []
        # The blocks of a syllabus, which joins neighbours that are equal and drops defaults.
        for phase, mode, variants in _phases(self.blocks):
            alone = Syllabus(self.name).train(_played(variants)).schedule()
            for block in alone.blocks:
                index, learning = len(blocks), mode == "train"
                played = (block.task, block.parameters, block.count, learning)
                blocks.append(Block(index, phase, mode, *played))
        return Schedule(self.name, tuple(blocks), "curriculum")

    def syllabus(self) -> Syllabus:
        """Return the same as a syllabus.

        Raises:
          ValueError: as `schedule`, or it begins with evaluation, which no syllabus may.
        """
        self.schedule()
        if isinstance(self.blocks[0], EvalBlock):
            raise ValueError(
                "the curriculum begins with evaluation, and a syllabus with training; leave out "
                "the first block, or play schedule() itself"
            )
        syllabus = Syllabus(self.name)
        for _, mode, variants in _phases(self.blocks):
            add = syllabus.train if mode == "train" else syllabus.test
            syllabus = add(_played(variants))
        return syllabus

    @staticmethod
    def of(schedule: Schedule) -> "Curriculum":
        """Return a schedule as a curriculum; `schedule` gives the same blocks again.

        Phases of equal kinds keep their order, and take the numbers that `schedule` gives them.

        Raises:
          ValueError: the agent does not learn in a part of a train phase, or an episode has several
            sub-episodes, which no curriculum can say.
        """
        found: list[LearnBlock | EvalBlock] = []
        for (phase, mode), members in groupby(schedule.blocks, key=lambda b: (b.phase, b.mode)):
            inside = list(members)
            if any(block.sub_episodes > 1 for block in inside):
                raise ValueError(f"phase {phase}.{mode} has sub-episodes; a curriculum has none")
            if any(block.learning != (mode == "train") for block in inside):
                does = "does not learn" if mode == "train" else "learns"
                raise ValueError(
                    f"phase {phase}.{mode} has a block that {does}; a curriculum learns in all of "
                    "a learning block and never elsewhere"
                )
            tasks = [
                TaskBlock([_variant(block) for block in same])
                for _, same in groupby(inside, key=lambda block: block.task)
            ]
            found.append(LearnBlock(tasks) if mode == "train" else EvalBlock(tasks))
        return Curriculum(tuple(found), schedule.name)


class InterleavedEvalCurriculum(Curriculum):
    """Evaluation first and after each learning block: eval, (learn, eval) and so on."""

    def __init__(
        self,
        learn: Sequence[LearnBlock],
        evaluation: EvalBlock,
        name: str = "curriculum",
        *,
        first: bool = True,
    ) -> None:
        """Interleave.

        Args:
          learn: learning blocks, at least one.
          evaluation: the block that comes after each.
          name: of the curriculum.
          first: whether it also comes before all learning, which a syllabus cannot say.
        """
        pairs = [block for learning in learn for block in (learning, evaluation)]
        super().__init__(tuple([evaluation] * first + pairs), name)


def validate(curriculum: Curriculum) -> list[str]:
    """Return everything that is wrong with a curriculum, each with its place.

    Checked: no block, task block or variant list is empty; a task block has one task; tasks exist,
    have the parameters and accept their values; numbers of episodes are whole and positive.
    """
    if not curriculum.blocks:
        return ["the curriculum is empty; add a LearnBlock"]
    return [
        f"block {index} ({type(block).__name__}){problem}"
        for index, block in enumerate(curriculum.blocks)
        for problem in _block_problems(block)
    ]


def _block_problems(block: LearnBlock | EvalBlock) -> Iterator[str]:
    if not block.tasks:
        yield " is empty; add a TaskBlock"
    for index, task in enumerate(block.tasks):
        place = f", task {index}"
        if not task.variants:
            yield f"{place} is empty; add a TaskVariant"
        names = sorted({variant.task for variant in task.variants})
        if len(names) > 1:
            yield f"{place} has the tasks {', '.join(names)}; make a TaskBlock of each"
        for number, variant in enumerate(task.variants):
            problem = _variant_problem(variant)
            if problem:
                yield f"{place}, variant {number}: {problem}"


def _variant_problem(variant: TaskVariant) -> str | None:
    """Say what is wrong with a variant, by playing it in a syllabus of its own."""
    try:
        played = episodes(variant.task, variant.num_episodes, variant.params)
        Syllabus("variant").train(played).schedule()
    except ValueError as error:
        cause = error.__cause__
        return cause.reason if isinstance(cause, SyllabusError) else str(error)
    return None


def _phases(
    blocks: Iterable[LearnBlock | EvalBlock],
) -> Iterator[tuple[int, Mode, list[TaskVariant]]]:
    """Yield number, mode and variants of the phase of each block."""
    number, last = 0, "test"
    for block in blocks:
        mode: Mode = "train" if isinstance(block, LearnBlock) else "test"
        if mode == "train" or last == "test":
            number += 1
        last = mode
        yield number, mode, [variant for task in block.tasks for variant in task.variants]


def _played(variants: Iterable[TaskVariant]) -> list[Any]:
    return [episodes(v.task, v.num_episodes, v.params) for v in variants]


def _variant(block: Block) -> TaskVariant:
    parameters = dict(block.parameters)
    label = ", ".join(f"{path} {value}" for path, value in parameters.items()) or "Default"
    return TaskVariant(block.task, block.count, parameters, label)


__all__ = [
    "Curriculum",
    "EvalBlock",
    "InterleavedEvalCurriculum",
    "LearnBlock",
    "TaskBlock",
    "TaskVariant",
    "validate",
]
