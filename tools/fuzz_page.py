"""Islands of docs/fuzz.md, measured by `benchmarks.fuzz`."""

from collections.abc import Iterator

from benchmarks.fuzz import SPOILT
from evaluation.json_types import JsonObject
from tools.islands import Islands, measured, table

SHOWN = 20
"""Leaks that are listed."""


def islands() -> Islands:
    """Islands of the page."""
    return islands_of(measured("fuzz.json"))


def islands_of(values: JsonObject) -> Islands:
    """Islands of the results of all hunts."""
    leaks = [leak for hunt in values["hunts"] for leak in hunt["leaks"]]
    return {
        "leaks": f"**{len(leaks)} leaks**",
        "seed": f"seed {values['seed']}",
        "spoilt": ", ".join(f"{value:g}" for value in SPOILT),
        "hunts": hunts(values["hunts"]),
        "list": (f"* {leak}" for leak in leaks[:SHOWN]),
    }


def hunts(rows: list[JsonObject]) -> Iterator[str]:
    """Totals of each hunt."""
    numbers = ("tries", "steps", "flagged")
    lines = (
        (
            row["environment"],
            row["hunt"],
            *(f"{row[number]:,}" for number in numbers),
            len(row["leaks"]),
        )
        for row in rows
    )
    return table(("environment", "hunt", *numbers, "leaks"), lines)
