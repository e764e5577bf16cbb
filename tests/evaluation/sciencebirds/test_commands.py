"""`jaxsim sciencebirds`: files that are generated, trials that are chosen, evaluations that run."""

import csv
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from evaluation import cli, records
from evaluation.sciencebirds import (
    commands,
    demo_agent,
    document,
    generate,
    legacy,
    scheduler,
    selection,
    server,
)
from evaluation.sciencebirds.agent_client import AgentClient
from evaluation.sciencebirds.demo_agent import DemoAgent
from tests.evaluation.sciencebirds.support import evaluation, trial

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples" / "sciencebirds"


def jaxsim(*words) -> int:
    return cli.main(["sciencebirds", *map(str, words)])


def refused(capsys, *words) -> str:
    """The one line about a command that is wrong."""
    assert jaxsim(*words) == 2
    err = capsys.readouterr().err
    assert err.startswith("jaxsim: ") and err.count("\n") == 1
    return err


# --- generate --------------------------------------------------------------------------------


@pytest.mark.requirement(2, 3, 4)
@pytest.mark.parametrize("name", ["unordered_sets", "sequences", "novelty_appears"])
def test_samples_are_generated(name, tmp_path, capsys):
    config = tmp_path / "config.xml"
    meta = EXAMPLES / f"{name}.xml"
    assert jaxsim("generate", meta, "--seed", 1, "-o", config) == 0
    assert document.load(config) == generate.generate(document.load_meta(meta), 1)
    first = config.read_bytes()
    assert re.search(r": \d trials, \d+ training levels, \d", capsys.readouterr().out)
    assert jaxsim("generate", meta, "--seed", 2, "-o", config) == 0
    assert config.read_bytes() != first
    assert jaxsim("generate", meta, "--seed", 1, "-o", config) == 0
    assert config.read_bytes() == first


def test_other_files_are_not_replaced_unless_asked(tmp_path, capsys):
    config = tmp_path / "config.xml"
    config.write_text("my own")
    words = ("generate", EXAMPLES / "sequences.xml", "-o", config)
    assert "was not generated" in refused(capsys, *words)
    assert config.read_text() == "my own"
    assert jaxsim(*words, "--overwrite") == 0
    assert document.load(config).trials
    for more in ((), ("--overwrite",)):
        folder = ("generate", EXAMPLES / "sequences.xml", "-o", tmp_path, *more)
        assert f"--out {tmp_path} is a folder; name a file" in refused(capsys, *folder)


def test_the_demo_agent_by_itself_refuses_a_port_that_there_is_not(capsys):
    with pytest.raises(SystemExit, match="2"):
        demo_agent.main(["--port", "70000"])
    assert "port is 70000; it must be from 1 to 65535" in capsys.readouterr().err


@pytest.mark.requirement(48)
def test_the_original_generates_otherwise(tmp_path):
    config = tmp_path / "config.xml"
    meta = EXAMPLES / "novelty_appears.xml"
    jaxsim("generate", meta, "-o", config)
    ours = document.load(config).trials[0].training.limits.time
    jaxsim("generate", meta, "-o", config, "--legacy", "per-level-time")
    (trial, *_) = document.load(config).trials
    assert trial.training.limits.time == ours * len(trial.training.levels)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("generate", "missing.xml", "-o", "c.xml"), "missing.xml"),
        (("generate", EXAMPLES / "sequences.xml", "-o", "c.xml", "--seed", -1), "seed is -1"),
        (("generate", EXAMPLES / "sequences.xml", "-o", "c.xml", "--pool", 0), "pool is 0"),
        (("generate", EXAMPLES / "sequences.xml", "-o", "c.xml", "--legacy", "x"), "legacy is 'x'"),
        (
            ("generate", EXAMPLES / "sequences.xml", "-o", "c.xml", "--training-time", "x"),
            "training time is 'x'",
        ),
        (
            ("generate", EXAMPLES / "sequences.xml", "-o", "c.xml", "--legacy", "direct-start"),
            "--legacy direct_start has no effect on generate; leave it out",
        ),
        (("serve", "--config", "c.xml", "--pool", 9), "--pool 9 has no effect on the trials of"),
        (("serve", "--config", "c.xml", "--training-time", "x"), "--training-time x has no effect"),
        (
            ("serve", "--config", "c.xml", "--legacy", "all_tests,each_test_once"),
            "--legacy each_test_once has no effect on the trials of --config",
        ),
        (("serve", "--config", "c.xml", "--legacy", "later"), "c.xml"),
        (("serve",), "there is no configMeta.xml"),
        (("serve", "--config", EXAMPLES / "sequences.xml"), "this is a configMeta.xml"),
        (("serve", "--config-meta", "m.xml", "--trial", "x"), "trial is 'x'"),
        (("serve", "--config-meta", "m.xml", "--trial-list", "x"), "x"),
        (("serve", "--config-meta", "m.xml", "--informed-only"), "no trial is left of 1"),
        (("serve", "--config-meta", "m.xml", "--interaction", "x"), "interaction is 'x'"),
        (("serve", "--config-meta", "m.xml", "--dialect", "x"), "dialect is 'x'"),
        (("serve", "--config-meta", "m.xml", "--idle-limit", "nan"), "idle limit is nan"),
        (("serve", "--config-meta", "m.xml", "--steps-per-shot", 0), "steps per shot is 0"),
        (("serve", "--config-meta", "m.xml", "--port", 70000), "cannot listen on 127.0.0.1"),
        (("serve", "--config-meta", "m.xml", "--agent-name", "a/b", "--port", 0), "agent name is"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.xml").write_text((EXAMPLES / "sequences.xml").read_text())
    assert message in refused(capsys, *words)
    assert not (tmp_path / "runs").exists()


def test_trials_are_named_in_one_way(capsys):
    with pytest.raises(SystemExit, match="2"):
        jaxsim("serve", "--config-meta", "m.xml", "--config", "c.xml")
    assert "--config: not allowed with argument --config-meta" in capsys.readouterr().err


def test_a_port_that_is_taken_is_said_in_a_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configMeta.xml").write_text((EXAMPLES / "sequences.xml").read_text())
    with server.listen(port=0) as listener:
        port = listener.getsockname()[1]
        assert f"cannot listen on 127.0.0.1, port {port}" in refused(
            capsys, "serve", "--port", port
        )


def test_defusedxml_is_named_where_it_is_missing(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "defusedxml", None)
    err = refused(capsys, "generate", EXAMPLES / "sequences.xml", "-o", "c.xml")
    assert "pip install 'jaxsim-novelty[sciencebirds]'" in err


def test_help_does_not_wait_for_anything_heavy():
    program = (
        "import sys; from evaluation.cli import build_parser; build_parser(); "
        "sys.exit(any(name in sys.modules for name in ('jax', 'numpy', 'defusedxml')))"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize("place", ["", "StreamingAssets", "ScienceBirds/configMetaSamples"])
def test_documents_are_found_where_the_original_has_them(tmp_path, monkeypatch, capsys, place):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / place
    folder.mkdir(parents=True, exist_ok=True)
    sample = (EXAMPLES / "unordered_sets.xml").read_text()
    (folder / "configMeta.xml").write_text(sample)
    assert cli.main(["sciencebirds", "generate", "configMeta.xml", "-o", "config.xml"]) == 0
    assert "1 trials, 100 training levels" in capsys.readouterr().out


def test_documents_that_are_nowhere(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["sciencebirds", "serve"]) == 2
    line = capsys.readouterr().err
    assert "there is no configMeta.xml or StreamingAssets/configMeta.xml or" in line
    assert cli.main(["sciencebirds", "serve", "--config-meta", "./absent.xml"]) == 2
    assert "absent.xml" in capsys.readouterr().err


@pytest.mark.requirement(2)
def test_a_config_that_is_replaced_is_named(tmp_path):
    """Also if only the seed is new: a file of `generate --seed 1` is served with that seed."""
    meta, config = tmp_path / "configMeta.xml", tmp_path / "config.xml"
    meta.write_text((EXAMPLES / "sequences.xml").read_text())

    def message(seed):
        words = ["sciencebirds", "serve", "--config-meta", str(meta), "--seed", str(seed)]
        return commands._evaluation(cli.build_parser().parse_args(words), ())[1]

    assert message(1) == f"wrote {config}: drawn from {meta} with seed 1"
    assert message(1) == ""
    assert message(0) == f"replaced {config}: drawn from {meta} with seed 0"


# --- which trials ----------------------------------------------------------------------------

FIVE = evaluation(*(trial(1, notify=number % 2 == 1) for number in range(5)))


def numbers(**choice) -> list[int]:
    return [each.number for each in selection.select(FIVE, **choice).trials]


@pytest.mark.requirement(47)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2", [2]),
        ("1-3", [1, 2, 3]),
        ("3-1", [1, 2, 3]),
        ("3-99", [3, 4]),
        ("99", [4]),
        ("0-0", [0]),
    ],
)
def test_a_range_of_trials(text, expected):
    assert numbers(within=selection.trial_range(text)) == expected


@pytest.mark.requirement(47)
@pytest.mark.parametrize("text", ["", "-1", "a", "1-", "1-2-3", "1.5"])
def test_what_is_no_range(text):
    with pytest.raises(ValueError, match="it must be a number from 0, or two as in 0-4"):
        selection.trial_range(text)


@pytest.mark.requirement(47)
def test_a_list_of_trials(tmp_path):
    path = tmp_path / "trials"
    path.write_text("4\n# remark\n1\n\n x \n 0 \n77\n4\n")
    assert selection.trial_list(path) == (4, 1, 0, 77, 4)
    assert numbers(places=selection.trial_list(path)) == [4, 1, 0]
    assert numbers(places=(0, 1, 2, 3), within=(1, 2)) == [1, 2]
    path.write_text("none\n")
    with pytest.raises(ValueError, match="has no number of a trial"):
        selection.trial_list(path)


@pytest.mark.requirement(48)
def test_snapshots_hold_differences_of_each_kind_and_are_never_refused():
    for text in (None, "", "later", "older"):
        for ignored in (legacy.SCHEDULING, legacy.GENERATION):
            legacy.check_effect(text, ignored, "this")


@pytest.mark.requirement(47)
def test_trials_that_tell_of_novelty_and_others():
    assert numbers(informed=True) == [1, 3]
    assert numbers(informed=False) == [0, 2, 4]
    with pytest.raises(ValueError, match="no trial is left of 5"):
        numbers(informed=True, within=(0, 0))


# --- differences of the original -------------------------------------------------------------


@pytest.mark.requirement(48)
def test_names_of_differences():
    assert legacy.names_of(None) == ()
    assert set(legacy.names_of("older")) == {*legacy.SCHEDULING, *legacy.GENERATION}
    assert set(legacy.names_of("later")) == set(legacy.names_of("older")) - {
        "direct_start",
        "count_loads",
    }
    assert legacy.names_of("all-tests, count_loads") == ("all_tests", "count_loads")
    assert set(legacy.SCHEDULING) == set(scheduler.QUIRKS)
    assert legacy.quirks(("all_tests",)) == scheduler.Quirks(all_tests=True)
    expected = generate.GenerateOptions("per_level", "each_once")
    assert legacy.generation(legacy.names_of("later"), generate.GenerateOptions()) == expected


# --- serve -----------------------------------------------------------------------------------

META = """<config_generation>
  <novelty_detection_measurement step="1" measure_in_training="true" measure_in_testing="true"/>
  <trials><trial notify_novelty="both"><count>2</count><repeats>1</repeats>
    <checkpoint interaction="1"/>
    <training>
      <limits interaction="1" attempt_per_level="1"/>
      <game_level_sets>
        <game_level_set novelty_level="1" novelty_type="1" amount="3"/>
      </game_level_sets>
    </training>
    <test><game_level_sets>
      <game_level_set novelty_level="0" novelty_type="1" amount="1" attempt_per_level="1"
        set_appearance_percentage="100"/>
    </game_level_sets></test>
  </trial></trials>
</config_generation>
"""


def test_a_demo_without_a_server_says_what_to_start(capsys):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # bound, but nothing listens
        port = free.getsockname()[1]
        assert cli.main(["sciencebirds", "demo", "--port", str(port)]) == 1
    error = capsys.readouterr().err
    assert f"nothing listens at 127.0.0.1, port {port}; start jaxsim sciencebirds serve" in error
    assert cli.main(["sciencebirds", "demo", "--port", "70000"]) == 2
    assert capsys.readouterr().err == "jaxsim: port is 70000; it must be from 1 to 65535\n"


@pytest.mark.slow
@pytest.mark.requirement(2, 31, 46, 47)
def test_an_evaluation_of_cartpole_from_the_command_line(tmp_path):
    """A server of its own process, generated from its meta, and the demo agent."""
    (tmp_path / "configMeta.xml").write_text(META)
    words = ["serve", "--port", "0", "--seed", "3", "--trial", "0-2", "--uninformed-only"]
    words += ["--results", "results", "--interaction", "episode"]
    command = [sys.executable, "-m", "evaluation.cli", "sciencebirds", *words]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, cwd=tmp_path, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        limit = threading.Timer(240, running.kill)
        limit.start()
        line = running.stdout.readline()
        match = re.match(r"listening on 127\.0\.0\.1, port (\d+); 2 trials", line)
        assert match, running.stderr.read()
        with AgentClient(port=int(match[1]), timeout=60) as client:
            agent = DemoAgent(client)
            agent.run()
        assert running.wait(60) == 0
        limit.cancel()
        assert "the evaluation has ended; results in results" in running.stdout.read()
    assert " ".join(agent.history) == "11 9 L1 12 8 T1 12 11 9 L1 12 8 T1 12 13"
    config = document.load(tmp_path / "config.xml")
    assert config == generate.generate(document.load_meta(tmp_path / "configMeta.xml"), 3)
    (folder,) = (tmp_path / "results").iterdir()
    assert folder.name.startswith(f"Agent_agent_Port_{match[1]}_Evaluation_")
    rows = []
    for path in sorted(folder.glob("*EvaluationData.csv")):
        with path.open(newline="") as file:
            rows += list(csv.DictReader(file))
    assert [row["trial"] for row in rows] == ["0", "0", "2", "2"]
    assert [row["novelty"] for row in rows] == ["novel", "basic"] * 2
    assert all(0 < int(row["Score"]) <= 200 for row in rows)
    assert len(list(folder.glob("*Likelihood.csv"))) == 2
    table = records.read(folder / "records.parquet")
    blocks = [(b.phase, b.mode, b.learning, b.count) for b in table.schedule.blocks]
    assert blocks == [
        (1, "train", True, 1),
        (2, "test", False, 1),
        (3, "train", True, 1),
        (4, "test", False, 1),
    ]
    assert table.columns["length"][0].tolist() == [int(row["Score"]) for row in rows]
    assert table.novelty_levels.tolist() == [1, 0]
    assert table.columns["predicted_probability"][0].tolist() == pytest.approx([0.9] * 4)


@pytest.mark.slow
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.long)]
)
def test_a_server_that_is_ended_in_a_level_keeps_its_records(tmp_path, number):
    (tmp_path / "configMeta.xml").write_text(META)
    words = ["serve", "--port", "0", "--seed", "3", "--results", "results"]
    command = [sys.executable, "-m", "evaluation.cli", "sciencebirds", *words]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, cwd=tmp_path, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        limit = threading.Timer(120, running.kill)
        limit.start()
        port = int(running.stdout.readline().split("port ")[1].split(";")[0])
        with AgentClient(port=port, timeout=60) as client:
            agent = DemoAgent(client)
            while "T1" not in agent.history:
                agent._do(client.get_game_state())
            agent._do(client.get_game_state())
            running.send_signal(number)
            assert running.wait(60) == 128 + number
        limit.cancel()
        err = running.stderr.read()
        assert f"jaxsim: ended by {number.name}" in err and "Traceback" not in err
    (folder,) = (tmp_path / "results").iterdir()
    lengths = records.read(folder / "records.parquet").columns["length"]
    assert lengths.shape[1] >= 1 and (lengths > 0).all()
