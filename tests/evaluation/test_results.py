"""Loading results: every recorded output of l2metrics, our own files, and files that are none."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from evaluation.metrics import bootstrap_interval
from evaluation.metrics.reasons import Reason
from evaluation.report import summarise_records
from evaluation.report.lifelong import lifelong_of_results
from evaluation.report.results import load_results
from tests.conftest import SHARED
from tests.evaluation import made_up
from tests.evaluation.test_compare import run as compared

ONE = """{"perf_recovery": -2.0, "ste_rel_perf": null, "run_id": "ll", "difficulty": "1-easy",
"scenario_type": null, "num_lx": 7, "normalization_data_range": null, "task_metrics": {
 "a_1": {"perf_recovery": NaN, "recovery_times": [1, 2.5], "maintenance_val_mrlep": [[1.0], [2, 3]],
         "forward_transfer_ratio": {"b_1": [4.0, 5.0]}, "ste_rel_perf_vals": []},
 "b_1": {"perf_recovery": -3, "recovery_times": [Infinity], "forward_transfer_ratio": {}}}}"""


@pytest.fixture
def one(tmp_path):
    path = tmp_path / "out_metrics.json"
    path.write_text(ONE)
    return path


def test_one_file_of_l2metrics(one):
    results = load_results(one)
    assert (results.runs, results.tasks, results.sources) == (("ll",), ("a_1", "b_1"), (one,))
    lifetime = {name: values.tolist() for name, values in results.lifetime.items()}
    assert lifetime.pop("ste_rel_perf") == [pytest.approx(math.nan, nan_ok=True)]
    assert lifetime == {"perf_recovery": [-2.0], "num_lx": [7.0]}
    np.testing.assert_array_equal(results.task["perf_recovery"], [[np.nan, -3.0]])
    np.testing.assert_array_equal(
        results.values["recovery_times"], [[[1.0, 2.5], [np.inf, np.nan]]]
    )
    np.testing.assert_array_equal(results.values["maintenance_val_mrlep"][0, 0], [1, 2, 3])
    assert results.values["ste_rel_perf_vals"].shape == (1, 2, 0)
    transfer = results.transfer["forward_transfer_ratio"]
    assert transfer.shape == (1, 2, 2, 2)
    np.testing.assert_array_equal(transfer[0, 0, 1], [4.0, 5.0])
    assert np.isnan(transfer[0, 1]).all()
    assert results.about[0]["difficulty"] == "1-easy"
    assert results.about[0]["scenario_type"] is None
    assert results.reasons == {}


def test_lists_of_runs_with_other_tasks(tmp_path):
    runs = [
        {"run_id": "r0", "x": 1.0, "task_metrics": {"b": {"x": 1.0}}},
        {"run_id": "r1", "y": 2.0, "task_metrics": {"a": {"x": 2.0}, "b": {"x": 3.0}}},
    ]
    path = tmp_path / "ll_metrics.json"
    path.write_text(json.dumps(runs))
    results = load_results([path])
    assert (results.runs, results.tasks) == (("r0", "r1"), ("b", "a"))
    np.testing.assert_array_equal(results.lifetime["x"], [1, np.nan])
    np.testing.assert_array_equal(results.task["x"], [[1, np.nan], [3, 2]])
    table = results.to_table().to_pylist()
    assert table == [{"run": "r0", "x": 1.0, "y": None}, {"run": "r1", "x": None, "y": 2.0}]


def test_names_that_several_files_use_get_their_folder(tmp_path):
    for folder in ("a", "b/c"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "out_metrics.json").write_text('{"run_id": "ll", "x": 1}')
    (tmp_path / "a" / "other_metrics.json").write_text('{"run_id": "alone", "x": 1}')
    (tmp_path / "a" / "out_settings.json").write_text("not read")
    assert load_results(tmp_path).runs == ("alone", "a/ll", "b/c/ll")
    twice = tmp_path / "twice.json"
    twice.write_text('[{"run_id": "ll"}, {"run_id": "ll"}]')
    assert load_results(twice).runs == ("ll#1", "ll#2")
    assert load_results([twice, twice]).runs == ("ll#1", "ll#2")


def test_reasons_of_our_own_files(tmp_path):
    why = {"x": "no task has a value", "task_metrics": {"a": {"x": "trained once"}}}
    values = {"run_id": "r", "x": None, "task_metrics": {"a": {"x": None}}, "why": why}
    (tmp_path / "r_metrics.json").write_text(json.dumps(values))
    results = load_results(tmp_path)
    assert results.reasons == {("r", "x"): "no task has a value"}
    assert results.task_reasons == {("r", "a", "x"): "trained once"}
    assert "why" not in results.about[0]


def test_reasons_are_those_of_lifetimes_and_tasks(tmp_path):
    why = {"avg_train_perf": Reason.EMPTY.sentence}
    why |= {"task_metrics": {"b": {"ste_rel_perf": Reason.NON_FINITE_VALUE.sentence}}}
    ratios = {"a": 2.0, "b": None, "c": None}
    tasks = {name: {"ste_rel_perf": ratio} for name, ratio in ratios.items()}
    values = {"run_id": "r", "avg_train_perf": None, "task_metrics": tasks, "why": why}
    (tmp_path / "r_metrics.json").write_text(json.dumps(values))
    lifelong = lifelong_of_results(load_results(tmp_path))
    assert lifelong.tasks == ("a", "b", "c")
    assert lifelong.lifetime["avg_train_perf"].reasons.tolist() == [Reason.EMPTY]
    # A reason that the file does not give, either.
    expected = [Reason.NONE, Reason.NON_FINITE_VALUE, Reason.NO_VALUE_IN_FILE]
    assert lifelong.by_task["ste_rel_perf"].reasons.tolist() == [expected]


def test_reports_of_jaxsim_run(tmp_path):
    reports = {}
    for seed, name in enumerate(("pd", "greedy")):
        report = summarise_records(compared(8, seed=seed)).to_json()
        (tmp_path / name).mkdir()
        (tmp_path / name / "report.json").write_text(json.dumps(report))
        reports[name] = report
    results = load_results(tmp_path)
    assert results.runs == ("greedy", "pd")
    for row, name in enumerate(results.runs):
        for metric, entry in reports[name]["metrics"].items():
            expected = [entry[key] for key in ("mean", "low", "high")]
            loaded = [results.lifetime[metric][row], *results.intervals[metric][row]]
            np.testing.assert_array_equal(loaded, np.array(expected, float))
        assert (
            results.reasons[name, "recovery_time"]
            == reports[name]["metrics"]["recovery_time"]["reason"]
        )
        assert results.about[row]["measure"] == "performance"
        lifelong = reports[name]["lifelong"]
        expected = lifelong["metrics"]["avg_train_perf"]
        assert results.lifetime["avg_train_perf"][row] == expected["mean"]
        assert results.intervals["avg_train_perf"][row].tolist() == [
            expected["low"],
            expected["high"],
        ]
        for task, entries in lifelong["tasks"].items():
            place = results.tasks.index(task)
            mean = np.array(entries["avg_train_perf"]["mean"], float)
            np.testing.assert_array_equal(results.task["avg_train_perf"][row, place], mean)
            reason = entries["ste_rel_perf"]["reason"]
            assert results.task_reasons[name, task, "ste_rel_perf"] == reason
    means = [block["metrics"]["mean"]["mean"] for block in reports["pd"]["blocks"]]
    np.testing.assert_array_equal(results.blocks["mean"][1], means)
    assert np.isnan(results.blocks["saturation_value"][1]).tolist() == [False, False, True]


def test_every_number_of_a_report_is_loaded(tmp_path):
    report = summarise_records(made_up.run(0, 5, 6)).to_json()
    (tmp_path / "report.json").write_text(json.dumps(report))
    results = load_results(tmp_path)
    for part in (report, report["lifelong"], report["novelty"]):
        for name, entry in part["metrics"].items():
            loaded = [results.lifetime[name][0], *results.intervals[name][0]]
            expected = [entry["mean"], entry["low"], entry["high"]]
            np.testing.assert_array_equal(loaded, np.array(expected, float), err_msg=name)
            assert results.reasons.get((results.runs[0], name)) == entry.get("reason")
    for part in (report, report["novelty"]):
        for name in part["blocks"][0]["metrics"]:
            means = [block["metrics"][name]["mean"] for block in part["blocks"]]
            np.testing.assert_array_equal(results.blocks[name][0], np.array(means, float))


# Every recorded output ----------------------------------------------------------------------------


def golden():
    folder = SHARED / "l2m" / "out"
    if not folder.is_dir():
        pytest.skip(f"no recorded outputs at {folder}")
    return folder


def test_every_recorded_output_is_read():
    folder = golden()
    results = load_results(folder)
    assert len(results.runs) == len(list(folder.rglob("*_metrics.json"))) > 20
    assert len(set(results.runs)) == len(results.runs)
    for row, source in enumerate(results.sources):
        values = json.loads(source.read_text())
        for name, array in results.lifetime.items():
            expected = values.get(name)
            np.testing.assert_equal(array[row], math.nan if expected is None else expected)
        for task, metrics in values["task_metrics"].items():
            column = results.tasks.index(task)
            for name, expected in metrics.items():
                if isinstance(expected, float):
                    np.testing.assert_equal(results.task[name][row, column], expected)
    # What a run has by itself reaches statistics without detours.
    interval = bootstrap_interval(results.lifetime["avg_eval_perf"], resamples=50)
    assert np.isfinite(interval.low)


def test_recorded_transfer_by_pair():
    results = load_results(golden() / "s00_shipped_example" / "both")
    first, second = (results.tasks.index(task) for task in ("task1_1", "task2_1"))
    assert results.transfer["forward_transfer_ratio"][0, first, second, 0] == 24.67239897398408


# Files that are none ------------------------------------------------------------------------------

BAD = {
    "truncated": ('{"run_id": "a", "x":', r"bad\.json: broken or truncated JSON at line 1"),
    "empty": ("", "broken or truncated JSON at line 1, column 1"),
    "text": ('"run_id"', "must be a JSON object, not str"),
    "other": ('{"x": 1}', "neither run_id, which l2metrics writes"),
    "list": ('[{"run_id": "a"}, 3]', r"bad\.json: run 1: must be a JSON object, not int"),
    "run_id": ('{"run_id": 3}', "run_id must be a text, not 3"),
    "tasks": ('{"run_id": "a", "task_metrics": []}', r"task_metrics must be an object, not \[\]"),
    "task": ('{"run_id": "a", "task_metrics": {"t": 1}}', r"task_metrics\.t must be an object"),
    "values": ('{"run_id": "a", "task_metrics": {"t": {"v": ["x"]}}}', r"t\.v must be a number"),
    "deep": ('{"run_id": "a", "task_metrics": {"t": {"v": [[[1]]]}}}', "must be a number or null"),
    "huge": ('{"run_id": "a", "x": 1%s}' % ("0" * 400), "x is too large a number"),
    "digits": ('{"run_id": "a", "x": 1%s}' % ("0" * 5000), "is not JSON of a result"),
    "nested": ("[" * 200_000, "is not JSON of a result|broken"),
    "report": ('{"metrics": {"m": {"mean": "x"}}, "blocks": []}', r"metrics\.m\.mean must be"),
    "report blocks": ('{"metrics": {}, "blocks": {}}', "blocks must be a list"),
    "report block": ('{"metrics": {}, "blocks": [{}]}', r"blocks\[0\]\.metrics must be an object"),
    "why": ('{"run_id": "a", "why": 1}', "why must be an object"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_say_what_is_wrong(tmp_path, name):
    text, words = BAD[name]
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=words) as error:
        load_results(path)
    assert str(error.value).startswith(str(path))


def test_not_text(tmp_path):
    path = tmp_path / "bad.json"
    path.write_bytes(b"\xff\xfe{}\x00\x80")
    with pytest.raises(ValueError, match=r"bad\.json: (is not JSON|broken)"):
        load_results(path)


def test_paths_that_lead_nowhere(tmp_path):
    with pytest.raises(ValueError, match=r"absent\.json: cannot be read: No such file"):
        load_results(tmp_path / "absent.json")
    with pytest.raises(ValueError, match=r"no result file \(report\.json, \*_metrics\.json\)"):
        load_results(tmp_path)
    with pytest.raises(ValueError, match="name a file or a directory"):
        load_results([])


def test_strings_are_paths(one, monkeypatch):
    monkeypatch.chdir(one.parent)
    assert load_results("out_metrics.json").sources == (Path("out_metrics.json"),)
