"""The result type of all metrics, and the array operations that they share.

Kernels use the namespace of their arrays: NumPy arrays are computed by NumPy, without compilation,
and JAX arrays and tracers by JAX, with or without `jax.jit`. The order of sums does not depend on
batch size or padding, so a lifetime gets the same bits alone and in a batch.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from evaluation.metrics.reasons import Reason

Array: TypeAlias = Any
"""A NumPy or a JAX array."""


class Numbers(NamedTuple):
    """Numbers with reasons for missing ones, and intervals if they are estimates over lifetimes.

    Attributes:
      values: floating point; NaN for a missing value.
      reasons: integer codes of `Reason`, of the same shape: why a value, or its interval, is
        missing; `Reason.NONE` if neither is.
      low: lower end of the interval of each value, NaN for a missing one; None for numbers that are
        not estimates.
      high: upper end.
    """

    values: Array
    reasons: Array
    low: Array | None = None
    high: Array | None = None

    def part(self, index: Any) -> "Numbers":
        """Select numbers by any index of an array."""
        return Numbers(*(None if leaf is None else leaf[index] for leaf in self))

    def reshape(self, shape: tuple[int, ...]) -> "Numbers":
        """The same numbers in another shape."""
        return Numbers(*(None if leaf is None else leaf.reshape(shape) for leaf in self))


def namespace(array: Array) -> ModuleType:
    """The module of an array: `numpy` or `jax.numpy`."""
    return array.__array_namespace__()


def numbers(values: Array, *reasons: tuple[Array, Reason] | Array) -> Numbers:
    """Make numbers with the first reason that holds; `Reason.OVERFLOW` if not finite without one.

    Args:
      values: floating point of any shape.
      *reasons: (condition, reason) pairs or arrays of codes, broadcastable to ``values``.
    """
    xp = namespace(values)
    codes = xp.where(xp.isfinite(values), int(Reason.NONE), int(Reason.OVERFLOW))
    for candidate in reversed(reasons):
        if isinstance(candidate, tuple):
            condition, reason = candidate
            codes = xp.where(condition, int(reason), codes)
        else:
            codes = xp.where(xp.asarray(candidate) == int(Reason.NONE), codes, candidate)
    codes = xp.broadcast_to(codes, values.shape).astype(np.int32)
    return Numbers(xp.where(codes == 0, values, np.nan), codes)


def take(array: Array, index: Array) -> Array:
    """Elements along the last axis; the result for a negative index is arbitrary.

    Args:
      array: (..., N), N at least 1.
      index: (..., M) integers below N.
    """
    xp = namespace(array)
    return xp.take_along_axis(array, xp.clip(index, 0, array.shape[-1] - 1), axis=-1)


def pairwise_sum(values: Array) -> Array:
    """Sum over the last axis, neighbours first; zeros behind the values change no bit."""
    xp = namespace(values)
    size = values.shape[-1]
    room = 1 << max(size - 1, 0).bit_length()
    if room > size:
        zeros = xp.zeros((*values.shape[:-1], room - size), values.dtype)
        values = xp.concatenate([values, zeros], axis=-1)
    while values.shape[-1] > 1:
        values = values[..., 0::2] + values[..., 1::2]
    return values[..., 0]


def masked_mean(values: Array, mask: Array) -> tuple[Array, Array]:
    """Mean over the last axis of the elements under a mask, and their number.

    Returns:
      (...) means, 0 without an element, and (...) integer counts.
    """
    xp = namespace(values)
    mask = xp.broadcast_to(mask, values.shape)
    count = mask.sum(axis=-1)
    total = pairwise_sum(xp.where(mask, values, 0))
    return divide(total, xp.maximum(count, 1).astype(values.dtype)), count


def masked_median(values: Array, mask: Array) -> tuple[Array, Array]:
    """Median over the last axis of the elements under a mask, and their number."""
    xp = namespace(values)
    mask = xp.broadcast_to(mask, values.shape)
    count = mask.sum(axis=-1)
    ordered = xp.sort(xp.where(mask, values, np.inf), axis=-1)
    middle = xp.stack([(count - 1) // 2, count // 2], axis=-1)
    two = xp.where(count[..., None] > 0, take(ordered, middle), 0)
    return (two[..., 0] + two[..., 1]) / 2, count


def divide(numerator: Array, divisor: Array) -> Array:
    """Division with the same bits for any batch size.

    Without the barrier XLA multiplies by the reciprocal of a divisor that is broadcast, but not in
    a batch of one: a single lifetime would differ in the last bit.
    """
    if isinstance(numerator, np.ndarray | np.generic):
        return numerator / divisor
    return namespace(numerator).divide(*materialised(numerator, divisor))


def materialised(*trees: Array) -> tuple[Array, ...]:
    """Return arrays, or trees of them, computed before anything that uses them.

    Otherwise XLA on a processor recomputes a shared array in each of its consumers.
    """
    leaf: Array = trees
    while isinstance(leaf, tuple):
        leaf = leaf[0]
    if isinstance(leaf, np.ndarray | np.generic):
        return trees
    import jax

    return tuple(jax.lax.optimization_barrier(trees))


def repeat(times: int, step: Callable[[Any, Array], Array], start: Array) -> Array:
    """Apply ``step(k, value)`` to ``start`` for k = 0, 1, ..., times - 1; a loop in JAX too."""
    if isinstance(start, np.ndarray):
        for k in range(times):
            start = step(k, start)
        return start
    import jax

    return jax.lax.fori_loop(0, times, step, start)


def window_at(array: Array, start: Array, length: int) -> Array:
    """``array[..., start : start + length]`` for a start that may be traced."""
    if isinstance(array, np.ndarray):
        return array[..., start : start + length]
    import jax

    return jax.lax.dynamic_slice_in_dim(array, start, length, axis=-1)
