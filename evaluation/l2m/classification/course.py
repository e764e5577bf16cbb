"""Interface of classification for a performer: data sets of batches, answered one by one.

```python
for dataset in course.datasets():
    dataset.reset()
    done = False
    while not done:
        batch, done, info = dataset.next_batch()
        y_hat = infer(batch["inputs"])
        y = dataset.get_labels(batch["id"], y_hat)
        if y:
            learn(batch["inputs"], y)
```

The course compares every answer with the truth and keeps the score. It does not use the performer's
estimate of its error.

Source: L2M Metrics Framework, 4 Dec 2019, section 1.1, "Classification Learning".
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluation.l2m.classification import data
from evaluation.l2m.classification.syllabus import DataBlock, DatasetSyllabus
from evaluation.schedule import Block


class BatchScore(NamedTuple):
    """Score of one batch.

    Attributes:
      block: position of the block.
      batch: number of the batch in the lifetime, from 0.
      examples: number of examples in the batch.
      correct: number of correct answers.
    """

    block: int
    batch: int
    examples: int
    correct: int

    @property
    def accuracy(self) -> float:
        """Share of correct answers."""
        return self.correct / self.examples

    @property
    def error(self) -> float:
        """Share of wrong answers."""
        return (self.examples - self.correct) / self.examples


@dataclass(frozen=True)
class _Truth:
    """One batch with its labels, hidden from the performer."""

    number: int
    inputs: npt.NDArray[np.float32]
    labels: npt.NDArray[np.int32]


class Dataset:
    """One data set of a course.

    Attributes:
      name: of the data set; its variation is hidden.
      learning: whether `get_labels` returns labels.
      classes: number of classes; an answer may be a class of another data set of the course.
      shape: height and width of an image.
      batches: number of batches.
      batch_size: examples in a batch.
    """

    def __init__(
        self,
        plan: DataBlock,
        block: Block,
        examples: data.ImageData,
        first_batch: int,
        generator: np.random.Generator,
        scores: list[BatchScore],
        answers: int,
    ) -> None:
        """Prepare a data set; called by `Course`."""
        self.name, self.learning = plan.name, block.learning
        self.classes, self.shape = examples.classes, examples.images.shape[1:]
        self.batches, self.batch_size = plan.batches, plan.batch_size
        self._started = False
        self._count = 0
        self._open: _Truth | None = None
        self._answered: set[str] = set()
        self._block, self._first = block.index, first_batch
        self._scores, self._answers = scores, answers
        self.__batches = _draw(plan, block, examples, first_batch, generator)

    @property
    def finished(self) -> bool:
        """Whether every batch has been answered."""
        return self._count == self.batches and self._open is None

    def reset(self) -> None:
        """Start the data set.

        Raises:
          ValueError: the data set was started before.
        """
        if self._started:
            raise ValueError(
                f"data set {self.name!r} has been reset before; continue with next_batch"
            )
        self._started = True

    def next_batch(self) -> tuple[dict[str, Any], bool, dict[str, bool]]:
        """Return the next batch to answer.

        Returns:
          (batch, done, info): ``batch["inputs"]`` (M, H, W) float32, ``batch["id"]``, whether it is
          the last batch, and ``info["disable_updates"]``.

        Raises:
          ValueError: before `reset`, after the last batch, or before the previous answer.
        """
        if not self._started:
            raise ValueError(f"data set {self.name!r} has not begun; call reset() first")
        if self._open is not None:
            raise ValueError(
                f"batch {self._id(self._open)!r} has no answer; call get_labels(id, y_hat) first"
            )
        if self._count == self.batches:
            raise ValueError(f"data set {self.name!r} has only {self.batches} batches; it is done")
        truth = self._open = next(self.__batches)
        self._count += 1
        batch = {"id": self._id(truth), "inputs": truth.inputs.copy()}
        return batch, self._count == self.batches, {"disable_updates": not self.learning}

    def get_labels(self, id: str, y_hat: npt.ArrayLike) -> tuple[int, ...] | None:
        """Score the answer to a batch, and return its labels if learning is allowed.

        Args:
          id: of the last batch of `next_batch`.
          y_hat: (M,) estimated classes, whole numbers.

        Returns:
          (M,) labels, or None if updates are disabled.

        Raises:
          ValueError: a wrong id, a batch that has been answered, or an invalid answer.
        """
        if id in self._answered:
            raise ValueError(f"batch {id!r} has been answered; labels are given once")
        truth = self._open
        if truth is None or id != self._id(truth):
            expected = repr(self._id(truth)) if truth else "the next one; call next_batch() first"
            raise ValueError(f"batch id is {id!r}; it must be {expected}")
        answer = self._checked(y_hat)
        correct = int((answer == truth.labels).sum())
        self._scores.append(BatchScore(self._block, truth.number, len(truth.labels), correct))
        self._answered.add(id)
        self._open = None
        return tuple(int(label) for label in truth.labels) if self.learning else None

    def _id(self, truth: _Truth) -> str:
        return f"{self.name}-{truth.number}"

    def _checked(self, y_hat: npt.ArrayLike) -> np.ndarray:
        answer = np.asarray(y_hat)
        if answer.shape != (self.batch_size,):
            raise ValueError(
                f"y_hat is {answer.shape}; it must be one class per example, ({self.batch_size},)"
            )
        if not np.issubdtype(answer.dtype, np.integer):
            raise ValueError(f"y_hat is {answer.dtype}; it must be whole numbers, the classes")
        if answer.min() < 0 or answer.max() >= self._answers:
            raise ValueError(f"y_hat must be from 0 to {self._answers - 1}")
        return answer


class Course:
    """One lifetime of a syllabus of classification.

    Attributes:
      syllabus: of the lifetime.
      scores: of the batches answered so far, in order.
    """

    def __init__(
        self,
        syllabus: DatasetSyllabus,
        seed: int = 0,
        lifetime: int = 0,
        examples: Mapping[str, data.ImageData] | None = None,
    ) -> None:
        """Prepare a lifetime.

        Args:
          syllabus: of the lifetime.
          seed: root of all randomness, 0 or more.
          lifetime: number of the lifetime; lifetimes have different batches.
          examples: data sets by name; read if None.

        Raises:
          ValueError: a negative seed or lifetime, or a data set that cannot be read.
        """
        if seed < 0 or lifetime < 0:
            raise ValueError(f"seed and lifetime must be 0 or more, not {seed} and {lifetime}")
        self.syllabus = syllabus
        self.scores: list[BatchScore] = []
        self._root = (seed, lifetime)
        self._examples = dict(examples) if examples is not None else read_examples(syllabus)

    @property
    def classes(self) -> int:
        """Largest number of classes of a data set."""
        return max((examples.classes for examples in self._used_examples.values()), default=0)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of an image of each data set, by name."""
        return {name: examples.images.shape[1:] for name, examples in self._used_examples.items()}

    @property
    def _used_examples(self) -> dict[str, data.ImageData]:
        return {plan.name: self._examples[plan.name] for plan in self.syllabus.plans}

    def datasets(self) -> Iterator[Dataset]:
        """Yield the data sets in order, once.

        Raises:
          ValueError: the previous data set has batches without an answer, or the data sets have
            been yielded before.
        """
        if self.scores:
            raise ValueError("the course has begun; make another one to play it again")
        first, classes = 0, self.classes
        for index, plan in enumerate(self.syllabus.plans):
            generator = np.random.default_rng([*self._root, index])
            block = self.syllabus.schedule.blocks[plan.block]
            examples = self._examples[plan.name]
            dataset = Dataset(plan, block, examples, first, generator, self.scores, classes)
            yield dataset
            if not dataset.finished:
                raise ValueError(
                    f"data set {plan.name!r} (number {index} of the syllabus) has batches without "
                    "an answer; continue with next_batch until done"
                )
            first += plan.batches


def read_examples(syllabus: DatasetSyllabus) -> dict[str, data.ImageData]:
    """Read the data sets of a syllabus, by name.

    Raises:
      ValueError: a data set needs a package that is not installed.
    """
    return {name: data.spec(name).load() for name in {plan.name for plan in syllabus.plans}}


def _draw(
    plan: DataBlock,
    block: Block,
    examples: data.ImageData,
    first_batch: int,
    generator: np.random.Generator,
) -> Iterator[_Truth]:
    """Yield batches of shuffled examples, with a new shuffle when all are used."""
    first, last = int(plan.values["classes/first"]), int(plan.values["classes/last"])
    rows = examples.rows(block.mode, first, last)
    if not len(rows):
        raise ValueError(f"{plan.name} has no {block.mode} examples of classes {first} to {last}")
    order = np.empty(0, np.int64)
    for number in range(plan.batches):
        while len(order) < plan.batch_size:
            order = np.concatenate([order, generator.permutation(rows)])
        batch, order = order[: plan.batch_size], order[plan.batch_size :]
        yield _Truth(
            first_batch + number,
            *data.vary(
                examples.images[batch],
                examples.labels[batch],
                examples.classes,
                plan.values,
                generator,
            ),
        )
