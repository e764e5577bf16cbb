"""One physics tick, in a cheap and a full version, for one lane or a batch of lanes.

The cheap version knows free motion and walls. A lane for which anything else may touch takes the
full version. In a batch those lanes are few: they are packed into small groups, so that the cost
of contacts follows the number of contacts. Each lane's result is the same in any company.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxsim import rng
from jaxsim.backend import mask, materialise, on_cpu, opaque_one
from jaxsim.worlds.cartpole3d import (
    contacts,
    crowd,
    dynamics,
    lines,
    packing,
    repairs,
    single,
    slots,
    solver,
    spawn,
    wind,
)
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d import rows as rows_of
from jaxsim.worlds.cartpole3d.forces import attraction
from jaxsim.worlds.cartpole3d.types import (
    Block,
    Config,
    Params,
    Pose,
    State,
    Vector,
    Velocity,
)

GROUP = 32  # lanes that take the full version together; a multiple of the SIMD width

Moving = tuple[Pose, Velocity, tuple[Block, ...]]
Forces = tuple[Vector, list[Vector] | None]
"""Force on the cart (z ignored) and on each block, N, world frame; None for no forces on blocks."""


class Moved(NamedTuple):
    """What a tick has moved."""

    moving: Moving
    right: jax.Array  # bool, for which of the active lanes
    needs: Any  # int32, the effort that may be right for the others


Move = Callable[[Params, Moving, Forces, jax.Array, bool], Moved]
"""How a tick moves everything: what it makes of params, moving, forces and active. The flag says
whether blocks often leave the room, see `LEAVE`."""

FREE, SINGLE, WALLED, EVERY, LONGER = range(5)
"""What a tick knows of: blocks at walls that are planes; one other contact besides; also one block
past a face of the room, and cart or pole at a wall; everything; everything, where it takes many
passes over the contacts and a tick with few passes is tried before."""

LEAVE = frozenset({"attraction", "bounce", "lines", "wind"})
"""Terms with which blocks leave the room: forces push them out, lines lead there, and walls make
them faster than they can hold. Elsewhere the few that do leave take the full tick, and the others
are spared the question."""


def free_tick(
    params: Params, moving: Moving, forces: Forces, active: jax.Array, leaving: bool = False
) -> Moved:
    """Advance by 0.02 s as if only blocks and walls could touch; see `Move`.

    It is not right either where a velocity is no number.
    """
    one = opaque_one(moving[0].x)
    after, meets, beyond = _cheap(params, moving, forces, leaving)
    held = contacts.held_up(params, moving[2]) | ~_are_numbers(after)
    needs = jnp.where(held, EVERY, jnp.where(beyond, WALLED, jnp.where(meets, SINGLE, FREE)))
    # Computed once, as a number, of which both are read.
    grade = materialise(jnp.where(active, needs, EVERY).astype(one.dtype), one)
    return Moved(after, grade < 0.5 * SINGLE, grade.astype(jnp.int32))


def single_tick(
    params: Params, moving: Moving, forces: Forces, active: jax.Array, leaving: bool = False
) -> Moved:
    """Advance by 0.02 s as if only one contact were of more than a block and its walls.

    See `Move`. It is not right either where a velocity is no number.
    """
    return _single(params, moving, forces, active, leaving, walls=False)


def walled_tick(
    params: Params, moving: Moving, forces: Forces, active: jax.Array, leaving: bool = False
) -> Moved:
    """Advance as `single_tick` does, where walls may be more than planes to one block besides."""
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
    body, r, velocity, free = _free_motion(params, moving, forces)
    velocity, free = materialise((velocity, free), one)
    bounced = _off_walls(params, blocks, free, leaving)
    world = materialise(geo.yawed(pose.cos, pose.sin, r), one)
    s = rows_of.Structure(params, body, pose, r, world, one)
    resolve = single.resolve_at_walls if walls else single.resolve
    speeds, velocity, right = resolve(s, blocks, free, bounced, velocity, active, leaving)
    after = _finish(pose, blocks, velocity, speeds, one)
    return Moved(after, mask(active & right & _are_numbers(after), one), EVERY)


def brief_tick(
    params: Params, moving: Moving, forces: Forces, active: jax.Array, leaving: bool = False
) -> Moved:
    """Advance by 0.02 s with every contact, but few passes over them; see `Move`.

    It is not right either where a velocity is no number.
    """
    pose, _, blocks = moving
    one = opaque_one(pose.x)
    body, r, velocity, speeds = _free_motion(params, moving, forces)
    velocity, speeds = materialise((velocity, speeds), one)
    speeds, velocity, settled = solver.settle(
        params, body, pose, r, blocks, speeds, velocity, active, solver.FEW_SWEEPS
    )
    after = _finish(pose, blocks, velocity, speeds, one)
    return Moved(after, mask(active & _are_numbers(after) & settled, one), LONGER)


def _are_numbers(after: Moving) -> jax.Array:
    """Whether no velocity is NaN; none is infinite, since they are clamped."""
    speeds = [*vars(after[1]).values(), *(c for block in after[2] for c in block.v)]
    total = reduce(jnp.add, speeds)
    return jnp.asarray(total == total)


def full_tick(
    params: Params, moving: Moving, forces: Forces, active: jax.Array, leaving: bool = False
) -> Moved:
    """Advance by 0.02 s with every contact; see `Move`."""
    return Moved(_full(params, moving, forces, active), active, EVERY)


def tick(
    params: Params, moving: Moving, forces: Forces, active: jax.Array, leaving: bool = False
) -> Moved:
    """Advance by 0.02 s, each lane with what it needs; see `Move`.

    Args:
      params: physics.
      moving: pose, velocities and blocks; leaves of shape () or (L,), all alike.
      forces: on cart and blocks.
      active: () or (L,) bool; lanes where it is False need not be right, they are not used.
      leaving: whether blocks often leave the room.

    Returns:
      The same structure after the tick, right for all active lanes.
    """
    if slots.are_stacked(moving[2], active):
        return full_tick(params, moving, forces, active, leaving)
    after, meets, beyond = _cheap(params, moving, forces, leaving)
    touching = mask((meets | beyond) & active, opaque_one(moving[0].x))
    if touching.ndim == 0:
        full = partial(_full, params, moving, forces, touching)
        after = jax.lax.cond(touching, full, lambda: after)
    else:
        given = (params, moving, forces)
        after = packing.replaced(_full, GROUP, touching, given, after)
    return Moved(after, active, EVERY)


def advance(
    params: Params,
    config: Config,
    key: rng.Words,
    state: State,
    force: Vector,
    active: jax.Array,
    move: Move = tick,
) -> tuple[State, Moved]:
    """Advance a state by one tick; what was the pose becomes what is reported.

    Args:
      params: physics.
      config: which terms are compiled.
      key: counter key of this tick.
      state: leaves of shape () or (L,).
      force: N on the cart, world frame.
      active: as for `tick`.
      move: how everything moves.

    Returns:
      The state after the tick, and what `move` said of it.
    """
    crowded = slots.are_stacked(state.blocks, active) and jnp.ndim(active)
    if not (crowded and "lines" in config.terms and on_cpu()):
        return _advanced(params, config, key, state, force, active, move)

    def part(params: Params, key: rng.Words, state: State, force: Vector, active: Any) -> State:
        return _advanced(params, config, key, state, force, active, move)[0]

    after = packing.in_parts(part, packing.PART, [params, key, state, force, active], apart=True)
    return after, Moved((after.pose, after.velocity, after.blocks), active, EVERY)


def _advanced(
    params: Params,
    config: Config,
    key: rng.Words,
    state: State,
    force: Vector,
    active: jax.Array,
    move: Move,
) -> tuple[State, Moved]:
    """As `advance`, for all lanes at once."""
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


def _free_motion(
    params: Params, moving: Moving, forces: Forces
) -> tuple[dynamics.Bodies, geo.Rotation, Velocity, list[Vector]]:
    """Velocities after the free motion, with what every version needs besides."""
    pose, velocity, blocks = moving
    body = dynamics.bodies(params)
    r = geo.pole_to_cart(pose)
    velocity = dynamics.accelerate(params, body, pose, r, velocity, forces[0])
    on_blocks: Sequence[Vector | None] = forces[1] or [None] * len(blocks)
    speeds = [
        dynamics.accelerate_block(params, block, force)
        for block, force in zip(blocks, on_blocks, strict=True)
    ]
    return body, r, velocity, speeds


def _off_walls(
    params: Params, blocks: Sequence[Block], speeds: Sequence[Vector], leaving: bool
) -> list[Vector]:
    return [
        contacts.bounce_off_walls(params, block, v, leaving)
        for block, v in zip(blocks, speeds, strict=True)
    ]


def _cheap(
    params: Params, moving: Moving, forces: Forces, leaving: bool
) -> tuple[Moving, jax.Array, jax.Array]:
    """Tick with walls only; whether bodies may meet, and whether walls may be more than planes."""
    pose, _, blocks = moving
    one = opaque_one(pose.x)
    _, r, velocity, speeds = _free_motion(params, moving, forces)
    speeds = _off_walls(params, blocks, speeds, leaving)
    world = geo.yawed(pose.cos, pose.sin, r)
    meets = contacts.meets_another(params, pose, world, blocks)
    beyond = contacts.beyond_planes(params, pose, world, blocks, leaving)
    return _finish(pose, blocks, velocity, speeds, one), meets, beyond


def _full(params: Params, moving: Moving, forces: Forces, needed: jax.Array) -> Moving:
    """Tick with every contact."""
    pose, _, blocks = moving
    one = opaque_one(pose.x)
    body, r, velocity, speeds = _free_motion(params, moving, forces)
    velocity, speeds = materialise((velocity, speeds), one)
    resolve = crowd.resolve if slots.are_stacked(blocks, pose.x) else solver.resolve
    speeds, velocity = resolve(params, body, pose, r, blocks, speeds, velocity, needed)
    return _finish(pose, blocks, velocity, speeds, one)


def _finish(
    pose: Pose,
    blocks: tuple[Block, ...],
    velocity: Velocity,
    speeds: list[Vector],
    one: jax.Array,
) -> Moving:
    """Clamp the velocities and move everything with them; empty slots rest."""
    velocity, speeds = dynamics.clamp_all(velocity, blocks, speeds)
    speeds = [
        Vector(*(jnp.where(block.alive, c, 0.0) for c in v))
        for block, v in zip(blocks, speeds, strict=True)
    ]
    velocity, speeds = materialise((velocity, speeds), one)
    moved = tuple(dynamics.move_block(b, v) for b, v in zip(blocks, speeds, strict=True))
    return dynamics.move(pose, velocity, one), velocity, moved
