"""Metrics of a 2019 log: the framework's class hierarchy on batched kernels, and its commands.

| module | subject |
| --- | --- |
| `report` | reports of one log |
| `base` | base classes of metrics |
| `predefined` | the predefined metrics |
| `table` | a 2019 log as columns |
| `frames` | pandas DataFrames that metrics get |
| `precision` | 64-bit types during a computation |
| `plots` | plots of per-block numbers |
| `commands` | `l2metrics` and `calc_metrics` of 2019 |
| `example` | an example of a custom metric |
"""

from evaluation.l2m.report2019.base import CAPABILITIES as CAPABILITIES
from evaluation.l2m.report2019.base import SUBTYPES as SUBTYPES
from evaluation.l2m.report2019.base import AgentMetric as AgentMetric
from evaluation.l2m.report2019.base import ClassificationMetric as ClassificationMetric
from evaluation.l2m.report2019.base import FunctionMetric as FunctionMetric
from evaluation.l2m.report2019.base import Matrix as Matrix
from evaluation.l2m.report2019.base import Metric as Metric
from evaluation.l2m.report2019.base import Values as Values
from evaluation.l2m.report2019.frames import blocks_of as blocks_of
from evaluation.l2m.report2019.frames import by_block as by_block
from evaluation.l2m.report2019.frames import counts_of as counts_of
from evaluation.l2m.report2019.predefined import AverageLearning as AverageLearning
from evaluation.l2m.report2019.predefined import AverageReward as AverageReward
from evaluation.l2m.report2019.predefined import ClassificationIntegral as ClassificationIntegral
from evaluation.l2m.report2019.predefined import (
    ClassificationMaintenance as ClassificationMaintenance,
)
from evaluation.l2m.report2019.predefined import ClassificationMean as ClassificationMean
from evaluation.l2m.report2019.predefined import ClassificationRecovery as ClassificationRecovery
from evaluation.l2m.report2019.predefined import (
    ClassificationSaturation as ClassificationSaturation,
)
from evaluation.l2m.report2019.predefined import (
    ClassificationSTERelative as ClassificationSTERelative,
)
from evaluation.l2m.report2019.predefined import ClassificationTransfer as ClassificationTransfer
from evaluation.l2m.report2019.predefined import GlobalMean as GlobalMean
from evaluation.l2m.report2019.predefined import NormalizedIntegral as NormalizedIntegral
from evaluation.l2m.report2019.predefined import PerformanceMaintenance as PerformanceMaintenance
from evaluation.l2m.report2019.predefined import PredefinedSettings as PredefinedSettings
from evaluation.l2m.report2019.predefined import RecoveryTime as RecoveryTime
from evaluation.l2m.report2019.predefined import RewardPerStep as RewardPerStep
from evaluation.l2m.report2019.predefined import STERelativePerf as STERelativePerf
from evaluation.l2m.report2019.predefined import TransferMatrix as TransferMatrix
from evaluation.l2m.report2019.predefined import WithinBlockSaturation as WithinBlockSaturation
from evaluation.l2m.report2019.report import AgentMetricsReport as AgentMetricsReport
from evaluation.l2m.report2019.report import (
    ClassificationMetricsReport as ClassificationMetricsReport,
)
from evaluation.l2m.report2019.report import MetricResult as MetricResult
from evaluation.l2m.report2019.report import MetricsReport as MetricsReport
