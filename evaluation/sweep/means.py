"""Means of a metric over the cells of a sweep that agree in one or two axes, with intervals."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from evaluation.metrics.statistics import (
    UNBOUNDED,
    bootstrap_interval,
    bounds_that_hold,
    of_clusters,
    wilson,
)
from evaluation.metrics.table import SHARES, bounds_of
from evaluation.records import MEASURE_BOUNDS
from evaluation.sweep.axes import Value
from evaluation.sweep.bases.base import ENDINGS

REPLICATES: Final = "seed"
"""An axis of repetitions: cells of one seed share starts and randomness."""
_BOUNDS: Final = bounds_of(unit=True) | MEASURE_BOUNDS | dict.fromkeys(ENDINGS, (0.0, 1.0))
_SHARES: Final = SHARES.union(ENDINGS)
MOST_VALUES: Final = 1000
"""Most values of an axis in a table."""


@dataclass(frozen=True)
class MeanTable:
    """One metric over one or two axes.

    Attributes:
      metric: its name.
      rows: name of the axis of the rows.
      columns: name of the axis of the columns; None for one column.
      row_values: (R,) values of the rows.
      column_values: (C,) values of the columns.
      value: (R, C) mean over the cells that agree in both; NaN where none has a value.
      low, high: (R, C) ends of its 95 % interval.
      cells: (R, C) number of these cells that have a value.
    """

    metric: str
    rows: str
    columns: str | None
    row_values: tuple[Value, ...]
    column_values: tuple[Value, ...]
    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    cells: np.ndarray


def axes_of(data: pa.Table) -> list[str]:
    """Names of the axes among the columns of cells.parquet."""
    return [name for name in data.column_names[1:] if name not in _NOT_AXES]


_NOT_AXES: Final = ("cell", "metric", "value", "low", "high", "count", "reason")


def metric_of(name: str) -> str:
    """Metric of a name in cells.parquet: "mean" of "block 3/mean"."""
    return name.rpartition("/")[2].partition(" after ")[0]


def tabulate(data: pa.Table, metric: str, rows: str, columns: str | None = None) -> MeanTable:
    """Average a metric over the cells that agree in one or two axes.

    The interval is that of a mean over seeds, each of which is averaged over its cells first; over
    cells where they are of one seed; and that of the cell if there is one.

    Args:
      data: rows of cells.parquet, all of this metric.
      metric: its name.
      rows: axis of the rows.
      columns: axis of the columns; None for one column.

    Raises:
      ValueError: an axis has more than `MOST_VALUES` values.
    """
    row_axis = _places(data, rows)
    column_axis = _places(data, columns) if columns is not None else ((), np.zeros(len(data), int))
    row_values, row = row_axis
    column_values, column = column_axis
    shape = len(row_values), max(1, len(column_values))
    arrays = {key: _numbers(data, key) for key in ("value", "low", "high", "count")}
    seeds = data[REPLICATES].to_numpy() if REPLICATES in axes_of(data) else np.zeros(len(data))
    value, low, high = (np.full(shape, np.nan) for _ in range(3))
    cells = np.zeros(shape, int)
    order = np.lexsort((np.arange(len(data)), column, row))
    place = row[order] * shape[1] + column[order]
    for members in np.split(order, np.flatnonzero(np.diff(place)) + 1):
        cell = row[members[0]], column[members[0]]
        members = members[np.isfinite(arrays["value"][members])]
        cells[cell] = len(members)
        parts = {key: array[members] for key, array in arrays.items()}
        if len(members) == 1:
            value[cell], low[cell], high[cell] = (parts[k][0] for k in ("value", "low", "high"))
        elif len(members):
            value[cell] = parts["value"].mean()
            one_seed = len(np.unique(seeds[members])) == 1
            clusters = members if one_seed else seeds[members]
            low[cell], high[cell] = _interval(metric_of(metric), parts, clusters)
    heads = column_values or (metric,)
    return MeanTable(metric, rows, columns, row_values, heads, value, low, high, cells)


def _interval(
    name: str, parts: Mapping[str, np.ndarray], clusters: np.ndarray
) -> tuple[float, float]:
    """Interval of the mean over clusters; of a share that is 0 or 1 in all cells, Wilson's.

    Args:
      name: of the metric.
      parts: columns "value" and "count" of N cells.
      clusters: (N,) what cells are averaged over first.
    """
    values = parts["value"]
    if name in _SHARES and np.ptp(values) == 0 and values[0] in (0, 1):
        number = parts["count"].sum()  # episodes or trials of all cells
        low, high = wilson(values[0] * number, number)
        return float(low), float(high)
    bounds = bounds_that_hold(_BOUNDS.get(name, UNBOUNDED), values)
    interval = bootstrap_interval(of_clusters(values, clusters), bounds=bounds)
    return float(interval.low), float(interval.high)


def _numbers(data: pa.Table, name: str) -> np.ndarray:
    numbers: np.ndarray = data[name].to_numpy().astype(np.float64)
    return numbers


def _places(data: pa.Table, name: str) -> tuple[tuple[Value, ...], np.ndarray]:
    """Values of an axis, sorted if they are numbers, and the index of each row among them."""
    column = data[name].to_pylist()
    values = list(dict.fromkeys(column))
    if not isinstance(values[0], str):
        values.sort()
    if len(values) > MOST_VALUES:
        raise ValueError(f"axis {name!r} has {len(values):,} values; a table takes {MOST_VALUES:,}")
    place = {value: index for index, value in enumerate(values)}
    return tuple(values), np.array([place[value] for value in column])
