"""Tables of a report, for a terminal; needs the `cli` extra."""

import sys
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from evaluation.metrics import STATISTICS, Summary
from evaluation.metrics.table import heading
from evaluation.report.capabilities import Capability
from evaluation.report.custom_metrics import CustomSummary
from evaluation.report.names import block_names, logged_names
from evaluation.report.novelty import NoveltySummary
from evaluation.report.summary import Report
from evaluation.report.tables import (
    UNDEFINED,
    Line,
    digits,
    estimate_cell,
    interval,
    interval_text,
    left_out,
    missing,
    simple_table,
    with_tasks,
    with_value,
)
from evaluation.report.transfer import CurveTransfer

STATISTIC_HEADINGS = {
    "mean": "mean",
    "median": "median",
    "interquartile_mean": "interquartile\nmean",
    "std": "standard\ndeviation",
}


def print_report(console: Console, report: Report, statistics: bool = False) -> None:
    """Print the metrics of each block, of the syllabus, of lifelong learning and of novelty.

    Rows and columns without a number are left out; a line below the table says why.

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
        lifelong = [(name, summary, ()) for name, summary in report.lifelong.lifetime.items()]
        console.print(_statistics("Lifelong learning", lifelong, "metric"))
        for name, summary in report.syllabus.items():
            if summary.count[()]:
                blocks = report.blocks[name]
                rows: list[Line] = [(str(i), blocks, i) for i in range(len(blocks.count))]
                console.print(_statistics(heading(name), [*rows, ("all", summary, ())], "block"))


def _print_blocks(console: Console, report: Report) -> None:
    """Print the metrics of each block, in as many tables as the width of the console needs."""
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
    """A table with one row per block and one column per metric.

    Args:
      report: what to show.
      names: the metrics.
      described: whether an earlier table describes the blocks; only then are blocks without a
        number left out.

    Returns:
      (table, block that is left out -> reason).
    """
    records = report.records
    about = f"{records.schedule.name}: {report.measure}, {records.num_lifetimes} lifetimes"
    title = None if described else f"{about}, mean and 95 % interval"
    labels = ["block", "phase", *([] if described else ["task and parameters", "episodes"])]
    table = simple_table(title, labels, [heading(name).replace(" ", "\n", 1) for name in names])
    summaries, without = [report.blocks[name] for name in names], {}
    tasks = block_names(records.schedule)
    for block in records.schedule.blocks:
        reason = missing(summaries, block.index)
        if described and reason:
            without[f"block {block.index}"] = reason
            continue
        description = [] if described else [tasks[block.index], str(block.count)]
        cells = [_cell(summary, block.index) for summary in summaries]
        table.add_row(str(block.index), f"{block.phase}.{block.mode}", *description, *cells)
    return table, without


def _syllabus_table(report: Report) -> Table:
    rows = [(heading(name), summary, ()) for name, summary in report.syllabus.items()]
    return _means("Whole syllabus (mean over its blocks)", _valued(rows))


def _lifelong_table(report: Report) -> Table:
    """The lifelong-learning metrics that have a value: over the lifetime, then for each task."""
    summary, names = report.lifelong, logged_names(report.records.schedule)
    tasks = [names.get(task, task) for task in summary.tasks]
    rows = with_tasks(summary.lifetime, summary.by_task, tasks, lambda s, index: s.count[index])
    title = "Lifelong learning (values normalised to 1 to 101)"
    return _means(title, rows, "metric, and tasks")


def print_novelty(console: Console, novelty: NoveltySummary, names: Sequence[str]) -> None:
    """Print the scores of novelty predictions: over lifetimes, then block by block.

    Args:
      console: where to print.
      novelty: what to show.
      names: task and parameters of each block.
    """
    rows = [(heading(name), summary, ()) for name, summary in novelty.lifetime.items()]
    console.print(_means("Novelty predictions, over lifetimes", _valued(rows)))
    headings = [heading(name).replace(" ", "\n", 1) for name in novelty.blocks]
    labels = ("block", "what it plays", "novel")
    table = simple_table("Novelty predictions, block by block", labels, headings)
    for index, is_novel in enumerate(novelty.novel):
        cells = [_cell(summary, index) for summary in novelty.blocks.values()]
        table.add_row(str(index), names[index], "yes" if is_novel else "no", *cells)
    console.print(table)


def print_capabilities(
    console: Console, capabilities: Mapping[str, Capability], every: bool = False
) -> None:
    """Print scores for core capabilities.

    Args:
      console: where to print.
      capabilities: the scores, by name.
      every: whether to print the score of each metric below the averages.
    """
    title = "Core capabilities (averages of metrics of one unit)"
    table = simple_table(title, ("capability", "average of"), ("score", "95 % interval"))
    for name, capability in capabilities.items():
        averages = capability.averages.items()
        rows = [
            (f"{unit}: {_counted(len(score.metrics), 'metric')}", score) for unit, score in averages
        ]
        rows += list(capability.metrics.items()) if every else []
        for place, (label, score) in enumerate(rows):
            ends = interval_text(score.low, score.high)
            capability_cell = name.replace("_", " ") if place == 0 else ""
            table.add_row(capability_cell, label, digits(score.value), ends)
    if table.row_count:
        console.print(table)


def print_transfer(console: Console, pairs: Sequence[CurveTransfer]) -> None:
    """Print areas between learning curves; nothing if there are none."""
    title, numbers = "Transfer (area between learning curves)", ("area", "95 % interval")
    table = simple_table(title, ("agent", "from", "to"), (*numbers, "lifetimes"))
    for pair in pairs:
        names, ends = (pair.agent, pair.earlier, pair.task), interval_text(pair.low, pair.high)
        table.add_row(*names, digits(pair.area), ends, str(pair.lifetimes))
    if table.row_count:
        console.print(table)


def print_custom(console: Console, custom: CustomSummary) -> None:
    """Print custom metrics, each over the whole lifetime and then by block."""
    rows: list[Line] = []
    for name, whole in custom.lifetime.items():
        rows.append((name, whole, ()))
        if (blocks := custom.blocks.get(name)) is not None:
            rows += [(f"  block {i}", blocks, i) for i in range(len(blocks.count))]
    console.print(_means("Metrics of your own", rows))


def _valued(rows: Iterable[Line]) -> list[Line]:
    """The lines with a value."""
    return [(label, summary, index) for label, summary, index in rows if summary.count[index]]


def _means(title: str, rows: Iterable[Line], label: str = "metric") -> Table:
    """A table of means with their intervals."""
    table = simple_table(title, (label,), ("mean", "95 % interval", "lifetimes\nwith a value"))
    for name, summary, index in rows:
        if summary is None:
            table.add_row(name)
        else:
            cells = (
                digits(summary.mean[index]),
                interval(summary, index),
                with_value(summary, index),
            )
            table.add_row(name, *cells)
    return table


def _statistics(subject: str, rows: Iterable[Line], label: str) -> Table:
    """A table of all statistics over lifetimes, for the rows with a value."""
    title = f"{subject}, over lifetimes, with 95 % intervals"
    table = simple_table(title, (label,), [STATISTIC_HEADINGS[name] for name in STATISTICS])
    for name, summary, index in _valued(rows):
        table.add_row(name, *(estimate_cell(summary.estimates[s], index) for s in STATISTICS))
    return table


def _cell(summary: Summary, index: int) -> str:
    """Mean above its interval; empty where the metric is not defined for such a block."""
    if not np.isfinite(summary.mean[index]):
        return "" if summary.missing[index] in UNDEFINED else "–"
    count = int(summary.count[index])
    share = "" if count == summary.lifetimes else f"\n({count} of {summary.lifetimes})"
    return f"{digits(summary.mean[index])}\n{interval(summary, index)}{share}"


def _counted(number: int, noun: str) -> str:
    """A number of things, in words."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
