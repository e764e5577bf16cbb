"""Numbers of a report: every metric per block and per syllabus, with its interval."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evaluation.json_types import JsonObject
from evaluation.metrics import (
    DEFAULT_WINDOW,
    Summary,
    summarise_all,
    syllabus_scores,
)
from evaluation.metrics.registry import MetricRow
from evaluation.metrics.statistics import INTERVALS
from evaluation.metrics.table import bounds_of
from evaluation.records import UNIT_MEASURES, Records
from evaluation.report.blocks import lifetime_metrics
from evaluation.report.capabilities import Capability, capability_scores
from evaluation.report.entries import entry_of
from evaluation.report.lifelong import (
    LifelongSummary,
    common_ranges,
    lifelong_metrics,
    summarise_lifelong,
)
from evaluation.report.novelty import NoveltySummary, novelty_scores, summarise_scores


@dataclass(frozen=True)
class Report:
    """Summaries over the lifetimes of one run.

    Attributes:
      records: of the run.
      measure: the records' column used as an episode's value.
      window: smoothing window, episodes.
      blocks: metric name -> summary with (B,) arrays; "mean" is the plain mean of a block.
      syllabus: metric name -> summary with () arrays: the mean over the blocks of a lifetime.
      lifelong: the metrics of l2metrics 3.1, without its defects.
      novelty: scores of novelty predictions; None if there are none or no block is novel.
      rows: custom metrics that are among these.
      capabilities: scores for the core capabilities of the 2019 document.
    """

    records: Records
    measure: str
    window: int
    blocks: dict[str, Summary]
    syllabus: dict[str, Summary]
    lifelong: LifelongSummary
    novelty: NoveltySummary | None = None
    rows: tuple[MetricRow, ...] = ()
    capabilities: Mapping[str, Capability] = field(default_factory=dict)

    def to_json(self) -> JsonObject:
        """Return plain JSON values; a number that is missing is null with a reason beside it."""
        schedule, metadata = self.records.schedule, self.records.metadata
        return {
            **metadata,
            "syllabus": {"name": schedule.name, "source": schedule.source},
            "measure": self.measure,
            "window": self.window,
            "interval": INTERVALS,
            "episodes": schedule.num_episodes * self.records.num_lifetimes,
            "incomplete_episodes": int((~self.records.columns["complete"]).sum()),
            "metrics": {name: entry_of(s, ()) for name, s in self.syllabus.items()},
            "blocks": [
                {
                    "block": block.index,
                    "phase": f"{block.phase}.{block.mode}",
                    "task": block.task,
                    "parameters": dict(block.parameters),
                    "episodes": block.count,
                    "learning": block.learning,
                    "metrics": {name: entry_of(s, block.index) for name, s in self.blocks.items()},
                }
                for block in schedule.blocks
            ],
            "lifelong": lifelong_json(self.lifelong),
            **({} if self.novelty is None else {"novelty": self.novelty.to_json()}),
            "capabilities": {name: of.to_json() for name, of in self.capabilities.items()},
            **({"own_metrics": custom_metrics_json(self.rows)} if self.rows else {}),
        }


def custom_metrics_json(rows: Sequence[MetricRow]) -> JsonObject:
    """Return descriptions of custom metrics as plain JSON values, by name."""
    fields = ("scope", "direction", "unit", "text", "source", "capability")
    return {row.name: {name: getattr(row, name) for name in fields} for row in rows}


def lifelong_json(lifelong: LifelongSummary) -> JsonObject:
    """Return the lifelong-learning metrics as plain JSON values, over lifetimes and by task."""
    ranges = lifelong.ranges
    return {
        "normalization_data_range": None
        if ranges is None
        else {task: {"min": low, "max": high} for task, (low, high) in ranges.items()},
        "metrics": {name: entry_of(summary, ()) for name, summary in lifelong.lifetime.items()},
        "tasks": {
            task: {name: entry_of(summary, index) for name, summary in lifelong.by_task.items()}
            for index, task in enumerate(lifelong.tasks)
        },
    }


def summarise_records(
    records: Records,
    measure: str = "performance",
    window: int = DEFAULT_WINDOW,
    seed: int = 0,
    rows: Sequence[MetricRow] = (),
) -> Report:
    """Compute every metric of a run, with 95 % intervals over its lifetimes.

    Args:
      records: of L lifetimes.
      measure: column used as an episode's value, "performance", "reward" or "length".
      window: odd smoothing window, episodes.
      seed: of the bootstrap.
      rows: custom metrics, computed as well.

    Raises:
      ValueError: an unknown measure, a window that is even or not positive, or a custom metric
        that cannot be computed.
    """
    records = records.by_episode()
    ranges = common_ranges([records], measure)
    lifelong = lifelong_metrics(records, measure, ranges, rows)
    metrics = lifetime_metrics(records, measure, window) | dict(lifelong.custom_blocks)
    scores = {name: syllabus_scores(metric) for name, metric in metrics.items()}
    unit = measure in UNIT_MEASURES
    bounds = bounds_of(rows, unit)
    blocks, syllabus = (summarise_all(m, seed, bounds=bounds) for m in (metrics, scores))
    detection = novelty_scores(records)
    novelty = None if detection is None else summarise_scores(records, detection, seed)
    whole = {**scores, **lifelong.lifetime, **({} if detection is None else detection.lifetime)}
    capabilities = capability_scores([whole], rows, seed, unit)
    numbers = blocks, syllabus, summarise_lifelong(lifelong, ranges, seed, bounds), novelty
    return Report(records, measure, window, *numbers, tuple(rows), capabilities)
