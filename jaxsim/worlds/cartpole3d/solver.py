"""Impulses that resolve all contacts of a tick, by projected Gauss-Seidel.

Bullet iterates over its contacts until the largest correction of a pass is negligible; so does
this, lane by lane. A row's unknown is an impulse that pushes and never pulls.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.backend import mask, materialise, opaque_one
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d import rows as rows_of
from jaxsim.worlds.cartpole3d.contacts import separating_speed
from jaxsim.worlds.cartpole3d.dynamics import Bodies
from jaxsim.worlds.cartpole3d.geometry import Rotation
from jaxsim.worlds.cartpole3d.types import Block, Params, Pose, Scalar, Vector, Velocity

SWEEPS = 50  # most passes over the rows
RESIDUAL = 1e-7  # (m/s)^2, largest squared correction of a pass that ends the iteration


class _Prepared(NamedTuple):
    """A class of rows with its constants for the iteration."""

    target: jax.Array  # (R, ...) m/s, wanted change of the relative velocity; -inf if absent
    mass: jax.Array  # (R, ...) kg, inverse of the velocity change per unit impulse
    normal: Any  # these three as in `rows_of.Row`; None where the class has no such part
    read: Any
    kick: Any

    def row(self, index: int) -> "_Prepared":
        """One row of the class."""
        own = [None if a is None else a[:, index] for a in (self.normal, self.read, self.kick)]
        return _Prepared(self.target[index], self.mass[index], *own)


def _prepare(row: rows_of.Row, approach: jax.Array, softness: Scalar, one: jax.Array) -> _Prepared:
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
    # Nothing moves two bodies that are both fixed.
    movable = softness > 0
    target = jnp.where(row.active & movable, wanted, -jnp.inf)
    mass = jnp.broadcast_to(1 / jnp.where(movable, softness, 1.0), target.shape)
    return _Prepared(*materialise((target, mass, row.normal, row.read, row.kick), one))


class _Rows(NamedTuple):
    """All contacts of a tick, class by class, in the order in which they are solved."""

    walls: _Prepared  # R is (6, N)
    pairs: _Prepared | None
    cart: _Prepared
    pole: _Prepared
    structure: _Prepared


def _all_rows(s: rows_of.Structure, blocks: Block, v: jax.Array, g: jax.Array) -> _Rows:
    """Build every row for stacked blocks with velocities v (3, N, ...) and g (6, ...)."""
    light, one = 1 / s.params.block_mass, s.one
    walls = rows_of.wall_rows(s.params, blocks)
    pairs = None
    indices = rows_of.pair_indices(v.shape[1])
    if indices:
        first, second = (np.array(side) for side in zip(*indices, strict=True))
        a, b = (jax.tree.map(lambda x, k=k: x[k], blocks) for k in (first, second))
        row = rows_of.pair_rows(s.params, a, b)
        speed = jnp.sum(row.normal * (v[:, first] - v[:, second]), axis=0)
        pairs = _prepare(row, speed, 2 * light, one)

    def touching(row: rows_of.Row) -> _Prepared:
        speed = jnp.sum(row.normal * v, axis=0) + jnp.sum(row.read * g[:, None], axis=0)
        return _prepare(row, speed, light, one)

    row = rows_of.structure_rows(s)
    structure = _prepare(row, jnp.sum(row.read * g[:, None], axis=0), 0.0, one)
    return _Rows(
        _prepare(walls, jnp.sum(walls.normal * v[:, None], axis=0), light, one),
        pairs,
        touching(rows_of.cart_rows(s, blocks)),
        touching(rows_of.pole_rows(s, blocks)),
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
    s = rows_of.Structure(params, body, pose, materialise(r, one), materialise(world, one), one)
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *blocks)
    v = jnp.stack([jnp.stack(axis) for axis in zip(*block_velocities, strict=True)])
    rows = _all_rows(s, stacked, v, rows_of.generalized(velocity, r))
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
        old = pending.pop(0)
        new = [jnp.stack([self._wall(rows.walls.row(k), old[k]) for k in range(old.shape[0])])]
        num_blocks = self.dv.shape[1]
        if rows.pairs is not None:
            pairs = [
                self._pair(rows.pairs.row(k), impulse, i, j)
                for k, ((i, j), impulse) in enumerate(
                    zip(rows_of.pair_indices(num_blocks), pending.pop(0), strict=True)
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

    def _wall(self, p: _Prepared, impulse: jax.Array) -> jax.Array:
        """One wall against all blocks at once: they do not share it."""
        change = self._correct(p, jnp.sum(p.normal * self.dv, axis=0), impulse)
        self._note(jnp.max(jnp.abs(change / p.mass), axis=0))
        self.dv = self.dv + p.normal * (change * self.light)
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
