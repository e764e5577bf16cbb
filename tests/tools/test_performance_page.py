"""The page on throughput shows what a result holds, and says what is missing."""

import pytest

from evaluation.bench.rate import Rate
from evaluation.bench.result import BenchResult, Measurements, Sample, ThroughputCurve
from evaluation.bench.run import Benchmark
from tools import performance_page


def row(program, workload, flags, *steps):
    facts = {
        "threads": 2,
        "device": "abacus",
        "mean_length": 182.4,
        "xla_flags": "--xla_x=1" if flags == "configured" else None,
        "peak_memory_mib": 1234.5,
        "episodes": 65_536,
        "first_seconds": 31.0,
        "first_steps": 1_000_000,
    }
    rates = [Sample(Rate(number, 1.0, 2.0, 2), 0.5) for number in steps]
    return Measurements(program, workload, flags, facts if flags else {}, rates)


@pytest.fixture
def values():
    """A result with two ratios, and a peer that is not installed."""
    result = BenchResult(Benchmark(rounds=1).settings(), 2, {"default": 33.3}, {"default": 4.4})
    result.curves = [ThroughputCurve("default", [(64, 1e5), (256, 1e6)])]
    result.finish(
        [
            row("jaxsim", "200", "default", 1_000_000),
            row("jaxsim", "200", "configured", 4_000_000),
            row("jaxsim", "mix", "default", 250_000),
            row("pybullet", "200", None, 10_000),
            Measurements("mujoco", "200", None, {}, missing="mujoco is not installed"),
        ]
    )
    return result.to_json()


def lines_of(islands):
    return [line for each in islands.values() if not isinstance(each, str) for line in each]


def test_the_page_shows_what_was_measured(values):
    lines = lines_of(performance_page.islands_of(values))
    for line in (
        "| `pybullet` | level 200, over PyBullet's | 100 | 450 | 400 | 900 |",
        "| `mix` | a batch of every level from 200 to 207 at every difficulty, over level 200 "
        "| 0.25 | 0.2 | – | 0.25 |",
        "| jaxsim | `200` | configured | 4 M | 2 M | 2 | 182 |",
        "| pybullet | `200` |  | 10 k | 5 k | 2 |  |",
        "| mujoco | `200` |  | – | – | – |  |",
        "| `200` | default | 30 s | 65,536 | 1,234 MiB |",
        "* jaxsim, configured flags: 2 threads (abacus), `--xla_x=1`.",
        "| default | 33.3 s | 4.4 s | 1,789 | 189 |",
        "![Throughput of level 200 by the number of episodes in one call](performance.png)",
    ):
        assert line in lines
    text = "\n".join(lines)
    assert "`mujoco` with default flags is missing" in text
    assert "not installed" in text


def test_the_readme_shows_the_speed(values):
    assert performance_page.speed(values) == {
        "cores": "2 cores",
        "speed": "[1 M](docs/performance.md); 4 M with `configure_cpu()`",
        "over pybullet": "100 ×; 400 × with `configure_cpu()`",
        "over mujoco": "–; – with `configure_cpu()`",
    }


def test_a_result_without_a_curve_has_no_plot(values):
    for curve in values["curves"]:
        curve["points"] = []
    assert list(performance_page.curve(values)) == []
