"""Progress of a sweep, from names of files alone, while other processes write them."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from evaluation.json_types import JsonObject
from evaluation.sweep import notes, store
from evaluation.sweep.plans import Plan

RECENT = 200
SHORTEST = 1.0  # s, of a span from which a rate follows
"""The rate is computed from this number of the newest finished units."""


@dataclass(frozen=True)
class SweepStatus:
    """Progress of a sweep.

    Attributes:
      name: of the sweep.
      units: in all.
      done: finished units.
      doubled: units with two results.
      running: running processes.
      failed: units that failed and have not been played since.
      rate: units finished a minute recently; None before the second unit.
      seconds_left: at that rate; None where it is not known.
    """

    name: str
    units: int
    done: int
    doubled: int
    running: tuple[notes.RunningProcess, ...]
    failed: tuple[notes.Failure, ...]
    rate: float | None
    seconds_left: float | None

    def to_json(self) -> JsonObject:
        """Return plain JSON values."""
        values = dict(vars(self))
        values["running"] = [one._asdict() | {"units": list(one.units)} for one in self.running]
        values["failed"] = [one._asdict() for one in self.failed]
        return values


def status(plan: Plan, clock: Callable[[], float] = time.time) -> SweepStatus:
    """Return the progress of a sweep.

    Args:
      plan: from `plans.load`.
      clock: seconds since the epoch.
    """
    running, failed = tuple(notes.running(plan, clock)), {f.unit: f for f in notes.failed(plan)}
    done = doubled = 0
    for number, units in store.listing(plan):
        if units:
            done += 1
            doubled += len(units) > 1
            failed.pop(number, None)
    remaining = len(plan.units) - done
    rate = _rate(plan, clock(), bool(running))
    return SweepStatus(
        str(plan.manifest["name"]),
        len(plan.units),
        done,
        doubled,
        running,
        tuple(failed.values()),
        rate,
        60 * remaining / rate if rate else (0.0 if not remaining else None),
    )


def _rate(plan: Plan, now: float, running: bool) -> float | None:
    """Units a minute, from the times of the newest files."""
    newest = store.newest(plan, RECENT)
    if len(newest) < 2:
        return None
    # While processes play, the time since the last unit counts as well.
    span = (max(now, newest[-1]) if running else newest[-1]) - newest[0]
    return 60 * (len(newest) - 1) / span if span >= SHORTEST else None
