"""Lifelong-learning metrics of l2metrics 3.1 over the lifetimes of a run, with intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from evaluation.logs.export import task_labels
from evaluation.metrics import Reason, Summary, summarise_all
from evaluation.metrics.l2m.lifetimes import LIFETIME_METRICS, TASK_METRICS
from evaluation.metrics.numerics import Numbers
from evaluation.metrics.registry import MetricRow
from evaluation.metrics.statistics import Bounds
from evaluation.records import MEASURES, UNIT_MEASURES, Records
from evaluation.report.custom_metrics import custom_numbers
from evaluation.report.recorded import record_metrics
from evaluation.report.results import RunResults

_CODES: Final = {reason.sentence: int(reason) for reason in Reason if reason is not Reason.NONE}

Ranges = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Lifelong:
    """Metrics of L lifetimes of K tasks.

    Attributes:
      tasks: K names; trained tasks come first.
      lifetime: name of `LIFETIME_METRICS` -> (L,) numbers.
      by_task: name of `TASK_METRICS` -> (L, K) numbers.
      custom_blocks: name of a custom metric of blocks -> (L, B) numbers; custom metrics of tasks
        and lifetimes are in the other fields.
    """

    tasks: tuple[str, ...]
    lifetime: Mapping[str, Numbers]
    by_task: Mapping[str, Numbers]
    custom_blocks: Mapping[str, Numbers] = field(default_factory=dict)


@dataclass(frozen=True)
class LifelongSummary:
    """Summaries of `Lifelong` over lifetimes.

    Attributes:
      tasks: K names.
      lifetime: name -> summary with () arrays.
      by_task: name -> summary with (K,) arrays.
      ranges: task -> (lowest, highest) value, normalised to 1 to 101; None if each lifetime has
        its own.
    """

    tasks: tuple[str, ...]
    lifetime: Mapping[str, Summary]
    by_task: Mapping[str, Summary]
    ranges: Ranges | None


def lifelong_metrics(
    records: Records,
    measure: str = "performance",
    ranges: Ranges | None = None,
    rows: Sequence[MetricRow] = (),
) -> Lifelong:
    """Compute the metrics of l2metrics 3.1 and custom metrics for every lifetime.

    Args:
      records: of L lifetimes.
      measure: column used as an episode's value, "performance", "reward" or "length".
      ranges: task -> (lowest, highest) value, normalised to 1 to 101; if None, `common_ranges`, so
        that lifetimes can be compared.
      rows: custom metrics.

    Raises:
      ValueError: an unknown measure, a task without a range, or a custom metric that cannot be
        computed.
    """
    records = records.by_episode()
    ranges = common_ranges([records], measure) if ranges is None else ranges
    metrics = record_metrics(records, measure, ranges=ranges, compiled=False)
    results, custom = metrics.results, custom_numbers(rows, records, measure, metrics.tasks)
    return Lifelong(
        metrics.tasks,
        {name: results.lifetime[name] for name in LIFETIME_METRICS} | custom.lifetime,
        {name: results.tasks[name] for name in TASK_METRICS} | custom.tasks,
        custom.blocks,
    )


def common_ranges(runs: Sequence[Records], measure: str) -> dict[str, tuple[float, float]]:
    """Range of each task over all lifetimes of several runs of one syllabus.

    Returns:
      Task -> (0, 1) if the measure is one of `UNIT_MEASURES`, else the lowest and the highest value
      of the task's episodes in any lifetime of any run.

    Raises:
      ValueError: an unknown measure.
    """
    schedule = runs[0].schedule
    names = [label.lower() for label in task_labels(schedule)]
    if measure in UNIT_MEASURES:
        return dict.fromkeys(names, (0.0, 1.0))
    if measure not in MEASURES:
        raise ValueError(f"measure is {measure!r}; it must be one of {', '.join(MEASURES)}")
    variants = schedule.block_variants()[schedule.episode_blocks()]
    ranges = {}
    for index, name in enumerate(names):
        values = [run.columns[measure][:, variants == index] for run in runs]
        finite = [part[np.isfinite(part)] for part in values]
        joined = np.concatenate([*finite, np.zeros(int(not any(map(len, finite))))])
        ranges[name] = float(joined.min()), float(joined.max())
    return ranges


def lifelong_of_results(results: RunResults) -> Lifelong:
    """Read runs of result files, of l2metrics 3.1 or `jaxsim l2metrics`, as lifetimes.

    Args:
      results: from `load_results`; a metric that no run has is left out.
    """
    runs, tasks = results.runs, results.tasks
    lifetime = {
        name: _numbers(values, [results.reasons.get((run, name), "") for run in runs])
        for name, values in results.lifetime.items()
        if name in LIFETIME_METRICS
    }
    by_task = {
        name: _numbers(
            values,
            [[results.task_reasons.get((run, task, name), "") for task in tasks] for run in runs],
        )
        for name, values in results.task.items()
        if name in TASK_METRICS
    }
    return Lifelong(tasks, lifetime, by_task)


def _numbers(values: npt.NDArray[np.float64], sentences: Sequence[object]) -> Numbers:
    """Numbers with reason codes for the sentences of a file."""
    words = np.asarray(sentences, object).reshape(values.shape)
    codes = [_CODES.get(sentence, int(Reason.NO_VALUE_IN_FILE)) for sentence in words.ravel()]
    missing = np.array(codes, np.int32).reshape(values.shape)
    return Numbers(values, np.where(np.isfinite(values), int(Reason.NONE), missing))


def summarise_lifelong(
    metrics: Lifelong, ranges: Ranges | None, seed: int, bounds: Mapping[str, Bounds] | None = None
) -> LifelongSummary:
    """Summarise lifelong metrics over lifetimes, with intervals.

    Args:
      metrics: of L lifetimes.
      ranges: those that the metrics were computed with; None if each lifetime has its own.
      seed: of the bootstrap.
      bounds: as `summarise_all` takes them.
    """
    lifetime, tasks = (
        summarise_all(part, seed, bounds=bounds) for part in (metrics.lifetime, metrics.by_task)
    )
    return LifelongSummary(metrics.tasks, lifetime, tasks, ranges)
