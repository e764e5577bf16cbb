"""Shards of a large run: their lifetimes, and joining of their results."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from evaluation.files import results, write_json, write_whole
from evaluation.json_types import JsonObject
from evaluation.logs.export import check_logged
from evaluation.metrics.registry import MetricRow
from evaluation.records import COLUMNS, Records, read_run
from evaluation.report import html, summarise_records

_OF_SHARDS = ("lifetimes", "faults", "worker")
"""Metadata that differ between the shards of one run."""

SHARD = re.compile(r"(\d{1,6})/(\d{1,6})")


class Shard(NamedTuple):
    """Part of a run of L lifetimes, or the whole run.

    Attributes:
      first_lifetime: number of its first lifetime.
      lifetimes: number of its lifetimes.
      worker: its number, from 0; None for the whole run.
    """

    first_lifetime: int
    lifetimes: int
    worker: int | None = None

    @classmethod
    def of(cls, text: str | None, first: int, lifetimes: int) -> "Shard":
        """Parse a shard of a run.

        Args:
          text: "i/n", shard i of n, from 1; None for the whole run.
          first: number of the first lifetime of the whole run.
          lifetimes: number of lifetimes of the whole run, L.

        Returns:
          A shard of consecutive lifetimes; the sizes of shards differ by at most one.

        Raises:
          ValueError: the text is not a shard, or there are more shards than lifetimes.
        """
        if text is None:
            return cls(first, lifetimes)
        match = SHARD.fullmatch(text)
        number, count = (int(match[1]), int(match[2])) if match else (0, 0)
        if not 1 <= number <= count:
            raise ValueError(f"shard is {text!r}; it must be I/N with I from 1 to N, as 3/16")
        if count > lifetimes:
            raise ValueError(
                f"shard is {text!r}, but there are only {lifetimes} lifetimes to share"
            )
        begin, end = (lifetimes * k // count for k in (number - 1, number))
        return cls(first + begin, end - begin, number - 1)

    def logged(self, requested: Sequence[int], first: int, lifetimes: int) -> tuple[int, ...]:
        """Lifetimes of the shard that are to be logged.

        Args:
          requested: numbers of the lifetimes that the whole run logs.
          first: number of the first lifetime of the whole run.
          lifetimes: number of lifetimes of the whole run.

        Raises:
          ValueError: the whole run has no such lifetime.
        """
        check_logged(requested, first, lifetimes)
        numbers = range(self.first_lifetime, self.first_lifetime + self.lifetimes)
        return tuple(number for number in dict.fromkeys(requested) if number in numbers)


def joined(shards: Sequence[Records]) -> Records:
    """Join records of consecutive lifetimes.

    Raises:
      ValueError: the shards are of different runs, overlap or leave a gap.
    """
    parts = sorted(shards, key=lambda part: part.first_lifetime)
    whole = parts[0]
    about = _about(whole)
    for part in parts[1:]:
        if part.schedule != whole.schedule or _about(part) != about:
            names = [k for k, v in _about(part).items() if about.get(k) != v] or ["the schedule"]
            raise ValueError(f"the shards are of different runs: {', '.join(names)} differs")
    end = whole.first_lifetime
    for part in parts:
        if part.first_lifetime != end:
            problem = "missing" if part.first_lifetime > end else "there twice"
            numbers = sorted((part.first_lifetime, end))
            raise ValueError(f"lifetimes {numbers[0]} to {numbers[1] - 1} are {problem}")
        end += part.num_lifetimes
    columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in COLUMNS}
    faults = [fault for part in parts for fault in part.metadata.get("faults", ())]
    lifetimes: JsonObject = {"lifetimes": end - whole.first_lifetime}
    metadata = {
        k: lifetimes.get(k, v) for k, v in whole.metadata.items() if k not in ("faults", "worker")
    }
    if faults:
        # As in a run, faults come before the versions.
        versions = metadata.pop("versions")
        metadata |= {"faults": faults, "versions": versions}
    return replace(whole, columns=columns, metadata=metadata)


def _about(part: Records) -> JsonObject:
    """Metadata that the shards of one run share."""
    return {k: v for k, v in part.metadata.items() if k not in _OF_SHARDS}


def _settings(folder: Path) -> tuple[str, int, tuple[str, ...]]:
    """Measure and window of a report, and names of its custom metrics."""
    try:
        report = json.loads((folder / "report.json").read_bytes())
        return str(report["measure"]), int(report["window"]), tuple(report.get("own_metrics", ()))
    except (OSError, LookupError, TypeError, ValueError) as error:
        raise ValueError(f"{folder} holds no report.json of `jaxsim run`") from error


def join(
    folders: Sequence[Path], out: Path, rows: Sequence[MetricRow] = (), command: str = ""
) -> Records:
    """Join the results of shards, and write those of the whole run.

    Args:
      folders: of `jaxsim run --shard`, with equal `--measure`, `--window` and `--metric`.
      out: directory for records.parquet, schedule.json, report.json and report.html.
      rows: custom metrics of the shards.
      command: that report.html names.

    Raises:
      ValueError: a folder has no results, the shards are not of one run, or they have other custom
        metrics.
    """
    records = joined([read_run(folder) for folder in folders])
    settings = {_settings(folder) for folder in folders}
    if len(settings) > 1:
        raise ValueError("the shards were reported with different --measure, --window or --metric")
    measure, window, names = settings.pop()
    if names != tuple(row.name for row in rows):
        raise ValueError(
            f"the shards have the custom metrics {', '.join(names) or 'none'}; pass the same "
            "--metric to join"
        )
    values = summarise_records(
        records, measure, window, int(records.metadata["seed"]), rows
    ).to_json()
    with results(out, "report.json") as folder:
        write_whole(folder / "schedule.json", records.schedule.dumps())
        records.write(folder / "records.parquet")
        write_whole(folder / "report.html", html.of_run(values, records, command, out.name))
        write_json(folder / "report.json", values)
    return records
