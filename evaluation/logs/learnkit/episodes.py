"""Sub-episodes of a 2019 log averaged to episodes."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluation.logs.learnkit.format import LearnkitLog

NOT_DONE_POLICIES: Final = ("keep", "drop")


@dataclass(frozen=True)
class LearnkitEpisodes:
    """The E episodes of a log in order of their numbers.

    Attributes:
      block: (E,) int64 number of the block.
      episode: (E,) int64 number in the run; shared by all workers, so numbers may be missing.
      value: (E,) float64 mean of the measure over the sub-episodes that have a value; NaN without
        any.
      sub_episodes: (E,) int64 number of sub-episodes.
      steps: (E,) int64 steps of all sub-episodes; unrecorded steps count as 0.
      complete: (E,) bool, whether every sub-episode ended with ``DONE``.
    """

    block: np.ndarray
    episode: np.ndarray
    value: np.ndarray
    sub_episodes: np.ndarray
    steps: np.ndarray
    complete: np.ndarray


def episodes(log: LearnkitLog, measure: str = "reward", not_done: str = "keep") -> LearnkitEpisodes:
    """Average the sub-episodes of each episode.

    Args:
      log: of one run.
      measure: one of ``log.measures``.
      not_done: ``"keep"``: incomplete sub-episodes count like the others, as in the framework of
        2019; ``"drop"``: they are left out, and so are episodes without any other sub-episode.

    Returns:
      The episodes of all workers.

    Raises:
      ValueError: the log has no such measure, or an unknown policy.

    Source: the lifelong-learning metrics framework of December 2019, saturation value.
    """
    if measure not in log.measures:
        listed = ", ".join(log.measures)
        raise ValueError(f"measure is {measure!r}; {log.path} has {listed}")
    if not_done not in NOT_DONE_POLICIES:
        listed = " or ".join(NOT_DONE_POLICIES)
        raise ValueError(f"not_done is {not_done!r}; it must be {listed}")
    done = np.array([row.termination_status == "DONE" for row in log.rows], bool)
    mask = done if not_done == "drop" else np.ones(len(done), bool)
    rows = [row for row, is_used in zip(log.rows, mask, strict=True) if is_used]
    episode, first, place = np.unique(
        np.array([row.task for row in rows], np.int64), return_index=True, return_inverse=True
    )
    value = np.array([row.measures.get(measure, np.nan) for row in rows], np.float64)
    measured = np.bincount(place, ~np.isnan(value), len(episode))
    total = np.bincount(place, np.nan_to_num(value, posinf=np.inf, neginf=-np.inf), len(episode))
    with np.errstate(invalid="ignore"):
        mean = total / measured
    steps = np.bincount(place, [row.steps or 0 for row in rows], len(episode))
    return LearnkitEpisodes(
        block=np.array([row.block for row in rows], np.int64)[first],
        episode=episode,
        value=mean,
        sub_episodes=np.bincount(place, minlength=len(episode)),
        steps=steps.astype(np.int64),
        complete=np.bincount(place, ~done[mask], len(episode)) == 0,
    )
