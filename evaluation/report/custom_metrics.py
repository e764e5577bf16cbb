"""Custom metrics, computed for every lifetime of a run."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluation.json_types import JsonObject
from evaluation.logs.export import task_labels
from evaluation.metrics import Summary, summarise_all
from evaluation.metrics.registry import Lifetime, MetricError, MetricRow, over_all, over_lifetimes
from evaluation.metrics.table import bounds_of
from evaluation.records import COLUMNS, UNIT_MEASURES, Records
from evaluation.report.entries import entry_of
from evaluation.report.novelty import novel_variants, predictions_of
from evaluation.schedule import Schedule


class CustomNumbers:
    """Numbers of custom metrics for L lifetimes of B blocks and K tasks.

    Attributes:
      blocks: name -> (L, B) numbers of the metrics of blocks.
      tasks: name -> (L, K) numbers of the metrics of tasks.
      lifetime: name -> (L,) numbers of the metrics of lifetimes; means over tasks for those of
        tasks.
    """

    def __init__(self, rows: Sequence[MetricRow], lifetimes: Iterable[Lifetime]) -> None:
        """Compute the metrics.

        Raises:
          MetricError: a metric needs a field that is missing, raises, or returns a wrong shape or
            NaN without a reason.
        """
        numbers = over_lifetimes(rows, lifetimes)
        scopes = {row.name: row.scope for row in rows}
        self.blocks = {name: n for name, n in numbers.items() if scopes[name] == "block"}
        self.tasks = {name: n for name, n in numbers.items() if scopes[name] == "task"}
        self.lifetime = {name: n for name, n in numbers.items() if scopes[name] == "lifetime"}
        self.lifetime |= {name: over_all(n) for name, n in self.tasks.items()}


def lifetimes_of(
    records: Records, measure: str = "performance", tasks: Sequence[str] = ()
) -> Iterator[Lifetime]:
    """Yield every lifetime of a run as custom metrics receive it.

    Args:
      records: of L lifetimes.
      measure: column used as an episode's value.
      tasks: names of the tasks in order; if empty, those of the schedule's variants.
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
        scores: JsonObject = {}
        if predictions is not None:
            scores = {
                name: arranged(getattr(predictions, name)[row])
                for name in ("probability", "threshold", "level")
            }
        yield Lifetime(np.where(inside, values[row], np.nan), **fixed, **scores)


def custom_numbers(
    rows: Sequence[MetricRow],
    records: Records,
    measure: str = "performance",
    tasks: Sequence[str] = (),
) -> CustomNumbers:
    """Compute custom metrics for every lifetime of a run; arguments as for `lifetimes_of`."""
    return CustomNumbers(rows, lifetimes_of(records, measure, tasks) if rows else ())


def check_before_play(
    rows: Sequence[MetricRow],
    schedule: Schedule,
    novelty_levels: np.ndarray,
    measure: str = "performance",
) -> None:
    """Compute custom metrics of one lifetime of random numbers, so that few fail after all play.

    Args:
      rows: custom metrics.
      schedule: what will be played.
      novelty_levels: (P,) catalogue level of each variant of the schedule, 0 for none.
      measure: column used as an episode's value.

    Raises:
      MetricError: as `CustomNumbers`, of these numbers.
    """
    generator = np.random.default_rng(0)
    # Episodes of up to 200 steps with a reward of 1 each; the agent predicts novelty.
    largest = {"length": 200, "reward": 200}
    columns: dict[str, np.ndarray] = {
        name: generator.uniform(0, largest.get(name, 1), size=(1, schedule.num_episodes)).astype(
            dtype
        )
        for name, dtype in COLUMNS.items()
    }
    try:
        custom_numbers(rows, Records(schedule, columns, novelty_levels), measure)
    except MetricError as error:
        raise MetricError(f"{error} (tried on random numbers before any play)") from error


@dataclass(frozen=True)
class CustomSummary:
    """Summaries of custom metrics over lifetimes.

    Attributes:
      rows: the metrics.
      lifetime: name -> summary with () arrays; metrics of blocks and tasks are averaged first.
      blocks: name -> summary with (B,) arrays.
    """

    rows: tuple[MetricRow, ...]
    lifetime: Mapping[str, Summary]
    blocks: Mapping[str, Summary]

    def to_json(self) -> JsonObject:
        """Return plain JSON values, by the metric's name."""
        return {
            row.name: {
                "text": row.text,
                **entry_of(self.lifetime[row.name], ()),
                **(
                    {"blocks": [entry_of(blocks, index) for index in range(len(blocks.count))]}
                    if (blocks := self.blocks.get(row.name)) is not None
                    else {}
                ),
            }
            for row in self.rows
        }


def summarise_custom(
    rows: Sequence[MetricRow], records: Records, seed: int = 0, measure: str = "performance"
) -> CustomSummary:
    """Compute custom metrics with 95 % intervals over lifetimes.

    Raises:
      MetricError: a metric cannot be computed.
    """
    numbers = custom_numbers(rows, records, measure)
    whole = numbers.lifetime | {name: over_all(n) for name, n in numbers.blocks.items()}
    bounds = bounds_of(rows, measure in UNIT_MEASURES)
    lifetimes, blocks = (summarise_all(n, seed, bounds=bounds) for n in (whole, numbers.blocks))
    return CustomSummary(tuple(rows), lifetimes, blocks)
