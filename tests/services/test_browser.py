"""Viewer and report in a real browser, headless Chromium: run by `make test-services`."""

import json
import re
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

from evaluation import cli
from evaluation.records import read_run
from evaluation.report import html, summarise_records
from jaxsim.render import viewer
from tests.evaluation.report.test_html import records  # noqa: F401
from tests.evaluation.sweep.test_bases import SYLLABUS
from tests.evaluation.sweep.test_tables import plan  # noqa: F401
from tests.jaxsim.render.test_viewer import film, flood  # noqa: F401

playwright = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")
imageio = pytest.importorskip("imageio.v3")

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = ["--no-sandbox", "--disable-gpu"]

pytestmark = [
    pytest.mark.service,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="needs Debian's chromium: run .ci/services"),
]


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def opened(browser, tmp_path):
    """Opens a page, a file or its text, without a network, and checks that it never complains."""
    contexts, problems = [], []

    def open_page(page, width=1000, height=900, **options):
        path = page
        if isinstance(page, str):
            path = tmp_path / "page.html"
            path.write_text(page)
        context = browser.new_context(
            viewport={"width": width, "height": height}, offline=True, **options
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: problems.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(path.as_uri())
        page.wait_for_selector("body[data-ready=yes]", timeout=30_000)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []


@pytest.fixture(scope="module")
def two(flood):  # noqa: F811
    """A page of two films, one of an agent that speaks of novelty."""
    number = np.arange(200)
    four = jax.tree.map(lambda leaf: leaf[:, :4] if np.ndim(leaf) == 2 else leaf, flood)
    predictions = viewer.Predictions(
        (number > 99) * 3, np.round(number / 200, 4), np.full(200, 0.5)
    )
    few = jax.tree.map(lambda leaf: leaf[:101] if np.ndim(leaf) else leaf, four)
    short = film(few, title="short", action=[2] * 100, reward=np.arange(100) / 9)
    speaking = film(
        four, title="speaking", predictions=predictions, novel=True, truth="novel, level 8"
    )
    return [speaking, short]


def drawn(page, number=0):
    """Pixels of a scene as an (H, W, 3) array."""
    return imageio.imread(page.locator("canvas.scene").nth(number).screenshot())[..., :3]


def shares(image, other):
    return float((image != other).any(-1).mean())


def value(page, name, number=0):
    return page.locator(f"article >> nth={number} >> dd.{name}").inner_text()


def test_the_scene_is_drawn_and_changes_with_time_and_hand(opened, two):
    page = opened(viewer.page(two))
    first = drawn(page)
    assert len(np.unique(first.reshape(-1, 3), axis=0)) > 50
    for _ in range(30):
        page.keyboard.press("ArrowRight")
    later = drawn(page)
    assert shares(first, later) > 0.01
    box = page.locator("canvas.scene").first.bounding_box()
    page.mouse.move(box["x"] + 100, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 200, box["y"] + 130, steps=4)
    page.mouse.up()
    turned = drawn(page)
    assert shares(later, turned) > 0.05
    page.mouse.wheel(0, -400)
    page.wait_for_timeout(100)
    assert shares(turned, drawn(page)) > 0.05
    assert page.locator("#view").input_value() == "free"


def test_films_with_other_ticks_are_on_one_clock(opened, two):
    """The second one is the first, with ticks of 0.05 s: it lasts longer."""
    short = two[1]
    page = opened(viewer.page([short, replace(short, dt=0.05)]))
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    assert [value(page, "time", n) for n in (0, 1)] == ["0.12 s", "0.10 s"]
    page.keyboard.press("End")
    assert [value(page, "time", n) for n in (0, 1)] == ["2.00 s", "5.00 s"]
    assert page.locator("#now").inner_text() == "250 / 250"


def test_keys_and_buttons_move_time_and_the_numbers_are_those_of_the_film(opened, two):
    page = opened(viewer.page(two))
    now = page.locator("#now")
    assert now.inner_text() == "0 / 200"
    for key, tick in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", 200)):
        page.keyboard.press(key)
        assert now.inner_text() == f"{tick} / 200"
    values = two[0].to_json()
    assert value(page, "novelty") == f"{values['probability'][-1]:.3f}"
    assert value(page, "prediction") == "novel, level 3"
    assert value(page, "truth") == "novel, level 8"
    assert value(page, "reward") == f"{values['reward'][-1]:.3f}"
    assert value(page, "action") == "right"
    assert value(page, "reward", 1) == f"{two[1].to_json()['reward'][-1]:.3f}"  # it has ended
    page.keyboard.press("Home")
    page.keyboard.press("3")
    assert page.locator("#view").input_value() == "top"
    page.keyboard.press("+")
    assert page.locator("#speed").input_value() == "2"
    page.keyboard.press(" ")
    for _ in range(100):
        page.wait_for_timeout(100)
        if int(page.locator("#tick").input_value()) > 5:
            break
    page.locator("#play").click()
    assert page.locator("#play").inner_text() == "Play"
    stopped = now.inner_text()
    page.wait_for_timeout(300)
    assert now.inner_text() == stopped != "0 / 200"
    page.locator("#tick").fill("150")
    playwright.expect(now).to_have_text("150 / 200")
    line = page.locator("canvas.line").first.bounding_box()
    page.mouse.click(line["x"] + line["width"] / 2, line["y"] + 30)
    assert int(page.locator("#tick").input_value()) == pytest.approx(100, abs=2)


def test_it_is_read_on_a_phone_by_touch_and_in_the_dark(opened, two):
    options = {"has_touch": True, "is_mobile": True, "color_scheme": "dark"}
    page = opened(viewer.page(two), 400, 800, **options)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.locator("#forward").tap()
    assert page.locator("#now").inner_text() == "1 / 200"
    dark = drawn(page)
    page.locator("#theme").tap()
    assert drawn(page)[5, 5, 0] > 200 > 60 > dark[5, 5, 0]


@pytest.fixture
def report(records):  # noqa: F811
    return json.loads(json.dumps(summarise_records(records, window=3).to_json())), records


def test_the_report_draws_its_charts_sorts_and_shows_the_numbers_of_the_json(opened, report):
    values, run_records = report
    page = opened(html.of_run(values, run_records, "jaxsim run x.json", "runs/x"))
    assert page.locator(".uplot canvas").count() == 2
    shown = page.locator('[data-path="/metrics/mean/mean"]').inner_text()
    assert shown == f"{values['metrics']['mean']['mean']:.4g}"
    table = page.locator("table").last
    head = table.locator("thead button").nth(1)
    head.click()
    column = [float(text) for text in table.locator("tbody tr td:nth-child(2)").all_inner_texts()]
    assert column == sorted(column) and len(column) == 10
    head.click()
    column = [float(text) for text in table.locator("tbody tr td:nth-child(2)").all_inner_texts()]
    assert column == sorted(column, reverse=True)
    page.set_viewport_size({"width": 400, "height": 800})
    page.wait_for_timeout(400)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    pdf = page.pdf()
    assert pdf.startswith(b"%PDF") and len(re.findall(rb"/Type\s*/Page\b", pdf)) >= 2


def test_the_report_of_a_sweep_shows_the_numbers_of_its_json(opened, plan):  # noqa: F811
    folder = plan.folder / "merged"
    values = json.loads((folder / "report.json").read_text())
    page = opened(folder / "report.html")
    name = "performance by pole/length and agent"
    assert page.locator(".uplot canvas").count() >= 1
    for number, row in enumerate(values[name]):
        path = f"/{name.replace('/', '~1')}/{number}/random/value"
        shown = page.locator(f'[data-path="{path}"]').inner_text()
        assert shown == f"{row['random']['value']:.4g}"


def test_links_of_a_report_open_in_the_viewer(opened, tmp_path):
    syllabus, out = tmp_path / "x.json", tmp_path / "run"
    syllabus.write_text(SYLLABUS)
    run = ["run", str(syllabus), "--agent", "random", "--lifetimes", "3", "--out", str(out)]
    assert cli.main([*run, "--quiet"]) == 0
    assert cli.main(["view", str(out), "--ends"]) == 0
    run_records = read_run(out)
    page = opened(out / "report.html")
    links = page.locator('a[href^="views/"]')
    assert links.count() == 3
    for number, (lifetime, episode) in enumerate(html.ends(run_records, "performance")):
        links.nth(number).click()
        page.wait_for_selector("body[data-ready=yes]", timeout=30_000)
        assert page.url == (out / html.view_of(lifetime, episode)).as_uri()
        assert len(np.unique(drawn(page).reshape(-1, 3), axis=0)) > 20
        page.keyboard.press("End")
        ticks = int(run_records.columns["length"][lifetime, episode])
        assert page.locator("#now").inner_text() == f"{ticks} / {ticks}"
        page.go_back()
        page.wait_for_selector("body[data-ready=yes]", timeout=30_000)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("what", ["viewer", "report", "sweep"])
def test_nothing_bars_those_who_see_or_use_it_otherwise(
    opened,
    two,
    report,
    plan,  # noqa: F811
    what,
    scheme,
):
    pages = {
        "viewer": lambda: viewer.page(two),
        "report": lambda: html.of_run(*report, "jaxsim run x.json"),
        "sweep": lambda: plan.folder / "merged" / "report.html",
    }
    page = opened(pages[what](), color_scheme=scheme, bypass_csp=True)
    result = axe.Axe().run(page)
    messages = [
        f"{one['id']}: {one['help']}: {[n['html'][:120] for n in one['nodes'][:3]]}"
        for one in result.response["violations"]
    ]
    assert messages == []
