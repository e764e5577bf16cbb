"""Contacts of worlds with many blocks, for all lanes at once.

Among many blocks most contacts are alone: a block at a wall that touches nothing else, or two
blocks that touch only one another. One pass solves these exactly, so they are resolved in closed
form. What is left, contacts that share a body and those of cart and pole, fills a short list of
rows. The iteration over it is that of `solver`, written for the velocities of the rows instead of
those of the bodies: what an impulse of one row does to every other is known beforehand.

A lane with more contacts than the lists hold is resolved by `solver` itself.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.backend import mask, materialise, opaque_one
from jaxsim.worlds.cartpole3d import candidates, contacts, packing, solver
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d import rows as rows_of
from jaxsim.worlds.cartpole3d.assembly import Prepared, prepare
from jaxsim.worlds.cartpole3d.candidates import take
from jaxsim.worlds.cartpole3d.dynamics import Bodies
from jaxsim.worlds.cartpole3d.geometry import Rotation
from jaxsim.worlds.cartpole3d.types import Block, Params, Pose, Vector, Velocity

PAIRS = 24
"""Most pairs of touching blocks of a lane; 21 is the most seen, of 200 blocks."""
COUPLED = 6
"""Most of these pairs that share a block with another contact."""
NEAR = 2
"""Most blocks near the cart, and near the pole."""
AT_WALLS = 3
"""Most blocks at a wall that touch something else, or that are past one."""
WALL_ROWS = 4
"""Most contacts of these with walls."""
GROUP = 8
"""Lanes that `solver` takes together."""


def resolve(
    params: Params,
    body: Bodies,
    pose: Pose,
    r: Rotation,
    blocks: Sequence[Block],
    block_velocities: Sequence[Vector],
    velocity: Velocity,
    needed: jax.Array,
) -> tuple[list[Vector], Velocity]:
    """Velocities after all contacts of one tick, of stacked blocks; see `solver.resolve`."""
    arguments: Any = (params, body, pose, r, tuple(blocks), list(block_velocities), velocity)
    if blocks[0].rail is not None:
        return solver.resolve(*arguments, needed)
    single = not needed.shape
    if single:
        arguments, needed = jax.tree.map(lambda a: jnp.asarray(a)[..., None], (arguments, needed))
    result, beyond = _few(*arguments, needed)
    result = packing.replaced(solver.resolve, GROUP, beyond & needed, arguments, result)
    return jax.tree.map(lambda leaf: leaf[..., 0], result) if single else result


def _few(
    params: Params,
    body: Bodies,
    pose: Pose,
    r: Rotation,
    blocks: Sequence[Block],
    block_velocities: Sequence[Vector],
    velocity: Velocity,
    needed: jax.Array,
) -> tuple[tuple[list[Vector], Velocity], jax.Array]:
    """As `resolve`, and for which lanes it is wrong because there are too many contacts."""
    one = opaque_one(params.gravity)
    world = materialise(geo.yawed(pose.cos, pose.sin, r), one)
    s = rows_of.Structure(params, body, pose, materialise(r, one), world, one)
    moving = Moving(blocks[0], block_velocities[0], rows_of.generalized(velocity, r))
    found = _find(s, moving.block)
    free, bounces = _off_walls(s, moving, found.held)
    alone, hits = _alone(s, moving, found)
    sharing, beyond = _sharing(s, moving, found)
    impulses = _iterate(s, sharing, needed, jnp.maximum(bounces, hits))
    after = _pushed(s, free, [*alone, *_on_blocks(sharing, impulses)])
    kicks = jnp.sum(sharing.kick * impulses[WALL_ROWS + COUPLED :], axis=1)
    return ([after], solver.applied(velocity, r, kicks)), found.beyond | beyond


class Moving(NamedTuple):
    """What contacts act on."""

    block: Block  # leaves (N, L)
    v: Vector  # (N, L) m/s, after the free motion
    g: jax.Array  # (6, L) see `rows.generalized`

    def at(self, slots: jax.Array, listed: jax.Array) -> tuple[Block, jax.Array]:
        """Chosen blocks (K, L), alive where they are listed, and their velocities (3, K, L)."""
        p = Vector(*(take(c, slots) for c in self.block.p))
        v = Vector(*(take(c, slots) for c in self.v))
        return Block(p, v, listed), jnp.stack(v)


class Found(NamedTuple):
    """The contacts that a tick may have."""

    pairs: candidates.Pairs  # of blocks; (PAIRS, L)
    listed: jax.Array  # (PAIRS, L) bool, whether there is such a pair
    shared: jax.Array  # (PAIRS, L) bool, whether one of its blocks touches something else
    held: jax.Array  # (N, L) bool, blocks whose contacts with walls are rows
    cart: tuple[jax.Array, jax.Array]  # slots (NEAR, L) near it, and how many there are (L,)
    pole: tuple[jax.Array, jax.Array]
    beyond: jax.Array  # (L,) bool, whether a list is too short


def _find(s: rows_of.Structure, block: Block) -> Found:
    """Search for contacts."""
    params, one = s.params, s.one
    near_cart, near_pole = contacts.near_structure(params, s.pose, s.world, block)
    past = block.alive & contacts.past_a_face(params, block.p)
    walled = (block.alive & contacts.at_wall(params, block.p)) | past
    pairs = candidates.few_pairs_within(block, contacts.pair_reach(params), one, PAIRS)
    listed = _within(pairs.number, PAIRS)
    # How many things touch each block.
    load = sum(flags.astype(jnp.int32) for flags in (near_cart, near_pole, walled))
    nowhere = block.alive.shape[0]
    lane = jnp.arange(listed.shape[1], dtype=jnp.int32)
    for slots in (pairs.first, pairs.second):
        load = load.at[jnp.where(listed, slots, nowhere), lane].add(1, mode="drop")
    shared = jnp.maximum(take(load, pairs.first), take(load, pairs.second)) > 1
    cart = candidates.flagged(near_cart, NEAR, one)
    pole = candidates.flagged(near_pole, NEAR, one)
    beyond = (pairs.number > PAIRS) | (cart[1] > NEAR) | (pole[1] > NEAR)
    held = mask((walled & (load > 1)) | past, one)
    return Found(pairs, listed, mask(listed & shared, one), held, cart, pole, beyond)


def _within(count: jax.Array, size: int) -> jax.Array:
    """Which places of a list are in use, (size, L) bool."""
    return candidates.ranks(size, count) < count


def _off_walls(s: rows_of.Structure, moving: Moving, held: jax.Array) -> tuple[Vector, jax.Array]:
    """Velocities after walls, but for the blocks that are held; and the largest change (L,)."""
    bounced = contacts.bounce_off_walls(s.params, moving.block, moving.v)
    held = held | ~moving.block.alive
    after = Vector(*(jnp.where(held, a, b) for a, b in zip(moving.v, bounced, strict=True)))
    after = materialise(after, s.one)
    return after, _largest([a - b for a, b in zip(after, moving.v, strict=True)])


def _largest(changes: Sequence[jax.Array]) -> jax.Array:
    """Largest size of some changes (K, L), lane by lane."""
    sizes = [jnp.abs(change) for change in changes]
    whole = sizes[0]
    for size in sizes[1:]:
        whole = jnp.maximum(whole, size)
    return jnp.max(whole, axis=0)


Push = tuple[jax.Array, jax.Array]
"""Slots (K, L), beyond the last one for none, and the impulses on them (3, K, L), N s."""


def _alone(s: rows_of.Structure, moving: Moving, found: Found) -> tuple[list[Push], jax.Array]:
    """Pushes of pairs that touch nothing else, and the largest change of velocity (L,)."""
    pairs, alone = found.pairs, found.listed & ~found.shared
    a, va = moving.at(pairs.first, alone)
    b, vb = moving.at(pairs.second, alone)
    row = rows_of.pair_rows(s.params, a, b)
    rows = prepare(row, jnp.sum(row.normal * (va - vb), axis=0), 2 / s.params.block_mass, s.one)
    impulse = materialise(jnp.maximum(rows.target * rows.mass, 0.0), s.one)
    nowhere = moving.block.alive.shape[0]
    first, second = (jnp.where(alone, c, nowhere) for c in (pairs.first, pairs.second))
    push = rows.normal * impulse
    return [(first, push), (second, -push)], _largest([impulse / rows.mass])


class Sharing(NamedTuple):
    """The rows that are iterated over: walls, pairs, cart, pole, then both against walls."""

    target: jax.Array  # (R, L) as in `Prepared`
    mass: jax.Array
    first: jax.Array  # (B, L) slots; the last four rows have none
    second: jax.Array  # (COUPLED, L) slots of the pairs' other blocks
    normal: jax.Array  # (3, B, L)
    read: jax.Array  # (6, R - WALL_ROWS - COUPLED, L)
    kick: jax.Array


def _sharing(s: rows_of.Structure, moving: Moving, found: Found) -> tuple[Sharing, jax.Array]:
    """Build the rows, and tell for which lanes there is no room for them, (L,) bool."""
    walls, wall_slots, many_walls = _wall_rows(s, moving, found.held)
    place, number = candidates.flagged(found.shared, COUPLED, s.one)
    first, second = take(found.pairs.first, place), take(found.pairs.second, place)
    pairs = _pair_rows(s, moving, first, second, _within(number, COUPLED))
    cart = _structure_rows(s, moving, *found.cart, rows_of.cart_rows)
    pole = _structure_rows(s, moving, *found.pole, rows_of.pole_rows)
    row = rows_of.structure_rows(s)
    faces = prepare(row, jnp.sum(row.read * moving.g[:, None], axis=0), 0.0, s.one)
    classes = (walls, pairs, cart, pole, faces)
    rows = Sharing(
        jnp.concatenate([c.target for c in classes]),
        jnp.concatenate([c.mass for c in classes]),
        jnp.concatenate([wall_slots, first, found.cart[0], found.pole[0]]),
        second,
        jnp.concatenate([c.normal for c in classes[:-1]], axis=1),
        jnp.concatenate([c.read for c in classes[2:]], axis=1),
        jnp.concatenate([c.kick for c in classes[2:]], axis=1),
    )
    return rows, many_walls | (number > COUPLED)


def _wall_rows(
    s: rows_of.Structure, moving: Moving, held: jax.Array
) -> tuple[Prepared, jax.Array, jax.Array]:
    """Rows of held blocks against walls, their slots, and whether there are too many."""
    slots, number = candidates.flagged(held, AT_WALLS, s.one)
    blocks, v = moving.at(slots, _within(number, AT_WALLS))
    every = rows_of.wall_rows(s.params, blocks)
    active, gap, normal = (
        leaf.reshape(*leaf.shape[: leaf.ndim - 3], -1, leaf.shape[-1])
        for leaf in (every.active, every.gap, every.normal)
    )
    place, touching = candidates.flagged(active, WALL_ROWS, s.one)
    row = rows_of.Row(
        _within(touching, WALL_ROWS), take(gap, place), every.restitution, take(normal, place, 1)
    )
    own = place % AT_WALLS
    speed = jnp.sum(row.normal * take(v, own, 1), axis=0)
    rows = prepare(row, speed, 1 / s.params.block_mass, s.one)
    return rows, take(slots, own), (number > AT_WALLS) | (touching > WALL_ROWS)


def _pair_rows(
    s: rows_of.Structure, moving: Moving, first: jax.Array, second: jax.Array, listed: jax.Array
) -> Prepared:
    """Rows of pairs of blocks."""
    a, va = moving.at(first, listed)
    b, vb = moving.at(second, listed)
    row = rows_of.pair_rows(s.params, a, b)
    return prepare(row, jnp.sum(row.normal * (va - vb), axis=0), 2 / s.params.block_mass, s.one)


def _structure_rows(
    s: rows_of.Structure, moving: Moving, slots: jax.Array, number: jax.Array, build: Any
) -> Prepared:
    """Rows of blocks against cart or pole."""
    block, v = moving.at(slots, _within(number, NEAR))
    row = build(s, block).row
    speed = jnp.sum(row.normal * v, axis=0) + jnp.sum(row.read * moving.g[:, None], axis=0)
    return prepare(row, speed, 1 / s.params.block_mass, s.one)


def _effects(s: rows_of.Structure, rows: Sharing) -> jax.Array:
    """Change of every row's relative velocity by a unit impulse of each row, (R, R, L), 1/kg.

    The first axis is the row that pushes.
    """
    blocks, pairs = rows.first.shape[0], slice(WALL_ROWS, WALL_ROWS + COUPLED)
    sign = (rows.first[:, None] == rows.first).astype(rows.mass.dtype)
    crossed = (rows.first[:, None] == rows.second).astype(rows.mass.dtype)
    sign = sign.at[:, pairs].add(-crossed)
    sign = sign.at[pairs].add(-jnp.swapaxes(crossed, 0, 1))
    sign = sign.at[pairs, pairs].add(rows.second[:, None] == rows.second)
    along = jnp.sum(rows.normal[:, :, None] * rows.normal[:, None], axis=0)
    effects = jnp.zeros((rows.mass.shape[0],) * 2 + rows.mass.shape[1:], rows.mass.dtype)
    effects = effects.at[:blocks, :blocks].set(along * sign / s.params.block_mass)
    turned = WALL_ROWS + COUPLED
    kicked = jnp.sum(rows.kick[:, :, None] * rows.read[:, None], axis=0)
    return effects.at[turned:, turned:].add(kicked)


def _iterate(s: rows_of.Structure, rows: Sharing, needed: jax.Array, worst: jax.Array) -> jax.Array:
    """Run projected Gauss-Seidel as `solver` does; return the impulses (R, L).

    Args:
      s: what rows on cart and pole know.
      rows: in their order.
      needed: (L,) bool, lanes to wait for.
      worst: (L,) largest correction among the contacts that are alone, which counts as that of the
        first pass.
    """
    one = s.one
    effects = materialise(_effects(s, rows), one)
    present = rows.target > -jnp.inf
    visited = jnp.any(present, axis=1)
    order = jnp.nonzero(visited, size=visited.shape[0], fill_value=0)[0]
    visits = jnp.sum(visited)

    def sweep(carry: Any) -> Any:
        count, live, impulses, speeds, worst = carry

        def visit(i: jax.Array, carry: Any) -> Any:
            impulses, speeds, worst = carry
            k = order[i]
            old, mass = impulses[k], rows.mass[k]
            change = jnp.maximum(old + (rows.target[k] - speeds[k]) * mass, 0.0) - old
            change = materialise(jnp.where(live, change, 0.0), one)
            speeds = speeds + effects[k] * change
            worst = jnp.maximum(worst, jnp.abs(change / mass))
            return impulses.at[k].set(old + change), speeds, worst

        impulses, speeds, worst = jax.lax.fori_loop(0, visits, visit, (impulses, speeds, worst))
        live = mask(live & (worst * worst > solver.RESIDUAL), one)
        return count + 1, live, impulses, speeds, 0.0 * worst

    def unfinished(carry: Any) -> jax.Array:
        return (carry[0] < solver.SWEEPS) & jnp.any(carry[1])

    nothing = jnp.zeros_like(rows.mass)
    live = needed & jnp.any(present, axis=0)
    carry = (0, live, nothing, nothing, worst)
    return jax.lax.while_loop(unfinished, sweep, carry)[2]


def _on_blocks(rows: Sharing, impulses: jax.Array) -> list[Push]:
    """Pushes of the rows."""
    blocks, pairs = rows.first.shape[0], slice(WALL_ROWS, WALL_ROWS + COUPLED)
    push = rows.normal * impulses[:blocks]
    return [(rows.first, push), (rows.second, -push[:, pairs])]


def _pushed(s: rows_of.Structure, v: Vector, pushes: Sequence[Push]) -> Vector:
    """Block velocities (N, L) after pushes."""
    slots = jnp.concatenate([slots for slots, _ in pushes])
    steps = jnp.concatenate([push for _, push in pushes], axis=1) / s.params.block_mass
    lane = jnp.arange(slots.shape[1], dtype=jnp.int32)
    return Vector(
        *(c.at[slots, lane].add(step, mode="drop") for c, step in zip(v, steps, strict=True))
    )
