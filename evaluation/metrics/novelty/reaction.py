"""Performance of an agent under novelty, compared with a baseline on the same episodes."""

from typing import NamedTuple

import numpy as np

from evaluation.metrics.novelty.trials import Trials, after, before, episodes
from evaluation.metrics.numerics import Array, Numbers, divide, masked_mean, namespace, numbers
from evaluation.metrics.reasons import Reason

WINDOW_SHARE = 0.1
"""Default length of the windows of first and last novel episodes, as a share of a trial."""

ROBUST = 2.0  # standard deviations
LEAST_SPREAD = 1e-5  # lower bound of a divisor


class Reaction(NamedTuple):
    """Performance of one trial each, (...), by the names of metrics; m is the window.

    Attributes:
      asymptotic_nrp: mean of the agent's last m episodes over the baseline's before novelty (M3 if
        the agent is not told of the novelty, M4 if it is).
      initial_nrp: as asymptotic_nrp, for the first m novel episodes (M3.1, M4.1).
      overall_nrp: as asymptotic_nrp, for all episodes of the novel part.
      opti: the agent's share of both sums over the novel part; 0.5 is parity.
      ipti: as opti, for the first m novel episodes.
      apti: as opti, for the last m episodes.
      apti_ratio: the agent's sum over the baseline's, for the last m episodes.
      deviation: distance of the agent's means before and after, in standard deviations of before.
      deviation_baseline: deviation of the baseline.
      robust: 1 if the agent's deviation is below 2 (NRM), else 0.
      robust_baseline: 1 if the baseline's deviation is below 2, else 0.
      performance_pre: mean performance before novelty.
      performance_post: mean performance of the novel part.
      baseline_pre: the baseline's mean before novelty.
      baseline_post: the baseline's mean of the novel part.
      gain: mean of the last m episodes minus that of the first m novel ones.
      retained: mean of the last m episodes over the agent's mean before novelty.
    """

    asymptotic_nrp: Numbers
    initial_nrp: Numbers
    overall_nrp: Numbers
    opti: Numbers
    ipti: Numbers
    apti: Numbers
    apti_ratio: Numbers
    deviation: Numbers
    deviation_baseline: Numbers
    robust: Numbers
    robust_baseline: Numbers
    performance_pre: Numbers
    performance_post: Numbers
    baseline_pre: Numbers
    baseline_post: Numbers
    gain: Numbers
    retained: Numbers


def window_of(count: int, share: float = WINDOW_SHARE) -> int:
    """Length m of the windows of a trial, episodes, rounded down."""
    return int(share * count)


def reaction(trials: Trials, window: int, wsu: bool = False) -> Reaction:
    """Compare performance before and after novelty, and with the baseline.

    Args:
      trials: batched trials.
      window: episodes m at either end of the novel part.
      wsu: whether, as in the generator's analysis, ratios divide by 1e-5 instead of 0 and shares of
        0 are 0; otherwise such a number is missing.

    Returns:
      `Reaction` of (...).

    Source: T. Boult, L. Holder et al., analysis of the AIQ/SAIL-ON novelty generator (2021).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return _reaction(trials, window, wsu)


def _reaction(trials: Trials, window: int, wsu: bool) -> Reaction:
    parts = _Parts(trials, window)
    agent, base = trials.performance, trials.baseline
    pre, post = parts.mean(agent, parts.pre), parts.mean(agent, parts.post)
    pre_base, post_base = parts.mean(base, parts.pre), parts.mean(base, parts.post)
    first, last = parts.mean(agent, parts.first), parts.mean(agent, parts.last)
    first_base, last_base = parts.mean(base, parts.first), parts.mean(base, parts.last)
    deviation = _deviation(trials, agent, pre, post)
    deviation_base = _deviation(trials, base, pre_base, post_base)
    return Reaction(
        _ratio(last, pre_base, wsu),
        _ratio(first, pre_base, wsu),
        _ratio(post, pre_base, wsu),
        _share(post, post_base, wsu),
        _share(first, first_base, wsu),
        _share(last, last_base, wsu),
        _ratio(last, last_base, wsu),
        deviation,
        deviation_base,
        _below(deviation),
        _below(deviation_base),
        pre,
        post,
        pre_base,
        post_base,
        _both(last, first, last.values - first.values),
        _ratio(last, pre, wsu),
    )


class _Parts:
    """Masks of the parts of trials over which means are taken, (..., E) each."""

    def __init__(self, trials: Trials, window: int) -> None:
        self.trials = trials
        self.pre, self.post = before(trials), after(trials)
        number = episodes(trials)
        self.first = self.post & (number < trials.button[..., None] + window)
        end = trials.count[..., None]
        has_novelty = (trials.button < trials.count)[..., None]
        self.last = (number >= end - window) & (number < end) & has_novelty

    def mean(self, values: Array, part: Array) -> Numbers:
        """Mean over a part, with the reason if it is missing."""
        xp = namespace(values)
        finite = xp.isfinite(values)
        mean, _ = masked_mean(xp.where(finite, values, 0), part)
        empty = ~part.any(axis=-1)
        unplayed = (part & ~finite).any(axis=-1)
        missing = Reason.NOT_PLAYED if values is self.trials.performance else Reason.NO_BASELINE
        why = Reason.NOTHING_BEFORE if part is self.pre else Reason.WINDOW_EMPTY
        no_novelty = (self.trials.button >= self.trials.count) & (part is not self.pre)
        return numbers(mean, (no_novelty, Reason.NO_NOVELTY), (empty, why), (unplayed, missing))


def _both(one: Numbers, other: Numbers, values: Array) -> Numbers:
    """A number computed from two; its reason is that of the first missing one."""
    xp = namespace(values)
    reasons = xp.where(one.reasons != 0, one.reasons, other.reasons)
    reasons = xp.where(reasons != 0, reasons, numbers(values).reasons)
    return Numbers(xp.where(reasons == 0, values, np.nan), reasons)


def _with(values: Numbers, condition: Array, reason: Reason) -> Numbers:
    """A number that is also missing, with a reason, if a condition holds."""
    xp = namespace(values.values)
    codes = xp.where((values.reasons == 0) & condition, int(reason), values.reasons)
    return Numbers(xp.where(codes == 0, values.values, np.nan), codes)


def _ratio(one: Numbers, other: Numbers, wsu: bool) -> Numbers:
    xp = namespace(one.values)
    zero = other.values == 0
    safe = xp.where(zero, LEAST_SPREAD if wsu else 1, other.values)
    ratio = _both(one, other, divide(one.values, safe))
    return ratio if wsu else _with(ratio, zero, Reason.ZERO_BASELINE)


def _share(one: Numbers, other: Numbers, wsu: bool) -> Numbers:
    """Share of one mean in the sum of two over the same episodes."""
    xp = namespace(one.values)
    total = one.values + other.values
    zero = total == 0
    share = _both(one, other, divide(one.values, xp.where(zero, 1, total)))
    return share if wsu else _with(share, zero, Reason.ZERO_BASELINE)


def _deviation(trials: Trials, values: Array, pre: Numbers, post: Numbers) -> Numbers:
    """Distance of two means in population standard deviations before novelty."""
    xp = namespace(values)
    part = before(trials)
    offsets = xp.where(part & xp.isfinite(values), values - pre.values[..., None], 0)
    variance, _ = masked_mean(offsets * offsets, part)
    # Also of equal performances, whose variance is not zero but a rounding error.
    spread = xp.maximum(xp.sqrt(variance), LEAST_SPREAD)
    return _both(pre, post, divide(xp.abs(post.values - pre.values), spread))


def _below(deviation: Numbers) -> Numbers:
    xp = namespace(deviation.values)
    robust = xp.where(deviation.values < ROBUST, 1.0, 0.0).astype(deviation.values.dtype)
    return Numbers(xp.where(deviation.reasons == 0, robust, np.nan), deviation.reasons)
