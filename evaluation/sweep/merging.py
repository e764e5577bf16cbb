"""Joins the results of all units into one table of rows and one of metrics, in constant memory.

The bytes of both files depend on the sweep alone: not on how its packs were divided into units, nor
on where and when these were played. Rows are written in groups of a fixed size, in cell order.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from evaluation.arguments import command_line
from evaluation.files import read_json, results, write_json
from evaluation.json_types import JsonObject
from evaluation.sweep import report, store
from evaluation.sweep.plans import Plan

MERGED: Final = "merged"
ROWS, CELLS, MARKER = "rows.parquet", "cells.parquet", "sweep.json"
GROUP_ROWS: Final = 1 << 19
MOST_MARKER_BYTES: Final = 1 << 22
MOST_BATCHES: Final = 256
"""Most small batches before they are joined."""
SHOWN: Final = 5

Progress = Callable[[int, int], object]


class Merged(NamedTuple):
    """Merged results.

    Attributes:
      folder: with rows.parquet, cells.parquet and sweep.json.
      rows: number of rows.
      cells: number of cells.
      reported: whether report.json and report.html are in the folder too.
    """

    folder: Path
    rows: int
    cells: int
    reported: bool


def merge(plan: Plan, out: Path | None = None, progress: Progress | None = None) -> Merged:
    """Join the results of all units.

    Args:
      plan: a plan whose units are all finished.
      out: folder to write to; None for `merged` in the plan's folder.
      progress: called as `progress(units done, units in all)`.

    Raises:
      ValueError: units are missing, are damaged or have two results; names some.
      OSError: the files cannot be written.
    """
    _check(plan)
    folder = plan.folder / MERGED if out is None else out
    rows = 0
    with results(folder, MARKER) as partial:
        paths = [partial / ROWS, partial / CELLS]
        writers = [_Writer(path) for path in paths]
        for number, files in store.listing(plan):
            contents = store.contents(files[0]) if files else None
            if contents is None:
                where = f" ({files[0].rows})" if files else ""
                raise ValueError(f"unit {number} is damaged{where}; sweep run plays it again")
            for writer, content in zip(writers, contents, strict=True):
                writer.add(store.read(content))
            if progress:
                progress(number + 1, len(plan.units))
        for writer in writers:
            writer.close()
            _sync(writer.path)
        rows = writers[0].rows
        about = {**_about(plan), "rows": rows}
        command = command_line(["sweep", "merge", plan.manifest["name"]], ())
        reported = report.write(partial, partial / CELLS, about, command)
        write_json(partial / MARKER, about)
    return Merged(folder, rows, plan.grid.cells, reported)


def is_of(plan: Plan, folder: Path) -> bool:
    """Whether a folder holds merged results of a plan, made with the same versions."""
    path = folder / MARKER
    if not path.exists():
        return False
    about = read_json(path, MOST_MARKER_BYTES, "a merged sweep")
    return isinstance(about, dict) and about.items() >= _about(plan).items()


def _about(plan: Plan) -> JsonObject:
    """What results are of, for their marker."""
    return {
        "name": plan.manifest["name"],
        "digest": plan.digest,
        "versions": plan.manifest["versions"],
        "sweep": plan.manifest["sweep"],
        "columns": plan.manifest["columns"],
        "cells": plan.grid.cells,
    }


def _check(plan: Plan) -> None:
    """Check that every unit has one result, by the names of the files.

    Raises:
      ValueError: some have none, or two.
    """
    missing = store.unfinished(plan)
    if missing:
        listed = ", ".join(map(str, missing[:SHOWN])) + (", ..." if len(missing) > SHOWN else "")
        raise ValueError(
            f"{len(missing):,} of {len(plan.units):,} units are missing (units {listed}); play "
            f"them with: jaxsim sweep run {plan.folder}"
        )
    for number, files in store.listing(plan):
        if len(files) > 1:
            names = " and ".join(str(one.rows) for one in files)
            raise ValueError(
                f"unit {number} has two results, as of different machines or versions: "
                f"{names}; remove all but one"
            )


class _Writer:
    """Writes batches of any size as row groups of one size."""

    def __init__(self, path: Path) -> None:
        self.path, self.rows = path, 0
        self._batches: list[pa.RecordBatch] = []
        self._small: list[pa.RecordBatch] = []
        self._count = 0
        self._writer: pq.ParquetWriter | None = None

    def add(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Add rows."""
        for batch in batches:
            if self._writer is None:
                schema = batch.schema.remove_metadata()
                options = {"compression": "zstd", "write_page_checksum": True}
                self._writer = pq.ParquetWriter(self.path, schema, **options)
            self._small.append(batch)
            self._count += batch.num_rows
            if len(self._small) == MOST_BATCHES or self._count >= GROUP_ROWS:
                self._combine()
            while self._count >= GROUP_ROWS:
                self._put(GROUP_ROWS)

    def close(self) -> None:
        """Write the remaining rows and the end of the file."""
        if self._count:
            self._combine()
            self._put(self._count)
        if self._writer is not None:
            self._writer.close()

    def _combine(self) -> None:
        """Join small batches: each has an overhead of kilobytes."""
        self._batches += pa.Table.from_batches(self._small).combine_chunks().to_batches()
        self._small = []

    def _put(self, number: int) -> None:
        assert self._writer is not None
        table = pa.Table.from_batches(self._batches).replace_schema_metadata()
        group = table.slice(0, number).combine_chunks()
        self._writer.write_table(group, row_group_size=number)
        rest = table.slice(number)
        self._batches, self._count = rest.to_batches(), rest.num_rows
        self.rows += number


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
