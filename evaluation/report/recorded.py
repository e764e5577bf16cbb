"""Metrics of l2metrics 3.1 from records: thousands of lifetimes of one schedule in one call."""

import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

import jax
import numpy as np
import numpy.typing as npt

from evaluation.logs.export import task_labels
from evaluation.metrics.l2m.experts import ExpertCurve, Experts, pad_experts
from evaluation.metrics.l2m.lifetimes import LifetimeMetrics, MetricOptions, lifetime_metrics
from evaluation.metrics.l2m.scaling import TaskRange
from evaluation.metrics.l2m.structure import Structure, find_structure
from evaluation.records import MEASURES, Records

T = TypeVar("T")
CHUNKS: Final = {"float64": 32, "float32": 64}
"""Lifetimes per call of the compiled program, by precision. For lifetimes of 1,920 episodes these
were among the fastest of 16, 32, 64 and 128; more do not fit a core's cache."""

_compiled = jax.jit(lifetime_metrics, static_argnames=("options",))


@dataclass(frozen=True)
class RecordMetrics:
    """Metrics of L lifetimes of R blocks and K tasks.

    Attributes:
      results: every metric as (L, R), (L, K), (L, K, S) or (L,) NumPy arrays.
      tasks: K names; trained tasks come first.
    """

    results: LifetimeMetrics
    tasks: tuple[str, ...]


def record_metrics(
    records: Records,
    measure: str = "performance",
    options: MetricOptions | None = None,
    aware: bool = True,
    experts: Mapping[str, Sequence[ExpertCurve]] | None = None,
    precision: str = "float64",
    ranges: Mapping[str, tuple[float, float]] | None = None,
    compiled: bool = True,
) -> RecordMetrics:
    """Compute every metric of every lifetime; each block is a regime.

    As in logs, episodes that were cut off or have no value are left out.

    Args:
      records: of L lifetimes.
      measure: column used as performance, one of `evaluation.records.MEASURES`.
      options: settings of the metrics; `MetricOptions()` if None.
      aware: whether variants of a task are separate tasks.
      experts: task name -> smoothed training curves of single-task experts.
      precision: "float64" or "float32".
      ranges: task name -> (lowest, highest), by which performance is normalised; if None, each
        lifetime has its own, and lifetimes cannot be compared.
      compiled: whether to use JAX, which compiles for some seconds and pays off from thousands of
        lifetimes; else NumPy, whose results may differ in the last bits.

    Returns:
      `RecordMetrics`. The results of a lifetime do not depend on the other lifetimes, bit by bit.

    Raises:
      ValueError: an unknown measure or precision, or a task without a range.
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
    mask = records.columns["complete"] & ~np.isnan(records.columns[measure])
    complete = mask.all(axis=1)
    full, partial = np.flatnonzero(complete), np.flatnonzero(~complete)
    curves = functools.partial(_curves, records, measure)
    parts = list(_computed(kernel, curves, full, experiences, shared))
    if len(partial):
        inside = np.arange(room) < counts[:, None]
        present = np.zeros((len(partial), *inside.shape), bool)
        present[:, inside] = mask[partial]
        compacted = _compacted(curves(partial), experiences, present)
        parts.append(_with_gaps(kernel, *compacted, plan, len(tasks)))
    joined = jax.tree.map(lambda *arrays: np.concatenate(arrays), *parts)
    if len(partial):
        order = np.argsort(np.concatenate([full, partial]))
        joined = jax.tree.map(lambda array: array[order], joined)
    return RecordMetrics(joined, tasks)


class _Kernel(NamedTuple):
    """Arguments of the metrics that all lifetimes share."""

    experts: Experts
    options: MetricOptions
    ranges: TaskRange | None
    precision: str
    compiled: bool

    def __call__(
        self, values: np.ndarray, experiences: np.ndarray, structure: Structure
    ) -> LifetimeMetrics:
        """Compute all metrics of some lifetimes with NumPy."""
        return lifetime_metrics(*self._arguments(values, experiences, structure))

    def jit(
        self, values: np.ndarray, experiences: np.ndarray, structure: Structure
    ) -> LifetimeMetrics:
        """Compute all metrics of some lifetimes with JAX."""
        with jax.enable_x64(self.precision == "float64"):
            return _compiled(*self._arguments(values, experiences, structure))

    def _arguments(self, *arrays: Any) -> Any:
        *narrow, experts, ranges = (
            _narrow(array, self.precision) for array in (*arrays, self.experts, self.ranges)
        )
        return *narrow, experts, self.options, ranges


def _range(
    tasks: Sequence[str], ranges: Mapping[str, tuple[float, float]] | None
) -> TaskRange | None:
    """(1, K) bounds of the tasks' ranges."""
    if ranges is None:
        return None
    missing = [task for task in tasks if task not in ranges]
    if missing:
        raise ValueError(f"ranges has none for {', '.join(missing)}; it must have all tasks")
    low, high = np.array([ranges[task] for task in tasks], np.float64).T
    return TaskRange(low[None], high[None])


def _curves(
    records: Records, measure: str, lifetimes: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """(N, B, T) values of a column for some lifetimes, by block."""
    column = {measure: records.columns[measure][lifetimes]}
    return Records(records.schedule, column, records.novelty_levels).by_block(measure)[0]


def _plan(records: Records, aware: bool) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """Arguments of `find_structure` from the schedule, and the names of the tasks."""
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
    """Yield metrics of lifetimes of one plan, in chunks, on all cores.

    Curves are arranged chunk by chunk to stay in the cache of a core. Arranging all of them at once
    takes as much time for fresh memory as the metrics do.
    """
    chunk = CHUNKS[kernel.precision]
    call = kernel.jit if kernel.compiled else kernel

    def compute(start: int) -> LifetimeMetrics:
        numbers = lifetimes[start : start + chunk]
        size = len(numbers)
        padded = curves(np.pad(numbers, (0, chunk - size), mode="edge"))
        results = call(padded, experiences, structure)
        return jax.tree.map(functools.partial(_without_padding, size=size), results)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(compute, range(0, len(lifetimes), chunk))


def _without_padding(array: jax.Array, size: int) -> np.ndarray:
    """The first `size` lifetimes; an array of one lifetime is broadcast."""
    host = np.asarray(array)
    return host[:size] if len(host) > 1 else np.broadcast_to(host, (size, *host.shape[1:]))


def _narrow(tree: T, precision: str) -> T:
    return jax.tree.map(lambda a: a.astype(precision) if a.dtype.kind == "f" else a, tree)


def _compacted(
    values: npt.NDArray[np.float64],
    experiences: npt.NDArray[np.int64],
    present: npt.NDArray[np.bool_],
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Values and experiences with missing episodes moved to the end, and (L, B) counts."""
    order = np.argsort(~present, axis=-1, stable=True)
    numbered = np.broadcast_to(experiences, values.shape)
    compacted = np.take_along_axis(values, order, axis=-1)
    return compacted, np.take_along_axis(numbered, order, axis=-1), present.sum(axis=-1)


def _with_gaps(
    kernel: _Kernel,
    values: npt.NDArray[np.float64],
    experiences: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
    plan: Mapping[str, np.ndarray],
    num_tasks: int,
) -> LifetimeMetrics:
    """Metrics of lifetimes with missing episodes; each has its own counts."""
    broadcast = {name: np.broadcast_to(array, counts.shape) for name, array in plan.items()}
    structure = find_structure(
        **broadcast, counts=counts, num_tasks=num_tasks, room=values.shape[-1]
    )
    results = kernel(values, experiences, structure)
    size = len(values)
    return jax.tree.map(lambda a: np.broadcast_to(a, (size, *a.shape[1:])), results)
