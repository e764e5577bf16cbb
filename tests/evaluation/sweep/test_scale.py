"""Work and memory of the commands on folders of many units, by counts and not by seconds."""

import shutil
import sys
import tracemalloc
import weakref
from collections import Counter
from contextlib import contextmanager

import pytest

from evaluation import sweep
from evaluation.sweep import merging, playing, progress, store
from evaluation.sweep.grid import Units
from tests.evaluation.sweep import small

UNITS = 2500
"""In three folders."""
VALUES = {
    **small.VALUES,
    "axes": {"pole/length": [0.5], "seed": {"integers": [0, UNITS - 1]}},
    "fixed": {**small.VALUES["fixed"], "agent": "nothing"},
}
calls: Counter[tuple[str, str]] | None = None


def hear(event, arguments):
    if calls is not None and event in ("open", "os.listdir", "os.scandir", "glob.glob"):
        path = str(arguments[0])
        kind = "units" if f"/{store.UNITS}" in path else "parquet" if "parquet" in path else ""
        if kind:
            calls[event, kind] += 1


sys.addaudithook(hear)


@contextmanager
def counted():
    """Count the files of units that Python opens, and the folders that it lists."""
    global calls
    calls = Counter()
    try:
        yield calls
    finally:
        calls = None


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    """A plan all of whose units but five have a result: copies of one."""
    plan = sweep.plan(VALUES, tmp_path_factory.mktemp("scale") / "plan", minutes=small.A_PACK)
    assert len(plan.units) == UNITS
    assert playing.run(plan, [0]).played == 1
    (first,) = store.finished_one(plan, 0)
    for number in range(1, UNITS - 5):
        copy = first._replace(number=number, folder=str(store.folder_of(plan, number)))
        copy.rows.parent.mkdir(exist_ok=True)
        shutil.copyfile(first.rows, copy.rows)
        shutil.copyfile(first.cells, copy.cells)
    return plan


def test_status_and_submit_list_each_folder_and_open_no_unit(plan):
    with counted() as calls:
        assert progress.status(plan).done == UNITS - 5
    # Each once, and the newest again for the rate, below the folder of all.
    assert calls == {("os.listdir", "units"): 4, ("os.scandir", "units"): 1}
    with counted() as calls:
        assert store.left(plan) == list(range(UNITS - 5, UNITS))
    assert calls == {("os.listdir", "units"): 3}


@pytest.mark.parametrize(("numbers", "folders"), [(range(UNITS - 5), 3), ([1200], 1)])
def test_a_run_reads_each_finished_unit_once(plan, numbers, folders):
    """Its folder is listed for what is there, and for halves that killed processes left."""
    with counted() as calls:
        assert playing.run(plan, numbers).skipped == len(numbers)
    assert calls == {("os.listdir", "units"): 2 * folders, ("open", "units"): 2 * len(numbers)}


def test_merge_holds_few_batches(plan, tmp_path, monkeypatch):
    """Each takes ten kilobytes beside its rows; a row group of small units would hold 50,000."""
    read, alive, most = store.read, 0, 0

    def forget():
        nonlocal alive
        alive -= 1

    def tracked(source):
        nonlocal alive, most
        for batch in read(source):
            weakref.finalize(batch, forget)
            alive += 1
            most = max(most, alive)
            yield batch

    monkeypatch.setattr(store, "read", tracked)
    monkeypatch.setattr(Units, "__len__", lambda units: 2000)
    merged = merging.merge(plan, tmp_path / "merged")
    assert merged.rows == 2000 * 16
    assert most < 1000


def test_the_memory_of_listing_is_that_of_one_folder(plan):
    tracemalloc.start()
    try:
        assert sum(1 for _, units in store.listing(plan, range(1000)) if units) == 1000
        one = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        assert sum(1 for _, units in store.listing(plan) if units) == UNITS - 5
        assert tracemalloc.get_traced_memory()[1] < 1.5 * one
    finally:
        tracemalloc.stop()
