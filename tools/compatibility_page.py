"""Islands of docs/compatibility.md, from the tests that `tools.compatibility` ran."""

from collections.abc import Iterator, Sequence

from evaluation.json_types import JsonMapping
from tools.compatibility import MAKE, ClientTool, rows
from tools.islands import NONE, Islands, measured, table


def islands() -> Islands:
    """Islands of the page."""
    return {"tests": tests(rows(), measured("compatibility.json"))}


def tests(all_rows: Sequence[ClientTool], results: Sequence[JsonMapping]) -> Iterator[str]:
    """Clients with versions, use cases and tests.

    Raises:
      ValueError: the results are those of other rows.
    """
    if [row.client for row in all_rows] != [result["client"] for result in results]:
        raise ValueError("run the tests again: python -m tools.compatibility")
    head = ("client or tool", "version", "what is done", "result", "tests", "run by")
    pairs = zip(all_rows, results, strict=True)
    return table(head, (_cells(row, result) for row, result in pairs))


def _cells(row: ClientTool, result: JsonMapping) -> tuple[str, ...]:
    passed = result["passed"]
    names = ", ".join(f"`{name}`" for name in row.tests) or "all"
    return (
        row.client,
        result["version"] or NONE,
        row.use,
        f"passed, {passed} test{'s' if passed > 1 else ''}",
        f"[{row.file}](../tests/{row.file}): {names}",
        f"`{MAKE[row.run]}`",
    )
