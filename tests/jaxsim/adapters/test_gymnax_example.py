"""The trainer in one file: it reaches the mark that its documents promise."""

import re
import runpy
import sys
from pathlib import Path

import pytest

pytest.importorskip("gymnax", reason="needs the extra: jaxsim-novelty[gymnax]")

import jaxsim

EXAMPLE = Path(__file__).parents[3] / "examples" / "gymnax" / "ppo.py"
PIXELS = EXAMPLE.with_name("pixels.py")


def trained(monkeypatch, capsys, *arguments, example=EXAMPLE):
    """Performance and steps of each seed, as the example prints them."""
    monkeypatch.setattr(sys, "argv", [str(example), *arguments])
    runpy.run_path(str(example), run_name="__main__")
    lines = re.findall(r"performance ([\d.]+) after ([\d,]+) steps", capsys.readouterr().out)
    return [(float(mean), int(steps.replace(",", ""))) for mean, steps in lines]


@pytest.mark.long
@pytest.mark.nightly
def test_five_seeds_keep_the_pole_up_after_a_million_steps(monkeypatch, capsys):
    results = trained(monkeypatch, capsys)
    assert len(results) == 5
    for mean, steps in results:
        assert steps <= 1_000_000
        # Rounding differs between processors; here all five were above .90.
        assert mean > 0.89
    assert sum(mean for mean, _ in results) / 5 >= 0.90


def test_the_example_takes_its_settings(monkeypatch, capsys):
    """On CartPole, which compiles in a tenth of the time; the levels are those of CartPole3D."""
    asked, make = [], jaxsim.make

    def small(task, **options):
        asked.append((task, options))
        return make("CartPole-v1", max_steps=100)

    monkeypatch.setattr(jaxsim, "make", small)
    settings = "--level 203 --difficulty hard --steps 8192 --seeds 2 --episodes 32"
    results = trained(monkeypatch, capsys, *settings.split())
    assert asked == [("CartPole3D-v0", {"level": 203, "difficulty": "hard"})]
    assert len(results) == 2
    for mean, steps in results:
        assert steps == 8192 and 0 < mean <= 1
    assert results[0] != results[1]


@pytest.mark.long
def test_what_is_learned_from_pixels_keeps_the_pole_up_longer(monkeypatch, capsys):
    monkeypatch.syspath_prepend(PIXELS.parent)
    arguments = "--steps", "40960", "--episodes", "32"
    ((mean, steps),) = trained(monkeypatch, capsys, *arguments, example=PIXELS)
    assert steps == 40_960
    assert mean > 0.1  # here .25, and .02 before it learns
