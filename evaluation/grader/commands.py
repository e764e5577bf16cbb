"""`jaxsim grade`."""

import argparse
import contextlib
import json
import sys
from pathlib import Path

from evaluation.arguments import Commands
from evaluation.grader.agent import CreateAgent

GRADED, FAILED = range(2)
"""Exit codes: every case was played to its end, an error ended one."""

MIB = 1 << 20

GRADE_EXAMPLES = """examples:
  jaxsim grade examples/grader/balance.py examples/grader/my_agent.py
  jaxsim grade my_test_suite submissions/alice --out alice.json
  jaxsim grade suite.py:final agent.py:Expert --memory-limit 2048

SUITE and AGENT are a module, a file or a package's folder, and after a colon a name in it:
test_suite and create_agent if none is given. The result is strict JSON, on standard output or in
--out; what agents print goes to standard error. In each case the agent has a process of its own,
so that it cannot end the grader or write its result; --no-isolate has it play in the grader's own
process, which suits agents that you trust. Exit code 0: every case was played to its end, and its
result is written; 1: an error ended one, which the result names; 2: no such suite or agent.
"""


def add_to(commands: Commands) -> None:
    """Add `grade` to the subcommands of `jaxsim`."""
    grade = commands.add_parser(
        "grade",
        help="grade an agent with a test suite",
        description="Grade an agent with a test suite of evaluation.grader.",
        epilog=GRADE_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    grade.add_argument("suite", metavar="SUITE", help="the TestSuite to play")
    grade.add_argument("agent", metavar="AGENT", help="function or class that makes the agent")
    grade.add_argument("--out", type=Path, metavar="FILE", help="write the result there")
    grade.add_argument(
        "--isolate",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="give the agent a process of its own in every case; without it an agent can end the "
        "grader and forge its result (yes)",
    )
    grade.add_argument(
        "--memory-limit",
        type=int,
        metavar="MIB",
        help="address space of the agent's process in every case",
    )
    grade.set_defaults(handler=_grade)


def _agent(arguments: argparse.Namespace) -> CreateAgent:
    """Function that makes agents; checked to exist."""
    from evaluation.grader import loading

    if not arguments.isolate:
        return loading.load_agent(arguments.agent)
    submission = loading.Submission(arguments.agent)
    submission.check()
    return submission


def _grade(arguments: argparse.Namespace) -> int:
    # Imported here, so that `jaxsim --help` does not wait for them.
    from evaluation import shims
    from evaluation.files import check_output_file, write_whole
    from evaluation.grader import loading
    from evaluation.grader.containment import contained
    from evaluation.grader.limits import LEAST_MEMORY
    from evaluation.shims.commands import warn

    out = None
    if arguments.out is not None:
        check_output_file("out", arguments.out)
        out = arguments.out.absolute()  # without isolation, agents may go to another folder
    least = LEAST_MEMORY // MIB
    if arguments.memory_limit is not None and arguments.memory_limit < least:
        raise ValueError(f"memory-limit is {arguments.memory_limit}; it must be at least {least}")
    if not arguments.isolate and arguments.memory_limit is not None:
        raise ValueError("--memory-limit needs a process for the agent; leave out --no-isolate")
    memory = None if arguments.memory_limit is None else arguments.memory_limit * MIB
    shims.put_on_path()
    if out is not None:
        out.unlink(missing_ok=True)  # an agent that kills the grader leaves no old grade
    with contextlib.redirect_stdout(sys.stderr), contained():
        suite = loading.load_suite(arguments.suite)
        for number, case in enumerate(suite.test_cases, 1):
            if not arguments.isolate and case.memory_limit is not None:
                raise ValueError(
                    f"case {number} of the suite has a memory_limit, which needs a process for the "
                    "agent; leave out --no-isolate"
                )
            case.isolate = arguments.isolate
            case.memory_limit = memory or case.memory_limit
        warn(sys.path, ("aivle_grader", "gym"))
        results = suite.run(_agent(arguments))
    text = json.dumps(results, indent=2, allow_nan=False) + "\n"
    if out is None:
        sys.stdout.write(text)
    else:
        try:
            write_whole(out, text)
        except OSError as error:  # an agent may have put a folder there
            sys.stdout.write(text)
            raise OSError(error.errno, error.strerror, str(arguments.out)) from error
    errors = [each["result"]["error"] for each in results["results"]]
    return FAILED if any(errors) else GRADED
