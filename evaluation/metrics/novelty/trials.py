"""Trials as padded arrays, the input of the metrics of novelty."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from evaluation.metrics.numerics import Array, Numbers, namespace
from evaluation.metrics.registry import Lifetime, MetricRow, over_all, over_lifetimes


class Trials(NamedTuple):
    """Trials of an agent, with those of the baseline on the same episodes.

    A trial is a sequence of episodes that, unless at level 0, ends in a novel world. Arrays are
    padded behind each trial's end; padding is ignored.

    Attributes:
      performance: (..., E) of the agent, in [0, 1]; NaN for an episode that was not played.
      baseline: (..., E) performance of the baseline on the same episodes; NaN for none.
      probability: (..., E) of novelty, as reported at the end of each episode; NaN for no report.
      threshold: (..., E) probability from which the agent reports a detection.
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

    Unchanged episodes that are mixed into the novel part are included.
    """
    number = episodes(trials)
    return (number >= trials.button[..., None]) & (number < trials.count[..., None])


def flagged(trials: Trials) -> Array:
    """Whether the agent reported an episode as novel, (..., E); false without a report."""
    inside = episodes(trials) < trials.count[..., None]
    return (trials.probability >= trials.threshold) & inside


def custom_of_trials(rows: Sequence[MetricRow], trials: Trials) -> Mapping[str, Numbers]:
    """Custom metrics of each of T trials; metrics of blocks and tasks are averaged.

    Raises:
      MetricError: a metric cannot be computed.
    """
    numbers = over_lifetimes(rows, _lifetimes(trials)) if rows else {}
    return {name: n if n.values.ndim == 1 else over_all(n) for name, n in numbers.items()}


def _lifetimes(trials: Trials) -> Iterator[Lifetime]:
    """Each trial as a lifetime of two blocks: before novelty, and from the first novel episode."""
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
