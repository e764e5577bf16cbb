"""Logs as the metrics read them: types of columns, the slow way in, and the names of errors."""

import numpy as np
import pyarrow as pa
import pytest

from evaluation.l2m.l2metrics import ErrorKind, L2MetricsError
from evaluation.l2m.l2metrics.reading import read_log_columns
from evaluation.logs.problems import MAX_PROBLEMS
from tests.evaluation.l2m.log_files import COLUMNS, good_rows, rows, write_log

EXTRAS = {
    "episode_step_count": ("7", "12"),
    "gap": ("", "3"),
    "ratio": ("0.5", "1e-3"),
    "seen": ("1", "no"),
}


def with_extras(path):
    content = [
        row | {name: cells[number % 2] for name, cells in EXTRAS.items()}
        for number, row in enumerate(good_rows())
    ]
    return write_log(path, content, (*COLUMNS, *EXTRAS))


def test_further_columns_are_numbers_where_all_their_cells_are(tmp_path):
    table = read_log_columns(with_extras(tmp_path / "run")).table
    further = ["episode_step_count", "gap", "ratio", "reward", "seen"]
    assert table.column_names == [*COLUMNS[:-1], *further]
    assert table["episode_step_count"].type == pa.int64()
    assert table["episode_step_count"].to_pylist()[:3] == [7, 12, 7]
    np.testing.assert_array_equal(table["gap"].to_numpy()[:2], [np.nan, 3.0])
    assert table["ratio"].to_pylist()[:2] == [0.5, 1e-3]
    assert table["seen"].to_pylist()[:2] == ["1", "no"]


def test_a_log_that_is_read_row_by_row_gives_the_same_table(tmp_path):
    """Lines that end as on Windows are left to the reader of rows."""
    expected = read_log_columns(with_extras(tmp_path / "run"))
    for path in (tmp_path / "run").rglob("data-log.tsv"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    by_rows = read_log_columns(tmp_path / "run")
    assert by_rows.table.schema == expected.table.schema
    for name in by_rows.table.column_names:
        columns = (log.table[name].to_numpy() for log in (by_rows, expected))
        np.testing.assert_array_equal(*columns, err_msg=name)
    np.testing.assert_array_equal(by_rows.seconds, expected.seconds)


def test_timestamps_and_words_stay_what_they_were(tmp_path):
    log = read_log_columns(write_log(tmp_path / "run", good_rows()))
    assert log.table["timestamp"].to_pylist()[:2] == [
        "20260101T000000.000000", "20260101T000000.000001"
    ]  # fmt: skip
    assert set(log.table["exp_status"].to_pylist()) == {"complete"}
    assert np.diff(log.seconds)[0] == pytest.approx(1e-6, abs=3e-7)


BAD_CELLS = {
    "block_num": ("x", ErrorKind.BAD_NUMBER),
    "exp_num": ("-1", ErrorKind.BAD_NUMBER),
    "worker_id": ("w 0", ErrorKind.BAD_WORKER),
    "block_subtype": ("dream", ErrorKind.BAD_BLOCK_SUBTYPE),
    "task_params": ("[1]", ErrorKind.BAD_TASK_PARAMS),
    "timestamp": ("now", ErrorKind.BAD_TIMESTAMP),
    "reward": ("high", ErrorKind.BAD_NUMBER),
}


@pytest.mark.parametrize("column", BAD_CELLS)
def test_every_bad_cell_has_a_name_and_a_line(column, tmp_path):
    cell, kind = BAD_CELLS[column]
    path = write_log(tmp_path / "run", rows([(0, "train", "a_1", [1.0, 2.0, 3.0])]))
    (table,) = path.rglob("data-log.tsv")
    lines = [line.split("\t") for line in table.read_text().splitlines()]
    lines[2][lines[0].index(column)] = cell
    table.write_text("".join("\t".join(line) + "\n" for line in lines))
    with pytest.raises(L2MetricsError, match=rf"data-log\.tsv:3: error: {column}") as error:
        read_log_columns(path)
    assert error.value.kind == kind


def repeated_column(path):
    (table,) = path.rglob("data-log.tsv")
    table.write_text(table.read_text().replace("reward", "exp_num\treward", 1))


def short_line(path):
    (table,) = path.rglob("data-log.tsv")
    table.write_text(table.read_text() + "1\t2\n")


def bad_json(path):
    (path / "scenario_info.json").write_text("{")


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (repeated_column, ErrorKind.BAD_TABLE),
        (short_line, ErrorKind.BAD_TABLE),
        (bad_json, ErrorKind.BAD_INFO),
    ],
)
def test_what_is_no_table_or_no_object_has_a_name(spoil, kind, tmp_path):
    path = write_log(tmp_path / "run", rows([(0, "train", "a_1", [1.0, 2.0])]))
    spoil(path)
    with pytest.raises(L2MetricsError) as error:
        read_log_columns(path)
    assert error.value.kind == kind


def test_of_many_errors_the_first_are_shown(tmp_path):
    content = [row | {"exp_status": "over"} for row in good_rows()]
    with pytest.raises(L2MetricsError) as error:
        read_log_columns(write_log(tmp_path / "run", content))
    message = str(error.value)
    assert message.count("exp_status must be one of") == MAX_PROBLEMS
    assert message.endswith(f"; and {len(content) - MAX_PROBLEMS} more")


def test_warnings_are_about_the_log_and_not_one_a_row(tmp_path):
    content = [row | {"task_name": "plain", "reward": "nan"} for row in good_rows()]
    log = read_log_columns(write_log(tmp_path / "run", content, scenario={}))
    assert [text.partition(" is ")[0] for text in log.warnings] == [
        "scenario_info.json: 'complexity'",
        "scenario_info.json: 'difficulty'",
        "scenario_info.json: 'scenario_type'",
        "a task name",
    ]
