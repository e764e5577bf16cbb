"""`sailon evaluate` around the playing, which is made up here; the whole command is a long test."""

import json
from dataclasses import replace

import numpy as np
import pytest

from evaluation import cli, scanner
from evaluation.sailon import analysis, evaluate, plots
from evaluation.sailon.experiment import generate, load
from evaluation.sailon.reading import load_results
from evaluation.sailon.results import Results, planned
from evaluation.sweep import bases
from evaluation.sweep.bases.base import SweepFiles, complete
from evaluation.sweep.grid import SweepCell
from tests.evaluation.report.test_html import check_page

SMALL = {"levels": (200, 203), "difficulties": ("hard",), "trials": 3, "episodes": 6, "seed": 5}
OPTIONS = scanner.MachineOptions(chunk=64, threads=1)


def made_up(experiment, name):
    """Results that differ between agents."""
    random = np.random.default_rng(len(name))
    rows = planned(experiment)
    count = len(rows["performance"])
    rows["performance"][:] = random.uniform(0.2, 1, count)
    rows["length"][:] = 200 * rows["performance"]
    rows["novelty_probability"][:] = random.uniform(0, 1, count)
    rows["novelty_threshold"][:] = 0.75
    rows["complete"][:] = True
    about = {"seed": experiment.settings.seed, "versions": {"jaxsim-novelty": "0", "jax": "0"}}
    return Results(rows, experiment, {"agent": name, **about})


@pytest.fixture
def calls(monkeypatch):
    """What is asked to be played: (experiment, names, options, keeper) of each call."""
    requests = []

    def play_agents(experiment, agents, *, options, progress, keeper):
        names = [agent.name for agent in agents]
        requests.append((experiment, names, options, keeper))
        total = 10 * len(names)
        for done in range(1, total + 1):
            progress(done, total)
        return [made_up(experiment, name) for name in names]

    monkeypatch.setattr(evaluate, "play_agents", play_agents)
    return requests


def job(out, **changes):
    return evaluate.EvaluationPlan("greedy", out, options=OPTIONS, **SMALL | changes)


def test_agent_and_baseline_play_and_everything_is_written(calls, tmp_path):
    asked, moves = job(tmp_path / "out"), []
    evaluation = evaluate.run(asked, asked.checked(), lambda *at: moves.append(at))
    ((experiment, names, options, keeper),) = calls
    assert (names, options) == (["greedy", "pd"], OPTIONS)
    assert (moves[0], moves[-1], len(moves)) == ((1, 20), (20, 20), 20)
    assert keeper is not None
    assert (
        experiment
        == generate(asked.settings(), "evaluation")
        == load(asked.out / "experiment.json")
    )
    for name, table in (("agent", evaluation.agent), ("baseline", evaluation.baseline)):
        written = load_results(asked.out / f"{name}.parquet")
        assert written.metadata == table.metadata
        np.testing.assert_array_equal(written.rows["performance"], table.rows["performance"])
    assert (evaluation.agent.metadata["agent"], evaluation.baseline.metadata["agent"]) == (
        "greedy",
        "pd",
    )
    report = json.loads((asked.out / "report.json").read_text())
    expected = analysis.analyse(evaluation.agent, evaluation.baseline, seed=5)
    timing = report.pop("timing")
    assert report == expected.to_json()
    assert (asked.out / "metrics.csv").read_text() == expected.to_csv()
    assert (asked.out / "trials.csv").read_text() == expected.trials_csv()
    assert timing["steps"] == sum(
        made_up(experiment, name).rows["length"].sum() for name in ("greedy", "pd")
    )
    assert set(timing["seconds"]) == set(timing["processor_seconds"]) == {"greedy", "pd"}
    check_page(asked.out / "report.html", asked.command)
    pictures = {f"{name}_{visibility}.png" for name in plots.FIGURES for visibility in (0, 1)}
    assert {path.name for path in asked.out.iterdir()} - pictures == {
        asked.out.joinpath(name).name
        for name in (evaluate.FILES.marker, *evaluate.FILES.names)
        if name not in pictures
    }  # and no checkpoint is left


def test_time_is_of_the_agent_that_plays(calls, tmp_path, monkeypatch):
    clock = iter(range(1000))
    monkeypatch.setattr(evaluate.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(evaluate.time, "process_time", lambda: 0.0)
    asked = job(tmp_path)
    evaluation = evaluate.play(asked, asked.checked())
    assert evaluation.seconds == {"greedy": 10, "pd": 10}
    assert evaluation.processor_seconds == {"greedy": 0, "pd": 0}


@pytest.mark.parametrize(("agent", "baseline"), [("pd", "pd"), ("pd+residual", "pd")])
def test_a_baseline_that_acts_as_the_agent_does_is_not_played(calls, tmp_path, agent, baseline):
    asked = replace(job(tmp_path, baseline=baseline), agent=agent)
    evaluation = evaluate.play(asked, asked.checked())
    assert calls[0][1] == [agent]
    assert evaluation.baseline.metadata["agent"] == baseline
    alone = evaluation.agent if agent == baseline else evaluation.agent.silenced(baseline)
    for name in ("performance", "novelty_probability"):
        np.testing.assert_array_equal(evaluation.baseline.rows[name], alone.rows[name])
    assert list(evaluation.seconds) == [agent]


def test_an_agent_of_a_file_may_have_any_name(calls, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "from dataclasses import replace\nfrom jaxsim import agents\n"
        "agent = replace(agents.get('random'), name='mover')\n"
    )
    asked = replace(job(tmp_path / "out"), agent=str(file))
    evaluation = evaluate.run(asked, asked.checked())
    assert calls[0][1] == ["mover", "pd"]
    tables = evaluation.agent, evaluation.baseline
    assert evaluation.steps == sum(table.rows["length"].sum() for table in tables)


def test_a_button_is_half_of_a_short_trial(tmp_path):
    assert job(tmp_path).settings().pre_novel_episodes == 3
    assert job(tmp_path, episodes=60).settings().pre_novel_episodes == 20
    assert job(tmp_path, episodes=60, button=50).settings().pre_novel_episodes == 50


def test_the_command_plays_what_it_is_asked(calls, tmp_path, capsys):
    out = tmp_path / "out"
    words = "sailon evaluate --agent greedy --levels 200,203 --difficulties hard --trials 3"
    assert cli.main([*words.split(), "--episodes", "6", "--seed", "5", "--out", str(out)]) == 0
    assert calls[0][0].settings == job(out).settings()
    shown = capsys.readouterr().out
    assert "greedy, baseline pd" in shown
    steps = json.loads((out / "report.json").read_text())["timing"]["steps"]
    assert f"{steps:,} environment steps" in shown
    assert cli.main([*words.split(), "--out", str(out), "--quiet"]) == 2  # results are there


def test_a_cell_of_a_sweep_has_the_rows_and_metrics_of_its_own_trials(calls):
    base = bases.get("sailon evaluate")
    fixed = {"agent": "greedy", "difficulty": "hard", "trials": 3, "episodes": 6, "seed": 5}
    cells = [
        SweepCell(4 + k, complete(base, fixed | {"level": v})) for k, v in enumerate((200, 203))
    ]
    results = base.play(cells, SweepFiles({}))
    ((experiment, names, _, keeper),) = calls
    assert (names, keeper) == (["greedy", "pd"], None)
    assert experiment.settings.novelty == (200, 203)
    agent, baseline = (made_up(experiment, name) for name in names)
    report = analysis.analyse(agent, baseline, seed=5)
    rows, metrics = results.rows.to_pandas(), results.metrics.to_pandas()
    for cell, level in zip(cells, (200, 203), strict=True):
        tested, other = agent.tested(), baseline.tested()
        places = tested["novelty_level"] == level
        part = rows[rows["cell"] == cell.number]
        for name in ("performance", "length", "novelty_probability", "episode_index"):
            np.testing.assert_array_equal(part[name], tested[name][places])
        np.testing.assert_array_equal(part["baseline"], other["performance"][places])
        (row,) = (one for one in report.rows if (one.kind, one.level) == ("cell", level))
        part = metrics[metrics["cell"] == cell.number].set_index("metric")
        assert set(part.index) == set(row.values)
        for name, value in row.values.items():
            interval = part.loc[name, ["value", "low", "high"]].astype(float)
            np.testing.assert_array_equal(interval, [value.values, value.low, value.high])
            assert part.loc[name, "count"] == row.counts[name]
            assert isinstance(part.loc[name, "reason"], str) == (value.reasons != 0), name
