"""Store of single-task experts (STE): one portable file per task, any number of runs, no pickle.

A file is ``<directory>/<task>.npz``: NumPy arrays of numbers and text, without pickled objects.
Array ``<run>/train`` is the column "train" of a run; runs are numbered from 0 in the order of their
addition. ``<run>/measure/<name>`` is a performance column and ``<run>/source`` the origin of the
run.
"""

import io
import os
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

import numpy as np
import numpy.typing as npt

from evaluation.files import write_whole
from evaluation.logs.home import data_folder

SUFFIX: Final = ".npz"
DAMAGE: Final = (zipfile.BadZipFile, zlib.error, RuntimeError)
"""What Python's reader of such archives raises for changed bytes, besides usual errors: the last
one for flags and methods of compression that it does not know."""


@dataclass(frozen=True)
class SteRun:
    """One expert's run of one task, n rows in played order.

    Attributes:
      measures: name -> (n,) float64 performance.
      experiences: (n,) int64 number of each row's experience.
      regimes: (n,) int32 number of each row's regime, a run of rows of one block.
      train: (n,) whether the expert learned.
      source: readable origin of the run.
    """

    measures: Mapping[str, npt.NDArray[np.float64]]
    experiences: npt.NDArray[np.int64]
    regimes: npt.NDArray[np.int32]
    train: npt.NDArray[np.bool_]
    source: str = ""

    def __post_init__(self) -> None:
        """Check that all columns are (n,).

        Raises:
          ValueError: names the column with another shape.
        """
        rows = np.shape(self.experiences)
        columns = {"regimes": self.regimes, "train": self.train, **self.measures}
        for name, column in columns.items():
            if np.shape(column) != rows or len(rows) != 1:
                raise ValueError(
                    f"column {name!r} of an STE run has the shape {np.shape(column)}; every column "
                    f"must have the {rows} of its experiences, one number per row"
                )


def default_directory(data: str | os.PathLike[str] | None = None) -> Path:
    """Directory of the store: ``taskinfo`` below `data`, $L2DATA or ``~/l2data``."""
    return (Path(data) if data else data_folder()) / "taskinfo"


def write(directory: Path, task: str, runs: Sequence[SteRun]) -> Path:
    """Store runs of a task and replace the existing ones.

    Args:
      directory: of the store; it is made if it is missing.
      task: name of the task, in the letter case of later look-ups.
      runs: at least one.

    Returns:
      The file, written completely or not at all.

    Raises:
      ValueError: no run.
    """
    if not runs:
        raise ValueError(f"no run to store for task {task!r}")
    arrays: dict[str, npt.NDArray[np.generic]] = {}
    for number, run in enumerate(runs):
        arrays[f"{number}/source"] = np.array(run.source)
        arrays[f"{number}/experiences"] = np.asarray(run.experiences, np.int64)
        arrays[f"{number}/regimes"] = np.asarray(run.regimes, np.int32)
        arrays[f"{number}/train"] = np.asarray(run.train, bool)
        for name, values in run.measures.items():
            arrays[f"{number}/measure/{name}"] = np.asarray(values, np.float64)
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, **arrays)
    path = _path(directory, task)
    write_whole(path, content.getvalue())
    return path


def append(directory: Path, task: str, runs: Sequence[SteRun]) -> Path:
    """Store runs of a task after the existing ones."""
    return write(directory, task, [*read(directory, task), *runs])


def read(directory: Path, task: str) -> tuple[SteRun, ...]:
    """All stored runs of a task, in the order of their addition; empty for none.

    Raises:
      ValueError: the file is not an STE file, or is damaged.
    """
    path = _path(directory, task)
    if not path.is_file():
        return ()
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        numbers = sorted({int(name.split("/", 1)[0]) for name in arrays})
        return tuple(_run(arrays, number) for number in numbers)
    except (KeyError, ValueError, OSError, EOFError, *DAMAGE) as error:
        raise ValueError(
            f"{path} is not a readable STE file; delete it and store the task again"
        ) from error


def _run(arrays: Mapping[str, npt.NDArray[np.generic]], number: int) -> SteRun:
    prefix = f"{number}/measure/"
    return SteRun(
        measures={
            name.removeprefix(prefix): array.astype(np.float64)
            for name, array in arrays.items()
            if name.startswith(prefix)
        },
        experiences=arrays[f"{number}/experiences"].astype(np.int64),
        regimes=arrays[f"{number}/regimes"].astype(np.int32),
        train=arrays[f"{number}/train"].astype(np.bool_),
        source=str(arrays[f"{number}/source"]),
    )


def list_tasks(directory: Path, in_order: bool = True) -> list[str]:
    """Names of the tasks that have runs.

    Args:
      directory: of the store.
      in_order: whether to sort the names; otherwise they have the order of the directory.
    """
    if not directory.is_dir():
        return []
    names = [unquote(path.name.removesuffix(SUFFIX)) for path in _files(directory)]
    return sorted(names) if in_order else names


def pickles(directory: Path) -> list[str]:
    """Names of the expert files of l2metrics in a store; they are never opened."""
    return sorted(path.name for path in directory.glob("*.pickle"))


def clear(directory: Path, tasks: Iterable[str] | None = None) -> int:
    """Delete every run of some tasks; returns the number of tasks that had runs.

    Args:
      directory: of the store.
      tasks: their names; every task if None.
    """
    names = list_tasks(directory) if tasks is None else tasks
    paths = [path for path in {_path(directory, task) for task in names} if path.is_file()]
    for path in paths:
        path.unlink()
    return len(paths)


def _files(directory: Path) -> Iterable[Path]:
    return (path for path in directory.glob(f"*{SUFFIX}") if path.is_file())


def _path(directory: Path, task: str) -> Path:
    return directory / f"{quote(task, safe='')}{SUFFIX}"
