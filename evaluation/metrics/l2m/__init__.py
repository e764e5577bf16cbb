"""Metrics of lifelong learning: those of the 2019 framework document and those of today."""

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
        Metric,
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
    from evaluation.metrics.l2m.reasons import Reason

__all__ = [
    "DEFAULT_WINDOW",
    "METRIC_NAMES",
    "RECOVERY_SLACK",
    "BlockLike",
    "BlockPairs",
    "IndexConvention",
    "LengthConvention",
    "Metric",
    "Pairing",
    "Reason",
    "block_metrics",
    "moving_average",
    "normalized_integral",
    "pair_blocks",
    "performance_maintenance",
    "recovery_time",
    "saturation_value",
    "time_to_saturation",
]

_HOMES = dict.fromkeys(__all__, "framework2019") | {"Reason": "reasons"}

__getattr__, __dir__ = exports(__name__, _HOMES)
