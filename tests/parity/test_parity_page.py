"""The page of parity has tables for each world, and says which are left out."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import parity
from tests.conftest import TEST_DATA, double_precision
from tools import parity_page

RAIL = ("L50_easy_pd.npz", "L50_easy_random.npz", "L53_hard_random.npz")
TRAJECTORIES = TEST_DATA / "protocols" / "cartpole_trajectories.json"
LEFT_OUT = "Left out: "


def compared(folder: Path, trajectories: Path = TRAJECTORIES) -> dict[str, list[str]]:
    """Lines of the tables by world; those of CartPole3D are of one tick."""
    with double_precision():
        values = json.loads(json.dumps(parity.compare(folder, trajectories)))
    islands = parity_page.islands_of(values)
    worlds = {"one tick": "CartPole3D", "CartPole2D": "CartPole2D", "CartPole": "CartPole"}
    return {world: list(islands[name]) for name, world in worlds.items()}


def row(lines: list[str], first: str) -> list[str]:
    """Cells of the one row that begins so."""
    (text,) = (line for line in lines if line.startswith(f"| {first} |"))
    return text.strip("| ").split(" | ")


def test_levels_on_the_rail_and_the_classic_task_have_sections(tmp_path):
    for name in RAIL:
        (tmp_path / name).symlink_to(TEST_DATA / "oracle" / name)
    tables = compared(tmp_path)
    assert tables["CartPole3D"][-1].startswith(LEFT_OUT)
    rail = tables["CartPole2D"]
    for level, episodes in (("50 easy", "9"), ("53 hard", "3")):
        _, count, *errors = row(rail, level)
        assert count == episodes
        assert 1e-9 < max(map(float, errors)) < 1e-6  # roundings of a float32 recording
    assert not any(line.startswith("| 51") for line in rail)
    for dtype, bound in (("float32", 1e-6), ("float64", 1e-14)):
        _, steps, *errors, same = row(tables["CartPole"], dtype)
        assert (steps, same) == ("252", "6 of 6")
        assert len(errors) == 4 and max(map(float, errors)) <= bound


def test_a_recording_of_something_else_shows_in_its_row(tmp_path):
    arrays = dict(np.load(TEST_DATA / "oracle" / "L50_easy_random.npz"))
    arrays["p1"][20] += [0.0, 0.0, 0.3, 0.5]
    np.savez(tmp_path / "L50_easy_random.npz", **arrays)
    _, _, position, _, angle, rate = row(compared(tmp_path)["CartPole2D"], "50 easy")
    assert float(position) < 1e-6
    assert (angle, rate) == ("3e-01", "5e-01")


def test_worlds_without_data_are_left_out_in_words(tmp_path):
    (tmp_path / "L999_easy_pd.npz").touch()
    tables = compared(tmp_path, tmp_path / "missing.json")
    assert len(tables) == 3
    for lines in tables.values():
        assert len(lines) == 1 and lines[-1].startswith(LEFT_OUT)
    assert "missing.json" in tables["CartPole"][-1]


def test_a_folder_without_recordings_is_refused(tmp_path):
    with pytest.raises(SystemExit, match="no recordings of the form"):
        compared(tmp_path)
