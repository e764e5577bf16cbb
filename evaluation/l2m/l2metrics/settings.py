"""Settings of a metrics run, with the names of the flags of l2metrics 3.1."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from evaluation.files import read_json
from evaluation.json_types import JsonObject, JsonValue
from evaluation.l2m.l2metrics.errors import ErrorKind, L2MetricsError
from evaluation.metrics.l2m.lifetimes import MetricOptions
from evaluation.metrics.l2m.smoothing import KINDS, SHORTEST_WINDOW

MAX_BYTES: Final = 2**24
"""Maximum size of a settings file."""

COMPAT: Final = "l2metrics-3.1"

CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "variant_mode": ("aware", "agnostic"),
    "ste_averaging_method": ("metrics", "time"),
    "aggregation_method": ("mean", "median"),
    "maintenance_method": ("mrlep", "mrtlp", "both"),
    "transfer_method": ("ratio", "contrast", "both"),
    "normalization_method": ("task", "run", "none"),
    "smoothing_method": (*KINDS, "none"),
    "unit": ("exp_num", "steps"),
}


@dataclass(frozen=True)
class LogSettings:
    """Settings of metrics of logs; names and defaults are those of l2metrics 3.1.

    Attributes:
      perf_measure: performance column.
      variant_mode: "aware" of task variants, or "agnostic": only the name before the first "_" is
        used.
      ste_averaging_method: "metrics" or "time", see `MetricOptions.ste_averaging`.
      aggregation_method: average over tasks, "mean" or "median".
      maintenance_method: "mrlep", "mrtlp" or "both".
      transfer_method: "ratio", "contrast" or "both".
      normalization_method: "task", "run" or "none".
      smoothing_method: a window or "none".
      do_smooth_eval_data: whether to smooth test regimes too.
      window_length: episodes, or None for a fifth of each regime.
      clamp_outliers: whether to clamp each task's values.
      data_range: task name in lower case -> (lowest, highest); None for ranges of the data.
      noise: mean and standard deviation of Gaussian noise.
      noise_seed: of the noise.
      unit: of the horizontal axis of plots.
      compat: `COMPAT`, or None for definitions without its defects.
    """

    perf_measure: str = "reward"
    variant_mode: str = "aware"
    ste_averaging_method: str = "metrics"
    aggregation_method: str = "mean"
    maintenance_method: str = "mrlep"
    transfer_method: str = "ratio"
    normalization_method: str = "task"
    smoothing_method: str = "flat"
    do_smooth_eval_data: bool = False
    window_length: int | None = None
    clamp_outliers: bool = False
    data_range: Mapping[str, tuple[float, float]] | None = None
    noise: tuple[float, float] = (0.0, 0.0)
    noise_seed: int = 0
    unit: str = "exp_num"
    compat: str | None = None

    def __post_init__(self) -> None:
        """Check every value.

        Raises:
          L2MetricsError: says which value is wrong and what is allowed.
        """
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                listed = ", ".join(allowed)
                raise L2MetricsError(
                    ErrorKind.SETTINGS,
                    f"{name} is {getattr(self, name)!r}; it must be one of {listed}",
                )
        if self.compat not in (None, COMPAT):
            raise L2MetricsError(
                ErrorKind.SETTINGS, f"compat is {self.compat!r}; only {COMPAT} is known"
            )
        if self.noise[1] < 0:
            raise L2MetricsError(ErrorKind.SETTINGS, f"noise {self.noise} has a spread below zero")
        if not all(map(math.isfinite, self.noise)):
            raise L2MetricsError(
                ErrorKind.SETTINGS, f"noise {self.noise} must have a finite mean and spread"
            )
        if self.noise_seed < 0:
            raise L2MetricsError(
                ErrorKind.SETTINGS, f"noise_seed is {self.noise_seed}; it must be 0 or more"
            )
        window = self.window_length
        if window is not None and window < SHORTEST_WINDOW and not self.compat:
            raise L2MetricsError(
                ErrorKind.WINDOW,
                f"window_length is {window}; it must be {SHORTEST_WINDOW} or more. "
                "Use smoothing_method none (-g none) to turn smoothing off",
            )

    @property
    def is_compat(self) -> bool:
        """Whether l2metrics 3.1 is reproduced with its defects."""
        return self.compat is not None

    def options(self, repeats: bool) -> MetricOptions:
        """The options of the kernels.

        Args:
          repeats: whether any rows of a regime share an experience.
        """
        smoothing: Any = self.smoothing_method
        normalisation: Any = self.normalization_method
        averaging: Any = self.ste_averaging_method
        window = self.window_length
        off = smoothing == "none" or (window is not None and window < SHORTEST_WINDOW)
        return MetricOptions(
            smoothing=None if off else smoothing,
            window=window,
            smooth_tests=self.do_smooth_eval_data,
            clamp=self.clamp_outliers,
            normalisation=normalisation,
            ste_averaging=averaging,
            median=self.aggregation_method == "median",
            repeats=repeats,
            compat=self.is_compat,
        )

    def to_json(self) -> JsonObject:
        """Plain JSON values of every setting."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        ranges = self.data_range
        if ranges is not None:
            values["data_range"] = {
                task: {"min": low, "max": high} for task, (low, high) in ranges.items()
            }
        values["noise"] = list(self.noise)
        return values


def read_data_range(path: Path) -> dict[str, tuple[float, float]]:
    """Read a file of task ranges, ``{"<task>": {"min": .., "max": ..}}``; names in lower case.

    Raises:
      L2MetricsError: no such file, not JSON, or a range without both numbers.
    """
    return checked_ranges(path, json_of(path, ErrorKind.RANGE_FILE))


def json_of(path: Path, kind: ErrorKind) -> JsonValue:
    """The value of a JSON file.

    Raises:
      L2MetricsError: of this kind; the file cannot be read.
    """
    try:
        return read_json(path, MAX_BYTES)
    except ValueError as error:
        raise L2MetricsError(kind, str(error)) from error


def checked_ranges(path: Path, content: JsonValue) -> dict[str, tuple[float, float]]:
    """Ranges by task, with names in lower case, from the value of a JSON file.

    Raises:
      L2MetricsError: the value is invalid.
    """
    if not isinstance(content, dict):
        raise L2MetricsError(ErrorKind.RANGE_FILE, f"{path} must hold a JSON object of tasks")
    return {task.lower(): _range(path, task, entry) for task, entry in content.items()}


def _range(path: Path, task: str, entry: JsonValue) -> tuple[float, float]:
    low, high = (entry.get(key) if isinstance(entry, dict) else None for key in ("min", "max"))
    for end in (low, high):
        if isinstance(end, bool) or not isinstance(end, int | float) or not math.isfinite(end):
            raise L2MetricsError(
                ErrorKind.RANGE_KEYS,
                f'{path}: task {task!r} needs {{"min": number, "max": number}}',
            )
    if not isinstance(low, int | float) or not isinstance(high, int | float) or low > high:
        raise L2MetricsError(
            ErrorKind.RANGE_KEYS, f"{path}: task {task!r} has min {low} above max {high}"
        )
    return low, high
