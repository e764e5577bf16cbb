"""The page on throughput shows what a result holds, and says what is missing."""

import json
import sys

import pytest

from evaluation.bench.rate import Rate
from evaluation.bench.result import Curve, Result, Row, Sample
from evaluation.bench.run import Benchmark
from evaluation.files import write_json
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
    return Row(program, workload, flags, facts if flags else {}, rates)


@pytest.fixture
def values():
    """A result with two ratios, and a peer that is not installed."""
    result = Result(Benchmark(rounds=1).settings(), 2, {"default": 33.3}, {"default": 4.4})
    result.curves = [Curve("default", [(64, 1e5), (256, 1e6)])]
    result.finish(
        [
            row("jaxsim", "200", "default", 1_000_000),
            row("jaxsim", "200", "configured", 4_000_000),
            row("jaxsim", "mix", "default", 250_000),
            row("pybullet", "200", None, 10_000),
            Row("mujoco", "200", None, {}, missing="mujoco is not installed"),
        ]
    )
    return result.to_json()


def test_the_page_shows_what_was_measured(values):
    text = "\n".join(performance_page.page(values, "picture.png"))
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
    ):
        assert line in text.splitlines()
    assert "`mujoco` with default flags is missing" in text
    assert "not installed" in text
    assert "(picture.png)" in text


def test_the_command_writes_page_plot_and_rows_of_speed(values, tmp_path, monkeypatch):
    begin, end = performance_page.BEGIN, performance_page.END
    table = "| | what | result |\n| --- | --- | --- |\n| speed | old | 1 |\n| parity | kept | 2 |"
    (tmp_path / "README.md").write_text(f"before\n\n{begin}\n{table}\n{end}\nafter\n")
    write_json(tmp_path / "result.json", values)
    monkeypatch.chdir(tmp_path)
    words = "page result.json --out deep/page.md --readme README.md"
    monkeypatch.setattr(sys, "argv", words.split())
    performance_page.main()
    assert (tmp_path / "deep" / "page.png").read_bytes().startswith(b"\x89PNG")
    assert "(page.png)" in (tmp_path / "deep" / "page.md").read_text()
    readme = (tmp_path / "README.md").read_text()
    assert readme.splitlines() == [
        *("before", "", begin, *table.splitlines()[:2]),
        "| speed | level 200, environment steps per second, 2 cores "
        "| [1 M](docs/performance.md); 4 M with `configure_cpu()` |",
        "| speed | the same, over PyBullet | 100 ×; 400 × with `configure_cpu()` |",
        "| speed | the same, over MuJoCo | –; – with `configure_cpu()` |",
        *("| parity | kept | 2 |", end, "after"),
    ]
    performance_page.main()
    assert (tmp_path / "README.md").read_text() == readme


def test_a_readme_without_a_place_for_the_table_is_refused(values):
    with pytest.raises(ValueError, match="the table goes between"):
        performance_page.with_speed("nothing here\n", values)


def test_a_result_without_a_curve_makes_a_page_without_a_plot(values, tmp_path, monkeypatch):
    for curve in values["curves"]:
        curve["points"] = []
    result, out = tmp_path / "result.json", tmp_path / "page.md"
    result.write_text(json.dumps(values), encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["performance_page", str(result), "--out", str(out)])
    performance_page.main()
    assert "![Throughput" not in out.read_text(encoding="utf-8")
    assert not out.with_suffix(".png").exists()
