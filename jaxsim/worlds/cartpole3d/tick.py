"""One physics tick, in a cheap and a full version, for one lane or a batch of lanes.

The cheap version has free motion and walls. A lane with any other possible contact takes the full
version. In a batch these lanes are few: they are packed into small groups, so the cost of contacts
follows the number of contacts. A lane's result does not depend on the rest of the batch.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim import rng
from jaxsim.backend import mask, materialise, on_cpu, opaque_one
from jaxsim.pytrees import Leaf
from jaxsim.worlds.cartpole3d import dynamics, grouping, lines
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d.blocks import slots, spawn
from jaxsim.worlds.cartpole3d.contact import broadphase, crowd, single, solver
from jaxsim.worlds.cartpole3d.contact import rows as rows_of
from jaxsim.worlds.cartpole3d.dynamics import Forces, FreeMotion, Moving
from jaxsim.worlds.cartpole3d.terms import repairs, wind
from jaxsim.worlds.cartpole3d.terms.attraction import attraction
from jaxsim.worlds.cartpole3d.types import (
    Config,
    Params,
    Sphere,
    State,
    Vector,
)

GROUP = 32  # lanes of a group in the full version; a multiple of the SIMD width


class Moved(NamedTuple):
    """Result of a tick."""

    moving: Moving
    right: jax.Array  # bool, mask of the active lanes whose result is right
    needs: Leaf  # int32, the effort that may be right for the others


Move = Callable[[Params, Moving, Forces, jax.Array, bool], Moved]
"""Function of (params, moving, forces, active, leaving) that advances all bodies by one tick.
`leaving` says whether blocks often leave the room, see `LEAVE`."""

FREE, SINGLE, WALLED, EVERY = range(4)
"""Efforts of a tick, by the contacts that it resolves. FREE: blocks at walls that are planes.
SINGLE: also one other contact. WALLED: also one block past a face of the room, and cart or pole at
a wall. EVERY: all contacts."""

LEAVE = frozenset({"attraction", "bounce", "lines", "wind"})
"""Terms that can drive blocks out of the room: forces push them out, lines lead out, and walls make
them so fast that they pass through. Without these terms the test for it is not compiled, and a lane
with a leaving block takes the full tick."""


def free_tick(
    params: Params, moving: Moving, forces: Forces, active: jax.Array, leaving: bool = False
) -> Moved:
    """Advance by 0.02 s with contacts of blocks and walls only; see `Move`.

    It is not right where a velocity is NaN.
    """
    one = opaque_one(moving[0].x)
    free = dynamics.free_motion(params, moving, forces)
    after, meets, beyond = _cheap(params, moving, free, leaving)
    held = broadphase.held_up(params, moving[2]) | ~_are_numbers(after)
    needs = jnp.where(held, EVERY, jnp.where(beyond, WALLED, jnp.where(meets, SINGLE, FREE)))
    # Materialised once as a number that both outputs read.
    grade = materialise(jnp.where(active, needs, EVERY).astype(one.dtype), one)
    return Moved(after, grade < 0.5 * SINGLE, grade.astype(jnp.int32))


def single_tick(
    params: Params, moving: Moving, forces: Forces, active: jax.Array, leaving: bool = False
) -> Moved:
    """Advance by 0.02 s with at most one contact besides those of blocks and walls; see `Move`.

    It is not right where a velocity is NaN.
    """
    return _single(params, moving, forces, active, leaving, walls=False)


def walled_tick(
    params: Params, moving: Moving, forces: Forces, active: jax.Array, leaving: bool = False
) -> Moved:
    """Advance as `single_tick`, also with one block past a face, or cart or pole at a wall."""
    return _single(params, moving, forces, active, leaving, walls=True)


def _single(
    params: Params,
    moving: Moving,
    forces: Forces,
    active: jax.Array,
    leaving: bool,
    walls: bool,
) -> Moved:
    pose, _, blocks = moving
    one = opaque_one(pose.x)
    body, r, velocity, free = dynamics.free_motion(params, moving, forces)
    velocity, free = materialise((velocity, free), one)
    bounced = _off_walls(params, blocks, free, leaving)
    world = materialise(geo.yawed(pose.cos, pose.sin, r), one)
    s = rows_of.CartAndPole(params, body, pose, r, world, one)
    resolve = single.resolve_at_walls if walls else single.resolve
    speeds, velocity, right = resolve(s, blocks, free, bounced, velocity, active, leaving)
    after = dynamics.move_all(pose, blocks, velocity, speeds, one)
    return Moved(after, mask(active & right & _are_numbers(after), one), EVERY)


def _are_numbers(after: Moving) -> jax.Array:
    """Whether no velocity is NaN; none is infinite, since they are clamped."""
    speeds = [*vars(after[1]).values(), *(c for block in after[2] for c in block.v)]
    total = reduce(jnp.add, speeds)
    return jnp.asarray(total == total)


def full_tick(
    params: Params, moving: Moving, forces: Forces, active: jax.Array, leaving: bool = False
) -> Moved:
    """Advance by 0.02 s with all contacts; see `Move`."""
    return Moved(_full(params, moving, forces, active), active, EVERY)


def tick(
    params: Params, moving: Moving, forces: Forces, active: jax.Array, leaving: bool = False
) -> Moved:
    """Advance by 0.02 s, each lane by the cheap or the full version; see `Move`.

    Args:
      params: physics.
      moving: pose, velocities and blocks; leaves () or (L,), all of one shape.
      forces: on cart and blocks.
      active: () or (L,) bool; other lanes are not used and need not be right.
      leaving: whether blocks often leave the room.

    Returns:
      The same structure after the tick, right for all active lanes.
    """
    if slots.are_stacked(moving[2], active):
        return full_tick(params, moving, forces, active, leaving)
    free = dynamics.free_motion(params, moving, forces)
    after, meets, beyond = _cheap(params, moving, free, leaving)
    touching = mask((meets | beyond) & active, opaque_one(moving[0].x))
    if touching.ndim == 0:
        full = partial(_full, params, moving, forces, touching)
        after = jax.lax.cond(touching, full, lambda: after)
    else:
        arguments = (params, moving, forces)
        after = grouping.replaced(_full, GROUP, touching, arguments, after)
    return Moved(after, active, EVERY)


def advance(
    params: Params,
    config: Config,
    key: rng.Words,
    state: State,
    force: Vector,
    active: jax.Array,
    move: Move = tick,
    *,
    split: bool = True,
) -> tuple[State, Moved]:
    """Advance a state by one tick; the pose before it becomes the reported pose.

    Args:
      params: physics.
      config: which terms are compiled.
      key: counter key of this tick.
      state: leaves of shape () or (L,).
      force: N on the cart, world frame.
      active: as for `tick`.
      move: function that advances all bodies.
      split: whether stacked blocks on lines are computed part by part of the lanes, on a CPU.

    Returns:
      The state after the tick, and the result of `move`.
    """
    crowded = slots.are_stacked(state.blocks, active) and jnp.ndim(active)
    if split and crowded and "lines" in config.terms and on_cpu():

        def part(
            params: Params, key: rng.Words, state: State, force: Vector, active: jax.Array
        ) -> State:
            return advance(params, config, key, state, force, active, move, split=False)[0]

        arguments = [params, key, state, force, active]
        after = grouping.in_parts(part, grouping.PART, arguments, apart=True)
        return after, Moved((after.pose, after.velocity, after.blocks), active, EVERY)
    if "spawn" in config.terms:
        state = spawn.supply(params, key, state)
    if "pole_wind" in config.terms:
        state = replace(state, velocity=repairs.blown(params, state))
    blocks = state.blocks
    if "lines" in config.terms:
        blocks = tuple(lines.arrive(block, state.step < 0) for block in blocks)
    moving = (state.pose, state.velocity, blocks)
    on_blocks: list[list[Vector]] = []
    if "wind" in config.terms:
        force = geo.add(force, wind.on_cart(params, state))
        on_blocks.append(wind.on_blocks(params, state))
    if "attraction" in config.terms:
        share = rng.uniform(key, 0, dtype=jnp.dtype(config.dtype))
        on_blocks.append(attraction(params, state.reported, state.blocks, share))
    summed = [reduce(geo.add, forces) for forces in zip(*on_blocks, strict=True)] or None
    if "bounce" in config.terms:
        params = replace(
            params,
            restitution_wall=params.restitution_wall + state.extra_bounce,
            restitution_block=params.restitution_block + state.extra_bounce,
        )
    leaving = not LEAVE.isdisjoint(config.terms)
    moved = move(params, moving, (force, summed), active, leaving)
    pose, velocity, blocks = moved.moving
    if "closed_room" in config.terms:
        blocks = repairs.keep_inside(params, blocks)
    after = replace(
        state,
        pose=pose,
        reported=state.pose,
        velocity=velocity,
        blocks=blocks,
        step=state.step + 1,
    )
    return (spawn.remember(after) if "spawn" in config.terms else after), moved


def _off_walls(
    params: Params, blocks: Sequence[Sphere], speeds: Sequence[Vector], leaving: bool
) -> list[Vector]:
    return [
        broadphase.bounce_off_walls(params, block, v, leaving)
        for block, v in zip(blocks, speeds, strict=True)
    ]


def _cheap(
    params: Params, moving: Moving, free: FreeMotion, leaving: bool
) -> tuple[Moving, jax.Array, jax.Array]:
    """Rest of a tick with walls only; masks of `meets_another` and of `beyond_planes`."""
    pose, _, blocks = moving
    one = opaque_one(pose.x)
    _, r, velocity, speeds = free
    speeds = _off_walls(params, blocks, speeds, leaving)
    world = geo.yawed(pose.cos, pose.sin, r)
    meets = broadphase.meets_another(params, pose, world, blocks)
    beyond = broadphase.beyond_planes(params, pose, world, blocks, leaving)
    return dynamics.move_all(pose, blocks, velocity, speeds, one), meets, beyond


def _full(params: Params, moving: Moving, forces: Forces, needed: jax.Array) -> Moving:
    """Tick with all contacts."""
    pose, _, blocks = moving
    one = opaque_one(pose.x)
    body, r, velocity, speeds = dynamics.free_motion(params, moving, forces)
    velocity, speeds = materialise((velocity, speeds), one)
    resolve = crowd.resolve if slots.are_stacked(blocks, pose.x) else solver.resolve
    speeds, velocity = resolve(params, body, pose, r, blocks, speeds, velocity, needed)
    return dynamics.move_all(pose, blocks, velocity, speeds, one)
