"""Metrics of whether and when an agent detects the novelty."""

from typing import NamedTuple

from evaluation.metrics.novelty.trials import Trials, after, before, episodes, flagged
from evaluation.metrics.numerics import Array, Numbers, divide, namespace, numbers, pairwise_sum
from evaluation.metrics.reasons import Reason


class Detection(NamedTuple):
    """Counts of one trial each, (...).

    Attributes:
      false_positives: flagged episodes before the first novel one.
      true_positives: flagged episodes from the first novel one on.
      true_negatives: other episodes before the first novel one.
      delay: episodes of the novel part before the first flagged one; all of them if none is.
      correct: whether the trial is correctly detected (CDT): a true positive, no false positive.
    """

    false_positives: Array
    true_positives: Array
    true_negatives: Array
    delay: Array
    correct: Array


def detection(trials: Trials) -> Detection:
    """Count alarms before and after the first novel episode.

    Args:
      trials: batched trials.

    Returns:
      `Detection` of (...). Without novelty the delay is 0 and no trial is correct.

    Source: T. Boult, L. Holder et al., analysis of the AIQ/SAIL-ON novelty generator (2021).
    """
    flags = flagged(trials)
    false = (flags & before(trials)).sum(axis=-1)
    true = (flags & after(trials)).sum(axis=-1)
    delay = first_hit(flags, trials) - trials.button
    return Detection(false, true, trials.button - false, delay, (false == 0) & (true > 0))


def first_hit(flags: Array, trials: Trials) -> Array:
    """Number of the first flagged episode of the novel part, (...); the trial's length if none."""
    xp = namespace(flags)
    last = trials.count[..., None]
    hits = xp.where(flags & after(trials), episodes(trials), last)
    return xp.minimum(xp.min(hits, axis=-1), trials.count)


def delay_of_detected(counts: Detection, trials: Trials) -> Numbers:
    """Delay of the trials that are correctly detected (M1 is its mean), episodes, (...)."""
    values = counts.delay.astype(trials.probability.dtype)
    none = (trials.button >= trials.count, Reason.NO_NOVELTY)
    return numbers(values, none, (~counts.correct, Reason.NOT_DETECTED))


def correct_rejections(counts: Detection, trials: Trials, wsu: bool = False) -> Numbers:
    """Share of the episodes before novelty that are not flagged (M2.2), (...).

    Args:
      counts: of `detection`.
      trials: the trials.
      wsu: whether to give 0, as the generator's analysis does, without an episode before novelty.
    """
    xp = namespace(trials.probability)
    dtype = trials.probability.dtype
    share = divide(counts.true_negatives.astype(dtype), xp.maximum(trials.button, 1).astype(dtype))
    return numbers(share, ((trials.button == 0) & (not wsu), Reason.NOTHING_BEFORE))


def amoc_wsu(trials: Trials) -> Array:
    """Area under the curve of alarms as in the generator's analysis (AMOC), (...).

    All episodes with a probability above 0 are alarms, in order of decreasing probability, then of
    episodes. Along them, x counts alarms before novelty and y is the score of the earliest alarm of
    the novel part so far; both are scaled to end at 1. So the area measures how alarms are ordered,
    not how late they come. Without an alarm it is 0.

    Source: T. Boult, L. Holder et al., analysis of the AIQ/SAIL-ON novelty generator (2021).
    """
    xp = namespace(trials.probability)
    number, dtype = episodes(trials), trials.probability.dtype
    alarm = (trials.probability > 0) & (number < trials.count[..., None])
    order = xp.argsort(xp.where(alarm, -trials.probability, xp.inf), axis=-1, stable=True)
    alarm = xp.take_along_axis(alarm, order, axis=-1)
    novel = order >= trials.button[..., None]
    false = xp.cumsum(alarm & ~novel, axis=-1).astype(dtype)
    earliest = xp.minimum.accumulate(
        xp.where(alarm & novel, order, trials.count[..., None]), axis=-1
    )
    most = (trials.count - trials.button + 1)[..., None].astype(dtype)
    late = (earliest - trials.button[..., None]).astype(dtype)
    score = xp.where(earliest < trials.count[..., None], divide(most - late, most), 0)
    return _area(_scaled(false), _scaled(score))


def _scaled(heights: Array) -> Array:
    """Divide each row by its last value, if that is above 0."""
    xp = namespace(heights)
    last = heights[..., -1:]
    return divide(heights, xp.where(last > 0, last, 1))


def amoc_delay(trials: Trials) -> Array:
    """Area under delay by false alarms over all thresholds, (...); 0 is best and 1 worst.

    For a threshold above 0, x is the share of episodes before novelty that would be flagged, and y
    is the delay as a share of the novel part, 1 without a detection. The curve begins at (0, 1),
    where nothing is flagged, and is constant behind its last point. Trials need novelty.

    Source: T. Fawcett and F. Provost, Activity Monitoring (1999).
    """
    xp = namespace(trials.probability)
    dtype = trials.probability.dtype
    number = episodes(trials)
    inside = number < trials.count[..., None]
    score = xp.where(inside & (trials.probability > 0), trials.probability, -1)
    order = xp.argsort(-score, axis=-1, stable=True)
    levels = xp.take_along_axis(score, order, axis=-1)
    novel = order >= trials.button[..., None]
    alarms = xp.cumsum((levels > 0) & ~novel, axis=-1)
    hits = xp.where((levels > 0) & novel, order, trials.count[..., None])
    earliest = xp.minimum.accumulate(hits, axis=-1)
    # A threshold flags all episodes of its level, so each takes the value of the last equal one.
    last = xp.concatenate([levels[..., 1:] != levels[..., :-1], inside[..., :1] | True], axis=-1)
    places = xp.flip(xp.where(last, number, number.shape[0]), axis=-1)
    level_end = xp.flip(xp.minimum.accumulate(places, axis=-1), axis=-1)
    false = xp.take_along_axis(alarms, level_end, axis=-1)
    missed = xp.take_along_axis(earliest, level_end, axis=-1) - trials.button[..., None]
    length = xp.maximum(trials.count - trials.button, 1)[..., None].astype(dtype)
    x = divide(false.astype(dtype), xp.maximum(trials.button, 1)[..., None].astype(dtype))
    y = divide(missed.astype(dtype), length)
    # Behind the last level the curve is constant.
    real = levels > 0
    ends = xp.maximum(real.sum(axis=-1) - 1, 0)[..., None]
    none = ~real.any(axis=-1)[..., None]
    x = xp.where(none, 0, xp.where(real, x, xp.take_along_axis(x, ends, axis=-1)))
    y = xp.where(none, 1, xp.where(real, y, xp.take_along_axis(y, ends, axis=-1)))
    return _area(x, y, first=1)


def _area(x: Array, y: Array, first: int = 0) -> Array:
    """Area by trapezoids from (0, first) through the points, then constant up to x = 1."""
    xp = namespace(x)
    start, end = xp.zeros_like(x[..., :1]), xp.ones_like(x[..., :1])
    xs = xp.concatenate([start, x, end], axis=-1)
    ys = xp.concatenate([start + first, y, y[..., -1:]], axis=-1)
    return pairwise_sum((xs[..., 1:] - xs[..., :-1]) * (ys[..., 1:] + ys[..., :-1]) / 2)


class ThresholdIndex(NamedTuple):
    """Index of the detection in a sequence of instances, counted from 1; (...).

    Attributes:
      truth: the first novel instance.
      reported: the first instance whose probability reaches the threshold; N + 1 if none does.
      correct: whether the first report is at a novel instance.
      needed: novel instances up to and including the first detected one; 1 if there is none, as in
        the original.
    """

    truth: Array
    reported: Array
    correct: Array
    needed: Array


def threshold_index(novel: Array, probability: Array, threshold: float) -> ThresholdIndex:
    """Detection index of a sequence of instances at a fixed threshold.

    Args:
      novel: (..., N) bool, whether an instance is novel; at least one is.
      probability: (..., N).
      threshold: probability from which an instance counts as reported.

    Source: darpa-sail-on/sail-on-client, metrics of the image domain (M1, M2).
    """
    xp = namespace(probability)
    flags = probability >= threshold
    size = probability.shape[-1]
    place = xp.arange(1, size + 1)
    truth = xp.min(xp.where(novel, place, size + 1), axis=-1)
    reported = xp.min(xp.where(flags, place, size + 1), axis=-1)
    inside = place >= truth[..., None]
    hit = xp.min(xp.where(flags & inside, place, size + 1), axis=-1)
    needed = xp.where(hit > size, 1, hit - truth + 1)
    correct = (reported >= truth) & (reported <= size)
    return ThresholdIndex(truth, reported, correct, needed)


class Confusion(NamedTuple):
    """Instances by truth and report, and shares of them; (...), 0 if a divisor is zero.

    Attributes:
      true_positives: novel and reported.
      false_positives: reported only.
      true_negatives: neither.
      false_negatives: novel only.
      accuracy: share of right reports.
      precision: share of the reported that are novel.
      recall: share of the novel that are reported.
      f1: harmonic mean of precision and recall.
    """

    true_positives: Array
    false_positives: Array
    true_negatives: Array
    false_negatives: Array
    accuracy: Array
    precision: Array
    recall: Array
    f1: Array


def confusion(novel: Array, probability: Array, threshold: float) -> Confusion:
    """Compare instances at a fixed threshold; reported means strictly above it.

    Source: darpa-sail-on/sail-on-client, m_ndp.
    """
    xp = namespace(probability)
    flags = probability > threshold
    tp, fp = (flags & novel).sum(axis=-1), (flags & ~novel).sum(axis=-1)
    tn, fn = (~flags & ~novel).sum(axis=-1), (~flags & novel).sum(axis=-1)

    def share(part: Array, whole: Array) -> Array:
        return divide(part.astype(probability.dtype), xp.maximum(whole, 1))

    precision, recall = share(tp, tp + fp), share(tp, tp + fn)
    f1 = share(2 * tp, 2 * tp + fp + fn)
    return Confusion(tp, fp, tn, fn, share(tp + tn, tp + tn + fp + fn), precision, recall, f1)
