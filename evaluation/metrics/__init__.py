"""Metrics as pure functions from padded arrays to numbers with a reason and an interval."""

from typing import TYPE_CHECKING

from evaluation.lazy import exports

if TYPE_CHECKING:
    from evaluation.metrics.l2m.framework2019 import (
        DEFAULT_WINDOW,
        METRIC_NAMES,
        RECOVERY_SLACK,
        BlockLike,
        BlockPairs,
        IndexConvention,
        LengthConvention,
        Pairing,
        block_metrics,
        moving_average,
        normalized_integral,
        pair_blocks,
        performance_maintenance,
        recovery_time,
        saturation_value,
        time_to_saturation,
    )
    from evaluation.metrics.numerics import Numbers
    from evaluation.metrics.reasons import Reason
    from evaluation.metrics.registry import Lifetime, MetricError, Row, metric
    from evaluation.metrics.statistics import (
        DEFAULT_LEVEL,
        DEFAULT_RESAMPLES,
        MAX_RESAMPLES,
        STATISTICS,
        Description,
        Improvement,
        Interval,
        Method,
        Seed,
        Summary,
        bootstrap_interval,
        bootstrap_intervals,
        describe,
        holm,
        probability_of_improvement,
        resample_weights,
        summarise,
        summarise_all,
        syllabus_scores,
    )

_STATISTICS = (
    "DEFAULT_LEVEL",
    "DEFAULT_RESAMPLES",
    "MAX_RESAMPLES",
    "STATISTICS",
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
)

__all__ = [
    "DEFAULT_LEVEL",
    "DEFAULT_RESAMPLES",
    "DEFAULT_WINDOW",
    "MAX_RESAMPLES",
    "METRIC_NAMES",
    "RECOVERY_SLACK",
    "STATISTICS",
    "BlockLike",
    "BlockPairs",
    "Description",
    "Improvement",
    "IndexConvention",
    "Interval",
    "LengthConvention",
    "Lifetime",
    "Method",
    "MetricError",
    "Numbers",
    "Pairing",
    "Reason",
    "Row",
    "Seed",
    "Summary",
    "block_metrics",
    "bootstrap_interval",
    "bootstrap_intervals",
    "describe",
    "holm",
    "metric",
    "moving_average",
    "normalized_integral",
    "pair_blocks",
    "performance_maintenance",
    "probability_of_improvement",
    "recovery_time",
    "resample_weights",
    "saturation_value",
    "summarise",
    "summarise_all",
    "syllabus_scores",
    "time_to_saturation",
]

_HOMES = dict.fromkeys(__all__, "l2m.framework2019") | dict.fromkeys(_STATISTICS, "statistics")
_HOMES |= {"Numbers": "numerics", "Reason": "reasons"}
_HOMES |= dict.fromkeys(("Lifetime", "MetricError", "Row", "metric"), "registry")

__getattr__, __dir__ = exports(__name__, _HOMES)
