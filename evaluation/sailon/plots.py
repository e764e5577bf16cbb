"""Plots of an evaluation; needs the extra `plots`.

Figures are drawn with the Agg canvas of their own, so neither pyplot nor the backend of the calling
program is touched.
"""

import importlib.util
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from evaluation.files import write_whole
from evaluation.metrics import Numbers
from evaluation.metrics.novelty import Row

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
"""Figures, their panels by the label of the axis, and what is in each by the legend's words."""

DIFFERENCE: Final = 0.25  # of a cell's width, between the series of a panel
INCHES: Final = (0.28, 2.2)  # of a cell's width and a panel's height
DPI: Final = 110


def available() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def write(rows: Sequence[Row], out: Path) -> list[Path]:
    """Draw the cells of each visibility, with their 95 % intervals.

    Args:
      rows: of an analysis.
      out: directory for `detection_<visibility>.png` and `performance_<visibility>.png`.

    Returns:
      The files.
    """
    written = []
    for visibility in sorted({row.visibility for row in rows}):
        cells = [row for row in rows if row.kind == "cell" and row.visibility == visibility]
        for name, panels in PANELS.items():
            path = out / f"{name}_{visibility}.png"
            write_whole(path, _figure(cells, panels))
            written.append(path)
    return written


def _figure(cells: Sequence[Row], panels: Sequence[tuple[str, Mapping[str, str]]]) -> bytes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    width = max(6.0, INCHES[0] * len(cells) + 1)
    figure = Figure(figsize=(width, INCHES[1] * len(panels) + 1), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(panels), 1, sharex=True)
    for axis, (label, series) in zip(axes, panels, strict=True):
        for place, (name, words) in enumerate(series.items()):
            _draw(axis, [row.values[name] for row in cells], DIFFERENCE * place, words)
        axis.set_ylabel(label)
        axis.legend(loc="best", fontsize="small")
        axis.grid(axis="y", alpha=0.3)
    names = [f"{row.level} {row.difficulty}" for row in cells]
    axes[-1].set_xticks(range(len(names)), names, rotation=90, fontsize="small")
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=DPI)
    return file.getvalue()


def _draw(axis: Any, values: Sequence[Numbers], shift: float, words: str) -> None:
    """One series: points with their intervals, nothing where there is no value."""
    table = np.array([(v.values, v.low, v.high) for v in values], np.float64).reshape(-1, 3)
    known = np.flatnonzero(~np.isnan(table[:, 0]))
    middle, low, high = np.where(np.isnan(table), table[:, :1], table)[known].T
    where = known + shift
    errors = np.maximum([middle - low, high - middle], 0)
    axis.errorbar(where, middle, yerr=errors, fmt="o", markersize=3, capsize=2, label=words)
