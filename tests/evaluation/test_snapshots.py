"""What commands print and write is what it was: whole texts, numbers up to rounding.

A change that is meant is accepted by `JAXSIM_RENEW_SNAPSHOTS=1 pytest` with this file; its
difference then shows in tests/data/snapshots what users will see.
"""

import argparse
import contextlib
import enum
import inspect
import io
import json
import os
import pkgutil
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

import evaluation as evaluation_package
import jaxsim
from evaluation import cli
from evaluation.bench.rate import Rate
from evaluation.bench.result import (
    CONFIGURED,
    DEFAULT,
    OURS,
    BenchResult,
    Measurements,
    Sample,
    ThroughputCurve,
)
from evaluation.evaluate import commands as evaluate_commands
from evaluation.evaluate import job as evaluate
from evaluation.evaluate.job import AgentComparison, Mean
from evaluation.l2m.report2019 import commands as commands_of_2019
from evaluation.logs.export import FORMATS, write_lifetimes
from evaluation.records import Records
from evaluation.report import html, summarise_records
from evaluation.report.compare import compare_records
from evaluation.sailon import analysis, experiment
from evaluation.sailon.settings import ExperimentSettings
from evaluation.schedule import Schedule
from evaluation.sciencebirds import generate
from evaluation.sweep import launch, report, tables
from evaluation.sweep.bases.base import METRICS
from evaluation.train.course import TrainingCourse
from evaluation.train.curve import LearningCurve as Trained
from tests.evaluation import made_up
from tests.evaluation.sweep import small
from tests.evaluation.test_options import arguments_in
from tests.snapshots import kept

pytestmark = pytest.mark.optimised

ROOT = Path(__file__).parents[2]
NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]\d+)?|-?\d+e[+-]\d+")

ONE, OTHER = made_up.run(0, 5, 4), made_up.run(1, 4, 4)
LOGGED = made_up.run(0, 2), made_up.run(1, 2)
START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def as_json(value):
    return json.dumps(value, indent=1, allow_nan=False)


def printed(show, width=110):
    rich_console = pytest.importorskip("rich.console")
    console = rich_console.Console(record=True, width=width, file=io.StringIO())
    show(console)
    return console.export_text()


def rich(table):
    return printed(lambda console: console.print(table))


def files_in(folder):
    """Text of all files, one below the other; of tables of Arrow, rows of two blocks."""

    def content(path):
        if path.suffix != ".feather":
            return path.read_text()
        return "\n".join(map(str, feather.read_table(path).slice(10, 4).to_pylist()))

    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return "\n".join(f"== {path.relative_to(folder)}\n{content(path)}" for path in paths)


def cells():
    """Metrics of the cells of a sweep, (3 x 2 x 2)."""
    random = np.random.default_rng(0)
    rows = [
        {
            "cell": number,
            "gravity": 2.0 + number // 4,
            "agent": ("pd", "random")[number // 2 % 2],
            "seed": number % 2,
            "metric": metric,
            "value": value if number != 5 else None,
            "low": value - 0.1 if number != 5 else None,
            "high": value + 0.1 if number != 5 else None,
            "count": 16,
            "reason": None if number != 5 else "nothing was played",
        }
        for number in range(12)
        for metric, value in (("performance", random.uniform()), ("length", random.uniform(1, 9)))
    ]
    kinds = {"gravity": pa.float64(), "agent": pa.string(), "seed": pa.int64()}
    schema = pa.schema(
        [("cell", pa.int64()), *kinds.items(), *((f.name, f.type) for f in list(METRICS)[1:])]
    )
    return pa.Table.from_pylist(rows, schema=schema)


def a_table(folder, *axes):
    pq.write_table(cells(), folder / "cells.parquet")
    return tables.table(folder, *axes)


def a_plan(folder):
    values = json.dumps(small.VALUES)
    from evaluation import sweep

    return sweep.plan(json.loads(values), folder / "plan", minutes=small.A_PACK)


def launched(kind):
    def text(folder):
        script = launch.text(
            a_plan(folder), kind, gpus=1, partition="night", image="image", claim="claim"
        )
        return script.replace(str(folder), "FOLDER")

    return text


def manifest(folder):
    """A plan without what depends on what is installed."""
    about = {**a_plan(folder).manifest, "versions": None}
    return as_json(about)


def bench():
    def row(program, workload, flags, rate, **facts):
        samples = [Sample(Rate(1000, 1000 / (rate + k), 2.0, 2), 0.5) for k in range(3)]
        about = {"mean_length": 180.0, "threads": 2, "first_seconds": 9.0, "first_steps": 500}
        return Measurements(program, workload, flags, about | facts, samples)

    rows = [
        row(OURS, workload, flags, rate + 100 * (flags == CONFIGURED))
        for flags in (DEFAULT, CONFIGURED)
        for workload, rate in (("200", 5000.0), ("mix", 4000.0), ("single", 300.0))
    ]
    rows += [
        row("pybullet", "200", None, 90.0),
        Measurements("mujoco", "200", None, {}, [], "not there"),
    ]
    curves = [ThroughputCurve(DEFAULT, [(64, 1.0), (128, 2.0)])]
    first, cached = {DEFAULT: 20.0, CONFIGURED: 30.0}, {DEFAULT: 4.0, CONFIGURED: 5.0}
    return BenchResult({"seed": 1}, 2, first, cached, rows, curves, [0.5, 0.75])


def bench_json(folder):
    values = bench().to_json()
    return as_json({**values, "versions": None, "machine": None})


def options(folder):
    """Every option of every command: its names, default, type and what it may be."""
    lines = []
    for name, action in arguments_in(cli.build_parser()):
        if isinstance(action, argparse._HelpAction | argparse._VersionAction):
            continue
        kind = getattr(action.type, "__name__", action.type)
        words = " ".join(action.option_strings) or "-"
        lines.append(
            f"{name}: {words} {type(action).__name__} nargs={action.nargs} type={kind} "
            f"default={action.default!r} const={action.const!r} choices={action.choices} "
            f"metavar={action.metavar} required={action.required}"
        )
    return "\n".join(lines)


LONGEST = 80  # characters of a text that is the name of something


def modules():
    """Every module but those that stand in for another package, or need PyTorch."""
    for package in (evaluation_package, jaxsim):
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not re.search(r"\.(shims|__main__|sb3)\b", info.name):
                yield pytest.importorskip(info.name)  # some need what is not always installed


def is_plain(value):
    if isinstance(value, tuple | list):
        return all(map(is_plain, value))
    short = isinstance(value, str) and len(value) <= LONGEST
    return short or value is None or type(value) in (bool, int, float)


def constants(folder):
    """Limits, exit codes, names of files and columns: what modules define, not what they import."""
    lines = []
    for module in modules():
        # The numbers of errors are those of the system, and the clock moves.
        pattern = r"(?m)^([A-Z][A-Z0-9_, ]*)(?:: .*)? = (?!\(?errno\.|time\.)"
        assigned = re.findall(pattern, inspect.getsource(module))
        words = [word for names in assigned for word in names.split(", ")]
        values = {f"{module.__name__}.{word}": getattr(module, word) for word in words}
        lines += [f"{name} = {value!r}" for name, value in values.items() if is_plain(value)]
    return "\n".join(lines)


def public(place):
    """Functions and classes of a module or class, by their names, in its order."""
    for name, part in vars(place).items():
        part = getattr(part, "__func__", part)  # of class methods
        here = getattr(part, "__module__", None) == getattr(place, "__module__", place.__name__)
        number = inspect.isclass(part) and issubclass(part, enum.Enum)  # Python decides on these
        if here and callable(part) and not number and not name.startswith("_"):
            yield f"{place.__name__}.{name}", part


def defaults(folder):
    """Defaults of all public functions, methods and classes."""
    lines = []
    for module in modules():
        for name, part in public(module):
            inside = public(part) if inspect.isclass(part) else ()
            for place, one in [(name, part), *((f"{module.__name__}.{n}", p) for n, p in inside)]:
                with contextlib.suppress(ValueError):  # it has no signature
                    lines += [
                        f"{place}({argument.name}={argument.default!r})"
                        for argument in inspect.signature(one).parameters.values()
                        if argument.default is not argument.empty and is_plain(argument.default)
                    ]
    return "\n".join(lines)


def physics(folder):
    """Parameters of every level."""
    lines = []
    for level in jaxsim.levels():
        for difficulty in ("easy", "medium", "hard"):
            task = "CartPole3D" if level.number >= 100 else "CartPole2D"
            env, params = jaxsim.make(task, level=level.number, difficulty=difficulty)
            known = {name: round(float(value), 6) for name, value in vars(params).items()}
            usual = {n: round(float(v), 6) for n, v in vars(jaxsim.make(task)[1]).items()}
            other = {name: value for name, value in known.items() if value != usual[name]}
            lines.append(f"{level.number} {difficulty}: {env.config} {other}")
    return "\n".join(lines)


def logs(form):
    def text(folder):
        write_lifetimes(ONE, folder, form, [1], START)
        return files_in(folder)

    return text


def command(folder, call, *words):
    """What a command prints and the files that it writes to the folder of its name."""
    out = folder / words[0]
    with (
        patch.dict(os.environ, L2DATA=str(folder / "data")),
        contextlib.redirect_stdout(io.StringIO()) as shown,
        contextlib.redirect_stderr(shown),
    ):
        code = call([word.replace("OUT", str(out)) for word in words[1:]])
    text = f"exit code {code}\n{shown.getvalue()}\n{files_in(out)}"
    return text.replace(str(folder), "FOLDER")


def l2metrics(*words):
    """The command on logs of two lifetimes, and an expert of one of their tasks."""

    def text(folder):
        for number, run in enumerate(LOGGED):
            start = START + timedelta(seconds=number)
            write_lifetimes(run, folder / "logs", "l2logger", [number], start)
        learned = made_up.schedule(2).blocks[1]
        expert = Schedule("expert", (replace(learned, index=0, phase=1, count=40),))
        columns = {name: column[:1, :40] for name, column in OTHER.columns.items()}
        records = Records(expert, columns, np.zeros(1, np.int32))
        (log,) = write_lifetimes(records, folder / "expert", "l2logger", [0], START)
        first, _ = sorted((folder / "logs").iterdir())
        places = {"LOG": str(first), "LOGS": str(folder / "logs")}
        given = [places.get(word, word) for word in words]
        parts = [
            command(folder, cli.main, "stored", "l2metrics", "-l", str(log), "-s", "w"),
            command(folder, cli.main, "out", "l2metrics", *given, "-O", "OUT", "--no-plot"),
        ]
        return "\n".join(parts)

    return text


def of_2019(name, *words):
    """A command of the 2019 document on a log of a lifetime."""

    def text(folder):
        (log,) = write_lifetimes(LOGGED[0], folder / "logs", "learnkit", [1], START)
        experts = folder / "data" / "taskinfo" / "info.json"
        experts.parent.mkdir(parents=True)
        experts.write_text(json.dumps({"CartPole3D": 0.5}))
        (folder / "out").mkdir()
        files = ("-json", "OUT/a.json", "-tsv", "OUT/a.tsv")
        call = getattr(commands_of_2019, name)
        return command(folder, call, "out", "-log_dir", str(log), *files, *words)

    return text


def page(text):
    """What a page says, without its program and its style."""
    body = re.sub(r"(?s)<(script|style)\b.*?</\1>", "", text)
    return "\n".join(line for line in body.replace("><", ">\n<").splitlines() if line.strip())


def analysed():
    return analysis.analyse(
        made_up.trials(0, (1,)), made_up.trials(1, (1,)), seed=3, resamples=100, window=4
    )


SNAPSHOTS = {
    "run.json": lambda folder: as_json(summarise_records(ONE, window=5, seed=3).to_json()),
    "run.txt": lambda folder: printed(lambda console: print_run(console)),
    "run.html": lambda folder: page(
        html.of_run(summarise_records(ONE, window=5, seed=3).to_json(), ONE, "jaxsim run", "DIR")
    ),
    "schedule.json": lambda folder: made_up.schedule(4).dumps(),
    "course.json": lambda folder: (
        TrainingCourse("CartPole", (("gravity", 5.0),), 20, 5).schedule(50).dumps()
    ),
    "rows.txt": lambda folder: as_json(ONE.to_table().slice(43, 10).to_pylist()),
    "compare.json": lambda folder: as_json(compare_records(ONE, OTHER, window=5, seed=3).to_json()),
    "compare.txt": lambda folder: printed(lambda console: print_compared(console)),
    "trials.json": lambda folder: as_json(analysed().to_json()),
    "trials.csv": lambda folder: analysed().to_csv() + "\n" + analysed().trials_csv(),
    "trials.txt": lambda folder: printed(
        lambda console: [console.print(table) for table in analysis.tables(analysed(), 110)]
    ),
    "curve.csv": lambda folder: Trained.of(ONE, 3).to_csv(),
    "sweep.json": lambda folder: as_json(report.summarise(cells(), {"name": "s", "cells": 12})),
    "sweep table.csv": lambda folder: tables.csv_text(a_table(folder, "gravity", "agent")),
    "sweep table.txt": lambda folder: rich(tables.rich_table(a_table(folder, "gravity", "agent"))),
    "sweep plan.json": manifest,
    "sbatch.txt": launched("sbatch"),
    "kubernetes.txt": launched("kubernetes"),
    "skypilot.txt": launched("skypilot"),
    "bench.json": bench_json,
    "options.txt": options,
    "constants.txt": constants,
    "defaults.txt": defaults,
    "levels.txt": physics,
    **{f"{form}.txt": logs(form) for form in FORMATS},
    "l2metrics.txt": l2metrics(
        "-l", "LOG", "-p", "performance", "-o", "a b", "--noise", "0", "0.1"
    ),
    "l2metrics batch.txt": l2metrics(
        *("-R", "-l", "LOGS", "-p", "length", "--statistics", "--seed", "3"),
        *("-m", "both", "-t", "both"),
    ),
    "l2metrics compat.txt": l2metrics("-l", "LOG", "-p", "reward", "--compat", "l2metrics-3.1"),
    "2019 l2metrics.txt": of_2019("l2metrics", "-syllabus_subtype", "ANT_A"),
    "2019 calc_metrics.txt": of_2019("calc_metrics", "-measure", "performance", "-window", "5"),
    "experiment.json": lambda folder: drawn(folder),
    "config.xml": lambda folder: config(folder),
    "score.txt": lambda folder: scored(folder),
    "evaluate.txt": lambda folder: evaluated(folder),
    "logs.txt": lambda folder: log_output(folder),
    "compare.html": lambda folder: compared_page(folder),
}


def print_run(console):
    from evaluation.report.console import print_report

    print_report(console, summarise_records(ONE, window=5, seed=3), True)


def print_compared(console):
    from evaluation.report.comparison_tables import print_comparison

    print_comparison(console, compare_records(ONE, OTHER, window=5, seed=3), ("one", "other"))


def drawn(folder):
    """An experiment of every kind of level and difficulty."""
    settings = ExperimentSettings(
        novelty=(200, 203, 101, 52),
        difficulty=("easy", "hard"),
        novelty_visibility=(0, 1),
        hint_level=(1,),
        trials=2,
        training_episodes=3,
        testing_episodes=6,
        pre_novel_episodes=2,
        testing_novelty_p2=0.5,
        seed=3,
    )
    return experiment.generate(settings, "drawn").dumps()


def config(folder):
    """Trials of Science Birds, drawn from a small pool."""
    meta = ROOT / "examples" / "sciencebirds" / "unordered_sets.xml"
    return generate.config_text(meta, 3, generate.GenerateOptions(pool=30))


def scored(folder):
    """What `score` prints and writes."""
    names = ("one.parquet", "other.parquet")
    for name, run in zip(names, (ONE, OTHER), strict=True):
        run.write(folder / name)
    with (
        contextlib.chdir(folder),
        patch.dict(os.environ, COLUMNS="100"),  # workers of a parallel run have another
        contextlib.redirect_stdout(io.StringIO()) as shown,
    ):
        assert cli.main(["score", *names, "--seed", "3", "--json", "scores.json"]) == 0
    return shown.getvalue() + (folder / "scores.json").read_text()


def evaluated(folder):
    """What `evaluate` shows and writes, of rows that are made up."""
    job = AgentComparison(
        ("pd", "random"), levels=(203,), values={"pole/length": 2.0}, episodes=9, seed=3
    )
    mean, other = Mean(0.5, 0.25, 0.75), Mean(-0.125, -0.25, 0.0)
    rows = [
        evaluate.ComparisonRow(
            "203 easy", "pd", mean, Mean(100.0, 90.0, 110.0), 0.5, 0.375, 0.125, None
        ),
        evaluate.ComparisonRow(
            "203 easy", "random", other, Mean(20.0, 9.0, 30.0), 0.75, 0.25, 0.0, other
        ),
    ]
    return rich(evaluate_commands._table(job, rows)) + as_json(evaluate_commands._values(job, rows))


def log_output(folder):
    """What `l2m validate` and `aggregate` say of logs in both forms."""
    texts = []
    for form in FORMATS:
        (log,) = write_lifetimes(ONE, folder / form, form, [1], START)
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            assert cli.main(["l2m", "validate", str(log)]) == 0
            out = folder / f"{form}-all"
            assert cli.main(["l2m", "aggregate", str(log), "--output", str(out)]) == 0
        texts += [shown.getvalue(), out.with_suffix(".tsv").read_text()]
    return "\n".join(texts).replace(str(folder), "FOLDER")


def compared_page(folder):
    """The page of a comparison."""
    values = compare_records(ONE, OTHER, ["mean"], window=5, seed=3).to_json()
    return page(html.of_report("one and other, compared", values, "jaxsim compare one other"))


PRINTED = {
    "command validate.txt": "validate examples/syllabi/cl.json examples/syllabi/ant_c.json --json",
    "command levels.txt": "levels",
    "command level 203.txt": "levels 203",
    "command tasks.txt": "tasks",
    "command metrics.txt": "metrics --json",
    "command track.txt": "gvgai track",
}


def check(name, text):
    expected = kept(name, text)
    for line, (one, other) in enumerate(
        zip(expected.splitlines(), text.splitlines(), strict=False), start=1
    ):
        assert NUMBER.sub("#", one) == NUMBER.sub("#", other), f"{name}, line {line}"
        numbers = [list(map(float, NUMBER.findall(part))) for part in (one, other)]
        np.testing.assert_allclose(*numbers, rtol=1e-5, atol=1e-9, err_msg=f"{name}, line {line}")
    assert len(expected.splitlines()) == len(text.splitlines()), name


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_what_is_written_is_what_it_was(name, tmp_path):
    check(name, SNAPSHOTS[name](tmp_path))


@pytest.mark.parametrize("name", PRINTED)
def test_what_is_printed_is_what_it_was(name, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert cli.main(PRINTED[name].split()) == 0
    check(name, capsys.readouterr().out)
