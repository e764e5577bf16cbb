"""Cells and headings of tables in a terminal, and the line about rows that are left out."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from evaluation.json_types import JsonMapping, JsonValue
from evaluation.metrics import Numbers, Reason, Summary
from evaluation.metrics.reasons import sentence_of

if TYPE_CHECKING:
    from rich.table import Table

TASK_WIDTH: Final = 28
"""Widest column of tasks with their parameters, characters."""

UNDEFINED: Final = (Reason.NOT_A_TEST_BLOCK, Reason.NOT_A_TRAINING_BLOCK)
"""Reasons of metrics that are not defined for a block; its cell stays empty."""

Place = int | tuple[()]
"""Index of a number in a summary: of a block or task, or () for its only one."""

Line: TypeAlias = tuple[str, JsonValue, Place]
"""Label of a row; summary or comparison, None for a heading; index of the number."""


def simple_table(title: str | None, labels: Iterable[str], numbers: Iterable[str]) -> "Table":
    """An empty table of columns of text, then columns of numbers; needs rich."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, box=box.SIMPLE_HEAD)
    for label in labels:
        table.add_column(label, no_wrap=label == "phase", overflow="fold", max_width=TASK_WIDTH)
    for number in numbers:
        table.add_column(number, justify="right", no_wrap=number == "p", overflow="fold")
    return table


def with_tasks(
    lifetime: JsonMapping,
    by_task: JsonMapping,
    tasks: Sequence[str],
    has_value: Callable[[JsonValue, Place], object],
) -> Iterator[Line]:
    """Yield the lines of each metric with a value: lifetime, or a heading, then tasks."""
    for name in dict.fromkeys([*lifetime, *by_task]):
        whole = lifetime.get(name)
        valued = whole is not None and has_value(whole, ())
        summary = by_task.get(name)
        rows = [(f"  {task}", summary, i) for i, task in enumerate(tasks) if summary is not None]
        rows = [row for row in rows if has_value(*row[1:])]
        if valued or rows:
            yield name, whole if valued else None, ()
        yield from rows


def digits(value: Any) -> str:
    """Text of a number in a table; a dash if it is missing."""
    if not np.isfinite(value):
        return "–"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"


def interval_text(low: Any, high: Any) -> str:
    """Text of an interval; a dash if it is missing."""
    return f"{digits(low)} to {digits(high)}" if np.isfinite(low) else "–"


def interval(summary: Summary, index: Place) -> str:
    """Text of the interval of a mean."""
    return interval_text(summary.low[index], summary.high[index])


def estimate_cell(estimate: Numbers, index: Place) -> str:
    """A statistic above its interval."""
    low, high = (np.asarray(end)[index] for end in (estimate.low, estimate.high))
    return f"{digits(estimate.values[index])}\n{interval_text(low, high)}"


def with_value(summary: Summary, index: Place) -> str:
    """Text with the number of lifetimes that have a value."""
    return f"{int(summary.count[index])} of {summary.lifetimes}"


def missing(summaries: Iterable[Summary], index: Place) -> str:
    """Why no summary has a value at an index, in words; empty if one has."""
    summaries = list(summaries)
    if any(summary.count[index] for summary in summaries):
        return ""
    reasons = [int(summary.missing[index]) for summary in summaries]
    relevant = [reason for reason in reasons if reason not in UNDEFINED] or reasons
    return "; ".join(dict.fromkeys(map(sentence_of, relevant)))


def left_out(reasons: Mapping[str, str]) -> str:
    """One line about the rows that a table leaves out.

    Args:
      reasons: name of a row, such as "block 3" -> reason; not empty.
    """
    names: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        names.setdefault(reason, []).append(name)
    return "no value: " + "; ".join(f"{', '.join(rows)} ({why})" for why, rows in names.items())
