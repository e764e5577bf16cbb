"""Measure the coverage of the 95 % intervals by simulation.

python -m benchmarks.coverage --out docs/coverage.json
python -m benchmarks.coverage --out docs/coverage.json --statistic improvement

The second command measures one statistic and keeps the rows of the others in the file.

Each cell draws many samples of lifetimes from a distribution whose true value is known, and counts
the intervals that hold it.
"""

import argparse
import functools
import json
import math
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Final

import numpy as np

from benchmarks.output import add_out, put_json
from evaluation.json_types import JsonObject
from evaluation.metrics import bootstrap_interval, probability_of_improvement
from evaluation.metrics.statistics import DEFAULT_LEVEL, resample_weights, wilson

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

IMPROVEMENT: Final = "improvement"
"""The probability of improvement of one agent over another."""
PAIR_SIZES: Final = (3, *SIZES)
RESAMPLES: Final = 1_000
NINE_IN_TEN: Final = NormalDist().inv_cdf(0.9)


@dataclass(frozen=True)
class Pair:
    """Outcomes of two agents.

    Attributes:
      first: draws the outcomes of the first agent.
      second: of the second.
      truth: probability that the first is above the second, ties by half.
    """

    first: Draw
    second: Draw
    truth: float


PAIRS: Final[Mapping[str, Pair]] = {
    "normal, equal": Pair(DRAWS["normal"], DRAWS["normal"], 0.5),
    "normal, 90 % better": Pair(
        lambda random, shape: random.normal(NINE_IN_TEN * math.sqrt(2), size=shape),
        DRAWS["normal"],
        0.9,
    ),
    "normal of a fifth of the spread, 90 % better": Pair(
        lambda random, shape: random.normal(NINE_IN_TEN * math.hypot(0.2, 1), 0.2, shape),
        DRAWS["normal"],
        0.9,
    ),
    "skewed (exponential), 90 % better": Pair(
        lambda random, shape: random.exponential(9, shape), DRAWS["skewed (exponential)"], 0.9
    ),
    "0/1 (90 % and 30 %), 80 % better": Pair(DRAWS["0/1 (90 %)"], DRAWS["0/1 (30 %)"], 0.8),
}


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


def improvement_cells(pair: Pair, size: int, samples: int = SAMPLES) -> dict[str, Coverage]:
    """Measure the coverage of both intervals of the probability of improvement."""
    random = np.random.default_rng([SEED, size, *map(ord, IMPROVEMENT)])
    first, second = (draw(random, (size, samples)) for draw in (pair.first, pair.second))
    low, high = _percentiles(first, second)
    score = probability_of_improvement(first, second)
    return {
        "percentile": _cell(low, high, pair.truth),
        "score": _cell(score.low, score.high, pair.truth),
    }


def _percentiles(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Percentiles of the share of pairs in which the first is above, over resamples; (2, S)."""
    size = len(first)
    one, other = (np.concatenate(list(resample_weights(size, RESAMPLES, seed))) for seed in (3, 4))
    ends = np.empty((2, first.shape[1]))
    for place, (x, y) in enumerate(zip(first.T, second.T, strict=True)):
        wins = (x[:, None] > y) + (x[:, None] == y) / 2
        shares = (one @ wins * other).sum(axis=1) / size**2
        ends[:, place] = np.quantile(shares, [(1 - DEFAULT_LEVEL) / 2, (1 + DEFAULT_LEVEL) / 2])
    return ends


def improvement_rows(samples: int) -> Iterator[JsonObject]:
    """Coverage of the probability of improvement, by outcomes and number of lifetimes."""
    for name, pair in PAIRS.items():
        for size in PAIR_SIZES:
            cells = {m: asdict(c) for m, c in improvement_cells(pair, size, samples).items()}
            setting = {"statistic": IMPROVEMENT, "outcomes": name, "lifetimes": size}
            yield {**setting, "methods": cells}


def rows(samples: int, statistics: Collection[str]) -> Iterator[JsonObject]:
    """Coverage by statistic, distribution and number of lifetimes."""
    for statistic, methods in STATISTICS.items():
        if statistic not in statistics:
            continue
        for name, draw in DRAWS.items():
            if statistic == "share" and not name.startswith("0/1"):
                continue
            for size in SIZES:
                cells = {m: asdict(cell(draw, statistic, size, m, samples)) for m in methods}
                setting = {"statistic": statistic, "outcomes": name, "lifetimes": size}
                yield {**setting, "methods": cells}
    if IMPROVEMENT in statistics:
        yield from improvement_rows(samples)


def main() -> None:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(description="Measure the coverage of intervals.")
    parser.add_argument("--samples", type=int, default=SAMPLES, metavar="N", help="of each cell")
    names = (*STATISTICS, IMPROVEMENT)
    parser.add_argument("--statistic", choices=names, help="measure this one only")
    add_out(parser)
    arguments = parser.parse_args()
    only = (arguments.statistic,) if arguments.statistic else names
    results = []
    if arguments.statistic and arguments.out and arguments.out.exists():
        before = json.loads(arguments.out.read_text())
        if before["samples"] != arguments.samples:
            parser.error(
                f"the file has {before['samples']} samples; pass --samples with that number"
            )
        results = [row for row in before["rows"] if row["statistic"] not in only]
    for row in rows(arguments.samples, only):
        print(json.dumps(row), file=sys.stderr, flush=True)
        results.append(row)
    order = sorted(results, key=lambda row: names.index(row["statistic"]))
    put_json({"samples": arguments.samples, "rows": order}, arguments.out)


if __name__ == "__main__":
    main()
