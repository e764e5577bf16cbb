"""Comparing two runs: the numbers, the tables, the command, and what it refuses."""

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evaluation import cli
from evaluation.metrics import Reason, probability_of_improvement
from evaluation.records import COLUMNS, Records, read_run
from evaluation.report.compare import BY_BLOCK, compare_records
from evaluation.report.lifelong import common_ranges
from evaluation.report.recorded import record_metrics
from evaluation.schedule import Block, Schedule
from tests.evaluation.report.test_html import check_page

COUNTS = (15, 12, 4)

SCHEDULE = Schedule(
    "made up",
    (
        Block(0, 1, "train", "Toy", (), COUNTS[0], True),
        Block(1, 1, "test", "Toy", (("target", 1),), COUNTS[1], False),
        Block(2, 2, "train", "Toy", (), COUNTS[2], True),
    ),
    source="made_up.json",
)


def run(lifetimes=12, level=0.5, seed=0, schedule=SCHEDULE):
    """Records of rising performance around a level that differs between lifetimes."""
    random = np.random.default_rng(seed)
    shape = (lifetimes, schedule.num_episodes)
    columns = {name: np.zeros(shape, dtype) for name, dtype in COLUMNS.items()}
    base = level + random.normal(0, 0.1, (lifetimes, 1)) + np.linspace(0, 0.2, shape[1])
    columns["performance"][:] = base + random.normal(0, 0.02, shape)
    columns["complete"][:] = True
    return Records(schedule, columns, np.zeros(2, np.int32), metadata={"agent": "x", "seed": 4})


@pytest.fixture(scope="module")
def pair():
    return run(level=0.6), run(9, level=0.5, seed=1)


@pytest.fixture(scope="module")
def comparison(pair):
    return compare_records(*pair)


def strict(values):
    return json.loads(json.dumps(values, allow_nan=False), parse_constant=pytest.fail)


def test_numbers_are_those_of_the_lifetimes(pair, comparison):
    means = [one.columns["performance"][:, :15].astype(float).mean(axis=1) for one in pair]
    expected = probability_of_improvement(*means)
    entry = strict(comparison.to_json())["blocks"][0]["metrics"]["mean"]
    assert entry["improvement"]["probability"] == pytest.approx(float(expected.probability))
    assert entry["improvement"]["low"] == pytest.approx(float(expected.low))
    assert entry["improvement"]["p_value"] == pytest.approx(float(expected.p_value))
    assert entry["improvement"]["p_value_corrected"] >= entry["improvement"]["p_value"]
    assert entry["first"]["mean"] == pytest.approx(means[0].mean(), rel=1e-5)
    assert entry["second"]["lifetimes"] == 9
    assert entry["better"] == "higher"


def test_corrected_p_values_stand_beside_the_plain_ones(comparison):
    larger = 0
    for block in strict(comparison.to_json())["blocks"]:
        for name, entry in block["metrics"].items():
            improvement, metric = entry["improvement"], comparison.blocks[name]
            if improvement["p_value"] is not None:
                assert improvement["p_value_corrected"] == metric.corrected[block["block"]]
                larger += improvement["p_value_corrected"] > improvement["p_value"]
    assert larger


def test_both_runs_are_normalised_by_one_range():
    pair = run(level=0.6), run(9, level=0.5, seed=1)
    for one in pair:
        one.columns["length"][:] = 200 * one.columns["performance"]
    ranges = common_ranges(pair, "length")
    tasks = np.repeat([0, 1, 0], COUNTS)
    for index, (low, high) in enumerate(ranges.values()):
        both = np.concatenate([one.columns["length"][:, tasks == index].ravel() for one in pair])
        assert (low, high) == (both.min(), both.max())
    assert ranges != common_ranges(pair[:1], "length")


def test_less_is_better_of_times():
    slow, fast = (run(12, schedule=SCHEDULE) for _ in range(2))
    fast.columns["performance"][:, :15] = 1.0  # saturated in its first window
    slow.columns["performance"][:, :15] = np.linspace(0, 1, 15)
    metric = compare_records(fast, slow, ["time_to_saturation"]).blocks["time_to_saturation"]
    assert metric.better == "lower"
    assert metric.first.mean[0] < metric.second.mean[0]
    assert metric.improvement.probability[0] == 1.0


def test_every_missing_number_has_a_reason(comparison):
    values = strict(comparison.to_json())
    places = [values["metrics"], *(block["metrics"] for block in values["blocks"])]
    nulls = 0
    for metrics in places:
        assert list(metrics) == list(BY_BLOCK)
        for name, entry in metrics.items():
            improvement = entry["improvement"]
            missing = [key for key, value in improvement.items() if value is None]
            assert bool(missing) == ("reason" in improvement), name
            nulls += len(missing)
    assert nulls
    saturation = values["blocks"][2]["metrics"]["saturation_value"]["improvement"]
    assert saturation["reason"].startswith("first run: the block has fewer episodes")


def test_one_lifetime_has_a_probability_and_no_interval(pair):
    entry = strict(compare_records(run(1), pair[1], ["mean"]).to_json())["metrics"]["mean"]
    assert entry["improvement"]["probability"] is not None
    assert entry["improvement"]["low"] is None
    assert entry["improvement"]["reason"].startswith("first run: fewer than two lifetimes")


def test_no_value_anywhere(pair):
    broken = run(12)
    broken.columns["performance"][:] = np.nan
    values = strict(compare_records(broken, pair[1]).to_json())
    for entry in values["metrics"].values():
        assert entry["improvement"]["probability"] is None
        assert entry["improvement"]["reason"].startswith("first run: ")


def test_pairs_are_lifetimes_of_one_number():
    one, other = run(8), run(8)
    other.columns["performance"][:] -= np.float32(0.001)
    unpaired = compare_records(one, other, ["mean"]).syllabus["mean"].improvement
    paired = compare_records(one, other, ["mean"], paired=True).syllabus["mean"].improvement
    assert unpaired.probability[()] < 0.7
    assert paired.probability[()] == 1.0
    assert paired.p_value[()] == pytest.approx(2 / 2**8)


def test_lifelong_metrics_are_compared_too(pair, comparison):
    ranges = {"toy_default": (0.0, 1.0), "toy_v1": (0.0, 1.0)}
    ours, theirs = (
        record_metrics(one, ranges=ranges, compiled=False).results.lifetime["avg_train_perf"]
        for one in pair
    )
    expected = probability_of_improvement(ours.values, theirs.values)
    lifelong = strict(comparison.to_json())["lifelong"]
    entry = lifelong["metrics"]["avg_train_perf"]
    assert entry["better"] == "higher"
    assert entry["improvement"]["probability"] == pytest.approx(float(expected.probability))
    assert entry["improvement"]["low"] == pytest.approx(float(expected.low))
    assert set(lifelong["tasks"]) == {"toy_default", "toy_v1"}
    alone = compare_records(*pair, ["avg_train_perf"])
    assert not alone.blocks and list(alone.lifelong.lifetime) == ["avg_train_perf"]


BAD = {
    "another count": (
        {"blocks": (replace(SCHEDULE.blocks[0], count=14), *SCHEDULE.blocks[1:])},
        r"block 0 is 1\.train of 15 episodes of Toy in the first and 1\.train of 14",
    ),
    "another parameter": (
        {"blocks": (SCHEDULE.blocks[0], replace(SCHEDULE.blocks[1], parameters=(("target", 2),)))},
        r"block 1 is .* Toy target=1 in the first and .* target=2 in the second",
    ),
    "fewer blocks": ({"blocks": SCHEDULE.blocks[:2]}, "3 blocks in the first and 2 in the second"),
}


@pytest.mark.parametrize("name", BAD)
def test_different_syllabi_are_refused(pair, name):
    change, words = BAD[name]
    with pytest.raises(ValueError, match=f"different syllabi: .*{words}|{words}"):
        compare_records(pair[0], run(9, schedule=replace(SCHEDULE, **change)))


def test_another_name_is_no_other_syllabus(pair):
    renamed = replace(pair[1], schedule=replace(SCHEDULE, name="else"))
    assert (
        compare_records(pair[0], renamed, ["mean"]).syllabus["mean"].improvement.probability > 0.5
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"metrics": ["reward"]}, "metric is 'reward'; it must be one of mean, saturation_value"),
        ({"measure": "speed"}, "performance, reward, length"),
        ({"window": 4}, "window must be odd"),
    ],
)
def test_bad_arguments(pair, arguments, words):
    with pytest.raises(ValueError, match=words):
        compare_records(*pair, **arguments)


def test_pairs_are_the_lifetimes_that_both_have():
    late = replace(run(8), first_lifetime=3)
    for name, column in run(12).columns.items():
        late.columns[name][:] = column[3:11]
    comparison = compare_records(run(12), late, ["mean"], paired=True)
    assert comparison.first.num_lifetimes == comparison.second.num_lifetimes == 8
    assert comparison.first.first_lifetime == 3
    # The same lifetimes: every pair is a tie.
    assert comparison.syllabus["mean"].improvement.probability[()] == 0.5
    assert comparison.syllabus["mean"].improvement.p_value[()] == 1


def test_pairs_of_other_seeds_are_refused():
    other = replace(run(12), metadata={"seed": 5})
    with pytest.raises(ValueError, match="one seed, not of 4 and 5"):
        compare_records(run(12), other, paired=True)


# The command --------------------------------------------------------------------------------------


def recovering(lifetimes, times):
    """Two training blocks; performance falls at the second, and recovers after some episodes."""
    plan = Schedule(
        "recovery",
        tuple(Block(i, i + 1, "train", "Toy", (), 40, True) for i in range(2)),
        source="recovery.json",
    )
    columns = {name: np.zeros((lifetimes, 80), dtype) for name, dtype in COLUMNS.items()}
    columns["complete"][:] = True
    columns["performance"][:, :40] = 0.9
    for lifetime, time in enumerate(times):
        columns["performance"][lifetime, 40 + time :] = 0.9
    return Records(plan, columns, np.zeros(1, np.int32), metadata={"agent": "made up", "seed": 0})


@pytest.mark.parametrize("paired", [False, True])
def test_an_agent_that_does_not_recover_is_slower_than_any_that_does(paired):
    seldom = recovering(8, [5, 40, 40, 40, 40, 40, 40, 40])
    always = recovering(8, range(10, 18))
    comparison = compare_records(seldom, always, ["recovery_time"], window=3, paired=paired)
    for part in (comparison.blocks, comparison.syllabus):
        metric = part["recovery_time"]
        assert np.ravel(metric.first.count)[0] == 1 and np.ravel(metric.second.count)[0] == 8
        assert np.ravel(metric.improvement.probability)[0] == pytest.approx(1 / 8)
        assert np.ravel(metric.improvement.p_value)[0] < 0.1
    never = recovering(8, [40] * 8)
    neither = compare_records(never, never, ["recovery_time"], window=3, paired=paired)
    assert np.isnan(neither.blocks["recovery_time"].improvement.probability[0])
    worse = compare_records(always, never, ["recovery_time"], window=3, paired=paired)
    assert worse.blocks["recovery_time"].improvement.probability[0] == 1


@pytest.fixture
def directories(pair, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, records in zip(("pd", "greedy"), pair, strict=True):
        records.write(tmp_path / name / "records.parquet")
    return tmp_path


def test_command_prints_and_writes(directories, capfd):
    assert cli.main(["compare", "pd", "greedy", "--metric", "mean", "--json", "c.json"]) == 0
    captured = capfd.readouterr()
    assert captured.err == ""
    for words in ("made up: performance, 12 lifetimes of pd", "higher is better", "9 of greedy"):
        assert words in " ".join(captured.out.split())
    command = "jaxsim compare pd greedy --metric mean --json c.json"
    check_page(directories / "c.html", command, versions=False)  # made-up runs have none
    values = json.loads((directories / "c.json").read_text(), parse_constant=pytest.fail)
    again = compare_records(
        read_run(directories / "pd"), read_run(directories / "greedy"), ["mean"]
    )
    assert values == strict(again.to_json())


def results_of(folder, numbers, ends=(0, 1), measure="reward"):
    """A result file of logs, as l2metrics writes it."""
    runs = [
        {
            "run_id": f"{folder}{index}",
            "avg_train_perf": number,
            "perf_recovery": None,
            "metrics_column": measure,
            "normalization_data_range": {"a_1": {"min": ends[0], "max": ends[1]}},
            "task_metrics": {"a_1": {"avg_train_perf": number}},
            "why": {"perf_recovery": Reason.TOO_FEW_RECOVERIES.sentence},
        }
        for index, number in enumerate(numbers)
    ]
    path = Path(folder) / "ll_metrics.json"
    path.parent.mkdir()
    path.write_text(json.dumps(runs))


def test_results_of_logs_are_compared(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    results_of("a", [5.0, 6.0, 7.0, 8.0])
    results_of("b", [1.0, 2.0, 3.0, 7.5])
    assert cli.main(["compare", "a", "b", "--json", "c.html"]) == 2
    assert "json is c.html, the name of the page beside it" in capfd.readouterr().err
    assert cli.main(["compare", "a", "b", "--json", "c.json"]) == 0
    captured = capfd.readouterr()
    assert captured.err == "" and "avg_train_perf" in captured.out
    values = strict(json.loads(Path("c.json").read_text()))
    for entry in (values["metrics"]["avg_train_perf"], values["tasks"]["a_1"]["avg_train_perf"]):
        assert entry["improvement"]["probability"] == 13 / 16
        assert (entry["first"]["mean"], entry["second"]["mean"]) == (6.5, 3.375)
    missing = values["metrics"]["perf_recovery"]
    assert missing["first"]["reason"] == Reason.TOO_FEW_RECOVERIES.sentence
    assert missing["improvement"]["probability"] is None


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["a", "c"], 0, "give l2metrics the same -d for all"),
        (["a", "a", "--metric", "mean"], 2, "none of mean in common; they have"),
        (["a", "a", "--paired"], 2, "logs have no numbers"),
        (["a", "a", "--measure", "length"], 2, "--measure is for directories of `jaxsim run`"),
        (["a", "a", "--window", "5"], 2, "--window is for directories of `jaxsim run`"),
        (["a", "d"], 2, "the results are of reward and length; give l2metrics the same -p"),
    ],
)
def test_results_of_logs_that_do_not_fit(words, code, message, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    results_of("a", [5.0, 6.0])
    results_of("c", [5.0, 6.0], ends=(0, 9))
    results_of("d", [5.0, 6.0], measure="length")
    assert cli.main(["compare", *words]) == code
    (line,) = capfd.readouterr().err.splitlines()
    assert message in line


def test_command_is_quiet(directories, capfd):
    assert cli.main(["compare", "pd", "greedy", "--quiet", "--json", "c.json"]) == 0
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["pd", "nowhere"], "there is no nowhere; name a directory"),
        (["pd", "."], r"there is no records\.parquet"),
        (["pd", "greedy", "--metric", "mode"], "metric is 'mode'; it must be one of"),
        (["pd", "greedy", "--quiet"], "pass --json with it"),
        (["pd", "greedy", "--window", "2"], "window must be odd"),
        (["pd", "greedy", "--seed", "-1"], "seed must be 0 or more"),
        (["pd", "late", "--paired"], "no lifetime in common: 0 to 11 and 20 to 22"),
        (["pd", "text"], "is not a records file"),
    ],
)
def test_command_refuses(directories, capfd, arguments, words):
    (directories / "text").write_text("not a table")
    replace(run(3), first_lifetime=20).write(directories / "late" / "records.parquet")
    assert cli.main(["compare", *arguments]) == 2
    captured = capfd.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert re.search(words, line), line


@pytest.mark.parametrize("width", [80, 160])
def test_tables_fit_and_hold_every_number(comparison, width):
    rich_console = pytest.importorskip("rich.console")
    from evaluation.report.comparison_tables import print_comparison

    console = rich_console.Console(record=True, width=width, file=io.StringIO())
    print_comparison(console, comparison, ("pd", "greedy"))
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    assert "target 1" in text and "toy_v1" not in text
    assert "no value: block" in text
    assert "recovery time: no lifetime of either run has a value" in " ".join(text.split())
    assert not re.search(r"\b(nan|inf|None)\b", text)
    for metric in comparison.blocks.values():
        for probability in metric.improvement.probability:
            assert np.isnan(probability) or f"{probability:.2f}" in text
