"""Score the reference agents at every level beside the original, and write docs/scores.md.

    python -m benchmarks.scores --baselines FOLDER --out docs/scores.md

The original's scores are one CSV a policy, `ep_<policy>.csv`, one row an episode. Ours are episodes
that this package draws itself. A cell is compared by Welch's t-test; the p-values of all cells are
corrected together by Holm's method.
"""

import argparse
import csv
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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
from benchmarks.pages import add_out, put
from benchmarks.parity import environment, most_slots
from jaxsim import agents, rng
from jaxsim.worlds import cartpole3d

POLICIES = ("random", "nothing", "pd", "greedy")
CHUNK = 256  # lanes; the state and the temporaries of a tick stay in the cache
LEVEL = 0.05  # of the joint test

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
    def play(policy: jax.Array, root: rng.Words, numbers: jax.Array, params: Any) -> jax.Array:
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
            difficulty = row["difficulty"] if row["difficulty"] in _DIFFICULTIES else "easy"
            cells[int(row["level"]), difficulty].append(float(row["performance"]))
    levels = {level.number for level in cartpole3d.levels()}
    return {cell: np.array(values) for cell, values in cells.items() if cell[0] in levels}


_DIFFICULTIES = ("easy", "medium", "hard")


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


def _order(ours: Mapping[Cell, np.ndarray], theirs: Mapping[Cell, np.ndarray]) -> Iterator[str]:
    pairs, expected = gaps(ours), gaps(theirs)
    if not pairs:
        return
    rising = sum(gap.rises for gap in pairs.values())
    yield ""
    yield "## Order of levels and difficulties under pd"
    yield ""
    yield "From the worse cell up to the better one, by the original. The gap of our means is above"
    yield f"half its 95 % interval in **{rising} of {len(pairs)}** pairs."
    yield ""
    yield "| worse | better | ours | original |"
    yield "| --- | --- | --- | --- |"
    for (low, high), gap in pairs.items():
        yield f"| {_name(low)} | {_name(high)} | {gap} | {expected[low, high]} |"


def _name(cell: Cell) -> str:
    return f"{cell[0]} {cell[1]}"


def page(folder: Path, episodes: int, seed: int) -> Iterator[str]:
    """Lines of the page."""
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
    adjusted = dict(zip(keys, holm(p_values), strict=True))
    differing = [key for key, p in adjusted.items() if p < LEVEL]
    yield "# Scores of the reference agents"
    yield ""
    yield "Generated by `python -m benchmarks.scores`; do not edit. Mean performance (length of an"
    yield f"episode over 200) and half its 95 % interval: ours over {episodes:,} episodes that this"
    yield f"package draws (seed {seed}), and the original's. {len(keys)} cells are compared by"
    yield f"Welch's t-test, corrected together by Holm's method at {LEVEL:.0%}:"
    yield f"**{len(differing)} differ**. p is corrected."
    for policy in POLICIES:
        yield ""
        yield f"## {policy}"
        yield ""
        yield "| level | ours | original | p |"
        yield "| --- | --- | --- | --- |"
        for cell in sorted(theirs[policy]):
            ours_score, other = Score.of(ours[policy, cell]), Score.of(theirs[policy][cell])
            p = adjusted[policy, cell]
            yield f"| {_name(cell)} | {ours_score} | {other} (n = {other.episodes}) | {p:.2f} |"
    yield from _order({cell: ours["pd", cell] for cell in theirs["pd"]}, theirs["pd"])


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description="Score the reference agents at every level.")
    parser.add_argument("--baselines", type=Path, required=True, help="folder of ep_<policy>.csv")
    parser.add_argument("--episodes", type=int, default=2000, metavar="N", help="a cell (2000)")
    parser.add_argument("--seed", type=int, default=2, metavar="N", help="of our episodes (2)")
    add_out(parser)
    arguments = parser.parse_args()
    text = "\n".join(page(arguments.baselines, arguments.episodes, arguments.seed)) + "\n"
    put(text, arguments.out)


if __name__ == "__main__":
    main()
