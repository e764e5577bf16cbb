"""Computation in groups of lanes: of all lanes in equal parts, or of the few that need it."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import jax
import jax.numpy as jnp

from jaxsim.backend import opaque_one
from jaxsim.pytrees import Tree

T = TypeVar("T")

PART = 64
"""Lanes of a part with stacked blocks; loops of other lengths may round differently."""


def replaced(
    compute: Callable[..., T], size: int, pending: jax.Array, arguments: Tree, result: T
) -> T:
    """Replace some lanes of a result by `compute` of their arguments.

    Groups of up to `size` lanes are gathered, computed and scattered back until none is pending.
    The padding of a group has indices past the end: gathers clamp, scatters drop.

    Args:
      compute: (*arguments, (size,) bool, False for padding) -> result, leaves (..., size).
      size: lanes of a group.
      pending: (L,) bool, lanes to replace.
      arguments: tree of leaves (..., L), or () if equal for all lanes.
      result: tree of leaves (..., L).
    """
    lanes = pending.shape[0]
    size = min(size, lanes)

    def wide(leaf: jax.Array) -> jax.Array:
        return jnp.asarray(leaf) if jnp.ndim(leaf) else jnp.broadcast_to(leaf, (lanes,))

    arguments = jax.tree.map(wide, arguments)

    def take(leaf: jax.Array, chosen: jax.Array) -> jax.Array:
        return leaf.at[..., chosen].get(mode="clip")

    def group(carry: tuple[jax.Array, T]) -> tuple[jax.Array, T]:
        pending, result = carry
        chosen = jnp.nonzero(pending, size=size, fill_value=lanes)[0]
        part = compute(*jax.tree.map(partial(take, chosen=chosen), arguments), chosen < lanes)

        def put(old: jax.Array, new: jax.Array) -> jax.Array:
            return old.at[..., chosen].set(new, mode="drop", unique_indices=True)

        return put(pending, jnp.zeros(size, bool)), jax.tree.map(put, result, part)

    return jax.lax.while_loop(lambda carry: jnp.any(carry[0]), group, (pending, result))[1]


def in_parts(compute: Callable[..., T], size: int, arguments: Tree, *, apart: bool = False) -> T:
    """Compute equal parts of the lanes, one part after the other.

    A part is the same program for any number of lanes, so a lane's numbers are rounded alike.

    Args:
      compute: (*arguments) -> result, leaves (..., size).
      size: lanes of a part; if the lanes are not a multiple of it, they are one part.
      arguments: leaves (..., L), or () if equal for all lanes; the last is (L,).
      apart: whether to isolate a single part from the code around it, with which XLA would fuse it
        and may round differently. This copies all arguments and results.

    Returns:
      As `compute`, leaves (..., L).
    """
    lanes = arguments[-1].shape[0]
    if lanes % size or (lanes == size and not apart):
        return compute(*arguments)
    parts = lanes // size
    leaves, tree = jax.tree.flatten(arguments)
    varied = [jnp.ndim(leaf) > 0 for leaf in leaves]

    room = max(parts, 2)  # with one part, XLA knows that the loop has one pass

    def split(leaf: jax.Array) -> jax.Array:
        split = jnp.moveaxis(leaf.reshape(*leaf.shape[:-1], parts, size), -2, 0)
        return split if parts == room else jnp.concatenate([split] * room)

    def joined(leaf: jax.Array) -> jax.Array:
        leaf = jnp.moveaxis(leaf[:parts], 0, -2)
        return leaf.reshape(*leaf.shape[:-2], lanes)

    each = [split(leaf) if v else leaf for v, leaf in zip(varied, leaves, strict=True)]

    def part(index: jax.Array | int) -> T:
        local = [leaf[index] if v else leaf for v, leaf in zip(varied, each, strict=True)]
        return compute(*jax.tree.unflatten(tree, local))

    def put(index: jax.Array, result: T) -> T:
        return jax.tree.map(lambda whole, local: whole.at[index].set(local), result, part(index))

    empty = jax.tree.map(
        lambda leaf: jnp.zeros((room, *leaf.shape), leaf.dtype), jax.eval_shape(part, 0)
    )
    number = jnp.asarray(arguments[-1]).reshape(-1)[0].astype(jnp.float32)
    hidden = opaque_one(number).astype(jnp.int32) * parts
    return jax.tree.map(joined, jax.lax.fori_loop(0, hidden, put, empty))
