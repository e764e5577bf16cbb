"""Metrics as pure functions from padded arrays to numbers with a reason and an interval.

| module | subject |
| --- | --- |
| `table` | the table of all metrics |
| `registry` | built-in and custom metrics by name |
| `numerics` | the result type and shared array operations |
| `reasons` | reasons why a metric is missing |
| `l2m` | lifelong learning: 2019 and l2metrics 3.1 |
| `editions2019` | learning in a block, in three editions |
| `transfer2019` | performance relative to single-task experts |
| `abc_transfer` | transfer as area between learning curves |
| `novelty` | detection, reaction and characterisation |
| `statistics` | statistics over lifetimes, with intervals |
"""

from typing import TYPE_CHECKING

from evaluation.lazy import exports

if TYPE_CHECKING:
    from evaluation.metrics.l2m.framework2019 import DEFAULT_WINDOW as DEFAULT_WINDOW
    from evaluation.metrics.l2m.framework2019 import METRIC_NAMES as METRIC_NAMES
    from evaluation.metrics.l2m.framework2019 import RECOVERY_SLACK as RECOVERY_SLACK
    from evaluation.metrics.l2m.framework2019 import BlockLike as BlockLike
    from evaluation.metrics.l2m.framework2019 import BlockPairs as BlockPairs
    from evaluation.metrics.l2m.framework2019 import IndexConvention as IndexConvention
    from evaluation.metrics.l2m.framework2019 import LengthConvention as LengthConvention
    from evaluation.metrics.l2m.framework2019 import Pairing as Pairing
    from evaluation.metrics.l2m.framework2019 import block_metrics as block_metrics
    from evaluation.metrics.l2m.framework2019 import moving_average as moving_average
    from evaluation.metrics.l2m.framework2019 import normalized_integral as normalized_integral
    from evaluation.metrics.l2m.framework2019 import pair_blocks as pair_blocks
    from evaluation.metrics.l2m.framework2019 import (
        performance_maintenance as performance_maintenance,
    )
    from evaluation.metrics.l2m.framework2019 import recovery_time as recovery_time
    from evaluation.metrics.l2m.framework2019 import saturation_value as saturation_value
    from evaluation.metrics.l2m.framework2019 import time_to_saturation as time_to_saturation
    from evaluation.metrics.numerics import Numbers as Numbers
    from evaluation.metrics.reasons import Reason as Reason
    from evaluation.metrics.registry import Lifetime as Lifetime
    from evaluation.metrics.registry import MetricError as MetricError
    from evaluation.metrics.registry import MetricRow as MetricRow
    from evaluation.metrics.registry import metric as metric
    from evaluation.metrics.statistics import DEFAULT_LEVEL as DEFAULT_LEVEL
    from evaluation.metrics.statistics import DEFAULT_RESAMPLES as DEFAULT_RESAMPLES
    from evaluation.metrics.statistics import MAX_RESAMPLES as MAX_RESAMPLES
    from evaluation.metrics.statistics import STATISTICS as STATISTICS
    from evaluation.metrics.statistics import Description as Description
    from evaluation.metrics.statistics import Improvement as Improvement
    from evaluation.metrics.statistics import Interval as Interval
    from evaluation.metrics.statistics import Method as Method
    from evaluation.metrics.statistics import Seed as Seed
    from evaluation.metrics.statistics import Summary as Summary
    from evaluation.metrics.statistics import bootstrap_interval as bootstrap_interval
    from evaluation.metrics.statistics import bootstrap_intervals as bootstrap_intervals
    from evaluation.metrics.statistics import describe as describe
    from evaluation.metrics.statistics import holm as holm
    from evaluation.metrics.statistics import (
        probability_of_improvement as probability_of_improvement,
    )
    from evaluation.metrics.statistics import resample_weights as resample_weights
    from evaluation.metrics.statistics import summarise as summarise
    from evaluation.metrics.statistics import summarise_all as summarise_all
    from evaluation.metrics.statistics import syllabus_scores as syllabus_scores

__getattr__, __dir__ = exports(__name__)
