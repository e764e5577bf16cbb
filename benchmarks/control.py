"""Measure controllers: mean performance, cell by cell, on the same episodes.

    JAX_COMPILATION_CACHE_DIR=cache python -m benchmarks.control --agents pd mpc --levels 200 203

Each agent plays the same episodes: `--lifetimes` lanes side by side, `--episodes` one after the
other. Printed are mean performance with half its 95 % interval, the share of episodes that last 200
steps, and the time by decision, which includes the simulator and, at first, compilation.
"""

import argparse
from collections.abc import Iterator
from time import perf_counter

import numpy as np

from benchmarks.detection import LEVELS, cells, schedule
from benchmarks.pages import add_out, put_lines
from benchmarks.scores import Score
from evaluation.scanner import play
from jaxsim import agents
from jaxsim.worlds.cartpole3d.levels import DIFFICULTIES


def measured(
    name: str, cell: tuple[int, str], lifetimes: int, episodes: int, seed: int
) -> tuple[np.ndarray, float]:
    """Performances of all episodes, and ms by decision."""
    began = perf_counter()
    plan = schedule(*cell, episodes, 0)
    columns = play(plan, agents.get(name), lifetimes=lifetimes, seed=seed).columns
    took = 1e3 * (perf_counter() - began) / columns["length"].sum()
    return columns["performance"].ravel().astype(float), float(took)


def rows(arguments: argparse.Namespace) -> Iterator[str]:
    """Lines of the table, as they are measured."""
    a = arguments
    header = ["cell", "episodes"]
    for name in a.agents:
        header += [name, "to the end", "ms"]
    yield "| " + " | ".join(header) + " |"
    yield "| " + " | ".join("---" for _ in header) + " |"
    for cell in cells(a.levels, a.difficulties):
        parts = [f"{cell[0]} {cell[1]}", str(a.lifetimes * a.episodes)]
        for name in a.agents:
            values, took = measured(name, cell, a.lifetimes, a.episodes, a.seed)
            parts += [str(Score.of(values)), f"{(values >= 1).mean():.2f}", f"{took:.2f}"]
        yield "| " + " | ".join(parts) + " |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure controllers, cell by cell.")
    parser.add_argument("--agents", nargs="+", default=["pd", "mpc"], help="(pd mpc)")
    parser.add_argument("--lifetimes", type=int, default=64, metavar="N", help="lanes (64)")
    parser.add_argument("--episodes", type=int, default=8, metavar="N", help="of each (8)")
    parser.add_argument("--seed", type=int, default=17, metavar="N", help="of all episodes (17)")
    parser.add_argument("--levels", type=int, nargs="+", default=list(LEVELS))
    parser.add_argument("--difficulties", nargs="+", default=["hard"], choices=DIFFICULTIES)
    add_out(parser)
    arguments = parser.parse_args()
    put_lines(rows(arguments), arguments.out)


if __name__ == "__main__":
    main()
