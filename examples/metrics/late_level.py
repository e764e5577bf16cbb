"""A metric of your own: how well an agent does in the last tenth of each block.

jaxsim run SYLLABUS.json --out DIR --metric examples/metrics/late_level.py
"""

import numpy as np

from evaluation.metrics import metric


@metric(text="mean of the last tenth of a block", direction="higher", unit="performance")
def late_level(values, counts):
    """How well an agent does at the end of each block."""
    start = counts - np.maximum(counts // 10, 1)
    late = np.arange(values.shape[-1]) >= start[:, None]
    return np.nanmean(np.where(late, values, np.nan), axis=-1)
