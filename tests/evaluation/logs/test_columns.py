"""The column reader gives what the row reader gives: values, order, problems."""

import json
from datetime import datetime

import numpy as np
import pytest

from evaluation.logs import L2LoggerRow, LogError, read_log, write_log
from evaluation.logs.coded import Coded, coded
from evaluation.logs.l2logger import columns as columns_module
from evaluation.logs.l2logger.columns import read_columns
from tests.conftest import SHARED

REAL = SHARED / "l2m" / "logs"
START = datetime(2024, 2, 29, 12, 30, 0, 250)
SCENARIO = {"complexity": "1-low", "difficulty": "2-medium", "scenario_type": "custom"}


def rows(count=12, **changes):
    log_rows = []
    for number in range(count):
        block = number // 4
        fields = {
            "block_num": block,
            "exp_num": number,
            "block_type": "test" if block % 2 else "train",
            "block_subtype": "sleep" if block == 2 else "wake",
            "task_name": f"Pole_{'long' if number % 3 else 'short'}",
            "task_params": {"pole/length": number % 3, "note": 'two "words"\té'},
            "exp_status": "incomplete" if number == 5 else "complete",
            "timestamp": datetime(2024, 2, 29, 23, 59, number, 7 * number),
            "metrics": {"reward": number / 7, "length": number},
            "extras": {"cells": f"[{number} 4]"},
            "worker_id": "ba"[number % 2],
        }
        log_rows.append(L2LoggerRow(**(fields | changes)))
    return log_rows


def write(base, episodes=None):
    episodes = rows() if episodes is None else episodes
    return write_log(base, "demo", episodes, ["reward", "length"], SCENARIO, start=START)


def assert_same(columns, log):
    """Every column holds what the rows hold, and so do header and warnings."""
    assert (columns.path, columns.format_version) == (log.path, log.format_version)
    assert columns.metrics_columns == log.metrics_columns
    assert columns.scenario_info == log.scenario_info
    assert columns.warnings == log.warnings
    assert len(columns) == len(log.rows)
    for name in ("worker_id", "block_type", "block_subtype", "task_name"):
        assert list(getattr(columns, name).array()) == [getattr(row, name) for row in log.rows]
    assert list(columns.block_num) == [row.block_num for row in log.rows]
    assert list(columns.exp_num) == [row.exp_num for row in log.rows]
    status = ["complete" if done else "incomplete" for done in columns.complete]
    assert status == [row.exp_status for row in log.rows]
    assert columns.timestamp.tolist() == [row.timestamp for row in log.rows]
    params = [json.dumps(row.task_params) for row in log.rows]
    assert list(columns.task_params.array()) == params
    assert set(columns.metrics) == set(log.metrics_columns)
    for name, values in columns.metrics.items():
        np.testing.assert_array_equal(values, [row.metrics[name] for row in log.rows])
    for name, texts in columns.extras.items():
        assert list(texts.array()) == [row.extras.get(name, "") for row in log.rows]


@pytest.fixture
def no_row_reader(monkeypatch):
    """The fast way has to do it."""

    def refuse(path):
        raise AssertionError(f"{path} was left to the row reader")

    monkeypatch.setattr(columns_module, "read_log", refuse)


def test_columns_are_the_rows(tmp_path, no_row_reader):
    path = write(tmp_path)
    columns = read_columns(path)
    assert_same(columns, read_log(path))
    assert set(columns.extras) == {"cells"}
    assert (columns.block_num.dtype, columns.exp_num.dtype) == (np.int64, np.int64)
    assert columns.timestamp.dtype == np.dtype("datetime64[us]")
    assert columns.metrics["length"].dtype == np.float64


@pytest.mark.skipif(not REAL.is_dir(), reason=f"no recorded logs at {REAL}")
def test_rows_that_are_taken_are_those_of_a_log_of_these_rows(tmp_path):
    kept = [0, 2, 3, 7, 11]
    whole = read_columns(write(tmp_path / "whole"))
    few = read_columns(write(tmp_path / "few", [rows()[k] for k in kept]))
    mask = np.isin(np.arange(12), kept)
    for taken in (whole.take(np.array(kept)), whole.take(mask)):
        assert len(taken) == len(kept)
        for name in ("block_num", "exp_num", "complete", "timestamp"):
            np.testing.assert_array_equal(getattr(taken, name), getattr(few, name), err_msg=name)
        for name in ("worker_id", "block_type", "block_subtype", "task_name", "task_params"):
            column, expected = getattr(taken, name), getattr(few, name)
            assert list(column.array()) == list(expected.array()), name
        for name, numbers in few.metrics.items():
            np.testing.assert_array_equal(taken.metrics[name], numbers, err_msg=name)
        assert taken.extras.keys() == few.extras.keys() == {"cells"}
        assert list(taken.extras["cells"].array()) == list(few.extras["cells"].array())


def test_columns_of_every_recorded_log():
    paths = sorted(path.parent for path in REAL.rglob("logger_info.json"))
    assert len(paths) > 20
    valid = 0
    for path in paths:
        try:
            log = read_log(path)
        except LogError as error:
            with pytest.raises(LogError) as ours:
                read_columns(path)
            assert ours.value.problems == error.problems
            continue
        assert_same(read_columns(path), log)
        valid += 1
    assert valid > 15


@pytest.mark.skipif(not REAL.is_dir(), reason=f"no recorded logs at {REAL}")
def test_format_1_0_is_read_the_fast_way(no_row_reader):
    columns = read_columns(REAL / "s00_shipped_example" / "multi_task")
    assert columns.format_version == "1.0"
    assert columns.block_subtype.values == ("wake",)
    assert len(columns) == 1920


def test_task_names_in_lower_case_are_joined(tmp_path, no_row_reader):
    episodes = rows(2, task_name="Pole_Long") + rows(4, task_name="pole_long")[2:]
    columns = read_columns(write(tmp_path, episodes), lower_case=True)
    assert columns.task_name.values == ("pole_long",)
    assert list(columns.task_name.codes) == [0, 0, 0, 0]


def test_warnings_have_their_lines_without_the_row_reader(tmp_path):
    episodes = rows()
    for number in (3, 9):
        episodes[number] = L2LoggerRow(
            **{
                **{name: getattr(episodes[number], name) for name in L2LoggerRow.__slots__},
                "metrics": {"reward": float("nan"), "length": 3},
                "task_name": "plain",
            }
        )
    path = write(tmp_path, episodes)
    columns = columns_module._read_fast(path)
    assert columns is not None
    assert len(columns.warnings) == 4
    assert_same(columns, read_log(path))


# What only the row reader can tell ----------------------------------------------------------------

FILE = "a/0-train/data-log.tsv"
CHANGES = {
    "hexadecimal": ("0\t1\ta", "0\t0x1\ta"),
    "blank before a number": ("0\t1\ta", "0\t 1\ta"),
    "sign": ("0\t1\ta", "0\t+1\ta"),
    "too long": ("0\t1\ta", "0\t" + "1" * 16 + "\ta"),
    "empty count": ("0\t1\ta", "0\t\ta"),
    "underscore": ("0.14285714285714285", "0_1.5"),
    "nan with a text": ("0.14285714285714285", "nan(1)"),
    "hexadecimal float": ("0.14285714285714285", "0x1p3"),
    "empty metric": ("0.14285714285714285", ""),
    "infinite": ("0.14285714285714285", "-Infinity"),
    "huge": ("0.14285714285714285", "1e999"),
    "tiny": ("0.14285714285714285", "1e-400"),
    "carriage return": ("\ta\ttrain", "\ta\r\ttrain"),
    "line feeds of another system": ("\n", "\r\n"),
    "worker": ("0\t1\ta", "0\t1\ta b"),
    "short fraction": (".000007", ".0001"),
    "no such day": ("20240229", "20230229"),
    "month 13": ("20240229", "20241301"),
    "hour 24": ("T2359", "T2459"),
    "year 0": ("20240229", "00000101"),
    "letters in a time": ("T2359", "T23x9"),
    "params a list": ('"{""pole/length"": 1, ""note"": ""two \\""words\\""\\t\\u00e9""}"', "[]"),
    "params empty": ('"{""pole/length"": 1, ""note"": ""two \\""words\\""\\t\\u00e9""}"', ""),
    "params broken": ("{", "{{"),
    "params spaced": ("{", "  {"),
    "quote in a name": ("Pole_long", 'Pole_"long'),
    "open quote": ("Pole_long", '"Pole_long'),
    "quoted": ("Pole_long", '"Pole_long"'),
    "more after a quote": ("Pole_long", '"Pole"_long'),
    "more after an empty quote": ("Pole_long", '""_long'),
    "more after a doubled quote": ("Pole_long", '"Po"""_long'),
    "many quotes": ("Pole_long", '"""""_long"'),
    "tab in quotes": ("[1 4]", '"[1\t4]"'),
    "tab in quotes and a column less": ("[1 4]\t1", '"[1\t4]"'),
    "line feed in quotes": ("[1 4]", '"[1\n4]"'),
    "one field more": ("[1 4]", "[1\t4]"),
    "empty line": ("\n0\t1\t", "\n\n0\t1\t"),
    "quoted header": ("worker_id", '"worker_id"'),
    "column twice": ("cells", "reward"),
    "missing column": ("exp_status", "status"),
    "header with a blank": ("exp_status", "exp_status "),
    "nul": ("Pole_long", "Pole\0long"),
    "byte order mark": ("block_num", "\ufeffblock_num"),
    "no line feed at the end": ("[3 4]\t3\t0.42857142857142855\n", "[3 4]\t3\t0.42857142857142855"),
    "field too long": ("[1 4]", "x" * 131_073),
    "long field": ("[1 4]", "x" * 131_072),
    "not ASCII": ("Pole_long", "Pølé_long"),
    "decreasing block": ("0\t3\ta", "7\t3\ta"),
    "status": ("complete", "Complete"),
}


def outcome(function, path):
    try:
        return function(path)
    except LogError as error:
        return error.problems


def assert_same_outcome(path):
    rows_say, columns_say = outcome(read_log, path), outcome(read_columns, path)
    if isinstance(rows_say, tuple):
        assert columns_say == rows_say
    else:
        assert_same(columns_say, rows_say)


@pytest.mark.parametrize("name", CHANGES)
def test_unusual_text_reads_as_the_row_reader_reads_it(name, tmp_path):
    path = write(tmp_path)
    old, new = CHANGES[name]
    content = (path / FILE).read_bytes()
    assert old.encode() in content
    (path / FILE).write_bytes(content.replace(old.encode(), new.encode(), 1))
    assert_same_outcome(path)


def test_bytes_changed_at_random_read_as_the_row_reader_reads_them(tmp_path):
    path = write(tmp_path)
    generator = np.random.default_rng(0)
    whole = (path / FILE).read_bytes()
    pieces = [b"\t", b"\n", b'"', b"", b"0", b"-", b".", b"e", b"{", b"x", b" ", b"\xff", b"\r"]
    kinds = set()
    for _ in range(150):
        place = generator.integers(len(whole))
        piece = pieces[generator.integers(len(pieces))]
        (path / FILE).write_bytes(whole[:place] + piece + whole[place + generator.integers(3) :])
        assert_same_outcome(path)
        kinds.add(type(outcome(read_columns, path)))
    assert len(kinds) == 2  # some changes do no harm, most do


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        (FILE, b"", "is empty"),
        ("logger_info.json", b"{", "not JSON"),
        ("logger_info.json", b'{"metrics_columns": ["speed"]}', "'speed' is missing"),
        ("scenario_info.json", b"[]", "must hold a JSON object"),
    ],
)
def test_broken_files_are_the_same_errors(file, content, words, tmp_path):
    path = write(tmp_path)
    (path / file).write_bytes(content)
    with pytest.raises(LogError, match=words):
        read_columns(path)
    assert_same_outcome(path)


def test_no_log_at_all(tmp_path):
    with pytest.raises(LogError, match="no such directory"):
        read_columns(tmp_path / "missing")
    with pytest.raises(LogError, match=r"holds no data-log\.tsv"):
        read_columns(tmp_path)


def test_tables_without_rows(tmp_path):
    path = write(tmp_path, rows(1))
    table = next(path.rglob("data-log.tsv"))
    table.write_text(table.read_text().splitlines()[0] + "\n")
    assert_same_outcome(path)
    assert len(read_columns(path)) == 0


def test_tables_with_different_columns(tmp_path):
    path = write(tmp_path)
    table = path / FILE
    table.write_text(table.read_text().replace("cells", "other"))
    columns = read_columns(path)
    assert set(columns.extras) == {"cells", "other"}
    assert {warning.message[-12:] for warning in columns.warnings} == {"cells, other"}
    assert_same_outcome(path)


def test_coded_columns():
    column = coded(["b", "a", "b", "C"])
    assert column == Coded(column.values, column.codes)
    assert (column.values, list(column.codes), len(column)) == (("b", "a", "C"), [0, 1, 0, 2], 4)
    assert list(column.array()) == ["b", "a", "b", "C"]
    assert list(column.take(np.array([3, 0])).array()) == ["C", "b"]
    joined = column.mapped(lambda text: "x" if text in "ab" else text)
    assert (joined.values, list(joined.codes)) == (("x", "C"), [0, 0, 0, 1])
    assert list(column.first_rows()) == [0, 1, 3]
