"""Measure the coverage of the 95 % intervals by simulation.

python -m benchmarks.coverage --out docs/coverage.json

Each cell draws many samples of lifetimes from a distribution whose true value is known, and counts
the intervals that hold it.
"""

import argparse
import functools
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np

from benchmarks.output import add_out, put_json
from evaluation.json_types import JsonObject
from evaluation.metrics import bootstrap_interval
from evaluation.metrics.statistics import DEFAULT_LEVEL, wilson

SAMPLES: Final = 2_000
"""Samples of a cell: the standard error of a coverage of 95 % is 0.5 %."""
SIZES: Final = (8, 30, 256)
SEED: Final = 20

Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]

DRAWS: Final[Mapping[str, Draw]] = {
    "normal": lambda random, shape: random.normal(size=shape),
    "skewed (log-normal)": lambda random, shape: random.lognormal(size=shape),
    "skewed (exponential)": lambda random, shape: random.exponential(size=shape),
    "most close together": lambda random, shape: np.where(
        random.random(shape) < 0.3, random.random(shape), random.beta(20, 1, shape)
    ),
    "0/1 (30 %)": lambda random, shape: (random.random(shape) < 0.3).astype(float),
    "0/1 (90 %)": lambda random, shape: (random.random(shape) < 0.9).astype(float),
}
MEANS: Final = ("percentile", "bca", "studentised", "calibrated")
STATISTICS: Final[Mapping[str, tuple[str, ...]]] = {
    "mean": MEANS,
    "median": ("percentile", "bca"),
    "interquartile_mean": ("percentile", "bca"),
    "share": ("percentile", "wilson"),
    "difference": MEANS,
}
"""Statistics, and the methods that give an interval of each."""


@dataclass(frozen=True)
class Coverage:
    """Coverage of one method.

    Attributes:
      covered: share of intervals that hold the true value.
      width: mean width of an interval.
    """

    covered: float
    width: float


@functools.cache
def truth(draw: Draw, statistic: str) -> float:
    """The true value of a statistic, from a sample so large that its error is negligible."""
    large = draw(np.random.default_rng(1), (4_000_000,))
    if statistic == "median":
        return float(np.median(large))
    if statistic == "interquartile_mean":
        quarter = len(large) // 4
        return float(np.sort(large)[quarter:-quarter].mean())
    return float(large.mean())


def cell(draw: Draw, statistic: str, size: int, method: str, samples: int = SAMPLES) -> Coverage:
    """Measure the coverage of one statistic's interval."""
    random = np.random.default_rng([SEED, size, *map(ord, statistic)])
    values = draw(random, (size, samples))
    if method == "wilson":
        return _cell(*wilson(values.sum(axis=0), size, DEFAULT_LEVEL), truth(draw, "mean"))
    true = 0.0
    if statistic == "difference":
        values = values - draw(random, (size, samples))
    else:
        true = truth(draw, "mean" if statistic == "share" else statistic)
    estimate = "mean" if statistic in ("difference", "share") else statistic
    interval = bootstrap_interval(values, seed=3, statistic=estimate, method=method)
    return _cell(interval.low, interval.high, true)


def _cell(low: np.ndarray, high: np.ndarray, true: float) -> Coverage:
    slack = 1e-9 * max(abs(true), 1)
    covered = (np.asarray(low) <= true + slack) & (true - slack <= np.asarray(high))
    return Coverage(float(covered.mean()), float(np.mean(np.asarray(high) - np.asarray(low))))


def rows(samples: int) -> Iterator[JsonObject]:
    """Coverage by statistic, distribution and number of lifetimes."""
    for statistic, methods in STATISTICS.items():
        for name, draw in DRAWS.items():
            if statistic == "share" and not name.startswith("0/1"):
                continue
            for size in SIZES:
                cells = {m: asdict(cell(draw, statistic, size, m, samples)) for m in methods}
                setting = {"statistic": statistic, "outcomes": name, "lifetimes": size}
                yield {**setting, "methods": cells}


def main() -> None:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(description="Measure the coverage of intervals.")
    parser.add_argument("--samples", type=int, default=SAMPLES, metavar="N", help="of each cell")
    add_out(parser)
    arguments = parser.parse_args()
    results = []
    for row in rows(arguments.samples):
        print(json.dumps(row), file=sys.stderr, flush=True)
        results.append(row)
    put_json({"samples": arguments.samples, "rows": results}, arguments.out)


if __name__ == "__main__":
    main()
