"""Tables that compare two runs, for a terminal; needs the `cli` extra."""

from collections.abc import Mapping

import numpy as np
from rich.console import Console
from rich.table import Table

from evaluation.metrics.table import heading
from evaluation.report.compare import Comparison, LifelongComparison, MetricComparison
from evaluation.report.names import block_names, logged_names
from evaluation.report.tables import (
    Place,
    estimate_cell,
    left_out,
    missing,
    simple_table,
    with_tasks,
)

BETTER = {"higher": "higher is better", "lower": "lower is better", "none": "neither is better"}
"""Which values of a metric are better, in words."""


def print_comparison(console: Console, comparison: Comparison, names: tuple[str, str]) -> None:
    """Print one table per metric: both runs and the probability that the first does better.

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
    for name, metric in comparison.syllabus.items():
        if metric.first.count[()] or metric.second.count[()]:
            _print_metric(console, comparison, name, names)
        else:
            console.print(f"{heading(name)}: no lifetime of either run has a value")
    tasks = logged_names(comparison.first.schedule)
    print_lifelong_comparison(console, comparison.lifelong, names, tasks)


def print_lifelong_comparison(
    console: Console,
    comparison: LifelongComparison,
    names: tuple[str, str],
    tasks: Mapping[str, str] | None = None,
) -> None:
    """Print the lifelong-learning metrics that have a value: over the lifetime, then by task.

    Args:
      console: where to print.
      comparison: what to show.
      names: of the two runs.
      tasks: name in `comparison` -> name to print; a task that is missing keeps its name.
    """
    title = "lifelong learning (higher is better unless noted)"
    table = _table(title, ("metric, and tasks",), names)
    labels = [(tasks or {}).get(task, task) for task in comparison.tasks]
    for label, metric, index in with_tasks(
        comparison.lifetime, comparison.by_task, labels, _has_value
    ):
        of_metric = comparison.lifetime.get(label) or comparison.by_task.get(label)
        # Lines of its tasks have other labels.
        if of_metric is not None and of_metric.better != "higher":
            label = f"{label} ({BETTER[of_metric.better]})"
        table.add_row(label, *([] if metric is None else _cells(metric, index)))
    if table.row_count:
        console.print(table)


def _print_metric(
    console: Console, comparison: Comparison, metric: str, names: tuple[str, str]
) -> None:
    """Print one row per block in which a run has a value, and one for the whole syllabus."""
    blocks, syllabus = comparison.blocks[metric], comparison.syllabus[metric]
    title = f"{heading(metric)} ({BETTER[blocks.better]})"
    table = _table(title, ("block", "phase", "task and parameters"), names)
    schedule, without = comparison.first.schedule, {}
    tasks = block_names(schedule)
    for block in schedule.blocks:
        if _has_value(blocks, block.index):
            labels = (str(block.index), f"{block.phase}.{block.mode}", tasks[block.index])
            table.add_row(*labels, *_cells(blocks, block.index))
        else:
            reason = missing([blocks.first, blocks.second], block.index)
            without[f"block {block.index}"] = reason
    table.add_row("all", "", "", *_cells(syllabus, ()))
    console.print(table)
    if without:
        console.print(left_out(without))


def _table(title: str, labels: tuple[str, ...], names: tuple[str, str]) -> Table:
    """An empty table: labels of a row, both runs, and which of them does better."""
    return simple_table(title, labels, (*names, f"{names[0]}\nbetter", "p"))


def _has_value(metric: MetricComparison, index: Place) -> bool:
    return bool(metric.first.count[index] or metric.second.count[index])


def _cells(metric: MetricComparison, index: Place) -> list[str]:
    improvement = metric.improvement
    low, high = improvement.low[index], improvement.high[index]
    interval = f"{low:.2f} to {high:.2f}" if np.isfinite(low) else "–"
    probability, p_value = improvement.probability[index], metric.corrected[index]
    return [
        estimate_cell(metric.first.estimates["mean"], index),
        estimate_cell(metric.second.estimates["mean"], index),
        f"{probability:.2f}\n{interval}" if np.isfinite(probability) else "–",
        "–" if np.isnan(p_value) else f"{p_value:.3f}" if p_value >= 0.001 else "<0.001",
    ]
