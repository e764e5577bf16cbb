"""The predefined metrics of the 2019 framework, for agents and for classification.

Each is a thin class around a kernel of `evaluation.metrics`, which describes the editions.
"""

import functools
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import jax
import numpy as np
import numpy.typing as npt

from evaluation import metrics as kernels
from evaluation.l2m.report2019.base import (
    AgentMetric,
    ClassificationMetric,
    Matrix,
    Metric,
    Requirements,
    Values,
)
from evaluation.l2m.report2019.frames import DataFrame, How, blocks_of, by_block, counts_of
from evaluation.l2m.report2019.table import LoggedBlock
from evaluation.metrics import DEFAULT_WINDOW, IndexConvention, Numbers, Pairing
from evaluation.metrics import editions2019 as editions
from evaluation.metrics import transfer2019 as transfers
from evaluation.metrics.editions2019 import Edition

Subtype = Literal["CL", "ANT_A", "ANT_B", "ANT_C"]

_WITH_TRANSFER = ("ANT_B", "ANT_C")


@dataclass(frozen=True)
class PredefinedSettings:
    """Settings of the predefined metrics.

    Attributes:
      measure: column of the log with an episode's performance.
      window: odd number of episodes under the moving average.
      edition: "2019", the formulas of the document, or "v0.2" or "v0.3", those of the packages.
      index: reported episode of a window in the edition "2019": "end", "start" or "centre".
      experts: saturation value of the single-task expert by task name.
    """

    measure: str = "reward"
    window: int = DEFAULT_WINDOW
    edition: Edition = "2019"
    index: IndexConvention = "end"
    experts: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the settings.

        Raises:
          ValueError: an unknown edition or index, or a window that is even or not positive.
        """
        editions.check_edition(self.edition)
        if self.index not in ("end", "start", "centre"):
            raise ValueError(f"index must be end, start or centre, not {self.index!r}")
        if self.window < 1 or self.window % 2 == 0:
            raise ValueError(f"window must be an odd number from 1, not {self.window}")


@dataclass(frozen=True)
class _Log:
    """A log by block, with the settings of a metric.

    Attributes:
      data: pandas DataFrame of its rows.
      blocks: the B blocks.
      settings: of the metric.
    """

    data: DataFrame
    blocks: tuple[LoggedBlock, ...]
    settings: PredefinedSettings

    @property
    def counts(self) -> npt.NDArray[np.int32]:
        """Episodes of each block, (B,)."""
        return counts_of(self.data)

    def column(self, name: str = "", how: How = "mean") -> npt.NDArray[np.float64]:
        """A column, (B, T), as `by_block`; by default that of the measure."""
        return by_block(self.data, name or self.settings.measure, how)

    def learning(self, index: IndexConvention | None = None) -> tuple[Numbers, Numbers]:
        """Saturation value and time to saturation, (B,)."""
        settings = self.settings
        index = index or settings.index
        return _saturation(self.column(), self.counts, settings.window, settings.edition, index)


class _Predefined(Metric):
    """A metric with settings and a title, which is its name."""

    title: ClassVar[str] = ""

    def __init__(self, settings: PredefinedSettings | None = None) -> None:
        self.settings = settings or self.standard()

    @classmethod
    def standard(cls) -> PredefinedSettings:
        """Return the default settings."""
        return PredefinedSettings(
            measure="score" if issubclass(cls, ClassificationMetric) else "reward"
        )

    @property
    def name(self) -> str:
        """Name in the report."""
        return self.title

    def calculate(
        self, dataframe: DataFrame, phase_info: DataFrame, metrics_df: DataFrame
    ) -> Values:
        """Compute the metric."""
        return self._values(_Log(dataframe, blocks_of(phase_info), self.settings))

    @abstractmethod
    def _values(self, log: _Log) -> Values:
        """The numbers of a log."""


class _OfBlocks(_Predefined):
    """A metric with numbers of each block.

    Attributes:
      averages: quantity -> name of its mean over blocks, if it is not ``global_<quantity>``.
    """

    averages: ClassVar[Mapping[str, str]] = {}

    def _values(self, log: _Log) -> Values:
        return Values.of_blocks(log.blocks, self._quantities(log), self.averages)

    @abstractmethod
    def _quantities(self, log: _Log) -> Mapping[str, Numbers]:
        """Numbers of each block, (B,), by name."""


class _Saturation(_OfBlocks):
    title = "Average Within Block Saturation Calculation"
    capability = "continual_learning"
    description = "Highest smoothed performance of a block, and the time to reach it"
    averages: ClassVar[Mapping[str, str]] = {
        "saturation_value": "global_within_block_saturation",
        "eps_to_saturation": "global_num_eps_to_saturation",
    }

    def _quantities(self, log: _Log) -> Mapping[str, Numbers]:
        return dict(zip(self.averages, log.learning(), strict=True))


class _Integral(_OfBlocks):
    """Normalised integral; compare training blocks only."""

    title = "Normalized Integral of Performance"
    capability = "continual_learning"
    description = "Sum of the smoothed performance of a block over its length"

    def _quantities(self, log: _Log) -> Mapping[str, Numbers]:
        integral = _integral(log.column(), log.counts, self.settings.window)
        return {"normalized_integral": integral}


class _Recovery(_OfBlocks):
    """Recovery time after a change of training.

    In the edition "2019" it belongs to the training block before the change and counts episodes of
    the task's next training block. In the others it belongs to the block after the change.
    """

    title = "Recovery Time"
    capability = "continual_learning"
    description = "Episodes until performance has recovered from a change"

    def _quantities(self, log: _Log) -> Mapping[str, Numbers]:
        settings = self.settings
        if settings.edition == "2019":
            pairing = kernels.pair_blocks(log.blocks).recovery
        else:
            pairing = editions.pair_changes(log.blocks)
        window, edition, index = settings.window, settings.edition, settings.index
        time = _recovery(log.column(), log.counts, pairing, window, edition, index)
        return {"recovery_time": time}


class _Maintenance(_OfBlocks):
    title = "Performance Maintenance on Test Sets"
    capability = "adapt_to_new_tasks"
    description = "Training minus later test; a positive saturation difference is forgetting"

    def _quantities(self, log: _Log) -> Mapping[str, Numbers]:
        if self.settings.edition == "2019":
            pairing = kernels.pair_blocks(log.blocks).maintenance
        else:
            pairing = editions.pair_first_training(log.blocks)
        saturation, time = log.learning()
        return {
            "saturation_difference": kernels.performance_maintenance(saturation, pairing),
            "eps_to_sat_dif": kernels.performance_maintenance(time, pairing),
        }


class _Relative(_OfBlocks):
    title = "Performance relative to Single Task Expert"
    capability = "adapt_to_new_tasks"
    description = "Saturation value over that of the single-task expert of the task"

    def _quantities(self, log: _Log) -> Mapping[str, Numbers]:
        experts = self.settings.experts
        # A data set may have either of its logged names, or their common name.
        listed = (block for block in reversed(log.blocks) if block.class_name in experts)
        by_task = {block.task: experts[block.class_name] for block in listed}
        values = transfers.expert_values(log.blocks, {**by_task, **experts})
        return {"STE_normalized_saturation": _relative(log.learning()[0], values)}


class _Transfer(_Relative):
    title = "Transfer Matrix"
    capability = "adapt_to_new_tasks"
    description = "Tests of a task before (forward) and after (reverse) its training over the STE"

    def __init__(
        self, settings: PredefinedSettings | None = None, parametric: bool = False
    ) -> None:
        """Make the metric; ``parametric`` adds transfer between variants of a task (ANT_C)."""
        super().__init__(settings)
        self.parametric = parametric

    def _values(self, log: _Log) -> Values:
        """Transfer of each test block, and the matrices."""
        (relative,) = self._quantities(log).values()
        single = self.settings.edition != "2019"
        pairs = {"": transfers.pair_transfer(log.blocks, "task", single)}
        if self.parametric and _has_variants(log.blocks):
            pairs["parametric_"] = transfers.pair_transfer(log.blocks, "variant")
        quantities, matrices = {}, {}
        for prefix, pair in pairs.items():
            names = [unit if isinstance(unit, str) else " ".join(unit) for unit in pair.units]  # type: ignore[arg-type]
            for word, direction in (("forward", pair.forward), ("reverse", pair.reverse)):
                name = f"{prefix}{word}_transfer"
                quantities[name] = _block_transfer(relative, direction)
                matrices[name] = Matrix.of(names, _transfer_matrix(relative, direction))
        return Values.of_blocks(log.blocks, quantities, matrices=matrices)


class _Mean(_Predefined):
    title = "Global Mean"
    description = "Mean performance over all episodes of the syllabus"

    def _values(self, log: _Log) -> Values:
        """The mean over episodes, each the mean over its sub-episodes."""
        values = log.column()
        inside = np.arange(values.shape[1]) < log.counts[:, None]
        mean = {"global_mean": float(values[inside].mean())}
        return Values(mean, mean)


class WithinBlockSaturation(_Saturation, AgentMetric):
    """Saturation value and time to saturation of each block."""


class NormalizedIntegral(_Integral, AgentMetric):
    """Normalised integral of reward of each block."""


class RecoveryTime(_Recovery, AgentMetric):
    """Episodes until performance has recovered from a change."""


class PerformanceMaintenance(_Maintenance, AgentMetric):
    """Training minus later test."""


class STERelativePerf(_Relative, AgentMetric):
    """Saturation value over the single-task expert's."""


class TransferMatrix(_Transfer, AgentMetric):
    """Forward and reverse transfer, per test block and per pair of tasks."""

    requires: ClassVar[Requirements] = {
        "syllabus_type": "agent",
        "syllabus_subtype": _WITH_TRANSFER,
    }


class GlobalMean(_Mean, AgentMetric):
    """Mean reward over all episodes."""


class AverageReward(_OfBlocks, AgentMetric):
    """Mean reward over the sub-episodes of each block."""

    title = "Average Achieved Reward"
    capability = "continual_learning"
    description = "Mean reward of the sub-episodes of a block"

    def _quantities(self, log: _Log) -> Mapping[str, Numbers]:
        totals, rows = log.column(how="sum"), log.column(how="count")
        return {"avg_achieved_reward": _average(totals, rows, log.counts)}


class RewardPerStep(_OfBlocks, AgentMetric):
    """Reward of each block over its steps."""

    title = "Reward Per Step"
    capability = "continual_learning"
    description = "Reward of a block over its steps"

    def _quantities(self, log: _Log) -> Mapping[str, Numbers]:
        totals, steps = log.column(how="sum"), log.column("steps", "sum")
        return {"reward_per_step": _average(totals, steps, log.counts)}


class AverageLearning(_OfBlocks, AgentMetric):
    """Reward per episode until saturation, of each training block."""

    title = "Average Learning"
    capability = "continual_learning"
    description = "Reward per episode until saturation"

    def _quantities(self, log: _Log) -> Mapping[str, Numbers]:
        totals, edition = log.column(how="sum"), self.settings.edition
        numbers = log.column("task", "first")
        offsets = np.nan_to_num(numbers - numbers[:, :1], nan=0)
        if edition == "2019":  # positions of episodes instead of their numbers
            offsets = np.broadcast_to(np.arange(offsets.shape[1]), offsets.shape)
        time = log.learning("end" if edition == "2019" else None)[1]
        training = np.array([block.mode == "train" for block in log.blocks])
        learning = _average_learning(totals, log.counts, time, training, edition, offsets)
        return {"average_learning": learning}


class ClassificationSaturation(_Saturation, ClassificationMetric):
    """Saturation value and time to saturation of the score of each block, in batches."""


class ClassificationIntegral(_Integral, ClassificationMetric):
    """Normalised integral of the score of each block."""


class ClassificationRecovery(_Recovery, ClassificationMetric):
    """Batches until the score has recovered from a change."""


class ClassificationMaintenance(_Maintenance, ClassificationMetric):
    """Score on training data minus later score on test data."""


class ClassificationSTERelative(_Relative, ClassificationMetric):
    """Saturation value of the score over the single-task expert's."""


class ClassificationTransfer(_Transfer, ClassificationMetric):
    """Forward and reverse transfer between data sets."""

    requires: ClassVar[Requirements] = {
        "syllabus_type": "class",
        "syllabus_subtype": _WITH_TRANSFER,
    }


class ClassificationMean(_Mean, ClassificationMetric):
    """Mean score over all batches."""


def agent_metrics(subtype: str, settings: PredefinedSettings) -> list[Metric]:
    """Return the predefined metrics of agent learning.

    Args:
      subtype: of the syllabus.
      settings: of the metrics; the list of metrics depends on the edition.
    """
    by_subtype = _EDITION_METRICS[settings.edition]
    kinds: _Kinds = (WithinBlockSaturation, *by_subtype["all"], *by_subtype.get(subtype, ()))
    transfer = [] if settings.edition == "v0.2" else _transfer(subtype, settings)
    return [*(kind(settings) for kind in kinds), *transfer]


_Kinds = tuple[type[_Predefined], ...]

_EDITION_METRICS: dict[str, dict[str, _Kinds]] = {
    "2019": {
        "all": (
            *(NormalizedIntegral, RecoveryTime, PerformanceMaintenance, STERelativePerf),
            *(RewardPerStep, AverageLearning, AverageReward, GlobalMean),
        )
    },
    "v0.2": {
        "all": (),
        "ANT_A": (STERelativePerf, PerformanceMaintenance),
        "ANT_B": (STERelativePerf,),
        "ANT_C": (STERelativePerf,),
    },
    "v0.3": {
        "all": (RewardPerStep, AverageLearning, AverageReward, RecoveryTime),
        "ANT_A": (STERelativePerf, PerformanceMaintenance),
        "ANT_B": (STERelativePerf, PerformanceMaintenance),
        "ANT_C": (STERelativePerf, PerformanceMaintenance),
    },
}
"""Predefined metrics by edition, for all subtypes and for one; transfer is added to them."""


def _transfer(subtype: str, settings: PredefinedSettings) -> list[Metric]:
    if subtype not in _WITH_TRANSFER:
        return []
    return [TransferMatrix(settings, parametric=subtype == "ANT_C")]


def classification_metrics(subtype: str, settings: PredefinedSettings) -> list[Metric]:
    """Return the predefined metrics of classification learning.

    Args:
      subtype: of the syllabus.
      settings: of the metrics.
    """
    kinds: list[type[_Predefined]] = [ClassificationSaturation, ClassificationIntegral]
    kinds += [ClassificationRecovery, ClassificationMaintenance, ClassificationSTERelative]
    kinds += [ClassificationMean]
    metrics: list[Metric] = [kind(settings) for kind in kinds]
    if subtype in _WITH_TRANSFER:
        metrics.append(ClassificationTransfer(settings, parametric=subtype == "ANT_C"))
    return metrics


def subtype_problems(blocks: tuple[LoggedBlock, ...], subtype: str) -> list[str]:
    """Return violations of the rules of a log's subtype; they do not prevent metrics.

    Source: L2M Metrics Framework, 4 Dec 2019, chapter 3.
    """
    tasks = list(dict.fromkeys(block.task for block in blocks))
    problems = []
    if blocks[0].mode != "train":
        problems.append(f"block {blocks[0].index} is a test block; the first must be training")
    if subtype == "CL":
        if len(tasks) > 1:
            problems.append(f"CL has one task, and this log has {len(tasks)}: {', '.join(tasks)}")
        return problems
    if len(tasks) < 2:
        problems.append(f"{subtype} has two tasks or more, and this log has {tasks[0]} only")
    if all(block.mode == "train" for block in blocks):
        problems.append(f"{subtype} needs test phases, and this log has none")
    if subtype in ("ANT_A", "ANT_B") and _has_variants(blocks):
        problems.append(f"{subtype} has no parameter variation, and this log has; use ANT_C")
    if subtype == "ANT_C" and not _has_variants(blocks):
        problems.append("ANT_C has parameter variation, and this log has none; use ANT_B")
    return problems


def _has_variants(blocks: tuple[LoggedBlock, ...]) -> bool:
    """Whether a task is played with more than one set of parameters."""
    variants = {(block.task, block.parameters) for block in blocks}
    return len(variants) > len({task for task, _ in variants})


# Compiled kernels -------------------------------------------------------------------------------


@functools.partial(jax.jit, static_argnames=("window", "edition", "index"))
def _saturation(
    values: npt.NDArray[np.float64],
    counts: npt.NDArray[np.int32],
    window: int,
    edition: Edition,
    index: IndexConvention,
) -> tuple[Numbers, Numbers]:
    return (
        editions.saturation(values, counts, window, edition),
        editions.episodes_to_saturation(values, counts, window, edition, index),
    )


@functools.partial(jax.jit, static_argnames=("window", "edition", "index"))
def _recovery(
    values: npt.NDArray[np.float64],
    counts: npt.NDArray[np.int32],
    pairing: Pairing,
    window: int,
    edition: Edition,
    index: IndexConvention,
) -> Numbers:
    if edition == "2019":
        return kernels.recovery_time(values, counts, pairing, window, index)
    return editions.recovery_since_change(values, counts, pairing, window, edition)


_integral = jax.jit(kernels.normalized_integral, static_argnames=("window",))
_average = jax.jit(editions.average_of)
_average_learning = jax.jit(editions.average_learning, static_argnames=("edition",))
_relative = jax.jit(transfers.ste_relative)
_block_transfer = jax.jit(transfers.transfer)
_transfer_matrix = jax.jit(transfers.transfer_matrix)
