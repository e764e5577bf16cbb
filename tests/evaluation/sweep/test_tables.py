"""Tables and pictures of merged results, files for schedulers, and shards of one run."""

import argparse
import csv
import io
import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from evaluation import cli, sweep
from evaluation.logs import learnkit, read_columns
from evaluation.metrics.statistics import wilson
from evaluation.report import terminal
from evaluation.sweep import handlers, launch, means, merging, playing, report, tables
from tests.evaluation.report.test_html import at, check_page, read
from tests.evaluation.sweep import small
from tests.evaluation.sweep.test_bases import SYLLABUS


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    plan = sweep.plan(small.VALUES, tmp_path_factory.mktemp("tables") / "plan")
    playing.run(plan)
    sweep.merge(plan)
    return plan


def test_a_value_is_the_mean_over_the_cells_that_agree(plan):
    table = sweep.results(plan).table("pole/length", "agent")
    assert table.metric == "performance"
    assert table.column_values == ("nothing", "random")
    assert len(table.row_values) == 6
    assert (table.cells == 3).all()
    cells = [
        row for row in sweep.results(plan).cells().to_pylist() if row["metric"] == table.metric
    ]
    for r, length in enumerate(table.row_values):
        for c, agent in enumerate(table.column_values):
            values = [
                x["value"] for x in cells if (x["pole/length"], x["agent"]) == (length, agent)
            ]
            assert table.value[r, c] == pytest.approx(np.mean(values))
            assert table.low[r, c] <= table.value[r, c] <= table.high[r, c]


def cells_of(values, seeds, metric="performance", counts=1):
    """Cells of one gravity, as cells.parquet has them."""
    number = len(values)
    columns = {
        "cell": np.arange(number),
        "gravity": np.full(number, 9.8),
        "seed": np.asarray(seeds),
        "metric": [metric] * number,
        "value": np.asarray(values, float),
        "low": np.full(number, 0.25),
        "high": np.full(number, 0.5),
        "count": np.full(number, counts),
        "reason": [None] * number,
    }
    return pa.table(columns)


def student(values):
    half = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
    return np.mean(values), np.mean(values) - half, np.mean(values) + half


def numbers_of(*arguments, **options):
    metric = options.get("metric", "performance")
    table = means.tabulate(cells_of(*arguments, **options), metric, "gravity")
    return [x[0, 0] for x in (table.value, table.low, table.high, table.cells)]


def test_the_interval_of_a_mean_is_over_seeds():
    """Cells of one seed share their randomness, so they are averaged first."""
    values, seeds = [0.40, 0.44, 0.50, 0.52, 0.47, 0.47], [3, 3, 1, 1, 2, 2]
    assert numbers_of(values, seeds) == pytest.approx([*student([0.42, 0.51, 0.47]), 6])
    assert numbers_of(values, [3] * 6) == pytest.approx([*student(values), 6])
    # Where a cell has no value, the mean is that of the cells that have one.
    unbalanced = np.array([0.40, np.nan, *values[2:]])
    mean = np.nanmean(unbalanced)
    linear = mean + 3 / 5 * np.array([0.40 - mean, 1.02 - 2 * mean, 0.94 - 2 * mean])
    assert numbers_of(unbalanced, seeds) == pytest.approx([*student(linear), 5])


def test_cells_without_a_value_are_not_counted():
    nan = np.nan
    assert numbers_of([nan, 0.4, nan], [1, 2, 3]) == [0.4, 0.25, 0.5, 1]
    np.testing.assert_equal(numbers_of([nan, nan], [1, 2]), [nan, nan, nan, 0])
    table = means.tabulate(cells_of([0.1, nan, 0.3], [1, 2, 3]), "performance", "gravity")
    assert tables.rich_table(table).title == "performance, mean over 2 cells each"
    ragged = replace(table, cells=np.array([[2], [12]]))
    assert tables.rich_table(ragged).title == "performance, mean over 2 to 12 cells each"


@pytest.mark.parametrize(
    ("metric", "value", "ends"),
    [
        ("survived", 1.0, wilson(300, 300, 0.95)),
        ("block 3/alarm_rate", 0.0, wilson(0, 300, 0.95)),
        ("survived", 0.5, (0.5, 0.5)),
        ("performance", 1.0, (1.0, 1.0)),
    ],
)
def test_a_share_that_is_alike_in_all_cells_is_not_certain(metric, value, ends):
    _, low, high, _ = numbers_of([value] * 3, [1, 2, 3], metric=metric, counts=100)
    assert (low, high) == pytest.approx(ends)


@pytest.mark.parametrize(
    ("metric", "most"),
    [
        ("performance after 100", 1),
        ("lifelong/avg_eval_perf", 101),
        ("block 0/mean", 1),
        ("amoc_delay", 1),
    ],
)
def test_intervals_stay_in_the_bounds_of_their_metric(metric, most):
    low = 0.2 * most
    mean, _, high, _ = numbers_of([low, most, most], [1, 2, 3], metric=metric)
    assert mean == pytest.approx((low + 2 * most) / 3) and high == most
    beyond = numbers_of([low, 2 * most, 2 * most], [1, 2, 3], metric=metric)
    assert beyond[:3] == pytest.approx(student([low, 2 * most, 2 * most]))


def test_the_best_cells_are_those_with_the_better_values():
    about = {"name": "small", "cells": 3}
    values = [0.25, 0.75, 0.5]
    for metric, best in (("performance", 1), ("amoc_delay", 0), ("block 1/recovery_time", 0)):
        values_of_report = report.summarise(cells_of(values, [1, 2, 3], metric), about)
        assert values_of_report[f"best cells by {metric}"][0]["cell"] == best
        assert values_of_report[f"worst cells by {metric}"][0]["cell"] == 1 - best


def test_metrics_without_tables_are_named(monkeypatch):
    both = pa.concat_tables([cells_of([0.5], [1]), cells_of([0.5], [1], "length")])
    about = {"name": "small", "cells": 1}
    assert "metrics without tables" not in report.summarise(both, about)
    monkeypatch.setattr(report, "MOST_METRICS", 1)
    assert report.summarise(both, about)["metrics without tables"] == ["length"]


def test_an_end_beyond_all_trials_is_shown(plan):
    table = tables.table(plan.folder, "pole/length", "agent", "length", ["seed=1"])
    ends = replace(table, high=np.full_like(table.high, np.nan))
    assert tables._text(ends, 0, 0).endswith(", ∞)")


def test_a_single_cell_has_its_own_interval(plan):
    table = tables.table(plan.folder, "pole/length", "agent", "length", ["seed=1"])
    assert (table.cells == 1).all()
    (entry,) = (
        x
        for x in sweep.results(plan).cells().to_pylist()
        if (x["pole/length"], x["agent"], x["seed"], x["metric"]) == (0.3, "random", 1, "length")
    )
    assert (table.value[0, 1], table.low[0, 1], table.high[0, 1]) == (
        entry["value"],
        entry["low"],
        entry["high"],
    )


def test_the_report_has_the_numbers_of_the_tables(plan, monkeypatch, tmp_path):
    merged = plan.folder / "merged"
    values = json.loads((merged / "report.json").read_text())
    assert (values["name"], values["cells"], values["metrics"][0]) == ("small", 36, "performance")
    expected = sweep.results(plan).table("pole/length", "agent", "performance")
    for r, row in enumerate(values["performance by pole/length and agent"]):
        assert row["pole/length"] == expected.row_values[r]
        for c, agent in enumerate(expected.column_values):
            numbers = [row[agent][name] for name in ("value", "low", "high", "cells")]
            ends = expected.value, expected.low, expected.high, expected.cells
            assert numbers == [end[r, c] for end in ends]
    best, worst = (values[f"{end} cells by performance"] for end in ("best", "worst"))
    rows = sweep.results(plan).cells().to_pylist()
    cells = [row["value"] for row in rows if row["metric"] == "performance"]
    assert [x["performance"]["value"] for x in best] == sorted(cells, reverse=True)[:5]
    assert [x["performance"]["value"] for x in worst] == sorted(cells)[:5]

    check_page(merged / "report.html", "jaxsim sweep merge small")
    page = read((merged / "report.html").read_text())
    assert "Performance by pole/length and agent" in page.headings
    for path, text in page.numbers.items():
        assert json.loads(text) == at(values, path), path
    monkeypatch.setattr(report, "MOST_CELLS", 35)
    assert not merging.merge(plan, tmp_path / "large").reported
    assert not list((tmp_path / "large").glob("report.*"))


def test_the_command_prints_draws_and_writes(plan, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    words = ["table", plan.folder, "--rows", "pole/length", "--columns", "agent"]
    assert small.sweep(*words, "--plot", tmp_path / "p.png", "--csv", tmp_path / "t.csv") == 0
    output = capsys.readouterr().out
    assert "performance, mean over 3 cells each" in output
    assert "nothing" in output
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "t.csv").read_text())))
    assert len(rows) == 12
    assert set(rows[0]) == {"pole/length", "agent", "value", "low", "high", "cells"}


@pytest.mark.parametrize(
    ("columns", "count", "drawn"),
    [("agent", 2, "lines"), (None, 1, "lines"), ("seed", 3, "lines"), ("seed", 20, "map")],
)
def test_what_is_drawn(columns, count, drawn):
    pytest.importorskip("matplotlib")
    from evaluation.sweep import plots

    heads = tuple(f"a{i}" for i in range(count)) if columns == "agent" else tuple(range(count))
    numbers = np.linspace(0, 1, 4 * count).reshape(4, count)
    ones = np.ones((4, count), int)
    heads = ("performance",) if columns is None else heads
    table = tables.MeanTable(
        "performance",
        "gravity",
        columns,
        (0.1, 1.0, 10.0, 100.0),
        heads,
        numbers,
        numbers - 0.1,
        numbers + 0.1,
        ones,
    )
    axes = plots.draw(table).axes
    if drawn == "map":
        assert len(axes) == 2  # with the bar of colours
        assert axes[0].get_yscale() == "log"
        return
    assert len(axes[0].lines) == len(axes[0].collections) == count
    assert axes[0].get_xscale() == "log"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--rows", "pole/lenght"], "no axis 'pole/lenght'; there are pole/length, agent, seed"),
        (["--rows", "seed", "--columns", "seed"], "name two axes"),
        (["--rows", "seed", "--metric", "x"], "no metric 'x'; there are performance, length"),
        (["--rows", "seed", "--where", "agent"], "must be AXIS=VALUE"),
        (["--rows", "seed", "--where", "agent=pd"], "no cell has agent=pd; 'agent' takes nothing"),
        (["--rows", "agent", "--where", "seed=x"], "values of 'seed' are of type int64"),
    ],
)
def test_bad_tables(plan, capsys, words, message):
    assert small.sweep("table", plan.folder, *words) == 2
    assert message in capsys.readouterr().err


def test_results_that_are_not_merged_are_named(tmp_path, capsys):
    plan = sweep.plan(small.VALUES, tmp_path / "plan")
    assert small.sweep("table", plan.folder, "--rows", "seed") == 2
    assert "holds no merged results; run: jaxsim sweep merge" in capsys.readouterr().err


# Files for schedulers -----------------------------------------------------------------------------

JOB = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "apiVersion": {"const": "batch/v1"},
        "kind": {"const": "Job"},
        "metadata": {
            "required": ["name"],
            "properties": {"name": {"pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"}},
        },
        "spec": {
            "type": "object",
            "required": ["template", "completions", "completionMode"],
            "additionalProperties": False,
            "properties": {
                "completionMode": {"const": "Indexed"},
                "completions": {"type": "integer", "minimum": 1},
                "parallelism": {"type": "integer", "minimum": 1},
                "backoffLimitPerIndex": {"type": "integer"},
                "maxFailedIndexes": {"type": "integer"},
                "template": {
                    "properties": {
                        "spec": {
                            "required": ["containers", "restartPolicy"],
                            "additionalProperties": False,
                            "properties": {
                                "activeDeadlineSeconds": {"type": "integer"},
                                # With limits by index Kubernetes takes no other.
                                "restartPolicy": {"const": "Never"},
                                "containers": {
                                    "items": {
                                        "required": ["name", "image", "command", "args"],
                                    }
                                },
                                "volumes": {"items": {"required": ["name"]}},
                            },
                        }
                    }
                },
            },
        },
    },
}
"""What `batch/v1` asks of an indexed Job with limits by index."""


def test_a_job_of_kubernetes(tmp_path):
    plan = sweep.plan(small.VALUES, tmp_path / "plan", minutes=small.A_PACK)
    text = launch.text(plan, "kubernetes", jobs=5, gpus=1, image="i", claim="c")
    job = json.loads(text)
    jsonschema.validate(job, JOB)
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["args"][0].endswith('/plan --units "$JOB_COMPLETION_INDEX::5" --quiet')
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "1"
    for missing, words in (({"claim": "c"}, "pass --image"), ({"image": "i"}, "pass --claim")):
        with pytest.raises(ValueError, match=words):
            launch.text(plan, "kubernetes", **missing)


def test_a_task_of_skypilot(tmp_path):
    yaml = pytest.importorskip("yaml")
    plan = sweep.plan(small.VALUES, tmp_path / "plan", minutes=small.A_PACK)
    task = yaml.safe_load(launch.text(plan, "skypilot", jobs=4, gpus=2))
    assert task["num_nodes"] == 4
    assert task["resources"]["accelerators"] == "H100:2"
    assert '--units "$SKYPILOT_NODE_RANK::4"' in task["run"]


def test_a_script_for_sbatch_is_a_script(tmp_path):
    plan = sweep.plan(small.VALUES, tmp_path / "it's a plan", minutes=small.A_PACK)
    text = launch.text(plan, "sbatch", jobs=99, gpus=1, partition="gpu")
    assert "#SBATCH --array=0-11\n" in text  # no more jobs than units
    assert subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0


def test_a_node_without_the_package_says_so_in_one_line(tmp_path):
    plan = sweep.plan(small.VALUES, tmp_path / "plan", minutes=small.A_PACK)
    job = json.loads(launch.text(plan, "kubernetes", image="i", claim="c"))
    (container,) = job["spec"]["template"]["spec"]["containers"]
    # The job of submitit has this line of shell before it.
    other = launch.check_of("/nowhere/python -c 'import evaluation.sweep'")
    for script in (launch.text(plan, "sbatch"), container["args"][0], other):
        words = ["/bin/bash", "-c", script]
        done = subprocess.run(
            words, env={"PATH": "/nowhere"}, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (2, launch.NO_PACKAGE + "\n")


def test_every_scheduler_is_asked_for_the_same_job(tmp_path):
    plan = sweep.plan(small.VALUES, tmp_path / "plan", minutes=small.A_PACK)
    asked = {"jobs": 3, "gpus": 2, "cpus": 5, "memory": 1.5, "minutes": 7}
    script = launch.text(plan, "sbatch", partition="night", **asked)
    options = re.findall("^#SBATCH --([a-z-]+)(?:=(.*))?$", script, re.M)
    expected = {
        "array": "0-2",
        "cpus-per-task": "5",
        "gpus": "2",
        "mem": "1536M",
        "partition": "night",
        "time": "7",
    }
    assert expected.items() <= dict(options).items()
    assert "requeue" in dict(options)
    job = json.loads(launch.text(plan, "kubernetes", image="i", claim="c", **asked))["spec"]
    (container,) = job["template"]["spec"]["containers"]
    limits = {"cpu": "5", "memory": "1536Mi", "nvidia.com/gpu": "2"}
    assert container["resources"] == {"limits": limits, "requests": limits}
    assert (job["completions"], job["parallelism"]) == (3, 3)
    assert job["template"]["spec"]["activeDeadlineSeconds"] == 7 * 60
    task = json.loads(launch.text(plan, "skypilot", **asked).split("\n", 1)[1])
    resources = task["resources"]
    assert (resources["cpus"], resources["memory"]) == ("5+", "1.5+")
    assert (task["num_nodes"], resources["accelerators"]) == (3, "H100:2")


@pytest.mark.parametrize(("minutes", "seconds"), [(1, 30), (2, 60), (4, 120), (60, 120)])
def test_slurm_signals_a_job_not_at_its_start(tmp_path, minutes, seconds):
    plan = sweep.plan(small.VALUES, tmp_path / "plan")
    assert f"--signal=B:USR2@{seconds}\n" in launch.text(plan, "sbatch", minutes=minutes)


def test_what_a_command_for_a_scheduler_needs(tmp_path, capsys, monkeypatch):
    plan = sweep.plan(small.VALUES, tmp_path / "plan")
    assert small.sweep("launch", plan.folder, "--sbatch", "--jobs", 1) == 0
    assert "--array=0-0" in capsys.readouterr().out
    assert small.sweep("submit", plan.folder, "--slurm", "--time", "3 parsecs") == 2
    assert "time is '3 parsecs'; it must be a time as 30min" in capsys.readouterr().err
    monkeypatch.setitem(__import__("sys").modules, "submitit", None)
    assert small.sweep("submit", plan.folder, "--slurm") == 2
    assert "pip install 'jaxsim-novelty[cluster]'" in capsys.readouterr().err


# Shards of one run --------------------------------------------------------------------------------


def l2logger_log(path):
    """Worker of a log, and what is logged."""
    log = read_columns(path)
    numbers = {name: column.tolist() for name, column in log.metrics.items()}
    (worker,) = log.worker_id.values
    return worker, (log.scenario_info["lifetime"], log.exp_num.tolist(), numbers)


def learnkit_log(path):
    log = learnkit.read_log(path)
    (worker,) = {row.worker for row in log.rows}
    return worker, [(row.block, row.task, row.measures, row.extras) for row in log.rows]


def assert_same_logs(whole, shards, read, names):
    """The shards have the logs of the whole run, each with its number for a worker."""
    one, other = ([read(path) for path in sorted(logs)] for logs in (whole, shards))
    assert len(one) == 2
    assert sorted(str(log) for _, log in one) == sorted(str(log) for _, log in other)
    assert {worker for worker, _ in one} == {names[0]}
    assert {worker for worker, _ in other} == set(names[1:])


def test_joined_shards_are_the_whole_run(tmp_path, capsys):
    syllabus = tmp_path / "s.json"
    syllabus.write_text(SYLLABUS)
    run = ["run", str(syllabus), "--agent", "random", "--lifetimes", "11", "--seed", "2", "--quiet"]
    run += ["--lifetime-idx", "5", "--window", "3", "--log-lifetime", "12", "--log-lifetime", "5"]
    data = [str(tmp_path / name) for name in ("data", "shared-data")]
    assert cli.main([*run, "--out", str(tmp_path / "whole"), "--l2data", data[0]]) == 0
    parts = []
    for number in (2, 1, 3):
        parts.append(str(tmp_path / f"part-{number}"))
        words = ["--shard", f"{number}/3", "--out", parts[-1], "--l2data", data[1]]
        assert cli.main([*run, *words]) == 0
    logs = [list(Path(folder, "logs").iterdir()) for folder in data]
    assert_same_logs(*logs, learnkit_log, ("env-0", "env-0", "env-2"))
    logs = [list(tmp_path.glob(f"{part}/logs/*")) for part in ("whole", "part-*")]
    assert_same_logs(*logs, l2logger_log, ("worker-default", "worker-0", "worker-2"))
    exported = tmp_path / "exported"
    words = ["--lifetimes", "15", "--out", str(exported)]
    assert cli.main(["l2m", "export", parts[-1], *words]) == 0
    assert [path.name for path in exported.glob("*/worker-*")] == ["worker-2"]
    assert cli.main([*run, "--shard", "1/3", "--log-lifetime", "16", "--out", str(exported)]) == 2
    assert "log-lifetime is 16; it must be from 5 to 15" in capsys.readouterr().err
    assert small.sweep("join", *parts, "--out", tmp_path / "joined") == 0
    for name in ("records.parquet", "schedule.json", "report.json"):
        assert (tmp_path / "joined" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert (
        "sweep join part-2 part-1 part-3 --out joined"
        in (tmp_path / "joined" / "report.html").read_text()
    )
    capsys.readouterr()
    assert small.sweep("join", *parts[:2], parts[0], "--out", tmp_path / "twice") == 2
    assert "are there twice" in capsys.readouterr().err
    assert small.sweep("join", parts[1], parts[2], "--out", tmp_path / "gap") == 2
    assert "lifetimes 8 to 11 are missing" in capsys.readouterr().err
    for shard, words in (("0/3", "it must be I/N"), ("3", "it must be I/N"), ("12/12", "only 11")):
        assert cli.main([*run, "--shard", shard, "--out", str(tmp_path / "x")]) == 2
        assert words in capsys.readouterr().err


def test_shards_of_a_changed_agent_are_not_joined(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("s.json").write_text(SYLLABUS)
    run = ["run", "s.json", "--agent", "mine.py", "--lifetimes", "2", "--quiet"]
    for number, name in enumerate(("random", "nothing"), 1):
        Path("mine.py").write_text(f"from jaxsim.agents import get\n\nagent = get({name!r})\n")
        assert cli.main([*run, "--shard", f"{number}/2", "--out", f"part-{number}"]) == 0
    assert small.sweep("join", "part-1", "part-2", "--out", "joined") == 2
    assert "the shards are of different runs: agent_files differs" in capsys.readouterr().err


def test_shards_with_custom_metrics_are_joined_with_them(tmp_path, capsys):
    syllabus, metrics = tmp_path / "s.json", tmp_path / "m.py"
    syllabus.write_text(SYLLABUS)
    metrics.write_text(
        "def largest(values, counts):\n    return values.max(-1, where=values > 0, initial=0)\n"
    )
    run = ["run", str(syllabus), "--agent", "random", "--lifetimes", "4", "--quiet"]
    run += ["--window", "3", "--metric", str(metrics)]
    for words, out in ((), "whole"), (("--shard", "1/2"), "one"), (("--shard", "2/2"), "two"):
        assert cli.main([*run, *words, "--out", str(tmp_path / out)]) == 0
    join = ("join", tmp_path / "one", tmp_path / "two", "--out", tmp_path / "joined")
    assert small.sweep(*join) == 2
    assert "the custom metrics largest; pass the same --metric" in capsys.readouterr().err
    assert not (tmp_path / "joined").exists()
    assert small.sweep(*join, "--metric", metrics) == 0
    page = (tmp_path / "joined" / "report.html").read_text()
    assert "sweep join one two --metric m.py --out joined" in page
    files = [tmp_path / name / "report.json" for name in ("whole", "joined")]
    assert files[0].read_bytes() == files[1].read_bytes() and b"largest" in files[0].read_bytes()


def test_a_table_is_written_before_a_reader_can_close_the_pipe(tmp_path, monkeypatch):
    class Closed:
        def print(self, *_):
            raise BrokenPipeError

    monkeypatch.setattr(terminal, "console", Closed)
    monkeypatch.setattr(tables, "table", lambda *_: None)
    monkeypatch.setattr(tables, "rich_table", lambda _: None)
    monkeypatch.setattr(tables, "csv_text", lambda _: "a\n1\n")
    with pytest.raises(BrokenPipeError):
        handlers.table(
            argparse.Namespace(
                folder=tmp_path,
                rows=None,
                columns=None,
                metric=None,
                where=(),
                csv=tmp_path / "t.csv",
                plot=None,
            )
        )
    assert (tmp_path / "t.csv").read_text() == "a\n1\n"
