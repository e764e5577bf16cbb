"""Work and memory of the commands on folders of many units, by counts and not by seconds."""

import os
import shutil
import subprocess
import sys
import tracemalloc
import weakref
from collections import Counter
from contextlib import contextmanager

import pytest

import jaxsim
from evaluation import sweep
from evaluation.metrics.statistics import bootstrap
from evaluation.sweep import bases, merging, notes, planning, playing, process, progress, store
from evaluation.sweep.bases import evaluate as base
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
        assert store.unfinished(plan) == list(range(UNITS - 5, UNITS))
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


# Work of a unit -----------------------------------------------------------------------------------


def test_the_work_of_a_unit_beside_playing_is_counted(tmp_path, monkeypatch):
    """A physics is made once for all seeds, weights of resamples once a seed, files once a unit."""
    work = Counter()

    def count(module, name):
        real = getattr(module, name)

        def counting(*args, **options):
            work[name] += 1
            return real(*args, **options)

        monkeypatch.setattr(module, name, counting)

    lengths, seeds = 22, 3
    axes = {"pole/length": {"linear": [0.37, 1.93], "count": lengths}}
    values = {**VALUES, "axes": {**axes, "seed": {"integers": [11, 10 + seeds]}}}
    plan = sweep.plan(values, tmp_path / "plan", rate=1e9)
    assert (len(plan.units), plan.grid.packs) == (1, 6 * seeds)
    monkeypatch.setattr(notes, "EVERY", 1e6)  # no sign of life in between
    base._build.cache_clear()
    bootstrap._cached_weights.cache_clear()
    for module, name in (
        (jaxsim, "make"),
        (jaxsim, "rollout"),
        (bootstrap, "weights_of"),
        (store, "write_whole"),
        (os, "fsync"),
    ):
        count(module, name)
    assert playing.run(plan, threads=1).played == 1
    assert work == {
        "make": lengths,
        "rollout": 6 * seeds,
        "weights_of": seeds,
        "write_whole": 2,
        "fsync": 4,  # with the note that a process is at work, and that of the unit
    }


def test_a_process_that_plays_in_threads_keeps_numpy_to_one(tmp_path):
    """The variable is read when NumPy is imported, which nothing has done by then."""
    threaded = [name for name in bases.HOMES if bases.get(name).threads]
    assert list(process.THREADED) == threaded
    plan = sweep.plan(VALUES, tmp_path / "plan")
    program = (
        "import os, sys; from evaluation import cli; from evaluation.sweep import plans, process;"
        "process.prepare(plans.load(sys.argv[1])); assert 'numpy' not in sys.modules;"
        "print(os.environ['OPENBLAS_NUM_THREADS'])"
    )
    env = {k: v for k, v in os.environ.items() if k != "OPENBLAS_NUM_THREADS"}
    words = [sys.executable, "-c", program, str(plan.folder)]
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


def test_units_are_as_long_as_the_rate_says_that_was_measured(tmp_path, monkeypatch):
    """A pack is played twice, and the second time counts; a unit is minutes of such packs."""
    calls, clock = [], iter((0.0, 0.5))
    monkeypatch.setattr(base.BASE, "play", lambda cells, place: calls.append(len(cells)))
    monkeypatch.setattr(planning.time, "perf_counter", lambda: next(clock))
    plan = sweep.plan(VALUES, tmp_path / "plan", minutes=1, measure=True)
    steps = plan.manifest["most_steps"] // UNITS
    assert calls == [1, 1]
    assert plan.manifest["rates"] == {"0": steps / 0.5}
    assert plan.manifest["unit_packs"] == [120]
    assert plan.manifest["most_seconds"] == UNITS / 2
    shorter = sweep.plan(VALUES, tmp_path / "shorter", minutes=0.5, rate=steps / 0.5)
    assert shorter.manifest["unit_packs"] == [60]
    held = planning.BYTES_A_ROW * 16 * (120 - 60)
    assert plan.manifest["bytes"] - shorter.manifest["bytes"] == held


def test_physics_are_stacked_by_value_where_their_types_differ(monkeypatch):
    """The bytes of a whole number are no number of another type."""
    monkeypatch.setattr(jaxsim, "make", lambda task, values, **options: (task, values))
    base._build.cache_clear()
    whole, real, other = (base._build("CartPole-v1", (), (("x", x),)) for x in (2, 2.5, 3.5))
    base._build.cache_clear()
    assert base._stacked([whole, real])["x"].tolist() == [2.0, 2.5]
    assert base._stacked([real, other])["x"].tolist() == [2.5, 3.5]
