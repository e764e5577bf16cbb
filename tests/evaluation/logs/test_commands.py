"""`jaxsim l2m validate` and `jaxsim l2m aggregate` on logs of both formats."""

import csv
import dataclasses
import json

import pyarrow.feather
import pyarrow.parquet
import pytest

from evaluation import cli
from evaluation.logs import L2LoggerRow, learnkit, write_log
from tests.evaluation.logs.test_batch import SCENARIO, START, rows
from tests.evaluation.logs.test_learnkit import rows as learnkit_rows


@pytest.fixture
def log(tmp_path):
    log_rows = rows(30)
    log_rows[2] = dataclasses.replace(log_rows[2], metrics={"reward": 0.25, "length": 2})
    return write_log(tmp_path, "demo", log_rows, ["reward", "length"], SCENARIO, start=START)


@pytest.fixture
def old_log(tmp_path):
    log_rows = learnkit_rows()
    log_rows[3] = dataclasses.replace(log_rows[3], termination_status="NOT_DONE")
    return learnkit.write_log(tmp_path, "old", log_rows, START)


def jaxsim(capsys, *arguments):
    code = cli.main(["l2m", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def table(path, delimiter="\t"):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream, delimiter=delimiter))


# validate -----------------------------------------------------------------------------------------


def test_a_valid_log_is_a_table_of_its_regimes(log, capsys):
    code, out, err = jaxsim(capsys, "validate", log)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "The log is valid. l2logger 1.1: 27 complete episodes, 3 incomplete ones"
    assert lines[2].split()[:3] == ["regime_num", "block_num", "block_type"]
    first = lines[3].split()
    assert first == ["0", "0", "train", "sleep", "pole_0", "{}", "1"]
    assert sum(int(line.split()[-1]) for line in lines[3:]) == 27
    assert ' {"pole/length": 1.5, "not...  ' in out


def test_a_valid_log_of_2019_is_a_table_of_its_blocks(old_log, capsys):
    code, out, err = jaxsim(capsys, "validate", old_log)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "The log is valid. learnkit: 6 episodes of 2 workers"
    assert [line.split()[:3] + line.split()[-3:] for line in lines[3:]] == [
        ["0", "1.train", "kit_pole0", "2", "4", "1"],
        ["1", "1.test", "kit_pole1", "2", "4", "0"],
        ["2", "2.train", "kit_pole0", "2", "4", "0"],
    ]


def test_every_error_of_a_log_is_told(log, capsys):
    tables = sorted(log.rglob("data-log.tsv"))[:3]
    for path in tables:
        path.write_text(path.read_text().replace("train", "learn").replace("test", "exam"))
    code, out, err = jaxsim(capsys, "validate", log)
    assert (code, out) == (1, "")
    lines = err.splitlines()
    assert all(": error: block_type must be one of train, test" in line for line in lines)
    assert {line.partition(":")[0] for line in lines} == {str(path) for path in tables}
    assert lines[0].startswith(f"{tables[0]}:2: error")


def test_every_error_of_a_log_of_2019_is_told(old_log, capsys):
    for path in old_log.rglob("data-log.tsv"):
        path.write_text(path.read_text().replace("NEXT\t[", "NEXT\t[\t", 1))
    code, _, err = jaxsim(capsys, "validate", old_log)
    assert code == 1
    assert err.count("data-log.tsv:2: error: has 15 fields under 14 columns") == 6


def test_warnings_are_told_up_to_a_limit_and_change_nothing(tmp_path, capsys):
    log_rows = [
        L2LoggerRow(0, n, "train", "wake", "plain", {}, "complete", START, {"reward": 0.5})
        for n in range(50)
    ]
    path = write_log(tmp_path, "demo", log_rows, ["reward"], SCENARIO)
    code, out, err = jaxsim(capsys, "validate", path)
    assert code == 0
    assert out.startswith("The log is valid.")
    lines = err.splitlines()
    assert len(lines) == 21 and lines[-1] == "and 30 more warnings"
    assert lines[0].endswith("warning: task_name 'plain' is not of the form label_variant")


def test_a_bare_name_is_looked_up(log, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("L2DATA", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "logs").symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path / "data")
    assert jaxsim(capsys, "validate", log.name)[0] == 0


def test_what_is_no_log_says_so(tmp_path, capsys):
    code, out, err = jaxsim(capsys, "validate", tmp_path / "missing")
    assert (code, out) == (2, "")
    assert err.startswith("jaxsim: no log directory") and err.count("\n") == 1
    code, out, err = jaxsim(capsys, "validate", tmp_path)
    assert (code, out) == (1, "")
    assert "is not a log: it has neither logger_info.json (l2logger) nor a block-report.tsv" in err


def test_a_log_without_complete_episodes_has_no_regimes(tmp_path, capsys):
    log_rows = [dataclasses.replace(row, exp_status="incomplete") for row in rows(4)]
    log_rows[2] = dataclasses.replace(log_rows[2], metrics=log_rows[0].metrics)
    path = write_log(tmp_path, "demo", log_rows, ["reward", "length"], SCENARIO)
    code, out, _ = jaxsim(capsys, "validate", path)
    assert code == 0
    assert out.splitlines()[0].endswith("0 complete episodes, 4 incomplete ones")


# aggregate ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["tsv", "csv", "feather", "parquet"])
def test_the_columns_of_an_aggregate_are_l2loggers(log, kind, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = jaxsim(capsys, "aggregate", log, "-f", kind)
    assert (code, out, err) == (0, f"data.{kind}\n", "")
    path = tmp_path / f"data.{kind}"
    if kind in ("tsv", "csv"):
        lines = table(path, {"tsv": "\t", "csv": ","}[kind])
    else:
        read = {"feather": pyarrow.feather.read_table, "parquet": pyarrow.parquet.read_table}
        lines = read[kind](path).to_pylist()
    assert list(lines[0]) == [
        "block_num",
        "regime_num",
        "exp_num",
        "worker_id",
        "block_type",
        "block_subtype",
        "task_name",
        "task_params",
        "exp_status",
        "timestamp",
        "cells",
        "length",
        "pace",
        "reward",
    ]
    log_rows = [row for row in rows(30) if row.exp_status == "complete"]
    assert [int(line["exp_num"]) for line in lines] == [row.exp_num for row in log_rows]
    assert [line["task_name"] for line in lines] == [row.task_name.lower() for row in log_rows]
    assert [line["cells"] for line in lines] == [row.extras["cells"] for row in log_rows]
    assert [float(line["pace"]) for line in lines] == [row.extras["pace"] for row in log_rows]
    assert [json.loads(line["task_params"]) for line in lines] == [r.task_params for r in log_rows]
    assert lines[3]["timestamp"] == f"{log_rows[3].timestamp:%Y%m%dT%H%M%S.%f}"
    assert float(lines[2]["reward"]) == 0.25
    assert [int(line["regime_num"]) for line in lines][:9] == [0, 1, 1, 1, 1, 2, 3, 4, 4]


def test_an_aggregate_keeps_what_was_cut_off_on_request(log, tmp_path, capsys):
    assert jaxsim(capsys, "aggregate", log, "-o", tmp_path / "all", "--cut-off", "keep")[0] == 0
    lines = table(tmp_path / "all.tsv")
    assert len(lines) == 30
    assert sum(line["exp_status"] == "incomplete" for line in lines) == 3


def test_what_was_not_measured_is_an_empty_cell(tmp_path, capsys):
    log_rows = rows(4)
    path = write_log(tmp_path, "demo", log_rows, ["reward", "length"], SCENARIO)
    jaxsim(capsys, "aggregate", path, "-o", tmp_path / "data")
    assert [line["reward"] for line in table(tmp_path / "data.tsv")] == ["0.0", "-0.0", "", "3.0"]


@pytest.mark.parametrize("kind", ["tsv", "csv", "feather", "parquet"])
def test_an_aggregate_of_2019_has_rows_and_parameters(old_log, kind, tmp_path, capsys):
    base = tmp_path / "deep" / "data.v1"
    code, out, _ = jaxsim(capsys, "aggregate", old_log, "-f", kind, "-o", base)
    assert (code, out) == (0, f"{base}.{kind}\n")
    path = base.with_name(f"data.v1.{kind}")
    if kind in ("tsv", "csv"):
        lines = table(path, {"tsv": "\t", "csv": ","}[kind])
    else:
        read = {"feather": pyarrow.feather.read_table, "parquet": pyarrow.parquet.read_table}
        lines = read[kind](path).to_pylist()
    log_rows = learnkit_rows()
    assert len(lines) == len(log_rows)
    assert [float(line["reward"]) for line in lines] == [row.measures["reward"] for row in log_rows]
    assert [int(line["steps"]) for line in lines] == [row.steps for row in log_rows]
    assert [line["agent_pos"] for line in lines] == [row.extras["agent_pos"] for row in log_rows]
    assert json.loads(lines[5]["params"]) == log_rows[5].params


def test_an_aggregate_of_2019_drops_what_was_cut_off_on_request(old_log, tmp_path, capsys):
    jaxsim(capsys, "aggregate", old_log, "-o", tmp_path / "data", "--cut-off", "drop")
    lines = table(tmp_path / "data.tsv")
    assert len(lines) == 11
    assert {line["termination_status"] for line in lines} == {"DONE"}


@pytest.mark.parametrize("old", [True, False])
def test_columns_of_text_stay_text_without_rows(old, tmp_path, capsys):
    if old:
        log_rows = [dataclasses.replace(r, termination_status="NOT_DONE") for r in learnkit_rows()]
        path = learnkit.write_log(tmp_path, "old", log_rows, START)
    else:
        more = {"exp_status": "incomplete", "extras": {"agent_pos": "left"}}
        log_rows = [dataclasses.replace(r, **more) for r in rows(4)]
        path = write_log(tmp_path, "demo", log_rows, ["reward", "length"], SCENARIO)
    base = tmp_path / "data"
    options = ("-f", "parquet", "-o", base, "--cut-off", "drop")
    assert jaxsim(capsys, "aggregate", path, *options)[0] == 0
    content = pyarrow.parquet.read_table(tmp_path / "data.parquet")
    assert content.num_rows == 0
    assert content.schema.field("agent_pos").type == pyarrow.string()
    assert content.schema.field("reward").type == pyarrow.float64()


def test_an_aggregate_of_2019_without_a_whole_episode_has_a_header(tmp_path, capsys):
    log_rows = [dataclasses.replace(r, termination_status="NOT_DONE") for r in learnkit_rows()]
    path = learnkit.write_log(tmp_path, "old", log_rows, START)
    code, _, err = jaxsim(capsys, "aggregate", path, "-o", tmp_path / "data", "--cut-off", "drop")
    assert (code, err) == (0, "")
    (header,) = (tmp_path / "data.tsv").read_text().splitlines()
    assert {"block", "reward", "agent_pos"} <= set(header.split("\t"))


def test_tables_of_2019_may_have_measures_of_their_tasks(tmp_path, capsys):
    log_rows = learnkit_rows()
    path = learnkit.write_log(tmp_path, "old", log_rows, START)
    (file, *_) = sorted(path.rglob("data-log.tsv"))
    header, rest = file.read_text().split("\n", 1)
    file.write_text(header.replace("reward", "score") + "\n" + rest)
    number = len(rest.splitlines())
    assert jaxsim(capsys, "aggregate", path, "-o", tmp_path / "data")[0] == 0
    lines = table(tmp_path / "data.tsv")
    assert [line["score"] != "" for line in lines].count(True) == number < len(lines)
    assert all((line["score"] == "") != (line["reward"] == "") for line in lines)


@pytest.mark.parametrize("text", ["1_0", "\u0661\u0662", "1_1"])
def test_text_that_only_python_takes_for_a_number_is_text(text, old_log, tmp_path, capsys):
    (file, *_) = sorted(old_log.rglob("data-log.tsv"))
    header, *lines = file.read_text().splitlines()
    place = header.split("\t").index("agent_pos")
    cells = [line.split("\t") for line in lines]
    changed = ["\t".join([*c[:place], text, *c[place + 1 :]]) for c in cells]
    file.write_text("\n".join([header, *changed]) + "\n")
    assert jaxsim(capsys, "aggregate", old_log, "-o", tmp_path / "data")[0] == 0
    assert text in {line["agent_pos"] for line in table(tmp_path / "data.tsv")}
    reward = header.split("\t").index("reward")
    wrong = ["\t".join([*c[:reward], text, *c[reward + 1 :]]) for c in cells]
    file.write_text("\n".join([header, *wrong]) + "\n")
    code, _, err = jaxsim(capsys, "aggregate", old_log, "-o", tmp_path / "wrong")
    assert code == 1 and "reward must be a number" in err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("-f", "xlsx"), 2, "format is 'xlsx'; it must be one of tsv, csv, feather, parquet"),
        (("--cut-off", "maybe"), 2, "cut-off is 'maybe'; it must be keep or drop"),
    ],
)
def test_bad_requests(log, tmp_path, capsys, monkeypatch, arguments, code, words):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    assert jaxsim(capsys, "aggregate", log, *arguments) == (code, "", f"jaxsim: {words}\n")
    assert sorted(tmp_path.iterdir()) == before


def test_a_bad_log_is_not_aggregated(log, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (log / "scenario_info.json").unlink()
    code, out, err = jaxsim(capsys, "aggregate", log)
    assert (code, out) == (1, "")
    assert "scenario_info.json: error: is missing" in err
    assert not (tmp_path / "data.tsv").exists()
