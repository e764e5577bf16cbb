"""Every requirement of the harness has a test that carries its number."""

import ast
from pathlib import Path

ROWS = range(1, 50)


def numbers(path: Path) -> set[int]:
    """Numbers of all `requirement` marks in a file."""
    rows: set[int] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.requirement":
            rows |= {argument.value for argument in node.args}
    return rows


def test_every_requirement_has_a_test():
    marked = set().union(*map(numbers, Path(__file__).parent.glob("test_*.py")))
    assert marked == set(ROWS)
