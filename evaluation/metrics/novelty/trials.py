"""What the metrics of novelty are computed from: trials as padded arrays."""

from typing import NamedTuple

from evaluation.metrics.numerics import Array, namespace


class Trials(NamedTuple):
    """Trials of an agent, with those of the baseline on the same episodes.

    A trial is a row of episodes that ends in a novel world or, at level 0, does not. Arrays are
    padded behind each trial's end; what stands there is of no account.

    Attributes:
      performance: (..., E) the agent's, in [0, 1]; NaN for an episode that was not played.
      baseline: (..., E) the baseline's on the same episodes; NaN where there is none.
      probability: (..., E) of novelty, as reported at the end of each episode; NaN for no report.
      threshold: (..., E) probability from which the agent calls it a detection.
      button: (...) integer number of the first novel episode, from 0; the trial's length if none
        is novel.
      count: (...) integer number of episodes of the trial, at most E.
    """

    performance: Array
    baseline: Array
    probability: Array
    threshold: Array
    button: Array
    count: Array


def episodes(trials: Trials) -> Array:
    """Number of each episode in its trial, (E,)."""
    return namespace(trials.probability).arange(trials.probability.shape[-1])


def before(trials: Trials) -> Array:
    """Whether an episode comes before the first novel one, (..., E)."""
    return episodes(trials) < trials.button[..., None]


def after(trials: Trials) -> Array:
    """Whether an episode is the first novel one or comes later, (..., E).

    Those that are mixed in unchanged are among them.
    """
    number = episodes(trials)
    return (number >= trials.button[..., None]) & (number < trials.count[..., None])


def flagged(trials: Trials) -> Array:
    """Whether the agent called an episode novel, (..., E); never where it reported nothing."""
    inside = episodes(trials) < trials.count[..., None]
    return (trials.probability >= trials.threshold) & inside
