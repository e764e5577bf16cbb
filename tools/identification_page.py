"""Islands of docs/identification.md, from docs/identification.json.

`python -m benchmarks.identification --out docs/identification.json` measures their numbers.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from evaluation.json_types import JsonMapping
from evaluation.metrics.statistics import wilson
from tools.islands import NONE, Islands, measured, table

Rows = Sequence[JsonMapping]


def islands() -> Islands:
    """Islands of the page."""
    values = measured("identification.json")
    rows, settings = values["rows"], values["settings"]
    last = settings["first"] + len(rows) - 1
    return {
        "samples": f"samples {settings['first']} to {last} of {settings['novelties']}",
        "named": named(rows),
        "wrong": wrong(rows),
        "seconds": f"{np.median([row['seconds'] for row in rows]):.1f} s",
    }


def named(rows: Rows) -> Iterator[str]:
    """Shares of samples that are named right, and errors of their values."""
    differing = [row for row in rows if row["differs"]]
    groups = {
        "one family": [row for row in differing if len(row["families"]) == 1],
        "two families": [row for row in differing if len(row["families"]) == 2],
        "no report differs": [row for row in rows if not row["differs"]],
    }
    cells = []
    for name, group in groups.items():
        right = sum(row["families"] == row["named"] for row in group)
        showing = sum(row["showing"] == row["named"] for row in group)
        whole = sum(row["showing"] == row["families"] for row in group)
        errors = [error for row in group for error in row["errors"].values()]
        quantiles = np.quantile(errors, (0.5, 0.9)) if errors else (np.nan, np.nan)
        texts = [f"{100 * q:.2g} %" if np.isfinite(q) else NONE for q in quantiles]
        shares = [_share(number, len(group)) for number in (right, showing)]
        visible = f"{whole / len(group):.3f}" if group else NONE
        cells.append([name, len(group), shares[0], visible, shares[1], *texts])
    head = ("samples", "number", "named right", "each family shows alone")
    more = ("what shows alone is named right", "median error", "nine in ten below")
    return table((*head, *more), cells)


def _share(number: int, total: int) -> str:
    if not total:
        return NONE
    low, high = wilson(number, total)
    return f"{number / total:.3f} ({low:.3f} to {high:.3f})"


def wrong(rows: Rows) -> Iterator[str]:
    """Samples that differ and are not named right."""
    missed = [row for row in rows if row["differs"] and row["families"] != row["named"]]
    cells = (
        (
            "+".join(row["families"]),
            "+".join(row["named"]) or "nothing",
            "yes" if row["none_of_these"] else "no",
        )
        for row in missed
    )
    return table(("changed", "named", "unexplained"), cells)
