"""Writers of result files with the names and schemas of l2metrics 3.1."""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from evaluation.files import write_whole
from evaluation.json_types import JsonObject, JsonValue
from evaluation.l2m.l2metrics.analysis import Analysis
from evaluation.l2m.l2metrics.reading import STEP_COLUMN
from evaluation.l2m.l2metrics.result import regime_rows
from evaluation.l2m.l2metrics.runs import LoggedRun
from evaluation.l2m.l2metrics.settings import LogSettings
from evaluation.logs.arrow import from_numpy, from_words, to_words

BATCH_NAME: Final = "ll_metrics"
"""Beginning of the file names of a batch."""

_SETTINGS_OF_A_RUN: Final = (
    "perf_measure",
    "variant_mode",
    "ste_averaging_method",
    "aggregation_method",
    "maintenance_method",
    "transfer_method",
    "normalization_method",
    "smoothing_method",
    "window_length",
    "clamp_outliers",
)
"""Keys of a settings file in l2metrics 3.1 after ``log_dir``; our further keys come last."""


def write_json(path: Path, content: JsonValue) -> None:
    """Write strict JSON on one line, as l2metrics does."""
    write_whole(path, json.dumps(content, allow_nan=False) + "\n")


def settings_json(settings: LogSettings, log_dir: str) -> JsonObject:
    """All settings; those of l2metrics 3.1 come first."""
    values = settings.to_json()
    first = {name: values.pop(name) for name in _SETTINGS_OF_A_RUN}
    return {"log_dir": log_dir, **first, **values}


def write_tsv(path: Path, rows: Iterable[Mapping[str, object]], columns: Sequence[str]) -> None:
    """Write a table of tab-separated values, with an empty cell for None."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter="\t", lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([row.get(name) for name in columns] for row in rows)
    write_whole(path, text.getvalue())


def write_regimes(path: Path, analyses: Sequence[Analysis], run_first: bool) -> None:
    """Write the regime table of one run or of many; missing columns of a run are empty cells."""
    rows = [row for analysis in analyses for row in regime_rows(analysis)]
    columns = list(max((row.keys() for row in rows), key=len, default=()))
    if run_first and columns:
        columns = ["run_id", *(name for name in columns if name != "run_id")]
    write_tsv(path, rows, columns)


def regime_table(analysis: Analysis) -> pa.Table:
    """Number and terminal performance of every regime."""
    terminal = analysis.of(analysis.results.regimes.term_perf).values
    size = len(analysis.run.regimes.counts)
    return pa.table(
        {
            "regime_num": from_numpy(np.arange(size)),
            "term_perf": from_numpy(np.asarray(terminal[:size], np.float64)),
        }
    )


def run_table(analysis: Analysis) -> pa.Table:
    """All rows of a run, with performance after each step of processing."""
    run, settings = analysis.run, analysis.settings
    measure, steps = settings.perf_measure, analysis.processed
    columns = {name: _plain(run.table[name]) for name in run.table.column_names}
    if settings.is_compat and all(word.isdigit() for word in to_words(run.table["worker_id"])[1]):
        columns["worker_id"] = columns["worker_id"].cast(pa.int64())
    names = list(columns)
    columns["regime_num"] = from_numpy(regime_numbers(run))
    names.insert(names.index("exp_num"), "regime_num")
    columns[measure] = from_numpy(analysis.rows(steps.values))
    further = {"raw": analysis.raw}
    if settings.smoothing_method != "none":
        further["smoothed"] = steps.smoothed
    if settings.clamp_outliers:
        further["filtered"] = steps.clamped
    if settings.normalization_method != "none":
        further["normalized"] = steps.values
    for name, values in further.items():
        columns[f"{measure}_{name}"] = from_numpy(analysis.rows(values))
        names.append(f"{measure}_{name}")
    return pa.table({name: columns[name] for name in names})


def regime_numbers(run: LoggedRun) -> np.ndarray:
    """(N,) number of each row's regime."""
    return np.repeat(np.arange(len(run.regimes.counts)), run.regimes.counts)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column without dictionary encoding, for any reader of the file."""
    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column


def write_feather(path: Path, table: pa.Table) -> None:
    """Write a table as a Feather file of version 2 (Arrow IPC), compressed by LZ4."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_file(sink, table.schema, options=options) as file:
        file.write_table(table)
    write_whole(path, sink.getvalue().to_pybytes())


def batch_table(analyses: Sequence[Analysis]) -> pa.Table:
    """The rows of all runs, with the columns of l2metrics 3.1 for a batch; ``run_id`` is last."""
    tables = []
    for analysis in analyses:
        table, measure = analysis.run.table, analysis.settings.perf_measure
        names = ["block_num", "exp_num", "block_type", "task_name", "timestamp", STEP_COLUMN]
        columns = {name: table[name] for name in names if name in table.column_names}
        for name in ("block_num", "exp_num"):
            columns[name] = columns[name].cast(pa.int32())
        columns[measure] = from_numpy(analysis.rows(analysis.processed.values))
        run_id = from_words(np.zeros(table.num_rows, np.int32), [analysis.run.name])
        columns["run_id"] = pa.chunked_array([run_id])
        tables.append(pa.table(columns))
    whole = pa.concat_tables(tables, promote_options="permissive")
    plain = [_plain(whole[name]) for name in whole.column_names]
    return pa.table(dict(zip(whole.column_names, plain, strict=True)))
