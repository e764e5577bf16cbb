"""One lifetime as the input of metrics: complete rows with a value, regimes and tasks."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluation.l2m.l2metrics.errors import ErrorKind, L2MetricsError
from evaluation.l2m.l2metrics.reading import RawLog, renamed_tasks
from evaluation.l2m.l2metrics.settings import LogSettings
from evaluation.logs.arrow import from_numpy, to_numpy, to_words
from evaluation.logs.l2logger.format import TASK_NAME
from evaluation.logs.texts import shortened

LARGEST = 1e300
"""Largest size of a value; sums and differences of larger ones overflow."""

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Regimes:
    """The R regimes of a run: maximal runs of rows of one task in one block.

    Attributes:
      starts: (R,) position of the first row.
      counts: (R,) number of rows with a value; may be 0.
      block_num: (R,) number of the block.
      train: (R,) whether the agent learns in it.
      sleep: (R,) whether it has the subtype sleep.
      tasks: (R,) position of its task in `LoggedRun.tasks`.
      params: R texts of the first row's task parameters.
    """

    starts: Integers
    counts: Integers
    block_num: Integers
    train: Booleans
    sleep: Booleans
    tasks: Integers
    params: tuple[str, ...]


@dataclass(frozen=True)
class LoggedRun:
    """One lifetime, N rows.

    Attributes:
      name: of the directory.
      path: the directory.
      metrics_columns: names of all performance columns.
      scenario: complexity, difficulty and scenario_type.
      tasks: names; trained tasks come first, then by first appearance.
      regimes: in order.
      values: (N,) performance.
      experiences: (N,) number of each row's experience.
      runtime: seconds between the first and the last timestamp of the rows.
      table: (N,) all columns of the rows.
      warnings: about unusual but allowed content.
    """

    name: str
    path: Path
    metrics_columns: tuple[str, ...]
    scenario: dict[str, str]
    tasks: tuple[str, ...]
    regimes: Regimes
    values: Floats
    experiences: Integers
    runtime: float
    table: pa.Table
    warnings: tuple[str, ...]


def base_task(task: str) -> str:
    """Name of a task without its variant: the part before the first "_"."""
    return task.split("_", 1)[0]


def make_run(log: RawLog, settings: LogSettings) -> LoggedRun:
    """Select complete rows with a value, number regimes and order tasks.

    By default regimes are numbered first, and other task parameters begin a regime; rows without a
    value are then left out. l2metrics 3.1 leaves out these rows first, so neighbours of a regime
    without values may merge, and its regimes do not depend on parameters.

    Args:
      log: one log.
      settings: the performance column, the variant mode and whether to reproduce l2metrics 3.1.

    Raises:
      L2MetricsError: an unknown column, no remaining row, or a value that is not finite.
    """
    if settings.perf_measure not in log.metrics_columns:
        listed = ", ".join(log.metrics_columns) or "no column of numbers"
        raise L2MetricsError(
            ErrorKind.UNKNOWN_MEASURE,
            f"{log.path}: perf_measure is {settings.perf_measure!r}; the log has {listed}",
        )
    table = log.table
    status, meanings = to_words(table["exp_status"])
    complete = np.array([word == "complete" for word in meanings] or [False])[status]
    table = table if complete.all() else table.filter(from_numpy(complete))
    if not table.num_rows:
        raise L2MetricsError(ErrorKind.NO_COMPLETE_ROW, f"{log.path}: no row is complete")
    if table.num_rows == 1:
        raise L2MetricsError(
            ErrorKind.ONE_ROW, f"{log.path} has one complete row; every metric needs two or more"
        )
    if not settings.is_compat:
        _check_names(log, to_words(table["task_name"])[1])
    if settings.variant_mode == "agnostic":
        table = renamed_tasks(table, base_task)
    values = _values(table, settings)
    mask = ~np.isnan(values)
    if not mask.any():
        raise L2MetricsError(
            ErrorKind.ALL_NAN, f"{log.path}: no row has a value of {settings.perf_measure!r}"
        )
    outside = np.abs(values) > LARGEST
    if not settings.is_compat and outside.any():
        episodes = to_numpy(table["exp_num"], np.int64)[outside]
        size = "an infinite" if np.isinf(values[outside][0]) else f"a too large (> {LARGEST:g})"
        raise L2MetricsError(
            ErrorKind.NOT_FINITE,
            f"{log.path}: exp_num {episodes[0]} has {size} {settings.perf_measure!r}, one of "
            f"{len(episodes)} such rows; correct the log, or write nan for missing measurements",
        )
    regimes, tasks, table = _regimes(table, mask, settings.is_compat)
    warnings = [*log.warnings, *_alternation(regimes)]
    if not mask.all():
        warnings.append(f"{int((~mask).sum())} rows without a value are left out")
    when = log.seconds[complete][mask]
    return LoggedRun(
        name=log.path.resolve().name,
        path=log.path,
        metrics_columns=log.metrics_columns,
        scenario=dict(log.scenario),
        tasks=tasks,
        regimes=regimes,
        values=values[mask],
        experiences=to_numpy(table["exp_num"], np.int64),
        runtime=float(np.round(when.max() - when.min(), 6)),
        table=table,
        warnings=tuple(warnings),
    )


def _alternation(regimes: Regimes) -> list[str]:
    """A warning about the first block with the type of the block before it, if any."""
    first = np.flatnonzero(np.diff(regimes.block_num, prepend=-1))
    kinds, numbers = regimes.train[first], regimes.block_num[first]
    same = np.flatnonzero(kinds[1:] == kinds[:-1])
    if not len(same):
        return []
    one, other = numbers[same[0]], numbers[same[0] + 1]
    kind = "train" if kinds[same[0]] else "test"
    return [f"block types do not alternate: blocks {one} and {other} are both of type {kind}"]


def _values(table: pa.Table, settings: LogSettings) -> Floats:
    column = table[settings.perf_measure]
    return to_numpy(column, np.float64)


def _check_names(log: RawLog, names: Sequence[str]) -> None:
    for name in names:
        if not TASK_NAME.fullmatch(name):
            raise L2MetricsError(
                ErrorKind.NO_VARIANT,
                f"{log.path}: task {name!r} must be named <task>_<variant>, letters and digits "
                "with one underscore; rename it, or pass --compat l2metrics-3.1 to use the "
                "whole name",
            )


def _regimes(
    table: pa.Table, mask: Booleans, compat: bool
) -> tuple[Regimes, tuple[str, ...], pa.Table]:
    """Regimes and tasks of the rows under a mask, and these rows."""
    if compat and not mask.all():
        table, mask = table.filter(from_numpy(mask)), mask[mask]
    block = to_numpy(table["block_num"], np.int64)
    kind, kinds = to_words(table["block_type"])
    subtype, subtypes = to_words(table["block_subtype"])
    task, names = to_words(table["task_name"])
    params, texts = to_words(table["task_params"])
    keys: list[np.ndarray] = [block, kind, subtype, task]
    keys += [] if compat else [params]
    changed = np.zeros(len(block), bool)
    changed[0] = True
    for codes in keys:
        changed[1:] |= codes[1:] != codes[:-1]
    first = np.flatnonzero(changed)
    counts = np.add.reduceat(mask.astype(np.int64), first)
    train = np.array([word == "train" for word in kinds])[kind[first]]
    order, codes = _task_order(task[first], train, counts)
    regimes = Regimes(
        starts=np.concatenate([[0], np.cumsum(counts)[:-1]]),
        counts=counts,
        block_num=block[first],
        train=train,
        sleep=np.array([word == "sleep" for word in subtypes])[subtype[first]],
        tasks=codes,
        params=tuple(texts[code] for code in params[first]),
    )
    rows = table if mask.all() else table.filter(from_numpy(mask))
    return regimes, tuple(names[code] for code in order), rows


def _task_order(
    tasks: npt.NDArray[np.int32], train: Booleans, counts: Integers
) -> tuple[list[int], Integers]:
    """Codes of the tasks in the order of reports, and each regime's position in it."""
    order = list(dict.fromkeys([*tasks[train].tolist(), *tasks.tolist()]))
    position = {code: index for index, code in enumerate(order)}
    return order, np.array([position[code] for code in tasks.tolist()], np.int64)


def shown_params(regimes: Regimes) -> list[str] | None:
    """Each regime's parameters, shortened; None if all are equal."""
    if len(set(regimes.params)) < 2:
        return None
    return list(map(shortened, regimes.params))
