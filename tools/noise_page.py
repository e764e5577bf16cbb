"""Islands of docs/agents.md on novelty through noisy sensors.

`python -m benchmarks.noise_detection --out docs/noise-detection.json` measures their numbers.
"""

from collections.abc import Iterator

from benchmarks.noise_detection import KINDS, NOVEL
from evaluation.json_types import JsonObject
from evaluation.metrics.statistics import wilson
from tools.islands import NONE, Islands, measured, table


def false_alarms(values: JsonObject) -> Iterator[str]:
    """Lifetimes without a change, by noise."""
    head = [kind.removeprefix("noise_") for kind in KINDS]
    rows = []
    for one in values["noises"].values():
        low, high = wilson(one["false_alarms"], one["lifetimes"])
        share = f"{one['false_alarms']} of {one['lifetimes']:,} [{low:.4f}, {high:.4f}]"
        rows.append([*(f"{one['noise'][kind]:g}" for kind in KINDS), one["episodes"], share])
    yield from table([*head, "episodes", "lifetimes with a false alarm"], rows)


def delays(values: JsonObject) -> Iterator[str]:
    """Mean delays by change and size, beside CUSUM."""
    rows = []
    for one in values["noises"]["middle"]["changes"]:
        missed = f"{one['missed']} and {one['missed_by_optimum']} of {one['lifetimes']}"
        cells, ratio = [f"{one['effect']:g}", NONE, NONE], NONE
        if one["lifetimes"]:
            cells[1:] = f"{one['delay']:.1f}", f"{one['optimum']:.1f}"
            ratio = f"{one['delay'] / one['optimum']:.2f}"
        rows.append(
            [one["change"], f"`{one['parameter']}` {one['value']:.4g}", *cells, ratio, missed]
        )
    head = ["change", "value", "standard errors", "`residual`", "CUSUM", "ratio"]
    yield from table([*head, f"not found in {NOVEL}"], rows)


def islands() -> Islands:
    """Islands of the page."""
    values = measured("noise-detection.json")
    return {"false alarms": false_alarms(values), "delays": delays(values)}
