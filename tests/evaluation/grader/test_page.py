"""The page on grading is that of this code, and what it shows works."""

import json
import re
from pathlib import Path

import pytest

from evaluation.grader import TestSuite
from evaluation.grader.evaluators import FULL_STATE
from tools import grader_page, islands

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "grader.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.requirement(67)
def test_the_page_is_current():
    assert islands.filled(PAGE, grader_page.islands()) == PAGE, "run python -m tools.pages"


@pytest.mark.requirement(66)
def test_the_typical_program_runs_as_written():
    pytest.importorskip("gymnasium", reason="needs the extra: jaxsim-novelty[gymnasium]")
    (text,), (result,) = blocks("python"), blocks("json")
    names = {}
    exec(text, names)
    assert names["eval_result"] == json.loads(result)
    assert isinstance(names["test_suite"], TestSuite)


def test_tables_are_of_the_code():
    for name in FULL_STATE:
        assert f"| `{name}` | " in PAGE
    assert grader_page.arguments(TestSuite)["suite_id"] == ("", "name or number of the suite.")
    assert grader_page.errors()["TimeoutException"] == "The time limit of a test case is over."
    assert "GivenUp" not in PAGE


def test_links_and_commands_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)", PAGE):
        assert (ROOT / "docs" / target).exists(), target
    (command,) = blocks("bash")
    assert all((ROOT / word).is_file() for word in command.split()[2:])
