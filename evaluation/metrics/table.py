"""The table of all metrics of this package; names, headings and pages are made from it."""

from collections.abc import Sequence
from typing import Any, Final

from evaluation.metrics.registry import Direction, MetricRow, Scope

_DOCUMENT: Final = "L2M Metrics Framework (2019), section 2.1"
_LIFELONG: Final = "l2metrics 3.1"
_WSU: Final = "analysis of the AIQ/SAIL-ON generator (2021)"
CAPABILITIES: Final = (
    "continual_learning",
    "adapt_to_new_tasks",
    "selective_plasticity",
    "goal_driven_perception",
    "safety_and_monitoring",
)
"""The core capabilities of the 2019 document, as named in `MetricRow.capability`."""
SCALE: Final = 100
OFFSET: Final = 1
"""Normalised performance runs from `OFFSET` to `OFFSET` + `SCALE`."""
_CL, _ANT, _, _, _SAFETY = CAPABILITIES
_BLOCKS, _TASKS, _EXPERTS = ("blocks",), ("blocks", "tasks"), ("blocks", "tasks", "experts")
_PREDICTS, _BASELINE = ("predictions",), ("baseline",)
_PERFORMANCE, _EPISODES, _SHARE = "performance", "episodes", "share"
_RATIO, _CONTRAST = "ratio", "contrast"  # without an effect 1, and 0
_UNIT, _SIGNED, _POSITIVE = (0.0, 1.0), (-1.0, 1.0), (0.0, float("inf"))
_LOWEST, _HIGHEST = float(OFFSET), float(OFFSET + SCALE)
_MOST_CONTRAST = (_HIGHEST - _LOWEST) / (_HIGHEST + _LOWEST)
_NORMALISED: Final = "normalised performance"
_BOUNDS: Final = {
    _PERFORMANCE: _UNIT,
    _SHARE: _UNIT,
    _EPISODES: _POSITIVE,
    _NORMALISED: (_LOWEST, _HIGHEST),
    _RATIO: _POSITIVE,
    _CONTRAST: (-_MOST_CONTRAST, _MOST_CONTRAST),
}
_NORMALISING: Final = "3.1"  # the family that is computed from normalised performance
_FRAMEWORK, _EDITIONS, _TRANSFER = "l2m.framework2019:", "editions2019:", "transfer2019:"


def _row(
    family: str,
    name: str,
    kernel: str,
    scope: Scope,
    direction: Direction,
    unit: str,
    text: str,
    **fields: Any,
) -> MetricRow:
    fields = {"bounds": _BOUNDS.get(unit, MetricRow.bounds)} | fields
    return MetricRow(
        name, kernel, scope, text, direction=direction, unit=unit, family=family, **fields
    )


def _2019(
    name: str, kernel: str, direction: Direction, unit: str, text: str, **extra: Any
) -> MetricRow:
    fields = {"needs": _BLOCKS, "source": _DOCUMENT, "capability": _CL} | extra
    return _row("2019", name, kernel, "block", direction, unit, text, **fields)


def _command(
    name: str, kernel: str, direction: Direction, unit: str, text: str, **extra: Any
) -> MetricRow:
    fields = {"needs": _BLOCKS, "source": "l2metrics 0.3", "capability": _CL} | extra
    return _row("2019 command", name, kernel, "block", direction, unit, text, **fields)


def _lifelong(
    name: str, kernel: str, scope: Scope, unit: str, text: str, **extra: Any
) -> MetricRow:
    fields = {"needs": _TASKS, "source": _LIFELONG, "capability": _ANT} | extra
    return _row(_NORMALISING, name, kernel, scope, "higher", unit, text, **fields)


def _pred(
    name: str, kernel: str, scope: Scope, direction: Direction, unit: str, text: str, **extra: Any
) -> MetricRow:
    fields = {"needs": _PREDICTS, "capability": _SAFETY} | extra
    return _row("predictions", name, kernel, scope, direction, unit, text, **fields)


def _trial(
    name: str, kernel: str, direction: Direction, unit: str, text: str, **extra: Any
) -> MetricRow:
    fields = {"source": _WSU, "capability": _SAFETY} | extra
    return _row("experiment", name, f"novelty.{kernel}", "trial", direction, unit, text, **fields)


_SATURATION: Final = "performance_maintenance_saturation_value"
_TIME: Final = "performance_maintenance_time_to_saturation"

METRICS: Final = (
    # Of blocks, in `run` and `compare`.
    _2019("mean", "numerics:masked_mean", "higher", _PERFORMANCE, "plain mean of a block",
          source=""),
    _2019("saturation_value", f"{_FRAMEWORK}saturation_value", "higher", _PERFORMANCE,
          "highest moving average of a block", heading="saturation value"),
    _2019("time_to_saturation", f"{_FRAMEWORK}time_to_saturation", "lower", _EPISODES,
          "episodes until the saturation value is first reached", heading="time to saturation"),
    _2019("normalized_integral", f"{_FRAMEWORK}normalized_integral", "higher", _PERFORMANCE,
          "sum of the moving averages over the number of episodes", heading="normalized integral"),
    _2019("recovery_time", f"{_FRAMEWORK}recovery_time", "lower", _EPISODES,
          "episodes of the next training block until it is within 2 % of the saturation value",
          heading="recovery time"),
    _2019(_SATURATION, f"{_FRAMEWORK}performance_maintenance", "lower", _PERFORMANCE,
          "saturation value of the training block minus that of a later test",
          heading="maintenance: saturation", bounds=_SIGNED),
    _2019(_TIME, f"{_FRAMEWORK}performance_maintenance", "higher", _EPISODES,
          "time to saturation of the training block minus that of a later test",
          heading="maintenance: time", bounds=MetricRow.bounds),
    # Of blocks, in the command of 2019 only.
    _command("STE_normalized_saturation", f"{_TRANSFER}ste_relative", "higher", "",
             "saturation value over that of the single-task expert", needs=_EXPERTS,
             source=_DOCUMENT, capability=_ANT),
    _command("forward_transfer", f"{_TRANSFER}transfer", "higher", "",
             "STE_normalized_saturation of tests of a task before its training", needs=_EXPERTS,
             capability=_ANT),
    _command("reverse_transfer", f"{_TRANSFER}transfer", "higher", "",
             "STE_normalized_saturation of tests of a task after its training, with another task "
             "trained since", needs=_EXPERTS, capability=_ANT),
    _command("reward_per_step", f"{_EDITIONS}average_of", "higher", "reward per step",
             "reward of a block over its steps"),
    _command("average_learning", f"{_EDITIONS}average_learning", "higher", "reward per episode",
             "reward per episode until saturation"),
    _command("avg_achieved_reward", f"{_EDITIONS}average_of", "higher", "reward",
             "mean reward over the sub-episodes of a block"),
    # Of tasks and lifetimes.
    _lifelong("perf_recovery", "l2m.task_metrics:perf_recovery", "task", "episodes per block",
              "speed-up of recovery: minus the slope of recovery times", capability=_CL),
    _lifelong("avg_train_perf", "l2m.task_metrics:task_average", "task", _NORMALISED,
              "mean over training blocks", capability=_CL),
    _lifelong("avg_eval_perf", "l2m.task_metrics:task_average", "task", _NORMALISED,
              "mean over test blocks", capability=_CL),
    _lifelong("perf_maintenance_mrlep", "l2m.task_metrics:maintenance", "task", _NORMALISED,
              "later test minus the test that followed the last training",
              bounds=(-float(SCALE), float(SCALE))),
    _lifelong("perf_maintenance_mrtlp", "l2m.task_metrics:maintenance", "task", _NORMALISED,
              "later test minus the last tenth of the last training",
              bounds=(-float(SCALE), float(SCALE))),
    _lifelong("forward_transfer_ratio", "l2m.task_metrics:lifetime_transfer", "lifetime", _RATIO,
              "test after training another task over the test before, the task not trained yet"),
    _lifelong("backward_transfer_ratio", "l2m.task_metrics:lifetime_transfer", "lifetime", _RATIO,
              "test after training another task over the test before, the task trained before"),
    _lifelong("forward_transfer_contrast", "l2m.task_metrics:lifetime_transfer", "lifetime",
              _CONTRAST,
              "difference over sum of tests after and before other training, task not trained yet"),
    _lifelong("backward_transfer_contrast", "l2m.task_metrics:lifetime_transfer", "lifetime",
              _CONTRAST,
              "difference over sum of tests after and before other training, task trained before"),
    _lifelong("ste_rel_perf", "l2m.experts:relative_performance", "task", _RATIO,
              "sum of performance in training over that of a single-task expert", needs=_EXPERTS),
    _lifelong("sample_efficiency", "l2m.experts:sample_efficiency", "task", _RATIO,
              "saturation over the expert's, times the expert's time to it over the learner's; 0 "
              "below a fifth of the expert's saturation, or if the curve falls",
              needs=_EXPERTS),
    # Of novelty predictions, in `run`, `train` and `compare`.
    _pred("alarm_rate", "novelty.lifetimes:novelty_by_block", "block", "none", _SHARE,
          "share of a block's episodes that are reported as novel", heading="episodes reported"),
    _pred("detection_delay", "novelty.lifetimes:novelty_by_block", "block", "lower", _EPISODES,
          "episodes of a block with a new novel world before the first report",
          heading="detection delay"),
    _pred("block_level_accuracy", "novelty.lifetimes:novelty_by_block", "block", "higher", _SHARE,
          "share of a block's episodes whose predicted level is the true one",
          heading="level accuracy"),
    _pred("true_alarm_rate", "novelty.lifetimes:novelty_by_lifetime", "lifetime", "higher", _SHARE,
          "share of novel episodes that are reported", heading="true alarms"),
    _pred("false_alarm_rate", "novelty.lifetimes:novelty_by_lifetime", "lifetime", "lower", _SHARE,
          "share of the other episodes that are reported", heading="false alarms"),
    _pred("auc", "novelty.lifetimes:area_under_roc", "lifetime", "higher", "",
          "area under ROC: how often a novel episode's probability is above another's",
          heading="area under ROC", source="Hanley and McNeil (1982)", bounds=_UNIT),
    _pred("brier", "novelty.lifetimes:novelty_by_lifetime", "lifetime", "lower", "",
          "mean squared error of the probability of novelty", heading="Brier score", bounds=_UNIT),
    _pred("calibration_error", "novelty.lifetimes:calibration_error", "lifetime", "lower", "",
          "distance of probability and share of novel episodes, over ten bins",
          heading="calibration error", source="Naeini et al. (2015)", bounds=_UNIT),
    _pred("lifetime_level_accuracy", "novelty.lifetimes:novelty_by_lifetime", "lifetime", "higher",
          _SHARE, "share of the catalogue's novel episodes whose predicted level is the true one",
          heading="level accuracy"),
    # Of trials; for those that need predictions, `run` gives means over the trials of a lifetime.
    _trial("cdt", "detection:detection", "higher", _SHARE,
           "M2: share of trials that are correctly detected, without a false alarm before",
           needs=_PREDICTS, heading="CDT (M2)"),
    _trial("false_alarms", "detection:detection", "lower", _SHARE,
           "M2.1: share of trials with a false alarm before novelty", needs=_PREDICTS,
           heading="false (M2.1)"),
    _trial("found", "detection:detection", "higher", _SHARE,
           "share of trials in which novelty is reported after it came, false alarms or not",
           needs=_PREDICTS),
    _trial("mean_delay", "detection:delay_of_detected", "lower", _EPISODES,
           "M1: mean episodes from the first novel one to the first report, of CDT",
           needs=_PREDICTS, heading="delay (M1)"),
    _trial("median_delay", "cells:rows", "lower", _EPISODES,
           "median episodes from the first novel one to the first report, of CDT",
           needs=_PREDICTS, heading="median delay"),
    _trial("censored_median_delay", "cells:kaplan_meier_median", "lower", _EPISODES,
           "Kaplan-Meier median of the delay over all trials, episodes", needs=_PREDICTS),
    _trial("correct_rejections", "detection:correct_rejections", "higher", "",
           "M2.2: share of episodes before novelty that are not reported", needs=_PREDICTS,
           heading="M2.2", bounds=_UNIT),
    _trial("amoc_wsu", "detection:amoc_wsu", "higher", "",
           "AMOC as the generator's analysis draws it, 1 is best", needs=_PREDICTS,
           heading="AMOC", bounds=_UNIT),
    _trial("amoc_delay", "detection:amoc_delay", "lower", "",
           "area under delay by false alarms over all thresholds, 0 is best", needs=_PREDICTS,
           bounds=_UNIT, source="Fawcett and Provost (1999)"),
    _trial("asymptotic_nrp", "reaction:reaction", "higher", "",
           "M3 (visibility 0), M4 (1): last episodes over the baseline's before novelty",
           needs=_BASELINE, heading="NRP (M3, M4)", bounds=_POSITIVE),
    _trial("initial_nrp", "reaction:reaction", "higher", "",
           "M3.1, M4.1: first novel episodes over the baseline's before novelty", needs=_BASELINE,
           heading="(M3.1, M4.1)", bounds=_POSITIVE),
    _trial("overall_nrp", "reaction:reaction", "higher", "",
           "all episodes since the first novel one over the baseline's before novelty",
           needs=_BASELINE, bounds=_POSITIVE),
    _trial("opti", "reaction:reaction", "higher", "",
           "the agent's share of the summed performance of both after novelty, 0.5 is parity",
           needs=_BASELINE, heading="OPTI", bounds=_UNIT),
    _trial("ipti", "reaction:reaction", "higher", "", "OPTI of the first novel episodes",
           needs=_BASELINE, bounds=_UNIT),
    _trial("apti", "reaction:reaction", "higher", "", "OPTI of the last episodes",
           needs=_BASELINE, bounds=_UNIT),
    _trial("apti_ratio", "reaction:reaction", "higher", "",
           "the agent's sum over the baseline's, in the last episodes", needs=_BASELINE,
           bounds=_POSITIVE),
    _trial("performance_pre", "reaction:reaction", "higher", _PERFORMANCE,
           "mean performance before novelty", heading="before"),
    _trial("performance_post", "reaction:reaction", "higher", _PERFORMANCE,
           "mean performance since the first novel episode", heading="after"),
    _trial("baseline_pre", "reaction:reaction", "none", _PERFORMANCE,
           "the baseline's mean before novelty", needs=_BASELINE, heading="baseline before"),
    _trial("baseline_post", "reaction:reaction", "none", _PERFORMANCE,
           "the baseline's mean since the first novel episode", needs=_BASELINE,
           heading="baseline after"),
    _trial("gain", "reaction:reaction", "higher", _PERFORMANCE,
           "mean of the last episodes minus that of the first novel ones", bounds=_SIGNED),
    _trial("retained", "reaction:reaction", "higher", "",
           "mean of the last episodes over the agent's mean before novelty", bounds=_POSITIVE),
    _trial("robust", "reaction:reaction", "none", _SHARE,
           "NRM alpha: share of trials whose mean moves by less than 2 standard deviations",
           heading="NRM alpha"),
    _trial("robust_baseline", "reaction:reaction", "none", _SHARE,
           "NRM beta: NRM alpha of the baseline", needs=_BASELINE),
    _trial("deviation", "reaction:reaction", "lower", "",
           "distance of the means before and after, in standard deviations of before",
           bounds=_POSITIVE),
    _trial("deviation_baseline", "reaction:reaction", "none", "",
           "distance of the baseline's means before and after, in standard deviations of before",
           needs=_BASELINE, bounds=_POSITIVE),
    _trial("level_accuracy", "characterisation:characterisation", "higher", _SHARE,
           "share of trials in which the most probable level is the true one", needs=_PREDICTS,
           heading="level named"),
    _trial("level_accuracy_found", "characterisation:characterisation", "higher", _SHARE,
           "level accuracy in the trials in which novelty is reported", needs=_PREDICTS),
    _trial("level_log_score", "characterisation:characterisation", "lower", "",
           "mean of minus the logarithm of the true level's probability", needs=_PREDICTS,
           bounds=_POSITIVE),
    _trial("level_brier", "characterisation:characterisation", "lower", "",
           "mean Brier score of the levels' probabilities", needs=_PREDICTS, bounds=_POSITIVE),
    _trial("entity_accuracy", "characterisation:slot_accuracy", "higher", _SHARE,
           "share of trials whose entity is the generator's word", needs=_PREDICTS),
    _trial("attribute_accuracy", "characterisation:slot_accuracy", "higher", _SHARE,
           "share of trials whose attribute is the generator's word", needs=_PREDICTS),
    _trial("change_accuracy", "characterisation:slot_accuracy", "higher", _SHARE,
           "share of trials whose change is the generator's word", needs=_PREDICTS),
)  # fmt: skip
"""Every metric, in the order of tables and files."""

BY_NAME: Final = {row.name: row for row in METRICS}


SHARES: Final = frozenset(row.name for row in METRICS if row.unit == _SHARE)
"""Metrics that are yes or no, or the mean of such; their intervals are Wilson's."""


def bounds_of(
    rows: Sequence[MetricRow] = (), unit: bool = False, in_range: bool | None = None
) -> dict[str, tuple[float, float]]:
    """Bounds of all metrics by name, without those that hold only under another condition.

    Args:
      rows: custom metrics.
      unit: whether performance lies between 0 and 1.
      in_range: whether it lies within the range that is normalised; as ``unit`` if None.
    """
    in_range = unit if in_range is None else in_range
    table = [row for row in METRICS if in_range or row.family != _NORMALISING]
    return {row.name: row.bounds for row in (*table, *rows) if unit or row.unit != _PERFORMANCE}


def names_of(family: str, *scopes: Scope) -> tuple[str, ...]:
    """Names of a family's metrics, of the given scopes or of all, in order."""
    rows = (row for row in METRICS if row.family == family)
    return tuple(row.name for row in rows if not scopes or row.scope in scopes)


def heading(name: str) -> str:
    """Heading of a metric in tables; a custom metric has its name."""
    return BY_NAME[name].title if name in BY_NAME else name
