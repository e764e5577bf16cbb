"""Leans of the pole as actions, and a forecast for each of them.

To move, the cart must first let its pole lean that way, so a dodge is a lean that is held for a
while. `push_towards` tracks a lean. `outlook` forecasts how long the pole stays up if a lean is
held for `HELD` ticks and the pole is then set upright. The forecast linearises cart and pole,
blocks fly as in an unchanged room, and hits of cart or pole do not bounce.

Lanes are the last axis inside: leaves are (...), those of leans (A, ...).
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.agents.lookahead import CART_ROOM
from jaxsim.agents.reference import CODED_PUSHES, FALL, RATE_GAIN, TURN, lean, push_along
from jaxsim.backend import materialise, opaque_one
from jaxsim.pytrees import Leaf, Tree
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d.contact.broadphase import ERP
from jaxsim.worlds.cartpole3d.dynamics import CART_HALF_HEIGHT, CART_RADIUS, POLE_RADIUS
from jaxsim.worlds.cartpole3d.types import (
    DT,
    PIVOT_HEIGHT,
    POLE_BOTTOM,
    Observation,
    Params,
    Scalar,
    Vector,
)

SIZES, DIRECTIONS = (0.15, 0.3), 8
LEANS = np.array(
    [(0.0, 0.0)]
    + [
        (
            size * math.cos(turn * math.tau / DIRECTIONS),
            size * math.sin(turn * math.tau / DIRECTIONS),
        )
        for size in SIZES
        for turn in range(DIRECTIONS)
    ],
    np.float32,
)
"""(A, 2) rad, upright and then all directions of each size. The pole does not reach the larger ones
while they are held, so these are pushes in one direction."""

HELD, LOOK = 8, 48
"""Ticks that a lean is held in a forecast, and ticks of the whole forecast."""

ROOM = Params()
"""The unchanged room, pole and blocks."""

# The upright pole of level 200 answers an impulse of 1 N s at height h above the pivot with
# PUSHED - TURN h of the cart's speed, m/s, and SPUN h - TURN of the lean's rate, rad/s; `PULL` is
# the cart's acceleration by the lean, m/s^2 by rad. From masses of 1 and 0.1 kg, 1 m apart.
PUSHED, SPUN, PULL = 0.992, 10.05, -0.895

GAP_KEPT = 0.01  # m, gap up to which a contact acts; the tick may still close it
NOTHING_NEAR = 9.0  # m


class Outlook(NamedTuple):
    """Forecast of each lean, leaves (..., A)."""

    upright: jax.Array  # share of `LOOK` ticks until the pole falls
    gap: jax.Array  # m, smallest gap to a block until then; negative where one overlaps
    end: jax.Array  # rad, size of the lean and of its rate times `RATE_GAIN` at the end


class _Body(NamedTuple):
    """Cart and pole; leaves (A, ...)."""

    x: Scalar  # m
    y: Scalar
    vx: Scalar  # m/s
    vy: Scalar
    lx: Scalar  # rad
    ly: Scalar
    dx: Scalar  # rad/s
    dy: Scalar


def push_towards(observation: Observation, lean_x: Scalar, lean_y: Scalar) -> jax.Array:
    """Action code of the push that brings the pole to a lean, rad."""
    (lx, ly), (dlx, dly) = lean(observation)
    # The lean is reported a tick late.
    ahead = DT + RATE_GAIN
    return push_along(lx + ahead * dlx - lean_x, ly + ahead * dly - lean_y)


def outlook(observation: Observation) -> Outlook:
    """Forecast every lean.

    Args:
      observation: of one lane or of many; every block slot counts.
    """
    o = jax.tree.map(_single, observation)
    (lx, ly), (dlx, dly) = lean(o)
    zeros = jnp.zeros((len(LEANS), *jnp.shape(lx)), jnp.float32)
    p, v = o.cart_position, o.cart_velocity
    now = (p.x, p.y, v.x, v.y, lx + DT * dlx, ly + DT * dly, dlx, dly)
    body = _Body(*(zeros + number for number in now))
    still = tuple(Vector(zeros, zeros, zeros) for _ in o.block_alive)
    shape = (-1,) + (1,) * jnp.ndim(lx)
    reference = (LEANS[:, 0].reshape(shape), LEANS[:, 1].reshape(shape))
    blocks = (tuple(o.block_position), tuple(o.block_velocity))

    def tick(carry: Tree, t: jax.Array) -> Tree:
        body, (place, speed), (shift, kick), up, least = carry
        # Of full shape: XLA turns a division by a broadcast value into a multiplication.
        one = opaque_one(body.x)
        hold = (t < HELD).astype(jnp.float32)
        body = materialise(_pushed(body, hold * reference[0], hold * reference[1]), one)
        speed = _block_velocities(place, speed, o.block_alive, opaque_one(place[0].x))
        pivot = Vector(body.x, body.y, PIVOT_HEIGHT)
        relative = [geo.sub(geo.add(a, b), pivot) for a, b in zip(place, shift, strict=True)]
        lz = 1 - 0.5 * (body.lx * body.lx + body.ly * body.ly)
        axis = Vector(body.lx, body.ly, lz)
        gap = jnp.full_like(body.x, NOTHING_NEAR)
        for nearest, radius in ((_cart, 0.0), (_pole, POLE_RADIUS)):
            speeds = [geo.add(a, b) for a, b in zip(speed, kick, strict=True)]
            number, place_of, speed_of = _nearest(
                [nearest(axis, r)[0] for r in relative], relative, speeds, o.block_alive, one
            )
            away, height = nearest(axis, place_of)
            body, change, distance = _collide(body, away, height, speed_of, radius, one)
            gap = jnp.minimum(gap, distance)
            kick = tuple(_add_where(number == n, change, s) for n, s in enumerate(kick))
        body = materialise(_stopped(body), one)
        body = body._replace(
            x=body.x + DT * body.vx,
            y=body.y + DT * body.vy,
            lx=body.lx + DT * body.dx,
            ly=body.ly + DT * body.dy,
        )
        place = tuple(geo.add(a, geo.scale(b, DT)) for a, b in zip(place, speed, strict=True))
        shift = tuple(geo.add(a, geo.scale(b, DT)) for a, b in zip(shift, kick, strict=True))
        least = jnp.where(up < t, least, jnp.minimum(least, gap))
        tipped = jnp.maximum(jnp.abs(body.lx), jnp.abs(body.ly)) > math.sin(ROOM.lean_limit)
        up = jnp.where((up < t) | tipped, up, up + 1.0)
        return (body, (place, speed), (shift, kick), up, least), None

    carry: Tree = (body, blocks, (still, still), zeros, zeros + NOTHING_NEAR)
    (body, _, _, up, least), _ = jax.lax.scan(tick, carry, jnp.arange(LOOK, dtype=jnp.float32))
    end_x, end_y = body.lx + RATE_GAIN * body.dx, body.ly + RATE_GAIN * body.dy
    end = jnp.sqrt(end_x * end_x + end_y * end_y)
    return Outlook(*(jnp.moveaxis(leaf, 0, -1) for leaf in (up / LOOK, least, end)))


def _single(leaf: Leaf) -> jax.Array:
    """A number in float32; flags as they are."""
    leaf = jnp.asarray(leaf)
    return leaf.astype(jnp.float32) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf


def _pushed(body: _Body, lean_x: Scalar, lean_y: Scalar) -> _Body:
    """Speeds after a push towards a lean."""
    b = body
    code = push_along(b.lx + RATE_GAIN * b.dx - lean_x, b.ly + RATE_GAIN * b.dy - lean_y)
    fx, fy = (
        sum(jnp.where(code == each, force[axis], 0.0) for each, force in CODED_PUSHES)
        for axis in (0, 1)
    )
    return b._replace(
        vx=b.vx + DT * (PUSHED * fx + PULL * b.lx),
        vy=b.vy + DT * (PUSHED * fy + PULL * b.ly),
        dx=b.dx + DT * (FALL * b.lx - TURN * fx),
        dy=b.dy + DT * (FALL * b.ly - TURN * fy),
    )


def _stopped(body: _Body) -> _Body:
    """Speeds of cart and pole after side walls have stopped the cart."""
    b = body
    speeds = []
    for c, v, d in ((b.x, b.vx, b.dx), (b.y, b.vy, b.dy)):
        at_wall = (jnp.abs(c + DT * v) > CART_ROOM) & (c * v > 0)
        speeds.append((jnp.where(at_wall, 0.0, v), d + jnp.where(at_wall, TURN / PUSHED * v, 0.0)))
    (vx, dx), (vy, dy) = speeds
    return b._replace(vx=vx, vy=vy, dx=dx, dy=dy)


def _add_where(condition: jax.Array, change: Vector, v: Vector) -> Vector:
    """Add a change where a condition holds."""
    return Vector(*(jnp.where(condition, a + c, a) for a, c in zip(v, change, strict=True)))


# Blocks ------------------------------------------------------------------------------------------


def _block_velocities(
    place: tuple[Vector, ...],
    speed: tuple[Vector, ...],
    alive: tuple[jax.Array, ...],
    one: jax.Array,
) -> tuple[Vector, ...]:
    """Speeds of blocks after drag, walls and collisions with one another."""
    side = ROOM.room_half_width - ROOM.block_radius
    low, high = ROOM.room_floor + ROOM.block_radius, ROOM.room_ceiling - ROOM.block_radius
    bounds = ((-side, side), (-side, side), (low, high))
    after = []
    for p, v in zip(place, speed, strict=True):
        size = jnp.sqrt(geo.dot(v, v))
        slower = [c * (1 - DT * ROOM.drag * (1 + size)) for c in v]
        back = (
            jnp.where(((at <= a) & (c < 0)) | ((at >= b) & (c > 0)), -c, c)
            for at, c, (a, b) in zip(p, slower, bounds, strict=True)
        )
        after.append(materialise(Vector(*back), one))
    change = [Vector(0.0, 0.0, 0.0)] * len(after)
    for first in range(len(after)):
        for second in range(first):
            both = alive[first] & alive[second]
            change_of_pair = materialise(_pair_exchange(place, after, first, second, both), one)
            change[first] = geo.sub(change[first], change_of_pair)
            change[second] = geo.add(change[second], change_of_pair)
    return tuple(materialise(geo.add(v, c), one) for v, c in zip(after, change, strict=True))


def _pair_exchange(
    place: tuple[Vector, ...], speed: list[Vector], first: int, second: int, both: jax.Array
) -> Vector:
    """Velocity that two equal blocks exchange if they touch and approach."""
    d, w = geo.sub(place[first], place[second]), geo.sub(speed[first], speed[second])
    square, approach = geo.dot(d, d), geo.dot(w, d)
    touching = both & (square <= 4 * ROOM.block_radius**2) & (square > 0) & (approach < 0)
    size = jnp.where(touching, approach / jnp.where(touching, square, 1.0), 0.0)
    return geo.scale(d, size)


# Contacts -----------------------------------------------------------------------------------------


def _cart(axis: Vector, place: Vector) -> tuple[Vector, Scalar]:
    """Vector from the cart, an upright cylinder, to a place, m, and height of the contact, 0 m."""
    flat = jnp.sqrt(place.x * place.x + place.y * place.y + 1e-9)
    share = jnp.maximum(flat - CART_RADIUS, 0.0) / flat
    above = place.z - jnp.clip(place.z, -CART_HALF_HEIGHT, CART_HALF_HEIGHT)
    return Vector(place.x * share, place.y * share, above), 0.0


def _pole(axis: Vector, place: Vector) -> tuple[Vector, Scalar]:
    """Vector from the pole's axis to a place, and position of the contact along the axis, m."""
    along = jnp.clip(geo.dot(place, axis), POLE_BOTTOM, POLE_BOTTOM + ROOM.pole_length)
    return geo.sub(place, geo.scale(axis, along)), along


def _nearest(
    away: list[Vector],
    place: list[Vector],
    speed: list[Vector],
    alive: tuple[jax.Array, ...],
    one: jax.Array,
) -> tuple[jax.Array, Vector, Vector]:
    """Number, place and velocity of the block that is nearest to a body.

    Args:
      away: vector from the nearest point of the body to each block.
      place: of each block.
      speed: velocity of each block.
      alive: mask of the blocks.
      one: for `materialise`.
    """
    squares = materialise(
        [
            jnp.where(mask, geo.dot(r, r), NOTHING_NEAR**2)
            for r, mask in zip(away, alive, strict=True)
        ],
        one,
    )
    best, number = squares[0], jnp.zeros_like(squares[0])
    for n, square in enumerate(squares[1:], 1):
        number = jnp.where(square < best, float(n), number)
        best = jnp.minimum(square, best)
    # Number -1: there is no block.
    number = jnp.where(best < NOTHING_NEAR**2, number, -1.0)
    number = materialise(number, one)
    far = Vector(NOTHING_NEAR, 0.0, 0.0)

    def select(vectors: list[Vector], default: Vector) -> Vector:
        result = default
        for n, v in enumerate(vectors):
            result = Vector(*(jnp.where(number == n, a, b) for a, b in zip(v, result, strict=True)))
        return result

    return number, *materialise((select(place, far), select(speed, Vector(0.0, 0.0, 0.0))), one)


def _collide(
    body: _Body, away: Vector, height: Scalar, speed: Vector, radius: float, one: jax.Array
) -> tuple[_Body, Vector, jax.Array]:
    """Contact between a block and cart or pole.

    Args:
      body: cart and pole.
      away: vector from their nearest point to the centre of the block, m.
      height: of that point above the pivot, m.
      speed: velocity of the block, m/s.
      radius: of cart or pole about that point, m.
      one: for `materialise`.

    Returns:
      The body, the block's change of velocity, and the gap between them, m.
    """
    b, h = body, height
    distance = jnp.sqrt(geo.dot(away, away) + 1e-9)
    nx, ny, nz = away.x / distance, away.y / distance, away.z / distance
    gap = distance - ROOM.block_radius - radius
    nx, ny, nz, gap, h = materialise((nx, ny, nz, gap, jnp.asarray(h)), one)
    closing = nx * (speed.x - b.vx - h * b.dx) + ny * (speed.y - b.vy - h * b.dy) + nz * speed.z
    soft = (nx * nx + ny * ny) * (PUSHED + h * (SPUN * h - 2 * TURN))
    speed_needed = -closing - gap * jnp.where(gap > 0, 1.0, ERP) / DT
    impulse = jnp.maximum(speed_needed / (1 / ROOM.block_mass + soft), 0.0)
    impulse = materialise(jnp.where(gap <= GAP_KEPT, impulse, 0.0), one)
    shift, spin = (PUSHED - TURN * h) * impulse, (SPUN * h - TURN) * impulse
    speeds = (b.vx - shift * nx, b.vy - shift * ny, b.dx - spin * nx, b.dy - spin * ny)
    vx, vy, dx, dy = materialise(speeds, one)
    hit = b._replace(vx=vx, vy=vy, dx=dx, dy=dy)
    return hit, geo.scale(Vector(nx, ny, nz), impulse), gap
