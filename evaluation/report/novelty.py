"""Scores of the novelty predictions of a run, per lifetime and over lifetimes."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from evaluation.json_types import JsonObject
from evaluation.metrics import Summary, summarise_all
from evaluation.metrics.novelty.lifetimes import (
    EpisodePredictions,
    is_default,
    novelty_by_block,
    novelty_by_lifetime,
)
from evaluation.metrics.numerics import Numbers
from evaluation.records import Records
from evaluation.report.entries import entry_of
from evaluation.schedule import Schedule
from jaxsim import registry
from jaxsim.parameters import Values


@dataclass(frozen=True)
class NoveltySummary:
    """Scores of novelty predictions over lifetimes.

    Attributes:
      blocks: metric name -> summary with (B,) arrays.
      lifetime: metric name -> summary with () arrays.
      novel: (B,) whether the world of a block differs from the task's default.
    """

    blocks: Mapping[str, Summary]
    lifetime: Mapping[str, Summary]
    novel: tuple[bool, ...]

    def to_json(self) -> JsonObject:
        """Return plain JSON values; a number that is missing is null with a reason beside it."""
        return {
            "metrics": {name: entry_of(summary, ()) for name, summary in self.lifetime.items()},
            "blocks": [
                {
                    "block": index,
                    "novel": novel,
                    "metrics": {name: entry_of(s, index) for name, s in self.blocks.items()},
                }
                for index, novel in enumerate(self.novel)
            ],
        }


def novel_variants(schedule: Schedule, levels: np.ndarray) -> np.ndarray:
    """Which variants of a schedule differ from the task's default world.

    Args:
      schedule: what was played.
      levels: (P,) catalogue level of each variant, 0 for none.

    Returns:
      (P,) bool, true for a level of the catalogue or a parameter that is not at its default.
    """
    changed = [_changes(task, dict(parameters)) for task, parameters in schedule.variants]
    return np.asarray((np.asarray(levels) > 0) | np.array(changed, bool))


def _changes(task: str, parameters: Values) -> bool:
    world = {path: value for path, value in parameters.items() if not path.startswith("novelty/")}
    if not world:
        return False
    try:
        spec = registry.spec(task)
    except ValueError:  # a task of a data set or of a user
        return True
    table = spec.parameters
    return any(
        path not in table or table[path].default != value
        for path, value in world.items()
        if path not in spec.limits
    )


def predictions_of(records: Records) -> EpisodePredictions | None:
    """Novelty predictions of a run; None if there are none."""
    schedule, levels = records.schedule, np.asarray(records.novelty_levels, np.int32)
    novel = novel_variants(schedule, levels)
    variants, blocks = schedule.block_variants(), schedule.episode_blocks()
    digits = np.where(novel & (levels == 0), -1, levels)
    predictions = EpisodePredictions(
        level=records.columns["predicted_level"],
        probability=records.columns["predicted_probability"],
        threshold=records.columns["threshold"],
        novel=novel[variants][blocks],
        true_level=digits[variants][blocks],
        block=blocks,
        changed=np.diff(variants, prepend=-1) != 0,
    )
    return None if is_default(predictions) else predictions


@dataclass(frozen=True)
class NoveltyScores:
    """Scores of every lifetime: (L, B) and (L,) numbers by name."""

    blocks: Mapping[str, Numbers]
    lifetime: Mapping[str, Numbers]


def novelty_scores(records: Records) -> NoveltyScores | None:
    """Score the predictions of every lifetime of a run; None if there are none to score."""
    predictions = predictions_of(records)
    if predictions is None:
        return None
    return NoveltyScores(novelty_by_block(predictions), novelty_by_lifetime(predictions))


def summarise_novelty(records: Records, seed: int = 0) -> NoveltySummary | None:
    """Score predictions with 95 % intervals over lifetimes; None if there are none to score.

    Args:
      records: of L lifetimes.
      seed: of the bootstrap.
    """
    scores = novelty_scores(records)
    return None if scores is None else summarise_scores(records, scores, seed)


def summarise_scores(records: Records, scores: NoveltyScores, seed: int = 0) -> NoveltySummary:
    """Summarise scores over lifetimes, with 95 % intervals."""
    novel = novel_variants(records.schedule, records.novelty_levels)
    return NoveltySummary(
        summarise_all(scores.blocks, seed),
        summarise_all(scores.lifetime, seed),
        tuple(novel[records.schedule.block_variants()].tolist()),
    )
