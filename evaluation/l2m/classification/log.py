"""Writer of a lifetime of classification as a log of the 2019 layout."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from evaluation.l2m.classification import data
from evaluation.l2m.classification.course import BatchScore
from evaluation.l2m.classification.syllabus import DatasetSyllabus
from evaluation.logs.learnkit import LearnkitRow
from evaluation.logs.learnkit import write_log as write_rows
from evaluation.schedule import Block


def write_log(
    syllabus: DatasetSyllabus,
    scores: Sequence[BatchScore],
    base: Path,
    seed: int,
    lifetime: int,
    start: datetime | None = None,
) -> Path:
    """Write one lifetime, one row per batch.

    Args:
      syllabus: of the lifetime.
      scores: of its batches, in order.
      base: directory in which ``<syllabus>-lifetime-<K>-<milliseconds>`` is made.
      seed: of the run.
      lifetime: number of the lifetime.
      start: time of the first batch; now if None. Batches are a microsecond apart.

    Returns:
      The directory written.
    """
    begin = start or datetime.now()
    name = re.sub(r"[^0-9A-Za-z_-]+", "_", syllabus.schedule.name)
    blocks = syllabus.schedule.blocks
    rows = (_row(blocks[score.block], score, seed, begin) for score in scores)
    return write_rows(base, f"{name}-lifetime-{lifetime}", rows, begin)


def class_name(block: Block) -> str:
    """Return the logged name of a block's task, ``train_digits`` or ``test_digits``."""
    return f"{block.mode}_{block.task.lower()}"


def _row(block: Block, score: BatchScore, seed: int, start: datetime) -> LearnkitRow:
    info = dict(data.spec(block.task).get_batch_log_info(score.examples, score.correct))
    if "score" not in info:
        raise ValueError(f"get_batch_log_info of {block.task} gives no 'score', only {list(info)}")
    return LearnkitRow(
        phase=f"{block.phase}.{block.mode}",
        class_name=class_name(block),
        params=dict(block.parameters),
        block=block.index,
        task=score.batch,
        measures=info,
        seed=seed,
        steps=score.examples,
        source="GET_LABELS",
        timestamp=start + timedelta(microseconds=score.batch),
    )
