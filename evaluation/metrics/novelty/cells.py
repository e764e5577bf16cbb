"""Measures over trials: by cell, by level, by difficulty and in all, each with an interval.

Every row is computed from its trials, not from averages. Trials in which the agent is told of the
novelty and trials without novelty have separate rows.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from evaluation.metrics.novelty.detection import detection
from evaluation.metrics.novelty.measures import SHARES, Answers, measures
from evaluation.metrics.novelty.trials import Trials
from evaluation.metrics.numerics import Numbers
from evaluation.metrics.reasons import Reason
from evaluation.metrics.statistics import (
    DEFAULT_RESAMPLES,
    UNBOUNDED,
    Bounds,
    bootstrap_interval,
    bounds_that_hold,
    of_clusters,
    resample_weights,
    share_of_clusters,
)
from evaluation.metrics.table import bounds_of

LEVEL: Final = 0.95
NOMINAL: Final = (50, 200)
"""Levels without a novelty."""
ROUNDING: Final = 1e-12
"""Allowance for rounding in a product of fractions, far above that of a thousand factors."""

Bools = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Labels:
    """Cell of each of T trials.

    Attributes:
      level: (T,) int level of the novelty catalogue, or text, the families of a list of novelties.
      difficulty: (T,) text.
      visibility: (T,) int, 1 if the agent is told of the novelty.
      hint_level: (T,) int, -1 to 3.
      groups: kind of row -> (T,) text; trials with the same text are joined to a row of that kind.
      clusters: (T,) number of the novelty of a list that a trial is of; intervals are then over
        novelties, since trials of one are alike. None where all trials of a cell have one world.
    """

    level: npt.NDArray[np.int64] | npt.NDArray[np.str_]
    difficulty: npt.NDArray[np.str_]
    visibility: npt.NDArray[np.int64]
    hint_level: npt.NDArray[np.int64]
    groups: Mapping[str, npt.NDArray[np.str_]] = field(default_factory=dict)
    clusters: npt.NDArray[np.int64] | None = None


@dataclass(frozen=True)
class CellMeasures:
    """Measures of the trials of one cell or of several.

    Attributes:
      kind: "cell", "level", "difficulty", one of `Labels.groups` or "all".
      level: the level, or the families; None if several are joined.
      difficulty: the difficulty, or the text of the group; None if several are joined.
      visibility: 1 if the agent is told of the novelty.
      hint_level: level of the hints; None if several are joined.
      trials: number of trials.
      values: name of a measure -> mean, share or median with its 95 % interval; an upper end of NaN
        beside a finite lower one is beyond the end of the trials.
      counts: name of a measure -> number of trials that have a value.
    """

    kind: str
    level: int | str | None
    difficulty: str | None
    visibility: int
    hint_level: int | None
    trials: int
    values: Mapping[str, Numbers]
    counts: Mapping[str, int]


def rows(
    trials: Trials,
    labels: Labels,
    answers: Answers,
    window: int,
    *,
    seed: int = 0,
    resamples: int = DEFAULT_RESAMPLES,
    wsu: bool = False,
    custom: Mapping[str, Numbers] | None = None,
    bounds: Mapping[str, Bounds] | None = None,
) -> list[CellMeasures]:
    """Compute all rows: cells first, then levels, difficulties, groups and all trials.

    Args:
      trials: leaves (T, E) and (T,), NumPy.
      labels: the cell of each trial.
      answers: the agent's characterisations of the novelty.
      window: episodes m at either end of the novel part.
      seed: of the bootstrap.
      resamples: of the bootstrap.
      wsu: whether to treat zeros as the generator's analysis does; the mean delay without a
        detected trial is then 0.
      custom: (T,) numbers of custom metrics, by name.
      bounds: of measures by name; `bounds_of(unit=True)` if None. They hold in rows all of whose
        values lie between them, since tables of other programs may have another performance.

    Returns:
      The rows.

    Raises:
      ValueError: a bad seed or number of resamples.
    """
    visible = labels.visibility == 1
    per_trial = measures(trials, answers, visible, window, wsu) | dict(custom or {})
    detections = detection(trials)
    censored = np.stack([detections.delay, detections.true_positives > 0])
    none = trials.button >= trials.count
    if labels.level.dtype.kind != "U":
        none = none | np.isin(labels.level, NOMINAL)
    limits = bounds_of(unit=True) if bounds is None else bounds
    trial_numbers = np.arange(len(labels.level))
    clusters = trial_numbers if labels.clusters is None else labels.clusters
    result = []
    for kind, level, difficulty, visibility, hint, members in _groups(labels, none):
        inside = {name: n.part(members) for name, n in per_trial.items()}
        counts = {name: int(np.isfinite(n.values).sum()) for name, n in inside.items()}
        values = _values(inside, clusters[members], limits, seed, resamples)
        hidden = _hidden_reason(visibility, bool(none[members].all()))
        novel = members & ~none
        values["censored_median_delay"] = _censored(
            censored[:, novel], clusters[novel], hidden, seed, resamples
        )
        counts["median_delay"] = counts["mean_delay"]
        has_median = values["censored_median_delay"].reasons == Reason.NONE
        counts["censored_median_delay"] = int(novel.sum()) if has_median else 0
        if wsu and values["mean_delay"].reasons == Reason.NOT_DETECTED:
            values["mean_delay"] = _one(0.0, Reason.NOT_DETECTED)
        cell = kind, level, difficulty, visibility, hint, int(members.sum())
        result.append(CellMeasures(*cell, values, counts))
    return result


def _groups(
    labels: Labels, none: Bools
) -> Iterator[tuple[str, int | str | None, str | None, int, int | None, Bools]]:
    """Yield (kind, level, difficulty, visibility, hint level, members) of every row."""
    level, difficulty = labels.level, labels.difficulty
    order = {name: place for place, name in enumerate(("easy", "medium", "hard"))}
    names = sorted({str(d) for d in difficulty}, key=lambda name: (order.get(name, 9), name))
    for visibility in map(int, np.unique(labels.visibility)):
        same_visibility = labels.visibility == visibility
        hints = [int(h) for h in np.unique(labels.hint_level[same_visibility])]
        numbers: list[int | str] = np.unique(level[same_visibility]).tolist()
        for number in numbers:
            for name in names:
                for hint in hints:
                    inside = same_visibility & (level == number) & (difficulty == name)
                    inside = inside & (labels.hint_level == hint)
                    if inside.any():
                        yield "cell", number, name, visibility, hint, inside
        for number in numbers:
            yield "level", number, None, visibility, None, same_visibility & (level == number)
        for name in names:
            inside = same_visibility & (difficulty == name) & ~none
            if inside.any():
                yield "difficulty", None, name, visibility, None, inside
        for kind, texts in labels.groups.items():
            for text in np.unique(texts[same_visibility & ~none]).tolist():
                yield kind, None, text, visibility, None, same_visibility & ~none & (texts == text)
        if (same_visibility & ~none).any():
            yield "all", None, None, visibility, None, same_visibility & ~none


def _values(
    numbers: Mapping[str, Numbers],
    clusters: Integers,
    limits: Mapping[str, Bounds],
    seed: int,
    resamples: int,
) -> dict[str, Numbers]:
    values = {}
    means = [name for name in numbers if name not in SHARES]
    table = np.stack([numbers[name].values for name in means], axis=-1)
    least, largest = np.array([limits.get(name, UNBOUNDED) for name in means]).T
    bounds = bounds_that_hold((least, largest), table)
    by_cluster = of_clusters(table, clusters)
    interval = bootstrap_interval(by_cluster, seed, LEVEL, resamples, bounds=bounds)
    for place, name in enumerate(means):
        finite = numbers[name].values[np.isfinite(numbers[name].values)]
        ends = interval.low[place], interval.high[place]
        values[name] = _value(float(finite.mean()) if finite.size else None, ends, numbers[name])
    for name in SHARES:
        finite = numbers[name].values[np.isfinite(numbers[name].values)]
        share = float(finite.mean()) if finite.size else None
        ends = share_of_clusters(numbers[name].values, clusters, LEVEL)
        values[name] = _value(share, ends, numbers[name])
    delays = numbers["mean_delay"]
    finite = delays.values[np.isfinite(delays.values)]
    median = float(np.median(finite)) if finite.size else None
    values["median_delay"] = _value(
        median, _interval_of_median(delays, clusters, seed, resamples), delays
    )
    return {name: values[name] for name in sorted(values)}


def _interval_of_median(
    delays: Numbers, clusters: Integers, seed: int, resamples: int
) -> tuple[float, float]:
    """Interval of the median delay."""
    has_value = np.isfinite(delays.values)
    if len(np.unique(clusters)) == len(clusters) or not has_value.any():
        interval = bootstrap_interval(delays.values, seed, LEVEL, resamples, "median")
        return float(interval.low), float(interval.high)
    detected = delays.values[has_value].astype(np.int64)
    return _interval_of_clusters(
        detected, np.ones(len(detected), bool), clusters[has_value], seed, resamples
    )


def _interval_of_clusters(
    delay: Integers, is_event: Bools, clusters: Integers, seed: int, resamples: int
) -> tuple[float, float]:
    """Percentiles of Kaplan-Meier medians of resampled clusters; NaN beyond the end of trials."""
    labels, place = np.unique(clusters, return_inverse=True)
    medians = np.concatenate(
        [
            kaplan_meier_median(delay, is_event, weights[:, place])
            for weights in resample_weights(len(labels), resamples, seed)
        ]
    )
    # A resample whose median is beyond the end of the trials is above all that have one.
    low, high = (_quantile(medians, share) for share in ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return low, high


def _one(value: float, reason: int, low: float = math.nan, high: float = math.nan) -> Numbers:
    """A single number with its interval."""
    return Numbers(np.float64(value), np.int32(reason), np.float64(low), np.float64(high))


def _value(value: float | None, ends: tuple[float, float], per_trial: Numbers) -> Numbers:
    if value is None:
        codes, votes = np.unique(per_trial.reasons, return_counts=True)
        return _one(math.nan, codes[votes.argmax()])
    if not np.isfinite(ends[0]):
        return _one(value, Reason.TOO_FEW_LIFETIMES)
    return _one(value, Reason.NONE, *ends)


def _hidden_reason(visibility: int, none: bool) -> Reason:
    if visibility == 1:
        return Reason.VISIBLE
    return Reason.NO_NOVELTY if none else Reason.NONE


def _censored(
    times: npt.NDArray[np.int64], clusters: Integers, hidden: Reason, seed: int, resamples: int
) -> Numbers:
    """Median delay over all trials; trials in which novelty is never found are censored."""
    if hidden is not Reason.NONE:
        return _one(math.nan, hidden)
    delay, is_event = times[0], times[1].astype(bool)
    whole = kaplan_meier_median(delay, is_event, np.ones((1, len(delay))))[0]
    if not np.isfinite(whole):
        return _one(math.nan, Reason.FEW_DETECTED if is_event.any() else Reason.NOT_DETECTED)
    ends = _interval_of_clusters(delay, is_event, clusters, seed, resamples)
    return _one(float(whole), Reason.NONE, *ends)


def _quantile(medians: npt.NDArray[np.float64], share: float) -> float:
    value = float(np.sort(medians)[round(share * (len(medians) - 1))])
    return value if math.isfinite(value) else math.nan


def kaplan_meier_median(
    delay: npt.NDArray[np.int64], is_event: Bools, weights: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Median delay with right-censored delays, by the Kaplan-Meier estimator.

    Args:
      delay: (T,) episodes.
      is_event: (T,) bool, False if the novelty was not found within the delay.
      weights: (R, T) how often each trial counts, in R resamples.

    Returns:
      (R,) episodes; infinity if fewer than half are ever found.

    Source: E. L. Kaplan and P. Meier, Journal of the American Statistical Association 53 (1958).
    """
    times = np.unique(delay[is_event]) if is_event.any() else np.zeros(1, delay.dtype)
    at_risk = weights @ (delay[:, None] >= times).astype(np.float64)
    events = weights @ ((delay[:, None] == times) & is_event[:, None]).astype(np.float64)
    survival = np.cumprod(1 - events / np.maximum(at_risk, 1), axis=1)
    half = survival <= 0.5 + ROUNDING
    median = times[half.argmax(axis=1)].astype(np.float64)
    return np.where(half.any(axis=1), median, np.inf)
