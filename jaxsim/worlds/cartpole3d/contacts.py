"""Contacts: which pairs touch, and the impulses that separate them.

A tick exists in two versions. Most ticks need only walls, and the walls of one block are mutually
orthogonal, so one pass solves them exactly (`bounce_off_walls`). `may_touch` is a conservative
test for everything else; where it holds, `resolve` builds all contact rows and runs projected
Gauss-Seidel until the largest correction is negligible, as Bullet does.

A row asks for a change of one relative normal velocity. Its unknown is an impulse >= 0.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.backend import mask, materialise, opaque_one
from jaxsim.worlds.cartpole3d import dynamics
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d.dynamics import (
    CART_HALF_HEIGHT,
    CART_RADIUS,
    POLE_RADIUS,
    Bodies,
    clamp,
)
from jaxsim.worlds.cartpole3d.geometry import MARGIN, Rotation
from jaxsim.worlds.cartpole3d.types import (
    DT,
    PIVOT_HEIGHT,
    POLE_BOTTOM,
    Block,
    Params,
    Pose,
    Scalar,
    Vector,
    Velocity,
)

SLOP = 1e-5  # m, overlap that is left alone
ERP = 0.08  # share of an overlap that is removed per tick
REST_SPEED = 0.2  # m/s, slower approaches do not bounce
SWEEPS = 50  # most passes over the rows
RESIDUAL = 1e-7  # (m/s)^2, largest squared correction of a pass that ends the iteration
BREAKING = 0.02  # gap per unit of a body's size within which a contact is predicted


def separating_speed(approach: Scalar, gap: Scalar, restitution: Scalar) -> Scalar:
    """Change of the relative normal velocity that one contact asks for.

    Args:
      approach: () relative normal velocity after the free motion, m/s; negative when closing.
      gap: () distance between the surfaces, m; negative when they overlap.
      restitution: () product of the two bodies' coefficients.

    Returns:
      () m/s. An overlap adds four times its depth; a remaining gap may be closed first.
    """
    bounce = jnp.where(jnp.abs(approach) >= REST_SPEED, restitution, 0.0)
    slack = gap + SLOP
    return (
        bounce * jnp.maximum(-approach, 0.0)
        - approach
        - slack * jnp.where(slack > 0, 1 / DT, ERP / DT)
    )


# --- walls, the cheap version ---------------------------------------------------------------


def wall_gaps(params: Params, p: Vector) -> tuple[tuple[Scalar, Scalar], ...]:
    """(inward sign, gap) of the nearer wall along x, y and z for a block at `p`, m."""
    reach = params.room_half_width - params.block_radius
    middle = 0.5 * (params.room_ceiling + params.room_floor)
    reach_z = 0.5 * (params.room_ceiling - params.room_floor) - params.block_radius
    z = p.z - middle
    return tuple(
        (jnp.where(c < 0, 1.0, -1.0), limit - jnp.abs(c))
        for c, limit in ((p.x, reach), (p.y, reach), (z, reach_z))
    )


def bounce_off_walls(params: Params, block: Block, v: Vector) -> Vector:
    """Block velocity after its walls, exact as long as it touches nothing else, m/s."""
    restitution = params.restitution_wall * params.restitution_block
    return Vector(
        *(
            speed + sign * jnp.where(gap <= 0, _wall_push(speed * sign, gap, restitution), 0.0)
            for speed, (sign, gap) in zip(v, wall_gaps(params, block.p), strict=True)
        )
    )


def _wall_push(approach: Scalar, gap: Scalar, restitution: Scalar) -> Scalar:
    return jnp.maximum(separating_speed(approach, gap, restitution), 0.0)


# --- the conservative test --------------------------------------------------------------------


def may_touch(
    params: Params, pose: Pose, r: Rotation, blocks: Sequence[Block], one: jax.Array
) -> jax.Array:
    """Whether anything other than one block and its walls may be in contact.

    Args:
      params: physics.
      pose: at the start of the tick.
      r: pole to world rotation.
      blocks: at the start of the tick.
      one: from `opaque_one`.

    Returns:
      () bool, never False where a full tick would find a contact. The reach of a prism is that
      of the cylinder around it, plus the gap within which contacts are predicted.
    """
    reach = params.block_radius + MARGIN + BREAKING * _breaking_size(params)
    near = _structure_near_wall(params, pose, r)
    for block in blocks:
        rel = Vector(block.p.x - pose.x, block.p.y - pose.y, block.p.z - PIVOT_HEIGHT)
        near = near | (block.alive & (_near_cart(rel, reach) | _near_pole(params, rel, r, reach)))
    width = 4 * params.block_radius * params.block_radius
    for i, a in enumerate(blocks):
        for b in blocks[i + 1 :]:
            d = geo.sub(a.p, b.p)
            near = near | (a.alive & b.alive & (geo.dot(d, d) <= width))
    return mask(near, one)


def _breaking_size(params: Params) -> Scalar:
    return math.sqrt(3.0) * params.block_radius


def _near_cart(rel: Vector, reach: Scalar) -> jax.Array:
    """Whether a sphere centre is within `reach` of the cart's cylinder."""
    out = jnp.maximum(rel.x * rel.x + rel.y * rel.y, CART_RADIUS * CART_RADIUS)
    # rho - R >= (rho^2 - R^2) / (2 R + reach) wherever rho - R <= reach, without a square root.
    side = (out - CART_RADIUS * CART_RADIUS) / (2 * CART_RADIUS + reach)
    up = jnp.maximum(jnp.abs(rel.z) - CART_HALF_HEIGHT, 0.0)
    return side * side + up * up <= reach * reach


def _near_pole(params: Params, rel: Vector, r: Rotation, reach: Scalar) -> jax.Array:
    """Whether a sphere centre is within `reach` of the pole, taken as a capsule."""
    axis = Vector(r.x.z, r.y.z, r.z.z)
    top = POLE_BOTTOM + params.pole_length
    t = jnp.clip(geo.dot(rel, axis), POLE_BOTTOM, top)
    d = geo.sub(rel, geo.scale(axis, t))
    limit = reach + POLE_RADIUS
    return jnp.asarray(geo.dot(d, d) <= limit * limit)


def _structure_near_wall(params: Params, pose: Pose, r: Rotation) -> jax.Array:
    """Whether cart or pole tip may be at a side wall."""
    near_cart = params.room_half_width - CART_RADIUS - MARGIN - BREAKING
    top = POLE_BOTTOM + params.pole_length
    near_tip = params.room_half_width - POLE_RADIUS - MARGIN - BREAKING
    far = jnp.maximum(jnp.abs(pose.x), jnp.abs(pose.y))
    tip = jnp.maximum(jnp.abs(pose.x + top * r.x.z), jnp.abs(pose.y + top * r.y.z))
    return jnp.asarray(far > near_cart) | jnp.asarray(tip > near_tip)


# --- rows -------------------------------------------------------------------------------------
#
# Rows of one class are built together: their arrays have a leading axis of rows before the lane
# axes. The full tick runs on few lanes, so wide arrays and few operations are what is fast here.


class Row(NamedTuple):
    """Contacts of one class: which velocities they read and what a unit impulse does to them.

    A row reads `normal` . v of its first block, minus that of its second if it has one, plus
    `read` . g of cart and pole if it touches them. The normal points to the first body.
    """

    active: jax.Array  # (R, ...) bool
    gap: Scalar  # (R, ...) m
    restitution: Scalar
    normal: Any = None  # (3, R, ...) world frame; None if it touches no block
    read: Any = None  # (6, R, ...) see `generalized`; None if it touches neither cart nor pole
    kick: Any = None  # (6, R, ...) change of g per unit impulse


def generalized(velocity: Velocity, r: Rotation) -> jax.Array:
    """Cart and pole velocities that contacts read, (6, ...).

    Pivot x and y (cart frame, m/s), yaw rate, absolute spin of the pole (pole frame, rad/s).
    """
    spin = dynamics.pole_spin(velocity, r)
    return jnp.stack([velocity.vx, velocity.vy, velocity.yaw_rate, *spin])


def _stack(parts: Iterable[Scalar]) -> jax.Array:
    return jnp.stack(jnp.broadcast_arrays(*parts))


def pair_indices(num_blocks: int) -> list[tuple[int, int]]:
    """Pairs of blocks in the order in which they are solved."""
    return [(i, j) for i in range(num_blocks) for j in range(i + 1, num_blocks)]


def wall_rows(params: Params, block: Block) -> tuple[Row, jax.Array]:
    """Rows of the nearer wall of each axis for stacked blocks, and inward signs (3, N, ...)."""
    signs, gaps = zip(*wall_gaps(params, block.p), strict=True)
    gap = _stack(gaps)
    restitution = params.restitution_wall * params.restitution_block
    return Row(block.alive & (gap <= 0), gap, restitution), _stack(signs)


def pair_rows(params: Params, a: Block, b: Block) -> Row:
    """Rows of stacked pairs of blocks; identical centres separate along x."""
    d = geo.sub(a.p, b.p)
    square = geo.dot(d, d)
    apart = square > 0
    length = jnp.sqrt(jnp.where(apart, square, 1.0))
    normal = geo.scale(Vector(jnp.where(apart, d.x, 1.0), d.y, d.z), 1 / length)
    gap = jnp.where(apart, length, 0.0) - 2 * params.block_radius
    restitution = params.restitution_block * params.restitution_block
    return Row(a.alive & b.alive & (gap <= 0), gap, restitution, _stack(normal))


class Structure(NamedTuple):
    """What rows on cart and pole need to know."""

    params: Params
    body: Bodies
    pose: Pose
    local: Rotation  # pole to cart
    world: Rotation  # pole to world
    one: jax.Array  # from `backend.opaque_one`


def _response(s: Structure, force: Vector, c: Vector, tau: Vector) -> tuple[Vector, Vector]:
    """Response to an impulse, computed once however often a row uses it."""
    return materialise(dynamics.pivot_response(s.params, s.body, s.local, force, c, tau), s.one)


def _on_cart(s: Structure, normal: Vector, arm: Vector) -> tuple[jax.Array, jax.Array]:
    """What an impulse along `normal` on the cart at `arm` reads and does, (6, ...) each.

    Both vectors in the cart frame, the arm from the cart origin. Only the horizontal part of the
    impulse moves the cart; the rails take the rest.
    """
    zero = 0.0 * normal.x
    none = Vector(zero, zero, zero)
    turn = arm.x * normal.y - arm.y * normal.x
    a, alpha = _response(s, normal, none, none)
    read = _stack([normal.x, normal.y, turn, zero, zero, zero])
    return read, _stack([a.x, a.y, turn / s.body.cart_iz, *alpha])


def _on_pole(s: Structure, normal: Vector, arm: Vector) -> tuple[jax.Array, jax.Array]:
    """As `_on_cart` for the pole: both vectors in the pole frame, the arm from the pivot."""
    zero = 0.0 * normal.x
    turn = geo.cross(arm, normal)
    pull = geo.rotate(s.local, normal)
    from_com = Vector(arm.x, arm.y, arm.z - s.params.pole_com)
    c = geo.scale(normal, -1 / s.params.pole_mass)
    tau = geo.cross(from_com, normal)
    a, alpha = _response(s, Vector(zero, zero, zero), c, tau)
    return _stack([pull.x, pull.y, zero, *turn]), _stack([a.x, a.y, zero, *alpha])


def cart_rows(s: Structure, block: Block) -> Row:
    """Rows of stacked blocks against the cart."""
    p = s.params
    offset = Vector(block.p.x - s.pose.x, block.p.y - s.pose.y, block.p.z - PIVOT_HEIGHT)
    local = geo.yaw(s.pose.cos, -s.pose.sin, offset)
    near = geo.nearest_on_prism(local, CART_RADIUS, CART_HALF_HEIGHT, s.one)
    gap = near.distance - MARGIN - p.block_radius
    half = Vector(CART_RADIUS, CART_RADIUS, CART_HALF_HEIGHT)
    turned = Rotation(
        Vector(s.pose.cos, -s.pose.sin, 0.0),
        Vector(s.pose.sin, s.pose.cos, 0.0),
        Vector(0.0, 0.0, 1.0),
    )
    active = (
        block.alive
        & (gap <= BREAKING * jnp.minimum(_breaking_size(p), _disc(half, PIVOT_HEIGHT)))
        & _boxes_meet(local, offset, turned, half, p.block_radius)
    )
    read, kick = _on_cart(s, near.normal, near.point)
    return Row(
        active,
        gap,
        p.restitution_block * p.restitution_cart,
        _stack(geo.yaw(s.pose.cos, s.pose.sin, near.normal)),
        -read,
        -kick,
    )


def pole_rows(s: Structure, block: Block) -> Row:
    """Rows of stacked blocks against the pole."""
    p = s.params
    middle = POLE_BOTTOM + 0.5 * p.pole_length
    pivot = Vector(block.p.x - s.pose.x, block.p.y - s.pose.y, block.p.z - PIVOT_HEIGHT)
    axis = Vector(s.world.x.z, s.world.y.z, s.world.z.z)
    offset = geo.sub(pivot, geo.scale(axis, middle))
    local = geo.rotate_back(s.world, offset)
    near = geo.nearest_on_prism(local, POLE_RADIUS, 0.5 * p.pole_length, s.one)
    gap = near.distance - MARGIN - p.block_radius
    half = Vector(POLE_RADIUS, POLE_RADIUS, 0.5 * p.pole_length)
    active = (
        block.alive
        & (gap <= BREAKING * jnp.minimum(_breaking_size(p), _disc(half, p.pole_com - middle)))
        & _boxes_meet(local, offset, s.world, half, p.block_radius)
    )
    read, kick = _on_pole(s, near.normal, Vector(near.point.x, near.point.y, near.point.z + middle))
    return Row(
        active,
        gap,
        p.restitution_block * p.restitution_pole,
        _stack(geo.rotate(s.world, near.normal)),
        -read,
        -kick,
    )


def _disc(half: Vector, offset: Scalar) -> Scalar:
    """Radius of the sphere that a body sweeps about its centre of mass, m."""
    grown = [h + 0.5 * dynamics.AABB_MARGIN for h in half]
    return jnp.sqrt(sum(h * h for h in grown)) + jnp.abs(offset)


def _boxes_meet(
    local: Vector, offset: Vector, turned: Rotation, half: Vector, radius: Scalar
) -> jax.Array:
    """Whether a sphere's box meets a hull's, both in the hull's frame and in the world's.

    Args:
      local: () sphere centre from the hull's centre, hull frame, m.
      offset: () the same in the world frame.
      turned: hull to world rotation.
      half: () half extents of the hull, m.
      radius: () of the sphere, m.
    """
    meet = jnp.abs(local.x) <= radius + half.x + 2 * MARGIN
    for d, h in ((local.y, half.y), (local.z, half.z)):
        meet = meet & (jnp.abs(d) <= radius + h + 2 * MARGIN)
    grown = Vector(*(h + MARGIN for h in half))
    for d, row in zip(offset, turned, strict=True):
        meet = meet & (jnp.abs(d) <= radius + geo.box_reach(row, grown) + MARGIN)
    return meet


def structure_rows(s: Structure) -> Row:
    """Rows of cart and pole against the nearer side wall of x and of y; R is 4."""
    p = s.params
    cart = _cart_wall_rows(s)
    pole = _pole_wall_rows(s)
    active, gap, read, kick = (
        jnp.concatenate(pair, axis=axis)
        for pair, axis in zip(zip(cart, pole, strict=True), (0, 0, 1, 1), strict=True)
    )
    shape = (2,) + (1,) * (gap.ndim - 1)
    coefficients = [
        jnp.broadcast_to(p.restitution_wall * own, shape[:1] + gap.shape[1:])
        for own in (p.restitution_cart, p.restitution_pole)
    ]
    return Row(active, gap, jnp.concatenate(coefficients), None, read, kick)


def _outward(position: Scalar) -> jax.Array:
    """Sign of the nearer side wall's outward normal."""
    return jnp.where(position < 0, -1.0, 1.0)


def _cart_wall_rows(s: Structure) -> tuple[jax.Array, ...]:
    """The cart's extreme vertex against the walls of x and y: active, gap, read, kick."""
    cos, sin = s.pose.cos, s.pose.sin
    position = _stack([s.pose.x, s.pose.y])
    sign = _outward(position)
    # The world axes in the cart frame.
    local = Vector(sign * _stack([cos, sin]), sign * _stack([-sin, cos]), 0.0 * sign)
    vx, vy = geo.vertex_direction(local.x, local.y)
    arm = Vector(CART_RADIUS * vx, CART_RADIUS * vy, 0.0 * vx)
    room = s.params.room_half_width - sign * position
    gap = room - geo.dot(arm, local) - MARGIN
    grown = CART_RADIUS + MARGIN
    reach = grown * (jnp.abs(local.x) + jnp.abs(local.y)) + MARGIN
    half = Vector(CART_RADIUS, CART_RADIUS, CART_HALF_HEIGHT)
    active = (room <= reach) & (gap <= BREAKING * _disc(half, PIVOT_HEIGHT))
    return active, gap, *_on_cart(s, geo.scale(local, -1.0), arm)


def _pole_wall_rows(s: Structure) -> tuple[jax.Array, ...]:
    """The pole's extreme top vertex against the walls it leans to: active, gap, read, kick."""
    centre = _stack([s.pose.x, s.pose.y])
    lean = Vector(*(_stack([a, b]) for a, b in zip(s.world.x, s.world.y, strict=True)))
    top = POLE_BOTTOM + s.params.pole_length
    sign = _outward(centre + top * lean.z)
    local = geo.scale(lean, sign)
    vx, vy = geo.vertex_direction(local.x, local.y)
    arm = Vector(POLE_RADIUS * vx, POLE_RADIUS * vy, top + 0.0 * vx)
    gap = s.params.room_half_width - sign * centre - geo.dot(arm, local) - MARGIN
    return gap <= MARGIN, gap, *_on_pole(s, geo.scale(local, -1.0), arm)


# --- solver -----------------------------------------------------------------------------------


class _Prepared(NamedTuple):
    """A class of rows with its constants for the iteration."""

    target: jax.Array  # (R, ...) m/s, wanted change of the relative velocity; -inf if absent
    mass: jax.Array  # (R, ...) kg, inverse of the velocity change per unit impulse
    normal: Any  # these three as in `Row`; None where the class has no such part
    read: Any
    kick: Any

    def row(self, index: int) -> "_Prepared":
        """One row of the class."""
        own = [None if a is None else a[:, index] for a in (self.normal, self.read, self.kick)]
        return _Prepared(self.target[index], self.mass[index], *own)


def _prepare(row: Row, approach: jax.Array, softness: Scalar, one: jax.Array) -> _Prepared:
    """Derive the constants of a class from its velocities after the free motion.

    Args:
      row: the class.
      approach: (R, ...) relative normal velocities, m/s.
      softness: (R, ...) or () 1/kg, what a unit impulse adds to them by way of the blocks.
      one: from `opaque_one`.
    """
    if row.read is not None and row.kick is not None:
        softness = softness + jnp.sum(row.read * row.kick, axis=0)
    wanted = separating_speed(approach, row.gap, row.restitution)
    target = jnp.where(row.active, wanted, -jnp.inf)
    mass = jnp.broadcast_to(1 / softness, target.shape)
    return _Prepared(*materialise((target, mass, row.normal, row.read, row.kick), one))


class _Rows(NamedTuple):
    """All contacts of a tick, class by class, in the order in which they are solved."""

    walls: _Prepared
    wall_signs: jax.Array  # (3, N, ...)
    pairs: _Prepared | None
    cart: _Prepared
    pole: _Prepared
    structure: _Prepared


def _all_rows(s: Structure, blocks: Block, v: jax.Array, g: jax.Array) -> _Rows:
    """Build every row for stacked blocks with velocities v (3, N, ...) and g (6, ...)."""
    light, one = 1 / s.params.block_mass, s.one
    walls, signs = wall_rows(s.params, blocks)
    pairs = None
    indices = pair_indices(v.shape[1])
    if indices:
        first, second = (np.array(side) for side in zip(*indices, strict=True))
        a, b = (jax.tree.map(lambda x, k=k: x[k], blocks) for k in (first, second))
        row = pair_rows(s.params, a, b)
        speed = jnp.sum(row.normal * (v[:, first] - v[:, second]), axis=0)
        pairs = _prepare(row, speed, 2 * light, one)

    def touching(row: Row) -> _Prepared:
        speed = jnp.sum(row.normal * v, axis=0) + jnp.sum(row.read * g[:, None], axis=0)
        return _prepare(row, speed, light, one)

    row = structure_rows(s)
    structure = _prepare(row, jnp.sum(row.read * g[:, None], axis=0), 0.0, one)
    return _Rows(
        _prepare(walls, signs * v, light, one),
        signs,
        pairs,
        touching(cart_rows(s, blocks)),
        touching(pole_rows(s, blocks)),
        structure,
    )


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
    """Velocities after all contacts of one tick.

    Args:
      params: physics.
      body: from `dynamics.bodies`.
      pose: at the start of the tick.
      r: pole to cart rotation of that pose.
      blocks: at the start of the tick.
      block_velocities: after the free motion, m/s.
      velocity: of cart and pole after the free motion.
      needed: () or (L,) bool; lanes where it is False are not waited for, their result is unused.

    Returns:
      Block velocities and cart and pole velocities. Projected Gauss-Seidel over walls, pairs,
      cart, pole, then cart and pole against walls; each lane stops by itself when the largest
      squared correction of a pass is at most `RESIDUAL`.
    """
    one = opaque_one(params.gravity)
    world = geo.yawed(pose.cos, pose.sin, r)
    s = Structure(params, body, pose, materialise(r, one), materialise(world, one), one)
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *blocks)
    v = jnp.stack([jnp.stack(axis) for axis in zip(*block_velocities, strict=True)])
    rows = _all_rows(s, stacked, v, generalized(velocity, r))
    dv, dg = _iterate(rows, v, 1 / params.block_mass, needed, one)
    after = [Vector(*(v[k, i] + dv[k, i] for k in range(3))) for i in range(len(blocks))]
    return after, _apply(velocity, r, dg)


def _apply(velocity: Velocity, r: Rotation, change: jax.Array) -> Velocity:
    """Add a change of pivot velocity, yaw rate and absolute spin to the state's components."""
    return Velocity(
        velocity.vx + change[0],
        velocity.vy + change[1],
        velocity.yaw_rate + change[2],
        velocity.wx + change[3] - r.z.x * change[2],
        velocity.wy + change[4] - r.z.y * change[2],
        velocity.wz + change[5] - r.z.z * change[2],
    )


def _iterate(
    rows: _Rows, v: jax.Array, light: Scalar, needed: jax.Array, one: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Run projected Gauss-Seidel; return the changes of v (3, N, ...) and of g (6, ...)."""
    lanes = v.shape[2:]
    classes = [c for c in (rows.walls, rows.pairs, rows.cart, rows.pole, rows.structure) if c]
    impulses = [jnp.zeros_like(c.target) for c in classes]
    changes = (jnp.zeros_like(v), jnp.zeros((6, *lanes), v.dtype))

    def sweep(carry: Any) -> Any:
        count, live, impulses, changes = carry
        solver = _Sweep(live, light, one, *changes)
        impulses = solver.run(rows, impulses)
        worst = solver.worst
        live = mask(live & (worst * worst > RESIDUAL), one)
        return count + 1, live, impulses, (solver.dv, solver.dg)

    def unfinished(carry: Any) -> jax.Array:
        return (carry[0] < SWEEPS) & jnp.any(carry[1])

    carry = (0, jnp.broadcast_to(needed, lanes), impulses, changes)
    return jax.lax.while_loop(unfinished, sweep, carry)[3]


class _Sweep:
    """One pass over the rows: the running velocity changes and the largest correction."""

    def __init__(
        self, live: jax.Array, light: Scalar, one: jax.Array, dv: jax.Array, dg: jax.Array
    ) -> None:
        self.live, self.light, self.one, self.dv, self.dg = live, light, one, dv, dg
        self.worst = jnp.zeros_like(dg[0])

    def run(self, rows: _Rows, impulses: list[jax.Array]) -> list[jax.Array]:
        """Correct every row once, in order; return the new impulses."""
        pending = list(impulses)
        new = [self._walls(rows, pending.pop(0))]
        num_blocks = self.dv.shape[1]
        if rows.pairs is not None:
            pairs = [
                self._pair(rows.pairs.row(k), impulse, i, j)
                for k, ((i, j), impulse) in enumerate(
                    zip(pair_indices(num_blocks), pending.pop(0), strict=True)
                )
            ]
            new.append(jnp.stack(pairs))
        for rows_of_class in (rows.cart, rows.pole):
            old = pending.pop(0)
            touched = [self._touch(rows_of_class.row(i), old[i], i) for i in range(num_blocks)]
            new.append(jnp.stack(touched))
        old = pending.pop(0)
        held = [self._structure(rows.structure.row(k), old[k]) for k in range(old.shape[0])]
        return [*new, jnp.stack(held)]

    def _correct(self, p: _Prepared, speed: jax.Array, impulse: jax.Array) -> jax.Array:
        """Change of impulse that a row asks for at its present relative velocity."""
        change = jnp.maximum(impulse + (p.target - speed) * p.mass, 0.0) - impulse
        return materialise(jnp.where(self.live, change, 0.0), self.one)

    def _note(self, correction: jax.Array) -> None:
        self.worst = jnp.maximum(self.worst, jnp.abs(correction))

    def _walls(self, rows: _Rows, impulse: jax.Array) -> jax.Array:
        """All walls at once: those of one block are orthogonal."""
        p, signs = rows.walls, rows.wall_signs
        change = self._correct(p, signs * self.dv, impulse)
        self._note(jnp.max(jnp.abs(change / p.mass), axis=(0, 1)))
        self.dv = self.dv + signs * change * self.light
        return impulse + change

    def _pair(self, p: _Prepared, impulse: jax.Array, i: int, j: int) -> jax.Array:
        speed = jnp.sum(p.normal * (self.dv[:, i] - self.dv[:, j]), axis=0)
        change = self._correct(p, speed, impulse)
        self._note(change / p.mass)
        step = p.normal * (change * self.light)
        self.dv = self.dv.at[:, i].add(step).at[:, j].add(-step)
        return impulse + change

    def _touch(self, p: _Prepared, impulse: jax.Array, i: int) -> jax.Array:
        speed = jnp.sum(p.normal * self.dv[:, i], axis=0) + jnp.sum(p.read * self.dg, axis=0)
        change = self._correct(p, speed, impulse)
        self._note(change / p.mass)
        self.dv = self.dv.at[:, i].add(p.normal * (change * self.light))
        self.dg = self.dg + p.kick * change
        return impulse + change

    def _structure(self, p: _Prepared, impulse: jax.Array) -> jax.Array:
        change = self._correct(p, jnp.sum(p.read * self.dg, axis=0), impulse)
        self._note(change / p.mass)
        self.dg = self.dg + p.kick * change
        return impulse + change


def clamp_all(velocity: Velocity, blocks: Sequence[Vector]) -> tuple[Velocity, list[Vector]]:
    """Limit every generalized velocity component."""
    held = Velocity(*(clamp(getattr(velocity, f)) for f in Velocity.__dataclass_fields__))
    return held, [Vector(*(clamp(c) for c in v)) for v in blocks]
