"""A metric of merged results over one or two axes: read, printed, and as CSV."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from evaluation.sweep import merging, plans
from evaluation.sweep.means import MeanTable, axes_of, tabulate

if TYPE_CHECKING:
    from rich.table import Table as RichTable


def table(
    folder: Path,
    rows: str,
    columns: str | None = None,
    metric: str | None = None,
    where: Sequence[str] = (),
) -> MeanTable:
    """Compute a table from merged results.

    Args:
      folder: of a plan whose results are merged, or of merged results.
      rows: axis of the rows.
      columns: axis of the columns.
      metric: name of a metric; None for the first.
      where: "AXIS=VALUE" each: only cells with these values.

    Raises:
      ValueError: no merged results, or an unknown name; lists the known ones.
    """
    data = _read(folder)
    axes = axes_of(data)
    for name in (rows, columns):
        if name is not None and name not in axes:
            raise ValueError(f"no axis {name!r}; there are {', '.join(axes)}")
    if rows == columns:
        raise ValueError(f"rows and columns are both {rows!r}; name two axes")
    metrics = list(dict.fromkeys(data["metric"].to_pylist()))
    chosen = metrics[0] if metric is None else metric
    if chosen not in metrics:
        raise ValueError(f"no metric {chosen!r}; there are {', '.join(metrics)}")
    data = data.filter(pc.equal(data["metric"], chosen))
    for text in where:
        data = _filtered(data, text, axes)
    return tabulate(data, chosen, rows, columns)


def _read(folder: Path) -> pa.Table:
    path = folder / merging.CELLS
    if not path.is_file():
        path = folder / merging.MERGED / merging.CELLS
    if not path.is_file():
        raise ValueError(f"{folder} holds no merged results; run: jaxsim sweep merge {folder}")
    if path.parent.name == merging.MERGED and (folder / plans.FILE).is_file():
        plan, merged = plans.load(folder), path.with_name(merging.MARKER)
        if not merged.is_file() or plan.digest not in merged.read_text():
            raise ValueError(f"{path.parent} is of another plan; run: jaxsim sweep merge {folder}")
    try:
        return pq.read_table(path, page_checksum_verification=True)
    except (OSError, pa.ArrowException) as error:
        raise ValueError(f"{path} is damaged; run: jaxsim sweep merge {folder}") from error


def _filtered(data: pa.Table, text: str, axes: Sequence[str]) -> pa.Table:
    name, equals, word = text.partition("=")
    if not equals or name not in axes:
        raise ValueError(f"where is {text!r}; it must be AXIS=VALUE, of {', '.join(axes)}")
    kind = data.schema.field(name).type
    try:
        value = pa.scalar(word).cast(kind)
    except pa.ArrowInvalid as error:
        raise ValueError(f"where is {text!r}; values of {name!r} are of type {kind}") from error
    cells = data.filter(pc.equal(data[name], value))
    if not cells.num_rows:
        listed = ", ".join(map(str, pc.unique(data[name]).to_pylist()[:20]))
        raise ValueError(f"no cell has {text}; {name!r} takes {listed}")
    return cells


def csv_text(metric_table: MeanTable) -> str:
    """Return a table as CSV, one line a value; missing values are empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        [metric_table.rows, metric_table.columns or "metric", "value", "low", "high", "cells"]
    )
    for r, row in enumerate(metric_table.row_values):
        for c, column in enumerate(metric_table.column_values):
            numbers = [x[r, c] for x in (metric_table.value, metric_table.low, metric_table.high)]
            shown = [repr(float(n)) if np.isfinite(n) else "" for n in numbers]
            writer.writerow([row, column, *shown, metric_table.cells[r, c]])
    return text.getvalue()


def rich_table(metric_table: MeanTable) -> "RichTable":
    """Return a table for the console."""
    from rich import box
    from rich.table import Table as RichTable

    over = metric_table.cells.max()
    title = (
        f"{metric_table.metric}, mean over {_range_text(metric_table.cells)} cells each"
        if over > 1
        else metric_table.metric
    )
    grid = RichTable(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    grid.add_column(metric_table.rows, no_wrap=True)
    for value in metric_table.column_values:
        grid.add_column(str(value), justify="right")
    for r, row in enumerate(metric_table.row_values):
        texts = [_text(metric_table, r, c) for c in range(len(metric_table.column_values))]
        grid.add_row(f"{row:g}" if isinstance(row, float) else str(row), *texts)
    return grid


def _range_text(cells: np.ndarray) -> str:
    """Number of cells of all means, or its range."""
    least, most = cells.min(), cells.max()
    return f"{most:,}" if least == most else f"{least:,} to {most:,}"


def _text(metric_table: MeanTable, row: int, column: int) -> str:
    value, low, high = (
        x[row, column] for x in (metric_table.value, metric_table.low, metric_table.high)
    )
    if not np.isfinite(value):
        return ""
    if not np.isfinite(low):
        return f"{value:.3f}"
    end = f"{high:.3f}]" if np.isfinite(high) else "∞)"  # beyond the end of all trials
    return f"{value:.3f} [{low:.3f}, {end}"
