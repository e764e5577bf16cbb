"""The schedule of a training: stretches of learning between evaluations."""

from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.arguments import parameters_of
from evaluation.schedule import Block, Mode, Parameters, Schedule, level_variant
from jaxsim import registry
from jaxsim.inputs import check_whole
from jaxsim.worlds.cartpole3d.levels import DIFFICULTIES

MOST_EPISODES = 1_000_000
"""Most training episodes of a lifetime."""
MOST_EVALUATIONS = 5000
"""Most evaluations, so that a schedule never has a million blocks."""

FULL_SPEED_WIDTH = 16
"""Episodes in parallel above which learning is hardly faster; measured in docs/learning.md."""


@dataclass(frozen=True)
class TrainingCourse:
    """One task, learned for `every` episodes at a time, with an evaluation before and after each.

    The last stretch is shorter if the number of episodes is not a multiple of `every`.

    Attributes:
      task: name of the task.
      parameters: (path, value) pairs that differ from its defaults, sorted.
      every: training episodes between two evaluations.
      evaluation: episodes of an evaluation, in which nothing is learned.
    """

    task: str
    parameters: Parameters = ()
    every: int = 200
    evaluation: int = 20

    def __post_init__(self) -> None:
        for name, value in (("eval-every", self.every), ("eval-episodes", self.evaluation)):
            check_whole(name, value, 1, MOST_EPISODES)

    def check(self, episodes: int) -> None:
        """Check the task and its parameters, and a number of training episodes.

        Raises:
          ValueError: says what to change.
        """
        registry.make(self.task, dict(self.parameters))
        if not 1 <= episodes <= self.most_episodes:
            raise ValueError(
                f"episodes is {episodes}; it must be from 1 to {self.most_episodes} with an "
                f"evaluation every {self.every}"
            )

    @property
    def most_episodes(self) -> int:
        """Most training episodes, by `MOST_EPISODES` and `MOST_EVALUATIONS`."""
        return min(MOST_EPISODES // self.every, MOST_EVALUATIONS) * self.every

    def schedule(self, episodes: int) -> Schedule:
        """Return the schedule of a number of training episodes.

        A shorter course with a multiple of `every` episodes is a prefix of it.
        """
        counts = [(0, self.evaluation)]
        counts += [(self.every, self.evaluation)] * (episodes // self.every)
        if self.last_stretch(episodes):
            counts.append((self.last_stretch(episodes), self.evaluation))
        blocks: list[Block] = []
        for number, (training, evaluation) in enumerate(counts):
            parts: list[tuple[Mode, int]] = [("train", training), ("test", evaluation)]
            for mode, count in parts:
                if count:
                    blocks.append(self._block(len(blocks), number + 1, mode, count))
        return Schedule(self.name, tuple(blocks), "jaxsim train")

    def last_stretch(self, episodes: int) -> int:
        """Episodes of a last stretch that is shorter than the others; 0 if there is none."""
        return episodes % self.every

    def ends(self, episodes: int) -> frozenset[int]:
        """Numbers of episodes after which an evaluation is over, except the first evaluation."""
        stretch = self.every + self.evaluation
        return frozenset(
            self.evaluation + stretch * number for number in range(1, episodes // self.every + 1)
        )

    def trained(self, played: int) -> int:
        """Training episodes among the first `played` episodes, which end with an evaluation."""
        return (played - self.evaluation) // (self.every + self.evaluation) * self.every

    @property
    def full_speed_width(self) -> int:
        """Episodes to play in parallel for learning at full speed.

        It follows from the course alone, not from the machine or the number of lifetimes: results
        depend on it.
        """
        return min(FULL_SPEED_WIDTH, self.every)

    @property
    def name(self) -> str:
        """The task in words, for titles."""
        values = [f"{path.rpartition('/')[2]} {value}" for path, value in self.parameters]
        return ", ".join([self.task, *values])

    def _block(self, index: int, phase: int, mode: Mode, count: int) -> Block:
        learning = mode == "train"
        return Block(index, phase, mode, self.task, self.parameters, count, learning)


def task_of(name: str, difficulty: str | None, values: Sequence[str]) -> tuple[str, Parameters]:
    """Read a task from a command line.

    Args:
      name: of a task, or the number of a level of the novelty catalogue.
      difficulty: of a level, "easy" if None.
      values: "PATH=VALUE" each, parameters of the task.

    Raises:
      ValueError: an unknown task or difficulty, or no value where one should be. Parameters are
        checked when the task is made.
    """
    pairs = parameters_of(values)
    if not name.isdecimal():
        spec = registry.spec(name)
        if difficulty is not None:
            if "novelty/difficulty" not in spec.parameters:
                raise ValueError(f"{name} has no difficulties; the levels of CartPole3D have them")
            pairs["novelty/difficulty"] = difficulty
        return name, tuple(sorted(spec.expand(pairs).items()))
    if difficulty is not None and difficulty not in DIFFICULTIES:
        allowed = ", ".join(DIFFICULTIES)
        raise ValueError(f"difficulty is {difficulty!r}; it must be one of {allowed}")
    task, parameters = level_variant(int(name), difficulty or "easy")
    pairs = registry.spec(task).expand({**dict(parameters), **pairs})
    return task, tuple(sorted(pairs.items()))
