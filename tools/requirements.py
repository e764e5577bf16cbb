"""Run the tests of the requirements of each protocol.

    python -m tools.requirements
    python -m tools.pages docs/requirements.md

It runs the tests with the mark `requirement`, except those that take minutes, and writes
docs/requirements.json, unless they did not all run. With --collect it runs nothing and prints the
tests of each row as JSON.
"""

import argparse
import contextlib
import json
import sys
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from evaluation.files import write_json
from evaluation.json_types import JsonObject
from tools.islands import DOCS

ROOT = Path(__file__).parents[1]
TITLES = {
    "sciencebirds": "Science Birds",
    "grader": "aiVLE's grader",
    "gvgai": "GVGAI's learning track",
    "l2m": "L2M metrics framework",
    "sailon": "CartPole domain",
}
OUTCOMES = ("failed", "skipped", "passed")  # the outcome of a test is the first that occurred


def requirements() -> dict[str, dict[int, str]]:
    """Requirements by front door and number."""
    values = tomllib.loads((ROOT / "tools" / "requirements.toml").read_text(encoding="utf-8"))
    return {door: {int(n): text for n, text in rows.items()} for door, rows in values.items()}


def doors() -> list[str]:
    """Front doors that exist."""
    return [door for door in TITLES if (ROOT / "evaluation" / door / "__init__.py").is_file()]


@dataclass(eq=False)
class MarkedTests:
    """A plug-in of pytest that records marked tests and their outcomes.

    Attributes:
      numbers: rows of a test, by its id.
      outcomes: of a test, by its id.
    """

    numbers: dict[str, list[int]] = field(default_factory=dict)
    outcomes: dict[str, set[str]] = field(default_factory=dict)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Record the marks."""
        for item in session.items:
            marks = item.iter_markers("requirement")
            self.numbers[item.nodeid] = sorted({n for mark in marks for n in mark.args})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record an outcome."""
        if report.when == "call" or report.outcome != "passed":
            self.outcomes.setdefault(report.nodeid, set()).add(report.outcome)

    def tests(self) -> dict[int, dict[str, Counter[str]]]:
        """How often each test function had which outcome, by row."""
        by_row: dict[int, dict[str, Counter[str]]] = {}
        for nodeid, numbers in self.numbers.items():
            outcomes = self.outcomes.get(nodeid, set())
            outcome = next((o for o in OUTCOMES if o in outcomes), "not run")
            for number in numbers:
                function = nodeid.partition("[")[0]
                by_row.setdefault(number, {}).setdefault(function, Counter())[outcome] += 1
        return by_row


def marked_files() -> list[str]:
    """Test files with the mark; importing all others would take long."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [str(f) for f in files if "mark.requirement" in f.read_text(encoding="utf-8")]


def run(*options: str) -> tuple[MarkedTests, int]:
    """Run pytest on the marked tests; return their outcomes and the exit code."""
    marks = MarkedTests()
    selection = ["-m", "requirement and not long", "-q", "-p", "no:cacheprovider", *options]
    with contextlib.chdir(ROOT), contextlib.redirect_stdout(sys.stderr):
        code = pytest.main([*selection, *marked_files()], plugins=[marks])
    return marks, int(code)


def results(tests: Mapping[int, Mapping[str, Counter[str]]]) -> dict[str, JsonObject]:
    """Tests of each row, and how often they had which outcome."""
    return {
        str(number): {"tests": sorted(of), "outcomes": dict(sum(of.values(), Counter()))}
        for number, of in sorted(tests.items())
    }


def main() -> int:
    """Run the tests and write the results; 1 if one failed, another code if not all ran."""
    parser = argparse.ArgumentParser(description="Run the tests of requirements.")
    parser.add_argument(
        "--collect", action="store_true", help="run nothing; print tests by row as JSON"
    )
    collect = parser.parse_args().collect
    marks, code = run(*(["--collect-only"] if collect else []))
    tests = marks.tests()
    if collect:
        print(json.dumps({number: sorted(tests[number]) for number in sorted(tests)}, indent=2))
    elif code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        write_json(DOCS / "requirements.json", results(tests))
    return code


if __name__ == "__main__":
    sys.exit(main())
