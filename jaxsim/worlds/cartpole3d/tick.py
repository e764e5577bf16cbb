"""One physics tick, in a cheap and a full version, for one lane or a batch of lanes.

The cheap version knows free motion and walls. A lane for which anything else may touch takes the
full version. In a batch those lanes are few: they are packed into small groups, so that the cost
of contacts follows the number of contacts. Each lane's result is the same in any company.
"""

from functools import partial

import jax
import jax.numpy as jnp

from jaxsim.backend import materialise, opaque_one
from jaxsim.worlds.cartpole3d import contacts, dynamics
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d.types import (
    Block,
    Params,
    Pose,
    State,
    Vector,
    Velocity,
)

GROUP = 32  # lanes that take the full version together; a multiple of the SIMD width

Moving = tuple[Pose, Velocity, tuple[Block, ...]]


def tick(params: Params, moving: Moving, force: Vector, active: jax.Array) -> Moving:
    """Advance by 0.02 s.

    Args:
      params: physics.
      moving: pose, velocities and blocks; leaves of shape () or (L,), all alike.
      force: N on the cart, world frame, z ignored.
      active: () or (L,) bool; lanes where it is False need not be right, they are not used.

    Returns:
      The same structure after the tick.
    """
    after, touching = _cheap(params, moving, force)
    touching = touching & active
    if jnp.ndim(touching) == 0:
        return jax.lax.cond(touching, lambda: _full(params, moving, force, touching), lambda: after)
    return _full_where(params, moving, force, touching, after)


def advance(params: Params, state: State, force: Vector, active: jax.Array) -> State:
    """Advance a state by one tick; what was the pose becomes what is reported.

    Args:
      params: physics.
      state: leaves of shape () or (L,).
      force: N on the cart, world frame.
      active: as for `tick`.
    """
    moving = (state.pose, state.velocity, state.blocks)
    pose, velocity, blocks = tick(params, moving, force, active)
    return State(pose, state.pose, velocity, blocks, state.push, state.step + 1, state.done)


def _free_motion(
    params: Params, moving: Moving, force: Vector, one: jax.Array
) -> tuple[dynamics.Bodies, geo.Rotation, Velocity, list[Vector]]:
    """Velocities after the free motion, with what both versions need besides."""
    pose, velocity, blocks = moving
    body = dynamics.bodies(params)
    r = materialise(geo.rotation(pose.qx, pose.qy, pose.qz, pose.qw), one)
    velocity = dynamics.accelerate(params, body, pose, r, velocity, force)
    speeds = [dynamics.accelerate_block(params, block) for block in blocks]
    return body, r, materialise(velocity, one), materialise(speeds, one)


def _cheap(params: Params, moving: Moving, force: Vector) -> tuple[Moving, jax.Array]:
    """Tick with walls only, and whether that may be wrong."""
    pose, _, blocks = moving
    one = opaque_one(params.gravity)
    _, r, velocity, speeds = _free_motion(params, moving, force, one)
    speeds = [
        contacts.bounce_off_walls(params, block, v) for block, v in zip(blocks, speeds, strict=True)
    ]
    world = geo.yawed(pose.cos, pose.sin, r)
    touching = contacts.may_touch(params, pose, world, blocks, one)
    return _finish(pose, blocks, velocity, speeds), touching


def _full(params: Params, moving: Moving, force: Vector, needed: jax.Array) -> Moving:
    """Tick with every contact."""
    pose, _, blocks = moving
    one = opaque_one(params.gravity)
    body, r, velocity, speeds = _free_motion(params, moving, force, one)
    speeds, velocity = contacts.resolve(params, body, pose, r, blocks, speeds, velocity, needed)
    return _finish(pose, blocks, velocity, speeds)


def _finish(
    pose: Pose, blocks: tuple[Block, ...], velocity: Velocity, speeds: list[Vector]
) -> Moving:
    """Clamp the velocities and move everything with them; empty slots rest."""
    velocity, speeds = contacts.clamp_all(velocity, speeds)
    speeds = [
        Vector(*(jnp.where(block.alive, c, 0.0) for c in v))
        for block, v in zip(blocks, speeds, strict=True)
    ]
    moved = tuple(dynamics.move_block(b, v) for b, v in zip(blocks, speeds, strict=True))
    return dynamics.move(pose, velocity), velocity, moved


def _full_where(
    params: Params, moving: Moving, force: Vector, touching: jax.Array, after: Moving
) -> Moving:
    """Replace the lanes of `after` that may touch something by their full tick.

    Groups of up to `GROUP` such lanes are gathered, advanced and scattered back until none is
    left. Slots of a group without a lane point past the end: gathers clamp, scatters drop.
    """
    lanes = touching.shape[0]
    size = min(GROUP, lanes)
    params = jax.tree.map(lambda p: jnp.broadcast_to(p, (lanes,)), params)

    def take(leaf: jax.Array, chosen: jax.Array) -> jax.Array:
        return leaf.at[chosen].get(mode="clip")

    def replace_group(carry: tuple[jax.Array, Moving]) -> tuple[jax.Array, Moving]:
        pending, result = carry
        chosen = jnp.nonzero(pending, size=size, fill_value=lanes)[0]
        group = jax.tree.map(partial(take, chosen=chosen), (params, moving, force))
        full = _full(group[0], group[1], group[2], chosen < lanes)

        def put(old: jax.Array, new: jax.Array) -> jax.Array:
            return old.at[chosen].set(new, mode="drop", unique_indices=True)

        return put(pending, jnp.zeros(size, bool)), jax.tree.map(put, result, full)

    def unfinished(carry: tuple[jax.Array, Moving]) -> jax.Array:
        return jnp.any(carry[0])

    return jax.lax.while_loop(unfinished, replace_group, (touching, after))[1]
