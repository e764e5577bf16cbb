"""Tables and progress for a terminal; needs the `cli` extra."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.table import Column, Table
from rich.text import Text

from evaluation.metrics import STATISTICS, Estimate, Reason, Summary
from evaluation.report.compare import Comparison, Found, LifelongComparison
from evaluation.report.summary import Report
from evaluation.scanner import Progress as ReportProgress

HEADINGS = {
    "mean": "mean",
    "saturation_value": "saturation value",
    "time_to_saturation": "time to saturation",
    "normalized_integral": "normalized integral",
    "recovery_time": "recovery time",
    "performance_maintenance_saturation_value": "maintenance: saturation",
    "performance_maintenance_time_to_saturation": "maintenance: time",
}

STATISTIC_HEADINGS = {
    "mean": "mean",
    "median": "median",
    "interquartile_mean": "interquartile\nmean",
    "std": "standard\ndeviation",
}

TASK_WIDTH = 28
"""Widest column of tasks with their parameters, characters."""


class EpisodeRate(ProgressColumn):
    """Episodes per second since the first ones came back."""

    def render(self, task: Task) -> Text:
        """Show the rate, or that the program is still being compiled."""
        if task.finished_time:
            return Text(f"{task.completed / task.finished_time:,.0f}/s in all")
        if not task.completed or not task.speed:
            return Text("compiling")
        return Text(f"{task.speed:,.0f}/s")


@contextmanager
def progress_bar(console: Console, label: str, total: int) -> Iterator[ReportProgress]:
    """Show a progress bar for `total` episodes; yields the function that moves it."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f} episodes"),
        EpisodeRate(table_column=Column(no_wrap=True)),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(label, total=total)

        def move(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield move


def print_report(console: Console, report: Report, statistics: bool = False) -> None:
    """Print all blocks, in as many tables as the console's width asks for, and the syllabus.

    Args:
      console: where to print.
      report: what to show.
      statistics: whether median, interquartile mean and standard deviation of each metric follow.
    """
    unlimited = console.options.update(max_width=sys.maxsize)
    names, described = list(report.blocks), False
    while names:
        for count in range(len(names), 0, -1):
            table = _block_table(report, names[:count], described)
            if Measurement.get(console, unlimited, table).maximum <= console.width:
                break
        console.print(table)
        names, described = names[count:], True
    console.print(_syllabus_table(report))
    console.print(_lifelong_table(report))
    if statistics:
        console.print(_lifelong_statistics(report))
        for name, summary in report.syllabus.items():
            if summary.count[()]:
                console.print(_statistics_table(report, name))


def _block_table(report: Report, names: list[str], described: bool) -> Table:
    """One row a block, one column a metric.

    Args:
      report: what to show.
      names: the metrics.
      described: whether an earlier table has said what the blocks are.
    """
    records = report.records
    about = f"{records.schedule.name}: {report.measure}, {records.num_lifetimes} lifetimes"
    title = None if described else f"{about}, mean and 95 % interval"
    table = Table(title=title, box=box.SIMPLE_HEAD)
    table.add_column("block")
    table.add_column("phase", no_wrap=True)
    if not described:
        table.add_column("task and parameters", overflow="fold", max_width=TASK_WIDTH)
        table.add_column("episodes")
    for name in names:
        table.add_column(HEADINGS.get(name, name).replace(" ", "\n", 1), justify="right")
    for block in records.schedule.blocks:
        parameters = ", ".join(f"{path} {value}" for path, value in block.parameters)
        what = [] if described else [f"{block.task} {parameters}".strip(), str(block.count)]
        cells = [_cell(report.blocks[name], block.index) for name in names]
        table.add_row(str(block.index), f"{block.phase}.{block.mode}", *what, *cells)
    return table


def _syllabus_table(report: Report) -> Table:
    table = Table(title="Whole syllabus (mean over its blocks)", box=box.SIMPLE_HEAD)
    for heading in ("metric", "mean", "95 % interval", "lifetimes with a value"):
        table.add_column(heading, justify="left" if heading == "metric" else "right")
    for name, summary in report.syllabus.items():
        table.add_row(
            HEADINGS.get(name, name),
            _digits(float(summary.mean[()])),
            _interval(summary, ()),
            f"{int(summary.count[()])} of {summary.lifetimes}",
        )
    return table


def _lifelong_table(report: Report) -> Table:
    """One row for each metric of today that has a value, by lifetime and by task."""
    found = report.lifelong
    table = Table(title="Lifelong learning (values normalised to 1 to 101)", box=box.SIMPLE_HEAD)
    table.add_column("metric", overflow="fold")
    table.add_column("task", overflow="fold", max_width=TASK_WIDTH)
    for heading in ("mean", "95 % interval", "lifetimes\nwith a value"):
        table.add_column(heading, justify="right", no_wrap=True)
    rows: list[tuple[str, str, Summary, int | tuple[()]]] = [
        (name, "all", summary, ()) for name, summary in found.lifetime.items()
    ]
    rows += [
        (name, task, summary, index)
        for name, summary in found.by_task.items()
        for index, task in enumerate(found.tasks)
    ]
    for name, task, summary, index in rows:
        if summary.count[index]:
            count = f"{int(summary.count[index])} of {summary.lifetimes}"
            mean = _digits(float(summary.mean[index]))
            table.add_row(name, task, mean, _interval(summary, index), count)
    return table


def _lifelong_statistics(report: Report) -> Table:
    """One row a metric of today with a value, one column a statistic."""
    table = Table(
        title="Lifelong learning, over lifetimes, with 95 % intervals", box=box.SIMPLE_HEAD
    )
    table.add_column("metric", overflow="fold")
    for name in STATISTICS:
        table.add_column(STATISTIC_HEADINGS[name], justify="right", no_wrap=True)
    for name, summary in report.lifelong.lifetime.items():
        if summary.count[()]:
            table.add_row(name, *(_estimate_cell(summary.estimates[s], ()) for s in STATISTICS))
    return table


def _statistics_table(report: Report, metric: str) -> Table:
    """One metric: one row a block and one for the syllabus, one column a statistic."""
    title = f"{HEADINGS.get(metric, metric)}, over lifetimes, with 95 % intervals"
    table = Table(title=title, box=box.SIMPLE_HEAD)
    table.add_column("block")
    for name in STATISTICS:
        table.add_column(STATISTIC_HEADINGS[name], justify="right")
    rows: list[tuple[str, Summary, int | tuple[()]]] = [
        (str(block.index), report.blocks[metric], block.index)
        for block in report.records.schedule.blocks
    ]
    for label, summary, index in [*rows, ("all", report.syllabus[metric], ())]:
        if summary.count[index]:
            cells = [_estimate_cell(summary.estimates[name], index) for name in STATISTICS]
            table.add_row(label, *cells)
    return table


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
            console.print(_comparison_table(comparison, name, names))
        else:
            console.print(f"{HEADINGS.get(name, name)}: no lifetime of either run has a value")
    print_lifelong_comparison(console, comparison.lifelong, names)


def print_lifelong_comparison(
    console: Console, found: LifelongComparison, names: tuple[str, str]
) -> None:
    """Print one row for each metric of today that a run has a value of, by lifetime and by task.

    Args:
      console: where to print.
      found: what to show.
      names: of the two runs.
    """
    rows: list[tuple[str, str, Found, int | tuple[()]]] = [
        (name, "all", of, ()) for name, of in found.lifetime.items()
    ]
    rows += [
        (name, task, of, index)
        for name, of in found.by_task.items()
        for index, task in enumerate(found.tasks)
    ]
    shown = [row for row in rows if row[2].first.count[row[3]] or row[2].second.count[row[3]]]
    if not shown:
        return
    table = Table(title="lifelong learning (higher is better)", box=box.SIMPLE_HEAD)
    for heading in ("metric", "task"):
        table.add_column(heading, overflow="fold")
    for heading in (*names, f"{names[0]}\nbetter", "p"):
        table.add_column(heading, justify="right", min_width=14 if heading in names else None)
    for name, task, of, index in shown:
        table.add_row(name, task, *_comparison_cells(of, index))
    console.print(table)


def _comparison_table(comparison: Comparison, metric: str, names: tuple[str, str]) -> Table:
    """One row a block in which a run has a value, and one for the whole syllabus."""
    blocks, syllabus = comparison.blocks[metric], comparison.syllabus[metric]
    title = f"{HEADINGS.get(metric, metric)} ({blocks.better} is better)"
    table = Table(title=title, box=box.SIMPLE_HEAD)
    for heading in ("block", "phase"):
        table.add_column(heading, no_wrap=True)
    for heading in (*names, f"{names[0]}\nbetter", "p"):
        table.add_column(heading, justify="right", overflow="fold")
    rows: list[tuple[str, str, Found, int | tuple[()]]] = [
        (str(block.index), f"{block.phase}.{block.mode}", blocks, block.index)
        for block in comparison.first.schedule.blocks
    ]
    for label, phase, found, index in [*rows, ("all", "", syllabus, ())]:
        if found.first.count[index] or found.second.count[index]:
            table.add_row(label, phase, *_comparison_cells(found, index))
    return table


def _comparison_cells(found: Found, index: int | tuple[()]) -> list[str]:
    improvement = found.improvement
    low, high = improvement.low[index], improvement.high[index]
    interval = f"{low:.2f} to {high:.2f}" if np.isfinite(low) else "–"
    probability, p_value = improvement.probability[index], found.corrected[index]
    return [
        _estimate_cell(found.first.estimates["mean"], index),
        _estimate_cell(found.second.estimates["mean"], index),
        f"{probability:.2f}\n{interval}" if np.isfinite(probability) else "–",
        "–" if np.isnan(p_value) else f"{p_value:.3f}" if p_value >= 0.001 else "<0.001",
    ]


def _estimate_cell(estimate: Estimate, index: int | tuple[()]) -> str:
    """A statistic above its interval."""
    low, high = estimate.low[index], estimate.high[index]
    interval = f"{_digits(low)} to {_digits(high)}" if np.isfinite(low) else "–"
    return f"{_digits(estimate.value[index])}\n{interval}"


def _cell(summary: Summary, index: int) -> str:
    """Mean above its interval; a dash where the metric is not defined for the block."""
    if not np.isfinite(summary.mean[index]):
        undefined = (Reason.NOT_A_TEST_BLOCK, Reason.NOT_A_TRAINING_BLOCK)
        return "" if Reason(int(summary.missing[index])) in undefined else "–"
    count = int(summary.count[index])
    share = "" if count == summary.lifetimes else f"\n({count} of {summary.lifetimes})"
    return f"{_digits(summary.mean[index])}\n{_interval(summary, index)}{share}"


def _interval(summary: Summary, index: int | tuple[()]) -> str:
    low, high = summary.low[index], summary.high[index]
    return f"{_digits(low)} to {_digits(high)}" if np.isfinite(low) else "–"


def _digits(value: Any) -> str:
    if not np.isfinite(value):
        return "–"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"
