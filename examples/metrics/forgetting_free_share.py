"""A custom metric as a class: the share of test blocks on which an agent has not got worse.

Run it on a log of the 2019 layout:

    python examples/metrics/forgetting_free_share.py LOG_DIRECTORY
    python -m evaluation.calc_metrics -log_dir LOG_DIRECTORY -syllabus_subtype ANT_A \
        -metric examples/metrics/forgetting_free_share.py
"""

import sys

import numpy as np
import pandas as pd

from evaluation.l2m.report2019 import AgentMetric, AgentMetricsReport

TOLERANCE = 0.02


class ForgettingFreeShare(AgentMetric):
    """Whether each test block saturates within 2 % of where its training block did."""

    name = "Share of Tests without Forgetting"
    capability = "continual_learning"
    description = "1 where a test saturates within 2 % of its training block, 0 where it does not"

    def calculate(
        self, dataframe: pd.DataFrame, phase_info: pd.DataFrame, metrics_df: pd.DataFrame
    ) -> pd.DataFrame:
        """Read what an earlier metric of the report found, and add a column."""
        fall = metrics_df["saturation_difference"]
        level = np.abs(metrics_df["saturation_value"] + fall)
        metrics_df["forgetting_free"] = np.where(np.isnan(fall), np.nan, fall <= TOLERANCE * level)
        # Why a number is missing is the same as for the difference.
        reasons = metrics_df.attrs["reasons"]
        reasons["forgetting_free"] = reasons["saturation_difference"]
        return metrics_df


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python examples/metrics/forgetting_free_share.py LOG_DIRECTORY")
    report = AgentMetricsReport(log_dir=sys.argv[1], syllabus_subtype="ANT_A")
    report.add(ForgettingFreeShare())
    report.calculate()
    report.report()
