"""The main job: a syllabus played by an agent over many lifetimes, with files to show for it."""

import contextlib
import math
from dataclasses import dataclass, field
from pathlib import Path

import jax

from evaluation import scanner
from evaluation.files import check_output_directory, write_json, write_whole
from evaluation.l2m.syllabus import load
from evaluation.logs.export import FORMATS, write_lifetimes
from evaluation.metrics import DEFAULT_WINDOW
from evaluation.records import MEASURES, Records
from evaluation.report import Report, summarise_records
from evaluation.schedule import Schedule
from evaluation.tasks import Tasks
from jaxsim import agents, backend


@dataclass(frozen=True)
class Job:
    """What to run and what to write.

    Attributes:
      syllabus: path of the syllabus.
      out: directory for the results.
      agent: name of a built-in agent.
      lifetimes: number of lifetimes.
      seed: root of all randomness, of the bootstrap as well.
      first_lifetime: number of the first lifetime, to play a part of a longer run again.
      width: episodes of a block that a lifetime plays side by side, see `scanner.play`.
      measure: column that metrics are computed from.
      window: smoothing window of the metrics, odd.
      overwrite: whether files in `out` may be replaced.
      log_lifetimes: lifetimes that are also written as logs.
      log_format: of these, one of `evaluation.logs.export.FORMATS`.
      options: how the run is spread over the machine.
    """

    syllabus: Path
    out: Path
    agent: str = "pd"
    lifetimes: int = 256
    seed: int = 0
    first_lifetime: int = 0
    width: int = 1
    measure: str = "performance"
    window: int = DEFAULT_WINDOW
    overwrite: bool = False
    log_lifetimes: tuple[int, ...] = ()
    log_format: str = "l2logger"
    options: scanner.Options = field(default_factory=scanner.Options)

    def checked_schedule(self) -> Schedule:
        """Check everything that can be wrong before anything is traced or written.

        Raises:
          ValueError: says what to change; a `SyllabusError` for the syllabus itself.
        """
        schedule = load(self.syllabus)
        agents.get(self.agent)
        scanner.check_lifetimes(self.lifetimes, self.first_lifetime)
        scanner.check_width(self.width)
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"seed is {self.seed}; it must be from 0 to {2**32 - 1}")
        if self.measure not in MEASURES:
            raise ValueError(
                f"measure is {self.measure!r}; it must be one of {', '.join(MEASURES)}"
            )
        if self.window < 1 or self.window % 2 == 0:
            raise ValueError(f"window is {self.window}; it must be an odd number from 1")
        first, last = self.first_lifetime, self.first_lifetime + self.lifetimes - 1
        for lifetime in self.log_lifetimes:
            if not first <= lifetime <= last:
                raise ValueError(f"log-lifetime is {lifetime}; it must be from {first} to {last}")
        if self.log_format not in FORMATS:
            raise ValueError(
                f"log-format is {self.log_format!r}; it must be {' or '.join(FORMATS)}"
            )
        check_output_directory(self.out, self.overwrite)
        self.options.check()
        Tasks.of(schedule)
        return schedule


def run(job: Job, schedule: Schedule, progress: scanner.Progress | None = None) -> Report:
    """Play a schedule, compute its metrics and write the results.

    Args:
      job: what to run.
      schedule: from `job.checked_schedule()`.
      progress: called as `progress(episodes done, episodes in all)`.

    Returns:
      The report. `out` then holds records.parquet, report.json, schedule.json and, on request,
      a log directory per lifetime under logs/.
    """
    records = scanner.play(
        schedule,
        agents.get(job.agent),
        lifetimes=job.lifetimes,
        seed=job.seed,
        first_lifetime=job.first_lifetime,
        width=job.width,
        options=job.options,
        progress=progress,
    )
    report = summarise_records(records, job.measure, job.window, job.seed)
    _write(job, records, report)
    return report


def _write(job: Job, records: Records, report: Report) -> None:
    """Write all files; the report comes last, so that its presence means the rest is there."""
    (job.out / "report.json").unlink(missing_ok=True)
    write_whole(job.out / "schedule.json", records.schedule.dumps())
    records.write(job.out / "records.parquet")
    write_lifetimes(records, job.out / "logs", job.log_format, job.log_lifetimes)
    write_json(job.out / "report.json", report.to_json())


def use_cores(lifetimes: int, devices: int | None) -> None:
    """Make one CPU device a core that a run can use; before JAX's first computation.

    Args:
      lifetimes: number of lifetimes; each device takes at least one chunk of them.
      devices: the user's wish; None for one a core.

    Raises:
      ValueError: fewer than one device, or more than 256.
    """
    if devices is not None and not 1 <= devices <= 256:
        raise ValueError(f"devices is {devices}; it must be from 1 to 256")
    chunks = max(1, math.ceil(lifetimes / scanner.CHUNK))
    # A process that has used JAX before keeps its devices; the scanner checks their number.
    with contextlib.suppress(RuntimeError):
        jax.config.update("jax_num_cpu_devices", devices or min(backend.cores(), chunks))
