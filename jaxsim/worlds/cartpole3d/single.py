"""A tick in which at most one contact is of more than a block and its walls.

Such contacts are most that there are. A contact that shares no body with another asks for its
impulse once: the first pass of the iteration in `solver` is also the last.
"""

from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.backend import mask, materialise
from jaxsim.worlds.cartpole3d import contacts
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d import rows as rows_of
from jaxsim.worlds.cartpole3d.solver import applied
from jaxsim.worlds.cartpole3d.types import Block, Scalar, Vector, Velocity


class Contact(NamedTuple):
    """One contact of each lane."""

    active: jax.Array  # bool, whether there is one
    normal: Vector  # towards the first block, world
    impulse: Scalar  # N s
    kick: Sequence[Scalar] | None  # change of cart and pole by a unit impulse


def resolve(
    s: rows_of.Structure,
    blocks: Sequence[Block],
    free: Sequence[Vector],
    bounced: Sequence[Vector],
    velocity: Velocity,
    leaving: bool,
) -> tuple[list[Vector], Velocity, jax.Array]:
    """Velocities after the contacts of one tick.

    Args:
      s: what rows know of cart and pole.
      blocks: single ones, at the start of the tick.
      free: their velocities after the free motion, m/s.
      bounced: the same after the walls.
      velocity: of cart and pole after the free motion.
      leaving: as for `contacts.bounce_off_walls`.

    Returns:
      Velocities of blocks and of cart and pole, and () bool for which lanes they are right: where
      only one contact is of more than a block and its walls, its blocks are at no wall, and no
      block is on a line.
    """
    params, one = s.params, s.one
    unsure = contacts.beyond_planes(params, s.pose, s.world, blocks, leaving)
    for block in blocks:
        if block.rail is not None:
            unsure = unsure | (block.alive & block.rail.holds)
    near = [contacts.near_structure(params, s.pose, s.world, block) for block in blocks]
    sides = [[mask(flags[side], one) for flags in near] for side in range(2)]
    g = rows_of.generalized(velocity, s.local)
    found: list[tuple[Contact, list[tuple[jax.Array, int, float]]]] = []
    for chosen, build in zip(sides, (rows_of.cart_rows, rows_of.pole_rows), strict=True):
        unsure = unsure | _several(chosen)
        block, v = _choose(chosen, blocks, free)
        row = build(s, block).row
        touching = [(flag, number, 1.0) for number, flag in enumerate(chosen)]
        found.append((_contact(s, row, geo.dot(_vector(row.normal), v), 1, g), touching))
    pairs = [(i, j) for i in range(len(blocks)) for j in range(i + 1, len(blocks))]
    if pairs:
        met = [mask(_meet(params, blocks[i], blocks[j]), one) for i, j in pairs]
        unsure = unsure | _several(met)
        a, va = _choose(met, [blocks[i] for i, _ in pairs], [free[i] for i, _ in pairs])
        b, vb = _choose(met, [blocks[j] for _, j in pairs], [free[j] for _, j in pairs])
        row = rows_of.pair_rows(params, a, b)
        contact = _contact(s, row, geo.dot(_vector(row.normal), geo.sub(va, vb)), 2, None)
        touching = [
            (flag, number, sign)
            for flag, pair in zip(met, pairs, strict=True)
            for number, sign in zip(pair, (1.0, -1.0), strict=True)
        ]
        found.append((contact, touching))
    unsure = unsure | _several([contact.active for contact, _ in found])
    speeds = list(bounced)
    for contact, touching in found:
        step = geo.scale(contact.normal, contact.impulse / params.block_mass)
        for flag, number, sign in touching:
            hit = flag & contact.active
            unsure = unsure | (hit & contacts.at_wall(params, blocks[number].p))
            pushed = geo.add(speeds[number], geo.scale(step, sign))
            speeds[number] = Vector(
                *(jnp.where(hit, p, v) for p, v in zip(pushed, speeds[number], strict=True))
            )
        if contact.kick is not None:
            velocity = applied(velocity, s.local, [k * contact.impulse for k in contact.kick])
    return speeds, velocity, ~unsure


def _vector(components: Any) -> Vector:
    return Vector(*(components[i] for i in range(3)))


def _meet(params: Any, a: Block, b: Block) -> jax.Array:
    d = geo.sub(a.p, b.p)
    return a.alive & b.alive & (geo.dot(d, d) <= contacts.pair_reach(params))


def _several(flags: Sequence[jax.Array]) -> jax.Array:
    """Whether more than one flag is set."""
    return reduce(jnp.add, (flag.astype(jnp.int32) for flag in flags)) > 1


def _choose(
    flags: Sequence[jax.Array], blocks: Sequence[Block], speeds: Sequence[Vector]
) -> tuple[Block, Vector]:
    """The block whose flag is set, and its velocity; if none is, the last, which is not alive."""

    def pick(leaves: Sequence[Any]) -> Any:
        picked = leaves[-1]
        for flag, leaf in zip(flags[:-1], leaves[:-1], strict=True):
            picked = jnp.where(flag, leaf, picked)
        return picked

    p = Vector(*(pick(axis) for axis in zip(*(block.p for block in blocks), strict=True)))
    v = Vector(*(pick(axis) for axis in zip(*speeds, strict=True)))
    return Block(p, v, reduce(jnp.logical_or, flags)), v


def _contact(
    s: rows_of.Structure, row: rows_of.Row, speed: Scalar, bodies: int, g: jax.Array | None
) -> Contact:
    """The impulse that one contact asks for.

    Args:
      s: what rows know of cart and pole.
      row: the contact.
      speed: relative velocity by way of the blocks, m/s.
      bodies: number of blocks that it moves.
      g: velocities of cart and pole, if it moves these.
    """
    softness: Any = bodies / s.params.block_mass
    kick = None
    if g is not None:
        kick = [row.kick[i] for i in range(6)]
        speed = speed + sum(row.read[i] * g[i] for i in range(6))
        softness = softness + sum(row.read[i] * kick[i] for i in range(6))
    # Nothing moves two bodies that are both fixed.
    active = mask(row.active & (softness > 0), s.one)
    wanted = contacts.separating_speed(speed, row.gap, row.restitution)
    impulse = jnp.maximum(wanted / jnp.where(active, softness, 1.0), 0.0)
    impulse = jnp.where(active, impulse, 0.0)
    return Contact(active, *materialise((_vector(row.normal), impulse, kick), s.one))
