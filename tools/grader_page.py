"""Islands of docs/grader.md, which follow from the code."""

import inspect
import re
from collections.abc import Iterator, Mapping

from evaluation.grader import (
    ReinforcementLearningTestCase,
    TestCase,
    TestSuite,
    VectorTestCase,
    exceptions,
)
from evaluation.grader.evaluators import FULL_STATE
from evaluation.grader.results import RESULT_FIELDS
from tools.islands import Islands, table


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
    """First docstring line of each exception of the grader."""
    classes = inspect.getmembers(exceptions, inspect.isclass)
    return {name: (inspect.getdoc(kind) or "").splitlines()[0] for name, kind in classes}


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


def islands() -> Islands:
    """Islands of the page."""
    return {
        "full_state": field_table("key of `full_state`", FULL_STATE),
        "test_case": argument_table(TestCase),
        "rl_test_case": argument_table(ReinforcementLearningTestCase),
        "vector_test_case": argument_table(VectorTestCase),
        "test_suite": argument_table(TestSuite),
        "results": field_table("field", RESULT_FIELDS),
        "exceptions": field_table("exception", errors()),
    }
