"""Observation of a state through the original's sensors."""

from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp

from jaxsim.pytrees import Leaf, Tree
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d import lines
from jaxsim.worlds.cartpole3d.dynamics import pole_spin
from jaxsim.worlds.cartpole3d.terms import delays, noise
from jaxsim.worlds.cartpole3d.types import Observation, Params, Pose, Scalar, State, Vector

_TERMS = {"sensors": "noise", "pushes": "late_pushes", "late": "late_readings"}
"""Fields of a state that are None without a term."""


def observe(state: State) -> Observation:
    """Read the sensors.

    Cart position and pole orientation are those before the last tick; velocities are new but
    turned by the old rotation. Blocks are reported without delay, except those on lines. The
    original reads link poses that Bullet cached at the start of the tick; agents and the end test
    depend on it.

    Noise (`noise`) and delays (`delays`) of sensors are part of the state: a state always gives the
    same observation.
    """
    read = exact(state) if state.late is None else delays.reported(state.late)
    return read if state.sensors is None else noise.disturb(read, state.sensors, state.step)


def attach(state: State, key: jax.Array, params: Params, terms: tuple[str, ...]) -> State:
    """Add the sensors and delayed pushes of an environment with some terms to a state.

    Args:
      state: leaves () or (L,), slots behind the lanes.
      key: () or (L,) typed key of the episode.
      params: errors and delays of the sensors.
      terms: of the environment, see `Config.terms`.

    Returns:
      The state with the fields of these terms and no others; fields that it has already stay.
    """
    makers: dict[str, Callable[[], Tree]] = {
        "sensors": lambda: noise.attached(state, key, params),
        "pushes": lambda: delays.no_pushes(state),
        "late": lambda: delays.same_readings(exact(state), state, params),
    }
    changes: dict[str, Tree] = {}
    for field, term in _TERMS.items():
        if (getattr(state, field) is not None) != (term in terms):
            changes[field] = makers[field]() if term in terms else None
    return replace(state, **changes) if changes else state


def check(state: State, terms: tuple[str, ...]) -> None:
    """Check that a state has the fields that the terms of an environment need.

    Raises:
      ValueError: a field is missing; the message says how to add it.
    """
    for field, term in _TERMS.items():
        if term in terms and getattr(state, field) is None:
            raise ValueError(
                f"this environment has the term {term!r} and the state has no {field!r}; "
                "put it through env.adopt(state, key, params) first"
            )


def follow(state: State, params: Params, terms: tuple[str, ...]) -> State:
    """Update the sensors of a state, which has the fields of the terms, after a tick."""
    if "noise" in terms:
        state = noise.follow(state, params)
    if "late_readings" in terms:
        assert state.late is not None
        state = replace(state, late=delays.read(state.late, exact(state), params))
    return state


def exact(state: State) -> Observation:
    """Exact readings of the sensors of a state."""
    old, velocity = state.reported, state.velocity
    r = geo.pole_to_cart(old)
    now = state.pose
    fresh = geo.rotation(now.qx, now.qy, now.qz, now.qw)
    # The absolute spin is computed with the new pose, then expressed in the old frame.
    spin = pole_spin(velocity, fresh)
    zero = jnp.zeros_like(old.x)
    blocks = [lines.reported(b) if b.rail is not None else (b.p, b.v) for b in state.blocks]
    pairs = list(zip(state.blocks, blocks, strict=True))
    return Observation(
        cart_position=Vector(old.x, old.y, zero),
        cart_velocity=geo.yaw(old.cos, old.sin, Vector(velocity.vx, velocity.vy, zero)),
        pole_quaternion=_world_quaternion(old),
        pole_velocity=geo.yaw(old.cos, old.sin, geo.rotate(r, spin)),
        block_position=tuple(_zero_if_empty(b.alive, p) for b, (p, _) in pairs),
        block_velocity=tuple(_zero_if_empty(b.alive, v) for b, (_, v) in pairs),
        block_alive=tuple(b.alive for b in state.blocks),
    )


def _zero_if_empty(alive: jax.Array, a: Vector) -> Vector:
    return Vector(*(jnp.where(alive, c, 0.0) for c in a))


def _world_quaternion(pose: Pose) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """Rz(yaw) q, with the sign that Bullet gets from a rotation matrix.

    It makes w positive or, where |w| is at most a half, the largest of the other three: that is z
    for a pole that leans by less than 75 degrees.
    """
    ch, sh = pose.half_cos, pose.half_sin
    x, y = ch * pose.qx - sh * pose.qy, ch * pose.qy + sh * pose.qx
    z, w = ch * pose.qz + sh * pose.qw, ch * pose.qw - sh * pose.qz
    sign = jnp.where(jnp.where(jnp.abs(w) > 0.5, w, z) < 0, -1.0, 1.0)
    return sign * x, sign * y, sign * z, sign * w


def to_vector(observation: Observation) -> jax.Array:
    """Flatten to a vector for learners: cart 4, pole 7, then 7 numbers a block.

    Args:
      observation: leaves of any batch shape.

    Returns:
      (..., 11 + 7 N) cart x, y, vx, vy; pole quaternion and angular velocity; then per block
      alive (0 or 1), position and velocity.
    """
    o = observation
    parts: list[Leaf] = [
        *o.cart_position[:2],
        *o.cart_velocity[:2],
        *o.pole_quaternion,
        *o.pole_velocity,
    ]
    dtype = jnp.result_type(o.cart_position.x)
    lanes = jnp.shape(o.cart_position.x)
    whole = [jnp.stack(jnp.broadcast_arrays(*parts), axis=-1, dtype=dtype)]
    for alive, p, v in zip(o.block_alive, o.block_position, o.block_velocity, strict=True):
        each = jnp.stack([alive, *p, *v], axis=-1, dtype=dtype)
        whole.append(each.reshape(*lanes, -1))
    return jnp.concatenate(whole, axis=-1)
