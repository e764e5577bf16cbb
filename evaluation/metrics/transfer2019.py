"""Performance relative to single-task experts, and the transfer matrix made of it.

A single-task expert (STE) is an ordinary learner that has seen one task only. Its saturation value
is the yardstick: a lifelong learner's metric is divided by it. Tests of a task that was not trained
yet then show forward transfer, tests of one that was trained before something else show reverse
transfer.

Shapes are those of the other metrics: results are `Numbers` of (..., B) for B blocks, and
(..., U, U) for the matrix over U tasks.

Source: L2M Metrics Framework, 4 Dec 2019, section 2.1, item 6, and section 3.2. The document names
the transfer matrix and gives no formula; each number here is that of l2metrics 0.3.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from evaluation.metrics import BlockLike, Reason
from evaluation.metrics.numerics import Numbers, numbers

Unit: TypeAlias = Hashable
"""What is transferred from and to: a task's name, or a (task, parameters) pair."""

By: TypeAlias = Literal["task", "variant"]
"""Whether parameter values make a different unit."""


class Direction(NamedTuple):
    """Which test blocks show transfer in one direction.

    Attributes:
      reasons: (B,) integer code why a block does not; `Reason.NONE` where it does.
      cells: (U, U, K) integer blocks whose mean is the cell [source, target], padded with -1.
    """

    reasons: np.ndarray
    cells: np.ndarray


class TransferPairs(NamedTuple):
    """The transfers of one schedule, from `pair_transfer`.

    Attributes:
      units: the U tasks or variants in order of first appearance; rows and columns of the matrix.
      sources: (B,) position in ``units`` of what was trained last before the block, -1 for nothing.
      targets: (B,) position in ``units`` of what the block plays.
      forward: tests of a unit before its first training.
      reverse: tests of a unit after its training, with another one trained since.
    """

    units: tuple[Unit, ...]
    sources: np.ndarray
    targets: np.ndarray
    forward: Direction
    reverse: Direction


def expert_values(blocks: Sequence[BlockLike], experts: Mapping[str, float]) -> np.ndarray:
    """Saturation value of the expert of each block's task.

    Args:
      blocks: the B blocks of one lifetime.
      experts: saturation value by task name; names must match exactly.

    Returns:
      (B,) float64, NaN where ``experts`` has no such task.
    """
    return np.array([experts.get(block.task, np.nan) for block in blocks], np.float64)


def ste_relative(metric: Numbers, experts: ArrayLike) -> Numbers:
    """A metric of the lifelong learner divided by the saturation value of the task's expert.

    Args:
      metric: (..., B), for example `saturation_value`.
      experts: (B,) from `expert_values`, in the unit of ``metric``; NaN where there is none.

    Returns:
      `Numbers` of (..., B) without a unit. 1 is as good as the expert; with a negative expert a
      larger ratio is worse.

    Source: L2M Metrics Framework, 4 Dec 2019, section 2.1, item 6.
    """
    expert = jnp.asarray(experts, metric.values.dtype)
    usable = jnp.isfinite(expert) & (expert != 0)
    return numbers(
        metric.values / jnp.where(usable, expert, 1),
        jnp.where(jnp.isfinite(expert), Reason.NONE, Reason.NO_STE_SATURATION),
        jnp.where(expert == 0, Reason.ZERO_STE_SATURATION, Reason.NONE),
        metric.reasons,
    )


def pair_transfer(
    blocks: Sequence[BlockLike], by: By = "task", single_training: bool = False
) -> TransferPairs:
    """Find what each test block transfers from.

    The source of a test is what was trained last before it. A test of that very unit shows learning
    and no transfer.

    Args:
      blocks: the B blocks of one lifetime in the order they are played.
      by: ``"task"`` joins the parameter variants of a task, ``"variant"`` keeps them apart, which
        is the parametric transfer of subtype ANT_C.
      single_training: leave out units with no or more than one training block, as l2metrics 0.3
        does.

    Returns:
      `TransferPairs` of NumPy arrays.

    Raises:
      ValueError: an unknown ``by``.
    """
    if by not in ("task", "variant"):
        raise ValueError(f"by must be 'task' or 'variant', not {by!r}")
    names = [block.task if by == "task" else (block.task, block.parameters) for block in blocks]
    units = tuple(dict.fromkeys(names))
    targets = np.array([units.index(name) for name in names], np.int32)
    training = [block.mode == "train" for block in blocks]
    counts = np.bincount(targets[training], minlength=len(units))
    sources = np.full(len(blocks), -1, np.int32)
    forward, reverse = (np.zeros(len(blocks), np.int32) for _ in range(2))
    trained: list[int] = []
    for position, target in enumerate(targets):
        if trained:
            sources[position] = trained[-1]
        if training[position]:
            forward[position] = reverse[position] = Reason.NOT_A_TEST_BLOCK
            trained.append(int(target))
            continue
        refusal = _refusal(int(counts[target])) if single_training else Reason.NONE
        forward[position] = refusal or _not_forward(int(target), trained)
        reverse[position] = refusal or _not_reverse(int(target), trained)
    return TransferPairs(
        units,
        sources,
        targets,
        Direction(forward, _cells(len(units), sources, targets, forward)),
        Direction(reverse, _cells(len(units), sources, targets, reverse)),
    )


def _refusal(trainings: int) -> int:
    if trainings == 0:
        return Reason.NEVER_TRAINED
    return Reason.TOO_MANY_TRAININGS if trainings > 1 else Reason.NONE


def _not_forward(target: int, trained: Sequence[int]) -> int:
    if not trained:
        return Reason.NOTHING_TRAINED_YET
    return Reason.TRAINED_BEFORE if target in trained else Reason.NONE


def _not_reverse(target: int, trained: Sequence[int]) -> int:
    if target not in trained:
        return Reason.NOT_TRAINED_YET
    return Reason.TRAINED_LAST if trained[-1] == target else Reason.NONE


def _cells(units: int, sources: np.ndarray, targets: np.ndarray, reasons: np.ndarray) -> np.ndarray:
    """(U, U, K) blocks of each cell, padded with -1; K is at least 1."""
    members: dict[tuple[int, int], list[int]] = {}
    for block in np.flatnonzero(reasons == Reason.NONE):
        members.setdefault((int(sources[block]), int(targets[block])), []).append(int(block))
    depth = max(map(len, members.values()), default=1)
    cells = np.full((units, units, depth), -1, np.int32)
    for cell, blocks in members.items():
        cells[cell][: len(blocks)] = blocks
    return cells


def transfer(relative: Numbers, direction: Direction) -> Numbers:
    """Transfer that each test block shows.

    Args:
      relative: (..., B) from `ste_relative` of the saturation value.
      direction: forward or reverse, of `pair_transfer`.

    Returns:
      `Numbers` of (..., B): the saturation value of the test over the expert's.

    Source: l2metrics 0.3, metric TransferMatrix.
    """
    return numbers(relative.values, direction.reasons, relative.reasons)


def transfer_matrix(relative: Numbers, direction: Direction) -> Numbers:
    """Transfer from what was trained last to what is tested.

    Args:
      relative: (..., B) from `ste_relative` of the saturation value.
      direction: forward or reverse, of `pair_transfer`, with cells (U, U, K).

    Returns:
      `Numbers` of (..., U, U), [source, target]: the mean over the test blocks of the pair that
      have a value; `Reason.NO_TEST_OF_PAIR` where there is no such block, the first block's own
      reason where none has a value.
    """
    cells = jnp.asarray(direction.cells)
    values = jnp.take(relative.values, jnp.maximum(cells, 0), axis=-1)
    reasons = jnp.take(relative.reasons, jnp.maximum(cells, 0), axis=-1)
    member = cells >= 0
    known = member & (reasons == Reason.NONE)
    count = jnp.sum(known, axis=-1)
    total = jnp.zeros(values.shape[:-1], values.dtype)
    for index in range(cells.shape[-1]):  # in order, so that no batch size changes a bit
        total = total + jnp.where(known[..., index], values[..., index], 0)
    return numbers(
        total / jnp.maximum(count, 1),
        jnp.where(member[..., 0], Reason.NONE, Reason.NO_TEST_OF_PAIR),
        jnp.where(count > 0, Reason.NONE, reasons[..., 0]),
    )
