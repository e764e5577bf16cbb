"""The example of a custom metric in ``calc_metrics``."""

from typing import Any, ClassVar

from evaluation.l2m.report2019.base import Metric, Values
from evaluation.l2m.report2019.frames import DataFrame


class GlobalPerformance(Metric):
    """Mean performance over all rows of the log."""

    name = "An Example Custom Metric"
    capability = "continual_learning"
    description = "Mean performance over all rows of the log"
    requires: ClassVar[dict[str, str]] = {"syllabus_type": "", "syllabus_subtype": ""}

    def __init__(self, measure: str = "reward") -> None:
        """Make the metric of a column of performance."""
        self._measure = measure

    def calculate(self, dataframe: DataFrame, phase_info: DataFrame, metrics_df: DataFrame) -> Any:
        """Return one number for the whole syllabus."""
        number = {"global_perf": float(dataframe[self._measure].to_numpy().mean())}
        return Values(number, number)
