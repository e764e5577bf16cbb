"""Transfer between tasks over runs of several syllabi: the area between learning curves."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from evaluation.json_types import JsonObject
from evaluation.metrics.abc_transfer import abc_transfer_matrix
from evaluation.metrics.statistics import DEFAULT_LEVEL
from evaluation.records import Records
from evaluation.report.entries import number


@dataclass(frozen=True)
class CurveTransfer:
    """Area between two learning curves of a task: learned after another task, and learned first.

    Attributes:
      agent: whose curves they are.
      earlier: the task learned before.
      task: the task whose curves are compared.
      area: mean over lifetimes, in the unit of performance; above 0 if the earlier task helped.
      low: lower end of its 95 % interval, by Welch's t; NaN if either task order has one lifetime.
      high: upper end.
      lifetimes: number of lifetimes that learned the task after the other one.
    """

    agent: str
    earlier: str
    task: str
    area: float
    low: float
    high: float
    lifetimes: int

    def to_json(self) -> JsonObject:
        """Return plain JSON values."""
        ends = {name: number(getattr(self, name)) for name in ("area", "low", "high")}
        names = {"agent": self.agent, "from": self.earlier, "to": self.task}
        return {**names, **ends, "lifetimes": self.lifetimes}


def between_tasks(runs: Sequence[Records], measure: str = "performance") -> list[CurveTransfer]:
    """Compare learning curves of tasks that are learned first and after another task.

    Args:
      runs: records of several syllabi.
      measure: column used as an episode's value.

    Returns:
      One `CurveTransfer` for each agent and each pair of consecutive trained tasks, of which the
      second is learned for the first time and comes first in another run of the agent.
    """
    by_agent: dict[str, list[Records]] = {}
    for records in runs:
        by_agent.setdefault(str(records.metadata.get("agent", "")), []).append(records)
    return [
        transfer
        for agent, group in by_agent.items()
        for transfer in _of_agent(agent, group, measure)
    ]


def _of_agent(agent: str, runs: Sequence[Records], measure: str) -> Iterator[CurveTransfer]:
    """Compare the learning curves of one agent."""
    first: dict[str, dict[Hashable, np.ndarray]] = {}
    after: dict[tuple[str, str], dict[Hashable, np.ndarray]] = {}
    for records in runs:
        values, counts = records.by_episode().by_block(measure)
        trained: list[str] = []
        for block in records.schedule.blocks:
            if block.mode != "train":
                continue
            task = " ".join([block.task, *(f"{path}={value}" for path, value in block.parameters)])
            of_block = values[:, block.index, : counts[block.index]]
            # Syllabi that begin alike have the same lifetimes of a seed until they differ.
            named: dict[Hashable, np.ndarray] = {
                (name, curve.tobytes()): curve
                for name, curve in zip(records.lifetime_names(), of_block, strict=True)
            }
            if not trained:
                first.setdefault(task, {}).update(named)
            elif task not in trained:
                after.setdefault((trained[-1], task), {}).update(named)
            trained.append(task)
    for (earlier, task), group in after.items():
        if task not in first:
            continue
        curves, alone = list(group.values()), list(first[task].values())
        length = min(map(len, [*curves, *alone]))
        baselines = [curve[:length] for curve in alone]
        areas, around = (_areas(earlier, task, baselines, each) for each in (curves, baselines))
        mean = float(np.nanmean(areas))
        yield CurveTransfer(agent, earlier, task, mean, *_interval(areas, around), len(areas))


def _areas(
    earlier: str, task: str, baselines: Sequence[np.ndarray], curves: Sequence[np.ndarray]
) -> np.ndarray:
    """(L,) areas between curves of a task and the mean of its baselines."""
    pair = earlier, task
    return abc_transfer_matrix({task: baselines}, {pair: curves}, divisions=1)[pair][:, 0]


def _interval(areas: np.ndarray, around: np.ndarray) -> tuple[float, float]:
    """Interval of the mean area, which varies with its lifetimes and those of the baseline.

    Areas are linear in both curves, so this is Welch's interval of a difference of two means.

    Args:
      areas: (L,) areas between curves and the mean of the baselines.
      around: (M,) areas between the baselines and their mean, of mean 0.
    """
    from scipy.stats import ttest_ind  # here, because importing it takes longer than a score

    after, alone = (part[np.isfinite(part)] for part in (areas, around))
    if min(len(after), len(alone)) < 2:
        return np.nan, np.nan
    if np.ptp(after) == np.ptp(alone) == 0:
        return float(after.mean()), float(after.mean())
    return ttest_ind(after, alone, equal_var=False).confidence_interval(DEFAULT_LEVEL)
