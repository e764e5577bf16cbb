"""`jaxsim sailon serve` on a real broker: run by `make test-services`."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pika")

from evaluation import sailon
from evaluation.sailon import experiment
from tests.evaluation.sailon.test_serve import amqp_agent
from tests.services import rabbitmq

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "sailon"

pytestmark = [
    pytest.mark.service,
    pytest.mark.skipif(
        not rabbitmq.SERVER.exists(), reason="needs Debian's rabbitmq-server: run .ci/services"
    ),
]


@pytest.fixture(scope="module")
def broker():
    # Not pytest's own folder, in which another user may not look.
    with tempfile.TemporaryDirectory(prefix="jaxsim-rabbitmq-") as folder:
        os.chmod(folder, 0o755)
        place = Path(folder) / "broker"
        place.mkdir()
        with rabbitmq.running(place) as broker:
            yield broker


@pytest.fixture(scope="module")
def expected():
    """What the same agent does in this process."""
    plan = experiment.load(EXAMPLE / "experiment.json")
    return sailon.play(plan, amqp_agent.Agent())


STARTED = []


@pytest.fixture(autouse=True)
def ended():
    """No program of a test that failed is there when the next one begins."""
    yield
    while STARTED:
        STARTED.pop().kill()


def start(*words):
    place = {**os.environ, "PYTHONPATH": str(ROOT)}
    program = subprocess.Popen(
        [sys.executable, *map(str, words)],
        env=place,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    STARTED.append(program)
    return program


def serve(broker, out, *words):
    program = "import sys; from evaluation.cli import main; sys.exit(main())"
    given = ["sailon", "serve", EXAMPLE / "experiment.json", "--broker", broker.url, "--out", out]
    server = start("-c", program, *given, *words)
    line = server.stderr.readline()
    assert line.startswith("waiting for"), line + server.stderr.read()
    return server


def agent(broker, name):
    return start(EXAMPLE / "amqp_agent.py", "--broker", broker.url, "--name", name)


def same(results, expected):
    for name in ("performance", "length", "reward", "novelty_probability", "problem"):
        np.testing.assert_array_equal(results.rows[name], expected.rows[name])


def test_agents_play_side_by_side_what_they_play_in_process(broker, expected, tmp_path):
    server = serve(broker, tmp_path / "out", "--agents", 2)
    players = [agent(broker, name) for name in ("one", "a/b")]
    for player in players:
        out, err = player.communicate(timeout=300)
        assert player.returncode == 0, err
        assert json.loads(out)["episodes"] == len(expected.rows["performance"])
    _, err = server.communicate(timeout=60)
    assert server.returncode == 0, err
    folders = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert len(folders) == 2 and {name[3:] for name in folders} == {"one", "a_b"}
    for folder in folders:
        same(sailon.load_results(tmp_path / "out" / folder / "results.parquet"), expected)


def test_a_broker_that_is_started_again(broker, expected, tmp_path):
    server = serve(broker, tmp_path / "out")
    player = agent(broker, "steady")
    assert "registered" in server.stderr.readline()
    time.sleep(1.0)
    broker.stop()
    broker.start()
    out, err = player.communicate(timeout=300)
    assert player.returncode == 0, err
    _, err = server.communicate(timeout=60)
    assert server.returncode == 0, err
    assert "the broker is gone" in err and "connected to the broker again" in err
    same(sailon.load_results(tmp_path / "out" / "00-steady" / "results.parquet"), expected)


def test_a_server_that_is_ended_keeps_finished_trials(broker, tmp_path):
    server = serve(broker, tmp_path / "out")
    player = agent(broker, "cut")
    kept = tmp_path / "out" / "00-cut" / "results.parquet"
    end = time.monotonic() + 600
    while not kept.exists() and time.monotonic() < end:
        time.sleep(0.05)
    server.send_signal(signal.SIGTERM)
    server.communicate(timeout=60)
    player.kill()
    player.communicate()
    assert server.returncode == 128 + signal.SIGTERM
    results = sailon.load_results(kept)
    assert np.isfinite(results.rows["performance"]).any()


def test_a_broker_that_is_not_there(tmp_path):
    program = "import sys; from evaluation.cli import main; sys.exit(main())"
    port = rabbitmq.free_port()
    url = f"amqp://guest:guest@127.0.0.1:{port}/%2F"
    words = ["sailon", "serve", EXAMPLE / "experiment.json", "--broker", url]
    server = start("-c", program, *words, "--out", tmp_path / "out")
    _, err = server.communicate(timeout=120)
    assert server.returncode == 2
    assert err.startswith(f"jaxsim: there is no broker at 127.0.0.1, port {port} (")
    assert err.count("\n") == 1 and not (tmp_path / "out").exists()
