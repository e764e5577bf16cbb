"""Episodes of several sub-episodes: each a reset and steps, logged one by one, measured as one."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from evaluation import cli, l2m, scanner, session
from evaluation.l2m import l2metrics, report2019
from evaluation.logs import export, learnkit, read_log, validate_log
from evaluation.records import COLUMNS, read
from evaluation.report import summarise_records
from evaluation.report.compare import compare_records
from evaluation.report.recorded import record_metrics
from evaluation.schedule import Schedule
from evaluation.session import PurePlayer
from tests.evaluation import toy
from tests.evaluation.toy import repeat

SIZES = [3, 3, 3, 3, 2, 2, 1]
"""Sub-episodes of the seven episodes."""


PHASES = (
    ("1.train", [repeat(4, sub_episodes=3, wheel=5)]),
    ("1.test", [repeat(2, sub_episodes=2, wheel=5)]),
    ("2.train", [repeat(1, target=2)]),
)


@pytest.fixture(scope="module", autouse=True)
def toy_task():
    with toy.registered():
        yield


@pytest.fixture(scope="module")
def schedule():
    return toy.schedule(*PHASES, name="parts")


@pytest.fixture(scope="module")
def records(schedule):
    return play(schedule)


def play(schedule):
    options = scanner.MachineOptions(threads=1)
    return scanner.play(schedule, toy.busy, lifetimes=2, seed=3, options=options)


def by_hand(column, join):
    """One value an episode of each lifetime, from the rows of its sub-episodes."""
    edges = np.cumsum([0, *SIZES])
    pieces = [column[:, start:stop] for start, stop in itertools.pairwise(edges)]
    return np.stack([join(piece, axis=1) for piece in pieces], axis=1)


def test_a_syllabus_says_how_many_there_are(schedule):
    assert [block.count for block in schedule.blocks] == [12, 4, 1]
    assert [block.episodes for block in schedule.blocks] == [4, 2, 1]
    assert [block.sub_episodes for block in schedule.blocks] == [3, 2, 1]
    assert schedule.episode_numbers().tolist() == np.repeat(np.arange(7), SIZES).tolist()
    assert l2m.loads(l2m.dumps(schedule)).blocks == schedule.blocks
    assert Schedule.from_json(schedule.to_json()) == schedule
    assert "sub_episodes" not in schedule.to_json()["blocks"][2]


def test_a_syllabus_of_python_says_the_same(schedule):
    built = l2m.Syllabus("parts").train(l2m.episodes("Toy", 4, {"wheel": 5}, sub_episodes=3))
    built = built.test(l2m.episodes("Toy", 2, {"wheel": 5}, sub_episodes=2))
    built = built.train(l2m.episodes("Toy", 1, {"target": 2}))
    assert built.schedule().blocks == schedule.blocks
    with pytest.raises(ValueError, match="sub_episodes is 0; it must be from 1"):
        l2m.episodes("Toy", 1, sub_episodes=0)


def test_another_number_of_them_begins_a_block():
    pairs = [repeat(1, sub_episodes=2), repeat(3, sub_episodes=2)]
    plan = toy.schedule(("1.train", [repeat(1), repeat(2, sub_episodes=1), *pairs]))
    assert [(block.count, block.sub_episodes) for block in plan.blocks] == [(3, 1), (8, 2)]


@pytest.mark.parametrize("number", [0, -1, 1.5, True, "2", None, 10_000_001])
def test_another_number_is_an_error_at_its_place(number):
    episode = json.dumps({"$episode": "Toy", "sub_episodes": number})
    text = f'{{"instructions": [{{"$phase": "1.train"}},\n{episode}]}}'
    words = "'sub_episodes' is .*; it must be a whole number from 1 to 10000000"
    with pytest.raises(l2m.SyllabusError, match=words) as caught:
        l2m.loads(text)
    assert (caught.value.line, caught.value.column) == (2, episode.index(json.dumps(number)) + 1)


def test_they_count_towards_the_longest_lifetime():
    with pytest.raises(l2m.SyllabusError, match="a lifetime may have 10000000 episodes"):
        toy.schedule(("1.train", [repeat(5_000_001, sub_episodes=2)]))


def test_a_curriculum_cannot_say_them(schedule):
    with pytest.raises(ValueError, match=r"phase 1\.train has sub-episodes"):
        l2m.Curriculum.of(schedule)


def test_each_is_a_reset_of_its_own_for_both_engines(schedule, records):
    """A reset carries nothing over: they are played as that many episodes are."""
    plain = replace(schedule, blocks=tuple(replace(b, sub_episodes=1) for b in schedule.blocks))
    alike = play(plain)
    for lifetime in range(2):
        player = PurePlayer(toy.busy, seed=3, lifetime=lifetime)
        one = session.play(schedule, player, seed=3, lifetime=lifetime)
        for name in COLUMNS:
            column = records.columns[name][lifetime]
            np.testing.assert_array_equal(one.columns[name][0], column, err_msg=name)
            np.testing.assert_array_equal(alike.columns[name][lifetime], column, err_msg=name)
    assert records.columns["reward"].shape == (2, 17)


def test_records_keep_them_and_join_them(records, tmp_path):
    records.write(tmp_path / "r.parquet")
    table = pq.read_table(tmp_path / "r.parquet")
    assert table["episode"].to_pylist() == 2 * np.repeat(np.arange(7), SIZES).tolist()
    assert table["sub_episodes"].to_pylist() == 2 * np.repeat(SIZES, SIZES).tolist()
    assert read(tmp_path / "r.parquet").schedule == records.schedule
    complete = records.columns["complete"].copy()
    complete[1, 4] = False
    whole = replace(records, columns={**records.columns, "complete": complete}).by_episode()
    assert [block.count for block in whole.schedule.blocks] == [4, 2, 1]
    for name in ("reward", "performance"):
        mean = by_hand(records.columns[name].astype(np.float64), np.mean).astype(np.float32)
        np.testing.assert_array_equal(whole.columns[name], mean, err_msg=name)
    for name in ("length", "seconds"):
        total = by_hand(records.columns[name], np.sum)
        np.testing.assert_array_equal(whole.columns[name], total, err_msg=name)
    assert whole.columns["complete"].tolist() == [[True] * 7, [True, False] + [True] * 5]
    last = np.cumsum(SIZES) - 1
    level = records.columns["predicted_level"][:, last]
    np.testing.assert_array_equal(whole.columns["predicted_level"], level)
    assert whole.by_episode() is whole


def test_logs_have_a_row_for_each(records, tmp_path):
    numbers = np.repeat(np.arange(7), SIZES).tolist()
    theirs = export.write_l2logger(records, 0, tmp_path)
    assert validate_log(theirs) == []
    assert [row.exp_num for row in read_log(theirs).rows] == numbers
    log = learnkit.read_log(export.write_learnkit(records, 0, tmp_path))
    assert log.warnings == ()
    assert [row.task for row in log.rows] == numbers
    assert [row.sub_task for row in log.rows] == [0, 1, 2] * 4 + [0, 1] * 2 + [0]
    logged = learnkit.episodes(log)
    assert logged.sub_episodes.tolist() == SIZES
    mean = by_hand(records.columns["reward"].astype(np.float64), np.mean)[0]
    np.testing.assert_allclose(logged.value, mean, rtol=1e-6)  # the text of float32 numbers


def test_metrics_are_of_means_over_them(records, tmp_path):
    """By hand, from records, from a log of 2019 by its own report, and from one of l2logger."""
    mean = by_hand(records.columns["reward"].astype(np.float64), np.mean)
    report = summarise_records(records, "reward", window=1)
    best = [mean[:, :4].max(axis=1), mean[:, 4:6].max(axis=1), mean[:, 6]]
    np.testing.assert_allclose(report.blocks["saturation_value"].mean, np.mean(best, axis=1))
    np.testing.assert_allclose(report.blocks["mean"].mean[0], mean[:, :4].mean())
    assert report.to_json()["episodes"] == 14
    assert [block["episodes"] for block in report.to_json()["blocks"]] == [4, 2, 1]
    compared = compare_records(records, records, ("saturation_value",), "reward", window=1)
    mean = compared.blocks["saturation_value"].first.mean
    np.testing.assert_array_equal(mean, report.blocks["saturation_value"].mean)
    old = report2019.AgentMetricsReport(
        log_dir=export.write_learnkit(records, 0, tmp_path), window=1, predefined=False
    )
    old.add(report2019.WithinBlockSaturation(old.settings)).calculate()
    saturation = list(old.results[0].values.per_block["saturation_value"].values())
    np.testing.assert_allclose(saturation, [values[0] for values in best], rtol=1e-6)
    settings = l2metrics.LogSettings(normalization_method="none", smoothing_method="none")
    log = export.write_l2logger(records, 0, tmp_path)
    (analysis,) = l2metrics.run([log], settings).analyses
    ours = record_metrics(records, "reward", settings.options(False), compiled=False).results
    for name in ("saturation", "term_perf", "avg_perf", "exp_to_sat"):
        here = getattr(ours.regimes, name).values[0]
        logged = analysis.of(getattr(analysis.results.regimes, name)).values
        np.testing.assert_allclose(logged, here, rtol=1e-6, err_msg=name)


def test_the_command_plays_them(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parts.json").write_text(toy.syllabus(*PHASES))
    words = ["run", "parts.json", "--agent", "random", "--lifetimes", "2", "--out", "out"]
    assert cli.main([*words, "--quiet", "--log-lifetime", "1"]) == 0
    blocks = read(tmp_path / "out" / "records.parquet").schedule.blocks
    assert [block.sub_episodes for block in blocks] == [3, 2, 1]
    (log,) = (tmp_path / "out" / "logs").iterdir()
    assert len(read_log(log).rows) == 17
    (tmp_path / "bad.json").write_text(toy.syllabus(("1.train", [repeat(1, sub_episodes=0)])))
    assert cli.main(["run", "bad.json", "--out", "bad"]) == 2
    assert "'sub_episodes' is 0; it must be a whole number" in capfd.readouterr().err
