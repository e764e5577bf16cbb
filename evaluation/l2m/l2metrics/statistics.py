"""Statistics over many logs: each log is a lifetime, and every number has an interval."""

from collections.abc import Sequence

import numpy as np

from evaluation.json_types import JsonObject
from evaluation.l2m.l2metrics.analysis import Analysis
from evaluation.l2m.l2metrics.result import lifetime_values, selected_metrics
from evaluation.l2m.l2metrics.settings import LogSettings
from evaluation.metrics.l2m.lifetimes import TASK_METRICS
from evaluation.metrics.numerics import Numbers
from evaluation.metrics.reasons import Reason
from evaluation.metrics.registry import MetricRow
from evaluation.metrics.table import bounds_of
from evaluation.report.lifelong import Lifelong, summarise_lifelong
from evaluation.report.summary import lifelong_json


def over_logs(
    analyses: Sequence[Analysis],
    settings: LogSettings,
    seed: int = 0,
    rows: Sequence[MetricRow] = (),
) -> JsonObject:
    """Mean, median, interquartile mean and standard deviation of every metric over logs.

    Args:
      analyses: of L logs, at least one.
      settings: of the analyses.
      seed: of the bootstrap.
      rows: custom metrics of the analyses.

    Returns:
      Plain JSON values: ``logs``, ``metrics`` and, by task, ``tasks``. A missing number is None and
      has a reason.
    """
    tasks = tuple(dict.fromkeys(task for a in analyses for task in a.run.tasks))
    names = selected_metrics(settings)
    custom = (*analyses[0].extra_tasks, *analyses[0].extra_lifetime)
    lifelong = Lifelong(
        tasks,
        {name: _joined([_lifetime(a, name) for a in analyses]) for name in names}
        | {name: _joined([_custom(a, name) for a in analyses]) for name in custom},
        {
            name: _joined([_by_task(a, name, tasks) for a in analyses])
            for name in names
            if name in TASK_METRICS
        },
    )
    of_data = settings.data_range is None or settings.clamp_outliers
    normalised = settings.normalization_method != "none"
    bounds = bounds_of(rows, in_range=of_data and normalised)
    summary = summarise_lifelong(lifelong, settings.data_range, seed, bounds)
    return {"logs": [a.run.name for a in analyses], "seed": seed, **lifelong_json(summary)}


def _joined(parts: Sequence[Numbers]) -> Numbers:
    return Numbers(np.stack([p.values for p in parts]), np.stack([p.reasons for p in parts]))


def _lifetime(analysis: Analysis, name: str) -> Numbers:
    return analysis.of(analysis.results.lifetime[name])


def _custom(analysis: Analysis, name: str) -> Numbers:
    value = lifetime_values(analysis)[name]
    if value is None:
        return Numbers(np.array(np.nan), np.array(int(Reason.NO_TASK_HAS_VALUE)))
    return Numbers(np.array(value), np.array(int(Reason.NONE)))


def _by_task(analysis: Analysis, name: str, tasks: Sequence[str]) -> Numbers:
    """(K,) numbers in the order of all tasks; missing for a task that the log does not have."""
    numbers = analysis.of(analysis.results.tasks[name])
    values, reasons = np.full(len(tasks), np.nan), np.full(len(tasks), int(Reason.EMPTY))
    places = [tasks.index(task) for task in analysis.run.tasks]
    values[places] = numbers.values[: len(places)]
    reasons[places] = numbers.reasons[: len(places)]
    return Numbers(values, reasons)
