"""Metrics as pure functions from padded arrays to numbers with a reason and an interval."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evaluation.metrics.l2m import (
        DEFAULT_WINDOW,
        METRIC_NAMES,
        RECOVERY_SLACK,
        BlockLike,
        BlockPairs,
        IndexConvention,
        LengthConvention,
        Metric,
        Pairing,
        Reason,
        block_metrics,
        moving_average,
        normalized_integral,
        pair_blocks,
        performance_maintenance,
        recovery_time,
        saturation_value,
        time_to_saturation,
    )
    from evaluation.metrics.statistics import (
        DEFAULT_LEVEL,
        DEFAULT_RESAMPLES,
        MAX_RESAMPLES,
        Description,
        Interval,
        Seed,
        Summary,
        bootstrap_interval,
        describe,
        resample_weights,
        summarise,
        summarise_syllabus,
        syllabus_scores,
    )

_MODULES = ("evaluation.metrics.l2m.framework2019", "evaluation.metrics.statistics")
"""Where the names are looked for, in this order, on first use: some programs must not wait for JAX,
and the metrics of logs need NumPy only."""

__all__ = [
    "DEFAULT_LEVEL",
    "DEFAULT_RESAMPLES",
    "DEFAULT_WINDOW",
    "MAX_RESAMPLES",
    "METRIC_NAMES",
    "RECOVERY_SLACK",
    "BlockLike",
    "BlockPairs",
    "Description",
    "IndexConvention",
    "Interval",
    "LengthConvention",
    "Metric",
    "Pairing",
    "Reason",
    "Seed",
    "Summary",
    "block_metrics",
    "bootstrap_interval",
    "describe",
    "moving_average",
    "normalized_integral",
    "pair_blocks",
    "performance_maintenance",
    "recovery_time",
    "resample_weights",
    "saturation_value",
    "summarise",
    "summarise_syllabus",
    "syllabus_scores",
    "time_to_saturation",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        for module in map(import_module, _MODULES):
            if hasattr(module, name):
                globals()[name] = getattr(module, name)
                return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
