"""Ticks with at most one contact besides those of blocks with walls.

Most contacts are in such ticks. A contact that shares no body with another needs one impulse: the
first pass of the iteration in `solver` is also the last. With friction, which blocks on lines have,
it takes as many passes as there, but only over its own rows.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.backend import mask, materialise
from jaxsim.pytrees import Leaf
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d.contact import broadphase, friction
from jaxsim.worlds.cartpole3d.contact import rows as rows_of
from jaxsim.worlds.cartpole3d.contact.meeting import Meeting, without_friction
from jaxsim.worlds.cartpole3d.contact.solver import applied
from jaxsim.worlds.cartpole3d.types import Params, Sphere, Vector, Velocity


class _Case(NamedTuple):
    """A possible contact, and its slots."""

    meeting: Meeting
    flags: Sequence[jax.Array]  # bool, whether it is near, for each entry of `slots`
    slots: Sequence[tuple[int, ...]]  # of its blocks


Resolved = tuple[list[Vector], Velocity, jax.Array]
"""Velocities of blocks, velocities of cart and pole, and a mask of the lanes that are right."""


def resolve(
    s: rows_of.CartAndPole,
    blocks: Sequence[Sphere],
    free: Sequence[Vector],
    bounced: Sequence[Vector],
    velocity: Velocity,
    needed: jax.Array,
    leaving: bool,
) -> Resolved:
    """Velocities after the contacts of one tick.

    Args:
      s: cart and pole.
      blocks: single ones, at the start of the tick.
      free: their velocities after the free motion, m/s.
      bounced: the same after the walls.
      velocity: of cart and pole after the free motion.
      needed: () or (L,) bool; lanes where it is False are not waited for.
      leaving: as for `broadphase.bounce_off_walls`.

    Returns:
      Velocities, right where there is at most one contact besides those of blocks with walls, and
      its blocks are at no wall.
    """
    beyond = broadphase.beyond_planes(s.params, s.pose, s.world, blocks, leaving)
    g = rows_of.generalized(velocity, s.local)
    speeds, velocity, right, _ = _resolve_one(s, blocks, free, bounced, velocity, g, needed)
    return speeds, velocity, right & ~beyond


def resolve_at_walls(
    s: rows_of.CartAndPole,
    blocks: Sequence[Sphere],
    free: Sequence[Vector],
    bounced: Sequence[Vector],
    velocity: Velocity,
    needed: jax.Array,
    leaving: bool,
) -> Resolved:
    """Velocities after the contacts of one tick; see `resolve`.

    Returns:
      Velocities; also correct for one block beyond a face of the room that touches one wall, and
      where the one contact is that of cart or pole with a wall.
    """
    walled, more = _past_a_face(s, blocks, free, leaving)
    upright, several = _structure_at_wall(s)
    unsure = more | several | broadphase.held_up(s.params, blocks)
    g = rows_of.generalized(velocity, s.local)
    speeds, velocity, right, touched = _resolve_one(s, blocks, free, bounced, velocity, g, needed)
    structure_contact = without_friction(s, upright, g)
    assert structure_contact.change is not None
    velocity = applied(velocity, s.local, structure_contact.change)
    block_contact = without_friction(s, walled.meeting, g)
    for flag, (slot,) in zip(walled.flags, walled.slots, strict=True):
        speeds[slot] = _where(flag, geo.add(free[slot], block_contact.steps[0]), speeds[slot])
    return speeds, velocity, right & ~(unsure | (touched & structure_contact.active))


def _resolve_one(
    s: rows_of.CartAndPole,
    blocks: Sequence[Sphere],
    free: Sequence[Vector],
    bounced: Sequence[Vector],
    velocity: Velocity,
    g: jax.Array,
    needed: jax.Array,
) -> tuple[list[Vector], Velocity, jax.Array, jax.Array]:
    """Velocities after one contact of two blocks, or of one with cart or pole.

    Returns:
      Block velocities, cart and pole velocities, whether there was no other contact, and whether
      there was one.
    """
    cases = [*_with_structure(s, blocks, free), *_of_pairs(s, blocks, free)]
    unsure = reduce(jnp.logical_or, (_several(case.flags) for case in cases))
    meetings = [case.meeting for case in cases]
    if blocks[0].rail is None:
        contacts = [without_friction(s, meeting, g) for meeting in meetings]
    else:
        contacts = friction.with_friction(s, meetings, g, needed)
    active = [contact.active for contact in contacts]
    unsure = unsure | _several(active)
    speeds = list(bounced)
    for contact, case in zip(contacts, cases, strict=True):
        for flag, slots in zip(case.flags, case.slots, strict=True):
            hit = flag & contact.active
            for slot, step in zip(slots, contact.steps, strict=True):
                unsure = unsure | (hit & broadphase.at_wall(s.params, blocks[slot].p))
                speeds[slot] = _where(hit, geo.add(speeds[slot], step), speeds[slot])
        if contact.change is not None:
            velocity = applied(velocity, s.local, contact.change)
    return speeds, velocity, ~unsure, reduce(jnp.logical_or, active)


def _where(flag: jax.Array, yes: Vector, no: Vector) -> Vector:
    return Vector(*(jnp.where(flag, a, b) for a, b in zip(yes, no, strict=True)))


def _past_a_face(
    s: rows_of.CartAndPole, blocks: Sequence[Sphere], free: Sequence[Vector], leaving: bool
) -> tuple[_Case, jax.Array]:
    """Contact of a block past a face of the room with its wall, and whether there are more."""
    past = [broadphase.past_a_face(s.params, block, leaving) for block in blocks]
    flags = [mask(flag, s.one) for flag in past]
    block, v = _choose(flags, blocks, free)
    row, several = _only(rows_of.wall_rows(s.params, block), s.one)
    slots = [(slot,) for slot in range(len(blocks))]
    return _Case(Meeting(row, [block], [v]), flags, slots), several | _several(flags)


def _structure_at_wall(s: rows_of.CartAndPole) -> tuple[Meeting, jax.Array]:
    """Contact of cart or pole with a side wall, and whether there are more."""
    row, several = _only(rows_of.structure_rows(s), s.one)
    return Meeting(row), several


def _only(rows: rows_of.ContactRow, one: jax.Array) -> tuple[rows_of.ContactRow, jax.Array]:
    """The active row, and whether there is more than one."""
    numbers = [rows.gap, rows.restitution, rows.normal, rows.read, rows.kick]
    numbers = materialise(numbers, one)
    flags = [mask(rows.active[k], one) for k in range(rows.active.shape[0])]

    def picked(leaf: Leaf, axis: int) -> Leaf:
        """The entry of the active row, for leaves with an axis of rows."""
        if leaf is None or jnp.ndim(leaf) != rows.active.ndim + axis:
            return leaf
        parts = (jnp.where(flag, jnp.take(leaf, k, axis), 0.0) for k, flag in enumerate(flags))
        return reduce(jnp.add, parts)

    axes = (0, 0, 1, 1, 1)
    chosen = materialise([picked(n, axis) for n, axis in zip(numbers, axes, strict=True)], one)
    return rows_of.ContactRow(reduce(jnp.logical_or, flags), *chosen), _several(flags)


def _with_structure(
    s: rows_of.CartAndPole, blocks: Sequence[Sphere], free: Sequence[Vector]
) -> list[_Case]:
    """Possible contacts of a block with the cart, and of a block with the pole."""
    params = s.params
    near = [broadphase.near_structure(params, s.pose, s.world, block) for block in blocks]
    on_cart, on_pole = ([mask(flags[side], s.one) for flags in near] for side in range(2))
    slots = [(slot,) for slot in range(len(blocks))]
    (block, v), (other, w) = _choose(on_cart, blocks, free), _choose(on_pole, blocks, free)
    cart, pole = rows_of.cart_rows(s, block), rows_of.pole_rows(s, other)
    rough = params.friction_block
    return [
        _Case(
            Meeting(
                cart.row,
                [block],
                [v],
                lambda: rows_of.cart_slides(s, cart),
                rough * params.friction_cart,
            ),
            on_cart,
            slots,
        ),
        _Case(
            Meeting(
                pole.row,
                [other],
                [w],
                lambda: rows_of.pole_slides(s, pole),
                rough * params.friction_pole,
            ),
            on_pole,
            slots,
        ),
    ]


def _of_pairs(
    s: rows_of.CartAndPole, blocks: Sequence[Sphere], free: Sequence[Vector]
) -> list[_Case]:
    """Possible contact of two blocks."""
    params = s.params
    pairs = rows_of.pair_indices(len(blocks))
    if not pairs:
        return []
    flags = [mask(_meet(params, blocks[i], blocks[j]), s.one) for i, j in pairs]
    a, va = _choose(flags, [blocks[i] for i, _ in pairs], [free[i] for i, _ in pairs])
    b, vb = _choose(flags, [blocks[j] for _, j in pairs], [free[j] for _, j in pairs])
    row = rows_of.pair_rows(params, a, b)
    rough = params.friction_block * params.friction_block
    meeting = Meeting(row, [a, b], [va, vb], lambda: rows_of.pair_slides(row), rough)
    return [_Case(meeting, flags, pairs)]


def _meet(params: Params, a: Sphere, b: Sphere) -> jax.Array:
    d = geo.sub(a.p, b.p)
    return a.alive & b.alive & (geo.dot(d, d) <= broadphase.pair_reach(params))


def _several(flags: Sequence[jax.Array]) -> jax.Array:
    """Whether more than one flag is set."""
    return reduce(jnp.add, (flag.astype(jnp.int32) for flag in flags)) > 1


def _choose(
    flags: Sequence[jax.Array], blocks: Sequence[Sphere], speeds: Sequence[Vector]
) -> tuple[Sphere, Vector]:
    """The block whose flag is set, and its velocity; without one, the last block, not alive."""

    def pick(*leaves: Leaf) -> Leaf:
        picked = leaves[-1]
        for flag, leaf in zip(flags[:-1], leaves[:-1], strict=True):
            picked = jnp.where(flag, leaf, picked)
        return picked

    chosen, v = jax.tree.map(pick, *zip(blocks, speeds, strict=True))
    return replace(chosen, alive=reduce(jnp.logical_or, flags)), v
