"""`jaxsim gvgai`: what it prints and writes, and what it says of wrong input."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from evaluation import cli, records
from evaluation.gvgai.results import read_results
from evaluation.gvgai.server import LOOPBACK, TrackServer
from evaluation.gvgai.track import default_track, loads
from tests.evaluation.gvgai.scripted import track
from tests.evaluation.gvgai.wire import Peer
from tests.ports import free_port

ROOT = Path(__file__).parents[3]
AGENT = """
from evaluation.gvgai import TrackAgent as Base

class Agent(Base):
    def act(self, sso, elapsed_timer):
        return "ACTION_ESCAPE" if sso.gameTick == 2 else "ACTION_LEFT"

    def result(self, sso, elapsed_timer):
        return 0
"""


@pytest.fixture
def files(tmp_path):
    """An agent, a track with few plays, and a place for results."""
    (tmp_path / "agent.py").write_text(AGENT)
    # A loaded machine must not decide how a test ends.
    patient = {"act_seconds": 20.0, "act_hard_seconds": 20.0, "init_seconds": 20.0}
    rules = {"most_plays": 2, "start_seconds": 20.0, **patient}
    (tmp_path / "track.json").write_text(track(**rules).dumps())
    return tmp_path


def run(*words):
    return cli.main(["gvgai", *map(str, words)])


@pytest.mark.requirement(93)
def test_an_agent_plays_in_this_process(files, capsys):
    out = files / "out"
    code = run("run", "--agent", files / "agent.py", "--track", files / "track.json", "--out", out)
    assert code == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == (
        "[TRAINING] Result (1->win; 0->lose): level:0, Player0:-1, Player0-Score:2.0, timesteps:2"
    )
    results = read_results(out / "results.jsonl")
    assert [r.level for r in results] == [0, 1, 3, 4]
    assert [r.line for r in results] == [line for line in lines if "Result" in line]
    table = records.read(out / "records.parquet")
    assert table.columns["length"].tolist() == [[2, 2, 2, 2]]
    assert loads((out / "track.json").read_text()).rules.most_plays == 2
    # Not over results that are there.
    assert run("run", "--agent", files / "agent.py", "--out", out) == 2
    assert "not empty" in capsys.readouterr().err


@pytest.mark.parametrize("where", ["", "    def __init__(self):\n        "])
def test_an_agent_that_goes_to_another_folder(files, where, monkeypatch):
    """Results lie where they were asked for."""
    (files / "away").mkdir()
    monkeypatch.chdir(files)
    (files / "agent.py").write_text(f"import os\n{AGENT}\n{where}os.chdir('away')\n")
    assert run("run", "--agent", "agent.py", "--track", "track.json", "--out", "out") == 0
    assert {path.name for path in (files / "out").iterdir()} == {
        *("records.parquet", "results.jsonl", "track.json")
    }
    assert not list((files / "away").iterdir())


def test_an_agent_that_is_disqualified_is_an_error(files, capsys):
    (files / "agent.py").write_text(AGENT + "    def __init__(self): 1 / 0\n")
    arguments = ("--agent", files / "agent.py", "--track", files / "track.json")
    assert run("run", *arguments, "--out", files / "out", "--quiet") == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert "ended early: the constructor failed or was late (ZeroDivisionError" in output.err
    (result,) = read_results(files / "out" / "results.jsonl")
    assert result.winner == -100
    assert not (files / "out" / "records.parquet").exists()


def test_a_server_and_a_client(files, capsys):
    out, codes = files / "served", []
    port = free_port()

    def serve():
        codes.append(run("serve", "--track", files / "track.json", "--port", port, "--out", out))

    thread = threading.Thread(target=serve)
    thread.start()
    code = _until_it_listens(lambda: run("connect", "--agent", files / "agent.py", "--port", port))
    thread.join()
    assert (code, codes) == (0, [0])
    assert f"listening at {LOOPBACK}:{port}" in capsys.readouterr().out
    assert [r.level for r in read_results(out / "results.jsonl")] == [0, 1, 3, 4]
    assert (out / "records.parquet").exists()


def test_several_clients_have_a_directory_each(files, capsys):
    out, codes, port = files / "served", [], free_port()
    words = ("--track", files / "track.json", "--port", port, "--out", out, "--sessions", "2")
    thread = threading.Thread(target=lambda: codes.append(run("serve", *words)))
    thread.start()
    peer = _until_it_listens(lambda: Peer((LOOPBACK, port)))
    peer.until("ACT")
    peer.close()
    assert (
        _until_it_listens(
            lambda: run("connect", "--agent", files / "agent.py", "--port", port, "--form", "BOTH")
        )
        == 0
    )
    thread.join()
    assert codes == [1]  # that of the worse client
    assert [r.aborted for r in read_results(out / "0" / "results.jsonl")] == [True]
    assert len(read_results(out / "1" / "results.jsonl")) == 4
    assert "ended early: no more replies" in capsys.readouterr().err


def test_a_server_that_is_ended_between_clients_keeps_their_records_apart(files, monkeypatch):
    out, port, next_client = files / "served", free_port(), TrackServer._next_client
    waits = []

    def interrupted(server):
        if server._lifetime:
            waits.append(server._lifetime)
            raise KeyboardInterrupt
        return next_client(server)

    monkeypatch.setattr(TrackServer, "_next_client", interrupted)
    words = ("--track", files / "track.json", "--port", port, "--out", out, "--sessions", "2")
    connecting = ("connect", "--agent", files / "agent.py", "--port", port)
    thread = threading.Thread(target=_until_it_listens, args=(lambda: run(*connecting),))
    thread.start()
    assert run("serve", *words) == 130
    thread.join()
    assert waits == [1]
    assert (out / "0" / "records.parquet").exists()
    assert not (out / "1" / "records.parquet").exists()


@pytest.mark.slow
def test_a_server_that_is_ended_in_a_level_keeps_its_records(files):
    out = files / "served"
    words = ["serve", "--track", files / "track.json", "--port", "0", "--out", out]
    command = [sys.executable, "-m", "evaluation.cli", "gvgai", *map(str, words)]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        limit = threading.Timer(120, running.kill)
        limit.start()
        port = int(running.stdout.readline().rpartition(":")[2])
        peer = Peer((LOOPBACK, port))
        peer.answer(peer.until("ABORT"), "0")
        peer.until("ACT")
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 128 + signal.SIGTERM
        limit.cancel()
        err = running.stderr.read()
        peer.close()
    assert "jaxsim: ended by SIGTERM" in err and "Traceback" not in err
    assert records.read(out / "records.parquet").columns["length"].shape[1] >= 1
    assert len(read_results(out / "results.jsonl")) >= 1


def _until_it_listens(attempt):
    """Try again until somebody listens; a command says 2 for nobody."""
    for _ in range(2000):
        try:
            result = attempt()
        except OSError:
            result = 2
        if result != 2:
            return result
        time.sleep(0.03)  # a server imports its packages first
    raise AssertionError("nobody listens")


def test_the_track_is_printed_as_it_would_be_played(capsys):
    assert run("track", "--preset", "gvgai2017", "--validation-times", "3") == 0
    printed = loads(capsys.readouterr().out)
    assert printed.levels == default_track().levels
    rules = printed.rules
    assert (rules.learning_seconds, rules.validation_times) == (300, 3)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "--agent", "missing.py"], "agent missing.py is not a file"),
        (["run", "--agent", "{}/bad.py"], "cannot be imported: SyntaxError"),
        (["run", "--agent", "{}/empty.py"], "has no class Agent; define one"),
        (["run", "--agent", "{}/half.py"], "lacks result; define them"),
        (["run", "--agent", "{}/other.py"], "has no method init; define it"),
        (["run", "--agent", "{}/agent.txt"], "not a Python file; its name must end in .py"),
        (["run", "--agent", "{}/agent.py", "--track", "{}/empty.py"], "empty.py:2:1"),
        (["run", "--agent", "{}/agent.py", "--preset", "x"], "preset is 'x'"),
        (["run", "--agent", "{}/agent.py", "--learning-seconds", "0"], "learning_seconds is 0.0"),
        (["run", "--agent", "{}/agent.py", "--on-overspent", "x"], "disqualify or abort_level"),
        (["run", "--agent", "{}/agent.py", "--seed", "-1"], "seed is -1"),
        (["serve", "--sessions", "0"], "sessions is 0"),
        (["serve", "--port", "70000", "--track", "{}/track.json"], "port is 70000"),
        (
            ["connect", "--agent", "{}/agent.py", "--port", "1"],
            "nothing listens at 127.0.0.1, port 1",
        ),
        (
            ["connect", "--agent", "{}/agent.py", "--port", "65536"],
            "port is 65536; it must be from 1",
        ),
        (["track", "--track", "missing.json"], "missing.json"),
    ],
    ids=lambda value: None,
)
def test_wrong_input_is_one_line_and_code_2(files, capsys, words, message):
    (files / "bad.py").write_text("class Agent(:\n")
    (files / "empty.py").write_text("\n")
    (files / "half.py").write_text(AGENT.partition("    def result")[0])
    (files / "other.py").write_text("class Agent:\n    act = result = print\n")
    (files / "agent.txt").write_text(AGENT)
    assert run(*(word.format(files) for word in words)) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert error.startswith("jaxsim: ")


def track_file(path, parameters=None, task="CartPole3D"):
    """Write a track of five equal levels."""
    level = {"task": task, "parameters": parameters or {}}
    path.write_text(json.dumps({"name": "five", "levels": [level] * 5}))


@pytest.mark.parametrize(
    ("level", "message"),
    [
        ({"task": "CartPole3DLeans"}, "task 'CartPole3DLeans' does not report what CartPole3D"),
        (
            {"parameters": {"sensors/image/height": 32}},
            "with sensors/image/height, task 'CartPole3D' does not report what CartPole3D reports, "
            "so no observation can be made of it; leave that out",
        ),
    ],
)
def test_levels_that_cannot_be_played_leave_earlier_results(files, capsys, level, message):
    track, out = files / "odd.json", files / "results"
    track_file(track, **level)
    out.mkdir()
    (out / "results.jsonl").write_text("from before")
    options = ("--track", track, "--out", out, "--overwrite")
    for words in (("run", "--agent", files / "agent.py"), ("serve",)):
        assert run(*words, *options) == 2
        assert message in capsys.readouterr().err
    assert [path.read_text() for path in out.iterdir()] == ["from before"]


@pytest.mark.parametrize("words", [("--seed", 5_000_000_000), ("--lifetime", -1)])
def test_a_wrong_number_leaves_earlier_results(files, monkeypatch, capsys, words):
    def listening(*values, **options):
        raise AssertionError("a server listens")

    monkeypatch.setattr("evaluation.gvgai.server.TrackServer", listening)
    agent, track = files / "agent.py", files / "track.json"
    out = files / "results"
    out.mkdir()
    for name in ("records.parquet", "results.jsonl", "track.json"):
        (out / name).write_text("from before")
    options = ("--track", track, "--out", out, "--overwrite")
    assert run("run", "--agent", agent, *options, *words) == 2
    assert {path.read_text() for path in out.iterdir()} == {"from before"}
    assert run("serve", *options, *words) == 2
    assert run("serve", *options, "--sessions", 2, "--lifetime", 2**32 - 1) == 2
    assert "lifetime is 4294967296; it must be from 0" in capsys.readouterr().err
    assert {path.read_text() for path in out.iterdir()} == {"from before"}


def test_the_last_lifetime_is_played(files, capsys):
    agent, track = files / "agent.py", files / "track.json"
    out = files / "results"
    words = ("--track", track, "--out", out, "--lifetime", 2**32 - 1, "--quiet")
    assert run("run", "--agent", agent, *words) == 0
    lines = (out / "results.jsonl").read_text().splitlines()
    assert {json.loads(line)["lifetime"] for line in lines} == {2**32 - 1}
    assert records.read_run(out).first_lifetime == 2**32 - 1


def test_a_client_takes_the_rules_of_a_track_and_says_where_it_looked(files, monkeypatch, capsys):
    agent, track = files / "agent.py", files / "track.json"
    given = {}

    def connect(make, rules, **options):
        given.update(options, rules=rules)
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr("evaluation.gvgai.client.connect", connect)
    text = json.loads(track.read_text())
    text["rules"] = {**text.get("rules", {}), "act_seconds": 5.0, "act_hard_seconds": 6.0}
    track.write_text(json.dumps(text))
    assert run("connect", "--agent", agent, "--track", track, "--port", 8099) == 2
    assert (given["rules"].act_seconds, given["rules"].act_hard_seconds) == (5, 6)
    error = capsys.readouterr().err
    assert "nothing listens at 127.0.0.1, port 8099; start jaxsim gvgai serve first" in error


@pytest.mark.slow
@pytest.mark.requirement(73, 97)
def test_the_shipped_agent_plays_the_shipped_track(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    document = json.loads(Path("examples/gvgai/cartpole3d.json").read_text())
    patient = {"act_seconds": 60, "act_hard_seconds": 60, "init_seconds": 60, "most_plays": 3}
    document["rules"] |= patient
    mine = tmp_path / "track.json"
    mine.write_text(json.dumps(document))
    assert run("run", "--agent", "examples/gvgai/agent.py", "--track", mine) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "Result" in line]
    assert [int(level) for level in re.findall(r"level:(\d)", "".join(lines))] == [0, 1, 2, 3, 4]
    # It balances the nominal pole to the end.
    assert "Player0:1" in lines[0] and lines[0].endswith("timesteps:200")
