"""Short lists of what may touch, for worlds whose many blocks are stacked.

Of the thousands of pairs of blocks only a few touch at a time. All distances are looked at once,
block by block; the few hits become lists of fixed length, so that the solver never sees the rest.
Lanes are the last axis; the lists lie in front of it.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.worlds.cartpole3d.types import Block, Scalar

MAX_PAIRS = 64
"""Most pairs of touching blocks that a tick resolves; 15 is the most recorded, of 205 blocks."""
MAX_NEAR = 16
"""Most blocks near the cart, and near the pole, that one tick resolves."""


class Pairs(NamedTuple):
    """Pairs of slots in rising order, `first` below `second`."""

    first: jax.Array  # (K, ...) int32, zero behind the end of the list
    second: jax.Array  # (K, ...) int32
    number: jax.Array  # (...) int32, length of the list


def take(leaf: jax.Array, slots: jax.Array, axis: int = 0) -> jax.Array:
    """Read the entries of chosen slots.

    Args:
      leaf: (..., N, lanes...) with the slots at `axis`.
      slots: (K, lanes...) int32.
      axis: of the slots; there may be one axis of components before it.

    Returns:
      (..., K, lanes...).
    """
    return jnp.take_along_axis(leaf, slots[(None,) * axis], axis=axis)


def _used(alive: jax.Array) -> jax.Array:
    """Number of slots up to the last one in use in any lane."""
    number = jnp.arange(1, alive.shape[0] + 1, dtype=jnp.int32)
    return jnp.max(jnp.where(alive, _column(number, alive), 0))


def _column(values: jax.Array, like: jax.Array) -> jax.Array:
    """Give (N,) values as many axes as `like` has."""
    return values.reshape(values.shape + (1,) * (like.ndim - 1))


def _later_partners(block: Block, index: jax.Array, square: Scalar) -> jax.Array:
    """Whether each later slot is within a squared distance of slot `index`, (N, ...) bool."""
    number = _column(jnp.arange(block.alive.shape[0], dtype=jnp.int32), block.alive)
    distance: Any = 0.0
    for leaf in block.p:
        leaf = jnp.asarray(leaf)
        d = leaf - leaf[index]
        distance = distance + d * d
    return block.alive & block.alive[index] & (number > index) & (distance <= square)


def any_pair(block: Block, square: Scalar) -> jax.Array:
    """Whether any two blocks are within a squared distance, m^2; (...) bool."""

    def look(index: jax.Array, found: jax.Array) -> jax.Array:
        return found | jnp.any(_later_partners(block, index, square), axis=0)

    nothing = jnp.zeros(block.alive.shape[1:], bool)
    return jax.lax.fori_loop(0, _used(block.alive), look, nothing)


def pairs_within(block: Block, square: Scalar) -> Pairs:
    """List the pairs of blocks within a squared distance, m^2; those beyond the end are left out.

    Args:
      block: stacked blocks, leaves (N, ...).
      square: () or (...) m^2.
    """
    lanes = block.alive.shape[1:]
    empty = jnp.zeros((MAX_PAIRS, *lanes), jnp.int32)

    def look(index: jax.Array, listed: Pairs) -> Pairs:
        def more(carry: tuple[jax.Array, Pairs]) -> jax.Array:
            return jnp.any(carry[0])

        def append(carry: tuple[jax.Array, Pairs]) -> tuple[jax.Array, Pairs]:
            partners, listed = carry
            partners, slot, found = _pop(partners)
            here = found & _end_of(listed.first, listed.number)
            first = jnp.where(here, index, listed.first)
            second = jnp.where(here, slot, listed.second)
            return partners, Pairs(first, second, listed.number + found)

        return jax.lax.while_loop(more, append, (_later_partners(block, index, square), listed))[1]

    start = Pairs(empty, empty, jnp.zeros(lanes, jnp.int32))
    found = jax.lax.fori_loop(0, _used(block.alive), look, start)
    return found._replace(number=jnp.minimum(found.number, MAX_PAIRS))


def _pop(flags: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Take the first slot whose flag is set: remaining flags, slot (...), whether there was one."""
    slot = jnp.argmax(flags, axis=0).astype(jnp.int32)
    number = _column(jnp.arange(flags.shape[0], dtype=jnp.int32), flags)
    return flags & (number != slot), slot, jnp.any(flags, axis=0)


def _end_of(entries: jax.Array, count: jax.Array) -> jax.Array:
    """Where the next entry of a list belongs, (K, ...) bool."""
    return _column(jnp.arange(entries.shape[0], dtype=jnp.int32), entries) == count


def flagged(flags: jax.Array, size: int) -> tuple[jax.Array, jax.Array]:
    """List the slots whose flag is set, in order; those beyond the end are left out.

    Args:
      flags: (N, ...) bool.
      size: length of the list, K.

    Returns:
      (slots (K, ...) int32, count (...) int32).
    """
    lanes = flags.shape[1:]

    def more(carry: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
        return jnp.any(carry[0])

    def append(carry: tuple[jax.Array, jax.Array, jax.Array]) -> Any:
        flags, slots, count = carry
        flags, slot, found = _pop(flags)
        slots = jnp.where(found & _end_of(slots, count), slot, slots)
        return flags, slots, count + found

    start = (flags, jnp.zeros((size, *lanes), jnp.int32), jnp.zeros(lanes, jnp.int32))
    _, slots, count = jax.lax.while_loop(more, append, start)
    return slots, jnp.minimum(count, size)
