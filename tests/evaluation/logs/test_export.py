import csv
import dataclasses
import json
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from evaluation import cli, scanner
from evaluation.l2m import l2metrics
from evaluation.l2m.l2metrics.result import run_json
from evaluation.l2m.l2metrics.settings import COMPAT
from evaluation.logs import export, learnkit, read_log, validate_log, write_log
from evaluation.logs.texts import number_texts, plain_scalar
from evaluation.records import MEASURES
from tests.evaluation import toy
from tests.evaluation.toy import repeat

START = datetime(2024, 2, 28, 23, 59, 59, 900_000)


@pytest.fixture(scope="module")
def records():
    """Three lifetimes with a block that is cut off, and one task in several variants."""
    with toy.registered():
        schedule = toy.schedule(
            ("1.train", [repeat(4, wheel=5), repeat(2, wheel=5, spoil=2)]),
            ("1.test", [repeat(3), repeat(2, wheel=5)]),
            ("2.train", [repeat(1)]),
            name="a name/with: odd letters.v1",
            author="A. Author",
        )
        options = scanner.MachineOptions(threads=1)
        return scanner.play(schedule, toy.busy, lifetimes=3, seed=7, options=options)


@pytest.fixture(scope="module")
def directory(records, tmp_path_factory):
    return export.write_l2logger(records, 1, tmp_path_factory.mktemp("logs"), START)


def test_the_log_is_valid_without_a_word(directory):
    assert validate_log(directory) == []


def test_rows_are_the_records(records, directory):
    rows = read_log(directory).rows
    assert len(rows) == records.schedule.num_episodes
    assert [row.exp_num for row in rows] == list(range(12))
    assert [row.block_num for row in rows] == [0, 0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 4]
    assert [row.block_type for row in rows] == 6 * ["train"] + 5 * ["test"] + ["train"]
    assert {row.block_subtype for row in rows} == {"wake"}
    complete = 4 * ["complete"] + 2 * ["incomplete"] + 6 * ["complete"]
    assert [row.exp_status for row in rows] == complete
    for name in MEASURES:
        written = np.array([row.metrics[name] for row in rows])
        column = records.columns[name][1]
        np.testing.assert_array_equal(written.astype(column.dtype), column, err_msg=name)
    blocks = [records.schedule.blocks[row.block_num] for row in rows]
    assert [dict(row.task_params) for row in rows] == [dict(b.parameters) for b in blocks]


def test_each_lifetime_is_its_own(records, directory, tmp_path):
    other = read_log(export.write_l2logger(records, 2, tmp_path, START)).rows
    mine = read_log(directory).rows
    assert [r.metrics["reward"] for r in mine] != [r.metrics["reward"] for r in other]


def test_task_labels(records, directory):
    assert export.task_labels(records.schedule) == ["Toy_v0", "Toy_v1", "Toy_default"]
    # Readers join neighbours of one name, so a variant needs a name of its own.
    regimes = read_log(directory).regimes
    assert [regime.task_name for regime in regimes] == [
        "toy_v0",
        "toy_v1",
        "toy_default",
        "toy_v0",
        "toy_default",
    ]
    assert [regime.length for regime in regimes] == [4, 2, 3, 2, 1]


def test_files_and_directories(directory):
    assert directory.name == f"a_name_with_odd_letters_v1-{START.timestamp()}".replace(".", "-")
    files = {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}
    assert files == {
        "logger_info.json",
        "scenario_info.json",
        "worker-default/0-train/data-log.tsv",
        "worker-default/1-train/data-log.tsv",
        "worker-default/2-test/data-log.tsv",
        "worker-default/3-test/data-log.tsv",
        "worker-default/4-train/data-log.tsv",
    }
    logger = json.loads((directory / "logger_info.json").read_text())
    assert logger == {"metrics_columns": list(MEASURES), "log_format_version": "1.1"}
    scenario = json.loads((directory / "scenario_info.json").read_text())
    assert scenario["author"] == "A. Author"
    assert scenario["syllabus"] == "a name/with: odd letters.v1"
    assert (scenario["agent"], scenario["seed"], scenario["lifetime"]) == ("busy", 7, 1)
    assert scenario["scenario_type"] == "custom"


def test_the_table_as_any_reader_sees_it(directory):
    with (directory / "worker-default" / "1-train" / "data-log.tsv").open(newline="") as stream:
        first, second = csv.DictReader(stream, delimiter="\t")
    assert list(first) == [
        "block_num",
        "exp_num",
        "worker_id",
        "block_type",
        "block_subtype",
        "task_name",
        "task_params",
        "exp_status",
        "timestamp",
        *sorted(MEASURES),
    ]
    assert json.loads(first["task_params"]) == {"spoil": 2, "wheel": 5}
    assert (first["length"], second["exp_num"]) == ("2", "5")


def test_timestamps_follow_in_simulated_time(records, directory):
    times = [row.timestamp for row in read_log(directory).rows]
    elapsed = np.cumsum(records.columns["seconds"][1], dtype=float)
    assert times == sorted(set(times))
    for time, seconds in zip(times, elapsed, strict=True):
        assert abs(time - START - timedelta(seconds=seconds)) < timedelta(milliseconds=1)


def test_without_a_start_it_is_now(records, tmp_path):
    before = datetime.now()
    rows = read_log(export.write_l2logger(records, 0, tmp_path)).rows
    assert timedelta(0) <= rows[0].timestamp - before < timedelta(minutes=1)


@pytest.mark.parametrize("lifetime", [-1, 3, 10**9])
def test_lifetime_that_is_not_there(records, tmp_path, lifetime):
    with pytest.raises(ValueError, match=f"lifetime is {lifetime}; it must be from 0 to 2"):
        export.write_l2logger(records, lifetime, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_log_is_not_written_over_another(records, directory):
    with pytest.raises(FileExistsError):
        export.write_l2logger(records, 1, directory.parent, START)
    assert validate_log(directory) == []


# Many lifetimes, and runs of 2019 -----------------------------------------------------------------


def test_lifetimes_have_logs_of_their_own(records, tmp_path):
    paths = export.write_lifetimes(records, tmp_path, start=START)
    assert [read_log(path).scenario_info["lifetime"] for path in paths] == [0, 1, 2]
    assert len(set(paths)) == 3
    for lifetime, path in enumerate(paths):
        rewards = [row.metrics["reward"] for row in read_log(path).rows]
        np.testing.assert_array_equal(rewards, records.columns["reward"][lifetime])


@pytest.mark.parametrize("name", ["l2logger", "learnkit"])
def test_the_same_records_give_the_same_bytes(records, tmp_path, name):
    first, second = (
        export.write_lifetimes(records, tmp_path / folder, name, [2, 0], START) for folder in "ab"
    )
    for left, right in zip(first, second, strict=True):
        files = sorted(path.relative_to(left) for path in left.rglob("*.*"))
        assert files == sorted(path.relative_to(right) for path in right.rglob("*.*"))
        tables = [file for file in files if (left / file).is_file()]
        assert all((left / f).read_bytes() == (right / f).read_bytes() for f in tables)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"lifetimes": [0, 3]}, "lifetime is 3; it must be from 0 to 2"),
        ({"log_format": "csv"}, "log format is 'csv'; it must be l2logger or learnkit"),
    ],
)
def test_nothing_is_written_on_bad_requests(records, tmp_path, arguments, words):
    with pytest.raises(ValueError, match=words):
        export.write_lifetimes(records, tmp_path / "logs", **arguments)
    assert not (tmp_path / "logs").exists()


def test_a_run_of_2019_is_the_records(records, tmp_path):
    path = export.write_learnkit(records, 1, tmp_path, START)
    assert path.name == f"a_name_with_odd_letters_v1-{round(START.timestamp() * 1000)}"
    log = learnkit.read_log(path)
    assert log.warnings == ()
    assert [(b.phase, b.class_name) for b in log.blocks] == [
        ("1.train", "Toy"),
        ("1.train", "Toy"),
        ("1.test", "Toy"),
        ("1.test", "Toy"),
        ("2.train", "Toy"),
    ]
    assert [b.params for b in log.blocks] == [
        dict(block.parameters) for block in records.schedule.blocks
    ]
    status = 4 * ["DONE"] + 2 * ["NOT_DONE"] + 6 * ["DONE"]
    assert [row.termination_status for row in log.rows] == status
    assert {row.seed for row in log.rows} == {7}
    assert [row.steps for row in log.rows] == records.columns["length"][1].tolist()
    episodes = learnkit.episodes(log)
    np.testing.assert_array_equal(episodes.value, records.columns["reward"][1])
    np.testing.assert_array_equal(episodes.block, records.schedule.episode_blocks())
    scores = [float(row.extras["performance"]) for row in log.rows]
    np.testing.assert_array_equal(scores, records.columns["performance"][1])


def run_directory(records, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    records.write(run / "records.parquet")
    return run


def test_lifetimes_of_a_finished_run_are_exported(records, tmp_path, capsys):
    run = run_directory(records, tmp_path)
    last = records.first_lifetime + records.num_lifetimes - 1
    assert cli.main(["l2m", "export", str(run), "--lifetimes", f"{last - 1}-{last}"]) == 0
    paths = [Path(line) for line in capsys.readouterr().out.splitlines()]
    assert [path.parent for path in paths] == [run / "logs"] * 2
    for path, lifetime in zip(paths, (last - 1, last), strict=True):
        assert json.loads((path / "scenario_info.json").read_text())["lifetime"] == lifetime
        assert cli.main(["l2m", "validate", str(path)]) == 0
    out = tmp_path / "all"
    words = ["--lifetimes", "all", "--format", "learnkit", "--out", str(out)]
    assert cli.main(["l2m", "export", str(run / "records.parquet"), *words]) == 0
    assert len(list(out.iterdir())) == records.num_lifetimes


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--lifetimes", "first"], "lifetimes is 'first'; it must be as 5, 0-63, 3,8-11 or all"),
        (["--lifetimes", "5-3"], "a range goes upwards"),
        (["--lifetimes", "0-999999999"], "over at most the run's"),
        (["--lifetimes", "999"], "lifetime is 999; it must be from"),
        (["--format", "csv"], "log format is 'csv'; it must be l2logger or learnkit"),
    ],
)
def test_nothing_is_exported_on_a_bad_request(records, tmp_path, capsys, options, words):
    run = run_directory(records, tmp_path)
    assert cli.main(["l2m", "export", str(run), *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line
    assert [path.name for path in run.iterdir()] == ["records.parquet"]


def test_only_runs_are_exported(tmp_path, capsys):
    assert cli.main(["l2m", "export", str(tmp_path)]) == 2
    assert "there is no" in capsys.readouterr().err


def test_numbers_are_the_shortest_text_that_reads_back():
    values = np.array([0.075, 1 / 3, 2.0, np.nan, np.inf, 3e9, 1e-30, -0.0], np.float32)
    texts = number_texts(values).to_pylist()
    assert texts[:3] == ["0.075", "0.33333334", "2.0"]
    np.testing.assert_array_equal(np.array([float(text) for text in texts], np.float32), values)
    assert number_texts(np.array([0.1, 1 / 3])).to_pylist() == ["0.1", repr(1 / 3)]
    assert [plain_scalar(value) for value in values[:3]] == [0.075, 0.33333334, 2.0]


def test_several_workers_are_read_as_one_would_have_written_it(records, directory, tmp_path):
    """Three workers take turns with the episodes of one lifetime."""
    log = read_log(directory)
    rows = [dataclasses.replace(row, worker_id=f"w-{row.exp_num % 3}") for row in log.rows]
    many = write_log(tmp_path, "many", rows, log.metrics_columns, log.scenario_info)
    one, other = ([*read_log(path).rows] for path in (directory, many))
    assert {row.worker_id for row in other} == {"w-0", "w-1", "w-2"}
    assert [dataclasses.replace(row, worker_id="worker-default") for row in other] == one
    settings = l2metrics.LogSettings("performance", compat=COMPAT)
    numbers = [
        run_json(analysis) for analysis in l2metrics.run([directory, many], settings).analyses
    ]
    assert [values.pop("run_id") for values in numbers] == [directory.name, many.name]
    assert json.dumps(numbers[0]) == json.dumps(numbers[1])

    old = learnkit.read_log(export.write_learnkit(records, 1, tmp_path / "old", START))
    shared = [dataclasses.replace(row, worker=f"env-{row.task % 3}") for row in old.rows]
    several = learnkit.read_log(learnkit.write_log(tmp_path / "new", "many", shared, START))
    assert several.blocks == old.blocks
    for name, column in vars(learnkit.episodes(old)).items():
        np.testing.assert_array_equal(getattr(learnkit.episodes(several), name), column)
