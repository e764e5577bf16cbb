"""The `jaxsim` command."""

import argparse
import os
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evaluation import __version__, catalogue
from evaluation.arguments import Commands, add_l2data, add_measure, add_metric, add_out, add_speed
from evaluation.cache import commands as cache_commands
from evaluation.cache import folder as cache
from evaluation.checkpoints import commands as checkpoint_commands
from evaluation.checkpoints.stopping import (
    STOPPED,
    Ended,
    Stop,
    Stopped,
    hearing,
    interruptible,
)
from evaluation.evaluate import commands as evaluate_commands
from evaluation.files import FULL
from evaluation.grader import commands as grader_commands
from evaluation.gvgai import commands as gvgai_commands
from evaluation.l2m import commands as l2m_commands
from evaluation.l2m import ste_commands
from evaluation.l2m.classification import commands as classification
from evaluation.l2m.l2metrics import command as l2metrics_command
from evaluation.logs import commands as log_commands
from evaluation.report import commands as report_commands
from evaluation.report import terminal
from evaluation.sailon import commands as sailon_commands
from evaluation.sciencebirds import commands as sciencebirds_commands
from evaluation.shims import commands as shims_commands
from evaluation.sweep import commands as sweep_commands
from evaluation.train import commands as train_commands
from evaluation.view import commands as view_commands

if TYPE_CHECKING:
    from rich.console import Console

    from evaluation.l2m.run import SyllabusRun as MainJob
    from evaluation.report import Report
    from evaluation.schedule import Schedule

FAILED, USAGE_ERROR = 1, 2
INTERRUPTED = 130
REPORT = "This is an error in jaxsim-novelty, not a wrong input: please report it with these lines."

RUN_EXAMPLES = """examples:
  jaxsim run examples/syllabi/cl_pole_length.json --agent pd --lifetimes 256 --seed 0 --out runs/pd
  jaxsim run my.json --agent random --lifetimes 64 --out runs/r --log-lifetime 0 --overwrite
  jaxsim run long.json --agent mpc --out runs/mpc --checkpoint-every 10min
  jaxsim run long.json --agent mpc --out runs/mpc --resume
  jaxsim run my.json --agent checkpoint:runs/trained --lifetimes 64 --out runs/test
  jaxsim run first.json second.json --agent ppo --lifetimes 8 --out runs/both
  jaxsim run my.json --out runs/own --metric examples/metrics/worst_tenth.py
  L2DATA=~/l2data jaxsim run my.json --agent ppo --lifetimes 1 --out runs/logged

DIR then holds report.html (tables and pictures, for a browser), report.json (every metric with its
interval), records.parquet (one row an episode) and schedule.json. A wrong input is one line on
standard error and exit code 2; nothing is written.

A long run is saved in DIR/checkpoints until it is over. SIGTERM and Ctrl-C save it and end it with
exit code 75. After that, or after it was killed, the same command with --resume continues it, with
the same results. checkpoint:DIR plays the agents that `jaxsim train --out DIR` has trained.
"""

BENCH_EXAMPLES = """examples:
  jaxsim bench --json bench.json --plot bench.png
  jaxsim bench --quick --workload 200 --workload 208_hard --peer pybullet
  jaxsim bench --quick --workload 200 --peer none --agent mine.py

Each program runs in a process of its own and is measured round by round. Peers run from a clone of
the repository; those that are not installed are left out, with the reason. The extras bench,
parity, gymnasium and gymnax install them.
"""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command."""
    parser = argparse.ArgumentParser(
        prog="jaxsim",
        description="Batched CartPole3D in JAX, with protocols to evaluate agents on it.",
    )
    parser.add_argument("--version", action="version", version=f"jaxsim-novelty {__version__}")
    parser.add_argument(
        "--no-cache", action="store_true", help="keep no compiled programs; see jaxsim cache --help"
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_run(commands)
    train_commands.add_to(commands)
    evaluate_commands.add_to(commands)
    sweep_commands.add_to(commands)
    _add_bench(commands)
    l2m_commands.add_to(commands)
    report_commands.add_to(commands)
    ste_commands.add_to(log_commands.add_to(commands))
    classification.add_to(commands)
    l2metrics_command.add_to(commands)
    sailon_commands.add_to(commands)
    gvgai_commands.add_to(commands)
    grader_commands.add_to(commands)
    sciencebirds_commands.add_to(commands)
    catalogue.add_to(commands)
    view_commands.add_to(commands)
    shims_commands.add_to(commands)
    cache_commands.add_to(commands)
    return parser


def _add_run(commands: Commands) -> None:
    run = commands.add_parser(
        "run",
        help="play a lifelong-learning syllabus and report its metrics",
        description="Play a lifelong-learning syllabus over many lifetimes and report its metrics.",
        epilog=RUN_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    run.add_argument(
        "syllabus",
        type=Path,
        nargs="+",
        metavar="SYLLABUS.json",
        help="syllabus to play; several are played in sequence, as one lifetime",
    )
    run.add_argument(
        "--agent",
        default="pd",
        metavar="NAME",
        help="as pd or ppo+ewc (docs/agents.md), FILE.py[:name][+residual] or checkpoint:DIR (pd)",
    )
    run.add_argument("--lifetimes", type=int, default=256, metavar="N", help="lifetimes (256)")
    run.add_argument("--seed", type=int, default=0, metavar="N", help="root of all randomness (0)")
    run.add_argument(
        "--lifetime-idx",
        type=int,
        default=0,
        metavar="K",
        help="number of the first lifetime, to repeat a part of a longer run (0)",
    )
    run.add_argument(
        "--shard",
        metavar="I/N",
        help="play the I-th of N parts of the lifetimes, as worker I-1 of its logs; "
        "`jaxsim sweep join` joins them",
    )
    run.add_argument(
        "--width",
        type=int,
        default=1,
        metavar="N",
        help="episodes of a block that a lifetime plays in parallel before it learns (1)",
    )
    add_out(run, "replace results in DIR; logs stay")
    run.add_argument(
        "--log-lifetime",
        type=int,
        action="append",
        default=[],
        metavar="K",
        help="also write lifetime K as a log under DIR/logs; may be repeated",
    )
    run.add_argument(
        "--log-format",
        metavar="NAME",
        help="format of logs: l2logger (1.1) or learnkit (2019) (l2logger; in $L2DATA learnkit)",
    )
    add_l2data(run)
    run.add_argument(
        "--keep-memory",
        action="store_true",
        help="keep the agents' memories, for --agent checkpoint:DIR with another syllabus",
    )
    add_measure(run)
    add_speed(run)
    run.add_argument(
        "--statistics", action="store_true", help="also print medians, middle halves and spreads"
    )
    add_metric(run)
    checkpoint_commands.add_options(run)
    run.set_defaults(handler=_run)


def _add_bench(commands: Commands) -> None:
    bench = commands.add_parser(
        "bench",
        help="measure environment steps per second, beside other simulators",
        description="Measure environment steps per second, beside other simulators.",
        epilog=BENCH_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    bench.add_argument(
        "--quick", action="store_true", help="only what the ratios need, with fewer episodes"
    )
    bench.add_argument(
        "--json", type=Path, metavar="FILE", help="write all results to FILE, replacing it"
    )
    bench.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help="also measure calls of 64 to 65,536 episodes and plot them in FILE",
    )
    for option, text in (
        ("workload", "measure only this workload; may be repeated"),
        ("peer", "compare only with this peer, or with none for 'none'; may be repeated"),
        ("flags", "default or configured, with jaxsim.configure_cpu(); may be repeated"),
    ):
        bench.add_argument(f"--{option}", action="append", metavar="NAME", help=text)
    bench.add_argument(
        "--agent",
        metavar="NAME",
        help="pure agent that plays whole batches, built-in or FILE.py (pd, as the peers)",
    )
    for option, text in (
        (
            "episodes",
            "episodes of a call (65,536), at most 8,192 at levels 108 and 208; for run and "
            "run_rollout lifetimes, at most 2,048",
        ),
        ("rounds", "measurements of each program (5)"),
        ("seed", "root of the randomness of our workloads (0)"),
        ("threads", "parts of the episodes that are played at the same time (one a core)"),
        ("chunk", "lanes that advance together, a multiple of 64"),
    ):
        bench.add_argument(f"--{option}", type=int, metavar="N", help=text)
    bench.add_argument("--seconds", type=float, metavar="S", help="least time of a measurement (3)")
    bench.add_argument("--quiet", action="store_true", help="no progress bar and no tables")
    bench.set_defaults(handler=_bench)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code.

    Args:
      argv: arguments without the program's name; those of the process if None.
    """
    arguments = build_parser().parse_args(argv)
    # No cache for `bench`, which measures cold starts, nor for `grade`, whose agents are untrusted.
    use_cache = not arguments.no_cache and arguments.command not in ("bench", "grade")
    if not use_cache:
        cache.keep_nothing(os.environ)
    elif problem := cache.use(os.environ):
        print(f"jaxsim: warning: {problem}", file=sys.stderr)
    try:
        with interruptible():
            code = int(arguments.handler(arguments))
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader has closed the pipe, as `head` does: write nothing at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Stopped as stopped:
        print(f"jaxsim: {stopped}", file=sys.stderr)
        return STOPPED
    except (ValueError, OSError) as error:
        if _from_inside(error):
            error.add_note(REPORT)
            raise
        print(f"jaxsim: {_one_line(error)}", file=sys.stderr)
        full = isinstance(error, OSError) and error.errno in FULL
        return FAILED if full else USAGE_ERROR
    except Ended as ended:
        print(f"jaxsim: ended by {signal.Signals(ended.number).name}", file=sys.stderr)
        return 128 + ended.number
    except KeyboardInterrupt:
        print("jaxsim: interrupted", file=sys.stderr)
        return INTERRUPTED


def _from_inside(error: BaseException) -> bool:
    """Whether JAX raised an error; such an error is a bug here, not a wrong input."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    module = frames[-1].f_globals.get("__name__", "") if frames else ""
    return module.partition(".")[0] in ("jax", "jaxlib")


def _one_line(error: BaseException) -> str:
    text = str(error)
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        text = f"{error.filename}: {error.strerror}"  # without the number
    return " ".join(text.split()) or type(error).__name__


def _run(arguments: argparse.Namespace) -> int:
    # Imported here, so that `jaxsim --help` does not wait for JAX.
    from evaluation import processor, scanner
    from evaluation.l2m import run as main_job
    from evaluation.l2m.shards import Shard
    from evaluation.logs.export import Logging
    from evaluation.logs.home import chosen_folder
    from evaluation.report.custom import load_rows

    console = None if arguments.quiet else terminal.console()
    all_lifetimes = arguments.lifetime_idx, arguments.lifetimes
    scanner.check_lifetimes(arguments.lifetimes, arguments.lifetime_idx)
    shard = Shard.of(arguments.shard, *all_lifetimes)
    in_folder = arguments.log_lifetime or [arguments.lifetime_idx]
    job = main_job.SyllabusRun(
        syllabus=tuple(arguments.syllabus),
        out=arguments.out,
        agent=arguments.agent,
        lifetimes=shard.lifetimes,
        seed=arguments.seed,
        first_lifetime=shard.first_lifetime,
        worker=shard.worker,
        width=arguments.width,
        measure=arguments.measure,
        window=arguments.window,
        overwrite=arguments.overwrite,
        log_lifetimes=shard.logged(arguments.log_lifetime, *all_lifetimes),
        log_format=arguments.log_format or "l2logger",
        rows=load_rows(arguments.metric),
        logging=Logging.of(
            chosen_folder(arguments.l2data),
            shard.logged(in_folder, *all_lifetimes),
            arguments.log_format,
        ),
        keep_memory=arguments.keep_memory,
        options=scanner.MachineOptions(chunk=arguments.chunk, threads=arguments.threads),
        pace=checkpoint_commands.pace(arguments),
        resume=arguments.resume,
    )
    processor.configure(job.options)
    schedule = job.checked_schedule()
    if job.logging is not None:
        print(job.logging.line, file=sys.stderr)
    started = time.perf_counter()
    with hearing(checkpoint_commands.tell) as stop:
        report = _play(job, schedule, stop, console)
    if console is None:
        return 0
    from evaluation.report.console import print_report

    print_report(console, report, arguments.statistics)
    seconds = time.perf_counter() - started
    steps = int(report.records.columns["length"].sum())
    console.print(
        f"{steps:,} environment steps in {seconds:.1f} s, compiling included; "
        f"results in {job.out}: open report.html",
        soft_wrap=True,
    )
    return 0


def _play(job: "MainJob", schedule: "Schedule", stop: Stop, console: "Console | None") -> "Report":
    """Run a job, with a progress bar if there is a console."""
    from evaluation.l2m import run as main_job

    label, total = f"{schedule.name}, {job.agent}", schedule.num_episodes * job.lifetimes
    with terminal.progress_bar(console, label, total) as progress:
        return main_job.run(job, schedule, progress, stop, checkpoint_commands.tell)


def _bench(arguments: argparse.Namespace) -> int:
    from evaluation.bench import commands

    console = None if arguments.quiet else terminal.console()
    commands.bench(arguments, console)
    return 0


if __name__ == "__main__":
    sys.exit(main())
