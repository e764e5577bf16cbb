"""Tables of two runs beside each other, for a terminal; needs the `cli` extra."""

from collections.abc import Mapping

import numpy as np
from rich.console import Console
from rich.table import Table

from evaluation.metrics.table import heading
from evaluation.report.compare import Comparison, Found, LifelongComparison
from evaluation.report.names import block_names, logged_names
from evaluation.report.tables import (
    Place,
    estimate_cell,
    left_out,
    missing,
    simple_table,
    with_tasks,
)


def print_comparison(console: Console, comparison: Comparison, names: tuple[str, str]) -> None:
    """Print one table a metric: both runs and the probability that the first does better.

    Args:
      console: where to print.
      comparison: what to show.
      names: of the two runs.
    """
    pairs = ", lifetimes in pairs" if comparison.paired else ""
    console.print(
        f"{comparison.first.schedule.name}: {comparison.measure}, "
        f"{comparison.first.num_lifetimes} lifetimes of {names[0]} and "
        f"{comparison.second.num_lifetimes} of {names[1]}{pairs}; means and probabilities with "
        "95 % intervals, p-values corrected by Holm"
    )
    for name, found in comparison.syllabus.items():
        if found.first.count[()] or found.second.count[()]:
            _print_metric(console, comparison, name, names)
        else:
            console.print(f"{heading(name)}: no lifetime of either run has a value")
    tasks = logged_names(comparison.first.schedule)
    print_lifelong_comparison(console, comparison.lifelong, names, tasks)


def print_lifelong_comparison(
    console: Console,
    found: LifelongComparison,
    names: tuple[str, str],
    tasks: Mapping[str, str] | None = None,
) -> None:
    """Print each metric of today that a run has a value of: over the lifetime, then by task.

    Args:
      console: where to print.
      found: what to show.
      names: of the two runs.
      tasks: what to call a task, by its name in `found`; as there where it is not in here.
    """
    table = _table("lifelong learning (higher is better)", ("metric, and tasks",), names)
    called = [(tasks or {}).get(task, task) for task in found.tasks]
    for label, of, index in with_tasks(found.lifetime, found.by_task, called, _has_value):
        table.add_row(label, *([] if of is None else _cells(of, index)))
    if table.row_count:
        console.print(table)


def _print_metric(
    console: Console, comparison: Comparison, metric: str, names: tuple[str, str]
) -> None:
    """Print one row a block in which a run has a value, and one for the whole syllabus."""
    blocks, syllabus = comparison.blocks[metric], comparison.syllabus[metric]
    title = f"{heading(metric)} ({blocks.better} is better)"
    table = _table(title, ("block", "phase", "task and parameters"), names)
    schedule, without = comparison.first.schedule, {}
    tasks = block_names(schedule)
    for block in schedule.blocks:
        if _has_value(blocks, block.index):
            what = (str(block.index), f"{block.phase}.{block.mode}", tasks[block.index])
            table.add_row(*what, *_cells(blocks, block.index))
        else:
            why = missing([blocks.first, blocks.second], block.index)
            without[f"block {block.index}"] = why
    table.add_row("all", "", "", *_cells(syllabus, ()))
    console.print(table)
    if without:
        console.print(left_out(without))


def _table(title: str, labels: tuple[str, ...], names: tuple[str, str]) -> Table:
    """An empty table: what a row is about, both runs, and which of them does better."""
    return simple_table(title, labels, (*names, f"{names[0]}\nbetter", "p"))


def _has_value(found: Found, index: Place) -> bool:
    return bool(found.first.count[index] or found.second.count[index])


def _cells(found: Found, index: Place) -> list[str]:
    improvement = found.improvement
    low, high = improvement.low[index], improvement.high[index]
    interval = f"{low:.2f} to {high:.2f}" if np.isfinite(low) else "–"
    probability, p_value = improvement.probability[index], found.corrected[index]
    return [
        estimate_cell(found.first.estimates["mean"], index),
        estimate_cell(found.second.estimates["mean"], index),
        f"{probability:.2f}\n{interval}" if np.isfinite(probability) else "–",
        "–" if np.isnan(p_value) else f"{p_value:.3f}" if p_value >= 0.001 else "<0.001",
    ]
