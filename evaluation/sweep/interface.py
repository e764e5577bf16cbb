"""The sweep from Python: `plan`, `run` with any executor, `results`."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from evaluation.json_types import JsonMapping
from evaluation.sweep import merging, notes, plans, playing, progress, store
from evaluation.sweep.planning import plan as _plan
from evaluation.sweep.plans import Plan
from evaluation.sweep.playing import RETRIES, SweepOutcome

if TYPE_CHECKING:
    import pandas as pd

    from evaluation.sweep.means import MeanTable

LOOK: Final = 0.1
"""Polling interval of tasks without callbacks, s."""
AHEAD: Final = 256
"""Most units in an executor's queue at a time; a sweep may have a million."""


class Executor(Protocol):
    """An object with `submit`, as in `concurrent.futures`, Dask, submitit or MPI."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Any:
        """Schedule a call of a function; return a future."""


def plan(what: Path | str | JsonMapping, out: Path | str, **options: Any) -> Plan:
    """Plan a sweep, and write the plan.

    Args:
      what: a sweep file; or its values as a dictionary, see docs/sweeps.md.
      out: folder of the plan and of its results.
      **options: `minutes`, `rate`, `measure` and `force`, as `evaluation.sweep.planning.plan`.

    Raises:
      ValueError: says what to change; nothing is written.
    """
    return _plan(what, out, **options)


def load(folder: Path | str) -> Plan:
    """Open the folder of a plan.

    Raises:
      ValueError: there is none.
    """
    return plans.load(folder)


def run(
    plan: Plan,
    *,
    executor: Executor | None = None,
    retries: int = RETRIES,
    force: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> SweepOutcome:
    """Play the units of a plan that are not finished.

    Args:
      plan: from `plan` or `load`.
      executor: plays one unit per task; None for threads of this process. Its workers must see
        the plan's folder under the same path.
      retries: how often a unit that fails, or whose worker dies, is tried again.
      force: whether versions may differ from those of the plan.
      progress: called as `progress(done, in all)`: cells, or units with an executor.

    Returns:
      Counts of units, and failures.

    Raises:
      ValueError: other versions.
      OSError: the folder is full or cannot be written.
    """
    playing.check_version(plan, force)
    if executor is None:
        return playing.run(plan, retries=retries, progress=progress)
    return _with_executor(plan, executor, retries, force, progress)


def play_unit(folder: str, number: int, retries: int, force: bool) -> tuple[str, str]:
    """Play one unit in the calling process; the task of executors.

    Returns:
      ("played" or "skipped" or "failed" or "stopped", the error of a unit that failed).
    """
    out = playing.run(_load(folder, force), [number], retries=retries, threads=1)
    if out.failed:
        return "failed", out.failed[0].error
    return ("stopped" if out.stopped else "played" if out.played else "skipped"), ""


@lru_cache(maxsize=8)
def _load(folder: str, force: bool) -> Plan:
    plan = plans.load(folder)
    playing.check_version(plan, force)
    return plan


def _with_executor(
    plan: Plan,
    executor: Executor,
    retries: int,
    force: bool,
    progress: Callable[[int, int], object] | None,
) -> SweepOutcome:
    out, total = SweepOutcome(), len(plan.units)
    remaining = _unfinished(plan, out)
    attempts: dict[int, int] = {}
    waiting: dict[Any, int] = {}

    def send(number: int) -> None:
        attempts[number] = attempts.get(number, 0) + 1
        task = executor.submit(play_unit, str(plan.folder.absolute()), number, retries, force)
        waiting[task] = number

    def fill() -> None:
        with suppress(StopIteration):
            while len(waiting) < AHEAD:
                send(next(remaining))

    fill()
    while waiting:
        for task in _wait(waiting):
            number = waiting.pop(task)
            try:
                outcome, _ = task.result()
            except Exception as error:  # of the worker; executors name it differently
                if attempts[number] <= retries and _usable(error):
                    send(number)
                    continue
                out.failed.append(notes.note_failure(plan, number, attempts[number], error))
                continue
            if outcome == "failed":
                out.failed += [one for one in notes.failed(plan) if one.unit == number]
            else:
                out.played += outcome == "played"
                out.skipped += outcome == "skipped"
            attempts.pop(number)
        if progress:
            progress(out.played + out.skipped + len(out.failed), total)
        fill()
    out.failed.sort()
    return out


def _unfinished(plan: Plan, out: SweepOutcome) -> Iterator[int]:
    """Yield units without an intact result; count the others as skipped."""
    for number, units in store.listing(plan):
        if any(map(store.intact, units)):
            out.skipped += 1
        else:
            yield number


def _wait(tasks: Collection[Any]) -> Iterable[Any]:
    """Wait for at least one task and return those done; jobs of submitit are polled."""
    if all(isinstance(task, Future) for task in tasks):
        return wait(tasks, return_when=FIRST_COMPLETED).done
    while not (done := [task for task in tasks if task.done()]):
        time.sleep(LOOK)
    return done


def _usable(error: Exception) -> bool:
    """Whether an executor can take more tasks: a process pool breaks when one process dies."""
    return "BrokenProcessPool" not in type(error).__name__


class SweepResults:
    """Merged results of a sweep, read on demand.

    Attributes:
      folder: with rows.parquet, cells.parquet and sweep.json.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def cells(self) -> pa.Table:
        """Every metric of every cell with its interval, one row each."""
        import pyarrow.parquet as pq

        return pq.read_table(self.folder / merging.CELLS)

    def rows(self) -> Iterator[pa.RecordBatch]:
        """The rows of all episodes, in batches."""
        return store.read(self.folder / merging.ROWS)

    def to_pandas(self) -> "pd.DataFrame":
        """`cells` as a data frame."""
        return self.cells().to_pandas()

    def table(
        self, rows: str, columns: str | None = None, metric: str | None = None
    ) -> "MeanTable":
        """A metric over one or two axes; see `evaluation.sweep.tables.table`."""
        from evaluation.sweep import tables

        return tables.table(self.folder, rows, columns, metric)


def merge(plan: Plan, out: Path | None = None) -> SweepResults:
    """Join the results of all units; see `evaluation.sweep.merging.merge`."""
    return SweepResults(merging.merge(plan, out).folder)


def results(plan: Plan | Path | str) -> SweepResults:
    """Return merged results; merge them first if necessary.

    Results of a plan that was replaced since they were merged do not count.

    Raises:
      ValueError: units are missing.
    """
    if not isinstance(plan, Plan):
        plan = plans.load(plan)
    folder = plan.folder / merging.MERGED
    return SweepResults(folder) if merging.is_of(plan, folder) else merge(plan)


def status(plan: Plan) -> progress.SweepStatus:
    """Return the progress of a sweep."""
    return progress.status(plan)
