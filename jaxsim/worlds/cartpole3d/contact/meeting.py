"""One isolated contact: two blocks, or a block and cart or pole, that nothing else touches."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.backend import mask, materialise
from jaxsim.pytrees import Leaf
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d import lines
from jaxsim.worlds.cartpole3d.contact import broadphase
from jaxsim.worlds.cartpole3d.contact import rows as rows_of
from jaxsim.worlds.cartpole3d.types import Scalar, Sphere, Vector


class Meeting(NamedTuple):
    """A possible contact: of two blocks, or of one block or none with another body."""

    row: rows_of.ContactRow
    blocks: Sequence[Sphere] = ()
    speeds: Sequence[Vector] = ()  # their velocities after the free motion, m/s
    slides: Callable[[], list[rows_of.ContactRow]] | None = None  # makes the rows of its friction
    friction: Scalar = 0.0  # product of the two bodies' coefficients


class Contact(NamedTuple):
    """Result of a contact."""

    active: jax.Array  # bool, whether bodies touch
    steps: Sequence[Vector]  # velocity change of each of its blocks, m/s
    change: Sequence[Scalar] | None  # of cart and pole, see `rows.generalized`


class Response(NamedTuple):
    """Response to a unit impulse along a row."""

    steps: Sequence[Vector]  # of its blocks, m/s
    kick: Leaf  # of cart and pole, (6, ...) or None


def response(s: rows_of.CartAndPole, meeting: Meeting, row: rows_of.ContactRow) -> Response:
    """Response to a unit impulse along a row of a meeting."""
    steps = []
    for sign, block in zip((1.0, -1.0), meeting.blocks, strict=False):
        push = geo.scale(_vector(row.normal), sign / s.params.block_mass)
        steps.append(push if block.rail is None else lines.along(block.rail, push))
    return Response(*materialise((steps, row.kick), s.one))


def along(row: rows_of.ContactRow, speeds: Sequence[Vector], g: Leaf) -> Scalar:
    """Relative velocity along a row, m/s.

    Args:
      row: of a meeting.
      speeds: velocities of its blocks, or changes of them.
      g: those of cart and pole, see `rows.generalized`; unused if the row does not touch them.
    """
    total: Scalar = 0.0
    if speeds:
        relative = speeds[0] if len(speeds) == 1 else geo.sub(*speeds)
        total = geo.dot(_vector(row.normal), relative)
    return total if row.read is None else total + sum(row.read[i] * g[i] for i in range(6))


def _vector(components: Sequence[Scalar] | jax.Array) -> Vector:
    return Vector(*(components[i] for i in range(3)))


def without_friction(s: rows_of.CartAndPole, meeting: Meeting, g: jax.Array) -> Contact:
    """Resolve a contact without friction, by a single impulse.

    Args:
      s: cart and pole.
      meeting: the contact.
      g: velocities of cart and pole after the free motion.
    """
    row = meeting.row
    unit = response(s, meeting, row)
    softness = along(row, unit.steps, unit.kick)
    # Nothing moves two bodies that are both fixed.
    active = mask(jnp.asarray(row.active & (softness > 0)), s.one)
    change = broadphase.separating_speed(along(row, meeting.speeds, g), row.gap, row.restitution)
    impulse = jnp.maximum(change / jnp.where(active, softness, 1.0), 0.0)
    impulse = materialise(jnp.where(active, impulse, 0.0), s.one)
    steps = [geo.scale(step, impulse) for step in unit.steps]
    return Contact(active, steps, None if unit.kick is None else [k * impulse for k in unit.kick])
