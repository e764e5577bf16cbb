"""Plays units: each one whole or not at all, tried again when it fails, in any order.

There is no lock and no coordinator. A process skips finished units, plays the others, and writes
results under names that follow from their content. Two processes that play the same unit write the
same files.
"""

import contextlib
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest
from typing import Any, Final

import jax
import pyarrow as pa
import pyarrow.compute as pc
from jax.experimental.compilation_cache import compilation_cache

from evaluation import errors, processor
from evaluation.checkpoints.configuration import versions
from evaluation.checkpoints.stopping import Stop, Stopped
from evaluation.files import CLOSED, FULL
from evaluation.scanner import MachineOptions
from evaluation.sweep import bases, notes, store
from evaluation.sweep.bases.base import METRICS, Base, PackResults, SweepFiles, complete
from evaluation.sweep.grid import SweepCell, Unit
from evaluation.sweep.planning import place_of
from evaluation.sweep.plans import Plan
from jaxsim import backend

RETRIES: Final = 2
FATAL: Final = (*FULL, *CLOSED)
"""Errors of the folder, not of a unit."""
LOOK: Final = 0.1
"""Polling interval of the main thread, which receives signals, s."""

Say = Callable[[str], object]
Progress = Callable[[int, int], object]


@dataclass
class SweepOutcome:
    """Result of a run.

    Attributes:
      played: units that were played.
      skipped: units that were finished already.
      failed: units that could not be played.
      stopped: name of the signal that ended the run; None if it came to its end.
    """

    played: int = 0
    skipped: int = 0
    failed: list[notes.Failure] = field(default_factory=list)
    stopped: str | None = None


def check_version(plan: Plan, force: bool = False) -> None:
    """Refuse to play with other versions than those that a plan was made with.

    Raises:
      ValueError: names both.
    """
    planned, now = plan.manifest["versions"], versions()
    differences = [
        f"{n} {planned.get(n)} there and {now[n]} here" for n in now if planned.get(n) != now[n]
    ]
    if differences and not force:
        raise ValueError(
            f"{plan.folder} was planned with other versions ({', '.join(differences)}), so results "
            "may differ: plan again in another folder, or pass --force to mix them"
        )


def run(
    plan: Plan,
    numbers: Iterable[int] | None = None,
    *,
    retries: int = RETRIES,
    threads: int | None = None,
    stop: Stop | None = None,
    progress: Progress | None = None,
    say: Say = lambda line: None,
) -> SweepOutcome:
    """Play units that are not finished, in this process.

    JAX is configured as for the base commands, if the process has not used it before.

    Args:
      plan: from `plans.load`, its versions checked.
      numbers: of the units; None for all.
      retries: how often a unit that fails is tried again.
      threads: units at a time; None for one a core, or for one where the base command uses the
        cores itself.
      stop: whether the process was asked to end, checked between packs.
      progress: called as `progress(cells done, cells in all)`.
      say: called with lines for people.

    Returns:
      Counts of units, and failures, which are also in `failed/`. A failed unit stops no other.

    Raises:
      OSError: the folder is full or cannot be written; what was finished stays.
    """
    processor.configure(MachineOptions())
    base, stop = bases.get(plan.base), stop or Stop()
    selection = list(range(len(plan.units)) if numbers is None else numbers)
    number = (backend.cores() if base.threads else 1) if threads is None else threads
    store.tidy(plan, selection)
    with notes.Sign(plan) as sign, contextlib.nullcontext() if base.threads else _program_cache():
        total = sum(plan.units[one].cells for one in selection) if progress else 0
        crew = _Crew(plan, base, retries, stop, sign, progress, say, total)
        remaining = crew.unfinished(selection)
        return crew.play(_interleaved(plan, remaining), max(1, min(number, len(remaining))))


@contextlib.contextmanager
def _program_cache() -> Iterator[None]:
    """Cache compiled programs on the disk during a run, unless the user has a cache.

    The scanner compiles for each call; later calls of the same program load it from the cache. Each
    process has its own folder, because machines that share a file system may differ.
    """
    config: Any = jax.config
    if config.jax_compilation_cache_dir is not None:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="jaxsim-programs-") as folder:
        config.update("jax_compilation_cache_dir", folder)
        compilation_cache.reset_cache()
        try:
            yield
        finally:
            config.update("jax_compilation_cache_dir", None)
            compilation_cache.reset_cache()


def _interleaved(plan: Plan, numbers: Sequence[int]) -> list[int]:
    """Order units so that neighbours need different programs, which compile in parallel."""
    by_group: dict[int, list[int]] = {}
    for number in numbers:
        by_group.setdefault(plan.units[number].group, []).append(number)
    rows = zip_longest(*by_group.values())
    return [number for number in chain.from_iterable(rows) if number is not None]


class _Crew:
    """Threads that play units in parallel."""

    def __init__(
        self,
        plan: Plan,
        base: Base,
        retries: int,
        stop: Stop,
        sign: notes.Sign,
        progress: Progress | None,
        say: Say,
        total: int,
    ) -> None:
        self.plan, self.base, self.retries, self.stop = plan, base, retries, stop
        self.sign, self.progress, self.say, self.total = sign, progress, say, total
        self.place = replace(place_of(plan), stop=stop)
        self.outcome, self.lock, self.cells = SweepOutcome(), threading.Lock(), 0
        self.fatal: BaseException | None = None
        groups = range(len(plan.grid.groups))
        self.compiling = {plan.grid.groups[group].program: threading.Lock() for group in groups}
        self.compiled: set[int] = set()

    def play(self, numbers: Sequence[int], threads: int) -> SweepOutcome:
        """Play units; return the result."""
        queue = deque(numbers)
        if threads == 1:
            self._work(queue)  # in this thread, which may have its own settings of JAX
        else:
            # Daemons: a second signal ends the process while they play.
            crew = [
                threading.Thread(target=self._work, args=(queue,), daemon=True)
                for _ in range(threads)
            ]
            for thread in crew:
                thread.start()
            for thread in crew:
                while thread.is_alive():
                    thread.join(LOOK)
        if self.fatal is not None:
            raise self.fatal
        self.outcome.stopped = self.stop.by
        self.outcome.failed.sort()
        return self.outcome

    def _work(self, queue: deque[int]) -> None:
        """Play units until none is left, or the process is to end."""
        while not self.stop.by and self.fatal is None:
            try:
                number = queue.popleft()
            except IndexError:
                return
            try:
                self._play_unfinished(number)
            except Stopped:
                return
            except Exception as error:  # of the folder: errors of units are recorded below
                self.fatal = self.fatal or error
                return

    def unfinished(self, numbers: Iterable[int]) -> list[int]:
        """Units that are not finished; all of them if the process is to end."""
        listing = store.listing(self.plan, numbers)
        return [n for n, files in listing if self.stop.by or not self._finished(n, files)]

    def _finished(self, number: int, files: Sequence[store.UnitFiles]) -> bool:
        """Whether a unit has an intact result; damaged results are removed."""
        damaged = [one for one in files if not store.intact(one)]
        for one in damaged:
            self.say(f"unit {number}: {one.rows.name} is damaged; it is played again")
            one.rows.unlink(missing_ok=True)
        if len(files) == len(damaged):
            return False
        self._advance(self.plan.units[number].cells)
        with self.lock:
            self.outcome.skipped += 1
        return True

    def _play_unfinished(self, number: int) -> None:
        """Play a unit, if no other process has finished it in the meantime."""
        if self._finished(number, store.finished_one(self.plan, number)):
            return
        self.sign.playing(number)
        try:
            succeeded = self._play_with_retries(number)
        finally:
            self.sign.over(number)
        if succeeded:
            notes.forget_failure(self.plan, number)
            with self.lock:
                self.outcome.played += 1

    def _play_with_retries(self, number: int) -> bool:
        """Play a unit, with retries; return whether it was played."""
        for attempt in range(1, self.retries + 2):
            try:
                self._play(self.plan.units[number])
                return True
            except Stopped:
                raise
            except Exception as error:  # an agent or a machine may raise anything
                if isinstance(error, OSError) and error.errno in FATAL:
                    raise
                if attempt <= self.retries:
                    reason = errors.one_line(error)[: notes.LONGEST]
                    self.say(f"unit {number}, attempt {attempt}: {reason}; trying again")
                    continue
                failure = notes.note_failure(self.plan, number, attempt, error)
                self.say(f"unit {number} failed, attempts: {attempt}: {failure.error}")
                with self.lock:
                    self.outcome.failed.append(failure)
        return False

    def _play(self, unit: Unit) -> None:
        program = self.plan.grid.groups[unit.group].program
        with contextlib.ExitStack() as stack:
            if program not in self.compiled:
                stack.enter_context(self.compiling[program])
            parts = []
            for part in play(self.plan, self.base, unit, self.place):
                parts.append(part)
                self.compiled.add(program)
                stack.close()
                self._advance(unit.cells // (len(unit.packs) - 1))
        rows = pa.concat_tables([part.rows for part in parts])
        metrics = pa.concat_tables([part.metrics for part in parts])
        store.write(self.plan, unit, rows, metrics)

    def _advance(self, cells: int) -> None:
        """Show that more cells are done."""
        with self.lock:
            self.cells += cells
            if self.progress:
                self.progress(min(self.cells, self.total), self.total)


def play(plan: Plan, base: Base, unit: Unit, place: SweepFiles) -> Iterator[PackResults]:
    """Play the packs of a unit, one after the other.

    Yields:
      Results of each pack, with the columns of the axes.

    Raises:
      Stopped: the process was asked to end.
    """
    for first, end in zip(unit.packs, unit.packs[1:], strict=False):
        if place.stop.by:
            raise Stopped(place.stop.by)
        cells = [plan.grid.cell(number) for number in range(first, end)]
        complete_cells = [SweepCell(cell.number, complete(base, cell.values)) for cell in cells]
        yield with_axes(plan, cells, base.play(complete_cells, place))


def with_axes(plan: Plan, cells: Sequence[SweepCell], results: PackResults) -> PackResults:
    """Add the values of the axes to the tables of a pack, behind the number of the cell."""
    names = [axis.name for axis in plan.sweep.axes]
    columns = [
        pa.array([cell.values[name] for cell in cells], pa.type_for_alias(kind))
        for name, (_, kind) in zip(names, plan.manifest["columns"], strict=True)
    ]

    def joined(table: pa.Table) -> pa.Table:
        place = pc.subtract(table["cell"], cells[0].number)
        for index, (column, (title, _)) in enumerate(
            zip(columns, plan.manifest["columns"], strict=True)
        ):
            table = table.add_column(1 + index, title, column.take(place.combine_chunks()))
        return table

    metrics = results.metrics.cast(METRICS)
    return PackResults(joined(results.rows), joined(metrics))


def share(text: str, units: int) -> range:
    """Read a share of units, "3::16" as in Python's slices.

    Raises:
      ValueError: it is not a share.
    """
    parts = text.split(":")
    try:
        numbers = [int(part) if part else None for part in parts]
    except ValueError:
        numbers = []
    if not 1 <= len(numbers) <= 3:
        raise ValueError(f"units is {text!r}; it must be a share as 3::16, a range as 10:20, or 7")
    if len(numbers) == 1:
        if numbers[0] is None or not 0 <= numbers[0] < units:
            raise ValueError(f"units is {text!r}; there are units 0 to {units - 1}")
        return range(numbers[0], numbers[0] + 1)
    if any(n is not None and n < 0 for n in numbers) or (len(numbers) == 3 and numbers[2] == 0):
        raise ValueError(f"units is {text!r}; numbers must not be negative, nor the step 0")
    return range(units)[slice(*numbers)]
