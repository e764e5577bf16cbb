"""Handlers of the commands of `jaxsim sweep`."""

import argparse
import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from evaluation.arguments import command_line
from evaluation.checkpoints.commands import tell
from evaluation.checkpoints.stopping import STOPPED, hearing
from evaluation.report import terminal

if TYPE_CHECKING:
    from evaluation.sweep.plans import Plan
    from evaluation.sweep.progress import SweepStatus

FAILED: Final = 1
AGAIN: Final = 2.0
"""Interval of `status --watch`, s."""


def plan(arguments: argparse.Namespace) -> int:
    """Plan a sweep, and print a summary."""
    # Imported here, so that `jaxsim --help` does not wait for JAX.
    from evaluation.sweep import planning

    new_plan = planning.plan(
        arguments.file,
        arguments.out,
        minutes=arguments.minutes,
        rate=arguments.rate,
        measure=arguments.measure,
        force=arguments.force,
        say=print,
    )
    for line in summary(new_plan):
        print(line)
    return 0


def summary(plan: "Plan") -> list[str]:
    """Summarise a plan in lines for people."""
    about = plan.manifest
    hours = about["most_seconds"] / 3600
    return [
        f"{about['name']}: {about['cells']:,} cells in {about['packs']:,} packs, "
        f"{about['units']:,} units of about {about['minutes']:g} min, "
        f"{about['programs']:,} programs",
        f"at most {about['most_steps']:,} environment steps, {hours:,.2f} hours of one process "
        f"without compiling; {about['rows']:,} rows; {about['bytes'] / 2**30:.1f} GiB of memory a "
        "process",
        f"to play it: jaxsim sweep run {plan.folder}",
    ]


def run(arguments: argparse.Namespace) -> int:
    """Play units, here or in several processes."""
    from evaluation.sweep import plans, process

    plan = plans.load(arguments.folder)
    process.prepare(plan)
    from evaluation.sweep import playing

    playing.check_version(plan, arguments.force)
    _check_counts(arguments, ("retries", 0), ("threads", 1), ("local", 1))
    if arguments.local is not None:
        if arguments.units is not None:
            raise ValueError("--local deals all units out; leave --units out")
        return _run_local(arguments, plan)
    numbers = None if arguments.units is None else playing.share(arguments.units, len(plan.units))
    total = len(plan.units) if numbers is None else len(numbers)
    with contextlib.ExitStack() as stack:
        show = stack.enter_context(_progress(arguments, plan, "cells"))
        stop = stack.enter_context(hearing(tell, signals=SIGNALS, words=WORDS))
        out = playing.run(
            plan,
            numbers,
            retries=arguments.retries,
            threads=arguments.threads,
            stop=stop,
            progress=show,
            say=tell,
        )
    if not arguments.quiet:
        print(
            f"{out.played:,} units played, {out.skipped:,} finished before, "
            f"{len(out.failed)} failed"
        )
    if out.stopped:
        remaining = total - out.played - out.skipped - len(out.failed)
        tell(f"{out.stopped}: {remaining:,} units are left; the same command plays them")
        return STOPPED
    if out.failed:
        first = out.failed[0]
        tell(f"{len(out.failed)} units failed; unit {first.unit}: {first.error}")
        return FAILED
    return 0


SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR2)
WORDS: Final = "ending when the packs at play are over; once more ends it at once"


def _progress(
    arguments: argparse.Namespace, plan: "Plan", what: str
) -> contextlib.AbstractContextManager[Callable[[int, int], object] | None]:
    """Return a progress bar; with `--quiet` it shows nothing."""
    console = None if arguments.quiet else terminal.console()
    return terminal.progress_bar(console, plan.manifest["name"], what=what)


def _check_counts(arguments: argparse.Namespace, *least: tuple[str, int]) -> None:
    for name, low in least:
        number = getattr(arguments, name)
        if number is not None and not low <= number <= 10_000:
            raise ValueError(f"{name} is {number}; it must be from {low} to 10000")


def _check_memory(memory: float) -> None:
    if not 0 < memory <= MOST_MEMORY:  # also if it is not a number
        raise ValueError(f"memory is {memory:g} GB; it must be above 0 and at most {MOST_MEMORY:g}")


def _refuse(arguments: argparse.Namespace, choice: str, names: Sequence[str]) -> None:
    """Refuse options that a choice ignores, unless they have their default values."""
    for name in names:
        if getattr(arguments, name) not in (JOB_DEFAULTS.get(name), []):
            raise ValueError(f"--{name} has no effect with {choice}; leave it out")


JOB_DEFAULTS: Final[Mapping[str, Any]] = {
    "jobs": 16,
    "gpus": 0,
    "cpus": 2,
    "memory": 8.0,
    "time": "2h",
}
"""Default values of options of a job; those of all others are None."""
IGNORED: Final[Mapping[str, Sequence[str]]] = {
    "local": ("jobs", "parallel", "partition", "account", "cpus", "memory", "setup"),
    "sbatch": ("image", "claim"),
    "kubernetes": ("partition",),
    "skypilot": ("time", "partition", "image", "claim"),
}
"""Options that a way to play a sweep has no place for."""
MOST_MEMORY: Final = 1e6
"""GB of a job."""


def _run_local(arguments: argparse.Namespace, plan: "Plan") -> int:
    """Play in several processes, each with its share of the units."""
    number = arguments.local
    program = "import sys; from evaluation.cli import main; sys.exit(main())"
    words = ["sweep", "run", str(plan.folder), "--retries", str(arguments.retries), "--quiet"]
    words += ["--force"] if arguments.force else []
    words += ["--threads", str(arguments.threads or 1)]
    # In groups of their own: a terminal's Ctrl-C reaches this process only, which passes it on.
    children = [
        subprocess.Popen(
            [sys.executable, "-c", program, *words, "--units", f"{k}::{number}"], process_group=0
        )
        for k in range(number)
    ]
    codes = []
    try:
        with hearing(tell, signals=SIGNALS, words=WORDS) as stop:
            signalled = False
            while any(child.poll() is None for child in children):
                if stop.by and not signalled:
                    signalled = True
                    for child in children:
                        child.send_signal(signal.SIGTERM)
                time.sleep(0.1)
    finally:
        for child in children:
            if child.poll() is None:
                child.terminate()
        codes = [child.wait() for child in children]
    return max((code if code >= 0 else 128 - code for code in codes), default=0)


def status(arguments: argparse.Namespace) -> int:
    """Print the progress of a sweep, once or until it is over."""
    from evaluation.sweep import plans, progress

    plan = plans.load(arguments.folder)
    while True:
        state = progress.status(plan)
        if arguments.json:
            print(json.dumps(state.to_json(), allow_nan=False), flush=True)
        else:
            print("\n".join(status_lines(state)), flush=True)
        if not arguments.watch or state.done == state.units:
            return 0
        time.sleep(AGAIN)


def status_lines(state: "SweepStatus") -> list[str]:
    """Describe the progress of a sweep in lines for people."""
    remaining = "" if state.seconds_left is None else f", {_time(state.seconds_left)} left"
    rate = "" if state.rate is None else f", {state.rate:,.1f} units a minute"
    at_play = sum(len(one.units) for one in state.running)
    lines = [
        f"{state.name}: {state.done:,} of {state.units:,} units done "
        f"({state.done / state.units:.1%}), {at_play} running in {len(state.running)} processes, "
        f"{len(state.failed)} failed{rate}{remaining}"
    ]
    if state.doubled:
        lines.append(f"{state.doubled} units have two results; merge names them")
    lines += [
        f"unit {one.unit} failed, attempts: {one.attempts} ({one.where}, {one.at}): {one.error}"
        for one in state.failed[:SHOWN]
    ]
    return lines


SHOWN: Final = 5


def _time(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {seconds:02d} s"


def merge(arguments: argparse.Namespace) -> int:
    """Join all results."""
    from evaluation.files import check_output_directory
    from evaluation.sweep import merging, plans

    plan = plans.load(arguments.folder)
    if arguments.out is not None:
        check_output_directory(arguments.out, arguments.overwrite)
    with _progress(arguments, plan, "units") as show:
        merged = merging.merge(plan, arguments.out, show)
    if not arguments.quiet:
        print(f"{merged.rows:,} rows of {merged.cells:,} cells in {merged.folder}")
        if not merged.reported:
            print("too many cells for report.html; jaxsim sweep table shows any two axes")
    return 0


def table(arguments: argparse.Namespace) -> int:
    """Print, draw and write a table."""
    from evaluation.files import write_whole
    from evaluation.sweep import tables

    metric_table = tables.table(
        arguments.folder,
        arguments.rows,
        arguments.columns,
        arguments.metric,
        tuple(arguments.where),
    )
    if arguments.csv is not None:
        write_whole(arguments.csv, tables.csv_text(metric_table))
    if arguments.plot is not None:
        from evaluation.sweep import plots

        plots.write(metric_table, arguments.plot)
    terminal.console().print(tables.rich_table(metric_table))
    return 0


def submit(arguments: argparse.Namespace) -> int:
    """Send unfinished units to a scheduler."""
    from evaluation.sweep import plans, playing, submitting

    plan = plans.load(arguments.folder)
    playing.check_version(plan, arguments.force)
    _check_counts(arguments, ("jobs", 1), ("parallel", 1), ("local", 1), ("gpus", 0), ("cpus", 1))
    _check_memory(arguments.memory)
    if arguments.local:
        _refuse(arguments, "--local", IGNORED["local"])
    options = submitting.JobOptions(
        cluster="local" if arguments.local else "slurm",
        jobs=arguments.local or arguments.jobs,
        parallel=arguments.parallel,
        partition=arguments.partition,
        account=arguments.account,
        gpus=arguments.gpus,
        cpus=arguments.cpus,
        memory=arguments.memory,
        minutes=submitting.minutes_of(arguments.time),
        setup=tuple(arguments.setup),
    )
    sent = submitting.submit(plan, options, arguments.force)
    if not sent.jobs:
        print("nothing is left to send")
        return 0
    names = ", ".join(str(job.job_id) for job in sent.jobs[:SHOWN])
    more = ", ..." if len(sent.jobs) > SHOWN else ""
    print(f"{sent.units:,} units sent as {len(sent.jobs)} jobs ({names}{more})")
    if not arguments.wait:
        return 0
    failed = submitting.wait(sent)
    return FAILED if failed else 0


def launch(arguments: argparse.Namespace) -> int:
    """Print a file for a scheduler."""
    from evaluation.sweep import launch, plans
    from evaluation.sweep.submitting import minutes_of

    plan = plans.load(arguments.folder)
    _check_counts(arguments, ("jobs", 1), ("gpus", 0), ("cpus", 1))
    _check_memory(arguments.memory)
    _refuse(arguments, f"--{arguments.kind}", IGNORED[arguments.kind])
    text = launch.text(
        plan,
        arguments.kind,
        jobs=arguments.jobs,
        gpus=arguments.gpus,
        cpus=arguments.cpus,
        memory=arguments.memory,
        minutes=minutes_of(arguments.time),
        partition=arguments.partition,
        image=arguments.image,
        claim=arguments.claim,
    )
    print(text, end="")
    return 0


def join(arguments: argparse.Namespace) -> int:
    """Join the shards of a run."""
    from evaluation.files import check_output_directory
    from evaluation.l2m.shards import join
    from evaluation.report.custom import load_rows

    check_output_directory(arguments.out, arguments.overwrite)
    words = ["sweep", "join", *(path.name for path in arguments.shards)]
    options = [("--metric", Path(text).name, None) for text in arguments.metric]
    command = command_line(words, [*options, ("--out", arguments.out.name, None)])
    records = join(arguments.shards, arguments.out, load_rows(arguments.metric), command)
    print(f"{records.num_lifetimes:,} lifetimes in {arguments.out}")
    return 0
