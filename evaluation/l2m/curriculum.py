"""Curricula: lifetimes as blocks of learning and evaluation, as in the tella framework.

    from evaluation.l2m import EvalBlock, InterleavedEvalCurriculum, LearnBlock, TaskBlock
    from evaluation.l2m import TaskVariant

    pole = [TaskVariant("CartPole3D", 30, {"pole/length": n}, f"{n} m") for n in (1.0, 2.0)]
    curriculum = InterleavedEvalCurriculum(
        learn=[LearnBlock([TaskBlock([variant])]) for variant in pole],
        evaluation=EvalBlock([TaskBlock(pole)]),
    )
    schedule = curriculum.schedule()  # eval, (learn, eval) twice
    records = scanner.play(schedule, agents.get("pd"), lifetimes=256)

Blocks contain task blocks of one task each, and those contain variants. Lengths are numbers of
episodes. Seeds belong to a run; each of its lifetimes can be played again alone.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from evaluation.json_types import JsonValue
from evaluation.l2m.build import Syllabus, episodes
from evaluation.l2m.document import SyllabusError
from evaluation.schedule import Block, Mode, Schedule, Value


@dataclass(frozen=True)
class TaskVariant:
    """Episodes of a task with one set of parameters.

    Attributes:
      task: name of the task, the label of its task block.
      num_episodes: number of episodes, from 1.
      params: parameters by path.
      label: readable name of the variant.
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
    """Block of tasks with learning.

    Attributes:
      tasks: at least one.
    """

    tasks: Sequence[TaskBlock]


@dataclass(frozen=True)
class EvalBlock:
    """Block of tasks for evaluation, without learning.

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
        """Return the curriculum as a schedule.

        A learning block opens a train phase with the next number. An evaluation block opens a test
        phase, with the same number after learning, else with the next one.

        Raises:
          ValueError: all problems that `validate` reports.
        """
        problems = validate(self)
        if problems:
            raise ValueError("; ".join(problems))
        blocks: list[Block] = []
        # A syllabus joins equal neighbours and drops defaults.
        for phase, mode, variants in _phases(self.blocks):
            alone = Syllabus(self.name).train(_episodes(variants)).schedule()
            for block in alone.blocks:
                index, learning = len(blocks), mode == "train"
                content = (block.task, block.parameters, block.count, learning)
                blocks.append(Block(index, phase, mode, *content))
        return Schedule(self.name, tuple(blocks), "curriculum")

    def syllabus(self) -> Syllabus:
        """Return the curriculum as a syllabus.

        Raises:
          ValueError: as `schedule`, or the curriculum begins with evaluation.
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
            syllabus = add(_episodes(variants))
        return syllabus

    @staticmethod
    def of(schedule: Schedule) -> "Curriculum":
        """Return a schedule as a curriculum; `schedule` gives the same blocks again.

        Phases keep their order and get the numbers of `schedule`.

        Raises:
          ValueError: the agent does not learn in a part of a train phase, or an episode has several
            sub-episodes; a curriculum cannot express these.
        """
        blocks: list[LearnBlock | EvalBlock] = []
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
            blocks.append(LearnBlock(tasks) if mode == "train" else EvalBlock(tasks))
        return Curriculum(tuple(blocks), schedule.name)


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
        """Interleave learning blocks with evaluation.

        Args:
          learn: learning blocks, at least one.
          evaluation: the block after each learning block.
          name: of the curriculum.
          first: whether it also comes before all learning; a syllabus cannot express this.
        """
        pairs = [block for learning in learn for block in (learning, evaluation)]
        super().__init__(tuple([evaluation] * first + pairs), name)


def validate(curriculum: Curriculum) -> list[str]:
    """Return all problems of a curriculum, each with its place.

    It checks that no block, task block or variant list is empty, that a task block has one task,
    that tasks exist, have the parameters and accept their values, and that numbers of episodes are
    whole and positive.
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
    """The problem of a variant, found by reading a syllabus with this variant only."""
    try:
        item = episodes(variant.task, variant.num_episodes, variant.params)
        Syllabus("variant").train(item).schedule()
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


def _episodes(variants: Iterable[TaskVariant]) -> list[JsonValue]:
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
