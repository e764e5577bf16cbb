"""Metrics of today straight from records: thousands of lifetimes of one schedule in one call."""

import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import jax
import numpy as np
import numpy.typing as npt

from evaluation.logs.export import task_labels
from evaluation.metrics.l2m.experts import Curve, Experts, pad_experts
from evaluation.metrics.l2m.lifetimes import LifetimeMetrics, MetricOptions, lifetime_metrics
from evaluation.metrics.l2m.scaling import Range
from evaluation.metrics.l2m.structure import Structure, find_structure
from evaluation.records import MEASURES, Records

CHUNKS: Final = {"float64": 32, "float32": 64}
"""Lifetimes that one call of the compiled program computes, by precision: for 1,920 episodes a
lifetime these were among the fastest of 16, 32, 64 and 128; more do not fit a core's cache."""

_compiled = jax.jit(lifetime_metrics, static_argnames=("options",))


@dataclass(frozen=True)
class RecordMetrics:
    """Metrics of L lifetimes of R blocks and K tasks.

    Attributes:
      results: every number, (L, R), (L, K), (L, K, S) or (L,) NumPy arrays.
      tasks: K names, those trained first.
    """

    results: LifetimeMetrics
    tasks: tuple[str, ...]


def record_metrics(
    records: Records,
    measure: str = "performance",
    options: MetricOptions | None = None,
    aware: bool = True,
    experts: Mapping[str, Sequence[Curve]] | None = None,
    precision: str = "float64",
    ranges: Mapping[str, tuple[float, float]] | None = None,
    compiled: bool = True,
) -> RecordMetrics:
    """Compute every metric of every lifetime; each block is a regime.

    Episodes that were cut off, or have no value, are left out as they are from logs.

    Args:
      records: of L lifetimes.
      measure: column that is the performance, one of `evaluation.records.MEASURES`.
      options: how; `MetricOptions` if None.
      aware: whether variants of a task are tasks of their own.
      experts: task name -> smoothed training curves of single-task experts.
      precision: "float64" or "float32".
      ranges: task name -> (lowest, highest), from which performance is normalised; None for each
        lifetime's own, with which lifetimes cannot be compared.
      compiled: whether JAX computes, which compiles for some seconds once and pays from thousands
        of lifetimes on; else NumPy, whose results may differ in the last bits.

    Returns:
      `RecordMetrics`. A lifetime gets the same bits alone and among others.

    Raises:
      ValueError: not a measure, an unknown precision, or a task without a range.
    """
    if measure not in MEASURES:
        raise ValueError(f"measure is {measure!r}; it must be one of {', '.join(MEASURES)}")
    if precision not in CHUNKS:
        raise ValueError(f"precision is {precision!r}; it must be float64 or float32")
    options, records = options or MetricOptions(), records.by_episode()
    counts = np.array([block.count for block in records.schedule.blocks])
    room = int(counts.max())
    plan, tasks = _plan(records, aware)
    padded = pad_experts([[list((experts or {}).get(task, [])) for task in tasks]], len(tasks))
    kernel = _Kernel(padded, options, _range(tasks, ranges), precision, compiled)
    experiences = np.cumsum([0, *counts[:-1]])[None, :, None] + np.arange(room)
    shared = find_structure(**plan, counts=counts[None], num_tasks=len(tasks), room=room)
    there = records.columns["complete"] & ~np.isnan(records.columns[measure])
    whole = there.all(axis=1)
    numbers, gaps = np.flatnonzero(whole), np.flatnonzero(~whole)
    curves = functools.partial(_curves, records, measure)
    parts = list(_computed(kernel, curves, numbers, experiences, shared))
    if len(gaps):
        inside = np.arange(room) < counts[:, None]
        own = np.zeros((len(gaps), *inside.shape), bool)
        own[:, inside] = there[gaps]
        left = _compacted(curves(gaps), experiences, own)
        parts.append(_with_gaps(kernel, *left, plan, len(tasks)))
    joined = jax.tree.map(lambda *arrays: np.concatenate(arrays), *parts)
    if len(gaps):
        order = np.argsort(np.concatenate([numbers, gaps]))
        joined = jax.tree.map(lambda array: array[order], joined)
    return RecordMetrics(joined, tasks)


class _Kernel(NamedTuple):
    """How lifetimes are computed; what is not theirs."""

    experts: Experts
    options: MetricOptions
    ranges: Range | None
    precision: str
    compiled: bool

    def __call__(self, values: Any, experiences: Any, structure: Structure) -> LifetimeMetrics:
        """All metrics of some lifetimes, by NumPy."""
        return lifetime_metrics(*self._given(values, experiences, structure))

    def jit(self, values: Any, experiences: Any, structure: Structure) -> LifetimeMetrics:
        """The same by JAX."""
        with jax.enable_x64(self.precision == "float64"):
            return _compiled(*self._given(values, experiences, structure))

    def _given(self, *arrays: Any) -> Any:
        *narrow, experts, ranges = (
            _narrow(array, self.precision) for array in (*arrays, self.experts, self.ranges)
        )
        return *narrow, experts, self.options, ranges


def _range(tasks: Sequence[str], ranges: Mapping[str, tuple[float, float]] | None) -> Range | None:
    """(1, K) ends of the tasks' ranges."""
    if ranges is None:
        return None
    missing = [task for task in tasks if task not in ranges]
    if missing:
        raise ValueError(f"ranges has none for {', '.join(missing)}; it must have all tasks")
    low, high = np.array([ranges[task] for task in tasks], np.float64).T
    return Range(low[None], high[None])


def _curves(
    records: Records, measure: str, lifetimes: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """(N, B, T) a column of some lifetimes, block by block."""
    column = {measure: records.columns[measure][lifetimes]}
    return Records(records.schedule, column, records.novelty_levels).by_block(measure)[0]


def _plan(records: Records, aware: bool) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What `find_structure` wants to know of the schedule, and the names of the tasks."""
    blocks, variants = records.schedule.blocks, records.schedule.block_variants()
    labels = [label.lower() for label in task_labels(records.schedule)]
    names = [labels[v] if aware else labels[v].partition("_")[0] for v in variants]
    trained = [name for name, block in zip(names, blocks, strict=True) if block.mode == "train"]
    order = tuple(dict.fromkeys([*trained, *names]))
    train = np.array([[block.mode == "train" for block in blocks]])
    tasks = np.array([[order.index(name) for name in names]])
    return {"tasks": tasks, "train": train, "sleep": np.zeros_like(train)}, order


def _computed(
    kernel: _Kernel,
    curves: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.float64]],
    lifetimes: npt.NDArray[np.int64],
    experiences: npt.NDArray[np.int64],
    structure: Structure,
) -> Iterator[LifetimeMetrics]:
    """Metrics of lifetimes of one plan, some at a time, on all cores.

    Curves are arranged a chunk at a time, so that they stay in the cache of a core: all of them at
    once cost as much time in fresh memory as the metrics do.
    """
    chunk = CHUNKS[kernel.precision]
    call = kernel.jit if kernel.compiled else kernel

    def compute(start: int) -> LifetimeMetrics:
        some = lifetimes[start : start + chunk]
        size = len(some)
        filled = curves(np.pad(some, (0, chunk - size), mode="edge"))
        results = call(filled, experiences, structure)
        return jax.tree.map(functools.partial(_own, size=size), results)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(compute, range(0, len(lifetimes), chunk))


def _own(array: jax.Array, size: int) -> npt.NDArray[Any]:
    """The first `size` lifetimes; what all share is repeated."""
    host = np.asarray(array)
    return host[:size] if len(host) > 1 else np.broadcast_to(host, (size, *host.shape[1:]))


def _narrow(tree: Any, precision: str) -> Any:
    return jax.tree.map(lambda a: a.astype(precision) if a.dtype.kind == "f" else a, tree)


def _compacted(
    values: npt.NDArray[np.float64],
    experiences: npt.NDArray[np.int64],
    there: npt.NDArray[np.bool_],
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Values and experiences without the gaps between them, and (L, B) counts."""
    order = np.argsort(~there, axis=-1, stable=True)
    numbered = np.broadcast_to(experiences, values.shape)
    moved = np.take_along_axis(values, order, axis=-1)
    return moved, np.take_along_axis(numbered, order, axis=-1), there.sum(axis=-1)


def _with_gaps(
    kernel: _Kernel,
    values: npt.NDArray[np.float64],
    experiences: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
    plan: Mapping[str, Any],
    num_tasks: int,
) -> LifetimeMetrics:
    """Metrics of lifetimes that have lost episodes, so that each has a plan of its own."""
    own = {name: np.broadcast_to(array, counts.shape) for name, array in plan.items()}
    structure = find_structure(**own, counts=counts, num_tasks=num_tasks, room=values.shape[-1])
    results = kernel(values, experiences, structure)
    size = len(values)
    return jax.tree.map(lambda a: np.broadcast_to(a, (size, *a.shape[1:])), results)
