"""Metrics of lifelong learning: those of the 2019 framework document and those of today."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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


def __getattr__(name: str) -> Any:
    # On first use, because the metrics of logs need NumPy only and must not wait for JAX.
    if name in __all__:
        globals()[name] = getattr(import_module("evaluation.metrics.l2m.framework2019"), name)
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
