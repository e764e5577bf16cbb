"""Islands are written between their marks, and a page that does not fit them is refused."""

import ast
from pathlib import Path

import pytest

from tools.islands import filled, table

TOOLS = sorted((Path(__file__).parents[2] / "tools").glob("*.py"))

PAGE = """# A page

There are <!-- number: generated -->no<!-- number: end --> rows.

<!-- rows: generated -->
old
<!-- rows: end -->

The end.
"""
FILLED = """# A page

There are <!-- number: generated -->2<!-- number: end --> rows.

<!-- rows: generated -->

| a | b |
| --- | --- |
| 1 | x |
| 2 | y |

<!-- rows: end -->

The end.
"""


def rows():
    return table(("a", "b"), [(1, "x"), (2, "y")])


def test_words_and_lines_are_written_between_their_marks():
    page = filled(PAGE, {"rows": rows(), "number": "2"})
    assert page == FILLED
    assert filled(page, {"rows": rows(), "number": "2"}) == page


@pytest.mark.parametrize("names", [["rows"], ["number"], ["rows", "number", "more"], []])
def test_a_page_has_exactly_the_islands_that_are_made(names):
    with pytest.raises(ValueError, match="the page has the islands number, rows; they must be"):
        filled(PAGE, dict.fromkeys(names, "2"))


@pytest.mark.parametrize(
    "page",
    [
        PAGE.replace("<!-- rows: end -->", ""),
        PAGE.replace("<!-- rows: end -->", "<!-- row: end -->"),
        PAGE + "<!-- rows: generated -->",
        PAGE + PAGE,
    ],
)
def test_every_mark_stands_once(page):
    with pytest.raises(ValueError, match="each with both marks once"):
        filled(page, {"rows": rows(), "number": "2"})


@pytest.mark.parametrize("before", ["There\nare\n", "There are\n  "])
def test_words_do_not_begin_a_line(before):
    """Markdown would take the line for HTML."""
    page = PAGE.replace("There are ", before)
    with pytest.raises(ValueError, match="the words of number must not begin a line"):
        filled(page, {"rows": rows(), "number": "2"})


@pytest.mark.parametrize("path", TOOLS, ids=lambda path: path.stem)
def test_prose_of_pages_is_not_in_python(path):
    """Table headings and captions are shorter; docstrings are no text of a page."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    long = [
        node.value
        for node in texts
        if isinstance(node.value, str) and len(node.value) > 90 and id(node) not in docstrings
    ]
    assert not long
