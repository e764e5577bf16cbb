"""The command line: what it writes, what it says, and what it leaves alone."""

import io
import json
import os
import re
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from evaluation import cli, memory, records, scanner
from evaluation.l2m import run as main_job
from evaluation.logs import learnkit, validate_log
from evaluation.report import summarise_records
from jaxsim import __version__
from tests.evaluation import toy
from tests.evaluation.toy import repeat

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "examples" / "syllabi" / "cl_pole_length.json"


@pytest.fixture(autouse=True, scope="module")
def toy_task():
    with toy.registered():
        yield


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """A directory of one's own, with a good syllabus of the toy in it."""
    monkeypatch.chdir(tmp_path)
    good = toy.syllabus(("1.train", [repeat(4)]), ("1.test", [repeat(3), repeat(3, target=1)]))
    (tmp_path / "good.json").write_text(good)
    return tmp_path


def tree(directory):
    """Every file and directory below, with its content and the time it was changed."""
    return {
        str(path.relative_to(directory)): (
            path.stat().st_mtime_ns,
            path.read_bytes() if path.is_file() else None,
        )
        for path in directory.rglob("*")
    }


def run(*arguments, syllabus="good.json", agent="random", lifetimes="2", out="out"):
    """The exit code of `jaxsim run`; small and about the toy unless told otherwise."""
    named = {"--agent": agent, "--lifetimes": lifetimes, "--out": out}
    pairs = [word for pair in named.items() for word in pair]
    return cli.main(["run", syllabus, *pairs, *arguments])


def test_an_error_of_arrays_inside_is_not_shown_as_wrong_input(workplace, monkeypatch):
    def broken(job):
        return jnp.broadcast_shapes((2,), (3,))

    monkeypatch.setattr(main_job.SyllabusRun, "checked_schedule", broken)
    with pytest.raises(ValueError) as caught:
        run()
    assert any("please report" in note for note in caught.value.__notes__)


# Bad input ----------------------------------------------------------------------------------------


def test_a_file_that_is_missing_is_named_without_the_number_of_the_error(workplace, capsys):
    assert cli.main(["sciencebirds", "serve", "--config", "absent.xml"]) == 2
    assert capsys.readouterr().err == "jaxsim: absent.xml: No such file or directory\n"


TRAIN = '{"instructions": [{"$phase": "1.train"}, %s]}'


def counted(count):
    return TRAIN % f'{{"$repeat": {{"$episode": "Toy"}}, "count": {count}}}'


def with_parameter(pair):
    return TRAIN % f'{{"$episode": "Toy", {pair}}}'


BAD_SYLLABI = {
    "broken JSON": ('{"instructions": [', r"bad\.json:1:19: broken JSON"),
    "empty file": ("", "the text is empty"),
    "empty instructions": ('{"instructions": []}', "it must be a list of at least one instruction"),
    "no instructions": ("{}", "add a list of instructions"),
    "count 0": (counted(0), "'count' is 0; it must be a whole number from 1"),
    "count negative": (counted(-5), "'count' is -5; it must be a whole number from 1"),
    "count word": (counted('"5"'), "it must be a whole number from 1"),
    "test first": (
        '{"instructions": [{"$phase": "1.test"}, {"$episode": "Toy"}]}',
        r"here it must be '1\.train'",
    ),
    "parameter type": (with_parameter('"target": "far"'), "it must be a whole number from 0 to 4"),
    "parameter bound": (with_parameter('"target": 5'), "it must be a whole number from 0 to 4"),
    "parameter unknown": (with_parameter('"targt": 1'), "did you mean 'target'"),
    "task unknown": (TRAIN % '{"$episode": "Toi"}', "did you mean 'Toy'"),
    "phase unknown": (
        '{"instructions": [{"$phase": "1.learn"}, {"$episode": "Toy"}]}',
        r"'1\.learn'; here it must be '1\.train'",
    ),
    "two environments": (
        TRAIN % '{"$episode": "Toy"}, {"$episode": "CartPole"}',
        "play them as separate schedules",
    ),
    "values that contradict": (
        TRAIN % '{"$episode": "CartPole3D", "blocks/count_min": 4, "blocks/count_max": 3}',
        "'blocks/count_min' is 4, above 'blocks/count_max'",
    ),
}

BAD_ARGUMENTS = {
    "syllabus missing": ({"syllabus": "absent.json"}, [], r"absent\.json.*no such file"),
    "syllabus directory": ({"syllabus": "."}, [], "directory"),
    "agent": ({"agent": "pdd"}, [], "unknown agent 'pdd'; did you mean 'pd'"),
    "lifetimes 0": ({"lifetimes": "0"}, [], "lifetimes is 0; it must be from 1"),
    "lifetimes negative": ({"lifetimes": "-3"}, [], "lifetimes is -3; it must be from 1"),
    "lifetimes huge": ({"lifetimes": "9" * 30}, [], "it must be from 1 to 1000000"),
    "lifetime-idx": ({}, ["--lifetime-idx", "-1"], "first lifetime is -1; it must be from 0 to"),
    "log-lifetime before": (
        {},
        ["--lifetime-idx", "5", "--log-lifetime", "4"],
        "log-lifetime is 4; it must be from 5 to 6",
    ),
    "measure": ({}, ["--measure", "speed"], "performance, reward, length"),
    "window even": ({}, ["--window", "10"], "window is 10; it must be an odd number"),
    "window 0": ({}, ["--window", "0"], "window is 0; it must be an odd number from 1"),
    "window negative": ({}, ["--window", "-3"], "window is -3; it must be an odd number from 1"),
    "seed negative": ({}, ["--seed", "-1"], "seed is -1; it must be from 0 to 4294967295"),
    "seed huge": ({}, ["--seed", "4294967296"], "it must be from 0 to 4294967295"),
    "chunk": ({}, ["--chunk", "65"], "chunk is 65; it must be a multiple of 64"),
    "chunk 0": ({}, ["--chunk", "0"], "chunk is 0; it must be a multiple of 64"),
    "threads 0": ({}, ["--threads", "0"], "threads is 0; it must be from 1"),
    "threads negative": ({}, ["--threads", "-1"], "threads is -1; it must be from 1"),
    "threads many": ({}, ["--threads", "1000"], "threads is 1000; it must be from 1"),
    "log-lifetime": ({}, ["--log-lifetime", "2"], "log-lifetime is 2; it must be from 0 to 1"),
    "log-lifetime negative": ({}, ["--log-lifetime", "-1"], "log-lifetime is -1; it must be from"),
    "log-format": ({}, ["--log-format", "csv"], "log-format is 'csv'; it must be l2logger or"),
    "log-lifetime second": (
        {},
        ["--log-lifetime", "1", "--log-lifetime", "7"],
        "log-lifetime is 7; it must be from 0 to 1",
    ),
    "out is a file": ({"out": "good.json"}, [], "is a file; name a directory"),
    "out is a file, overwrite": ({"out": "good.json"}, ["--overwrite"], "is a file; name a direc"),
    "out below a file": ({"out": "good.json/out"}, [], r"cannot be made: good\.json is a file"),
    "out not empty": ({"out": "."}, [], "is not empty; choose another or pass --overwrite"),
}


def assert_refused(code, captured, words, before, workplace):
    """Exit code 2, one line that says what to change, and nothing written."""
    assert code == 2
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("jaxsim: ")
    assert re.search(words, line, re.IGNORECASE), line
    assert tree(workplace) == before


@pytest.fixture
def no_play(monkeypatch):
    """Whatever is refused must be refused before anything is played."""

    def play(*arguments, **options):
        raise AssertionError("this must have been refused")

    monkeypatch.setattr(scanner, "play", play)


@pytest.mark.usefixtures("no_play")
@pytest.mark.parametrize("name", BAD_SYLLABI)
def test_bad_syllabus(workplace, capfd, name):
    text, words = BAD_SYLLABI[name]
    (workplace / "bad.json").write_text(text)
    before = tree(workplace)
    code = run(syllabus="bad.json")
    assert_refused(code, capfd.readouterr(), words, before, workplace)


@pytest.mark.usefixtures("no_play")
@pytest.mark.parametrize("name", BAD_ARGUMENTS)
def test_bad_argument(workplace, capfd, name):
    named, arguments, words = BAD_ARGUMENTS[name]
    before = tree(workplace)
    code = run(*arguments, **named)
    assert_refused(code, capfd.readouterr(), words, before, workplace)


@pytest.mark.usefixtures("no_play")
def test_out_that_cannot_be_written(workplace, capfd, monkeypatch):
    real = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode, **o: not mode & os.W_OK and real(path, mode, **o)
    )
    before = tree(workplace)
    code = run()
    assert_refused(
        code, capfd.readouterr(), "output directory out cannot be written", before, workplace
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "required: COMMAND"),
        (["walk"], "invalid choice: 'walk'"),
        (["run"], "required: SYLLABUS.json, --out"),
        (["run", "good.json"], "required: --out"),
        (["run", "good.json", "--out", "o", "--lifetimes", "many"], "invalid int value: 'many'"),
        (["run", "good.json", "--out", "o", "--seed", "1.5"], r"invalid int value: '1\.5'"),
        (
            ["run", "good.json", "--out", "o", "--lifetimes", "1", "--x"],
            "unrecognized arguments: --x",
        ),
    ],
)
def test_arguments_that_do_not_parse(workplace, capfd, arguments, words):
    before = tree(workplace)
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 2
    assert re.search(words, capfd.readouterr().err)
    assert tree(workplace) == before


# Help ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--help"], ["run", "bench", "tasks", "--version"]),
        (["run", "--help"], ["--log-lifetime", "--overwrite", "examples:", "records.parquet"]),
        (["tasks", "--help"], ["parameter"]),
        (["bench", "--help"], ["--quick", "--json FILE", "--plot FILE", "--peer", "examples:"]),
        (["compare", "--help"], ["RUN_A RUN_B", "--metric NAME", "--paired", "examples:"]),
        (["plot", "--help"], ["--out DIR", "--kind KIND", "--live S", "examples:"]),
        (["--version"], [f"jaxsim-novelty {__version__}"]),
    ],
)
def test_help_and_version(capfd, arguments, words):
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    captured = capfd.readouterr()
    assert stop.value.code == 0
    assert captured.err == ""
    for word in words:
        assert word in captured.out


def test_tasks_lists_every_parameter(capfd):
    assert cli.main(["tasks"]) == 0
    captured = capfd.readouterr()
    assert captured.err == ""
    assert '"$episode": "CartPole3D"' in captured.out
    for words in ("pole/length", "a number from 0.1 to 9 m", "novelty/difficulty", "'hard'"):
        assert words in captured.out
    for path in toy.PARAMETERS:
        assert path in captured.out


# A run --------------------------------------------------------------------------------------------


def read_report(out):
    return json.loads((out / "report.json").read_text(), parse_constant=pytest.fail)


def assert_results(out, episodes, lifetimes, logged=()):
    """The outputs are there, nothing else is, and they agree with one another."""
    expected = {"records.parquet", "report.html", "report.json", "schedule.json"}
    expected |= {"logs"} if logged else set()
    assert {path.name for path in out.iterdir()} == expected
    assert len((out / "report.html").read_bytes()) < 3_000_000
    run_records = records.read(out / "records.parquet")
    assert (run_records.num_lifetimes, run_records.schedule.num_episodes) == (lifetimes, episodes)
    assert json.loads((out / "schedule.json").read_text()) == run_records.schedule.to_json()
    report = read_report(out)
    assert report["episodes"] == lifetimes * episodes
    again = summarise_records(run_records, report["measure"], report["window"], report["seed"])
    assert report == json.loads(json.dumps(again.to_json()))
    logs = sorted((out / "logs").iterdir()) if logged else []
    assert all(validate_log(log) == [] for log in logs)
    numbers = [json.loads((log / "scenario_info.json").read_text())["lifetime"] for log in logs]
    assert sorted(numbers) == sorted(logged)
    return run_records, report


def test_a_run_writes_its_results_and_shows_them(workplace, capfd):
    assert run("--seed", "3", "--window", "3", "--measure", "reward") == 0
    captured = capfd.readouterr()
    run_records, report = assert_results(workplace / "out", 10, 2)
    assert (report["seed"], report["window"], report["measure"]) == (3, 3, "reward")
    assert run_records.metadata["agent"] == "random"
    assert captured.err == ""
    for words in ("good: reward, 2 lifetimes", "Whole syllabus", "environment steps", "out"):
        assert words in captured.out


def test_quiet_prints_nothing(workplace, capfd):
    assert run("--quiet") == 0
    assert capfd.readouterr() == ("", "")
    assert_results(workplace / "out", 10, 2)


def test_statistics_are_printed_on_request(workplace, capfd):
    assert run("--window", "3", "--statistics") == 0
    captured = capfd.readouterr()
    assert captured.err == ""
    for words in ("mean, over lifetimes, with 95 % intervals", "median", "interquartile"):
        assert words in captured.out


def test_a_run_works_without_rich_if_it_is_quiet(workplace, capfd, monkeypatch):
    for name in [n for n in sys.modules if n.split(".")[0] == "rich"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rich", None)
    before = tree(workplace)
    code = run()
    words = r"pip install 'jaxsim-novelty\[cli\]', or pass --quiet"
    assert_refused(code, capfd.readouterr(), words, before, workplace)
    assert run("--quiet") == 0


def test_overwrite_replaces_results(workplace):
    assert run("--quiet", "--seed", "1") == 0
    first = tree(workplace / "out")
    assert run("--quiet", "--seed", "2") == 2
    assert tree(workplace / "out") == first
    assert run("--quiet", "--seed", "2", "--overwrite") == 0
    second = tree(workplace / "out")
    assert set(second) == set(first)
    assert read_report(workplace / "out")["seed"] == 2
    assert second["records.parquet"][1] != first["records.parquet"][1]
    assert run("--quiet", "--seed", "1", "--overwrite") == 0
    again = tree(workplace / "out")
    assert {name: content for name, (_, content) in again.items()} == {
        name: content for name, (_, content) in first.items()
    }


def test_an_old_report_stays_beside_old_records_only(workplace, monkeypatch, capfd):
    """Whoever finds a report may trust that the rest belongs to it."""
    assert run("--quiet", "--seed", "1") == 0
    first = tree(workplace / "out")

    def fail(*arguments):
        raise OSError("no space left on device")

    monkeypatch.setattr(main_job, "write_json", fail)
    assert run("--quiet", "--seed", "2", "--overwrite") == 2
    assert capfd.readouterr().err == "jaxsim: no space left on device\n"
    assert tree(workplace / "out") == first


def test_what_does_not_fit_into_memory_is_refused_before_play(workplace, monkeypatch, capfd):
    monkeypatch.setattr(memory, "physical", lambda: 4096)
    before = tree(workplace)
    assert run("--quiet", "--lifetimes", "1000") == 2
    error = capfd.readouterr().err
    assert re.search(r"1,000 lifetimes of \d+ episodes do not fit .* at most \d+ do", error)
    assert tree(workplace) == before


def test_lifetimes_are_logged(workplace):
    assert run("--quiet", "--log-lifetime", "1", "--log-lifetime", "0") == 0
    assert_results(workplace / "out", 10, 2, logged=[0, 1])


def test_lifetimes_are_logged_as_runs_of_2019(workplace):
    words = ["--log-lifetime", "1", "--log-lifetime", "0", "--log-format", "learnkit"]
    assert run("--quiet", *words) == 0
    logs = [learnkit.read_log(path) for path in (workplace / "out" / "logs").iterdir()]
    assert [len(log.rows) for log in logs] == [10, 10]
    assert [len(log.blocks) for log in logs] == [3, 3]


def test_a_lifetime_that_is_named_twice_is_logged_once(workplace):
    assert run("--quiet", "--log-lifetime", "1", "--log-lifetime", "1") == 0
    assert_results(workplace / "out", 10, 2, logged=[1])


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_ctrl_c(workplace, capfd, monkeypatch, quiet):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(scanner, "play", interrupted)
    before = tree(workplace)
    assert run(*quiet) == 130
    assert capfd.readouterr().err.splitlines() == ["jaxsim: interrupted"]
    assert tree(workplace) == before


# The real thing, as a user starts it --------------------------------------------------------------


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "evaluation.cli", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.mark.slow
def test_a_small_run_of_cartpole(tmp_path):
    """Level 200 is played by `test_demo`."""
    cartpole = {"task": "CartPole"}
    text = toy.syllabus(
        ("1.train", [repeat(4, **cartpole)]),
        ("1.test", [repeat(4, pole_length=2.0, **cartpole), repeat(4, gravity=5.0, **cartpole)]),
    )
    (tmp_path / "small.json").write_text(text)
    out = tmp_path / "deep" / "out"
    words = ["--agent", "random", "--lifetimes", 8, "--window", 3, "--log-lifetime", 7]
    done = command("run", tmp_path / "small.json", *words, "--out", out)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "96/96 episodes" in done.stdout
    assert "pole/length 2.0" in done.stdout
    run_records, _ = assert_results(out, 12, 8, logged=[7])
    assert run_records.columns["complete"].all()
    lengths = run_records.columns["length"]
    # A longer pole falls more slowly, and so does one without half of its weight.
    assert 10 < lengths[:, :4].mean() < min(lengths[:, 4:8].mean(), lengths[:, 8:].mean())


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The shipped syllabus, played as `make demo` does with fewer lifetimes."""
    out = tmp_path_factory.mktemp("demo") / "out"
    words = ["--agent", "pd", "--lifetimes", 64, "--seed", 0, "--log-lifetime", 63]
    printed = io.StringIO()
    with redirect_stdout(printed):
        assert cli.main(["run", *map(str, (DEMO, *words, "--out", out))]) == 0
    return out, printed.getvalue()


@pytest.mark.slow
def test_demo(demo):
    out, printed = demo
    run_records, report = assert_results(out, 285, 64, logged=[63])
    assert report["incomplete_episodes"] == 0
    assert report["syllabus"] == {"name": "cl_pole_length", "source": "cl_pole_length.json"}
    assert report["versions"]["jaxsim-novelty"] == __version__
    assert "18,240/18,240 episodes" in printed
    assert f"compiling included; results in {out}: open report.html\n" in printed
    mean = report["metrics"]["mean"]
    assert 0.8 < mean["low"] < mean["mean"] < mean["high"] < 1
    # A lifetime of 64 says something about every block and metric that is defined for it.
    for block in report["blocks"]:
        for name in ("mean", "saturation_value", "time_to_saturation", "normalized_integral"):
            assert block["metrics"][name]["lifetimes"] == 64, (block["block"], name)
    assert run_records.columns["complete"].all()


@pytest.mark.slow
def test_columns_of_the_demo(demo):
    columns = records.read(demo[0] / "records.parquet").columns
    assert set(columns) == set(records.COLUMNS)
    for name, dtype in records.COLUMNS.items():
        assert columns[name].shape == (64, 285), name
        assert columns[name].dtype == dtype, name
    length = columns["length"]
    assert length.min() >= 1 and length.max() <= 200
    np.testing.assert_allclose(columns["performance"], length / 200, rtol=2e-7)
    # Step k is rewarded with k/200.
    np.testing.assert_allclose(columns["reward"], length * (length + 1) / 400, rtol=1e-5)
    np.testing.assert_allclose(columns["seconds"], length * 0.02, rtol=1e-6)
    assert (columns["predicted_level"] == 0).all()
    assert (columns["predicted_probability"] == 0).all()
    assert (columns["threshold"] == 1).all()
    assert len(np.unique(length)) > 50


@pytest.mark.slow
def test_variants_of_the_demo_change_the_physics(demo):
    """Blocks hit a long pole more often than a short one, and it is the same in every block."""
    demo_records = records.read(demo[0] / "records.parquet")
    values, counts = demo_records.by_block("length")
    lengths = [values[:, block, :count] for block, count in enumerate(counts)]
    blocks = demo_records.schedule.blocks
    poles = np.array([dict(block.parameters).get("pole/length", 1.0) for block in blocks])
    long, nominal, short = (
        np.mean([lengths[block].mean() for block in np.flatnonzero(poles == metres)])
        for metres in (2.0, 1.0, 0.5)
    )
    assert long + 3 < nominal < short - 3  # 176, 183 and 189; the error of a block's mean is 1.5
    first, *_, last = (lengths[block] for block in np.flatnonzero(poles == 1.0))
    spread = [block.std() / np.sqrt(block.size) for block in (first, last)]
    assert abs(first.mean() - last.mean()) < 5 * np.hypot(*spread)


@pytest.mark.slow
def test_results_name_no_place_on_this_machine(demo, tmp_path_factory):
    out, _ = demo
    for path in out.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert str(ROOT).encode() not in content, path.name
            assert str(tmp_path_factory.getbasetemp()).encode() not in content, path.name


@pytest.mark.parametrize("name", ["tasks", "metrics"])  # the second prints with rich
def test_output_that_nobody_reads_to_its_end(name):
    """As in `jaxsim tasks | head`."""
    command = [sys.executable, "-m", "evaluation.cli", name]
    reader = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    reader.stdout.close()
    assert (reader.wait(120), reader.stderr.read()) == (0, "")
