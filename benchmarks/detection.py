"""Measure novelty detection: trials with system detection, level by level.

    JAX_COMPILATION_CACHE_DIR=cache python -m benchmarks.detection --agent pd+residual

A trial is a lifetime of `--episodes` episodes, the first `--button` of them nominal and all others
novel. Printed are, by cell: the share of trials with correct detection (no false alarm before the
button and an alarm after it) with its 95 % Wilson interval, trials with a false alarm, the median
and the largest delay in episodes, the share of episodes that are detected by what they show
themselves, and the shares of detected trials whose level, entity, attribute and change are named
right at the end. Level 200 has no button; all its episodes are at risk of a false alarm.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import perf_counter

import jax
import numpy as np
from scipy import stats

from benchmarks.pages import add_out, put_lines
from evaluation.records import Records
from evaluation.scanner import play
from evaluation.schedule import Block, Schedule
from jaxsim import agents
from jaxsim.agents import Agent, NoveltyPrediction
from jaxsim.agents.base import Memory
from jaxsim.agents.residual import named
from jaxsim.worlds.cartpole3d import hints
from jaxsim.worlds.cartpole3d.levels import CATALOGUE, DIFFICULTIES

LEVELS = (*range(200, 209), *range(101, 109))
NOMINAL = 200
ENTITY = "entity, attribute and change"


def schedule(level: int, difficulty: str, episodes: int, button: int) -> Schedule:
    """One trial: nominal episodes up to the button, novel ones from there."""
    plan = [(NOMINAL, "easy", button), (level, difficulty, episodes - button)]
    blocks = tuple(
        Block(index, 1, "test", "CartPole3D", _parameters(number, grade), count, False)
        for index, (number, grade, count) in enumerate(part for part in plan if part[2])
    )
    return Schedule(f"{level}-{difficulty}", blocks)


def _parameters(level: int, difficulty: str) -> tuple[tuple[str, int | str], ...]:
    return ("novelty/difficulty", difficulty), ("novelty/level", level)


def outspoken(agent: Agent) -> Agent:
    """The same agent, which tells catalogue levels, and probabilities of single episodes."""

    def act(
        memory: Memory, observation: object, key: jax.Array
    ) -> tuple[jax.Array, NoveltyPrediction, Memory]:
        action, said, memory = agent.act(memory, observation, key)
        strength = memory.detector.now.strength
        said = replace(said, level=named(memory.detector), probability=strength / (1 + strength))
        return action, said, memory

    return replace(agent, act=act)


@dataclass(frozen=True)
class Row:
    """What was measured in one cell."""

    level: int
    difficulty: str
    trials: int
    detected: int  # trials
    false_alarms: int  # trials
    delays: np.ndarray  # of detected trials, episodes
    episodes_found: float  # share of novel episodes
    named: np.ndarray  # of detected trials, catalogue level at the end
    before: float  # mean performance
    after: float
    seconds: float

    @classmethod
    def of(cls, cell: tuple[int, str], records: Records, button: int, seconds: float) -> "Row":
        """Summarise the records of one cell; columns are (trials, episodes)."""
        columns = records.columns
        flags = columns["predicted_probability"] >= columns["threshold"]
        at_risk = flags if cell[0] == NOMINAL else flags[:, :button]
        novel = flags[:, button:]
        alarmed = at_risk.any(axis=1)
        detected = ~alarmed & novel.any(axis=1)
        performance = columns["performance"]
        return cls(
            *cell,
            trials=len(flags),
            detected=0 if cell[0] == NOMINAL else int(detected.sum()),
            false_alarms=int(alarmed.sum()),
            delays=novel[detected].argmax(axis=1),
            episodes_found=float(novel.mean()),
            named=columns["predicted_level"][detected, -1],
            before=float(performance[:, :button].mean()) if button else float("nan"),
            after=float(performance[:, button:].mean()),
            seconds=seconds,
        )

    @property
    def right(self) -> tuple[float, float]:
        """Shares of named levels whose digit, and whose hint, are right."""
        digits = self.named % hints.LEVELS_PER_GROUP == self.level % hints.LEVELS_PER_GROUP
        told = hints.TOLD[self.level]
        same = [hints.TOLD.get(int(level)) == told for level in self.named]
        return float(np.mean(digits)), float(np.mean(same))

    def __str__(self) -> str:
        """Show it as a row of the table."""
        cells = [f"{self.level} {self.difficulty}", str(self.trials)]
        if self.level == NOMINAL:
            cells += ["", f"{self.false_alarms}", "", "", "", ""]
        else:
            low, high = stats.binomtest(self.detected, self.trials).proportion_ci(method="wilson")
            cells += [
                f"{self.detected / self.trials:.2f} [{low:.2f}, {high:.2f}]",
                f"{self.false_alarms}",
                _delays(self.delays),
                f"{self.episodes_found:.3f}",
                *(["", ""] if not len(self.named) else [f"{share:.2f}" for share in self.right]),
            ]
        cells += [f"{self.before:.3f}", f"{self.after:.3f}", f"{self.seconds:.0f}"]
        return "| " + " | ".join(cells) + " |"


def _delays(delays: np.ndarray) -> str:
    return f"{np.median(delays):g} ({delays.max()})" if len(delays) else ""


HEADER = (
    "cell",
    "trials",
    "CDT",
    "trials with a false alarm",
    "delay: median (largest)",
    "episodes found",
    "level right",
    f"{ENTITY} right",
    "performance before",
    "after",
    "s",
)


def measure(
    agent: Agent, cell: tuple[int, str], trials: int, episodes: int, button: int, seed: int
) -> Row:
    """Play one cell."""
    began = perf_counter()
    plan = schedule(*cell, episodes, button)
    records = play(plan, agent, lifetimes=trials, seed=seed)
    return Row.of(cell, records, button, perf_counter() - began)


def cells(levels: list[int], difficulties: list[str]) -> Iterator[tuple[int, str]]:
    """Cells to play; level 200 is the same at every difficulty, and so are some others."""
    for level in levels:
        overrides = CATALOGUE[level].overrides
        same = overrides[0] == overrides[1] == overrides[2]
        for difficulty in difficulties[:1] if same else difficulties:
            yield level, difficulty


def rows(arguments: argparse.Namespace) -> Iterator[str]:
    """Lines of the table, as they are measured."""
    a = arguments
    agent = agents.get(a.agent)
    agent = outspoken(agent) if agent.name.endswith("+residual") else agent
    yield "| " + " | ".join(HEADER) + " |"
    yield "| " + " | ".join("---" for _ in HEADER) + " |"
    for cell in cells(a.levels, a.difficulties):
        yield str(measure(agent, cell, a.trials, a.episodes, a.button, a.seed))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure novelty detection, level by level.")
    parser.add_argument("--agent", default="pd+residual", help="(pd+residual)")
    parser.add_argument("--trials", type=int, default=30, metavar="N", help="a cell (30)")
    parser.add_argument("--episodes", type=int, default=45, metavar="N", help="a trial (45)")
    parser.add_argument("--button", type=int, default=20, metavar="N", help="first novel one (20)")
    parser.add_argument("--seed", type=int, default=3, metavar="N", help="of all episodes (3)")
    parser.add_argument("--levels", type=int, nargs="+", default=list(LEVELS))
    parser.add_argument("--difficulties", nargs="+", default=list(DIFFICULTIES))
    add_out(parser)
    arguments = parser.parse_args()
    put_lines(rows(arguments), arguments.out)


if __name__ == "__main__":
    main()
