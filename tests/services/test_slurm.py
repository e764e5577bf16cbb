"""A sweep on a real Slurm: run by `make test-services`."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

pytest.importorskip("submitit")

from evaluation import sweep
from evaluation.sweep import launch, notes, store, submitting
from tests.evaluation.sweep import small
from tests.services import slurm

ROOT = Path(__file__).parents[2]
PROGRAM = "import sys; from evaluation.cli import main; sys.exit(main())"
JOBS = 6
PATIENCE = 400.0  # s, for jobs of seconds on a machine that others use

pytestmark = [
    pytest.mark.service,
    pytest.mark.skipif(
        bool(slurm.MISSING) or os.geteuid() != 0,
        reason="needs root and Debian's slurmctld, slurmd, slurm-client, munge: run .ci/services",
    ),
]


@pytest.fixture(scope="module")
def cluster():
    with tempfile.TemporaryDirectory(prefix="jaxsim-slurm-") as folder:
        os.chmod(folder, 0o755)
        place = Path(folder) / "cluster"
        place.mkdir()
        with slurm.running(place) as cluster:
            yield cluster


@pytest.fixture
def slurmed(cluster, monkeypatch):
    """The environment that jobs are sent from."""
    monkeypatch.setenv("SLURM_CONF", str(cluster.conf))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return cluster


VALUES = {
    **small.VALUES,
    "lanes": 32,
    "axes": {**small.VALUES["axes"], "pole/length": {"linear": [0.3, 2.0], "count": 8}},
}
"""48 cells; two are a pack, so 24 units of a pack."""


def until(what, patience=PATIENCE):
    """Wait for something to be there, and return it."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        result = what()
        if result:
            return result
        time.sleep(0.05)
    raise TimeoutError(what)


def test_killed_and_preempted_jobs_give_the_same_bytes(slurmed, tmp_path):
    plan = sweep.plan(VALUES, tmp_path / "plan", minutes=small.A_PACK)
    assert len(plan.units) == 24
    options = submitting.JobOptions(jobs=JOBS, cpus=1, memory=1.0, minutes=30)
    sent = submitting.submit(plan, options)
    assert (len(sent.jobs), sent.units) == (JOBS, 24)
    shares = [range(24)[k::JOBS] for k in range(JOBS)]
    array = str(sent.jobs[0].job_id).split("_")[0]

    def at_play(but=()):
        """Processes that play a unit now, other than some."""
        return [one.pid for one in notes.running(plan) if one.units and one.pid not in but]

    killed = []
    for _ in range(2):
        pid = until(lambda: at_play(killed))[0]
        os.kill(pid, signal.SIGKILL)
        killed.append(pid)

    def stopped():
        """Process stopped in a unit of its job with more to play, and its job; None without one."""
        for pid in at_play(killed):
            with contextlib.suppress(OSError):
                task = _task(pid)
                os.kill(pid, signal.SIGSTOP)
                share = shares[int(task.split("_")[1])]
                if len(set(store.unfinished(plan)).intersection(share)) > 1:
                    return pid, task
                os.kill(pid, signal.SIGCONT)
        return None

    # Preempted: Slurm sends USR2, and submitit has the job queued again. The process is stopped
    # until the signal waits for it, or it could have ended before.
    pid, task = until(stopped)
    slurmed.call("scancel", "--signal=USR2", task)
    until(lambda: _waits(pid, signal.SIGUSR2))
    os.kill(pid, signal.SIGCONT)
    until(lambda: b"DUE TO JOB REQUEUE" in _log(plan, task))

    def over():
        states = slurmed.states(array)
        return states if not {"RUNNING", "PENDING", "COMPLETING"} & set(states.values()) else None

    states = until(over)
    assert sorted(states.values()) == ["COMPLETED"] * 4 + ["FAILED"] * 2, states
    assert re.search(r"Restarts=[1-9]", slurmed.call("scontrol", "show", "job", task))
    status = sweep.status(plan)
    assert 0 < status.done < 24
    # Sent again, it sends what is left.
    again = submitting.submit(plan, options)
    assert again.units == 24 - status.done
    assert submitting.wait(again) == 0
    assert submitting.submit(plan, submitting.JobOptions()).jobs == ()
    sweep.merge(plan)
    # One process of the command, and one call of Python with one unit a program.
    local = sweep.plan(VALUES, tmp_path / "local", minutes=small.A_PACK)
    words = [sys.executable, "-c", PROGRAM, "sweep", "run", str(local.folder), "--local", "1"]
    assert subprocess.run(words, check=False).returncode == 0
    big = sweep.plan(VALUES, tmp_path / "big")
    assert len(big.units) == 2
    assert sweep.run(big).played == 2
    for other in (local, big):
        sweep.merge(other)
        assert small.merged(other.folder) == small.merged(plan.folder)


def _task(pid):
    """Job of Slurm that a process is of, as ARRAY_TASK."""
    words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    env = dict(word.split(b"=", 1) for word in words if b"=" in word)
    return f"{env[b'SLURM_ARRAY_JOB_ID'].decode()}_{env[b'SLURM_ARRAY_TASK_ID'].decode()}"


def _waits(pid, number):
    """Whether a signal was sent to a process and not yet delivered."""
    status = Path(f"/proc/{pid}/status").read_text()
    masks = re.findall(r"^S(?:ig|hd)Pnd:\s*(\w+)$", status, re.MULTILINE)
    assert len(masks) == 2, status
    return any(int(mask, 16) >> (number - 1) & 1 for mask in masks)


def _log(plan, task):
    return b"".join(p.read_bytes() for p in submitting.logs(plan).glob(f"{task}_*log.*"))


def test_the_script_for_sbatch_plays(slurmed, tmp_path):
    plan = sweep.plan(small.VALUES, tmp_path / "plan", minutes=small.A_PACK)
    script = tmp_path / "job.sbatch"
    text = launch.text(plan, "sbatch", jobs=2, cpus=1, memory=1.0)
    script.write_text(text)
    slurmed.call("sbatch", "--test-only", str(script))
    # The program is on the PATH of a job.
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    out = slurmed.call(
        "sbatch",
        "--parsable",
        "--wait",
        f"--export=ALL,PATH={path}",
        f"--output={tmp_path}/%a.log",
        str(script),
    )
    assert out.strip().isdecimal()
    assert sweep.status(plan).done == 12
