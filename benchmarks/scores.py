"""Score the reference agents at every level beside the original.

    python -m benchmarks.scores --baselines FOLDER --out docs/scores.json

The original's scores are one CSV a policy, `ep_<policy>.csv`, one row an episode. Ours are episodes
that this package draws itself. A cell is compared by Welch's t-test; the p-values of all cells are
corrected together by Holm's method.
"""

import argparse
import csv
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

import jaxsim
from benchmarks.lockstep import play_episode
from benchmarks.output import add_out, put_json
from benchmarks.parity import environment, most_slots
from evaluation.json_types import JsonObject
from jaxsim import agents, rng
from jaxsim.pytrees import Params
from jaxsim.worlds import cartpole3d
from jaxsim.worlds.cartpole3d.levels import DIFFICULTIES

POLICIES = ("random", "nothing", "pd", "greedy")
CHUNK = 256  # lanes; the state and the temporaries of a tick stay in the cache

Cell = tuple[int, str]

RISING: tuple[tuple[Cell, ...], ...] = (
    ((201, "hard"), (201, "medium"), (201, "easy")),
    ((203, "hard"), (203, "medium"), (203, "easy"), (200, "easy")),
    ((207, "hard"), (207, "medium"), (207, "easy")),
    ((208, "hard"), (208, "medium"), (208, "easy")),
)
"""Cells whose scores under `pd` rise in this order in the original."""


@dataclass(frozen=True)
class Score:
    """Mean performance with half its 95 % interval."""

    mean: float
    half: float
    episodes: int

    @classmethod
    def of(cls, values: np.ndarray) -> "Score":
        """Score of episodes with these performances."""
        half = 1.96 * values.std(ddof=1) / np.sqrt(len(values))
        return cls(float(values.mean()), float(half), len(values))

    def __str__(self) -> str:
        """Show it as in the tables."""
        return f"{self.mean:.3f} ± {self.half:.3f}"


@cache
def _player(slots: int, levels: frozenset[int] | None) -> Any:
    """Compiled play of `CHUNK` episodes under any policy; see `parity.environment`."""
    env = environment("float32", slots, levels)
    acts = [agents.get(policy).act for policy in POLICIES]

    @jax.jit
    def play(policy: jax.Array, root: rng.Words, numbers: jax.Array, params: Params) -> jax.Array:
        agent = agents.Agent("any", partial(jax.lax.switch, policy, acts))
        key = rng.fold(root, numbers)
        active = jnp.ones(CHUNK, bool)
        return play_episode(agent, env, params, key, active, ())[1].performance

    return play


def performances(
    policy: str, cell: Cell, episodes: int, seed: int, levels: frozenset[int] | None = None
) -> np.ndarray:
    """Performance of each episode, (episodes,), in a program that plays some levels, or all."""
    _, params = jaxsim.make("CartPole3D-v0", level=cell[0], difficulty=cell[1])
    params = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (CHUNK,)), params)
    root = rng.words(jax.random.key(seed))
    starts = range(0, episodes, CHUNK)
    numbers = jnp.arange(CHUNK, dtype=jnp.uint32)
    play = partial(_player(most_slots(*cell), levels), POLICIES.index(policy), root)
    results = [play(numbers + start, params) for start in starts]
    return np.concatenate([np.asarray(p) for p in results])[:episodes]


def original(folder: Path, policy: str) -> dict[Cell, np.ndarray]:
    """Performances of the original by level and difficulty."""
    cells: dict[Cell, list[float]] = defaultdict(list)
    with (folder / f"ep_{policy}.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            difficulty = row["difficulty"] if row["difficulty"] in DIFFICULTIES else "easy"
            cells[int(row["level"]), difficulty].append(float(row["performance"]))
    levels = {level.number for level in cartpole3d.levels()}
    return {cell: np.array(values) for cell, values in cells.items() if cell[0] in levels}


def holm(p_values: np.ndarray) -> np.ndarray:
    """Holm's adjusted p-values."""
    order = np.argsort(p_values)
    count = len(p_values)
    stepped = np.maximum.accumulate(p_values[order] * (count - np.arange(count)))
    adjusted = np.empty(count)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


@dataclass(frozen=True)
class Gap:
    """By how much one cell scores above another, with half its 95 % interval."""

    mean: float
    half: float

    @classmethod
    def between(cls, low: np.ndarray, high: np.ndarray) -> "Gap":
        """Gap from one cell's performances up to another's."""
        below, above = Score.of(low), Score.of(high)
        return cls(above.mean - below.mean, float(np.hypot(below.half, above.half)))

    @property
    def rises(self) -> bool:
        """Whether the second cell is significantly above the first."""
        return self.mean > self.half

    def __str__(self) -> str:
        """Show it as in the tables."""
        return f"{self.mean:+.3f} ± {self.half:.3f}"


def gaps(by_cell: Mapping[Cell, np.ndarray]) -> dict[tuple[Cell, Cell], Gap]:
    """Gaps between neighbours of `RISING`, of those that are both among the cells."""
    return {
        (low, high): Gap.between(by_cell[low], by_cell[high])
        for chain in RISING
        for low, high in pairwise(chain)
        if low in by_cell and high in by_cell
    }


def measure(folder: Path, episodes: int, seed: int) -> JsonObject:
    """Scores of all cells with corrected p-values, and the gaps under `pd`."""
    theirs = {policy: original(folder, policy) for policy in POLICIES}
    keys = [(p, cell) for p in POLICIES for cell in sorted(theirs[p])]
    levels = frozenset(level for _, (level, _) in keys)
    play = partial(performances, episodes=episodes, seed=seed, levels=levels)
    ours = {key: play(*key) for key in keys}
    p_values = np.array(
        [stats.ttest_ind(ours[p, c], theirs[p][c], equal_var=False).pvalue for p, c in keys]
    )
    # Two cells of constant scores have no variance to compare by; equal means agree.
    p_values = np.where(np.isnan(p_values), 1.0, p_values)
    cells = [
        {
            "policy": policy,
            "level": cell[0],
            "difficulty": cell[1],
            "ours": asdict(Score.of(ours[policy, cell])),
            "original": asdict(Score.of(theirs[policy][cell])),
            "p": float(p),
        }
        for (policy, cell), p in zip(keys, holm(p_values), strict=True)
    ]
    expected = gaps(theirs["pd"])
    order = [
        {
            "worse": _name(low),
            "better": _name(high),
            "ours": asdict(gap),
            "original": asdict(expected[low, high]),
        }
        for (low, high), gap in gaps({cell: ours["pd", cell] for cell in theirs["pd"]}).items()
    ]
    return {"episodes": episodes, "seed": seed, "cells": cells, "order": order}


def _name(cell: Cell) -> str:
    return f"{cell[0]} {cell[1]}"


def main() -> None:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(description="Score the reference agents at every level.")
    parser.add_argument("--baselines", type=Path, required=True, help="folder of ep_<policy>.csv")
    parser.add_argument("--episodes", type=int, default=2000, metavar="N", help="a cell (2000)")
    parser.add_argument("--seed", type=int, default=2, metavar="N", help="of our episodes (2)")
    add_out(parser)
    arguments = parser.parse_args()
    results = measure(arguments.baselines, arguments.episodes, arguments.seed)
    put_json(results, arguments.out)


if __name__ == "__main__":
    main()
