"""Short lists of blocks that may touch, for worlds with stacked slots.

Only a few of the thousands of pairs of blocks touch at a time. One search compares all distances,
16 partners of every slot in a pass, and stores the results as bits. Lists are built by counting
bits, so neither search nor list loops over lanes or hits. Lanes are the last axis; slots and lists
come before it.
"""

from collections.abc import Callable, Iterable
from functools import partial, reduce
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from jaxsim.backend import whole
from jaxsim.worlds.cartpole3d.types import Scalar, Sphere

MAX_PAIRS = 64
"""Most pairs of touching blocks that a tick resolves; 15 is the most recorded, of 205 blocks."""
MAX_NEAR = 16
"""Most blocks near the cart, and near the pole, that a tick resolves."""

T = TypeVar("T")
Places = list[jax.Array]
BITS = 16
"""Flags of a word, and partners compared in a pass over the slots. Of 8, 16 and 32, 16 is the
fastest (205 slots, 128 lanes: 3.5, 0.47 and 0.87 ms)."""
UNROLLED_SUM = 32
"""Longest sum that is unrolled: longer ones would take long to compile."""
_CROWDS = (33, 65, 105, 149)
"""Numbers of slots, besides the capacity, that the search is compiled for; odd, see `_ring`."""


class Pairs(NamedTuple):
    """Pairs of slots in rising order, `first` below `second`."""

    first: jax.Array  # (K, ...) int32, zero behind the end of the list
    second: jax.Array  # (K, ...) int32
    number: jax.Array  # (...) int32, length of the list


def take(leaf: jax.Array, slots: jax.Array, axis: int = 0) -> jax.Array:
    """Read the entries of chosen slots.

    Args:
      leaf: (..., N, lanes...) with the slots at `axis`.
      slots: (K, lanes...) int32, within the slots.
      axis: of the slots; there may be one axis of components before it.

    Returns:
      (..., K, lanes...).
    """
    return jnp.take_along_axis(leaf, slots[(None,) * axis], axis=axis, mode="clip")


def packed(flags: jax.Array, one: jax.Array) -> jax.Array:
    """Pack flags to bits: (N, ...) bool to (ceil(N / 16), ...) uint32, the first flag lowest."""
    number = flags.shape[0]
    words = -(-number // BITS)
    spare = jnp.zeros((words * BITS - number, *flags.shape[1:]), bool)
    split = jnp.concatenate([flags, spare]).reshape(words, BITS, *flags.shape[1:])
    bits = (jnp.where(split[:, i], jnp.uint32(1 << i), jnp.uint32(0)) for i in range(BITS))
    return whole(_either_bits(bits), one)


def _either_bits(words: Iterable[jax.Array]) -> jax.Array:
    return reduce(jnp.bitwise_or, words)


def sum_of(parts: Iterable[jax.Array]) -> jax.Array:
    """Add arrays one by one; a reduction over an axis would be a slow pass of its own."""
    return reduce(jnp.add, parts)


def total(parts: jax.Array) -> jax.Array:
    """Sum along the first axis, unrolled or as a loop by its length."""
    if len(parts) > UNROLLED_SUM:
        return jnp.sum(parts, axis=0, dtype=parts.dtype)
    return sum_of(parts)


def popcount(words: jax.Array) -> jax.Array:
    """Number of set bits: (W, ...) uint32 to (...) int32."""
    return sum_of(_ones(word) for word in words)


def _ones(word: jax.Array) -> jax.Array:
    return jax.lax.population_count(word).astype(jnp.int32)


def nth_set(words: jax.Array, rank: jax.Array) -> jax.Array:
    """Index of the set bit of a given rank.

    Args:
      words: (W, ...) uint32.
      rank: (K, ...) int32 from 0 on.

    Returns:
      (K, ...) int32; undefined where there are fewer set bits.
    """
    start = jnp.zeros_like(rank)
    index, rest = start, rank
    chosen = start.astype(jnp.uint32)
    for number, word in enumerate(words):
        reached = rank >= start
        chosen = jnp.where(reached, word, chosen)
        rest = jnp.where(reached, rank - start, rest)
        index = jnp.where(reached, number * BITS, index)
        start = start + _ones(word)
    half = BITS // 2
    while half:
        below = _ones(chosen & jnp.uint32((1 << half) - 1))
        beyond = rest >= below
        chosen = jnp.where(beyond, chosen >> half, chosen)
        rest = jnp.where(beyond, rest - below, rest)
        index = jnp.where(beyond, index + half, index)
        half //= 2
    return index


def ranks(size: int, like: jax.Array) -> jax.Array:
    """Ranks (K, 1...) of the entries of a list, for lanes `like`."""
    return jnp.arange(size, dtype=jnp.int32).reshape((size,) + (1,) * like.ndim)


def flagged(flags: jax.Array, size: int, one: jax.Array) -> tuple[jax.Array, jax.Array]:
    """List the slots whose flag is set, in order; those beyond the length are left out.

    Args:
      flags: (N, ...) bool.
      size: length of the list, K.
      one: from `backend.opaque_one`.

    Returns:
      (slots (K, ...) int32, count (...) int32 of all set flags).
    """
    words = packed(flags, one)
    count = popcount(words)
    rank = jnp.broadcast_to(ranks(size, count), (size, *count.shape))
    slots = jnp.where(rank < count, nth_set(words, rank), 0)
    return whole(slots, one), whole(count, one)


def pairs_within(block: Sphere, square: Scalar, one: jax.Array, size: int = MAX_PAIRS) -> Pairs:
    """List pairs of blocks within a squared distance, m^2; those beyond the length are left out.

    Args:
      block: stacked blocks, leaves (N, ...).
      square: () or (...) m^2.
      one: from `backend.opaque_one`.
      size: length of the list, K.
    """
    p = _places(block)
    slots, words, _ = _slots_with_partners(_partners(p, square, ring=False), size, one)
    slot, offset, number = _each_partner(slots, words, size, one)
    inside = ranks(size, number) < number
    first = jnp.where(inside, slot, 0)
    second = jnp.where(inside, slot + offset, 0)
    return Pairs(first, second, jnp.minimum(number, size))


def few_pairs_within(block: Sphere, square: Scalar, one: jax.Array, size: int) -> Pairs:
    """List pairs of blocks within a squared distance, m^2, unsorted, if lanes have few.

    It takes half the work of `pairs_within`, or less if many slots are empty.

    Args:
      block: stacked blocks, leaves (N, ...).
      square: () or (...) m^2.
      one: from `backend.opaque_one`.
      size: length of the list, K.

    Returns:
      The pairs and their number; where that is more than `size`, the list is wrong.
    """

    def search(p: Places) -> tuple[jax.Array, ...]:
        slots, words, number = _slots_with_partners(_partners(p, square, ring=True), size, one)
        most = -(-_ring(block.alive.shape[0]) // (2 * BITS))
        spare = jnp.zeros((most - words.shape[0], *words.shape[1:]), jnp.uint32)
        around = jnp.full(number.shape, len(p[0]), jnp.int32)
        return slots, jnp.concatenate([words, spare]), number, around

    slots, words, total_pairs, around = _in_a_crowd(search, block)
    slot, offset, number = _each_partner(slots, words, size, one)
    partner = slot + offset
    partner = jnp.where(partner >= around, partner - around, partner)
    inside = ranks(size, number) < number
    first = whole(jnp.where(inside, jnp.minimum(slot, partner), 0), one)
    second = whole(jnp.where(inside, jnp.maximum(slot, partner), 0), one)
    return Pairs(first, second, jnp.maximum(total_pairs, number))


def _ring(number: int) -> int:
    """Slots of a ring: an odd number, so that one way around is shorter for each pair."""
    return number + 1 - number % 2


def _places(block: Sphere) -> Places:
    """Positions, each (N, ...); NaN for empty slots, so that they are near nothing."""
    return [jnp.where(block.alive, c, jnp.nan) for c in block.p]


def _lengthened(leaf: jax.Array, size: int, *more: jax.Array) -> jax.Array:
    """Append slots and then empty ones, up to a size."""
    parts = [leaf, *more]
    spare = jnp.full((size - sum(map(len, parts)), *leaf.shape[1:]), jnp.nan, leaf.dtype)
    return jnp.concatenate([*parts, spare])


def _in_a_crowd(search: Callable[[Places], T], block: Sphere) -> T:
    """Apply a search to the fewest slots that hold the blocks of every lane.

    Args:
      search: from places (M, ...), M odd.
      block: leaves (N, ...).
    """
    number = block.alive.shape[0]
    ring = _ring(number)
    p = [_lengthened(c, ring) for c in _places(block)]
    sizes = [size for size in _CROWDS if size < ring] + [ring]
    if len(sizes) == 1:
        return search(p)
    index = jnp.arange(1, number + 1, dtype=jnp.int32)
    used = jnp.max(
        jnp.where(jnp.any(block.alive, axis=tuple(range(1, block.alive.ndim))), index, 0)
    )
    place = sum((used > size).astype(jnp.int32) for size in sizes[:-1])
    searches = [partial(lambda p, size: search([c[:size] for c in p]), size=size) for size in sizes]
    return jax.lax.switch(place, searches, p)


def _partners(p: Places, square: Scalar, ring: bool) -> jax.Array:
    """Bits of the later slots that are within a squared distance of each slot.

    Args:
      p: (N, ...) m, along each axis.
      square: () or (...) m^2.
      ring: whether the first slot follows the last; then N is odd and each slot is compared with
        half of the ring, otherwise with all later slots.

    Returns:
      (W, N, ...) uint32; bit b of word w is the slot 16 w + b + 1 further on.
    """
    number = len(p[0])
    reach = max((number - 1) // 2 if ring else number - 1, 1)
    count = -(-reach // BITS)
    size = number + count * BITS
    path = [_lengthened(c, size, c[: reach if ring else 0]) for c in p]

    def word(index: jax.Array) -> jax.Array:
        begin = index * BITS + 1
        span = number + BITS - 1
        ahead = [jax.lax.dynamic_slice_in_dim(c, begin, span) for c in path]

        def bit(i: int) -> jax.Array:
            x, y, z = (a - b[i : i + number] for a, b in zip(p, ahead, strict=True))
            near = x * x + y * y + z * z <= jnp.where(begin + i <= reach, square, -1.0)
            return jnp.where(near, jnp.uint32(1 << i), jnp.uint32(0))

        return _either_bits(bit(i) for i in range(BITS))

    words = jnp.zeros((count, *p[0].shape), jnp.uint32)
    return jax.lax.fori_loop(0, count, lambda i, done: done.at[i].set(word(i)), words)


def _slots_with_partners(
    words: jax.Array, size: int, one: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """List the first slots that have partners.

    Args:
      words: (W, N, ...) from `_partners`.
      size: length of the list, K.
      one: from `backend.opaque_one`.

    Returns:
      (slots (K, ...) int32, their words (W, K, ...), zero in the padding, and the number of slots
      (...) int32).
    """
    slots, number = flagged(_either_bits(words) != 0, size, one)
    inside = ranks(size, number) < number
    return slots, jnp.where(inside, take(words, slots, axis=1), jnp.uint32(0)), number


def _each_partner(
    slots: jax.Array, words: jax.Array, size: int, one: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """List every partner of listed slots: slot (K, ...), offset (K, ...) and number (...)."""
    upto = whole(_running_sum(whole(popcount(words), one)), one)
    number = upto[-1]
    rank = jnp.broadcast_to(ranks(size, number), (size, *number.shape))
    row = total((upto[:-1, None] <= rank).astype(jnp.int32))
    row = whole(row, one)
    before = jnp.where(row > 0, take(upto, jnp.maximum(row - 1, 0)), 0)
    partners = take(words, row, axis=1)
    further = whole(nth_set(partners, whole(rank - before, one)) + 1, one)
    return take(slots, row), further, number


def _running_sum(counts: jax.Array) -> jax.Array:
    """Sums of the entries up to each one, along the first axis."""
    step = 1
    while step < counts.shape[0]:
        counts = counts + jnp.concatenate([jnp.zeros_like(counts[:step]), counts[:-step]])
        step *= 2
    return counts


def in_order(pairs: Pairs, one: jax.Array) -> Pairs:
    """Sort a list of pairs.

    Args:
      pairs: a list that holds all pairs.
      one: from `backend.opaque_one`.
    """
    size = pairs.first.shape[0]
    rank = ranks(size, pairs.number)
    inside = rank < pairs.number
    first = whole(jnp.where(inside, pairs.first, 1 << 20), one)
    second = whole(jnp.where(inside, pairs.second, rank), one)

    def before(k: int) -> jax.Array:
        return (first[k] < first) | ((first[k] == first) & (second[k] < second))

    place = whole(sum_of(before(k).astype(jnp.int32) for k in range(size)), one)
    chosen = [place[k] == rank for k in range(size)]

    def ordered(leaf: jax.Array) -> jax.Array:
        leaf = jnp.where(inside, leaf, 0)
        return whole(sum_of(jnp.where(c, leaf[k], 0) for k, c in enumerate(chosen)), one)

    return Pairs(ordered(first), ordered(second), pairs.number)
