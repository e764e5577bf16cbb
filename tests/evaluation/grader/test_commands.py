"""`jaxsim grade`, and how it finds suites and agents."""

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from evaluation import cli
from evaluation.grader import AgentNotFound, TestSuiteNotFound, commands, containment, loading
from evaluation.grader.loading import load_agent, load_suite

ROOT = Path(__file__).parents[3]

SUITE = """
from evaluation.grader import StepCountEvaluator, TestCase, TestSuite


class Three(TestCase):
    def run(self, agent):
        for _ in range(self.n_runs):
            agent.reset()
            self.evaluator.reset()
            for t in range(agent.step(0)):
                self.evaluator.step({})


def three(n_runs):
    return Three(n_runs, 60.0, n_runs, None, None, StepCountEvaluator())


test_suite = TestSuite("threes", [three(1), three(2)])
other = TestSuite("other", [three(3)])
no_suite = [three(1)]
"""
AGENT = """
import beside


class create_agent:
    def step(self, state):
        print("thinking")
        return beside.STEPS

    def reset(self):
        pass


class Failing(create_agent):
    def step(self, state):
        raise ValueError("lost")


no_agent = 3
"""


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """A directory of one's own with a suite and a submission."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "my_test_suite.py").write_text(SUITE)
    limited = "\ntest_suite.test_cases[0].memory_limit = 2**30\n"
    (tmp_path / "limited_suite.py").write_text(SUITE + limited)
    (tmp_path / "my_agent.py").write_text(AGENT)
    (tmp_path / "beside.py").write_text("STEPS = 3")
    (tmp_path / "broken.py").write_text("import nowhere")
    (tmp_path / "leaving.py").write_text("raise SystemExit(3)")
    (tmp_path / "empty.py").write_text("")
    package = tmp_path / "submissions" / "alice"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from .model import create_agent")
    (package / "model.py").write_text(AGENT.replace("beside.STEPS", "5").replace("beside", "os"))
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


def grade(capsys, *words):
    """Exit code, result and what stands on standard error."""
    code = cli.main(["grade", *words])
    out, err = capsys.readouterr()
    return code, json.loads(out) if out else None, err


@pytest.mark.requirement(69)
@pytest.mark.parametrize(
    ("suite", "agent", "value"),
    [
        ("my_test_suite", "my_agent", 3.0),
        ("my_test_suite.py", "my_agent.py", 3.0),
        ("./my_test_suite.py:test_suite", "my_agent:create_agent", 3.0),
        ("my_test_suite", "submissions/alice", 5.0),
        ("my_test_suite:other", "submissions.alice", 5.0),
    ],
)
def test_suites_and_agents_are_found_by_name(workplace, capfd, suite, agent, value):
    code, result, err = grade(capfd, suite, agent)
    assert code == 0
    assert {each["result"]["value"] for each in result["results"]} == {value}
    assert result["suite_id"] == ("other" if "other" in suite else "threes")
    assert err.count("thinking") == (3 if "other" in suite else 1 + 2)


@pytest.mark.requirement(69)
def test_the_result_goes_to_a_file(workplace, capsys):
    code, result, _ = grade(capsys, "my_test_suite", "my_agent:Failing", "--out", "out/r.json")
    assert (code, result) == (1, None)
    written = json.loads((workplace / "out" / "r.json").read_text())
    errors = [each["result"]["error"] for each in written["results"]]
    assert errors == [{"type": "ValueError", "message": "lost"}] * 2


@pytest.mark.requirement(69)
def test_an_agent_in_a_process_is_imported_there_only(workplace, capfd):
    words = ["my_test_suite", "my_agent.py", "--memory-limit", "1024"]
    code, result, _ = grade(capfd, *words)
    assert code == 0, result
    assert "my_agent" not in sys.modules
    assert [each["result"]["value"] for each in result["results"]] == [3.0, 3.0]


@pytest.mark.parametrize(("words", "limit"), [((), 1 << 30), (("--memory-limit", "2048"), 1 << 31)])
def test_limits_of_a_suite_stay_unless_others_are_given(monkeypatch, capsys, words, limit):
    case = SimpleNamespace(isolate=None, memory_limit=1 << 30)
    suite = SimpleNamespace(test_cases=[case], run=lambda agent: {"results": []})
    monkeypatch.setattr(loading, "load_suite", lambda name: suite)
    monkeypatch.setattr(commands, "_agent", lambda arguments: None)
    assert cli.main(["grade", "a", "b", *words]) == 0
    assert (case.isolate, case.memory_limit) == (True, limit)


HOSTILE = """
import os
import signal
import stat
import subprocess
import sys
import time


class Quiet:
    def step(self, state):
        try:
            self.attack()
        except OSError:
            pass
        return 3

    def reset(self):
        pass


class Leaves(Quiet):
    def attack(self):
        os._exit(0)


class Exits(Quiet):
    def attack(self):
        sys.exit(0)


class Closes(Quiet):
    def attack(self):
        os.close(1)
        sys.stdout.close()


class Writes(Quiet):
    def attack(self):
        os.write(1, b"mine")
        with open(f"/proc/{os.getppid()}/fd/1", "w") as stream:
            stream.write("mine")


class Kills(Quiet):
    def attack(self):
        os.kill(os.getppid(), getattr(signal, os.environ["ATTACK"]))


# Sends the beginning of an answer, before the agent is there.
class Starts(Quiet):
    def __init__(self):
        for number in range(3, 100):
            try:
                if stat.S_ISSOCK(os.fstat(number).st_mode):
                    os.write(number, b"\\0\\0")
                    time.sleep(600)
            except OSError:
                pass


class Blocks(Quiet):
    def attack(self):
        os.makedirs("result.json/x", exist_ok=True)


class Goes(Quiet):
    def attack(self):
        os.makedirs("away", exist_ok=True)
        os.chdir("away")


# Leaves a process that is another one all the time, and leaves every group.
class Hops(Quiet):
    def attack(self):
        if os.path.exists("left"):
            return
        if os.fork() == 0:
            end = time.monotonic() + 60
            while time.monotonic() < end:
                if os.fork():
                    os._exit(0)
                for leave in (os.setsid, lambda: os.setpgid(0, 0)):
                    try:
                        leave()
                    except OSError:
                        pass
                os.close(os.open("left", os.O_CREAT))
                os.utime("left")
            os._exit(0)
        while not os.path.exists("left"):
            pass


class Stays(Quiet):
    def attack(self):
        if os.fork() == 0:
            os.setsid()
            if os.fork():
                os._exit(0)
            with open("left", "w") as file:
                file.write(str(os.getpid()))
            import time

            time.sleep(600)
            os._exit(0)
        while not os.path.exists("left") or not open("left").read():
            pass
"""


@pytest.fixture
def hostile(workplace):
    (workplace / "hostile.py").write_text(HOSTILE)
    return workplace


def graded(agent, *words, **env):
    """`jaxsim grade` as a program of its own: exit code, standard output."""
    program = "import sys; from evaluation.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "grade", "my_test_suite", f"hostile.py:{agent}"]
    place = {"PYTHONPATH": str(ROOT), **env}
    done = subprocess.run(
        [*command, *words], env={**os.environ, **place}, capture_output=True, text=True, timeout=120
    )
    return done.returncode, done.stdout


@pytest.mark.requirement(69)
@pytest.mark.parametrize(
    ("agent", "code", "error"),
    [
        ("Leaves", 1, "the agent's process ended with exit code 0"),
        ("Exits", 1, "0"),
        ("Closes", 0, None),
        ("Writes", 0, None),
    ],
)
def test_an_agent_cannot_end_the_grader_or_write_its_result(hostile, agent, code, error):
    report, out = graded(agent)
    result = json.loads(out)
    assert (report, result["suite_id"]) == (code, "threes")
    for each in result["results"]:
        assert (each["result"]["error"] or {}).get("message") == error
        assert each["result"]["value"] == (0.0 if error else 3.0)


@pytest.mark.requirement(69)
@pytest.mark.parametrize("number", ["SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1"])
def test_a_grader_that_is_killed_has_passed_nobody(hostile, number):
    code, out = graded("Kills", ATTACK=number)
    assert code != 0
    assert out == ""
    (hostile / "result.json").write_text("a grade from before")
    code, out = graded("Kills", "--out", "result.json", ATTACK=number)
    assert code != 0
    assert not (hostile / "result.json").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's subreaper")
def test_what_an_agent_leaves_behind_is_ended(hostile):
    code, out = graded("Stays")
    assert code == 0 and json.loads(out)["suite_id"] == "threes"
    pid = int((hostile / "left").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.requirement(69)
@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's seccomp")
def test_a_process_that_hops_is_ended(hostile):
    code, out = graded("Hops")
    ended = time.time()
    assert code == 0 and json.loads(out)["suite_id"] == "threes"
    time.sleep(1)
    assert (hostile / "left").stat().st_mtime < ended


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"),
    reason="needs Linux's seccomp",
)
def test_nothing_leaves_a_group_that_is_closed():
    """Otherwise one that forks all the time could be another process at each look."""
    program = """
import os, subprocess, sys
from evaluation.grader.one_group import stay_in_group

os.setsid()
assert stay_in_group()
group = os.getpid(), os.getpid()
if os.fork() == 0:
    os.setsid()
    os.setpgid(0, 0)
    assert (os.getsid(0), os.getpgid(0)) == group
    words = "import os; print(os.getsid(0), os.getpgid(0))"
    done = subprocess.run(
        [sys.executable, "-c", words], start_new_session=True, capture_output=True, text=True
    )
    assert tuple(map(int, done.stdout.split())) == group, done
    os._exit(0)
assert os.wait()[1] == 0
"""
    place = {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, **place})
    assert done.returncode == 0


def test_processes_that_cannot_be_ended_leave_no_grade(monkeypatch):
    number = 2**30  # beyond the numbers of processes
    monkeypatch.setattr(containment, "_descendants", lambda pid: [number])
    monkeypatch.setattr(containment, "PATIENCE", 0.01)
    with pytest.raises(OSError, match="cannot be ended; nothing is graded"):
        containment.end_leftovers()


@pytest.mark.skipif(sys.platform != "linux", reason="agents are contained on Linux only")
def test_what_starts_beside_an_agent_does_not_have_the_output():
    program = """
import subprocess
from evaluation.grader.containment import contained

with contained():
    subprocess.run(["echo", "inside"])
subprocess.run(["echo", "outside"])
"""
    place = {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env={**os.environ, **place}, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("outside\n", "inside\n")


def test_a_part_of_an_answer_is_none(hostile):
    suite = hostile / "my_test_suite.py"
    suite.write_text(SUITE.replace("60.0", "1.0"))
    code, out = graded("Starts")
    assert code == 1
    errors = [each["result"]["error"]["type"] for each in json.loads(out)["results"]]
    assert set(errors) == {"TimeoutException"}


def test_a_result_that_cannot_be_written_is_printed(hostile):
    code, out = graded("Blocks", "--out", "result.json")
    assert code == 2 and json.loads(out)["suite_id"] == "threes"


def test_the_result_is_where_it_was_asked_for(hostile, monkeypatch):
    monkeypatch.chdir(hostile)
    code, _ = graded("Goes", "--no-isolate", "--out", "result.json")
    assert code == 0 and json.loads((hostile / "result.json").read_text())["suite_id"] == "threes"


def test_without_isolation_the_agent_is_in_the_grader(hostile):
    code, out = graded("Leaves", "--no-isolate")
    assert (code, out) == (0, "")  # the very thing that isolation is for


WRONG = {
    "no suite": (["absent", "my_agent"], "test suite not found: there is no module 'absent'"),
    "no suite file": (["absent.py", "my_agent"], "test suite not found: there is no file"),
    "no agent": (["my_test_suite", "absent"], "agent not found: there is no module 'absent'"),
    "no agent in the grader itself": (
        ["my_test_suite", "absent", "--no-isolate"],
        "agent not found: there is no module 'absent'",
    ),
    "broken in the grader itself": (
        ["my_test_suite", "broken", "--no-isolate"],
        "cannot be imported: ModuleNotFoundError: No module named 'nowhere'",
    ),
    "memory without a process": (
        ["my_test_suite", "my_agent", "--no-isolate", "--memory-limit", "1024"],
        "--memory-limit needs a process for the agent",
    ),
    "no agent folder": (["my_test_suite", "submissions/bob"], "there is no file 'submissions/bob'"),
    "no name of a suite": (["empty", "my_agent"], "module 'empty' has no 'test_suite'"),
    "no name of an agent": (["my_test_suite", "empty.py"], "file 'empty.py' has no 'create_agent'"),
    "no such name": (["my_test_suite:best", "my_agent"], "has no 'best'"),
    "no suite there": (
        ["my_test_suite:no_suite", "my_agent"],
        "'no_suite' in 'my_test_suite' is a list; it must be a TestSuite",
    ),
    "no agent there": (
        ["my_test_suite", "my_agent:no_agent"],
        "'no_agent' in 'my_agent' is a int; it must be a function or a class",
    ),
    "broken": (
        ["my_test_suite", "broken"],
        "cannot be imported: ModuleNotFoundError: No module named 'nowhere'",
    ),
    "leaving": (["leaving", "my_agent"], "module 'leaving' cannot be imported: SystemExit: 3"),
    "memory": (
        ["my_test_suite", "my_agent", "--memory-limit", "1"],
        "memory-limit is 1; it must be at least 16",
    ),
    "out": (["my_test_suite", "my_agent", "--out", "."], "out . is a folder; name a file"),
    "out of no disk": (
        ["my_test_suite", "my_agent", "--out", "/proc/grade.json"],
        "out /proc/grade.json cannot be written: /",
    ),
    "suite with memory limits": (
        ["limited_suite", "my_agent", "--no-isolate"],
        "case 1 of the suite has a memory_limit, which needs a process",
    ),
}


@pytest.mark.requirement(69)
@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_is_one_line(workplace, capsys, name):
    words, message = WRONG[name]
    code, result, err = grade(capsys, *words)
    assert (code, result) == (2, None)
    assert message in err and err.startswith("jaxsim: ") and err.count("\n") == 1


@pytest.mark.requirement(69)
def test_errors_have_names(workplace):
    with pytest.raises(TestSuiteNotFound, match="absent"):
        load_suite("absent")
    with pytest.raises(AgentNotFound, match="absent"):
        load_agent("absent")


def test_two_submissions_of_one_name_are_two_modules(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    text = "def create_agent():\n    return {!r}\n"
    makers = []
    for folder, name in (("a", "its_agent"), ("b", "its_agent"), ("c", "json")):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / f"{name}.py"
        path.write_text(text.format(folder))
        makers.append(load_agent(f"{path}:create_agent"))
    assert [make() for make in makers] == ["a", "b", "c"]
    modules = [sys.modules[make.__module__] for make in makers]
    assert [module.create_agent for module in modules] == makers
    assert sys.modules["json"] is json  # as it was
    for module in modules:
        del sys.modules[module.__name__]


@pytest.mark.requirement(69)
def test_the_program_itself(workplace):
    """From a shell, with everything it prints."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "evaluation.cli", "grade", "my_test_suite"]

    def run(agent):
        done = subprocess.run(
            [*command, agent], env=environment, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout, done.stderr

    code, out, err = run("my_agent")
    assert code == 0 and json.loads(out)["suite_id"] == "threes"
    assert err.split() == ["thinking"] * 3
    assert run("absent")[::2] == (2, "jaxsim: agent not found: there is no module 'absent'\n")
