"""Results from files: Parquet as `Results.write` makes it, or the generator's CSV."""

import csv
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from evaluation.json_types import JsonValue
from evaluation.metrics.novelty.characterisation import KINDS
from evaluation.records import NOT_OURS
from evaluation.sailon.experiment import loads
from evaluation.sailon.results import (
    COLUMNS,
    METADATA_KEY,
    NEEDED,
    PROBABILITIES,
    Results,
    complete_rows,
)
from evaluation.sailon.text import ExperimentError, read

T = TypeVar("T")


def load_results(path: Path) -> Results:
    """Read results: a Parquet file of `Results.write`, or a CSV file of the generator's analysis.

    Raises:
      ValueError: the file is neither, or is damaged; an `ExperimentError` names line and column.
    """
    if path.suffix.lower() == ".csv":
        return read_csv(read(path), str(path))
    try:
        return _from_table(pq.read_table(path, page_checksum_verification=True), str(path))
    except FileNotFoundError as error:
        raise ValueError(f"{path} does not exist") from error
    except (pa.ArrowException, OSError, *NOT_OURS) as error:
        raise ValueError(f"{path} is not a file of SAIL-ON results, or is damaged") from error


def _from_table(table: pa.Table, source: str) -> Results:
    """Rebuild results; any exception means that `Results.table` did not make the table."""
    metadata = json.loads((table.schema.metadata or {})[METADATA_KEY])
    text = metadata.pop("experiment")
    experiment = None if text is None else loads(text, source)
    kinds = {
        name: kind
        for name, kind in COLUMNS.items()
        if name != "sample" or name in table.column_names  # not in files of earlier versions
    }
    rows = {name: _column(table[name], kind) for name, kind in kinds.items()}
    flat = table[PROBABILITIES].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    rows[PROBABILITIES] = flat.reshape(-1, KINDS)
    return Results(complete_rows(rows, table.num_rows), experiment, metadata)


def _column(column: pa.ChunkedArray, kind: type[np.generic]) -> np.ndarray:
    """Values of a column, of the type that `Results.table` writes."""
    values: np.ndarray = column.to_numpy(zero_copy_only=False)
    if values.dtype != (object if kind is np.str_ else kind) or column.null_count:
        raise ValueError(f"a column of {column.type} with {column.null_count} empty cells")
    return values


def read_csv(content: str, source: str) -> Results:
    """Read the text of a CSV file of the generator's analysis.

    Raises:
      ExperimentError: a column is missing, or a cell has the wrong type.
    """
    lines = list(csv.reader(io.StringIO(content)))
    header = lines[0] if lines else []
    missing = [name for name in NEEDED if name not in header]
    if missing:
        reason = f"column {missing[0]!r} is missing; needed: {', '.join(NEEDED)}"
        raise ExperimentError(source, 1, 1, reason)
    body = [(number, cells) for number, cells in enumerate(lines[1:], 2) if cells]
    for number, line in body:
        if len(line) != len(header):
            reason = f"{len(line)} cells for the {len(header)} columns of the first line"
            raise ExperimentError(source, number, 1, reason)
    rows: dict[str, np.ndarray] = {}
    for place, name in enumerate(header):
        cells = [(number, line[place].strip()) for number, line in body]
        if name == PROBABILITIES:
            probabilities = [_parsed(source, n, name, _probabilities, cell) for n, cell in cells]
            rows[name] = np.array(probabilities, np.float64).reshape(len(cells), KINDS)
        elif name in COLUMNS:
            kind = COLUMNS[name]
            values = [_parsed(source, n, name, _READERS[kind], cell) for n, cell in cells]
            rows[name] = np.array(values, object if kind is np.str_ else kind)
    if "hint_level" not in rows:
        rows["hint_level"] = np.full(len(body), -1, np.int32)
    if "trial_id" not in rows:
        rows["trial_id"] = rows["trial_index"]
    if not body:
        raise ExperimentError(source, 1, 1, "there is no row below the first line")
    return Results(complete_rows(rows, len(body)))


def _parsed(source: str, line: int, name: str, parse: Callable[[str], T], cell: str) -> T:
    try:
        return parse(cell)
    except ValueError as error:
        raise ExperimentError(source, line, 1, f"{name} is {cell[:40]!r}; {error}") from error


def _truth(cell: str) -> bool:
    words = {"true": True, "1": True, "false": False, "0": False}
    if cell.lower() not in words:
        raise ValueError("it must be True or False")
    return words[cell.lower()]


def _whole(cell: str) -> int:
    try:
        number = int(cell or 0)
    except ValueError as error:
        raise ValueError("it must be a whole number") from error
    if abs(number) >= 2**31:
        raise ValueError("it must be a whole number of at most 31 bits")
    return number


def _real(cell: str) -> float:
    try:
        return float(cell or "nan")
    except ValueError as error:
        raise ValueError("it must be a number") from error


def _probabilities(cell: str) -> list[float]:
    numbers = [_real(part) for part in cell.replace(",", " ").split()]
    if numbers and len(numbers) != KINDS:
        raise ValueError(f"it must be {KINDS} numbers")
    return numbers or [np.nan] * KINDS


_READERS: Mapping[type[np.generic], Callable[[str], JsonValue]] = {
    np.int32: _whole,
    np.float64: _real,
    np.bool_: _truth,
    np.str_: str,
}
