"""Write the tables of docs/agents.md on novelty through noisy sensors, from measurements.

    python -m tools.noise_page

The numbers are those of `python -m benchmarks.noise_detection --out docs/noise-detection.json`.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.noise_detection import KINDS, NOVEL
from benchmarks.pages import filled, table
from evaluation.files import write_whole
from evaluation.metrics.novelty.cells import wilson

DOCS = Path(__file__).parents[1] / "docs"


def false_alarms(measured: dict[str, Any]) -> Iterator[str]:
    """Lifetimes without a change, by noise."""
    head = [kind.removeprefix("noise_") for kind in KINDS]
    rows = []
    for one in measured["noises"].values():
        low, high = wilson(one["false_alarms"], one["lifetimes"])
        share = f"{one['false_alarms']} of {one['lifetimes']:,} [{low:.4f}, {high:.4f}]"
        rows.append([*(f"{one['noise'][kind]:g}" for kind in KINDS), one["episodes"], share])
    yield from table([*head, "episodes", "lifetimes with a false alarm"], rows)


def delays(measured: dict[str, Any]) -> Iterator[str]:
    """Mean delays by change and size, beside CUSUM."""
    rows = []
    for one in measured["noises"]["middle"]["changes"]:
        missed = f"{one['missed']} and {one['missed_by_optimum']} of {one['lifetimes']}"
        cells = [f"{one['effect']:g}", f"{one['delay']:.1f}", f"{one['optimum']:.1f}"]
        ratio = f"{one['delay'] / one['optimum']:.2f}"
        rows.append(
            [one["change"], f"`{one['parameter']}` {one['value']:.4g}", *cells, ratio, missed]
        )
    head = ["change", "value", "standard errors", "`residual`", "CUSUM", "ratio"]
    yield from table([*head, f"not found in {NOVEL}"], rows)


def page(text: str, measured: dict[str, Any]) -> str:
    """The page with renewed generated parts."""
    parts = {
        "false alarms": lambda: false_alarms(measured),
        "delays": lambda: delays(measured),
    }
    return filled(text, parts)


def main() -> None:
    """Write the page."""
    path = DOCS / "agents.md"
    measured = json.loads((DOCS / "noise-detection.json").read_text(encoding="utf-8"))
    write_whole(path, page(path.read_text(encoding="utf-8"), measured))


if __name__ == "__main__":
    main()
