"""Whole episodes of some agents at some levels, from the same starts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from threading import Lock
from typing import Any

import jax
import numpy as np

import jaxsim
from evaluation import agents
from evaluation.json_types import JsonObject
from evaluation.metrics import Numbers
from evaluation.metrics.statistics import Bounds, summarise
from jaxsim import Spread, Totals, backend, counters
from jaxsim.parameters import Values
from jaxsim.worlds.sharing import SharedTask, shared

MOST_EPISODES = 1 << 20
EPISODES_OF_CALL = {False: 1 << 17, True: 1 << 12}
"""Most episodes between two progress reports, by whether the agent is costly; there are more where
a single episode of each level is more."""
Progress = Callable[[int, int], object]


@dataclass(frozen=True)
class TaskLevel:
    """A task and level to play.

    Attributes:
      label: for tables, as "203 hard".
      options: of `jaxsim.make`.
    """

    label: str
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Mean:
    """A mean over episodes with a bootstrap interval of 95%."""

    mean: float
    low: float
    high: float

    def to_json(self) -> dict[str, float]:
        """Return plain JSON values."""
        return {"mean": self.mean, "low": self.low, "high": self.high}


@dataclass(frozen=True)
class ComparisonRow:
    """One agent at one cell.

    Attributes:
      cell: label of the cell.
      agent: name of the agent.
      performance: mean over the episodes, in [0, 1].
      length: mean steps.
      fallen: share of episodes that the task ended.
      survived: share that reached the limit of steps.
      nonfinite: share that met a number that is not finite.
      difference: mean of the performance less that of the first agent, episode by episode; None
        for the first.
    """

    cell: str
    agent: str
    performance: Mean
    length: Mean
    fallen: float
    survived: float
    nonfinite: float
    difference: Mean | None

    def to_json(self) -> JsonObject:
        """Return plain JSON values."""
        values = {k: v.to_json() if isinstance(v, Mean) else v for k, v in vars(self).items()}
        return values


@dataclass(frozen=True)
class AgentComparison:
    """Settings of `jaxsim evaluate`.

    Attributes:
      agents: names, see `evaluation.agents.get`; differences are against the first.
      task: name or id of the environment.
      levels: numbers of the catalogue; empty for the unchanged task.
      difficulties: of each level.
      values: parameters by path, on top of the level.
      episodes: of each agent at each cell.
      seed: root of all randomness; every agent plays the same starts.
    """

    agents: tuple[str, ...]
    task: str = "CartPole3D"
    levels: tuple[int, ...] = ()
    difficulties: tuple[str, ...] = ("easy",)
    values: Values = field(default_factory=dict)
    episodes: int = 1000
    seed: int = 0

    def check(self) -> None:
        """Check all settings before anything is played.

        Raises:
          ValueError: says what to change.
        """
        if not self.agents:
            raise ValueError("no agent was named; name one, as in: jaxsim evaluate pd")
        if not 2 <= self.episodes <= MOST_EPISODES:
            raise ValueError(f"episodes is {self.episodes}; it must be from 2 to {MOST_EPISODES}")
        counters.root(self.seed)
        named = {name: agents.get(name) for name in self.agents}
        for cell in self.cells():
            env, params = jaxsim.make(self.task, self.values, **cell.options)
            if not hasattr(env, "score"):
                raise ValueError(f"{env.name} cannot be rolled out; evaluate CartPole3D instead")
            for name, agent in named.items():
                agents.check_fit(agent, name, env, params)

    def cells(self) -> list[TaskLevel]:
        """The cells that each agent plays."""
        if not self.levels:
            return [TaskLevel(self.task, {})]
        pairs = product(self.levels, self.difficulties)
        return [TaskLevel(f"{n} {d}", {"level": n, "difficulty": d}) for n, d in pairs]


def run(job: AgentComparison, progress: Progress | None = None) -> list[ComparisonRow]:
    """Play all cells with all agents, and summarise them.

    Args:
      job: checked already.
      progress: called as `progress(episodes done, episodes in all)`, from several threads.

    Returns:
      The rows, agents within cells.
    """
    cells = job.cells()
    tasks = [jaxsim.make(job.task, job.values, **cell.options) for cell in cells]
    calls = list(product(job.agents, shared(tasks)))
    count = _Count(len(cells) * len(job.agents) * job.episodes, progress)

    def play(call: tuple[str, SharedTask]) -> dict[tuple[int, str], Totals]:
        name, task = call
        return {
            (place, name): totals
            for place, totals in zip(task.places.tolist(), _played(job, *call, count), strict=True)
        }

    threads = min(len(calls), Spread().compilers)
    totals = {k: v for part in backend.in_threads(play, threads, calls) for k, v in part.items()}
    rows: list[ComparisonRow] = []
    for place, cell in enumerate(cells):
        rows += _rows(job, cell, [totals[place, name] for name in job.agents])
    return rows


class _Count:
    """Number of episodes that are done."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.done, self.total, self.progress, self._lock = 0, total, progress, Lock()

    def add(self, number: int) -> None:
        """Add episodes, and say so."""
        with self._lock:
            self.done += number
            if self.progress:
                self.progress(self.done, self.total)


def _played(job: AgentComparison, name: str, task: SharedTask, count: _Count) -> list[Totals]:
    """Results of an agent at each level of a shared task.

    All levels have the same starts. They are played together, in calls of about the same size.
    """
    agent, levels = agents.get(name), len(task.places)
    pieces = min(job.episodes, -(-levels * job.episodes // EPISODES_OF_CALL[agent.costly]))
    parts = []
    for numbers in np.array_split(np.arange(job.episodes), pieces):
        variant = np.repeat(np.arange(levels), len(numbers))
        each = np.tile(numbers, levels)
        totals = jaxsim.rollout(
            task.env,
            task.params,
            agent,
            each.size,
            seed=job.seed,
            variant=variant,
            numbers=each,
            divided=False,
        )
        parts.append(jax.tree.map(lambda leaf: leaf.reshape(levels, -1), totals))
        count.add(each.size)
    whole = jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=1), *parts)
    return [jax.tree.map(lambda leaf, row=row: leaf[row], whole) for row in range(levels)]


def _rows(
    job: AgentComparison, cell: TaskLevel, results: Sequence[Totals]
) -> Iterator[ComparisonRow]:
    performances = [np.asarray(totals.performance, np.float64) for totals in results]
    lengths = [np.asarray(totals.length, np.float64) for totals in results]
    differences = [performance - performances[0] for performance in performances]
    count = len(results)
    bounds = np.repeat([0, 0, -1], count), np.repeat([1, np.inf, 1], count)
    means = _means([*performances, *lengths, *differences], job.seed, bounds)
    for number, (name, totals) in enumerate(zip(job.agents, results, strict=True)):
        complete = np.asarray(totals.complete, bool)
        fallen = np.asarray(totals.terminated, bool) & complete
        yield ComparisonRow(
            cell.label,
            name,
            means[number],
            means[count + number],
            float(fallen.mean()),
            float((complete & ~fallen).mean()),
            float((~complete).mean()),
            means[2 * count + number] if number else None,
        )


def _means(columns: Sequence[np.ndarray], seed: int, bounds: Bounds) -> list[Mean]:
    """Means over the same episodes, with the same bootstrap resamples for all columns."""
    values = np.stack(columns, axis=1)
    summary = summarise(Numbers(values, np.zeros(values.shape, np.int32)), seed, bounds=bounds)
    triples = zip(summary.mean, summary.low, summary.high, strict=True)
    return [Mean(*map(float, triple)) for triple in triples]
