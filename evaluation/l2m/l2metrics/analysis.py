"""Metrics of many runs at once: pad, process, measure, and select the numbers of each run."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from evaluation.l2m import ste_info
from evaluation.l2m.l2metrics.errors import ErrorKind, L2MetricsError
from evaluation.l2m.l2metrics.experts import stored_runs, training_curves
from evaluation.l2m.l2metrics.runs import LoggedRun, base_task
from evaluation.l2m.l2metrics.settings import LogSettings
from evaluation.metrics.l2m.experts import ExpertCurve, pad_experts
from evaluation.metrics.l2m.lifetimes import LifetimeMetrics, Processed, measure, process
from evaluation.metrics.l2m.scaling import TaskRange
from evaluation.metrics.l2m.structure import Structure, find_structure
from evaluation.metrics.numerics import Numbers
from evaluation.metrics.registry import Lifetime, MetricError, MetricRow, by_task, compute

AT_ONCE: Final = 2**22
"""Maximum of elements of padded curves in a batch of several runs."""

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Analysis:
    """Numbers of one run in a batch.

    Attributes:
      run: the run.
      settings: of the metrics.
      row: position of the run in the arrays below.
      structure: of the batch.
      raw: (L, R, T) performance as logged.
      processed: curves of the batch.
      results: numbers of the batch.
      reference: numbers of the same regimes by l2metrics 3.1; None if ``results`` are these.
      reference_curves: curves from which ``reference`` was computed; None if it is None.
      experiences: (L, R, T) number of each row's experience.
      extra_regimes: name -> (R,) numbers of custom metrics of regimes.
      extra_tasks: name -> (K,) numbers of custom metrics of tasks; means over a task's regimes for
        those of regimes.
      extra_lifetime: name -> () numbers of custom metrics of lifetimes.
      saturation_only: tasks whose expert has a saturation value but no curve in the store.
    """

    run: LoggedRun
    settings: LogSettings
    row: int
    structure: Structure
    raw: Floats
    processed: Processed
    results: LifetimeMetrics
    reference: LifetimeMetrics | None
    reference_curves: Processed | None
    experiences: Integers
    extra_regimes: Mapping[str, Numbers]
    extra_tasks: Mapping[str, Numbers]
    extra_lifetime: Mapping[str, Numbers]
    saturation_only: frozenset[str]

    @cached_property
    def mask(self) -> Booleans:
        """(R, T) mask of the rows of this run in its padded arrays."""
        counts = self.run.regimes.counts
        room = self.processed.values.shape[-1]
        return np.asarray(np.arange(room) < counts[:, None])

    def rows(self, values: Floats) -> Floats:
        """(N,) the rows of this run from an (L, R, T) array of the batch."""
        part = values[self.row, : len(self.run.regimes.counts)]
        return np.asarray(part[self.mask])

    def of(self, numbers: Numbers) -> Numbers:
        """This run's part of the batch's numbers."""
        return numbers.part(self.row)


def check_ranges(run: LoggedRun, settings: LogSettings) -> dict[str, tuple[float, float]] | None:
    """The range of each task of a run, from the settings; None if they have none.

    Without variants the range of a task spans those of its variants; l2metrics 3.1 uses every name
    that contains the task's.

    Raises:
      L2MetricsError: a task has no range.
    """
    available = settings.data_range
    if available is None:
        return None
    ranges = {}
    for task in run.tasks:
        names = [task] if task in available else []
        if not names and settings.variant_mode == "agnostic":
            names = [
                name
                for name in available
                if (task in name if settings.is_compat else base_task(name) == task)
            ]
        if not names:
            raise L2MetricsError(
                ErrorKind.RANGE_INCOMPLETE,
                f"{run.path}: the data range file has no range for task {task!r}",
            )
        lows, highs = zip(*(available[name] for name in names), strict=True)
        ranges[task] = (min(lows), max(highs))
    return ranges


class Library:
    """Smoothed curves of the experts, read once for all runs of a batch."""

    def __init__(self, directory: Path, settings: LogSettings) -> None:
        """Keep directory and settings; files are read later."""
        self.directory, self.settings = directory, settings
        self._curves: dict[tuple[str, bool], list[ExpertCurve]] = {}

    def saturation_only(self, tasks: Sequence[str]) -> frozenset[str]:
        """The tasks that have a saturation value but no curve."""
        lacking = {task for task in tasks if not self.curves(task, self.settings.is_compat)}
        return frozenset(lacking & self._saturated)

    @cached_property
    def _saturated(self) -> set[str]:
        """Tasks with a saturation value, in lower case; none if their file cannot be read."""
        try:
            return {task.lower() for task in ste_info.stored_saturations(self.directory)}
        except ValueError:
            return set()

    def curves(self, task: str, compat: bool) -> list[ExpertCurve]:
        """Curves of all runs of a task, smoothed with or without the defect of l2metrics 3.1."""
        key = (task, compat)
        if key not in self._curves:
            runs = stored_runs(self.directory, task, self.settings)
            self._curves[key] = training_curves(runs, self.settings, compat)
        return self._curves[key]


def analyse(
    runs: Sequence[LoggedRun],
    settings: LogSettings,
    library: Library,
    extra_metrics: Sequence[MetricRow] = (),
) -> tuple[list[Analysis], dict[int, L2MetricsError]]:
    """Compute all metrics of all runs.

    Args:
      runs: any number of runs.
      settings: of the metrics.
      library: of single-task experts.
      extra_metrics: custom metrics, computed in this order.

    Returns:
      The analyses in the order of the runs, and the errors of the other runs by position.
    """
    failed: dict[int, L2MetricsError] = {}
    done: dict[int, Analysis] = {}
    for positions in _groups(runs):
        ready = []
        for position in positions:
            try:
                check_ranges(runs[position], settings)
                for task in runs[position].tasks:
                    library.curves(task, settings.is_compat)
                ready.append(position)
            except L2MetricsError as error:
                failed[position] = error
        if not ready:
            continue
        batch = _analyse_batch([runs[position] for position in ready], settings, library)
        for position, analysis in zip(ready, batch, strict=True):
            try:
                done[position] = with_extra(analysis, extra_metrics)
            except L2MetricsError as error:
                failed[position] = error
    return [done[position] for position in sorted(done)], failed


def _groups(runs: Sequence[LoggedRun]) -> list[list[int]]:
    """Positions of runs of similar size, in groups that can be padded to one batch."""
    sizes = [(int(run.regimes.counts.max()), len(run.regimes.counts)) for run in runs]
    groups: list[list[int]] = []
    regimes = 0
    for position in sorted(range(len(runs)), key=sizes.__getitem__):
        room, count = sizes[position]
        regimes = max(regimes, count)
        group = groups[-1] if groups else []
        similar = bool(group) and room <= 2 * max(sizes[group[0]][0], 16)
        if not similar or (len(group) + 1) * regimes * room > AT_ONCE:
            groups.append([])
            regimes = count
        groups[-1].append(position)
    return groups


def _analyse_batch(
    runs: Sequence[LoggedRun], settings: LogSettings, library: Library
) -> list[Analysis]:
    raw, experiences, structure, repeats = padded(
        runs, [curve for run in runs for task in run.tasks for curve in library.curves(task, True)]
    )
    num_tasks = structure.curves.shape[1]
    ranges = _range_arrays(runs, settings, num_tasks)
    noise = _noise(runs, raw.shape, settings)

    def compute(compat: bool) -> tuple[Processed, LifetimeMetrics]:
        options = settings.options(repeats)._replace(compat=compat)
        curves = [[library.curves(task, compat) for task in run.tasks] for run in runs]
        experts = pad_experts(curves, num_tasks)
        values = raw if compat else raw + noise
        processed = process(values, structure, experts, options, ranges)
        if compat:
            processed = processed._replace(values=processed.values + noise)
        metrics = measure(processed.values, experiences, structure, processed.experts, options)
        return processed, metrics

    processed, results = compute(settings.is_compat)
    reference_curves, reference = (None, None) if settings.is_compat else compute(True)
    return [
        Analysis(
            run=run,
            settings=settings,
            row=row,
            structure=structure,
            raw=raw,
            processed=processed,
            results=results,
            reference=reference,
            reference_curves=reference_curves,
            experiences=experiences,
            extra_regimes={},
            extra_tasks={},
            extra_lifetime={},
            saturation_only=library.saturation_only(run.tasks),
        )
        for row, run in enumerate(runs)
    ]


def has_repeats(experiences: Integers) -> bool:
    """Whether neighbouring rows share an experience."""
    return bool((experiences[1:] == experiences[:-1]).any())


def padded(
    runs: Sequence[LoggedRun], experts: Sequence[ExpertCurve]
) -> tuple[Floats, Integers, Structure, bool]:
    """Pad runs to one batch.

    Args:
      runs: L runs of at most R regimes, T rows and K tasks.
      experts: all curves for comparison.

    Returns:
      (L, R, T) values and experiences, the structure, and whether rows share an experience in any
      run or expert.
    """
    regimes = max(len(run.regimes.counts) for run in runs)
    room = max(int(run.regimes.counts.max()) for run in runs)
    num_tasks = max(len(run.tasks) for run in runs)
    values = np.zeros((len(runs), regimes, room))
    experiences = np.zeros((len(runs), regimes, room), np.int64)
    plan = {name: np.zeros((len(runs), regimes), np.int64) for name in ("tasks", "counts")}
    flags = {name: np.zeros((len(runs), regimes), bool) for name in ("train", "sleep")}
    plan["tasks"] -= 1
    repeats = False
    for row, run in enumerate(runs):
        source = run.regimes
        size = len(source.counts)
        inside = np.arange(room) < source.counts[:, None]
        values[row, :size][inside] = run.values
        experiences[row, :size][inside] = run.experiences
        repeats = repeats or has_repeats(run.experiences)
        for arrays in (plan, flags):
            for name, array in arrays.items():
                array[row, :size] = getattr(source, name)
    repeats = repeats or any(has_repeats(curve.experiences) for curve in experts)
    structure = find_structure(**plan, **flags, num_tasks=num_tasks, room=room)
    return values, experiences, structure, repeats


def _range_arrays(
    runs: Sequence[LoggedRun], settings: LogSettings, num_tasks: int
) -> TaskRange | None:
    if settings.data_range is None:
        return None
    ends = np.full((2, len(runs), num_tasks), np.nan)
    for row, run in enumerate(runs):
        for task, (low, high) in enumerate((check_ranges(run, settings) or {}).values()):
            ends[:, row, task] = low, high
    return TaskRange(ends[0], ends[1])


def _noise(
    runs: Sequence[LoggedRun], shape: tuple[int, ...], settings: LogSettings
) -> Floats | float:
    """Gaussian noise of each row, drawn separately for each run; 0 without noise."""
    mean, spread = settings.noise
    if not mean and not spread:
        return 0.0
    noise = np.zeros(shape)
    for row, run in enumerate(runs):
        counts = run.regimes.counts
        draws = np.random.default_rng([settings.noise_seed, zlib.crc32(run.name.encode())])
        inside = np.arange(shape[-1]) < counts[:, None]
        noise[row, : len(counts)][inside] = draws.normal(mean, spread, int(counts.sum()))
    return noise


def with_extra(analysis: Analysis, rows: Sequence[MetricRow]) -> Analysis:
    """Add custom metrics to an analysis; later ones may use the numbers of earlier ones.

    Raises:
      L2MetricsError: a metric needs a field that a log does not have, fails, or returns a wrong
        shape or NaN without a reason.
    """
    if not rows:
        return analysis
    arrays = run_arrays(analysis)
    columns = dict(arrays.columns or {})
    regimes: dict[str, Numbers] = {}
    tasks: dict[str, Numbers] = {}
    lifetime: dict[str, Numbers] = {}
    for row in rows:
        try:
            numbers = compute(row, arrays._replace(columns=columns))
        except MetricError as error:
            raise L2MetricsError(ErrorKind.CUSTOM_METRIC, str(error)) from error
        if row.scope == "block":
            regimes[row.name], columns[row.name] = numbers, numbers.values
            tasks[row.name] = by_task(numbers, arrays.tasks, len(arrays.task_names))
        else:
            (tasks if row.scope == "task" else lifetime)[row.name] = numbers
    return replace(analysis, extra_regimes=regimes, extra_tasks=tasks, extra_lifetime=lifetime)


def run_arrays(analysis: Analysis) -> Lifetime:
    """One run as custom metrics receive it."""
    run, regimes = analysis.run, analysis.run.regimes
    size, row = len(regimes.counts), analysis.row

    def part(values: Floats) -> Floats:
        return np.where(analysis.mask, values[row, :size], np.nan)

    return Lifetime(
        values=part(analysis.raw),
        processed=part(analysis.processed.values),
        counts=regimes.counts,
        experiences=analysis.experiences[row, :size],
        train=regimes.train,
        sleep=regimes.sleep,
        block_num=regimes.block_num,
        tasks=regimes.tasks,
        task_names=run.tasks,
        columns={
            name: analysis.of(numbers).values[:size]
            for name, numbers in analysis.results.regimes._asdict().items()
        },
    )


def expert_curves(analysis: Analysis) -> dict[str, list[Floats]]:
    """Processed training of the single-task experts of a run's tasks.

    Returns:
      Task -> one (n,) curve for each of its runs; a task without experts is left out.
    """
    experts, row = analysis.processed.experts, analysis.row
    by_task = {
        task: [
            np.asarray(values[:count])
            for values, count in zip(experts.values[row, k], experts.counts[row, k], strict=True)
            if count
        ]
        for k, task in enumerate(analysis.run.tasks)
    }
    return {task: curves for task, curves in by_task.items() if curves}
