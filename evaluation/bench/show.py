"""Tables, progress and a plot of a benchmark; tables need rich, the plot needs matplotlib."""

import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from evaluation.bench.peers import PEERS
from evaluation.bench.result import (
    CONFIGURED,
    DEFAULT,
    OURS,
    RATIOS,
    BenchResult,
    Measurements,
    versions,
)
from evaluation.bench.run import Progress
from evaluation.bench.workloads import NOMINAL
from evaluation.json_types import JsonObject
from evaluation.report import terminal

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Show progress on standard error; yields the function that updates it."""
    from rich.console import Console

    with terminal.progress_bar(Console(file=sys.stderr), "starting", what="steps") as move:
        yield lambda what, done, total: move(done, total, what)


def print_result(console: "Console", result: BenchResult) -> None:
    """Print the rows and the ratios."""
    console.print(_rows_table(result))
    console.print(_ratio_table(result))
    for flags, seconds in result.first_result_seconds.items():
        cached = result.first_result_cached_seconds.get(flags)
        suffix = "" if cached is None else f", {cached:.1f} s with the compilation cache filled"
        console.print(f"Time to the first result, {flags} flags: {seconds:.1f} s{suffix}")
    for program in dict.fromkeys(row.program for row in result.rows):
        if program in PEERS:
            console.print(f"{program}: {PEERS[program].about}.")
    for row in result.rows:
        if row.missing:
            console.print(f"{row.program} {row.workload} was not measured: {row.missing}")
    for flags, facts in _ours(result).items():
        if "device" not in facts:
            continue
        console.print(f"{OURS}, {flags} flags: {facts['device']}, {facts['threads']} threads")
    packages = ", ".join(f"{name} {v}" for name, v in versions().items() if v)
    console.print(f"Python {platform.python_version()}, {packages}")
    console.print(
        f"{result.cores} cores; load {result.load[0]:.1f} before, {result.load[-1]:.1f} after: "
        "other work on the machine changes every number here"
    )


def _ours(result: BenchResult) -> dict[str, JsonObject]:
    """Facts of our own program on its first workload, by flags."""
    facts: dict[str, JsonObject] = {}
    for row in result.rows:
        if row.flags:
            facts.setdefault(row.flags, row.facts)
    return facts


def _rows_table(result: BenchResult) -> "Table":
    from rich import box
    from rich.table import Table

    title = "Environment steps (camera: pictures) a second, median of the rounds"
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("program and workload")
    for heading in HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in result.rows:
        table.add_row(*_cells(row))
    return table


HEADINGS = ("machine", "CPU-second", "at once", "length", "compiling", "memory")
"""Steps a second of the whole machine and of a CPU-second; processes or threads in
parallel; mean length of the episodes; time of compiling, s; peak memory so far."""


def _cells(row: Measurements) -> tuple[str, ...]:
    memory, length = row.facts.get("peak_memory_mib"), row.facts.get("mean_length")
    flags = f" {row.flags}" if row.flags == CONFIGURED else ""
    return (
        f"{row.program} {row.workload}{flags}",
        steps(row.steps_per_wall_second),
        steps(row.steps_per_cpu_second),
        str(row.samples[0].rate.processes) if row.samples else "–",
        "" if length is None else f"{length:.0f}",
        "" if row.compile_seconds is None else f"{row.compile_seconds:.1f} s",
        "" if memory is None else f"{memory:,.0f} MiB",
    )


def _ratio_table(result: BenchResult) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(title="Ratios, median of the rounds", box=box.SIMPLE_HEAD)
    table.add_column("ratio")
    table.add_column("of")
    for flags in (DEFAULT, CONFIGURED):
        table.add_column(flags, justify="right", no_wrap=True)
    for name, definition in RATIOS.items():
        values = [result.ratio(name, flags)[0] for flags in (DEFAULT, CONFIGURED)]
        cells = ["–" if value is None else f"{value:,.2f}" for value in values]
        table.add_row(
            name, f"{OURS} {definition.of} / {definition.program} {definition.workload}", *cells
        )
    return table


def steps(number: float | None) -> str:
    """Write a throughput with three digits."""
    if number is None:
        return "–"
    for unit, letter in ((1e6, " M"), (1e3, " k")):
        if number >= unit:
            return f"{number / unit:.3g}{letter}"
    return f"{number:.3g}"


def check_plot(path: Path) -> None:
    """Check that a plot can be made.

    Raises:
      ValueError: matplotlib is not installed, or it cannot write such files.
    """
    if find_spec("matplotlib") is None:
        raise ValueError("--plot needs matplotlib: pip install 'jaxsim-novelty[notebooks]'")
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    formats = sorted(FigureCanvasAgg.get_supported_filetypes())
    if path.suffix.removeprefix(".") not in formats:
        raise ValueError(f"plot {path} must end in one of .{', .'.join(formats)}")


def plot(values: JsonObject, path: Path) -> None:
    """Plot the throughput of level 200 by the number of episodes of a call, and the peers'.

    Args:
      values: of the JSON of a result.
      path: of the picture.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for curve in values["curves"]:
        episodes, throughput = zip(*curve["points"], strict=True)
        axes.loglog(episodes, throughput, marker="o", label=f"{OURS}, {curve['flags']} flags")
    peers = [row for row in values["rows"] if row["program"] != OURS and row["samples"]]
    for number, row in enumerate(row for row in peers if row["workload"] == NOMINAL):
        axes.axhline(
            row["steps_per_wall_second"],
            color="0.4",
            linestyle=("--", ":", "-.")[number % 3],
            label=row["program"],
        )
    axes.set_xlabel("episodes in one call")
    axes.set_ylabel("environment steps a second")
    axes.set_title(f"CartPole3D level 200, PD policy, {values['machine']['cores']} cores")
    axes.grid(alpha=0.3)
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
