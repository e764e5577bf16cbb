"""Commands on result directories: `compare`, `plot`, `metrics` and `score`."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evaluation.arguments import Commands, add_command, add_measure, add_metric, command_line
from evaluation.json_types import JsonObject
from evaluation.report import terminal

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console

_TABLE_KINDS: Final = ("raw", "eb", "lb")
"""Kinds of plots that need nothing but a table; "ste" needs single-task experts."""

COMPARE_EXAMPLES = """examples:
  jaxsim compare runs/pd runs/greedy
  jaxsim compare runs/pd runs/greedy --metric mean --metric recovery_time --json compare.json
  jaxsim compare results/mine results/theirs --metric perf_recovery

Both directories were written by `jaxsim run --out` with one syllabus. Or both hold ll_metrics.json
of `jaxsim l2metrics -R` or of l2metrics 3.1: then each log is a lifetime, and only the metrics of
lifelong learning are compared.
The probability is that of a lifetime of RUN_A doing better than one of RUN_B; ties count half.
Better is higher, except for time to saturation, recovery time and forgetting.
P-values are corrected by Holm for the number of blocks and metrics that are compared.
"""

METRICS_EXAMPLES = """examples:
  jaxsim metrics
  jaxsim metrics --scope lifetime --needs predictions
  jaxsim metrics recovery_time auc
  jaxsim metrics --metric examples/metrics/worst_tenth.py --json

A metric of your own is a function in a file; run, train, compare, l2metrics and sailon analyze take
it with --metric FILE.py and show it beside these, with the same intervals (docs/metrics.md).
"""

SCORE_EXAMPLES = """examples:
  jaxsim score runs/cl runs/ant_a runs/ant_b
  jaxsim score runs/cl --json scores.json

Each RUN was written by `jaxsim run --out` and is one syllabus. Each metric is averaged over
lifetimes, then over the runs that have it. The metrics of a capability are averaged to one score
for each unit. Where some runs begin with a task and others learn it after another one, the area
between the two learning curves is printed as well.
"""

PLOT_EXAMPLES = """examples:
  jaxsim plot runs/pd --out runs/pd/plots
  jaxsim plot runs/pd --out plots --measure reward
  jaxsim plot results/run_data.feather --out plots --kind eb --kind lb
  jaxsim plot results/run_data.feather --out plots --live 30

A directory of `jaxsim run` gives the mean over its lifetimes, with the 95 % interval as a band. A
table of episodes, as `jaxsim l2metrics` and l2metrics save it, gives one lifetime's raw training
(raw), evaluation blocks (eb) and learning blocks (lb).
The extra plots brings matplotlib: pip install 'jaxsim-novelty[plots]'
"""


def add_to(commands: Commands) -> None:
    """Add `compare`, `plot`, `metrics` and `score` to the subcommands of a parser."""
    _add_compare(commands)
    _add_plot(commands)
    _add_metrics(commands)
    _add_score(commands)


def _add_compare(commands: Commands) -> None:
    compare = add_command(
        commands,
        "compare",
        "compare two runs of one syllabus, metric by metric and block by block",
        COMPARE_EXAMPLES,
    )
    compare.add_argument("first", type=Path, metavar="RUN_A", help="directory of one run")
    compare.add_argument("second", type=Path, metavar="RUN_B", help="directory of another")
    compare.add_argument(
        "--metric",
        action="append",
        default=[],
        metavar="NAME|FILE",
        help="compare this metric only, for example mean, or also that of FILE.py; may be repeated",
    )
    compare.add_argument(
        "--paired",
        action="store_true",
        help="compare lifetimes of the same number only; the runs must have one seed",
    )
    compare.add_argument(
        "--json", type=Path, metavar="FILE", help="write all numbers there, and a page beside it"
    )
    _add_numbers(compare)
    compare.set_defaults(handler=_compare)


def _add_plot(commands: Commands) -> None:
    plot = add_command(
        commands,
        "plot",
        "plot the lifetimes of a run, or one lifetime from a table of its episodes",
        PLOT_EXAMPLES,
    )
    plot.add_argument(
        "run", type=Path, metavar="RUN", help="directory of a run, or a table NAME_data.feather"
    )
    plot.add_argument("--out", type=Path, required=True, metavar="DIR", help="where plots go")
    plot.add_argument(
        "--measure",
        metavar="NAME",
        help="an episode's value: for a run performance, reward or length (performance), for a"
        " table one of its columns (its only one)",
    )
    plot.add_argument(
        "--kind",
        action="append",
        metavar="KIND",
        help="for a table, draw only this kind: raw, eb or lb; may be repeated",
    )
    plot.add_argument(
        "--unit", metavar="UNIT", help="for a table, count learning in exp_num or steps (exp_num)"
    )
    plot.add_argument(
        "--live", type=float, metavar="S", help="check for changes every S seconds and draw again"
    )
    plot.add_argument("--seed", type=int, default=0, metavar="N", help="of the bootstrap (0)")
    plot.set_defaults(handler=_plot)


def _add_metrics(commands: Commands) -> None:
    metrics = add_command(commands, "metrics", "list every metric", METRICS_EXAMPLES)
    metrics.add_argument("names", nargs="*", metavar="NAME", help="these only, with all fields")
    metrics.add_argument("--scope", metavar="WORD", help="block, task, lifetime or trial only")
    metrics.add_argument("--needs", metavar="WORD", help="such as experts, predictions, baseline")
    metrics.add_argument("--json", action="store_true", help="print all fields as JSON")
    add_metric(metrics, "also list the metrics of a Python file; may be repeated")
    metrics.set_defaults(handler=_metrics)


def _add_score(commands: Commands) -> None:
    score = add_command(
        commands, "score", "average runs to scores for the core capabilities", SCORE_EXAMPLES
    )
    score.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="directories of runs")
    score.add_argument("--json", type=Path, metavar="FILE", help="write all numbers there")
    _add_numbers(score)
    add_metric(score)
    score.set_defaults(handler=_score)


def _score(arguments: argparse.Namespace) -> int:
    # Imported here, so that `jaxsim --help` does not wait for JAX.
    from evaluation.files import write_json
    from evaluation.records import UNIT_MEASURES, read_run
    from evaluation.report.capabilities import capability_scores, lifetime_scores
    from evaluation.report.custom import load_rows
    from evaluation.report.transfer import between_tasks

    console = terminal.unless_quiet(arguments)
    rows = load_rows(arguments.metric)
    places = [path.resolve() for path in arguments.runs]
    if twice := [path for path in arguments.runs if places.count(path.resolve()) > 1]:
        raise ValueError(f"{twice[0]} is given twice; its lifetimes would count twice")
    runs = [read_run(path) for path in arguments.runs]
    scores = [lifetime_scores(run, arguments.measure, arguments.window, rows) for run in runs]
    unit = arguments.measure in UNIT_MEASURES
    lifetimes = [run.lifetime_names() for run in runs]
    capabilities = capability_scores(scores, rows, arguments.seed, unit, lifetimes)
    transfer = between_tasks(runs, arguments.measure)
    if arguments.json:
        content = {
            "runs": [
                {
                    "run": str(path),
                    "syllabus": run.schedule.name,
                    "agent": run.metadata.get("agent"),
                    "lifetimes": run.num_lifetimes,
                }
                for path, run in zip(arguments.runs, runs, strict=True)
            ],
            "measure": arguments.measure,
            "window": arguments.window,
            "capabilities": {name: c.to_json() for name, c in capabilities.items()},
            "transfer": [pair.to_json() for pair in transfer],
        }
        write_json(arguments.json, content)
    if console:
        from evaluation.report.console import print_capabilities, print_transfer

        names = ", ".join(f"{run.schedule.name} ({run.metadata.get('agent', '')})" for run in runs)
        console.print(f"{len(runs)} runs: {names}; {arguments.measure}")
        if len({run.metadata.get("agent") for run in runs}) > 1:
            console.print("the runs are of different agents; a capability's score averages them")
        print_capabilities(console, capabilities, every=True)
        print_transfer(console, transfer)
    return 0


def _metrics(arguments: argparse.Namespace) -> int:
    from evaluation.metrics.registry import SCOPES
    from evaluation.metrics.table import METRICS
    from evaluation.report.metric_catalogue import as_json, details, table
    from jaxsim import parameters

    rows = list(METRICS)
    if arguments.metric:
        from evaluation.report.custom import load_rows

        rows += load_rows(arguments.metric)
    needs = sorted({word for row in METRICS for word in row.needs})
    for option, words in (("scope", SCOPES), ("needs", needs)):
        if (word := getattr(arguments, option)) is not None and word not in words:
            raise ValueError(f"{option} is {word!r}; it must be one of {', '.join(words)}")
    if unknown := [name for name in arguments.names if name not in {row.name for row in rows}]:
        raise ValueError(parameters.unknown("metric", unknown[0], [row.name for row in rows]))
    selection = [
        row
        for row in rows
        if (not arguments.names or row.name in arguments.names)
        and arguments.scope in (None, row.scope)
        and (arguments.needs is None or arguments.needs in row.needs)
    ]
    if arguments.json:
        print(json.dumps(as_json(selection), indent=2))
    elif arguments.names:
        print("\n\n".join(details(row) for row in selection))
    else:
        terminal.console().print(table(selection))
    return 0


def _add_numbers(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that compute metrics of runs."""
    add_measure(parser)
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the bootstrap (0)")
    parser.add_argument("--quiet", action="store_true", help="no tables")


def _compare(arguments: argparse.Namespace) -> int:
    # Imported here, so that `jaxsim --help` does not wait for JAX.
    from evaluation.records import read_run
    from evaluation.report.compare import COMPARED, compare_records
    from evaluation.report.custom import load_rows

    console = terminal.unless_quiet(arguments)
    if arguments.json and arguments.json.suffix == ".html":
        raise ValueError(f"json is {arguments.json}, the name of the page beside it; write .json")
    if not any(_is_run(path) for path in (arguments.first, arguments.second)):
        return _compare_results(arguments, console)
    files, names = _split_metrics(arguments.metric)
    rows = load_rows(files)
    comparison = compare_records(
        read_run(arguments.first),
        read_run(arguments.second),
        names or COMPARED,
        arguments.measure,
        arguments.window,
        arguments.seed,
        arguments.paired,
        rows,
    )
    if arguments.json:
        _write(arguments, comparison.to_json())
    if console:
        from evaluation.report.comparison_tables import print_comparison

        print_comparison(console, comparison, _names(arguments.first, arguments.second))
    return 0


def _split_metrics(texts: list[str]) -> tuple[list[str], list[str]]:
    """Split values of `--metric` into files and names."""
    files = [text for text in texts if text.endswith(".py") or ".py:" in text]
    return files, [text for text in texts if text not in files]


def _is_run(path: Path) -> bool:
    """Whether a path holds records; also true if it holds no results of logs."""
    return path.suffix == ".parquet" or not any(path.glob("**/ll_metrics.json"))


def _compare_results(arguments: argparse.Namespace, console: "Console | None") -> int:
    """Compare two directories of results of logs."""
    from evaluation.report.compare import COMPARED, compare_lifelong
    from evaluation.report.lifelong import lifelong_of_results
    from evaluation.report.results import load_results

    if _split_metrics(arguments.metric)[0]:
        raise ValueError(
            "--metric FILE.py is for directories of jaxsim run; for logs, name metrics"
        )
    if arguments.paired:
        raise ValueError(
            "--paired is for directories of `jaxsim run`; lifetimes of logs have no numbers"
        )
    for option, value, default in _of_measure(arguments):
        if value != default:
            raise ValueError(
                f"{option} is for directories of `jaxsim run`; for logs, jaxsim l2metrics sets "
                "measure (-p) and window (-w)"
            )
    results = [
        load_results(sorted(path.glob("**/ll_metrics.json")))
        for path in (arguments.first, arguments.second)
    ]
    about = [one for run in results for one in run.about]
    measures = dict.fromkeys(str(one["metrics_column"]) for one in about if "metrics_column" in one)
    if len(measures) > 1:
        listed = " and ".join(measures)
        raise ValueError(f"the results are of {listed}; give l2metrics the same -p for all")
    ranges = [one.get("normalization_data_range") for one in about]
    if any(one != ranges[0] for one in ranges):
        print(
            "jaxsim: warning: the logs were normalised by different ranges, so their values cannot "
            "be compared; give l2metrics the same -d for all",
            file=sys.stderr,
        )
    runs = [lifelong_of_results(one) for one in results]
    metrics = arguments.metric or COMPARED
    comparison = compare_lifelong(runs[0], runs[1], metrics, arguments.seed)
    if not comparison.lifetime:
        common = ", ".join(name for name in runs[0].lifetime if name in runs[1].lifetime)
        raise ValueError(
            f"the results have none of {', '.join(metrics)} in common; they have {common or 'none'}"
        )
    if arguments.json:
        _write(arguments, comparison.to_json())
    if console:
        from evaluation.report.comparison_tables import print_lifelong_comparison

        print_lifelong_comparison(console, comparison, _names(arguments.first, arguments.second))
    return 0


def _of_measure(arguments: argparse.Namespace) -> list[tuple[str, str | int, str | int]]:
    """Options of `add_measure`, their values and defaults."""
    return [
        ("--measure", arguments.measure, "performance"),
        ("--window", arguments.window, 11),
    ]


def _write(arguments: argparse.Namespace, values: JsonObject) -> None:
    """Write the comparison as JSON, and as a page beside it."""
    from evaluation.files import write_json, write_whole
    from evaluation.report import html

    write_json(arguments.json, values)
    one, other = _names(arguments.first, arguments.second)
    words = ["compare", arguments.first.name, arguments.second.name]
    words += [word for metric in arguments.metric for word in ("--metric", Path(metric).name)]
    words += ["--paired"] * arguments.paired
    options = (
        *_of_measure(arguments),
        ("--seed", arguments.seed, 0),
        ("--json", arguments.json.name, None),
    )
    page = html.of_report(f"{one} and {other}, compared", values, command_line(words, options))
    write_whole(arguments.json.with_suffix(".html"), page)


def _names(first: Path, second: Path) -> tuple[str, str]:
    """Short names of two runs: their directories' names, or A and B if these are equal."""
    names = first.resolve().name, second.resolve().name
    return names if names[0] != names[1] else ("A", "B")


def _plot(arguments: argparse.Namespace) -> int:
    from evaluation.report.live import repeat_on_change

    table = arguments.run.suffix == ".feather"
    if not table and (arguments.kind or arguments.unit):
        raise ValueError("--kind and --unit are for saved tables, NAME_data.feather")
    if table and arguments.seed:
        raise ValueError("--seed is for directories of runs; a table's plots draw nothing")
    for kind in arguments.kind or ():
        if kind not in _TABLE_KINDS:
            raise ValueError(f"kind is {kind!r}; it must be one of {', '.join(_TABLE_KINDS)}")

    def draw() -> None:
        for path in _plot_table(arguments) if table else _plot_run(arguments):
            print(path, flush=True)

    if arguments.live is None:
        draw()
        return 0
    file = arguments.run / "records.parquet" if arguments.run.is_dir() else arguments.run
    repeat_on_change(draw, file, arguments.live)
    return 0


def _plot_run(arguments: argparse.Namespace) -> list[Path]:
    from evaluation.records import read_run
    from evaluation.report.l2m_plots import plot_records

    records = read_run(arguments.run)
    run = arguments.run.resolve()
    name = run.name if run.is_dir() else run.stem
    path = arguments.out / f"{name}_records.png"
    return [plot_records(records, path, arguments.measure or "performance", arguments.seed)]


def _plot_table(arguments: argparse.Namespace) -> list[Path]:
    from evaluation.report.l2m_plots import plot_run, task_colours
    from evaluation.report.plot_tables import read_tables

    runs = list(read_tables(arguments.run, arguments.measure))
    tasks = [t for run in runs for t in _tasks(run.data)]
    paths = []
    for run in runs:
        paths += plot_run(
            run.data,
            run.regimes,
            arguments.out,
            arguments.kind or _TABLE_KINDS,
            run=run.name,
            measure=run.measure,
            unit=arguments.unit or "exp_num",
            colours=task_colours(tasks),
        )
    return paths


def _tasks(data: "pa.Table") -> list[str]:
    """Names of the tasks of a table; empty without the column task_name."""
    return data["task_name"].unique().to_pylist() if "task_name" in data.column_names else []
