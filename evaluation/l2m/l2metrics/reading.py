"""Reader of l2logger directories for metrics: columns as one table, errors with names."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluation.l2m.l2metrics.errors import ErrorKind, L2MetricsError
from evaluation.logs import home
from evaluation.logs.arrow import from_numpy, from_words, to_words
from evaluation.logs.coded import Coded, numbers
from evaluation.logs.l2logger.columns import LogColumns, read_columns
from evaluation.logs.l2logger.format import DATA_FILE, SCENARIO_FIELDS, TASK_NAME
from evaluation.logs.layouts import is_learnkit
from evaluation.logs.problems import LogError, Problem
from evaluation.logs.texts import timestamp_texts

LOGGER_INFO: Final = "logger_info.json"
SCENARIO_INFO: Final = "scenario_info.json"
STEP_COLUMN: Final = "episode_step_count"
_STATUSES: Final = ("incomplete", "complete")
_MISSING_INFO: Final = {
    LOGGER_INFO: ErrorKind.NO_LOGGER_INFO,
    SCENARIO_INFO: ErrorKind.NO_SCENARIO_INFO,
}
_BY_COLUMN: Final = {
    "block_num": ErrorKind.BAD_NUMBER,
    "exp_num": ErrorKind.BAD_NUMBER,
    "block_type": ErrorKind.BAD_BLOCK_TYPE,
    "block_subtype": ErrorKind.BAD_BLOCK_SUBTYPE,
    "exp_status": ErrorKind.BAD_EXP_STATUS,
    "worker_id": ErrorKind.BAD_WORKER,
    "task_params": ErrorKind.BAD_TASK_PARAMS,
    "timestamp": ErrorKind.BAD_TIMESTAMP,
}
_BY_WORDS: Final = (
    (re.compile(r"no such directory"), ErrorKind.NO_DIRECTORY),
    (re.compile(rf"holds no {re.escape(DATA_FILE)}"), ErrorKind.NO_DATA_LOG),
    (re.compile(r"the column .* is missing"), ErrorKind.MISSING_COLUMN),
    (re.compile(r"block_num falls "), ErrorKind.BLOCK_ORDER),
    (re.compile(r".* must be a number, not "), ErrorKind.BAD_NUMBER),
)


@dataclass(frozen=True)
class RawLog:
    """All rows of a log, stably sorted by (exp_num, block_num).

    Attributes:
      path: its directory.
      metrics_columns: names of the performance columns.
      scenario: complexity, difficulty and scenario_type; "" for a missing one.
      seconds: (n,) timestamp of each row, seconds since 1970.
      table: the rows; columns of text are dictionaries, task names are in lower case.
      warnings: about unusual but allowed content.
    """

    path: Path
    metrics_columns: tuple[str, ...]
    scenario: Mapping[str, str]
    seconds: npt.NDArray[np.float64]
    table: pa.Table
    warnings: tuple[str, ...] = field(default=())


def find_log(name: str | os.PathLike[str]) -> Path:
    """The directory of a log: an existing path, or a bare name below ``$L2DATA/logs``.

    Raises:
      L2MetricsError: there is neither.
    """
    try:
        return home.find_log(name)
    except NotADirectoryError as error:
        raise L2MetricsError(ErrorKind.NO_DIRECTORY, str(error)) from error


def is_log(path: Path) -> bool:
    """Whether a directory has the two info files of a log."""
    return (path / LOGGER_INFO).is_file() and (path / SCENARIO_INFO).is_file()


def read_log_columns(path: Path) -> RawLog:
    """Read and check one log.

    Args:
      path: the directory with logger_info.json.

    Raises:
      L2MetricsError: the log is not valid; with file and line if there is one.
    """
    if is_learnkit(path):
        raise L2MetricsError(
            ErrorKind.NO_LOGGER_INFO,
            f"{path} is a log of the 2019 framework; for its metrics use python -m "
            f"evaluation.l2metrics2019 -log_dir {path}",
        )
    try:
        log = read_columns(path, lower_case=True)
    except LogError as error:
        raise _as_metrics_error(error) from error
    return RawLog(
        path=path,
        metrics_columns=log.metrics_columns,
        scenario={name: str(log.scenario_info.get(name, "")) for name in SCENARIO_FIELDS},
        seconds=log.timestamp.astype(np.int64) / 1e6,
        table=_table(log),
        warnings=tuple(_warnings(log)),
    )


def _as_metrics_error(error: LogError) -> L2MetricsError:
    """The errors of a log in one line, with the name of the first."""
    first = next(problem for problem in error.problems if problem.severity == "error")
    return L2MetricsError(_kind(first), error.line())


def _kind(problem: Problem) -> ErrorKind:
    """Name of an error of the reader of logs."""
    if problem.path.name in _MISSING_INFO:
        absent = problem.message == "is missing"
        return _MISSING_INFO[problem.path.name] if absent else ErrorKind.BAD_INFO
    by_words = (kind for words, kind in _BY_WORDS if words.match(problem.message))
    column, _, rest = problem.message.partition(" ")
    by_column = _BY_COLUMN.get(column) if rest.startswith("must ") else None
    return by_column or next(by_words, ErrorKind.BAD_TABLE)


def _warnings(log: LogColumns) -> list[str]:
    """Warnings about the whole log; `make_run` counts rows without a value."""
    of_rows = (p.path.name == DATA_FILE and p.line != 1 for p in log.warnings)
    warnings = [
        f"{problem.path.name}: {problem.message}"
        for problem, row in zip(log.warnings, of_rows, strict=True)
        if not row
    ]
    if not all(TASK_NAME.fullmatch(task) for task in log.task_name.values):
        warnings.append("a task name is not of the form <task>_<variant>")
    return warnings


def _table(log: LogColumns) -> pa.Table:
    """The columns in the order of the format: standard ones, then further ones by name."""
    further = {name: from_numpy(column) for name, column in log.metrics.items()}
    further |= {name: _typed(column) for name, column in log.extras.items()}
    return pa.table(
        {
            "block_num": from_numpy(log.block_num),
            "exp_num": from_numpy(log.exp_num),
            "worker_id": _words(log.worker_id),
            "block_type": _words(log.block_type),
            "block_subtype": _words(log.block_subtype),
            "task_name": _words(log.task_name),
            "task_params": _words(log.task_params),
            "exp_status": from_words(log.complete.astype(np.int32), _STATUSES),
            "timestamp": timestamp_texts(log.timestamp).cast(pa.string()),
            **{name: further[name] for name in sorted(further)},
        }
    )


def _words(column: Coded[str]) -> pa.DictionaryArray:
    return from_words(column.codes, column.values)


def _typed(column: Coded[str]) -> pa.Array:
    """A column as numbers if all values are numbers, else as text."""
    inferred = numbers(column)
    return _words(column) if inferred is None else from_numpy(inferred)


def renamed_tasks(table: pa.Table, rename: Callable[[str], str]) -> pa.Table:
    """The table with other task names; names that become equal share a code."""
    codes, names = to_words(table["task_name"])
    new = [rename(name) for name in names]
    distinct = list(dict.fromkeys(new))
    lookup = np.array([distinct.index(name) for name in new] or [0], np.int32)
    column = from_words(lookup[codes], distinct)
    return table.set_column(table.column_names.index("task_name"), "task_name", column)
