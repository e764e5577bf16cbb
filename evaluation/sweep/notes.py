"""Notes on running processes and failed units, for people and for `status`.

No result depends on them. A killed process leaves its note, which becomes stale.
"""

import contextlib
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from evaluation import errors
from evaluation.closing import Closing
from evaluation.files import write_json
from evaluation.json_types import JsonValue
from evaluation.sweep.plans import Plan

RUNNING: Final = "running"
FAILED: Final = "failed"
EVERY: Final = 10.0
"""Interval of heartbeats, s."""
SILENT: Final = 60.0
"""Age of a heartbeat after which a process counts as gone, s."""
LONGEST: Final = 2000
"""Most characters of an error that are kept."""


class RunningProcess(NamedTuple):
    """A running process.

    Attributes:
      host: name of its machine.
      pid: of the process there.
      units: that it plays now.
      seconds: since it began.
    """

    host: str
    pid: int
    units: tuple[int, ...]
    seconds: float


class Failure(NamedTuple):
    """A unit that could not be played.

    Attributes:
      unit: its number.
      attempts: how often it was tried.
      error: the last error in one line.
      where: host and process.
      at: time, ISO 8601.
    """

    unit: int
    attempts: int
    error: str
    where: str
    at: str


class Sign(Closing):
    """Heartbeat of a running process: a file that names the units it plays.

    Args:
      plan: what is played.
    """

    def __init__(self, plan: Plan) -> None:
        self._started, self._units = time.time(), set[int]()
        self._lock, self._over = threading.Lock(), threading.Event()
        token = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._path = plan.folder / RUNNING / f"{token}.json"
        self._beat()
        self._thread = threading.Thread(target=self._repeat, daemon=True)
        self._thread.start()

    def playing(self, number: int) -> None:
        """Note that a unit begins."""
        with self._lock:
            self._units.add(number)
        self._beat()

    def over(self, number: int) -> None:
        """Note that a unit has ended."""
        with self._lock:
            self._units.discard(number)

    def close(self) -> None:
        """Stop, and remove the note."""
        self._over.set()
        self._thread.join()
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _repeat(self) -> None:
        while not self._over.wait(EVERY):
            self._beat()

    def _beat(self) -> None:
        with self._lock:
            values = {
                "host": socket.gethostname(),
                "pid": os.getpid(),
                "units": sorted(self._units),
                "began": self._started,
            }
        # A note that cannot be written must not stop the sweep.
        with contextlib.suppress(OSError):
            write_json(self._path, values)


def running(plan: Plan, clock: Callable[[], float] = time.time) -> list[RunningProcess]:
    """Processes with a recent heartbeat."""
    processes = []
    for path, values in _notes(plan.folder / RUNNING, "*.json"):
        with contextlib.suppress(OSError, LookupError, TypeError, ValueError):
            if clock() - path.stat().st_mtime < SILENT:
                seconds = clock() - float(values["began"])
                units = tuple(int(number) for number in values["units"])
                processes.append(
                    RunningProcess(str(values["host"]), int(values["pid"]), units, seconds)
                )
    return sorted(processes)


def failed(plan: Plan) -> list[Failure]:
    """Units that failed and have not been played since."""
    failures = []
    for _, values in _notes(plan.folder / FAILED, f"*-{plan.unit_hash}.json"):
        with contextlib.suppress(LookupError, TypeError, ValueError):
            failures.append(Failure(**{name: values[name] for name in Failure._fields}))
    return sorted(failures)


def note_failure(plan: Plan, number: int, attempts: int, error: BaseException) -> Failure:
    """Record that a unit failed."""
    line = errors.one_line(error)[:LONGEST]
    where = f"{socket.gethostname()} {os.getpid()}"
    failure = Failure(number, attempts, line, where, datetime.now(UTC).isoformat("T", "seconds"))
    write_json(_failure(plan, number), failure._asdict())
    return failure


def forget_failure(plan: Plan, number: int) -> None:
    """Remove the note of a failure: the unit was played after all."""
    with contextlib.suppress(OSError):
        _failure(plan, number).unlink(missing_ok=True)


def _failure(plan: Plan, number: int) -> Path:
    return plan.folder / FAILED / f"{number:07d}-{plan.unit_hash}.json"


def _notes(folder: Path, pattern: str) -> Iterator[tuple[Path, JsonValue]]:
    for path in sorted(folder.glob(pattern)) if folder.is_dir() else []:
        with contextlib.suppress(OSError, ValueError):
            yield path, json.loads(path.read_bytes())
