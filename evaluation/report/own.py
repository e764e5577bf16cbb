"""Metrics of users, computed for every lifetime of a run."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluation.logs.export import task_labels
from evaluation.metrics import Summary, summarise_all
from evaluation.metrics.registry import Lifetime, Row, over_all, over_lifetimes
from evaluation.metrics.table import bounds_of
from evaluation.records import UNIT_MEASURES, Records
from evaluation.report.entries import entry_of
from evaluation.report.novelty import novel_variants, predictions_of


class OwnNumbers:
    """Metrics of users for L lifetimes of B blocks and K tasks.

    Attributes:
      blocks: name -> (L, B) numbers of the metrics of blocks.
      tasks: name -> (L, K) numbers: of tasks, and of blocks the mean over a task's.
      lifetime: name -> (L,) numbers: of lifetimes, of tasks the mean over them.
    """

    def __init__(self, rows: Sequence[Row], lifetimes: Iterable[Lifetime]) -> None:
        """Compute them.

        Raises:
          MetricError: one asks for what is not there, raises, or returns another shape or NaN
            without a reason.
        """
        found = over_lifetimes(rows, lifetimes)
        scopes = {row.name: row.scope for row in rows}
        self.blocks = {name: of for name, of in found.items() if scopes[name] == "block"}
        self.tasks = {name: of for name, of in found.items() if scopes[name] == "task"}
        self.lifetime = {name: of for name, of in found.items() if scopes[name] == "lifetime"}
        self.lifetime |= {name: over_all(of) for name, of in self.tasks.items()}


def lifetimes_of(
    records: Records, measure: str = "performance", tasks: Sequence[str] = ()
) -> Iterator[Lifetime]:
    """Every lifetime of a run as metrics of users see it.

    Args:
      records: of L lifetimes.
      measure: column used as an episode's value.
      tasks: names of the tasks in order; those of the schedule's variants if empty.
    """
    records = records.by_episode()
    schedule = records.schedule
    values, counts = records.by_block(measure)
    inside = np.arange(values.shape[-1]) < counts[:, None]
    labels = [label.lower() for label in task_labels(schedule)]
    names = tuple(tasks) or tuple(dict.fromkeys(labels))
    variants = schedule.block_variants()
    fixed: dict[str, Any] = {
        "counts": counts.astype(np.int64),
        "train": np.array([block.mode == "train" for block in schedule.blocks]),
        "tasks": np.array([names.index(labels[variant]) for variant in variants]),
        "task_names": names,
        "novel": novel_variants(schedule, records.novelty_levels)[variants],
    }
    predictions = predictions_of(records)

    def arranged(column: np.ndarray) -> np.ndarray:
        result = np.full(inside.shape, np.nan)
        result[inside] = column
        return result

    for row in range(records.num_lifetimes):
        said: dict[str, Any] = {}
        if predictions is not None:
            said = {
                name: arranged(getattr(predictions, name)[row])
                for name in ("probability", "threshold", "level")
            }
        yield Lifetime(np.where(inside, values[row], np.nan), **fixed, **said)


def own_numbers(
    rows: Sequence[Row],
    records: Records,
    measure: str = "performance",
    tasks: Sequence[str] = (),
) -> OwnNumbers:
    """Compute metrics of users for every lifetime of a run; the arguments are `lifetimes_of`'s."""
    return OwnNumbers(rows, lifetimes_of(records, measure, tasks) if rows else ())


@dataclass(frozen=True)
class OwnSummary:
    """Metrics of users over lifetimes.

    Attributes:
      rows: the metrics.
      lifetime: name -> summary with () arrays; of metrics of blocks and tasks, of their means.
      blocks: name -> summary with (B,) arrays.
    """

    rows: tuple[Row, ...]
    lifetime: Mapping[str, Summary]
    blocks: Mapping[str, Summary]

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values, by the metric's name."""
        return {
            row.name: {
                "text": row.text,
                **entry_of(self.lifetime[row.name], ()),
                **(
                    {"blocks": [entry_of(of, index) for index in range(len(of.count))]}
                    if (of := self.blocks.get(row.name)) is not None
                    else {}
                ),
            }
            for row in self.rows
        }


def summarise_own(
    rows: Sequence[Row], records: Records, seed: int = 0, measure: str = "performance"
) -> OwnSummary:
    """Metrics of users with 95 % intervals over lifetimes.

    Raises:
      MetricError: one of them cannot be computed.
    """
    found = own_numbers(rows, records, measure)
    whole = found.lifetime | {name: over_all(of) for name, of in found.blocks.items()}
    bounds = bounds_of(rows, measure in UNIT_MEASURES)
    lifetimes, blocks = (summarise_all(of, seed, bounds=bounds) for of in (whole, found.blocks))
    return OwnSummary(tuple(rows), lifetimes, blocks)
