"""Measure controllers: the length of every episode, cell by cell, on the same episodes.

    python -m benchmarks.control --agents pd mpc --json docs/sailon-control.json
    python -m benchmarks.control --agents clairvoyant --first 128 --json docs/sailon-control.json

Each agent plays the same episodes of a cell, which is a level at a difficulty; levels that are the
same at every difficulty are played once. After each cell and agent its lengths are written to the
JSON file. Cells in the file are not played again, so that a long measurement can be resumed. The
output has mean performance with half its 95 % interval, the share of episodes that last 200 steps,
and processor time by decision, with the simulator and without compilation.

Loops are compiled as `jaxsim.configure_cpu` has them, with which the planner takes less than half
the time.
"""

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from time import process_time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from benchmarks.clairvoyant import Opened, clairvoyant
from benchmarks.detection import AGENT, Cell, cells, lanes_of
from benchmarks.lockstep import play_episode
from benchmarks.parity import environment, most_slots
from benchmarks.scores import Score
from evaluation.files import write_whole
from jaxsim import agents, rng
from jaxsim.agents import Agent
from jaxsim.pytrees import Params
from jaxsim.worlds.cartpole3d.levels import CATALOGUE, DIFFICULTIES, EVALUATED

STEPS = 200  # of an episode
FORMAT = 1


@dataclass(frozen=True)
class CellEpisodes:
    """Episodes of one agent in one cell."""

    level: int
    difficulty: str
    agent: str
    milliseconds: float  # of the processor, by decision
    lengths: tuple[int, ...]  # steps, episode by episode
    rollouts: float | None = None  # futures followed by decision; None for those that plan nothing

    @property
    def performances(self) -> np.ndarray:
        """Performance of each episode."""
        return np.array(self.lengths) / STEPS

    def __str__(self) -> str:
        """Show it as a line."""
        values = self.performances
        text = f"{(values >= 1).mean():.2f} to the end, {self.milliseconds:.2f} ms a decision"
        return f"{self.level} {self.difficulty} {self.agent}: {Score.of(values)}, {text}"


@dataclass(frozen=True)
class ControlMeasurement:
    """All rows of one set of episodes."""

    seed: int
    episodes: int  # of each cell
    rows: tuple[CellEpisodes, ...] = ()

    def find(self, level: int, difficulty: str, agent: str) -> CellEpisodes | None:
        """The row of an agent in a cell; at any difficulty if the level is the same at all."""
        one = not CATALOGUE[level].varies
        return next(
            (
                row
                for row in self.rows
                if (row.level, row.agent) == (level, agent)
                and (one or row.difficulty == difficulty)
            ),
            None,
        )

    def write(self, path: Path) -> None:
        """Write a JSON file, a line a row."""
        rows = ",\n".join(json.dumps(asdict(row)) for row in self.rows)
        head = json.dumps({"format": FORMAT, "seed": self.seed, "episodes": self.episodes})
        write_whole(path, f'{head[:-1]}, "rows": [\n{rows}\n]}}\n')


def load(path: Path) -> ControlMeasurement:
    """Read such a file.

    Raises:
      ValueError: it is of another kind.
    """
    values = json.loads(path.read_text(encoding="utf-8"))
    if values.get("format") != FORMAT or "rows" not in values:
        raise ValueError(f"{path} was not written by benchmarks.control of this version")
    rows = [CellEpisodes(**{**row, "lengths": tuple(row["lengths"])}) for row in values["rows"]]
    return ControlMeasurement(values["seed"], values["episodes"], tuple(rows))


@cache
def _player(agent: Agent, slots: int, lanes: int) -> Any:
    """Compiled play of one episode a lane, of any level that is played with so many slots."""
    bare = environment("float32", slots)

    def played(root: rng.Words, numbers: jax.Array, params: Params) -> tuple[jax.Array, Any]:
        env = Opened(bare, params) if agent is clairvoyant else bare
        key = rng.fold(root, numbers)
        memory = jax.vmap(agent.init)(rng.to_key(rng.fold(key, AGENT)))
        active = jnp.ones(lanes, bool)
        memory, outcome = play_episode(agent, env, params, key, active, memory)
        return outcome.length, getattr(memory, "rollouts", None)

    params = lanes_of(jaxsim.make("CartPole3D-v0")[1], lanes)
    root = rng.words(jax.random.key(0))
    return jax.jit(played).lower(root, jnp.zeros(lanes, jnp.uint32), params).compile()


def measured(name: str, cell: Cell, episodes: int, seed: int, lanes: int) -> CellEpisodes:
    """Play one cell."""
    agent = clairvoyant if name == clairvoyant.name else agents.get(name)
    _, params = jaxsim.make("CartPole3D-v0", level=cell[0], difficulty=cell[1])
    params = lanes_of(params, lanes)
    play = _player(agent, most_slots(*cell), lanes)
    root = rng.words(jax.random.key(seed))
    numbers = jnp.arange(lanes, dtype=jnp.uint32)
    start_time = process_time()
    starts = range(0, episodes, lanes)
    calls = [play(root, numbers + start, params) for start in starts]
    lengths = np.concatenate([np.asarray(call[0]) for call in calls])
    milliseconds = 1e3 * (process_time() - start_time) / lengths.sum()
    plans = calls[0][1] is not None
    futures = sum(int(call[1].sum()) for call in calls) / lengths.sum() if plans else None
    first_lengths = tuple(lengths[:episodes].tolist())
    return CellEpisodes(
        *cell,
        name,
        round(float(milliseconds), 4),
        first_lengths,
        futures and round(float(futures), 2),
    )


def measure(
    measurement: ControlMeasurement,
    names: Sequence[str],
    where: Iterable[Cell],
    first: int,
    lanes: int,
) -> Iterator[ControlMeasurement]:
    """Play the missing cells and agents; yield the measurement after each."""
    for cell in where:
        for name in names:
            if measurement.find(*cell, name) is None:
                row = measured(name, cell, first, measurement.seed, lanes)
                measurement = ControlMeasurement(
                    measurement.seed, measurement.episodes, (*measurement.rows, row)
                )
                yield measurement


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure controllers, cell by cell.")
    parser.add_argument("--agents", nargs="+", default=["pd", "mpc"], help="(pd mpc)")
    parser.add_argument("--episodes", type=int, default=512, metavar="N", help="a cell (512)")
    parser.add_argument("--first", type=int, metavar="N", help="play only these of them")
    parser.add_argument("--lanes", type=int, default=128, metavar="N", help="in parallel (128)")
    parser.add_argument("--seed", type=int, default=37, metavar="N", help="of all episodes (37)")
    parser.add_argument("--levels", type=int, nargs="+", default=list(EVALUATED))
    parser.add_argument("--difficulties", nargs="+", default=["hard"], choices=DIFFICULTIES)
    parser.add_argument("--json", type=Path, help="file of results, which is continued")
    a = parser.parse_args()
    first = a.episodes if a.first is None else a.first
    if not 1 <= first <= a.episodes:
        parser.error(f"--first is {first}; it must be from 1 to the {a.episodes} of --episodes")
    jaxsim.configure_cpu()
    measurement = ControlMeasurement(a.seed, a.episodes)
    if a.json and a.json.exists():
        measurement = load(a.json)
        if (measurement.seed, measurement.episodes) != (a.seed, a.episodes):
            parser.error(f"{a.json} has {measurement.episodes} episodes of seed {measurement.seed}")
    for result in measure(measurement, a.agents, cells(a.levels, a.difficulties), first, a.lanes):
        print(result.rows[-1], flush=True)
        if a.json:
            result.write(a.json)


if __name__ == "__main__":
    main()
