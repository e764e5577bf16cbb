"""A whole log as one table in one file."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather
import pyarrow.parquet

from evaluation.files import write_whole
from evaluation.logs import learnkit
from evaluation.logs.coded import Coded, coded, numbers
from evaluation.logs.l2logger import LogColumns, read_columns
from evaluation.logs.layouts import LEARNKIT, layout
from evaluation.logs.tables import timestamp_text
from evaluation.logs.texts import Lines, coded_texts, field_text, number_texts, timestamp_texts

Column = np.ndarray | Coded[str]
DELIMITERS: Final = {"tsv": "\t", "csv": ","}
FORMATS: Final = (*DELIMITERS, "feather", "parquet")
CUT_OFF: Final = ("keep", "drop")


def aggregate(root: Path, output: Path, file_format: str, cut_off: str | None = None) -> Path:
    """Write all rows of a log into one file.

    Args:
      root: a log directory of either format.
      output: the file without its suffix, which is that of the format.
      file_format: one of `FORMATS`.
      cut_off: ``"keep"`` or ``"drop"`` incomplete episodes (learnkit: sub-episodes). If None, as
        the tools of each format do: l2logger drops them, learnkit keeps them.

    Returns:
      The file written; an existing one is overwritten.

    Raises:
      LogError: the log is not valid; it carries every problem with file and line.
      ValueError: an unknown format or an unknown ``cut_off``.
    """
    if file_format not in FORMATS:
        raise ValueError(f"format is {file_format!r}; it must be one of {', '.join(FORMATS)}")
    if cut_off not in (None, *CUT_OFF):
        raise ValueError(f"cut-off is {cut_off!r}; it must be {' or '.join(CUT_OFF)}")
    if layout(root) == LEARNKIT:
        table = learnkit_table(learnkit.read_log(root), cut_off or "keep")
    else:
        table = l2logger_table(read_columns(root, lower_case=True), cut_off or "drop")
    path = output.with_name(f"{output.name}.{file_format}")
    write_whole(path, _WRITERS[file_format](table))
    return path


def l2logger_table(log: LogColumns, cut_off: str = "drop") -> dict[str, Column]:
    """Columns of l2logger's aggregate, in order of regimes and episodes.

    Args:
      log: with task names in their final letter case.
      cut_off: ``"keep"`` or ``"drop"`` incomplete episodes.
    """
    rows = log.take(log.complete) if cut_off == "drop" else log
    further: dict[str, Column] = {
        **rows.metrics,
        **{name: _inferred(column) for name, column in rows.extras.items()},
    }
    return {
        "block_num": rows.block_num,
        "regime_num": rows.regime_numbers(),
        "exp_num": rows.exp_num,
        "worker_id": rows.worker_id,
        "block_type": rows.block_type,
        "block_subtype": rows.block_subtype,
        "task_name": rows.task_name,
        "task_params": rows.task_params,
        "exp_status": Coded(("incomplete", "complete"), rows.complete.astype(np.int32)),
        "timestamp": rows.timestamp,
        **{name: further[name] for name in sorted(further)},
    }


def learnkit_table(log: learnkit.LearnkitLog, cut_off: str = "keep") -> dict[str, Column]:
    """Columns of data-log.tsv and the parameters of each block, in order of episodes.

    Args:
      log: of one run.
      cut_off: ``"keep"`` or ``"drop"`` sub-episodes that ended with ``NOT_DONE``.
    """
    cells = [_learnkit_cells(row) for row in log.rows]
    names = list(dict.fromkeys(name for row in cells for name in row))
    done = [row.termination_status == "DONE" for row in log.rows]
    kept = [row for row, whole in zip(cells, done, strict=True) if whole or cut_off == "keep"]
    of_numbers = ("block", "task", "sub_task", *log.measures)
    return {
        name: np.array([row.get(name, np.nan) for row in kept])
        if name in of_numbers
        else _inferred(coded([row.get(name, "") for row in kept]))
        for name in names
    }


def _learnkit_cells(row: learnkit.LearnkitRow) -> dict[str, Any]:
    when = "" if row.timestamp is None else timestamp_text(row.timestamp)
    return {
        "timestamp": when,
        "phase": row.phase,
        "worker": row.worker,
        "class_name": row.class_name,
        "block": row.block,
        "params": json.dumps(row.params),
        "seed": "" if row.seed is None else str(row.seed),
        "task": row.task,
        "sub_task": row.sub_task,
        "steps": "" if row.steps is None else str(row.steps),
        "termination_status": row.termination_status,
        "source": row.source,
        **row.extras,
        **row.measures,
    }


def _inferred(column: Coded[str]) -> Column:
    """A column of text as numbers, if it has rows and all of them are numbers."""
    inferred = numbers(column) if len(column) else None
    return column if inferred is None else inferred


def _separated(delimiter: str) -> Callable[[Mapping[str, Column]], bytes]:
    def content(table: Mapping[str, Column]) -> bytes:
        header = delimiter.join(field_text(name, delimiter) for name in table) + "\n"
        columns = [_texts(column, delimiter) for column in table.values()]
        rows = len(next(iter(table.values())))
        return header.encode() + bytes(Lines(columns, delimiter).between(0, rows))

    return content


def _texts(column: Column, delimiter: str) -> pa.LargeStringArray:
    if isinstance(column, Coded):
        return coded_texts(column, delimiter)
    if column.dtype.kind == "M":
        return timestamp_texts(column)
    texts = number_texts(column)
    if column.dtype.kind != "f":
        return texts
    return pc.replace_with_mask(texts, pa.array(np.isnan(column)), pa.scalar("", texts.type))


def _arrow(table: Mapping[str, Column]) -> pa.Table:
    def array(column: Column) -> pa.Array:
        if isinstance(column, Coded):
            return pa.array(column.values, pa.string()).take(pa.array(column.codes))
        return timestamp_texts(column).cast(pa.string()) if column.dtype.kind == "M" else column

    return pa.table({name: pa.array(array(column)) for name, column in table.items()})


def _feather(table: Mapping[str, Column]) -> bytes:
    sink = pa.BufferOutputStream()
    pyarrow.feather.write_feather(_arrow(table), sink)
    return sink.getvalue().to_pybytes()


def _parquet(table: Mapping[str, Column]) -> bytes:
    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(_arrow(table), sink, compression="zstd")
    return sink.getvalue().to_pybytes()


_WRITERS: Final[dict[str, Callable[[Mapping[str, Column]], bytes]]] = {
    **{name: _separated(delimiter) for name, delimiter in DELIMITERS.items()},
    "feather": _feather,
    "parquet": _parquet,
}
