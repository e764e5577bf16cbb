"""The benchmark of logs compares like with like."""

import pytest

from benchmarks import logs
from evaluation.logs import write_columns, write_log


def test_rows_and_columns_are_the_same_lifetime(tmp_path):
    made = logs.columns(3)
    first = write_columns(tmp_path / "a", "x", made, logs.METRICS, logs.SCENARIO, start=logs.START)
    rows = logs.rows(made)
    second = write_log(tmp_path / "b", "x", rows, logs.METRICS, logs.SCENARIO, start=logs.START)
    tables = sorted(path.relative_to(first) for path in first.rglob("data-log.tsv"))
    assert (len(rows), len(tables)) == (1920, 24)
    assert all((first / name).read_bytes() == (second / name).read_bytes() for name in tables)


@pytest.mark.parametrize(("count", "share"), [(1, 1), (6, 3), (10, 5)])
def test_times_of_every_fifth_log_are_scaled_to_all(monkeypatch, count, share):
    monkeypatch.setattr(logs, "cpu_seconds", lambda work, rounds: 1.0)
    monkeypatch.setattr(logs, "write_columns", lambda *arguments: None)
    results = logs.measure(logs=count, rounds=1)
    assert results["write rows"] == results["read rows"] == share
    assert results["write columns"] == results["read columns"] == 1


def test_everything_is_measured():
    results = logs.measure(logs=1, rounds=1)
    assert set(results) == {"write columns", "write rows", "read columns", "read rows"}
    assert min(results.values()) > 0
