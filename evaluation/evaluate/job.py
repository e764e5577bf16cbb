"""Whole episodes of some agents at some levels, from the same starts."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from threading import Lock
from typing import Any, NamedTuple

import jax
import numpy as np

import jaxsim
from evaluation import agents
from evaluation.json_types import JsonObject
from evaluation.metrics import Numbers
from evaluation.metrics.statistics import Bounds, summarise
from jaxsim import Spread, Totals, backend, counters
from jaxsim.env import Env
from jaxsim.inputs import check_whole
from jaxsim.parameters import Values
from jaxsim.worlds.sharing import SharedTask, shared

MOST_EPISODES = 1 << 20
ROUNDS_OF_CALL, EPISODES_OF_COSTLY_CALL = 4, 1024
"""Size of a call between two progress reports: rounds of the most lanes of a thread, or, of costly
agents, episodes."""
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
        check_whole("episodes", self.episodes, 2, MOST_EPISODES)
        counters.root(self.seed)
        if not self.levels and self.difficulties != AgentComparison.difficulties:
            raise ValueError(
                "difficulty is that of a level; name one with --level, or set novelty/difficulty "
                "beside novelty/level"
            )
        tasks = {level.number: level.task for level in jaxsim.levels()}
        for number in self.levels:
            if not self.task.startswith(task := tasks.get(number, self.task)):
                raise ValueError(f"level {number} is of {task}; pass --task {task}")
        named = {name: agents.get(name) for name in self.agents}
        for cell in self.cells():
            env, params = jaxsim.make(self.task, self.values, **cell.options)
            check_scored(env)
            for name, agent in named.items():
                agents.check_fit(agent, name, env, params)

    def cells(self) -> list[TaskLevel]:
        """The cells that each agent plays."""
        if not self.levels:
            return [TaskLevel(self.task, {})]
        pairs = product(self.levels, self.difficulties)
        return [TaskLevel(f"{n} {d}", {"level": n, "difficulty": d}) for n, d in pairs]


def check_scored(env: Env) -> None:
    """Refuse an environment that no rollout can play.

    Raises:
      ValueError: its scores do not follow from the number of steps.
    """
    if not hasattr(env, "score"):
        raise ValueError(
            f"the scores of {env.name} do not follow from the number of steps, so it needs a "
            "syllabus: play one with jaxsim run"
        )


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
    calls = _calls(job, list(shared(tasks)))
    done, lock = 0, Lock()

    def play(call: _Call) -> Totals:
        nonlocal done
        totals = _results_of(job.seed, call)
        with lock:
            done += totals.length.size
            if progress:
                progress(done, len(cells) * len(job.agents) * job.episodes)
        return totals

    parts: dict[tuple[str, int], list[Totals]] = defaultdict(list)
    threads = min(len(calls), Spread().compilers)
    for call, totals in zip(calls, backend.in_threads(play, threads, calls), strict=True):
        for row, place in enumerate(call.task.places.tolist()):
            parts[call.agent, place].append(jax.tree.map(lambda leaf, row=row: leaf[row], totals))
    rows: list[ComparisonRow] = []
    for place, cell in enumerate(cells):
        results = [_joined(parts[name, place]) for name in job.agents]
        rows += _rows(job, cell, results)
    return rows


class _Call(NamedTuple):
    """Episodes that are played without a return to the host."""

    agent: str
    task: SharedTask
    numbers: np.ndarray  # (n,) of the episodes at each of the task's levels


def _calls(job: AgentComparison, tasks: Sequence[SharedTask]) -> list[_Call]:
    """All calls; the first one of each program comes first, so that programs compile together."""
    numbered = []
    for name, task in product(job.agents, tasks):
        usual = ROUNDS_OF_CALL * task.env.layout.lanes
        most = EPISODES_OF_COSTLY_CALL if agents.get(name).costly else usual
        number = min(job.episodes, -(-len(task.places) * job.episodes // most))
        for place, numbers in enumerate(np.array_split(np.arange(job.episodes), number)):
            numbered.append((place, _Call(name, task, numbers)))
    return [call for _, call in sorted(numbered, key=lambda pair: pair[0])]


def _results_of(seed: int, call: _Call) -> Totals:
    """Results (levels of the task, n); all levels have the same starts."""
    levels, number = len(call.task.places), len(call.numbers)
    totals = jaxsim.rollout(
        call.task.env,
        call.task.params,
        agents.get(call.agent),
        levels * number,
        seed=seed,
        variant=np.repeat(np.arange(levels), number),
        numbers=np.tile(call.numbers, levels),
        divided=False,
    )
    by_level: Totals = jax.tree.map(lambda leaf: leaf.reshape(levels, number), totals)
    return by_level


def _joined(parts: Sequence[Totals]) -> Totals:
    """Results of all episodes of a cell, in their order."""
    whole: Totals = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
    return whole


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
