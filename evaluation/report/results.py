"""Result files of l2metrics 3.1 and of this package, read as arrays over runs.

Three kinds are read: `<name>_metrics.json` with one run, `ll_metrics.json` with a list of runs, and
`report.json` of `jaxsim run`. A bare NaN or Infinity, which l2metrics writes, is accepted.

    results = load_results("results")
    results.lifetime["perf_recovery"]        # (runs,)
    results.task["avg_eval_perf"]            # (runs, tasks)
    bootstrap_interval(results.lifetime["avg_eval_perf"])
"""

import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluation.files import read_json
from evaluation.json_types import JsonMapping, JsonObject, JsonValue

Floats: TypeAlias = npt.NDArray[np.float64]
Paths: TypeAlias = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

PATTERNS: Final = ("report.json", "*_metrics.json")
"""Files to look for below a directory; `ll_metrics.json` matches the second pattern."""

MAX_BYTES: Final = 2**28
"""Maximum size of a result file."""

ABOUT: Final = (
    "complexity",
    "difficulty",
    "metrics_column",
    "normalization_data_range",
    "scenario_type",
)
"""Fields that describe a run; null in them is not a missing number."""


@dataclass(frozen=True)
class RunResults:
    """Metrics of R runs; a number that a run does not have is NaN.

    Attributes:
      runs: (R,) unique names. A name that several files use is preceded by its folder.
      sources: (R,) files of the runs.
      tasks: (K,) names of the tasks of all runs, in order of first appearance.
      lifetime: metric -> (R,) value of the whole run; for a `report.json` the mean over lifetimes.
      intervals: metric -> (R, 2) ends of its interval, if the file has them.
      task: metric -> (R, K) value by task.
      values: metric -> (R, K, V) single values by task, for example recovery_times, padded.
      transfer: metric -> (R, K, K, V) single values from the first to the second task, padded.
      blocks: metric -> (R, B) mean over lifetimes by block, from `report.json`, padded.
      about: (R,) other fields of the file: difficulty, scenario type, agent, seed.
      reasons: (run, metric) -> why the run has no value, if the file has a reason.
      task_reasons: (run, task, metric) -> why the task has no value, if the file has a reason.
    """

    runs: tuple[str, ...]
    sources: tuple[Path, ...]
    tasks: tuple[str, ...]
    lifetime: Mapping[str, Floats]
    intervals: Mapping[str, Floats]
    task: Mapping[str, Floats]
    values: Mapping[str, Floats]
    transfer: Mapping[str, Floats]
    blocks: Mapping[str, Floats]
    about: tuple[JsonMapping, ...]
    reasons: Mapping[tuple[str, str], str]
    task_reasons: Mapping[tuple[str, str, str], str]

    def to_table(self) -> pa.Table:
        """Return the lifetime metrics as a table: one row per run, null for a missing value."""
        columns: dict[str, object] = {"run": list(self.runs)}
        columns |= {
            name: pa.array(values, mask=np.isnan(values)) for name, values in self.lifetime.items()
        }
        return pa.table(columns)


@dataclass
class _ResultRun:
    """One run of a result file."""

    name: str
    source: Path
    lifetime: dict[str, float] = field(default_factory=dict)
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    task: dict[tuple[str, str], float] = field(default_factory=dict)
    values: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    transfer: dict[tuple[str, str, str], list[float]] = field(default_factory=dict)
    blocks: dict[str, list[float]] = field(default_factory=dict)
    about: JsonObject = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    task_reasons: dict[tuple[str, str], str] = field(default_factory=dict)
    tasks: list[str] = field(default_factory=list)


def load_results(paths: Paths) -> RunResults:
    """Read result files into arrays.

    Args:
      paths: a file, a directory that is searched recursively, or several of these.

    Returns:
      `RunResults` of all runs, in the order of the paths; files of a directory are sorted.

    Raises:
      ValueError: a path that does not exist, a directory without results, or a file that is not a
        result; the message begins with the path.
    """
    sources = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    files = list(dict.fromkeys(file for path in sources for file in _files(Path(path))))
    if not files:
        raise ValueError("no results to load: name a file or a directory")
    return _arrays([run for file in files for run in _read(file)])


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted({file for pattern in PATTERNS for file in path.rglob(pattern)})
    if not files:
        raise ValueError(f"{path}: no result file ({', '.join(PATTERNS)}) in it or below")
    return files


def _read(path: Path) -> Iterator[_ResultRun]:
    """The runs of one file."""
    content = read_json(path, MAX_BYTES, "a result")
    runs = content if isinstance(content, list) else [content]
    for number, values in enumerate(runs):
        where = f"{path}: run {number}" if isinstance(content, list) else str(path)
        if not isinstance(values, dict):
            raise ValueError(f"{where}: must be a JSON object, not {type(values).__name__}")
        if "run_id" in values:
            yield _of_l2metrics(values, path, where)
        elif "metrics" in values and "blocks" in values:
            yield _of_report(values, path, where)
        else:
            raise ValueError(
                f"{where}: is not a result: it has neither run_id, which l2metrics writes, nor "
                "metrics and blocks, which jaxsim run writes"
            )


def _of_l2metrics(values: JsonMapping, path: Path, where: str) -> _ResultRun:
    name = values["run_id"]
    if not isinstance(name, str):
        raise ValueError(f"{where}: run_id must be a text, not {name!r}")
    run = _ResultRun(name, path)
    for key, value in values.items():
        if key in ("run_id", "task_metrics", "why"):
            continue
        if _is_number(value) and key not in ABOUT:
            run.lifetime[key] = _number(value, where, key)
        else:
            run.about[key] = value
    tasks = values.get("task_metrics", {})
    for task, metrics in _object(tasks, where, "task_metrics").items():
        run.tasks.append(task)
        for key, value in _object(metrics, where, f"task_metrics.{task}").items():
            _add_of_task(run, task, key, value, where)
    _add_reasons(run, _object(values.get("why", {}), where, "why"))
    return run


def _add_reasons(run: _ResultRun, why: JsonMapping) -> None:
    """Add the reasons of nulls; only files of this package have them."""
    run.reasons = {name: text for name, text in why.items() if isinstance(text, str)}
    by_task = why.get("task_metrics")
    for task, reasons in by_task.items() if isinstance(by_task, dict) else ():
        for name, text in reasons.items() if isinstance(reasons, dict) else ():
            run.task_reasons[task, name] = str(text)


def _add_of_task(run: _ResultRun, task: str, key: str, value: JsonValue, where: str) -> None:
    """Add one entry of a task: a number, a list, or an object with a list per other task."""
    name = f"task_metrics.{task}.{key}"
    if _is_number(value):
        run.task[key, task] = _number(value, where, name)
    elif isinstance(value, list):
        run.values[key, task] = list(_flat(value, where, name))
    elif isinstance(value, dict):
        for other, numbers in value.items():
            single = numbers if isinstance(numbers, list) else [numbers]
            run.transfer[key, task, other] = list(_flat(single, where, f"{name}.{other}"))


def _of_report(values: JsonMapping, path: Path, where: str) -> _ResultRun:
    """The run of a `report.json`, whose entries have mean, interval and statistics."""
    run = _ResultRun(path.resolve().parent.name, path)
    groups = ("metrics", "blocks", "lifelong", "novelty", "capabilities", "own_metrics")
    run.about = {key: value for key, value in values.items() if key not in groups}
    _add_means(run, values["metrics"], where, "metrics")
    lifelong = _object(values.get("lifelong", {}), where, "lifelong")  # older files have none
    _add_means(run, lifelong.get("metrics", {}), where, "lifelong.metrics")
    novelty = _object(values.get("novelty", {}), where, "novelty")
    _add_means(run, novelty.get("metrics", {}), where, "novelty.metrics")
    for task, metrics in _object(lifelong.get("tasks", {}), where, "lifelong.tasks").items():
        run.tasks.append(task)
        at = f"lifelong.tasks.{task}"
        for name, entry in _object(metrics, where, at).items():
            entry = _object(entry, where, f"{at}.{name}")
            run.task[name, task] = _number(entry.get("mean"), where, f"{at}.{name}.mean")
            if isinstance(entry.get("reason"), str):
                run.task_reasons[task, name] = entry["reason"]
    _add_blocks(run, values["blocks"], where, "blocks")
    _add_blocks(run, novelty.get("blocks", []), where, "novelty.blocks")
    return run


def _add_blocks(run: _ResultRun, blocks: JsonValue, where: str, name: str) -> None:
    """Add the means of every block."""
    if not isinstance(blocks, list):
        raise ValueError(f"{where}: {name} must be a list")
    for number, block in enumerate(blocks):
        at = f"{name}[{number}]"
        metrics = _object(_object(block, where, at).get("metrics"), where, f"{at}.metrics")
        for metric, entry in metrics.items():
            mean = _object(entry, where, f"{at}.metrics.{metric}").get("mean")
            column = run.blocks.setdefault(metric, [])
            column += [math.nan] * (number - len(column))
            column.append(_number(mean, where, f"{at}.metrics.{metric}.mean"))


def _add_means(run: _ResultRun, metrics: JsonValue, where: str, at: str) -> None:
    """Add means and intervals of whole lifetimes."""
    for name, entry in _object(metrics, where, at).items():
        entry = _object(entry, where, f"{at}.{name}")
        run.lifetime[name] = _number(entry.get("mean"), where, f"{at}.{name}.mean")
        low, high = (
            _number(entry.get(end), where, f"{at}.{name}.{end}") for end in ("low", "high")
        )
        run.intervals[name] = low, high
        if isinstance(entry.get("reason"), str):
            run.reasons[name] = entry["reason"]


def _is_number(value: JsonValue) -> bool:
    """Whether a JSON value is a number or null, a missing number."""
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _number(value: JsonValue, where: str, name: str) -> float:
    if not _is_number(value):
        raise ValueError(f"{where}: {name} must be a number or null, not {value!r:.60}")
    try:
        return math.nan if value is None else float(value)
    except OverflowError as error:
        raise ValueError(f"{where}: {name} is too large a number") from error


def _object(value: JsonValue, where: str, name: str) -> JsonMapping:
    if not isinstance(value, dict):
        raise ValueError(f"{where}: {name} must be an object, not {value!r:.60}")
    return value


def _flat(values: Sequence[JsonValue], where: str, name: str) -> Iterator[float]:
    """Numbers of a list and of the lists in it, in order."""
    for value in values:
        inner = value if isinstance(value, list) else [value]
        yield from (_number(number, where, name) for number in inner)


def _arrays(runs: Sequence[_ResultRun]) -> RunResults:
    tasks = list(dict.fromkeys(task for run in runs for task in _tasks_of(run)))
    place = {task: index for index, task in enumerate(tasks)}
    shape = len(runs), len(tasks)
    names = _unique_names(runs)
    return RunResults(
        runs=names,
        sources=tuple(run.source for run in runs),
        tasks=tuple(tasks),
        lifetime=_filled((len(runs),), ((r, k, (), v) for r, k, v in _each(runs, "lifetime"))),
        intervals=_filled(
            (len(runs), 2),
            (
                (r, k, (end,), value)
                for r, k, v in _each(runs, "intervals")
                for end, value in enumerate(v)
            ),
        ),
        task=_filled(shape, ((r, k, (place[t],), v) for r, (k, t), v in _each(runs, "task"))),
        values=_padded(shape, ((r, k, (place[t],), v) for r, (k, t), v in _each(runs, "values"))),
        transfer=_padded(
            (*shape, len(tasks)),
            (
                (r, k, (place[task], place[other]), v)
                for r, (k, task, other), v in _each(runs, "transfer")
            ),
        ),
        blocks=_padded((len(runs),), ((r, k, (), v) for r, k, v in _each(runs, "blocks"))),
        about=tuple(run.about for run in runs),
        reasons={
            (name, metric): reason
            for name, run in zip(names, runs, strict=True)
            for metric, reason in run.reasons.items()
        },
        task_reasons={
            (name, *key): reason
            for name, run in zip(names, runs, strict=True)
            for key, reason in run.task_reasons.items()
        },
    )


def _each(runs: Sequence[_ResultRun], name: str) -> Iterator[tuple[int, JsonValue, JsonValue]]:
    """Yield (run number, key, value) of one field of all runs."""
    for number, run in enumerate(runs):
        for key, value in getattr(run, name).items():
            yield number, key, value


Entries: TypeAlias = Iterable[tuple[int, str, tuple[int, ...], JsonValue]]
"""Run number, metric, place inside the run, value."""


def _filled(shape: tuple[int, ...], entries: Entries) -> dict[str, Floats]:
    """One array per metric, NaN without an entry."""
    arrays: dict[str, Floats] = {}
    for run, metric, at, value in entries:
        arrays.setdefault(metric, np.full(shape, np.nan))[(run, *at)] = value
    return arrays


def _padded(shape: tuple[int, ...], entries: Entries) -> dict[str, Floats]:
    """One array per metric; lists along the last axis are padded to the longest."""
    listed = list(entries)
    longest: dict[str, int] = {}
    for _, metric, _, values in listed:
        longest[metric] = max(longest.get(metric, 0), len(values))
    arrays = {metric: np.full((*shape, size), np.nan) for metric, size in longest.items()}
    for run, metric, at, values in listed:
        arrays[metric][(run, *at)][: len(values)] = values
    return arrays


def _tasks_of(run: _ResultRun) -> Iterator[str]:
    yield from run.tasks
    yield from (other for _, _, other in run.transfer)


def _unique_names(runs: Sequence[_ResultRun]) -> tuple[str, ...]:
    """Names of the runs, with folder or position where a name is not unique."""
    count = Counter(run.name for run in runs)
    folders = [str(run.source.resolve().parent) for run in runs]
    root = os.path.commonpath(folders)
    names = []
    for run, folder in zip(runs, folders, strict=True):
        relative = Path(os.path.relpath(folder, root)).as_posix()
        unique = count[run.name] == 1 or relative == "."
        names.append(run.name if unique else f"{relative}/{run.name}")
    totals, positions = Counter(names), Counter[str]()
    for number, name in enumerate(names):
        positions[name] += 1
        if totals[name] > 1:
            names[number] = f"{name}#{positions[name]}"
    return tuple(names)
