"""Islands of docs/coverage.md, measured by `benchmarks.coverage`."""

from collections.abc import Iterator
from itertools import groupby

from evaluation.json_types import JsonObject
from tools.islands import Islands, measured, table


def islands() -> Islands:
    """Islands of the page: the samples of a cell, and a table for each statistic."""
    values = measured("coverage.json")
    groups = groupby(values["rows"], key=lambda row: str(row["statistic"]))
    tables = {statistic: coverage(list(rows)) for statistic, rows in groups}
    return {"samples": f"{values['samples']:,} samples", **tables}


def coverage(rows: list[JsonObject]) -> Iterator[str]:
    """Coverage in per cent and mean width of the intervals of a statistic."""
    lines = (
        (
            row["outcomes"],
            row["lifetimes"],
            *(f"{100 * of['covered']:.1f} ({of['width']:.2f})" for of in row["methods"].values()),
        )
        for row in rows
    )
    return table(("outcomes", "lifetimes", *rows[0]["methods"]), lines)
