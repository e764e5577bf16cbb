"""The report of a sweep: its metrics over its axes, and its best and worst cells."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from evaluation.files import write_json, write_whole
from evaluation.json_types import JsonMapping, JsonObject
from evaluation.metrics.table import BY_NAME
from evaluation.sweep.means import REPLICATES, MeanTable, axes_of, metric_of, tabulate

JSON, PAGE = "report.json", "report.html"
MOST_CELLS: Final = 20_000
"""Most cells of a sweep with a report; `sweep table` is for larger sweeps."""
MOST_METRICS: Final = 8
MOST_ROWS: Final = 200
MOST_COLUMNS: Final = 6
ENDS: Final = 5


def write(folder: Path, cells: Path, about: JsonMapping, command: str) -> bool:
    """Write report.json and report.html of merged results.

    Args:
      folder: to write to.
      cells: the table of all metrics of all cells.
      about: the sweep's entries of the report, plain JSON values.
      command: that merged the results, for the page.

    Returns:
      Whether they were written: a sweep of more than `MOST_CELLS` cells gets none.
    """
    if about["cells"] > MOST_CELLS:
        return False
    from evaluation.report import html

    data = pq.read_table(cells)
    values = summarise(data, about)
    write_json(folder / JSON, values)
    page = html.of_report(f"Sweep {about['name']}", values, command, axes_of(data))
    write_whole(folder / PAGE, page)
    return True


def summarise(data: pa.Table, about: JsonMapping) -> JsonObject:
    """Return the report as plain JSON values.

    Args:
      data: rows of cells.parquet.
      about: the sweep's entries of the report.
    """
    metrics = list(dict.fromkeys(data["metric"].to_pylist()))
    parts = {name: data.filter(pc.equal(data["metric"], name)) for name in metrics[:MOST_METRICS]}
    values = {**about, "metrics": metrics}
    if len(metrics) > MOST_METRICS:
        values["metrics without tables"] = metrics[MOST_METRICS:]
    for name, part in list(parts.items())[:1]:
        row = BY_NAME.get(metric_of(name))
        sign = 1 if row is not None and row.direction == "lower" else -1
        numbers = part["value"].to_numpy().astype(float)
        order = np.argsort(sign * numbers, kind="stable")
        order = order[np.isfinite(numbers[order])]
        values |= {f"best cells by {name}": _cells(part, order[:ENDS], name)}
        values |= {f"worst cells by {name}": _cells(part, order[::-1][:ENDS], name)}
    for name, part in parts.items():
        for rows, columns in _pairs(part):
            by = rows if columns is None else f"{rows} and {columns}"
            values[f"{name} by {by}"] = _rows(tabulate(part, name, rows, columns))
    return values


def _pairs(data: pa.Table) -> Iterator[tuple[str, str | None]]:
    """Axes of each table: the longest axis by each short axis, then each axis alone."""
    sizes = {axis: len(pc.unique(data[axis])) for axis in axes_of(data)}
    usable = [axis for axis, size in sizes.items() if size <= MOST_ROWS]
    axes = [axis for axis in usable if sizes[axis] > 1 and axis != REPLICATES] or usable
    numeric = [axis for axis in axes if not pa.types.is_string(data.schema.field(axis).type)]
    first = max(numeric or axes, key=lambda axis: sizes[axis], default=None)
    for axis in axes:
        if axis != first and sizes[axis] <= MOST_COLUMNS:
            yield str(first), axis
    for axis in axes:
        yield axis, None


def _rows(table: MeanTable) -> list[JsonObject]:
    """A table as JSON, one object a row with an entry for each column."""
    return [
        {table.rows: value}
        | {str(name): _entry(table, r, c) for c, name in enumerate(table.column_values)}
        for r, value in enumerate(table.row_values)
    ]


def _entry(table: MeanTable, row: int, column: int) -> JsonObject:
    numbers = {name: getattr(table, name)[row, column] for name in ("value", "low", "high")}
    entry: JsonObject = {name: _number(number) for name, number in numbers.items()}
    entry["cells"] = int(table.cells[row, column])
    return entry if entry["value"] is not None else entry | {"reason": "no cell has a value"}


def _number(value: float | None) -> float | None:
    return float(value) if value is not None and np.isfinite(value) else None


def _cells(data: pa.Table, order: np.ndarray, name: str) -> list[JsonObject]:
    """Cells of some rows: number, values of the axes, and metric with interval."""
    axes = axes_of(data)
    return [
        {
            "cell": row["cell"],
            "plays": ", ".join(f"{axis} {row[axis]}" for axis in axes),
            name: {end: _number(row[end]) for end in ("value", "low", "high")},
        }
        for row in data.take(order).to_pylist()
    ]
