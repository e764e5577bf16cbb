"""Impulses that resolve all contacts of a tick, by projected Gauss-Seidel.

Bullet iterates over its contacts until the largest correction of a pass is negligible; so does
this, lane by lane. A row's unknown is an impulse that pushes and never pulls. Friction rows follow
the others in each pass, bounded by the normal impulse of their contact.

With up to four block slots a pass is unrolled. Loops over the rows would take less time to compile,
and as long to run as parts of a loop that is compiled whole, see `backend.configure_cpu`, but not
otherwise. Blocks on lines have them all the same, since friction makes three rows of one. In the
lists of stacked slots, a pass visits the maximum number of rows over lanes.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.backend import mask, materialise, opaque_one
from jaxsim.pytrees import Tree
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d.blocks import slots
from jaxsim.worlds.cartpole3d.contact import rows as rows_of
from jaxsim.worlds.cartpole3d.contact.assembly import (
    Builder,
    ContactRows,
    Mobility,
    Prepared,
    Slot,
    Slots,
    Touching,
    one_slot,
)
from jaxsim.worlds.cartpole3d.dynamics import Bodies
from jaxsim.worlds.cartpole3d.geometry import Rotation
from jaxsim.worlds.cartpole3d.types import Params, Pose, Scalar, Sphere, Vector, Velocity

SWEEPS = 50  # most passes over the rows
RESIDUAL = 1e-7  # (m/s)^2, largest squared correction of a pass that ends the iteration


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
    """Velocities after all contacts of one tick.

    Args:
      params: physics.
      body: from `dynamics.bodies`.
      pose: at the start of the tick.
      r: pole to cart rotation of that pose, `geo.pole_to_cart`.
      blocks: at the start of the tick.
      block_velocities: after the free motion, m/s.
      velocity: of cart and pole after the free motion.
      needed: () or (L,) bool; lanes where it is False are not waited for; their result is unused.

    Returns:
      Block velocities, and cart and pole velocities. Projected Gauss-Seidel over walls, pairs,
      cart, pole, then cart and pole against walls, then friction; each lane stops by itself when
      the largest squared correction of a pass is at most `RESIDUAL`.
    """
    one = opaque_one(params.gravity)
    world = geo.yawed(pose.cos, pose.sin, r)
    s = rows_of.CartAndPole(params, body, pose, r, materialise(world, one), one)
    stacked, is_stacked = slots.stack(blocks, pose.x), slots.are_stacked(blocks, pose.x)
    if is_stacked:
        v = jnp.stack(block_velocities[0])
    else:
        v = jnp.stack([jnp.stack(axis) for axis in zip(*block_velocities, strict=True)])
    build = Builder(s, stacked, v, rows_of.generalized(velocity, r))
    dv, dg = _iterate(build.rows(), v, build.mobility, needed, one)
    if is_stacked:
        after = [Vector(*(v + dv))]
    else:
        after = [Vector(*(v[k, i] + dv[k, i] for k in range(3))) for i in range(len(blocks))]
    return after, applied(velocity, r, dg)


def applied(velocity: Velocity, r: Rotation, change: Sequence[Scalar] | jax.Array) -> Velocity:
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


def _no_impulses(rows: ContactRows) -> _Impulses:
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
    rows: ContactRows,
    v: jax.Array,
    mobility: Mobility,
    needed: jax.Array,
    one: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Run projected Gauss-Seidel; return the changes of v (3, N, ...) and of g (6, ...)."""
    lanes = v.shape[2:]
    changes = (jnp.zeros_like(v), jnp.zeros((6, *lanes), v.dtype))

    def sweep(carry: Tree) -> Tree:
        count, live, impulses, changes = carry
        solver = _Sweep(live, mobility, one, *changes)
        impulses = solver.run(rows, impulses)
        worst = solver.worst
        live = mask(live & (worst * worst > RESIDUAL), one)
        return count + 1, live, impulses, (solver.dv, solver.dg)

    def unfinished(carry: Tree) -> jax.Array:
        return (carry[0] < SWEEPS) & jnp.any(carry[1])

    carry = (0, jnp.broadcast_to(needed, lanes), _no_impulses(rows), changes)
    _, _, _, (dv, dg) = jax.lax.while_loop(unfinished, sweep, carry)
    return dv, dg


class _Sweep:
    """One pass over the rows: the running velocity changes and the largest correction."""

    def __init__(
        self, live: jax.Array, mobility: Mobility, one: jax.Array, dv: jax.Array, dg: jax.Array
    ) -> None:
        self.live, self.mobility, self.one, self.dv, self.dg = live, mobility, one, dv, dg
        self.worst = jnp.zeros_like(dg[0])

    def run(self, rows: ContactRows, old: _Impulses) -> _Impulses:
        """Correct every row once, in order; return the new impulses."""
        walls = [self._wall(rows.walls.row(k), impulse) for k, impulse in enumerate(old.walls)]
        touching = [
            self._each(t, impulse, _touch_row(t))
            for t, impulse in zip(rows.touching, old.touching, strict=True)
        ]
        structure = [
            self._structure(rows.structure.row(k), impulse)
            for k, impulse in enumerate(old.structure)
        ]
        sliding = [
            None if impulse is None else self._each(t, impulse, _slide_row(t, normal_impulse))
            for t, impulse, normal_impulse in zip(rows.touching, old.sliding, touching, strict=True)
        ]
        return _Impulses(walls, touching, sliding, structure)

    def _each(
        self, t: Touching, impulse: jax.Array, correct: Callable[..., jax.Array]
    ) -> jax.Array:
        """Correct the rows of a class one after the other; return their impulses."""
        number = impulse.shape[0]
        if t.used is None and t.sliding is None:
            return jnp.stack([correct(self, k, impulse[k]) for k in range(number)])

        def visit(k: jax.Array, carry: Tree) -> Tree:
            impulse, self.dv, self.dg, self.worst = carry
            impulse = impulse.at[k].set(correct(self, k, impulse[k]))
            return impulse, self.dv, self.dg, self.worst

        carry = (impulse, self.dv, self.dg, self.worst)
        last = number if t.used is None else jnp.max(t.used)
        impulse, self.dv, self.dg, self.worst = jax.lax.fori_loop(0, last, visit, carry)
        return impulse

    def correct(self, p: Prepared, speed: jax.Array, impulse: jax.Array) -> jax.Array:
        """Change of a row's impulse at its present relative velocity."""
        change = jnp.maximum(impulse + (p.target - speed) * p.mass, 0.0) - impulse
        return materialise(jnp.where(self.live, change, 0.0), self.one)

    def note(self, correction: jax.Array) -> None:
        """Update the largest correction of the pass, m/s."""
        self.worst = jnp.maximum(self.worst, jnp.abs(correction))

    def _wall(self, p: Prepared, impulse: jax.Array) -> jax.Array:
        """One wall against all blocks at once, as these rows share no block."""
        change = self.correct(p, jnp.sum(p.normal * self.dv, axis=0), impulse)
        self.note(jnp.max(jnp.abs(change / p.mass), axis=0))
        self.dv = self.dv + self.mobility.push(p.normal * change)
        return impulse + change

    def speed(self, p: Prepared, first: Slot, second: Slot | None) -> jax.Array:
        """Present change of a row's relative velocity."""
        v = one_slot(first, self.dv, 1)
        if second is not None:
            v = v - one_slot(second, self.dv, 1)
        speed = jnp.sum(p.normal * v, axis=0)
        return speed if p.read is None else speed + jnp.sum(p.read * self.dg, axis=0)

    def push(self, p: Prepared, change: jax.Array, first: Slot, second: Slot | None) -> None:
        """Apply a change of a row's impulse to its bodies."""
        self._move(first, p.normal * change)
        if second is not None:
            self._move(second, -p.normal * change)
        if p.kick is not None:
            self.dg = self.dg + p.kick * change

    def _move(self, slot: Slot, impulse: jax.Array) -> None:
        """Apply an impulse (3, ...) to one block."""
        step = self.mobility.of(lambda leaf: one_slot(slot, leaf)).push(impulse)
        if isinstance(slot, jax.Array) and slot.ndim:
            self.dv = self.dv.at[:, slot, jnp.arange(slot.shape[0])].add(step)
        else:
            self.dv = self.dv.at[:, slot].add(step)

    def _structure(self, p: Prepared, impulse: jax.Array) -> jax.Array:
        change = self.correct(p, jnp.sum(p.read * self.dg, axis=0), impulse)
        self.note(change / p.mass)
        self.dg = self.dg + p.kick * change
        return impulse + change


def _slots(t: Touching, k: jax.Array | int) -> tuple[Slot, Slot | None]:
    """Blocks of row k."""
    return _slot(t.first, k), None if t.second is None else _slot(t.second, k)


def _slot(slots: Slots, k: jax.Array | int) -> Slot:
    """Slot of row k; NumPy's are known to an unrolled pass alone."""
    slot: Slot = slots[k] if isinstance(k, int) else jnp.asarray(slots)[k]
    return slot


def _touch_row(t: Touching) -> Callable[[_Sweep, jax.Array | int, jax.Array], jax.Array]:
    """Return the correction of a row of a class; impulses stay nonnegative."""

    def correct(sweep: _Sweep, k: jax.Array | int, impulse: jax.Array) -> jax.Array:
        p, slots = t.rows.row(k), _slots(t, k)
        change = sweep.correct(p, sweep.speed(p, *slots), impulse)
        correction = change / p.mass
        sweep.note(jnp.where(t.sliding.ignored[k], 0.0, correction) if t.sliding else correction)
        sweep.push(p, change, *slots)
        return impulse + change

    return correct


def _slide_row(
    t: Touching, normal_impulse: jax.Array
) -> Callable[[_Sweep, jax.Array | int, jax.Array], jax.Array]:
    """Return the correction of a contact's friction, within the cone of its `normal_impulse`.

    Each direction alone would stop the sliding; both are scaled into the cone together, as Bullet
    does, and only then applied.
    """
    assert t.sliding is not None
    sliding = t.sliding

    def correct(sweep: _Sweep, k: jax.Array | int, impulse: jax.Array) -> jax.Array:
        slots = _slots(t, k)
        limit = sliding.coefficient * normal_impulse[k]
        each = [rows.row(k) for rows in sliding.rows]
        proposal = [
            old + (p.target - sweep.speed(p, *slots)) * p.mass
            for p, old in zip(each, impulse, strict=True)
        ]
        size = jnp.sqrt(proposal[0] * proposal[0] + proposal[1] * proposal[1])
        share = jnp.where(size > limit, limit / jnp.where(size > 0, size, 1.0), 1.0)
        live = sweep.live & (limit > 0)
        scaled = (jnp.where(live, part * share, 0.0) for part in proposal)
        new = [jnp.where(sweep.live, a, b) for a, b in zip(scaled, impulse, strict=True)]
        changes = materialise([a - b for a, b in zip(new, impulse, strict=True)], sweep.one)
        # Bullet adds the corrections of both directions with their signs.
        first, second = (change / p.mass for p, change in zip(each, changes, strict=True))
        sweep.note(jnp.where(sliding.stuck[k], 0.0, first + second))
        for p, change in zip(each, changes, strict=True):
            sweep.push(p, change, *slots)
        return impulse + jnp.stack(changes)

    return correct
