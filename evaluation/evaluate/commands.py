"""`jaxsim evaluate`."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evaluation.arguments import Commands, add_command, parameters_of
from evaluation.files import check_output_file, write_json
from evaluation.json_types import JsonObject
from evaluation.report import terminal

if TYPE_CHECKING:
    from rich.table import Table

    from evaluation.evaluate.job import AgentComparison, ComparisonRow, Mean

FORMAT = 1

EXAMPLES = """examples:
  jaxsim evaluate pd --level 203 --difficulty hard --episodes 1000
  jaxsim evaluate pd mpc my_agent.py --level 200,203 --difficulty easy,hard
  jaxsim evaluate pd random --set pole/length=3 --set gravity=5 --json runs/long_pole.json
  jaxsim evaluate pd --task CartPole2D --level 51

AGENT is a built-in agent (docs/agents.md), FILE.py for a file that holds one, or FILE.py:name. All
agents play the same starts. With several agents the last column is the mean difference to the
first, episode by episode. Intervals are of 95%, over the episodes.
"""


def add_to(commands: Commands) -> None:
    """Add `evaluate` to the subcommands of `jaxsim`."""
    part = add_command(commands, "evaluate", "play agents on levels, without a syllabus", EXAMPLES)
    part.add_argument("agents", nargs="+", metavar="AGENT", help="as pd, mpc or FILE.py")
    part.add_argument("--task", default="CartPole3D", metavar="NAME", help="task (CartPole3D)")
    part.add_argument(
        "--level", metavar="LIST", help="numbers with commas between them; see jaxsim levels"
    )
    part.add_argument(
        "--difficulty", default="easy", metavar="LIST", help="easy, medium, hard (easy)"
    )
    part.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        help="a parameter, as pole/length=3; may be repeated; see jaxsim tasks",
    )
    part.add_argument(
        "--episodes", type=int, default=1000, metavar="N", help="of each agent and level (1000)"
    )
    part.add_argument("--seed", type=int, default=0, metavar="N", help="root of randomness (0)")
    part.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers to FILE")
    part.add_argument("--quiet", action="store_true", help="no progress bar and no table")
    part.set_defaults(handler=evaluate)


def evaluate(arguments: argparse.Namespace) -> int:
    """Play episodes, print a table and write the numbers."""
    console = terminal.unless_quiet(arguments)
    if arguments.json is not None:
        check_output_file("json", arguments.json)
    # Imported here, so that `jaxsim --help` does not wait for JAX.
    from evaluation import processor, scanner
    from evaluation.evaluate.job import AgentComparison, run

    processor.configure(scanner.MachineOptions())
    job = AgentComparison(
        tuple(dict.fromkeys(arguments.agents)),
        arguments.task,
        _numbers(arguments.level),
        tuple(part.strip() for part in arguments.difficulty.split(",")),
        parameters_of(arguments.set),
        arguments.episodes,
        arguments.seed,
    )
    job.check()
    total = len(job.cells()) * len(job.agents) * job.episodes
    with terminal.progress_bar(console, " and ".join(job.agents), total) as move:
        rows = run(job, move)
        if arguments.json is not None:
            write_json(arguments.json, _values(job, rows))
    if console:
        console.print(_table(job, rows))
    return 0


def _values(job: "AgentComparison", rows: Sequence["ComparisonRow"]) -> JsonObject:
    settings = {k: list(v) if isinstance(v, tuple) else v for k, v in vars(job).items()}
    return {"format": FORMAT, "settings": settings, "rows": [row.to_json() for row in rows]}


def _numbers(text: str | None) -> tuple[int, ...]:
    if text is None:
        return ()
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise ValueError(
            f"level is {text!r}; it must be whole numbers with commas between them"
        ) from error


def _table(job: "AgentComparison", rows: Sequence["ComparisonRow"]) -> "Table":
    from rich import box
    from rich.table import Table

    paired = len(job.agents) > 1
    table = Table(
        title=f"{job.episodes:,} episodes each, seed {job.seed}",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.add_column("level" if job.levels else "task", no_wrap=True)
    table.add_column("agent")
    headings = ["performance", "length", "fell", "lasted"]
    any_nonfinite = any(row.nonfinite for row in rows)
    headings += ["not finite"] * any_nonfinite + [f"less {job.agents[0]}"] * paired
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        cells = [row.cell, row.agent, _mean(row.performance, 3), f"{row.length.mean:.1f}"]
        cells += [f"{row.fallen:.1%}", f"{row.survived:.1%}"]
        cells += [f"{row.nonfinite:.1%}"] * any_nonfinite
        cells += [_mean(row.difference, 3) if row.difference else ""] * paired
        table.add_row(*cells)
    return table


def _mean(mean: "Mean", digits: int) -> str:
    return f"{mean.mean:.{digits}f} [{mean.low:.{digits}f}, {mean.high:.{digits}f}]"
