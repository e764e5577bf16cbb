"""The metrics of an experiment: as JSON, as CSV, and as tables."""

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from evaluation.files import write_json, write_whole
from evaluation.metrics import Reason
from evaluation.metrics.novelty import Row, Value, measures, rows, window_of
from evaluation.metrics.novelty.cells import LEVEL, RESAMPLES
from evaluation.report import html
from evaluation.sailon.results import Measured, Results, measured

FORMAT: Final = "jaxsim-sailon-report-1"

MEASURES: Final[Mapping[str, str]] = {
    "cdt": "M2: share of trials that are correctly detected, without a false alarm before",
    "false_alarms": "M2.1: share of trials with a false alarm before novelty",
    "found": "share of trials in which novelty is reported after it came, false alarms or not",
    "mean_delay": "M1: mean episodes from the first novel one to the first report, of CDT",
    "median_delay": "median of the same",
    "censored_median_delay": "Kaplan-Meier median of the delay over all trials, episodes",
    "correct_rejections": "M2.2: share of episodes before novelty that are not reported",
    "amoc_wsu": "AMOC as the generator's analysis draws it, 1 is best",
    "amoc_delay": "area under delay by false alarms over all thresholds, 0 is best",
    "asymptotic_nrp": "M3 (visibility 0), M4 (1): last episodes over the baseline's before novelty",
    "initial_nrp": "M3.1, M4.1: the same of the first novel episodes",
    "overall_nrp": "the same of all episodes from the first novel one on",
    "opti": "share of the agent in both sums of performance after novelty, 0.5 is parity",
    "ipti": "the same over the first episodes",
    "apti": "the same over the last episodes",
    "apti_ratio": "agent's sum over the baseline's, over the last episodes",
    "performance_pre": "mean performance before novelty",
    "performance_post": "mean performance from the first novel episode on",
    "baseline_pre": "the baseline's mean before novelty",
    "baseline_post": "the baseline's mean from the first novel episode on",
    "gain": "mean of the last episodes less that of the first novel ones",
    "retained": "mean of the last episodes over the agent's own before novelty",
    "robust": "NRM alpha: share of trials whose mean moves by less than 2 standard deviations",
    "robust_baseline": "NRM beta: the same of the baseline",
    "deviation": "distance of the means before and after, in standard deviations of before",
    "deviation_baseline": "the same of the baseline",
    "level_accuracy": "share of trials in which the most probable level is the true one",
    "level_accuracy_found": "the same of the trials in which novelty is reported",
    "level_log_score": "mean of minus the logarithm of the true level's probability",
    "level_brier": "mean Brier score of the levels' probabilities",
    "entity_accuracy": "share of trials whose entity is the generator's own word",
    "attribute_accuracy": "the same of the attribute",
    "change_accuracy": "the same of the change",
}
"""Every measure and what it is."""

SHOWN: Final = {
    "cdt": "CDT (M2)",
    "false_alarms": "false (M2.1)",
    "mean_delay": "delay (M1)",
    "median_delay": "median delay",
    "correct_rejections": "M2.2",
    "amoc_wsu": "AMOC",
    "level_accuracy": "level named",
    "performance_pre": "before",
    "performance_post": "after",
    "baseline_pre": "baseline before",
    "baseline_post": "baseline after",
    "asymptotic_nrp": "NRP (M3, M4)",
    "initial_nrp": "(M3.1, M4.1)",
    "opti": "OPTI",
    "robust": "NRM alpha",
}
"""Measures that tables show, with their headings."""

_LABEL_WIDTH, _CELL_WIDTH = 30, 20

_PLACES: Final = {
    "cell": "cells",
    "level": "levels",
    "difficulty": "difficulties",
    "all": "overall",
}


@dataclass(frozen=True)
class Analysis:
    """Metrics of one agent beside a baseline.

    Attributes:
      rows: of cells, levels, difficulties and all together.
      data: the trials.
      window: episodes m at either end of the novel part.
      metadata: agent, baseline, experiment; plain JSON values.
      wsu: whether zeros are treated as the generator's own analysis does.
    """

    rows: tuple[Row, ...]
    data: Measured
    window: int
    metadata: Mapping[str, Any]
    wsu: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values; what is missing is null, with its reason beside it."""
        report: dict[str, Any] = {
            "format": FORMAT,
            **self.metadata,
            "window": self.window,
            "interval": f"{LEVEL:.0%}: of shares by Wilson, else bootstrap over trials",
            "measures": dict(MEASURES),
        }
        for kind, name in _PLACES.items():
            report[name] = [_row_json(row) for row in self.rows if row.kind == kind]
        return report

    def to_csv(self) -> str:
        """Return the rows as CSV: of every measure the value and the ends of its interval."""
        header = ["kind", "level", "difficulty", "visibility", "hint_level", "trials"]
        for name in MEASURES:
            header += [name, f"{name}_low", f"{name}_high"]
        lines: list[list[Any]] = [header]
        for row in self.rows:
            cells: list[Any] = [row.kind, row.level, row.difficulty]
            cells += [row.visibility, row.hint_level, row.trials]
            for name in MEASURES:
                value = row.values[name]
                cells += [value.value, value.low, value.high]
            lines.append(cells)
        return _csv(lines)

    def trials_csv(self) -> str:
        """Return every measure of every trial as CSV; empty where it is missing."""
        labels = self.data.labels
        own = measures(
            self.data.trials, self.data.said, labels.visibility == 1, self.window, self.wsu
        )
        lines: list[list[Any]] = [["level", "difficulty", "visibility", "hint_level", *own]]
        for place in range(len(labels.level)):
            cells = [labels.level, labels.difficulty, labels.visibility, labels.hint_level]
            values = [column.values[place] for column in own.values()]
            known = [float(value) if np.isfinite(value) else None for value in values]
            lines.append([cell[place].item() for cell in cells] + known)
        return _csv(lines)

    def write(self, out: Path) -> None:
        """Write metrics.csv, trials.csv, report.html and report.json, which comes last."""
        write_whole(out / "metrics.csv", self.to_csv())
        write_whole(out / "trials.csv", self.trials_csv())
        values = self.to_json()
        title = f"Novelty evaluation of {values.get('agent', 'an agent')}"
        write_whole(out / "report.html", html.of_report(title, values))
        write_json(out / "report.json", values)


def _csv(lines: list[list[Any]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(lines)
    return out.getvalue()


def _row_json(row: Row) -> dict[str, Any]:
    kept = {name: row.values[name] for name in MEASURES}
    return {
        "level": row.level,
        "difficulty": row.difficulty,
        "visibility": row.visibility,
        "hint_level": row.hint_level,
        "trials": row.trials,
        **{name: value.value for name, value in kept.items()},
        "intervals": {name: _interval(value) for name, value in kept.items()},
        "counts": {name: value.count for name, value in kept.items()},
        "reasons": {
            name: value.reason.sentence
            for name, value in kept.items()
            if value.reason is not Reason.NONE
        },
    }


def _interval(value: Value) -> list[float | None] | None:
    return None if value.low is None and value.high is None else [value.low, value.high]


def analyse(
    agent: Results,
    baseline: Results | None,
    *,
    window: int | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
    wsu: bool = False,
) -> Analysis:
    """Compute all metrics of an agent's results.

    Args:
      agent: results.
      baseline: the baseline's in the same experiment; None for none.
      window: episodes m at either end of the novel part; None for a tenth of a trial.
      seed: of the bootstrap.
      resamples: of the bootstrap.
      wsu: whether to treat zeros as the generator's own analysis does.

    Raises:
      ValueError: results that do not fit together, or a window below 1.
    """
    data = measured(agent, baseline)
    longest = int(data.trials.count.max())
    window = window_of(longest) if window is None else window
    if not 0 <= window <= longest:
        raise ValueError(f"window is {window}; it must be from 0 to {longest}, a trial's episodes")
    found = rows(
        data.trials, data.labels, data.said, window, seed=seed, resamples=resamples, wsu=wsu
    )
    metadata: dict[str, Any] = {"agent": _about(agent)}
    metadata["baseline"] = None if baseline is None else _about(baseline)
    if agent.experiment is not None:
        settings = agent.experiment.settings.to_json()
        metadata["experiment"] = {"digest": agent.experiment.digest(), "settings": settings}
    return Analysis(tuple(found), data, window, metadata, wsu)


def _about(results: Results) -> dict[str, Any]:
    faulty = int((results.rows["problem"] != "").sum())
    return {**results.metadata, "episodes": len(results), "episodes_with_problems": faulty}


# Tables -----------------------------------------------------------------------------------------


def tables(analysis: Analysis, width: int) -> Iterator[Any]:
    """Yield tables for a console of so many characters, as many as it takes; needs rich."""
    from rich import box
    from rich.table import Table

    about = analysis.metadata
    names = [(about[key] or {}).get("agent", "unnamed") for key in ("agent", "baseline")]
    title = f"{names[0]}, baseline {names[1]}, with 95 % intervals"
    shown = list(SHOWN)
    each = max(1, (width - _LABEL_WIDTH) // _CELL_WIDTH)
    for start in range(0, len(shown), each):
        part = shown[start : start + each]
        table = Table(title=title, box=box.SIMPLE_HEAD)
        table.add_column("level", no_wrap=True, min_width=15)
        table.add_column("trials", no_wrap=True, min_width=6)
        for name in part:
            table.add_column(SHOWN[name], justify="right", no_wrap=True, min_width=16)
        for row in analysis.rows:
            cells = [_value_cell(row.values[name]) for name in part]
            table.add_row(_label(row), str(row.trials), *cells)
        yield table


def _label(row: Row) -> str:
    if row.kind == "all":
        name = "all novel"
    else:
        parts = [str(row.level)] if row.level is not None else ["all"]
        name = " ".join(parts + ([row.difficulty] if row.difficulty else []))
    told = ""
    if row.visibility:
        told = ", told" if row.hint_level in (None, -1) else f", hint {row.hint_level}"
    return name + told


def _value_cell(value: Value) -> str:
    if value.value is None:
        return "–"
    if value.low is None and value.high is None:
        return _digits(value.value)
    return f"{_digits(value.value)} ({_digits(value.low)}–{_digits(value.high)})"


def _digits(number: float | None) -> str:
    """Two decimals; of an interval without end, an infinity."""
    if number is None:
        return "∞"
    return f"{number:.2f}" if abs(number) < 100 else f"{number:.0f}"
