"""Scores for the core capabilities of the 2019 document.

Every lifetime gets a score from each metric of a capability; a capability's score is the average
over lifetimes and, for several syllabi, over these. Metrics of one unit are averaged to one number,
those of another unit to another: episodes and performance have no common mean.

Source: L2M Metrics Framework, 4 Dec 2019, chapter 2 ("an average of the scores achieved").
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluation.metrics import DEFAULT_WINDOW, Numbers, Reason, syllabus_scores
from evaluation.metrics.numerics import masked_mean
from evaluation.metrics.registry import Row
from evaluation.metrics.statistics import bootstrap_interval
from evaluation.metrics.table import BY_NAME, CAPABILITIES
from evaluation.records import Records
from evaluation.report.blocks import lifetime_metrics
from evaluation.report.entries import number
from evaluation.report.lifelong import common_ranges, lifelong_metrics
from evaluation.report.novelty import novelty_scores


@dataclass(frozen=True)
class Score:
    """One score.

    Attributes:
      value: average over lifetimes and syllabi; NaN for none.
      low: lower end of its 95 % interval, from those of the syllabi; NaN if one of them has fewer
        than two lifetimes with a value.
      high: upper end.
      syllabi: number of syllabi that have a value.
      metrics: what it is the average of; the metric itself if there is one only.
    """

    value: float
    low: float
    high: float
    syllabi: int
    metrics: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        parts = {name: number(getattr(self, name)) for name in ("value", "low", "high")}
        return {**parts, "syllabi": self.syllabi, "metrics": list(self.metrics)}


@dataclass(frozen=True)
class Capability:
    """The scores of one capability.

    Attributes:
      averages: unit -> average of the metrics of that unit of which more is better.
      metrics: name -> score of each metric.
    """

    averages: Mapping[str, Score]
    metrics: Mapping[str, Score]

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "averages": {unit: score.to_json() for unit, score in self.averages.items()},
            "metrics": {name: score.to_json() for name, score in self.metrics.items()},
        }


def lifetime_scores(
    records: Records,
    measure: str = "performance",
    window: int = DEFAULT_WINDOW,
    rows: Sequence[Row] = (),
) -> dict[str, Numbers]:
    """One score a lifetime of every metric that a run has, (L,) by name.

    Raises:
      ValueError: an unknown measure or a bad window, or a metric of a user that cannot be computed.
    """
    records = records.by_episode()
    ranges = common_ranges([records], measure)
    lifelong = lifelong_metrics(records, measure, ranges, rows)
    blocks = lifetime_metrics(records, measure, window) | dict(lifelong.own_blocks)
    novelty = novelty_scores(records)
    return {
        **{name: syllabus_scores(metric) for name, metric in blocks.items()},
        **lifelong.lifetime,
        **({} if novelty is None else novelty.lifetime),
    }


def capability_scores(
    runs: Sequence[Mapping[str, Numbers]], rows: Sequence[Row] = (), seed: int = 0
) -> dict[str, Capability]:
    """Average the scores of lifetimes to a score for each core capability.

    Args:
      runs: (L,) scores by metric, one mapping a syllabus, see `lifetime_scores`.
      rows: metrics of users that are among them.
      seed: of the bootstrap.

    Returns:
      The capabilities that a metric with a value speaks of, in the order of `CAPABILITIES`.
    """
    known = {**BY_NAME, **{row.name: row for row in rows}}
    names = [name for name in dict.fromkeys(name for run in runs for name in run) if name in known]
    scores: dict[str, dict[str, Score]] = {}
    averages: dict[str, dict[str, Score]] = {}
    for capability in CAPABILITIES:
        own = [name for name in names if known[name].capability == capability]
        found = {name: _score([run.get(name) for run in runs], (name,), seed) for name in own}
        scores[capability] = {name: s for name, s in found.items() if np.isfinite(s.value)}
        units: dict[str, list[str]] = {}
        for name in scores[capability]:
            if known[name].direction == "higher":
                units.setdefault(known[name].unit or "no unit", []).append(name)
        averages[capability] = {
            unit: _score([_mean_of(run, of) for run in runs], tuple(of), seed)
            for unit, of in units.items()
        }
    return {
        capability: Capability(averages[capability], of) for capability, of in scores.items() if of
    }


def _mean_of(run: Mapping[str, Numbers], names: Sequence[str]) -> Numbers | None:
    """(L,) mean over the metrics that a lifetime has."""
    present = [run[name] for name in names if name in run]
    if not present:
        return None
    values = np.stack([np.asarray(of.values, np.float64) for of in present], axis=-1)
    mean, count = masked_mean(np.nan_to_num(values), np.isfinite(values))
    codes = np.where(count > 0, int(Reason.NONE), int(Reason.NO_BLOCK_HAS_VALUE))
    return Numbers(np.where(count > 0, mean, np.nan), codes)


def _score(runs: Sequence[Numbers | None], names: tuple[str, ...], seed: int) -> Score:
    """Mean over syllabi of the means over lifetimes, and its interval.

    Source: G. Y. Zou and A. Donner, Statistics in Medicine 27 (2008), for the interval of a sum.
    """
    values = [np.asarray(of.values, np.float64) for of in runs if of is not None]
    values = [of for of in values if np.isfinite(of).any()]
    if not values:
        return Score(np.nan, np.nan, np.nan, 0, names)
    means = np.array([np.nanmean(of) for of in values])
    intervals = [bootstrap_interval(of, seed, method="calibrated") for of in values]
    below, above = (
        float(np.sqrt(np.sum((means - np.array([getattr(of, end) for of in intervals])) ** 2)))
        for end in ("low", "high")
    )
    mean, count = float(means.mean()), len(values)
    return Score(mean, mean - below / count, mean + above / count, count, names)
