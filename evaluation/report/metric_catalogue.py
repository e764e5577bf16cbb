"""The table of metrics, for a terminal and as JSON."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from evaluation.json_types import JsonObject
from evaluation.metrics.registry import MetricRow

if TYPE_CHECKING:
    from rich.table import Table

FIELDS = (
    *("name", "scope", "needs", "direction", "unit", "bounds", "text"),
    *("source", "capability", "family", "kernel"),
)


def kernel_of(row: MetricRow) -> str:
    """Qualified name of the function of a metric."""
    if isinstance(row.kernel, str):
        return f"evaluation.metrics.{row.kernel}"
    return f"{row.kernel.__module__}:{row.kernel.__qualname__}"


def bounds(row: MetricRow) -> list[float | None]:
    """Return the bounds of a metric; None for an infinite one."""
    return [float(bound) if math.isfinite(bound) else None for bound in row.bounds]


def as_json(rows: Sequence[MetricRow]) -> list[JsonObject]:
    """Return rows as plain JSON values."""
    return [
        {name: getattr(row, name) for name in FIELDS}
        | {"needs": list(row.needs), "bounds": bounds(row), "kernel": kernel_of(row)}
        for row in rows
    ]


def details(row: MetricRow) -> str:
    """All fields of a metric, one per line."""
    between = "{:g} to {:g}".format(*row.bounds) if row.bounds != MetricRow.bounds else ""
    values = as_json([row])[0] | {"needs": ", ".join(row.needs), "bounds": between}
    return "\n".join(f"{name:11} {value}" for name, value in values.items() if value)


def table(rows: Sequence[MetricRow]) -> "Table":
    """A table with one row per metric; needs rich."""
    from rich import box
    from rich.table import Table

    result = Table(box=box.SIMPLE_HEAD)
    for title in ("metric", "of a", "needs", "better", "what it is"):
        result.add_column(title, overflow="fold", no_wrap=title == "of a")
    for row in rows:
        better = "" if row.direction == "none" else row.direction
        unit = f" ({row.unit})" if row.unit else ""
        result.add_row(row.name, row.scope, ", ".join(row.needs), better, row.text + unit)
    return result
