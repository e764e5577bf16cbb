"""What the numbers on the learners mean."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import learning, learning_metrics
from evaluation.records import COLUMNS, Records
from evaluation.schedule import Block, Schedule
from tools import learning_page


@pytest.mark.parametrize(("command", "threads"), [("curve", 1), ("speed", 2)])
def test_commands_are_read(command, threads, tmp_path, monkeypatch):
    options = []
    monkeypatch.setattr(learning, command, options.append)
    monkeypatch.setattr("sys.argv", ["learning", command, str(tmp_path / "runs")])
    learning.main()
    assert options[0].threads == threads and options[0].folder.is_dir()


def test_forgetting_is_the_first_test_less_the_last():
    """Of what was trained before the first of these; a task that is tested once says nothing."""
    first = Block(0, 1, "train", "CartPole3D", (), 2, True)
    test = replace(first, mode="test", learning=False)
    other = replace(first, task="CartPole")
    kinds = [test, first, test, other, test, replace(test, task="CartPole"), test]
    blocks = tuple(replace(block, index=index) for index, block in enumerate(kinds))
    means = np.array([[0.9, 0.1, 0.8, 0.2, 0.7, 1.0, 0.3], [0.0, 0.0, 0.5, 0.0, 0.6, 0.0, 0.6]])
    columns = {name: np.zeros((2, 14), dtype) for name, dtype in COLUMNS.items()}
    columns["performance"] = np.repeat(means, 2, axis=1)
    records = Records(Schedule("s", blocks), columns, np.zeros(2, np.int32))
    np.testing.assert_allclose(learning_metrics.forgetting(records), [0.5, -0.1], atol=1e-7)


def test_pairs_decide_who_forgets_less():
    plain = {"agent": "ppo", "forgetting": [0.5, 0.4, 0.6, 0.7]}
    less = {"agent": "ppo+ewc", "forgetting": [0.2, 0.1, 0.3, 0.5]}
    assert learning_page.difference(plain, less).startswith("less: 0.275 ± ")
    same = {"agent": "ppo+ewc", "forgetting": [0.6, 0.3, 0.7, 0.6]}
    assert learning_page.difference(plain, same).startswith("no measurable difference: ")
