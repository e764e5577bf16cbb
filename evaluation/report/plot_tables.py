"""Reader of the tables of episodes that l2metrics and this package save, for plots."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.feather

SUFFIX: Final = ".feather"
DATA_ENDING: Final = "_data"

_NO_MEASURE: Final = frozenset(
    {
        "block_num",
        "block_subtype",
        "block_type",
        "episode_step_count",
        "exp_num",
        "exp_status",
        "regime_num",
        "run_id",
        "task_name",
        "task_params",
        "timestamp",
        "worker_id",
    }
)
_PROCESSED: Final = ("_filtered", "_normalized", "_raw", "_smoothed")


@dataclass(frozen=True)
class RunTable:
    """One run to plot.

    Attributes:
      name: of the run.
      data: one row per episode, in the format of `plot_run`.
      regimes: one row per regime; None if there is no file of them.
      measure: the performance column.
    """

    name: str
    data: pa.Table
    regimes: pa.Table | None
    measure: str


def read_tables(path: Path, measure: str | None = None) -> Iterator[RunTable]:
    """Read a `<name>_data.feather` with its `<name>_regime.tsv`, or a `ll_metrics_data.feather`.

    Args:
      path: of the table of episodes.
      measure: its performance column; if None, the only column that can be one.

    Yields:
      One run, or each run of a table with the column run_id.

    Raises:
      ValueError: a file cannot be read or is not such a table, or there is not exactly one
        performance column.
    """
    data = _read_feather(path)
    measure = measure or _measure(path, data)
    name = path.name.removesuffix(SUFFIX).removesuffix(DATA_ENDING)
    if "run_id" in data.column_names:
        for run in pc.unique(data["run_id"]).to_pylist():
            yield RunTable(str(run), data.filter(pc.equal(data["run_id"], run)), None, measure)
        return
    regimes = path.with_name(f"{name}_regime.tsv")
    yield RunTable(name, data, _read_tsv(regimes) if regimes.is_file() else None, measure)


def _read_feather(path: Path) -> pa.Table:
    try:
        return pyarrow.feather.read_table(path, memory_map=False)
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror or error}") from error
    except pa.ArrowException as error:
        raise ValueError(f"{path}: is not a feather table, or is damaged") from error


def _read_tsv(path: Path) -> pa.Table:
    try:
        tabs = pyarrow.csv.ParseOptions(delimiter="\t")
        return pyarrow.csv.read_csv(path, parse_options=tabs)
    except (OSError, pa.ArrowException) as error:
        raise ValueError(f"{path}: is not a table of regimes: {error}") from error


def _measure(path: Path, data: pa.Table) -> str:
    """The performance column: the one with a `_raw` column beside it, or the only numeric one."""
    names = data.column_names
    raw = [name for name in names if f"{name}_raw" in names]
    numeric = [
        name
        for name in names
        if name not in _NO_MEASURE
        and not name.endswith(_PROCESSED)
        and (pa.types.is_floating(data[name].type) or pa.types.is_integer(data[name].type))
    ]
    candidates = raw or numeric
    if len(candidates) != 1:
        listed = ", ".join(candidates) or "none"
        raise ValueError(f"{path}: name the performance column with --measure; there is {listed}")
    return candidates[0]
