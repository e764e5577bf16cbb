"""Learning curves: mean performance in each evaluation, over the lifetimes."""

import csv
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evaluation.json_types import JsonObject
from evaluation.metrics.statistics import bootstrap_interval, describe
from evaluation.records import Records
from evaluation.report.entries import number

COLUMNS = ("episodes", "steps", "mean", "low", "high", "std", "lifetimes")

MEASURE = "performance"
"""Column of the records that the curve averages."""


@dataclass(frozen=True)
class LearningCurve:
    """Mean performance in each of P evaluations, over the lifetimes.

    Attributes:
      episodes: (P,) int, training episodes before it.
      steps: (P,) environment steps of these, mean over lifetimes.
      mean: (P,) mean of the lifetimes' mean performances.
      low, high: (P,) its 95 % interval; NaN for a single lifetime.
      std: (P,) standard deviation over lifetimes; NaN for a single one.
      lifetimes: number of them.
    """

    episodes: np.ndarray
    steps: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    std: np.ndarray
    lifetimes: int

    @classmethod
    def of(cls, records: Records, seed: int = 0) -> "LearningCurve":
        """Compute the curve of a course.

        Args:
          records: of a `TrainingCourse`.
          seed: of the bootstrap.
        """
        blocks = records.schedule.blocks
        tests = np.array([block.mode == "test" for block in blocks])
        performance, counts = records.by_block(MEASURE)
        lengths, _ = records.by_block("length")
        values = (performance.sum(axis=-1) / counts)[:, tests]
        episodes = np.where(tests, 0, counts).cumsum()[tests]
        steps = np.where(tests, 0.0, lengths.sum(axis=-1)).cumsum(axis=1)[:, tests]
        statistics = describe(values)
        interval = bootstrap_interval(values, seed, bounds=(0, 1))
        return cls(
            episodes,
            steps.mean(axis=0),
            statistics.mean,
            interval.low,
            interval.high,
            statistics.std,
            len(values),
        )

    def rows(self) -> list[JsonObject]:
        """Return one row an evaluation, `COLUMNS` of JSON values; None for NaN."""
        return [
            {
                "episodes": int(self.episodes[index]),
                **{name: number(getattr(self, name)[index]) for name in COLUMNS[1:-1]},
                "lifetimes": self.lifetimes,
            }
            for index in range(len(self.episodes))
        ]

    def to_csv(self) -> str:
        """Return the rows as CSV; missing values are empty."""
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows())
        return text.getvalue()


def plot(curve: LearningCurve, title: str, path: Path) -> None:
    """Plot a curve with a band of its interval.

    Args:
      curve: what to plot.
      title: above it.
      path: of the picture.

    Raises:
      ValueError: matplotlib is not installed.
    """
    from evaluation.report.l2m_plots import check_matplotlib

    check_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    line = axes.plot(curve.episodes, curve.mean, marker=".")[0]
    axes.fill_between(curve.episodes, curve.low, curve.high, color=line.get_color(), alpha=0.3)
    many = f"mean of {curve.lifetimes:,} lifetimes, 95 % interval"
    axes.set_title(f"{title}: {many if curve.lifetimes > 1 else 'one lifetime'}", wrap=True)
    axes.set_xlabel("training episodes")
    axes.set_ylabel("performance in evaluations (0 to 1)")
    axes.set_ylim(-0.02, 1.02)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)
