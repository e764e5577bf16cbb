"""Writer of l2logger logs from rows, one lifetime per call."""

import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from evaluation.files import whole_directory
from evaluation.json_types import JsonMapping
from evaluation.logs.cells import CheckedRow, Scalar
from evaluation.logs.l2logger.format import (
    DATA_FILE,
    DEFAULT_WORKER,
    FORMAT_VERSION,
    SCENARIO_FIELDS,
    STANDARD_COLUMNS,
    WORDS,
    L2LoggerRow,
    metrics_columns_problem,
)
from evaluation.logs.tables import CONTROL
from evaluation.logs.texts import write_line


def write_log(
    base_dir: str | os.PathLike[str],
    scenario_name: str,
    rows: Sequence[L2LoggerRow],
    metrics_columns: Sequence[str],
    scenario_info: JsonMapping,
    worker_id: str = DEFAULT_WORKER,
    start: datetime | None = None,
) -> Path:
    """Write the log of one lifetime, completely or not at all.

    Everything is checked first. The files are then written to a hidden directory next to the final
    one and moved into place with one rename.

    Args:
      base_dir: directory to put the log directory in; made if absent.
      scenario_name: first part of the directory's name; only the last component of a path, up to
        its first dot, is used, as in l2logger.
      rows: the episodes in order.
      metrics_columns: the metrics that every row has.
      scenario_info: content of scenario_info.json.
      worker_id: worker of the rows without one.
      start: when the lifetime started, for the directory's name and for rows without a timestamp;
        now if None.

    Returns:
      The new log directory.

    Raises:
      ValueError: format 1.1 does not allow a value; the message names row and column.
      FileExistsError: the log directory already exists.
      OSError: the files cannot be written.

    Source: l2logger log format 1.1.
    """
    begin = datetime.now() if start is None else start
    log = NewLog.checked(base_dir, scenario_name, metrics_columns, scenario_info, begin)
    if not rows:
        raise ValueError("rows is empty: a log needs at least one episode")
    extras = sorted(rows[0].extras)
    check_extra_names(extras, log.metrics)
    header = header_of(log.metrics, extras)
    defaults = {"worker_id": worker_id, "timestamp": begin}
    records, least = [], (0, 0)
    for number, row in enumerate(rows):
        records.append(_cells(CheckedRow(number), row, log.metrics, extras, defaults, least))
        least = records[-1]["block_num"], records[-1]["exp_num"]
    return log.write(header, _pieces(header, records))


@dataclass(frozen=True)
class NewLog:
    """A log to be written.

    Attributes:
      directory: the new directory.
      metrics: names of the metrics.
      infos: texts of the two info files by name.
    """

    directory: Path
    metrics: tuple[str, ...]
    infos: Mapping[str, str]

    @classmethod
    def checked(
        cls,
        base_dir: str | os.PathLike[str],
        scenario_name: str,
        metrics_columns: Sequence[str],
        scenario_info: JsonMapping,
        start: datetime,
    ) -> "NewLog":
        """Make a log from checked arguments of a writer.

        Raises:
          ValueError: format 1.1 does not allow an argument.
        """
        directory = Path(base_dir) / directory_name(scenario_name, start)
        if problem := metrics_columns_problem(metrics_columns):
            raise ValueError(f"metrics_columns {problem}")
        names = list(metrics_columns)
        logger_info = {"metrics_columns": names, "log_format_version": FORMAT_VERSION}
        infos = {
            "logger_info.json": _info_text(logger_info),
            "scenario_info.json": _checked_scenario_info(scenario_info),
        }
        return cls(directory, tuple(names), infos)

    def write(self, header: Sequence[str], pieces: Iterable[tuple[str, Any]]) -> Path:
        """Write all files, or none; return the directory.

        Args:
          header: names of the columns.
          pieces: folder of a table and the UTF-8 text of some of its rows.
        """
        with whole_directory(self.directory) as partial:
            for file_name, text in self.infos.items():
                (partial / file_name).write_text(text, encoding="utf-8", newline="")
            for folder, content in pieces:
                append_piece(partial / folder, header, content)
        return self.directory


def append_piece(folder: Path, header: Sequence[str], content: Any) -> None:
    """Append UTF-8 text of rows to the table in a folder; a new table begins with its header."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / DATA_FILE).open("ab") as stream:
        if not stream.tell():
            stream.write("\t".join(header).encode() + b"\n")
        stream.write(content)


def directory_name(scenario_name: str, start: datetime) -> str:
    """Name of a log directory, ``<scenario name>-<seconds since 1970>``."""
    label = Path(scenario_name).name.split(".")[0]
    if not label or CONTROL.search(label):
        raise ValueError(
            f"scenario_name must have a printable part before its first dot, not {scenario_name!r}"
        )
    return f"{label}-{start.timestamp()}".replace(".", "-")


def _checked_scenario_info(info: JsonMapping) -> str:
    for name, allowed in SCENARIO_FIELDS.items():
        if name in info and str(info[name]).lower() not in allowed:
            raise ValueError(
                f"scenario_info {name!r} must be one of {', '.join(allowed)}, not {info[name]!r}"
            )
    try:
        return _info_text(info)
    except (TypeError, ValueError) as error:
        raise ValueError(f"scenario_info must be strict JSON: {error}") from error


def _info_text(info: JsonMapping) -> str:
    return json.dumps(dict(info), indent=2, allow_nan=False)


def check_extra_names(names: Iterable[str], columns: tuple[str, ...]) -> None:
    """Check the names of extra columns."""
    for name in names:
        if not isinstance(name, str) or not name or CONTROL.search(name):
            raise ValueError(f"row 0, column {name!r}: an extra column needs a printable name")
        if name in STANDARD_COLUMNS or name in columns:
            raise ValueError(f"row 0, column {name!r}: an extra column needs a new name")


def header_of(metrics: Iterable[str], extras: Iterable[str]) -> tuple[str, ...]:
    """Names of all columns in written order."""
    return (*STANDARD_COLUMNS, *sorted((*metrics, *extras)))


def standard_cells(
    at: CheckedRow, record: Mapping[str, object], least: tuple[int, int] = (0, 0)
) -> dict[str, Any]:
    """Check the standard columns that all writers share; return their cells.

    Args:
      at: the row.
      record: values by column.
      least: numbers of block and episode of the previous row.
    """
    return {
        "block_num": at.count("block_num", record["block_num"], least[0]),
        "exp_num": at.count("exp_num", record["exp_num"], least[1]),
        "worker_id": at.folder("worker_id", record["worker_id"]),
        **{name: at.word(name, record[name], allowed) for name, allowed in WORDS.items()},
        "task_params": at.params("task_params", record["task_params"]),
    }


def _cells(
    at: CheckedRow,
    row: L2LoggerRow,
    metrics: tuple[str, ...],
    extras: list[str],
    defaults: Mapping[str, object],
    least: tuple[int, int],
) -> dict[str, Any]:
    """The checked cells of a row."""
    record = {name: getattr(row, name) for name in STANDARD_COLUMNS}
    record |= {name: value for name, value in defaults.items() if record[name] is None}
    if set(row.extras) != set(extras):
        raise at.error(
            ", ".join(sorted(map(str, set(row.extras) ^ set(extras)))),
            f"every row must have the extra columns of row 0 ({', '.join(extras) or 'none'})",
        )
    for name in metrics:
        if name not in row.metrics:
            raise at.error(name, "is a metric of this log and missing in this row")
    for name in row.metrics:
        if name not in metrics:
            raise at.error(str(name), "is not among metrics_columns; use extras for it")
    return {
        **standard_cells(at, record, least),
        "task_name": at.text("task_name", record["task_name"]),
        "timestamp": at.moment("timestamp", record["timestamp"]),
        **{name: at.measure(name, row.metrics[name]) for name in metrics},
        **{name: at.extra(name, row.extras[name]) for name in extras},
    }


def _pieces(
    header: Sequence[str], records: Iterable[Mapping[str, Scalar]]
) -> Iterator[tuple[str, bytes]]:
    """Yield folder and text of the rows of each worker and block."""
    tables: dict[str, io.StringIO] = {}
    for record in records:
        folder = f"{record['worker_id']}/{record['block_num']}-{record['block_type']}"
        stream = tables.setdefault(folder, io.StringIO())
        write_line(stream, [record[name] for name in header])
    for folder, stream in tables.items():
        yield folder, stream.getvalue().encode()
