"""Islands of docs/scores.md, measured by `benchmarks.scores`."""

from collections.abc import Iterator, Sequence

from benchmarks.scores import POLICIES, Gap, Score
from evaluation.json_types import JsonObject
from tools.islands import Islands, measured, table

SIGNIFICANT = 0.05  # of the joint test


def islands() -> Islands:
    """Islands of the page."""
    values = measured("scores.json")
    cells, order = values["cells"], values["order"]
    rising = sum(Gap(**pair["ours"]).rises for pair in order)
    differing = sum(cell["p"] < SIGNIFICANT for cell in cells)
    return {
        "episodes": f"{values['episodes']:,} episodes of seed {values['seed']}",
        "differing": f"{differing} of {len(cells)} cells differ",
        "rising": f"{rising} of {len(order)} pairs",
        "order": gaps(order),
        **{policy: scores([c for c in cells if c["policy"] == policy]) for policy in POLICIES},
    }


def scores(cells: Sequence[JsonObject]) -> Iterator[str]:
    """Scores of an agent by level."""
    rows = (
        (
            f"{cell['level']} {cell['difficulty']}",
            Score(**cell["ours"]),
            f"{Score(**cell['original'])} (n = {cell['original']['episodes']})",
            f"{cell['p']:.2f}",
        )
        for cell in cells
    )
    return table(("level", "ours", "original", "p"), rows)


def gaps(order: Sequence[JsonObject]) -> Iterator[str]:
    """Gaps between cells whose order is known."""
    rows = (
        (pair["worse"], pair["better"], Gap(**pair["ours"]), Gap(**pair["original"]))
        for pair in order
    )
    return table(("worse", "better", "ours", "original"), rows)
