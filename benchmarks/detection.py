"""Measure what a detector finds in single episodes, level by level.

    python -m benchmarks.detection --json docs/sailon-detection.json

Every episode is a separate lifetime, so that detections depend on the episode alone. For each cell,
a level at a difficulty, the JSON file and the printed line count the episodes that were detected,
and in how many of these the level, and its hint, were named right at the end. Detections in level
200 are false alarms. `jaxsim sailon evaluate` plays trials, in which evidence adds up.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from benchmarks.lockstep import play_episode
from benchmarks.parity import environment, most_slots
from evaluation.files import write_whole
from evaluation.json_types import JsonObject
from jaxsim import agents, rng
from jaxsim.agents import Agent
from jaxsim.pytrees import Params
from jaxsim.worlds.cartpole3d.levels import CATALOGUE, DIFFICULTIES, EVALUATED
from jaxsim.worlds.cartpole3d.original import hints

LANES = 128
AGENT = 1  # counter of an agent's own randomness
FORMAT = 1

Cell = tuple[int, str]


@dataclass(frozen=True)
class CellDetections:
    """Detections in one cell."""

    level: int
    difficulty: str
    episodes: int
    detected: int  # episodes
    level_right: int  # of these
    hint_right: int  # of these: entity, attribute and change

    @classmethod
    def of(cls, cell: Cell, alarm: np.ndarray, named: np.ndarray) -> "CellDetections":
        """Count detections, (E,) bool, and the catalogue levels that were named, (E,)."""
        levels = [int(level) for level in named[alarm]]
        hint = hints.HINT_WORDS.get(cell[0])
        hints_right = sum(
            level == 0 if hint is None else hints.HINT_WORDS.get(level) == hint for level in levels
        )
        right = sum(level == cell[0] for level in levels)
        return cls(*cell, len(alarm), int(alarm.sum()), right, hints_right)

    def __str__(self) -> str:
        """Show it as a line."""
        counts = f"{self.detected} of {self.episodes} episodes detected"
        return (
            f"{self.level} {self.difficulty}: {counts}, level of {self.level_right} and hint of "
            f"{self.hint_right} right"
        )


def cells(levels: list[int], difficulties: list[str]) -> Iterator[Cell]:
    """Cells to play; level 200 is the same at every difficulty, and so are some others."""
    for level in levels:
        for difficulty in difficulties if CATALOGUE[level].varies else difficulties[:1]:
            yield level, difficulty


def lanes_of(params: Params, lanes: int) -> Any:
    """The same parameters in a number of lanes."""
    return jax.tree.map(lambda leaf: jnp.full(lanes, leaf, jnp.float32), params)


@cache
def _player(agent: Agent, slots: int) -> Any:
    """Compiled play of one episode a lane, of any level that is played with so many slots."""
    env = environment("float32", slots)

    @jax.jit
    def play(root: rng.Words, numbers: jax.Array, params: Params) -> tuple[jax.Array, jax.Array]:
        key = rng.fold(root, numbers)
        memory = jax.vmap(agent.init)(rng.to_key(rng.fold(key, AGENT)))
        memory, out = play_episode(agent, env, params, key, jnp.ones(LANES, bool), memory)
        alarm = out.prediction.probability >= out.prediction.threshold
        return alarm, jax.vmap(agent.named)(memory)

    return play


def measured(name: str, cell: Cell, episodes: int, seed: int) -> CellDetections:
    """Play one cell."""
    _, params = jaxsim.make("CartPole3D-v0", level=cell[0], difficulty=cell[1])
    play = _player(agents.get(name), most_slots(*cell))
    root = rng.words(jax.random.key(seed))
    numbers = jnp.arange(LANES, dtype=jnp.uint32)
    starts = range(0, episodes, LANES)
    results = [play(root, numbers + start, lanes_of(params, LANES)) for start in starts]
    alarm, named = (np.concatenate(leaves)[:episodes] for leaves in zip(*results, strict=True))
    return CellDetections.of(cell, alarm, named)


def write(path: Path, agent: str, seed: int, rows: list[CellDetections]) -> None:
    """Write a JSON file, a line a row."""
    lines = ",\n".join(json.dumps(asdict(row)) for row in rows)
    head = json.dumps({"format": FORMAT, "agent": agent, "seed": seed})
    write_whole(path, f'{head[:-1]}, "rows": [\n{lines}\n]}}\n')


def load(path: Path) -> JsonObject:
    """Read a JSON file of this benchmark; `rows` are `CellDetections`.

    Raises:
      ValueError: it is of another kind.
    """
    values = json.loads(path.read_text(encoding="utf-8"))
    if values.get("format") != FORMAT or "agent" not in values:
        raise ValueError(f"{path} was not written by benchmarks.detection of this version")
    return {**values, "rows": [CellDetections(**row) for row in values["rows"]]}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure detection in single episodes.")
    parser.add_argument("--agent", default="pd+residual", help="(pd+residual)")
    parser.add_argument("--episodes", type=int, default=512, metavar="N", help="a cell (512)")
    parser.add_argument("--seed", type=int, default=31, metavar="N", help="of all episodes (31)")
    parser.add_argument("--levels", type=int, nargs="+", default=list(EVALUATED))
    parser.add_argument("--difficulties", nargs="+", default=list(DIFFICULTIES))
    parser.add_argument("--json", type=Path, help="file to write")
    a = parser.parse_args()
    jaxsim.configure_cpu()
    rows: list[CellDetections] = []
    for cell in cells(a.levels, a.difficulties):
        rows.append(measured(a.agent, cell, a.episodes, a.seed))
        print(rows[-1], flush=True)
        if a.json:
            write(a.json, a.agent, a.seed, rows)


if __name__ == "__main__":
    main()
