"""Sizes of packages: what counts as code, and what is left out."""

import pytest

from tools import structure

SMALL = '''"""A module."""

from typing import Any
import typing


class Row:
    """A row."""

    width: Any = (
        # as wide as a page
        1
    )


def first(values: "typing.Any") -> typing.Any:
    """Take the first value.

    Of several.
    """
    return values[0]  # Any other is left
'''
OTHER = "class Row:\n    def name(self): return 'Any'\n"


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "toy"
    for name, text in (
        ("__init__.py", '"""Only a docstring."""\n'),
        ("small.py", SMALL),
        ("inner/other.py", OTHER),
        ("tests/helper.py", "x = 1\n"),
        ("inner/other_test.py", "x = 1\n"),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_code_is_counted_without_comments_docstrings_and_imports_of_any():
    module = structure.Module.of(SMALL)
    # Two imports, the class with four lines, the function with two.
    assert (module.lines, module.uses_of_any, module.classes) == (8, 2, {"Row"})


def test_a_row_has_the_sizes_of_the_modules_that_hold_code(package, capsys):
    structure.main([str(package)])
    head, _, row = capsys.readouterr().out.splitlines()
    assert head.startswith("| package | modules | code lines | largest | median |")
    assert row == "| toy | 2 | 10 | 8 | 5 | 20.0 | 1 |"


@pytest.mark.parametrize("name", ["missing", "toy/tests"])
def test_a_folder_without_code_is_refused(package, name):
    folder = package.parent / name
    (package / "tests/helper.py").write_text("# nothing\n")
    with pytest.raises(SystemExit, match=r"is not a folder with Python code"):
        structure.main([str(folder)])
