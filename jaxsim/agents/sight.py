"""Observations of CartPole3D in the simulator's terms, for agents.

Everything here follows from an observation, which holds the content of a feature vector, no more.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from jaxsim.agents.base import check_pushes
from jaxsim.backend import opaque_one
from jaxsim.pytrees import Leaf
from jaxsim.worlds.cartpole3d import dynamics
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d.types import (
    DT,
    Observation,
    Params,
    Pose,
    Scalar,
    Sphere,
    Vector,
    Velocity,
)

SLOTS = 4
"""Blocks that are kept one by one; for later ones only the newest and the number are kept."""

DTYPE = jnp.float32


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Sighting:
    """One observation of one lane, in float32.

    The reported pose assumes a cart that is not turned: a feature vector lacks the yaw, which is
    zero until something hits the cart.
    """

    reported: Pose  # () cart and pole one tick ago
    vx: jax.Array  # () m/s, cart
    vy: jax.Array  # () m/s
    spin: Vector  # () rad/s, pole, world frame
    block: Sphere  # (4,) the first blocks
    newest: Vector  # () m/s, velocity of the last block; zero if there is none
    count: jax.Array  # () int32, number of blocks

    @classmethod
    def nothing(cls) -> "Sighting":
        """Return zeros of the right shapes, for a memory before the first observation."""
        zero, empty = jnp.zeros((), DTYPE), jnp.asarray(False)
        vector = Vector(zero, zero, zero)
        slots = (vector,) * SLOTS
        return see(Observation(vector, vector, (zero,) * 4, vector, slots, slots, (empty,) * SLOTS))


def see(observation: Observation) -> Sighting:
    """Read an observation.

    Args:
      observation: of one lane, with any number of block slots, single or stacked.
    """
    check_pushes(observation)
    o = observation
    zero = jnp.zeros_like(_number(o.cart_position.x))
    blocks = all_blocks(o)
    p, v, alive = blocks.p, blocks.v, blocks.alive
    count = jnp.sum(alive, dtype=jnp.int32)
    last = jnp.arange(alive.shape[0]) == count - 1
    newest = Vector(*(jnp.sum(jnp.where(last, c, 0.0)) for c in v))
    first = jax.tree.map(_first, Sphere(p, v, alive))
    qx, qy, qz, qw = (_number(c) for c in o.pole_quaternion)
    reported = Pose(
        _number(o.cart_position.x), _number(o.cart_position.y), zero + 1, zero, qx, qy, qz, qw
    )
    return Sighting(
        reported,
        _number(o.cart_velocity.x),
        _number(o.cart_velocity.y),
        Vector(*(_number(c) for c in o.pole_velocity)),
        first,
        newest,
        count,
    )


def all_blocks(observation: Observation) -> Sphere:
    """Every slot of an observation of one lane on one axis, (N,), in float32."""
    o = observation
    alive = jnp.concatenate([jnp.atleast_1d(jnp.asarray(a)) for a in o.block_alive])
    return Sphere(_slots(o.block_position), _slots(o.block_velocity), alive)


def _number(leaf: Scalar) -> jax.Array:
    return jnp.asarray(leaf, DTYPE)


def _slots(vectors: tuple[Vector, ...]) -> Vector:
    """All slots on one axis, (N,)."""
    return Vector(
        *(
            jnp.concatenate([jnp.atleast_1d(_number(c)) for c in axis])
            for axis in zip(*vectors, strict=True)
        )
    )


def _first(leaf: Scalar) -> jax.Array:
    """The first `SLOTS` slots, padded with empty ones."""
    leaf = jnp.asarray(leaf)
    return jnp.pad(leaf[:SLOTS], (0, max(0, SLOTS - leaf.shape[0])))


def moving(report: Sighting) -> tuple[Pose, Velocity]:
    """Present pose and velocities, for a cart that does not turn.

    The reported pose is one tick old; the reported velocities have moved it since.
    """
    r = geo.pole_to_cart(report.reported)
    w = geo.rotate_back(r, report.spin)
    velocity = Velocity(report.vx, report.vy, jnp.zeros_like(report.vx), w.x, w.y, w.z)
    return dynamics.move(report.reported, velocity, opaque_one(report.vx)), velocity


def push(params: Params, action: jax.Array) -> Vector:
    """Force of an action on the cart, N, world frame; see `ACTIONS`."""
    right, ahead = (action == 1, action == 2), (action == 3, action == 4)
    along = [jnp.where(a, 1.0, jnp.where(b, -1.0, 0.0)) for a, b in (right, ahead)]
    size = params.force * params.action_sign
    return Vector(size * along[0], size * along[1], 0.0 * along[0])


def predicted(params: Params, report: Sighting, force: Vector) -> tuple[Pose, Velocity]:
    """Predict the next observation of cart and pole if nothing touches them.

    Args:
      params: physics; leaves (), or (M,) for M models at once.
      report: the present observation.
      force: N on the cart, world frame.

    Returns:
      The next reported pose and velocities.
    """
    pose, velocity = moving(report)
    r = geo.pole_to_cart(pose)
    after = dynamics.accelerate(params, dynamics.bodies(params), pose, r, velocity, force)
    return pose, Velocity(*(dynamics.clamp(c) for c in vars(after).values()))


def spin_of(pose: Pose, velocity: Velocity) -> Vector:
    """Reported angular velocity of the pole, rad/s, for a cart that does not turn."""
    w = Vector(velocity.wx, velocity.wy, velocity.wz)
    return geo.rotate(geo.rotation(pose.qx, pose.qy, pose.qz, pose.qw), w)


def rate_between(a: Pose, b: Pose) -> Vector:
    """Angular velocity between two orientations of the pole, a tick apart, rad/s, world frame."""
    p, q = Vector(a.qx, a.qy, a.qz), Vector(b.qx, b.qy, b.qz)
    # b = turn * a, whose vector is the axis times the sine of half the angle.
    turn = geo.sub(geo.scale(q, a.qw), geo.scale(p, b.qw))
    turn = geo.sub(turn, geo.cross(q, p))
    cos = geo.dot(p, q) + a.qw * b.qw
    sin = jnp.sqrt(geo.dot(turn, turn))
    angle = 2 * jnp.arctan2(sin, jnp.abs(cos))
    share = jnp.where(sin > 0, angle / jnp.where(sin > 0, sin, 1.0), 2.0)
    return geo.scale(turn, jnp.where(cos < 0, -share, share) / DT)


def place_next(p: Vector, v: Vector) -> Vector:
    """Place after a tick with a velocity, m."""
    return geo.add(p, geo.scale(v, DT))


def before_drag(v: Vector) -> Vector:
    """Velocities before a tick of free flight, from those after it."""
    slowing = DT * Params().drag
    after = dynamics.norm(v)
    before: Leaf = after
    for _ in range(3):
        before = after / (1 - slowing * (1 + before))
    return geo.scale(v, 1 / (1 - slowing * (1 + before)))
