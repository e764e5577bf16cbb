"""Reports of the 2019 framework: metrics of one log, printed as in the document."""

import csv
import io
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from evaluation import errors
from evaluation.files import write_json, write_whole
from evaluation.json_types import JsonMapping, JsonObject
from evaluation.l2m import ste_info, ste_store
from evaluation.l2m.report2019.base import (
    SUBTYPES,
    AgentMetric,
    ClassificationMetric,
    FunctionMetric,
    Metric,
    Values,
    as_values,
)
from evaluation.l2m.report2019.frames import log_frame, metrics_frame, phase_frame
from evaluation.l2m.report2019.precision import double_precision
from evaluation.l2m.report2019.predefined import (
    PredefinedSettings,
    agent_metrics,
    classification_metrics,
    subtype_problems,
)
from evaluation.l2m.report2019.table import SyllabusType, load_table
from evaluation.logs import home
from evaluation.metrics.registry import ArrayFunction, MetricError, row_of
from evaluation.metrics.table import BY_NAME

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TSV_COLUMNS = (
    "metric",
    "quantity",
    "block",
    "phase",
    "task_name",
    "param_set",
    "value",
    "reason",
)

_ROWS = {"eps_to_saturation": "time_to_saturation"}
"""Quantity -> name in the registry, if it differs."""

_WHOLE = ("eps_to_saturation", "eps_to_sat_dif", "recovery_time")  # episodes


@dataclass(frozen=True)
class MetricResult:
    """A metric and its result.

    Attributes:
      metric: the metric.
      values: its numbers; None if it could not be calculated.
      problem: why it could not be calculated, else "".
      failed: whether the metric raised an error; false for a log that does not fit it.
    """

    metric: Metric
    values: Values | None
    problem: str = ""
    failed: bool = False


class MetricsReport(ABC):
    """Metrics of one log.

    Attributes:
      warnings: about unusual content of the log.
      results: of `calculate`, in the order in which metrics were added.
      log_data: pandas DataFrame of the rows of the log.
      phase_info: pandas DataFrame, one row per block.
      metrics_df: pandas DataFrame, one row per block, one column per quantity; filled by
        `calculate`.
    """

    syllabus_type: SyllabusType
    _metric_class: type[Metric]

    def __init__(self, **kwargs: Any) -> None:
        """Read a log and add the predefined metrics.

        Args:
          **kwargs: ``log_dir`` (required), a path or a bare name in ``$L2DATA/logs``;
            ``syllabus_subtype``, CL (the default), ANT_A, ANT_B or ANT_C; ``measure``, the column
            of performance (reward; in classification score, or the first column that begins with
            score); ``window`` (11), ``edition`` ("2019") and ``index`` ("end") as in
            `PredefinedSettings`; ``experts``, a mapping or the path of an info.json
            (``$L2DATA/taskinfo/info.json``, if it exists); ``drop_incomplete`` (False), whether
            rows that are NOT_DONE are left out; ``predefined`` (True), whether to add the
            predefined metrics.

        Raises:
          RuntimeError: no ``log_dir``.
          ValueError: an unknown argument or subtype, or a log that cannot be used.
          NotADirectoryError: no such log.
        """
        if not kwargs.get("log_dir"):
            raise RuntimeError("log_dir is required: the directory of a log, or its bare name")
        names = {"log_dir", "syllabus_subtype", "measure", "window", "edition", "index", "experts"}
        names |= {"drop_incomplete", "predefined"}
        if unknown := sorted(set(kwargs) - names):
            raise ValueError(f"unknown arguments {', '.join(unknown)}; known: {sorted(names)}")
        self.syllabus_subtype = _checked_subtype(kwargs.get("syllabus_subtype") or "CL")
        folder = home.find_log(kwargs["log_dir"])
        drop = bool(kwargs.get("drop_incomplete", False))
        self.table = load_table(folder, self.syllabus_type, drop)
        self.log_data, self.phase_info = log_frame(self.table), phase_frame(self.table.blocks)
        self.metrics_df = metrics_frame(self.table.blocks)
        self.warnings = subtype_problems(self.table.blocks, self.syllabus_subtype)
        self.settings = PredefinedSettings(
            self._measure(kwargs.get("measure")),
            experts=self._experts(kwargs.get("experts")),
            **{name: kwargs[name] for name in ("window", "edition", "index") if name in kwargs},
        )
        self.results: list[MetricResult] = []
        self._metrics: list[Metric] = []
        if kwargs.get("predefined", True):
            self.add(self._predefined())

    @abstractmethod
    def _predefined(self) -> list[Metric]:
        """Return the predefined metrics."""

    @abstractmethod
    def _default_measure(self) -> str:
        """Return the default column of performance."""

    def _measure(self, name: str | None) -> str:
        measure = name or self._default_measure()
        self.table.by_block(measure, "first")  # checks that the column exists and has numbers
        return measure

    def _experts(
        self, source: Mapping[str, float] | str | PathLike[str] | None
    ) -> dict[str, float]:
        if isinstance(source, Mapping):
            return dict(source)
        if source is not None:
            return ste_info.from_info_json(Path(source))
        file = ste_store.default_directory() / ste_info.FILE_NAME
        if file.is_file():
            return ste_info.from_info_json(file)
        self.warnings.append(
            f"no {file}: nothing can be compared with single-task experts, and there is no transfer"
        )
        return {}

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics, in the order in which they are calculated."""
        return tuple(self._metrics)

    @property
    def failed(self) -> bool:
        """Whether a metric raised an error."""
        return any(result.failed for result in self.results)

    def add(
        self, metric: Metric | ArrayFunction | Iterable[Metric | ArrayFunction]
    ) -> "MetricsReport":
        """Add a metric, a plain function on arrays, or several of them.

        Returns:
          The report itself.

        Raises:
          ValueError: another object, a metric of the other type of syllabus, or a name that exists.
        """
        if isinstance(metric, Iterable) and not isinstance(metric, Metric):
            for one in metric:
                self.add(one)
            return self
        if not isinstance(metric, Metric):
            row = row_of(metric)
            if row is None:
                raise ValueError(
                    f"{metric!r} is not a metric; give an object of a class derived from "
                    f"{self._metric_class.__name__}, or a function of (values, counts)"
                )
            metric = FunctionMetric(row, self.settings.measure)
        types = metric.requirement("syllabus_type")
        if types and self.syllabus_type not in types:
            raise ValueError(
                f"metric {metric.name!r} is for syllabus_type {', '.join(types)}; derive it from "
                f"{self._metric_class.__name__}"
            )
        if metric.name in (other.name for other in self._metrics):
            raise ValueError(f"the report has a metric {metric.name!r} already; use another name")
        self._metrics.append(metric)
        return self

    def calculate(self) -> list[MetricResult]:
        """Calculate all metrics, in float64.

        A metric that raises an error does not stop the others; the error is in the results.

        Returns:
          `results`.
        """
        self.metrics_df = metrics_frame(self.table.blocks)
        self.results = []
        with double_precision():
            for metric in self._metrics:
                self.results.append(self._calculate(metric))
        return self.results

    def _calculate(self, metric: Metric) -> MetricResult:
        subtypes = metric.requirement("syllabus_subtype")
        if subtypes and self.syllabus_subtype not in subtypes:
            return MetricResult(metric, None, f"it is defined for {', '.join(subtypes)} only")
        try:
            metric.validate(self.phase_info)
        except ValueError as error:
            return MetricResult(metric, None, str(error))
        try:
            returned = metric.calculate(
                log_frame(self.table), phase_frame(self.table.blocks), self.metrics_df.copy()
            )
            values = as_values(returned, self.metrics_df, self.table.blocks)
            self._check_new(values)
            self._remember(values)
        except MetricError as error:
            return MetricResult(metric, None, str(error), failed=True)
        except (Exception, SystemExit) as error:  # a user's metric may raise anything
            return MetricResult(metric, None, errors.one_line(error), failed=True)
        return MetricResult(metric, values)

    def _check_new(self, values: Values) -> None:
        """Check that no earlier metric has averages of the same names."""
        earlier = (result.values for result in self.results if result.values is not None)
        names = {name for result in earlier for name in result.averaged}
        if common := [name for name in values.averaged if name in names]:
            raise MetricError(
                f"there are two metrics of the name {common[0]!r}; give the function another one"
            )

    def _remember(self, values: Values) -> None:
        """Add the numbers of a metric to those for later metrics."""
        for quantity, numbers in values.per_block.items():
            if isinstance(numbers, Mapping):
                column = [numbers.get(block.index, math.nan) for block in self.table.blocks]
                self.metrics_df[quantity] = column
                why = {b: s for b, s in values.reasons.get(quantity, {}).items() if b != ""}
                self.metrics_df.attrs["reasons"][quantity] = {int(b): s for b, s in why.items()}

    def capabilities(self) -> dict[str, dict[str, float]]:
        """Score each core capability: unit -> average of its metrics.

        Metrics whose lower values are better are left out, and those of unknown units too.

        Source: L2M Metrics Framework, 4 Dec 2019, chapter 2.
        """
        scores: dict[str, dict[str, list[float]]] = {}
        for result in self.results:
            for quantity, number in _averages(result):
                row = BY_NAME.get(_ROWS.get(quantity, quantity))
                if row is not None and row.direction == "higher" and math.isfinite(number):
                    units = scores.setdefault(result.metric.capability or row.capability, {})
                    units.setdefault(row.unit or "no unit", []).append(number)
        return {
            capability: {unit: sum(values) / len(values) for unit, values in units.items()}
            for capability, units in scores.items()
        }

    def text(self) -> str:
        """Return the results as text: three lines per metric, and the missing numbers."""
        lines = "\n".join("\n".join(["", *_lines(result)]) for result in self.results) + "\n"
        # The packages of the time printed no scores.
        scores = self.capabilities().items() if self.settings.edition == "2019" else ()
        return lines + "".join(f"\nCapability: {n}\nScore: {_printed(v)}\n" for n, v in scores)

    def report(self, stream: TextIO | None = None) -> None:
        """Print the results; calculate them first if necessary.

        Args:
          stream: text stream; standard output if None.
        """
        if not self.results:
            self.calculate()
        (stream or sys.stdout).write(self.text())

    def plot(self, folder: str | PathLike[str] | None = None) -> dict[str, "Figure"]:
        """Draw each metric.

        Args:
          folder: directory for PNG files, one per metric; None for no files.

        Returns:
          matplotlib figures by the metric's name; metrics without numbers for blocks have none.

        Raises:
          ValueError: matplotlib is not installed.
        """
        if not self.results:
            self.calculate()
        figures: dict[str, Any] = {
            r.metric.name: r.metric.plot(r.values) for r in self.results if r.values
        }
        figures = {name: figure for name, figure in figures.items() if figure is not None}
        for name, figure in figures.items() if folder is not None else ():
            buffer = io.BytesIO()
            figure.savefig(buffer, format="png", dpi=120)
            file = "".join(c if c.isalnum() else "_" for c in name).lower()
            write_whole(Path(str(folder)) / f"{file}.png", buffer.getvalue())
        return figures

    def to_json(self) -> JsonObject:
        """Return plain JSON values; missing numbers are null, with reasons in ``reasons``."""
        done = [(r.metric.name, r.values) for r in self.results if r.values is not None]
        return {
            "log": self.table.name,
            "syllabus_type": self.syllabus_type,
            "syllabus_subtype": self.syllabus_subtype,
            "measure": self.settings.measure,
            "window": self.settings.window,
            "edition": self.settings.edition,
            "index": self.settings.index if self.settings.edition == "2019" else "position",
            "warnings": list(self.warnings),
            "blocks": [
                {
                    "block": block.index,
                    "phase": f"{block.phase}.{block.mode}",
                    "task_name": block.class_name,
                    "param_set": block.parameters,
                    "episodes": block.count,
                }
                for block in self.table.blocks
            ],
            "results": {name: _json(values.averaged) for name, values in done},
            "metrics": {name: _json(values.per_block) for name, values in done},
            "reasons": {name: _missing(values) for name, values in done if _missing(values)},
            "capabilities": self.capabilities(),
            "matrices": {name: _matrices(values) for name, values in done if values.matrices},
            "not_calculated": {r.metric.name: r.problem for r in self.results if r.values is None},
        }

    def write_json(self, path: str | PathLike[str]) -> None:
        """Write `to_json` as strict JSON."""
        write_json(Path(path), self.to_json())

    def write_tsv(self, path: str | PathLike[str]) -> None:
        """Write one row per number, `TSV_COLUMNS`; a number of the whole syllabus has no block."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, delimiter="\t", lineterminator="\n")
        writer.writerow(TSV_COLUMNS)
        blocks = {block.index: block for block in self.table.blocks}
        for result in self.results:
            nothing = [("", "", math.nan, result.problem)]
            for quantity, index, number, reason in (
                nothing if result.values is None else _numbers(result.values)
            ):
                block = blocks.get(index) if isinstance(index, int) else None
                place = (
                    (index, f"{block.phase}.{block.mode}", block.class_name, block.parameters)
                    if block
                    else ("", "", "", "")
                )
                value = repr(number) if math.isfinite(number) else ""
                writer.writerow((result.metric.name, quantity, *place, value, reason))
        write_whole(Path(path), buffer.getvalue())


class AgentMetricsReport(MetricsReport):
    """Metrics of a log of agent learning, from the reward of its episodes."""

    syllabus_type: SyllabusType = "agent"
    _metric_class = AgentMetric

    def _predefined(self) -> list[Metric]:
        return agent_metrics(self.syllabus_subtype, self.settings)

    def _default_measure(self) -> str:
        return "reward"


class ClassificationMetricsReport(MetricsReport):
    """Metrics of a log of classification learning, from the score of its batches."""

    syllabus_type: SyllabusType = "class"
    _metric_class = ClassificationMetric

    def _predefined(self) -> list[Metric]:
        return classification_metrics(self.syllabus_subtype, self.settings)

    def _default_measure(self) -> str:
        names = [name for name in self.table.columns if name.startswith("score")]
        if not names:
            raise ValueError(f"{self.table.name} has no column whose name begins with score")
        return "score" if "score" in names else names[0]


def _checked_subtype(subtype: str) -> str:
    if subtype not in SUBTYPES:
        raise ValueError(f"syllabus_subtype must be one of {', '.join(SUBTYPES)}, not {subtype!r}")
    return subtype


# Printed form, JSON and TSV ---------------------------------------------------------------------


def _averages(result: MetricResult) -> Iterator[tuple[str, float]]:
    """Quantities of blocks with their averaged values."""
    values = result.values
    if values is None or not result.metric.capability:
        return
    yield from zip(values.per_block, values.averaged.values(), strict=False)


def _lines(result: MetricResult) -> list[str]:
    lines = [f"Metric: {result.metric.name}"]
    if result.values is None:
        return [*lines, f"Not Calculated: {result.problem}"]
    lines.append(f"Averaged Value: {_printed(result.values.averaged)}")
    lines.append(f"Per Block Values: {_printed(result.values.per_block)}")
    for title, matrix in result.values.matrices.items():
        rows = zip(matrix.units, matrix.values.tolist(), strict=True)
        cells = {
            source: {
                target: value
                for target, value in zip(matrix.units, row, strict=True)
                if math.isfinite(value)
            }
            for source, row in rows
        }
        valued = {source: row for source, row in cells.items() if row}
        lines.append(f"Matrix {title} (trained: tested): {valued}")
    lines += [
        f"Missing {quantity}{_where(blocks)}: {reason}"
        for quantity, groups in _grouped(result.values).items()
        for reason, blocks in groups.items()
    ]
    return lines


def _printed(values: JsonMapping) -> JsonObject:
    """Numbers as in the document: episodes are whole, blocks without a number are left out."""
    printed: JsonObject = {}
    for quantity, numbers in _strict(values).items():
        if isinstance(numbers, dict):
            whole = quantity in _WHOLE
            printed[quantity] = {
                block: int(number) if whole else number
                for block, number in numbers.items()
                if number is not None
            }
        else:
            printed[quantity] = numbers
    return printed


def _where(blocks: list[int | str]) -> str:
    numbers = [str(block) for block in blocks if block != ""]
    return f" of block {', '.join(numbers)}" if numbers else ""


def _grouped(values: Values) -> dict[str, dict[str, list[int | str]]]:
    """Quantity -> reason -> blocks."""
    groups: dict[str, dict[str, list[int | str]]] = {}
    for quantity, index, number, reason in _numbers(values):
        # An averaged value is missing for the reasons of its blocks.
        if not math.isfinite(number) and (index != "" or quantity not in values.averaged):
            groups.setdefault(quantity, {}).setdefault(reason, []).append(index)
    return groups


def _numbers(values: Values) -> list[tuple[str, int | str, float, str]]:
    """(quantity, block or "", number, reason) of all numbers of a metric."""
    entries: list[tuple[str, int | str, float]] = []
    for quantity, numbers in values.per_block.items():
        if isinstance(numbers, Mapping):
            entries += [(quantity, block, number) for block, number in numbers.items()]
        elif quantity not in values.averaged:
            entries.append((quantity, "", numbers))
    entries += [(quantity, "", number) for quantity, number in values.averaged.items()]
    return [
        (q, block, x, "" if math.isfinite(x) else values.why(q, block)) for q, block, x in entries
    ]


def _strict(values: Mapping[Any, Any]) -> dict[Any, Any]:
    """Replace numbers that are not finite by None, at any depth."""
    return {
        key: _strict(value)
        if isinstance(value, Mapping)
        else (float(value) if math.isfinite(value) else None)
        for key, value in values.items()
    }


def _json(values: JsonMapping) -> JsonObject:
    """Convert numbers to strict JSON; keys of blocks become strings."""
    return {
        quantity: {str(block): number for block, number in numbers.items()}
        if isinstance(numbers, dict)
        else numbers
        for quantity, numbers in _strict(values).items()
    }


def _missing(values: Values) -> dict[str, dict[str, str]]:
    missing: dict[str, dict[str, str]] = {}
    for quantity, index, number, reason in _numbers(values):
        if not math.isfinite(number):
            missing.setdefault(quantity, {})[str(index)] = reason
    return missing


def _matrices(values: Values) -> JsonObject:
    return {
        title: {
            "units": list(matrix.units),
            "values": [[x if math.isfinite(x) else None for x in row] for row in matrix.values],
            "reasons": [list(row) for row in matrix.reasons],
        }
        for title, matrix in values.matrices.items()
    }
