"""What is sent to a scheduler, and what is waited for, without submitit."""

import sys
from types import SimpleNamespace

import pytest

from evaluation import sweep
from evaluation.sweep import plans, playing, submitting
from tests.evaluation.sweep import small


class Executor:
    """Keeps what it is given, in place of `submitit.AutoExecutor`."""

    def __init__(self, folder, cluster, slurm_max_num_timeout):
        self.folder, self.cluster, self.parameters = folder, cluster, {}
        self.requeues = slurm_max_num_timeout
        made.append(self)

    def update_parameters(self, **parameters):
        self.parameters.update(parameters)

    def submit_array(self, shares):
        self.shares = shares
        return [SimpleNamespace(job_id=number) for number in range(len(shares))]


made: list[Executor] = []


@pytest.fixture
def scheduler(monkeypatch):
    """An executor in the place of submitit's."""
    made.clear()
    error = type("FailedJobError", (RuntimeError,), {})
    core = SimpleNamespace(utils=SimpleNamespace(FailedJobError=error))
    module = SimpleNamespace(AutoExecutor=Executor, core=core)
    monkeypatch.setitem(sys.modules, "submitit", module)
    return made


@pytest.fixture
def plan(tmp_path):
    return sweep.plan(small.VALUES, tmp_path / "plan", minutes=small.A_PACK)


def test_jobs_share_what_is_left_and_ask_for_what_the_options_say(scheduler, plan, monkeypatch):
    monkeypatch.setattr(submitting.store, "unfinished", lambda plan: [1, 2, 4, 5, 6, 7, 8, 9, 10])
    options = submitting.JobOptions(
        "slurm", 4, 2, "night", "us", 1, 5, 1.5, 7, ("module load",), {"slurm_qos": "low"}
    )
    sent = submitting.submit(plan, options, force=True)
    (executor,) = scheduler
    assert (executor.cluster, executor.folder) == ("slurm", plan.folder / submitting.JOBS)
    assert executor.requeues == 1000  # each of them as long as the job's time
    assert executor.parameters == {
        "name": "small",
        "timeout_min": 7,
        "gpus_per_node": 1,
        "cpus_per_task": 5,
        "mem_gb": 1.5,
        "slurm_array_parallelism": 2,
        "slurm_partition": "night",
        "slurm_account": "us",
        "slurm_setup": [
            "module load",
            submitting.launch.check_of(f"{sys.executable} -c 'import evaluation.sweep'"),
        ],
        "slurm_qos": "low",
    }
    assert [share.numbers for share in executor.shares] == [[1, 6, 10], [2, 7], [4, 8], [5, 9]]
    assert all((share.folder, share.force) == (str(plan.folder), True) for share in executor.shares)
    assert (len(sent.jobs), sent.units) == (4, 9)


def test_no_more_jobs_are_sent_than_units_are_left(scheduler, plan, monkeypatch):
    left = []
    monkeypatch.setattr(submitting.store, "unfinished", lambda plan: left)
    assert submitting.submit(plan, submitting.JobOptions()) == ((), 0)
    left += [4, 7]
    submitting.submit(plan, submitting.JobOptions())
    (executor,) = scheduler
    assert [share.numbers for share in executor.shares] == [[4], [7]]
    assert not any(share.force for share in executor.shares)
    usual = {"slurm_array_parallelism": 2, "cpus_per_task": 2, "mem_gb": 8.0}
    assert usual.items() <= executor.parameters.items()
    assert "slurm_partition" not in executor.parameters
    submitting.submit(plan, submitting.JobOptions("local"))
    assert set(scheduler[1].parameters) == {"name", "timeout_min", "gpus_per_node"}


@pytest.mark.parametrize("failed", [0, 3])
def test_the_command_sends_jobs_to_this_machine_and_waits_for_them(
    scheduler, plan, monkeypatch, failed
):
    waited = []
    monkeypatch.setattr(submitting, "wait", lambda sent: waited.append(sent.units) or failed)
    assert small.sweep("submit", plan.folder, "--local", 3) == 0
    assert (scheduler[0].cluster, len(scheduler[0].shares), waited) == ("local", 3, [])
    assert small.sweep("submit", plan.folder, "--local", 3, "--wait") == bool(failed)
    assert waited == [len(plan.units)]


def test_a_job_plays_its_units_and_says_how_many_failed(plan, monkeypatch):
    calls = []

    def run(plan, numbers, say):
        calls.append((plan.folder, numbers))
        return SimpleNamespace(failed=[1, 2])

    def check_version(plan, force):
        calls.append(force)

    monkeypatch.setattr(playing, "run", run)
    monkeypatch.setattr(playing, "check_version", check_version)
    assert submitting.Share(str(plan.folder), [3, 5], True)() == 2
    assert calls == [True, (plans.load(plan.folder).folder, [3, 5])]


def test_jobs_that_fail_or_die_are_counted(monkeypatch):
    class Job:
        def __init__(self, looks, end):
            self.looks, self.end = looks, end

        def done(self):
            self.looks -= 1
            return self.looks < 0

        def result(self):
            assert self.looks < 0
            if isinstance(self.end, Exception):
                raise self.end
            return self.end

    naps = []
    monkeypatch.setattr(submitting.time, "sleep", naps.append)
    jobs = [Job(0, 0), Job(2, 3), Job(1, RuntimeError("killed")), Job(0, 0)]
    assert submitting.wait(submitting.Sent(jobs, 9)) == 2
    assert naps == [submitting.LOOK] * 3


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("submit", "--local", 2, "--memory", 9), "--memory has no effect with --local"),
        (("submit", "--local", 2, "--setup", "module load"), "--setup has no effect with --local"),
        (("submit", "--local", 2, "--jobs", 3), "--jobs has no effect with --local"),
        (("launch", "--sbatch", "--image", "x"), "--image has no effect with --sbatch"),
        (("launch", "--skypilot", "--time", "3h"), "--time has no effect with --skypilot"),
        (("launch", "--kubernetes", "--partition", "x"), "no effect with --kubernetes; leave it"),
        (("launch", "--sbatch", "--memory", -5), "memory is -5 GB; it must be above 0"),
        (("submit", "--slurm", "--memory", 0), "memory is 0 GB; it must be above 0"),
        (("launch", "--sbatch", "--memory", "nan"), "memory is nan GB"),
    ],
)
def test_options_that_a_scheduler_ignores_are_refused(scheduler, plan, capsys, words, reason):
    command, *options = words
    assert small.sweep(command, plan.folder, *options) == 2
    assert reason in capsys.readouterr().err
    assert not scheduler
