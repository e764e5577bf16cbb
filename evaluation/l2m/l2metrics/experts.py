"""Single-task experts of the tasks of a batch: stored runs as smoothed learning curves."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from evaluation.l2m import ste_store
from evaluation.l2m.l2metrics.errors import ErrorKind, L2MetricsError
from evaluation.l2m.l2metrics.reading import RawLog
from evaluation.l2m.l2metrics.runs import base_task
from evaluation.l2m.l2metrics.settings import LogSettings
from evaluation.l2m.ste_store import SteRun
from evaluation.logs.arrow import from_numpy, to_numpy, to_words
from evaluation.metrics.l2m.experts import ExpertCurve
from evaluation.metrics.l2m.smoothing import smooth


def make_ste_run(log: RawLog) -> tuple[str, SteRun]:
    """Convert the complete rows of a log to a run of a single-task expert.

    Args:
      log: of one task.

    Returns:
      The task, in lower case, and the run.

    Raises:
      L2MetricsError: fewer than two complete rows, or not exactly one trained task.
    """
    status, meanings = to_words(log.table["exp_status"])
    complete = np.array([word == "complete" for word in meanings] or [False])[status]
    table = log.table.filter(from_numpy(complete))
    if table.num_rows < 2:
        raise L2MetricsError(
            ErrorKind.STE_ONE_ROW,
            f"{log.path} has {table.num_rows} complete rows; an expert needs two",
        )
    kind, kinds = to_words(table["block_type"])
    task, names = to_words(table["task_name"])
    train = np.array([word == "train" for word in kinds])[kind]
    tasks = sorted({names[code] for code in task[train].tolist()})
    if len(tasks) != 1:
        listed = f": {', '.join(tasks)}" if tasks else ""
        raise L2MetricsError(
            ErrorKind.STE_TASKS,
            f"expected 1 trained task in {log.path} but found {len(tasks)}{listed}",
        )
    subtype, _ = to_words(table["block_subtype"])
    codes = (to_numpy(table["block_num"], np.int64), kind, subtype, task)
    changed = np.any([code[1:] != code[:-1] for code in codes], axis=0)
    return tasks[0], SteRun(
        measures={name: to_numpy(table[name], np.float64) for name in log.metrics_columns},
        experiences=to_numpy(table["exp_num"], np.int64),
        regimes=np.concatenate([[0], np.cumsum(changed)]).astype(np.int32),
        train=train,
        source=log.path.resolve().name,
    )


def stored_runs(directory: Path, task: str, settings: LogSettings) -> tuple[SteRun, ...]:
    """The stored runs of the experts of a task.

    Args:
      directory: of the store.
      task: its name, without the variant if the settings are agnostic of variants.
      settings: the variant mode, and whether to reproduce l2metrics 3.1: it uses every stored name
        that begins with the task's, in the order of the directory, with the newest run first.

    Raises:
      L2MetricsError: a file of the store is not readable.
    """
    names = [task]
    try:
        if not ste_store.read(directory, task) and settings.variant_mode == "agnostic":
            stored = ste_store.list_tasks(directory, in_order=not settings.is_compat)
            names = [name for name in stored if _matches(name, task, settings)]
        files = [ste_store.read(directory, name) for name in names]
    except ValueError as error:
        raise L2MetricsError(ErrorKind.STE_FILE, str(error)) from error
    return tuple(run for runs in files for run in (runs[::-1] if settings.is_compat else runs))


def _matches(name: str, task: str, settings: LogSettings) -> bool:
    return name.startswith(task) if settings.is_compat else base_task(name) == task


def training_curves(
    runs: Sequence[SteRun], settings: LogSettings, compat: bool
) -> list[ExpertCurve]:
    """Smoothed training curve of each run; runs without a value are left out.

    Args:
      runs: of one task.
      settings: the performance column and the window.
      compat: whether windows of odd length lag, as in l2metrics 3.1.
    """
    options = settings.options(repeats=False)
    curves = []
    for run in runs:
        values = run.measures.get(settings.perf_measure)
        if values is None:
            continue
        mask = ~np.isnan(values)
        values, regimes, train = values[mask], run.regimes[mask], run.train[mask]
        experiences = run.experiences[mask]
        if not len(values) or not train.any():
            continue
        if options.smoothing is not None:
            first = np.flatnonzero(np.concatenate([[True], regimes[1:] != regimes[:-1]]))
            counts = np.diff(np.append(first, len(values)))
            inside = np.arange(counts.max()) < counts[:, None]
            padded = np.zeros(inside.shape)
            padded[inside] = values
            smoothed = smooth(padded, counts, options.window, options.smoothing, not compat)
            values = smoothed[inside]
        curves.append(ExpertCurve(values[train], experiences[train]))
    return curves
