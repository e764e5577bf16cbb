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

__all__ = [
    "DEFAULT_WINDOW",
    "METRIC_NAMES",
    "RECOVERY_SLACK",
    "BlockLike",
    "BlockPairs",
    "IndexConvention",
    "LengthConvention",
    "Pairing",
    "block_metrics",
    "moving_average",
    "normalized_integral",
    "pair_blocks",
    "performance_maintenance",
    "recovery_time",
    "saturation_value",
    "time_to_saturation",
]

__getattr__, __dir__ = exports(__name__, dict.fromkeys(__all__, "framework2019"))
