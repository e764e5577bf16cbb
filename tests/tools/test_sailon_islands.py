"""The page on novelty experiments: measurements on disk, and what is made of them."""

import json

import numpy as np
import pytest

from benchmarks import control, detection
from benchmarks.control import CellEpisodes, ControlMeasurement
from jaxsim.worlds.cartpole3d.levels import EVALUATED
from tools import islands, sailon_control, sailon_detection, sailon_evaluations


@pytest.fixture
def measurement():
    rows = [CellEpisodes(200, "hard", "pd", 0.01, (200,) * 6 + (60, 80))]
    rows += [CellEpisodes(200, "hard", "mpc", 0.2, (200,) * 8, 12.5)]
    rows += [CellEpisodes(206, "hard", name, 0.2, (20, 200, 40, 200)) for name in ("pd", "mpc")]
    return ControlMeasurement(5, 8, tuple(rows))


def test_control_comes_back_from_its_file(measurement, tmp_path):
    measurement.write(tmp_path / "control.json")
    assert control.load(tmp_path / "control.json") == measurement
    assert measurement.find(200, "hard", "mpc").rollouts == 12.5
    assert measurement.find(206, "easy", "mpc") is None
    (tmp_path / "other.json").write_text('{"format": 0}')
    with pytest.raises(ValueError, match=r"other\.json was not written by benchmarks\.control"):
        control.load(tmp_path / "other.json")


def test_what_is_measured_is_not_measured_again(measurement):
    assert (
        list(control.measure(measurement, ["pd", "mpc"], [(200, "hard"), (206, "hard")], 8, 64))
        == []
    )


@pytest.mark.parametrize("first", ["0", "-3", "9"])
def test_only_existing_episodes_can_come_first(first, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["control", "--episodes", "8", "--first", first])
    with pytest.raises(SystemExit):
        control.main()
    assert f"--first is {first}; it must be from 1 to the 8" in capsys.readouterr().err


def test_what_a_whole_evaluation_would_take():
    cells = detection.cells(list(EVALUATED), ["hard", "easy", "medium"])
    rows = [
        CellEpisodes(*cell, "mpc", 2.0 if cell[0] == 200 else 8.0, (100,) * 4, 10.0)
        for cell in cells
    ]
    # Cells of 60 trials, 100 decisions an episode: 20 episodes at 2 ms, and 25 at 8 ms, which in
    # the cells of level 200 are at 2 ms too.
    count, nominal = 3 * len(EVALUATED), 3
    seconds_at_200 = (count * 20 + nominal * 25) * 2e-3
    hours = 60 * 100 * (seconds_at_200 + (count - nominal) * 25 * 8e-3) / 3600
    futures, seconds = sailon_control.whole_evaluation(rows)
    assert seconds / 3600 == pytest.approx(hours)
    assert futures == pytest.approx(count * 60 * 45 * 100 * 10)
    assert sailon_control.whole_evaluation(rows[1:]) is None
    text = "\n".join(sailon_control.search(rows))
    assert f"| CPU time of `{sailon_control.COMMAND}`, hours | {hours:.2f} |" in text
    assert sailon_control.COMMAND not in "\n".join(sailon_control.search(rows[1:]))


def test_agents_are_compared_episode_by_episode(measurement):
    better, same = sailon_control.paired(measurement, "mpc")
    assert better.cell == (200, "hard")
    np.testing.assert_array_equal(better.differences, [0] * 6 + [0.7, 0.6])
    assert 0 < better.p < 1
    assert (same.p, same.score.mean) == (1.0, 0.0)


def test_a_target_is_reached_or_not(measurement):
    made = sailon_control.islands_of(measurement)
    text = "\n".join(made["targets"])
    assert "| 200 | 0.95 | 1.000 ± 0.000 | yes |" in text
    assert "| 206 hard | 0.64 | 0.575 ± 0.483 | no, but within the interval |" in text
    assert "| 208 hard | 0.60 | not measured | – |" in text
    assert made["mpc worse"] == "none"
    assert made["control episodes"] == "8 episodes a cell of seed 5"


@pytest.mark.parametrize("difficulty", ["easy", "hard"])
def test_a_level_without_difficulties_is_one_cell(difficulty):
    """At whichever difficulty it was played, which is the first one that was asked for."""
    rows = [CellEpisodes(200, difficulty, name, 0.2, (200, 180) * 4) for name in ("pd", "mpc")]
    measurement = ControlMeasurement(5, 8, tuple(rows))
    assert list(control.measure(measurement, ["pd", "mpc"], [(200, "medium")], 8, 64)) == []
    made = {name: "\n".join(made) for name, made in sailon_control.islands_of(measurement).items()}
    assert "| 0.900 ± 0.036 | – |" in made["control"]
    assert "| 200 | 0.95 | 0.950 ± 0.037 | yes |" in made["targets"]
    cell = {**report()["cells"][1], "level": 101}
    single = detection.CellDetections(101, difficulty, 10, 9, 9, 9)
    evaluation = sailon_evaluations.kept(report(cells=[cell]))
    assert "| 0.900 [" in "\n".join(sailon_detection.trials([evaluation], [single]))


def test_single_episodes_are_counted():
    detected = np.array([True, True, True, False])
    named = np.array([203, 202, 101, 0])
    row = detection.CellDetections.of((203, "hard"), detected, named)
    # Levels 202 and 203 have the same hint.
    assert (row.episodes, row.detected, row.level_right, row.hint_right) == (4, 3, 1, 2)


def report(agent="pd+residual", **changes):
    names = [*sailon_evaluations.KEPT, "opti"]
    cell = {"level": 203, "difficulty": "hard", "visibility": 0, "trials": 2}
    cell |= dict.fromkeys(names, 1.0) | {"false_alarms": 0.0}
    cell["intervals"] = {name: [0.5, 1.0] for name in names}
    nominal = cell | {"level": 200, "cdt": None}
    settings = {"seed": 0, "trials": 2, "testing_episodes": 45, "pre_novel_episodes": 20}
    whole = {
        "agent": {"agent": agent, "versions": {}},
        "baseline": {"agent": "pd"},
        "experiment": {"settings": settings},
        "timing": {
            "seconds": {agent: 93.0},
            "processor_seconds": {agent: 41.0},
            "steps": 18_600,
        },
        "cells": [nominal, cell],
    }
    return whole | changes


def test_of_a_report_is_kept_what_is_shown():
    kept = sailon_evaluations.kept(report())
    assert "opti" not in kept["cells"][0]
    assert json.loads(json.dumps(kept, allow_nan=False)) == kept
    with pytest.raises(ValueError, match=r"not a report\.json"):
        sailon_evaluations.kept({"cells": []})
    again = sailon_evaluations.added([kept], sailon_evaluations.kept(report()))
    assert len(again) == 1
    assert len(sailon_evaluations.added([kept], sailon_evaluations.kept(report("wow")))) == 2


def test_evaluations_of_other_settings_have_other_commands():
    """So that none of them takes the place of another."""
    plain = report()
    changed = report(baseline={"agent": "random"})
    settings = plain["experiment"]["settings"] | {
        "testing_episodes": 60,
        "pre_novel_episodes": 10,
        "training_episodes": 5,
        "hint_level": [2],
        "starts": "wsu",
        "sensors": {"sensors/noise_position": 0.01},
    }
    changed["experiment"] = {"settings": settings}
    one, other = map(sailon_evaluations.kept, (plain, changed))
    assert sailon_evaluations.added([one], other) == [one, other]
    assert (
        "--baseline random --set sensors/noise_position=0.01 --episodes 60 --button 10 "
        "--training 5 --hint-level 2 --starts wsu --trials 2 --seed 0"
    ) in sailon_evaluations.command(other)


def test_reports_are_kept_in_a_file(tmp_path, monkeypatch):
    for module in (sailon_evaluations, islands):
        monkeypatch.setattr(module, "DOCS", tmp_path)
    (tmp_path / sailon_evaluations.FILE).write_text("[]")
    for agent in ("pd+residual", "wow"):
        (tmp_path / f"{agent}.json").write_text(json.dumps(report(agent)))
    paths = [str(tmp_path / f"{agent}.json") for agent in ("wow", "pd+residual", "wow")]
    monkeypatch.setattr("sys.argv", ["sailon_evaluations", *paths])
    sailon_evaluations.main()
    kept = json.loads((tmp_path / sailon_evaluations.FILE).read_text())
    assert [evaluation["agent"] for evaluation in kept] == ["wow", "pd+residual"]


def test_what_the_page_says_of_evaluations():
    kept = sailon_evaluations.kept(report())
    single = {
        "agent": "pd+residual",
        "seed": 1,
        "rows": [detection.CellDetections(203, "hard", 10, 9, 9, 9)],
    }
    made = sailon_detection.islands_of([kept], single)
    text = "\n".join(made["detection"])
    assert "| 203 hard | 2 | 1.00 [0.50, 1.00] | 0.00 | 1 (1.00) | 0.900 [" in text
    assert "0.973 differ" in text
    (alarms,) = (line for line in made["false alarms"] if "jaxsim sailon evaluate" in line)
    assert "| 45 | 0 of 2 trials [0.000, " in alarms
    assert "| `pd+residual` | 2 of 2 | 1 of 1 cells | 100.0% |" in made["totals"]
    # The original would play the baseline too: twice the steps, a second for each.
    assert "| 18,600 | 93 s | 41 s | 2 s |" in "\n".join(made["time"])
