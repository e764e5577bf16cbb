"""Impulses that resolve all contacts of a tick, by projected Gauss-Seidel.

Bullet iterates over its contacts until the largest correction of a pass is negligible; so does
this, lane by lane. A row's unknown is an impulse that pushes and never pulls; friction rows follow
the others in each pass, bounded by what their contact pushes.

Up to four block slots, every possible contact has a row and the pass is unrolled. Stacked slots
bring lists of those that are near, of which a pass visits as many as the fullest lane has.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.backend import mask, materialise, opaque_one
from jaxsim.worlds.cartpole3d import candidates, contacts, lines, slots
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d import rows as rows_of
from jaxsim.worlds.cartpole3d.contacts import separating_speed
from jaxsim.worlds.cartpole3d.dynamics import Bodies
from jaxsim.worlds.cartpole3d.geometry import Rotation
from jaxsim.worlds.cartpole3d.types import (
    UNROLLED,
    Block,
    Params,
    Pose,
    Rail,
    Scalar,
    Vector,
    Velocity,
)

SWEEPS = 50  # most passes over the rows
RESIDUAL = 1e-7  # (m/s)^2, largest squared correction of a pass that ends the iteration


class _Mobility(NamedTuple):
    """What impulses do to blocks."""

    light: Scalar  # 1/kg
    rails: Rail | None  # leaves (N, ...), or those of chosen blocks

    def push(self, impulse: jax.Array) -> jax.Array:
        """Velocity change (3, ...) by an impulse (3, ...), N s."""
        step = impulse * self.light
        if self.rails is None:
            return step
        return jnp.stack(lines.along(self.rails, Vector(*step)))

    def softness(self, normal: jax.Array) -> Scalar:
        """Velocity change along unit vectors (3, ...) by a unit impulse along them, 1/kg."""
        if self.rails is None:
            return self.light
        return jnp.sum(normal * self.push(normal), axis=0)

    def of(self, read: Callable[[jax.Array], jax.Array]) -> "_Mobility":
        """That of blocks chosen by `read`, which is applied to (N, ...) leaves."""
        return _Mobility(self.light, jax.tree.map(read, self.rails))


class _Prepared(NamedTuple):
    """A class of rows with its constants for the iteration."""

    target: jax.Array  # (R, ...) m/s, wanted change of the relative velocity; -inf if absent
    mass: jax.Array  # (R, ...) kg, inverse of the velocity change per unit impulse
    normal: Any  # these three as in `rows_of.Row`; None where the class has no such part
    read: Any
    kick: Any

    def row(self, index: Any) -> "_Prepared":
        """One row of the class."""
        own = [None if a is None else a[:, index] for a in (self.normal, self.read, self.kick)]
        return _Prepared(self.target[index], self.mass[index], *own)


class _Sliding(NamedTuple):
    """Friction of a class of contacts, in two directions of the contact plane."""

    rows: list[_Prepared]
    coefficient: Scalar


class _Touching(NamedTuple):
    """A class of contacts of a block with another block, or with cart or pole."""

    rows: _Prepared
    first: Any  # slot of each row's block: (R,) NumPy, or (R, ...) int32 where lanes differ
    second: Any  # slot of the other block; None if there is none
    used: jax.Array | None  # (...) int32, rows in use; None for all R
    sliding: _Sliding | None


class _Rows(NamedTuple):
    """All contacts of a tick, class by class, in the order in which they are solved."""

    walls: _Prepared  # R is (6, N)
    touching: tuple[_Touching, ...]  # pairs, cart, pole
    structure: _Prepared


def _many(slots: Any, values: jax.Array, axis: int = 0) -> jax.Array:
    """Read the slots of a class from an array that has them at `axis`."""
    if isinstance(slots, np.ndarray):
        return values[(slice(None),) * axis + (slots,)]
    return candidates.take(values, slots, axis)


def _one(slot: Any, values: jax.Array, axis: int = 0) -> jax.Array:
    """Read one slot, the same for all lanes or one for each."""
    if isinstance(slot, np.integer):
        return values[(slice(None),) * axis + (int(slot),)]
    return candidates.take(values, slot[None], axis).squeeze(axis)


def _prepare(row: rows_of.Row, approach: jax.Array, softness: Scalar, one: jax.Array) -> _Prepared:
    """Derive the constants of a class from its velocities after the free motion.

    Args:
      row: the class.
      approach: (R, ...) relative normal velocities, m/s.
      softness: (R, ...) or () 1/kg, what a unit impulse adds to them by way of the blocks.
      one: from `opaque_one`.
    """
    wanted = separating_speed(approach, row.gap, row.restitution)
    return _constants(row, jnp.asarray(wanted), softness, one, missing=-jnp.inf)


def _constants(
    row: rows_of.Row, wanted: jax.Array, softness: Scalar, one: jax.Array, missing: float
) -> _Prepared:
    if row.read is not None and row.kick is not None:
        softness = softness + jnp.sum(row.read * row.kick, axis=0)
    # Nothing moves two bodies that are both fixed.
    movable = softness > 0
    target = jnp.where(row.active & movable, wanted, missing)
    mass = jnp.broadcast_to(1 / jnp.where(movable, softness, 1.0), target.shape)
    return _Prepared(*materialise((target, mass, row.normal, row.read, row.kick), one))


class _Builder:
    """Builds the rows of stacked blocks with velocities v (3, N, ...) and g (6, ...)."""

    def __init__(self, s: rows_of.Structure, blocks: Block, v: jax.Array, g: jax.Array) -> None:
        self.s, self.blocks, self.v, self.g = s, blocks, v, g
        self.mobility = _Mobility(1 / s.params.block_mass, blocks.rail)

    def rows(self) -> _Rows:
        """Every row of the tick."""
        s, blocks = self.s, self.blocks
        walls = rows_of.wall_rows(s.params, blocks)
        speed = jnp.sum(walls.normal * self.v[:, None], axis=0)
        row = rows_of.structure_rows(s)
        structure = _prepare(row, jnp.sum(row.read * self.g[:, None], axis=0), 0.0, s.one)
        number = self.v.shape[1]
        touching = self._unrolled(number) if number <= UNROLLED else self._listed()
        return _Rows(
            _prepare(walls, speed, self.mobility.softness(walls.normal), s.one),
            tuple(touching),
            structure,
        )

    def _unrolled(self, number: int) -> list[_Touching]:
        """Every pair and every block against cart and pole."""
        pairs = [(i, j) for i in range(number) for j in range(i + 1, number)]
        found = []
        if pairs:
            first, second = (np.array(side) for side in zip(*pairs, strict=True))
            found.append(self._pairs(first, second, None))
        slots = np.arange(number)
        return [*found, self._cart(slots, None), self._pole(slots, None)]

    def _listed(self) -> list[_Touching]:
        """The pairs that touch and the blocks near cart and pole."""
        params = self.s.params
        pairs = candidates.pairs_within(self.blocks, contacts.pair_reach(params))
        near_cart, near_pole = contacts.near_structure(
            params, self.s.pose, self.s.world, self.blocks
        )
        cart = candidates.flagged(near_cart, candidates.MAX_NEAR)
        pole = candidates.flagged(near_pole, candidates.MAX_NEAR)
        return [self._pairs(*pairs), self._cart(*cart), self._pole(*pole)]

    def _chosen(self, slots: Any, count: jax.Array | None) -> Block:
        """Blocks of a class; those behind the end of its list are not alive."""
        chosen = jax.tree.map(lambda leaf: _many(slots, leaf), self.blocks)
        if count is None:
            return chosen
        number = jnp.arange(slots.shape[0]).reshape((-1,) + (1,) * count.ndim)
        return Block(chosen.p, chosen.v, chosen.alive & (number < count), chosen.rail)

    def _pairs(self, first: Any, second: Any, count: jax.Array | None) -> _Touching:
        params, one = self.s.params, self.s.one
        a, b = self._chosen(first, count), self._chosen(second, count)
        row = rows_of.pair_rows(params, a, b)
        own, other = _Mobility(self.mobility.light, a.rail), _Mobility(self.mobility.light, b.rail)
        relative = _many(first, self.v, 1) - _many(second, self.v, 1)

        def prepare(row: rows_of.Row, make: Callable[..., _Prepared]) -> _Prepared:
            speed = jnp.sum(row.normal * relative, axis=0)
            return make(row, speed, own.softness(row.normal) + other.softness(row.normal), one)

        sliding = None
        if self.mobility.rails is not None:
            along = [prepare(slide, _stopping) for slide in rows_of.pair_slides(row)]
            sliding = _Sliding(along, params.friction_block * params.friction_block)
        return _Touching(prepare(row, _prepare), first, second, count, sliding)

    def _cart(self, slots: Any, count: jax.Array | None) -> _Touching:
        touch = rows_of.cart_rows(self.s, self._chosen(slots, count))
        return self._on_structure(
            touch, slots, count, rows_of.cart_slides, self.s.params.friction_cart
        )

    def _pole(self, slots: Any, count: jax.Array | None) -> _Touching:
        touch = rows_of.pole_rows(self.s, self._chosen(slots, count))
        return self._on_structure(
            touch, slots, count, rows_of.pole_slides, self.s.params.friction_pole
        )

    def _on_structure(
        self,
        touch: rows_of.Touch,
        slots: Any,
        count: jax.Array | None,
        slides: Callable[[rows_of.Structure, rows_of.Touch], list[rows_of.Row]],
        friction: Scalar,
    ) -> _Touching:
        """Class of blocks against cart or pole."""
        mobility = self.mobility.of(lambda leaf: _many(slots, leaf))
        velocity = _many(slots, self.v, 1)

        def prepare(row: rows_of.Row, make: Callable[..., _Prepared]) -> _Prepared:
            speed = jnp.sum(row.normal * velocity, axis=0)
            speed = speed + jnp.sum(row.read * self.g[:, None], axis=0)
            return make(row, speed, mobility.softness(row.normal), self.s.one)

        sliding = None
        if mobility.rails is not None:
            along = [prepare(slide, _stopping) for slide in slides(self.s, touch)]
            sliding = _Sliding(along, self.s.params.friction_block * friction)
        return _Touching(prepare(touch.row, _prepare), slots, None, count, sliding)


def _stopping(row: rows_of.Row, speed: jax.Array, softness: Scalar, one: jax.Array) -> _Prepared:
    """Constants of friction rows, which ask for the end of sliding."""
    return _constants(row, -speed, softness, one, missing=0.0)


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
      cart, pole, then cart and pole against walls, then friction; each lane stops by itself when
      the largest squared correction of a pass is at most `RESIDUAL`.
    """
    one = opaque_one(params.gravity)
    world = geo.yawed(pose.cos, pose.sin, r)
    s = rows_of.Structure(params, body, pose, materialise(r, one), materialise(world, one), one)
    stacked, listed = slots.stack(blocks, pose.x), slots.are_stacked(blocks, pose.x)
    if listed:
        v = jnp.stack(block_velocities[0])
    else:
        v = jnp.stack([jnp.stack(axis) for axis in zip(*block_velocities, strict=True)])
    build = _Builder(s, stacked, v, rows_of.generalized(velocity, r))
    dv, dg = _iterate(build.rows(), v, build.mobility, needed, one)
    if listed:
        after = [Vector(*(v + dv))]
    else:
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


class _Impulses(NamedTuple):
    """Impulse of every row, N s."""

    walls: list[jax.Array]  # six of (N, ...)
    touching: list[jax.Array]  # of (R, ...)
    sliding: list[jax.Array | None]  # of (R, 2, ...)
    structure: list[jax.Array]


def _no_impulses(rows: _Rows) -> _Impulses:
    touching = [jnp.zeros_like(t.rows.target) for t in rows.touching]
    sliding = [
        jnp.zeros_like(jnp.stack([zero, zero], axis=1)) if t.sliding else None
        for t, zero in zip(rows.touching, touching, strict=True)
    ]
    return _Impulses(
        list(jnp.zeros_like(rows.walls.target)),
        touching,
        sliding,
        list(jnp.zeros_like(rows.structure.target)),
    )


def _iterate(
    rows: _Rows, v: jax.Array, mobility: _Mobility, needed: jax.Array, one: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Run projected Gauss-Seidel; return the changes of v (3, N, ...) and of g (6, ...)."""
    lanes = v.shape[2:]
    changes = (jnp.zeros_like(v), jnp.zeros((6, *lanes), v.dtype))

    def sweep(carry: Any) -> Any:
        count, live, impulses, changes = carry
        solver = _Sweep(live, mobility, one, *changes)
        impulses = solver.run(rows, impulses)
        worst = solver.worst
        live = mask(live & (worst * worst > RESIDUAL), one)
        return count + 1, live, impulses, (solver.dv, solver.dg)

    def unfinished(carry: Any) -> jax.Array:
        return (carry[0] < SWEEPS) & jnp.any(carry[1])

    carry = (0, jnp.broadcast_to(needed, lanes), _no_impulses(rows), changes)
    return jax.lax.while_loop(unfinished, sweep, carry)[3]


class _Sweep:
    """One pass over the rows: the running velocity changes and the largest correction."""

    def __init__(
        self, live: jax.Array, mobility: _Mobility, one: jax.Array, dv: jax.Array, dg: jax.Array
    ) -> None:
        self.live, self.mobility, self.one, self.dv, self.dg = live, mobility, one, dv, dg
        self.worst = jnp.zeros_like(dg[0])

    def run(self, rows: _Rows, old: _Impulses) -> _Impulses:
        """Correct every row once, in order; return the new impulses."""
        walls = [self._wall(rows.walls.row(k), impulse) for k, impulse in enumerate(old.walls)]
        touching = [
            self._each(t, impulse, partial_touch)
            for t, impulse, partial_touch in zip(
                rows.touching, old.touching, map(_touch_row, rows.touching), strict=True
            )
        ]
        structure = [
            self._structure(rows.structure.row(k), impulse)
            for k, impulse in enumerate(old.structure)
        ]
        sliding = [
            None if impulse is None else self._each(t, impulse, _slide_row(t, pushed))
            for t, impulse, pushed in zip(rows.touching, old.sliding, touching, strict=True)
        ]
        return _Impulses(walls, touching, sliding, structure)

    def _each(
        self, t: _Touching, impulse: jax.Array, correct: Callable[..., jax.Array]
    ) -> jax.Array:
        """Correct the rows of a class one after the other; return their impulses."""
        if t.used is None:
            return jnp.stack([correct(self, k, impulse[k]) for k in range(impulse.shape[0])])

        def visit(k: jax.Array, carry: Any) -> Any:
            impulse, self.dv, self.dg, self.worst = carry
            impulse = impulse.at[k].set(correct(self, k, impulse[k]))
            return impulse, self.dv, self.dg, self.worst

        carry = (impulse, self.dv, self.dg, self.worst)
        impulse, self.dv, self.dg, self.worst = jax.lax.fori_loop(0, jnp.max(t.used), visit, carry)
        return impulse

    def _correct(self, p: _Prepared, speed: jax.Array, impulse: jax.Array) -> jax.Array:
        """Change of impulse that a row asks for at its present relative velocity."""
        change = jnp.maximum(impulse + (p.target - speed) * p.mass, 0.0) - impulse
        return materialise(jnp.where(self.live, change, 0.0), self.one)

    def _note(self, correction: jax.Array) -> None:
        self.worst = jnp.maximum(self.worst, jnp.abs(correction))

    def _wall(self, p: _Prepared, impulse: jax.Array) -> jax.Array:
        """One wall against all blocks at once: they do not share it."""
        change = self._correct(p, jnp.sum(p.normal * self.dv, axis=0), impulse)
        self._note(jnp.max(jnp.abs(change / p.mass), axis=0))
        self.dv = self.dv + self.mobility.push(p.normal * change)
        return impulse + change

    def speed(self, p: _Prepared, first: Any, second: Any) -> jax.Array:
        """Present change of a row's relative velocity."""
        v = _one(first, self.dv, 1)
        if second is not None:
            v = v - _one(second, self.dv, 1)
        speed = jnp.sum(p.normal * v, axis=0)
        return speed if p.read is None else speed + jnp.sum(p.read * self.dg, axis=0)

    def push(self, p: _Prepared, change: jax.Array, first: Any, second: Any) -> None:
        """Apply a change of a row's impulse to what it touches."""
        self._note(change / p.mass)
        self._move(first, p.normal * change)
        if second is not None:
            self._move(second, -p.normal * change)
        if p.kick is not None:
            self.dg = self.dg + p.kick * change

    def _move(self, slot: Any, impulse: jax.Array) -> None:
        """Apply an impulse (3, ...) to one block."""
        step = self.mobility.of(lambda leaf: _one(slot, leaf)).push(impulse)
        if np.ndim(slot):
            self.dv = self.dv.at[:, slot, jnp.arange(slot.shape[0])].add(step)
        else:
            self.dv = self.dv.at[:, slot].add(step)

    def _structure(self, p: _Prepared, impulse: jax.Array) -> jax.Array:
        change = self._correct(p, jnp.sum(p.read * self.dg, axis=0), impulse)
        self._note(change / p.mass)
        self.dg = self.dg + p.kick * change
        return impulse + change


def _slots(t: _Touching, k: Any) -> tuple[Any, Any]:
    """Blocks of row k."""
    return t.first[k], None if t.second is None else t.second[k]


def _touch_row(t: _Touching) -> Callable[[_Sweep, Any, jax.Array], jax.Array]:
    """Return how a row of a class is corrected: what pushes never pulls."""

    def correct(sweep: _Sweep, k: Any, impulse: jax.Array) -> jax.Array:
        p, slots = t.rows.row(k), _slots(t, k)
        change = sweep._correct(p, sweep.speed(p, *slots), impulse)
        sweep.push(p, change, *slots)
        return impulse + change

    return correct


def _slide_row(t: _Touching, pushed: jax.Array) -> Callable[[_Sweep, Any, jax.Array], jax.Array]:
    """Return how a contact's friction is corrected: within a cone around what is `pushed`.

    Both directions ask for the end of sliding by themselves; together they are shortened to the
    cone, as Bullet does, and only then applied.
    """
    assert t.sliding is not None
    sliding = t.sliding

    def correct(sweep: _Sweep, k: Any, impulse: jax.Array) -> jax.Array:
        slots = _slots(t, k)
        limit = sliding.coefficient * pushed[k]
        each = [rows.row(k) for rows in sliding.rows]
        wanted = [
            old + (p.target - sweep.speed(p, *slots)) * p.mass
            for p, old in zip(each, impulse, strict=True)
        ]
        size = jnp.sqrt(wanted[0] * wanted[0] + wanted[1] * wanted[1])
        share = jnp.where(size > limit, limit / jnp.where(size > 0, size, 1.0), 1.0)
        live = sweep.live & (limit > 0)
        slid = (jnp.where(live, part * share, 0.0) for part in wanted)
        new = [jnp.where(sweep.live, a, b) for a, b in zip(slid, impulse, strict=True)]
        changes = materialise([a - b for a, b in zip(new, impulse, strict=True)], sweep.one)
        for p, change in zip(each, changes, strict=True):
            sweep.push(p, change, *slots)
        return impulse + jnp.stack(changes)

    return correct
