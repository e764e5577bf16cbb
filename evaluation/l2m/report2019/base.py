"""Base classes of metrics of the 2019 framework, and their results.

A metric to add to a report is a class,

```python
class BestEpisode(AgentMetric):
    name = "Best Episode"
    capability = "continual_learning"
    description = "Highest reward of any episode of a block"

    def calculate(self, dataframe, phase_info, metrics_df):
        metrics_df["best_episode"] = dataframe.groupby("block")["reward"].max().to_numpy()
        return metrics_df
```

or a plain function on arrays, ``best_episode(values, counts)``. Its ``values`` are (B, T), one
number per episode, NaN behind the ``counts`` (B,) episodes of each block. It returns (B,) numbers,
one number, or an `evaluation.metrics.Numbers` of (B,).

Source: L2M Metrics Framework, 4 Dec 2019, chapter 4.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from evaluation import metrics as kernels
from evaluation.l2m.report2019.frames import DataFrame, blocks_of, by_block, counts_of, is_frame
from evaluation.l2m.report2019.table import LoggedBlock
from evaluation.metrics.reasons import sentence_of
from evaluation.metrics.registry import Lifetime, MetricRow, compute, over_all
from evaluation.metrics.table import CAPABILITIES as CAPABILITIES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUBTYPES: Final = ("CL", "ANT_A", "ANT_B", "ANT_C")
NO_VALUE: Final = "the metric gave no finite number here"
NO_BLOCK: Final = "no block has a value"

Requirements: TypeAlias = Mapping[str, str | tuple[str, ...]]
"""Accepted kinds of a syllabus by ``syllabus_type`` and ``syllabus_subtype``."""


@dataclass(frozen=True)
class Matrix:
    """Numbers for pairs of tasks.

    Attributes:
      units: U names; rows are sources, columns targets.
      values: (U, U) numbers, NaN for missing ones.
      reasons: (U, U) reasons in words, "" for numbers.
    """

    units: tuple[str, ...]
    values: npt.NDArray[np.float64]
    reasons: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, units: Sequence[str], metric: kernels.Numbers) -> "Matrix":
        """Convert a (U, U) kernel metric."""
        codes = np.asarray(metric.reasons)
        reasons = tuple(tuple(sentence_of(code) for code in row) for row in codes)
        return cls(tuple(units), np.asarray(metric.values, np.float64), reasons)


@dataclass(frozen=True)
class Values:
    """Result of a metric.

    Attributes:
      averaged: quantity -> number for the whole syllabus, NaN if missing.
      per_block: quantity -> block -> number; or quantity -> one number.
      reasons: quantity -> block -> why a number of `per_block` is missing; the key "" means the
        whole syllabus.
      matrices: title -> numbers for pairs of tasks.
    """

    averaged: Mapping[str, float]
    per_block: Mapping[str, Mapping[int, float] | float]
    reasons: Mapping[str, Mapping[int | str, str]] = field(default_factory=dict)
    matrices: Mapping[str, Matrix] = field(default_factory=dict)

    @classmethod
    def of_blocks(
        cls,
        blocks: Sequence[LoggedBlock],
        quantities: Mapping[str, kernels.Numbers | npt.ArrayLike],
        names: Mapping[str, str] | None = None,
        matrices: Mapping[str, Matrix] | None = None,
        reasons: Mapping[str, Mapping[int, str]] | None = None,
    ) -> "Values":
        """Convert (B,) numbers by quantity; the averaged value is the plain mean over blocks.

        Args:
          blocks: the B blocks.
          quantities: kernel metrics or arrays, (B,).
          names: quantity -> name of its averaged value; the default is ``global_<quantity>``.
          matrices: title -> numbers for pairs of tasks.
          reasons: quantity -> block -> why the number of an array is missing.

        Raises:
          ValueError: not one number per block.
        """
        averaged: dict[str, float] = {}
        per_block: dict[str, Mapping[int, float] | float] = {}
        missing: dict[str, dict[int | str, str]] = {}
        for quantity, metric in quantities.items():
            sentences = (reasons or {}).get(quantity, {})
            numbers, why = _numbers(blocks, quantity, metric, sentences)
            present = numbers[np.isfinite(numbers)]
            name = (names or {}).get(quantity, f"global_{quantity}")
            averaged[name] = float(present.mean()) if present.size else float("nan")
            per_block[quantity] = {
                block.index: float(number) for block, number in zip(blocks, numbers, strict=True)
            }
            missing[quantity] = {index: sentence for index, sentence in why.items()}  # noqa: C416
            if not present.size:
                missing[name] = {"": _common(why.values())}
        return cls(averaged, per_block, missing, dict(matrices or {}))

    def why(self, quantity: str, block: int | str = "") -> str:
        """Return why a number is missing."""
        return self.reasons.get(quantity, {}).get(block, NO_VALUE)


def _numbers(
    blocks: Sequence[LoggedBlock],
    quantity: str,
    metric: kernels.Numbers | npt.ArrayLike,
    reasons: Mapping[int, str],
) -> tuple[npt.NDArray[np.float64], dict[int, str]]:
    """(B,) numbers, and a sentence for each block without one."""
    if isinstance(metric, kernels.Numbers):
        numbers = np.asarray(metric.values, np.float64)
        codes = np.asarray(metric.reasons)
        sentences = {b.index: sentence_of(c) for b, c in zip(blocks, codes, strict=True) if c}
    else:
        numbers, sentences = np.asarray(metric, np.float64), dict(reasons)
    if numbers.shape != (len(blocks),):
        raise ValueError(
            f"{quantity!r} is {numbers.shape}; it must be one number per block, ({len(blocks)},)"
        )
    absent = [b.index for b, x in zip(blocks, numbers, strict=True) if not np.isfinite(x)]
    return np.where(np.isfinite(numbers), numbers, np.nan), {
        index: sentences.get(index, NO_VALUE) for index in absent
    }


def _common(sentences: Iterable[str]) -> str:
    """The sentence that all blocks share, else `NO_BLOCK`."""
    different = set(sentences)
    return different.pop() if len(different) == 1 else NO_BLOCK


class Metric(ABC):
    """A metric of the 2019 hierarchy; derive from `AgentMetric` or `ClassificationMetric`.

    Attributes:
      capability: one of `CAPABILITIES`, or "".
      description: one line.
      requires: ``{"syllabus_type": ..., "syllabus_subtype": ...}``; a subtype is one of `SUBTYPES`,
        a tuple of several, or "" for any.
    """

    capability: str = ""
    description: str = ""
    requires: ClassVar[Requirements] = {"syllabus_type": "", "syllabus_subtype": ""}

    @property
    @abstractmethod
    def name(self) -> str:
        """Name in the report; unique in a report."""

    @abstractmethod
    def calculate(self, dataframe: DataFrame, phase_info: DataFrame, metrics_df: DataFrame) -> Any:
        """Compute the metric of one log.

        Args:
          dataframe: pandas DataFrame of the rows of the log; ``by_block(dataframe, "reward")``
            arranges them by block.
          phase_info: pandas DataFrame, one row per block, with its phase, task and parameters.
          metrics_df: pandas DataFrame, one row per block, with the numbers of earlier metrics.

        Returns:
          One of: ``metrics_df`` with new columns, one number per block; a `Values`; a pair
          (averaged, per_block) as in `Values`; a mapping from a quantity to its numbers.
        """

    def validate(self, phase_info: DataFrame) -> None:  # noqa: B027 - a check is optional
        """Raise `ValueError` if the blocks of a log do not fit the metric."""

    def plot(self, result: Values) -> "Figure | None":
        """Draw the numbers of each block; return a matplotlib figure, or None without any.

        Raises:
          ValueError: matplotlib is not installed.
        """
        from evaluation.l2m.report2019.plots import per_block

        return per_block(self.name, result.per_block)

    def requirement(self, key: str) -> tuple[str, ...]:
        """Return the accepted values of ``syllabus_type`` or ``syllabus_subtype``; () for any."""
        required = self.requires.get(key) or ()
        return (required,) if isinstance(required, str) else tuple(required)


class AgentMetric(Metric):
    """A metric of agent learning, from the reward of episodes."""

    requires: ClassVar[Requirements] = {"syllabus_type": "agent", "syllabus_subtype": ""}


class ClassificationMetric(Metric):
    """A metric of classification learning, from the score of batches."""

    requires: ClassVar[Requirements] = {"syllabus_type": "class", "syllabus_subtype": ""}


class FunctionMetric(Metric):
    """Adapter of a custom metric with a row, see `evaluation.metrics.registry`."""

    def __init__(self, row: MetricRow, measure: str) -> None:
        """Wrap a metric.

        Args:
          row: of the metric.
          measure: column of the log whose mean over sub-episodes is an episode's value.
        """
        self._row, self._measure = replace(row, missing=row.missing or NO_VALUE), measure
        self.description, self.capability = row.text, row.capability

    @property
    def name(self) -> str:
        """Name in the row."""
        return self._row.name

    def calculate(
        self, dataframe: DataFrame, phase_info: DataFrame, metrics_df: DataFrame
    ) -> Values:
        """Call the function; a single number is that of the whole syllabus."""
        blocks = blocks_of(phase_info)
        names = tuple(dict.fromkeys(block.task for block in blocks))
        lifetime = Lifetime(
            by_block(dataframe, self._measure),
            counts_of(dataframe).astype(np.int64),
            train=np.array([block.mode == "train" for block in blocks]),
            tasks=np.array([names.index(block.task) for block in blocks]),
            task_names=names,
        )
        result = compute(self._row, lifetime, plain=True)
        if self._row.scope == "block" and result.values.ndim:
            codes = zip(blocks, result.reasons, strict=True)
            why = {block.index: sentence_of(code) for block, code in codes if code}
            return Values.of_blocks(blocks, {self.name: result.values}, reasons={self.name: why})
        number = float(over_all(result).values if result.values.ndim else result.values)
        return Values({f"global_{self.name}": number}, {self.name: number})


def as_values(returned: Any, before: DataFrame, blocks: Sequence[LoggedBlock]) -> Values:
    """Convert the result of a metric to `Values`.

    Args:
      returned: result of `Metric.calculate`.
      before: the table of metrics before the call.
      blocks: the blocks of the log.

    Raises:
      ValueError: a result that `Metric.calculate` may not return.
    """
    if isinstance(returned, Values):
        return returned
    if is_frame(returned):
        if len(returned) != len(before):
            raise ValueError(f"metrics_df has {len(returned)} rows; it must have {len(before)}")
        new = {
            str(name): column.to_numpy()
            for name, column in returned.items()
            if name not in before or not column.equals(before[name])
        }
        return Values.of_blocks(blocks, new, reasons=returned.attrs.get("reasons", {}))
    if isinstance(returned, tuple) and len(returned) == 2:
        averaged, per_block = returned
        return Values(_plain(averaged), {name: _cell(v) for name, v in dict(per_block).items()})
    if isinstance(returned, Mapping):
        arrays = {name: _column(blocks, numbers) for name, numbers in returned.items()}
        return Values.of_blocks(blocks, arrays)
    raise ValueError(
        f"calculate returned {type(returned).__name__}; return metrics_df with new columns, "
        "(averaged, per_block) or a mapping from quantities to numbers"
    )


def _plain(numbers: Mapping[str, float]) -> dict[str, float]:
    return {str(name): float(number) for name, number in numbers.items()}


def _cell(numbers: Any) -> Mapping[int, float] | float:
    if isinstance(numbers, Mapping):
        return {int(block): float(number) for block, number in numbers.items()}
    return float(numbers)


def _column(blocks: Sequence[LoggedBlock], numbers: Any) -> Any:
    """Numbers by block as (B,), NaN for a missing block; other values unchanged."""
    if not isinstance(numbers, Mapping):
        return numbers
    return np.array([float(numbers.get(block.index, np.nan)) for block in blocks])
