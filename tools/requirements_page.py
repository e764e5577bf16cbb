"""Islands of docs/requirements.md, from the tests that `tools.requirements` ran."""

from collections.abc import Iterator, Mapping

from evaluation.json_types import JsonMapping
from tools.islands import Islands, measured, table
from tools.requirements import OUTCOMES, TITLES, requirements

Results = Mapping[str, JsonMapping]
"""Tests and outcomes by the number of a row."""


def islands() -> Islands:
    """Islands of the page."""
    return islands_of(measured("requirements.json"))


def islands_of(results: Results) -> Islands:
    """Islands of results: a summary, and a table for each protocol."""
    tables = {door: rows(numbers, results) for door, numbers in requirements().items()}
    return {"summary": summary(results), **tables}


def summary(results: Results) -> Iterator[str]:
    """Number of requirements of each protocol that a test shows."""
    lines = []
    for door, numbers in requirements().items():
        of_rows = [results[str(n)]["outcomes"] if str(n) in results else {} for n in numbers]
        missing = sum(not outcomes for outcomes in of_rows)
        failed = sum("failed" in outcomes for outcomes in of_rows)
        shown = sum("passed" in o and "failed" not in o for o in of_rows)
        lines.append((TITLES[door], len(numbers), shown, missing, failed))
    return table(("protocol", "rows", "shown", "without a test", "failed"), lines)


def rows(numbers: Mapping[int, str], results: Results) -> Iterator[str]:
    """Requirements of a protocol with their tests and outcomes."""
    lines = []
    for number, text in numbers.items():
        result = results.get(str(number), {"tests": (), "outcomes": {}})
        tests = "<br>".join(_link(function) for function in result["tests"])
        lines.append((number, text, tests, _outcomes(result["outcomes"])))
    return table(("number", "requirement", "tests", "result"), lines)


def _link(function: str) -> str:
    file, _, name = function.partition("::")
    return f"[{name}](../{file})"


def _outcomes(counts: Mapping[str, int]) -> str:
    names = (name for name in (*OUTCOMES, "not run") if name in counts)
    return ", ".join(f"{counts[name]} {name}" for name in names) or "no test"
