"""Logs of format 1.1: byte equality with real ones, validation, and whole-or-nothing writing."""

import dataclasses
import io
import json
import os
import time
from datetime import datetime

import numpy as np
import pytest

from evaluation.logs import (
    L2LoggerRow,
    LogError,
    check_log,
    find_regimes,
    read_log,
    tables,
    validate_log,
    write_log,
)
from evaluation.logs.l2logger import writer
from evaluation.logs.problems import Problems
from evaluation.logs.tables import read_lines
from evaluation.logs.texts import field_text, write_line
from tests.conftest import SHARED

REAL = SHARED / "l2m" / "logs"
needs_real_logs = pytest.mark.skipif(not REAL.is_dir(), reason=f"no recorded logs at {REAL}")
START = datetime(2024, 2, 29, 12, 30, 0, 250)
SCENARIO = {"complexity": "1-low", "difficulty": "2-medium", "scenario_type": "custom"}


def row(number=0, **changes):
    fields = {
        "block_num": number // 3,
        "exp_num": number,
        "block_type": "test" if (number // 3) % 2 else "train",
        "block_subtype": "wake",
        "task_name": "CartPole3D_long",
        "task_params": {"pole/length": 1.5, "note": 'two "words"'},
        "exp_status": "complete",
        "timestamp": datetime(2024, 2, 29, 12, 31, number),
        "metrics": {"reward": number / 7},
        "extras": {"steps": 10 + number, "seed": "a"},
    }
    return L2LoggerRow(**(fields | changes))


def rows(count=7, **changes):
    return [row(number, **changes) for number in range(count)]


def write(base, episodes=None, **changes):
    arguments = {
        "scenario_name": "demo",
        "rows": rows() if episodes is None else episodes,
        "metrics_columns": ["reward"],
        "scenario_info": SCENARIO,
        "start": START,
    }
    return write_log(base, **(arguments | changes))


def contents(directory):
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


# ------------------------------------------------------------------ real logs


@needs_real_logs
@pytest.mark.parametrize("name", ["s01_two_tasks/ll", "s05_tiny_blocks/ll", "s14_single_block/ll"])
def test_rewriting_a_real_log_gives_its_bytes(name, tmp_path):
    log = read_log(REAL / name)
    copy = write_log(tmp_path, "copy", log.rows, log.metrics_columns, log.scenario_info)
    assert contents(copy) == contents(REAL / name)


@needs_real_logs
def test_a_real_log_is_valid_and_has_its_regimes():
    path = REAL / "s01_two_tasks" / "ll"
    assert validate_log(path) == []
    log = read_log(path)
    assert log.format_version == "1.1"
    assert log.metrics_columns == ("reward",)
    assert [
        (r.block_num, r.block_type, r.task_name, r.start, r.length) for r in log.regimes[:3]
    ] == [
        (0, "test", "taska_v1", 0, 10),
        (0, "test", "taskb_v1", 10, 10),
        (1, "train", "taska_v1", 20, 60),
    ]
    assert sum(regime.length for regime in log.regimes) == len(log.rows) == 340


@needs_real_logs
def test_a_log_of_format_1_0_reads_as_wake():
    log = read_log(REAL / "s00_shipped_example" / "multi_task")
    assert log.format_version == "1.0"
    assert {episode.block_subtype for episode in log.rows} == {"wake"}
    assert log.rows[0].task_params["starting_perf"] is None
    assert len(log.rows) == 1920


@needs_real_logs
@pytest.mark.parametrize(
    ("name", "place", "words"),
    [
        ("bad_block_type", "w0/0-train/data-log.tsv:2: error", "not 'learn'"),
        ("bad_task_params", "w0/0-train/data-log.tsv:2: error", "must be JSON"),
        ("decreasing_block_num", "w0/0-train/data-log.tsv:4: error", "falls from 9 to 0"),
        ("no_datalog", "no_datalog: error", "holds no data-log.tsv"),
        ("noname", "w0/0-train/data-log.tsv:2: warning", "not of the form label_variant"),
        ("inf_reward", "w0/0-train/data-log.tsv:3: warning", "reward is inf"),
        ("all_nan", "w0/0-train/data-log.tsv:2: warning", "reward is nan"),
        ("missing", "missing: error", "no such directory"),
    ],
)
def test_a_broken_real_log_says_where(name, place, words):
    path = REAL / "err" / name
    problem = validate_log(path)[0]
    assert place in problem
    assert words in problem
    if "error" in place:
        with pytest.raises(LogError, match=words):
            read_log(path)
    else:
        assert str(read_log(path).warnings[0]) == problem


# ------------------------------------------------------------------ writing


def test_the_bytes_of_a_small_log(tmp_path):
    path = write(tmp_path, rows(4), worker_id="w-1.a")
    assert path == tmp_path / f"demo-{str(START.timestamp()).replace('.', '-')}"
    files = contents(path)
    assert sorted(files) == [
        "logger_info.json",
        "scenario_info.json",
        "w-1.a/0-train/data-log.tsv",
        "w-1.a/1-test/data-log.tsv",
    ]
    assert files["logger_info.json"] == (
        b'{\n  "metrics_columns": [\n    "reward"\n  ],\n  "log_format_version": "1.1"\n}'
    )
    assert json.loads(files["scenario_info.json"]) == SCENARIO
    lines = files["w-1.a/1-test/data-log.tsv"].decode().split("\n")
    assert lines == [
        "block_num\texp_num\tworker_id\tblock_type\tblock_subtype\ttask_name\ttask_params"
        "\texp_status\ttimestamp\treward\tseed\tsteps",
        '1\t3\tw-1.a\ttest\twake\tCartPole3D_long\t"{""pole/length"": 1.5, ""note"": '
        '""two \\""words\\""""}"\tcomplete\t20240229T123103.000000\t0.42857142857142855\ta\t13',
        "",
    ]


def test_what_is_written_is_read_back(tmp_path):
    episodes = rows(9)
    log = read_log(write(tmp_path, episodes))
    text = [{"steps": str(e.extras["steps"]), "seed": "a"} for e in episodes]
    expected = [
        dataclasses.replace(e, worker_id="worker-default", extras=x)
        for e, x in zip(episodes, text, strict=True)
    ]
    assert list(log.rows) == expected
    assert log.warnings == ()
    assert log.scenario_info == SCENARIO
    assert [r.length for r in log.regimes] == [3, 3, 3]


@pytest.mark.parametrize("note", ["two\rthree", "two\r\nthree", "\r"])
def test_line_breaks_of_every_kind_are_read_back(note, tmp_path):
    episodes = [row(0, extras={"note": note}), row(1, extras={"note": "four"})]
    log = read_log(write(tmp_path, episodes))
    assert [r.extras["note"] for r in log.rows] == [note, "four"]
    stream = io.StringIO()
    write_line(stream, [note, 0.5])
    assert stream.getvalue() == f'"{note}"\t0.5\n'
    assert field_text(note) == f'"{note}"'


def test_numpy_numbers_are_written_as_plain_ones(tmp_path):
    episode = row(
        block_num=np.int32(0),
        exp_num=np.int64(0),
        metrics={"reward": np.float32(0.1)},
        extras={"steps": np.int8(3)},
    )
    read = read_log(write(tmp_path, [episode])).rows[0]
    assert (read.block_num, read.metrics["reward"]) == (0, 0.1)
    assert read.extras == {"steps": "3"}


def test_metrics_and_extras_are_written_in_one_order(tmp_path):
    metrics = {"zeta": 1.0, "alpha": float("nan"), "mid": 3}
    path = write(tmp_path, rows(1, metrics=metrics), metrics_columns=["zeta", "alpha", "mid"])
    table = (path / "worker-default/0-train/data-log.tsv").read_text().splitlines()
    assert table[0].split("\t")[9:] == ["alpha", "mid", "seed", "steps", "zeta"]
    assert table[1].split("\t")[9:] == ["nan", "3", "a", "10", "1.0"]


def test_rows_without_a_timestamp_take_the_start_and_rows_may_name_workers(tmp_path):
    path = write(tmp_path, [row(0, timestamp=None, worker_id="b"), row(1, worker_id="a")])
    log = read_log(path)
    assert {episode.worker_id: episode.timestamp for episode in log.rows} == {
        "b": START,
        "a": datetime(2024, 2, 29, 12, 31, 1),
    }


def test_the_scenario_name_ends_at_its_first_dot_and_leaves_the_base_alone(tmp_path):
    path = write(tmp_path / "new" / "base", scenario_name="../out/plan.v2.json")
    assert path.parent == tmp_path / "new" / "base"
    assert path.name.startswith("plan-1709")


def test_default_start_is_now(tmp_path):
    before = time.time()
    seconds = float(write(tmp_path, start=None).name.removeprefix("demo-").replace("-", "."))
    assert before - 1e-3 <= seconds <= time.time()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"block_num": -1}, "row 2, column 'block_num': must be 0 or more"),
        ({"block_num": True}, "row 2, column 'block_num': must be an integer"),
        ({"exp_num": 0}, "row 2, column 'exp_num': must not fall from 1 to 0"),
        ({"exp_num": 2.0}, "row 2, column 'exp_num': must be an integer"),
        ({"block_type": "learn"}, "row 2, column 'block_type': must be one of train, test"),
        ({"block_subtype": ""}, "row 2, column 'block_subtype': must be one of wake, sleep"),
        ({"exp_status": "done"}, "row 2, column 'exp_status': must be one of complete"),
        ({"task_name": ""}, "row 2, column 'task_name': must be printable"),
        ({"task_name": "a\tb"}, "row 2, column 'task_name': must be printable"),
        ({"task_params": "{}"}, "row 2, column 'task_params': must be a mapping"),
        ({"task_params": {"x": float("nan")}}, "row 2, column 'task_params': must be strict JSON"),
        ({"task_params": {"x": {1}}}, "row 2, column 'task_params': must be strict JSON"),
        ({"timestamp": "now"}, "row 2, column 'timestamp': must be a datetime"),
        ({"metrics": {}}, "row 2, column 'reward': is a metric of this log and missing"),
        ({"metrics": {"reward": 1, "x": 2}}, "row 2, column 'x': is not among metrics_columns"),
        ({"metrics": {"reward": "1"}}, "row 2, column 'reward': must be a number"),
        ({"metrics": {"reward": True}}, "row 2, column 'reward': must be a number"),
        ({"metrics": {"reward": float("inf")}}, "row 2, column 'reward': must be finite"),
        ({"extras": {"steps": 1}}, "row 2, column 'seed': every row must have the extra"),
        ({"extras": {"steps": [1], "seed": 0}}, "row 2, column 'steps': must be text or a number"),
        ({"worker_id": "w/0"}, "row 2, column 'worker_id': must be letters"),
        ({"worker_id": ".."}, "row 2, column 'worker_id': must be letters"),
    ],
)
def test_a_bad_row_is_refused_before_anything_is_written(changes, words, tmp_path):
    episodes = rows()
    episodes[2] = dataclasses.replace(episodes[2], **changes)
    with pytest.raises(ValueError, match=words):
        write(tmp_path / "base", episodes)
    assert not (tmp_path / "base").exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rows": []}, "at least one episode"),
        ({"metrics_columns": []}, "non-empty list"),
        ({"metrics_columns": "reward"}, "non-empty list"),
        ({"metrics_columns": ["reward", "reward"]}, "distinct"),
        ({"metrics_columns": ["reward", ""]}, "printable"),
        ({"metrics_columns": ["exp_num"]}, "standard names exp_num"),
        ({"scenario_name": ".json"}, "before its first dot"),
        ({"scenario_info": {"difficulty": "9-mad"}}, "'difficulty' must be one of 1-easy"),
        ({"scenario_info": {"x": float("inf")}}, "strict JSON"),
        ({"rows": [row(extras={"reward": 1})]}, "row 0, column 'reward': an extra column"),
        ({"rows": [row(extras={"": 1})]}, "row 0, column '': an extra column"),
        ({"worker_id": ""}, "row 0, column 'worker_id'"),
    ],
)
def test_bad_arguments_say_what_to_change(changes, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        write(tmp_path / "base", **changes)
    assert not (tmp_path / "base").exists()


def test_a_log_is_never_overwritten(tmp_path):
    before = contents(write(tmp_path))
    with pytest.raises(FileExistsError, match="another start time"):
        write(tmp_path, rows(1))
    assert contents(next(tmp_path.iterdir())) == before


def test_a_failure_while_writing_leaves_nothing(tmp_path, monkeypatch):
    def full_disk(*_):
        raise OSError("no space left")

    monkeypatch.setattr(writer, "append_piece", full_disk)
    with pytest.raises(OSError, match="no space"):
        write(tmp_path)
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------ reading what others wrote


def damage(path, old, new, file="worker-default/0-train/data-log.tsv"):
    text = (path / file).read_text()
    assert old in text
    (path / file).write_text(text.replace(old, new, 1))
    return path


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("0\t0\tworker", "-1\t0\tworker", 2, "block_num must be an integer from 0, not '-1'"),
        ("0\t1\tworker", "0\t1.5\tworker", 3, "exp_num must be an integer from 0, not '1.5'"),
        ("worker-default", "w/0", 2, "worker_id must be letters"),
        ("wake", "awake", 2, "block_subtype must be one of wake, sleep"),
        ("complete", "done", 2, "exp_status must be one of complete, incomplete"),
        ("20240229T1231", "20240230T1231", 2, "timestamp must look like"),
        ("20240229T1231", "yesterday", 2, "timestamp must look like"),
        ('"{""pole', '"[""pole', 2, "task_params must be JSON"),
        ("0.0\ta\t10", "much\ta\t10", 2, "reward must be a number, not 'much'"),
        ("0.0\ta\t10", "0.0\ta", 2, "has 11 fields under 12 columns"),
        ("reward\t", "score\t", 1, "the column 'reward' is missing"),
        ("seed\tsteps", "seed\tseed", 1, "the column 'seed' is there twice"),
    ],
)
def test_every_error_has_file_and_line(old, new, line, words, tmp_path):
    path = damage(write(tmp_path), old, new)
    errors = [problem for problem in check_log(path) if problem.severity == "error"]
    assert len(errors) == 1
    assert (errors[0].path.parent.name, errors[0].line) == ("0-train", line)
    assert words in errors[0].message
    with pytest.raises(LogError, match=f"data-log.tsv:{line}: error"):
        read_log(path)


def test_all_problems_are_reported_at_once(tmp_path):
    path = damage(write(tmp_path), "wake", "awake")
    damage(path, "complete", "done")
    damage(path, '"1-low"', '"4-mad"', "scenario_info.json")
    damage(
        path,
        "test\twake\tCartPole3D_long",
        "test\twake\tCartPole3D",
        "worker-default/1-test/data-log.tsv",
    )
    problems = validate_log(path)
    assert len(problems) == 4
    assert ["error" in problem for problem in problems] == [False, True, True, False]


def test_a_missing_subtype_column_is_allowed_and_differing_columns_are_not_silent(tmp_path):
    path = write(tmp_path, rows(6))
    table = path / "worker-default/0-train/data-log.tsv"
    table.write_text(table.read_text().replace("\tblock_subtype", "").replace("\twake", ""))
    problems = check_log(path)
    assert [problem.severity for problem in problems] == ["warning"]
    assert "block_subtype" in problems[0].message
    assert {episode.block_subtype for episode in read_log(path).rows} == {"wake"}


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("logger_info.json", "{", "logger_info.json:1: error: not JSON"),
        ("logger_info.json", "[]", "must hold a JSON object"),
        ("logger_info.json", "{}", "metrics_columns must be a non-empty list"),
        ("logger_info.json", '{"metrics_columns": [1]}', "printable strings"),
        ("logger_info.json", "[" * 100_000, "not usable JSON"),
        ("scenario_info.json", None, "scenario_info.json: error: is missing"),
        ("worker-default/0-train/data-log.tsv", "", "data-log.tsv:1: error: is empty"),
    ],
)
def test_broken_files_are_errors(file, text, words, tmp_path):
    path = write(tmp_path)
    (path / file).unlink()
    if text is not None:
        (path / file).write_text(text)
    assert any(words in problem for problem in validate_log(path))
    with pytest.raises(LogError):
        read_log(path)


def test_an_unknown_version_is_a_warning(tmp_path):
    path = damage(write(tmp_path), '"1.1"', '"2.0"', "logger_info.json")
    assert "'2.0' is not known" in validate_log(path)[0]
    assert read_log(path).format_version == "2.0"


def test_bytes_that_are_not_utf8_and_unfinished_quotes_are_errors(tmp_path):
    path = write(tmp_path)
    table = path / "worker-default/0-train/data-log.tsv"
    whole = table.read_bytes()
    table.write_bytes(whole + b"\xff")
    assert "is not UTF-8" in validate_log(path)[0]
    table.write_bytes(whole + b'0\t"unfinished')
    assert "not a table of tab-separated values" in validate_log(path)[0]


def test_files_beyond_the_caps_are_not_read(tmp_path, monkeypatch):
    path = write(tmp_path)
    monkeypatch.setattr(tables, "MAX_LOG_BYTES", 700)
    assert any("700 bytes that are read" in problem for problem in validate_log(path))
    monkeypatch.setattr(tables, "MAX_FILE_BYTES", 200)
    assert any("at most 200 are read" in problem for problem in validate_log(path))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_a_pipe_is_not_waited_for(tmp_path):
    path = write(tmp_path)
    table = path / "worker-default/0-train/data-log.tsv"
    table.unlink()
    os.mkfifo(table)
    assert "not a regular file" in validate_log(path)[0]


# ------------------------------------------------------------------ regimes


def test_regimes_are_maximal_runs():
    episodes = [
        row(0, task_name="A_1"),
        row(1, task_name="a_1", task_params={}),
        row(2, task_name="b_1"),
        row(3, block_num=1, block_type="train", task_name="b_1"),
        row(4, block_num=1, block_type="train", task_name="b_1", block_subtype="sleep"),
        row(5, block_num=1, block_type="train", task_name="b_1"),
    ]
    regimes = find_regimes(episodes)
    assert [(r.regime_num, r.task_name, r.start, r.length) for r in regimes] == [
        (0, "a_1", 0, 2),
        (1, "b_1", 2, 1),
        (2, "b_1", 3, 1),
        (3, "b_1", 4, 1),
        (4, "b_1", 5, 1),
    ]
    assert find_regimes([]) == ()


def test_rows_of_two_workers_are_sorted_by_episode(tmp_path):
    episodes = [row(number, worker_id="ba"[number % 2]) for number in range(6)]
    log = read_log(write(tmp_path, episodes))
    assert [episode.exp_num for episode in log.rows] == [0, 1, 2, 3, 4, 5]
    assert [regime.length for regime in log.regimes] == [3, 3]


def test_lines_are_counted_where_a_cell_has_several(tmp_path):
    path, problems = tmp_path / "table.tsv", Problems()
    path.write_text('a\tb\n1\t"two\n\nlines"\n3\t4\n5\n6\t7\n')
    assert list(read_lines(path, problems)) == [
        (1, ["a", "b"]),
        (2, ["1", "two\n\nlines"]),
        (5, ["3", "4"]),
        (7, ["6", "7"]),
    ]
    (problem,) = problems.problems
    assert (problem.line, problem.message) == (6, "has 1 fields under 2 columns")
