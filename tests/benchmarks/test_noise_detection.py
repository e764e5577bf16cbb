"""Delays through noisy sensors, from made-up alarms."""

import json

import numpy as np
import pytest

from benchmarks import noise_detection
from tools import noise_page


def played(rows, noise, novel, seed):
    """Lifetimes without a change are quiet; in the others the first episode has an alarm."""
    shape = noise_detection.BEFORE + novel, len(rows)
    alarm = np.zeros(shape, bool)
    alarm[0] = any(rows)
    scores = np.ones((*shape, len(noise_detection.directions.NAMES)))
    return noise_detection.Played(alarm, 0 * scores, scores)


def test_a_change_without_a_lifetime_has_no_delay(monkeypatch, tmp_path):
    """All of them had an alarm before the change."""
    monkeypatch.setattr(noise_detection, "play", played)
    out = tmp_path / "noise.json"
    words = ["--lifetimes", "3", "--repeats", "1", "--noise", "middle"]
    noise_detection.main([*words, "--out", str(out)])
    values = json.loads(out.read_text())
    changes = values["noises"]["middle"]["changes"]
    assert {(row["lifetimes"], row["delay"], row["optimum"]) for row in changes} == {
        (0, None, None)
    }
    _, _, first, *_ = noise_page.delays(values)
    assert first.endswith("| 1 | – | – | – | 0 and 0 of 0 |")


def test_an_unknown_noise_is_refused_in_one_line(capsys, tmp_path):
    with pytest.raises(SystemExit):
        noise_detection.main(["--noise", "small,huge", "--out", str(tmp_path / "noise.json")])
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.endswith("--noise has huge; there are small, middle, large")
