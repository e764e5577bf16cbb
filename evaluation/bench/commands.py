"""`jaxsim bench`."""

import argparse
from contextlib import nullcontext
from typing import TYPE_CHECKING

from evaluation.bench import show
from evaluation.bench.run import CURVE, Benchmark, quick, run
from evaluation.files import check_output_file, write_json

if TYPE_CHECKING:
    from rich.console import Console

NONE = "none"
"""Value of `--peer` for no peers."""
SETTINGS = ("episodes", "rounds", "seconds", "agent", "seed", "threads", "chunk")


def bench(arguments: argparse.Namespace, console: "Console | None") -> None:
    """Measure, and show and write the results.

    Args:
      arguments: of the command line.
      console: a rich console for the tables; None for neither tables nor progress.

    Raises:
      ValueError: says what to change.
    """
    benchmark = benchmark_of(arguments)
    benchmark.check()
    if console is None and not (arguments.json or arguments.plot):
        raise ValueError("--quiet shows nothing: pass --json or --plot with it")
    for name, path in (("json", arguments.json), ("plot", arguments.plot)):
        if path:
            check_output_file(name, path)
    if arguments.plot:
        show.check_plot(arguments.plot)
    with show.progress_bar() if console else nullcontext() as progress:
        result = run(benchmark, progress)
    values = result.to_json()
    if arguments.json:
        write_json(arguments.json, values)
    if arguments.plot:
        show.plot(values, arguments.plot)
    if console:
        show.print_result(console, result)


def benchmark_of(arguments: argparse.Namespace) -> Benchmark:
    """The benchmark of a command line."""
    changes = {name: value for name in SETTINGS if (value := getattr(arguments, name)) is not None}
    if arguments.workload:
        changes["workloads"] = tuple(dict.fromkeys(arguments.workload))
    if arguments.flags:
        changes["flags"] = tuple(dict.fromkeys(arguments.flags))
    if arguments.peer:
        changes["peers"] = () if arguments.peer == [NONE] else tuple(dict.fromkeys(arguments.peer))
    if arguments.plot:
        changes["curve"] = CURVE
    return quick(**changes) if arguments.quick else Benchmark(**changes)
