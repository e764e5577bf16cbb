"""Logger of episodes during a run, with the interface and the bytes of l2logger's DataLogger."""

import json
import os
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np

from evaluation.closing import Closing
from evaluation.files import write_whole
from evaluation.json_types import JsonMapping
from evaluation.logs.cells import CheckedRow
from evaluation.logs.l2logger.batch import Columns, checked_table
from evaluation.logs.l2logger.format import (
    DATA_FILE,
    DEFAULT_SUBTYPE,
    DEFAULT_WORKER,
    EXP_STATUSES,
    FORMAT_VERSION,
    STANDARD_COLUMNS,
    metrics_columns_problem,
)
from evaluation.logs.l2logger.writer import (
    append_piece,
    check_extra_names,
    directory_name,
    header_of,
    standard_cells,
)
from evaluation.logs.tables import timestamp_text
from evaluation.logs.texts import plain_scalar, write_line

_DEFAULTS: Final = {
    "worker_id": DEFAULT_WORKER,
    "block_subtype": DEFAULT_SUBTYPE,
    "exp_status": EXP_STATUSES[0],
}
_ORDERED: Final = ("block_num", "exp_num")
_MAX_OPEN: Final = 64


class RecordError(ValueError, RuntimeError):
    """A record that format 1.1 does not allow; also a RuntimeError, as in l2logger."""


class DataLogger(Closing):
    """Write the log of one lifetime while it is played; threads may share a logger.

    Records that l2logger's class of this name accepts give the same files. Where that class raises
    a RuntimeError, so does this one, with a message that names record and column. Three things
    differ. Numbers may be NumPy's. Block and episode numbers may not fall within a worker, rather
    than within the log, so that parallel workers need not wait for one another. Records that no
    reader could use are an error: metrics that are text or infinite, parameters with NaN.

    Attributes:
      logger_info: content of logger_info.json.
      scenario_info: content of scenario_info.json.
      logging_base_dir: the directory in which the log directory is.
      scenario_dir: the log directory.
    """

    def __init__(
        self,
        logging_base_dir: str | os.PathLike[str],
        scenario_name: str,
        logger_info: JsonMapping,
        scenario_info: JsonMapping | None = None,
    ) -> None:
        """Make the log directory with its two info files.

        Args:
          logging_base_dir: directory to put the log directory in; made if absent.
          scenario_name: first part of the directory's name; only the last component of a path, up
            to its first dot, is used.
          logger_info: ``metrics_columns``, a non-empty list of names, and any other fields;
            ``log_format_version`` becomes 1.1.
          scenario_info: any fields; evaluators read ``complexity``, ``difficulty`` and
            ``scenario_type``.

        Raises:
          RecordError: the format does not allow the arguments.
          OSError: the directory cannot be made.
        """
        if not isinstance(logger_info, Mapping) or "metrics_columns" not in logger_info:
            raise RecordError("logger_info must be a mapping with the key 'metrics_columns'")
        names = logger_info["metrics_columns"]
        problem = metrics_columns_problem(names)
        if problem:
            raise RecordError(f"logger_info['metrics_columns'] {problem}")
        self.logger_info = {**logger_info, "log_format_version": FORMAT_VERSION}
        self.scenario_info = dict(scenario_info or {})
        self.logging_base_dir = os.fspath(logging_base_dir)
        self._metrics = tuple(names)
        self._fields: tuple[str, ...] = ()
        self._count = 0
        self._names: tuple[str, ...] | None = None  # fields of the previous record, in its order
        self._latest: dict[str, tuple[int, int]] = {}
        self._tables: dict[str, _Table] = {}
        self._closed = False
        self._lock = threading.RLock()
        self._directory = _new_directory(Path(logging_base_dir), scenario_name)
        self.scenario_dir = str(self._directory)
        self.write_info_files()

    def write_info_files(self) -> None:
        """Rewrite logger_info.json and scenario_info.json from the attributes."""
        for name, content in (
            ("logger_info.json", self.logger_info),
            ("scenario_info.json", self.scenario_info),
        ):
            try:
                text = json.dumps(content, indent=2, allow_nan=False)
            except (TypeError, ValueError) as error:
                raise RecordError(f"{name} must be strict JSON: {error}") from error
            write_whole(self._directory / name, text)

    def log_record(self, record: Mapping[str, object]) -> None:
        """Append one episode; it is on disk when this returns.

        Args:
          record: ``block_num``, ``exp_num``, ``block_type``, ``task_name``, ``task_params`` and all
            metrics; ``worker_id``, ``block_subtype`` and ``exp_status`` may be left out. Any other
            field is an extra column and must be in every record. Values that are neither text nor a
            number are written as by `str`; None is an empty cell.

        Raises:
          RecordError: the record is not allowed; nothing is written.
        """
        if not isinstance(record, Mapping):
            raise RecordError(f"a record must be a dict, not {type(record).__name__}")
        with self._lock:
            self._check_open()
            if "timestamp" in record:
                raise self._error("timestamp", "is set by the logger: leave it out")
            row = {**_DEFAULTS, **record, "timestamp": timestamp_text(datetime.now())}
            names = tuple(record)
            fields = self._fields if names == self._names else self._checked_fields(row)
            cells = self._checked_cells(row)
            worker = cells["worker_id"]
            block, episode = cells["block_num"], cells["exp_num"]
            table = self._table(f"{worker}/{block}-{cells['block_type']}", fields)
            table.write([cells[name] for name in fields])
            self._names, self._fields = names, fields
            self._count += 1
            self._latest[worker] = (block, episode)

    def log_records(self, columns: Columns) -> None:
        """Append many episodes at once; they are on disk when this returns.

        Args:
          columns: the fields of `log_record` by name, each an array or sequence of R values, a
            `Coded` column, or one value for all rows. ``timestamp`` is allowed here, as datetime64
            or datetime; the default is now.

        Raises:
          RecordError: a value is not allowed; nothing is written.
        """
        with self._lock:
            self._check_open()
            defaults = {"worker_id": DEFAULT_WORKER, "timestamp": datetime.now()}
            try:
                table = checked_table({**defaults, **columns}, self._metrics)
            except ValueError as error:
                raise RecordError(str(error)) from error
            if not table.rows:
                return
            self._check_same_fields(table.header)
            latest = dict(self._latest)
            for code, worker in enumerate(table.worker_id.values):
                rows = np.flatnonzero(table.worker_id.codes == code)
                if len(rows):
                    first, last = rows[0], rows[-1]
                    self._check_order(worker, table.block_num[first], table.exp_num[first])
                    latest[worker] = (int(table.block_num[last]), int(table.exp_num[last]))
            self._close_tables()
            for folder, content in table.pieces():
                append_piece(self._directory / folder, table.header, content)
            self._names, self._fields = None, table.header
            self._count += table.rows
            self._latest = latest

    def close(self) -> None:
        """Close all files; no record can be logged afterwards."""
        with self._lock:
            self._close_tables()
            self._closed = True

    def _error(self, column: str, message: str) -> ValueError:
        return CheckedRow(self._count, "record", RecordError).error(column, message)

    def _check_open(self) -> None:
        if self._closed:
            raise RecordError("the logger is closed: make another one")

    def _checked_fields(self, row: Mapping[str, object]) -> tuple[str, ...]:
        """Names of all columns in order."""
        for name in (*STANDARD_COLUMNS, *self._metrics):
            if name not in row:
                raise self._error(name, "is missing")
        extras = [
            name for name in row if name not in STANDARD_COLUMNS and name not in self._metrics
        ]
        try:
            check_extra_names(extras, self._metrics)
        except ValueError as error:
            raise RecordError(str(error)) from error
        fields = header_of(self._metrics, extras)
        self._check_same_fields(fields)
        return fields

    def _check_same_fields(self, fields: tuple[str, ...]) -> None:
        if self._fields and fields != self._fields:
            differing = ", ".join(sorted(set(fields) ^ set(self._fields)))
            raise self._error(differing, "every record must have the fields of the first one")

    def _checked_cells(self, row: Mapping[str, object]) -> dict[str, Any]:
        """The checked cells of a record."""
        at = CheckedRow(self._count, "record", RecordError)
        cells = {name: _cell(value) for name, value in row.items()} | standard_cells(at, row)
        self._check_order(cells["worker_id"], cells["block_num"], cells["exp_num"])
        for name in self._metrics:
            cells[name] = None if row[name] is None else at.measure(name, row[name])
        return cells

    def _check_order(self, worker: str, block: int, episode: int) -> None:
        for name, least, value in zip(
            _ORDERED, self._latest.get(worker, (0, 0)), (block, episode), strict=True
        ):
            if value < least:
                words = f"from {least} to {value} within worker {worker!r}"
                raise self._error(name, f"must not fall {words}")

    def _table(self, folder: str, fields: tuple[str, ...]) -> "_Table":
        """The open table of a folder."""
        table = self._tables.get(folder)
        if table is None:
            if len(self._tables) >= _MAX_OPEN:
                self._close_tables()
            table = self._tables[folder] = _Table(self._directory / folder, fields)
        return table

    def _close_tables(self) -> None:
        for table in self._tables.values():
            table.close()
        self._tables.clear()


class _Table:
    """An open table; a new table begins with its header."""

    def __init__(self, folder: Path, fields: tuple[str, ...]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._stream = (folder / DATA_FILE).open("a", encoding="utf-8", newline="")
        self.close = self._stream.close
        if not self._stream.tell():
            self.write(fields)

    def write(self, values: Sequence[object]) -> None:
        """Append a row; it is on disk when this returns."""
        write_line(self._stream, values)
        self._stream.flush()


def _new_directory(base: Path, scenario_name: str) -> Path:
    """Make a log directory with a new name."""
    when = datetime.now()
    for _ in range(1000):
        try:
            directory = base / directory_name(scenario_name, when)
            directory.mkdir(parents=True)
        except FileExistsError:
            when += timedelta(microseconds=1)  # another logger began at the same moment
        except ValueError as error:
            raise RecordError(str(error)) from error
        else:
            return directory
    raise FileExistsError(f"{directory} and its neighbours exist already")


def _cell(value: object) -> Any:
    """A cell; values that are neither text nor a number are converted by `str`."""
    if value is None or isinstance(value, str | int | float):
        return plain_scalar(value)
    plain = plain_scalar(value)
    return plain if isinstance(plain, str | int | float) else str(plain)
