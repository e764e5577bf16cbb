"""Single-task experts (STE) from logs and records.

An STE is an agent that learned one task only. Lifelong learners are compared with its training
performance: with the saturation value alone, as in the file of 2019 (`ste_info`), or with whole
curves. This module reads curves from logs and from records.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from evaluation import records as stored_records
from evaluation.l2m.l2metrics.experts import make_ste_run
from evaluation.l2m.l2metrics.reading import LOGGER_INFO, read_log_columns
from evaluation.l2m.ste_store import SteRun
from evaluation.logs.export import row_of, task_labels
from evaluation.records import MEASURES, Records
from evaluation.schedule import Schedule, Variant

RECORDS_FILE = "records.parquet"


@dataclass(frozen=True)
class _Training:
    """Training of one lifetime, without episodes that were cut off.

    Attributes:
      lifetime: its number.
      episodes: (n,) numbers of the episodes in the lifetime.
      row: of the lifetime in the records.
    """

    lifetime: int
    episodes: npt.NDArray[np.int64]
    row: int


def from_directory(
    path: Path, lifetimes: Sequence[int] | None = None, syllabus: Schedule | None = None
) -> tuple[str, list[SteRun]]:
    """Read the experts of a log directory, of a directory of `jaxsim run`, or of its records.

    Args:
      path: directory or ``records.parquet``.
      lifetimes: numbers of the records' lifetimes to read; all if None.
      syllabus: the lifelong syllabus that the experts are for, see `from_records`.

    Returns:
      The task, in lower case, and its runs.

    Raises:
      ValueError: says what is wrong with the files.
    """
    if (path / LOGGER_INFO).is_file():
        if lifetimes is not None or syllabus is not None:
            raise ValueError(
                f"{path} is the log of one lifetime and has the name of its task; lifetimes and a "
                "syllabus are for directories of jaxsim run"
            )
        task, run = make_ste_run(read_log_columns(path))
        return task, [run]
    file = path / RECORDS_FILE if path.is_dir() else path
    if not file.is_file():
        raise ValueError(f"{path} has neither {LOGGER_INFO} nor {RECORDS_FILE}; give one that has")
    name = file.resolve().parent.name
    return runs_of_records(stored_records.read(file), lifetimes, syllabus, name)


def runs_of_records(
    records: Records,
    lifetimes: Sequence[int] | None = None,
    syllabus: Schedule | None = None,
    source: str = "records",
) -> tuple[str, list[SteRun]]:
    """Convert lifetimes that trained a single task to runs of its expert, with every measure.

    Args:
      records: as for `from_records`.
      lifetimes: as for `from_records`.
      syllabus: as for `from_records`.
      source: origin of the runs; the number of the lifetime is appended.

    Returns:
      Name of the task in lower case, and a run of its training episodes for each lifetime.

    Raises:
      ValueError: as `from_records`.
    """
    records = records.by_episode()
    blocks = records.schedule.episode_blocks()
    runs = [
        SteRun(
            measures={
                name: np.asarray(records.columns[name][part.row, part.episodes], np.float64)
                for name in MEASURES
            },
            experiences=part.episodes,
            regimes=blocks[part.episodes].astype(np.int32),
            train=np.ones(len(part.episodes), bool),
            source=f"{source}, lifetime {part.lifetime}",
        )
        for part in _trainings(records, lifetimes)
    ]
    return _expert_name(records, syllabus), runs


def from_records(
    records: Records,
    measure: str = "performance",
    lifetimes: Sequence[int] | None = None,
    syllabus: Schedule | None = None,
) -> dict[str, list[npt.NDArray[np.float64]]]:
    """Convert lifetimes that trained a single task to training curves of its expert.

    A curve is the performance in the training blocks, in order. As in readers of logs, episodes
    that were cut off or have no finite value are left out.

    Args:
      records: of a syllabus that trains one task with one set of parameters; it may test other
        tasks.
      measure: column used as an episode's value, "performance", "reward" or "length".
      lifetimes: numbers of the lifetimes to use; all if None.
      syllabus: the lifelong syllabus that the expert is for, because its logs may name the task
        differently; that of the records if None.

    Returns:
      Name of the task in lower case, as in readers of logs -> one (n,) curve per lifetime.

    Raises:
      ValueError: no or several trained tasks, a task that the syllabus does not have, an unknown
        measure or lifetime, or a lifetime without any value.
    """
    if measure not in MEASURES:
        raise ValueError(f"measure is {measure!r}; it must be one of {', '.join(MEASURES)}")
    records = records.by_episode()
    name = _expert_name(records, syllabus)
    curves = np.asarray(records.columns[measure], np.float64)
    runs = []
    for part in _trainings(records, lifetimes):
        curve = curves[part.row, part.episodes]
        if not np.isfinite(curve).any():
            raise ValueError(_no_value(part.lifetime, measure))
        runs.append(curve[np.isfinite(curve)])
    return {name: runs}


def _expert_name(records: Records, syllabus: Schedule | None) -> str:
    """Name of the single trained task.

    Raises:
      ValueError: there is no trained task, or more than one.
    """
    schedule = records.schedule
    variants = list(dict.fromkeys(b.variant for b in schedule.blocks if b.mode == "train"))
    if len(variants) != 1:
        listed = ", ".join(_in_words(variant) for variant in variants) or "none"
        raise ValueError(
            f"an expert is trained on one task with one set of parameters, but {schedule.name} "
            f"trains {len(variants)}: {listed}"
        )
    return _name(variants[0], syllabus or schedule)


def _trainings(records: Records, lifetimes: Sequence[int] | None) -> Iterator[_Training]:
    """Yield the training of some lifetimes, or of all.

    Raises:
      ValueError: an unknown lifetime, or one without a complete training episode.
    """
    schedule, first = records.schedule, records.first_lifetime
    is_training = np.array([block.mode == "train" for block in schedule.blocks])
    training = is_training[schedule.episode_blocks()]
    numbers = range(first, first + records.num_lifetimes) if lifetimes is None else lifetimes
    for number in numbers:
        row = row_of(records, number)
        episodes = np.flatnonzero(training & records.columns["complete"][row])
        if not len(episodes):
            raise ValueError(_no_value(number, "value"))
        yield _Training(number, episodes, row)


def _no_value(lifetime: int, measure: str) -> str:
    return (
        f"lifetime {lifetime} has no complete training episode with a finite {measure}; "
        "leave it out"
    )


def _name(variant: Variant, schedule: Schedule) -> str:
    """Name of a task in logs of a schedule."""
    if variant not in schedule.variants:
        listed = "; ".join(_in_words(other) for other in schedule.variants)
        raise ValueError(f"{schedule.name} does not have {_in_words(variant)}; it has {listed}")
    return task_labels(schedule)[schedule.variants.index(variant)].lower()


def _in_words(variant: Variant) -> str:
    task, parameters = variant
    return " ".join([task, *(f"{path}={value}" for path, value in parameters)])
