"""The benchmark of logs compares like with like."""

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


def test_everything_is_measured():
    results = logs.measure(logs=1, rounds=1)
    assert set(results) == {"write columns", "write rows", "read columns", "read rows"}
    assert min(results.values()) > 0
