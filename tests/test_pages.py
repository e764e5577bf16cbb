"""The pages under docs that code writes are those of this code, and what they show works."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import jaxsim
from evaluation import cli, records
from evaluation.l2m import syllabus
from jaxsim.worlds.cartpole3d import grouping
from jaxsim.worlds.cartpole3d.original.hints import HINT_WORDS, hint
from jaxsim.worlds.cartpole3d.original.quirks import EVERYWHERE, ON_THE_RAIL, QUIRKS
from tests.evaluation.bench.test_bench import check_schema
from tools import novelty_page, pages
from tools.islands import filled, measured

ROOT = Path(__file__).parents[1]
NOVELTY = (ROOT / "docs" / "novelty.md").read_text(encoding="utf-8")
OPEN_WORLD = (ROOT / "docs" / "open-world.md").read_text(encoding="utf-8")
LEVELS = (ROOT / "docs" / "levels.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """Code blocks of the page on novelties."""
    return re.findall(rf"^```{language}\n(.*?)^```$", NOVELTY, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", pages.PAGES)
def test_the_islands_of_a_page_are_current(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert filled(text, pages.PAGES[name]()) == text, f"renew it: python -m tools.pages {name}"


@pytest.mark.parametrize("name", pages.PAGES)
def test_a_page_says_how_it_is_renewed(name):
    assert "python -m tools.pages" in (ROOT / name).read_text(encoding="utf-8")


def test_every_page_with_islands_is_renewed():
    paths = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    marked = [path for path in paths if ": generated -->" in path.read_text(encoding="utf-8")]
    assert sorted(str(path.relative_to(ROOT)) for path in marked) == sorted(pages.PAGES)


def test_measured_numbers_have_the_form_of_a_benchmark():
    for name in ("performance.json", "performance_single.json"):
        check_schema(measured(name))


@pytest.mark.parametrize("flags", ["default", "configured"])
def test_hours_of_a_large_sweep_follow_from_the_measured_rate(flags):
    page = (ROOT / "docs" / "sweeps.md").read_text(encoding="utf-8")
    (rate,) = (
        row["steps_per_wall_second"]
        for row in measured("performance.json")["rows"]
        if (row["program"], row["workload"], row["flags"]) == ("jaxsim", "200", flags)
    )
    millions = round(rate / 1e6, 1)
    assert f"| {millions} million | {1.82e11 / (3600e6 * millions):.2f} |" in page


def test_pages_are_renewed_by_name(monkeypatch, tmp_path):
    for name in pages.PAGES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        text = (ROOT / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(text.replace("| 203 |", "| 2003 |"), encoding="utf-8")
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    monkeypatch.setattr("sys.argv", ["pages", "docs/levels.md"])
    pages.main()
    assert (tmp_path / "docs/levels.md").read_text(encoding="utf-8") == LEVELS
    assert "| 2003 |" in (tmp_path / "docs/learning_results.md").read_text(encoding="utf-8")


def test_a_page_without_islands_is_refused(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["pages", "docs/level.md"])
    with pytest.raises(SystemExit):
        pages.main()
    assert "no islands are made for docs/level.md; there are README.md" in capsys.readouterr().err


def test_the_python_example_of_the_open_world_runs(capsys):
    (example,) = re.findall(r"^```python\n(.*?)^```$", OPEN_WORLD, re.DOTALL | re.MULTILINE)
    exec(example, {})
    first, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("{'families': ['gravity'], 'parameters': {'gravity': ")


def test_the_example_of_a_metric_is_that_of_the_last_tenth():
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    names: dict = {}
    exec(example, names)
    values = np.array([[0.0, *[1.0] * 9, *[3.0] * 8, 4.0, 6.0], [2.0, 8.0, *[np.nan] * 18]])
    assert names["late_level"](values, np.array([20, 2])).tolist() == [5.0, 8.0]


def test_every_parameter_is_listed_with_its_unit():
    for env_id, owner in novelty_page.first_with_table().items():
        section = NOVELTY.split(f"### {env_id}\n")[1].split("\n###")[0]
        if owner != env_id:
            assert section.split("<!--")[0].strip() == f"The parameters of {owner}."
            continue
        rows = [line for line in section.splitlines() if line.count(" | ") == 5][1:]
        assert len(rows) - 1 == len(jaxsim.spec(env_id).parameters)
    assert "| `sensors/noise_rate` | 0 | 0 to 10 | rad/s |" in NOVELTY


# --- the catalogue as data --------------------------------------------------------------------


def test_the_catalogue_has_both_worlds():
    levels = {level.number: level for level in jaxsim.levels()}
    assert list(levels) == sorted(levels)
    assert [levels[number].task for number in (50, 53, 101, 206)] == [
        "CartPole2D",
        "CartPole2D",
        "CartPole3D",
        "CartPole3D",
    ]
    for task in ("CartPole2D", "CartPole3D"):
        known = jaxsim.spec(task).parameters["novelty/level"].choices
        assert [n for n, level in levels.items() if level.task == task] == list(known)


def test_levels_tell_their_hints():
    for level in jaxsim.levels():
        assert list(level.hints) == [-1, 0, 1, 2, 3]
        for hint_level, objects in level.hints.items():
            assert objects == hint(level.number, hint_level)


def test_quirks_name_levels_and_what_mends_them():
    assert set(QUIRKS) <= set(HINT_WORDS)
    by_number = {level.number: level.quirks for level in jaxsim.levels()}
    assert by_number[203] == ()
    mended = {quirk.mended_by for quirk in by_number[206]}
    assert {"repairs/closed_room", "repairs/wind_on_pole"} <= mended
    assert by_number[50] == ON_THE_RAIL
    for level, quirks in {**QUIRKS, 200: EVERYWHERE}.items():
        paths = jaxsim.spec("CartPole2D" if level < 100 else "CartPole3D").parameters
        for quirk in quirks:
            assert quirk.text and "\n" not in quirk.text
            if "/" in quirk.mended_by:
                assert quirk.mended_by in paths
            elif quirk.mended_by.startswith("cartpole"):
                world, function = quirk.mended_by.split(".")
                assert callable(getattr(getattr(jaxsim, world), function))


# --- what the page shows ----------------------------------------------------------------------


def test_the_example_is_a_syllabus():
    (text,) = blocks("json")
    schedule = syllabus.loads(text)
    assert schedule.blocks == syllabus.load(ROOT / novelty_page.SYLLABUS).blocks
    assert [block.learning for block in schedule.blocks] == [True] + [False] * 6
    assert json.loads(text)["name"] == "composed_novelty"


def test_the_python_example_runs(monkeypatch):
    """Without contacts of cart and pole, which take most of the compilation."""
    monkeypatch.setattr(grouping, "replaced", lambda *given: given[-1])
    (text,) = blocks("python")
    names: dict = {}
    exec(text, names)
    env, observation = names["env"], names["observation"]
    assert env.config.terms == ("actions", "bounce", "closed_room", "noise")
    steps = observation.cart_velocity.x / 0.05
    assert abs(steps - steps.round()).max() < 1e-4


@pytest.mark.slow
@pytest.mark.nightly
def test_the_command_of_the_page_plays_the_syllabus(tmp_path, monkeypatch):
    (command,) = blocks("bash")
    program, *words = command.split()
    assert program == "jaxsim"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    assert cli.main([*words, "--quiet"]) == 0
    run_records = records.read(tmp_path / "runs" / "composed" / "records.parquet")
    performance = run_records.columns["performance"].mean(axis=0)
    nominal, swapped = performance[:12].mean(), performance[24:30].mean()
    assert nominal > 0.7
    assert swapped < 0.2  # what corrects a lean along x is now done along y
    assert run_records.columns["complete"].all()


@pytest.mark.parametrize(
    ("episode", "words"),
    [
        ('"sensors/noise_angle": -0.1', "it must be a number from 0 to 1 rad"),
        ('"repairs/closed_room": true', "it must be one of 0, 1"),
        ('"repairs/open_room": 1', "did you mean 'repairs/closed_room'"),
    ],
)
def test_a_syllabus_with_a_wrong_value_is_refused_where_it_stands(episode, words):
    text = '{"instructions": [{"$phase": "1.train"},\n{"$episode": "CartPole3D", %s}]}'
    with pytest.raises(syllabus.SyllabusError, match=words) as error:
        syllabus.loads(text % episode)
    assert error.value.line == 2
