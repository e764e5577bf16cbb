"""Pictures of tables of a sweep; needs the extra `plots`."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from evaluation.files import write_whole
from evaluation.sweep.axes import Value
from evaluation.sweep.means import MeanTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_LINES: Final = 8
"""Most numeric columns that are drawn as lines; a table with more is a heat map."""
DPI: Final = 120


def write(table: MeanTable, path: Path) -> None:
    """Draw a table: lines with bands over a numeric axis, or a heat map over two.

    Args:
      table: from `tables.table`.
      path: of the picture; its ending is the format, as .png or .svg.

    Raises:
      ValueError: matplotlib is not installed, or does not know the format.
    """
    from evaluation.report.l2m_plots import check_matplotlib

    check_matplotlib()
    figure = draw(table)
    file = io.BytesIO()
    try:
        figure.savefig(file, format=path.suffix.removeprefix(".") or "png", dpi=DPI)
    except ValueError as error:
        raise ValueError(f"{path}: {' '.join(str(error).split())}") from error
    write_whole(path, file.getvalue())


def draw(table: MeanTable) -> "Figure":
    """Return a figure of matplotlib."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    if is_map(table):
        _map(figure, axes, table)
    else:
        _lines(axes, table)
    axes.set_xlabel(str(table.columns) if is_map(table) else table.rows)
    return figure


def is_map(table: MeanTable) -> bool:
    """Whether a table is drawn as a heat map."""
    numeric = all(_numeric(values) for values in (table.row_values, table.column_values))
    return table.columns is not None and numeric and len(table.column_values) > MOST_LINES


def _numeric(values: tuple[Value, ...]) -> bool:
    return not isinstance(values[0], str)


def _lines(axes: "Axes", table: MeanTable) -> None:
    numeric = _numeric(table.row_values)
    where = np.array(table.row_values if numeric else range(len(table.row_values)), float)
    for column, name in enumerate(table.column_values):
        label = f"{table.columns} {name}" if table.columns else None
        value, low, high = (x[:, column] for x in (table.value, table.low, table.high))
        if numeric:
            (line,) = axes.plot(where, value, marker="o", markersize=3, label=label)
            axes.fill_between(where, low, high, alpha=0.2, color=line.get_color(), linewidth=0)
        else:
            ends = np.nan_to_num(np.maximum([value - low, high - value], 0))
            axes.errorbar(where, value, yerr=ends, fmt="o", capsize=2, label=label)
    if numeric and _even_ratios(where):
        axes.set_xscale("log")
    if not numeric:
        axes.set_xticks(where, [str(value) for value in table.row_values])
    axes.set_ylabel(table.metric)
    axes.grid(alpha=0.3)
    if table.columns:
        axes.legend(fontsize="small")


def _even_ratios(where: np.ndarray) -> bool:
    """Whether values were spaced by a factor."""
    if len(where) < 3 or where.min() <= 0:
        return False
    steps = np.diff(np.log(where))
    return bool(np.allclose(steps, steps[0], rtol=1e-3) and where.max() > 4 * where.min())


def _map(figure: "Figure", axes: "Axes", table: MeanTable) -> None:
    across, down = (np.array(v, float) for v in (table.column_values, table.row_values))
    mesh = axes.pcolormesh(across, down, table.value, shading="nearest")
    for values, name in ((across, "x"), (down, "y")):
        if _even_ratios(values):
            axes.set(**{f"{name}scale": "log"})
    axes.set_ylabel(table.rows)
    figure.colorbar(mesh, ax=axes, label=table.metric)
