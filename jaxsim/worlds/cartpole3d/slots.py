"""The forms of block slots: a tuple of single Blocks, or all of them stacked in one.

Outside of a step, stacked slots are the last axis, behind the lanes of a batch, as everyone expects
who indexes or maps over lanes. Inside they come first, so that what belongs to a lane broadcasts
against all of its blocks, and so that loops over lanes are the innermost.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp

from jaxsim.worlds.cartpole3d.types import UNROLLED, Block, Scalar, State


def are_stacked(blocks: Sequence[Block], lane: Scalar) -> bool:
    """Whether the slots are stacked; `lane` is any leaf without slots, such as the cart's x."""
    return len(blocks) == 1 and jnp.ndim(blocks[0].alive) > jnp.ndim(lane)


def stack(blocks: Sequence[Block], lane: Scalar) -> Block:
    """One Block whose leaves are (N, ...), from either form."""
    if are_stacked(blocks, lane):
        return blocks[0]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *blocks)


def arrange(block: Block) -> tuple[Block, ...]:
    """The form in which a state keeps N slots, from leaves (N, ...)."""
    number = block.alive.shape[0]
    if number > UNROLLED:
        return (block,)
    return tuple(jax.tree.map(lambda leaf, i=i: leaf[i], block) for i in range(number))


def over(reduce: Callable[..., jax.Array], leaf: jax.Array, lane: Scalar) -> jax.Array:
    """Reduce the slots of a leaf of one Block, if it has any."""
    return reduce(leaf, axis=0) if jnp.ndim(leaf) > jnp.ndim(lane) else leaf


def inward(state: State) -> State:
    """Move stacked slots in front of the lanes, for the length of a step."""
    return _moved(state, -1, 0)


def outward(state: State) -> State:
    """Move stacked slots behind the lanes again."""
    return _moved(state, 0, -1)


def _moved(state: State, source: int, target: int) -> State:
    if not are_stacked(state.blocks, state.step):
        return state
    move = partial(jnp.moveaxis, source=source, destination=target)
    return replace(state, blocks=jax.tree.map(move, state.blocks))


def count(state: State) -> jax.Array:
    """Number of blocks that are there, (...) int32."""
    numbers = (over(jnp.sum, b.alive.astype(jnp.int32), state.pose.x) for b in state.blocks)
    return jnp.asarray(sum(numbers), jnp.int32)


def used(state: State) -> jax.Array:
    """Number of slots up to the last one with a block, (...) int32."""
    blocks, lane = state.blocks, state.pose.x
    if are_stacked(blocks, lane):
        shape = (-1,) + (1,) * jnp.ndim(lane)
        places = jnp.arange(1, blocks[0].alive.shape[0] + 1, dtype=jnp.int32).reshape(shape)
        return jnp.max(jnp.where(blocks[0].alive, places, 0), axis=0)
    last = jnp.zeros_like(lane, jnp.int32)
    for place, block in enumerate(blocks, 1):
        last = jnp.where(block.alive, place, last)
    return last


def first(blocks: tuple[Block, ...], number: int) -> tuple[Block, ...]:
    """The first slots of a state outside of a step."""
    if len(blocks) > 1:
        return blocks[:number]
    if number == 1:
        return blocks
    return (jax.tree.map(lambda leaf: leaf[..., :number], blocks[0]),)


def put_first(part: tuple[Block, ...], whole: tuple[Block, ...]) -> tuple[Block, ...]:
    """Put first slots, changed, back in front of the others."""
    if len(whole) > 1:
        return (*part, *whole[len(part) :])

    def joined(a: jax.Array, b: jax.Array) -> jax.Array:
        return jnp.concatenate([a, b[..., a.shape[-1] :]], axis=-1) if a.ndim > 1 else a

    return (jax.tree.map(joined, part[0], whole[0]),)
