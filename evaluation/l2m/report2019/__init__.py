"""Metrics of a 2019 log: the framework's class hierarchy on batched kernels, and its commands."""

from evaluation.l2m.report2019.base import (
    CAPABILITIES,
    SUBTYPES,
    AgentMetric,
    ClassificationMetric,
    FunctionMetric,
    Matrix,
    Metric,
    Values,
)
from evaluation.l2m.report2019.columns import ColumnTable, LogTable, MetricsTable, PhaseTable
from evaluation.l2m.report2019.predefined import (
    AverageLearning,
    AverageReward,
    GlobalMean,
    NormalizedIntegral,
    PerformanceMaintenance,
    RecoveryTime,
    RewardPerStep,
    Settings,
    STERelativePerf,
    TransferMatrix,
    WithinBlockSaturation,
)
from evaluation.l2m.report2019.report import (
    AgentMetricsReport,
    ClassificationMetricsReport,
    MetricsReport,
    Result,
)

__all__ = [
    "CAPABILITIES",
    "SUBTYPES",
    "AgentMetric",
    "AgentMetricsReport",
    "AverageLearning",
    "AverageReward",
    "ClassificationMetric",
    "ClassificationMetricsReport",
    "ColumnTable",
    "FunctionMetric",
    "GlobalMean",
    "LogTable",
    "Matrix",
    "Metric",
    "MetricsReport",
    "MetricsTable",
    "NormalizedIntegral",
    "PerformanceMaintenance",
    "PhaseTable",
    "RecoveryTime",
    "Result",
    "RewardPerStep",
    "STERelativePerf",
    "Settings",
    "TransferMatrix",
    "Values",
    "WithinBlockSaturation",
]
