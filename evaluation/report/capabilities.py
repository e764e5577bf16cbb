"""Scores for the core capabilities of the 2019 document.

Each metric of a capability gives every lifetime a score. A capability's score is the average over
lifetimes and then over syllabi. Metrics are averaged separately for each unit: episodes and
performance have no common mean.

Source: L2M Metrics Framework, 4 Dec 2019, chapter 2 ("an average of the scores achieved").
"""

from collections.abc import Hashable, Mapping, Sequence
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
      low: lower end of the 95 % interval; NaN if a syllabus has fewer than two lifetimes with a
        value.
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
    lifetimes: Sequence[Sequence[Hashable]] | None = None,
) -> dict[str, Capability]:
    """Average the scores of lifetimes to a score for each core capability.

    Args:
      runs: one mapping per syllabus, metric -> (L,) scores; see `lifetime_scores`.
      rows: custom metrics that are among them.
      seed: of the bootstrap.
      unit: whether performance lies between 0 and 1, as for `bounds_of`.
      lifetimes: names of the lifetimes of each run. Those of one name have common randomness, in
        runs of one seed for example, so their scores are averaged before the interval is taken.
        None if no two have.

    Returns:
      The capabilities that have a metric with a value, in the order of `CAPABILITIES`.
    """
    table = {**BY_NAME, **{row.name: row for row in rows}}
    limits = bounds_of(rows, unit)
    if lifetimes is None:
        lifetimes = [
            [(place, number) for number in range(_count(run))] for place, run in enumerate(runs)
        ]
    names = [name for name in dict.fromkeys(name for run in runs for name in run) if name in table]
    scores: dict[str, dict[str, CapabilityScore]] = {}
    averages: dict[str, dict[str, CapabilityScore]] = {}
    for capability in CAPABILITIES:
        members = [name for name in names if table[name].capability == capability]
        by_name = {
            name: _score([run.get(name) for run in runs], lifetimes, (name,), seed, limits)
            for name in members
        }
        scores[capability] = {name: s for name, s in by_name.items() if np.isfinite(s.value)}
        units: dict[str, list[str]] = {}
        for name in scores[capability]:
            if table[name].direction == "higher":
                units.setdefault(table[name].unit or "no unit", []).append(name)
        averages[capability] = {
            name: _score(
                [_mean_of(run, members) for run in runs], lifetimes, tuple(members), seed, limits
            )
            for name, members in units.items()
        }
    return {
        capability: Capability(averages[capability], by_name)
        for capability, by_name in scores.items()
        if by_name
    }


def _count(run: Mapping[str, Numbers]) -> int:
    """Number of lifetimes of a run."""
    return next((len(np.asarray(numbers.values)) for numbers in run.values()), 0)


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
    lifetimes: Sequence[Sequence[Hashable]],
    names: tuple[str, ...],
    seed: int,
    limits: Mapping[str, Bounds],
) -> CapabilityScore:
    """Mean over syllabi of the means over lifetimes, with its interval."""
    scores = [np.asarray(run.values, np.float64) for run in runs if run is not None]
    labels = [of_run for run, of_run in zip(runs, lifetimes, strict=True) if run is not None]
    finite = [np.isfinite(values) for values in scores]
    parts = [
        (values[valid], [label for label, has in zip(of_run, valid, strict=True) if has])
        for values, of_run, valid in zip(scores, labels, finite, strict=True)
        if valid.any()
    ]
    if not parts:
        return CapabilityScore(np.nan, np.nan, np.nan, 0, names)
    mean = float(np.mean([values.mean() for values, _ in parts]))
    ends = (np.nan, np.nan)
    if all(len(values) > 1 for values, _ in parts):
        ends = _interval(_of_lifetimes(parts, mean), names, seed, limits)
    return CapabilityScore(mean, *ends, len(parts), names)


def _of_lifetimes(
    parts: Sequence[tuple[npt.NDArray[np.float64], Sequence[Hashable]]], mean: float
) -> npt.NDArray[np.float64]:
    """(C,) a value for each name of a lifetime, whose mean is the mean over syllabi.

    These are linearised, as in `statistics.of_clusters`; the scores themselves if there is one
    syllabus.

    Args:
      parts: scores of each syllabus, and names of their lifetimes.
      mean: over syllabi of the means over lifetimes.
    """
    if len(parts) == 1:
        return parts[0][0]
    sums: dict[Hashable, float] = {}
    for values, of_run in parts:
        for label, value in zip(of_run, values - values.mean(), strict=True):
            sums[label] = sums.get(label, 0.0) + value / len(values)
    return mean + len(sums) / len(parts) * np.array(list(sums.values()))
