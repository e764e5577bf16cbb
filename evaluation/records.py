"""The table of results that every engine writes and every metric, log and report reads.

It has one row per episode, or per sub-episode where episodes have several; `Records.by_episode`
joins these. In memory the columns of L lifetimes of E rows are (L, E) arrays. On disk they are one
Parquet file, lifetime by lifetime, with schedule and versions in its metadata.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from evaluation.files import write_whole
from evaluation.json_types import JsonMapping
from evaluation.schedule import Schedule

METADATA_KEY = b"jaxsim"
MEASURE_BOUNDS = {
    "performance": (0.0, 1.0),
    "reward": (-np.inf, np.inf),
    "length": (0.0, np.inf),
}
"""Columns that metrics may be computed from, with their smallest and largest possible value."""

MEASURES = tuple(MEASURE_BOUNDS)
UNIT_MEASURES = tuple(name for name, bounds in MEASURE_BOUNDS.items() if bounds == (0.0, 1.0))

COLUMNS: dict[str, type] = {
    "reward": np.float32,  # sum of the episode's rewards
    "performance": np.float32,  # task score in [0, 1]
    "length": np.int32,  # steps
    "complete": np.bool_,  # False if the episode was cut off by a number that is not finite
    "predicted_level": np.int32,  # last novelty prediction of the episode
    "predicted_probability": np.float32,
    "threshold": np.float32,
    "seconds": np.float32,  # simulated time
}
"""What an engine reports for each episode."""


@dataclass(frozen=True)
class Records:
    """Results of L lifetimes of one schedule of E episodes.

    Attributes:
      schedule: what was played.
      columns: (L, E) arrays by name, those of `COLUMNS`.
      novelty_levels: (P,) true catalogue level of each variant of the schedule, 0 for none.
      first_lifetime: number of the first lifetime.
      metadata: agent, seed, versions; plain JSON values.
    """

    schedule: Schedule
    columns: Mapping[str, np.ndarray]
    novelty_levels: np.ndarray
    first_lifetime: int = 0
    metadata: JsonMapping = field(default_factory=dict)

    @property
    def num_lifetimes(self) -> int:
        """Number of lifetimes, L."""
        return int(next(iter(self.columns.values())).shape[0])

    def lifetime_names(self) -> list[tuple[object, int]]:
        """(L,) seed and number of each lifetime; runs of one seed share their randomness."""
        first, seed = self.first_lifetime, self.metadata.get("seed")
        return [(seed, number) for number in range(first, first + self.num_lifetimes)]

    def by_episode(self) -> "Records":
        """The records of whole episodes, each joined from its sub-episodes.

        Reward and performance are means over the sub-episodes, length and simulated time are sums,
        an episode is complete if all of them are, and its novelty prediction is the last one.

        Source: L2M Metrics Framework, 4 Dec 2019, section 2.1, for the mean.
        """
        schedule = self.schedule.by_episode()
        if schedule == self.schedule:
            return self
        first = np.flatnonzero(np.diff(self.schedule.episode_numbers(), prepend=-1))
        sizes = np.diff([*first, self.schedule.num_episodes])

        def joined(name: str, column: np.ndarray) -> np.ndarray:
            if name in ("reward", "performance"):
                total = np.add.reduceat(column, first, axis=1, dtype=np.float64)
                return (total / sizes).astype(column.dtype)
            if name in ("length", "seconds"):
                return np.add.reduceat(column, first, axis=1, dtype=column.dtype)
            if name == "complete":
                return np.logical_and.reduceat(column, first, axis=1)
            return column[:, first + sizes - 1]

        columns = {name: joined(name, column) for name, column in self.columns.items()}
        return replace(self, schedule=schedule, columns=columns)

    def by_block(self, measure: str) -> tuple[np.ndarray, np.ndarray]:
        """Arrange one column block by block.

        Args:
          measure: one of `MEASURES`.

        Returns:
          (values, counts): (L, B, T) float64, padded with 0 behind each block's end, and (B,)
          int32 episodes of each block; T is the longest block's count.

        Raises:
          ValueError: not a measure.
        """
        if measure not in MEASURES:
            raise ValueError(f"measure is {measure!r}; it must be one of {', '.join(MEASURES)}")
        counts = self.schedule.block_counts()
        values = np.zeros((self.num_lifetimes, len(counts), counts.max()))
        start = 0
        for index, count in enumerate(counts):
            values[:, index, :count] = self.columns[measure][:, start : start + count]
            start += count
        return values, counts

    def to_table(self) -> pa.Table:
        """Return the records as an Arrow table with metadata; L E rows, lifetime-major."""
        lifetimes, episodes = self.num_lifetimes, self.schedule.num_episodes
        fixed = _schedule_columns(self.schedule, self.novelty_levels)
        first, end = self.first_lifetime, self.first_lifetime + lifetimes
        numbers = np.arange(first, end, dtype=np.int32 if end <= 2**31 else np.int64)
        arrays: dict[str, pa.Array] = {"lifetime": pa.array(np.repeat(numbers, episodes))}
        arrays |= {name: _tiled(column, lifetimes) for name, column in fixed.items()}
        for name, dtype in COLUMNS.items():
            arrays[name] = pa.array(np.ascontiguousarray(self.columns[name], dtype).ravel())
        # Null: no hint was given; the column keeps the schema of all protocols the same.
        arrays["told_level"] = pa.nulls(lifetimes * episodes, pa.int32())
        text = json.dumps({**self.metadata, "schedule": self.schedule.to_json()}, allow_nan=False)
        return pa.table(arrays).replace_schema_metadata({METADATA_KEY: text.encode()})

    def write(self, path: Path) -> None:
        """Write a Parquet file, whole or not at all."""
        sink = pa.BufferOutputStream()
        pq.write_table(self.to_table(), sink, compression="zstd", write_page_checksum=True)
        write_whole(path, sink.getvalue().to_pybytes())


def _schedule_columns(schedule: Schedule, novelty_levels: np.ndarray) -> dict[str, npt.ArrayLike]:
    """Columns that are the same in every lifetime, (E,) each."""
    block = schedule.episode_blocks()
    blocks = schedule.blocks

    def per_block(values: list[str]) -> pa.Array:
        return pa.array(values).dictionary_encode().take(pa.array(block))

    variants = schedule.block_variants()
    return {
        "experiment": np.arange(len(block), dtype=np.int32),
        "block": block,
        "phase": np.array([b.phase for b in blocks], np.int32)[block],
        "mode": per_block([b.mode for b in blocks]),
        "learning": np.array([b.learning for b in blocks])[block],
        "task": per_block([b.task for b in blocks]),
        "variant": variants[block],
        "episode": schedule.episode_numbers(),
        "sub_episodes": np.array([b.sub_episodes for b in blocks], np.int32)[block],
        "true_level": np.asarray(novelty_levels, np.int32)[variants][block],
    }


def _tiled(column: Any, times: int) -> Any:
    """Repeat an (E,) column for each lifetime."""
    if isinstance(column, np.ndarray):
        return pa.array(np.tile(column, times))
    return pa.chunked_array([column] * times)


NOT_OURS = (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError)
"""Errors raised on reading values of an unexpected form."""


def read(path: Path) -> Records:
    """Read records that `Records.write` wrote.

    Raises:
      ValueError: another kind of file, or a damaged one.
      FileNotFoundError: there is no file.
    """
    try:
        return _from_table(pq.read_table(path, page_checksum_verification=True))
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, *NOT_OURS) as error:
        raise ValueError(f"{path} is not a records file of jaxsim, or is damaged") from error


def read_run(path: Path) -> Records:
    """Read the records of a result directory, or of a records file itself.

    Raises:
      ValueError: there are none; names the path.
    """
    file = path / "records.parquet" if path.is_dir() else path
    if not file.is_file():
        raise ValueError(
            f"there is no {file}; name a directory that `jaxsim run --out` has written"
        )
    return read(file)


def _from_table(table: pa.Table) -> Records:
    """Rebuild records; any exception means that `Records.write` did not write the table."""
    metadata = json.loads((table.schema.metadata or {})[METADATA_KEY])
    schedule = Schedule.from_json(metadata.pop("schedule"))
    shape = (-1, schedule.num_episodes)
    columns = {
        name: table[name].to_numpy().astype(dtype).reshape(shape) for name, dtype in COLUMNS.items()
    }
    blocks = schedule.episode_blocks()
    levels = np.zeros(len(schedule.variants), np.int32)
    true_levels = table["true_level"].to_numpy()[: schedule.num_episodes]
    levels[schedule.block_variants()[blocks]] = true_levels
    return Records(schedule, columns, levels, int(table["lifetime"][0].as_py()), metadata)
