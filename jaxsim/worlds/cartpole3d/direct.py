"""Impulses between few blocks, cart, pole and room, by projected Gauss-Seidel.

Bullet iterates over its contacts until the largest correction of a pass is negligible; so does
this, lane by lane. Every possible contact has a row of its own, whose unknown is an impulse that
pushes and never pulls; friction follows the others in each pass, bounded by what its contact
pushes. Rows are built together, class by class, and corrected one after the other.

Vectors are tuples of arrays, not arrays with an axis of components: XLA:CPU neither vectorises a
sum over so short an axis nor keeps it out of memory.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.backend import mask, materialise, opaque_one
from jaxsim.worlds.cartpole3d import dynamics, lines, slots
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d import rows as rows_of
from jaxsim.worlds.cartpole3d.contacts import separating_speed
from jaxsim.worlds.cartpole3d.dynamics import Bodies
from jaxsim.worlds.cartpole3d.geometry import Rotation
from jaxsim.worlds.cartpole3d.types import (
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

Spins = Sequence[Any]
"""Pivot x and y, yaw rate and absolute spin of the pole, as `rows.generalized` orders them."""


class Row(NamedTuple):
    """A contact, or a class of them, with its constants for the iteration."""

    target: jax.Array  # m/s, wanted change of the relative velocity; -inf if absent
    softness: jax.Array  # 1/kg, velocity change per unit impulse
    mass: jax.Array  # kg, its inverse
    normal: Vector | None = None  # these three as in `rows.Row`
    read: Spins | None = None
    kick: Spins | None = None

    def at(self, index: int) -> "Row":
        """One row of a class."""
        return Row(*(jax.tree.map(lambda leaf: leaf[index], tuple(self))))


class Friction(NamedTuple):
    """Friction of a class of contacts, in two directions of the contact plane.

    Some rows can move nothing: those of a block on a line against the floor, or those of the side
    of the cart in the vertical direction. There Bullet divides zero by zero, and its running
    maximum of corrections forgets what was before, so that it may end the iteration early.
    """

    along: list[Row]
    coefficient: Scalar
    unseen: jax.Array  # whether corrections of what the contact pushes are forgotten
    stuck: jax.Array  # whether those of its friction are


class Contacts(NamedTuple):
    """Contacts of one class: of blocks with each other, with the cart, or with the pole."""

    rows: Row  # leaves (R, ...)
    bodies: list[tuple[int, ...]]  # the block of each row, and the other one if there is one
    friction: Friction | None


class Scene(NamedTuple):
    """What rows are built from."""

    structure: rows_of.Structure
    blocks: Block  # leaves (N, ...)
    v: Vector  # (N, ...) m/s, after the free motion
    g: Spins  # the same of cart and pole
    light: Scalar  # 1/kg, of a block

    def push(self, impulse: Vector, rail: Rail | None) -> Vector:
        """Velocity change of blocks by an impulse, N s."""
        step = geo.scale(impulse, self.light)
        return step if rail is None else lines.along(rail, step)

    def softness(self, normal: Vector, rail: Rail | None) -> Scalar:
        """Velocity change of blocks along unit vectors by a unit impulse along them, 1/kg."""
        return self.light if rail is None else geo.dot(normal, self.push(normal, rail))


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
    world = materialise(geo.yawed(pose.cos, pose.sin, r), one)
    structure = rows_of.Structure(params, body, pose, materialise(r, one), world, one)
    v = Vector(*(jnp.stack(axis) for axis in zip(*block_velocities, strict=True)))
    spin = dynamics.pole_spin(velocity, r)
    g = (velocity.vx, velocity.vy, velocity.yaw_rate, *spin)
    stacked = slots.stack(blocks, pose.x)
    scene = Scene(structure, stacked, v, g, 1 / params.block_mass)
    dv, dg = _Iteration(scene, needed).run()
    after = [Vector(*(a[i] + b[i] for a, b in zip(v, dv, strict=True))) for i in range(len(blocks))]
    return after, _turned(velocity, r, dg)


def _turned(velocity: Velocity, r: Rotation, change: Spins) -> Velocity:
    """Add a change of pivot velocity, yaw rate and absolute spin to the state's components."""
    vx, vy, yaw, wx, wy, wz = change
    return Velocity(
        velocity.vx + vx,
        velocity.vy + vy,
        velocity.yaw_rate + yaw,
        velocity.wx + wx - r.z.x * yaw,
        velocity.wy + wy - r.z.y * yaw,
        velocity.wz + wz - r.z.z * yaw,
    )


def _products(a: Spins, b: Spins) -> Any:
    """Sum of the products of components."""
    first, *others = (x * y for x, y in zip(a, b, strict=True))
    return sum(others, first)


def _vector(components: Any) -> Vector:
    """A vector from an array with its components in front."""
    return Vector(*(components[i] for i in range(3)))


def _spins(components: Any) -> Spins | None:
    return None if components is None else [components[i] for i in range(6)]


def _build(
    row: rows_of.Row,
    wanted: Callable[[rows_of.Row, jax.Array], jax.Array],
    missing: float,
    speed: Scalar,
    of_blocks: Scalar,
    one: jax.Array,
) -> Row:
    """Constants of a class.

    Args:
      row: the class.
      wanted: (class, relative velocities) -> change that it asks for, m/s.
      missing: the same of rows that are absent.
      speed: (R, ...) relative velocities of the blocks after the free motion, m/s.
      of_blocks: 1/kg, what a unit impulse adds to them by way of the blocks.
      one: from `opaque_one`.
    """
    read, kick = _spins(row.read), _spins(row.kick)
    softness = of_blocks
    if read is not None and kick is not None:
        softness = of_blocks + _products(read, kick)
    softness = jnp.broadcast_to(jnp.asarray(softness), row.active.shape)
    # Nothing moves two bodies that are both fixed.
    movable = softness > 0
    target = jnp.where(row.active & movable, wanted(row, jnp.asarray(speed)), missing)
    mass = 1 / jnp.where(movable, softness, 1.0)
    normal = None if row.normal is None else _vector(row.normal)
    return Row(*materialise((target, softness, mass, normal, read, kick), one))


def _separating(row: rows_of.Row, speed: jax.Array) -> jax.Array:
    return jnp.asarray(separating_speed(speed, row.gap, row.restitution))


def _stopping(row: rows_of.Row, speed: jax.Array) -> jax.Array:
    return -speed


class _Builder:
    """Builds the rows of a scene."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.s, self.one = scene, scene.structure, scene.structure.one
        self.wall_row = rows_of.wall_rows(self.s.params, scene.blocks)

    def walls(self) -> Row:
        """Rows of all blocks against the six walls, (6, N, ...)."""
        normal = _vector(self.wall_row.normal)
        softness = self.scene.softness(normal, self.scene.blocks.rail)
        speed = geo.dot(normal, self.scene.v)
        return _build(self.wall_row, _separating, -jnp.inf, speed, softness, self.one)

    def structure(self) -> Row:
        """Rows of cart and pole against walls."""
        row = rows_of.structure_rows(self.s)
        speed = _products([row.read[i] for i in range(6)], self.scene.g)
        return _build(row, _separating, -jnp.inf, speed, 0.0, self.one)

    def touching(self) -> list[Contacts]:
        """Every pair, and every block against cart and pole, in the order of their solution."""
        number = self.scene.v.x.shape[0]
        pairs = rows_of.pair_indices(number)
        found = [self._pairs(pairs)] if pairs else []
        params, s, blocks = self.s.params, self.s, self.scene.blocks
        cart, pole = rows_of.cart_rows(s, blocks), rows_of.pole_rows(s, blocks)
        return [
            *found,
            self._on_structure(cart, rows_of.cart_slides, params.friction_cart),
            self._on_structure(pole, rows_of.pole_slides, params.friction_pole),
        ]

    def _pairs(self, pairs: list[tuple[int, int]]) -> Contacts:
        sides = list(zip(*pairs, strict=True))
        a, b = (jax.tree.map(lambda leaf, k=k: _rows(leaf, k), self.scene.blocks) for k in sides)
        va, vb = (Vector(*(_rows(c, k) for c in self.scene.v)) for k in sides)
        row = rows_of.pair_rows(self.s.params, a, b)
        relative = geo.sub(va, vb)

        def build(row: rows_of.Row, wanted: Any, missing: float) -> Row:
            normal = _vector(row.normal)
            softness = self.scene.softness(normal, a.rail) + self.scene.softness(normal, b.rail)
            return _build(row, wanted, missing, geo.dot(normal, relative), softness, self.one)

        friction = None
        if a.rail is not None:
            held = self._held()
            unseen = _rows(held, sides[0]) | _rows(held, sides[1])
            coefficient = self.s.params.friction_block * self.s.params.friction_block
            friction = _friction(rows_of.pair_slides(row), build, coefficient, unseen)
        return Contacts(build(row, _separating, -jnp.inf), list(pairs), friction)

    def _held(self) -> jax.Array:
        """Whether each block touches a wall along which its line does not go, (N, ...) bool."""
        across = jnp.asarray(
            self.scene.softness(_vector(self.wall_row.normal), self.scene.blocks.rail)
        )
        slides = jnp.asarray(self.scene.light) > 0
        return jnp.any(self.wall_row.active & (across <= 0) & slides, axis=0)

    def _on_structure(
        self,
        touch: rows_of.Touch,
        slides: Callable[[rows_of.Structure, rows_of.Touch], list[rows_of.Row]],
        friction: Scalar,
    ) -> Contacts:
        """Contacts of blocks with cart or pole."""
        scene = self.scene

        def build(row: rows_of.Row, wanted: Any, missing: float) -> Row:
            normal = _vector(row.normal)
            speed = geo.dot(normal, scene.v) + _products([row.read[i] for i in range(6)], scene.g)
            softness = scene.softness(normal, scene.blocks.rail)
            return _build(row, wanted, missing, speed, softness, self.one)

        found = None
        if scene.blocks.rail is not None:
            coefficient = self.s.params.friction_block * friction
            found = _friction(slides(self.s, touch), build, coefficient, self._held())
        bodies = [(number,) for number in range(scene.v.x.shape[0])]
        return Contacts(build(touch.row, _separating, -jnp.inf), bodies, found)


def _rows(leaf: jax.Array, chosen: Sequence[int]) -> jax.Array:
    """Some rows of an array, known when the program is built."""
    return jnp.stack([leaf[k] for k in chosen])


def _friction(
    slides: list[rows_of.Row],
    build: Callable[[rows_of.Row, Any, float], Row],
    coefficient: Scalar,
    unseen: jax.Array,
) -> Friction:
    """Friction of a class from its rows, one for each direction."""
    along = [build(slide, _stopping, 0.0) for slide in slides]
    stuck = (along[0].softness <= 0) | (along[1].softness <= 0)
    return Friction(along, coefficient, unseen, stuck)


class _Iteration:
    """Projected Gauss-Seidel over the rows of a scene."""

    def __init__(self, scene: Scene, needed: jax.Array) -> None:
        builder = _Builder(scene)
        self.scene, self.one = scene, scene.structure.one
        self.lanes = scene.v.x.shape[1:]
        self.needed = jnp.broadcast_to(needed, self.lanes)
        self.walls, self.structure = builder.walls(), builder.structure()
        self.touching = builder.touching()

    def run(self) -> tuple[Vector, Spins]:
        """Return the changes of the velocities of blocks and of cart and pole."""
        zero = jnp.zeros(self.lanes, self.scene.v.x.dtype)
        wide = jnp.zeros_like(self.scene.v.x)
        impulses = {
            "walls": [wide] * 6,
            "touching": [[zero] * len(c.bodies) for c in self.touching],
            "sliding": [
                [(zero, zero)] * len(c.bodies) if c.friction else [] for c in self.touching
            ],
            "structure": [zero] * self.structure.target.shape[0],
        }
        changes = (Vector(wide, wide, wide), [zero] * 6)

        def unfinished(carry: Any) -> jax.Array:
            return (carry[0] < SWEEPS) & jnp.any(carry[1])

        def sweep(carry: Any) -> Any:
            count, live, impulses, changes = carry
            one_pass = _Pass(self, live, *changes)
            impulses = one_pass.run(impulses)
            live = mask(live & (one_pass.worst * one_pass.worst > RESIDUAL), self.one)
            dv = Vector(*(jnp.stack(axis) for axis in zip(*one_pass.dv, strict=True)))
            return count + 1, live, impulses, (dv, list(one_pass.dg))

        carry = (0, self.needed, impulses, changes)
        return jax.lax.while_loop(unfinished, sweep, carry)[3]


class _Pass:
    """One pass over the rows: the running velocity changes and the largest correction."""

    def __init__(self, of: _Iteration, live: jax.Array, dv: Vector, dg: Spins) -> None:
        self.of, self.live, self.wide, self.dg = of, live, dv, list(dg)
        self.dv: list[Vector] = []
        self.worst = jnp.zeros(of.lanes, dv.x.dtype)

    def run(self, old: Any) -> Any:
        """Correct every row once, in order; return the new impulses."""
        walls = [self._wall(self.of.walls.at(k), impulse) for k, impulse in enumerate(old["walls"])]
        self.dv = [
            Vector(*(materialise(c[k], self.of.one) for c in self.wide))
            for k in range(self.wide.x.shape[0])
        ]
        touching = [
            [self._touch(contacts, k, impulse) for k, impulse in enumerate(impulses)]
            for contacts, impulses in zip(self.of.touching, old["touching"], strict=True)
        ]
        structure = [
            self._correct(self.of.structure.at(k), (), impulse)
            for k, impulse in enumerate(old["structure"])
        ]
        sliding = [
            [self._slide(contacts, k, impulse, pushed[k]) for k, impulse in enumerate(impulses)]
            for contacts, impulses, pushed in zip(
                self.of.touching, old["sliding"], touching, strict=True
            )
        ]
        new = {"walls": walls, "touching": touching, "structure": structure}
        return {**new, "sliding": sliding}

    def _asked(self, row: Row, speed: Any, impulse: jax.Array) -> jax.Array:
        """Change of impulse that a row asks for at its present relative velocity."""
        change = jnp.maximum(impulse + (row.target - speed) * row.mass, 0.0) - impulse
        return materialise(jnp.where(self.live, change, 0.0), self.of.one)

    def _note(self, correction: jax.Array) -> None:
        """Remember a correction, m/s, if it is the largest of the pass."""
        self.worst = jnp.maximum(self.worst, jnp.abs(correction))

    def _wall(self, row: Row, impulse: jax.Array) -> jax.Array:
        """One wall against all blocks at once: they do not share it."""
        scene = self.of.scene
        assert row.normal is not None
        change = self._asked(row, geo.dot(row.normal, self.wide), impulse)
        self._note(jnp.max(jnp.abs(change * row.softness), axis=0))
        step = scene.push(geo.scale(row.normal, change), scene.blocks.rail)
        self.wide = geo.add(self.wide, step)
        return impulse + change

    def _speed(self, row: Row, bodies: tuple[int, ...]) -> Any:
        """Present change of a row's relative velocity."""
        speed: Any = 0.0 if row.read is None else _products(row.read, self.dg)
        for sign, body in zip((1, -1), bodies, strict=False):
            speed = speed + sign * geo.dot(row.normal, self.dv[body])
        return speed

    def _apply(self, row: Row, bodies: tuple[int, ...], change: jax.Array) -> None:
        """Apply a change of a row's impulse to what it touches."""
        scene = self.of.scene
        for sign, body in zip((1, -1), bodies, strict=False):
            rail = jax.tree.map(lambda leaf, body=body: leaf[body], scene.blocks.rail)
            step = scene.push(geo.scale(row.normal, sign * change), rail)
            self.dv[body] = geo.add(self.dv[body], step)
        if row.kick is not None:
            self.dg = [a + b * change for a, b in zip(self.dg, row.kick, strict=True)]

    def _correct(
        self,
        row: Row,
        bodies: tuple[int, ...],
        impulse: jax.Array,
        unseen: jax.Array | bool = False,
    ) -> jax.Array:
        """Correct a row; return its new impulse."""
        change = self._asked(row, self._speed(row, bodies), impulse)
        correction = change * row.softness
        self._note(correction if unseen is False else jnp.where(unseen, 0.0, correction))
        self._apply(row, bodies, change)
        return impulse + change

    def _touch(self, contacts: Contacts, k: int, impulse: jax.Array) -> jax.Array:
        """Correct a contact: what pushes never pulls."""
        unseen = contacts.friction.unseen[k] if contacts.friction else False
        return self._correct(contacts.rows.at(k), contacts.bodies[k], impulse, unseen)

    def _slide(
        self,
        contacts: Contacts,
        k: int,
        impulse: tuple[jax.Array, jax.Array],
        pushed: jax.Array,
    ) -> tuple[jax.Array, ...]:
        """Correct a contact's friction: within a cone around what is `pushed`.

        Both directions ask for the end of sliding by themselves; together they are shortened to the
        cone, as Bullet does, and only then applied.
        """
        friction, bodies = contacts.friction, contacts.bodies[k]
        assert friction is not None
        limit = friction.coefficient * pushed
        each = [rows.at(k) for rows in friction.along]
        wanted = [
            old + (row.target - self._speed(row, bodies)) * row.mass
            for row, old in zip(each, impulse, strict=True)
        ]
        size = jnp.sqrt(wanted[0] * wanted[0] + wanted[1] * wanted[1])
        share = jnp.where(size > limit, limit / jnp.where(size > 0, size, 1.0), 1.0)
        share = jnp.where(limit > 0, share, 0.0)
        new = [
            jnp.where(self.live, part * share, old)
            for part, old in zip(wanted, impulse, strict=True)
        ]
        changes = materialise([a - b for a, b in zip(new, impulse, strict=True)], self.of.one)
        # Bullet adds the corrections of both directions up, whatever their signs.
        first, second = (change * row.softness for row, change in zip(each, changes, strict=True))
        self._note(jnp.where(friction.stuck[k], 0.0, first + second))
        for row, change in zip(each, changes, strict=True):
            self._apply(row, bodies, change)
        return tuple(old + change for old, change in zip(impulse, changes, strict=True))
