"""Run of a syllabus by an agent over many lifetimes, with result files."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from evaluation import scanner
from evaluation.arguments import command_line
from evaluation.checkpoints.keeper import Checkpoints
from evaluation.checkpoints.loading import SavedAgent
from evaluation.checkpoints.playing import Playing
from evaluation.checkpoints.stopping import Stop
from evaluation.files import ResultFiles, results, write_json, write_whole
from evaluation.l2m.syllabus import load
from evaluation.logs.export import (
    FORMATS,
    NOTE,
    Logging,
    check_logged,
    remove_note,
    write_lifetimes,
)
from evaluation.metrics import DEFAULT_WINDOW
from evaluation.metrics.registry import MetricRow
from evaluation.records import MEASURES, Records
from evaluation.report import Report, html, summarise_records
from evaluation.report.custom_metrics import check_before_play
from evaluation.schedule import Schedule
from evaluation.tasks import Tasks


@dataclass(frozen=True, kw_only=True)
class SyllabusRun(Playing):
    """Settings of a run and of its files, in addition to those of `Playing`.

    Attributes:
      syllabus: path of the syllabus, or several that one lifetime plays in sequence.
      measure: column that metrics are computed from.
      window: smoothing window of the metrics, odd.
      log_lifetimes: lifetimes that are also written as logs.
      log_format: format of these logs, one of `evaluation.logs.export.FORMATS`.
      worker: number of the shard, from 0; None for a whole run.
      rows: custom metrics, computed as well.
      logging: logs in the folder of lifelong-learning data; None for none.
      keep_memory: whether to keep the last checkpoint, so that another run can continue from it.
    """

    syllabus: Path | tuple[Path, ...]
    measure: str = "performance"
    window: int = DEFAULT_WINDOW
    log_lifetimes: tuple[int, ...] = ()
    log_format: str = "l2logger"
    worker: int | None = None
    rows: tuple[MetricRow, ...] = ()
    logging: Logging | None = None
    keep_memory: bool = False
    files = ResultFiles(
        "report.json", ("schedule.json", "records.parquet", "report.html", "logs"), (NOTE,)
    )

    def checked_schedule(self) -> Schedule:
        """Check all settings before anything is traced or written.

        Raises:
          ValueError: says what to change; a `SyllabusError` for the syllabus itself.
        """
        schedule = Schedule.joined([load(path) for path in self.syllabi])
        if self.measure not in MEASURES:
            raise ValueError(
                f"measure is {self.measure!r}; it must be one of {', '.join(MEASURES)}"
            )
        if self.window < 1 or self.window % 2 == 0:
            raise ValueError(f"window is {self.window}; it must be an odd number from 1")
        logged = () if self.logging is None else self.logging.lifetimes
        check_logged((*self.log_lifetimes, *logged), self.first_lifetime, self.lifetimes)
        if self.log_format not in FORMATS:
            raise ValueError(
                f"log-format is {self.log_format!r}; it must be {' or '.join(FORMATS)}"
            )
        self.check_room(schedule.num_episodes, self.check_playing(schedule))
        levels = Tasks.of(schedule).novelty_levels
        if self.rows:
            check_before_play(self.rows, schedule, levels, self.measure)
        return schedule

    @property
    def syllabi(self) -> tuple[Path, ...]:
        """The syllabi that one lifetime plays in sequence."""
        return self.syllabus if isinstance(self.syllabus, tuple) else (self.syllabus,)

    @property
    def command(self) -> str:
        """The command that repeats the run, without paths of the machine."""
        options = (
            ("--agent", self.agent, None),
            ("--lifetimes", self.lifetimes, None),
            ("--seed", self.seed, None),
            ("--lifetime-idx", self.first_lifetime, 0),
            ("--width", self.width, 1),
            ("--measure", self.measure, "performance"),
            ("--window", self.window, DEFAULT_WINDOW),
            ("--out", self.out.name, None),
        )
        return command_line(["run", *(path.name for path in self.syllabi)], options)

    def keeper(
        self, schedule: Schedule, player: SavedAgent, stop: Stop, say: Callable[[str], object]
    ) -> Checkpoints:
        """Return the checkpoints of the run.

        Args:
          schedule: of the run.
          player: from `player()`.
          stop: whether the run was asked to end.
          say: called with lines for the user.
        """
        configuration = self.configuration(schedule, player)
        return Checkpoints(
            self.out,
            schedule.block_counts().tolist(),
            configuration,
            self.files,
            self.pace,
            resume=self.resume,
            keep=self.keep_memory,
            stop=stop,
            say=say,
        )


def run(
    job: SyllabusRun,
    schedule: Schedule,
    progress: scanner.Progress | None = None,
    stop: Stop | None = None,
    say: Callable[[str], object] = lambda line: None,
) -> Report:
    """Play a schedule, compute its metrics and write the results.

    Args:
      job: what to run.
      schedule: from `job.checked_schedule()`.
      progress: called as `progress(episodes done, total episodes)`.
      stop: whether the run was asked to end; checked after each segment.
      say: called with lines for the user about checkpoints.

    Returns:
      The report. `out` then has records.parquet, report.json, schedule.json and, on request, a log
      directory per lifetime under logs/.

    Raises:
      Stopped: the run was asked to end, and is saved.
      CheckpointError: there is no checkpoint from which the run can continue.
      OSError: a file could not be written.
    """
    player = job.player(schedule)
    keeper = job.keeper(schedule, player, stop or Stop(), say)
    with contextlib.closing(keeper):
        records = job.play(schedule, player, keeper, progress)
        if job.worker is not None:
            records = replace(records, metadata={**records.metadata, "worker": job.worker})
        report = summarise_records(records, job.measure, job.window, job.seed, job.rows)
        if job.logging is not None and not keeper.was_over:
            job.logging.write(records, job.out)
        _write(job, records, report)
        if not job.keep_memory:
            keeper.discard()
        remove_note(job.out)
    return report


def _write(job: SyllabusRun, records: Records, report: Report) -> None:
    """Write all files; the report comes last and marks the results as complete."""
    with results(job.out, job.files.marker) as folder:
        write_whole(folder / "schedule.json", records.schedule.dumps())
        records.write(folder / "records.parquet")
        write_lifetimes(records, folder / "logs", job.log_format, job.log_lifetimes)
        values = report.to_json()
        write_whole(folder / "report.html", html.of_run(values, records, job.command, job.out.name))
        write_json(folder / job.files.marker, values)
