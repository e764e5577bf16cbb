"""A few lanes of a batch, gathered into small groups for work that the others do not need."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp


def replaced(
    compute: Callable[..., Any], size: int, pending: jax.Array, arguments: Any, result: Any
) -> Any:
    """Replace some lanes of a result by what `compute` makes of their arguments.

    Groups of up to `size` lanes are gathered, computed and scattered back until none is left.
    Places of a group without a lane point past the end: gathers clamp, scatters drop.

    Args:
      compute: from arguments like those here and (size,) bool, which of them are lanes; its result
        is like the one here.
      size: lanes of a group.
      pending: (L,) bool, which lanes are replaced.
      arguments: tree of leaves (..., L), or () for all lanes alike.
      result: tree of leaves (..., L).
    """
    lanes = pending.shape[0]
    size = min(size, lanes)

    def wide(leaf: Any) -> jax.Array:
        return jnp.asarray(leaf) if jnp.ndim(leaf) else jnp.broadcast_to(leaf, (lanes,))

    arguments = jax.tree.map(wide, arguments)

    def take(leaf: jax.Array, chosen: jax.Array) -> jax.Array:
        return leaf.at[..., chosen].get(mode="clip")

    def group(carry: tuple[jax.Array, Any]) -> tuple[jax.Array, Any]:
        pending, result = carry
        chosen = jnp.nonzero(pending, size=size, fill_value=lanes)[0]
        own = compute(*jax.tree.map(partial(take, chosen=chosen), arguments), chosen < lanes)

        def put(old: jax.Array, new: jax.Array) -> jax.Array:
            return old.at[..., chosen].set(new, mode="drop", unique_indices=True)

        return put(pending, jnp.zeros(size, bool)), jax.tree.map(put, result, own)

    return jax.lax.while_loop(lambda carry: jnp.any(carry[0]), group, (pending, result))[1]
