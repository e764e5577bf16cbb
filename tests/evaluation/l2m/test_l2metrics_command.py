"""The command, its files and what a program can do with them."""

import csv
import dataclasses
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.feather
import pytest
from scipy import stats

from evaluation import cli, logs
from evaluation.l2m import ste_store
from evaluation.l2m.l2metrics import ErrorKind, L2MetricsError, LogSettings, run, run_json
from evaluation.l2m.l2metrics.outputs import write_regimes
from evaluation.l2m.l2metrics.result import DIFFERENCE, regime_rows
from evaluation.logs.export import write_lifetimes
from evaluation.logs.learnkit import RunLogger
from evaluation.metrics import metric
from evaluation.metrics.registry import row_of
from tests.conftest import ROOT
from tests.evaluation import made_up
from tests.evaluation.l2m.log_files import COLUMNS, good_rows, rows, write_log


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("L2DATA", str(tmp_path / "l2data"))


@pytest.fixture
def log():
    return write_log(Path("logs/run").absolute(), good_rows())


def no_constant(word):
    raise AssertionError(f"{word} is not JSON")


def strict(path):
    return json.loads(Path(path).read_text(), parse_constant=no_constant)


def compute(*flags):
    assert cli.main(["l2metrics", *flags]) == 0


def test_one_log_gives_four_files(log, capsys):
    compute("-l", str(log), "-O", "out", "-o", "my name")
    names = sorted(path.name for path in Path("out").iterdir())
    stem = "my_name"
    assert names == [
        f"{stem}_data.feather",
        f"{stem}_metrics.json",
        f"{stem}_regime.tsv",
        f"{stem}_settings.json",
    ]
    metrics = strict(f"out/{stem}_metrics.json")
    assert metrics["run_id"] == "run" and metrics["num_lx"] == 80 and metrics["num_ex"] == 32
    assert metrics["ste_rel_perf"] is None
    assert "no single-task expert" in metrics["why"]["ste_rel_perf"]
    assert "no single-task expert" in metrics["why"]["task_metrics"]["taska_1"]["ste_rel_perf"]
    columns = pyarrow.feather.read_table(f"out/{stem}_data.feather").column_names
    assert columns[-3:] == ["reward_raw", "reward_smoothed", "reward_normalized"]
    printed = capsys.readouterr().out
    assert "N/A" in printed and "ste_rel_perf is missing: the store has no" in printed


def test_a_batch_gives_its_five_files(log):
    write_log(Path("logs/deeper/other").absolute(), good_rows(1))
    compute("-l", "logs", "-R", "-O", "out")
    assert sorted(path.name for path in Path("out").iterdir()) == [
        "ll_metrics.json",
        "ll_metrics.tsv",
        "ll_metrics_data.feather",
        "ll_metrics_regime.tsv",
        "ll_metrics_settings.json",
    ]
    with open("out/ll_metrics.tsv", newline="") as stream:
        table = list(csv.DictReader(stream, delimiter="\t"))
    assert [row["run_id"] for row in table] == ["other", "run"]
    content = strict("out/ll_metrics.json")
    assert [float(row["avg_train_perf"]) for row in table] == [
        run["avg_train_perf"] for run in content
    ]
    data = pyarrow.feather.read_table("out/ll_metrics_data.feather")
    assert data.num_rows == 2 * len(good_rows()) and data.column_names[-1] == "run_id"


def test_metrics_are_printed_in_a_frame(log, capsys):
    write_log(Path("logs/other").absolute(), good_rows(1))
    compute("-l", "logs", "-R", "-O", "out")
    frame = [line for line in capsys.readouterr().out.splitlines() if line[:1] in ("+", "|")]
    assert len({len(line) for line in frame}) == 1
    assert [line[0] for line in frame] == list("+|+||+")
    rows = [line[2:-2].split(" | ") for line in frame if line[0] == "|"]
    assert all(cell == cell.strip().rjust(len(cell)) for row in rows for cell in row)
    head, *rows = ([cell.strip() for cell in row] for row in rows)
    assert [dict(zip(head, row, strict=True))["run"] for row in rows] == ["other", "run"]
    for row, run_metrics in zip(rows, strict("out/ll_metrics.json"), strict=True):
        shown = float(dict(zip(head, row, strict=True))["avg_train_perf"])
        assert shown == pytest.approx(run_metrics["avg_train_perf"], abs=0.005001)


def test_a_run_in_a_batch_is_the_run_alone(log):
    short = [row for row in good_rows(2) if row["block_num"] < 3]
    write_log(Path("logs/short").absolute(), short)
    batch = run([log, "logs/short"]).analyses
    for analysis in batch:
        (alone,) = run(analysis.run.path).analyses
        assert run_json(alone) == run_json(analysis)
        assert list(regime_rows(alone)) == list(regime_rows(analysis))


def test_settings_files_make_the_same_run(log):
    ranges = {"taska_1": {"min": -1, "max": 7}, "taskb_1": {"min": 0, "max": 5}}
    Path("ranges.json").write_text(json.dumps(ranges))
    flags = ["-w", "5", "-g", "hanning", "-G", "-n", "run", "-N", "0", "0.1", "-x"]
    flags += ["-d", "ranges.json"]
    compute("-l", str(log), "-O", "one", *flags)
    compute("-c", "one/run_settings.json", "-O", "two")
    assert strict("one/run_metrics.json") == strict("two/run_metrics.json")
    assert strict("one/run_settings.json") == strict("two/run_settings.json")
    assert strict("one/run_settings.json")["do_smooth_eval_data"] is True
    assert strict("one/run_settings.json")["data_range"] == ranges


def test_every_flag_of_the_peer_is_taken(log):
    ranges = Path("range.json")
    ranges.write_text('{"TaskA_1": {"min": -1, "max": 9}, "taskb_1": {"min": -1, "max": 9}}')
    long = "--log-dir {} --variant-mode aware --ste-averaging-method time --perf-measure reward "
    long += "--aggregation-method median --maintenance-method both --transfer-method contrast "
    long += "--normalization-method task --smoothing-method bartlett --smooth-eval-data "
    long += "--window-length 4 --clamp-outliers --data-range-file range.json --noise 0 0 "
    long += "--output-dir out --output a --unit exp_num --show-eval-lines --no-plot "
    long += "--plot-types raw eb --do-save --do-save-settings"
    short = "-l {} -r aware -v time -p reward -a median -m both -t contrast -n task -g bartlett -G "
    short += "-w 4 -x -d range.json -N 0 0 -O out -o b -u exp_num -e --no-plot -T raw eb -S -C"
    for flags in (long, short):
        compute(*flags.format(log).split())
    assert strict("out/a_metrics.json") == strict("out/b_metrics.json")
    compute("-l", str(log), "-O", "none", "--no-save", "--no-save-settings", "--no-show-eval-lines")
    assert not Path("none").exists()


def test_python_m_works(log):
    command = [sys.executable, "-m", "evaluation.l2m.l2metrics", "-l", str(log), "-O", "out"]
    root = Path(__file__).parents[3]
    done = subprocess.run(command, env={"PYTHONPATH": str(root), "HOME": "."}, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert Path("out/run_metrics.json").exists()


def test_the_command_waits_for_neither_jax_nor_pandas(log):
    code = (
        "import sys; from evaluation import cli; "
        f"cli.main(['l2metrics', '-l', {str(log)!r}, '-O', 'out']); "
        "assert not {'jax', 'pandas'} & set(sys.modules), 'imported'"
    )
    root = Path(__file__).parents[3]
    subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(root), "HOME": "."}, check=True
    )


def test_the_output_says_where_l2metrics_differs(log):
    compute("-l", str(log), "-O", "out")
    compute("-l", str(log), "-O", "peer", "--compat", "l2metrics-3.1")
    ours, theirs = strict("out/run_metrics.json"), strict("peer/run_metrics.json")
    assert DIFFERENCE not in theirs
    listed = ours[DIFFERENCE]
    names = [name for name, value in ours.items() if isinstance(value, float) and name != "runtime"]
    for name in names:
        same = ours[name] == pytest.approx(theirs[name], rel=1e-9)
        assert same == (name not in listed)
        if not same:
            assert listed[name]["here"] == ours[name] and listed[name]["there"] == theirs[name]
            assert listed[name]["because"]
    assert "regimes_that_differ" in listed["regimes"]["saturation"]


def test_own_training_is_flagged_where_transfer_differs(tmp_path):
    """Between the tests of b both a and b are trained: l2metrics 3.1 books it as transfer."""
    tests = [("test", "a_1"), ("test", "b_1")]
    plan = [*tests, ("train", "a_1"), ("train", "b_1"), *tests]
    content = [
        (number, kind, task, [float(number + k) for k in range(6)])
        for number, (kind, task) in enumerate(plan)
    ]
    (analysis,) = run(write_log(tmp_path / "both", rows(content))).analyses
    difference = run_json(analysis)[DIFFERENCE]["forward_transfer_ratio"]
    assert difference["here"] is None and difference["there"] > 1
    assert difference["own_training_before_regimes"] == [4, 5]


def test_data_that_are_constant_but_for_rounding_are_named_as_such(tmp_path):
    """Windows of even length, so that no other reason applies."""
    steady = [(0, "test", "a_1", [1.0] * 4), (1, "train", "a_1", [1.0 - 1e-16] * 29 + [1.0])]
    log = write_log(tmp_path / "steady", rows([*steady, (2, "test", "a_1", [1.0] * 15)]))
    (analysis,) = run(log).analyses
    difference = run_json(analysis)[DIFFERENCE]["avg_eval_perf"]
    assert (difference["here"], difference["there"]) == (1.0, 101.0)
    assert difference["because"].startswith("values of a task that differ by rounding alone")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"window_length": "5"}, "window_length is '5'; it must be a whole number or null"),
        ({"noise": 5}, "noise is 5; it must be a list of two numbers"),
        ({"noise_seed": -1}, "noise_seed is -1; it must be a whole number from 0"),
        ({"do_plot": "no"}, "do_plot is 'no'; it must be true or false"),
        ({"output_dir": None}, "output_dir is None; it must be text"),
        ({"log_dir": 7}, "log_dir is 7; it must be text or null"),
        ({"plot_types": "raw"}, "plot_types is 'raw'; it must be a list of all, raw"),
        ({"data_range": {"a": 3}}, "task 'a' needs"),
        ({"aggregation_method": "mode"}, "aggregation_method is 'mode'; it must be one of mean"),
    ],
)
def test_settings_of_a_wrong_type_say_what_they_must_be(log, content, words, capsys):
    Path("settings.json").write_text(json.dumps(content))
    assert cli.main(["l2metrics", "-l", str(log), "-c", "settings.json", "-O", "out"]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1
    assert not Path("out").exists()


def test_a_log_of_2019_is_sent_to_its_own_command(capsys, tmp_path):
    with RunLogger("old", tmp_path) as logger:
        logger.log("1.train", "Pole", {}, reward=1.0)
    assert cli.main(["l2metrics", "-l", str(logger.directory)]) == 2
    assert "use python -m evaluation.l2metrics2019 -log_dir" in capsys.readouterr().err


# Statistics over logs -----------------------------------------------------------------------------


def test_statistics_over_logs(capsys):
    for number in range(5):
        write_log(Path(f"logs/run{number}").absolute(), good_rows(number))
    Path("range.json").write_text(json.dumps({f"task{t}_1": {"min": -1, "max": 8} for t in "ab"}))
    words = ["-l", "logs", "-R", "-m", "both", "-d", "range.json", "-O", "out"]
    compute(*words, "--statistics", "--seed", "3")
    printed = capsys.readouterr()
    assert "Over 5 logs, with 95 % intervals" in printed.out and printed.err == ""
    statistics = strict("out/ll_metrics_statistics.json")
    runs = strict("out/ll_metrics.json")
    assert statistics["logs"] == [f"run{number}" for number in range(5)]
    for name, entry in statistics["metrics"].items():
        values = [run[name] for run in runs if run[name] is not None]
        assert entry["lifetimes"] == len(values)
        if values:
            assert entry["mean"] == pytest.approx(np.mean(values))
            assert entry["statistics"]["median"]["value"] == pytest.approx(np.median(values))
            assert entry["low"] <= entry["mean"] <= entry["high"]
        else:
            assert entry["reason"] == runs[0]["why"][name]
    of_task = [run["task_metrics"]["taska_1"]["avg_train_perf"] for run in runs]
    assert statistics["tasks"]["taska_1"]["avg_train_perf"]["mean"] == pytest.approx(
        np.mean(of_task)
    )
    compute(*words, "--statistics", "--seed", "3", "-O", "again")
    assert strict("again/ll_metrics_statistics.json") == statistics
    compute("-l", "logs", "-R", "--statistics", "--no-save", "--no-save-settings")
    assert "each log was normalised by its own range" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "in_range"),
    [
        ((), True),
        (("-d", "range.json"), False),
        (("-d", "range.json", "-x"), True),
        (("-n", "none"), False),
        (("-n", "run"), True),
    ],
)
def test_intervals_over_logs_stay_in_the_bounds_of_their_metrics(words, in_range):
    """Student's interval of two values is 12.7 standard errors wide to either side."""
    write_log(Path("logs/a").absolute(), good_rows())
    write_log(Path("logs/b").absolute(), [row | {"reward": 3.0} for row in good_rows()])
    # Not the range of the data: a ratio of values that are normalised by it may be below 0.
    Path("range.json").write_text(json.dumps({f"task{t}_1": {"min": -1, "max": 8} for t in "ab"}))
    Path("mine.py").write_text(
        "from evaluation.metrics import metric\n"
        "@metric(scope='lifetime', bounds=(0, None))\n"
        "def shortfall(values):\n    return abs(values[0, 0])\n"
    )
    compute("-l", "logs", "-R", "--statistics", "-O", "out", "--metric", "mine.py", *words)
    metrics = strict("out/ll_metrics_statistics.json")["metrics"]
    runs = strict("out/ll_metrics.json")
    for name, clipped in (("forward_transfer_ratio", in_range), ("shortfall", True)):
        values = [one[name] for one in runs]
        half = stats.t.ppf(0.975, 1) * abs(values[1] - values[0]) / 2
        ends = [np.mean(values) - half, np.mean(values) + half]
        assert min(values) > 0 > ends[0]
        expected = np.maximum(ends, 0) if clipped else ends
        assert (metrics[name]["low"], metrics[name]["high"]) == pytest.approx(tuple(expected))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-R", "--statistics", "--seed", "-1"], "seed is -1; it must be 0 or more"),
        (["--noise-seed", "-1", "-N", "0", "1"], "noise_seed is -1; it must be 0 or more"),
    ],
)
def test_a_wrong_seed_is_refused_before_anything_is_written(words, message, log, capsys):
    assert cli.main(["l2metrics", "-l", "logs" if "-R" in words else str(log), *words]) == 2
    assert message in capsys.readouterr().err
    assert [path.name for path in Path().iterdir()] == ["logs"]


def test_statistics_need_many_logs(log, capsys):
    assert cli.main(["l2metrics", "-l", str(log), "--statistics"]) == 2
    assert "pass -R too" in capsys.readouterr().err


def test_parameters_begin_a_regime():
    content = rows([(0, "train", "a_1", [1.0, 2.0, 3.0, 4.0]), (1, "test", "a_1", [2.0])])
    for place in (2, 3):
        content[place]["task_params"] = '{"long_name_of_a_parameter":1}'.replace('"', '""')
        content[place]["task_params"] = f'"{content[place]["task_params"]}"'
    log = write_log(Path("run").absolute(), content)
    (analysis,) = run(log).analyses
    assert [row["task_params"] for row in regime_rows(analysis)] == [
        "{}",
        '{"long_name_of_a_paramete...',
        "{}",
    ]
    listed = run_json(analysis)[DIFFERENCE]["regimes"]
    assert "parameters begin a regime" in listed["regime_num"]["because"]
    (joined,) = run(log, LogSettings(compat="l2metrics-3.1")).analyses
    assert len(list(regime_rows(joined))) == 2


def test_rows_without_a_value_leave_the_regime_shorter():
    content = rows(
        [(0, "train", "a_1", [1.0]), (1, "train", "b_1", [5.0]), (2, "train", "a_1", [3.0])]
    )
    content[1]["reward"] = "nan"
    (analysis,) = run(write_log(Path("run").absolute(), content)).analyses
    lines = list(regime_rows(analysis))
    assert [row["task_name"] for row in lines] == ["a_1", "b_1", "a_1"]
    assert lines[1]["avg_perf"] is None
    assert "1 rows without a value" in analysis.run.warnings[-1]


def test_agnostic_of_variants_means_the_whole_name_before_the_underscore():
    for task in ("task1_1", "task1_2", "task10_1"):
        log = write_log(Path(f"e_{task}").absolute(), rows([(0, "train", task, [1.0, 2.0])]))
        compute("-l", str(log), "-s", "w")
    content = rows([(0, "train", "task1_1", [1.0, 2.0]), (1, "train", "task1_2", [2.0, 3.0])])
    (analysis,) = run(
        write_log(Path("run").absolute(), content), LogSettings(variant_mode="agnostic")
    ).analyses
    tasks = run_json(analysis)["task_metrics"]
    assert list(tasks) == ["task1"] and len(tasks["task1"]["ste_rel_perf_vals"]) == 2


def test_data_range_applies_and_matches_names_exactly(log):
    ranges = {"taska": (0.0, 1.0), "taskb_1": (0.0, 1.0), "xtaska_1": (0.0, 100.0)}
    settings = LogSettings(variant_mode="agnostic", data_range={**ranges, "taskb": (0.0, 2.0)})
    (analysis,) = run(log, settings).analyses
    written = run_json(analysis)["normalization_data_range"]
    assert written == {"taska": {"min": 0.0, "max": 1.0}, "taskb": {"min": 0.0, "max": 2.0}}


def test_noise_is_seeded(log):
    one, two, other = (
        run_json(run(log, LogSettings(noise=(0.0, 1.0), noise_seed=seed)).analyses[0])
        for seed in (1, 1, 2)
    )
    assert one == two and one["avg_train_perf"] != other["avg_train_perf"]


def test_custom_metrics_reach_every_file(log):
    @metric()
    def spread(processed):
        return np.nanmax(processed, 1) - np.nanmin(processed, 1)

    @metric()
    def twice(columns):
        return 2 * columns["spread"]

    @metric(scope="task")
    def rows(tasks, counts, task_names):
        return np.bincount(tasks, counts, len(task_names))

    custom = [row_of(function) for function in (spread, twice, rows)]
    (analysis,) = run(log, extra_metrics=custom).analyses
    content = run_json(analysis)
    assert content["rows"] == 56.0 and content["task_metrics"]["taska_1"]["rows"] == 56.0
    assert content["twice"] == pytest.approx(2 * content["spread"])
    write_regimes(Path("regime.tsv"), [analysis], run_first=False)
    with open("regime.tsv", newline="") as stream:
        table = list(csv.DictReader(stream, delimiter="\t"))
    assert [float(row["twice"]) for row in table] == [2 * float(row["spread"]) for row in table]
    assert list(table[0])[-3:] == ["spread", "twice", "run_id"]  # behind the tool's own columns


def test_custom_metrics_of_files_are_printed_and_written(log, capsys):
    write_log(Path("logs/two").absolute(), good_rows(1))
    Path("mine.py").write_text(
        "from evaluation.metrics import metric\n"
        "@metric(scope='task')\n"
        "def rows(task_names):\n    return [56.0] * len(task_names)\n"
    )
    example = str(ROOT / "examples" / "metrics" / "learning_range.py")
    plain = str(ROOT / "examples" / "metrics" / "worst_tenth.py")
    words = ["--metric", example, "--metric", "mine.py:rows", "--metric", plain]
    compute("-l", "logs", "-R", "--statistics", "-O", "out", *words)
    assert "learning_range" in capsys.readouterr().out
    first, second = strict("out/ll_metrics.json")
    assert first["rows"] == 56.0 and first["learning_range"] > 0
    assert np.isfinite(first["worst_tenth"])
    entry = strict("out/ll_metrics_statistics.json")["metrics"]["learning_range"]
    mean = (first["learning_range"] + second["learning_range"]) / 2
    assert entry["mean"] == pytest.approx(mean)
    for name in ("ll_metrics.tsv", "ll_metrics_regime.tsv"):
        assert "learning_range" in Path("out", name).read_text().splitlines()[0].split("\t")


DECORATED = "from evaluation.metrics import metric\n@metric()\ndef a({}):\n    return 0\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "there is no file"),
        ("def a(x, n):\n    raise SystemExit(0)\n", "metric 'a' failed: SystemExit: 0"),
        ("raise SystemExit(0)", "cannot be loaded: SystemExit: 0"),
        ("def a(x, n):\n    return n * 1j\n", "metric 'a' failed: TypeError: complex numbers"),
        ("def a(values, nosuch): ...\n", "has no metric; define a function of (values, counts)"),
        ("def a(values, baseline): ...\n", "metric 'a' asks for baseline; here it can have"),
        ("def a(x, n): ...\ndef b(x, n): ...\n", "has 2 metrics; name one of a, b"),
        ("A = 1\n", "has no metric; define a function of (values, counts)"),
        ("1 / 0", "cannot be loaded: ZeroDivisionError"),
        ("def a(x, n):\n    return x.nothing\n", "metric 'a' failed: AttributeError"),
        (
            "def a(x, n):\n    return x\n",
            "metric 'a' returned the shape (12, 20); it must be (12,)",
        ),
        ("def a(x, n):\n    return n * float('nan')\n", "not finite, without a reason"),
        (DECORATED.format("baseline"), "metric 'a' asks for baseline; here it can have values"),
    ],
)
def test_files_without_a_metric_say_so(log, content, words, capsys):
    if content is not None:
        Path("mine.py").write_text(content)
    assert cli.main(["l2metrics", "-l", str(log), "--metric", "mine.py"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"jaxsim: {ErrorKind.CUSTOM_METRIC}: ") and words in error


def test_a_failing_custom_metric_fails_its_run_only(log):
    other = write_log(Path("logs/two").absolute(), rows([(0, "train", "a_1", [1.0, 2.0])]))

    @metric(scope="task")
    def picky(task_names):
        return [1.0, 2.0]  # right for two tasks only

    outcome = run([log, other], extra_metrics=[row_of(picky)])
    assert [analysis.run.name for analysis in outcome.analyses] == ["run"]
    assert outcome.errors[other].kind == ErrorKind.CUSTOM_METRIC


def drawn(monkeypatch):
    """What is plotted: figures by file name."""
    plots = pytest.importorskip("evaluation.report.l2m_plots")
    pytest.importorskip("matplotlib")
    figures = {}
    monkeypatch.setattr(plots, "_save", lambda figure, path: figures.update({str(path): figure}))
    return figures


def test_the_four_plots_of_a_run(log, monkeypatch, capsys):
    figures = drawn(monkeypatch)
    curve = [float(value) for value in np.linspace(0, 1, 30)]
    expert = rows([(0, "train", "taska_1", curve), (1, "test", "taska_1", [1.0, 1.0])])
    compute("-l", str(write_log(Path("expert").absolute(), expert)), "-s", "w")
    compute("-l", str(log), "-P", "-O", "out")
    kinds = ("raw", "evaluation", "learning", "ste")
    assert list(figures) == [f"out/plots/run_{kind}.png" for kind in kinds]
    assert capsys.readouterr().out.count("plot in out/plots/run_") == 4
    (panel,) = figures["out/plots/run_ste.png"].axes
    assert panel.get_ylabel() == "reward\n(normalised, 1 to 101)"
    expert, learner = (line.get_ydata() for line in panel.get_lines()[:2])
    assert (len(expert), len(learner)) == (30, 40)
    table = pyarrow.feather.read_table("out/run_data.feather")
    task = np.array(table["task_name"].to_pylist()) == "taska_1"
    train = np.array(table["block_type"].to_pylist()) == "train"
    np.testing.assert_array_equal(learner, table["reward"].to_numpy()[task & train])


def test_kinds_units_and_lines_of_plots(log, monkeypatch):
    figures = drawn(monkeypatch)
    compute("-l", str(log), "-P", "-T", "lb", "raw", "--no-show-eval-lines", "--no-save")
    assert list(figures) == ["results/plots/run_learning.png", "results/plots/run_raw.png"]
    (panel,) = figures["results/plots/run_learning.png"].axes
    assert panel.get_ylabel().endswith("101)")
    compute("-l", str(log), "-P", "-T", "lb", "-e", "--no-save")
    (panel,) = figures["results/plots/run_learning.png"].axes
    assert panel.get_ylabel().endswith("dashed: evaluation means")


def test_steps_as_the_unit_of_plots(log, monkeypatch, capsys):
    """A run without the column has an error of its own."""
    figures = drawn(monkeypatch)
    counted = [row | {"episode_step_count": 7} for row in good_rows()]
    columns = (*COLUMNS, "episode_step_count")
    write_log(Path("logs/counted").absolute(), counted, columns)
    command = ["l2metrics", "-l", "logs", "-R", "-P", "-T", "lb", "-u", "steps", "--no-save"]
    assert cli.main(command) == 2
    assert list(figures) == ["results/plots/counted_learning.png"]
    (panel,) = figures["results/plots/counted_learning.png"].axes
    assert panel.get_xlabel() == "learning experiences (environment steps), evaluation left out"
    assert max(max(line.get_xdata()) for line in panel.get_lines()) == 7 * 80
    assert "no-step-counts" in capsys.readouterr().err


def test_plots_need_their_module(log, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "evaluation.report.l2m_plots", None)
    assert cli.main(["l2metrics", "-l", str(log), "-O", "out", "--plot"]) == 2
    assert "use --no-plot" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"compat": "l2metrics-2"}, "only l2metrics-3.1 is known"),
        ({"smoothing_method": "round"}, "must be one of flat"),
        ({"noise": (0.0, -1.0)}, "below zero"),
        ({"noise": (math.nan, 1.0)}, "must have a finite mean and spread"),
        ({"noise": (0.0, math.inf)}, "must have a finite mean and spread"),
        ({"window_length": 2}, "must be 3 or more"),
    ],
)
def test_bad_settings_say_what_is_allowed(values, message):
    with pytest.raises(L2MetricsError, match=message):
        LogSettings(**values)


# ------------------------------------------------------------------ the store


def ste_run(values, source=""):
    size = len(values)
    return ste_store.SteRun(
        {"reward": np.array(values)}, np.arange(size), np.zeros(size), np.ones(size, bool), source
    )


def test_the_store_keeps_runs_in_order(tmp_path):
    ste_store.write(tmp_path, "a/b_1", [ste_run([1.0], "one")])
    ste_store.append(tmp_path, "a/b_1", [ste_run([2.0, 3.0], "two")])
    ste_store.append(tmp_path, "c_1", [ste_run([4.0])])
    assert ste_store.list_tasks(tmp_path) == ["a/b_1", "c_1"]
    first, second = ste_store.read(tmp_path, "a/b_1")
    assert (first.source, second.source) == ("one", "two")
    np.testing.assert_array_equal(second.measures["reward"], [2.0, 3.0])
    assert ste_store.read(tmp_path, "unknown") == ()
    assert ste_store.clear(tmp_path) == 2 and ste_store.list_tasks(tmp_path) == []


def test_changed_bytes_of_an_expert_are_one_error(tmp_path):
    ste_store.write(tmp_path, "task", [ste_run([1.0, 2.0, 3.0], "one")])
    (path,) = tmp_path.glob("*.npz")
    content, refused = path.read_bytes(), 0
    for place in range(0, len(content), 7):
        for bit in (1, 4, 32):
            path.write_bytes(content[:place] + bytes([content[place] ^ bit]) + content[place + 1 :])
            try:
                ste_store.read(tmp_path, "task")
            except ValueError as error:
                refused += "is not a readable STE file" in str(error)
    assert refused > 20


def test_the_store_returns_what_it_was_given(tmp_path):
    measures = {"reward": np.array([1.0, np.nan]), "a/b": np.array([0.25, 0.5])}
    run = ste_store.SteRun(
        measures, np.array([5, 8]), np.array([2, 3]), np.array([True, False]), "records"
    )
    ste_store.write(tmp_path, "Task", [run])
    (again,) = ste_store.read(tmp_path, "Task")
    assert again.source == "records" and list(again.measures) == list(measures)
    for name in measures:
        np.testing.assert_array_equal(again.measures[name], measures[name])
    for name in ("experiences", "regimes", "train"):
        column = getattr(again, name)
        np.testing.assert_array_equal(column, getattr(run, name))
    assert [again.experiences.dtype, again.regimes.dtype] == [np.int64, np.int32]


def test_the_store_refuses_columns_of_other_lengths(tmp_path):
    whole = {"regimes": np.zeros(3), "train": np.ones(3, bool), "measures": {"reward": np.ones(3)}}
    ste_store.SteRun(experiences=np.arange(3), **whole)
    for name, other in (
        ("regimes", {"regimes": np.zeros(2)}),
        ("train", {"train": np.ones(2, bool)}),
        ("reward", {"measures": {"reward": np.ones(2)}}),
    ):
        with pytest.raises(ValueError, match=f"'{name}' of an STE run"):
            ste_store.SteRun(experiences=np.arange(3), **whole | other)
    with pytest.raises(ValueError, match="'regimes' of an STE run"):
        ste_store.SteRun({}, np.zeros((3, 1)), np.zeros((3, 1)), np.ones((3, 1), bool))
    with pytest.raises(ValueError, match="no run to store"):
        ste_store.write(tmp_path, "a_1", [])


def test_stored_experts_can_be_cleared(capsys):
    log = write_log(Path("expert").absolute(), rows([(0, "train", "a_1", [1.0, 2.0])]))
    compute("-l", str(log), "-s", "w")
    compute("-l", str(log), "-s", "a")
    assert len(ste_store.read(ste_store.default_directory(), "a_1")) == 2
    compute("--clear-ste")
    assert "of 1 tasks" in capsys.readouterr().out


# Beside the real tool -----------------------------------------------------------------------------


def test_experts_of_several_variants_come_file_by_file(monkeypatch):
    """As the tool reads them: files in the directory's order, in each the newest run first."""
    from evaluation.l2m import ste_store
    from evaluation.l2m.l2metrics.experts import stored_runs

    store, none = Path("store"), np.zeros(2)
    for task, sources in (("task_b", "12"), ("task_a", "34")):
        runs = [ste_store.SteRun({"reward": none}, none, none, none, source) for source in sources]
        ste_store.write(store, task, runs)
    names = [path.name.split(".")[0] for path in os.scandir(store)]
    newest = {"task_b": ["2", "1"], "task_a": ["4", "3"]}
    compat = LogSettings(variant_mode="agnostic", compat="l2metrics-3.1")
    order = [run.source for run in stored_runs(store, "task", compat)]
    assert order == [source for name in names for source in newest[name]]
    plain = [run.source for run in stored_runs(store, "task", LogSettings(variant_mode="agnostic"))]
    assert plain == ["3", "4", "1", "2"]


def test_pickled_experts_are_named_and_never_opened(log, capsys):
    store = Path(os.environ["L2DATA"]) / "taskinfo"
    store.mkdir(parents=True, exist_ok=True)
    (store / "taska_1.pickle").write_bytes(b"cos\nsystem\n(S'touch opened'\ntR.")
    compute("-l", str(log), "-O", "out")
    error = capsys.readouterr().err
    assert "expert files of l2metrics (taska_1.pickle), which are never opened" in error
    assert "jaxsim l2metrics -l EXPERT_LOG -s w" in error
    assert not Path("opened").exists()


def test_the_printed_table_names_the_flag_for_the_tool_s_numbers(capsys):
    tests = [("test", "a_1"), ("test", "b_1")]
    plan = [*tests, ("train", "a_1"), ("train", "b_1"), *tests]
    content = [
        (number, kind, task, [float(number + k) for k in range(6)])
        for number, (kind, task) in enumerate(plan)
    ]
    for name in ("one", "two"):
        write_log(Path("both").absolute() / name, rows(content))
    compute("-l", "both/one", "-O", "out")
    alone = capsys.readouterr().out
    compute("-l", "both", "-R", "-O", "all")
    both = capsys.readouterr().out
    for text in (alone, both):
        assert "--compat l2metrics-3.1 gives the numbers of l2metrics 3.1" in text
    assert "forward_transfer_ratio (2 of 2 runs)" in both
    compute("-l", "both/one", "-O", "out", "--compat", "l2metrics-3.1")
    assert "gives the numbers" not in capsys.readouterr().out


def test_every_number_that_is_missing_has_a_reason():
    """A task that is tested only, and one without an expert."""
    content = rows([(0, "test", "a_1", [1.0]), (1, "train", "b_1", [1.0, 2.0, 4.0])])
    (analysis,) = run(write_log(Path("run").absolute(), content)).analyses
    values = run_json(analysis)
    reasons = values["why"]["task_metrics"]
    missing = {
        (task, name)
        for task, entries in values["task_metrics"].items()
        for name, value in entries.items()
        if value is None
    }
    assert ("a_1", "se_task_saturation") in missing
    assert missing <= {(task, name) for task, entries in reasons.items() for name in entries}
    assert all(sentence for entries in reasons.values() for sentence in entries.values())


def test_where_a_log_has_tests_asleep_only_those_are_listed(tmp_path):
    """Blocks 0, 2, 4 and 7 test the default task, 5 and 8 the level."""
    (awake,) = write_lifetimes(made_up.run(0, 1), tmp_path, "l2logger", [0])
    read = logs.read_log(awake)
    rows = [
        dataclasses.replace(row, block_subtype="sleep" if row.block_num in (2, 7, 8) else "wake")
        for row in read.rows
    ]
    asleep = logs.write_log(tmp_path, "asleep", rows, read.metrics_columns, read.scenario_info)
    settings = LogSettings("performance", normalization_method="none")
    analyses = run([awake, asleep], settings).analyses
    of_first, of_second = ([row["block_subtype"] for row in regime_rows(one)] for one in analyses)
    assert of_first == ["wake"] * 9
    assert [block for block, subtype in enumerate(of_second) if subtype == "sleep"] == [2, 7, 8]
    listed = []
    for analysis in analyses:
        tasks = run_json(analysis)["task_metrics"].values()
        listed.append([task["avg_eval_perf_vals"] for task in tasks])
    (first, second), (default, level) = listed
    assert [len(first), len(second)] == [4, 2]
    assert default == [first[1], first[3]] and level == second[1:]
