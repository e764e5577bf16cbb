"""A lifetime of classification as a log of the 2019 layout."""

import csv
import io
import json
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Final

from evaluation.files import write_whole
from evaluation.l2m.classification.course import Score
from evaluation.l2m.classification.syllabus import Syllabus
from evaluation.schedule import Block

WORKER: Final = "0"
DATA_COLUMNS: Final = (
    "timestamp",
    "phase",
    "worker",
    "class_name",
    "block",
    "seed",
    "task",
    "sub_task",
    "steps",
    "termination_status",
    "source",
    "score",
    "score_error",
)
REPORT_COLUMNS: Final = ("phase", "worker", "class_name", "block", "params")


def write_log(
    syllabus: Syllabus,
    scores: Sequence[Score],
    base: Path,
    seed: int,
    lifetime: int,
    start: datetime | None = None,
) -> Path:
    """Write one lifetime: ``<worker>/<phase>/<task>/{block-report,data-log}.tsv``, a row a batch.

    Args:
      syllabus: what was played.
      scores: of its batches, in order.
      base: directory in which ``<syllabus>-lifetime-<K>-<milliseconds>`` is made.
      seed: of the run.
      lifetime: number of the lifetime.
      start: time of the first batch; now if None. The others follow a microsecond apart.

    Returns:
      The directory written.
    """
    start = start or datetime.now()
    name = re.sub(r"[^0-9A-Za-z_-]+", "_", syllabus.schedule.name)
    folder = base / f"{name}-lifetime-{lifetime}-{int(start.timestamp() * 1000)}"
    blocks = syllabus.schedule.blocks
    order = {what: k for k, what in enumerate(dict.fromkeys((b.phase, b.mode) for b in blocks), 1)}
    members: dict[tuple[str, str], list[Block]] = {}
    for block in blocks:
        phase = f"{order[block.phase, block.mode]}-{block.phase}_{block.mode}"
        members.setdefault((phase, class_name(block)), []).append(block)
    by_block = {block: list(rows) for block, rows in groupby(scores, key=lambda s: s.block)}
    for (phase, task), own in members.items():
        where = folder / f"worker-{WORKER}" / phase / task
        rows = [
            _data_row(block, score, start, seed)
            for block in own
            for score in by_block.get(block.index, ())
        ]
        write_whole(where / "data-log.tsv", _tsv(DATA_COLUMNS, rows))
        reports = [(*_place(block), json.dumps(dict(block.parameters))) for block in own]
        write_whole(where / "block-report.tsv", _tsv(REPORT_COLUMNS, reports))
    return folder


def class_name(block: Block) -> str:
    """Return the logged name of a block's task, ``train_digits`` or ``test_digits``."""
    return f"{block.mode}_{block.task.lower()}"


def _place(block: Block) -> tuple[str, str, str, int]:
    return f"{block.phase}.{block.mode}", WORKER, class_name(block), block.index


def _data_row(block: Block, score: Score, start: datetime, seed: int) -> tuple[object, ...]:
    when = start + timedelta(microseconds=score.batch)
    return (
        when.strftime("%Y%m%dT%H%M%S.%f"),
        *_place(block),
        seed,
        score.batch,
        0,
        score.examples,
        "DONE",
        "GET_LABELS",
        repr(score.accuracy),
        repr(score.error),
    )


def _tsv(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter="\t", lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return buffer.getvalue()
