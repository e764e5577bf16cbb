"""Sends unfinished units to a scheduler, through submitit (the extra `cluster`)."""

import contextlib
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from evaluation.checkpoints.commands import duration
from evaluation.sweep import launch, store
from evaluation.sweep.plans import Plan

JOBS: Final = "jobs"
"""Folder of submitit's logs and pickles, in the plan's folder."""
MOST_REQUEUES: Final = 1000
"""Most requeues of a job whose time is over; submitit's default is 3."""
LOOK: Final = 0.5
"""Polling interval of the jobs, s."""


@dataclass(frozen=True)
class JobOptions:
    """Resources that a job requests.

    Attributes:
      cluster: "slurm" or "local".
      jobs: most jobs of the array.
      parallel: most of them at once; None for all.
      partition, account: of Slurm.
      gpus, cpus: of a job.
      memory: of a job, GB.
      minutes: of a job, after which it is queued again.
      setup: lines of shell before a job.
      parameters: more of `submitit.AutoExecutor.update_parameters`.
    """

    cluster: str = "slurm"
    jobs: int = 16
    parallel: int | None = None
    partition: str | None = None
    account: str | None = None
    gpus: int = 0
    cpus: int = 2
    memory: float = 8.0
    minutes: int = 120
    setup: tuple[str, ...] = ()
    parameters: dict[str, Any] = field(default_factory=dict)


class Sent(NamedTuple):
    """Jobs that were sent.

    Attributes:
      jobs: of submitit.
      units: number of units that they play.
    """

    jobs: Sequence[Any]
    units: int


class Share:
    """The units of one job, a callable that submitit pickles.

    Attributes:
      folder: of the plan.
      numbers: of the units.
      force: whether versions may differ from those of the plan.
    """

    def __init__(self, folder: str, numbers: Sequence[int], force: bool = False) -> None:
        self.folder, self.numbers, self.force = folder, list(numbers), force

    def __call__(self) -> int:
        """Play the unfinished units; return the number of units that failed."""
        from evaluation.sweep import plans, playing

        plan = plans.load(self.folder)
        playing.check_version(plan, self.force)
        out = playing.run(plan, self.numbers, say=lambda line: print(line, file=sys.stderr))
        return len(out.failed)

    def checkpoint(self) -> Any:
        """Called by submitit on preemption or at the end of the job's time: queue it again."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def submit(plan: Plan, options: JobOptions, force: bool = False) -> Sent:
    """Send the unfinished units.

    Args:
      plan: from `plans.load`.
      options: resources of a job.
      force: whether versions may differ from those of the plan.

    Raises:
      ValueError: submitit or the scheduler is missing.
    """
    try:
        import submitit
    except ModuleNotFoundError as error:
        raise ValueError("submit needs submitit: pip install 'jaxsim-novelty[cluster]'") from error
    numbers = store.unfinished(plan)
    if not numbers:
        return Sent((), 0)
    count = min(options.jobs, len(numbers))
    folder = plan.folder.absolute()
    shares = [Share(str(folder), numbers[k::count], force) for k in range(count)]
    try:
        executor = submitit.AutoExecutor(
            folder=folder / JOBS, cluster=options.cluster, slurm_max_num_timeout=MOST_REQUEUES
        )
    except RuntimeError as error:
        raise ValueError(f"{error}; is there a {options.cluster} on this machine?") from error
    executor.update_parameters(**_parameters(plan, options, count))
    try:
        jobs = (
            executor.submit_array(shares)
            if hasattr(executor, "submit_array")
            else [executor.submit(share) for share in shares]
        )
    except submitit.core.utils.FailedJobError as error:
        raise ValueError(f"the scheduler refused the jobs: {error}") from error
    return Sent(jobs, len(numbers))


def _parameters(plan: Plan, options: JobOptions, count: int) -> dict[str, Any]:
    name = "".join(c if c.isalnum() else "-" for c in str(plan.manifest["name"]))
    common = {"name": name, "timeout_min": options.minutes, "gpus_per_node": options.gpus}
    if options.cluster != "slurm":
        return common | options.parameters
    python = shlex.quote(sys.executable)
    slurm = {
        "cpus_per_task": options.cpus,
        "mem_gb": options.memory,
        "slurm_array_parallelism": options.parallel or count,
        "slurm_partition": options.partition,
        "slurm_account": options.account,
        "slurm_setup": [*options.setup, launch.check_of(f"{python} -c 'import evaluation.sweep'")],
    }
    settings = {key: value for key, value in slurm.items() if value is not None}
    return common | settings | options.parameters


def wait(sent: Sent) -> int:
    """Wait until all jobs have ended; return how many failed."""
    failed = 0
    for job in sent.jobs:
        while not job.done():
            time.sleep(LOOK)
        with contextlib.suppress(Exception):
            failed += job.result() > 0
            continue
        failed += 1
    return failed


def minutes_of(text: str) -> int:
    """Read the time of a job as "30min" or "2h", minutes.

    Raises:
      ValueError: it is not a time, or less than a minute.
    """
    try:
        seconds = duration(text)
    except ValueError:
        seconds = None
    if seconds is None or seconds < 60:
        raise ValueError(f"time is {text!r}; it must be a time as 30min or 2h, from a minute on")
    return int(seconds // 60)


def logs(plan: Plan) -> Path:
    """Folder of the jobs' logs."""
    return plan.folder / JOBS
