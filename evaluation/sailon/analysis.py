"""The metrics of an experiment: as JSON, as CSV, and as tables."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from evaluation.files import write_json, write_whole
from evaluation.json_types import JsonMapping, JsonObject
from evaluation.metrics import DEFAULT_RESAMPLES, Numbers, Reason, registry
from evaluation.metrics.novelty import CellMeasures, custom_of_trials, measures, rows, window_of
from evaluation.metrics.novelty.cells import LEVEL
from evaluation.metrics.reasons import sentence_of
from evaluation.metrics.table import METRICS, bounds_of
from evaluation.report import html
from evaluation.report.entries import number
from evaluation.sailon.results import Results
from evaluation.sailon.trial_data import TrialData, trial_data

if TYPE_CHECKING:
    from rich.table import Table

FORMAT: Final = "jaxsim-sailon-report-1"

MEASURES: Final = {row.name: row.text for row in METRICS if row.scope == "trial"}
"""Descriptions of all measures, by name."""

SHOWN: Final = {r.name: r.heading for r in METRICS if r.scope == "trial" and r.heading}
"""Measures that tables show, with their headings."""

_LABEL_WIDTH, _CELL_WIDTH = 30, 20

_PLACES: Final = {
    "cell": "cells",
    "level": "levels",
    "difficulty": "difficulties",
    "split": "splits",
    "control": "control_difficulties",
    "detection": "detection_difficulties",
    "all": "overall",
}


_OF_LEVELS: Final = ("cell", "level", "difficulty", "all")
"""Kinds of rows that every experiment has; the other kinds need a list of novelties."""


@dataclass(frozen=True)
class ExperimentAnalysis:
    """Metrics of one agent beside a baseline.

    Attributes:
      rows: of cells, levels, difficulties and all together.
      data: the trials.
      window: episodes m at either end of the novel part.
      metadata: agent, baseline, experiment; plain JSON values.
      wsu: whether zeros are treated as the generator's own analysis does.
      custom: metrics of users among the measures.
      custom_trials: name -> (T,) numbers of these metrics.
    """

    rows: tuple[CellMeasures, ...]
    data: TrialData
    window: int
    metadata: JsonMapping
    wsu: bool = False
    custom: tuple[registry.MetricRow, ...] = ()
    custom_trials: Mapping[str, Numbers] = field(default_factory=dict)

    @property
    def measures(self) -> dict[str, str]:
        """Descriptions of all measures, by name; metrics of users last."""
        return MEASURES | {row.name: row.text for row in self.custom}

    def to_json(self) -> JsonObject:
        """Return plain JSON values; a missing number is null, with its reason beside it."""
        report: JsonObject = {
            "format": FORMAT,
            **self.metadata,
            "window": self.window,
            "interval": f"{LEVEL:.0%} over trials, of a list over its novelties: of means by "
            "Student's t and bootstrap-t, of shares by Wilson, of medians by percentile bootstrap",
            "measures": self.measures,
        }
        for kind, name in _PLACES.items():
            if kind in _OF_LEVELS or kind in self.data.labels.groups:
                of_kind = (row for row in self.rows if row.kind == kind)
                report[name] = [_row_json(row, self.measures) for row in of_kind]
        return report

    def to_csv(self) -> str:
        """Return the rows as CSV: value, low and high end of the interval of every measure."""
        header = ["kind", "level", "difficulty", "visibility", "hint_level", "trials"]
        for name in self.measures:
            header += [name, f"{name}_low", f"{name}_high"]
        lines: list[Sequence[object]] = [header]
        for row in self.rows:
            cells: list[object] = [row.kind, row.level, row.difficulty]
            cells += [row.visibility, row.hint_level, row.trials]
            for name in self.measures:
                value = row.values[name]
                cells += [number(part) for part in (value.values, value.low, value.high)]
            lines.append(cells)
        return _csv(lines)

    def trials_csv(self) -> str:
        """Return every measure of every trial as CSV; empty where it is missing."""
        labels = self.data.labels
        by_name = measures(
            self.data.trials, self.data.predictions, labels.visibility == 1, self.window, self.wsu
        ) | dict(self.custom_trials)
        lines: list[Sequence[object]] = [
            ["level", "difficulty", "visibility", "hint_level", *by_name]
        ]
        for place in range(len(labels.level)):
            cells = [labels.level, labels.difficulty, labels.visibility, labels.hint_level]
            values = [column.values[place] for column in by_name.values()]
            finite = [float(value) if np.isfinite(value) else None for value in values]
            lines.append([cell[place].item() for cell in cells] + finite)
        return _csv(lines)

    def write(self, out: Path, command: str = "") -> None:
        """Write metrics.csv, trials.csv, report.html and, last, report.json.

        Args:
          out: existing folder.
          command: command line that the page shows.
        """
        write_whole(out / "metrics.csv", self.to_csv())
        write_whole(out / "trials.csv", self.trials_csv())
        values = self.to_json()
        title = f"Novelty evaluation of {values.get('agent', 'an agent')}"
        write_whole(out / "report.html", html.of_report(title, values, command))
        write_json(out / "report.json", values)


def _csv(lines: Iterable[Sequence[object]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(lines)
    return out.getvalue()


def _row_json(row: CellMeasures, names: Iterable[str]) -> JsonObject:
    numbers = {name: row.values[name] for name in names}
    return {
        "level": row.level,
        "difficulty": row.difficulty,
        "visibility": row.visibility,
        "hint_level": row.hint_level,
        "trials": row.trials,
        **{name: number(value.values) for name, value in numbers.items()},
        "intervals": {name: _interval(value) for name, value in numbers.items()},
        "counts": {name: row.counts[name] for name in numbers},
        "reasons": {
            name: sentence_of(value.reasons)
            for name, value in numbers.items()
            if value.reasons != Reason.NONE
        },
    }


def _interval(value: Numbers) -> list[float | None] | None:
    ends = [number(value.low), number(value.high)]
    return None if ends == [None, None] else ends


def analyse(
    agent: Results,
    baseline: Results | None,
    *,
    window: int | None = None,
    seed: int = 0,
    resamples: int = DEFAULT_RESAMPLES,
    wsu: bool = False,
    custom: Sequence[registry.MetricRow] = (),
) -> ExperimentAnalysis:
    """Compute all metrics of an agent's results.

    Args:
      agent: results.
      baseline: results of the baseline in the same experiment; None for none.
      window: episodes m at either end of the novel part; None for a tenth of a trial.
      seed: of the bootstrap.
      resamples: number of bootstrap resamples.
      wsu: whether to treat zeros as the generator's own analysis does.
      custom: metrics of users; a trial is a lifetime of two blocks, before novelty and from it on.

    Raises:
      ValueError: results that do not fit together, a window below 1, or a metric of a user that
        cannot be computed.
    """
    data = trial_data(agent, baseline)
    longest = int(data.trials.count.max())
    window = window_of(longest) if window is None else window
    if not 0 <= window <= longest:
        raise ValueError(f"window is {window}; it must be from 0 to {longest}, a trial's episodes")
    numbers = custom_of_trials(custom, data.trials)
    table = rows(
        data.trials,
        data.labels,
        data.predictions,
        window,
        seed=seed,
        resamples=resamples,
        wsu=wsu,
        custom=numbers,
        bounds=bounds_of(custom, unit=True),
    )
    metadata: JsonObject = {"agent": _about(agent)}
    metadata["baseline"] = None if baseline is None else _about(baseline)
    if agent.experiment is not None:
        settings = agent.experiment.settings.to_json()
        metadata["experiment"] = {"digest": agent.experiment.digest(), "settings": settings}
    return ExperimentAnalysis(tuple(table), data, window, metadata, wsu, tuple(custom), numbers)


def _about(results: Results) -> JsonObject:
    faulty = int((results.rows["problem"] != "").sum())
    return {**results.metadata, "episodes": len(results), "episodes_with_problems": faulty}


# Tables -----------------------------------------------------------------------------------------


def tables(analysis: ExperimentAnalysis, width: int) -> Iterator["Table"]:
    """Yield tables that fit a console of `width` characters; needs rich."""
    from rich import box
    from rich.table import Table

    about = analysis.metadata
    agent, baseline = (
        about[role] and about[role].get("agent", "unnamed") for role in ("agent", "baseline")
    )
    title = f"{agent}, {f'baseline {baseline}' if baseline else 'no baseline'}, with 95 % intervals"
    headings = SHOWN | {row.name: row.title for row in analysis.custom}
    shown = list(headings)
    each = max(1, (width - _LABEL_WIDTH) // _CELL_WIDTH)
    for start in range(0, len(shown), each):
        part = shown[start : start + each]
        table = Table(title=title, box=box.SIMPLE_HEAD)
        table.add_column("level", no_wrap=True, min_width=15)
        table.add_column("trials", no_wrap=True, min_width=6)
        for name in part:
            table.add_column(headings[name], justify="right", no_wrap=True, min_width=16)
        for row in analysis.rows:
            cells = [_value_cell(row.values[name]) for name in part]
            table.add_row(_label(row), str(row.trials), *cells)
        yield table


def _label(row: CellMeasures) -> str:
    if row.kind == "all":
        name = "all novel"
    else:
        parts = [str(row.level)] if row.level is not None else _of_group(row.kind)
        name = " ".join(parts + ([row.difficulty] if row.difficulty else []))
    suffix = ""
    if row.visibility:
        suffix = ", told" if row.hint_level in (None, -1) else f", hint {row.hint_level}"
    return name + suffix


def _of_group(kind: str) -> list[str]:
    """Words before the difficulty of a row without a level."""
    return {"split": [], "control": ["control"], "detection": ["detection"]}.get(kind, ["all"])


def _value_cell(value: Numbers) -> str:
    middle, ends = number(value.values), _interval(value)
    if middle is None:
        return "–"
    return _digits(middle) + ("" if ends is None else f" ({'–'.join(map(_digits, ends))})")


def _digits(value: float | None) -> str:
    """Format with two decimals, with none from 100 on; None is infinity."""
    if value is None:
        return "∞"
    return f"{value:.2f}" if abs(value) < 100 else f"{value:.0f}"
