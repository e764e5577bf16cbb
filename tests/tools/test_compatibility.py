"""docs/compatibility.json has the rows that are run, and tests that are there."""

import ast
from pathlib import Path

import pytest

from tools import compatibility, compatibility_page
from tools.islands import measured

ROOT = Path(__file__).parents[2]
ROWS = compatibility.rows()


def test_every_row_has_been_run_and_has_passed():
    again = "run the tests again: python -m tools.compatibility"
    results = measured("compatibility.json")
    assert [result["client"] for result in results] == [row.client for row in ROWS], again
    assert all(result["passed"] > 0 for result in results), again


def test_results_of_other_rows_are_refused():
    with pytest.raises(ValueError, match=r"python -m tools\.compatibility"):
        list(compatibility_page.tests(ROWS, measured("compatibility.json")[1:]))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.client)
def test_the_tests_of_a_row_are_there(row):
    tree = ast.parse((ROOT / "tests" / row.file).read_text(encoding="utf-8"))
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert set(row.tests) <= functions
    assert row.run in compatibility.MAKE
