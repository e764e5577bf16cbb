"""`jaxsim bench`: what it refuses, what it writes and what it says."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from evaluation import cli
from evaluation.bench import commands, peers
from evaluation.bench.rate import Rate
from evaluation.bench.result import BenchResult, Measurements, Sample, ThroughputCurve
from tests.evaluation.bench.test_bench import check_schema

ROOT = Path(__file__).parents[3]
COMMAND = (sys.executable, "-m", "evaluation.cli", "bench")


@pytest.fixture
def ran(monkeypatch, tmp_path):
    """Benchmarks that were run; nothing is measured."""
    benchmarks = []

    def run(benchmark, progress=None):
        benchmarks.append(benchmark)
        if progress:
            progress("preparing jaxsim 200 default", 0, 1)
        first = {"default": 12.5}, {"default": 1.75}
        result = BenchResult(benchmark.settings(), 2, *first)
        sample = Sample(Rate(34_567_890, 1.0, 2.0, 2), 0.1)
        facts = {"mean_length": 182.4, "peak_memory_mib": 1234.5, "device": "abacus"}
        facts |= {"threads": 2, "first_steps": 1000}
        result.curves = [
            ThroughputCurve(flags, [(64, 1e5), (256, 1e6)]) for flags in benchmark.flags
        ]
        missing = Measurements(
            "mujoco", "200", None, {}, missing="mujoco is not installed: so there"
        )
        result.finish(
            [
                Measurements("jaxsim", "200", "default", facts, [sample]),
                Measurements("pybullet", "200", None, {}, [Sample(Rate(34_567, 0.5, 1.0, 2), 0.1)]),
                missing,
            ]
        )
        return result

    monkeypatch.setattr(commands, "run", run)
    monkeypatch.chdir(tmp_path)
    return benchmarks


BAD = {
    "workload": (["--workload", "20x"], "unknown workload '20x'"),
    "peer": (["--peer", "mujoko"], "unknown peer 'mujoko'; did you mean 'mujoco'"),
    "none and a peer": (["--peer", "none", "--peer", "mujoco"], "unknown peer 'none'"),
    "flags": (["--flags", "fast"], "unknown flags 'fast'"),
    "episodes": (["--episodes", "0"], "episodes is 0; it must be from 1"),
    "rounds": (["--rounds", "-1"], "rounds is -1; it must be from 1"),
    "seconds": (["--seconds", "0"], "seconds is 0.0; it must be above 0"),
    "json folder": (["--json", "."], r"json \. is a folder; name a file"),
    "json below a file": (["--json", "file/x.json"], "cannot be written"),
    "plot ending": (["--plot", "x.mp3"], r"plot x\.mp3 must end in one of \."),
    "quiet for nothing": (["--quiet"], "--quiet shows nothing: pass --json or --plot"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_argument(ran, tmp_path, capfd, name):
    arguments, words = BAD[name]
    (tmp_path / "file").write_text("")
    assert cli.main(["bench", *arguments]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert re.search(words, err)
    assert ran == []


def test_results_are_shown_and_written(ran, tmp_path, capfd):
    assert cli.main(["bench", "--json", "deep/out.json"]) == 0
    out, err = capfd.readouterr()
    for words in (
        "jaxsim 200",
        "34.6 M",
        "69.1 k",
        "500.01",
        "12.5 s, 1.8 s with the compilation cache filled",
        "1,234 MiB",
        "mujoco 200 was not measured: mujoco is not installed: so there",
        "default flags: abacus, 2 threads",
        f"jax {jax.__version__}",
        peers.PEERS["pybullet"].about[:40],
    ):
        assert words in " ".join(out.split())
    assert "preparing" not in out
    values = check_schema(json.loads((tmp_path / "deep" / "out.json").read_text()))
    assert values["ratios"]["pybullet"] == pytest.approx(500, rel=1e-3)
    # 12.5 and 1.75 s at 69 thousand steps a second, but for those of the other.
    assert values["break_even_episodes"]["cold"] == {"default": 4748}
    assert values["break_even_episodes"]["cached"] == {"default": 665}
    assert values["settings"]["episodes"] == 65_536


def test_quiet_only_writes(ran, capfd):
    assert cli.main(["bench", "--quiet", "--json", "out.json", "--plot", "out.svg"]) == 0
    assert capfd.readouterr() == ("", "")
    (benchmark,) = ran
    assert benchmark.curve
    assert "<svg" in Path("out.svg").read_text()
    assert Path("out.json").is_file()
    assert cli.main(["bench", "--quiet", "--plot", "alone.svg"]) == 0
    assert "<svg" in Path("alone.svg").read_text()


def test_options_reach_the_benchmark(ran):
    words = "--quick --workload mix --workload 200 --workload mix --peer none --flags configured"
    numbers = "--episodes 9 --rounds 3 --seconds 0.5 --agent greedy --seed 4 --threads 1"
    sizes = "--chunk 128"
    assert cli.main(["bench", *words.split(), *numbers.split(), *sizes.split()]) == 0
    (benchmark,) = ran
    assert benchmark.settings() == {
        "workloads": ["mix", "200"],
        "peers": [],
        "flags": ["configured"],
        "episodes": 9,
        "rounds": 3,
        "seconds": 0.5,
        "agent": "greedy",
        "seed": 4,
        "threads": 1,
        "chunk": 128,
        "curve": [],
    }


@pytest.mark.nightly
@pytest.mark.long
def test_a_real_run(tmp_path):
    """Every program that is installed, for a moment."""
    words = "--quick --workload 200 --flags default --flags configured --quiet"
    numbers = "--episodes 64 --rounds 1 --seconds 0.01"
    done = subprocess.run(
        [*COMMAND, *words.split(), *numbers.split(), "--json", str(tmp_path / "out.json")],
        cwd=ROOT,
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    assert (done.stdout, done.stderr) == ("", "")
    values = check_schema(json.loads((tmp_path / "out.json").read_text()))
    ours, configured, *peer_rows = values["rows"]
    assert (
        100
        < ours["facts"]["mean_length"]
        == pytest.approx(configured["facts"]["mean_length"], rel=0.1)
    )
    assert ours["facts"]["xla_flags"] is None
    assert "xla_cpu" in configured["facts"]["xla_flags"]
    assert ours["compile_seconds"] < values["first_result_seconds"]["default"]
    for row in (ours, configured, *peer_rows):
        assert row["missing"] is None or "not installed" in row["missing"]
        assert bool(row["samples"]) == (row["missing"] is None)
    assert str(tmp_path) not in json.dumps(values)
