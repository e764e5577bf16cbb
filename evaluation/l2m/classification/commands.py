"""The command `jaxsim classify`, which plays a syllabus of classification."""

import argparse
from pathlib import Path
from typing import Final

from evaluation.arguments import Commands, add_command, add_out
from evaluation.report import terminal

EXAMPLES: Final = """examples:
  jaxsim classify examples/syllabi/moved_digits.json --learner mlp --lifetimes 8 --out runs/digits
  python -m evaluation.l2metrics2019 -log_dir runs/digits/logs/... -syllabus_type class

DIR then has records.parquet (one row per batch), report.json (every metric with its interval),
schedule.json, and lifetime 0 as a log of the 2019 layout under logs. The data set Digits needs the
extra classification. A wrong input is one line on standard error and exit code 2.
"""


def add_to(commands: Commands) -> None:
    """Add ``classify`` to the commands of a parser.

    Args:
      commands: what ``add_subparsers`` returned.
    """
    parser = add_command(
        commands, "classify", "play a syllabus of classification and report its metrics", EXAMPLES
    )
    add_arguments(parser)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to a parser, and its handler."""
    parser.add_argument("syllabus", type=Path, metavar="SYLLABUS.json", help="the syllabus to play")
    parser.add_argument(
        "--learner", default="mlp", metavar="NAME", help="mlp, softmax or chance (mlp)"
    )
    parser.add_argument("--lifetimes", type=int, default=8, metavar="N", help="lifetimes (8)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="root of randomness (0)")
    add_out(parser, "replace results in DIR; logs stay")
    parser.add_argument(
        "--log-lifetime",
        type=int,
        action="append",
        metavar="K",
        help="write lifetime K as a log of the 2019 layout (0); may be repeated",
    )
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="data sets of arrays, DIR/NAME/train_images.npy"
    )
    parser.add_argument("--window", type=int, default=11, metavar="N", help="smoothing window (11)")
    parser.add_argument("--quiet", action="store_true", help="no tables")
    parser.set_defaults(handler=classify)


def classify(arguments: argparse.Namespace) -> int:
    """Play, write, and show the report; return the exit code.

    Raises:
      ValueError: a wrong input.
    """
    # Imported here, so that --help does not wait for JAX.
    from evaluation.l2m.classification import folders, run

    console = None if arguments.quiet else terminal.console()
    if arguments.data is not None:
        folders.register(arguments.data)
    job = run.ClassificationRun(
        syllabus=arguments.syllabus,
        out=arguments.out,
        learner=arguments.learner,
        lifetimes=arguments.lifetimes,
        seed=arguments.seed,
        window=arguments.window,
        overwrite=arguments.overwrite,
        log_lifetimes=tuple(dict.fromkeys(arguments.log_lifetime or [0])),
    )
    report = run.run(job, job.checked_syllabus())
    if console is None:
        return 0
    from evaluation.report.console import print_report

    print_report(console, report)
    return 0
