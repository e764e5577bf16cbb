"""A custom metric as a plain function on arrays: the mean of the worst tenth of the episodes.

Run it on a log of today, or of the 2019 layout:

    jaxsim l2metrics -l LOG_DIRECTORY --metric examples/metrics/worst_tenth.py
    python -m evaluation.calc_metrics -log_dir LOG_DIRECTORY -metric examples/metrics/worst_tenth.py

or add it to a report of 2019: ``AgentMetricsReport(log_dir=...).add(worst_tenth)``.
"""

import numpy as np


def worst_tenth(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Mean performance of the worst tenth of the episodes of each block.

    Args:
      values: (B, T) performance of each episode, NaN behind the end of a block.
      counts: (B,) episodes of each block.

    Returns:
      (B,) in the unit of ``values``.
    """
    ordered = np.sort(values, axis=-1)  # NaN comes last
    tenth = np.maximum(counts // 10, 1)
    inside = np.arange(values.shape[-1]) < tenth[:, None]
    return np.where(inside, ordered, 0).sum(axis=-1) / tenth
