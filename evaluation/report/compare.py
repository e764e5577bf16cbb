"""Comparison of two runs of one syllabus: every metric of both, and which agent does better."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from evaluation.json_types import JsonObject
from evaluation.metrics import (
    DEFAULT_WINDOW,
    METRIC_NAMES,
    Improvement,
    Numbers,
    Reason,
    Summary,
    holm,
    probability_of_improvement,
    summarise_all,
    syllabus_scores,
)
from evaluation.metrics.l2m.lifetimes import LIFETIME_METRICS
from evaluation.metrics.reasons import sentence_of
from evaluation.metrics.registry import Direction, MetricRow
from evaluation.metrics.statistics import INTERVALS, Bounds
from evaluation.metrics.table import METRICS, bounds_of, names_of
from evaluation.records import UNIT_MEASURES, Records
from evaluation.report.blocks import lifetime_metrics
from evaluation.report.entries import Index, entry_of, number
from evaluation.report.lifelong import Lifelong, common_ranges, lifelong_metrics
from evaluation.report.novelty import novelty_scores
from evaluation.schedule import Block, Schedule

BY_BLOCK: Final = ("mean", *METRIC_NAMES)
"""Metrics with a number for each block; "mean" is the plain mean of a block."""

PREDICTED: Final = (
    *names_of("predictions", "lifetime"),
    *("cdt", "found", "false_alarms", "correct_rejections", "mean_delay"),
    *("amoc_wsu", "amoc_delay"),
)
"""Lifetime metrics of novelty predictions; compared where both agents predict."""

COMPARED: Final = (*BY_BLOCK, *LIFETIME_METRICS, *PREDICTED)
"""Metrics that can be compared."""

DIRECTIONS: Final[Mapping[str, Direction]] = {row.name: row.direction for row in METRICS}
"""Which values of a metric are better, given that higher values of the measure are."""


@dataclass(frozen=True)
class Comparison:
    """Two runs of one syllabus.

    Attributes:
      first: records of the first run.
      second: records of the second run.
      measure: the records' column used as an episode's value.
      window: smoothing window, episodes.
      paired: whether lifetimes are compared only with those of the same number.
      blocks: metric name -> comparison for each block, (B,).
      syllabus: metric name -> comparison of the mean over the blocks, ().
      lifelong: the metrics of l2metrics 3.1, without its defects.
    """

    first: Records
    second: Records
    measure: str
    window: int
    paired: bool
    blocks: Mapping[str, "MetricComparison"]
    syllabus: Mapping[str, "MetricComparison"]
    lifelong: "LifelongComparison"

    def to_json(self) -> JsonObject:
        """Return plain JSON values; a number that is missing is null with a reason beside it."""
        return {
            "syllabus": {"name": self.first.schedule.name, "source": self.first.schedule.source},
            "measure": self.measure,
            "window": self.window,
            "interval": INTERVALS,
            "paired": self.paired,
            "test": "exact sign test" if self.paired else "Mann-Whitney, normal approximation",
            "correction": "Holm, over all blocks and metrics, and over all metrics of the syllabus",
            "runs": [
                {**run.metadata, "lifetimes": run.num_lifetimes}
                for run in (self.first, self.second)
            ],
            "metrics": {name: c.to_json(()) for name, c in self.syllabus.items()},
            "blocks": [
                {
                    "block": block.index,
                    "phase": f"{block.phase}.{block.mode}",
                    "task": block.task,
                    "parameters": dict(block.parameters),
                    "metrics": {name: c.to_json(block.index) for name, c in self.blocks.items()},
                }
                for block in self.first.schedule.blocks
            ],
            "lifelong": self.lifelong.to_json(),
        }


@dataclass(frozen=True)
class LifelongComparison:
    """Comparison of the lifelong-learning metrics (l2metrics 3.1) of two runs.

    Attributes:
      tasks: K names of the tasks that both have.
      lifetime: metric name -> comparison of whole lifetimes, ().
      by_task: metric name -> comparison for each task, (K,).
    """

    tasks: tuple[str, ...]
    lifetime: Mapping[str, "MetricComparison"]
    by_task: Mapping[str, "MetricComparison"]

    def to_json(self) -> JsonObject:
        """Return plain JSON values; a number that is missing is null with a reason beside it."""
        return {
            "metrics": {name: c.to_json(()) for name, c in self.lifetime.items()},
            "tasks": {
                task: {name: c.to_json(index) for name, c in self.by_task.items()}
                for index, task in enumerate(self.tasks)
            },
        }


@dataclass(frozen=True)
class MetricComparison:
    """Comparison of one metric; arrays have the shape of one lifetime's values.

    Attributes:
      name: of the metric.
      first: summary of the first run.
      second: summary of the second run.
      improvement: probability that the first run does better, in the sense of `better`; for "none"
        that its values are higher.
      corrected: p-values corrected for the number of comparisons.
      better: which values are better: "higher", "lower" or "none".
    """

    name: str
    first: Summary
    second: Summary
    improvement: Improvement
    corrected: np.ndarray
    better: Direction

    def to_json(self, index: Index) -> JsonObject:
        """Return the numbers at one index as plain JSON values."""
        values: JsonObject = {
            "better": self.better,
            "first": entry_of(self.first, index),
            "second": entry_of(self.second, index),
        }
        improvement: JsonObject = {
            name: number(getattr(self.improvement, name)[index])
            for name in ("probability", "low", "high", "p_value")
        }
        improvement["p_value_corrected"] = number(self.corrected[index])
        reason = self.why_missing(index)
        return values | {
            "improvement": improvement | ({"reason": reason} if reason else {}),
        }

    def why_missing(self, index: Index) -> str:
        """Why a probability or its interval is missing; empty if neither is."""
        for ordinal, summary in (("first", self.first), ("second", self.second)):
            if summary.reasons[index] != Reason.NONE:
                return f"{ordinal} run: {sentence_of(summary.reasons[index])}"
        # Both runs have two values, but not in the same lifetimes.
        return sentence_of(self.improvement.reasons[index])


UNFINISHED = (Reason.NEVER_RECOVERED, Reason.NOT_REPORTED_IN_BLOCK)
"""Reasons of a time that is missing because what it lasts to never came."""


def check_same_syllabus(first: Schedule, second: Schedule) -> None:
    """Refuse runs that cannot be compared block by block.

    Raises:
      ValueError: names the first difference.
    """
    for one, other in zip(first.blocks, second.blocks, strict=False):
        if one != other:
            raise ValueError(
                f"the runs played different syllabi: block {one.index} is {_in_words(one)} in the "
                f"first and {_in_words(other)} in the second"
            )
    if len(first.blocks) != len(second.blocks):
        raise ValueError(
            f"the runs played different syllabi: {len(first.blocks)} blocks in the first and "
            f"{len(second.blocks)} in the second"
        )


def _in_words(block: Block) -> str:
    variant = " ".join([block.task, *(f"{path}={value}" for path, value in block.parameters)])
    learning = "" if block.learning == (block.mode == "train") else f", learning {block.learning}"
    return f"{block.phase}.{block.mode} of {block.count} episodes of {variant}{learning}"


def common_lifetimes(first: Records, second: Records) -> tuple[Records, Records]:
    """Both runs, reduced to the lifetimes that they have in common.

    Lifetimes with the same number, seed and syllabus start their episodes alike in every run, for
    any number of lifetimes.

    Raises:
      ValueError: different seeds, or no lifetime in common.
    """
    seeds = [run.metadata.get("seed") for run in (first, second)]
    if seeds[0] != seeds[1] or seeds[0] is None:
        raise ValueError(f"pairs need runs of one seed, not of {seeds[0]} and {seeds[1]}")
    spans = [
        (run.first_lifetime, run.first_lifetime + run.num_lifetimes) for run in (first, second)
    ]
    start, stop = max(span[0] for span in spans), min(span[1] for span in spans)
    if start >= stop:
        words = [f"{begin} to {end - 1}" for begin, end in spans]
        raise ValueError(f"the runs have no lifetime in common: {words[0]} and {words[1]}")
    return _cut(first, start, stop), _cut(second, start, stop)


def _cut(run: Records, start: int, stop: int) -> Records:
    """The lifetimes of a run whose numbers are in [start, stop)."""
    rows = slice(start - run.first_lifetime, stop - run.first_lifetime)
    columns = {name: column[rows] for name, column in run.columns.items()}
    return replace(run, columns=columns, first_lifetime=start)


def compare_records(
    first: Records,
    second: Records,
    metrics: Sequence[str] = COMPARED,
    measure: str = "performance",
    window: int = DEFAULT_WINDOW,
    seed: int = 0,
    paired: bool = False,
    rows: Sequence[MetricRow] = (),
) -> Comparison:
    """Compute every metric of two runs and the probability that the first does better.

    Higher values of the measure are taken to be better. Where lower values of a metric are, by
    `DIRECTIONS` or the row of a custom metric, the probability counts lower values.

    Args:
      first: records of one agent.
      second: records of another, of the same syllabus.
      metrics: some of `COMPARED`.
      measure: column used as an episode's value, "performance", "reward" or "length".
      window: odd smoothing window, episodes.
      seed: of the bootstrap.
      paired: compare only lifetimes of the same number, as far as both runs have them; the runs
        must have one seed.
      rows: custom metrics, compared as well.

    Raises:
      ValueError: different syllabi, no lifetimes that make pairs, an unknown metric or measure, a
        bad window or seed, or a custom metric that cannot be computed.
    """
    for name in metrics:
        if name not in COMPARED:
            raise ValueError(f"metric is {name!r}; it must be one of {', '.join(COMPARED)}")
    check_same_syllabus(first.schedule, second.schedule)
    first, second = first.by_episode(), second.by_episode()
    if paired:
        first, second = common_lifetimes(first, second)
    ranges = common_ranges([first, second], measure)
    one, other = (lifelong_metrics(run, measure, ranges, rows) for run in (first, second))
    novelty = [novelty_scores(run) for run in (first, second)]
    if novelty[0] is not None and novelty[1] is not None:
        one = replace(one, lifetime={**one.lifetime, **novelty[0].lifetime})
        other = replace(other, lifetime={**other.lifetime, **novelty[1].lifetime})
    blocks: list[dict[str, Numbers]] = []
    for run, lifelong in ((first, one), (second, other)):
        computed = lifetime_metrics(run, measure, window)
        selection = {name: computed[name] for name in dict.fromkeys(metrics) if name in BY_BLOCK}
        blocks.append(selection | dict(lifelong.custom_blocks))
    names = [*metrics, *(row.name for row in rows)]
    directions = {**DIRECTIONS, **{row.name: row.direction for row in rows}}
    bounds = bounds_of(rows, measure in UNIT_MEASURES)
    scores = [{name: _score(metric) for name, metric in run.items()} for run in blocks]
    return Comparison(
        first,
        second,
        measure,
        window,
        paired,
        _compare(blocks[0], blocks[1], seed, paired, directions, bounds),
        _compare(scores[0], scores[1], seed, paired, directions, bounds),
        compare_lifelong(one, other, names, seed, paired, directions, bounds),
    )


def _score(blocks: Numbers) -> Numbers:
    """`syllabus_scores`; a lifetime without a value keeps the reason of a time that never ended."""
    score = syllabus_scores(blocks)
    reasons, missing = np.asarray(blocks.reasons), np.isnan(np.asarray(score.values))
    for reason in UNFINISHED:
        unfinished = missing & (reasons == reason).any(axis=1)
        score = score._replace(reasons=np.where(unfinished, reason, score.reasons))
    return score


def compare_lifelong(
    first: Lifelong,
    second: Lifelong,
    metrics: Sequence[str] = COMPARED,
    seed: int = 0,
    paired: bool = False,
    directions: Mapping[str, Direction] = DIRECTIONS,
    bounds: Mapping[str, Bounds] | None = None,
) -> LifelongComparison:
    """Compare the lifelong-learning metrics of two runs, over the tasks and metrics that both have.

    Args:
      first: metrics of one agent.
      second: metrics of another.
      metrics: some of `COMPARED`; metrics of blocks are ignored.
      seed: of the bootstrap.
      paired: whether lifetimes at the same position make pairs.
      directions: name -> which values of a metric are better.
      bounds: as `summarise_all` takes them.
    """
    tasks = tuple(task for task in first.tasks if task in second.tasks)
    parts = []
    for run in (first, second):
        places = [run.tasks.index(task) for task in tasks]
        by_task = {n: numbers.part((slice(None), places)) for n, numbers in run.by_task.items()}
        parts.append((run.lifetime, by_task))

    def compared(
        one: Mapping[str, Numbers], other: Mapping[str, Numbers]
    ) -> dict[str, MetricComparison]:
        names = [name for name in one if name in other and name in metrics]
        pair = {n: one[n] for n in names}, {n: other[n] for n in names}
        return _compare(*pair, seed, paired, directions, bounds)

    (whole, by_task), (other_whole, other_by_task) = parts
    return LifelongComparison(
        tasks, compared(whole, other_whole), compared(by_task, other_by_task) if tasks else {}
    )


def _compare(
    first: Mapping[str, Numbers],
    second: Mapping[str, Numbers],
    seed: int,
    paired: bool,
    directions: Mapping[str, Direction],
    bounds: Mapping[str, Bounds] | None,
) -> dict[str, MetricComparison]:
    """Compare metrics, with p-values corrected over all of them."""
    summaries = [summarise_all(run, seed, bounds=bounds) for run in (first, second)]
    improvements = {
        name: _improvement(first[name], second[name], paired, directions[name]) for name in first
    }
    p_values = [improvement.p_value.ravel() for improvement in improvements.values()]
    corrected = holm(np.concatenate(p_values)) if p_values else np.zeros(0)
    comparisons, start = {}, 0
    for name, improvement in improvements.items():
        stop = start + improvement.p_value.size
        part = corrected[start:stop].reshape(improvement.p_value.shape)
        pair = summaries[0][name], summaries[1][name]
        comparisons[name] = MetricComparison(name, *pair, improvement, part, directions[name])
        start = stop
    return comparisons


def _improvement(
    first: Numbers, second: Numbers, paired: bool, direction: Direction
) -> Improvement:
    """Probability that the first run does better."""
    sign = -1.0 if direction == "lower" else 1.0
    one, other = (sign * values for values in _with_unfinished(first, second))
    return probability_of_improvement(one, other, paired=paired)


def _with_unfinished(first: Numbers, second: Numbers) -> tuple[np.ndarray, np.ndarray]:
    """Values in which a time to what never came is longer than every one that was observed."""
    pair = [np.asarray(metric.values, np.float64) for metric in (first, second)]
    table = np.concatenate(pair)
    longest = np.where(np.isfinite(table), table, -np.inf).max(axis=0)
    longer = np.where(np.isfinite(longest), longest + 1, np.nan)
    one, other = (
        np.where(np.isin(metric.reasons, UNFINISHED), longer, values)
        for metric, values in zip((first, second), pair, strict=True)
    )
    return one, other
