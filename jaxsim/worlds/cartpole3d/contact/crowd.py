"""Contacts of worlds with many blocks, for all lanes at once.

Among many blocks most contacts are isolated: a block at a wall that touches nothing else, or two
blocks that touch only one another. One pass solves these exactly, so they are resolved in closed
form. The others, contacts that share a body and those of cart and pole, fill a short list of rows.
The iteration over it is that of `solver`, written for the velocities of the rows instead of those
of the bodies, with precomputed effects of each row's impulse on every other row.

A lane with more contacts than the lists hold is resolved again, with longer lists.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.backend import mask, materialise, opaque_one, whole
from jaxsim.pytrees import Leaf, Tree
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d import grouping
from jaxsim.worlds.cartpole3d.contact import broadphase, candidates, solver
from jaxsim.worlds.cartpole3d.contact import rows as rows_of
from jaxsim.worlds.cartpole3d.contact.assembly import Prepared, prepare
from jaxsim.worlds.cartpole3d.contact.candidates import sum_of, take, total
from jaxsim.worlds.cartpole3d.dynamics import Bodies
from jaxsim.worlds.cartpole3d.geometry import Rotation
from jaxsim.worlds.cartpole3d.types import Params, Pose, Scalar, Sphere, Vector, Velocity


class Room(NamedTuple):
    """Capacity of the lists of a lane."""

    pairs: int  # pairs of touching blocks
    coupled: int  # of these, pairs that share a block with another contact
    near: int  # blocks near the cart, and near the pole
    at_walls: int  # blocks at a wall that touch something else, or that are past one
    wall_rows: int  # contacts of these blocks with walls
    rows: int | None  # rows of the iteration; None for all of the above


FEW = Room(pairs=24, coupled=10, near=2, at_walls=3, wall_rows=4, rows=10)
"""Enough for 999 of 1000 ticks with up to 205 blocks."""
MANY = Room(candidates.MAX_PAIRS, candidates.MAX_PAIRS, candidates.MAX_NEAR, 64, 64, None)
"""More contacts are left out; 15 pairs and 6 contacts with walls are the most recorded."""
GROUP = 8
"""Lanes that need longer lists are resolved in groups of this size."""


def resolve(
    params: Params,
    body: Bodies,
    pose: Pose,
    r: Rotation,
    blocks: Sequence[Sphere],
    block_velocities: Sequence[Vector],
    velocity: Velocity,
    needed: jax.Array,
) -> tuple[list[Vector], Velocity]:
    """Velocities after all contacts of one tick, of stacked blocks; see `solver.resolve`."""
    if blocks[0].rail is not None:
        # The caller computes the whole tick in parts.
        return solver.resolve(params, body, pose, r, blocks, block_velocities, velocity, needed)
    world: Tree = [params, body, pose, r, list(blocks), list(block_velocities), velocity, needed]
    if needed.shape:
        return grouping.in_parts(_with_room, grouping.PART, world)
    result = _with_room(*jax.tree.map(lambda a: jnp.asarray(a)[..., None], world))
    return jax.tree.map(lambda leaf: leaf[..., 0], result)


def _with_room(*world: Tree) -> Tree:
    *arguments, needed = world
    result, beyond = _resolved(FEW, *world)
    return grouping.replaced(_with_more_room, GROUP, beyond & needed, arguments, result)


def _with_more_room(*arguments: Tree) -> Tree:
    return _resolved(MANY, *arguments)[0]


def _resolved(
    room: Room,
    params: Params,
    body: Bodies,
    pose: Pose,
    r: Rotation,
    blocks: Sequence[Sphere],
    block_velocities: Sequence[Vector],
    velocity: Velocity,
    needed: jax.Array,
) -> tuple[tuple[list[Vector], Velocity], jax.Array]:
    """As `resolve`, and a mask of the lanes whose lists are too short, so that it is wrong."""
    one = opaque_one(params.gravity)
    world = materialise(geo.yawed(pose.cos, pose.sin, r), one)
    s = rows_of.CartAndPole(params, body, pose, r, world, one)
    moving = Moving(blocks[0], block_velocities[0], rows_of.generalized(velocity, r))
    listing = _find(room, s, moving.block)
    free, bounces = _off_walls(s, moving, listing.held)
    isolated, hits = _isolated_pairs(s, moving, listing)
    rows, beyond = _coupled_rows(room, s, moving, listing)
    impulses = _iterate(s, rows, moving.number, needed, bounces | hits)
    push = rows.normal * impulses
    pushes = [*isolated, (rows.first, push), (rows.second, -push)]
    kicks = total(jnp.swapaxes(rows.kick * impulses, 0, 1))
    after = _pushed(s, free, pushes)
    return ([after], solver.applied(velocity, r, kicks)), listing.beyond | beyond


class Moving(NamedTuple):
    """Blocks, and the velocities of all bodies after the free motion."""

    block: Sphere  # leaves (N, L)
    v: Vector  # (N, L) m/s, after the free motion
    g: jax.Array  # (6, L) see `rows.generalized`

    @property
    def number(self) -> int:
        """Number of slots, N."""
        return int(self.block.alive.shape[0])

    def at(self, slots: jax.Array, listed: jax.Array) -> tuple[Sphere, jax.Array]:
        """Blocks (K, L) of some slots, alive where listed, and their velocities (3, K, L)."""
        p, v = (Vector(*(take(jnp.asarray(c), slots) for c in a)) for a in (self.block.p, self.v))
        return Sphere(p, v, listed), jnp.stack(v)


class NearContacts(NamedTuple):
    """The possible contacts of a tick."""

    pairs: candidates.Pairs  # of blocks; (K, L)
    listed: jax.Array  # (K, L) bool, mask of the pairs
    shared: jax.Array  # (K, L) bool, whether one of its blocks touches something else
    held: jax.Array  # (N, L) bool, blocks whose contacts with walls are rows
    cart: tuple[jax.Array, jax.Array]  # slots (K, L) near the cart, and their number (L,)
    pole: tuple[jax.Array, jax.Array]
    beyond: jax.Array  # (L,) bool, whether a list is too short


def _find(room: Room, s: rows_of.CartAndPole, block: Sphere) -> NearContacts:
    """Search for contacts."""
    params, one = s.params, s.one
    cart_bit, pole_bit, wall_bit, past_bit = (1 << i for i in range(4))
    past = broadphase.past_a_face(params, block)
    near_cart, near_pole = broadphase.near_structure(params, s.pose, s.world, block)
    flags = (
        jnp.where(near_cart, cart_bit, 0)
        + jnp.where(near_pole, pole_bit, 0)
        + jnp.where(block.alive & (broadphase.at_wall(params, block.p) | past), wall_bit, 0)
        + jnp.where(block.alive & past, past_bit, 0)
    )
    flags = whole(flags, one)
    pairs = _search(room)(block, broadphase.pair_reach(params), one, room.pairs)
    listed = _within(pairs.number, room.pairs)
    # Number of contacts of each block.
    nowhere = block.alive.shape[0]
    lane = jnp.arange(listed.shape[1], dtype=jnp.int32)
    load = jax.lax.population_count(flags & (cart_bit | pole_bit | wall_bit))
    for slots in (pairs.first, pairs.second):
        load = load.at[jnp.where(listed, slots, nowhere), lane].add(1, mode="drop")
    shared = jnp.maximum(take(load, pairs.first), take(load, pairs.second)) > 1
    held = (flags & past_bit > 0) | ((flags & wall_bit > 0) & (load > 1))
    cart = candidates.flagged(flags & cart_bit > 0, room.near, one)
    pole = candidates.flagged(flags & pole_bit > 0, room.near, one)
    beyond = (pairs.number > room.pairs) | (cart[1] > room.near) | (pole[1] > room.near)
    return NearContacts(pairs, listed, mask(listed & shared, one), held, cart, pole, beyond)


def _search(room: Room) -> Callable[..., candidates.Pairs]:
    """Search for pairs: sorted if some may have to be left out."""
    return candidates.pairs_within if room is MANY else candidates.few_pairs_within


def _within(count: jax.Array, size: int) -> jax.Array:
    """Mask of the used entries of a list, (size, L) bool."""
    return candidates.ranks(size, count) < count


def _off_walls(s: rows_of.CartAndPole, moving: Moving, held: jax.Array) -> tuple[Vector, jax.Array]:
    """Velocities after walls, except of held blocks, and whether the change matters, (L,) bool."""
    bounced = broadphase.bounce_off_walls(s.params, moving.block, moving.v)
    held = held | ~moving.block.alive
    after = Vector(*(jnp.where(held, a, b) for a, b in zip(moving.v, bounced, strict=True)))
    after = materialise(after, s.one)
    changes = [a - b for a, b in zip(after, moving.v, strict=True)]
    return after, jnp.any(matters(changes), axis=0)


def matters(changes: Sequence[Scalar]) -> jax.Array:
    """Whether the largest of some changes of velocity, m/s, makes another pass necessary."""
    largest: jax.Array = reduce(jnp.maximum, map(jnp.abs, changes))
    return largest * largest > solver.RESIDUAL


Push = tuple[jax.Array, jax.Array]
"""Slots (K, L), out of range for none, and the impulses on them (3, K, L), N s."""


def _isolated_pairs(
    s: rows_of.CartAndPole, moving: Moving, listing: NearContacts
) -> tuple[list[Push], jax.Array]:
    """Pushes of isolated pairs, and whether they matter, (L,) bool."""
    pairs, isolated = listing.pairs, listing.listed & ~listing.shared
    a, va = moving.at(pairs.first, isolated)
    b, vb = moving.at(pairs.second, isolated)
    row = rows_of.pair_rows(s.params, a, b)
    rows = prepare(row, sum_of(row.normal * (va - vb)), 2 / s.params.block_mass, s.one)
    impulse = materialise(jnp.maximum(rows.target * rows.mass, 0.0), s.one)
    nowhere = moving.number
    first, second = (jnp.where(isolated, c, nowhere) for c in (pairs.first, pairs.second))
    push = rows.normal * impulse
    return [(first, push), (second, -push)], jnp.any(matters([impulse / rows.mass]), axis=0)


class CoupledRows(NamedTuple):
    """The rows of the iteration, in their order."""

    target: jax.Array  # (R, L) as in `Prepared`
    mass: jax.Array
    normal: jax.Array  # (3, R, L), zero for rows that touch no block
    read: jax.Array  # (6, R, L), zero for rows that touch neither cart nor pole
    kick: jax.Array
    first: jax.Array  # (R, L) slots, out of range for none
    second: jax.Array


def _coupled_rows(
    room: Room, s: rows_of.CartAndPole, moving: Moving, listing: NearContacts
) -> tuple[CoupledRows, jax.Array]:
    """Build the rows, and a mask of the lanes that have too many, (L,) bool."""
    nowhere = moving.number
    walls, wall_slots, many_walls = _wall_rows(room, s, moving, listing.held)
    place, number = candidates.flagged(listing.shared, room.coupled, s.one)
    chosen = candidates.Pairs(
        take(listing.pairs.first, place), take(listing.pairs.second, place), number
    )
    first, second, _ = chosen if room is MANY else candidates.in_order(chosen, s.one)
    pairs = _pair_rows(s, moving, first, second, _within(number, room.coupled))
    cart = _structure_rows(room, s, moving, *listing.cart, rows_of.cart_rows)
    pole = _structure_rows(room, s, moving, *listing.pole, rows_of.pole_rows)
    row = rows_of.structure_rows(s)
    faces = prepare(row, sum_of(row.read * moving.g[:, None]), 0.0, s.one)
    none = jnp.full_like(faces.target, nowhere, jnp.int32)
    every = [
        _complete(rows, slots, second_slots, nowhere)
        for rows, slots, second_slots in (
            (walls, wall_slots, None),
            (pairs, first, second),
            (cart, listing.cart[0], None),
            (pole, listing.pole[0], None),
            (faces, none, None),
        )
    ]
    rows = jax.tree.map(lambda *leaves: jnp.concatenate(leaves, axis=-2), *every)
    beyond = many_walls | (number > room.coupled)
    if room.rows is None:
        return rows, beyond
    place, number = candidates.flagged(rows.target > -jnp.inf, room.rows, s.one)
    listed = _within(number, room.rows)
    rows = jax.tree.map(lambda leaf: take(leaf, place, leaf.ndim - 2), rows)
    target = jnp.where(listed, rows.target, -jnp.inf)
    arrays = materialise(rows._replace(target=target)[:5], s.one)
    return CoupledRows(*arrays, *rows[5:]), beyond | (number > room.rows)


def _complete(p: Prepared, first: jax.Array, second: jax.Array | None, nowhere: int) -> CoupledRows:
    """Rows of a class, with zeros for missing parts."""
    present = p.target > -jnp.inf

    def part(leaf: Leaf, size: int) -> jax.Array:
        return jnp.zeros((size, *p.target.shape), p.target.dtype) if leaf is None else leaf

    slots = [
        jnp.where(present, nowhere if slots is None else slots, nowhere)
        for slots in (first, second)
    ]
    return CoupledRows(
        p.target, p.mass, part(p.normal, 3), part(p.read, 6), part(p.kick, 6), *slots
    )


def _wall_rows(
    room: Room, s: rows_of.CartAndPole, moving: Moving, held: jax.Array
) -> tuple[Prepared, jax.Array, jax.Array]:
    """Rows of held blocks against walls, their slots, and whether there are too many."""
    slots, number = candidates.flagged(held, room.at_walls, s.one)
    blocks, v = moving.at(slots, _within(number, room.at_walls))
    every = rows_of.wall_rows(s.params, blocks)
    active, gap, normal = (
        leaf.reshape(*leaf.shape[: leaf.ndim - 3], -1, leaf.shape[-1])
        for leaf in (every.active, jnp.asarray(every.gap), every.normal)
    )
    place, touching = candidates.flagged(active, room.wall_rows, s.one)
    row = rows_of.ContactRow(
        _within(touching, room.wall_rows),
        take(gap, place),
        every.restitution,
        take(normal, place, 1),
    )
    block_index = place % room.at_walls
    speed = sum_of(row.normal * take(v, block_index, 1))
    rows = prepare(row, speed, 1 / s.params.block_mass, s.one)
    return rows, take(slots, block_index), (number > room.at_walls) | (touching > room.wall_rows)


def _pair_rows(
    s: rows_of.CartAndPole, moving: Moving, first: jax.Array, second: jax.Array, listed: jax.Array
) -> Prepared:
    """Rows of pairs of blocks."""
    a, va = moving.at(first, listed)
    b, vb = moving.at(second, listed)
    row = rows_of.pair_rows(s.params, a, b)
    return prepare(row, sum_of(row.normal * (va - vb)), 2 / s.params.block_mass, s.one)


def _structure_rows(
    room: Room,
    s: rows_of.CartAndPole,
    moving: Moving,
    slots: jax.Array,
    number: jax.Array,
    build: Callable[[rows_of.CartAndPole, Sphere], rows_of.Touch],
) -> Prepared:
    """Rows of blocks against cart or pole."""
    block, v = moving.at(slots, _within(number, room.near))
    row = build(s, block).row
    speed = sum_of(row.normal * v) + sum_of(row.read * moving.g[:, None])
    return prepare(row, speed, 1 / s.params.block_mass, s.one)


def _effects(s: rows_of.CartAndPole, rows: CoupledRows, slots: int) -> jax.Array:
    """Change of every row's relative velocity by a unit impulse of each row, (R, R, L), 1/kg.

    The first axis is the row that pushes.
    """
    first, second = rows.first, rows.second

    def same(a: jax.Array, b: jax.Array) -> jax.Array:
        return (a[:, None] == b).astype(rows.mass.dtype)

    # Rows without a second block share none; their slots are equal but out of range.
    pairs = same(second, second) * (second < slots)
    sign = same(first, first) - same(first, second) - same(second, first) + pairs
    along = sum_of(n[:, None] * n for n in rows.normal)
    kicked = sum_of(k[:, None] * r for k, r in zip(rows.kick, rows.read, strict=True))
    return materialise(along * sign / s.params.block_mass + kicked, s.one)


def _iterate(
    s: rows_of.CartAndPole, rows: CoupledRows, slots: int, needed: jax.Array, first: jax.Array
) -> jax.Array:
    """Run projected Gauss-Seidel as `solver` does; return the impulses (R, L).

    Args:
      s: cart and pole.
      rows: in their order.
      slots: number of slots, N.
      needed: (L,) bool, lanes to wait for.
      first: (L,) bool, whether isolated contacts make a second pass necessary.
    """
    effects = _effects(s, rows, slots)
    present = rows.target > -jnp.inf
    each_pass = _short_pass if len(rows.mass) == FEW.rows else _long_pass

    def sweep(carry: Tree) -> Tree:
        count, live, impulses = carry
        new, matter = each_pass(s, rows, effects, live, impulses)
        live = mask(live & (matter | (first & (count == 0))), s.one)
        return count + 1, live, new

    def unfinished(carry: Tree) -> jax.Array:
        return (carry[0] < solver.SWEEPS) & jnp.any(carry[1])

    live = needed & jnp.any(present, axis=0)
    return jax.lax.while_loop(unfinished, sweep, (0, live, jnp.zeros_like(rows.mass)))[2]


def _short_pass(
    s: rows_of.CartAndPole, rows: CoupledRows, effects: jax.Array, live: jax.Array, old: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """One pass over few rows: the impulses, and whether a correction matters."""
    new = list(old)
    for k, previous in enumerate(old):
        speed = sum_of(effects[j, k] * impulse for j, impulse in enumerate(new))
        updated = jnp.maximum(previous + (rows.target[k] - speed) * rows.mass[k], 0.0)
        new[k] = materialise(jnp.where(live, updated, previous), s.one)
    # Correction of each row's velocity by its own impulse.
    corrections = [(a - b) * effects[k, k] for k, (a, b) in enumerate(zip(new, old, strict=True))]
    return jnp.stack(new), matters(corrections)


def _long_pass(
    s: rows_of.CartAndPole, rows: CoupledRows, effects: jax.Array, live: jax.Array, old: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """As `_short_pass` for many rows, most of them absent in all lanes."""
    visited = jnp.any(rows.target > -jnp.inf, axis=1)
    order = jnp.nonzero(visited, size=visited.shape[0], fill_value=0)[0]

    def visit(i: jax.Array, carry: Tree) -> Tree:
        impulses, matter = carry
        k = order[i]
        previous = impulses[k]
        speed = jnp.sum(effects[:, k] * impulses, axis=0)
        updated = jnp.maximum(previous + (rows.target[k] - speed) * rows.mass[k], 0.0)
        updated = materialise(jnp.where(live, updated, previous), s.one)
        return impulses.at[k].set(updated), matter | matters([(updated - previous) * effects[k, k]])

    return jax.lax.fori_loop(0, jnp.sum(visited), visit, (old, live & False))


def _pushed(s: rows_of.CartAndPole, v: Vector, pushes: Sequence[Push]) -> Vector:
    """Block velocities (N, L) after pushes."""
    slots = jnp.concatenate([slots for slots, _ in pushes])
    steps = jnp.concatenate([push for _, push in pushes], axis=1) / s.params.block_mass
    lane = jnp.arange(slots.shape[1], dtype=jnp.int32)
    return Vector(
        *(
            jnp.asarray(c).at[slots, lane].add(step, mode="drop")
            for c, step in zip(v, steps, strict=True)
        )
    )
