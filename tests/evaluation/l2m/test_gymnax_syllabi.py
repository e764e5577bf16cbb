"""The document's syllabi with its own games, shortened: every block is played, by any agent."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("gymnax", reason="needs the extra: jaxsim-novelty[gymnax]")

from evaluation import cli, l2m
from evaluation.records import read_run
from tests.evaluation.l2m.test_rules import EXAMPLES

NAMES = ("cl", "ant_a", "ant_b", "ant_c")


def shortened(name):
    """The example with two episodes a block, of a fiftieth of the steps at the most."""
    text = (EXAMPLES / "gymnax" / f"{name}.json").read_text()
    text = re.sub(r'"count": \d+', '"count": 2', text)
    return re.sub(r"\b(150|200|250)\b", lambda match: str(int(match[0]) // 50), text)


@pytest.mark.parametrize("name", NAMES)
def test_the_syllabi_keep_the_rules_of_their_subtype(name):
    verdict = l2m.check_file(EXAMPLES / "gymnax" / f"{name}.json", name.upper())
    assert verdict.findings == ()


def test_the_examples_of_the_document_are_played(tmp_path, capsys):
    """All four as one lifetime, which compiles one program."""
    paths = []
    for name in NAMES:
        paths.append(str(tmp_path / f"{name}.json"))
        Path(paths[-1]).write_text(shortened(name))
    words = ["--agent", "random", "--lifetimes", "2", "--window", "1", "--quiet"]
    out = tmp_path / "out"
    words += ["--log-lifetime", "1", "--log-format", "learnkit"]
    assert cli.main(["run", *paths, *words, "--out", str(out)]) == 0
    records = read_run(out)
    blocks = [block for path in paths for block in l2m.load(path).blocks]
    assert [b.variant for b in records.schedule.blocks] == [b.variant for b in blocks]
    assert {task for task, _ in records.schedule.variants} == {
        "gymnax/Pong-misc",
        "gymnax/Breakout-MinAtar",
        "gymnax/Freeway-MinAtar",
    }
    assert records.columns["complete"].all()
    longest = np.array([dict(b.parameters)["max_steps_in_episode"] for b in blocks])
    steps = records.columns["length"]
    assert (steps >= 1).all() and (steps <= np.repeat(longest, [b.count for b in blocks])).all()
    # Pong pays 1 for every step but the one that ends it.
    pong = [b.task == "gymnax/Pong-misc" for b in blocks for _ in range(b.count)]
    assert (steps[:, pong] - records.columns["reward"][:, pong] <= 1).all()
    report = json.loads((out / "report.json").read_text())
    assert len(report["blocks"]) == len(blocks)
    (log,) = (out / "logs").iterdir()
    assert cli.main(["l2m", "validate", str(log)]) == 0
    assert "gymnax_Breakout-MinAtar" in capsys.readouterr().out
    assert cli.main(["view", str(out), "--lifetime", "0", "--episode", "0"]) == 2
    assert "there is no picture of gymnax/Pong-misc" in capsys.readouterr().err


def test_agents_that_cannot_play_are_refused_in_one_line(tmp_path, capsys):
    path = tmp_path / "ant_b.json"
    path.write_text(shortened("ant_b"))
    assert cli.main(["run", str(path), "--agent", "pd", "--out", str(tmp_path / "out")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "agent pd cannot play gymnax/Pong-misc" in line
    path.write_text(path.read_text().replace("gymnax/Breakout-MinAtar", "CartPole"))
    assert cli.main(["run", str(path), "--agent", "random", "--out", str(tmp_path / "out")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "unknown parameter 'max_steps_in_episode'" in line
    assert not (tmp_path / "out").exists()
