"""Table of docs/open-world.md on control, from docs/open-control.json.

`python -m benchmarks.open_control --out docs/open-control.json` measures its numbers.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from evaluation.json_types import JsonMapping
from evaluation.metrics import bootstrap_interval
from jaxsim.worlds.cartpole3d.levels import DIFFICULTIES
from tools.islands import NONE, Islands, measured, table

AGENTS = ("pd", "mpc", "clairvoyant")
GAIN = 0.05
"""Performance that the planner has above `pd` where they differ."""

Rows = Sequence[JsonMapping]


def islands() -> Islands:
    """Islands of the page."""
    values = measured("open-control.json")
    rows, settings = values["rows"], values["settings"]
    first, last = settings["first"], settings["first"] + len(rows) - 1
    episodes, seed = settings["episodes"], settings["seed"]
    return {
        "controlled": f"samples {first} to {last}, {episodes} episodes of each with seed {seed}",
        "gain": f"{GAIN:g}",
        "control": control(rows),
    }


def control(rows: Rows) -> Iterator[str]:
    """Performance of the controllers, and the share of the loss that `mpc` gets back."""
    groups = {"all": rows}
    groups |= {name: [r for r in rows if r["difficulty"] == name] for name in DIFFICULTIES}
    groups |= {
        name: [r for r in rows if r["held_out"] == apart]
        for name, apart in (("known", False), ("held out", True))
    }
    head = ("samples", "number", *(f"`{name}`" for name in AGENTS), "differ", "gets back, median")
    return table(head, (_cells(name, group) for name, group in groups.items()))


def _cells(name: str, rows: Rows) -> Iterator[object]:
    means = np.array([[row[agent] for agent in AGENTS] for row in rows]).reshape(-1, len(AGENTS))
    pd, mpc, best = means.T
    differ = best - pd >= GAIN
    yield from (name, len(rows), *(_estimate(column, "mean") for column in means.T), differ.sum())
    yield _estimate((mpc - pd)[differ] / (best - pd)[differ], "median")


def _estimate(values: np.ndarray, statistic: str) -> str:
    """An estimate with its interval; none of fewer than two values."""
    if len(values) < 2:
        return NONE
    interval = bootstrap_interval(values, statistic=statistic)
    value = getattr(np, statistic)(values)
    return f"{value:.3f} ({interval.low:.3f} to {interval.high:.3f})"
