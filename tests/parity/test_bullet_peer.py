"""The PyBullet scene that the benchmark measures plays the original's episodes."""

import csv
from contextlib import closing

import numpy as np
import pytest

pytest.importorskip("pybullet", reason="needs the extra jaxsim-novelty[parity]")

from benchmarks.peers import bullet_scene

EPISODES = 20


@pytest.mark.parametrize("workload", bullet_scene.CELLS)
def test_episodes_end_when_the_original_ones_do(recorded_data, tmp_path, workload):
    level, difficulty = bullet_scene.CELLS[workload]
    with recorded_data("baselines/ep_pd.csv").open(newline="") as file:
        table = [row for row in csv.DictReader(file) if int(row["level"]) == level]
    rows = [row for row in table if row["difficulty"] == difficulty][:EPISODES]
    if not rows:
        pytest.skip(f"no episodes of level {level} {difficulty} in this excerpt")
    params, starts = bullet_scene.draw_episodes(
        level, difficulty, [int(row["seed"]) for row in rows]
    )
    lengths = []
    for start in starts:
        with closing(bullet_scene.BulletEpisode(params, start, tmp_path)) as episode:
            lengths.append(episode.play())
    expected = np.array([int(row["length"]) for row in rows])
    # Starts are in single precision here: an episode with many contacts may part from its twin.
    assert np.mean(lengths == expected) >= (1.0 if workload == "200" else 0.7)
    assert np.mean(lengths) == pytest.approx(expected.mean(), rel=0.1)
