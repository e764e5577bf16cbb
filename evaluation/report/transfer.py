"""Transfer between tasks over runs of several syllabi: the area between learning curves."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from evaluation.json_types import JsonObject
from evaluation.metrics import bootstrap_interval
from evaluation.metrics.abc_transfer import abc_transfer_matrix
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
      low: lower end of its 95 % interval.
      high: upper end.
      lifetimes: number of lifetimes.
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


def between_tasks(
    runs: Sequence[Records], measure: str = "performance", seed: int = 0
) -> list[CurveTransfer]:
    """Compare learning curves of tasks that are learned first and after another task.

    Args:
      runs: records of several syllabi.
      measure: column used as an episode's value.
      seed: of the bootstrap.

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
        for transfer in _of_agent(agent, group, measure, seed)
    ]


def _of_agent(
    agent: str, runs: Sequence[Records], measure: str, seed: int
) -> Iterator[CurveTransfer]:
    """Compare the learning curves of one agent."""
    first: dict[str, list[np.ndarray]] = {}
    after: dict[tuple[str, str], list[np.ndarray]] = {}
    for records in runs:
        values, counts = records.by_episode().by_block(measure)
        trained: list[str] = []
        for block in records.schedule.blocks:
            if block.mode != "train":
                continue
            task = " ".join([block.task, *(f"{path}={value}" for path, value in block.parameters)])
            curves = list(values[:, block.index, : counts[block.index]])
            if not trained:
                first.setdefault(task, []).extend(curves)
            elif task not in trained:
                after.setdefault((trained[-1], task), []).extend(curves)
            trained.append(task)
    pairs = {pair: curves for pair, curves in after.items() if pair[1] in first}
    for (earlier, task), areas in abc_transfer_matrix(first, pairs, divisions=1).items():
        whole = areas[:, 0]
        interval = bootstrap_interval(whole, seed)
        ends = float(interval.low), float(interval.high)
        mean = float(np.nanmean(whole))
        yield CurveTransfer(agent, earlier, task, mean, *ends, len(whole))
