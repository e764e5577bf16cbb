import argparse
import functools
import io
import json
import math
import re
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from evaluation.metrics import (
    DEFAULT_WINDOW,
    block_metrics,
    bootstrap_interval,
    summarise,
    syllabus_scores,
)
from evaluation.records import COLUMNS, Records
from evaluation.report import summarise_records, terminal
from evaluation.report.names import variant_names
from evaluation.report.recorded import record_metrics
from evaluation.schedule import Block, Schedule

COUNTS = (15, 12, 4, 20, 12)
"""The third block is too short for the default window."""

SCHEDULE = Schedule(
    "made up",
    (
        Block(0, 1, "train", "Toy", (), COUNTS[0], True),
        Block(1, 1, "test", "Toy", (), COUNTS[1], False),
        Block(2, 1, "test", "Toy", (("target", 1), ("word", "a long word")), COUNTS[2], False),
        Block(3, 2, "train", "Toy", (("target", 1), ("word", "a long word")), COUNTS[3], True),
        Block(4, 2, "test", "Toy", (), COUNTS[4], False),
    ),
    source="made_up.json",
)


def made_up(lifetimes, seed=0):
    """Records of rising performance, with another start in each lifetime."""
    random = np.random.default_rng(seed)
    shape = (lifetimes, SCHEDULE.num_episodes)
    columns = {name: np.zeros(shape, dtype) for name, dtype in COLUMNS.items()}
    rise = np.concatenate([np.linspace(0.2, 0.9, count) for count in COUNTS])
    columns["performance"][:] = rise * random.uniform(0.5, 1, (lifetimes, 1))
    columns["performance"] += random.uniform(0, 0.1, shape).astype(np.float32)
    columns["reward"][:] = columns["performance"] * 100
    columns["length"][:] = columns["performance"] * 200
    columns["complete"][:] = True
    metadata = {"agent": "made up", "seed": 4, "versions": {"jax": "0"}}
    return Records(SCHEDULE, columns, np.zeros(2, np.int32), metadata=metadata)


@pytest.fixture(scope="module")
def records():
    return made_up(20)


@pytest.fixture(scope="module")
def report(records):
    return summarise_records(records, seed=4)


def strict(report):
    """The report as a strict JSON reader sees it."""

    def refuse(token):
        raise AssertionError(f"{token} is not JSON")

    return json.loads(json.dumps(report.to_json(), allow_nan=False), parse_constant=refuse)


def entries(values):
    """Every metric of a report: (where, entry)."""
    yield from (("syllabus", name, entry) for name, entry in values["metrics"].items())
    for block in values["blocks"]:
        yield from ((block["block"], name, entry) for name, entry in block["metrics"].items())


NAMES = [
    "mean",
    "saturation_value",
    "time_to_saturation",
    "normalized_integral",
    "recovery_time",
    "performance_maintenance_saturation_value",
    "performance_maintenance_time_to_saturation",
]


# What is in it ------------------------------------------------------------------------------------


def test_what_was_run(report):
    values = strict(report)
    assert values["agent"] == "made up"
    assert values["seed"] == 4
    assert values["versions"] == {"jax": "0"}
    assert values["syllabus"] == {"name": "made up", "source": "made_up.json"}
    assert (values["measure"], values["window"]) == ("performance", DEFAULT_WINDOW)
    assert values["episodes"] == 20 * sum(COUNTS)
    assert values["incomplete_episodes"] == 0
    assert list(values["metrics"]) == NAMES
    assert [list(block["metrics"]) for block in values["blocks"]] == 5 * [NAMES]
    third = {key: value for key, value in values["blocks"][2].items() if key != "metrics"}
    assert third == {
        "block": 2,
        "phase": "1.test",
        "task": "Toy",
        "parameters": {"target": 1, "word": "a long word"},
        "episodes": 4,
        "learning": False,
    }


@pytest.mark.parametrize(("measure", "window"), [("performance", 11), ("reward", 3), ("length", 1)])
def test_numbers_are_those_of_the_metrics(records, measure, window):
    report = strict(summarise_records(records, measure, window, seed=4))
    values, _ = records.by_block(measure)
    for name, metric in block_metrics(values, SCHEDULE.blocks, window).items():
        whole, blocks = (summarise(m, 4) for m in (syllabus_scores(metric), metric))
        pairs = [(report["metrics"][name], whole, ())]
        pairs += [(b["metrics"][name], blocks, b["block"]) for b in report["blocks"]]
        for entry, summary, at in pairs:
            for field in ("mean", "low", "high", "std"):
                expected = getattr(summary, field)[at]
                number = math.nan if entry[field] is None else entry[field]
                np.testing.assert_array_equal(number, expected, err_msg=f"{name} {at} {field}")
            assert entry["lifetimes"] == summary.count[at]


def test_plain_means_by_hand(records, report):
    values = strict(report)
    start = 0
    for block, count in zip(values["blocks"], COUNTS, strict=True):
        lifetimes = records.columns["performance"][:, start : start + count].mean(axis=1)
        entry = block["metrics"]["mean"]
        assert entry["mean"] == pytest.approx(lifetimes.mean(), rel=1e-5)
        assert entry["std"] == pytest.approx(lifetimes.std(ddof=1), rel=1e-4)
        interval = bootstrap_interval(lifetimes, 4, method="calibrated")
        assert entry["low"] == pytest.approx(float(interval.low), rel=1e-5)
        assert entry["high"] == pytest.approx(float(interval.high), rel=1e-5)
        assert entry["low"] < entry["mean"] < entry["high"]
        start += count


def test_statistics_stand_beside_the_mean(records, report):
    values = strict(report)
    lifetimes = records.columns["performance"][:, : COUNTS[0]].mean(axis=1, dtype=float)
    statistics = values["blocks"][0]["metrics"]["mean"]["statistics"]
    assert list(statistics) == ["median", "interquartile_mean", "std"]
    assert statistics["median"]["value"] == pytest.approx(np.median(lifetimes), rel=1e-5)
    middle = np.sort(lifetimes)[5:15].mean()
    assert statistics["interquartile_mean"]["value"] == pytest.approx(middle, rel=1e-5)
    assert statistics["std"]["value"] == values["blocks"][0]["metrics"]["mean"]["std"]
    for entry in statistics.values():
        assert entry["low"] < entry["value"] < entry["high"]


@pytest.mark.parametrize("lifetimes", [1, 2])
def test_every_missing_statistic_has_a_reason(lifetimes):
    for where, name, entry in entries(strict(summarise_records(made_up(lifetimes)))):
        for statistic, estimate in entry["statistics"].items():
            missing = None in (estimate["value"], estimate["low"], estimate["high"])
            assert missing == ("reason" in estimate), (where, name, statistic)
            assert missing or lifetimes == 2


def test_same_seed_same_report_another_seed_another_interval(records, report):
    assert strict(report) == strict(summarise_records(records, seed=4))
    other = strict(summarise_records(records, seed=5))["metrics"]["mean"]
    mine = strict(report)["metrics"]["mean"]
    assert other["mean"] == mine["mean"]
    assert (other["low"], other["high"]) != (mine["low"], mine["high"])


def test_performance_lies_between_0_and_1_and_lengths_do_not():
    """Intervals of three lifetimes are wide."""
    records = made_up(3)
    records.columns["performance"][:] = np.array([[0.2], [0.9], [1.0]])
    records.columns["length"][:] = 200 * records.columns["performance"]
    performance, length = (
        summarise_records(records, measure).syllabus["mean"]
        for measure in ("performance", "length")
    )
    assert (performance.low, performance.high) == (0, 1)
    assert length.low < 0 and length.high > 200


# What is missing ----------------------------------------------------------------------------------


@pytest.mark.parametrize("lifetimes", [1, 2, 20])
def test_every_null_has_a_reason(lifetimes):
    nulls = 0
    for where, name, entry in entries(strict(summarise_records(made_up(lifetimes)))):
        for field in ("mean", "low", "high", "std"):
            if entry[field] is None:
                nulls += 1
                assert len(entry.get("reason", "")) > 10, (where, name, field)
        assert (entry["mean"] is None) == (entry["lifetimes"] == 0)
        # And no reason is given for a number that is there.
        assert ("reason" in entry) == (entry["low"] is None), (where, name)
    assert nulls


def test_reasons_say_what_is_wrong_with_the_block(report):
    blocks = strict(report)["blocks"]
    recovery = [block["metrics"]["recovery_time"].get("reason", "") for block in blocks]
    assert "training blocks only" in recovery[1]
    assert "no later training block" in recovery[3]
    assert (
        "fewer episodes than the smoothing window"
        in (blocks[2]["metrics"]["saturation_value"]["reason"])
    )
    maintenance = "performance_maintenance_saturation_value"
    assert "test blocks only" in blocks[0]["metrics"][maintenance]["reason"]
    assert blocks[2]["metrics"]["mean"]["mean"] is not None


def test_some_lifetimes_without_a_value_are_counted_with_their_reason(records):
    """Half of the lifetimes never recover: their second training stays far below the first."""
    performance = records.columns["performance"].copy()
    start = sum(COUNTS[:3])
    performance[::2, start : start + COUNTS[3]] = 0.01
    changed = replace(records, columns={**records.columns, "performance": performance})
    entry = strict(summarise_records(changed))["blocks"][0]["metrics"]["recovery_time"]
    assert entry["lifetimes"] == 10
    assert entry["missing"]["lifetimes"] == 10
    assert "never came within 2 %" in entry["missing"]["reason"]
    assert entry["mean"] is not None


def test_one_lifetime_has_numbers_but_no_interval():
    entry = strict(summarise_records(made_up(1)))["blocks"][0]["metrics"]["mean"]
    assert entry["mean"] is not None
    assert [entry[field] for field in ("low", "high", "std")] == [None, None, None]
    assert "fewer than two lifetimes" in entry["reason"]
    assert entry["lifetimes"] == 1


def test_incomplete_episodes_are_counted(records):
    complete = records.columns["complete"].copy()
    complete[3, :5] = False
    changed = replace(records, columns={**records.columns, "complete": complete})
    assert strict(summarise_records(changed))["incomplete_episodes"] == 5


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_value_that_is_not_finite_is_null_with_a_reason(records, number):
    reward = records.columns["reward"].copy()
    reward[:, 2] = number
    changed = replace(records, columns={**records.columns, "reward": reward})
    values = strict(summarise_records(changed, "reward"))
    for name in ("mean", "saturation_value"):
        entry = values["blocks"][0]["metrics"][name]
        assert entry["mean"] is None
        assert "not a finite number" in entry["reason"]
        assert values["blocks"][1]["metrics"][name]["mean"] is not None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"measure": "seconds"}, "'seconds'.*performance, reward, length"),
        ({"window": 10}, "window must be odd, not 10"),
        ({"window": 0}, "window"),
        ({"window": -3}, "window"),
        ({"seed": -1}, "seed"),
    ],
    ids=str,
)
def test_bad_arguments(records, arguments, words):
    with pytest.raises(ValueError, match=words):
        summarise_records(records, **arguments)


# Tables -------------------------------------------------------------------------------------------


def printed(report, width, **options):
    rich_console = pytest.importorskip("rich.console")
    from evaluation.report.console import print_report

    console = rich_console.Console(record=True, width=width, file=io.StringIO())
    print_report(console, report, **options)
    return console.export_text()


@pytest.mark.parametrize("lifetimes", [1, 20])
def test_statistics_are_printed_on_request(lifetimes):
    report = summarise_records(made_up(lifetimes))
    text = printed(report, 80, statistics=True)
    assert "interquartile" not in printed(report, 80)
    assert max(map(len, text.splitlines())) <= 80
    for summary in report.blocks.values():
        for estimate in summary.estimates.values():
            for value, low in zip(estimate.values, estimate.low, strict=True):
                for number in (value, low):
                    digits = 3 if abs(number) < 10 else 1
                    assert np.isnan(number) or f"{number:.{digits}f}" in text
    assert "…" not in text
    assert not re.search(r"\b(nan|inf|None)\b", text)


@pytest.mark.parametrize("width", [80, 160])
@pytest.mark.parametrize("lifetimes", [1, 20])
def test_tables_fit(width, lifetimes):
    text = printed(summarise_records(made_up(lifetimes)), width)
    assert max(map(len, text.splitlines())) <= width
    words = " ".join(text.split())
    assert f"made up: performance, {lifetimes} lifetimes" in words
    assert "Whole syllabus" in words


def test_scores_of_capabilities_are_printed_without_those_of_each_metric(report):
    text = printed(report, 120)
    assert "Core capabilities" in text
    table = text[text.index("Core capabilities") :]
    assert report.capabilities
    for name, capability in report.capabilities.items():
        shown = [score for score in capability.averages.values() if np.isfinite(score.value)]
        assert not shown or name.replace("_", " ") in table
        assert not any(f" {metric} " in table for metric in capability.metrics)


def test_variants_are_named_by_what_sets_them_apart():
    def names(*variants):
        blocks = [
            Block(i, 1, "test", task, tuple(sorted(parameters.items())), 1, False)
            for i, (task, parameters) in enumerate(variants)
        ]
        return variant_names(Schedule("plan", tuple(blocks)))

    assert names(("A", {"x": 1})) == ("x 1",)
    assert names(("A", {})) == ("A",)
    assert names(("A", {"x": 1}), ("A", {"x": 1, "y/z": 2.5})) == ("A", "y/z 2.5")
    assert names(("A", {"x": 1}), ("B", {"x": 1})) == ("A", "B")
    assert names(("A", {}), ("B", {"x": 1})) == ("A", "B x 1")
    hard = {"novelty/level": 203, "novelty/difficulty": "hard"}
    assert names(("A", {}), ("A", hard)) == ("A", "level 203 hard")
    easy = hard | {"novelty/difficulty": "easy"}
    assert names(("A", easy), ("A", hard)) == (
        "novelty/difficulty easy",
        "novelty/difficulty hard",
    )


def test_tables_name_tasks_and_leave_out_empty_rows(report):
    text = printed(report, 100)
    words = " ".join(text.split())
    assert "target 1" in words and "toy_v1" not in words
    assert re.search(r"no value: block \d.*\(.*same task", words), words
    for name in ("backward_transfer_contrast", "avg_train_perf"):
        assert f"{name} " in text, "wrapped"


@pytest.mark.parametrize("width", [80, 120, 200])
def test_tables_hold_every_number_uncut(report, width):
    text = printed(report, width)
    block = report.blocks["mean"]
    assert f"{block.mean[0]:.3f}" in text
    assert f"{block.low[0]:.3f} to {block.high[0]:.3f}" in text
    whole = report.syllabus["recovery_time"]
    assert f"{whole.mean[()]:.1f}" in text
    assert "20 of 20" in text
    assert "…" not in text
    for summary in report.blocks.values():
        for mean, low, high in zip(summary.mean, summary.low, summary.high, strict=True):
            digits = 3 if abs(mean) < 10 else 1
            assert np.isnan(mean) or f"{mean:.{digits}f}" in text
            assert np.isnan(low) or re.search(rf"{low:.{digits}f}0* to {high:.{digits}f}", text)
    assert not re.search(r"\b(nan|inf|None)\b", text)


def test_progress_bar_moves():
    rich_console = pytest.importorskip("rich.console")
    from evaluation.report.progress import progress_bar

    console = rich_console.Console(record=True, width=120, file=io.StringIO())
    with progress_bar(console, "a label", 1000) as progress:
        for done in (250, 500, 1000):
            progress(done, 1000)
    text = console.export_text()
    assert "a label" in text
    assert "1,000/1,000 episodes" in text


def test_every_block_of_a_report_is_that_of_the_schedule(report):
    """Also where learning is off in training, and on in a test."""
    odd = tuple(replace(block, learning=not block.learning) for block in SCHEDULE.blocks)
    records = replace(report.records, schedule=replace(SCHEDULE, blocks=odd))
    for whole, learning in (
        (report, [True, False, False, True, False]),
        (replace(report, records=records), [False, True, True, False, True]),
    ):
        blocks = strict(whole)["blocks"]
        assert [block["learning"] for block in blocks] == learning
        assert [block["block"] for block in blocks] == [0, 1, 2, 3, 4]
        assert [block["episodes"] for block in blocks] == list(COUNTS)
        assert {block["task"] for block in blocks} == {"Toy"}
        assert [block["phase"] for block in blocks] == [
            *("1.train", "1.test", "1.test", "2.train", "2.test"),
        ]
        assert [len(block["parameters"]) for block in blocks] == [0, 0, 2, 2, 0]


def shown(task):
    from evaluation.report.progress import EpisodeRate

    return str(EpisodeRate().render(task))


def test_the_rate_of_a_bar():
    """Of the last moment while it moves, of the whole time when it has ended."""
    pytest.importorskip("rich")
    task = functools.partial(SimpleNamespace, finished_time=None, speed=1234.4)
    assert shown(task(completed=0)) == shown(task(completed=5, speed=None)) == "compiling"
    assert shown(task(completed=5)) == "1,234/s"
    assert shown(task(completed=9000, finished_time=4.0)) == "2,250/s in all"


@pytest.mark.parametrize(
    ("given", "moves", "words", "absent"),
    [
        (("a label", 1000), [(5, 1000, None)], ["a label", "5/1,000 episodes", "compiling"], []),
        (("a label",), [(5, 7, "another")], ["another", "5 episodes"], ["5/7", "a label"]),
        (("a label",), [(5, 7, None), (7, 7, None)], ["7 episodes", "/s in all"], []),
        (
            ("a label", 7, "units"),
            [(5, 7, None)],
            ["a label", "5/7 units", "0:00:0"],
            ["compiling"],
        ),
    ],
)
def test_what_a_bar_shows_and_counts(given, moves, words, absent):
    rich_console = pytest.importorskip("rich.console")
    console = rich_console.Console(record=True, width=120, file=io.StringIO())
    about, more = given[:2], {"what": given[2]} if len(given) > 2 else {}
    with terminal.progress_bar(console, *about, **more) as move:
        for done, total, label in moves:
            move(done, total, label)
    text = console.export_text()
    assert all(word in text for word in words) and not any(word in text for word in absent), text
    with terminal.progress_bar(None, *about, **more) as move:
        assert move is None


def test_the_console_of_a_command(monkeypatch):
    rich_console = pytest.importorskip("rich.console")
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    loud, quiet = (argparse.Namespace(quiet=q, json="j.json") for q in (False, True))
    assert terminal.unless_quiet(quiet) is None
    assert isinstance(terminal.unless_quiet(loud), rich_console.Console)
    assert terminal.console().width == terminal.FILE_WIDTH
    monkeypatch.setenv("COLUMNS", "77")
    assert terminal.console().width == 77
    with pytest.raises(ValueError, match="--quiet shows nothing: pass --json with it"):
        terminal.unless_quiet(argparse.Namespace(quiet=True, json=None))


# The metrics of today -----------------------------------------------------------------------------


def test_lifelong_metrics_are_those_of_the_records(records, report):
    lifelong = strict(report)["lifelong"]
    ranges = {"toy_default": (0.0, 1.0), "toy_v1": (0.0, 1.0)}
    assert lifelong["normalization_data_range"] == {
        task: {"min": low, "max": high} for task, (low, high) in ranges.items()
    }
    results = record_metrics(records, ranges=ranges, compiled=False).results
    for name, numbers in results.lifetime.items():
        expected = summarise(numbers, 4)
        entry = lifelong["metrics"][name]
        assert entry["lifetimes"] == np.isfinite(numbers.values).sum()
        if entry["lifetimes"]:
            assert entry["mean"] == pytest.approx(float(expected.mean))
            assert entry["low"] == pytest.approx(float(expected.low))
    per_lifetime = results.tasks["avg_train_perf"].values[:, 1]
    mean = lifelong["tasks"]["toy_v1"]["avg_train_perf"]["mean"]
    assert mean == pytest.approx(per_lifetime.mean())


def test_lifelong_metrics_have_a_reason_for_every_null(report):
    lifelong = strict(report)["lifelong"]
    nulls = 0
    for entries_of in (lifelong["metrics"], *lifelong["tasks"].values()):
        for entry in entries_of.values():
            if entry["mean"] is None:
                nulls += 1
                assert len(entry["reason"]) > 10
    assert nulls


@pytest.mark.parametrize("measure", ["performance", "reward"])
def test_intervals_of_normalised_metrics_stay_in_their_range(measure):
    """A reward has no bounds, so the range of other lifetimes may be wider than that of these."""
    records = made_up(2)
    test = np.repeat([block.mode == "test" for block in SCHEDULE.blocks], COUNTS)
    for lifetime, value in enumerate((0.0, 0.9)):
        records.columns["performance"][lifetime, test] = value
    records.columns["reward"][:] = records.columns["performance"]
    entry = strict(summarise_records(records, measure))["lifelong"]["metrics"]["avg_eval_perf"]
    half = stats.t.ppf(0.975, 1) * entry["std"] / np.sqrt(2)
    ends = entry["mean"] - half, entry["mean"] + half
    assert ends[0] < 1 and ends[1] > 101
    expected = (1, 101) if measure == "performance" else ends
    assert (entry["low"], entry["high"]) == pytest.approx(expected)


def test_all_lifetimes_are_normalised_by_one_range(records):
    lifelong = strict(summarise_records(records, "reward", seed=4))["lifelong"]
    first = np.flatnonzero(SCHEDULE.block_variants()[SCHEDULE.episode_blocks()] == 0)
    rewards = records.columns["reward"][:, first]
    ends = lifelong["normalization_data_range"]["toy_default"]
    assert ends == {"min": float(rewards.min()), "max": float(rewards.max())}
