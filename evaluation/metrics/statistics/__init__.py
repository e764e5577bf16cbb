"""Statistics over lifetimes, each with a seeded bootstrap interval.

The resampling unit is the *lifetime*. Episodes and blocks of one lifetime share an agent and are
not independent, so they are never resampled on their own. A lifetime without a value is drawn like
any other and then left out of that resample's statistic: the interval also carries the uncertainty
about how many lifetimes have a value.

An interval does not depend on which other columns (blocks, metrics) are computed beside it: all
columns see the same resamples. For the mean and the standard deviation a resample draws lifetimes,
so that intervals of different columns are paired; for the median and the interquartile mean it
draws ranks of a column's values, which has the same distribution.

The arithmetic is reproducible to the bit. Resampled sums are matrix products over integers that are
small enough to be exact in float64, whatever the order in which a BLAS adds them up, and draws
come from the raw PCG64 stream, which NumPy keeps stable between versions. The price is a
resolution of 2^-(52 - log2 L) of a column's half range, about 1e-12 for 10,000 lifetimes, and of
about 1e-10 for the spread of a resample.
"""

from evaluation.metrics.statistics.arrays import (
    DEFAULT_LEVEL,
    DEFAULT_RESAMPLES,
    MAX_RESAMPLES,
    Seed,
)
from evaluation.metrics.statistics.bootstrap import (
    INTERVALS,
    Bounds,
    Interval,
    Method,
    bootstrap_interval,
    bootstrap_intervals,
    resample_weights,
    wilson,
)
from evaluation.metrics.statistics.comparison import (
    Improvement,
    holm,
    probability_of_improvement,
)
from evaluation.metrics.statistics.location import STATISTICS, Description, describe
from evaluation.metrics.statistics.summary import (
    Summary,
    summarise,
    summarise_all,
    syllabus_scores,
)

__all__ = [
    "DEFAULT_LEVEL",
    "DEFAULT_RESAMPLES",
    "INTERVALS",
    "MAX_RESAMPLES",
    "STATISTICS",
    "Bounds",
    "Description",
    "Improvement",
    "Interval",
    "Method",
    "Seed",
    "Summary",
    "bootstrap_interval",
    "bootstrap_intervals",
    "describe",
    "holm",
    "probability_of_improvement",
    "resample_weights",
    "summarise",
    "summarise_all",
    "syllabus_scores",
    "wilson",
]
