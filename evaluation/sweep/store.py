"""Result files of units, named by a hash of the units and a hash of the content.

    units/0012/0012345-<hash of the units>-<hash of the content>.cells.parquet
    units/0012/0012345-<hash of the units>-<hash of the content>.rows.parquet

Both are written whole, the second last: if it exists, the unit is finished. A unit that is played
twice, or by two processes at once, gets the same names with the same bytes.
"""

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

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
"""Age after which a partial file of a killed process is removed, s."""


class UnitFiles(NamedTuple):
    """A finished unit on the disk.

    Attributes:
      number: of the unit.
      unit_hash: of its plan.
      content: hash of both files.
      folder: with both files.
    """

    number: int
    unit_hash: str
    content: str
    folder: str

    @property
    def rows(self) -> Path:
        """Path of the file with the rows."""
        return Path(self.folder, f"{self.number:07d}-{self.unit_hash}-{self.content}{ROWS}")

    @property
    def cells(self) -> Path:
        """Path of the file with the metrics."""
        return self.rows.with_name(self.rows.name.removesuffix(ROWS) + CELLS)


def folder_of(plan: Plan, number: int) -> Path:
    """Folder of a unit's files."""
    return plan.folder / UNITS / f"{number // IN_A_FOLDER:04d}"


def write(plan: Plan, unit: Unit, rows: pa.Table, metrics: pa.Table) -> UnitFiles:
    """Write a finished unit."""
    contents = [_parquet(rows), _parquet(metrics)]
    content = _content(*contents)
    folder, unit_hash = folder_of(plan, unit.number), plan.unit_hash
    name = f"{unit.number:07d}-{unit_hash}-{content}"
    write_whole(folder / f"{name}{CELLS}", contents[1])
    write_whole(folder / f"{name}{ROWS}", contents[0])
    return UnitFiles(unit.number, unit_hash, content, str(folder))


def listing(
    plan: Plan, numbers: Iterable[int] | None = None
) -> Iterator[tuple[int, list[UnitFiles]]]:
    """Results of units, by the names of their files.

    A folder is listed once for consecutive units and then dropped: memory does not grow with the
    number of units.

    Args:
      plan: from `plans.load`.
      numbers: of the units; None for all.

    Yields:
      (number, its results) in the order of the numbers: none if the unit is not finished, several
      if their contents differ.
    """
    folder_number, by_number = -1, dict[int, list[UnitFiles]]()
    for number in range(len(plan.units)) if numbers is None else numbers:
        if number // IN_A_FOLDER != folder_number:
            folder_number, by_number = number // IN_A_FOLDER, {}
            for unit in sorted(_finished(str(folder_of(plan, number)), plan)):
                by_number.setdefault(unit.number, []).append(unit)
        yield number, by_number.get(number, [])


def finished_one(plan: Plan, number: int) -> list[UnitFiles]:
    """Results of one unit."""
    ((_, units),) = listing(plan, [number])
    return units


def unfinished(plan: Plan) -> list[int]:
    """Units without a result."""
    return [number for number, units in listing(plan) if not units]


def newest(plan: Plan, number: int) -> list[float]:
    """Times at which the newest finished units were written, s since the epoch, ascending.

    Reads the most recently changed folders first, until there are enough.
    """
    times: list[float] = []
    with contextlib.suppress(FileNotFoundError), os.scandir(plan.folder / UNITS) as folders:
        changed = sorted(((e.stat().st_mtime, e.path) for e in folders if e.is_dir()), reverse=True)
        for _, folder in changed:
            for unit in _finished(folder, plan):
                with contextlib.suppress(OSError):  # replaced just now
                    times.append(unit.rows.stat().st_mtime)
            if len(times) >= number:
                break
    return sorted(times)[-number:]


def _finished(folder: str, plan: Plan) -> Iterator[UnitFiles]:
    """Finished units in a folder; files of a plan that was replaced are ignored."""
    unit_hash, units = plan.unit_hash, len(plan.units)
    for name in _names(folder):
        if name.endswith(ROWS) and (match := NAME.fullmatch(name)) and match[2] == unit_hash:
            number = int(match[1])
            if number < units:
                yield UnitFiles(number, unit_hash, match[3], folder)


def _names(folder: str | Path) -> list[str]:
    """Names in a folder; none where it is missing."""
    with contextlib.suppress(FileNotFoundError):
        return os.listdir(folder)
    return []


def contents(unit: UnitFiles) -> tuple[bytes, bytes] | None:
    """Rows and metrics of a unit as bytes of Parquet; None if its files are damaged or gone."""
    try:
        rows, cells = unit.rows.read_bytes(), unit.cells.read_bytes()
    except FileNotFoundError:
        return None
    return (rows, cells) if _content(rows, cells) == unit.content else None


def intact(unit: UnitFiles) -> bool:
    """Whether a unit's files hold what their names say."""
    return contents(unit) is not None


def tidy(plan: Plan, numbers: Iterable[int], clock: Callable[[], float] = time.time) -> None:
    """Remove partial files of killed processes that are older than an hour.

    Args:
      plan: from `plans.load`.
      numbers: units whose folders are searched.
      clock: s since the epoch.
    """
    for folder in {folder_of(plan, number) for number in {n - n % IN_A_FOLDER for n in numbers}}:
        for name in _names(folder):
            with contextlib.suppress(OSError):
                path = folder / name
                if LEFTOVER.fullmatch(name) and clock() - path.stat().st_mtime > OLD:
                    path.unlink()


def read(source: Path | bytes) -> Iterator[pa.RecordBatch]:
    """Read Parquet in parts, from a file or from its bytes."""
    where = source if isinstance(source, Path) else pa.BufferReader(source)
    with pq.ParquetFile(where, page_checksum_verification=True) as file:
        # Files of units are small: threads cost more than they decode.
        yield from file.iter_batches(use_threads=False)


def _parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    options = {"compression": "zstd", "write_page_checksum": True, "write_statistics": False}
    pq.write_table(table, sink, **options)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _content(rows: bytes, cells: bytes) -> str:
    whole = hashlib.sha256()
    for part in (rows, cells):
        whole.update(hashlib.sha256(part).digest())
    return whole.hexdigest()[:16]
