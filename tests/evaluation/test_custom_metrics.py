"""One file with metrics of a user, in every command that computes metrics."""

import json
import warnings

import numpy as np
import pytest

from evaluation import cli
from evaluation.l2m.syllabus import loads
from evaluation.metrics import bootstrap_interval, metric
from evaluation.metrics.novelty import Trials, custom_of_trials
from evaluation.metrics.registry import row_of
from evaluation.records import read_run
from evaluation.report.compare import compare_records
from evaluation.report.custom import load_rows
from evaluation.report.custom_metrics import check_before_play, custom_numbers, lifetimes_of
from evaluation.report.summary import summarise_records
from evaluation.tasks import Tasks
from tests.evaluation import toy
from tests.evaluation.test_report import made_up

FILE = """
import numpy as np
from evaluation.metrics import metric

@metric(text="best episode of a block", direction="higher", unit="performance")
def best_episode(values):
    return np.nanmax(values, axis=-1)

@metric(scope="lifetime", direction="lower", missing="there is one block only")
def spread_of_blocks(values, counts):
    there = counts > 0
    return np.ptp(np.nansum(values, axis=-1)[there] / counts[there]) if there.sum() > 1 else np.nan

@metric(scope="task", name="episodes_of_task")
def count(tasks, counts, task_names):
    return np.bincount(tasks, counts, len(task_names))
"""
NAMES = ["best_episode", "spread_of_blocks", "episodes_of_task"]

SYLLABUS = """{"name": "small", "contains": "episodes", "instructions": [
 {"$phase": "1.train"}, {"$repeat": {"$episode": "Toy"}, "count": 4},
 {"$phase": "1.test"}, {"$info": {"disable_updates": true}},
 {"$repeat": {"$episode": "Toy", "target": 2}, "count": 3}, {"$info": {}}]}"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return str(path)


def test_numbers_of_runs_are_those_of_each_lifetime(file):
    records = made_up(6)
    rows = load_rows([file])
    assert [row.name for row in rows] == NAMES
    numbers = custom_numbers(rows, records)
    performance = records.columns["performance"].astype(np.float64)
    best = np.stack(
        [part.max(axis=1) for part in np.split(performance, [15, 27, 31, 51], axis=1)], 1
    )
    np.testing.assert_array_equal(numbers.blocks["best_episode"].values, best)
    report = summarise_records(records, rows=rows, seed=5).to_json()
    entry = report["blocks"][3]["metrics"]["best_episode"]
    interval = bootstrap_interval(best[:, 3], 5, method="calibrated")
    assert entry["mean"] == pytest.approx(best[:, 3].mean(), rel=1e-12)
    assert (entry["low"], entry["high"]) == (float(interval.low), float(interval.high))
    assert report["metrics"]["best_episode"]["lifetimes"] == 6
    lifelong = report["lifelong"]
    assert {"spread_of_blocks", "episodes_of_task"} <= set(lifelong["metrics"])
    counted = [of["episodes_of_task"]["mean"] for of in lifelong["tasks"].values()]
    assert sorted(counted) == [24, 39]
    assert report["own_metrics"]["best_episode"]["unit"] == "performance"


def test_tasks_have_the_order_that_is_given():
    (one,) = lifetimes_of(made_up(1))
    names = ("another", *reversed(one.task_names))
    (other,) = lifetimes_of(made_up(1), tasks=names)
    assert other.task_names == names
    assert [names[k] for k in other.tasks] == [one.task_names[k] for k in one.tasks]


def test_two_runs_are_compared_by_them(file):
    comparison = compare_records(made_up(9), made_up(9, seed=1), ["mean"], rows=load_rows([file]))
    assert list(comparison.syllabus) == ["mean", "best_episode"]
    assert comparison.syllabus["best_episode"].better == "higher"
    assert comparison.lifelong.lifetime["spread_of_blocks"].better == "lower"
    assert 0 <= float(comparison.syllabus["best_episode"].improvement.probability) <= 1


def test_a_trial_is_a_lifetime_of_two_blocks(file):
    performance = np.array([[0.9, 0.7, 0.2, 0.4], [1.0, 0.0, 0.0, 0.0]])
    same = np.zeros_like(performance)
    trials = Trials(performance, same, same, same + 1, np.array([2, 4]), np.array([4, 4]))
    rows = [row for row in load_rows([file]) if row.name == "spread_of_blocks"]
    spread = custom_of_trials(rows, trials)["spread_of_blocks"]
    assert spread.values[0] == pytest.approx(0.5) and np.isnan(spread.values[1])


@pytest.mark.parametrize("empty", [np.nan, 5.0, 9.0])
def test_a_block_without_episodes_does_not_count(empty):
    """At level 200 the second block of a trial has no episodes."""
    performance = np.array([[0.9, 0.7, 0.2, 0.4], [1.0, 0.0, 0.0, 0.0]])
    same = np.zeros_like(performance)
    trials = Trials(performance, same, same, same + 1, np.array([2, 4]), np.array([4, 4]))

    @metric(bounds=(1, 5))
    def episodes(values, counts):
        np.nanmean(values, axis=-1)  # warns of a mean of nothing
        return np.where(counts == 0, empty, counts)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        numbers = custom_of_trials([row_of(episodes)], trials)["episodes"]
    assert numbers.values.tolist() == [2, 4] and numbers.reasons.tolist() == [0, 0]


def test_run_train_and_compare_take_the_file(file, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with toy.registered(), pytest.MonkeyPatch.context() as patch:
        from jaxsim import agents

        agents.get.cache_clear()
        patch.setitem(agents.AGENTS, "bandit", toy.bandit)
        (tmp_path / "small.json").write_text(SYLLABUS)
        loads(SYLLABUS)
        words = ["--agent", "bandit", "--lifetimes", "3", "--metric", file]
        for out in ("a", "b"):
            assert cli.main(["run", "small.json", "--out", out, "--window", "3", *words]) == 0
        assert "best_episode" in capsys.readouterr().out
        names = ["--metric", "mean", "--metric", file, "--json", "compared.json"]
        assert cli.main(["compare", "a", "b", *names]) == 0
        assert "best_episode" in capsys.readouterr().out
        compared = json.loads((tmp_path / "compared.json").read_text())
        assert list(compared["metrics"]) == ["mean", "best_episode"]
        course = ["--episodes", "4", "--eval-every", "4", "--eval-episodes", "2", "--width", "1"]
        assert cli.main(["train", "Toy", "--out", "t", *course, *words]) == 0
        assert "best_episode" in capsys.readouterr().out
        trained = json.loads((tmp_path / "t" / "curve.json").read_text())["metrics"]
        assert list(trained) == NAMES and len(trained["best_episode"]["blocks"]) == 3
        agents.get.cache_clear()
    assert read_run(tmp_path / "a").num_lifetimes == 3


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def bad(values, counts):\n    return counts * np.nan\n", "that is not finite, without"),
        ("def bad(values, counts):\n    return values.mean()\n", "returned the shape ()"),
        ("def bad(values, counts):\n    return values.sum(5)\n", "failed: AxisError"),
        ("@metric()\ndef bad(baseline): ...\n", "asks for baseline; here it can have values"),
        ("@metric(bounds=(2, 3))\ndef bad(counts): return 0 * counts\n", "lie between 2 and 3"),
    ],
)
@pytest.mark.parametrize("command", [["run", "small.json"], ["train", "Toy"]])
def test_a_metric_that_fails_is_found_before_any_play(
    command, source, message, tmp_path, monkeypatch, capsys
):
    def refuse_to_play(*values, **options):
        raise AssertionError("the engine was called")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("evaluation.scanner.play", refuse_to_play)
    (tmp_path / "small.json").write_text(SYLLABUS)
    head = "import numpy as np\nfrom evaluation.metrics import metric\n"
    (tmp_path / "bad.py").write_text(head + source)
    with toy.registered():
        assert cli.main([*command, "--out", "r", "--quiet", "--metric", "bad.py"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "metric 'bad' " in line and message in line
    assert line.endswith("(tried on random numbers before any play)")
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("novel", [{"novelty/level": 205}, {"gravity": 5}])
def test_the_trial_before_play_has_the_fields_of_a_run_with_predictions(novel, tmp_path):
    instructions = [
        {"$phase": "1.train"},
        {"$repeat": {"$episode": "CartPole3D"}, "count": 40},
        {"$phase": "1.test"},
        {"$episode": "CartPole3D", **novel},
    ]
    schedule = loads(
        json.dumps({"name": "novel", "contains": "episodes", "instructions": instructions})
    )
    calls = []

    @metric()
    def mine(values, probability, threshold, level, novel):
        calls.append(novel)
        assert ((probability >= 0) & (probability <= 1))[~np.isnan(values)].all()
        return np.nanmax(values, axis=-1) + np.nanmin(level, axis=-1) * 0

    rows = [row_of(mine)]
    check_before_play(rows, schedule, Tasks.of(schedule).novelty_levels, "length")
    (flags,) = calls
    assert flags.tolist() == [False, True]
