"""`jaxsim train`."""

import argparse
import sys
import time
from typing import TYPE_CHECKING

from evaluation.arguments import Commands, add_command, add_l2data, add_metric, add_out, add_speed
from evaluation.checkpoints import commands as checkpoint_commands
from evaluation.checkpoints.stopping import Stop, hearing
from evaluation.report import terminal

if TYPE_CHECKING:
    from rich.console import Console

    from evaluation import scanner
    from evaluation.records import Records
    from evaluation.train.curve import LearningCurve
    from evaluation.train.run import TrainingRun

EXAMPLES = """examples:
  jaxsim train 200 --agent ppo --episodes 4000 --out runs/ppo
  jaxsim train 203 --difficulty hard --agent ppo --lifetimes 256 --minutes 30 --out runs/ppo203
  jaxsim train CartPole3D --set pole/length=1.5 --agent ppo --out runs/long_pole
  jaxsim train 200 --agent ppo --episodes 8000 --out runs/ppo --resume
  jaxsim run examples/syllabi/cl_pole_length.json --agent checkpoint:runs/ppo --out runs/test

TASK is a task of `jaxsim tasks`, or the number of a level of the novelty catalogue. Before and
after every --eval-every training episodes the agent is evaluated, without learning. DIR then holds
records.parquet (one row an episode), curve.csv, curve.json and curve.png (mean performance in each
evaluation, with its 95 % interval over the lifetimes), schedule.json, report.html (the curve for a
browser), and checkpoints.

SIGTERM and Ctrl-C save the run and end it with exit code 75. After that, or after it was killed,
the same command with --resume continues it, with the same results. A finished run continues with
more --episodes or --minutes. A wrong input is one line on standard error and exit code 2, a full
disk exit code 1.
"""


def add_to(commands: Commands) -> None:
    """Add `train` to the subcommands of `jaxsim`."""
    train = add_command(commands, "train", "train an agent on one task, with a curve", EXAMPLES)
    train.add_argument("task", metavar="TASK", help="task or level to learn")
    train.add_argument(
        "--difficulty", metavar="NAME", help="of a level: easy, medium or hard (easy)"
    )
    train.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        help="a parameter of the task, see jaxsim tasks; may be repeated",
    )
    train.add_argument(
        "--agent", default="ppo", metavar="NAME", help="agent that learns, or checkpoint:DIR (ppo)"
    )
    train.add_argument(
        "--episodes", type=int, metavar="N", help="training episodes (2000 without --minutes)"
    )
    train.add_argument(
        "--minutes", type=float, metavar="M", help="end with the next evaluation after M minutes"
    )
    train.add_argument(
        "--eval-every",
        type=int,
        default=200,
        metavar="N",
        help="training episodes between evaluations (200)",
    )
    train.add_argument(
        "--eval-episodes", type=int, default=20, metavar="N", help="episodes of an evaluation (20)"
    )
    for name, default, text in (
        ("lifetimes", 64, "independent agents that learn (64)"),
        ("seed", 0, "root of all randomness (0)"),
        ("lifetime-idx", 0, "number of the first lifetime (0)"),
        (
            "width",
            None,
            "episodes that a lifetime plays in parallel before it learns from all of them "
            "(16, or --eval-every if that is less; 1 is many times slower)",
        ),
    ):
        train.add_argument(f"--{name}", type=int, default=default, metavar="N", help=text)
    add_out(train)
    add_metric(train)
    add_l2data(train)
    train.add_argument(
        "--log-lifetime",
        type=int,
        action="append",
        default=[],
        metavar="K",
        help="lifetime that is logged under $L2DATA (the first); may be repeated",
    )
    checkpoint_commands.add_options(train)
    add_speed(train, quiet="no progress bar and no summary")
    train.set_defaults(handler=_train)


def _train(arguments: argparse.Namespace) -> int:
    # Imported here, so that `jaxsim --help` does not wait for JAX.
    from evaluation import processor

    console = None if arguments.quiet else terminal.console()
    job = _job(arguments)
    processor.configure(job.options)
    job.check()
    if job.logging is not None:
        print(job.logging.line, file=sys.stderr)
    if console is not None:
        _print_width(console, job, chosen=arguments.width is None)
    started = time.monotonic()
    with hearing(checkpoint_commands.tell) as stop:
        records, curve = _run(job, stop, console)
    if console is not None:
        _print(console, job, records, curve, time.monotonic() - started)
    return 0


def _job(arguments: argparse.Namespace) -> "TrainingRun":
    from evaluation import scanner
    from evaluation.logs.export import Logging
    from evaluation.logs.home import chosen_folder
    from evaluation.report.custom import load_rows
    from evaluation.train.course import TrainingCourse, task_of
    from evaluation.train.run import TrainingRun

    task, parameters = task_of(arguments.task, arguments.difficulty, arguments.set)
    course = TrainingCourse(task, parameters, arguments.eval_every, arguments.eval_episodes)
    logs = chosen_folder(arguments.l2data)
    if arguments.log_lifetime and logs is None:
        raise ValueError("log-lifetime needs a folder: name it with --l2data, or in $L2DATA")
    return TrainingRun(
        course=course,
        out=arguments.out,
        agent=arguments.agent,
        episodes=arguments.episodes,
        minutes=arguments.minutes,
        lifetimes=arguments.lifetimes,
        seed=arguments.seed,
        first_lifetime=arguments.lifetime_idx,
        width=course.full_speed_width if arguments.width is None else arguments.width,
        overwrite=arguments.overwrite,
        options=scanner.MachineOptions(chunk=arguments.chunk, threads=arguments.threads),
        pace=checkpoint_commands.pace(arguments),
        resume=arguments.resume,
        rows=load_rows(arguments.metric),
        logging=Logging.of(logs, arguments.log_lifetime or [arguments.lifetime_idx]),
    )


def _print_width(console: "Console", job: "TrainingRun", chosen: bool) -> None:
    """Print how many episodes are played in parallel, and whether more would learn faster."""
    full = job.course.full_speed_width
    if chosen:
        console.print(
            f"width {full}: a lifetime learns from {full} episodes at once (--width changes it)"
        )
    elif job.width < full // 2:
        console.print(
            f"width {job.width}: learning after so few episodes is slow; --width {full} is at full "
            "speed"
        )


def _run(
    job: "TrainingRun", stop: Stop, console: "Console | None"
) -> "tuple[Records, LearningCurve]":
    """Run a job, with a progress bar if there is a console."""
    from evaluation.train import run as training

    total = job.schedule.num_episodes * job.lifetimes
    with terminal.progress_bar(console, f"{job.course.name}, {job.agent}", total) as progress:
        minutes = None if job.episodes else job.minutes
        shown = _by_time(progress, minutes) if progress and minutes else progress
        return training.run(job, shown, stop, checkpoint_commands.tell)


def _by_time(progress: "scanner.Progress", minutes: float) -> "scanner.Progress":
    """Show an estimate of the total number of episodes, from the remaining time."""
    started = time.monotonic()

    def show(done: int, total: int) -> None:
        share = (time.monotonic() - started) / (60 * minutes)
        progress(done, max(done, min(total, int(done / max(share, 1e-9)))))

    return show


def _print(
    console: "Console",
    job: "TrainingRun",
    records: "Records",
    curve: "LearningCurve",
    seconds: float,
) -> None:
    from evaluation.report.console import print_custom, print_novelty
    from evaluation.report.custom_metrics import summarise_custom
    from evaluation.report.names import block_names
    from evaluation.report.novelty import summarise_novelty

    steps = int(records.columns["length"].sum())
    interval = f" [{curve.low[-1]:.3f}, {curve.high[-1]:.3f}]" if curve.lifetimes > 1 else ""
    console.print(
        f"performance {curve.mean[0]:.3f} before training, {curve.mean[-1]:.3f}{interval} after "
        f"{curve.episodes[-1]:,} episodes"
    )
    if job.rows:
        print_custom(console, summarise_custom(job.rows, records, job.seed))
    novelty = summarise_novelty(records, job.seed)
    if novelty is not None:
        print_novelty(console, novelty, block_names(records.schedule))
    console.print(
        f"{steps:,} environment steps in all, {seconds:.1f} s of this run, compiling included; "
        f"results in {job.out}; --agent checkpoint:{job.out} plays what was learned"
    )
