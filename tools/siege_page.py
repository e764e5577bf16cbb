"""Islands of docs/siege.md, measured by `make siege`."""

from collections.abc import Iterator

from evaluation.json_types import JsonObject
from tools.islands import Islands, measured, table

SHOWN = 20
"""Failures that are listed."""


def islands() -> Islands:
    """Islands of the page."""
    return islands_of(measured("siege.json"))


def islands_of(values: JsonObject) -> Islands:
    """Islands of a summary."""
    failures = values["failures"]
    return {
        "failures": f"**{len(failures)} failures**",
        "seed": f"seed {values['seed']}",
        "attacks": attacks(values["rows"]),
        "list": (f"* {failure}" for failure in failures[:SHOWN]),
    }


def attacks(rows: list[JsonObject]) -> Iterator[str]:
    """What was tried, how often, and what happened."""
    lines = (
        (
            row["what"],
            f"{row['times']:,}",
            ", ".join(f"{outcome} ({count:,})" for outcome, count in row["outcomes"].items()),
        )
        for row in rows
    )
    return table(("what was tried", "how often", "what happened"), lines)
