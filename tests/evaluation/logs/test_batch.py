"""Columns and records that arrive one at a time give the bytes that the row writer gives."""

import dataclasses
import threading
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from evaluation.logs import (
    DataLogger,
    L2LoggerRow,
    RecordError,
    read_log,
    validate_log,
    write_columns,
    write_log,
)
from evaluation.logs.coded import coded
from evaluation.logs.texts import field_text, number_texts, timestamp_texts

START = datetime(2024, 2, 29, 12, 30, 0, 250)
SCENARIO = {"complexity": "1-low", "difficulty": "2-medium", "scenario_type": "custom"}
PARAMS = [{}, {"pole/length": 1.5, "note": 'two "words"\té'}]


def rows(count=60):
    """Episodes of three workers that take turns, with numbers of all sizes."""
    generator = np.random.default_rng(0)
    reward = generator.normal(size=count) * 10.0 ** generator.integers(-8, 20, count)
    reward[:4] = 0.0, -0.0, float("nan"), 3.0
    return [
        L2LoggerRow(
            block_num=number // 10,
            exp_num=number,
            block_type="test" if number // 10 % 2 else "train",
            block_subtype="sleep" if number % 7 == 0 else "wake",
            task_name=f"Pole_{number // 5 % 2}",
            task_params=PARAMS[number // 5 % 2],
            exp_status="incomplete" if number % 11 == 5 else "complete",
            timestamp=START + timedelta(seconds=number * 1234.56789),
            metrics={"reward": float(reward[number]), "length": number},
            extras={"cells": f'[{number} "4"]', "pace": np.float32(number / 7)},
            worker_id=f"w.{number % 3}",
        )
        for number in range(count)
    ]


def columns(log_rows):
    """The same episodes as arrays."""
    numbers = ("block_num", "exp_num")
    words = ("block_type", "block_subtype", "task_name", "exp_status", "worker_id")
    return {
        **{name: np.array([getattr(row, name) for row in log_rows]) for name in numbers},
        **{name: [getattr(row, name) for row in log_rows] for name in words},
        "task_params": [row.task_params for row in log_rows],
        "timestamp": np.array([row.timestamp for row in log_rows], "datetime64[us]"),
        "reward": np.array([row.metrics["reward"] for row in log_rows]),
        "length": np.array([row.metrics["length"] for row in log_rows], np.int16),
        "cells": coded([row.extras["cells"] for row in log_rows]),
        "pace": np.array([row.extras["pace"] for row in log_rows], np.float32),
    }


def write(base, **changes):
    return write_columns(
        base, "demo", columns(rows()) | changes, ["reward", "length"], SCENARIO, start=START
    )


def contents(directory):
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


# Columns ------------------------------------------------------------------------------------------


def test_columns_give_the_bytes_of_the_row_writer(tmp_path):
    expected = write_log(
        tmp_path / "rows", "demo", rows(), ["reward", "length"], SCENARIO, start=START
    )
    path = write(tmp_path / "columns")
    assert path.name == expected.name
    assert len(contents(path)) == 2 + 18
    assert contents(path) == contents(expected)


def test_one_value_stands_for_all_rows_and_defaults_are_l2loggers(tmp_path):
    table = {
        "block_num": 0,
        "exp_num": np.arange(3),
        "block_type": "train",
        "task_name": "a_1",
        "task_params": {"x": 1},
        "reward": 2,
    }
    path = write_columns(tmp_path, "demo", table, ["reward"], SCENARIO, start=START)
    assert [
        (r.worker_id, r.block_subtype, r.exp_status, r.timestamp, dict(r.task_params), r.metrics)
        for r in read_log(path).rows
    ] == 3 * [("worker-default", "wake", "complete", START, {"x": 1}, {"reward": 2})]


def test_moments_with_a_time_zone_are_written_as_they_are(tmp_path):
    times = [row.timestamp.replace(tzinfo=UTC) for row in rows()]
    assert contents(write(tmp_path / "a", timestamp=times)) == contents(write(tmp_path / "b"))


def at(row, name, value):
    changed = columns(rows())[name]
    changed = list(changed) if isinstance(changed, list) else np.array(changed)
    changed[row] = value
    return {name: changed}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (at(20, "block_num", 9), "row 21, column 'block_num': must not fall from 9 to 2"),
        (at(0, "block_num", -1), "row 0, column 'block_num': must be 0 or more, not -1"),
        (at(7, "exp_num", 3), "row 7, column 'exp_num': must not fall from 6 to 3"),
        ({"exp_num": np.arange(60.0)}, "column 'exp_num' must hold integers, not float64"),
        ({"exp_num": np.arange(59)}, "equal lengths, not .*exp_num 59"),
        (at(9, "block_type", "learn"), "row 9, column 'block_type': must be one of train, test"),
        (at(9, "block_subtype", ""), "row 9, column 'block_subtype': must be one of wake, sleep"),
        (at(9, "exp_status", "done"), "row 9, column 'exp_status': must be one of complete"),
        (at(9, "worker_id", "a/b"), "row 9, column 'worker_id': must be letters"),
        (at(9, "worker_id", ".."), "row 9, column 'worker_id': must be letters"),
        (at(9, "task_name", "a\tb"), "row 9, column 'task_name': must be printable"),
        (at(9, "task_params", "{}"), "row 9, column 'task_params': must be a mapping"),
        (at(9, "task_params", {"x": {1}}), "row 9, column 'task_params': must be strict JSON"),
        (at(9, "timestamp", np.datetime64("NaT")), "row 9, column 'timestamp': is not a time"),
        ({"timestamp": "now"}, "column 'timestamp' must hold moments"),
        (at(9, "reward", np.inf), "row 9, column 'reward': must be finite"),
        ({"reward": ["1"] * 60}, "column 'reward' must hold numbers"),
        ({"reward": np.ones(60, bool)}, "column 'reward' must hold numbers, not bool"),
        ({"cells": [[1]] * 60}, "column 'cells' must hold text or numbers: unhashable"),
        ({"cells": [(1,)] + 59 * [""]}, "row 0, column 'cells': must be text or a number"),
        ({"": 1}, "row 0, column '': an extra column needs a printable name"),
    ],
)
def test_bad_columns_are_refused_before_anything_is_written(changes, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        write(tmp_path / "base", **changes)
    assert not (tmp_path / "base").exists()


@pytest.mark.parametrize("name", ["exp_num", "task_params", "reward"])
def test_a_missing_column_is_named(name, tmp_path):
    table = columns(rows())
    del table[name]
    with pytest.raises(ValueError, match=f"columns have no '{name}'"):
        write_columns(tmp_path, "demo", table, ["reward", "length"], SCENARIO)


def test_empty_columns_and_columns_without_an_array(tmp_path):
    empty = {name: column[:0] for name, column in columns(rows()).items() if name != "cells"}
    with pytest.raises(ValueError, match="at least one episode"):
        write_columns(tmp_path, "demo", empty, ["reward", "length"], SCENARIO)
    alone = dict.fromkeys(("block_num", "exp_num", "block_type", "task_name", "task_params"), 0)
    with pytest.raises(ValueError, match="have no array"):
        write_columns(tmp_path, "demo", {**alone, "reward": 0}, ["reward"], SCENARIO)
    assert list(tmp_path.iterdir()) == []


def test_numbers_are_written_as_python_writes_them():
    generator = np.random.default_rng(1)
    powers = 10.0 ** np.arange(-30, 30)
    values = np.concatenate(
        [
            generator.normal(size=2000) * 10.0 ** generator.integers(-12, 25, 2000),
            np.float32(generator.random(2000)).astype(float),
            generator.integers(-300, 300, 200).astype(float),
            *(powers, -powers, np.nextafter(powers, 0), np.nextafter(powers, np.inf)),
            [0.0, -0.0, np.nan, np.inf, 5e-324, 1.7976931348623157e308],
        ]
    )
    assert number_texts(values).to_pylist() == [repr(value) for value in values.tolist()]
    assert number_texts(np.array([-3, 2**62])).to_pylist() == ["-3", str(2**62)]


def test_times_are_written_as_python_writes_them():
    times = [
        datetime(1, 1, 1),
        datetime(999, 12, 31, 23, 59, 59, 999_999),
        datetime(1969, 12, 31, 1, 2, 3, 4),
        datetime(2024, 2, 29, 12, 0, 0, 70),
    ]
    assert timestamp_texts(np.array(times, "datetime64[us]")).to_pylist() == [
        "00010101T000000.000000",
        "09991231T235959.999999",
        "19691231T010203.000004",
        "20240229T120000.000070",
    ]


@pytest.mark.parametrize(
    ("text", "field"),
    [("a b", "a b"), ("", ""), ('a"b', '"a""b"'), ("a\tb", '"a\tb"'), ("a\nb", '"a\nb"')],
)
def test_fields_are_quoted_where_they_have_to_be(text, field):
    assert field_text(text) == field


# Records one at a time ----------------------------------------------------------------------------

INFO = {"metrics_columns": ["reward", "length"]}
RECORD = {
    "block_num": 0,
    "exp_num": 0,
    "block_type": "train",
    "task_name": "Pole_1",
    "task_params": {"x": None},
    "reward": 1.5,
    "length": 3,
}


def logger(base, **changes):
    arguments = {"scenario_name": "demo", "logger_info": INFO, "scenario_info": SCENARIO}
    return DataLogger(str(base), **(arguments | changes))


def untimed(directory):
    """Files without the moments in them."""
    return {
        name: [line.split(b"\t")[:8] + line.split(b"\t")[9:] for line in content.splitlines()]
        for name, content in contents(directory).items()
    }


def test_records_give_the_files_of_the_row_writer(tmp_path):
    log_rows = [dataclasses.replace(row, worker_id="worker-default") for row in rows()]
    expected = write_log(tmp_path / "a", "demo", log_rows, ["reward", "length"], SCENARIO)
    with logger(tmp_path / "b") as ours:
        for row in log_rows:
            names = (*RECORD, "block_subtype", "exp_status")
            fields = {name: getattr(row, name) for name in names if hasattr(row, name)}
            ours.log_record({**fields, **row.metrics, **row.extras})
    assert untimed(tmp_path / "b" / ours.scenario_dir) == untimed(expected)
    assert [text[-24:] for text in validate_log(ours.scenario_dir)] == ["nan, not a finite number"]


def test_a_logger_has_the_habits_of_the_one_it_stands_in_for(tmp_path):
    before = datetime.now()
    ours = logger(tmp_path, scenario_name="../out/plan.v2.json", scenario_info=None)
    assert ours.logging_base_dir == str(tmp_path)
    assert ours.scenario_dir.startswith(f"{tmp_path}/plan-")
    assert ours.logger_info == {**INFO, "log_format_version": "1.1"}
    assert ours.scenario_info == {}
    record = dict(RECORD)
    ours.log_record(record)
    assert record == RECORD  # not changed
    ours.scenario_info["complexity"] = "3-high"
    ours.write_info_files()
    row = read_log(ours.scenario_dir).rows[0]  # on disk before it is closed
    assert (row.worker_id, row.block_subtype) == ("worker-default", "wake")
    assert (row.exp_status, dict(row.task_params)) == ("complete", {"x": None})
    assert before <= row.timestamp <= datetime.now()
    assert read_log(ours.scenario_dir).scenario_info == {"complexity": "3-high"}
    ours.close()
    with pytest.raises(RecordError, match="closed"):
        ours.log_record(RECORD)


def test_two_loggers_at_once_have_directories_of_their_own(tmp_path):
    assert len({logger(tmp_path).scenario_dir for _ in range(20)}) == 20


def test_what_is_neither_text_nor_number_is_written_as_text(tmp_path):
    with logger(tmp_path) as ours:
        extras = {"cell": np.array([4, 4]), "none": None, "flag": True, "n": np.float32(0.5)}
        ours.log_record({**RECORD, "block_num": np.int64(0), "reward": None, **extras})
    row = read_log(ours.scenario_dir).rows[0]
    assert row.extras == {"cell": "[4 4]", "none": "", "flag": "True", "n": "0.5"}
    assert np.isnan(row.metrics["reward"])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"block_num": -1}, "record 1, column 'block_num': must be 0 or more, not -1"),
        ({"block_num": True}, "record 1, column 'block_num': must be an integer"),
        ({"exp_num": 2.0}, "record 1, column 'exp_num': must be an integer"),
        ({"exp_num": 4}, "record 1, column 'exp_num': must not fall from 5 to 4"),
        ({"block_num": 1}, "record 1, column 'block_num': must not fall from 2 to 1"),
        ({"block_type": "learn"}, "record 1, column 'block_type': must be one of"),
        ({"block_subtype": None}, "record 1, column 'block_subtype': must be one of"),
        ({"exp_status": "done"}, "record 1, column 'exp_status': must be one of"),
        ({"worker_id": "a b"}, "record 1, column 'worker_id': must be letters"),
        ({"worker_id": ".."}, "record 1, column 'worker_id': must be letters"),
        ({"timestamp": "now"}, "record 1, column 'timestamp': is set by the logger"),
        ({"task_params": "{}"}, "record 1, column 'task_params': must be a mapping, not str"),
        ({"task_params": {"x": {1}}}, "record 1, column 'task_params': must be strict JSON"),
        ({"task_params": {"x": float("nan")}}, "record 1, column 'task_params': must be strict"),
        ({"reward": "much"}, "record 1, column 'reward': must be a number"),
        ({"reward": float("inf")}, "record 1, column 'reward': must be finite"),
        ({"more": 1}, "record 1, column 'more': every record must have the fields"),
    ],
)
def test_a_bad_record_is_refused_and_the_next_one_is_not(changes, words, tmp_path):
    first = {**RECORD, "block_num": 2, "exp_num": 5}
    with logger(tmp_path) as ours:
        ours.log_record(first)
        before = contents(tmp_path)
        for base in (ValueError, RuntimeError):
            with pytest.raises(base, match=words):
                ours.log_record({**first, **changes})
        assert contents(tmp_path) == before
        ours.log_record(first)
    assert len(read_log(ours.scenario_dir).rows) == 2


@pytest.mark.parametrize("name", [*RECORD])
def test_a_missing_field_is_named(name, tmp_path):
    record = {key: value for key, value in RECORD.items() if key != name}
    with pytest.raises(RuntimeError, match=f"column '{name}': is missing"):
        logger(tmp_path).log_record(record)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"logger_info": {}}, "the key 'metrics_columns'"),
        ({"logger_info": None}, "must be a mapping"),
        ({"logger_info": {"metrics_columns": []}}, "non-empty list"),
        ({"logger_info": {"metrics_columns": "reward"}}, "non-empty list"),
        ({"scenario_name": ".json"}, "before its first dot"),
    ],
)
def test_a_logger_with_bad_arguments_is_not_made(changes, words, tmp_path):
    with pytest.raises(RuntimeError, match=words):
        logger(tmp_path / "base", **changes)
    assert not (tmp_path / "base").exists()


def test_an_empty_record_is_refused(tmp_path):
    with logger(tmp_path) as ours:
        for _ in range(2):
            with pytest.raises(RecordError, match="'block_num': is missing"):
                ours.log_record({})


def test_a_record_has_to_be_a_dict(tmp_path):
    with pytest.raises(RecordError, match="must be a dict, not list"):
        logger(tmp_path).log_record([1])


def test_records_and_columns_may_take_turns(tmp_path):
    table = columns(rows())
    numbers = np.arange(60)
    with logger(tmp_path) as ours:
        ours.log_records(table)
        last = {name: column[-1] for name, column in table.items() if name != "cells"}
        del last["timestamp"]
        ours.log_record({**last, "cells": "", "exp_num": 60, "pace": 0.0})
        ours.log_records({**table, "exp_num": 61 + numbers, "block_num": 6 + numbers // 10})
        before = contents(tmp_path)
        with pytest.raises(RecordError, match="'block_num': must not fall from 11 to 0 within"):
            ours.log_records(table)
        with pytest.raises(RecordError, match="'extra': every record must have the fields"):
            ours.log_records({**table, "exp_num": 200 + numbers, "extra": 1})
        with pytest.raises(RecordError, match="'block_type': must be one of"):
            ours.log_records({**table, "block_type": "x"})
        assert contents(tmp_path) == before
    log = read_log(ours.scenario_dir)
    assert [row.exp_num for row in log.rows] == list(range(121))


def test_workers_in_threads_share_a_logger(tmp_path):
    with logger(tmp_path) as ours:

        def play(worker):
            for episode in range(worker, 200, 4):
                block = episode // 100
                ours.log_record(
                    {
                        **RECORD,
                        "exp_num": episode,
                        "block_num": block,
                        "worker_id": f"w{worker}",
                    }
                )

        threads = [threading.Thread(target=play, args=(worker,)) for worker in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    log = read_log(ours.scenario_dir)
    assert [row.exp_num for row in log.rows] == list(range(200))
    assert log.warnings == ()


def test_many_tables_do_not_keep_many_files_open(tmp_path):
    with logger(tmp_path) as ours:
        for block in range(150):
            ours.log_record({**RECORD, "block_num": block, "exp_num": block})
            assert len(ours._tables) <= 64
        ours.log_record({**RECORD, "block_num": 149, "exp_num": 150})
    assert len(read_log(ours.scenario_dir).rows) == 151
