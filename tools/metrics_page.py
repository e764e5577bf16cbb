"""Islands of docs/metrics.md: every metric, and how to add one."""

from collections.abc import Iterator
from pathlib import Path

from evaluation.metrics.registry import Lifetime
from evaluation.metrics.table import METRICS
from tools.islands import Islands, table

EXAMPLE = Path(__file__).parents[1] / "examples" / "metrics" / "late_level.py"


def example() -> Iterator[str]:
    """The code of the example, without its docstrings."""
    code = EXAMPLE.read_text(encoding="utf-8").split('"""\n\n', 1)[1].rstrip()
    yield "```python"
    yield from (line for line in code.splitlines() if not line.strip().startswith('"""'))
    yield "```"


def fields() -> Iterator[str]:
    """Fields that a metric may take, from their documentation."""
    documented = (Lifetime.__doc__ or "").split("Attributes:\n")[1]
    entries = (line.strip().partition(": ") for line in documented.strip().splitlines())
    return table(("field", "what it is"), ((f"`{name}`", text) for name, _, text in entries))


def family(name: str) -> Iterator[str]:
    """Metrics of a family."""
    rows = (
        (
            f"`{row.name}`",
            row.scope,
            ", ".join(row.needs),
            "" if row.direction == "none" else row.direction,
            row.unit,
            row.text,
            row.source,
        )
        for row in METRICS
        if row.family == name
    )
    return table(("metric", "of a", "needs", "better", "unit", "what it is", "source"), rows)


def islands() -> Islands:
    """Islands of the page."""
    names = dict.fromkeys(row.family for row in METRICS)
    families = {f"family {name}": family(name) for name in names}
    return {"example": example(), "fields": fields(), **families}
