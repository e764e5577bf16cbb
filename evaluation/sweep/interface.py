"""The sweep from Python: `plan`, `run` with any executor, `results`."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Protocol

import pyarrow as pa

from evaluation.sweep import merging, notes, plans, playing, progress, store
from evaluation.sweep.planning import plan as _plan
from evaluation.sweep.plans import Plan
from evaluation.sweep.playing import RETRIES, Outcome

LOOK: Final = 0.1
"""s, between two looks at tasks that call nobody back."""
AHEAD: Final = 256
"""Units that an executor is given at a time, so that a million of them are not all in its queue."""


class Executor(Protocol):
    """What is asked of an executor: `submit` of `concurrent.futures`, or of Dask, submitit, MPI."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Any:
        """Have a function called somewhere; return a future."""


def plan(what: Path | str | Mapping[str, Any], out: Path | str, **options: Any) -> Plan:
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
) -> Outcome:
    """Play the units of a plan that are not finished.

    Args:
      plan: from `plan` or `load`.
      executor: plays a unit a task; None for threads of this process. Its workers must see the
        plan's folder under the same path.
      retries: how often a unit that fails, or whose worker dies, is tried again.
      force: whether other versions than those that planned may play.
      progress: called as `progress(done, in all)`: cells, or units with an executor.

    Returns:
      What came of it.

    Raises:
      ValueError: other versions.
      OSError: the folder is full or cannot be written.
    """
    playing.check_version(plan, force)
    if executor is None:
        return playing.run(plan, retries=retries, progress=progress)
    return _with_executor(plan, executor, retries, force, progress)


def play_unit(folder: str, number: int, retries: int, force: bool) -> tuple[str, str]:
    """Play one unit in whatever process this is; the task that executors are given.

    Returns:
      ("played" or "skipped" or "failed" or "stopped", the error of a unit that failed).
    """
    out = playing.run(_opened(folder, force), [number], retries=retries, threads=1)
    if out.failed:
        return "failed", out.failed[0].error
    return ("stopped" if out.stopped else "played" if out.played else "skipped"), ""


@lru_cache(maxsize=8)
def _opened(folder: str, force: bool) -> Plan:
    opened = plans.load(folder)
    playing.check_version(opened, force)
    return opened


def _with_executor(
    plan: Plan,
    executor: Executor,
    retries: int,
    force: bool,
    progress: Callable[[int, int], object] | None,
) -> Outcome:
    out, total = Outcome(), len(plan.units)
    left = _left(plan, out)
    tried: dict[int, int] = {}
    waiting: dict[Any, int] = {}

    def send(number: int) -> None:
        tried[number] = tried.get(number, 0) + 1
        task = executor.submit(play_unit, str(plan.folder.absolute()), number, retries, force)
        waiting[task] = number

    def fill() -> None:
        with suppress(StopIteration):
            while len(waiting) < AHEAD:
                send(next(left))

    fill()
    while waiting:
        for task in _over(waiting):
            number = waiting.pop(task)
            try:
                came, _ = task.result()
            except Exception as died:  # of the worker, whatever executors call it
                if tried[number] <= retries and _usable(died):
                    send(number)
                    continue
                out.failed.append(notes.note_failure(plan, number, tried[number], died))
                continue
            if came == "failed":
                out.failed += [one for one in notes.failed(plan) if one.unit == number]
            else:
                out.played += came == "played"
                out.skipped += came == "skipped"
            tried.pop(number)
        if progress:
            progress(out.played + out.skipped + len(out.failed), total)
        fill()
    out.failed.sort()
    return out


def _left(plan: Plan, out: Outcome) -> Iterator[int]:
    """Units that are not finished and whole; finished ones are counted."""
    for number, units in store.listing(plan):
        if any(map(store.intact, units)):
            out.skipped += 1
        else:
            yield number


def _over(tasks: Collection[Any]) -> Iterable[Any]:
    """Tasks that are over, at least one: futures wake this thread, jobs of submitit are asked."""
    if all(isinstance(task, Future) for task in tasks):
        return wait(tasks, return_when=FIRST_COMPLETED).done
    while not (over := [task for task in tasks if task.done()]):
        time.sleep(LOOK)
    return over


def _usable(error: Exception) -> bool:
    """Whether an executor may take more tasks: a pool of processes is broken once one has died."""
    return "BrokenProcessPool" not in type(error).__name__


class Results:
    """Merged results of a sweep, read when they are asked for.

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
        """The rows of all episodes, some at a time."""
        return store.read(self.folder / merging.ROWS)

    def to_pandas(self) -> Any:
        """`cells` as a data frame."""
        return self.cells().to_pandas()

    def table(self, rows: str, columns: str | None = None, metric: str | None = None) -> Any:
        """A metric over one or two axes; see `evaluation.sweep.tables.table`."""
        from evaluation.sweep import tables

        return tables.table(self.folder, rows, columns, metric)


def merge(plan: Plan, out: Path | None = None) -> Results:
    """Join the results of all units; see `evaluation.sweep.merging.merge`."""
    return Results(merging.merge(plan, out).folder)


def results(plan: Plan | Path | str) -> Results:
    """Return merged results; they are merged now if they were not.

    Raises:
      ValueError: units are missing.
    """
    found = plan if isinstance(plan, Plan) else plans.load(plan)
    folder = found.folder / merging.MERGED
    return Results(folder) if (folder / merging.MARKER).exists() else merge(found)


def status(plan: Plan) -> progress.Status:
    """Look at how far a sweep is."""
    return progress.status(plan)
