"""One contact by itself: two blocks, or a block and cart or pole, that nothing else touches."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.backend import mask, materialise
from jaxsim.pytrees import Leaf
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d import lines
from jaxsim.worlds.cartpole3d.contact import broadphase
from jaxsim.worlds.cartpole3d.contact import rows as rows_of
from jaxsim.worlds.cartpole3d.types import Block, Scalar, Vector


class Meeting(NamedTuple):
    """A contact that there may be: of two blocks, or of one or none with something else."""

    row: rows_of.Row
    blocks: Sequence[Block] = ()
    speeds: Sequence[Vector] = ()  # their velocities after the free motion, m/s
    slides: Callable[[], list[rows_of.Row]] | None = None  # makes the rows of its friction
    friction: Scalar = 0.0  # product of the two bodies' coefficients


class Contact(NamedTuple):
    """What a contact does."""

    active: jax.Array  # bool, whether there is one
    steps: Sequence[Vector]  # velocity change of each of its blocks, m/s
    change: Sequence[Scalar] | None  # that of cart and pole, see `rows.generalized`


class Response(NamedTuple):
    """What a unit impulse along a row does."""

    steps: Sequence[Vector]  # to its blocks, m/s
    kick: Leaf  # to cart and pole, (6, ...) or None


def response(s: rows_of.Structure, meeting: Meeting, row: rows_of.Row) -> Response:
    """What a unit impulse along a row of a meeting does."""
    steps = []
    for sign, block in zip((1.0, -1.0), meeting.blocks, strict=False):
        push = geo.scale(_vector(row.normal), sign / s.params.block_mass)
        steps.append(push if block.rail is None else lines.along(block.rail, push))
    return Response(*materialise((steps, row.kick), s.one))


def along(row: rows_of.Row, speeds: Sequence[Vector], g: Any) -> Scalar:
    """Relative velocity along a row, m/s.

    Args:
      row: of a meeting.
      speeds: velocities of its blocks, or changes of them.
      g: those of cart and pole, see `rows.generalized`; unused where they are not of it.
    """
    total: Scalar = 0.0
    if speeds:
        relative = speeds[0] if len(speeds) == 1 else geo.sub(*speeds)
        total = geo.dot(_vector(row.normal), relative)
    return total if row.read is None else total + sum(row.read[i] * g[i] for i in range(6))


def _vector(components: Any) -> Vector:
    return Vector(*(components[i] for i in range(3)))


def without_friction(s: rows_of.Structure, meeting: Meeting, g: jax.Array) -> Contact:
    """What a contact does that asks for its impulse once.

    Args:
      s: what rows know of cart and pole.
      meeting: the contact.
      g: velocities of cart and pole after the free motion.
    """
    row = meeting.row
    unit = response(s, meeting, row)
    softness = along(row, unit.steps, unit.kick)
    # Nothing moves two bodies that are both fixed.
    active = mask(jnp.asarray(row.active & (softness > 0)), s.one)
    wanted = broadphase.separating_speed(along(row, meeting.speeds, g), row.gap, row.restitution)
    impulse = jnp.maximum(wanted / jnp.where(active, softness, 1.0), 0.0)
    impulse = materialise(jnp.where(active, impulse, 0.0), s.one)
    steps = [geo.scale(step, impulse) for step in unit.steps]
    return Contact(active, steps, None if unit.kick is None else [k * impulse for k in unit.kick])
