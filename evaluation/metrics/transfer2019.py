"""Performance relative to single-task experts, and the transfer matrix made of it.

A single-task expert (STE) is an ordinary learner that is trained on one task only. A lifelong
learner's metric is divided by the expert's saturation value. Tests of a task that was not trained
yet then show forward transfer. Tests of a task with another task trained since show reverse
transfer.

Results are `Numbers` of (..., B) for B blocks, and (..., U, U) for the matrix over U tasks.

Source: L2M Metrics Framework, 4 Dec 2019, section 2.1, item 6, and section 3.2. The document names
the transfer matrix without a formula; each number here is that of l2metrics 0.3.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from evaluation.metrics import BlockLike, Reason
from evaluation.metrics.numerics import Numbers, numbers

Unit: TypeAlias = Hashable
"""Source or target of transfer: a task's name, or a (task, parameters) pair."""

By: TypeAlias = Literal["task", "variant"]
"""Whether parameter values make a different unit."""


class Direction(NamedTuple):
    """Which test blocks show transfer in one direction.

    Attributes:
      reasons: (B,) integer code why a block does not show it; `Reason.NONE` if it does.
      cells: (U, U, K) integer blocks whose mean is the cell [source, target], padded with -1.
    """

    reasons: np.ndarray
    cells: np.ndarray


class TransferPairs(NamedTuple):
    """The transfers of one schedule, from `pair_transfer`.

    Attributes:
      units: the U tasks or variants in order of first appearance; rows and columns of the matrix.
      sources: (B,) position in ``units`` of the unit trained last before the block, -1 for none.
      targets: (B,) position in ``units`` of the block's unit.
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
      (B,) float64, NaN for a task without an expert.
    """
    return np.array([experts.get(block.task, np.nan) for block in blocks], np.float64)


def ste_relative(metric: Numbers, experts: ArrayLike) -> Numbers:
    """A metric of the lifelong learner divided by the saturation value of the task's expert.

    Args:
      metric: (..., B), for example `saturation_value`.
      experts: (B,) from `expert_values`, in the unit of ``metric``; NaN for none.

    Returns:
      `Numbers` of (..., B) without a unit. 1 is as good as the expert. If the expert's value is
      negative, a larger ratio is worse.

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
    """Find the source of transfer for each test block.

    The source of a test is the unit trained last before it. A test of that unit itself shows
    learning, not transfer.

    Args:
      blocks: the B blocks of one lifetime in the order they are played.
      by: ``"task"`` joins the parameter variants of a task, ``"variant"`` separates them: the
        parametric transfer of subtype ANT_C.
      single_training: whether to leave out units that do not have exactly one training block, as
        l2metrics 0.3 does.

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
    """Transfer at each test block.

    Args:
      relative: (..., B) from `ste_relative` of the saturation value.
      direction: forward or reverse, of `pair_transfer`.

    Returns:
      `Numbers` of (..., B): the saturation value of the test over the expert's.

    Source: l2metrics 0.3, metric TransferMatrix.
    """
    return numbers(relative.values, direction.reasons, relative.reasons)


def transfer_matrix(relative: Numbers, direction: Direction) -> Numbers:
    """Transfer from the unit trained last to the tested unit.

    Args:
      relative: (..., B) from `ste_relative` of the saturation value.
      direction: forward or reverse, of `pair_transfer`, with cells (U, U, K).

    Returns:
      `Numbers` of (..., U, U), [source, target]: the mean over the test blocks of the pair that
      have a value. Without a test block the reason is `Reason.NO_TEST_OF_PAIR`; without a value it
      is that of the first block.
    """
    cells = jnp.asarray(direction.cells)
    values = jnp.take(relative.values, jnp.maximum(cells, 0), axis=-1)
    reasons = jnp.take(relative.reasons, jnp.maximum(cells, 0), axis=-1)
    member = cells >= 0
    mask = member & (reasons == Reason.NONE)
    count = jnp.sum(mask, axis=-1)
    total = jnp.zeros(values.shape[:-1], values.dtype)
    for index in range(cells.shape[-1]):  # in order: the bits do not depend on the batch size
        total = total + jnp.where(mask[..., index], values[..., index], 0)
    return numbers(
        total / jnp.maximum(count, 1),
        jnp.where(member[..., 0], Reason.NONE, Reason.NO_TEST_OF_PAIR),
        jnp.where(count > 0, Reason.NONE, reasons[..., 0]),
    )
