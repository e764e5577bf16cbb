"""Reads l2logger directories as columns: all tables of a log in one pass.

The checks are those of `evaluation.logs.l2logger`. They are made on whole columns here; where one
fails, that reader is asked for the file and the line.
"""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from evaluation.l2m.l2metrics.columns import from_numpy, from_words, to_letters, to_numpy, to_words
from evaluation.l2m.l2metrics.errors import Kind, L2MetricsError
from evaluation.logs.l2logger.format import (
    BLOCK_SUBTYPES,
    BLOCK_TYPES,
    DATA_FILE,
    DEFAULT_SUBTYPE,
    EXP_STATUSES,
    SCENARIO_FIELDS,
    STANDARD_COLUMNS,
    TASK_NAME,
    metrics_columns_problem,
)
from evaluation.logs.tables import MAX_LOG_BYTES, WORKER

LOGGER_INFO: Final = "logger_info.json"
SCENARIO_INFO: Final = "scenario_info.json"
STEP_COLUMN: Final = "episode_step_count"
_WORDS: Final = (
    "worker_id",
    "block_type",
    "block_subtype",
    "task_name",
    "task_params",
    "exp_status",
)
_TIMESTAMP: Final = "00000000T000000.000000"
MAX_PROBLEMS: Final = 5
"""Problems of one log that are printed."""


@dataclass(frozen=True)
class RawLog:
    """All rows of a log, stably sorted by (exp_num, block_num).

    Attributes:
      path: its directory.
      metrics_columns: names of the performance columns.
      scenario: complexity, difficulty and scenario_type, "" where one is missing.
      seconds: (n,) timestamp of each row, seconds since 1970.
      table: the rows; columns of text are dictionaries, task names are in lower case.
      warnings: what is unusual and allowed.
    """

    path: Path
    metrics_columns: tuple[str, ...]
    scenario: Mapping[str, str]
    seconds: npt.NDArray[np.float64]
    table: pa.Table
    warnings: tuple[str, ...] = field(default=())


def find_log(name: str | os.PathLike[str]) -> Path:
    """The directory of a log: a path that exists, or a bare name below ``$L2DATA/logs``.

    Raises:
      L2MetricsError: there is neither.
    """
    path = Path(name)
    if path.is_dir():
        return path
    root = Path(os.environ.get("L2DATA") or Path.home() / "l2data") / "logs"
    if len(path.parts) == 1 and (root / path).is_dir():
        return root / path
    raise L2MetricsError(
        Kind.NO_DIRECTORY, f"there is no directory {path}, nor one of this name in {root}"
    )


def is_log(path: Path) -> bool:
    """Whether a directory has the two info files of a log."""
    return (path / LOGGER_INFO).is_file() and (path / SCENARIO_INFO).is_file()


def read_log_columns(path: Path) -> RawLog:
    """Read and check one log.

    Args:
      path: the directory that holds logger_info.json.

    Raises:
      L2MetricsError: the log is not valid; with file and line where it is about one.
    """
    columns = _metrics_columns(path)
    scenario, warnings = _scenario(path)
    tables = _bodies(path)
    if not tables:
        raise L2MetricsError(Kind.NO_DATA_LOG, f"{path} holds no {DATA_FILE}")
    try:
        table = _join([_parse(header, body, columns) for header, body in tables.items()])
        _check(table)
        table = _lower_tasks(_sorted(table))
        when = seconds(table["timestamp"]) if table.num_rows else np.zeros(0)
    except L2MetricsError as error:
        raise L2MetricsError(error.kind, f"{path}: {_details(path, error)}") from error
    if not all(TASK_NAME.fullmatch(task) for task in to_words(table["task_name"])[1]):
        warnings.append("a task name is not of the form <task>_<variant>")
    return RawLog(path, columns, scenario, when, table, tuple(warnings))


def _info(path: Path, missing: Kind) -> Mapping[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise L2MetricsError(missing, f"{path} is missing") from error
    except (OSError, ValueError, RecursionError) as error:
        raise L2MetricsError(Kind.BAD_INFO, f"{path}: {error}") from error
    if not isinstance(content, dict):
        raise L2MetricsError(Kind.BAD_INFO, f"{path} must hold a JSON object")
    return content


def _metrics_columns(path: Path) -> tuple[str, ...]:
    names = _info(path / LOGGER_INFO, Kind.NO_LOGGER_INFO).get("metrics_columns")
    problem = metrics_columns_problem(names)
    if problem or not isinstance(names, list):
        raise L2MetricsError(Kind.BAD_INFO, f"{path / LOGGER_INFO}: metrics_columns {problem}")
    return tuple(names)


def _scenario(path: Path) -> tuple[dict[str, str], list[str]]:
    info = _info(path / SCENARIO_INFO, Kind.NO_SCENARIO_INFO)
    warnings = [
        f"{SCENARIO_INFO} has no {name!r}" if name not in info else
        f"{SCENARIO_INFO}: {name!r} is {info[name]!r}, not one of {', '.join(allowed)}"
        for name, allowed in SCENARIO_FIELDS.items()
        if str(info.get(name)).lower() not in allowed
    ]  # fmt: skip
    return {name: str(info.get(name, "")) for name in SCENARIO_FIELDS}, warnings


def _bodies(root: Path) -> dict[bytes, bytes]:
    """Header line -> the rows of all tables that have this header, in the order of paths."""
    paths = sorted(
        os.path.join(folder, name)
        for folder, _, names in os.walk(root)
        for name in names
        if name == DATA_FILE
    )
    found: dict[bytes, list[bytes]] = {}
    total = 0
    for path in paths:
        with open(path, "rb") as stream:
            content = stream.read()
        total += len(content)
        if total > MAX_LOG_BYTES:
            raise L2MetricsError(Kind.BAD_TABLE, f"{root} holds more than {MAX_LOG_BYTES:,} bytes")
        header, _, body = content.partition(b"\n")
        if body and not body.endswith(b"\n"):
            body += b"\n"
        found.setdefault(header.rstrip(b"\r"), []).append(body)
    return {header: b"".join(bodies) for header, bodies in found.items()}


def _parse(header: bytes, body: bytes, measures: tuple[str, ...]) -> pa.Table:
    """The rows below one header."""
    names = [name.strip('"') for name in header.decode(errors="replace").split("\t")]
    needed = [name for name in STANDARD_COLUMNS if name != "block_subtype"]
    for name in (*needed, *measures):
        if name not in names:
            raise L2MetricsError(Kind.MISSING_COLUMN, f"the column {name!r} is missing")
    if len(set(names)) < len(names):
        raise L2MetricsError(Kind.BAD_TABLE, "a column is there twice")
    word = pa.dictionary(pa.int32(), pa.string())
    types: dict[str, pa.DataType] = dict.fromkeys(_WORDS, word)
    types |= {"block_num": pa.int64(), "exp_num": pa.int64(), "timestamp": pa.string()}
    types |= dict.fromkeys(measures, pa.float64())
    if not body:
        return pa.table({name: pa.array([], types.get(name, pa.string())) for name in names})
    try:
        table = pa.csv.read_csv(
            pa.BufferReader(body),
            pa.csv.ReadOptions(column_names=names, use_threads=False, block_size=1 << 24),
            pa.csv.ParseOptions(delimiter="\t", newlines_in_values=False),
            pa.csv.ConvertOptions(column_types=types, strings_can_be_null=False),
        )
    except pa.ArrowInvalid as error:
        kind = Kind.BAD_NUMBER if "conversion error" in str(error) else Kind.BAD_TABLE
        raise L2MetricsError(kind, str(error)) from error
    if "block_subtype" in names:
        return table
    wake = from_words(np.zeros(table.num_rows, np.int32), [DEFAULT_SUBTYPE])
    return table.append_column("block_subtype", wake)


def _join(tables: list[pa.Table]) -> pa.Table:
    if len(tables) == 1:
        return tables[0].unify_dictionaries().combine_chunks()
    # Extra columns whose type differs between tables, or is null in one, become what fits both.
    whole = pa.concat_tables(tables, promote_options="permissive")
    return whole.unify_dictionaries().combine_chunks()


def _check(table: pa.Table) -> None:
    """Check the standard columns.

    Raises:
      L2MetricsError: the first that is wrong.
    """
    for name in ("block_num", "exp_num"):
        column = table[name]
        if column.null_count or (len(column) and pc.min(column).as_py() < 0):
            raise L2MetricsError(Kind.BAD_NUMBER, f"{name} must be integers from 0")
    checks: tuple[tuple[str, Kind, Callable[[str], bool]], ...] = (
        ("block_type", Kind.BAD_BLOCK_TYPE, BLOCK_TYPES.__contains__),
        ("block_subtype", Kind.BAD_BLOCK_SUBTYPE, BLOCK_SUBTYPES.__contains__),
        ("exp_status", Kind.BAD_EXP_STATUS, EXP_STATUSES.__contains__),
        ("worker_id", Kind.BAD_WORKER, lambda word: bool(WORKER.fullmatch(word))),
        ("task_params", Kind.BAD_TASK_PARAMS, _is_params),
    )
    for name, kind, allowed in checks:
        for word in to_words(table[name])[1]:
            if not allowed(word):
                raise L2MetricsError(kind, f"{name} is {word!r}")


def _is_params(text: str) -> bool:
    try:
        return not text or isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def seconds(column: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    """Timestamps ``%Y%m%dT%H%M%S.%f`` as (n,) seconds since 1970, to the microsecond.

    Raises:
      L2MetricsError: one is none.
    """
    width = len(_TIMESTAMP)
    letters = to_letters(column, width)
    if letters is None:
        raise _bad_timestamp(column[0].as_py() if len(column) == 1 else "a longer text")
    fraction = letters[:, 16:]
    letters = np.where(letters == 0, ord("0"), letters)  # fewer digits behind the point
    form = np.frombuffer(_TIMESTAMP.encode(), np.uint8)
    is_digit = (letters >= ord("0")) & (letters <= ord("9"))
    good = np.where(form == ord("0"), is_digit, letters == form).all(axis=1) & (fraction[:, 0] > 0)
    digits = letters[:, form == ord("0")].astype(np.int64) - ord("0")
    fields = np.split(digits, np.cumsum([4, 2, 2, 2, 2, 2]), axis=1)
    year, month, day, hour, minute, second, micro = (
        part @ 10 ** np.arange(part.shape[1] - 1, -1, -1) for part in fields
    )
    month_start = (year - 1970) * 12 + month - 1
    first = month_start.astype("datetime64[M]").astype("datetime64[D]")
    following = (month_start + 1).astype("datetime64[M]").astype("datetime64[D]")
    good &= (year > 0) & (month >= 1) & (month <= 12) & (hour < 24) & (minute < 60) & (second < 60)
    good &= (day >= 1) & (day <= (following - first).astype(np.int64))
    if not good.all():
        raise _bad_timestamp(column[int(np.argmin(good))].as_py())
    days = first.astype(np.int64) + day - 1
    whole = days * 86_400 + hour * 3_600 + minute * 60 + second
    return np.asarray(whole + micro / 1e6)


def _bad_timestamp(text: str) -> L2MetricsError:
    return L2MetricsError(
        Kind.BAD_TIMESTAMP, f"timestamp must look like 20260131T235959.123456, not {text!r}"
    )


def _sorted(table: pa.Table) -> pa.Table:
    block, experience = (to_numpy(table[name], np.int64) for name in ("block_num", "exp_num"))
    order = np.lexsort((block, experience))
    if not np.array_equal(order, np.arange(len(order))):
        table, block = table.take(from_numpy(order)), block[order]
    if len(block) and (np.diff(block) < 0).any():
        raise L2MetricsError(Kind.BLOCK_ORDER, "block_num falls while exp_num rises")
    return table


def _lower_tasks(table: pa.Table) -> pa.Table:
    return renamed_tasks(table, str.lower)


def renamed_tasks(table: pa.Table, rename: Callable[[str], str]) -> pa.Table:
    """The table with other task names; names that become equal share a code."""
    codes, names = to_words(table["task_name"])
    new = [rename(name) for name in names]
    distinct = list(dict.fromkeys(new))
    lookup = np.array([distinct.index(name) for name in new] or [0], np.int32)
    column = from_words(lookup[codes], distinct)
    return table.set_column(table.column_names.index("task_name"), "task_name", column)


def _details(path: Path, error: L2MetricsError) -> str:
    """What the reader that knows lines says, or the message where it has nothing to say."""
    from evaluation.logs.l2logger.reader import check_log

    found = [str(problem) for problem in check_log(path) if problem.severity == "error"]
    if not found:
        return str(error).partition(": ")[2]
    more = len(found) - MAX_PROBLEMS
    return "; ".join(found[:MAX_PROBLEMS]) + (f"; and {more} more" if more > 0 else "")
