"""Scores for the core capabilities of the 2019 document.

Each metric of a capability gives every lifetime a score. A capability's score is the average over
lifetimes and then over syllabi. Metrics are averaged separately for each unit: episodes and
performance have no common mean.

Source: L2M Metrics Framework, 4 Dec 2019, chapter 2 ("an average of the scores achieved").
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluation.json_types import JsonObject
from evaluation.metrics import DEFAULT_WINDOW, Numbers, Reason, syllabus_scores
from evaluation.metrics.numerics import masked_mean
from evaluation.metrics.registry import MetricRow
from evaluation.metrics.statistics import UNBOUNDED, Bounds, bootstrap_interval
from evaluation.metrics.statistics.summary import of_share
from evaluation.metrics.table import BY_NAME, CAPABILITIES, SHARES, bounds_of
from evaluation.records import Records
from evaluation.report.blocks import lifetime_metrics
from evaluation.report.entries import number
from evaluation.report.lifelong import common_ranges, lifelong_metrics
from evaluation.report.novelty import novelty_scores


@dataclass(frozen=True)
class CapabilityScore:
    """Average over lifetimes and syllabi, with its interval.

    Attributes:
      value: the average; NaN if no lifetime has a value.
      low: lower end of the 95 % interval, computed from the intervals of the syllabi; NaN if a
        syllabus has fewer than two lifetimes with a value.
      high: upper end.
      syllabi: number of syllabi that have a value.
      metrics: names of the metrics that are averaged.
    """

    value: float
    low: float
    high: float
    syllabi: int
    metrics: tuple[str, ...]

    def to_json(self) -> JsonObject:
        """Return plain JSON values."""
        parts = {name: number(getattr(self, name)) for name in ("value", "low", "high")}
        return {**parts, "syllabi": self.syllabi, "metrics": list(self.metrics)}


@dataclass(frozen=True)
class Capability:
    """The scores of one capability.

    Attributes:
      averages: unit -> average of the metrics of that unit whose higher values are better.
      metrics: name -> score of each metric.
    """

    averages: Mapping[str, CapabilityScore]
    metrics: Mapping[str, CapabilityScore]

    def to_json(self) -> JsonObject:
        """Return plain JSON values."""
        return {
            "averages": {unit: score.to_json() for unit, score in self.averages.items()},
            "metrics": {name: score.to_json() for name, score in self.metrics.items()},
        }


def lifetime_scores(
    records: Records,
    measure: str = "performance",
    window: int = DEFAULT_WINDOW,
    rows: Sequence[MetricRow] = (),
) -> dict[str, Numbers]:
    """Score each lifetime of a run by every metric: name -> (L,) numbers.

    Raises:
      ValueError: an unknown measure, a bad window, or a custom metric that cannot be computed.
    """
    records = records.by_episode()
    ranges = common_ranges([records], measure)
    lifelong = lifelong_metrics(records, measure, ranges, rows)
    blocks = lifetime_metrics(records, measure, window) | dict(lifelong.custom_blocks)
    novelty = novelty_scores(records)
    return {
        **{name: syllabus_scores(metric) for name, metric in blocks.items()},
        **lifelong.lifetime,
        **({} if novelty is None else novelty.lifetime),
    }


def capability_scores(
    runs: Sequence[Mapping[str, Numbers]],
    rows: Sequence[MetricRow] = (),
    seed: int = 0,
    unit: bool = False,
) -> dict[str, Capability]:
    """Average the scores of lifetimes to a score for each core capability.

    Args:
      runs: one mapping per syllabus, metric -> (L,) scores; see `lifetime_scores`.
      rows: custom metrics that are among them.
      seed: of the bootstrap.
      unit: whether performance lies between 0 and 1, as for `bounds_of`.

    Returns:
      The capabilities that have a metric with a value, in the order of `CAPABILITIES`.
    """
    table = {**BY_NAME, **{row.name: row for row in rows}}
    limits = bounds_of(rows, unit)
    names = [name for name in dict.fromkeys(name for run in runs for name in run) if name in table]
    scores: dict[str, dict[str, CapabilityScore]] = {}
    averages: dict[str, dict[str, CapabilityScore]] = {}
    for capability in CAPABILITIES:
        members = [name for name in names if table[name].capability == capability]
        by_name = {
            name: _score([run.get(name) for run in runs], (name,), seed, limits) for name in members
        }
        scores[capability] = {name: s for name, s in by_name.items() if np.isfinite(s.value)}
        units: dict[str, list[str]] = {}
        for name in scores[capability]:
            if table[name].direction == "higher":
                units.setdefault(table[name].unit or "no unit", []).append(name)
        averages[capability] = {
            name: _score([_mean_of(run, members) for run in runs], tuple(members), seed, limits)
            for name, members in units.items()
        }
    return {
        capability: Capability(averages[capability], by_name)
        for capability, by_name in scores.items()
        if by_name
    }


def _mean_of(run: Mapping[str, Numbers], names: Sequence[str]) -> Numbers | None:
    """(L,) mean over those of the metrics that have a value in a lifetime."""
    metrics = [run[name] for name in names if name in run]
    if not metrics:
        return None
    values = np.stack([np.asarray(metric.values, np.float64) for metric in metrics], axis=-1)
    mean, count = masked_mean(np.nan_to_num(values), np.isfinite(values))
    codes = np.where(count > 0, int(Reason.NONE), int(Reason.NO_BLOCK_HAS_VALUE))
    return Numbers(np.where(count > 0, mean, np.nan), codes)


def _interval(
    scores: npt.NDArray[np.float64],
    names: Sequence[str],
    seed: int,
    limits: Mapping[str, Bounds],
) -> tuple[float, float]:
    """Interval of the mean over lifetimes; of one metric, that of the report."""
    lows, highs = zip(*(limits.get(name, UNBOUNDED) for name in names), strict=True)
    bounds = np.min(lows), np.max(highs)
    interval = bootstrap_interval(scores, seed, bounds=bounds)
    mean = Numbers(np.nanmean(scores), interval.reasons, interval.low, interval.high)
    if SHARES.issuperset(names):
        mean = of_share(mean, scores, np.isfinite(scores).sum())
    return float(np.asarray(mean.low)), float(np.asarray(mean.high))


def _score(
    runs: Sequence[Numbers | None],
    names: tuple[str, ...],
    seed: int,
    limits: Mapping[str, Bounds],
) -> CapabilityScore:
    """Mean over syllabi of the means over lifetimes, with its interval.

    Source: G. Y. Zou and A. Donner, Statistics in Medicine 27 (2008), for the interval of a sum.
    """
    values = [np.asarray(run.values, np.float64) for run in runs if run is not None]
    values = [scores for scores in values if np.isfinite(scores).any()]
    if not values:
        return CapabilityScore(np.nan, np.nan, np.nan, 0, names)
    means = np.array([np.nanmean(scores) for scores in values])
    ends = np.array([_interval(scores, names, seed, limits) for scores in values])
    below, above = map(float, np.sqrt(np.sum((means[:, None] - ends) ** 2, axis=0)))
    mean, count = float(means.mean()), len(values)
    return CapabilityScore(mean, mean - below / count, mean + above / count, count, names)
