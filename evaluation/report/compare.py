"""Two runs of one syllabus beside each other: every metric of both, and which agent is above."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

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
from evaluation.metrics.registry import Row
from evaluation.metrics.statistics import INTERVALS, Bounds
from evaluation.metrics.table import METRICS, bounds_of, names_of
from evaluation.records import UNIT_MEASURES, Records
from evaluation.report.blocks import lifetime_metrics
from evaluation.report.entries import entry_of, number
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
"""Metrics of novelty predictions, of lifetimes, where both agents predict."""

COMPARED: Final = (*BY_BLOCK, *LIFETIME_METRICS, *PREDICTED)
"""Metrics that can be compared."""

LOWER_IS_BETTER: Final = frozenset(row.name for row in METRICS if row.direction == "lower")
"""Metrics of which an agent wants little, if it wants much of the measure."""


@dataclass(frozen=True)
class Comparison:
    """Two runs of one syllabus.

    Attributes:
      first: records of the first run.
      second: records of the second run.
      measure: the records' column used as an episode's value.
      window: smoothing window, episodes.
      paired: whether lifetimes of the same number are compared with one another.
      blocks: metric name -> what was found for each block, (B,).
      syllabus: metric name -> what was found for the mean over the blocks, ().
      lifelong: the metrics of l2metrics 3.1, without its defects.
    """

    first: Records
    second: Records
    measure: str
    window: int
    paired: bool
    blocks: Mapping[str, "Found"]
    syllabus: Mapping[str, "Found"]
    lifelong: "LifelongComparison"

    def to_json(self) -> dict[str, Any]:
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
            "metrics": {name: found.to_json(()) for name, found in self.syllabus.items()},
            "blocks": [
                {
                    "block": block.index,
                    "phase": f"{block.phase}.{block.mode}",
                    "task": block.task,
                    "parameters": dict(block.parameters),
                    "metrics": {name: f.to_json(block.index) for name, f in self.blocks.items()},
                }
                for block in self.first.schedule.blocks
            ],
            "lifelong": self.lifelong.to_json(),
        }


@dataclass(frozen=True)
class LifelongComparison:
    """The metrics of today of two runs.

    Attributes:
      tasks: K names of the tasks that both have.
      lifetime: metric name -> what was found for whole lifetimes, ().
      by_task: metric name -> what was found for each task, (K,).
    """

    tasks: tuple[str, ...]
    lifetime: Mapping[str, "Found"]
    by_task: Mapping[str, "Found"]

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values; a number that is missing is null with a reason beside it."""
        return {
            "metrics": {name: found.to_json(()) for name, found in self.lifetime.items()},
            "tasks": {
                task: {name: found.to_json(index) for name, found in self.by_task.items()}
                for index, task in enumerate(self.tasks)
            },
        }


@dataclass(frozen=True)
class Found:
    """One metric of two runs; arrays have the shape of one lifetime's values.

    Attributes:
      name: of the metric.
      first: summary of the first run.
      second: summary of the second run.
      improvement: probability that the first run does better, not merely has more.
      corrected: p-values corrected for how many comparisons were made.
      better: which values are better, "higher" or "lower".
    """

    name: str
    first: Summary
    second: Summary
    improvement: Improvement
    corrected: np.ndarray
    better: str

    def to_json(self, index: Any) -> dict[str, Any]:
        """Return one place of it as plain JSON values."""
        values: dict[str, Any] = {
            "better": self.better,
            "first": entry_of(self.first, index),
            "second": entry_of(self.second, index),
        }
        improvement: dict[str, Any] = {
            name: number(getattr(self.improvement, name)[index])
            for name in ("probability", "low", "high", "p_value")
        }
        improvement["p_value_corrected"] = number(self.corrected[index])
        reason = self.why_missing(index)
        return values | {
            "improvement": improvement | ({"reason": reason} if reason else {}),
        }

    def why_missing(self, index: Any) -> str:
        """Why a probability or its interval is missing; empty if both are there."""
        for which, summary in (("first", self.first), ("second", self.second)):
            if summary.reasons[index] != Reason.NONE:
                return f"{which} run: {sentence_of(summary.reasons[index])}"
        # Both runs have two values, but not in the same lifetimes.
        return sentence_of(self.improvement.reasons[index])


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
    what = " ".join([block.task, *(f"{path}={value}" for path, value in block.parameters)])
    learning = "" if block.learning == (block.mode == "train") else f", learning {block.learning}"
    return f"{block.phase}.{block.mode} of {block.count} episodes of {what}{learning}"


def common_lifetimes(first: Records, second: Records) -> tuple[Records, Records]:
    """Both runs without the lifetimes that the other does not have.

    A lifetime of one number starts its episodes alike in every run of one seed and syllabus,
    whatever the number of lifetimes played.

    Raises:
      ValueError: other seeds, or no lifetime in common.
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
    """The lifetimes of a run from one number to before another."""
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
    rows: Sequence[Row] = (),
) -> Comparison:
    """Compute every metric of two runs and the probability that the first does better.

    Larger values of the measure are taken to be better. The registry names the metrics
    of which less is better then; for these the probability counts the lower value.

    Args:
      first: of one agent.
      second: of another, of the same syllabus.
      metrics: some of `COMPARED`.
      measure: column used as an episode's value, "performance", "reward" or "length".
      window: odd smoothing window, episodes.
      seed: of the bootstrap.
      paired: compare lifetimes of the same number only, of those that both runs have; the runs
        must have one seed.
      rows: metrics of users, compared beside these.

    Raises:
      ValueError: different syllabi, no lifetimes that make pairs, an unknown metric or measure, a
        bad window or seed, or a metric of a user that cannot be computed.
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
    scored = [novelty_scores(run) for run in (first, second)]
    if scored[0] is not None and scored[1] is not None:
        one = replace(one, lifetime={**one.lifetime, **scored[0].lifetime})
        other = replace(other, lifetime={**other.lifetime, **scored[1].lifetime})
    blocks: list[dict[str, Numbers]] = []
    for run, lifelong in ((first, one), (second, other)):
        every = lifetime_metrics(run, measure, window)
        chosen = {name: every[name] for name in dict.fromkeys(metrics) if name in BY_BLOCK}
        blocks.append(chosen | dict(lifelong.own_blocks))
    wanted = [*metrics, *(row.name for row in rows)]
    lower = LOWER_IS_BETTER | {row.name for row in rows if row.direction == "lower"}
    bounds = bounds_of(rows, measure in UNIT_MEASURES)
    scores = [{name: syllabus_scores(m) for name, m in one.items()} for one in blocks]
    return Comparison(
        first,
        second,
        measure,
        window,
        paired,
        _compare(blocks[0], blocks[1], seed, paired, lower, bounds),
        _compare(scores[0], scores[1], seed, paired, lower, bounds),
        compare_lifelong(one, other, wanted, seed, paired, lower, bounds),
    )


def compare_lifelong(
    first: Lifelong,
    second: Lifelong,
    metrics: Sequence[str] = COMPARED,
    seed: int = 0,
    paired: bool = False,
    lower: Collection[str] = LOWER_IS_BETTER,
    bounds: Mapping[str, Bounds] | None = None,
) -> LifelongComparison:
    """Compare the metrics of today of two runs, over the tasks and metrics that both have.

    Args:
      first: of one agent.
      second: of another.
      metrics: some of `COMPARED`; those that are numbers of a block are passed over.
      seed: of the bootstrap.
      paired: whether lifetimes of the same position make pairs.
      lower: names of metrics of which less is better.
      bounds: as `summarise_all` takes them.
    """
    tasks = tuple(task for task in first.tasks if task in second.tasks)
    parts = []
    for run in (first, second):
        places = [run.tasks.index(task) for task in tasks]
        own = {n: of.part((slice(None), places)) for n, of in run.by_task.items()}
        parts.append((run.lifetime, own))

    def compared(one: Mapping[str, Numbers], other: Mapping[str, Numbers]) -> dict[str, Found]:
        names = [name for name in one if name in other and name in metrics]
        own = {n: one[n] for n in names}, {n: other[n] for n in names}
        return _compare(*own, seed, paired, lower, bounds)

    (whole, own), (other_whole, other_own) = parts
    return LifelongComparison(
        tasks, compared(whole, other_whole), compared(own, other_own) if tasks else {}
    )


def _compare(
    first: Mapping[str, Numbers],
    second: Mapping[str, Numbers],
    seed: int,
    paired: bool,
    lower: Collection[str],
    bounds: Mapping[str, Bounds] | None,
) -> dict[str, Found]:
    """Both runs' metrics, and p-values corrected over all of them."""
    summaries = [summarise_all(one, seed, bounds=bounds) for one in (first, second)]
    improvements = {
        name: _improvement(first[name], second[name], seed, paired, name in lower) for name in first
    }
    p_values = [improvement.p_value.ravel() for improvement in improvements.values()]
    corrected = holm(np.concatenate(p_values)) if p_values else np.zeros(0)
    found, start = {}, 0
    for name, improvement in improvements.items():
        stop = start + improvement.p_value.size
        own = corrected[start:stop].reshape(improvement.p_value.shape)
        pair = summaries[0][name], summaries[1][name]
        better = "lower" if name in lower else "higher"
        found[name] = Found(name, *pair, improvement, own, better)
        start = stop
    return found


def _improvement(
    first: Numbers, second: Numbers, seed: int, paired: bool, lower: bool
) -> Improvement:
    """Probability that the first does better."""
    sign = -1.0 if lower else 1.0
    one, other = (sign * np.asarray(metric.values, np.float64) for metric in (first, second))
    return probability_of_improvement(one, other, seed, paired=paired)
