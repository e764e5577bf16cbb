"""The parser of `jaxsim sweep`: plan, run, status, merge, table, submit, launch, join."""

import argparse
from pathlib import Path

from evaluation.arguments import Commands, add_command, add_metric, add_out
from evaluation.sweep import handlers

PLAN_EXAMPLES = """examples:
  jaxsim sweep plan examples/sweeps/gravity.toml --out runs/gravity
  jaxsim sweep plan sweep.toml --out runs/big --minutes 10 --measure

FILE is TOML: a base command, fixed values, and axes; docs/sweeps.md has all forms. DIR then holds
plan.json and copies of the files that the sweep reads; nothing else is needed to play it.
"""
RUN_EXAMPLES = """examples:
  jaxsim sweep run runs/gravity
  jaxsim sweep run runs/gravity --local 4
  jaxsim sweep run runs/gravity --units 3::16

Finished units are skipped after a check of their hash. Any number of processes may play in one
folder at once, on any number of machines that share it. A unit that fails is tried again, then
reported; it stops no other, and the exit code is 1. SIGTERM, SIGUSR2 and Ctrl-C end the run between
two packs with exit code 75, a second signal at once; the same command plays the remaining units.
"""
STATUS_EXAMPLES = """examples:
  jaxsim sweep status runs/gravity
  jaxsim sweep status runs/gravity --watch
"""
MERGE_EXAMPLES = """examples:
  jaxsim sweep merge runs/gravity
  jaxsim sweep merge runs/gravity --out results/gravity --overwrite

Writes rows.parquet (one row an episode), cells.parquet (every metric of every cell, with its
interval) and sweep.json; of up to 20,000 cells report.html too, with its numbers in report.json.
Their bytes do not depend on where and when units were played.
"""
TABLE_EXAMPLES = """examples:
  jaxsim sweep table runs/gravity --rows gravity --columns agent
  jaxsim sweep table runs/gravity --rows gravity --columns agent --metric length --plot plot.png
  jaxsim sweep table runs/map --rows gravity --columns pole/length --plot map.png

A value is the mean over the cells that agree in the named axes, with the 95 % interval of a mean
over seeds; over cells where all have one seed, and of a single cell its own. A plot has lines with
bands over a numeric axis, and is a heat map where both axes are numeric and the columns are more
than eight.
"""
SUBMIT_EXAMPLES = """examples:
  jaxsim sweep submit runs/gravity --slurm --partition gpu --gpus 1 --jobs 16 --time 2h
  jaxsim sweep submit runs/gravity --local 4

Sends the unfinished units as an array of jobs, through submitit (the extra cluster). The same
command again sends the units that are unfinished then. A job that is preempted is queued again.
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

records.parquet, schedule.json and report.json are those of the whole run, byte for byte;
report.html names this command. Shards with --metric need the same --metric here.
"""


def add_to(commands: Commands) -> None:
    """Add `sweep` to the subcommands of `jaxsim`."""
    sweep = commands.add_parser(
        "sweep",
        help="many runs over axes: plan, run, submit, merge, table",
        description="Sweeps over any parameters: from one line to a cluster, and back to a table.",
    )
    parts = sweep.add_subparsers(dest="part", required=True, metavar="PART")
    _add_plan(parts)
    _add_run(parts)
    part = add_command(parts, "status", "show the progress of a sweep", STATUS_EXAMPLES)
    _add_folder(part)
    part.add_argument("--watch", action="store_true", help="repeat every 2 s, until it is over")
    part.add_argument("--json", action="store_true", help="print JSON")
    part.set_defaults(handler=handlers.status)
    part = add_command(parts, "merge", "join all results into one data set", MERGE_EXAMPLES)
    _add_folder(part)
    part.add_argument("--out", type=Path, metavar="DIR", help="folder of the results (DIR/merged)")
    part.add_argument("--overwrite", action="store_true", help="replace results in --out")
    part.add_argument("--quiet", action="store_true", help="no progress bar")
    part.set_defaults(handler=handlers.merge)
    _add_table(parts)
    _add_submit(parts)
    _add_launch(parts)
    part = add_command(parts, "join", "join the shards of one large run", JOIN_EXAMPLES)
    part.add_argument(
        "shards", type=Path, nargs="+", metavar="DIR", help="folders of `run --shard`"
    )
    add_metric(part)
    add_out(part)
    part.set_defaults(handler=handlers.join)


def _add_folder(part: argparse.ArgumentParser) -> None:
    part.add_argument("folder", type=Path, metavar="DIR", help="folder of the plan")


def _add_plan(parts: Commands) -> None:
    part = add_command(parts, "plan", "check a sweep and divide it into units", PLAN_EXAMPLES)
    part.add_argument("file", type=Path, metavar="FILE", help="a sweep file, TOML")
    part.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the plan")
    part.add_argument(
        "--minutes", type=float, default=5.0, metavar="M", help="target duration of a unit (5)"
    )
    part.add_argument(
        "--rate", type=float, metavar="N", help="environment steps a second of a process (a table)"
    )
    part.add_argument(
        "--measure", action="store_true", help="measure the rate now, with a pack of each program"
    )
    part.add_argument("--force", action="store_true", help="replace another plan in DIR")
    part.set_defaults(handler=handlers.plan)


def _add_run(parts: Commands) -> None:
    part = add_command(parts, "run", "play the unfinished units", RUN_EXAMPLES)
    _add_folder(part)
    part.add_argument("--units", metavar="SHARE", help="units to play: 3::16, 100:200 or 7 (all)")
    part.add_argument("--local", type=int, metavar="N", help="N processes on this machine")
    part.add_argument("--retries", type=int, default=2, metavar="N", help="retries of a unit (2)")
    part.add_argument(
        "--threads", type=int, metavar="N", help="units at a time (one a core, where that helps)"
    )
    part.add_argument("--force", action="store_true", help="play with other versions than planned")
    part.add_argument("--quiet", action="store_true", help="no progress bar")
    part.set_defaults(handler=handlers.run)


def _add_table(parts: Commands) -> None:
    part = add_command(parts, "table", "print and plot a metric over axes", TABLE_EXAMPLES)
    part.add_argument(
        "folder", type=Path, metavar="DIR", help="folder of a plan or of merged results"
    )
    part.add_argument("--rows", required=True, metavar="AXIS", help="one row a value")
    part.add_argument("--columns", metavar="AXIS", help="one column a value")
    part.add_argument("--metric", metavar="NAME", help="metric to show (the first)")
    part.add_argument(
        "--where", action="append", default=[], metavar="AXIS=VALUE", help="only these cells"
    )
    part.add_argument("--plot", type=Path, metavar="FILE", help="also plot it to FILE")
    part.add_argument("--csv", type=Path, metavar="FILE", help="also write it to FILE")
    part.set_defaults(handler=handlers.table)


def _add_submit(parts: Commands) -> None:
    part = add_command(parts, "submit", "send unfinished units to a scheduler", SUBMIT_EXAMPLES)
    _add_folder(part)
    where = part.add_mutually_exclusive_group(required=True)
    where.add_argument("--slurm", action="store_true", help="as an array of Slurm jobs")
    where.add_argument("--local", type=int, metavar="N", help="as N processes of submitit, here")
    part.add_argument("--jobs", type=int, metavar="N", help="most jobs (16)")
    part.add_argument("--parallel", type=int, metavar="N", help="most of them at once (all)")
    part.add_argument("--partition", metavar="NAME", help="partition of Slurm")
    part.add_argument("--account", metavar="NAME", help="account of Slurm")
    part.add_argument("--gpus", type=int, metavar="N", help="GPUs of a job (0)")
    part.add_argument("--cpus", type=int, metavar="N", help="CPU cores of a job (2)")
    part.add_argument("--memory", type=float, metavar="GB", help="of a job (8)")
    part.add_argument("--time", metavar="TIME", help="of a job: 30min, 2h (2h)")
    part.add_argument(
        "--setup", action="append", default=[], metavar="LINE", help="shell line to run first"
    )
    part.add_argument("--wait", action="store_true", help="wait until all jobs have ended")
    part.add_argument("--force", action="store_true", help="play with other versions than planned")
    part.set_defaults(handler=handlers.submit, **handlers.JOB_DEFAULTS)


def _add_launch(parts: Commands) -> None:
    part = add_command(parts, "launch", "print a file for another scheduler", LAUNCH_EXAMPLES)
    _add_folder(part)
    kind = part.add_mutually_exclusive_group(required=True)
    for name, text in (
        ("sbatch", "a script for sbatch"),
        ("kubernetes", "an indexed Job"),
        ("skypilot", "a task of SkyPilot"),
    ):
        kind.add_argument(f"--{name}", action="store_const", const=name, dest="kind", help=text)
    part.add_argument("--jobs", type=int, metavar="N", help="jobs (16)")
    part.add_argument("--gpus", type=int, metavar="N", help="GPUs of a job (0)")
    part.add_argument("--cpus", type=int, metavar="N", help="CPU cores of a job (2)")
    part.add_argument("--memory", type=float, metavar="GB", help="of a job (8)")
    part.add_argument("--time", metavar="TIME", help="of a job (2h)")
    part.add_argument("--partition", metavar="NAME", help="partition of Slurm")
    part.add_argument("--image", metavar="NAME", help="container with this package (Kubernetes)")
    part.add_argument("--claim", metavar="NAME", help="volume claim that holds DIR (Kubernetes)")
    part.set_defaults(handler=handlers.launch, **handlers.JOB_DEFAULTS)
