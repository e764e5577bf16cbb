import csv
import json
from datetime import datetime, timedelta

import numpy as np
import pytest

from evaluation import scanner
from evaluation.logs import export, read_log, validate_log
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
        options = scanner.Options(devices=1)
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
        np.testing.assert_array_equal(written, records.columns[name][1], err_msg=name)
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
