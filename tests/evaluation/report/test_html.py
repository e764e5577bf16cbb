"""The page of a report says what its JSON says, and asks for nothing from elsewhere."""

import json
import re
from dataclasses import replace
from html import escape
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy import stats

from evaluation.metrics import bootstrap_interval
from evaluation.records import COLUMNS, Records
from evaluation.report import html, summarise_records
from evaluation.report.html import markup, sections
from evaluation.schedule import Block, Schedule

EASY, HARD = (("novelty/level", 200),), (("novelty/level", 203),)


@pytest.fixture(scope="module")
def records():
    """A syllabus of two tasks, each tested before and after each training."""
    kinds = [(1, "test", False), (2, "train", True), (2, "test", False), (3, "train", True)]
    blocks = []
    for phase, mode, learning in [*kinds, (3, "test", False)]:
        for values in (EASY, HARD) if mode == "test" else (EASY if phase == 2 else HARD,):
            index = len(blocks)
            blocks.append(Block(index, phase, mode, "CartPole3D", values, 8, learning))
    draws = np.random.default_rng(0)
    shape = (12, sum(block.count for block in blocks))
    columns = {name: draws.uniform(0, 1, shape).astype(dtype) for name, dtype in COLUMNS.items()}
    columns["complete"] = np.ones(shape, bool)
    columns["threshold"] = np.full(shape, 0.5, np.float32)
    metadata = {"agent": "a <b> agent", "seed": 3, "lifetimes": 12, "versions": {"jax": "1"}}
    levels = np.array([0, 3], np.int32)
    return Records(Schedule("two tasks", tuple(blocks), "x.json"), columns, levels, 4, metadata)


class Cells(HTMLParser):
    """Numbers that name their place in the JSON, headings, and ids."""

    def __init__(self):
        super().__init__()
        self.numbers, self.shown, self.headings, self.last, self.heading = {}, {}, [], None, False

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if "data-path" in values:
            self.last = values["data-path"]
            self.numbers[self.last] = values["data-value"]
        self.heading = tag == "h2"

    def handle_data(self, data):
        if self.last:
            self.shown[self.last] = data
            self.last = None
        elif self.heading:
            self.headings.append(data)
            self.heading = False


def read(text):
    cells = Cells()
    cells.feed(text)
    return cells


def at(values, path):
    for part in path.strip("/").split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        values = values[int(part)] if isinstance(values, list) else values[name]
    return values


def entries(values, path=""):
    """Places of all numbers with an interval."""
    if markup.is_entry(values):
        yield path, values
    elif isinstance(values, dict | list):
        pairs = values.items() if isinstance(values, dict) else enumerate(values)
        for name, inside in pairs:
            yield from entries(inside, f"{path}/{name}")


def check_page(path, command, versions=True):
    """Check what the page of any report must have: it is small, and says what made it."""
    text = path.read_text()
    assert len(text.encode()) < 3_000_000
    assert ("jaxsim-novelty" in text and "versions" in text) or not versions
    assert f"<code>{escape(command)}</code>" in text


@pytest.fixture(scope="module")
def report(records):
    return json.loads(json.dumps(summarise_records(records, window=3).to_json()))


@pytest.fixture(scope="module")
def page(records, report):
    return html.of_run(report, records, "jaxsim run x.json --out runs/x", "runs/x")


def test_every_number_of_the_page_is_that_of_the_json(page, report):
    cells = read(page)
    assert len(cells.numbers) > 100
    facts = ("agent", "lifetimes", "episodes", "incomplete_episodes", "seed", "window")
    for path, text in cells.numbers.items():
        value = at(report, path)
        assert json.loads(text) == value, path
        assert cells.shown[path] == markup.shown(value)
    for path, entry in entries(
        {k: report[k] for k in ("metrics", "blocks", "novelty", "capabilities")}
        | {"lifelong": report["lifelong"]["metrics"]}
    ):
        if "/statistics/" in path or re.match("/capabilities/[^/]*/metrics/", path):
            continue
        name = "mean" if "mean" in entry else "value"
        place = path.replace("/lifelong/", "/lifelong/metrics/", 1)
        assert (f"{place}/{name}" in cells.numbers) == (entry[name] is not None), place
    assert {f"/{name}" for name in facts[1:]} <= set(cells.numbers)


def test_it_has_every_part(page):
    assert read(page).headings == [
        "What was played",
        "Curve",
        "Metrics",
        "Blocks",
        "Transfer matrix",
        "Forgetting over time",
        "Novelty detection",
        "Core capabilities",
        "Worst and best lifetimes",
    ]
    assert page.count("jaxsim view runs/x --lifetime") == 10
    assert "jaxsim run x.json --out runs/x" in page


def test_the_curve_is_that_of_the_records(page, records):
    charts = json.loads(re.search(r'id="charts">(.*?)</script>', page, re.S)[1])
    curve, forgetting = charts
    expected = records.columns["performance"].mean(0)
    np.testing.assert_allclose(curve["lines"]["performance"], expected, atol=2e-6)
    low, high = curve["bands"]["performance"]
    assert (np.array(low) < expected).all() and (np.array(high) > expected).all()
    values = np.asarray(records.columns["performance"], np.float64)
    band = bootstrap_interval(values, resamples=1000, bounds=(0, 1))
    np.testing.assert_allclose([low, high], [band.low, band.high], atol=2e-6)
    half = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
    assert (np.array(low) <= np.maximum(expected - half, 0) + 2e-6).all()
    assert curve["shades"] == [
        [8.0 * block.index, 8.0 * (block.index + 1), f"CartPole3D {block.mode}"]
        for block in records.schedule.blocks
    ]
    assert all(min(v for v in line if v is not None) >= 0 for line in forgetting["lines"].values())


def test_points_of_a_curve_are_of_one_block_and_leave_missing_values_out(records, monkeypatch):
    monkeypatch.setattr(sections, "MOST_POINTS", 20)  # so that a point has four episodes
    values = records.columns["reward"] - 5
    values[:, :4] = np.nan
    values[2, 5] = np.nan
    schedule = replace(records.schedule, blocks=tuple(uneven(records.schedule.blocks)))
    odd = replace(records, columns={**records.columns, "reward": values}, schedule=schedule)
    chart = sections._curve(odd, "reward").chart
    assert list(chart.x[:5]) == [0, 4, 5, 9, 13]  # a block of five, then of eight
    expected = [np.nanmean(np.nanmean(values[:, i:j], 1)) for i, j in ((4, 5), (5, 9), (9, 13))]
    np.testing.assert_allclose(chart.lines["reward"][1:4], expected, atol=2e-6)
    assert chart.lines["reward"][0] is chart.bands["reward"][0][0] is None


def test_a_band_of_a_curve_stays_within_the_bounds_of_its_measure(records):
    """Student's interval of two lifetimes is far wider than any performance."""
    shape = (2, records.schedule.num_episodes)
    columns = {name: np.broadcast_to([[0.1], [0.9]], shape) for name in ("performance", "reward")}
    two = replace(records, columns=columns)
    assert sections._curve(two, "performance").chart.bands["performance"] == (
        [0.0] * shape[1],
        [1.0] * shape[1],
    )
    low, high = sections._curve(two, "reward").chart.bands["reward"]
    assert max(low) < 0 and min(high) > 1


def uneven(blocks):
    """The same episodes, in a first block of five and a last one of eleven."""
    counts = [5, *[block.count for block in blocks[1:-1]], blocks[-1].count + 3]
    return [replace(block, count=count) for block, count in zip(blocks, counts, strict=True)]


def test_missing_values_make_no_lifetime_the_best(records):
    values = records.columns["reward"] - 5
    values[0, 7] = np.nan
    values[1, :] = np.nan
    odd = replace(records, columns={**records.columns, "reward": values})
    some = np.arange(12) != 1
    order = [1, *np.flatnonzero(some)[np.argsort(np.nanmean(values[some], 1))]]
    listed = sections.ends(odd, "reward")
    assert [number - 4 for number, _ in listed] == [*order[:5], *order[-5:]]
    assert listed[0] == (5, 0)
    for number, episode in listed[1:]:
        assert values[number - 4, episode] == np.nanmin(values[number - 4])
    table = sections.lifetimes(odd, "reward", "runs/x").body
    assert f"{np.nanmean(values[order[-1]]):.4g}" in table


def test_an_end_beyond_all_that_was_observed_is_infinite():
    value = {"value": 3.0, "low": 1.0, "high": None}
    text = re.sub("<[^>]*>", "", markup.entry(value, "a"))
    assert text == "3 [1, ∞)"
    assert re.sub("<[^>]*>", "", markup.entry(value | {"low": None}, "a")) == "3"


def test_every_metric_says_what_it_means(page):
    for table in re.findall(r"<th[^>]*>what it means</th>.*?<tbody>(.*?)</tbody>", page, re.S):
        rows = re.findall("<tr>(.*?)</tr>", table)
        assert rows and all(re.search(r"<td>[^<]+</td>$", row) for row in rows)


def test_pages_without_predictions_or_capabilities_have_no_such_section(records, report):
    without = {k: v for k, v in report.items() if k not in ("novelty", "capabilities")}
    headings = read(html.of_run(without, records)).headings
    assert not {"Novelty detection", "Core capabilities"} & set(headings)


def test_a_page_of_an_episode_is_linked_in_place_of_its_command(page, records):
    worst, *rest = html.ends(records, "performance")
    means = records.columns["performance"].mean(1)
    assert [lifetime - 4 for lifetime, _ in (worst, rest[-1])] == [means.argmin(), means.argmax()]
    view = html.view_of(*worst)
    linked = html.linked(page, [view])
    assert linked.count(f'href="{view}"') == 1
    assert linked.count("jaxsim view runs/x --lifetime") == 9
    assert html.linked(linked, [view]) == linked


def test_the_page_is_small_and_loads_nothing(page):
    assert len(page.encode()) < 3_000_000
    assert page.count("<script") == 2 and "a &lt;b&gt; agent" in page
    assert "default-src 'none'" in page
    assert not re.search(r"""<(?:link|img)|\ssrc=|@import|url\(""", page)
    assert "MIT License" in page  # of the library in it


def test_a_missing_number_gives_its_reason(records):
    text = markup.entry({"mean": None, "low": None, "high": None, "reason": "too <few>"}, "/x")
    assert text == '<span class="reason">too &lt;few&gt;</span>'


def test_other_reports_become_tables_and_a_curve():
    values = {
        "agent": "ppo",
        "seed": 1,
        "curve": [{"episodes": n, "mean": n / 9, "low": n / 10, "high": n / 8} for n in range(5)],
        "groups": {"a": {"mean": 1.5, "low": 1.0, "high": 2.0}},
        "rows": [{"level": 3, "measures": {"far": {"value": 0.25, "low": 0.1, "high": None}}}],
    }
    text = html.of_report("a title", values)
    cells = read(text)
    assert cells.headings == ["What this is", "Curve", "Groups", "Rows"]
    for path, number in cells.numbers.items():
        assert json.loads(number) == at(values, path)
    assert {"/curve/4/mean", "/groups/a/high", "/rows/0/measures/far/value"} <= set(cells.numbers)
    charts = json.loads(re.search(r'id="charts">(.*?)</script>', text, re.S)[1])
    assert charts[0]["lines"]["mean"] == [n / 9 for n in range(5)]
