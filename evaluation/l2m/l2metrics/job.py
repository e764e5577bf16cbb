"""Implementation of ``jaxsim l2metrics``."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from evaluation.json_types import JsonMapping, JsonValue
from evaluation.l2m import ste_store
from evaluation.l2m.l2metrics import outputs
from evaluation.l2m.l2metrics.analysis import Analysis, expert_curves
from evaluation.l2m.l2metrics.errors import ErrorKind, L2MetricsError
from evaluation.l2m.l2metrics.pipeline import Outcome, find_logs, run, store_experts
from evaluation.l2m.l2metrics.reading import STEP_COLUMN, find_log
from evaluation.l2m.l2metrics.result import DIFFERENCE, lifetime_values, run_json
from evaluation.l2m.l2metrics.settings import LogSettings, checked_ranges, json_of, read_data_range
from evaluation.metrics.registry import MetricRow
from evaluation.report.custom import load_rows

FAILED: Final = 2
"""Exit code if any run failed."""

_PLOTS: Final = "evaluation.report.l2m_plots"
PLOT_TYPES: Final = ("all", "raw", "eb", "lb", "ste")
"""Kinds of plots, as arguments."""

COMPAT_HINT: Final = "--compat l2metrics-3.1 gives the numbers of l2metrics 3.1"

_MAY_BE_NULL: Final = frozenset(
    {"log_dir", "output", "data_range_file", "load_settings", "ste_store_mode", "compat"}
)
_NOT_SETTINGS: Final = ("command", "handler", "clear_ste")
_LIFETIME_COLUMNS: Final = (
    "complexity",
    "difficulty",
    "scenario_type",
    "metrics_column",
    "min",
    "max",
    "num_lx",
    "num_ex",
    "runtime",
)


def run_command(arguments: argparse.Namespace) -> int:
    """Store experts or compute metrics, by the flags.

    Returns:
      The exit code: 0, or `FAILED` if any run had an error.

    Raises:
      L2MetricsError: an error of a flag or of a file that is not that of a single run of a batch.
    """
    if arguments.clear_ste:
        count = ste_store.clear(ste_store.default_directory())
        print(f"deleted the single-task experts of {count} tasks")
        return 0
    if arguments.load_settings:
        _load(arguments, Path(arguments.load_settings))
    if arguments.log_dir is None:
        raise L2MetricsError(ErrorKind.NO_DIRECTORY, "name a log directory with -l")
    names: Sequence[Path | str] = [arguments.log_dir]
    if arguments.recursive:
        names = find_logs(find_log(arguments.log_dir))
    if arguments.ste_store_mode:
        stored, errors = store_experts(names, append=arguments.ste_store_mode == "a")
        for path, task in stored.items():
            print(f"stored {path} as a single-task expert of {task}")
        return _report_errors(errors)
    settings = _settings(arguments)
    if arguments.statistics and not arguments.recursive:
        raise L2MetricsError(
            ErrorKind.SETTINGS, "--statistics are over the logs of -R; pass -R too"
        )
    if arguments.seed < 0:
        raise L2MetricsError(ErrorKind.SETTINGS, f"seed is {arguments.seed}; it must be 0 or more")
    if arguments.do_plot:
        _plots()
    rows = _custom(arguments.metric)
    outcome = run(names, settings, extra_metrics=rows)
    if not arguments.recursive and outcome.errors:
        raise next(iter(outcome.errors.values()))
    _warn(outcome.analyses)
    _warn_of_pickles(ste_store.default_directory())
    _write(arguments, settings, outcome)
    _print(outcome.analyses)
    if arguments.statistics and outcome.analyses:
        _statistics(arguments, settings, outcome.analyses, rows)
    unplotted = _plot(arguments, outcome.analyses) if arguments.do_plot else {}
    return _report_errors(outcome.errors | unplotted)


def _load(arguments: argparse.Namespace, path: Path) -> None:
    """Replace the values of flags by those of a settings file."""
    content = json_of(path, ErrorKind.SETTINGS)
    allowed = set(vars(arguments)) - set(_NOT_SETTINGS) | {"data_range"}
    if not isinstance(content, dict) or set(content) - allowed:
        unknown = ", ".join(sorted(set(content) - allowed)) if isinstance(content, dict) else "none"
        raise L2MetricsError(
            ErrorKind.SETTINGS, f"{path} must be a JSON object of settings; unknown: {unknown}"
        )
    ranges = content.pop("data_range", None)
    for name, value in content.items():
        rule = _violated_rule(name, value, getattr(arguments, name))
        if rule:
            raise L2MetricsError(
                ErrorKind.SETTINGS, f"{path}: {name} is {value!r}; it must be {rule}"
            )
        setattr(arguments, name, value)
    arguments.data_range = None if ranges is None else checked_ranges(path, ranges)


def _violated_rule(name: str, value: JsonValue, default: object) -> str:
    """The rule that a value of a settings file violates; empty for a valid value."""

    def is_number(item: JsonValue, kind: Any = int | float) -> bool:
        return isinstance(item, kind) and not isinstance(item, bool)

    if isinstance(default, bool):
        return "" if isinstance(value, bool) else "true or false"
    if name == "window_length":
        return "" if value is None or is_number(value, int) else "a whole number or null"
    if name in ("noise_seed", "seed"):
        return "" if is_number(value, int) and value >= 0 else "a whole number from 0"
    if name == "noise":
        fits = isinstance(value, list) and len(value) == 2 and all(map(is_number, value))
        return "" if fits else "a list of two numbers"
    if name == "metric":
        fits = isinstance(value, list) and all(isinstance(item, str) for item in value)
        return "" if fits else "a list of FILE[:NAME]"
    if name == "plot_types":
        fits = isinstance(value, list) and all(kind in PLOT_TYPES for kind in value)
        return "" if fits else f"a list of {', '.join(PLOT_TYPES)}"
    if name in _MAY_BE_NULL:
        return "" if value is None or isinstance(value, str) else "text or null"
    return "" if isinstance(value, str) else "text"


def _settings(arguments: argparse.Namespace) -> LogSettings:
    values: dict[str, Any] = {
        field.name: getattr(arguments, field.name, None) for field in fields(LogSettings)
    }
    values["noise"] = tuple(values["noise"])
    if values["data_range"] is None and arguments.data_range_file:
        values["data_range"] = read_data_range(Path(arguments.data_range_file))
    return LogSettings(**values)


def _custom(texts: Sequence[str]) -> tuple[MetricRow, ...]:
    try:
        return load_rows(texts)
    except ValueError as error:
        raise L2MetricsError(ErrorKind.CUSTOM_METRIC, str(error)) from error


def _report_errors(errors: Mapping[Path, L2MetricsError]) -> int:
    for error in errors.values():
        print(f"jaxsim: {' '.join(str(error).split())}", file=sys.stderr)
    return FAILED if errors else 0


def _warn(analyses: Sequence[Analysis]) -> None:
    for analysis in analyses:
        for warning in analysis.run.warnings:
            print(f"jaxsim: {analysis.run.name}: warning: {warning}", file=sys.stderr)


def _warn_of_pickles(directory: Path) -> None:
    if names := ste_store.pickles(directory):
        listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        print(
            f"jaxsim: warning: {directory} has expert files of l2metrics ({listed}), which are "
            "never opened, because a pickle can run any program; store the expert's log again: "
            "jaxsim l2metrics -l EXPERT_LOG -s w",
            file=sys.stderr,
        )


def _write(arguments: argparse.Namespace, settings: LogSettings, outcome: Outcome) -> None:
    directory = Path(arguments.output_dir)
    contents = [run_json(analysis) for analysis in outcome.analyses] if arguments.do_save else []
    if arguments.recursive:
        _write_batch(arguments, directory, settings, outcome, contents)
    else:
        _write_run(arguments, directory, settings, outcome.analyses[0], contents)


def _write_run(
    arguments: argparse.Namespace,
    directory: Path,
    settings: LogSettings,
    analysis: Analysis,
    contents: Sequence[JsonMapping],
) -> None:
    name = (arguments.output or analysis.run.name).replace(" ", "_")
    if arguments.do_save_settings:
        values = outputs.settings_json(settings, str(arguments.log_dir))
        outputs.write_json(directory / f"{name}_settings.json", values)
    if arguments.do_save:
        outputs.write_json(directory / f"{name}_metrics.json", contents[0])
        outputs.write_regimes(directory / f"{name}_regime.tsv", [analysis], run_first=False)
        outputs.write_feather(directory / f"{name}_data.feather", outputs.run_table(analysis))


def _write_batch(
    arguments: argparse.Namespace,
    directory: Path,
    settings: LogSettings,
    outcome: Outcome,
    contents: Sequence[JsonMapping],
) -> None:
    name = (arguments.output or outputs.BATCH_NAME).replace(" ", "_")
    if arguments.do_save_settings:
        values = {k: v for k, v in vars(arguments).items() if k not in _NOT_SETTINGS}
        values |= settings.to_json()
        outputs.write_json(directory / f"{name}_settings.json", values)
    if arguments.do_save and outcome.errors:
        errors = {
            str(path): {"error": error.kind, "message": str(error)}
            for path, error in outcome.errors.items()
        }
        outputs.write_json(directory / f"{name}_errors.json", errors)
    if not contents:
        return
    outputs.write_json(directory / f"{name}.json", contents)
    metrics = list(lifetime_values(outcome.analyses[0]))
    columns = ["run_id", *metrics, *_LIFETIME_COLUMNS]
    outputs.write_tsv(directory / f"{name}.tsv", contents, columns)
    outputs.write_regimes(directory / f"{name}_regime.tsv", outcome.analyses, run_first=True)
    table = outputs.batch_table(outcome.analyses)
    outputs.write_feather(directory / f"{name}_data.feather", table)


def _statistics(
    arguments: argparse.Namespace,
    settings: LogSettings,
    analyses: Sequence[Analysis],
    custom: Sequence[MetricRow],
) -> None:
    """Print and write statistics over the logs; only this function imports JAX."""
    from evaluation.l2m.l2metrics.statistics import over_logs

    content = over_logs(analyses, settings, arguments.seed, custom)
    if arguments.do_save:
        name = (arguments.output or outputs.BATCH_NAME).replace(" ", "_")
        path = Path(arguments.output_dir) / f"{name}_statistics.json"
        outputs.write_json(path, content)
    print(f"\nOver {len(analyses)} logs, with 95 % intervals:")
    headings = ["metric", "mean", "median", "interquartile mean", "std", "logs with a value"]
    rows = []
    for name, entry in content["metrics"].items():
        parts = [entry | {"value": entry["mean"]}, *entry["statistics"].values()]
        rows.append([name, *map(_estimate, parts), f"{entry['lifetimes']} of {len(analyses)}"])
    _table([headings, *rows])
    if len({json.dumps(run_json(a)["normalization_data_range"]) for a in analyses}) > 1:
        print(
            "jaxsim: warning: each log was normalised by its own range, so their values cannot be "
            "compared; give the ranges of the tasks with -d",
            file=sys.stderr,
        )


def _estimate(part: JsonMapping) -> str:
    """A number with its interval."""
    ends = [part["low"], part["high"]]
    interval = "" if None in ends else f" ({_digits(ends[0])} to {_digits(ends[1])})"
    return _digits(part["value"]) + interval


def _plot(
    arguments: argparse.Namespace, analyses: Sequence[Analysis]
) -> dict[Path, L2MetricsError]:
    """Plot every run, with one colour per task; returns the errors of runs by path.

    Raises:
      L2MetricsError: matplotlib is not installed.
    """
    plots = _plots()
    kinds = plots.KINDS if "all" in arguments.plot_types else tuple(arguments.plot_types)
    colours = plots.task_colours(task for a in analyses for task in a.run.tasks)
    failed = {}
    for analysis in analyses:
        table = outputs.run_table(analysis)
        if arguments.unit == "steps" and STEP_COLUMN not in table.column_names:
            failed[analysis.run.path] = L2MetricsError(
                ErrorKind.NO_STEPS,
                f"{analysis.run.path} has no column {STEP_COLUMN!r}; use -u exp_num",
            )
            continue
        paths = plots.plot_run(
            table,
            outputs.regime_table(analysis),
            Path(arguments.output_dir) / "plots",
            kinds,
            run=analysis.run.name,
            measure=analysis.settings.perf_measure,
            unit=arguments.unit,
            normalized=analysis.settings.normalization_method != "none",
            ste=expert_curves(analysis),
            eval_lines=arguments.show_eval_lines,
            colours=colours,
        )
        print(*(f"plot in {path}" for path in paths), sep="\n")
    return failed


def _plots() -> ModuleType:
    """The module of plots.

    Raises:
      L2MetricsError: matplotlib is not installed.
    """
    try:
        plots = import_module(_PLOTS)
        plots.check_matplotlib()
    except (ModuleNotFoundError, ValueError) as error:
        raise L2MetricsError(ErrorKind.SETTINGS, f"{error}; or use --no-plot") from error
    return plots


def _print(analyses: Sequence[Analysis]) -> None:
    """Print the lifetime metrics of every run, and those that are missing or differ."""
    if not analyses:
        return
    rows = [{"run": a.run.name, **lifetime_values(a)} for a in analyses]
    names = list(rows[0])
    print("\nLifetime Metrics:")
    _table([names, *([_digits(row[name]) for name in names] for row in rows)])
    if len(analyses) == 1:
        _explain(analyses[0])
    else:
        _name_differences(analyses)


def _table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows in a frame; the first one has the headings."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    for line in (None, rows[0], None, *rows[1:], None):
        if line is None:
            print(rule)
            continue
        padded = (cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        print("| " + " | ".join(padded) + " |")


def _explain(analysis: Analysis) -> None:
    content, differs = run_json(analysis), False
    for name, reason in content["why"].items():
        if isinstance(reason, str):
            print(f"{name} is missing: {reason}")
    for name, entry in content.get(DIFFERENCE, {}).items():
        if "here" in entry:
            value = _digits(entry["there"])
            print(f"{name} differs from l2metrics 3.1, which has {value}: {entry['because']}")
            differs = True
    if differs:
        print(COMPAT_HINT)


def _name_differences(analyses: Sequence[Analysis]) -> None:
    """Print one line about the metrics of several runs that differ from l2metrics 3.1."""
    counts: dict[str, int] = {}
    for analysis in analyses:
        for name, entry in run_json(analysis).get(DIFFERENCE, {}).items():
            if "here" in entry:
                counts[name] = counts.get(name, 0) + 1
    if counts:
        words = [f"{name} ({count} of {len(analyses)} runs)" for name, count in counts.items()]
        print(f"l2metrics 3.1 has other numbers of {', '.join(words)}; the JSON has the reasons")
        print(COMPAT_HINT)


def _digits(value: float | str | None) -> str:
    if value is None:
        return "N/A"
    return value if isinstance(value, str) else f"{value:.2f}"
