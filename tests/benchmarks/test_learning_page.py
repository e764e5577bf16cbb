"""What the numbers on the learners mean."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from benchmarks import learning, learning_metrics
from evaluation.records import COLUMNS, Records
from evaluation.schedule import Block, Schedule
from tools import learning_page
from tools.islands import measured


@pytest.mark.parametrize(("command", "threads"), [("curve", 1), ("speed", 2)])
def test_commands_are_read(command, threads, tmp_path, monkeypatch):
    options = []
    monkeypatch.setattr(learning, command, options.append)
    monkeypatch.setattr("sys.argv", ["learning", command, str(tmp_path / "runs")])
    learning.main()
    assert options[0].threads == threads and options[0].folder.is_dir()


def test_a_run_of_one_call_has_no_times(tmp_path, monkeypatch):
    """Its one call compiles; fewer episodes than points of a curve have a point each."""
    words = ["--agent", "pd", "--lifetimes", "2", "--width", "2", "--tests", "2", "--episodes", "3"]
    monkeypatch.setattr("sys.argv", ["learning", "curve", str(tmp_path), *words])
    learning.main()
    result = json.loads((tmp_path / "curve_200_easy_pd.json").read_text())
    assert result["cost"] == {"steps": 0, "seconds": None, "processor_seconds": None}
    assert [(point["from"], point["to"]) for point in result["curve"]] == [(0, 1), (1, 2), (2, 3)]
    assert "| 0 | – | 0.0 % in 200:easy |" in "\n".join(learning_page.curve_runs([result]))
    rounds = {"ppo learns": [result["cost"]], "pd": [result["cost"]]}
    assert "| pd |  |  |  |  |" in "\n".join(learning_page.rates({"rounds": rounds}))


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
    gap = np.array([0.3, 0.3, 0.3, 0.2])
    half = 3.182 * 0.025  # Student's of four; the standard error of three equal and one other
    for sign, word in ((1, "less"), (-1, "more")):
        assert learning_page.difference(sign * gap, certain=True) == f"{word}: 0.275 ± {half:.3f}"
    no = learning_page.difference(-gap, certain=False)
    assert no == f"no measurable difference: -0.275 ± {half:.3f}"


def test_verdicts_on_forgetting_are_corrected_for_their_number():
    """Alone, p is .04 for the last two."""
    plain = [0.5, 0.4, 0.6, 0.7]
    clear, less = [0.2, 0.1, 0.3, 0.41], [0.35, 0.3, 0.45, 0.68]
    assert 0.02 < stats.ttest_rel(plain, less).pvalue < 0.05
    syllabi = {
        name: [{"agent": agent, "forgetting": of} for agent, of in (("ppo", plain), ("a", of_a))]
        for name, of_a in (("x", clear), ("y", less), ("z", less))
    }
    rows = [line.split(" | ") for line in learning_page.forgetting(syllabi)][2:]
    assert [row[1].split(":")[0] for row in rows] == ["less", *["no measurable difference"] * 2]
    alone = list(learning_page.forgetting({"y": syllabi["y"]}))[-1]
    assert "| less: 0.105" in alone


def test_the_guide_has_what_learners_forget():
    guide = (Path(__file__).parents[2] / "docs" / "guide.md").read_text(encoding="utf-8")

    def shown(values):
        mean = learning_metrics.mean_of(values)
        return re.sub(r"^(-?)0", r"\1", f"{mean['mean']:.3f} ± ") + f"{mean['half']:.3f}"[1:]

    for syllabus in ("ant_b", "ant_a", "ant_c", "cl_pole_length"):
        names = [f"syllabus_{syllabus}_10_{agent}" for agent in ("ppo", "ppo+ewc", "ppo+replay")]
        lost = [np.array(measured(f"learning/{name}.json")["forgetting"]) for name in names]
        assert f"| {'; '.join(map(shown, lost))} |" in guide
        if syllabus == "ant_b":
            assert f"| {'; '.join(shown(lost[0] - other) for other in lost[1:])} |" in guide


def test_half_an_interval_is_students():
    half = learning_metrics.mean_of(np.array([1.0, 2.0, 4.0]))["half"]
    assert half == pytest.approx(4.303 * np.std([1, 2, 4], ddof=1) / 3**0.5, rel=1e-3)
    assert learning_metrics.mean_of(np.array([2.0])) == {"mean": 2.0, "half": 0.0}
