"""Write docs/coverage.md: simulated coverage of the 95 % intervals.

python -m benchmarks.coverage --out docs/coverage.md

Each cell draws many samples of lifetimes from a distribution whose true value is known, and counts
the intervals that hold it.
"""

import argparse
import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from benchmarks.pages import add_out, put_lines
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
class Cell:
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


def cell(draw: Draw, statistic: str, size: int, method: str, samples: int = SAMPLES) -> Cell:
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


def _cell(low: np.ndarray, high: np.ndarray, true: float) -> Cell:
    slack = 1e-9 * max(abs(true), 1)
    covered = (np.asarray(low) <= true + slack) & (true - slack <= np.asarray(high))
    return Cell(float(covered.mean()), float(np.mean(np.asarray(high) - np.asarray(low))))


TEXT: Final = """
Each number is the share of samples whose interval covers the true value, in per cent, and in
brackets the mean width of the interval. 95 is aimed at.

* **percentile**: percentiles of 2,000 bootstrap resamples.
* **bca**: the same, corrected for bias and skew.
* **studentised**: percentiles of the resampled t statistic (bootstrap-t). A resample's standard
  deviation counts as at least a quarter of the sample's: where most values lie close together, some
  resamples draw only these, and their t values have no bound. Intervals are then at most some two
  times as wide as Student's.
* **calibrated**: what reports use. Of a mean it is Student's interval below 8 values or where there
  are no more than 4 different ones; otherwise its lower end is the lower one of Student's and the
  studentised interval, and its upper end the upper one. The first covers symmetric outcomes, the
  second skewed ones. Of other statistics it is the percentiles.
* **wilson**: Wilson's interval of a share. Reports use it for metrics whose unit is a share, where
  all values are zeros and ones (`jaxsim metrics` lists the units).

Percentile intervals of a mean undercover below about 30 lifetimes. At 8 lifetimes no method here
covers 93 % for distributions as skewed as the log-normal one, or for performances most of which are
close together near 1: a sample seldom has the tail. There the median or the interquartile mean,
which `--statistics` prints, is the better summary. The median of
zeros and ones is one of the two, so that its interval nearly always covers it. The difference is
that of two runs, lifetime by lifetime. In reports no interval leaves the range of a metric that has
one, as 0 to 1 of a share; here none is cut off.
"""


def page(samples: int = SAMPLES) -> Iterator[str]:
    """Lines of the page."""
    yield "# Coverage of the 95 % intervals"
    yield ""
    yield f"Generated by `python -m benchmarks.coverage` from {samples:,} samples; do not edit."
    yield from TEXT.rstrip().splitlines()
    for statistic, methods in STATISTICS.items():
        yield ""
        yield f"## {statistic.replace('_', ' ').capitalize()}"
        yield ""
        yield f"| outcomes | lifetimes | {' | '.join(methods)} |"
        yield "| --- " * (2 + len(methods)) + "|"
        for name, draw in DRAWS.items():
            if statistic == "share" and not name.startswith("0/1"):
                continue
            for size in SIZES:
                cells = [cell(draw, statistic, size, method, samples) for method in methods]
                yield f"| {name} | {size} | {' | '.join(map(_shown, cells))} |"


def _shown(result: Cell) -> str:
    return f"{100 * result.covered:.1f} ({result.width:.2f})"


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description="Measure the coverage of intervals.")
    parser.add_argument("--samples", type=int, default=SAMPLES, metavar="N", help="of each cell")
    add_out(parser)
    arguments = parser.parse_args()
    put_lines(page(arguments.samples), arguments.out)


if __name__ == "__main__":
    main()
