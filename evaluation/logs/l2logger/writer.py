"""Writer of l2logger logs: one lifetime, whole or not at all."""

import csv
import json
import math
import numbers
import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from evaluation.files import whole_directory
from evaluation.logs.l2logger.format import (
    BLOCK_SUBTYPES,
    BLOCK_TYPES,
    DATA_FILE,
    EXP_STATUSES,
    FORMAT_VERSION,
    SCENARIO_FIELDS,
    STANDARD_COLUMNS,
    LogRow,
    Scalar,
    metrics_columns_problem,
)
from evaluation.logs.tables import CONTROL, timestamp_text, usable_worker
from evaluation.logs.texts import plain_scalar

_PARAMS_ENCODER: Final = json.JSONEncoder(allow_nan=False)


def write_log(
    base_dir: str | os.PathLike[str],
    scenario_name: str,
    rows: Sequence[LogRow],
    metrics_columns: Sequence[str],
    scenario_info: Mapping[str, Any],
    worker_id: str = "worker-default",
    start: datetime | None = None,
) -> Path:
    """Write the log of one lifetime, whole or not at all.

    Everything is checked before the first byte; the files are then written to a hidden directory
    next to the final one and moved into place with one rename.

    Args:
      base_dir: directory to put the log directory in; made if absent.
      scenario_name: first part of the directory's name; of a path only the last part up to its
        first dot is used, as l2logger does.
      rows: the episodes in order.
      metrics_columns: the metrics that every row has.
      scenario_info: content of scenario_info.json.
      worker_id: worker of the rows that name none.
      start: when the lifetime started, for the directory's name and for rows without a timestamp;
        now if None.

    Returns:
      The new log directory.

    Raises:
      ValueError: something that format 1.1 does not allow; the message names row and column.
      FileExistsError: the log directory is already there.
      OSError: the files cannot be written.

    Source: l2logger log format 1.1.
    """
    began = datetime.now() if start is None else start
    name = directory_name(scenario_name, began)
    columns = checked_metrics_columns(metrics_columns)
    infos = info_texts(columns, scenario_info)
    header, records = _checked_records(rows, columns, worker_id, began)
    final = Path(base_dir) / name
    with whole_directory(final) as partial:
        for file_name, text in infos.items():
            (partial / file_name).write_text(text, encoding="utf-8", newline="")
        _write_tables(partial, header, records)
    return final


def directory_name(scenario_name: str, start: datetime) -> str:
    """Name of a log directory, ``<scenario name>-<seconds since 1970>``."""
    label = Path(scenario_name).name.split(".")[0]
    if not label or CONTROL.search(label):
        raise ValueError(
            f"scenario_name must have a printable part before its first dot, not {scenario_name!r}"
        )
    return f"{label}-{start.timestamp()}".replace(".", "-")


def checked_metrics_columns(names: Sequence[str]) -> tuple[str, ...]:
    """Names of metrics that a log may have."""
    problem = metrics_columns_problem(names if not isinstance(names, str) else None)
    if problem:
        raise ValueError(f"metrics_columns {problem}")
    return tuple(names)


def info_texts(columns: Sequence[str], scenario_info: Mapping[str, Any]) -> dict[str, str]:
    """The two info files of a log by name.

    Raises:
      ValueError: scenario_info holds what the format does not allow.
    """
    logger_info = {"metrics_columns": list(columns), "log_format_version": FORMAT_VERSION}
    return {
        "logger_info.json": _info_text(logger_info),
        "scenario_info.json": _checked_scenario_info(scenario_info),
    }


def _checked_scenario_info(info: Mapping[str, Any]) -> str:
    for name, allowed in SCENARIO_FIELDS.items():
        if name in info and str(info[name]).lower() not in allowed:
            raise ValueError(
                f"scenario_info {name!r} must be one of {', '.join(allowed)}, not {info[name]!r}"
            )
    try:
        return _info_text(info)
    except (TypeError, ValueError) as error:
        raise ValueError(f"scenario_info must be strict JSON: {error}") from error


def _info_text(info: Mapping[str, Any]) -> str:
    return json.dumps(dict(info), indent=2, allow_nan=False)


class _Record(NamedTuple):
    """A checked row: where it goes and its fields as they are written."""

    worker_id: str
    block_num: int
    block_type: str
    fields: tuple[Scalar, ...]


def _checked_records(
    rows: Sequence[LogRow], columns: tuple[str, ...], worker_id: str, start: datetime
) -> tuple[list[str], list[_Record]]:
    """The header and all rows ready to be written."""
    if not rows:
        raise ValueError("rows is empty: a log needs at least one episode")
    extras = sorted(rows[0].extras)
    check_extra_names(extras, columns)
    records = []
    blocks = episodes = 0
    for number, row in enumerate(rows):
        blocks = _checked_number(number, "block_num", row.block_num, blocks)
        episodes = _checked_number(number, "exp_num", row.exp_num, episodes)
        records.append(_checked_record(number, row, columns, extras, worker_id, start))
    return [*STANDARD_COLUMNS, *sorted((*columns, *extras))], records


def check_extra_names(names: Iterable[str], columns: tuple[str, ...]) -> None:
    """Refuse names that an extra column cannot have."""
    for name in names:
        if not isinstance(name, str) or not name or CONTROL.search(name):
            raise ValueError(f"row 0, column {name!r}: an extra column needs a printable name")
        if name in STANDARD_COLUMNS or name in columns:
            raise ValueError(f"row 0, column {name!r}: an extra column needs a name of its own")


def _checked_record(
    number: int,
    row: LogRow,
    columns: tuple[str, ...],
    extras: list[str],
    worker_id: str,
    start: datetime,
) -> _Record:
    worker = worker_id if row.worker_id is None else row.worker_id
    for column, value, allowed in (
        ("block_type", row.block_type, BLOCK_TYPES),
        ("block_subtype", row.block_subtype, BLOCK_SUBTYPES),
        ("exp_status", row.exp_status, EXP_STATUSES),
    ):
        if value not in allowed:
            raise row_error(number, column, f"must be one of {', '.join(allowed)}, not {value!r}")
    if not isinstance(worker, str) or not usable_worker(worker):
        raise row_error(
            number, "worker_id", f"must be letters, digits, '_', '-' and '.', not {worker!r}"
        )
    name = row.task_name
    if not isinstance(name, str) or not name or CONTROL.search(name):
        raise row_error(number, "task_name", f"must be printable text, not {name!r}")
    when = start if row.timestamp is None else row.timestamp
    if not isinstance(when, datetime):
        raise row_error(number, "timestamp", f"must be a datetime, not {type(when).__name__}")
    cells = dict(zip(columns, _metric_fields(number, row.metrics, columns), strict=True))
    cells |= zip(extras, _extra_fields(number, row.extras, extras), strict=True)
    fields = (
        operator.index(row.block_num),
        operator.index(row.exp_num),
        worker,
        row.block_type,
        row.block_subtype,
        name,
        params_text(number, row.task_params),
        row.exp_status,
        timestamp_text(when),
        *(cells[name] for name in sorted(cells)),
    )
    return _Record(worker, operator.index(row.block_num), row.block_type, fields)


def row_error(number: int, column: str, message: str) -> ValueError:
    """An error that names row and column."""
    return ValueError(f"row {number}, column {column!r}: {message}")


def _checked_number(number: int, column: str, value: object, least: int) -> int:
    """A block or episode number: a whole number not below the one before it."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise row_error(number, column, f"must be an integer, not {value!r}")
    whole = operator.index(value)
    if whole < 0:
        raise row_error(number, column, f"must be 0 or more, not {whole}")
    if whole < least:
        raise row_error(number, column, f"must not fall from {least} to {whole}")
    return whole


def params_text(number: int, params: Mapping[str, Any]) -> str:
    """The parameters of a row as strict JSON text."""
    if not isinstance(params, Mapping):
        kind = type(params).__name__
        raise row_error(number, "task_params", f"must be a mapping, not {kind}")
    try:
        return _PARAMS_ENCODER.encode(dict(params))
    except (TypeError, ValueError, RecursionError) as error:
        raise row_error(number, "task_params", f"must be strict JSON: {error}") from error


def _metric_fields(
    number: int, metrics: Mapping[str, float], columns: tuple[str, ...]
) -> list[Scalar]:
    for name in columns:
        if name not in metrics:
            raise row_error(number, name, "is a metric of this log and missing in this row")
    for name in metrics:
        if name not in columns:
            raise row_error(number, str(name), "is not among metrics_columns; use extras for it")
    return [_metric_field(number, name, metrics[name]) for name in columns]


def _metric_field(number: int, name: str, value: object) -> Scalar:
    plain = plain_scalar(value)
    if isinstance(plain, bool) or not isinstance(plain, int | float):
        raise row_error(number, name, f"must be a number, not {value!r}")
    if math.isinf(plain):
        raise row_error(number, name, "must be finite, or NaN where it was not measured")
    return plain


def _extra_fields(number: int, extras: Mapping[str, Scalar], names: list[str]) -> list[Scalar]:
    if set(extras) != set(names):
        raise row_error(
            number,
            ", ".join(sorted(map(str, set(extras) ^ set(names)))),
            f"every row must have the extra columns of row 0 ({', '.join(names) or 'none'})",
        )
    fields = [plain_scalar(extras[name]) for name in names]
    for name, value in zip(names, fields, strict=True):
        if value is not None and not isinstance(value, str | int | float):
            raise row_error(number, name, f"must be text or a number, not {value!r}")
    return fields


def _write_tables(root: Path, header: list[str], records: Iterable[_Record]) -> None:
    """One file a worker and block, each with a header."""
    tables: dict[tuple[str, str], list[tuple[Scalar, ...]]] = {}
    for record in records:
        place = (record.worker_id, f"{record.block_num}-{record.block_type}")
        tables.setdefault(place, []).append(record.fields)
    for (worker, block), lines in tables.items():
        folder = root / worker / block
        folder.mkdir(parents=True)
        with (folder / DATA_FILE).open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, delimiter="\t", quotechar='"', lineterminator="\n")
            writer.writerow(header)
            writer.writerows(lines)
