"""Results of units as files whose names follow from what was asked and from what they hold.

    units/0012/0012345-<what was asked>-<what it holds>.cells.parquet
    units/0012/0012345-<what was asked>-<what it holds>.rows.parquet

Both are written whole, the second last: where it is, the unit is finished. A unit that is played
twice, or by two processes at once, gets the same names with the same bytes.
"""

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from evaluation.files import write_whole
from evaluation.sweep.grid import Unit
from evaluation.sweep.plans import Plan

UNITS: Final = "units"
IN_A_FOLDER: Final = 1000
ROWS, CELLS = ".rows.parquet", ".cells.parquet"
NAME: Final = re.compile(r"(\d{7,})-([0-9a-f]{8})-([0-9a-f]{16})\.rows\.parquet")
LEFTOVER: Final = re.compile(r"\.\d{7,}-[0-9a-f-]+\.(?:rows|cells)\.parquet\..*")
OLD: Final = 3600.0
"""s, after which a file that a killed process has left half is removed."""


class Found(NamedTuple):
    """A finished unit on the disk.

    Attributes:
      number: of the unit.
      asked: hash of what it was asked to play.
      content: hash of both files.
      rows: path of the file with the rows.
    """

    number: int
    asked: str
    content: str
    rows: Path

    @property
    def cells(self) -> Path:
        """Path of the file with the metrics."""
        return self.rows.with_name(self.rows.name.removesuffix(ROWS) + CELLS)


def folder_of(plan: Plan, number: int) -> Path:
    """Folder of a unit's files."""
    return plan.folder / UNITS / f"{number // IN_A_FOLDER:04d}"


def write(plan: Plan, unit: Unit, rows: pa.Table, metrics: pa.Table) -> Found:
    """Write a finished unit."""
    contents = [_parquet(rows), _parquet(metrics)]
    content = _content(*contents)
    folder, asked = folder_of(plan, unit.number), plan.inputs_hash(unit)
    name = f"{unit.number:07d}-{asked}-{content}"
    write_whole(folder / f"{name}{CELLS}", contents[1])
    write_whole(folder / f"{name}{ROWS}", contents[0])
    return Found(unit.number, asked, content, folder / f"{name}{ROWS}")


def finished(plan: Plan) -> dict[int, list[Found]]:
    """All finished units of a plan, by number; several where their contents differ."""
    found: dict[int, list[Found]] = {}
    with contextlib.suppress(FileNotFoundError), os.scandir(plan.folder / UNITS) as folders:
        for entry in folders:
            if entry.is_dir():
                _gather(Path(entry.path), found)
    return {n: ours for n, units in found.items() if (ours := _asked(plan, n, units))}


def finished_one(plan: Plan, number: int) -> list[Found]:
    """Files of one unit."""
    found: dict[int, list[Found]] = {}
    # By name, not by listing: there may be a thousand units in the folder.
    asked = plan.inputs_hash(plan.units[number])
    for path in folder_of(plan, number).glob(f"{number:07d}-{asked}-*{ROWS}"):
        if match := NAME.fullmatch(path.name):
            found.setdefault(number, []).append(Found(number, match[2], match[3], path))
    return sorted(found.get(number, []))


def _gather(folder: Path, found: dict[int, list[Found]]) -> None:
    for name in os.listdir(folder):
        if match := NAME.fullmatch(name):
            unit = Found(int(match[1]), match[2], match[3], folder / name)
            found.setdefault(unit.number, []).append(unit)


def _asked(plan: Plan, number: int, units: list[Found]) -> list[Found]:
    """Those of this plan; others are left from a plan that was replaced."""
    if number >= len(plan.units):
        return []
    asked = plan.inputs_hash(plan.units[number])
    return sorted(unit for unit in units if unit.asked == asked)


def intact(found: Found) -> bool:
    """Whether a unit's files hold what their names say."""
    try:
        return _content(found.rows.read_bytes(), found.cells.read_bytes()) == found.content
    except FileNotFoundError:
        return False


def tidy(plan: Plan, clock: Any = time.time) -> None:
    """Remove what processes that were killed have left half, an hour ago or before."""
    for path in (plan.folder / UNITS).glob("*/.*"):
        with contextlib.suppress(OSError):
            if LEFTOVER.fullmatch(path.name) and clock() - path.stat().st_mtime > OLD:
                path.unlink()


def read(path: Path) -> Iterator[pa.RecordBatch]:
    """Read a file in parts."""
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        yield from file.iter_batches()


def _parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _content(rows: bytes, cells: bytes) -> str:
    whole = hashlib.sha256()
    for part in (rows, cells):
        whole.update(hashlib.sha256(part).digest())
    return whole.hexdigest()[:16]
