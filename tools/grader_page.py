"""Write the tables of docs/grader.md that follow from the code.

python -m tools.grader_page
"""

import argparse
import inspect
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from benchmarks.pages import table, write_parts
from evaluation.grader import (
    ReinforcementLearningTestCase,
    TestCase,
    TestSuite,
    VectorTestCase,
    exceptions,
)
from evaluation.grader.evaluators import FULL_STATE
from evaluation.grader.results import RESULT_FIELDS

PAGE = Path(__file__).parents[1] / "docs" / "grader.md"


def arguments(kind: type) -> dict[str, tuple[str, str]]:
    """Default and meaning of each argument of a class, from signature and docstring."""
    text = inspect.getdoc(kind) or ""
    section = re.search(r"^Args:\n(.*?)(?:^\S|\Z)", text, re.DOTALL | re.MULTILINE)
    assert section is not None, kind
    entries = re.findall(r"^  (\w+): (.*?)(?=^  \w|\Z)", section[1], re.DOTALL | re.MULTILINE)
    meanings = {name: " ".join(words.split()) for name, words in entries}
    parameters = inspect.signature(kind).parameters
    assert list(meanings) == [n for n in parameters if n in meanings]
    assert set(meanings) == set(parameters), kind
    return {
        name: ("" if p.default is p.empty else f"`{p.default!r}`", meanings[name])
        for name, p in parameters.items()
    }


def argument_table(kind: type) -> Iterator[str]:
    """Table of the arguments of a class."""
    rows = (
        (f"`{name}`", default, _escaped(meaning))
        for name, (default, meaning) in arguments(kind).items()
    )
    return table(("argument", "default", "what"), rows)


def field_table(heading: str, fields: Mapping[str, str]) -> Iterator[str]:
    """Table of names and meanings."""
    return table((heading, "what"), ((f"`{name}`", _escaped(m)) for name, m in fields.items()))


def errors() -> dict[str, str]:
    """First line on each exception of the grader's own."""
    classes = inspect.getmembers(exceptions, inspect.isclass)
    return {name: (inspect.getdoc(kind) or "").splitlines()[0] for name, kind in classes}


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


PARTS = {
    "full_state": partial(field_table, "key of `full_state`", FULL_STATE),
    "test_case": partial(argument_table, TestCase),
    "rl_test_case": partial(argument_table, ReinforcementLearningTestCase),
    "vector_test_case": partial(argument_table, VectorTestCase),
    "test_suite": partial(argument_table, TestSuite),
    "results": partial(field_table, "field", RESULT_FIELDS),
    "exceptions": partial(field_table, "exception", errors()),
}


def main() -> None:
    """Write the tables."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    write_parts(PAGE, PARTS)


if __name__ == "__main__":
    main()
