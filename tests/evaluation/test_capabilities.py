"""Scores for core capabilities, lifetimes of several syllabi, logs that appear by themselves."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from evaluation import cli, shims
from evaluation.l2m.report2019.table import load_table
from evaluation.logs import home
from evaluation.metrics import Numbers
from evaluation.metrics.statistics import bootstrap_interval, wilson
from evaluation.records import read_run
from evaluation.report.capabilities import capability_scores, lifetime_scores
from evaluation.report.summary import summarise_records
from evaluation.report.transfer import between_tasks
from evaluation.schedule import Block, Schedule
from tests.evaluation import toy
from tests.evaluation.test_report import made_up

ROOT = Path(__file__).parents[2]
FIRST = """{"name": "first", "contains": "episodes", "instructions": [
 {"$phase": "1.train"}, {"$repeat": {"$episode": "Toy"}, "count": 6},
 {"$phase": "1.test"}, {"$info": {"disable_updates": true}},
 {"$repeat": {"$episode": "Toy", "target": 2}, "count": 3}, {"$info": {}}]}"""
SECOND = """{"name": "second", "contains": "episodes", "instructions": [
 {"$phase": "1.train"}, {"$repeat": {"$episode": "Toy", "target": 2}, "count": 4}]}"""


def numbers(values):
    return Numbers(np.asarray(values, np.float64), np.isnan(values).astype(np.int32))


@pytest.mark.requirement(112)
def test_a_score_is_the_mean_over_lifetimes_and_then_over_syllabi():
    runs = [
        {"saturation_value": numbers([1.0, 3.0]), "mean": numbers([0.0, 2.0])},
        {"saturation_value": numbers([5.0, 5.0, np.nan]), "time_to_saturation": numbers([9.0] * 3)},
    ]
    capabilities = capability_scores(runs)
    (name,) = capabilities
    assert name == "continual_learning"
    metrics = capabilities[name].metrics
    assert metrics["saturation_value"].value == (2 + 5) / 2
    assert metrics["saturation_value"].syllabi == 2 and metrics["mean"].syllabi == 1
    # Episodes are no performance, and fewer of them are better.
    assert list(capabilities[name].averages) == ["performance"]
    score = capabilities[name].averages["performance"]
    assert score.metrics == ("saturation_value", "mean")
    assert score.value == ((1 + 3 + 0 + 2) / 4 + 5) / 2
    assert score.low <= score.value <= score.high


def test_the_interval_of_a_score_is_that_of_its_lifetimes():
    values = np.random.default_rng(2).normal(size=(2, 400))
    capability = capability_scores([{"mean": numbers(v)} for v in values])["continual_learning"]
    score = capability.metrics["mean"]
    half = 1.96 * np.sqrt(values.var(axis=1).sum() / 400) / 2
    assert score.high - score.low == pytest.approx(2 * half, rel=0.1)


@pytest.mark.parametrize("lifetimes", [2, 5, 30])
def test_of_one_syllabus_it_is_the_interval_of_the_report(lifetimes):
    values = np.random.default_rng(lifetimes).normal(size=lifetimes)
    (capability,) = capability_scores([{"mean": numbers(values)}], seed=3).values()
    score = capability.metrics["mean"]
    interval = bootstrap_interval(values, 3, method="calibrated")
    assert (score.low, score.high) == pytest.approx((float(interval.low), float(interval.high)))
    (none,) = capability_scores([{"mean": numbers(values[:1])}]).values()
    assert np.isnan([none.metrics["mean"].low, none.metrics["mean"].high]).all()


def test_intervals_stay_within_the_bounds_of_their_metrics():
    scores = {"mean": numbers(np.array([0.0, 0.1, 0.9])), "cdt": numbers(np.array([0.9, 0.1, 1.0]))}
    by_name = {}
    for capability in capability_scores([scores], unit=True).values():
        by_name |= capability.metrics
        for average in capability.averages.values():
            assert average.low >= 0
            assert average.high <= 1
    assert (by_name["mean"].low, by_name["cdt"].high) == (0, 1)
    (free,) = capability_scores([{"mean": scores["mean"]}]).values()
    assert free.metrics["mean"].low < 0  # a performance may have any range unless told otherwise


def test_intervals_of_a_report_stay_within_the_range_of_the_performance():
    records = made_up(3)
    records.columns["performance"][:] = np.array([[0.0], [0.1], [0.9]])
    for measure, bounded in (("performance", True), ("reward", False)):
        records.columns["reward"][:] = records.columns["performance"]
        capabilities = summarise_records(records, measure).capabilities
        low = capabilities["continual_learning"].metrics["mean"].low
        assert (low == 0) == bounded and (low < 0) != bounded


def mean_area(curves):
    """(L,) area under each curve of n episodes, at distances of 1 / n."""
    return ((curves[:, 1:] + curves[:, :-1]) / 2).sum(1) / curves.shape[1]


def trained_in_order(lifetimes, *targets):
    blocks = [
        Block(i, i + 1, "train", "Toy", (("target", target),), 4, True)
        for i, target in enumerate(targets)
    ]
    random = np.random.default_rng(lifetimes)
    records = replace(made_up(lifetimes), schedule=Schedule("s", tuple(blocks)))
    columns = {name: column[:, : 4 * len(targets)] for name, column in records.columns.items()}
    columns["performance"] = random.uniform(size=(lifetimes, 4 * len(targets)))
    return replace(records, columns=columns, novelty_levels=np.zeros(len(targets), np.int32))


def test_the_interval_of_a_transfer_has_the_spread_of_both_task_orders():
    alone, after = trained_in_order(5, 2), trained_in_order(7, 1, 2)
    (transfer,) = between_tasks([alone, after])
    base = mean_area(alone.columns["performance"])
    areas = mean_area(after.columns["performance"][:, 4:])
    parts = areas.var(ddof=1) / 7, base.var(ddof=1) / 5
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / 6 + parts[1] ** 2 / 4)  # Welch, Satterthwaite
    half = stats.t.ppf(0.975, freedom) * np.sqrt(sum(parts))
    centre = areas.mean() - base.mean()
    assert (transfer.area, transfer.lifetimes) == (pytest.approx(centre, abs=1e-6), 7)
    assert (transfer.low, transfer.high) == pytest.approx((centre - half, centre + half), abs=1e-6)


def test_a_transfer_from_or_to_a_single_lifetime_has_no_interval():
    for alone, after in ((1, 7), (7, 1)):
        (transfer,) = between_tasks([trained_in_order(alone, 2), trained_in_order(after, 1, 2)])
        assert np.isfinite(transfer.area) and np.isnan([transfer.low, transfer.high]).all()
        assert transfer.to_json()["low"] is None


def test_lifetimes_that_begin_alike_count_once():
    """Syllabi of one seed that begin with one task have the same first blocks."""
    alone, after = trained_in_order(5, 2), trained_in_order(7, 1, 2)
    (expected,) = between_tasks([alone, after])
    longer = replace(alone, schedule=replace(alone.schedule, name="longer"))
    assert between_tasks([alone, longer, after, after]) == [expected]
    reseeded = replace(alone, metadata={**alone.metadata, "seed": 5})
    (more,) = between_tasks([alone, reseeded, after])
    assert more.area == expected.area and more.high - more.low < expected.high - expected.low
    later = replace(alone, first_lifetime=5)
    assert between_tasks([alone, later, after]) == [more]


def test_scores_of_one_lifetime_in_several_syllabi_are_averaged_first():
    random = np.random.default_rng(3)
    one = random.normal(size=6)
    runs = [{"mean": numbers(values)} for values in (one, one + 3, 2 - one)]
    named = [(4, number) for number in range(6)]

    def score(*places, lifetimes=None):
        scores = capability_scores([runs[p] for p in places], lifetimes=lifetimes)
        return scores["continual_learning"].metrics["mean"]

    alone = score(0)
    together, apart = score(0, 1, lifetimes=[named, named]), score(0, 1)
    width = alone.high - alone.low
    assert together.value == apart.value == pytest.approx(alone.value + 1.5)
    assert together.high - together.low == pytest.approx(width)
    assert apart.high - apart.low < 0.8 * width  # of twelve lifetimes by themselves
    cancelled = score(0, 2, lifetimes=[named, named])
    assert (cancelled.low, cancelled.high) == pytest.approx((1, 1))
    # Half of the lifetimes in common: means of six and of four.
    runs[1]["mean"].values[4:] = np.nan
    partly = score(0, 1, lifetimes=[named, named])
    sums = (one - one.mean()) / 6 + np.append(one[:4] - one[:4].mean(), [0, 0]) / 4
    values = partly.value + 6 / 2 * sums
    assert partly.value == pytest.approx((one.mean() + one[:4].mean() + 3) / 2)
    half = stats.t.ppf(0.975, 5) * stats.sem(values)
    assert partly.high - partly.low == pytest.approx(2 * half)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_share_that_is_alike_in_all_lifetimes_is_not_certain(value):
    scores = {name: numbers(np.full(4, value)) for name in ("true_alarm_rate", "cdt")}
    capability = capability_scores([scores])["safety_and_monitoring"]
    low, high = wilson(4 * value, 4, 0.95)
    assert high - low > 0.4
    for score in (*capability.metrics.values(), capability.averages["share"]):
        # Ends are the mean less and plus a root of a square, which rounds.
        assert (score.value, score.low, score.high) == pytest.approx((value, low, high))


def test_the_report_of_a_run_has_the_scores_of_its_metrics():
    from evaluation.report.summary import summarise_records

    records = made_up(12)
    content = summarise_records(records).to_json()
    scores = content["capabilities"]["continual_learning"]["metrics"]
    for name in ("mean", "saturation_value"):
        assert scores[name]["value"] == pytest.approx(content["metrics"][name]["mean"], rel=1e-12)
    assert lifetime_scores(records)["mean"].values.shape == (12,)


def test_transfer_between_syllabi_is_an_area_between_curves():
    run = partial(trained_in_order, 3)
    one, both = run(2), run(1, 2)
    one.columns["performance"][:] = 0.5
    both.columns["performance"][:, 4:] = 0.75
    (transfer,) = between_tasks([one, both])
    assert transfer.area == transfer.low == transfer.high == pytest.approx(0.25 * 3 / 4)
    assert transfer.lifetimes == 3
    assert between_tasks([both]) == []
    # A task that is trained again does not show what it gains from another one.
    assert between_tasks([run(1, 2, 1)]) == between_tasks([one, run(2, 1, 2)]) == []
    stranger = replace(one, metadata={"agent": "another"})
    assert between_tasks([stranger, both]) == []
    assert [pair.agent for pair in between_tasks([stranger, one, both])] == [both.metadata["agent"]]


def test_options_of_the_command_reach_its_numbers(tmp_path):
    runs = [made_up(12), made_up(17, seed=1)]
    # What one trains first, the other trains second.
    blocks = [replace(runs[1].schedule.blocks[3], index=0), runs[1].schedule.blocks[0]]
    counts = np.cumsum([0, *(block.count for block in runs[0].schedule.blocks)])
    order = np.r_[counts[3] : counts[4], counts[0] : counts[1]]
    columns = {name: column[:, order] for name, column in runs[1].columns.items()}
    schedule = Schedule("turned", (blocks[0], replace(blocks[1], index=1, phase=3)))
    runs[1] = replace(runs[1], schedule=schedule, columns=columns)
    paths = [tmp_path / f"{number}.parquet" for number in range(2)]
    for run, path in zip(runs, paths, strict=True):
        run.write(path)

    place = tmp_path / "scores.json"
    words = [*map(str, paths), "--seed", "7", "--measure", "length", "--window", "5", "--quiet"]
    assert cli.main(["score", *words, "--json", str(place)]) == 0
    content = json.loads(place.read_text())
    scored = [lifetime_scores(run, "length", 5) for run in runs]
    scores = capability_scores(scored, (), 7, lifetimes=[run.lifetime_names() for run in runs])
    expected = {name: of.to_json() for name, of in scores.items()}
    assert content["capabilities"] == json.loads(json.dumps(expected))
    assert (content["measure"], content["window"]) == ("length", 5)
    assert content["runs"] == [
        {
            "run": str(path),
            "syllabus": run.schedule.name,
            "agent": run.metadata["agent"],
            "lifetimes": lifetimes,
        }
        for path, run, lifetimes in zip(paths, runs, (12, 17), strict=True)
    ]
    transfer = [pair.to_json() for pair in between_tasks(runs, "length")]
    assert content["transfer"] == transfer and len(transfer) == 2
    assert transfer != [pair.to_json() for pair in between_tasks(runs)]


def test_schedules_in_sequence_are_one_lifetime():
    block = Block(0, 1, "train", "Toy", (), 2, True)
    later = Block(1, 2, "test", "Toy", (), 3, False)
    parts = Schedule("a", (block, later), "a.json"), Schedule("b", (block,), "b.json")
    joined = Schedule.joined(parts)
    assert [(b.index, b.phase, b.mode) for b in joined.blocks] == [
        (0, 1, "train"),
        (1, 2, "test"),
        (2, 3, "train"),
    ]
    assert (joined.name, joined.source, joined.num_episodes) == ("a+b", "a.json+b.json", 7)


@pytest.fixture
def toys(tmp_path, monkeypatch):
    from jaxsim import agents

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(home.VARIABLE, raising=False)
    agents.get.cache_clear()
    with toy.registered(), pytest.MonkeyPatch.context() as patch:
        patch.setitem(agents.AGENTS, "bandit", toy.bandit)
        Path("first.json").write_text(FIRST)
        Path("second.json").write_text(SECOND)
        yield tmp_path
    agents.get.cache_clear()


WORDS = ["--agent", "bandit", "--lifetimes", "3", "--window", "3", "--quiet"]


@pytest.mark.requirement(128)
def test_a_lifetime_spans_syllabi_with_one_memory(toys, capsys):
    assert cli.main(["run", "first.json", "second.json", "--out", "both", *WORDS]) == 0
    assert cli.main(["run", "first.json", "--out", "one", "--keep-memory", *WORDS]) == 0
    both, one = read_run(Path("both")), read_run(Path("one"))
    assert both.schedule.name == "first+second" and both.schedule.num_episodes == 13
    np.testing.assert_array_equal(both.columns["reward"][:, :9], one.columns["reward"])
    words = ["--agent", "checkpoint:one", *WORDS[2:]]
    assert cli.main(["run", "second.json", "--out", "on", *words]) == 0
    assert cli.main(["score", "one", "on", "./one"]) == 2
    assert "one is given twice" in capsys.readouterr().err
    assert cli.main(["score", "one", "on", "--json", "scores.json"]) == 0
    assert "continual learning" in capsys.readouterr().out
    scores = json.loads(Path("scores.json").read_text())
    assert [run["syllabus"] for run in scores["runs"]] == ["first", "second"]
    assert scores["capabilities"]["continual_learning"]["metrics"]["mean"]["syllabi"] == 2


@pytest.mark.parametrize("command", ["run", "train"])
def test_a_finished_run_that_is_resumed_keeps_its_memories_and_logs_nothing_again(toys, command):
    course = ["--episodes", "4", "--eval-every", "4", "--eval-episodes", "2", "--width", "1"]
    words = {
        "run": ["run", "first.json", *WORDS, "--keep-memory"],
        "train": ["train", "Toy", "--agent", "bandit", "--lifetimes", "2", "--quiet", *course],
    }[command]
    words += ["--out", "kept", "--l2data", "data"]
    assert cli.main(words) == 0
    saved, logs = sorted(Path("kept/checkpoints").iterdir()), list(Path("data/logs").iterdir())
    assert saved and len(logs) == 1
    without_option = [word for word in words if word != "--keep-memory"]
    assert cli.main([*without_option, "--resume"]) == 0
    assert sorted(Path("kept/checkpoints").iterdir()) == saved
    assert list(Path("data/logs").iterdir()) == logs
    # A kill before the results are there leaves the end saved, and the log is missing.
    marker = Path("kept", "report.json" if command == "run" else "curve.json")
    marker.unlink()
    assert cli.main([*words, "--resume"]) == 0
    assert marker.exists() and len(list(Path("data/logs").iterdir())) == 2


def test_tasks_of_other_shapes_do_not_continue(toys, capsys):
    Path("other.json").write_text(SECOND.replace('"Toy", "target": 2', '"CartPole3D"'))
    assert cli.main(["run", "first.json", "other.json", "--out", "x", *WORDS]) == 2
    assert "has other observations or actions than 'Toy'" in capsys.readouterr().err
    assert not Path("x").exists()


@pytest.mark.requirement(100)
def test_logs_appear_where_the_workflow_looks(toys, monkeypatch, capsys):
    monkeypatch.setenv(home.VARIABLE, str(toys / "data"))
    assert cli.main(["run", "first.json", "--out", "one", *WORDS]) == 0
    assert f"Logging to: {toys / 'data' / 'logs'}\n" in capsys.readouterr().err
    (log,) = home.log_folders()
    assert log.path.name.startswith("first-")
    assert (log.path / "worker-env-0").is_dir()
    words = ["--l2data", "elsewhere", "--log-lifetime", "2", "--log-format", "l2logger"]
    assert cli.main(["run", "first.json", "--out", "two", *words, *WORDS]) == 0
    assert len(list(Path("elsewhere", "logs").iterdir())) == 1 and len(home.log_folders()) == 1
    course = ["--episodes", "4", "--eval-every", "4", "--eval-episodes", "2", "--width", "1"]
    words = ["--agent", "bandit", "--lifetimes", "2", "--quiet", "--log-lifetime", "1"]
    assert cli.main(["train", "Toy", "--out", "t", *course, *words]) == 0
    assert len(home.log_folders()) == 2
    assert cli.main(["train", "Toy", "--out", "u", *course, *words[:-1], "2"]) == 2
    assert "log-lifetime is 2; it must be from 0 to 1" in capsys.readouterr().err


@pytest.mark.requirement(101)
@pytest.mark.parametrize(
    ("platform", "folder"),
    [
        ("linux", "l2data"),
        ("darwin", "Library/Application Support/l2data"),
        ("win32", "local/l2data"),
    ],
)
def test_the_folder_is_the_platform_s(platform, folder, tmp_path, monkeypatch):
    monkeypatch.delenv(home.VARIABLE, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert home.data_folder() == tmp_path / folder
    (tmp_path / "l2data").mkdir()
    assert home.data_folder() == tmp_path / "l2data"


@pytest.mark.requirement(105)
@pytest.mark.slow
def test_the_six_steps_of_the_document(tmp_path):
    """Its section 1.2, with the scripts under the names that it prints."""
    data = tmp_path / "l2data"
    syllabus = tmp_path / "short.json"
    text = (ROOT / "examples" / "syllabi" / "cl.json").read_text()
    text = re.sub(r'"count": \d+', '"count": 12', text.replace("CartPole3D", "CartPole"))
    syllabus.write_text(text)
    path = os.pathsep.join([str(shims.FOLDER), str(ROOT)])
    environment = {**os.environ, "L2DATA": str(data), "PYTHONPATH": path}
    script = f"""
    set -e
    {sys.executable} {ROOT}/examples/l2m/train_ppo.py --agent random --syllabus {syllabus}
    log_dir=$(ls -t -1 `{sys.executable} -m learnkit.info -get logdir` | head -1)
    {sys.executable} {shims.FOLDER}/calc_metrics.py -syllabus_subtype=CL -log_dir=$log_dir
    """
    done = subprocess.run(
        ["bash", "-c", script], env=environment, capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert f"Logging to: {data / 'logs'}" in done.stderr
    assert "Metric: Average Within Block Saturation Calculation" in done.stdout
    assert "'global_within_block_saturation': " in done.stdout
    assert "Metric: An Example Custom Metric" in done.stdout
    assert "Capability: continual_learning\nScore: {'performance': " in done.stdout


def test_a_task_says_what_the_log_holds_of_its_episodes(toys, monkeypatch):
    def info(self, totals):
        return {"reward": 2 * totals["reward"], "steps_taken": totals["length"]}

    monkeypatch.setattr(toy.Toy, "get_episode_log_info", info, raising=False)
    assert cli.main(["run", "first.json", "--out", "one", "--l2data", "data", *WORDS]) == 0
    records = read_run(Path("one"))
    (log,) = (Path("data") / "logs").iterdir()
    table = load_table(log)
    np.testing.assert_allclose(table.columns["reward"], 2 * records.columns["reward"][0])
    np.testing.assert_array_equal(table.columns["steps_taken"], records.columns["length"][0])
