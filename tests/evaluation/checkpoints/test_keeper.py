"""When a run is saved, where it resumes, and what it refuses to resume from."""

import contextlib
import errno
import os
import re
import signal
import threading
from dataclasses import replace

import numpy as np
import pytest

from evaluation.checkpoints import commands, keeper, store
from evaluation.checkpoints.configuration import (
    MOST_CHARACTERS,
    configuration,
    differences,
    digest,
    named,
)
from evaluation.checkpoints.keeper import Checkpoints, Pace, TimeOver
from evaluation.checkpoints.stopping import Stop, Stopped, hearing
from evaluation.checkpoints.store import CheckpointError
from evaluation.files import ResultFiles
from evaluation.scanner import Snapshot
from tests.evaluation import toy
from tests.evaluation.toy import repeat

LIFETIMES = 2


class Clock:
    """Seconds that a test sets."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture(scope="module", autouse=True)
def toy_task():
    with toy.registered():
        yield


@pytest.fixture(scope="module")
def schedule():
    """Blocks of 10, 10, 20 and 10 episodes."""
    return toy.schedule(
        ("1.train", [repeat(10)]),
        ("1.test", [repeat(10, target=1), repeat(20), repeat(10, wheel=2)]),
    )


FILES = ResultFiles("report.json", ("records.parquet", "logs"), ("note.json",))


def snapshot(episodes=0):
    outcome = {"reward": np.ones((LIFETIMES, episodes), np.float32)}
    return Snapshot(episodes, {"known": np.full((LIFETIMES, 3), episodes)}, outcome)


@pytest.fixture
def make(tmp_path, schedule):
    """Make a keeper of a run in the directory `out`; all of them are closed in the end."""
    made = []

    def one(resume=False, seed=0, pace=None, **options):
        matters = configuration(schedule, agent="busy", lifetimes=LIFETIMES, seed=seed)
        blocks = schedule.block_counts().tolist()
        kept = Checkpoints(
            tmp_path / "out", blocks, matters, FILES, pace or Pace(), resume=resume, **options
        )
        made.append(kept)
        return kept

    yield one
    for kept in made:
        kept.close()


def saved(kept):
    return [int(step.name) for step in store.steps(kept.folder)]


def look(kept, episodes):
    kept.between(episodes, lambda: snapshot(episodes))


# When ---------------------------------------------------------------------------------------------


def test_what_killed_runs_left_is_swept_before_anything_is_played(make):
    """In the run's folder, where results are moved to, and in that of its checkpoints."""
    kept = make(pace=Pace(0.0))
    kept.begin(snapshot)
    look(kept, 5)
    kept.close()
    again = make(resume=True)
    for folder in (again.out, again.folder):
        (folder / ".0000000032-00c0ffee.partial").mkdir()
    again.begin(snapshot)
    assert not [*again.out.glob(".*.partial"), *again.folder.glob(".*.partial")]
    assert saved(again) == [5]


def test_saved_by_the_clock(make):
    clock = Clock()
    kept = make(pace=Pace(seconds=60.0), clock=clock)
    assert kept.begin(snapshot) is None
    for clock.now, episodes in (
        (59.0, 1),
        (60.0, 2),
        (100.0, 3),
        (119.0, 4),
        (121.0, 5),
        (130.0, 6),
    ):
        look(kept, episodes)
    assert saved(kept) == [2, 5]


def test_saved_by_blocks(make):
    kept = make(pace=Pace(seconds=None, blocks=2))
    kept.begin(snapshot)
    history = []
    for episodes in (5, 10, 15, 22, 30, 41, 49):
        look(kept, episodes)
        history.append(saved(kept))
    assert history == [[], [], [], [22], [22], [22], [22]]


def test_never(make):
    kept = make(pace=Pace(None), clock=Clock())
    kept.begin(snapshot)
    for episodes in range(1, 51):
        look(kept, episodes)
    assert not kept.folder.exists()


@pytest.mark.parametrize("keep", [True, False])
def test_the_end_is_saved_on_request(make, keep):
    kept = make(pace=Pace(0.0), keep=keep)
    kept.begin(snapshot)
    look(kept, 50)
    assert saved(kept) == ([50] if keep else [])


def test_a_request_to_stop_is_met_after_saving(make):
    stop = Stop()
    kept = make(pace=Pace(None), stop=stop)
    kept.begin(snapshot)
    look(kept, 8)
    stop.by = "SIGTERM"
    words = r"SIGTERM: saved .*0000000016 after episode 16 of 50; .* the same command with --resume"
    with pytest.raises(Stopped, match=words):
        look(kept, 16)
    assert saved(kept) == [16]


def test_time_is_over_where_it_may_be(make):
    clock = Clock()
    kept = make(pace=Pace(None), clock=clock, seconds=100.0, ends={20, 40})
    kept.begin(snapshot)
    for clock.now, episodes in ((99.0, 20), (100.0, 30)):
        look(kept, episodes)
    with pytest.raises(TimeOver) as over:
        look(kept, 40)
    assert over.value.episodes == over.value.snapshot.rounds == 40
    assert saved(kept) == [40]
    kept.close()
    again = make(resume=True, clock=clock, seconds=100.0, ends={20, 40})
    with pytest.raises(TimeOver):
        again.begin(snapshot)
    again.close()
    clock.now = 500.0
    longer = make(resume=True, clock=clock, seconds=150.0, ends={20, 40, 48})
    assert longer.begin(snapshot).rounds == 40
    clock.now = 549.0
    look(longer, 48)
    assert saved(longer) == [40]


# A full disk --------------------------------------------------------------------------------------


@pytest.fixture
def full_disk(monkeypatch):
    """Switches: whether the disk is full."""
    real, switch = store.save, {"full": False}

    def save(*arguments):
        if switch["full"]:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*arguments)

    monkeypatch.setattr(store, "save", save)
    return switch


def test_playing_goes_on_when_the_disk_is_full(make, full_disk):
    lines, clock = [], Clock()
    kept = make(pace=Pace(10.0), clock=clock, say=lines.append)
    kept.begin(snapshot)
    full_disk["full"] = True
    clock.now = 10.0
    look(kept, 1)
    full_disk["full"] = False
    clock.now = 20.0
    look(kept, 2)
    full_disk["full"] = True
    for clock.now, episodes in ((30.0, 3), (35.0, 4)):
        look(kept, episodes)
    assert saved(kept) == [2]
    went_on = "No space left on device; the run continues,"
    assert lines == [
        f"warning: not saved after episode 1: {went_on} there is no checkpoint yet",
        f"warning: not saved after episode 3: {went_on} checkpoint 0000000002 stays",
    ]


def test_a_run_that_was_asked_to_stop_says_that_it_could_not_be_saved(make, full_disk):
    stop = Stop()
    kept = make(pace=Pace(0.0), stop=stop)
    kept.begin(snapshot)
    look(kept, 1)
    full_disk["full"], stop.by = True, "SIGINT"
    with pytest.raises(OSError, match="No space left"):
        look(kept, 2)
    assert saved(kept) == [1]


# Where a run goes on ------------------------------------------------------------------------------


def left(make, episodes=16):
    """Leave a run behind that has a checkpoint."""
    kept = make(pace=Pace(0.0))
    kept.begin(snapshot)
    look(kept, episodes)
    kept.close()
    return kept


def test_a_run_goes_on_from_its_newest_checkpoint(make):
    left(make)
    lines = []
    kept = make(resume=True, say=lines.append)
    checkpoint = kept.begin(snapshot)
    assert checkpoint.rounds == 16
    np.testing.assert_array_equal(checkpoint.memory["known"], np.full((LIFETIMES, 3), 16))
    assert checkpoint.outcome["reward"].shape == (LIFETIMES, 16)
    assert lines == [f"resuming after episode 16 of 50, from {kept.folder / '0000000016'}"]


def test_a_checkpoint_from_before_blocks_were_saved_is_resumed(make, monkeypatch):
    save = store.save

    def without_blocks(folder, state, about):
        return save(folder, state, {name: about[name] for name in about if name != "blocks"})

    monkeypatch.setattr(store, "save", without_blocks)
    left(make)
    assert make(resume=True).begin(snapshot).rounds == 16


@pytest.mark.parametrize(("first", "fits"), [(8, True), (3, False)])
def test_only_blocks_before_the_checkpoint_must_be_those_of_the_run(make, first, fits):
    left(make, 5)  # in the first block, of 10 episodes
    changed = replace(make(resume=True), blocks=[first, 50 - first])
    with contextlib.closing(changed):
        if fits:
            assert changed.begin(snapshot).rounds == 5
        else:
            with pytest.raises(CheckpointError, match="after episode 5 of a run with other blocks"):
                changed.begin(snapshot)


def test_blocks_are_counted_from_the_checkpoint_that_a_run_goes_on_from(make):
    left(make, 22)  # two blocks are over
    kept = make(resume=True, pace=Pace(seconds=None, blocks=1))
    kept.begin(snapshot)
    for episodes in (25, 30, 39):
        look(kept, episodes)
    assert saved(kept) == [22]
    look(kept, 41)
    assert saved(kept) == [22, 41]


def test_nothing_was_saved_yet(make):
    lines = []
    kept = make(resume=True, say=lines.append)
    assert kept.begin(snapshot) is None
    kept.close()
    (kept.out / ".checkpoints-00c0ffee.partial").mkdir(parents=True)
    (note,) = (kept.out / name for name in FILES.notes)
    note.write_text("")
    assert make(resume=True).begin(snapshot) is None
    assert list(kept.out.iterdir()) == [note]
    assert lines == [f"nothing was saved in {kept.out}: starting at the beginning"]


def test_a_folder_in_which_nothing_was_saved_is_left_as_it_was(make):
    for exists in (False, True):
        kept = make()
        if exists:
            kept.out.mkdir()
        kept.begin(snapshot)
        kept.close()
        assert kept.out.exists() is exists


def test_a_new_run_removes_what_was_there(make):
    """But for results, which stay until those of this run are whole."""
    kept = left(make)
    names = FILES.marker, *FILES.notes, FILES.names[0]
    for name in names:
        (kept.out / name).write_text("")
    kept = make()
    assert kept.begin(snapshot) is None
    assert {path.name for path in kept.out.iterdir()} == {FILES.marker, FILES.names[0]}


@pytest.mark.parametrize("age", [-1, 0, 1])
def test_results_that_are_older_than_the_checkpoint_are_of_a_run_before(make, schedule, age):
    kept = make(keep=True)
    kept.begin(snapshot)
    look(kept, schedule.num_episodes)
    kept.close()
    marker, step = kept.out / FILES.marker, store.newest(kept.folder) / store.MANIFEST
    marker.write_text("")
    time = step.stat().st_mtime_ns + age
    os.utime(marker, ns=(time, time))
    again = make(resume=True)
    again.begin(snapshot)
    assert again.was_over is (age >= 0)


def test_a_folder_without_a_finished_checkpoint(make):
    kept = left(make)
    store.remove(kept.folder / "0000000016")
    with pytest.raises(CheckpointError, match="has no finished checkpoint"):
        make(resume=True).begin(snapshot)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["records.parquet", "mine.txt"], "no checkpoints to resume from, but mine.txt"),
        (["records.parquet", "report.json"], "is over, as report.json says; there is nothing to"),
    ],
)
def test_files_that_no_unfinished_run_leaves(tmp_path, names, words):
    (tmp_path / "out").mkdir()
    for name in names:
        (tmp_path / "out" / name).write_bytes(b"")
    with pytest.raises(CheckpointError, match=words):
        keeper.check_output(tmp_path / "out", overwrite=False, resume=True, files=FILES)


def test_unfinished_runs_are_not_overwritten_by_accident(make):
    out = left(make).out
    with pytest.raises(
        ValueError, match="has checkpoints; pass --resume to continue from them, or"
    ):
        keeper.check_output(out, overwrite=False, resume=False, files=FILES)
    keeper.check_output(out, overwrite=True, resume=False, files=FILES)
    keeper.check_output(out, overwrite=False, resume=True, files=FILES)
    with pytest.raises(ValueError, match="pass one of them"):
        keeper.check_output(out, overwrite=True, resume=True, files=FILES)


def test_only_one_process_at_a_time(make):
    first = make()
    first.begin(snapshot)
    with pytest.raises(ValueError, match="another process is at work in"):
        make().begin(snapshot)
    first.close()
    make().begin(snapshot)


# What must be the same ----------------------------------------------------------------------------


def test_another_seed_is_refused(make):
    left(make)
    with pytest.raises(CheckpointError, match=r"of another run: seed is 0 in it and 1 now$"):
        make(resume=True, seed=1).begin(snapshot)


def test_another_version_is_refused(make, monkeypatch):
    left(make)
    now = np.__version__
    monkeypatch.setattr(np, "__version__", "9.9")
    words = rf"of another run: versions\.numpy is {re.escape(now)} in it and 9\.9 now$"
    with pytest.raises(CheckpointError, match=words):
        make(resume=True).begin(snapshot)


def test_a_shorter_run_is_refused(make, schedule):
    left(make, 45)
    kept = make(resume=True)
    kept.blocks = [40]
    with pytest.raises(CheckpointError, match="after episode 45, but the run is to have 40"):
        kept.begin(snapshot)


def test_the_digest_of_equal_values_is_equal_in_any_order():
    assert digest({"a": 1, "b": [{"c": 2.5, "d": None}]}) == digest(
        {"b": [{"d": None, "c": 2.5}], "a": 1}
    )
    assert digest({"a": [1, 2]}) != digest({"a": [2, 1]})


def test_everything_that_changes_a_result_is_in_the_configuration(schedule, x64):
    base = {"agent": "busy", "lifetimes": 2}
    first = configuration(schedule, **base)
    assert first["precision"] == "float64"
    edits = {"agent": "bandit", "lifetimes": 3, "first_lifetime": 1, "seed": 1, "width": 2, "x": 1}
    for name, value in edits.items():
        (difference,) = differences(first, configuration(schedule, **{**base, name: value}))
        assert difference.startswith(f"{name} is "), difference
    longer = toy.schedule(("1.train", [repeat(11)]), ("1.test", [repeat(10, target=2)]))
    texts = differences(first["schedule"], configuration(longer, **base)["schedule"])
    assert "[0].count is 10 in it and 11 now" in texts
    assert "[1].parameters.target is 1 in it and 2 now" in texts
    assert " has 4 entries in it and 2 now" in texts


def test_where_a_schedule_comes_from_does_not_matter(schedule):
    same = toy.schedule(
        ("1.train", [repeat(10)]),
        ("1.test", [repeat(10, target=1), repeat(20), repeat(10, wheel=2)]),
        name="another",
    )
    one, other = (configuration(s, agent="a", lifetimes=1) for s in (schedule, same))
    assert one == other


def test_differences_are_named_shortly():
    (text,) = differences({"a": "x" * 500}, {"a": 1})
    assert text == f"a is {'x' * MOST_CHARACTERS}... in it and 1 now"
    assert differences({"a": 1}, {"a": 1.0}) == ["a is 1 in it and 1.0 now"]
    assert named(["a", "b", "c", "d", "e"]) == "a; b; c; and 2 more"


# Signals and options ------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_noted_once(number):
    before = signal.getsignal(number)
    lines = []
    with hearing(lines.append) as stop:
        assert stop.by is None
        os.kill(os.getpid(), number)
        assert stop.by == number.name
        assert signal.getsignal(number) == before
    assert len(lines) == 1
    assert signal.getsignal(number) == before


def test_other_threads_hear_nothing():
    before, heard = signal.getsignal(signal.SIGTERM), []

    def listen():
        with hearing(heard.append) as stop:
            heard.append((stop.by, signal.getsignal(signal.SIGTERM)))

    thread = threading.Thread(target=listen)
    thread.start()
    thread.join()
    assert heard == [(None, before)]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90.0), ("10min", 600.0), ("1.5 h", 5400.0), ("0s", 0.0), ("never", None)],
)
def test_times(text, seconds):
    typed = "".join(text)  # no constant of this file, which may be the very object
    assert commands.duration(typed) == seconds


@pytest.mark.parametrize("text", ["", "10", "10m", "-5s", "1e3s", "often", "infs"])
def test_times_that_are_none(text):
    with pytest.raises(ValueError, match="must be a time as 90s, 10min or 2h, or never"):
        commands.duration(text)


@pytest.mark.parametrize(
    ("pace", "words"),
    [
        (Pace(1e9), "checkpoint-every is 1e\\+09 s; it must be from 0 s to 365 days"),
        (Pace(None, 0), "checkpoint-blocks is 0; it must be at least 1"),
    ],
)
def test_paces_out_of_bounds(pace, words):
    with pytest.raises(ValueError, match=words):
        pace.check()


def test_results_that_were_half_written_begin_again(make, tmp_path):
    """A run that died while it wrote its results, before any checkpoint."""
    out = tmp_path / "out"
    (out / ".results-0123abcd.partial" / "logs").mkdir(parents=True)
    (out / "records.parquet").write_bytes(b"")
    keeper.check_output(out, overwrite=False, resume=True, files=FILES)
    assert make(resume=True).begin(snapshot) is None
    assert [path.name for path in out.iterdir()] == ["records.parquet"]
