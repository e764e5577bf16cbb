"""`jaxsim l2m ste`: experts from logs, from records and from the file of 2019."""

import json
from pathlib import Path

import numpy as np
import pytest

from evaluation import cli
from evaluation.l2m import ste_info, ste_store
from evaluation.l2m.l2metrics import LogSettings, run, run_json
from evaluation.l2m.ste_sources import runs_of_records
from evaluation.logs.export import write_lifetimes
from tests.evaluation.l2m.log_files import good_rows, rows, write_log
from tests.evaluation.l2m.test_ste_sources import LIFELONG, records_of


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("L2DATA", str(tmp_path / "l2data"))


def ste(capsys, *words):
    """Exit code, lines of standard output, standard error."""
    code = cli.main(["l2m", "ste", *map(str, words)])
    captured = capsys.readouterr()
    return code, captured.out.splitlines(), captured.err


def stored(task):
    return ste_store.read(ste_store.default_directory(), task)


def expert_log(name, *rewards):
    return write_log(Path(name).absolute(), rows([(0, "train", "taskA_1", rewards)]))


def test_logs_are_added_behind_or_in_place_of_what_is_there(capsys):
    one = expert_log("one", 1.0, 2.0)
    expert_log("l2data/logs/two", 3.0, 4.0)
    assert ste(capsys, "add", one, "two") == (
        0, [f"{one}: 1 run of taska_1", "two: 1 run of taska_1"], ""
    )  # fmt: skip
    assert [expert.source for expert in stored("taska_1")] == ["one", "two"]
    assert ste(capsys, "add", "--replace", "two", one)[0] == 0
    assert [expert.source for expert in stored("taska_1")] == ["two", "one"]


def test_lifetimes_of_a_run_are_the_experts_that_their_logs_would_be(capsys):
    records = records_of(first=4)
    records.columns["complete"][1, 1] = False
    records.write(Path("runs/expert/records.parquet"))
    logs = write_lifetimes(records, Path("logs"), "l2logger", [5])
    code, lines, _ = ste(capsys, "add", "runs/expert", "--lifetimes", 6, 5)
    assert (code, lines) == (0, ["runs/expert: 2 runs of toy_v0"])
    assert ste(capsys, "add", logs[0])[1] == [f"{logs[0]}: 1 run of toy_v0"]
    last, ours, theirs = stored("toy_v0")
    assert (last.source, ours.source) == ("expert, lifetime 6", "expert, lifetime 5")
    assert set(ours.measures) == {"performance", "reward", "length"}
    assert ours.train.all() and not theirs.train.all()
    for name, values in ours.measures.items():
        np.testing.assert_array_equal(values, theirs.measures[name][theirs.train])
    np.testing.assert_array_equal(ours.experiences, theirs.experiences[theirs.train])


def test_the_lifelong_syllabus_names_the_task():
    assert runs_of_records(records_of(), syllabus=LIFELONG)[0] == "toy_v2"


def test_saturation_values_are_kept_beside_the_runs(capsys):
    Path("a.json").write_text('{"taskA_1": 0.5, "Task-B": 2}')
    Path("b.json").write_text('{"taskA_1": 0.75}')
    assert ste(capsys, "add", "a.json", "b.json") == (
        0,
        ["a.json: saturation values of taskA_1, Task-B", "b.json: saturation value of taskA_1"],
        "",
    )
    file = ste_store.default_directory() / "info.json"
    assert json.loads(file.read_text()) == {"taskA_1": 0.75, "Task-B": 2.0}
    assert ste_info.stored_saturations(file.parent) == {"taskA_1": 0.75, "Task-B": 2.0}


def test_where_a_curve_is_needed_a_saturation_value_is_said_not_to_be_one(capsys):
    log = write_log(Path("logs/run").absolute(), good_rows())
    Path("info.json").write_text('{"taskA_1": 0.5}')
    ste(capsys, "add", "info.json")
    (analysis,) = run(log, LogSettings()).analyses
    why = run_json(analysis)["why"]
    assert "only a saturation value" in why["ste_rel_perf"]
    assert "only a saturation value" in why["task_metrics"]["taska_1"]["sample_efficiency"]
    assert "has no single-task expert" in why["task_metrics"]["taskb_1"]["ste_rel_perf"]


def test_the_list_and_clearing(capsys):
    store = Path("l2data/taskinfo").absolute()
    assert ste(capsys, "list") == (0, [f"no single-task expert in {store}"], "")
    Path("info.json").write_text('{"b_1": 0.5}')
    ste(capsys, "add", expert_log("one", 1.0, 2.0, 3.0), "info.json")
    code, lines, _ = ste(capsys, "list")
    assert [line.split() for line in lines[1:]] == [
        ["b_1", "0", "0", "-", "0.5"],
        ["taska_1", "1", "3", "reward", "-"],
    ]
    code, lines, err = ste(capsys, "clear", "c_1")
    assert (code, lines) == (2, [])
    assert "no expert of c_1 in" in err and "there are b_1, taska_1" in err
    assert ste(capsys, "clear", "b_1")[1] == ["deleted the single-task experts of b_1"]
    assert len(stored("taska_1")) == 1
    assert ste(capsys, "clear")[1] == ["deleted the single-task experts of taska_1"]
    assert list(ste_store.default_directory().iterdir()) == []


def test_what_cannot_be_added_does_not_keep_others_out(capsys):
    Path("empty").mkdir()
    Path("list.json").write_text("[1]")
    two = write_log(Path("both").absolute(), good_rows())
    good = expert_log("good", 1.0, 2.0)
    code, lines, err = ste(capsys, "add", "missing", "empty", "list.json", two, good)
    assert (code, lines) == (2, [f"{good}: 1 run of taska_1"])
    words = ("no log directory missing", "neither logger_info.json", "must be an object", "found 2")
    assert all(word in line for word, line in zip(words, err.splitlines(), strict=True)), err
    code, _, err = ste(capsys, "add", good, "--lifetimes", 0)
    assert code == 2 and "is the log of one lifetime" in err
    Path("info.json").write_text('{"taska": 1.5}')
    code, _, err = ste(capsys, "add", "info.json", "--lifetimes", 3)
    assert code == 2 and "--lifetimes are of runs; info.json has one value a task" in err
