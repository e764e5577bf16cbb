"""A metric of your own over the processed curves of a log.

jaxsim l2metrics -l LOG --metric examples/metrics/learning_range.py
"""

import numpy as np

from evaluation.metrics import metric


@metric(text="range of the processed performance of a block", direction="none")
def learning_range(processed):
    """How far the processed performance of each block goes from its lowest to its highest."""
    return np.nanmax(processed, axis=1) - np.nanmin(processed, axis=1)
