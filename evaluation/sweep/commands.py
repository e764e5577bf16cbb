"""`jaxsim sweep`: plan, run, status, merge, table, submit, launch, join."""

import argparse
import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from evaluation.arguments import add_command
from evaluation.checkpoints.commands import tell
from evaluation.checkpoints.stopping import STOPPED, hearing
from evaluation.report import terminal

if TYPE_CHECKING:
    from evaluation.sweep.plans import Plan
    from evaluation.sweep.progress import Status

FAILED: Final = 1
AGAIN: Final = 2.0
"""s, between two looks of `status --watch`."""

PLAN_EXAMPLES = """examples:
  jaxsim sweep plan examples/sweeps/gravity.toml --out runs/gravity
  jaxsim sweep plan sweep.toml --out runs/big --minutes 10 --measure

FILE is TOML: a base command, what is fixed, and axes; docs/sweeps.md has all forms. DIR then holds
plan.json and copies of the files that the sweep reads; nothing else is needed to play it.
"""
RUN_EXAMPLES = """examples:
  jaxsim sweep run runs/gravity
  jaxsim sweep run runs/gravity --local 4
  jaxsim sweep run runs/gravity --units 3::16

Units that are finished are skipped after their hash was checked. Any number of processes may play
in one folder at once, on any number of machines that share it. A unit that fails is tried again,
then reported, and stops no other: exit code 1. SIGTERM, SIGUSR2 and Ctrl-C end the run between two
packs with exit code 75, a second one at once; the same command plays what is left.
"""
STATUS_EXAMPLES = """examples:
  jaxsim sweep status runs/gravity
  jaxsim sweep status runs/gravity --watch
"""
MERGE_EXAMPLES = """examples:
  jaxsim sweep merge runs/gravity
  jaxsim sweep merge runs/gravity --out results/gravity --overwrite

Writes rows.parquet (one row an episode), cells.parquet (every metric of every cell, with its
interval) and sweep.json. Their bytes do not depend on who played which unit when.
"""
TABLE_EXAMPLES = """examples:
  jaxsim sweep table runs/gravity --rows gravity --columns agent
  jaxsim sweep table runs/gravity --rows gravity --columns agent --metric length --plot plot.png
  jaxsim sweep table runs/map --rows gravity --columns pole/length --plot map.png

A value is the mean over the cells that agree in the named axes, with a 95 % bootstrap interval over
these cells; for a single cell its own interval. A plot has lines with bands over a numeric axis,
and is a heat map where both axes are numeric and the columns are more than eight.
"""
SUBMIT_EXAMPLES = """examples:
  jaxsim sweep submit runs/gravity --slurm --partition gpu --gpus 1 --jobs 16 --time 2h
  jaxsim sweep submit runs/gravity --local 4

Sends what is left as an array of jobs, through submitit (the extra cluster). Sent again, it sends
what is left then. A job that is preempted is queued again.
"""
LAUNCH_EXAMPLES = """examples:
  jaxsim sweep launch runs/gravity --sbatch --jobs 16 > job.sbatch
  jaxsim sweep launch runs/gravity --kubernetes --jobs 16 --image IMAGE --claim CLAIM > job.yaml
  jaxsim sweep launch runs/gravity --skypilot --jobs 16 > task.yaml

Prints a file for another scheduler. Each of its jobs only calls `jaxsim sweep run DIR --units`.
"""
JOIN_EXAMPLES = """examples:
  jaxsim run s.json --lifetimes 4096 --shard 1/4 --out runs/part-1
  jaxsim sweep join runs/part-1 runs/part-2 runs/part-3 runs/part-4 --out runs/whole

The files are those of the whole run, byte for byte.
"""


def add_to(commands: Any) -> None:
    """Add `sweep` to the subcommands of `jaxsim`."""
    sweep = commands.add_parser(
        "sweep",
        help="many runs over axes: plan, run, submit, merge, table",
        description="Sweeps over any parameters: from one line to a cluster, and back to a table.",
    )
    parts = sweep.add_subparsers(dest="part", required=True, metavar="PART")
    _add_plan(parts)
    _add_run(parts)
    part = add_command(parts, "status", "say how far a sweep is", STATUS_EXAMPLES)
    _add_folder(part)
    part.add_argument("--watch", action="store_true", help="look again every 2 s, until it is over")
    part.add_argument("--json", action="store_true", help="print JSON")
    part.set_defaults(handler=_status)
    part = add_command(parts, "merge", "join all results into one data set", MERGE_EXAMPLES)
    _add_folder(part)
    part.add_argument("--out", type=Path, metavar="DIR", help="where to (DIR/merged)")
    part.add_argument("--overwrite", action="store_true", help="replace results in --out")
    part.add_argument("--quiet", action="store_true", help="no progress bar")
    part.set_defaults(handler=_merge)
    _add_table(parts)
    _add_submit(parts)
    _add_launch(parts)
    part = add_command(parts, "join", "join the shards of one large run", JOIN_EXAMPLES)
    part.add_argument("shards", type=Path, nargs="+", metavar="DIR", help="of `run --shard`")
    part.add_argument("--out", type=Path, required=True, metavar="DIR", help="where results go")
    part.add_argument("--overwrite", action="store_true", help="replace results in --out")
    part.set_defaults(handler=_join)


def _add_folder(part: argparse.ArgumentParser) -> None:
    part.add_argument("folder", type=Path, metavar="DIR", help="of `jaxsim sweep plan --out`")


def _add_plan(parts: Any) -> None:
    part = add_command(parts, "plan", "check a sweep and deal it to units", PLAN_EXAMPLES)
    part.add_argument("file", type=Path, metavar="FILE", help="a sweep file, TOML")
    part.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the plan")
    part.add_argument(
        "--minutes", type=float, default=5.0, metavar="M", help="that a unit is to take (5)"
    )
    part.add_argument(
        "--rate", type=float, metavar="N", help="environment steps a second of a process (a table)"
    )
    part.add_argument(
        "--measure", action="store_true", help="measure the rate now, with a pack of each program"
    )
    part.add_argument("--force", action="store_true", help="replace another plan in DIR")
    part.set_defaults(handler=_plan)


def _add_run(parts: Any) -> None:
    part = add_command(parts, "run", "play the units that are left", RUN_EXAMPLES)
    _add_folder(part)
    part.add_argument("--units", metavar="SHARE", help="of all: 3::16, 100:200 or 7 (all)")
    part.add_argument("--local", type=int, metavar="N", help="N processes on this machine")
    part.add_argument("--retries", type=int, default=2, metavar="N", help="of a unit (2)")
    part.add_argument(
        "--threads", type=int, metavar="N", help="units at a time (one a core, where that helps)"
    )
    part.add_argument("--force", action="store_true", help="play with other versions than planned")
    part.add_argument("--quiet", action="store_true", help="no progress bar")
    part.set_defaults(handler=_run)


def _add_table(parts: Any) -> None:
    part = add_command(parts, "table", "print and plot a metric over axes", TABLE_EXAMPLES)
    part.add_argument("folder", type=Path, metavar="DIR", help="of a plan, or of merged results")
    part.add_argument("--rows", required=True, metavar="AXIS", help="one row a value")
    part.add_argument("--columns", metavar="AXIS", help="one column a value")
    part.add_argument("--metric", metavar="NAME", help="(the first that there is)")
    part.add_argument(
        "--where", action="append", default=[], metavar="AXIS=VALUE", help="these cells only"
    )
    part.add_argument("--plot", type=Path, metavar="FILE", help="also draw it there")
    part.add_argument("--csv", type=Path, metavar="FILE", help="also write it there")
    part.set_defaults(handler=_table)


def _add_submit(parts: Any) -> None:
    part = add_command(parts, "submit", "send what is left to a scheduler", SUBMIT_EXAMPLES)
    _add_folder(part)
    where = part.add_mutually_exclusive_group(required=True)
    where.add_argument("--slurm", action="store_true", help="as an array of Slurm jobs")
    where.add_argument("--local", type=int, metavar="N", help="as N processes of submitit, here")
    part.add_argument("--jobs", type=int, default=16, metavar="N", help="most jobs (16)")
    part.add_argument("--parallel", type=int, metavar="N", help="most of them at once (all)")
    part.add_argument("--partition", metavar="NAME", help="of Slurm")
    part.add_argument("--account", metavar="NAME", help="of Slurm")
    part.add_argument("--gpus", type=int, default=0, metavar="N", help="of a job (0)")
    part.add_argument("--cpus", type=int, default=2, metavar="N", help="of a job (2)")
    part.add_argument("--memory", type=float, default=8.0, metavar="GB", help="of a job (8)")
    part.add_argument("--time", default="2h", metavar="TIME", help="of a job: 30min, 2h (2h)")
    part.add_argument(
        "--setup", action="append", default=[], metavar="LINE", help="of shell, before a job"
    )
    part.add_argument("--wait", action="store_true", help="until all jobs have ended")
    part.add_argument("--force", action="store_true", help="play with other versions than planned")
    part.set_defaults(handler=_submit)


def _add_launch(parts: Any) -> None:
    part = add_command(parts, "launch", "print a file for another scheduler", LAUNCH_EXAMPLES)
    _add_folder(part)
    kind = part.add_mutually_exclusive_group(required=True)
    for name, text in (
        ("sbatch", "a script for sbatch"),
        ("kubernetes", "an indexed Job"),
        ("skypilot", "a task of SkyPilot"),
    ):
        kind.add_argument(f"--{name}", action="store_const", const=name, dest="kind", help=text)
    part.add_argument("--jobs", type=int, default=16, metavar="N", help="jobs (16)")
    part.add_argument("--gpus", type=int, default=0, metavar="N", help="of a job (0)")
    part.add_argument("--cpus", type=int, default=2, metavar="N", help="of a job (2)")
    part.add_argument("--memory", type=float, default=8.0, metavar="GB", help="of a job (8)")
    part.add_argument("--time", default="2h", metavar="TIME", help="of a job (2h)")
    part.add_argument("--partition", metavar="NAME", help="of Slurm")
    part.add_argument("--image", metavar="NAME", help="container with this package (Kubernetes)")
    part.add_argument("--claim", metavar="NAME", help="volume claim that holds DIR (Kubernetes)")
    part.set_defaults(handler=_launch)


def _plan(arguments: argparse.Namespace) -> int:
    # Imported here, so that `jaxsim --help` does not wait for JAX.
    from evaluation.sweep.planning import plan

    found = plan(
        arguments.file,
        arguments.out,
        minutes=arguments.minutes,
        rate=arguments.rate,
        measure=arguments.measure,
        force=arguments.force,
        say=print,
    )
    for line in summary(found):
        print(line)
    return 0


def summary(plan: "Plan") -> list[str]:
    """A plan in lines for people."""
    about = plan.manifest
    hours = about["most_seconds"] / 3600
    return [
        f"{about['name']}: {about['cells']:,} cells in {about['packs']:,} packs, "
        f"{about['units']:,} units of about {about['minutes']:g} min, "
        f"{about['programs']:,} programs",
        f"at most {about['most_steps']:,} environment steps and {hours:,.2f} hours of one process; "
        f"{about['rows']:,} rows; {about['bytes'] / 2**30:.1f} GiB of memory a process",
        f"to play it: jaxsim sweep run {plan.folder}",
    ]


def _run(arguments: argparse.Namespace) -> int:
    from evaluation.sweep import plans, playing

    plan = plans.load(arguments.folder)
    playing.check_version(plan, arguments.force)
    _check_counts(arguments, ("retries", 0), ("threads", 1), ("local", 1))
    if arguments.local is not None:
        if arguments.units is not None:
            raise ValueError("--local deals all units out; leave --units out")
        return _run_local(arguments, plan)
    numbers = None if arguments.units is None else playing.share(arguments.units, len(plan.units))
    total = len(plan.units) if numbers is None else len(numbers)
    with contextlib.ExitStack() as stack:
        show = None
        if not arguments.quiet:
            show = stack.enter_context(_progress(plan, "cells"))
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
        left = total - out.played - out.skipped - len(out.failed)
        tell(f"{out.stopped}: {left:,} units are left; the same command plays them")
        return STOPPED
    if out.failed:
        first = out.failed[0]
        tell(f"{len(out.failed)} units failed; unit {first.unit}: {first.error}")
        return FAILED
    return 0


SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR2)
WORDS: Final = "ending when the packs at play are over; once more ends it at once"


@contextlib.contextmanager
def _progress(plan: "Plan", what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar; yields the function that moves it."""
    console = terminal.console()
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} " + what),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(plan.manifest["name"], total=None)

        def move(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield move


def _check_counts(arguments: argparse.Namespace, *least: tuple[str, int]) -> None:
    for name, low in least:
        number = getattr(arguments, name)
        if number is not None and not low <= number <= 10_000:
            raise ValueError(f"{name} is {number}; it must be from {low} to 10000")


def _run_local(arguments: argparse.Namespace, plan: "Plan") -> int:
    """Play in several processes, each with its share."""
    number = arguments.local
    program = "import sys; from evaluation.cli import main; sys.exit(main())"
    words = ["sweep", "run", str(plan.folder), "--retries", str(arguments.retries), "--quiet"]
    words += ["--force"] if arguments.force else []
    words += ["--threads", str(arguments.threads or 1)]
    children = [
        subprocess.Popen([sys.executable, "-c", program, *words, "--units", f"{k}::{number}"])
        for k in range(number)
    ]
    codes = []
    try:
        with hearing(tell, signals=SIGNALS, words=WORDS) as stop:
            told = False
            while any(child.poll() is None for child in children):
                if stop.by and not told:
                    told = True
                    for child in children:
                        child.send_signal(signal.SIGTERM)
                time.sleep(0.1)
    finally:
        for child in children:
            if child.poll() is None:
                child.terminate()
        codes = [child.wait() for child in children]
    return max((abs(code) for code in codes), default=0)


def _status(arguments: argparse.Namespace) -> int:
    from evaluation.sweep import plans
    from evaluation.sweep.progress import status

    plan = plans.load(arguments.folder)
    while True:
        found = status(plan)
        if arguments.json:
            print(json.dumps(found.to_json(), allow_nan=False), flush=True)
        else:
            print("\n".join(status_lines(found)), flush=True)
        if not arguments.watch or found.done == found.units:
            return 0
        time.sleep(AGAIN)


def status_lines(found: "Status") -> list[str]:
    """A status in lines for people."""
    left = "" if found.seconds_left is None else f", {_time(found.seconds_left)} left"
    rate = "" if found.rate is None else f", {found.rate:,.1f} units a minute"
    at_play = sum(len(one.units) for one in found.running)
    lines = [
        f"{found.name}: {found.done:,} of {found.units:,} units done "
        f"({found.done / found.units:.1%}), {at_play} running in {len(found.running)} processes, "
        f"{len(found.failed)} failed{rate}{left}"
    ]
    if found.doubled:
        lines.append(f"{found.doubled} units are there with two results; merge names them")
    lines += [
        f"unit {one.unit} failed {one.attempts} times ({one.where}, {one.at}): {one.error}"
        for one in found.failed[:SHOWN]
    ]
    return lines


SHOWN: Final = 5


def _time(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {seconds:02d} s"


def _merge(arguments: argparse.Namespace) -> int:
    from evaluation.files import check_output_directory
    from evaluation.sweep import merging, plans

    plan = plans.load(arguments.folder)
    if arguments.out is not None:
        check_output_directory(arguments.out, arguments.overwrite)
    with contextlib.ExitStack() as stack:
        show = None
        if not arguments.quiet:
            show = stack.enter_context(_progress(plan, "units"))
        found = merging.merge(plan, arguments.out, show)
    if not arguments.quiet:
        print(f"{found.rows:,} rows of {found.cells:,} cells in {found.folder}")
    return 0


def _table(arguments: argparse.Namespace) -> int:
    from evaluation.files import write_whole
    from evaluation.sweep import tables

    found = tables.table(
        arguments.folder,
        arguments.rows,
        arguments.columns,
        arguments.metric,
        tuple(arguments.where),
    )
    terminal.console().print(tables.rich_table(found))
    if arguments.csv is not None:
        write_whole(arguments.csv, tables.csv_text(found))
    if arguments.plot is not None:
        from evaluation.sweep import plots

        plots.write(found, arguments.plot)
    return 0


def _submit(arguments: argparse.Namespace) -> int:
    from evaluation.sweep import plans, playing, submitting

    plan = plans.load(arguments.folder)
    playing.check_version(plan, arguments.force)
    _check_counts(arguments, ("jobs", 1), ("parallel", 1), ("local", 1), ("gpus", 0), ("cpus", 1))
    options = submitting.Options(
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
    print(f"{sent.left:,} units sent as {len(sent.jobs)} jobs ({names}{more})")
    if not arguments.wait:
        return 0
    failed = submitting.wait(sent)
    return FAILED if failed else 0


def _launch(arguments: argparse.Namespace) -> int:
    from evaluation.sweep import launch, plans
    from evaluation.sweep.submitting import minutes_of

    plan = plans.load(arguments.folder)
    _check_counts(arguments, ("jobs", 1), ("gpus", 0), ("cpus", 1))
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


def _join(arguments: argparse.Namespace) -> int:
    from evaluation.files import check_output_directory
    from evaluation.l2m.shards import join

    check_output_directory(arguments.out, arguments.overwrite)
    records = join(arguments.shards, arguments.out)
    print(f"{records.num_lifetimes:,} lifetimes in {arguments.out}")
    return 0
