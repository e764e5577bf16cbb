"""`jaxsim shims`."""

import argparse
import os
import sys
from collections.abc import Sequence

from evaluation import shims
from evaluation.arguments import Commands, add_command

EXAMPLES = """examples:
  export PYTHONPATH=$(jaxsim shims)
  python -m learnkit.info
  python -m l2metrics -log_dir syllabus1-1574883536 -syllabus_type agent
  python "$(jaxsim shims)/calc_metrics.py" -syllabus_subtype=CL -log_dir=syllabus1-1574883536
  python my_suite.py                        # with from aivle_grader... and import gym in it

The folder holds thin packages under the names of other tools: aivle_grader, client.agent_client,
objects.TA2_logic, learnkit, l2metrics, calc_metrics, and gym with its interface before 0.26.
`jaxsim grade`, `jaxsim sailon run` and `jaxsim gvgai run` find them by themselves. A warning on
standard error names packages of these names that are hidden, or that hide ours.
"""


def add_to(commands: Commands) -> None:
    """Add `shims` to the subcommands of `jaxsim`."""
    parser = add_command(
        commands, "shims", "print the folder of packages with the names of other tools", EXAMPLES
    )
    parser.set_defaults(handler=_shims)


def _shims(arguments: argparse.Namespace) -> int:
    # As Python searches for a program in the working directory, with the folder as PYTHONPATH.
    warn([os.getcwd(), str(shims.FOLDER), *sys.path])
    print(shims.FOLDER)
    return 0


def warn(path: Sequence[str], only: Sequence[str] | None = None) -> None:
    """Name packages that hide others of the same name, on standard error; see `shims.hidden`."""
    for package in shims.hidden(path, only):
        print(f"jaxsim: warning: {package}", file=sys.stderr)
