"""Blocks that appear while an episode runs.

A block appears every `spawn_period` ticks, before the tick, either anywhere in the room or at rest
where the cart has been heading. The world needs a slot for each: see `needed_slots`.
"""

from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp

from jaxsim import rng
from jaxsim.worlds.cartpole3d import dynamics
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d.blocks import placement, slots
from jaxsim.worlds.cartpole3d.types import (
    Params,
    Rail,
    Scalar,
    Sphere,
    State,
    Supply,
    Vector,
)

REACH = 10.0  # m, blocks ahead appear at up to this distance from the world's origin
AHEAD_HEIGHT = 1.0  # m
AHEAD_CLEARANCE = 0.75  # m, horizontally, from the cart's start, the origin and every block
AHEAD_LIMIT = 4.5  # m, largest |x| and |y|
AHEAD_DRAWS = 101  # distances tried; then no block appears

_KEY = 1  # counter of the key of spawning, folded into that of the tick
_SLOT_SPEED, _SLOT_PLACE, _SLOT_DISTANCE = 0, 6, 6 + 3 * placement.REDRAWS


def needed_slots(at_start: int, period: int, max_steps: int) -> int:
    """Most blocks that an episode can hold; the hidden tick counts."""
    return at_start + ((max_steps + 1) // period if period else 0)


def supply(params: Params, key: rng.Words, state: State) -> State:
    """Add a block in lanes where one is due before the next tick.

    Args:
      params: physics.
      key: counter key of this tick.
      state: with stacked or single slots; one is free.
    """
    period = jnp.round(params.spawn_period).astype(jnp.int32)
    # The hidden tick, from step -1, is the first.
    due = (period > 0) & ((state.step + 2) % jnp.maximum(period, 1) == 0) & ~state.done

    def appear() -> tuple[Vector, Vector, jax.Array]:
        return draw(params, rng.fold(key, _KEY), state)

    def nothing() -> tuple[Vector, Vector, jax.Array]:
        return jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), jax.eval_shape(appear))

    p, v, is_free = jax.lax.cond(jnp.any(due), appear, nothing)
    return add_block(state, p, v, due, is_free)


def draw(params: Params, k: rng.Words, state: State) -> tuple[Vector, Vector, jax.Array]:
    """Draw position and velocity of the next block, and whether there is room for it."""
    dtype = jnp.result_type(state.pose.x)
    base = _supply_of(state).base
    v = placement.signed(k, _SLOT_SPEED, params.spawn_speed_min, params.spawn_speed_max, dtype)
    anywhere = placement.clear_of(k, _SLOT_PLACE, base.x, base.y, dtype)
    is_ahead = jnp.asarray(params.spawn_ahead) > 0
    ahead, is_free, _ = place_ahead(
        state, lambda attempt: rng.uniform(k, _SLOT_DISTANCE + attempt, dtype=dtype), is_ahead
    )
    p = Vector(*(jnp.where(is_ahead, a, b) for a, b in zip(ahead, anywhere, strict=True)))
    return p, v, is_free | ~is_ahead


def place_ahead(
    state: State, share: Callable[[jax.Array | int], jax.Array], needed: jax.Array | bool = True
) -> tuple[Vector, jax.Array, jax.Array]:
    """Find a position in the direction that the cart has been heading.

    Args:
      state: before the block appears.
      share: attempt, from 0 -> number in [0, 1), share of the largest distance.
      needed: lanes where it is False are not waited for.

    Returns:
      (position, whether it is free, numbers drawn). None is free for a cart that has not moved.
    """
    record = _supply_of(state)
    size = dynamics.norm(record.heading)
    moved = size > 0
    ahead = geo.scale(record.heading, 1 / jnp.where(moved, size, 1.0))

    def place(attempt: jax.Array | int) -> Vector:
        p = geo.scale(ahead, REACH * share(attempt))
        return Vector(p.x, p.y, p.z + AHEAD_HEIGHT)

    def free(p: Vector) -> jax.Array:
        origin = jnp.zeros_like(p.x)
        clear = _apart(p, record.base.x, record.base.y) & _apart(p, origin, origin)
        for block in state.blocks:
            apart = ~block.alive | _apart(p, block.p.x, block.p.y)
            clear = clear & slots.over(jnp.all, apart, p.x)
        return clear & (jnp.maximum(jnp.abs(p.x), jnp.abs(p.y)) <= AHEAD_LIMIT)

    p, draws = placement.redrawn(place, lambda p: free(p) | jnp.logical_not(needed), AHEAD_DRAWS)
    return p, moved & free(p), draws


def _apart(p: Vector, x: Scalar, y: Scalar) -> jax.Array:
    return jnp.asarray((p.x - x) ** 2 + (p.y - y) ** 2 >= AHEAD_CLEARANCE**2)


def add_block(
    state: State, p: Vector, v: Vector, due: jax.Array, is_free: jax.Array | bool = True
) -> State:
    """Put a block into the next slot of the lanes where one is `due` and its place `is_free`.

    Where one is due, the cart's heading is reset, so that the next block follows the motion from
    here on.
    """
    mask = due & is_free
    if slots.are_stacked(state.blocks, state.pose.x):
        blocks: tuple[Sphere, ...] = (_put(state.blocks[0], p, v, mask, slots.count(state)),)
    else:
        number = slots.count(state)
        blocks = tuple(_choose(b, p, v, mask & (number == i)) for i, b in enumerate(state.blocks))
    record = _supply_of(state)
    heading = Vector(*(jnp.where(due, 0.0, c) for c in record.heading))
    return replace(state, blocks=blocks, supply=Supply(record.base, heading))


def _put(block: Sphere, p: Vector, v: Vector, mask: jax.Array, slot: jax.Array) -> Sphere:
    """Write one slot of stacked blocks in the lanes of a mask."""
    slot = jnp.where(mask, slot, block.alive.shape[0])
    place = (slot, jnp.arange(slot.shape[0])) if slot.ndim else (slot,)

    def set_to(leaf: Scalar, value: Scalar) -> jax.Array:
        return jnp.asarray(leaf).at[place].set(value, mode="drop", unique_indices=True)

    rail = None if block.rail is None else Rail(*(set_to(c, 0.0) for c in _parts(block.rail)))
    new_p, new_v = (Vector(*map(set_to, old, new)) for old, new in ((block.p, p), (block.v, v)))
    return Sphere(new_p, new_v, set_to(block.alive, True), rail)


def _parts(rail: Rail) -> list[Scalar]:
    return [rail.x, rail.y, rail.lag, rail.drop]


def _choose(block: Sphere, p: Vector, v: Vector, mask: jax.Array) -> Sphere:
    """Replace a block by a new one in the lanes of a mask."""

    def choose(new: Vector, old: Vector) -> Vector:
        return Vector(*(jnp.where(mask, a, b) for a, b in zip(new, old, strict=True)))

    rail = block.rail
    if rail is not None:
        rail = Rail(*(jnp.where(mask, 0.0, c) for c in _parts(rail)))
    return Sphere(choose(p, block.p), choose(v, block.v), block.alive | mask, rail)


def remember(state: State) -> State:
    """Add the cart velocity that was just reported to the heading."""
    record, old, v = _supply_of(state), state.reported, state.velocity
    shift = geo.yaw(old.cos, old.sin, Vector(v.vx, v.vy, 0.0 * v.vx))
    return replace(state, supply=Supply(record.base, geo.add(record.heading, shift)))


def _supply_of(state: State) -> Supply:
    assert state.supply is not None
    return state.supply
