import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluation import records as records_module
from evaluation import scanner
from evaluation.records import COLUMNS, METADATA_KEY, Records, read
from evaluation.schedule import Schedule
from tests.evaluation import toy
from tests.evaluation.toy import repeat


@pytest.fixture(scope="module")
def records():
    """Two lifetimes of a small schedule with text, numbers and a novelty in it."""
    with toy.registered():
        schedule = toy.schedule(
            ("1.train", [repeat(4, wheel=5), repeat(1, spoil=2)]),
            ("1.test", [repeat(2, wheel=5, novelty_level=203), repeat(3, wheel=5)]),
            name="Ünïcode, näme",
            author="A. Author",
        )
        options = scanner.MachineOptions(threads=1)
        return scanner.play(schedule, toy.busy, lifetimes=2, seed=7, options=options)


@pytest.fixture
def file(records, tmp_path):
    path = tmp_path / "some" / "records.parquet"
    records.write(path)
    return path


# On disk and back ---------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [0, 40])
def test_what_is_written_is_read(records, tmp_path, first):
    records = replace(records, first_lifetime=first)
    records.write(tmp_path / "r.parquet")
    again = read(tmp_path / "r.parquet")
    assert again.schedule == records.schedule
    assert again.metadata == records.metadata
    assert again.first_lifetime == first
    assert again.num_lifetimes == 2
    assert again.novelty_levels.tolist() == [0, 0, 3]
    assert set(again.columns) == set(COLUMNS)
    for name, dtype in COLUMNS.items():
        assert again.columns[name].dtype == dtype
        np.testing.assert_array_equal(again.columns[name], records.columns[name], err_msg=name)


def test_numbers_that_are_not_finite_come_back_as_they_were(records, tmp_path):
    reward = records.columns["reward"].copy()
    reward[0, :3] = np.nan, np.inf, -np.inf
    odd = replace(records, columns={**records.columns, "reward": reward})
    odd.write(tmp_path / "r.parquet")
    np.testing.assert_array_equal(read(tmp_path / "r.parquet").columns["reward"], reward)


def test_rows_of_the_file(records, file):
    """Anyone's Parquet reader sees one row an episode, lifetime by lifetime."""
    rows = pq.read_table(file).to_pylist()
    assert len(rows) == 2 * 10
    assert [row["lifetime"] for row in rows] == 10 * [0] + 10 * [1]
    assert [row["experiment"] for row in rows] == 2 * list(range(10))
    assert [row["block"] for row in rows[:10]] == [0, 0, 0, 0, 1, 2, 2, 3, 3, 3]
    assert [row["variant"] for row in rows[:10]] == [0, 0, 0, 0, 1, 2, 2, 0, 0, 0]
    assert [row["true_level"] for row in rows[:10]] == [0, 0, 0, 0, 0, 3, 3, 0, 0, 0]
    assert [row["mode"] for row in rows[:10]] == 5 * ["train"] + 5 * ["test"]
    assert [row["learning"] for row in rows[:10]] == 5 * [True] + 5 * [False]
    assert {row["phase"] for row in rows} == {1}
    assert {row["task"] for row in rows} == {"Toy"}
    assert [row["episode"] for row in rows] == 2 * list(range(10))
    assert {row["sub_episodes"] for row in rows} == {1}
    assert {row["told_level"] for row in rows} == {None}
    assert [row["complete"] for row in rows[:10]] == 4 * [True] + [False] + 5 * [True]
    for name in ("reward", "length", "predicted_probability"):
        expected = records.columns[name].ravel().tolist()
        assert [row[name] for row in rows] == expected, name


def test_whether_an_agent_learned_is_not_what_the_phase_is_called(records):
    blocks = tuple(replace(block, learning=not block.learning) for block in records.schedule.blocks)
    other = replace(records, schedule=replace(records.schedule, blocks=blocks)).to_table()
    assert other["learning"].to_pylist()[:10] == 5 * [False] + 5 * [True]
    assert other["mode"].to_pylist()[:10] == 5 * ["train"] + 5 * ["test"]


def test_types_of_the_file(file):
    schema = pq.read_schema(file)
    assert {name: str(schema.field(name).type) for name in schema.names} == {
        "lifetime": "int32",
        "experiment": "int32",
        "block": "int32",
        "phase": "int32",
        "mode": "dictionary<values=string, indices=int32, ordered=0>",
        "learning": "bool",
        "task": "dictionary<values=string, indices=int32, ordered=0>",
        "variant": "int32",
        "episode": "int32",
        "sub_episodes": "int32",
        "true_level": "int32",
        "reward": "float",
        "performance": "float",
        "length": "int32",
        "complete": "bool",
        "predicted_level": "int32",
        "predicted_probability": "float",
        "threshold": "float",
        "seconds": "float",
        "told_level": "int32",
    }


def test_metadata_of_the_file(records, file):
    metadata = json.loads(pq.read_schema(file).metadata[METADATA_KEY])
    assert Schedule.from_json(metadata.pop("schedule")) == records.schedule
    assert metadata["seed"] == 7
    assert metadata["agent"] == "busy"
    assert metadata["lifetimes"] == 2
    assert set(metadata["versions"]) == {"jaxsim-novelty", "jax"}
    assert all(version[0].isdigit() for version in metadata["versions"].values())


def test_the_file_tells_nothing_about_the_machine(file, tmp_path):
    metadata = b"".join(pq.read_schema(file).metadata.values()).decode()
    for word in (str(tmp_path), str(tmp_path.parent), "/home", "/tmp", "/work", "\\Users"):
        assert word not in metadata


def test_same_records_same_file(records, file, tmp_path):
    records.write(tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == file.read_bytes()


def test_write_replaces_a_file_whole_or_not_at_all(records, file, monkeypatch):
    before = file.read_bytes()

    def fail(*arguments, **options):
        raise OSError("no space left")

    monkeypatch.setattr(records_module.pq, "write_table", fail)
    with pytest.raises(OSError, match="no space"):
        replace(records, first_lifetime=1).write(file)
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == [file.name]


# Block by block -----------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", records_module.MEASURES)
def test_by_block_pads_short_blocks_with_zero(records, measure):
    values, counts = records.by_block(measure)
    column = records.columns[measure].astype(np.float64)
    assert values.shape == (2, 4, 4)
    assert values.dtype == np.float64
    assert counts.tolist() == [4, 1, 2, 3]
    start = 0
    for block, count in enumerate(counts):
        np.testing.assert_array_equal(values[:, block, :count], column[:, start : start + count])
        assert (values[:, block, count:] == 0).all()
        start += count
    assert start == column.shape[1]


@pytest.mark.parametrize("measure", ["seconds", "perfomance", ""])
def test_measure_that_does_not_exist(records, measure):
    with pytest.raises(ValueError, match=f"'{measure}'.*performance, reward, length"):
        records.by_block(measure)


# Files that are not records -----------------------------------------------------------------------


def foreign(path):
    pq.write_table(pa.table({"reward": [1.0]}), path)


def text(path):
    path.write_text("lifetime\treward\n0\t1.0\n")


def empty(path):
    path.write_bytes(b"")


@pytest.mark.parametrize("make", [foreign, text, empty])
def test_file_of_another_kind(tmp_path, make):
    path = tmp_path / "other.parquet"
    make(path)
    with pytest.raises(ValueError, match=r"other\.parquet is not a records file of jaxsim"):
        read(path)


def test_file_that_was_cut_off(file):
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"records\.parquet is not a records file"):
        read(file)


def test_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"absent\.parquet"):
        read(tmp_path / "absent.parquet")


def with_metadata(path, metadata):
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({METADATA_KEY: metadata}), path)


DEEP = b'{"schedule": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"


@pytest.mark.parametrize(
    "metadata", [b"{", b"[]", b"{}", b'{"schedule": {}}', b'{"schedule": 1}', DEEP]
)
def test_file_with_metadata_of_another_kind(file, metadata):
    with_metadata(file, metadata)
    with pytest.raises(ValueError, match=r"records\.parquet is not a records file"):
        read(file)


def test_file_without_a_column(file):
    table = pq.read_table(file)
    pq.write_table(table.drop_columns(["reward"]), file)
    with pytest.raises(ValueError, match=r"records\.parquet"):
        read(file)


def test_file_without_some_rows(file):
    pq.write_table(pq.read_table(file).slice(0, 13), file)
    with pytest.raises(ValueError, match=r"records\.parquet"):
        read(file)


def test_file_whose_inside_is_damaged(file):
    content = bytearray(file.read_bytes())
    content[200:400] = bytes(200)
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"records\.parquet"):
        read(file)


def test_directory_instead_of_a_file(tmp_path):
    with pytest.raises((ValueError, OSError), match=tmp_path.name):
        read(tmp_path)


def test_records_of_one_lifetime_that_is_not_the_first(records, tmp_path):
    """A part of a longer run keeps its numbers."""
    columns = {name: column[1:] for name, column in records.columns.items()}
    part = Records(records.schedule, columns, records.novelty_levels, 1, records.metadata)
    part.write(tmp_path / "part.parquet")
    again = read(tmp_path / "part.parquet")
    assert (again.first_lifetime, again.num_lifetimes) == (1, 1)
