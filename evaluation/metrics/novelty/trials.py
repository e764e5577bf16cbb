"""What the metrics of novelty are computed from: trials as padded arrays."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from evaluation.metrics.numerics import Array, Numbers, namespace
from evaluation.metrics.registry import Lifetime, Row, over_all, over_lifetimes


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


def own_of_trials(rows: Sequence[Row], trials: Trials) -> Mapping[str, Numbers]:
    """Metrics of users for each of T trials; of blocks and tasks the mean over them.

    Raises:
      MetricError: one of them cannot be computed.
    """
    found = over_lifetimes(rows, _lifetimes(trials)) if rows else {}
    return {name: of if of.values.ndim == 1 else over_all(of) for name, of in found.items()}


def _lifetimes(trials: Trials) -> Iterator[Lifetime]:
    """Each trial as a lifetime of two blocks, before the first novel episode and from it on."""
    for performance, base, probability, threshold, button, count in zip(*trials, strict=True):
        counts = np.array([button, count - button], np.int64)
        inside = np.arange(max(counts.max(), 1)) < counts[:, None]

        def arranged(row: Array, inside: Array = inside, count: int = count) -> Array:
            blocks = np.full(inside.shape, np.nan)
            blocks[inside] = row[:count]
            return blocks

        yield Lifetime(
            arranged(performance),
            counts,
            train=np.zeros(2, bool),
            tasks=np.zeros(2, np.int64),
            task_names=("trial",),
            probability=arranged(probability),
            threshold=arranged(threshold),
            novel=np.array([False, True]),
            baseline=arranged(base),
        )
