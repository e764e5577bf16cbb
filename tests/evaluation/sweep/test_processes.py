"""Processes that play in one folder and die: the merged bytes are those of a run nobody touched."""

import contextlib
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from evaluation import sweep
from evaluation.checkpoints.stopping import STOPPED
from evaluation.sweep import notes, playing, store
from tests.evaluation.sweep import small

ROOT = Path(__file__).parents[3]
PROGRAM = "import sys; from evaluation.cli import main; sys.exit(main())"
KILLS = 12
"""Of `sweep run`, in the test; `python -m tests.evaluation.sweep.test_processes 200` sends more."""
ABREAST = 4
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGUSR2)

pytestmark = pytest.mark.long

VALUES = {
    **small.VALUES,
    "lanes": 64,
    "axes": {**small.VALUES["axes"], "seed": {"integers": [0, 19]}},
}
"""240 cells: 6 of a seed are two packs, so 80 units."""


def started(folder):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "sweep", "run", str(folder), "--quiet", "--threads", "1"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def whole(folder):
    plan = sweep.plan(VALUES, folder)
    playing.run(plan)
    sweep.merge(plan)
    return small.merged(plan.folder)


def killed(plan, kills, seed=0):
    """Kill processes, four at a time on one folder, at random moments; return what was sent.

    A unit is taken away now and then, as long as kills are left, so that there is always work.
    """
    draw, sent, running = random.Random(seed), 0, []
    try:
        while sent < kills:
            running = [one for one in running if one.poll() is None]
            while len(running) < ABREAST:
                running.append(started(plan.folder))
            finished = small.finished(plan)
            if len(finished) > len(plan.units) // 2:
                for number in draw.sample(sorted(finished), len(finished) // 2):
                    for result in finished[number]:
                        result.rows.unlink(missing_ok=True)
            # Those that are at play are hit, and sometimes those that are still beginning.
            at_play = {one.pid for one in notes.running(plan) if one.units}
            able = [one for one in running if one.pid in at_play]
            if draw.random() < 0.1:
                able = able or running
            if able:
                time.sleep(draw.uniform(0, 0.3))
                victim = draw.choice(able)
                if victim.poll() is None:
                    victim.send_signal(draw.choice(SIGNALS))
                    sent += 1
            time.sleep(0.02)
    finally:
        for one in running:
            one.kill()
            one.wait()
    return sent


def test_random_kills_lose_nothing(tmp_path):
    plan = sweep.plan(VALUES, tmp_path / "plan", minutes=small.A_PACK)
    assert killed(plan, KILLS) == KILLS
    assert playing.run(plan).failed == []
    assert all(len(results) == 1 for results in small.finished(plan).values())
    sweep.merge(plan)
    assert small.merged(plan.folder) == whole(tmp_path / "whole")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR2, signal.SIGINT])
def test_a_signal_leaves_whole_units_and_says_so(tmp_path, number):
    plan = sweep.plan(VALUES, tmp_path / "plan", minutes=small.A_PACK)
    process = started(plan.folder)
    end = time.monotonic() + 200
    while not small.finished(plan) and time.monotonic() < end:
        time.sleep(0.02)
    process.send_signal(number)
    assert process.wait(200) == STOPPED
    done = len(small.finished(plan))
    assert 0 < done < len(plan.units)
    assert not [p for p in (plan.folder / store.UNITS).rglob("*") if p.name.startswith(".")]
    assert not list((plan.folder / notes.RUNNING).iterdir())


@pytest.mark.parametrize("kind", ["processes", "submitit"])
def test_executors_of_processes_play_units(tmp_path, monkeypatch, kind):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    values = {**VALUES, "axes": {"seed": [0, 1], "agent": ["nothing"]}}
    plan = sweep.plan(values, tmp_path / "plan", minutes=small.A_PACK)
    with contextlib.ExitStack() as stack:
        if kind == "processes":
            spawn = multiprocessing.get_context("spawn")
            executor = stack.enter_context(ProcessPoolExecutor(2, mp_context=spawn))
        else:
            submitit = pytest.importorskip("submitit")
            executor = submitit.AutoExecutor(folder=tmp_path / "jobs", cluster="local")
        out = sweep.run(plan, executor=executor)
    assert (out.played, out.failed) == (2, [])
    assert len(small.finished(plan)) == 2


def test_a_worker_of_dask_that_is_killed_loses_nothing(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    plan = sweep.plan(VALUES, tmp_path / "plan", minutes=small.A_PACK)
    with contextlib.ExitStack() as stack:
        cluster = distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            host="127.0.0.1",
        )
        stack.enter_context(cluster)
        client = stack.enter_context(distributed.Client(cluster))
        killed = []

        def kill():
            end = time.monotonic() + 200
            while len(killed) < 3 and time.monotonic() < end:
                at_play = [one.pid for one in notes.running(plan) if one.units]
                able = [pid for pid in at_play if pid not in killed and pid != os.getpid()]
                if able and len(small.finished(plan)) >= 8 * len(killed):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(able[0], signal.SIGKILL)
                        killed.append(able[0])
                time.sleep(0.01)

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        out = sweep.run(plan, executor=client.get_executor())
        killer.join()
    assert len(killed) == 3
    assert out.failed == []
    assert out.played + out.skipped == len(plan.units)
    sweep.merge(plan)
    assert small.merged(plan.folder) == whole(tmp_path / "whole")


def main():
    """Send as many kills as the first argument says; ends with an error if a byte differs."""
    import tempfile

    kills = int(sys.argv[1])
    with tempfile.TemporaryDirectory() as place:
        plan = sweep.plan(VALUES, Path(place) / "plan", minutes=small.A_PACK)
        began = time.monotonic()
        sent = killed(plan, kills)
        playing.run(plan)
        sweep.merge(plan)
        same = small.merged(plan.folder) == whole(Path(place) / "whole")
        print(f"{sent} kills in {time.monotonic() - began:.0f} s; equal: {same}")
        sys.exit(not same)


if __name__ == "__main__":
    main()
