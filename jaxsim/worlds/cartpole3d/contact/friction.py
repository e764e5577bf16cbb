"""One contact with friction by itself: the iteration of `solver` on its three impulses.

The rows of a contact, its normal and two directions of friction, move the same bodies. A matrix of
three by three holds the change along each row by an impulse along each other. With it a pass of the
iteration is a few operations on three numbers, in the order of `solver` and with its end test.
"""

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.backend import mask, materialise
from jaxsim.pytrees import Tree
from jaxsim.worlds.cartpole3d.contact import broadphase
from jaxsim.worlds.cartpole3d.contact import rows as rows_of
from jaxsim.worlds.cartpole3d.contact.meeting import Contact, Meeting, Response, along, response
from jaxsim.worlds.cartpole3d.contact.solver import RESIDUAL, SWEEPS
from jaxsim.worlds.cartpole3d.types import Scalar, Vector


class System(NamedTuple):
    """Input of the iteration; leaves () or (L,), three by three or three of them."""

    matrix: Sequence[Sequence[Scalar]]  # 1/kg, [k][l]: speed along row k by a unit impulse along l
    target: Sequence[Scalar]  # m/s, target change of speed along each row
    mass: Sequence[Scalar]  # kg, inverse of the matrix's diagonal, 1 where that is 0
    friction: Scalar  # coefficient
    slides: Scalar  # 1 where both directions of friction move something, else 0


def with_friction(
    s: rows_of.CartAndPole, meetings: Sequence[Meeting], g: jax.Array, needed: jax.Array
) -> list[Contact]:
    """Resolve contacts with friction, at most one in each lane.

    Args:
      s: cart and pole.
      meetings: the possible contacts.
      g: velocities of cart and pole after the free motion.
      needed: () or (L,) bool; lanes where it is False are not waited for.
    """
    built = [_built(s, meeting, g) for meeting in meetings]
    active = [mask(jnp.asarray(system.target[0] > -jnp.inf), s.one) for system, _ in built]
    system = built[-1][0]
    for flag, (other, _) in zip(active[:-1], built[:-1], strict=True):
        system = jax.tree.map(lambda a, b, f=flag: jnp.where(f, a, b), other, system)
    needed = needed & reduce(jnp.logical_or, active)
    impulses = materialise(_iterated(materialise(system, s.one), needed, s.one), s.one)
    return [
        _contact(flag, responses, impulses)
        for flag, (_, responses) in zip(active, built, strict=True)
    ]


def _built(s: rows_of.CartAndPole, meeting: Meeting, g: jax.Array) -> tuple[System, list[Response]]:
    """The system of one contact, and the responses to impulses along its rows."""
    assert meeting.slides is not None
    rows = [meeting.row, *meeting.slides()]
    responses = [response(s, meeting, row) for row in rows]
    matrix = [[along(row, unit.steps, unit.kick) for unit in responses] for row in rows]
    soft = [jnp.asarray(matrix[k][k] > 0) for k in range(3)]
    speeds = [along(row, meeting.speeds, g) for row in rows]
    row = meeting.row
    change = broadphase.separating_speed(speeds[0], row.gap, row.restitution)
    target = [jnp.where(row.active & soft[0], change, -jnp.inf)]
    target += [jnp.where(row.active & soft[k], -speeds[k], 0.0) for k in (1, 2)]
    mass = [1 / jnp.where(soft[k], matrix[k][k], 1.0) for k in range(3)]
    slides = jnp.where(soft[1] & soft[2], 1.0, 0.0 * mass[0])
    return System(matrix, target, mass, meeting.friction, slides), responses


def _iterated(system: System, needed: jax.Array, one: jax.Array) -> Sequence[jax.Array]:
    """Impulses along the three rows, N s, as in `solver`."""
    zero = jnp.zeros_like(system.target[1])

    def sweep(carry: Tree) -> Tree:
        count, live, old = carry
        new, worst = _swept(system, live, old, one)
        return count + 1, mask(live & (worst * worst > RESIDUAL), one), new

    def unfinished(carry: Tree) -> jax.Array:
        return (carry[0] < SWEEPS) & jnp.any(carry[1])

    live = jnp.broadcast_to(needed, zero.shape)
    _, _, impulses = jax.lax.while_loop(unfinished, sweep, (0, live, [zero] * 3))
    return list(impulses)


def _swept(
    system: System, live: jax.Array, old: Sequence[jax.Array], one: jax.Array
) -> tuple[list[jax.Array], jax.Array]:
    """One pass: new impulses, and the largest correction, m/s."""

    def correction(k: int, impulses: Sequence[jax.Array]) -> Scalar:
        reached = sum(a * b for a, b in zip(system.matrix[k], impulses, strict=True))
        return (system.target[k] - reached) * system.mass[k]

    normal = jnp.where(live, jnp.maximum(old[0] + correction(0, old), 0.0), old[0])
    normal = materialise(normal, one)
    worst = jnp.abs((normal - old[0]) / system.mass[0])
    before = [normal, *old[1:]]
    proposal = [old[k] + correction(k, before) for k in (1, 2)]
    # Both directions together are scaled into the friction cone.
    limit = system.friction * normal
    size = jnp.sqrt(proposal[0] * proposal[0] + proposal[1] * proposal[1])
    share = jnp.where(size > limit, limit / jnp.where(size > 0, size, 1.0), 1.0)
    share = jnp.where(limit > 0, share, 0.0)
    slide = [
        jnp.where(live, part * share, previous)
        for part, previous in zip(proposal, old[1:], strict=True)
    ]
    slide = materialise(slide, one)
    # Bullet adds the corrections of both directions with their signs.
    first, second = ((slide[k] - old[1 + k]) / system.mass[1 + k] for k in (0, 1))
    worst = jnp.maximum(worst, jnp.abs(system.slides * (first + second)))
    return [normal, *slide], worst


def _contact(
    active: jax.Array, responses: Sequence[Response], impulses: Sequence[jax.Array]
) -> Contact:
    """Total response to impulses along the rows of a contact, where it is active."""
    impulses = [jnp.where(active, impulse, 0.0) for impulse in impulses]

    def total(parts: Sequence[jax.Array]) -> Scalar:
        return sum(part * impulse for part, impulse in zip(parts, impulses, strict=True))

    steps = [
        Vector(*(total(axis) for axis in zip(*of_block, strict=True)))
        for of_block in zip(*(response.steps for response in responses), strict=True)
    ]
    kicks = [response.kick for response in responses]
    change = None if kicks[0] is None else [total([k[i] for k in kicks]) for i in range(6)]
    return Contact(active, steps, change)
