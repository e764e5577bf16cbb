"""The forms of block slots: a tuple of single Blocks, or all of them stacked in one.

Outside of a step, stacked slots are the last axis, behind the lanes of a batch, so that users can
index and map over lanes. Inside they come first, so that the leaves of a lane broadcast against all
of its blocks, and so that loops over lanes are the innermost.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce

import jax
import jax.numpy as jnp

from jaxsim.pytrees import Tree
from jaxsim.worlds.cartpole3d.types import UNROLLED, Scalar, Sphere, State


def are_stacked(blocks: Sequence[Sphere], lane: Scalar) -> bool:
    """Whether the slots are stacked; `lane` is any leaf without slots, such as the cart's x."""
    return len(blocks) == 1 and jnp.ndim(blocks[0].alive) > jnp.ndim(lane)


def stack(blocks: Sequence[Sphere], lane: Scalar) -> Sphere:
    """One Sphere whose leaves are (N, ...), from either form."""
    if are_stacked(blocks, lane):
        return blocks[0]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *blocks)


def arrange(block: Sphere) -> tuple[Sphere, ...]:
    """The form of N slots in a state, from leaves (N, ...)."""
    number = block.alive.shape[0]
    if number > UNROLLED:
        return (block,)
    return tuple(jax.tree.map(lambda leaf, i=i: leaf[i], block) for i in range(number))


def over(reducer: Callable[..., jax.Array], leaf: jax.Array, lane: Scalar) -> jax.Array:
    """Reduce the slots of a leaf of one Sphere, if it has any."""
    return reducer(leaf, axis=0) if jnp.ndim(leaf) > jnp.ndim(lane) else leaf


def inward(state: State) -> State:
    """Move stacked slots in front of the lanes, for the duration of a step."""
    return _moved(state, -1, 0)


def outward(state: State) -> State:
    """Move stacked slots behind the lanes again."""
    return _moved(state, 0, -1)


def _moved(state: State, source: int, target: int) -> State:
    if not are_stacked(state.blocks, state.step):
        return state
    lane = jnp.ndim(state.step)
    move = partial(jnp.moveaxis, source=source, destination=target)
    late = jax.tree.map(lambda leaf: leaf if jnp.ndim(leaf) == lane else move(leaf), state.late)
    return replace(state, blocks=jax.tree.map(move, state.blocks), late=late)


def finiteness(state: State) -> Tree:
    """Input for `all_finite` that stands for the blocks.

    Args:
      state: with slots in front of the lanes, or single ones.

    Returns:
      Single blocks unchanged; for stacked ones (...), NaN if one of their numbers is not finite and
      zero otherwise. (One sum over slots for each leaf would take longer.)
    """
    if not are_stacked(state.blocks, state.step):
        return state.blocks
    zeros = reduce(jnp.add, (0.0 * leaf for leaf in jax.tree.leaves(state.blocks) if _real(leaf)))
    return jnp.where(jnp.any(zeros != 0.0, axis=0), jnp.nan, 0.0)


def late_finiteness(state: State) -> Tree:
    """Input for `all_finite` that stands for the late readings, (...); see `finiteness`."""
    leaves = [leaf for leaf in jax.tree.leaves(state.late) if _real(leaf)]
    return sum(over(jnp.sum, 0.0 * leaf, state.step) for leaf in leaves)


def _real(leaf: jax.Array) -> bool:
    return bool(jnp.issubdtype(leaf.dtype, jnp.floating))


def count(state: State) -> jax.Array:
    """Number of blocks, (...) int32."""
    numbers = (over(jnp.sum, b.alive.astype(jnp.int32), state.pose.x) for b in state.blocks)
    return jnp.asarray(sum(numbers), jnp.int32)
