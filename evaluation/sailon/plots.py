"""Plots of an evaluation; needs the extra `plots`.

Each figure has its own Agg canvas, so neither pyplot nor the caller's backend is touched.
"""

import importlib.util
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from evaluation.files import write_whole
from evaluation.metrics import Numbers
from evaluation.metrics.novelty import CellMeasures

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANELS: Final[Mapping[str, tuple[tuple[str, Mapping[str, str]], ...]]] = {
    "detection": (
        ("share of trials", {"cdt": "correctly detected (CDT)", "false_alarms": "false alarms"}),
        ("episodes", {"censored_median_delay": "median delay over all trials"}),
        ("share of trials", {"level_accuracy": "level named rightly"}),
    ),
    "performance": (
        ("before novelty", {"performance_pre": "agent", "baseline_pre": "baseline"}),
        (
            "from the first novel episode",
            {"performance_post": "agent", "baseline_post": "baseline"},
        ),
        ("share of both agents' sum", {"opti": "OPTI, 0.5 is parity"}),
    ),
}
"""Panels of the figures: label of the axis, and the legend's words by measure."""

FIGURES: Final = (*PANELS, "difficulty")
"""Names of all figures; the last is drawn for novelties of a list."""

DIFFICULTIES: Final = ("control", "detection")
"""Kinds of rows that are bins of a difficulty."""

DIFFERENCE: Final = 0.25  # of a cell's width, between the series of a panel
INCHES: Final = (0.28, 2.2)  # of a cell's width and a panel's height
DPI: Final = 110


def available() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def write(rows: Sequence[CellMeasures], out: Path) -> list[Path]:
    """Draw the cells of each visibility with 95 % intervals; for a list, also its bins.

    Args:
      rows: of an analysis.
      out: directory for `detection_<visibility>.png`, `performance_<visibility>.png` and, for
        novelties of a list, `difficulty_<visibility>.png`.

    Returns:
      The files.
    """
    paths = []
    for visibility in sorted({row.visibility for row in rows}):
        visible = [row for row in rows if row.visibility == visibility]
        of_lists = any(row.kind in DIFFICULTIES for row in visible)
        for name, panels in PANELS.items():
            # Cells of a list are too many for a figure: draw its families.
            cells = [row for row in visible if row.kind == ("level" if of_lists else "cell")]
            names = [" ".join(filter(None, (str(row.level), row.difficulty))) for row in cells]
            columns = [[(cells, names, panel)] for panel in panels]
            paths.append(_write(out / f"{name}_{visibility}.png", columns))
        if of_lists:
            paths.append(_write(out / f"difficulty_{visibility}.png", over_difficulty(visible)))
    return paths


Panel = tuple[Sequence[CellMeasures], Sequence[str], tuple[str, Mapping[str, str]]]
"""Rows, their names, and one panel of `PANELS`."""


def over_difficulty(rows: Sequence[CellMeasures]) -> list[list[Panel]]:
    """Panels of detection and performance over both kinds of difficulty."""
    panels = (PANELS["detection"][0], PANELS["performance"][1])
    kinds = {}
    for kind in DIFFICULTIES:
        cells = sorted((row for row in rows if row.kind == kind), key=_least)
        kinds[kind] = cells, [f"{kind} {row.difficulty}" for row in cells]
    return [[(*kinds[kind], panel) for kind in DIFFICULTIES] for panel in panels]


def _least(row: CellMeasures) -> float:
    """Lower end of a bin."""
    return float((row.difficulty or "0").split()[0])


def _write(path: Path, grid: Sequence[Sequence[Panel]]) -> Path:
    """Draw panels in rows and columns; those of a column share their rows."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    counts = [len(rows) for rows, _, _ in grid[0]]
    width = max(6.0, INCHES[0] * sum(counts) + len(counts))
    figure = Figure(figsize=(width, INCHES[1] * len(grid) + 1), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(grid), len(counts), sharex="col", squeeze=False)
    for line, panels in zip(axes, grid, strict=True):
        for axis, (rows, names, (label, series)) in zip(line, panels, strict=True):
            for place, (name, words) in enumerate(series.items()):
                _draw(axis, [row.values[name] for row in rows], DIFFERENCE * place, words)
            axis.set_ylabel(label)
            axis.legend(loc="best", fontsize="small")
            axis.grid(axis="y", alpha=0.3)
            axis.set_xticks(range(len(names)), names, rotation=90, fontsize="small")
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=DPI)
    write_whole(path, file.getvalue())
    return path


def _draw(axis: "Axes", values: Sequence[Numbers], shift: float, words: str) -> None:
    """Draw one series: points with their intervals; missing values are left out.

    An upper end beyond the end of all trials has an arrow above the highest other one.
    """
    table = np.array([(v.values, v.low, v.high) for v in values], np.float64).reshape(-1, 3)
    valid = np.flatnonzero(~np.isnan(table[:, 0]))
    beyond = np.isfinite(table[:, 1]) & np.isnan(table[:, 2])
    if beyond.any():
        table[beyond, 2] = np.nanmax(table) + 1
    middle, low, high = np.where(np.isnan(table), table[:, :1], table)[valid].T
    x = valid + shift
    errors = np.maximum([middle - low, high - middle], 0)
    bars = axis.errorbar(x, middle, yerr=errors, fmt="o", markersize=3, capsize=2, label=words)
    ends = np.flatnonzero(beyond)
    axis.plot(ends + shift, table[ends, 2], "^", markersize=4, color=bars.lines[0].get_color())
