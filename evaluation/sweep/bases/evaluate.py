"""Cells of `jaxsim evaluate`: whole episodes of a pure agent; cells are lanes of one rollout.

Each cell plays the episodes of its seed from number 0 on, as `jaxsim evaluate` does. Its results do
not depend on the other cells of its pack.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import jax
import numpy as np
import pyarrow as pa

import jaxsim
from evaluation import agents
from evaluation.evaluate.job import MOST_EPISODES, check_scored
from evaluation.metrics.statistics import DEFAULT_LEVEL, bootstrap_interval, describe, wilson
from evaluation.sweep.axes import Value
from evaluation.sweep.bases.base import (
    ENDINGS,
    PackResults,
    SweepFiles,
    Values,
    agent_files,
    agent_of,
    check_level,
    metrics_table,
    paths,
    typed,
)
from evaluation.sweep.grid import GroupKeys, SweepCell
from jaxsim import Totals, counters, registry
from jaxsim.inputs import check_whole
from jaxsim.parameters import unknown
from jaxsim.pytrees import Params

FIELDS: Final[Mapping[str, Value | None]] = {
    "agent": "pd",
    "task": "CartPole3D",
    "level": "",
    "difficulty": "easy",
    "episodes": 1000,
    "seed": 0,
}
ROWS: Final = pa.schema(
    [
        ("cell", pa.int64()),
        ("episode", pa.int32()),  # number in the cell
        ("length", pa.int32()),  # steps
        ("performance", pa.float32()),
        ("reward", pa.float32()),
        ("terminated", pa.bool_()),  # the task ended it
        ("complete", pa.bool_()),  # all numbers were finite
    ]
)
NAMES: Final = ("performance", "length", *ENDINGS)
"""Metrics of a cell; `ComparisonRow` of `evaluation.evaluate.job` defines them."""
BYTES_A_LANE: Final = 4096
"""Memory of an episode while it is played; measured on level 200."""
HOST_TASKS: Final = ("CartPole3D", "CartPole3DLeans")
"""Tasks that can leave their parameters in NumPy arrays, which are faster to stack."""


class EvaluateBase:
    """The base "evaluate"; see `Base`."""

    name = "evaluate"
    threads = True

    def fields(self) -> Mapping[str, Value | None]:
        """Fields with their defaults."""
        return FIELDS

    def files(self, values: Values) -> list[str]:
        """The file of the agent, if it is from one."""
        return agent_files(values)

    def check(self, values: Values, place: SweepFiles) -> None:
        """Check a cell."""
        typed(values, {"agent": str, "task": str, "level": int, "difficulty": str}, FIELDS)
        typed(values, {"episodes": int, "seed": int}, FIELDS)
        check_whole("episodes", values["episodes"], 2, MOST_EPISODES)
        counters.root(values["seed"])
        check_level(values, FIELDS)
        if values["level"] == "" and values["difficulty"] != FIELDS["difficulty"]:
            raise ValueError(
                "difficulty is that of the field level, which is not set; set it, or write "
                "novelty/difficulty beside novelty/level"
            )
        spec = registry.spec(values["task"])
        for name in spec.expand(paths(values, FIELDS)):
            if name not in spec.parameters:
                raise ValueError(unknown("parameter", name, [*FIELDS, *spec.parameters]))
        agent = agents.get(agent_of(values, place))
        env, params = _make(values)[:2]
        check_scored(env)
        agents.check_fit(agent, str(values["agent"]), env, params)

    def keys(self, values: Values, place: SweepFiles) -> GroupKeys:
        """Agent and environment determine the program, the seed determines the call."""
        return GroupKeys((values["agent"], values["task"], _make(values)[0]), values["seed"])

    def lanes(self, values: Values) -> int:
        """One lane per episode."""
        return int(values["episodes"])

    def episodes(self, values: Values, place: SweepFiles) -> int:
        """Episodes of a cell."""
        return int(values["episodes"])

    def steps(self, values: Values, place: SweepFiles) -> int:
        """Steps, if every episode has its greatest length."""
        return int(values["episodes"]) * int(_make(values)[0].max_steps)

    def bytes(self, values: Values, cells: int, place: SweepFiles) -> int:
        """Memory of the lanes."""
        return BYTES_A_LANE * cells * int(values["episodes"])

    def schema(self) -> pa.Schema:
        """Columns of the rows."""
        return ROWS

    def play(self, cells: Sequence[SweepCell], place: SweepFiles) -> PackResults:
        """Play a pack as one rollout."""
        first = cells[0].values
        episodes, seed = int(first["episodes"]), int(first["seed"])
        tasks = [_make(cell.values) for cell in cells]
        env = tasks[0].env
        for other in tasks[1:]:
            env = env if env == other.env else env.covering(other.env)
        table = _stacked(tasks)
        variant = np.repeat(np.arange(len(cells)), episodes)
        agent = agents.get(agent_of(first, place))
        numbers = np.tile(np.arange(episodes), len(cells))
        totals = jaxsim.rollout(
            env, table, agent, len(variant), seed=seed, variant=variant, numbers=numbers
        )
        cell_numbers = np.array([cell.number for cell in cells], np.int64)
        return PackResults(
            _rows(cell_numbers, episodes, totals), _metrics(cell_numbers, episodes, totals, seed)
        )


class BuiltTask(NamedTuple):
    """A task with its physics.

    Attributes:
      env: environment.
      params: its parameters.
      kind: types of their leaves; equal types are one object.
      record: concatenated bytes of the leaves.
    """

    env: Any
    params: Params
    kind: np.dtype[np.void]
    record: bytes


def _make(values: Values) -> BuiltTask:
    level = (values["level"], values["difficulty"]) if values["level"] != "" else ()
    return _build(values["task"], level, tuple(sorted(paths(values, FIELDS).items())))


@lru_cache(maxsize=4096)
def _build(
    task: str, level: tuple[Value, ...], physics: tuple[tuple[str, Value], ...]
) -> BuiltTask:
    """Build a task; cached, because every seed and agent plays the same physics."""
    options = dict(zip(("level", "difficulty"), level, strict=False))
    host = {"host": True} if registry.spec(task).task in HOST_TASKS else {}
    env, params = jaxsim.make(task, dict(physics), **options, **host)
    params = jax.tree.map(np.asarray, params)
    leaves = jax.tree.leaves(params)
    kind = _kind(tuple((leaf.dtype.str, leaf.shape) for leaf in leaves))
    return BuiltTask(env, params, kind, b"".join(leaf.tobytes() for leaf in leaves))


@lru_cache(maxsize=64)
def _kind(leaves: tuple[tuple[str, tuple[int, ...]], ...]) -> np.dtype[np.void]:
    return np.dtype([(str(place), *leaf) for place, leaf in enumerate(leaves)])


def _stacked(tasks: Sequence[BuiltTask]) -> Params:
    """Stack parameters as one tree with a leading axis, from bytes: `np.stack` is far slower."""
    kind = tasks[0].kind
    if any(one.kind is not kind for one in tasks):
        return jax.tree.map(lambda *leaves: np.stack(leaves), *(one.params for one in tasks))
    records = np.frombuffer(b"".join(one.record for one in tasks), kind)
    columns = [np.ascontiguousarray(records[name]) for name in kind.names or ()]
    return jax.tree.unflatten(jax.tree.structure(tasks[0].params), columns)


def _rows(numbers: np.ndarray, episodes: int, totals: Totals) -> pa.Table:
    arrays = [
        np.repeat(numbers, episodes),
        np.tile(np.arange(episodes, dtype=np.int32), len(numbers)),
        np.asarray(totals.length, np.int32),
        np.asarray(totals.performance, np.float32),
        np.asarray(totals.reward, np.float32),
        np.asarray(totals.terminated, bool),
        np.asarray(totals.complete, bool),
    ]
    return pa.Table.from_arrays([pa.array(column) for column in arrays], schema=ROWS)


def _metrics(numbers: np.ndarray, episodes: int, totals: Totals, seed: int) -> pa.Table:
    """Metrics of each cell: means with the intervals of `jaxsim evaluate`, shares with Wilson's."""
    complete = np.asarray(totals.complete, bool)
    fallen = np.asarray(totals.terminated, bool) & complete
    shape = (len(numbers), episodes)
    columns = (totals.performance, totals.length)
    values = np.stack([np.asarray(c, np.float64).reshape(shape) for c in columns], axis=-1)
    across = values.swapaxes(0, 1)  # (E, C, 2)
    interval = bootstrap_interval(across, seed, bounds=(0, [1, np.inf]))
    ends = (fallen, complete & ~fallen, ~complete)
    hits = np.stack([part.reshape(shape).sum(axis=1) for part in ends], axis=-1)
    low, high = wilson(hits, episodes, DEFAULT_LEVEL)
    count = np.full((len(numbers), len(NAMES)), episodes)
    results = {
        "value": np.concatenate([describe(across).mean, hits / episodes], axis=1),
        "low": np.concatenate([interval.low, low], axis=1),
        "high": np.concatenate([interval.high, high], axis=1),
        "count": count,
    }
    return metrics_table(numbers.tolist(), NAMES, results, np.full(count.shape, None))


BASE: Final = EvaluateBase()
