"""Metrics of today over the lifetimes of a run: those of l2metrics 3.1, each with an interval."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from evaluation.logs.export import task_labels
from evaluation.metrics import Reason, Summary, summarise_all
from evaluation.metrics.l2m.lifetimes import LIFETIME_METRICS, TASK_METRICS
from evaluation.metrics.numerics import Numbers
from evaluation.metrics.registry import Row
from evaluation.metrics.statistics import Bounds
from evaluation.records import MEASURES, UNIT_MEASURES, Records
from evaluation.report.own import own_numbers
from evaluation.report.recorded import record_metrics
from evaluation.report.results import RunResults

_CODES: Final = {reason.sentence: int(reason) for reason in Reason if reason is not Reason.NONE}

Ranges = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Lifelong:
    """Metrics of L lifetimes of K tasks.

    Attributes:
      tasks: K names, those trained first.
      lifetime: name of `LIFETIME_METRICS` -> (L,) numbers.
      by_task: name of `TASK_METRICS` -> (L, K) numbers.
      own_blocks: name of a metric of a user -> (L, B) numbers; its other metrics are above.
    """

    tasks: tuple[str, ...]
    lifetime: Mapping[str, Numbers]
    by_task: Mapping[str, Numbers]
    own_blocks: Mapping[str, Numbers] = field(default_factory=dict)


@dataclass(frozen=True)
class LifelongSummary:
    """Summaries of `Lifelong` over lifetimes.

    Attributes:
      tasks: K names.
      lifetime: name -> summary with () arrays.
      by_task: name -> summary with (K,) arrays.
      ranges: task -> what was normalised to 1 to 101; None where each lifetime has its own.
    """

    tasks: tuple[str, ...]
    lifetime: Mapping[str, Summary]
    by_task: Mapping[str, Summary]
    ranges: Ranges | None


def lifelong_metrics(
    records: Records,
    measure: str = "performance",
    ranges: Ranges | None = None,
    rows: Sequence[Row] = (),
) -> Lifelong:
    """Compute the metrics of today of every lifetime.

    Args:
      records: of L lifetimes.
      measure: column used as an episode's value, "performance", "reward" or "length".
      ranges: task -> (lowest, highest) value, normalised to 1 to 101; `common_ranges` if None, so
        that lifetimes can be compared.
      rows: metrics of users.

    Raises:
      ValueError: an unknown measure, a task without a range, or a metric of a user that cannot be
        computed.
    """
    records = records.by_episode()
    ranges = common_ranges([records], measure) if ranges is None else ranges
    found = record_metrics(records, measure, ranges=ranges, compiled=False)
    results, own = found.results, own_numbers(rows, records, measure, found.tasks)
    return Lifelong(
        found.tasks,
        {name: results.lifetime[name] for name in LIFETIME_METRICS} | own.lifetime,
        {name: results.tasks[name] for name in TASK_METRICS} | own.tasks,
        own.blocks,
    )


def common_ranges(runs: Sequence[Records], measure: str) -> dict[str, tuple[float, float]]:
    """One range of each task for all lifetimes of some runs of one syllabus.

    Returns:
      Task -> (0, 1) for what lies between these by its definition, else the lowest and the highest
      value of the task's episodes in any lifetime of any run.

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
    """Take the runs of result files, those of l2metrics 3.1 or of `jaxsim l2metrics`, as lifetimes.

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


def _numbers(values: npt.NDArray[np.float64], sentences: Sequence[Any]) -> Numbers:
    """Numbers with the codes of the reasons that a file gives in words."""
    words = np.asarray(sentences, object).reshape(values.shape)
    codes = [_CODES.get(sentence, int(Reason.NO_VALUE_IN_FILE)) for sentence in words.ravel()]
    missing = np.array(codes, np.int32).reshape(values.shape)
    return Numbers(values, np.where(np.isfinite(values), int(Reason.NONE), missing))


def summarise_lifelong(
    found: Lifelong, ranges: Ranges | None, seed: int, bounds: Mapping[str, Bounds] | None = None
) -> LifelongSummary:
    """Statistics and intervals over lifetimes.

    Args:
      found: of L lifetimes.
      ranges: that it was computed with; None where each lifetime has its own.
      seed: of the bootstrap.
      bounds: as `summarise_all` takes them.
    """
    lifetime, tasks = (
        summarise_all(o, seed, bounds=bounds) for o in (found.lifetime, found.by_task)
    )
    return LifelongSummary(found.tasks, lifetime, tasks, ranges)
