"""Scores of novelty predictions over lifetimes whose blocks may have different worlds.

L lifetimes of one schedule have E episodes in B blocks. The schedule gives the novel episodes,
(E,); agents predict them, (L, E). The detection kernels get trials cut from a lifetime. A trial is
a sequence of novel episodes with the episodes in the unchanged world before it.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluation.metrics.novelty.detection import detection
from evaluation.metrics.novelty.measures import detecting
from evaluation.metrics.novelty.trials import Trials
from evaluation.metrics.numerics import Numbers, divide, masked_mean, numbers
from evaluation.metrics.reasons import Reason

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

BINS: Final = 10
"""Number of bins of equal width of the calibration error."""

AT_ONCE: Final = 2**22
"""Maximum of predictions that are scored at a time."""


class EpisodePredictions(NamedTuple):
    """Agents' predictions at the end of each episode, and the truth.

    Attributes:
      level: (L, E) integer novelty prediction, 0 for none.
      probability: (L, E) that the world has changed, in [0, 1].
      threshold: (L, E) probability from which the agent reports a detection.
      novel: (E,) whether the world of an episode differs from the unchanged one.
      true_level: (E,) digit of the level; 0 for none, below 0 if the change is not a level.
      block: (E,) integer number of the block.
      changed: (B,) whether the world of a block differs from that of the block before.
    """

    level: npt.NDArray[np.int32]
    probability: npt.NDArray[np.float32]
    threshold: npt.NDArray[np.float32]
    novel: Booleans
    true_level: npt.NDArray[np.int32]
    block: npt.NDArray[np.int32]
    changed: Booleans

    @property
    def reported(self) -> Booleans:
        """(L, E) whether an episode is reported as novel.

        An episode is reported if the probability reaches the threshold. An agent that gives no
        probability reports by a level above 0.
        """
        by_level = (self.threshold >= 1) & (self.probability == 0) & (self.level > 0)
        return np.asarray((self.probability >= self.threshold) | by_level)


def is_default(predictions: EpisodePredictions) -> bool:
    """Whether all predictions have the default value: nothing is novel."""
    silent = (predictions.level == 0) & (predictions.probability == 0)
    # A threshold of 0 is always reached, so it does not count as a prediction.
    return bool((silent & np.isin(predictions.threshold, (0, 1))).all())


def novelty_by_block(predictions: EpisodePredictions) -> dict[str, Numbers]:
    """Score predictions block by block.

    Returns:
      (L, B) `Numbers` by name: alarm_rate, detection_delay, block_level_accuracy.
    """
    reported, starts = predictions.reported, _starts(predictions.block)
    lengths = np.diff(np.append(starts, len(predictions.block)))
    novel = predictions.novel[starts]
    places = np.where(reported, np.arange(reported.shape[1]), reported.shape[1])
    first = np.minimum.reduceat(places, starts, axis=1)
    is_reported = first < starts + lengths
    alarms = np.add.reduceat(reported, starts, axis=1, dtype=np.int64)
    correct = (predictions.level == predictions.true_level) & (predictions.true_level >= 0)
    hits = np.add.reduceat(correct, starts, axis=1, dtype=np.int64)
    same = ~predictions.changed
    return {
        "alarm_rate": numbers(divide(alarms.astype(np.float64), lengths.astype(np.float64))),
        "detection_delay": numbers(
            (first - starts).astype(np.float64),
            (np.broadcast_to(~novel, first.shape), Reason.NOMINAL_BLOCK),
            (np.broadcast_to(same, first.shape), Reason.NO_CHANGE),
            (~is_reported, Reason.NOT_REPORTED_IN_BLOCK),
        ),
        "block_level_accuracy": numbers(
            divide(hits.astype(np.float64), lengths.astype(np.float64)),
            (np.broadcast_to(predictions.true_level[starts] < 0, hits.shape), Reason.NO_LEVEL),
        ),
    }


def novelty_by_lifetime(predictions: EpisodePredictions) -> dict[str, Numbers]:
    """Score predictions over each whole lifetime.

    Returns:
      (L,) `Numbers` by name: true_alarm_rate, false_alarm_rate, auc, brier, calibration_error,
      lifetime_level_accuracy, and those of `detecting` as means over the lifetime's trials.
    """
    step = max(1, AT_ONCE // max(len(predictions.novel), 1))
    parts = []
    for start in range(0, len(predictions.level), step):
        rows = slice(start, start + step)
        part = {n: getattr(predictions, n)[rows] for n in ("level", "probability", "threshold")}
        parts.append(_of_lifetimes(predictions._replace(**part)))
    return {
        name: Numbers(
            np.concatenate([scores[name].values for scores in parts]),
            np.concatenate([scores[name].reasons for scores in parts]),
        )
        for name in parts[0]
    }


def _of_lifetimes(predictions: EpisodePredictions) -> dict[str, Numbers]:
    novel, reported = predictions.novel, predictions.reported
    probability = predictions.probability.astype(np.float64)
    shape = probability.shape
    none = (np.full(shape[0], not novel.any()), Reason.NO_NOVELTY)
    all_novel = (np.full(shape[0], bool(novel.all())), Reason.ALL_NOVEL)
    has_level = np.broadcast_to(novel & (predictions.true_level > 0), shape)
    no_level = (np.full(shape[0], not has_level.any()), Reason.NO_LEVEL)

    def share(flags: npt.NDArray[np.bool_], mask: npt.NDArray[np.bool_]) -> Floats:
        return np.asarray(masked_mean(flags.astype(np.float64), np.broadcast_to(mask, shape))[0])

    correct = predictions.level == predictions.true_level
    result = {
        "true_alarm_rate": numbers(share(reported, novel), none),
        "false_alarm_rate": numbers(share(reported, ~novel), all_novel),
        "auc": numbers(area_under_roc(probability, novel), none, all_novel),
        "brier": numbers(masked_mean((probability - novel) ** 2, np.ones(shape, bool))[0]),
        "calibration_error": numbers(calibration_error(probability, novel)),
        "lifetime_level_accuracy": numbers(share(correct, has_level), none, no_level),
    }
    return result | _over_trials(predictions, reported)


def area_under_roc(probability: Floats, novel: Booleans) -> Floats:
    """Area under the ROC curve of the probability of novelty, by rank; ties count half.

    Args:
      probability: (L, E).
      novel: (E,).

    Returns:
      (L,) probability that a novel episode has a higher value than one that is not novel;
      meaningless if all or no episodes are novel.

    Source: J. A. Hanley and B. J. McNeil, Radiology 143 (1982).
    """
    ordered = np.sort(probability[:, ~novel], axis=1)
    pairs = max(int(novel.sum()) * int((~novel).sum()), 1)
    wins = [
        np.searchsorted(row, scores, "left").sum() + np.searchsorted(row, scores, "right").sum()
        for row, scores in zip(ordered, probability[:, novel], strict=True)
    ]
    return np.asarray(wins, np.float64) / (2 * pairs)


def calibration_error(probability: Floats, novel: Booleans) -> Floats:
    """Expected calibration error: distance of probability and share of novel episodes, by bin.

    Args:
      probability: (L, E) in [0, 1].
      novel: (E,).

    Returns:
      (L,) mean distance over `BINS` bins of equal width, weighted by their episodes.

    Source: M. P. Naeini, G. F. Cooper and M. Hauskrecht, AAAI (2015).
    """
    bins = np.clip((probability * BINS).astype(np.int64), 0, BINS - 1)
    total = np.zeros(len(probability))
    for number in range(BINS):
        inside = bins == number
        gap = np.where(inside, probability - novel, 0).sum(axis=1)
        total += np.abs(gap)
    return np.asarray(total / probability.shape[1])


def _starts(block: npt.NDArray[np.int32]) -> Integers:
    """(B,) number of the first episode of each block."""
    return np.flatnonzero(np.diff(block, prepend=-1))


def trial_spans(novel: Booleans) -> list[tuple[int, int, int]]:
    """Cut a lifetime into trials: (first episode, first novel one, end) of each."""
    edges = np.flatnonzero(np.diff(novel.astype(np.int8), prepend=0, append=0))
    begins, ends = edges[::2].tolist(), edges[1::2].tolist()
    firsts = [0, *ends[:-1]]
    return list(zip(firsts, begins, ends, strict=True))


def trials_of(predictions: EpisodePredictions, reported: Booleans) -> Trials:
    """The trials of every lifetime, leaves (L, N, E') and (L, N), without performance."""
    spans = trial_spans(predictions.novel)
    lifetimes, longest = len(reported), max(end - first for first, _, end in spans)
    shape = lifetimes, len(spans), longest
    probability, threshold = np.zeros(shape), np.ones(shape)
    for place, (first, _, end) in enumerate(spans):
        part = predictions.probability[:, first:end].astype(np.float64)
        by_level = reported[:, first:end] & (part < predictions.threshold[:, first:end])
        probability[:, place, : end - first] = np.where(by_level, 1.0, part)
        threshold[:, place, : end - first] = predictions.threshold[:, first:end]
    button = np.array([start - first for first, start, _ in spans])
    count = np.array([end - first for first, _, end in spans])
    missing = np.full(shape, np.nan)
    wide = (np.broadcast_to(array, shape[:2]) for array in (button, count))
    return Trials(missing, missing, probability, threshold, *wide)


def _over_trials(predictions: EpisodePredictions, reported: Booleans) -> dict[str, Numbers]:
    """(L,) means over the trials of a lifetime that have a value."""
    novel = predictions.novel
    if not novel.any():
        return {}
    trials = trials_of(predictions, reported)
    visible = np.zeros(trials.button.shape, bool)
    result = {}
    for name, numbers_of in detecting(trials, detection(trials), visible).items():
        mean, count = masked_mean(np.nan_to_num(numbers_of.values), numbers_of.reasons == 0)
        codes = np.where(count == 0, numbers_of.reasons[:, 0], 0)
        result[name] = Numbers(np.where(count == 0, np.nan, mean), codes.astype(np.int32))
    return result
