"""Tables and progress for a terminal; needs the `cli` extra."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.table import Column, Table
from rich.text import Text

from evaluation.metrics import STATISTICS, Summary
from evaluation.metrics.table import heading
from evaluation.report.capabilities import Capability
from evaluation.report.names import block_names, logged_names
from evaluation.report.novelty import NoveltySummary
from evaluation.report.own import OwnSummary
from evaluation.report.summary import Report
from evaluation.report.tables import (
    TASK_WIDTH,
    UNDEFINED,
    Place,
    digits,
    estimate_cell,
    interval,
    interval_text,
    left_out,
    missing,
    with_value,
)
from evaluation.report.transfer import Transfer
from evaluation.scanner import Progress as ReportProgress

STATISTIC_HEADINGS = {
    "mean": "mean",
    "median": "median",
    "interquartile_mean": "interquartile\nmean",
    "std": "standard\ndeviation",
}


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

    Rows and columns without a number are left out, with a line below that says why.

    Args:
      console: where to print.
      report: what to show.
      statistics: whether median, interquartile mean and standard deviation of each metric follow.
    """
    _print_blocks(console, report)
    console.print(_syllabus_table(report))
    without = {
        heading(name): missing([summary], ())
        for name, summary in report.syllabus.items()
        if not summary.count[()]
    }
    if without:
        console.print(left_out(without))
    console.print(_lifelong_table(report))
    if report.novelty is not None:
        print_novelty(console, report.novelty, block_names(report.records.schedule))
    print_capabilities(console, report.capabilities)
    if statistics:
        console.print(_lifelong_statistics(report))
        for name, summary in report.syllabus.items():
            if summary.count[()]:
                console.print(_statistics_table(report, name))


def _print_blocks(console: Console, report: Report) -> None:
    """Print what is known of each block."""
    unlimited = console.options.update(max_width=sys.maxsize)
    names = [name for name, summary in report.blocks.items() if summary.count.any()]
    names, described = names or list(report.blocks)[:1], False
    while names:
        for count in range(len(names), 0, -1):
            table, without = _block_table(report, names[:count], described)
            if Measurement.get(console, unlimited, table).maximum <= console.width:
                break
        console.print(table)
        if without:
            console.print(left_out(without))
        names, described = names[count:], True


def _block_table(report: Report, names: list[str], described: bool) -> tuple[Table, dict[str, str]]:
    """One row a block, one column a metric.

    Args:
      report: what to show.
      names: the metrics.
      described: whether an earlier table has said what the blocks are; only then may one be left
        out.

    Returns:
      (table, why each block that is left out has no number).
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
        table.add_column(heading(name).replace(" ", "\n", 1), justify="right")
    shown, without = [report.blocks[name] for name in names], {}
    tasks = block_names(records.schedule)
    for block in records.schedule.blocks:
        why = missing(shown, block.index)
        if described and why:
            without[f"block {block.index}"] = why
            continue
        what = [] if described else [tasks[block.index], str(block.count)]
        cells = [_cell(summary, block.index) for summary in shown]
        table.add_row(str(block.index), f"{block.phase}.{block.mode}", *what, *cells)
    return table, without


def _syllabus_table(report: Report) -> Table:
    table = Table(title="Whole syllabus (mean over its blocks)", box=box.SIMPLE_HEAD)
    for title in ("metric", "mean", "95 % interval", "lifetimes with a value"):
        table.add_column(title, justify="left" if title == "metric" else "right")
    for name, summary in report.syllabus.items():
        if summary.count[()]:
            mean = digits(summary.mean[()])
            table.add_row(heading(name), mean, interval(summary, ()), with_value(summary, ()))
    return table


def _lifelong_table(report: Report) -> Table:
    """Each metric of today that has a value: over the lifetime, then for each task."""
    found = report.lifelong
    names = logged_names(report.records.schedule)
    table = Table(title="Lifelong learning (values normalised to 1 to 101)", box=box.SIMPLE_HEAD)
    table.add_column("metric, and tasks", overflow="fold", max_width=TASK_WIDTH)
    for title in ("mean", "95 % interval", "lifetimes\nwith a value"):
        table.add_column(title, justify="right", no_wrap=True)
    for name in dict.fromkeys([*found.lifetime, *found.by_task]):
        rows: list[tuple[str, Summary, Place]] = []
        if name in found.lifetime:
            rows.append((name, found.lifetime[name], ()))
        if name in found.by_task:
            tasks = enumerate(found.tasks)
            rows += [(f"  {names.get(t, t)}", found.by_task[name], i) for i, t in tasks]
        rows = [row for row in rows if row[1].count[row[2]]]
        if rows and rows[0][0] != name:
            table.add_row(name)
        for label, summary, index in rows:
            mean = digits(summary.mean[index])
            table.add_row(label, mean, interval(summary, index), with_value(summary, index))
    return table


def print_novelty(console: Console, found: NoveltySummary, names: Sequence[str]) -> None:
    """Print the scores of novelty predictions: over lifetimes, then block by block.

    Args:
      console: where to print.
      found: what to show.
      names: what each block plays.
    """
    table = Table(title="Novelty predictions, over lifetimes", box=box.SIMPLE_HEAD)
    for title in ("metric", "mean", "95 % interval", "lifetimes\nwith a value"):
        table.add_column(title, justify="left" if title == "metric" else "right")
    for name, summary in found.lifetime.items():
        if summary.count[()]:
            mean = digits(summary.mean[()])
            table.add_row(heading(name), mean, interval(summary, ()), with_value(summary, ()))
    console.print(table)
    table = Table(title="Novelty predictions, block by block", box=box.SIMPLE_HEAD)
    table.add_column("block")
    table.add_column("what it plays", overflow="fold", max_width=TASK_WIDTH)
    table.add_column("novel")
    for name in found.blocks:
        table.add_column(heading(name).replace(" ", "\n", 1), justify="right")
    for index, novel in enumerate(found.novel):
        cells = [_cell(summary, index) for summary in found.blocks.values()]
        table.add_row(str(index), names[index], "yes" if novel else "no", *cells)
    console.print(table)


def print_capabilities(
    console: Console, found: Mapping[str, Capability], every: bool = False
) -> None:
    """Print scores for core capabilities.

    Args:
      console: where to print.
      found: the scores.
      every: whether the score of each metric stands below the averages.
    """
    table = Table(title="Core capabilities (averages of metrics of one unit)", box=box.SIMPLE_HEAD)
    for title in ("capability", "average of", "score", "95 % interval"):
        table.add_column(title, justify="right" if title[0] in "s9" else "left")
    for name, capability in found.items():
        averages = capability.averages.items()
        rows = [(f"{unit}: {len(of.metrics)} metrics", of) for unit, of in averages]
        rows += list(capability.metrics.items()) if every else []
        for place, (label, score) in enumerate(rows):
            ends = interval_text(score.low, score.high)
            shown = name.replace("_", " ") if place == 0 else ""
            table.add_row(shown, label, digits(score.value), ends)
    if table.row_count:
        console.print(table)


def print_transfer(console: Console, found: Sequence[Transfer]) -> None:
    """Print areas between learning curves; nothing if there are none."""
    table = Table(title="Transfer (area between learning curves)", box=box.SIMPLE_HEAD)
    for title in ("from", "to", "area", "95 % interval", "lifetimes"):
        table.add_column(title, justify="left" if title in ("from", "to") else "right")
    for pair in found:
        ends = interval_text(pair.low, pair.high)
        table.add_row(pair.earlier, pair.task, digits(pair.area), ends, str(pair.lifetimes))
    if table.row_count:
        console.print(table)


def print_own(console: Console, found: OwnSummary) -> None:
    """Print metrics of users, each over the whole lifetime and then by block."""
    table = Table(title="Metrics of your own", box=box.SIMPLE_HEAD)
    for title in ("metric", "mean", "95 % interval", "lifetimes\nwith a value"):
        table.add_column(title, justify="left" if title == "metric" else "right")
    for name, whole in found.lifetime.items():
        rows: list[tuple[str, Summary, Place]] = [(name, whole, ())]
        if name in found.blocks:
            of = found.blocks[name]
            rows += [(f"  block {index}", of, index) for index in range(len(of.count))]
        for label, summary, index in rows:
            mean = digits(summary.mean[index])
            table.add_row(label, mean, interval(summary, index), with_value(summary, index))
    console.print(table)


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
            table.add_row(name, *(estimate_cell(summary.estimates[s], ()) for s in STATISTICS))
    return table


def _statistics_table(report: Report, metric: str) -> Table:
    """One metric: one row a block and one for the syllabus, one column a statistic."""
    title = f"{heading(metric)}, over lifetimes, with 95 % intervals"
    table = Table(title=title, box=box.SIMPLE_HEAD)
    table.add_column("block")
    for name in STATISTICS:
        table.add_column(STATISTIC_HEADINGS[name], justify="right")
    rows: list[tuple[str, Summary, Place]] = [
        (str(block.index), report.blocks[metric], block.index)
        for block in report.records.schedule.blocks
    ]
    for label, summary, index in [*rows, ("all", report.syllabus[metric], ())]:
        if summary.count[index]:
            cells = [estimate_cell(summary.estimates[name], index) for name in STATISTICS]
            table.add_row(label, *cells)
    return table


def _cell(summary: Summary, index: int) -> str:
    """Mean above its interval; empty where the metric says nothing about such a block."""
    if not np.isfinite(summary.mean[index]):
        return "" if summary.missing[index] in UNDEFINED else "–"
    count = int(summary.count[index])
    share = "" if count == summary.lifetimes else f"\n({count} of {summary.lifetimes})"
    return f"{digits(summary.mean[index])}\n{interval(summary, index)}{share}"
