"""docs/compatibility.md has the rows that are run, and tests that are there."""

import ast
from pathlib import Path

import pytest

from tools import compatibility_page as page

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "compatibility.md").read_text(encoding="utf-8")
ROWS = page.rows()


def test_every_row_is_on_the_page_and_has_passed():
    lines = [text for text in PAGE.splitlines() if text.startswith("| ")][2:]
    again = "run it anew: python -m tools.compatibility_page --out docs/compatibility.md"
    assert len(lines) == len(ROWS), again
    for row, text in zip(ROWS, lines, strict=True):
        version, result = (cell.strip() for cell in text.split(" | ")[1:4:2])
        assert result.startswith("passed, "), again
        assert text == page.line(row, version, result), again
    assert page.page(lines) == PAGE, again


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.client)
def test_the_tests_of_a_row_are_there(row):
    tree = ast.parse((ROOT / "tests" / row.file).read_text(encoding="utf-8"))
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert set(row.tests) <= functions
    assert row.run in page.MAKE
