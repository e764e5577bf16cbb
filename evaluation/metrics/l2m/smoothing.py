"""Smoothing of learning curves by one of five windows, with a length for each curve."""

import functools
from typing import Final, Literal, TypeAlias

import numpy as np

from evaluation.metrics.numerics import Array, namespace, repeat, take, window_at

Kind: TypeAlias = Literal["flat", "hanning", "hamming", "bartlett", "blackman"]
KINDS: Final = ("flat", "hanning", "hamming", "bartlett", "blackman")
"""Windows for smoothing."""

MAX_DEFAULT_WINDOW: Final = 100
"""Maximum length of a window that depends on the length of a curve, episodes."""

SHORTEST_WINDOW: Final = 3
"""Minimum length of a window; curves with a shorter one are not smoothed."""


def window_lengths(counts: Array, window: int | None) -> Array:
    """Length of the window of each curve.

    Args:
      counts: (...) integer episodes of each curve.
      window: length of the window; None for a fifth of the curve.

    Returns:
      (...) integers: ``window`` if the curve is long enough, else a fifth of the curve, at most
      `MAX_DEFAULT_WINDOW`. Below `SHORTEST_WINDOW` the curve is not smoothed.

    Source: l2metrics 3.1.
    """
    xp = namespace(counts)
    default = xp.minimum(counts // 5, MAX_DEFAULT_WINDOW)
    return default if window is None else xp.where(counts >= window, window, default)


def smooth(
    values: Array,
    counts: Array,
    window: int | None = None,
    kind: Kind = "flat",
    centred: bool = True,
) -> Array:
    """Weighted moving average of curves that are reflected at both ends.

    Args:
      values: (..., T) performance per episode, padded behind ``counts``.
      counts: (...) integer episodes of each curve.
      window: see `window_lengths` (static).
      kind: one of `KINDS` (static).
      centred: whether a window of odd length L covers (L - 1) / 2 episodes on either side; in
        l2metrics 3.1 it lags by one episode. A window of even length covers the L / 2 episodes
        before, the episode itself and L / 2 - 1 after it (static).

    Returns:
      (..., T) in the unit of ``values``; values behind ``counts`` are arbitrary.

    Source: l2metrics 3.1, `smooth`.
    """
    xp = namespace(values)
    room = values.shape[-1]
    size = min(room // 5, MAX_DEFAULT_WINDOW)
    if window is not None and window <= room:
        size = max(size, window)
    if size < SHORTEST_WINDOW:
        return values
    lengths = window_lengths(counts, window)
    long_enough = lengths >= SHORTEST_WINDOW
    lengths = xp.where(long_enough, lengths, 0)
    table = xp.asarray(_weights(size, window, kind), dtype=values.dtype)
    weights = table[xp.minimum(lengths, table.shape[0] - 1)]
    if not centred and isinstance(values, np.ndarray):
        return _convolved(values, counts, np.asarray(lengths), weights)
    first = -(lengths // 2) if centred else -((lengths + 1) // 2)
    around = _reflected(values, counts, first, room + size - 1)

    def add(k: int, total: Array) -> Array:
        return total + window_at(weights, k, 1) * window_at(around, k, room)

    total = repeat(size, add, xp.zeros_like(around[..., :room]))
    return xp.where(long_enough[..., None], total, values)


def _convolved(
    values: np.ndarray, counts: np.ndarray, lengths: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """The lagging average of each curve, by the same operations as in l2metrics 3.1.

    There, the last bit of a sum decides which of several equal windows is the highest.
    """
    result = np.array(values)
    curves = values.shape[:-1]
    counts, lengths = np.broadcast_to(counts, curves), np.broadcast_to(lengths, curves)
    weights = np.broadcast_to(weights, (*curves, weights.shape[-1]))
    for place in np.argwhere(lengths).tolist():
        at = tuple(place)
        length, count = int(lengths[at]), int(counts[at])
        curve = values[at][:count]
        around = (curve[length - 1 : 0 : -1], curve, curve[-2 : -length - 1 : -1])
        average = np.convolve(weights[at][:length], np.concatenate(around), mode="valid")
        start = (length - 2) // 2
        result[at][:count] = average[start : start + count]
    return result


def _reflected(values: Array, counts: Array, first: Array, length: int) -> Array:
    """(..., length) values from index ``first`` (...), mirrored at both ends of each curve."""
    xp = namespace(values)
    index = xp.abs(xp.arange(length) + first[..., None])
    last = counts[..., None] - 1
    index = xp.where(index > last, 2 * last - index, index)
    valid = xp.arange(values.shape[-1]) < counts[..., None]
    return take(xp.where(valid, values, 0), index)


@functools.lru_cache(maxsize=32)
def _weights(size: int, window: int | None, kind: Kind) -> np.ndarray:
    """(rows, size) weights of windows, by length; the last row may be a long ``window``."""
    if kind not in KINDS:
        raise ValueError(f"smoothing kind is {kind!r}; it must be one of {', '.join(KINDS)}")
    shape = np.ones if kind == "flat" else getattr(np, kind)
    lengths = list(range(min(size, MAX_DEFAULT_WINDOW) + 1))
    if window is not None and window > MAX_DEFAULT_WINDOW and window <= size:
        lengths.append(window)
    table = np.zeros((len(lengths), size))
    for row, length in zip(table, lengths, strict=True):
        if length >= SHORTEST_WINDOW:
            weights = shape(length)
            row[:length] = weights / weights.sum()
    return table
