"""Assembly of all contact rows of a tick, the input of the iteration.

With up to four block slots, every possible contact has a row. With stacked slots, only contacts
that are near have rows, from the lists of `candidates`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.backend import materialise
from jaxsim.pytrees import Leaf
from jaxsim.worlds.cartpole3d import lines
from jaxsim.worlds.cartpole3d.contact import broadphase, candidates
from jaxsim.worlds.cartpole3d.contact import rows as rows_of
from jaxsim.worlds.cartpole3d.contact.broadphase import separating_speed
from jaxsim.worlds.cartpole3d.types import UNROLLED, Rail, Scalar, Sphere, Vector

T = TypeVar("T")

Slots = np.ndarray | jax.Array
"""Slot of each row's block: (R,), or (R, ...) int32 where lanes differ."""

Slot = np.int64 | jax.Array
"""Slot of one row's block: (), or (...) where lanes differ."""


class Mobility(NamedTuple):
    """Response of blocks to impulses."""

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

    def of(self, read: Callable[[jax.Array], jax.Array]) -> "Mobility":
        """Mobility of the blocks that `read` selects from (N, ...) leaves."""
        return Mobility(self.light, jax.tree.map(read, self.rails))


class Prepared(NamedTuple):
    """A class of rows with its constants for the iteration."""

    target: jax.Array  # (R, ...) m/s, target change of the relative velocity; -inf if absent
    mass: jax.Array  # (R, ...) kg, inverse of the velocity change per unit impulse
    normal: Leaf  # these three as in `rows_of.ContactRow`; None where the class lacks the part
    read: Leaf
    kick: Leaf

    def row(self, index: jax.Array | int) -> "Prepared":
        """One row of the class."""
        optional = [None if a is None else a[:, index] for a in (self.normal, self.read, self.kick)]
        return Prepared(self.target[index], self.mass[index], *optional)


class Sliding(NamedTuple):
    """Friction of a class of contacts, in two directions of the contact plane.

    Some rows can move nothing: those of a block on a line against the floor, or those of the side
    of the cart in the vertical direction. There Bullet divides zero by zero, which resets its
    running maximum of corrections, so it may end the iteration early.
    """

    rows: list[Prepared]
    coefficient: Scalar
    ignored: jax.Array  # (R, ...) bool, whether corrections of the normal impulse do not count
    stuck: jax.Array  # (R, ...) bool, whether corrections of its friction do not count


class Touching(NamedTuple):
    """A class of contacts of a block with another block, or with cart or pole."""

    rows: Prepared
    first: Slots  # slot of each row's block: (R,) NumPy, or (R, ...) int32 where lanes differ
    second: Slots | None  # slot of the other block; None if there is none
    used: jax.Array | None  # (...) int32, rows in use; None for all R
    sliding: Sliding | None


class ContactRows(NamedTuple):
    """All contacts of a tick, class by class, in the order in which they are solved."""

    walls: Prepared  # R is (6, N)
    touching: tuple[Touching, ...]  # pairs, cart, pole
    structure: Prepared


def _many(slots: Slots, values: jax.Array, axis: int = 0) -> jax.Array:
    """Read the slots of a class from an array with slots at `axis`."""
    if isinstance(slots, np.ndarray):
        return values[(slice(None),) * axis + (slots,)]
    return candidates.take(values, slots, axis)


def one_slot(slot: Slot, values: jax.Array, axis: int = 0) -> jax.Array:
    """Read one slot, the same for all lanes or one for each."""
    if isinstance(slot, np.integer):
        return values[(slice(None),) * axis + (int(slot),)]
    if slot.ndim == 0:
        return jax.lax.dynamic_index_in_dim(values, slot, axis, keepdims=False)
    return candidates.take(values, slot[None], axis).squeeze(axis)


def prepare(
    row: rows_of.ContactRow, approach: jax.Array, softness: Scalar, one: jax.Array
) -> Prepared:
    """Derive the constants of a class from its velocities after the free motion.

    Args:
      row: the class.
      approach: (R, ...) relative normal velocities, m/s.
      softness: (R, ...) or () 1/kg, change of them by a unit impulse on the blocks.
      one: from `opaque_one`.
    """
    change = separating_speed(approach, row.gap, row.restitution)
    return _constants(row, jnp.asarray(change), softness, one, missing=-jnp.inf)


def _constants(
    row: rows_of.ContactRow, change: jax.Array, softness: Scalar, one: jax.Array, missing: float
) -> Prepared:
    softness = _softness(row, softness)
    # Nothing moves two bodies that are both fixed.
    movable = softness > 0
    target = jnp.where(row.active & movable, change, missing)
    mass = jnp.broadcast_to(1 / jnp.where(movable, softness, 1.0), target.shape)
    return Prepared(*materialise((target, mass, row.normal, row.read, row.kick), one))


def _softness(row: rows_of.ContactRow, of_blocks: Scalar) -> Scalar:
    """Change of the relative velocity of a row by a unit impulse, 1/kg."""
    if row.read is None or row.kick is None:
        return of_blocks
    return of_blocks + jnp.sum(row.read * row.kick, axis=0)


class Builder:
    """Builds the rows of stacked blocks with velocities v (3, N, ...) and g (6, ...)."""

    def __init__(self, s: rows_of.CartAndPole, blocks: Sphere, v: jax.Array, g: jax.Array) -> None:
        self.s, self.blocks, self.v, self.g = s, blocks, v, g
        self.mobility = Mobility(1 / s.params.block_mass, blocks.rail)
        self.walls = rows_of.wall_rows(s.params, blocks)

    def rows(self) -> ContactRows:
        """Every row of the tick."""
        s, walls = self.s, self.walls
        speed = jnp.sum(walls.normal * self.v[:, None], axis=0)
        row = rows_of.structure_rows(s)
        structure = prepare(row, jnp.sum(row.read * self.g[:, None], axis=0), 0.0, s.one)
        number = self.v.shape[1]
        touching = self._unrolled(number) if number <= UNROLLED else self._listed()
        return ContactRows(
            prepare(walls, speed, self.mobility.softness(walls.normal), s.one),
            tuple(touching),
            structure,
        )

    def _unrolled(self, number: int) -> list[Touching]:
        """All pairs of blocks, and all blocks against cart and pole."""
        pairs = [(i, j) for i in range(number) for j in range(i + 1, number)]
        classes = []
        if pairs:
            first, second = (np.array(side) for side in zip(*pairs, strict=True))
            classes.append(self._pairs(first, second, None))
        slots = np.arange(number)
        return [*classes, self._cart(slots, None), self._pole(slots, None)]

    def _listed(self) -> list[Touching]:
        """Pairs that touch, and blocks near cart and pole."""
        params = self.s.params
        one = self.s.one
        pairs = candidates.pairs_within(self.blocks, broadphase.pair_reach(params), one)
        near_cart, near_pole = broadphase.near_structure(
            params, self.s.pose, self.s.world, self.blocks
        )
        most = candidates.MAX_NEAR
        cart, in_cart = candidates.flagged(near_cart, most, one)
        pole, in_pole = candidates.flagged(near_pole, most, one)
        return [
            self._pairs(*pairs),
            self._cart(cart, jnp.minimum(in_cart, most)),
            self._pole(pole, jnp.minimum(in_pole, most)),
        ]

    def _chosen(self, slots: Slots, count: jax.Array | None) -> Sphere:
        """Blocks of a class; padding of its list is not alive."""
        chosen = jax.tree.map(lambda leaf: _many(slots, leaf), self.blocks)
        if count is None:
            return chosen
        number = jnp.arange(slots.shape[0]).reshape((-1,) + (1,) * count.ndim)
        return Sphere(chosen.p, chosen.v, chosen.alive & (number < count), chosen.rail)

    def _pairs(self, first: Slots, second: Slots, count: jax.Array | None) -> Touching:
        params, one = self.s.params, self.s.one
        a, b = self._chosen(first, count), self._chosen(second, count)
        row = rows_of.pair_rows(params, a, b)
        m_a, m_b = Mobility(self.mobility.light, a.rail), Mobility(self.mobility.light, b.rail)
        relative = _many(first, self.v, 1) - _many(second, self.v, 1)

        def prepared(row: rows_of.ContactRow, make: Callable[..., T]) -> T:
            speed = jnp.sum(row.normal * relative, axis=0)
            return make(row, speed, m_a.softness(row.normal) + m_b.softness(row.normal), one)

        sliding = None
        if self.mobility.rails is not None:
            held = self._held()
            sliding = _friction(
                rows_of.pair_slides(row),
                prepared,
                params.friction_block * params.friction_block,
                _many(first, held) | _many(second, held),
            )
        return Touching(prepared(row, prepare), first, second, count, sliding)

    def _held(self) -> jax.Array:
        """Whether each block touches a wall across its line, (N, ...) bool."""
        across = jnp.asarray(self.mobility.softness(self.walls.normal)) <= 0
        slides = jnp.asarray(self.mobility.light) > 0
        return jnp.any(self.walls.active & across & slides, axis=0)

    def _cart(self, slots: Slots, count: jax.Array | None) -> Touching:
        touch = rows_of.cart_rows(self.s, self._chosen(slots, count))
        return self._on_structure(
            touch, slots, count, rows_of.cart_slides, self.s.params.friction_cart
        )

    def _pole(self, slots: Slots, count: jax.Array | None) -> Touching:
        touch = rows_of.pole_rows(self.s, self._chosen(slots, count))
        return self._on_structure(
            touch, slots, count, rows_of.pole_slides, self.s.params.friction_pole
        )

    def _on_structure(
        self,
        touch: rows_of.Touch,
        slots: Slots,
        count: jax.Array | None,
        slides: Callable[[rows_of.CartAndPole, rows_of.Touch], list[rows_of.ContactRow]],
        friction: Scalar,
    ) -> Touching:
        """Class of blocks against cart or pole."""
        mobility = self.mobility.of(lambda leaf: _many(slots, leaf))
        velocity = _many(slots, self.v, 1)

        def prepared(row: rows_of.ContactRow, make: Callable[..., T]) -> T:
            speed = jnp.sum(row.normal * velocity, axis=0)
            speed = speed + jnp.sum(row.read * self.g[:, None], axis=0)
            return make(row, speed, mobility.softness(row.normal), self.s.one)

        sliding = None
        if mobility.rails is not None:
            sliding = _friction(
                slides(self.s, touch),
                prepared,
                self.s.params.friction_block * friction,
                _many(slots, self._held()),
            )
        return Touching(prepared(touch.row, prepare), slots, None, count, sliding)


def _friction(
    slides: list[rows_of.ContactRow],
    prepare: Callable[[rows_of.ContactRow, Callable[..., Any]], Any],
    coefficient: Scalar,
    ignored: jax.Array,
) -> Sliding:
    """Friction of a class from its rows, one for each direction."""
    stuck = [prepare(slide, _is_stuck) for slide in slides]
    along = [prepare(slide, _stopping) for slide in slides]
    return Sliding(along, coefficient, ignored, stuck[0] | stuck[1])


def _is_stuck(
    row: rows_of.ContactRow, speed: jax.Array, softness: Scalar, one: jax.Array
) -> jax.Array:
    """Whether nothing moves along a row."""
    return jnp.asarray(_softness(row, softness)) <= 0


def _stopping(
    row: rows_of.ContactRow, speed: jax.Array, softness: Scalar, one: jax.Array
) -> Prepared:
    """Constants of friction rows, whose target is to stop sliding."""
    return _constants(row, -speed, softness, one, missing=0.0)
