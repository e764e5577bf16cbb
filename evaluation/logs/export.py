"""Export of records as logs in the formats of other tools."""

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np

from evaluation.files import read_json, write_json
from evaluation.json_types import JsonMapping, JsonObject, JsonValue
from evaluation.logs import learnkit
from evaluation.logs.coded import Coded
from evaluation.logs.l2logger.batch import write_columns
from evaluation.logs.l2logger.format import DEFAULT_WORKER
from evaluation.logs.texts import shortest
from evaluation.records import MEASURES, Records
from evaluation.schedule import Schedule


def write_l2logger(
    records: Records, lifetime: int, base: Path, start: datetime | None = None
) -> Path:
    """Write one lifetime as an l2logger 1.1 log directory.

    Episodes that were cut off are ``incomplete``. Sub-episodes are rows with one ``exp_num``. The
    worker of a shard is ``worker-<number>``.

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
    row = row_of(records, lifetime)
    begin = start or datetime.now()
    name = _run_name(records.schedule)
    columns = _schedule_columns(records.schedule) | _episode_columns(records, row, begin)
    worker = worker_of(records, "worker", DEFAULT_WORKER)
    info = _info(records, lifetime)
    return write_columns(base, name, columns, MEASURES, info, worker, begin)


def write_learnkit(
    records: Records, lifetime: int, base: Path, start: datetime | None = None
) -> Path:
    """Write one lifetime as a run of the 2019 framework.

    Every row is a sub-episode; one that was cut off is ``NOT_DONE``. The worker is ``env-0``, that
    of a shard ``env-<number>``. The reward is in the column ``reward``, the task score in the extra
    column ``performance``.

    Args:
      records: of a run.
      lifetime: number of the lifetime.
      base: directory in which `<syllabus>-<milliseconds>` is made.
      start: time of the first episode; now if None. Episodes follow in simulated time.

    Returns:
      The directory written.

    Raises:
      ValueError: no such lifetime.
    """
    row = row_of(records, lifetime)
    begin = start or datetime.now()
    name = _run_name(records.schedule)
    return learnkit.write_log(base, name, _learnkit_rows(records, row, begin), begin)


LONGEST_NAME: Final = 100
NOTE: Final = "logging.json"
"""File in a run's directory with the start of the logs that are being written."""
MOST_NOTE_BYTES: Final = 1024
FORMATS: Final[dict[str, Callable[..., Path]]] = {
    "l2logger": write_l2logger,
    "learnkit": write_learnkit,
}
"""Writers of one lifetime by the name of their format."""


def write_lifetimes(
    records: Records,
    base: Path,
    log_format: str = "l2logger",
    lifetimes: Sequence[int] | None = None,
    start: datetime | None = None,
) -> list[Path]:
    """Write each lifetime as a log directory in one base directory.

    Args:
      records: of a run.
      base: directory in which the directories are made.
      log_format: one of `FORMATS`.
      lifetimes: their numbers; all if None.
      start: time of the first episode of the first lifetime; now if None. Each lifetime starts a
        millisecond after the one before it, so that the times in the directories' names differ.

    Returns:
      The directories written, one per lifetime.

    Raises:
      ValueError: no such lifetime or format.
    """
    if log_format not in FORMATS:
        raise ValueError(f"log format is {log_format!r}; it must be {' or '.join(FORMATS)}")
    first = records.first_lifetime
    numbers = range(first, first + records.num_lifetimes) if lifetimes is None else lifetimes
    for number in numbers:
        row_of(records, number)
    begin = start or datetime.now()
    return [
        FORMATS[log_format](records, number, base, begin + timedelta(milliseconds=index))
        for index, number in enumerate(numbers)
    ]


@dataclass(frozen=True)
class Logging:
    """Settings of the logs that a run writes, in ``<folder>/logs/<name>-<time>``.

    Attributes:
      folder: of lifelong-learning data, such as $L2DATA.
      lifetimes: numbers of the lifetimes that are logged.
      log_format: one of `FORMATS`.
    """

    folder: Path
    lifetimes: tuple[int, ...] = (0,)
    log_format: str = "learnkit"

    @classmethod
    def of(
        cls, folder: Path | None, lifetimes: Sequence[int], log_format: str | None = None
    ) -> "Logging | None":
        """Make the settings; None without a folder or a lifetime."""
        if folder is None or not lifetimes:
            return None
        return cls(folder, tuple(lifetimes), log_format or "learnkit")

    def write(self, records: Records, out: Path) -> None:
        """Write the logs before the results of a run; `remove_note` follows these.

        The time in the names of the logs is kept in `out` until then. So a run that is killed in
        between and resumed writes the logs that are missing, and none a second time.

        Args:
          records: of the run.
          out: directory for its results.
        """
        note, episodes = out / NOTE, records.schedule.num_episodes
        start = _logging_start(note, episodes)
        resumed = start is not None
        if start is None:
            start = datetime.now()
            write_json(note, {"start": start.isoformat(), "episodes": episodes})
        for index, lifetime in enumerate(self.lifetimes):
            begin, base = start + timedelta(milliseconds=index), self.folder / "logs"
            with contextlib.suppress(*([FileExistsError] if resumed else [])):
                write_lifetimes(records, base, self.log_format, [lifetime], begin)

    @property
    def line(self) -> str:
        """The line that is printed at the start of a run, as in the 2019 document."""
        return f"Logging to: {self.folder / 'logs'}"


def _logging_start(note: Path, episodes: int) -> datetime | None:
    """Start of the logs of an interrupted run of so many episodes; None if there is none."""
    if not note.exists():
        return None
    content = read_json(note, MOST_NOTE_BYTES, "the start of logs")
    try:
        start = datetime.fromisoformat(content["start"])
        return start if content["episodes"] == episodes else None
    except (TypeError, LookupError, ValueError) as error:
        raise ValueError(f"{note}: is damaged; remove it to write the logs anew") from error


def remove_note(out: Path) -> None:
    """Forget that logs are being written: the results in `out` are complete, or begin anew."""
    (out / NOTE).unlink(missing_ok=True)


def task_labels(schedule: Schedule) -> list[str]:
    """Name every variant of a schedule `<task>_<variant>`, as l2logger requires.

    The unchanged task is "default" and variants are numbered: the format's readers join
    neighbouring blocks with one task name even if their parameters differ.
    """
    return [
        re.sub(r"[^0-9A-Za-z]", "", task) + ("_default" if not parameters else f"_v{index}")
        for index, (task, parameters) in enumerate(schedule.variants)
    ]


def check_logged(numbers: Iterable[int], first: int, lifetimes: int) -> None:
    """Check that a run has the lifetimes to log.

    Args:
      numbers: of the lifetimes to log.
      first: number of the first lifetime of the run.
      lifetimes: of the run.

    Raises:
      ValueError: no such lifetime.
    """
    last = first + lifetimes - 1
    for number in numbers:
        if not first <= number <= last:
            raise ValueError(f"log-lifetime is {number}; it must be from {first} to {last}")


def row_of(records: Records, lifetime: int) -> int:
    """Position of a lifetime in the columns of records.

    Raises:
      ValueError: no such lifetime.
    """
    row = lifetime - records.first_lifetime
    if not 0 <= row < records.num_lifetimes:
        last = records.first_lifetime + records.num_lifetimes - 1
        raise ValueError(
            f"lifetime is {lifetime}; it must be from {records.first_lifetime} to {last}"
        )
    return row


def worker_of(records: Records, kind: str, otherwise: str) -> str:
    """Name of the worker of a shard of a run, ``<kind>-<number>``, else ``otherwise``."""
    number = records.metadata.get("worker")
    return otherwise if number is None else f"{kind}-{number}"


def _run_name(schedule: Schedule) -> str:
    """Name of the schedule as part of a directory's name, with a limited length."""
    return re.sub(r"[^0-9A-Za-z_-]+", "_", schedule.name)[:LONGEST_NAME] or "syllabus"


def _info(records: Records, lifetime: int) -> JsonObject:
    """Content of scenario_info.json of a lifetime."""
    return {
        "author": records.schedule.author,
        # The format requires these three; a syllabus has no such ratings.
        "complexity": "1-low",
        "difficulty": "2-medium",
        "scenario_type": "custom",
        "syllabus": records.schedule.name,
        "lifetime": lifetime,
        **{key: records.metadata[key] for key in ("agent", "seed") if key in records.metadata},
    }


def _times(records: Records, row: int, start: datetime) -> np.ndarray:
    """End of each episode in simulated time, (E,) datetime64[us]."""
    elapsed = np.cumsum(records.columns["seconds"][row], dtype=np.float64)
    micros = np.rint(elapsed * 1e6).astype("timedelta64[us]")
    return np.asarray(np.datetime64(start.replace(tzinfo=None), "us") + micros)


def _schedule_columns(schedule: Schedule) -> dict[str, np.ndarray | Coded[Any]]:
    """Columns of an l2logger log that are equal in every lifetime."""
    episode_blocks, variants = schedule.episode_blocks(), schedule.block_variants()
    blocks = schedule.blocks
    codes = variants[episode_blocks]
    parameters = tuple(dict(parameters) for _, parameters in schedule.variants)
    modes = np.array([block.mode == "test" for block in blocks], np.int32)
    return {
        "block_num": np.array([block.index for block in blocks])[episode_blocks],
        "exp_num": schedule.episode_numbers(),
        "block_type": Coded(("train", "test"), modes[episode_blocks]),
        "task_name": Coded(tuple(task_labels(schedule)), codes),
        "task_params": Coded(parameters, codes),
    }


def _episode_columns(
    records: Records, row: int, start: datetime
) -> dict[str, np.ndarray | Coded[Any]]:
    """Columns of an l2logger log that differ between lifetimes."""
    cut = np.asarray(~records.columns["complete"][row], np.int32)
    return {
        "exp_status": Coded(("complete", "incomplete"), cut),
        "timestamp": _times(records, row, start),
        **{name: records.columns[name][row] for name in MEASURES},
    }


def _log_info(task: str) -> Callable[[JsonObject], JsonMapping] | None:
    """The hook of a task that gives the columns of an episode in a log; None for the default.

    A task's environment may have a method ``get_episode_log_info(totals)``. It gets the episode's
    reward, performance, length and complete, and returns the columns of the log's row: ``reward``
    and extra ones. It is called when the log is written, not during the episode.
    """
    from jaxsim import registry  # here, because it imports JAX

    try:
        env, _ = registry.make(task)
    except ValueError:  # a data set, or an unknown task
        return None
    hook: Any = getattr(env, "get_episode_log_info", None)
    return hook


def _measures(
    hook: Callable[[JsonObject], JsonMapping] | None, task: str, totals: JsonObject
) -> tuple[JsonObject, JsonObject]:
    """Reward and extra columns of an episode."""
    if hook is None:
        return {"reward": totals["reward"]}, {"performance": totals["performance"]}
    info = dict(hook(totals))
    if "reward" not in info:
        raise ValueError(f"get_episode_log_info of {task} gives no 'reward', only {list(info)}")
    return {"reward": info.pop("reward")}, info


def _learnkit_rows(records: Records, row: int, start: datetime) -> Iterator[learnkit.LearnkitRow]:
    schedule, seed = records.schedule, records.metadata.get("seed")
    worker = worker_of(records, "env", learnkit.DEFAULT_WORKER)
    columns: Mapping[str, list[JsonValue]] = {
        name: (shortest(column[row]) if name in ("reward", "performance") else column[row]).tolist()
        for name, column in records.columns.items()
    }
    times = _times(records, row, start).tolist()
    hooks = {task: _log_info(task) for task in {block.task for block in schedule.blocks}}
    totals = ("reward", "performance", "length", "complete")
    numbers = schedule.episode_numbers()
    parts = np.arange(len(numbers)) - np.searchsorted(numbers, numbers)
    places = zip(schedule.episode_blocks().tolist(), numbers.tolist(), parts.tolist(), strict=True)
    for episode, (index, number, part) in enumerate(places):
        block = schedule.blocks[index]
        values = {name: columns[name][episode] for name in totals}
        measures, extras = _measures(hooks[block.task], block.task, values)
        yield learnkit.LearnkitRow(
            phase=f"{block.phase}.{block.mode}",
            class_name=re.sub(r"[^0-9A-Za-z_.-]+", "_", block.task),
            params=dict(block.parameters),
            block=block.index,
            task=number,
            sub_task=part,
            measures=measures,
            worker=worker,
            seed=seed,
            steps=columns["length"][episode],
            termination_status="DONE" if columns["complete"][episode] else "NOT_DONE",
            timestamp=times[episode],
            extras=extras,
        )
