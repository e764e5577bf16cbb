"""Statistics over lifetimes, each with a seeded bootstrap interval.

The resampling unit is the *lifetime*. Episodes and blocks of one lifetime share an agent and are
not independent, so they are never resampled separately. A lifetime without a value is drawn like
any other and then left out of that resample's statistic: the interval includes the uncertainty
about how many lifetimes have a value.

Values that come in clusters, such as trials of one novelty, are one value for each cluster first:
`of_clusters`, and `share_of_clusters` for hits and misses.

An interval does not depend on the other columns (blocks, metrics): all columns get the same
resamples. For the mean and the standard deviation a resample draws lifetimes, so intervals of
different columns are paired. For the median and the interquartile mean it draws ranks of a column's
values, which has the same distribution.

The arithmetic is reproducible to the bit. Resampled sums are matrix products over integers that are
exact in float64 for any order of summation in a BLAS. Draws come from the raw PCG64 stream, which
NumPy keeps stable between versions. The price is a resolution of 2^-(52 - log2 L) of a column's
half range, about 1e-12 for 10,000 lifetimes, and of about 1e-10 for the spread of a resample.
"""

from evaluation.metrics.statistics.arrays import DEFAULT_LEVEL as DEFAULT_LEVEL
from evaluation.metrics.statistics.arrays import DEFAULT_RESAMPLES as DEFAULT_RESAMPLES
from evaluation.metrics.statistics.arrays import MAX_RESAMPLES as MAX_RESAMPLES
from evaluation.metrics.statistics.arrays import Seed as Seed
from evaluation.metrics.statistics.bootstrap import INTERVALS as INTERVALS
from evaluation.metrics.statistics.bootstrap import UNBOUNDED as UNBOUNDED
from evaluation.metrics.statistics.bootstrap import Bounds as Bounds
from evaluation.metrics.statistics.bootstrap import Interval as Interval
from evaluation.metrics.statistics.bootstrap import Method as Method
from evaluation.metrics.statistics.bootstrap import bootstrap_interval as bootstrap_interval
from evaluation.metrics.statistics.bootstrap import bootstrap_intervals as bootstrap_intervals
from evaluation.metrics.statistics.bootstrap import bounds_that_hold as bounds_that_hold
from evaluation.metrics.statistics.bootstrap import resample_weights as resample_weights
from evaluation.metrics.statistics.bootstrap import wilson as wilson
from evaluation.metrics.statistics.clusters import of_clusters as of_clusters
from evaluation.metrics.statistics.clusters import share_of_clusters as share_of_clusters
from evaluation.metrics.statistics.comparison import Improvement as Improvement
from evaluation.metrics.statistics.comparison import holm as holm
from evaluation.metrics.statistics.comparison import (
    probability_of_improvement as probability_of_improvement,
)
from evaluation.metrics.statistics.location import STATISTICS as STATISTICS
from evaluation.metrics.statistics.location import Description as Description
from evaluation.metrics.statistics.location import describe as describe
from evaluation.metrics.statistics.summary import Summary as Summary
from evaluation.metrics.statistics.summary import summarise as summarise
from evaluation.metrics.statistics.summary import summarise_all as summarise_all
from evaluation.metrics.statistics.summary import syllabus_scores as syllabus_scores
