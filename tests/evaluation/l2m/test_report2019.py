"""Reports of a 2019 log: numbers of that time, printed form, custom metrics, bad input."""

import ast
import csv
import io
import json
import math
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas
import pytest

from evaluation import metrics as kernels
from evaluation.l2m.report2019 import (
    AgentMetric,
    AgentMetricsReport,
    ClassificationMetric,
    ClassificationMetricsReport,
    GlobalMean,
    Values,
    WithinBlockSaturation,
    blocks_of,
    by_block,
    counts_of,
)
from evaluation.l2m.report2019.commands import calc_metrics, l2metrics
from evaluation.l2m.report2019.plots import per_block
from evaluation.l2m.report2019.table import load_table
from tests.conftest import SHARED
from tests.evaluation.l2m.learnkit_logs import write_log

ROOT = Path(__file__).parents[3]
LEARNKIT = SHARED / "l2m" / "learnkit_2020"
recorded = pytest.mark.skipif(not LEARNKIT.is_dir(), reason=f"no recorded log at {LEARNKIT}")

WIDE, NARROW = {"width": 0.2}, {"width": 0.1}
ALWAYS, RISING = [2.0] * 12, [*range(12)]


@pytest.fixture(autouse=True)
def l2data(tmp_path, monkeypatch):
    """An empty data folder."""
    folder = tmp_path / "l2data"
    (folder / "logs").mkdir(parents=True)
    monkeypatch.setenv("L2DATA", str(folder))
    return folder


def experts(l2data, values):
    (l2data / "taskinfo").mkdir(exist_ok=True)
    (l2data / "taskinfo" / "info.json").write_text(json.dumps(values))


@pytest.fixture
def log(l2data):
    """Two tasks in two variants: an ANT_C log under its bare name."""
    return write_log(
        l2data / "logs" / "two-1575473425723",
        [
            ("1.train", "pong", NARROW, RISING),
            ("1.train", "pong", WIDE, ALWAYS),
            ("1.test", "pong", NARROW, [1.0] * 11),
            ("1.test", "breakout", NARROW, [3.0] * 11),
            ("2.train", "breakout", NARROW, ALWAYS),
            ("2.test", "pong", WIDE, [1.5] * 11),
            ("2.test", "pong", WIDE, [1.0] * 5),
        ],
        workers=2,
    )


def numbers(report, quantity):
    (by_block,) = (
        r.values.per_block[quantity]
        for r in report.results
        if r.values and quantity in r.values.per_block
    )
    return by_block


# ------------------------------------------------------------------ numbers of that time


@recorded
@pytest.mark.parametrize("subtype", ["CL", "ANT_A", "ANT_B"])
def test_the_numbers_of_version_0_3(subtype):
    folder = LEARNKIT / "out" / f"v030_{subtype}"
    with (folder / "metrics.tsv").open() as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    report = AgentMetricsReport(
        log_dir=next(LEARNKIT.glob("syllabus*")),
        syllabus_subtype=subtype,
        edition="v0.3",
        experts=LEARNKIT / "taskinfo_info.json",
    )
    report.calculate()
    names = list(rows[0])[4:]
    quantities = [q for result in report.results for q in result.values.per_block]
    assert sorted(quantities) == sorted(names)
    for name in names:
        texts = [row[name] for row in rows]
        expected = [float(t) if t not in ("", "No Recovery") else math.nan for t in texts]
        np.testing.assert_allclose(
            list(numbers(report, name).values()), expected, rtol=1e-10, err_msg=name
        )
    assert all("never came back" in reason for reason in never(report, rows))


def never(report, rows):
    """Reasons of the blocks for which version 0.3 printed "No Recovery"."""
    (values,) = (r.values for r in report.results if "recovery_time" in r.values.per_block)
    blocks = [int(row["block"]) for row in rows if row["recovery_time"] == "No Recovery"]
    assert blocks == [4, 8]
    return [values.why("recovery_time", block) for block in blocks]


def test_an_empty_name_of_a_log_is_refused_in_one_line(capsys):
    """It is what `ls -1 FOLDER | head -1` gives where there is no log."""
    for command in (l2metrics, calc_metrics):
        assert command(["-log_dir=", "-syllabus_subtype", "CL"]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.endswith(": -log_dir is empty; give the directory of a log, or its bare name")


@recorded
def test_version_0_2_is_printed_as_it_was(capsys):
    log = next(LEARNKIT.glob("syllabus*"))
    arguments = ["-log_dir", str(log), "-syllabus_subtype", "CL", "-edition", "v0.2"]
    assert l2metrics(arguments) == 0
    ours = capsys.readouterr().out.split("\n")
    theirs = (LEARNKIT / "out" / "v020_CL" / "console.txt").read_text().split("\n")
    assert [line.split(":")[0] for line in ours] == [line.split(":")[0] for line in theirs]
    for one, other in zip(ours[2:4], theirs[2:4], strict=True):
        one, other = (ast.literal_eval(line.split(":", 1)[1].strip()) for line in (one, other))
        assert one.keys() == other.keys()
        for key in one:
            assert one[key] == pytest.approx(other[key], rel=1e-12)


@pytest.mark.requirement(111, 127)
@recorded
def test_the_document_s_own_formulas():
    expected = json.loads((LEARNKIT / "out" / "seed_formula.json").read_text())
    report = AgentMetricsReport(log_dir=next(LEARNKIT.glob("syllabus*")))
    report.calculate()
    names = {
        "saturation_value": "saturation_value",
        "eps_to_saturation": "episodes_consumed_at_saturation(window_end,1based)",
        "normalized_integral": "normalized_integral_sumS_over_n",
    }
    for ours, theirs in names.items():
        column = list(numbers(report, ours).values())
        np.testing.assert_allclose(column, [b[theirs] for b in expected.values()], rtol=1e-12)


# ------------------------------------------------------------------ subtypes and experts


@pytest.mark.requirement(119)
def test_ant_c_has_transfer_between_tasks_and_between_variants(log, l2data):
    experts(l2data, {"pong": 2.0, "breakout": 4.0})
    report = AgentMetricsReport(log_dir=log.name, syllabus_subtype="ANT_C")
    report.calculate()
    assert not report.warnings
    assert numbers(report, "forward_transfer")[3] == 0.75
    assert numbers(report, "reverse_transfer")[5] == 0.75
    assert math.isnan(numbers(report, "reverse_transfer")[2])
    assert numbers(report, "parametric_reverse_transfer")[2] == 0.5
    matrix = report.to_json()["matrices"]["Transfer Matrix"]["reverse_transfer"]
    assert matrix["units"] == ["pong", "breakout"]
    assert matrix["values"] == [[None, None], [0.75, None]]
    assert matrix["reasons"][0][1] == "no test block shows this pair"


def test_an_edition_brings_its_own_metrics(log):
    def names(edition, subtype):
        report = AgentMetricsReport(
            log_dir=log, syllabus_subtype=subtype, edition=edition, experts={}
        )
        return [type(metric).__name__ for metric in report.metrics]

    assert names("v0.2", "CL") == ["WithinBlockSaturation"]
    assert names("v0.2", "ANT_A")[1:] == ["STERelativePerf", "PerformanceMaintenance"]
    assert names("v0.2", "ANT_B")[1:] == ["STERelativePerf"]
    assert names("v0.3", "CL")[-1] == "RecoveryTime"
    assert names("v0.3", "ANT_B")[-1] == "TransferMatrix"
    assert len(names("2019", "CL")) == len(names("2019", "ANT_C")) - 1 == 9
    assert names("2019", "CL")[-1] == "GlobalMean"


def test_blocks_shorter_than_the_window_say_so(log):
    report = AgentMetricsReport(log_dir=log, syllabus_subtype="ANT_C")
    report.calculate()
    reasons = report.to_json()["reasons"]["Average Within Block Saturation Calculation"]
    sentence = "the block has fewer episodes than the smoothing window"
    assert reasons["saturation_value"] == {"6": sentence}
    shorter = AgentMetricsReport(log_dir=log, syllabus_subtype="ANT_C", window=5)
    shorter.calculate()
    assert numbers(shorter, "saturation_value")[6] == 1.0


@pytest.mark.requirement(118)
def test_without_info_json_there_is_a_warning_and_a_reason(log, l2data):
    report = AgentMetricsReport(log_dir=log, syllabus_subtype="ANT_B")
    assert any("info.json" in warning for warning in report.warnings)
    assert any("use ANT_C" in warning for warning in report.warnings)
    report.calculate()
    values = report.to_json()
    name = "Performance relative to Single Task Expert"
    assert set(values["metrics"][name]["STE_normalized_saturation"].values()) == {None}
    assert "info.json" in values["reasons"][name]["global_STE_normalized_saturation"][""]
    assert "Missing STE_normalized_saturation of block 0, 1, 2, 3, 4, 5, 6" in report.text()


def test_an_expert_of_zero_divides_nothing(log, l2data):
    experts(l2data, {"pong": 0.0, "breakout": 1})
    report = AgentMetricsReport(log_dir=log, syllabus_subtype="ANT_A")
    report.calculate()
    relative = numbers(report, "STE_normalized_saturation")
    assert math.isnan(relative[0])
    assert relative[4] == 2.0
    text = json.dumps(report.to_json(), allow_nan=False)
    assert "saturation value is 0" in text


def test_what_breaks_the_rules_of_a_subtype_is_a_warning(log):
    def warned(subtype):
        report = AgentMetricsReport(log_dir=log, syllabus_subtype=subtype, experts={})
        return report.warnings

    assert warned("CL") == ["CL has one task, and this log has 2: pong, breakout"]
    assert warned("ANT_A") == ["ANT_A has no parameter variation, and this log has; use ANT_C"]
    assert warned("ANT_C") == []


def test_rules_of_a_log_with_one_task_and_no_training_first(l2data):
    log = write_log(l2data / "one", [("1.test", "pong", {}, ALWAYS)])
    words = AgentMetricsReport(log_dir=log, syllabus_subtype="ANT_C", experts={}).warnings
    assert [word.split(";")[0] for word in words] == [
        "block 0 is a test block",
        "ANT_C has two tasks or more, and this log has pong only",
        "ANT_C has parameter variation, and this log has none",
    ]
    trained = write_log(l2data / "two", [("1.train", "pong", {}, ALWAYS)])
    words = AgentMetricsReport(log_dir=trained, syllabus_subtype="ANT_A", experts={}).warnings
    assert "ANT_A needs test phases, and this log has none" in words


def test_recovery_stands_at_the_block_before_the_change(l2data):
    blocks = [("1.train", "pong", NARROW, ALWAYS), ("2.train", "pong", WIDE, [0] + [2.0] * 14)]
    report = AgentMetricsReport(log_dir=write_log(l2data / "cl", blocks), experts={})
    report.calculate()
    assert numbers(report, "recovery_time")[0] == 12
    later = AgentMetricsReport(log_dir=l2data / "cl", edition="v0.3", experts={})
    later.calculate()
    # The average at position 7 covers the episodes 1 to 11.
    assert numbers(later, "recovery_time")[1] == 7


@pytest.mark.requirement(99)
def test_sub_episodes_are_averaged_and_incomplete_ones_may_be_dropped(l2data):
    log = write_log(l2data / "sub", [("1.train", "pong", {}, [[4.0, 2.0]] * 3)])
    table = load_table(log)
    assert table.by_block("reward", "mean").tolist() == [[3.0] * 3]
    assert table.by_block("reward", "sum").tolist() == [[6.0] * 3]
    assert table.by_block("reward", "count").tolist() == [[2.0] * 3]
    assert load_table(log, drop_incomplete=True).by_block("reward", "mean")[0, 0] == 4.0


# ------------------------------------------------------------------ custom metrics


class BestEpisode(AgentMetric):
    name = "Best Episode"

    def calculate(self, dataframe, phase_info, metrics_df):
        metrics_df["best_episode"] = dataframe.groupby("block")["reward"].max().to_numpy()
        return metrics_df


class ByHand(AgentMetric):
    """As in 2019: rows are selected, and the result is two dictionaries."""

    name = "By Hand"

    def calculate(self, dataframe, phase_info, metrics_df):
        tested = phase_info.loc[phase_info["phase_type"] == "test", "block"]
        last = {b: dataframe.loc[dataframe["block"] == b, "reward"].iloc[-1] for b in tested}
        return {"global_last": sum(last.values()) / len(last)}, {"last": last}


class Broken(AgentMetric):
    name = "Broken"

    def calculate(self, dataframe, phase_info, metrics_df):
        raise KeyError("no such thing")


class Picky(BestEpisode):
    name = "Picky"

    def validate(self, phase_info):
        raise ValueError("needs three tasks")


def spread(values, counts):
    """Range of the episodes of a block."""
    return np.nanmax(values, axis=-1) - np.nanmin(values, axis=-1)


def typical(values, counts):
    return float(np.nanmedian(values))


def saturated(values, counts):
    return kernels.saturation_value(values, counts, 11)


@pytest.fixture
def custom(log):
    report = AgentMetricsReport(log_dir=log, experts={}, predefined=False)
    report.add([BestEpisode(), ByHand(), spread, typical, saturated])
    report.calculate()
    return report


@pytest.mark.requirement(126)
def test_custom_metrics_reach_the_printed_report(custom):
    stream = io.StringIO()
    custom.report(stream)
    text = stream.getvalue()
    assert "Metric: Best Episode\nAveraged Value: {'global_best_episode': " in text
    assert "Per Block Values: {'last': {2: 1.0, 3: 3.0, 5: 1.5, 6: 1.0}}" in text
    assert "Per Block Values: {'spread': {0: 11.0, 1: 0.0," in text
    assert "Averaged Value: {'global_typical': 2.0}\nPer Block Values: {'typical': 2.0}" in text
    assert "Missing saturated of block 6: the block has fewer episodes" in text


def test_custom_metrics_reach_json_and_tsv(custom, tmp_path):
    custom.write_json(tmp_path / "m.json")
    values = json.loads((tmp_path / "m.json").read_text())
    assert values["results"]["By Hand"] == {"global_last": 1.625}
    assert values["metrics"]["Best Episode"]["best_episode"]["0"] == 11.0
    assert values["metrics"]["saturated"]["saturated"]["6"] is None
    assert values["reasons"]["saturated"]["saturated"]["6"].startswith("the block has fewer")
    custom.write_tsv(tmp_path / "m.tsv")
    with (tmp_path / "m.tsv").open(newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    (row,) = [r for r in rows if r["quantity"] == "spread" and r["block"] == "0"]
    assert (row["metric"], row["phase"], row["task_name"]) == ("spread", "1.train", "pong")
    assert float(row["value"]) == 11.0
    assert json.loads(row["param_set"]) == NARROW
    (whole,) = [r for r in rows if r["quantity"] == "global_typical"]
    assert (whole["block"], whole["value"]) == ("", "2.0")


@pytest.mark.requirement(127)
def test_later_metrics_read_earlier_ones(log):
    class Twice(AgentMetric):
        name = "Twice"

        def calculate(self, dataframe, phase_info, metrics_df):
            return {"twice": 2 * metrics_df["saturation_value"]}

    report = AgentMetricsReport(log_dir=log, experts={}, predefined=False)
    report.add([WithinBlockSaturation(), Twice(), GlobalMean()])
    report.calculate()
    assert numbers(report, "twice")[1] == 4.0
    assert report.results[2].values.averaged == {"global_mean": pytest.approx(179.5 / 74)}
    assert report.metrics_df["twice"][1] == 4.0


def test_a_metric_that_fails_or_does_not_fit_stops_no_other(log):
    report = AgentMetricsReport(log_dir=log, experts={}, predefined=False)
    report.add([Broken(), Picky(), BestEpisode()])
    report.calculate()
    assert report.failed
    values = report.to_json()
    assert list(values["metrics"]) == ["Best Episode"]
    assert values["not_calculated"] == {
        "Broken": "KeyError: 'no such thing'",
        "Picky": "needs three tasks",
    }
    assert "Metric: Picky\nNot Calculated: needs three tasks" in report.text()


def test_a_metric_for_another_subtype_is_not_calculated(log):
    class Transfer(BestEpisode):
        requires = {"syllabus_type": "agent", "syllabus_subtype": ("ANT_B", "ANT_C")}  # noqa: RUF012

    report = AgentMetricsReport(log_dir=log, experts={}, predefined=False).add(Transfer())
    report.calculate()
    assert report.to_json()["not_calculated"] == {
        "Best Episode": "it is defined for ANT_B, ANT_C only"
    }
    assert not report.failed


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (3, "calculate returned int"),
        ({"x": [1.0, 2.0]}, r"'x' is \(2,\); it must be one number per block, \(7,\)"),
    ],
)
def test_a_metric_that_returns_nonsense_is_told_so(log, returned, words):
    class Odd(AgentMetric):
        name = "Odd"

        def calculate(self, dataframe, phase_info, metrics_df):
            return returned

    report = AgentMetricsReport(log_dir=log, experts={}, predefined=False).add(Odd())
    (result,) = report.calculate()
    assert result.failed
    assert re.search(words, result.problem)


def test_what_cannot_be_added_says_why(log):
    report = AgentMetricsReport(log_dir=log, experts={})

    class ForClasses(ClassificationMetric):
        name = "For Classes"

        def calculate(self, dataframe, phase_info, metrics_df):
            return Values({}, {})

    with pytest.raises(ValueError, match="derive it from AgentMetric"):
        report.add(ForClasses())
    with pytest.raises(ValueError, match="is not a metric"):
        report.add(BestEpisode)
    with pytest.raises(ValueError, match="has a metric 'Recovery Time' already"):
        report.add(report.metrics[2])


@pytest.mark.requirement(126)
def test_metrics_are_given_dataframes(log):
    report = AgentMetricsReport(log_dir=log, experts={})
    for frame in (report.log_data, report.phase_info, report.metrics_df):
        assert isinstance(frame, pandas.DataFrame)
    rows = report.log_data
    assert {"reward", "task", "block", "worker", "sub_task"} <= set(rows.columns)
    assert rows["task"].is_monotonic_increasing
    assert (rows["worker"] == "w1").sum() + 42 - 5 == len(rows)
    assert report.phase_info["episodes"].tolist() == counts_of(rows).tolist()
    assert blocks_of(report.phase_info) == report.table.blocks
    means = by_block(rows, "reward")
    np.testing.assert_array_equal(means, report.table.by_block("reward", "mean"))
    assert np.nanmean(means[0]) == pytest.approx(rows.groupby("block")["reward"].mean().iloc[0])
    with pytest.raises(ValueError, match="no column 'rewards'; there are"):
        by_block(rows, "rewards")
    with pytest.raises(ValueError, match="column 'worker' does not hold numbers"):
        by_block(rows, "worker")


def test_a_frame_of_other_length_is_refused(log):
    class Short(AgentMetric):
        name = "Short"

        def calculate(self, dataframe, phase_info, metrics_df):
            return metrics_df.iloc[:2]

    report = AgentMetricsReport(log_dir=log, experts={}, predefined=False).add(Short())
    (result,) = report.calculate()
    assert result.failed and "metrics_df has 2 rows; it must have 7" in result.problem


def test_pictures_of_each_metric(log, tmp_path):
    pytest.importorskip("matplotlib")
    report = AgentMetricsReport(log_dir=log, experts={}, predefined=False)
    figures = report.add([spread, typical]).plot(tmp_path / "plots")
    assert list(figures) == ["spread"]
    (axes,) = figures["spread"].axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("block", "spread")
    assert axes.get_xlim() == (-0.5, 6.5)
    (line,) = axes.lines
    expected = (r.values.per_block["spread"] for r in report.results if r.metric.name == "spread")
    assert dict(zip(*line.get_data(), strict=True)) == next(expected)
    assert (tmp_path / "plots" / "spread.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_has_a_panel_for_each_quantity():
    pytest.importorskip("matplotlib")
    numbers = {"one": {0: 1.0, 2: 3.0}, "whole": 5.0, "other": {1: -1.0}}
    figure = per_block("a metric", numbers)
    assert figure.get_suptitle() == "a metric"
    assert [axes.get_ylabel() for axes in figure.axes] == ["one", "other"]
    drawn = [dict(zip(*axes.lines[0].get_data(), strict=True)) for axes in figure.axes]
    assert drawn == [{0: 1.0, 2: 3.0}, {1: -1.0}]
    assert per_block("a metric", {"whole": 5.0}) is None


def test_a_missing_number_of_the_whole_syllabus_is_printed_once_with_its_reason(log):
    def nothing(values, counts):
        return float("nan")

    def nowhere(values, counts):
        return np.full(len(counts), np.nan)

    report = AgentMetricsReport(log_dir=log, experts={}, predefined=False).add([nothing, nowhere])
    report.calculate()
    lines = [line for line in report.text().splitlines() if line.startswith("Missing")]
    assert [line.partition(":")[0] for line in lines] == [
        "Missing nothing",
        "Missing nowhere of block 0, 1, 2, 3, 4, 5, 6",
    ]


def test_infinite_numbers_are_missing_in_all_forms(log, tmp_path):
    """Of JSON and of the table; the reasons name each block."""

    class Endless(AgentMetric):
        name = "endless"

        def calculate(self, dataframe, phase_info, metrics_df):
            numbers = [np.inf, -np.inf, np.nan, 1.0, 2.0, 3.0, 4.0]
            return {"global_endless": np.inf}, {"endless": dict(enumerate(numbers))}

    report = AgentMetricsReport(log_dir=log, experts={}, predefined=False).add(Endless())
    report.calculate()
    content = json.loads(json.dumps(report.to_json(), allow_nan=False))
    numbers = content["metrics"]["endless"]["endless"]
    assert numbers == {"0": None, "1": None, "2": None, "3": 1.0, "4": 2.0, "5": 3.0, "6": 4.0}
    assert content["results"]["endless"] == {"global_endless": None}
    reasons = content["reasons"]["endless"]
    assert set(reasons["endless"]) == {"0", "1", "2"} and set(reasons["global_endless"]) == {""}
    report.write_tsv(tmp_path / "m.tsv")
    with (tmp_path / "m.tsv").open(newline="") as stream:
        rows = [row for row in csv.DictReader(stream, delimiter="\t") if row["block"]]
    assert [row["value"] for row in rows] == ["", "", "", "1.0", "2.0", "3.0", "4.0"]
    assert [bool(row["reason"]) for row in rows] == [True, True, True, *(False,) * 4]


# ------------------------------------------------------------------ classification


def test_scores_of_batches_are_metrics_too(l2data):
    blocks = [
        ("1.train", "kit_train_cifar100", {}, [0.1 * k for k in range(11)]),
        ("1.test", "kit_test_cifar100", {}, [0.25] * 11),
    ]
    log = write_log(l2data / "class", blocks, column="score_top1", source="GET_LABELS")
    experts(l2data, {"kit_train_cifar100": 2.0})
    report = ClassificationMetricsReport(log_dir=log, syllabus_subtype="CL")
    report.calculate()
    assert report.settings.measure == "score_top1"
    assert report.results[-1].values.averaged == {"global_mean": pytest.approx(0.375)}
    assert not report.warnings
    assert numbers(report, "saturation_difference")[1] == pytest.approx(0.25)
    assert numbers(report, "STE_normalized_saturation")[0] == pytest.approx(0.25)
    assert numbers(report, "STE_normalized_saturation")[1] == pytest.approx(0.125)


def test_the_score_of_that_name_comes_before_others():
    for columns, expected in ((["score_a", "score"], "score"), (["score_b", "score_a"], "score_b")):
        report = SimpleNamespace(table=SimpleNamespace(columns=columns, name="log"))
        assert ClassificationMetricsReport._default_measure(report) == expected


def test_rows_without_labels_hold_no_scores(l2data):
    log = write_log(l2data / "next", [("1.train", "train_x", {}, [0.5] * 11)], column="score")
    with pytest.raises(ValueError, match="no rows with source GET_LABELS"):
        ClassificationMetricsReport(log_dir=log)


# ------------------------------------------------------------------ bad input


def test_log_dir_is_required():
    with pytest.raises(RuntimeError, match="log_dir is required"):
        AgentMetricsReport(syllabus_subtype="CL")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"syllabus_subtype": "ANT_D"}, "must be one of CL, ANT_A, ANT_B, ANT_C, not 'ANT_D'"),
        ({"measure": "score"}, "has no column 'score'; there are"),
        ({"measure": "worker"}, "does not hold numbers"),
        ({"window": 4}, "window must be an odd number"),
        ({"edition": "v0.4"}, "edition must be one of"),
        ({"index": "middle"}, "index must be end, start or centre"),
        ({"subtype": "CL"}, "unknown arguments subtype"),
        ({"log_dir": "nowhere"}, "no log directory nowhere or "),
        ({"experts": "missing.json"}, r"missing\.json: cannot be read"),
    ],
)
def test_a_wrong_argument_says_what_to_change(log, options, words):
    with pytest.raises((ValueError, NotADirectoryError), match=words):
        AgentMetricsReport(**{"log_dir": log, **options})


@pytest.mark.requirement(118)
@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[1]", "must be an object"),
        ("{", "broken or truncated JSON"),
        ('{"a": "1"}', "saturation of 'a'"),
    ],
)
def test_a_broken_info_json_is_refused(log, l2data, content, words):
    experts(l2data, {})
    (l2data / "taskinfo" / "info.json").write_text(content)
    with pytest.raises(ValueError, match=words):
        AgentMetricsReport(log_dir=log)


def spoil(log, name, old, new):
    file = sorted(log.rglob(name))[0]
    file.write_text(file.read_text().replace(old, new, 1))


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("data-log.tsv", "\treward\n", "\treturns\n", "no column 'reward'"),
        ("data-log.tsv", "\t0.0\n", "\tx\n", r"data-log\.tsv:2: error: reward must be a number"),
        ("block-report.tsv", "\t0\t", "\t9\t", r"data-log\.tsv:2: .* names block 0 of pong"),
    ],
)
def test_a_broken_log_is_named_by_file_and_line(l2data, name, old, new, words):
    log = write_log(l2data / "broken", [("1.train", "pong", {}, [0.0, 1.0])])
    spoil(log, name, old, new)
    with pytest.raises(ValueError, match=words):
        AgentMetricsReport(log_dir=log)


def test_a_log_of_l2logger_is_sent_to_its_own_command(tmp_path, capsys):
    (tmp_path / "logger_info.json").write_text("{}")
    assert l2metrics(["-log_dir", str(tmp_path)]) == 2
    assert "use jaxsim l2metrics -l" in capsys.readouterr().err


def test_of_many_errors_of_a_log_the_first_are_shown(log, l2data, capsys):
    for path in sorted(l2data.rglob("data-log.tsv")):
        header, *lines = path.read_text().splitlines()
        path.write_text("\n".join([header.replace("reward", "rewards"), *lines]) + "\n")
    assert l2metrics(["-log_dir", str(log)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and error.count("error:") == 5 and "more" in error


def test_a_folder_without_a_log_says_so(tmp_path):
    with pytest.raises(ValueError, match=r"holds no data-log\.tsv"):
        load_table(tmp_path)


# ------------------------------------------------------------------ commands


@pytest.mark.requirement(106)
def test_the_single_dash_flags_and_a_bare_name(log, l2data, capsys, tmp_path):
    experts(l2data, {"pong": 2.0, "breakout": 4.0})
    arguments = ["-log_dir", log.name, "-syllabus_type", "agent", "-syllabus_subtype", "ANT_C"]
    assert l2metrics([*arguments, "-json", str(tmp_path / "m.json")]) == 0
    printed = capsys.readouterr()
    assert "Metric: Transfer Matrix\nAveraged Value: {'global_forward_transfer'" in printed.out
    assert printed.err == ""
    values = json.loads((tmp_path / "m.json").read_text(), parse_constant=pytest.fail)
    assert values["syllabus_subtype"] == "ANT_C"


@pytest.mark.parametrize("formulas", [{"index": "start"}, {"edition": "v0.2"}])
def test_every_flag_reaches_the_report(l2data, tmp_path, formulas):
    values = [[float(one), 9.0] for one in range(14)]
    log = write_log(l2data / "sub", [("1.train", "pong", {}, values)], "score", source="OTHER")
    options = {"syllabus_subtype": "ANT_A", "measure": "score", "window": 5, **formulas}

    def made(**options):
        report = AgentMetricsReport(log_dir=log, **options)
        report.calculate()
        report.write_json(tmp_path / "expected.json")
        return json.loads((tmp_path / "expected.json").read_text())

    words = [word for name, value in options.items() for word in (f"-{name}", str(value))]
    place = tmp_path / "m.json"
    arguments = ["-log_dir", str(log), *words, "-drop_incomplete", "-json", str(place)]
    assert l2metrics(arguments) == 0
    whole = made(**options, drop_incomplete=True)
    assert json.loads(place.read_text()) == whole
    assert made(**options) != whole
    for name in ("syllabus_subtype", "window", *formulas):
        remaining = {key: value for key, value in options.items() if key != name}
        assert made(**remaining, drop_incomplete=True) != whole, name


@pytest.mark.requirement(107)
def test_calc_metrics_shows_a_custom_metric_with_the_document_s_spelling(log, capsys):
    assert calc_metrics(["-syllabus_subtype=CL", f"-log_dir={log}"]) == 0
    printed = capsys.readouterr()
    *_, ending, scores = printed.out.split("\n\n")
    assert ending.startswith("Metric: An Example Custom Metric\nAveraged Value: {'global_perf': ")
    assert scores.startswith("Capability: continual_learning\nScore: {'performance': ")
    assert "warning: CL has one task" in printed.err


@pytest.mark.parametrize("name", ["forgetting_free_share", "worst_tenth"])
def test_the_examples_can_be_added(log, capsys, name):
    file = ROOT / "examples" / "metrics" / f"{name}.py"
    assert calc_metrics(["-log_dir", str(log), "-metric", str(file)]) == 0
    metric = capsys.readouterr().out.split("\n\n")[-2]  # scores of capabilities are last
    assert "Averaged Value: {'global_" in metric
    assert "None" not in metric.split("\n")[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-syllabus_subtype", "ANT_X"], "syllabus_subtype must be one of"),
        (["-syllabus_type", "robot"], "syllabus_type must be agent or class, not 'robot'"),
        (["-metric", "nothing.py"], "there is no file nothing.py"),
        (["-metric", "nothing.py:Name"], "there is no file nothing.py"),
        (["-metric", str(ROOT)], "is not a Python file"),
        (["-metric", str(ROOT / "examples/metrics/worst_tenth.py:Best")], "no metric 'Best'"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(log, capsys, arguments, words):
    assert calc_metrics(["-log_dir", str(log), *arguments]) == 2
    line = capsys.readouterr().err.strip()
    assert words in line
    assert line.startswith("python -m evaluation.calc_metrics: ")
    assert "\n" not in line


def test_a_metric_that_fails_makes_the_exit_code_1(log, tmp_path, capsys):
    file = tmp_path / "bad.py"
    file.write_text("def bad(values, counts):\n    return 1 / 0\n")
    assert calc_metrics(["-log_dir", str(log), "-metric", str(file)]) == 1
    assert "Not Calculated: metric 'bad' failed: ZeroDivisionError" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def recovery_time(values, counts):\n    return counts\n", "there are two metrics"),
        ("def leaving(values, counts):\n    raise SystemExit(0)\n", "SystemExit: 0"),
    ],
)
def test_a_metric_that_takes_a_name_or_leaves_is_not_calculated(log, tmp_path, capsys, text, words):
    file = tmp_path / "bad.py"
    file.write_text(text)
    assert calc_metrics(["-log_dir", str(log), "-metric", str(file)]) == 1
    out = capsys.readouterr().out
    (line,) = (line for line in out.splitlines() if line.startswith("Not Calculated: "))
    assert words in line and "Metric: Recovery Time\nAveraged Value: {" in out


def test_the_modules_can_be_run():
    for name in ("l2metrics2019", "calc_metrics"):
        done = subprocess.run(
            [sys.executable, "-m", f"evaluation.{name}", "--help"],
            capture_output=True,
            text=True,
            cwd=ROOT,
            check=True,
        )
        assert "-syllabus_subtype" in done.stdout
        assert "examples:" in done.stdout


def test_what_the_page_shows_works(log, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "metrics-2019.md").read_text(encoding="utf-8")
    custom, performer = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    names = {"log_dir": log, "__name__": "page"}
    exec(compile(custom, "page", "exec"), names)
    assert "Metric: Best Episode" in capsys.readouterr().out
    assert (tmp_path / "metrics.json").exists()
    listed = set(re.findall(r"`(\w+)`", page.split("| quantity |")[1].split("\n\n")[0]))
    quantities = {q for r in names["report"].results if r.values for q in r.values.per_block}
    assert quantities - {"best_episode", "spread"} <= listed
    assert compile(performer, "page", "exec")
