"""A custom metric of today: a plain function on the arrays of one run.

jaxsim l2metrics -l LOG --metric examples/metrics/learning_range.py
"""

import numpy as np


def learning_range(run):
    """How far the processed performance of each regime goes from its lowest to its highest."""
    return np.nanmax(run.values, axis=1) - np.nanmin(run.values, axis=1)
