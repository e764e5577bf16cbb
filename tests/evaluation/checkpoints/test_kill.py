"""A run that is killed at any moment goes on to the very same files."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evaluation import records
from evaluation.checkpoints import store
from evaluation.checkpoints.stopping import STOPPED
from tests.evaluation import learner, toy
from tests.evaluation.toy import repeat

pytestmark = [pytest.mark.slow, pytest.mark.long]

ROOT = Path(__file__).parents[3]
LIFETIMES, EPISODES = 70, 640
FILES = ("records.parquet", "report.html", "report.json", "schedule.json")
PATIENCE = 900  # s, of a machine that others use too


def syllabus():
    cartpole = {"task": "CartPole"}
    return toy.syllabus(
        ("1.train", [repeat(EPISODES // 2, **cartpole)]),
        ("1.test", [repeat(EPISODES // 4, **cartpole)]),
        ("2.train", [repeat(EPISODES // 4, **cartpole)]),
    )


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    path = tmp_path_factory.mktemp("plan") / "learn.json"
    path.write_text(syllabus())
    return path


def start(plan, out, *more, moment="none", number=0):
    """Start the command; it saves after each segment."""
    words = [
        "run",
        plan,
        "--agent",
        learner.NAME,
        "--lifetimes",
        LIFETIMES,
        "--out",
        out,
        "--quiet",
    ]
    pace = ["--checkpoint-every", "0s"]
    module = "tests.evaluation.checkpoints.child"
    arguments = [sys.executable, "-m", module, moment, number, *words, *pace, *more]
    return subprocess.Popen(
        [str(word) for word in arguments],
        cwd=ROOT,
        env=dict(os.environ),
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    """Wait for the end; return exit code and standard error."""
    _, errors = process.communicate(timeout=PATIENCE)
    return process.returncode, errors


def saved(out):
    return [int(step.name) for step in store.steps(out / store.FOLDER)]


def wait_for(process, out, more_than):
    """Wait until a checkpoint is there that was not."""
    end = time.monotonic() + PATIENCE
    while (saved(out) or [-1])[-1] <= more_than and time.monotonic() < end:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)


def kill_and_resume(plan, out, wait, *more):
    """Kill a run some time after it has saved something; then go on until it is killed again."""
    for index, seconds in enumerate(wait):
        before = (saved(out) or [-1])[-1]
        process = start(plan, out, *more, *resuming(index))
        wait_for(process, out, before)
        time.sleep(seconds)
        process.kill()
        code, errors = finish(process)
        assert code == -signal.SIGKILL, errors


def resuming(index):
    """Every start but the first goes on with what is there."""
    return ["--resume"] if index else []


def contents(out):
    assert {path.name for path in out.iterdir()} == set(FILES)
    return {name: (out / name).read_bytes() for name in FILES}


@pytest.fixture(scope="module")
def uninterrupted(plan, tmp_path_factory):
    """Files of runs that nothing has interrupted, by width."""
    files = {}
    for width in (1, 5):
        out = tmp_path_factory.mktemp("whole") / "out"
        code, errors = finish(start(plan, out, "--width", width, "--threads", 1))
        assert (code, errors) == (0, "")
        files[width] = contents(out)
        # An agent that learned nothing would go on from any memory.
        score = records.read(out / "records.parquet").columns["performance"]
        assert score[:, -80:].mean() > score[:, :80].mean() + 0.03
    return files


# Other numbers of threads and lanes for the last start: results do not depend on them.
OTHERWISE = ["--threads", 2, "--chunk", 64]


def test_killed_at_three_random_moments(plan, uninterrupted, tmp_path):
    """And gone on with with another number of threads, in other chunks."""
    out, draw = tmp_path / "out", random.Random(1)
    moments = [draw.uniform(0.0, 0.3) for _ in range(3)]
    words = ["--width", 1]
    kill_and_resume(plan, out, moments, *words, "--threads", 1)
    code, errors = finish(start(plan, out, *words, *OTHERWISE, "--resume"))
    assert code == 0, errors
    assert "resuming after episode" in errors
    assert contents(out) == uninterrupted[1]


def test_killed_wherever_it_saves(plan, uninterrupted, tmp_path):
    """One run: each start goes on after the kill before it. Calls are counted anew each time."""
    out, words = tmp_path / "out", ["--width", 5]
    kills = (
        ("arrays", 4, []),  # the first save
        ("rename", 1, []),
        ("rename", 2, [16]),  # the second
        ("rename", 3, [16, 32, 48]),  # 48 has its name, and 16 is to lose its own
        ("prune", 1, [16, 32, 48, 64]),  # 64 has its name; 16 and 32 are to go
    )
    for index, (moment, number, left) in enumerate(kills):
        more = [*words, "--threads", 1, *resuming(index)]
        process = start(plan, out, *more, moment=moment, number=number)
        code, errors = finish(process)
        assert code == -signal.SIGKILL, errors
        assert saved(out) == left, (moment, number)
    code, errors = finish(start(plan, out, *words, *OTHERWISE, "--resume"))
    assert code == 0, errors
    assert contents(out) == uninterrupted[5]


def test_killed_wherever_it_writes_its_results(plan, uninterrupted, tmp_path):
    """Nothing was saved before, so that it plays again; what the kill before has left goes."""
    out = tmp_path / "out"
    words = ["--width", 5, "--threads", 1, "--checkpoint-every", "1h"]
    kills = (("write", 2), ("write", len(FILES)), ("move", 1), ("move", len(FILES) - 1))
    for index, (moment, number) in enumerate(kills):
        process = start(plan, out, *words, *resuming(index), moment=moment, number=number)
        code, errors = finish(process)
        assert code == -signal.SIGKILL, errors
        assert not (out / "report.json").exists() and saved(out) == []
    code, errors = finish(start(plan, out, *words, "--resume"))
    assert code == 0, errors
    assert contents(out) == uninterrupted[5]


def test_asked_to_stop(plan, uninterrupted, tmp_path):
    """Twice, by either signal; the second time it had been resumed."""
    out, words = tmp_path / "out", ["--width", 1, "--threads", 1]
    for index, number in enumerate((signal.SIGTERM, signal.SIGINT)):
        before = (saved(out) or [-1])[-1]
        process = start(plan, out, *words, *resuming(index))
        wait_for(process, out, before)
        process.send_signal(number)
        code, errors = finish(process)
        assert code == STOPPED, errors
        *resumed, asked_line, saved_line = errors.splitlines()
        assert len(resumed) == index, errors
        assert asked_line.startswith(f"jaxsim: {number.name}: saving when this segment is over")
        assert saved_line.startswith(f"jaxsim: {number.name}: saved {out / store.FOLDER}")
        assert saved_line.endswith("to resume, give the same command with --resume")
    code, errors = finish(start(plan, out, *words, "--resume"))
    assert code == 0, errors
    assert contents(out) == uninterrupted[1]
