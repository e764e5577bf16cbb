"""Calibration of novelties, and how lists are chosen from it."""

import argparse
import json

import jax
import numpy as np
import pytest

from benchmarks import novelty_space, open_control
from evaluation.sailon.novelties import ListedNovelty
from jaxsim import agents, novelty
from jaxsim.novelty import FAMILIES, Novelty
from tools import novelty_list

SAMPLES = (
    Novelty.of(["gravity"], {"gravity": 9.9}),
    Novelty.of(["push_sign"], {"actions/sign": -1.0}),
    Novelty.of(["push_turn"], {"actions/turn": 2.0}),
    Novelty.of(["fall_angle"], {"lean_limit": 0.5}),
)


@pytest.fixture(scope="module")
def calibrated():
    lines = []
    calibration = novelty_space.calibrated(SAMPLES, 3, 0, lambda text, began: lines.append(text))
    assert [line.split(",")[0] for line in lines] == ["4 of 4 slots", "  first differences"]
    return calibration


def test_performance_is_that_of_the_samples_in_the_same_episodes(calibrated):
    assert calibrated.nominal > 0.8
    assert calibrated.pd[0] == pytest.approx(calibrated.nominal, abs=0.1)
    assert calibrated.pd[1] < 0.15
    assert calibrated.control[1] > 0.8
    assert np.all((calibrated.control >= 0) & (calibrated.control <= 1))


def test_first_differences_are_where_physics_first_matters(calibrated):
    # Gravity pulls a leaning pole at once; a push shows in the report behind it.
    assert calibrated.first[1] == pytest.approx(1, abs=0.2)
    assert calibrated.first[2] == pytest.approx(1, abs=0.2)
    assert 0 < calibrated.first[0] < 10
    assert calibrated.differs[:3].tolist() == [1, 1, 1]
    assert calibrated.detection[1] == pytest.approx(calibrated.first[1] / 200)


def test_the_end_of_an_episode_is_a_difference(calibrated):
    """Until a pole falls, nothing that is reported tells at which angle an episode ends."""
    assert calibrated.first[3] > 20
    assert calibrated.degenerate[3] == ("" if calibrated.differs[3] else "same")


def test_the_table_holds_what_a_list_needs(calibrated):
    table = calibrated.table().to_pydict()
    assert table["name"] == ["gravity", "push_sign", "push_turn", "fall_angle"]
    again = [Novelty.from_json(json.loads(text)) for text in table["novelty"]]
    assert tuple(again) == SAMPLES


def test_control_has_the_mean_performance_by_agent(calibrated, monkeypatch):
    monkeypatch.setattr(open_control, "AGENTS", (agents.get("pd"),))
    entries = [ListedNovelty(n, one, n == 1, 0.6 * n, 0.1) for n, one in enumerate(SAMPLES[:2])]
    rows = open_control.measured(entries, novelty_space.PD_EPISODES, 3)
    assert [row["families"] for row in rows] == [["gravity"], ["push_sign"]]
    assert [(row["held_out"], row["difficulty"]) for row in rows] == [
        (False, "easy"),
        (True, "hard"),
    ]
    for row, mean in zip(rows, calibrated.pd, strict=False):
        assert row["pd"] == pytest.approx(mean, abs=1e-4)


def test_samples_are_of_every_family_and_of_pairs_that_can_be_composed():
    drawn = novelty_space.drawn(400, 1)
    names = [one.families for one in drawn]
    assert {name for (name,) in names[:320]} == set(FAMILIES)
    assert all(len(name) == 2 for name in names[320:])
    assert len(set(names[320:])) == 80
    assert "wind+wind_on_pole" not in novelty_space.pairs()
    assert len(novelty_space.pairs()) > 1400


def many(number=3000):
    names = [*FAMILIES, "gravity+wind"]
    drawn = novelty.sample(jax.random.key(0), names, number)
    random = np.random.default_rng(0)
    return {
        "name": [one.name for one in drawn],
        "novelty": [json.dumps(one.to_json()) for one in drawn],
        "control": random.random(number),
        "detection": random.random(number),
        "degenerate": ["same" if random.random() < 0.2 else "" for _ in drawn],
    }


def test_a_list_is_balanced_from_its_beginning_on(monkeypatch):
    monkeypatch.setattr(novelty_list, "SIZE", 500)
    table = many()
    made = novelty_list.build(table, "some-1", 1)
    assert len(made.entries) == 500
    singles = [e.novelty.name for e in made.entries if len(e.novelty.families) == 1]
    counts = [singles.count(name) for name in FAMILIES]
    assert max(counts) - min(counts) <= 1
    assert set(singles[:55]) == set(FAMILIES)
    # Every beginning has its share of the hard ones.
    assert np.mean([e.control for e in made.entries[:60]]) == pytest.approx(0.5, abs=0.12)
    useful = {
        text for text, why in zip(table["novelty"], table["degenerate"], strict=True) if not why
    }
    assert {json.dumps(e.novelty.to_json()) for e in made.entries} <= useful


def test_families_that_are_held_out_are_none_of_the_catalogue():
    apart = novelty_list.held_out(1)
    assert len(apart) == round(len(FAMILIES) / 3)
    assert apart.isdisjoint(novelty_list.in_catalogue())
    assert {"block_aim", "pole_length", "wind"} <= novelty_list.in_catalogue()
    assert novelty_list.held_out(2) != apart
    made = novelty_list.build(many(600), "some-1", 1)
    for entry in made.entries:
        assert entry.held_out == bool(apart & set(entry.novelty.families))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--novelties", "closed-world-1"], "unknown list of novelties 'closed-world-1'"),
        (["--novelties", "missing.jsonl"], "missing.jsonl"),
        (["--first", "1000"], "there are samples 0 to 999"),
        (["--first", "-1"], "there are samples 0 to 999"),
        (["--samples", "0"], "at least one is played"),
    ],
)
def test_options_that_choose_no_sample_end_the_program(options, message, capsys):
    parser = argparse.ArgumentParser()
    novelty_space.add_list(parser, 5, 10)
    numbers = [entry.number for entry in novelty_space.listed(parser, parser.parse_args([]))]
    assert numbers == list(range(5, 15))
    with pytest.raises(SystemExit) as end:
        novelty_space.listed(parser, parser.parse_args(options))
    assert end.value.code == 2
    assert message in capsys.readouterr().err
