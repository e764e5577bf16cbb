"""Within-block metrics of lifelong learning of the 2019 framework, as batched kernels.

The definitions are those of the *L2M Metrics Framework* document (JHU/APL, 4 December 2019),
section 2.1: saturation value, time to saturation, normalised integral of reward, recovery time and
performance maintenance. Where the document leaves a choice open, the docstring names the choice.

Shapes: a lifetime is B blocks of at most T episodes. ``values`` is (..., B, T): one performance
value per episode (the mean over its sub-episodes), padded behind the ``counts`` (B,) episodes of
each block. Padding is ignored, NaN included. A result is a `Numbers` of (..., B): NaN for a missing
number, with its `Reason`.

Every kernel is elementwise over the leading axes, with sums in a fixed order. The results of a
lifetime therefore do not depend on batch size or padding, bit by bit.
"""

import functools
from collections.abc import Hashable, Sequence
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from evaluation.metrics.numerics import Numbers, divide, numbers, pairwise_sum
from evaluation.metrics.reasons import Reason
from evaluation.metrics.table import names_of

DEFAULT_WINDOW: Final = 11
"""Episodes under the moving average; the document's alpha."""

RECOVERY_SLACK: Final = 0.02
"""Share of the earlier saturation value that a recovered agent may still lack."""

METRIC_NAMES: Final = names_of("2019")[1:]
"""Names of the metrics of `block_metrics`, in order."""

IndexConvention: TypeAlias = Literal["end", "start", "centre"]
"""Which episode of a window is reported: its last, first or middle one."""

LengthConvention: TypeAlias = Literal["episodes", "windows"]
"""Divisor of an integral: the episodes of the block, or the windows that fit into it."""


_AS_PARTNER: Final = {
    Reason.BLOCK_TOO_SHORT: Reason.PARTNER_TOO_SHORT,
    Reason.NON_FINITE_VALUE: Reason.PARTNER_NON_FINITE,
    Reason.OVERFLOW: Reason.PARTNER_OVERFLOW,
}


class BlockLike(Protocol):
    """Fields of a block of a schedule that the metrics use."""

    @property
    def mode(self) -> str:
        """``'train'`` or ``'test'``."""

    @property
    def task(self) -> str:
        """Name of the task."""

    @property
    def parameters(self) -> Hashable:
        """The task's parameter values, comparable for equality."""

    @property
    def count(self) -> int:
        """Episodes in the block."""


class Pairing(NamedTuple):
    """For each block, the other block that a metric compares it with.

    Attributes:
      partners: (B,) integer position of the other block; 0 for none.
      reasons: (B,) integer `Reason` why there is none; `Reason.NONE` if there is one.
    """

    partners: ArrayLike
    reasons: ArrayLike


class BlockPairs(NamedTuple):
    """The pairings of one schedule, from `pair_blocks`.

    Attributes:
      recovery: training block -> next training block of the same task.
      maintenance: test block -> latest earlier training block of the same task and parameters.
    """

    recovery: Pairing
    maintenance: Pairing


class _Smoothed(NamedTuple):
    """Window sums of every block.

    ``sums`` and ``inside`` are (..., B, W); ``inside`` marks the windows that lie in the block.
    ``lengths`` (..., B) counts its episodes, ``scale`` (..., B) is the largest magnitude among
    them, ``reasons`` (..., B) why a block has no usable window. The metrics compare sums instead of
    means, to avoid the rounding of the division by ``window``.
    """

    sums: jax.Array
    inside: jax.Array
    lengths: jax.Array
    scale: jax.Array
    reasons: jax.Array


# ---------------------------------------------------------------------------------------------
# Pairs of blocks (host)
# ---------------------------------------------------------------------------------------------


def pair_blocks(blocks: Sequence[BlockLike]) -> BlockPairs:
    """Find the block that each block is compared with.

    Args:
      blocks: the B blocks of one lifetime in the order they are played.

    Returns:
      `BlockPairs` of (B,) int32 NumPy arrays.

    Raises:
      ValueError: a mode that is neither ``'train'`` nor ``'test'``, or parameters that cannot be
        hashed; the message names the block by its position.

    Source: L2M Metrics Framework, 4 Dec 2019, section 2.1, items 4 and 5. The document does not say
    which of several training blocks item 5 uses; here it is the latest one before the test block.
    """
    for position, block in enumerate(blocks):
        _check_block(position, block)
    return BlockPairs(_next_training(blocks), _latest_training(blocks))


def _check_block(position: int, block: BlockLike) -> None:
    if block.mode not in ("train", "test"):
        raise ValueError(f"block {position}: mode must be 'train' or 'test', not {block.mode!r}")
    try:
        hash(block.parameters)
    except TypeError as error:
        raise ValueError(
            f"block {position}: parameters must be hashable, for example a tuple of "
            f"(path, value) pairs instead of a {type(block.parameters).__name__}"
        ) from error


def _next_training(blocks: Sequence[BlockLike]) -> Pairing:
    partners = np.zeros(len(blocks), np.int32)
    reasons = np.full(len(blocks), Reason.NOT_A_TRAINING_BLOCK, np.int32)
    following: dict[str, int] = {}
    for position in reversed(range(len(blocks))):
        block = blocks[position]
        if block.mode != "train":
            continue
        has_later = block.task in following
        reasons[position] = Reason.NONE if has_later else Reason.NO_LATER_TRAINING
        partners[position] = following.get(block.task, 0)
        following[block.task] = position
    return Pairing(partners, reasons)


def _latest_training(blocks: Sequence[BlockLike]) -> Pairing:
    partners = np.zeros(len(blocks), np.int32)
    reasons = np.full(len(blocks), Reason.NOT_A_TEST_BLOCK, np.int32)
    latest: dict[tuple[str, Hashable], int] = {}
    for position, block in enumerate(blocks):
        variant = (block.task, block.parameters)
        if block.mode == "train":
            latest[variant] = position
            continue
        reasons[position] = Reason.NONE if variant in latest else Reason.NOT_TRAINED_BEFORE
        partners[position] = latest.get(variant, 0)
    return Pairing(partners, reasons)


# ---------------------------------------------------------------------------------------------
# Kernels
# ---------------------------------------------------------------------------------------------


def moving_average(values: ArrayLike, window: int = DEFAULT_WINDOW) -> jax.Array:
    """Unweighted moving average over full windows only.

    Each window is summed separately by doubling (spans of 1, 2, 4, ... episodes), so the error does
    not grow along the block as in a running sum. The absolute error is below
    ``2 * log2(window) + 2`` units in the last place of the window's largest magnitude. Windows with
    the same values in the same order give the same bits.

    Args:
      values: (..., T) performance per episode. Windows with a non-finite value are not finite.
      window: odd number of episodes, 1 or more (static).

    Returns:
      (..., max(T - window + 1, 0)) means, same unit as ``values``.

    Raises:
      ValueError: ``window`` is not an odd positive integer, or ``values`` is not real.

    Source: L2M Metrics Framework, 4 Dec 2019, section 2.1, item 1.
    """
    _check_window(window)
    array = as_real(values)
    if array.shape[-1] < window:
        return array[..., :0]
    return _window_sums(array, window) / window


def saturation_value(values: ArrayLike, counts: ArrayLike, window: int = DEFAULT_WINDOW) -> Numbers:
    """Highest performance of each block over one window.

    Args:
      values: (..., B, T) performance per episode, padded behind ``counts``.
      counts: (B,) or (..., B) integer episodes per block, at most T.
      window: odd number of episodes under the moving average (static).

    Returns:
      `Numbers` of (..., B) in the unit of ``values``: the largest moving average of the block.

    Raises:
      ValueError: a bad window, or counts that are not integers, do not fit the shape or are outside
        0..T (the last is checked only for concrete counts, not tracers).

    Source: L2M Metrics Framework, 4 Dec 2019, section 2.1, item 1.
    """
    smoothed = _smooth(values, counts, window)
    return numbers(_best_sum(smoothed) / window, smoothed.reasons)


def time_to_saturation(
    values: ArrayLike,
    counts: ArrayLike,
    window: int = DEFAULT_WINDOW,
    index: IndexConvention = "end",
) -> Numbers:
    """Episodes until the moving average first reaches the block's saturation value.

    Windows with the same mean in exact arithmetic count as equal: a window counts as the highest if
    its sum is lower by at most the rounding error of the sums (for window 11, 12 machine epsilons
    of the block's largest magnitude).

    Args:
      values: (..., B, T) performance per episode, padded behind ``counts``.
      counts: (B,) or (..., B) integer episodes per block, at most T.
      window: odd number of episodes under the moving average (static).
      index: which episode of the first highest window is reported, counted from 1 (static).
        ``"end"``, the default, is its last one: the number of episodes used.

    Returns:
      `Numbers` of (..., B) in episodes, whole numbers of at least 1.

    Raises:
      ValueError: as `saturation_value`, and an unknown ``index``.

    Source: L2M Metrics Framework, 4 Dec 2019, section 2.1, item 2. The document does not say which
    episode of a window counts.
    """
    offset = _index_offset(index, window)
    smoothed = _smooth(values, counts, window)
    best = _best_sum(smoothed) - _tolerance(smoothed.scale, window)
    reached = smoothed.inside & (smoothed.sums >= best[..., None])
    first = jnp.argmax(reached, axis=-1)
    return numbers((first + offset).astype(smoothed.sums.dtype), smoothed.reasons)


def normalized_integral(
    values: ArrayLike,
    counts: ArrayLike,
    window: int = DEFAULT_WINDOW,
    length: LengthConvention = "episodes",
) -> Numbers:
    """Sum of the moving average over a block, divided by the block's length.

    Compare it between training blocks only.

    Args:
      values: (..., B, T) performance per episode, padded behind ``counts``.
      counts: (B,) or (..., B) integer episodes per block, at most T.
      window: odd number of episodes under the moving average (static).
      length: ``"episodes"``, as in the document, divides by the n episodes of the block;
        ``"windows"`` divides by the n - window + 1 terms of the sum, giving their mean (static).

    Returns:
      `Numbers` of (..., B) in the unit of ``values``. The sum is taken in pairs, so its error grows
      with the logarithm of the block length.

    Raises:
      ValueError: as `saturation_value`, and an unknown ``length``.

    Source: L2M Metrics Framework, 4 Dec 2019, section 2.1, item 3.
    """
    if length not in ("episodes", "windows"):
        raise ValueError(f"length must be 'episodes' or 'windows', not {length!r}")
    smoothed = _smooth(values, counts, window)
    terms = smoothed.lengths - (window - 1 if length == "windows" else 0)
    divisor = jnp.maximum(terms, 1).astype(smoothed.sums.dtype) * window
    total = pairwise_sum(_inside_or(smoothed, 0.0))
    return numbers(divide(total, divisor), smoothed.reasons)


def recovery_time(
    values: ArrayLike,
    counts: ArrayLike,
    pairing: Pairing,
    window: int = DEFAULT_WINDOW,
    index: IndexConvention = "end",
) -> Numbers:
    """Episodes of the next training block until performance has recovered from a change.

    With v the saturation value of a training block, it counts the episodes of the next training
    block of the same task until its moving average is at least v - 0.02 |v| (within the rounding
    error of the sums, as in `time_to_saturation`). The result belongs to the *earlier* block.

    Args:
      values: (..., B, T) performance per episode, padded behind ``counts``.
      counts: (B,) or (..., B) integer episodes per block, at most T.
      pairing: `BlockPairs.recovery` of the schedule.
      window: odd number of episodes under the moving average (static).
      index: which episode of the first such window is reported, counted from 1 (static).

    Returns:
      `Numbers` of (..., B) in episodes; `Reason.NEVER_RECOVERED` if no window reaches it. Means
      over lifetimes leave those out; read them with the number of lifetimes that have a value.

    Raises:
      ValueError: as `time_to_saturation`.

    Source: L2M Metrics Framework, 4 Dec 2019, section 2.1, item 4. The document gives the 2 % and
    no formula; with |v| the slack also works for negative performance.
    """
    offset = _index_offset(index, window)
    smoothed = _smooth(values, counts, window)
    later = _at(smoothed, jnp.asarray(pairing.partners))
    before = _best_sum(smoothed)
    scale = jnp.maximum(smoothed.scale, later.scale)
    threshold = before - RECOVERY_SLACK * jnp.abs(before) - _tolerance(scale, window)
    reached = later.inside & (later.sums >= threshold[..., None])
    first = jnp.argmax(reached, axis=-1)
    never = jnp.where(jnp.any(reached, axis=-1), Reason.NONE, Reason.NEVER_RECOVERED)
    reasons = first_reason(
        jnp.asarray(pairing.reasons), smoothed.reasons, _as_partner(later.reasons), never
    )
    return numbers((first + offset).astype(smoothed.sums.dtype), reasons)


def performance_maintenance(metric: Numbers, pairing: Pairing) -> Numbers:
    """Decrease of a metric from training to a later test of the same task and parameters.

    Args:
      metric: (..., B) any metric that both kinds of block have, for example `saturation_value`.
      pairing: `BlockPairs.maintenance` of the schedule.

    Returns:
      `Numbers` of (..., B) in the unit of ``metric``: training block minus test block, at the test
      block. For the saturation value, positive means forgetting.

    Source: L2M Metrics Framework, 4 Dec 2019, section 2.1, item 5.
    """
    partners = jnp.asarray(pairing.partners)
    trained = jnp.take(metric.values, partners, axis=-1)
    trained_reasons = _as_partner(jnp.take(metric.reasons, partners, axis=-1))
    reasons = first_reason(jnp.asarray(pairing.reasons), metric.reasons, trained_reasons)
    return numbers(trained - metric.values, reasons)


def block_metrics(
    values: ArrayLike,
    blocks: Sequence[BlockLike],
    window: int = DEFAULT_WINDOW,
    index: IndexConvention = "end",
) -> dict[str, Numbers]:
    """Compute all metrics of all blocks of all lifetimes, compiled once per shape.

    Args:
      values: (L, B, T) performance of L lifetimes, padded behind each block's ``count``.
      blocks: the B blocks of the schedule, in order.
      window: odd number of episodes under the moving average.
      index: which episode of a window the two times report, counted from 1.

    Returns:
      (L, B) `Numbers` by name, in the order of `METRIC_NAMES`. float64 input gives float64 if JAX
      has 64-bit types enabled, else float32.

    Raises:
      ValueError: ``values`` that are not (L, B, T) with B the number of blocks, a block whose count
        is negative or above T, and as `pair_blocks` and the kernels.

    Source: L2M Metrics Framework, 4 Dec 2019, section 2.1.
    """
    _check_window(window)
    _index_offset(index, window)
    array = as_real(values)
    if not blocks:
        raise ValueError("blocks is empty: a lifetime needs at least one block")
    if array.ndim != 3 or array.shape[1] != len(blocks):
        raise ValueError(
            f"values must be (lifetimes, {len(blocks)} blocks, episodes), not {array.shape}"
        )
    pairs = pair_blocks(blocks)
    counts = _checked_counts(np.asarray([block.count for block in blocks]), array.shape)
    results = _all_metrics(array, counts, pairs, window, index)
    return {name: results[name] for name in METRIC_NAMES}  # jit returns dictionaries sorted


@functools.partial(jax.jit, static_argnames=("window", "index"))
def _all_metrics(
    values: jax.Array,
    counts: jax.Array,
    pairs: BlockPairs,
    window: int,
    index: IndexConvention,
) -> dict[str, Numbers]:
    saturation = saturation_value(values, counts, window)
    time = time_to_saturation(values, counts, window, index)
    pairing = pairs.maintenance
    return {
        "saturation_value": saturation,
        "time_to_saturation": time,
        "normalized_integral": normalized_integral(values, counts, window),
        "recovery_time": recovery_time(values, counts, pairs.recovery, window, index),
        "performance_maintenance_saturation_value": performance_maintenance(saturation, pairing),
        "performance_maintenance_time_to_saturation": performance_maintenance(time, pairing),
    }


# ---------------------------------------------------------------------------------------------
# Parts of kernels
# ---------------------------------------------------------------------------------------------


def _smooth(values: ArrayLike, counts: ArrayLike, window: int) -> _Smoothed:
    """Window sums of all blocks; episodes outside a block or not finite count as zero."""
    _check_window(window)
    array = as_real(values)
    lengths = jnp.broadcast_to(_checked_counts(counts, array.shape), array.shape[:-1])
    missing = max(window - array.shape[-1], 0)
    array = jnp.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, missing)])
    episodes = jnp.arange(array.shape[-1])
    valid = episodes < lengths[..., None]
    finite = jnp.isfinite(array)
    clean = jnp.where(valid & finite, array, 0)
    sums = _window_sums(clean, window)
    inside = jnp.broadcast_to(episodes[: sums.shape[-1]] <= lengths[..., None] - window, sums.shape)
    reasons = first_reason(
        jnp.where(lengths < window, Reason.BLOCK_TOO_SHORT, Reason.NONE),
        jnp.where(jnp.any(valid & ~finite, axis=-1), Reason.NON_FINITE_VALUE, Reason.NONE),
        jnp.where(jnp.all(jnp.isfinite(sums), axis=-1), Reason.NONE, Reason.OVERFLOW),
    )
    return _Smoothed(sums, inside, lengths, jnp.max(jnp.abs(clean), axis=-1), reasons)


def _window_sums(values: jax.Array, window: int) -> jax.Array:
    """Sums of ``window`` neighbouring values along the last axis, by doubling the span."""
    length = values.shape[-1] - window + 1
    spans, span, start = values, 1, 0
    total: jax.Array | None = None
    while True:
        if window & span:
            part = spans[..., start : start + length]
            total = part if total is None else total + part
            start += span
        if start == window:
            return cast(jax.Array, total)
        spans = spans[..., :-span] + spans[..., span:]
        span *= 2


def _at(smoothed: _Smoothed, partners: jax.Array) -> _Smoothed:
    """Window sums with each block replaced by its partner, (B,) positions."""
    return _Smoothed(
        jnp.take(smoothed.sums, partners, axis=-2),
        jnp.take(smoothed.inside, partners, axis=-2),
        jnp.take(smoothed.lengths, partners, axis=-1),
        jnp.take(smoothed.scale, partners, axis=-1),
        jnp.take(smoothed.reasons, partners, axis=-1),
    )


def _inside_or(smoothed: _Smoothed, fill: float) -> jax.Array:
    return jnp.where(smoothed.inside, smoothed.sums, fill)


def _best_sum(smoothed: _Smoothed) -> jax.Array:
    """(..., B) largest window sum; -inf for a block without a window."""
    return jnp.max(_inside_or(smoothed, -jnp.inf), axis=-1)


def _tolerance(scale: jax.Array, window: int) -> jax.Array:
    """Largest difference of two equal window sums by rounding alone.

    A sum has at most 2 log2(window) additions with an error of half an epsilon each. Its terms are
    rounded too. Two sums are compared, one of them after two more operations.
    """
    roundings = 2 * window.bit_length() + 4
    return scale * (window * roundings * float(np.finfo(scale.dtype).eps))


def first_reason(*candidates: jax.typing.ArrayLike) -> jax.Array:
    """Return the first candidate that is not `Reason.NONE`, elementwise, as int32."""
    result = jnp.asarray(candidates[-1], jnp.int32)
    for candidate in reversed(candidates[:-1]):
        result = jnp.where(jnp.asarray(candidate) == Reason.NONE, result, candidate)
    return result.astype(jnp.int32)


def _as_partner(reasons: jax.Array) -> jax.Array:
    """Reasons of a block as reasons of the block that is compared with it."""
    for reason, partner in _AS_PARTNER.items():
        reasons = jnp.where(reasons == reason, partner, reasons)
    return reasons


# ---------------------------------------------------------------------------------------------
# Checks of arguments
# ---------------------------------------------------------------------------------------------


def _check_window(window: int) -> None:
    if isinstance(window, bool) or not isinstance(window, int):
        raise ValueError(f"window must be an odd positive integer, not {window!r}")
    if window < 1:
        raise ValueError(f"window must be an odd positive integer, not {window}; use 1 for none")
    if window % 2 == 0:
        raise ValueError(f"window must be odd, not {window}; use {window - 1} or {window + 1}")


def _index_offset(index: str, window: int) -> int:
    """Offset from the 0-based first episode of a window to the reported number."""
    offsets = {"end": window, "start": 1, "centre": window // 2 + 1}
    if index not in offsets:
        raise ValueError(f"index must be one of {', '.join(offsets)}, not {index!r}")
    return offsets[index]


def as_real(values: ArrayLike) -> jax.Array:
    """Values as floating point of at least 32 bits; float64 only if JAX has it enabled."""
    array = jnp.asarray(values)
    if jnp.issubdtype(array.dtype, jnp.complexfloating):
        raise ValueError("values must be real numbers, not complex ones")
    if array.ndim < 1:
        raise ValueError("values must have at least one axis, the episodes")
    if not jnp.issubdtype(array.dtype, jnp.floating):
        return array.astype(jnp.result_type(float))
    return array.astype(jnp.promote_types(array.dtype, jnp.float32))


def _checked_counts(counts: ArrayLike, shape: tuple[int, ...]) -> jax.Array:
    """Counts as an array that fits ``shape`` = (..., B, T); concrete counts are range-checked."""
    array = jnp.asarray(counts)
    if not jnp.issubdtype(array.dtype, jnp.integer):
        raise ValueError(f"counts must be integers, not {array.dtype}")
    fits = array.ndim < len(shape) and all(
        size in (1, other) for size, other in zip(array.shape[::-1], shape[-2::-1], strict=False)
    )
    if not fits:
        raise ValueError(
            f"counts {array.shape} do not fit values {shape}: give one count per block, "
            f"{shape[-2:-1]}"
        )
    if isinstance(array, jax.core.Tracer):
        return array.astype(jnp.int32)
    host = np.asarray(array)
    if host.size and (host.min() < 0 or host.max() > shape[-1]):
        raise ValueError(
            f"counts must lie between 0 and the {shape[-1]} episodes that values has room for, "
            f"not between {host.min()} and {host.max()}"
        )
    return array.astype(jnp.int32)
