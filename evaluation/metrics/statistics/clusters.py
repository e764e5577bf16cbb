"""Means of values that come in clusters, such as trials of one novelty or cells of one seed."""

import numpy as np
import numpy.typing as npt

from evaluation.metrics.statistics.arrays import Floats
from evaluation.metrics.statistics.bootstrap import wilson


def of_clusters(values: npt.ArrayLike, clusters: npt.ArrayLike) -> Floats:
    """One value for each cluster, with the mean of all values and the spread between clusters.

    A cluster has its linearised value m + C / N * sum(y - m), with the mean m of N values y in C
    clusters; its own mean where clusters have equal numbers of values. An interval of the mean of
    these is one of m, however alike values of one cluster are.

    Args:
      values: (N, ...), NaN for none.
      clusters: (N,) label of the cluster of each.

    Returns:
      (C, ...), NaN for a cluster without a value.

    Source: W. G. Cochran, Sampling Techniques (1977), section 9A.
    """
    table = np.asarray(values, np.float64)
    labels, place = np.unique(np.asarray(clusters), return_inverse=True)
    if len(labels) == len(table):
        return table
    finite = np.isfinite(table)
    sums, sizes = (np.zeros((len(labels), *table.shape[1:])) for _ in range(2))
    np.add.at(sizes, place, finite)
    mean = np.where(finite, table, 0).sum(axis=0) / np.maximum(finite.sum(axis=0), 1)
    np.add.at(sums, place, np.where(finite, table - mean, 0))
    some = sizes > 0
    scale = some.sum(axis=0) / np.maximum(finite.sum(axis=0), 1)
    return np.where(some, mean + scale * sums, np.nan)


def share_of_clusters(
    hits: npt.ArrayLike, clusters: npt.ArrayLike, level: float
) -> tuple[float, float]:
    """Wilson's interval of a share of hits that come in clusters, for their effective number.

    So many independent hits would have a share that varies as much; at most all of them, and as
    many as there are clusters where all are alike.

    Args:
      hits: (N,) 0 or 1, NaN for none.
      clusters: (N,) label of the cluster of each.
      level: coverage of the interval.

    Returns:
      Lower and upper end; NaN without a hit or miss.

    Source: E. L. Korn and B. I. Graubard, Survey Methodology 24 (1998), with Wilson's interval.
    """
    table = np.asarray(hits, np.float64)
    finite = np.isfinite(table)
    if not (number := int(finite.sum())):
        return np.nan, np.nan
    values = of_clusters(table[finite], np.asarray(clusters)[finite])
    share, effective = table[finite].mean(), float(len(values))
    if 0 < share < 1 and 1 < len(values) < number:
        variance, independent = values.var(ddof=1) / len(values), share * (1 - share) / (number - 1)
        effective = number * independent / max(variance, independent)
    low, high = wilson(share * effective, effective, level)
    return float(low), float(high)
