"""The table of requirements is complete, and the page names the tests that there are."""

import json
import subprocess
import sys

import pytest

from tools import requirements as requirements_tool
from tools import requirements_page
from tools.islands import measured
from tools.requirements import ROOT, TITLES, MarkedTests, doors, requirements, results

RESULTS = measured("requirements.json")


@pytest.fixture(scope="module")
def marked():
    """Tests by row, as pytest collects them."""
    command = [sys.executable, "-m", "tools.requirements", "--collect"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {int(number): set(tests) for number, tests in json.loads(done.stdout).items()}


def test_all_rows_have_their_number_and_a_sentence():
    rows = [number for door in requirements().values() for number in door]
    assert rows == list(range(1, 140))
    texts = [text for door in requirements().values() for text in door.values()]
    assert len(set(texts)) == 139
    assert all(text and "|" not in text and not text.endswith(".") for text in texts)
    assert [TITLES[door] for door in requirements()]


@pytest.mark.parametrize("door", doors())
def test_every_row_of_a_front_door_has_a_test(marked, door):
    missing = [number for number in requirements()[door] if not marked.get(number)]
    assert not missing, f"no test is marked with these requirements: {missing}"


def test_marks_name_rows_that_exist(marked):
    assert set(marked) <= set(range(1, 140))


def test_the_page_names_exactly_these_tests(marked):
    expected = {number: marked.get(number, set()) for number in range(1, 140)}
    tests = {number: set(RESULTS[str(number)]["tests"]) for number in range(1, 140)}
    assert tests == expected, "run the tests again: python -m tools.requirements"


def test_nothing_failed_when_the_page_was_written():
    assert not [number for number, row in RESULTS.items() if "failed" in row["outcomes"]]


@pytest.mark.parametrize(("code", "writes"), [(0, True), (1, True), (2, False), (3, False)])
def test_results_of_an_interrupted_run_are_not_written(code, writes, monkeypatch, tmp_path):
    """Nor those of a run that could not import a test."""
    monkeypatch.setattr(requirements_tool, "run", lambda *options: (MarkedTests(), code))
    monkeypatch.setattr(requirements_tool, "DOCS", tmp_path)
    monkeypatch.setattr("sys.argv", ["requirements"])
    assert requirements_tool.main() == code
    assert (tmp_path / "requirements.json").exists() == writes


def test_the_page_is_made_of_what_pytest_says():
    """A row that fails, one that is skipped in part, and one without a test."""
    marks = MarkedTests(
        numbers={"tests/a.py::test_x[1]": [50, 51], "tests/a.py::test_x[2]": [50, 51]},
        outcomes={"tests/a.py::test_x[1]": {"passed"}, "tests/a.py::test_x[2]": {"skipped"}},
    )
    marks.numbers["tests/a.py::test_y"] = [51]
    marks.outcomes["tests/a.py::test_y"] = {"passed", "failed"}
    outcomes = results(marks.tests())
    islands = requirements_page.islands_of(outcomes)
    (row,) = [line for line in islands["grader"] if line.startswith("| 51 |")]
    assert row.endswith(
        "[test_x](../tests/a.py)<br>[test_y](../tests/a.py) | 1 failed, 1 skipped, 1 passed |"
    )
    (summary,) = [line for line in islands["summary"] if line.startswith("| aiVLE's grader |")]
    assert summary == "| aiVLE's grader | 22 | 1 | 20 | 1 |"
    assert outcomes["50"]["tests"] == ["tests/a.py::test_x"] and "52" not in outcomes
