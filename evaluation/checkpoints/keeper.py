"""Decides when a run is saved, and where it resumes."""

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

from evaluation.checkpoints import store
from evaluation.checkpoints.configuration import differences, digest, named, versions
from evaluation.checkpoints.stopping import Stop, Stopped
from evaluation.files import ResultFiles, check_output_directory
from evaluation.json_types import JsonMapping
from evaluation.scanner import Snapshot
from jaxsim.inputs import check_whole

FIVE_MINUTES = 300.0
MOST_SECONDS = 365 * 24 * 3600.0


@dataclass(frozen=True)
class Pace:
    """How often a run is saved, at ends of segments; the limit that is reached first counts.

    Attributes:
      seconds: between two saves; None for never.
      blocks: blocks of the schedule between two saves; None for no number.
    """

    seconds: float | None = FIVE_MINUTES
    blocks: int | None = None

    def check(self) -> None:
        """Check both.

        Raises:
          ValueError: seconds below zero or longer than a year, blocks below one.
        """
        if self.seconds is not None and not 0 <= self.seconds <= MOST_SECONDS:
            raise ValueError(
                f"checkpoint-every is {self.seconds:g} s; it must be from 0 s to 365 days"
            )
        if self.blocks is not None:
            check_whole("checkpoint-blocks", self.blocks, 1)


class Busy(ValueError):
    """Another process is using a directory."""


class TimeOver(Exception):
    """The time of a run is over, and it has reached a place where it may end.

    Attributes:
      snapshot: of the run.
      episodes: number that each lifetime has played.
    """

    def __init__(self, snapshot: Snapshot, episodes: int) -> None:
        super().__init__(f"time is over after episode {episodes}")
        self.snapshot, self.episodes = snapshot, episodes


def check_resumable(out: Path, files: ResultFiles) -> None:
    """Check that a directory can be resumed: it holds only what an unfinished run leaves.

    Without a checkpoint a run starts at its beginning: it ended before its first save, or while it
    wrote its results.

    Args:
      out: directory for the results; it may be missing.
      files: what the run writes there.

    Raises:
      CheckpointError: the run is over, its checkpoints are missing, or other files are there.
    """
    folder = out / store.FOLDER
    if folder.exists():
        store.newest(folder)
        return
    names = {path.name for path in out.iterdir()} if out.is_dir() else set()
    if files.marker in names:
        raise store.CheckpointError(
            f"the run in {out} is over, as {files.marker} says; there is nothing to resume"
        )
    expected = (*files.names, *files.notes)
    unknown = [n for n in names if not (n in expected or store.LEFTOVER.fullmatch(n))]
    if unknown:
        raise store.CheckpointError(
            f"{out} has no checkpoints to resume from, but {min(unknown)}, which no run has left "
            "there; start it again without --resume, with --overwrite"
        )


def check_output(out: Path, overwrite: bool, resume: bool, files: ResultFiles) -> None:
    """Check a directory for results, of a new run or of a resumed one.

    Raises:
      ValueError: both options at once, nothing to resume, a run that could be resumed, or as
        `check_output_directory`.
    """
    if overwrite and resume:
        raise ValueError("--resume continues what --overwrite removes; pass one of them")
    if resume:
        check_resumable(out, files)
    elif not overwrite and store.steps(out / store.FOLDER):
        raise ValueError(
            f"output directory {out} is not empty: it has checkpoints; pass --resume to continue "
            "from them, or --overwrite to start again"
        )
    check_output_directory(out, overwrite or resume)


@dataclass
class Checkpoints:
    """Saves a run in DIR/checkpoints, and resumes it from there; a `scanner.Keeper`.

    Attributes:
      out: DIR, the directory of the run's results.
      blocks: episodes of each block that is played.
      configuration: see `configuration.configuration`.
      files: what the run writes to DIR in the end.
      pace: how often.
      resume: whether to resume from the newest checkpoint; if not, existing ones are removed.
      keep: whether the end is saved as well, for agents that learn.
      ends: numbers of episodes after which the run may end when its time is over.
      seconds: most time of play, summed over resumed runs; None for no limit.
      stop: checked after each segment.
      say: called with lines for people: what could not be saved, and where the run resumes.
      clock: seconds that never go back.
    """

    out: Path
    blocks: Sequence[int]
    configuration: JsonMapping
    files: ResultFiles
    pace: Pace = field(default_factory=Pace)
    resume: bool = False
    keep: bool = False
    ends: Collection[int] = ()
    seconds: float | None = None
    stop: Stop = field(default_factory=Stop)
    say: Callable[[str], object] = lambda line: None
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._blocks = np.cumsum(self.blocks)
        self._started_at = self._saved_at = self.clock()
        self._blocks_saved, self._seconds_before = 0, 0.0
        self._lock: int | None = None
        self._resumed_at_end = self._was_over = self._made_folder = False

    @property
    def was_over(self) -> bool:
        """Whether the run that is resumed had ended already, with all its results."""
        return self._was_over

    @property
    def folder(self) -> Path:
        """Where the checkpoints are."""
        return self.out / store.FOLDER

    @property
    def total(self) -> int:
        """Number of episodes."""
        return int(sum(self.blocks))

    def begin(self, start: Callable[[], Snapshot]) -> Snapshot | None:
        """Return the snapshot to resume from; None for the start. See `scanner.Keeper`.

        Raises:
          CheckpointError: a checkpoint that cannot be resumed.
          ValueError: another process is using the directory.
          TimeOver: the time of the run was over already.
        """
        self._made_folder = not self.out.exists()
        self.out.mkdir(parents=True, exist_ok=True)
        self._take_lock()
        for folder in (self.out, self.folder):
            store.sweep(folder)
        if not self.resume:
            store.remove(self.folder)
            for name in self.files.notes:
                (self.out / name).unlink(missing_ok=True)
            return None
        check_resumable(self.out, self.files)
        if not self.folder.exists():
            self.say(f"nothing was saved in {self.out}: starting at the beginning")
            return None
        step = store.newest(self.folder)
        has_results = self._has_results(step)
        snapshot, episodes = self._load(step, start)
        self._resumed_at_end = episodes == self.total
        time_over = not self._resumed_at_end and self._time_over(episodes)
        self._was_over = has_results and (self._resumed_at_end or time_over)
        if time_over:
            raise TimeOver(snapshot, episodes)
        return snapshot

    def between(self, episodes: int, take: Callable[[], Snapshot]) -> None:
        """Save if a save is due. See `scanner.Keeper`.

        Raises:
          Stopped: the run was asked to end, and is saved.
          TimeOver: its time is over.
          OSError: the run was asked to end, or has ended, and could not be saved.
        """
        total = self.total
        if episodes == total:
            if self.keep:
                self._save(take(), episodes)
        elif self.stop.by:
            step = self._save(take(), episodes)
            raise Stopped(
                f"{self.stop.by}: saved {step} after episode {episodes:,} of {total:,}; to "
                "resume, give the same command with --resume"
            )
        elif self._time_over(episodes):
            snapshot = take()
            self._save(snapshot, episodes)
            raise TimeOver(snapshot, episodes)
        elif self._due(episodes):
            self._try_to_save(take(), episodes)

    def discard(self) -> None:
        """Remove the checkpoints of a run that is over.

        They stay if it was resumed at its end, which is saved only to be kept.
        """
        if not self._resumed_at_end:
            store.remove(self.folder)

    def close(self) -> None:
        """Release the lock of the directory, and remove it if this run left nothing in it."""
        if self._lock is None:
            return
        if self._made_folder:
            with contextlib.suppress(OSError):  # not empty
                self.out.rmdir()
        os.close(self._lock)
        self._lock = None

    def _has_results(self, step: Path) -> bool:
        """Whether results are of the run of a checkpoint; older ones are of a run before it."""
        marker = self.out / self.files.marker
        if not marker.exists():
            return False
        return marker.stat().st_mtime_ns >= (step / store.MANIFEST).stat().st_mtime_ns

    def _elapsed(self) -> float:
        return self._seconds_before + self.clock() - self._started_at

    def _time_over(self, episodes: int) -> bool:
        limited = self.seconds is not None and self._elapsed() >= self.seconds
        return limited and episodes in self.ends

    def _blocks_until(self, episodes: int) -> list[int]:
        """Number of episodes played in each block, up to the one that is being played."""
        begins = [0, *self._blocks.tolist()]
        return [min(end, episodes) - begin for begin, end in pairwise(begins) if begin < episodes]

    def _blocks_done(self, episodes: int) -> int:
        return int(np.searchsorted(self._blocks, episodes, side="right"))

    def _due(self, episodes: int) -> bool:
        seconds, blocks = self.pace.seconds, self.pace.blocks
        late = seconds is not None and self.clock() - self._saved_at >= seconds
        done = self._blocks_done(episodes) - self._blocks_saved
        return late or (blocks is not None and done >= blocks)

    def _try_to_save(self, snapshot: Snapshot, episodes: int) -> None:
        """Save, or report why not; the run continues without a checkpoint."""
        try:
            self._save(snapshot, episodes)
        except OSError as error:
            self._saved_at, self._blocks_saved = self.clock(), self._blocks_done(episodes)
            checkpoints = [f"checkpoint {step.name} stays" for step in store.steps(self.folder)]
            self.say(
                f"warning: not saved after episode {episodes:,}: {error.strerror or error}; "
                f"the run continues, {(checkpoints or ['there is no checkpoint yet'])[-1]}"
            )

    def _save(self, snapshot: Snapshot, episodes: int) -> Path:
        about = {
            "episodes": episodes,
            "blocks": digest(self._blocks_until(episodes)),
            "seconds": round(self._elapsed(), 3),
            "configuration": dict(self.configuration),
            "versions": versions(),
            "hash": digest([dict(self.configuration), versions()]),
            "bytes": store.bytes_of(snapshot),
        }
        step = store.save(self.folder, snapshot, about)
        self._saved_at, self._blocks_saved = self.clock(), self._blocks_done(episodes)
        return step

    def _load(self, step: Path, start: Callable[[], Snapshot]) -> tuple[Snapshot, int]:
        manifest = store.read_manifest(step)
        saved = {**manifest["configuration"], "versions": manifest["versions"]}
        changes = differences(saved, {**self.configuration, "versions": versions()})
        if changes:
            raise store.CheckpointError(f"checkpoint {step} is of another run: {named(changes)}")
        episodes, total = manifest["episodes"], self.total
        if episodes > total:
            raise store.CheckpointError(
                f"checkpoint {step} is after episode {episodes:,}, but the run is to have {total:,}"
            )
        # Checkpoints of before have none, and name a shorter last stretch among the settings.
        blocks = digest(self._blocks_until(episodes))
        if manifest.get("blocks", blocks) != blocks:
            raise store.CheckpointError(
                f"checkpoint {step} is after episode {episodes:,} of a run with other blocks; a "
                "training that has played a shorter last stretch cannot be made longer"
            )
        snapshot = store.load(step, manifest, start())
        self._seconds_before = manifest.get("seconds", 0.0)
        self._blocks_saved = self._blocks_done(episodes)
        self._started_at = self._saved_at = self.clock()
        self.say(f"resuming after episode {episodes:,} of {total:,}, from {step}")
        return snapshot, episodes

    def _take_lock(self) -> None:
        """Lock the directory until `close`, or until this process ends in any way."""
        handle = os.open(self.out, os.O_RDONLY)
        try:
            # Some file systems have no locks; a run must be possible there too.
            with contextlib.suppress(OSError):
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise Busy(
                        f"another process is at work in {self.out}; wait for it, or name another "
                        "directory"
                    ) from None
        except ValueError:
            os.close(handle)
            raise
        self._lock = handle


@dataclass(frozen=True)
class Finished:
    """A `scanner.Keeper` that returns the end of a run that was played before.

    Attributes:
      snapshot: of its end.
    """

    snapshot: Snapshot
    ends: Collection[int] = ()

    def begin(self, start: Callable[[], Snapshot]) -> Snapshot | None:
        """Return the end."""
        return self.snapshot

    def between(self, episodes: int, take: Callable[[], Snapshot]) -> None:
        """Do nothing: all episodes are played."""
