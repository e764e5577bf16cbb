"""Records as logs of the formats that other tools read."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from evaluation.logs.l2logger import LogRow, write_log
from evaluation.records import MEASURES, Records
from evaluation.schedule import Schedule


def write_l2logger(
    records: Records, lifetime: int, base: Path, start: datetime | None = None
) -> Path:
    """Write one lifetime as an l2logger 1.1 log directory.

    Args:
      records: of a run.
      lifetime: number of the lifetime.
      base: directory in which `<syllabus>-<time>` is made.
      start: time of the first episode; now if None. Episodes follow in simulated time.

    Returns:
      The directory written.

    Raises:
      ValueError: no such lifetime.
    """
    row = lifetime - records.first_lifetime
    if not 0 <= row < records.num_lifetimes:
        last = records.first_lifetime + records.num_lifetimes - 1
        raise ValueError(
            f"lifetime is {lifetime}; it must be from {records.first_lifetime} to {last}"
        )
    start = start or datetime.now()
    info = {
        "author": records.schedule.author,
        # The format wants these three; a syllabus does not rate itself.
        "complexity": "1-low",
        "difficulty": "2-medium",
        "scenario_type": "custom",
        "syllabus": records.schedule.name,
        "lifetime": lifetime,
        **{key: records.metadata[key] for key in ("agent", "seed") if key in records.metadata},
    }
    name = re.sub(r"[^0-9A-Za-z_-]+", "_", records.schedule.name) or "syllabus"
    return write_log(base, name, list(_rows(records, row, start)), MEASURES, info, start=start)


def task_labels(schedule: Schedule) -> list[str]:
    """Name every variant of a schedule `<task>_<variant>`, as the format wants it.

    The unchanged task is "default" and variants are numbered, because the format's readers join
    neighbouring blocks of one task name whatever their parameters.
    """
    return [
        re.sub(r"[^0-9A-Za-z]", "", task) + ("_default" if not parameters else f"_v{index}")
        for index, (task, parameters) in enumerate(schedule.variants)
    ]


def _rows(records: Records, row: int, start: datetime) -> Iterator[LogRow]:
    schedule = records.schedule
    labels, variants = task_labels(schedule), schedule.block_variants()
    elapsed = 0.0
    for episode, index in enumerate(schedule.episode_blocks()):
        block = schedule.blocks[index]
        columns = {name: column[row, episode].item() for name, column in records.columns.items()}
        elapsed += columns["seconds"]
        yield LogRow(
            block_num=block.index,
            exp_num=episode,
            block_type=block.mode,
            block_subtype="wake",
            task_name=labels[variants[index]],
            task_params=dict(block.parameters),
            exp_status="complete" if columns["complete"] else "incomplete",
            timestamp=start + timedelta(seconds=elapsed),
            metrics={name: columns[name] for name in MEASURES},
        )
