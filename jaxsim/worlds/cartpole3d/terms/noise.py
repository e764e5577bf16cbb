"""Sensor errors: gains and offsets, Gaussian noise, and rounding to steps.

Physics and end test use exact values. Noise depends only on a key of the episode and the number of
the step, so a state always gives the same readings, in any batch. A reading is
multiplied, offset, disturbed and then rounded. Empty block slots still read zero, and so do the
cart's z fields, which are not readings.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim import rng
from jaxsim.backend import materialise, opaque_one
from jaxsim.pytrees import Leaf
from jaxsim.worlds.cartpole3d.types import (
    Observation,
    Params,
    ReadingSizes,
    Scalar,
    Sensors,
    State,
    Vector,
)

Quaternion = tuple[Scalar, Scalar, Scalar, Scalar]

_KEY = 2  # counter of the key of the sensors, folded into that of the episode
# Counter slots of one tick's readings.
_SLOT_PLACE, _SLOT_SPEED, _SLOT_ANGLE, _SLOT_RATE, _SLOT_BLOCKS = 0, 3, 6, 9, 12
_SLOTS_PER_BLOCK = 6


def sizes(params: Params) -> tuple[Scalar, ...]:
    """Return the sizes of all sensor errors; 0 for none."""
    gains = (gain - 1 for gain in _gains(params))
    return *_noise(params), *_steps(params), *gains, *_offsets(params)


def _noise(params: Params) -> ReadingSizes:
    p = params
    return ReadingSizes(p.noise_position, p.noise_velocity, p.noise_angle, p.noise_rate)


def _steps(params: Params) -> ReadingSizes:
    p = params
    return ReadingSizes(p.step_position, p.step_velocity, p.step_angle, p.step_rate)


def _gains(params: Params) -> ReadingSizes:
    p = params
    return ReadingSizes(p.gain_position, p.gain_velocity, p.gain_angle, p.gain_rate)


def _offsets(params: Params) -> ReadingSizes:
    p = params
    return ReadingSizes(p.offset_position, p.offset_velocity, p.offset_angle, p.offset_rate)


def attached(state: State, key: jax.Array, params: Params) -> Sensors:
    """Sensors of a state, with different noise for each key.

    Args:
      state: leaves () or (L,).
      key: () or (L,) typed key of the episode.
      params: sizes of noise and steps.
    """
    shape = jnp.shape(state.step)
    words = rng.fold(rng.words(key), _KEY)
    episode_key = rng.Words(*(jnp.broadcast_to(word, shape) for word in words))
    return _sensors(episode_key, state, params)


def follow(state: State, params: Params) -> State:
    """Update the sizes of the errors of a state with sensors."""
    assert state.sensors is not None
    return replace(state, sensors=_sensors(state.sensors.key, state, params))


def _sensors(key: rng.Words, state: State, params: Params) -> Sensors:
    like = jnp.asarray(state.pose.x)

    def spread(numbers: ReadingSizes) -> ReadingSizes:
        return ReadingSizes(
            *(jnp.broadcast_to(jnp.asarray(n, like.dtype), like.shape) for n in numbers)
        )

    kinds = (_noise, _steps, _gains, _offsets)
    return Sensors(key, *(spread(kind(params)) for kind in kinds))


def disturb(observation: Observation, sensors: Sensors, step: jax.Array) -> Observation:
    """Return the readings of an observation with errors.

    Args:
      observation: as it would be without errors.
      sensors: key and sizes of the errors.
      step: () int32, number of the step; noise differs from step to step.
    """
    o = observation
    k = rng.fold(sensors.key, step)
    position, velocity, angle, rate = _errors(sensors)
    place, speed = partial(_read, k, position), partial(_read, k, velocity)
    stacked = jnp.ndim(o.block_alive[0]) > jnp.ndim(step)
    numbers: Iterable[jax.Array | int] = range(len(o.block_alive))
    if stacked:
        numbers = [jnp.arange(o.block_alive[0].shape[-1])]
    each = zip(numbers, o.block_alive, o.block_position, o.block_velocity, strict=True)
    blocks = [_block(k, sensors, *block) for block in each]
    read = Observation(
        cart_position=_level(place(_SLOT_PLACE, o.cart_position)),
        cart_velocity=_level(speed(_SLOT_SPEED, o.cart_velocity)),
        pole_quaternion=_orientation(k, angle, o.pole_quaternion),
        pole_velocity=_read(k, rate, _SLOT_RATE, o.pole_velocity),
        block_position=tuple(p for p, _ in blocks),
        block_velocity=tuple(v for _, v in blocks),
        block_alive=(),
    )
    # Agents use readings many times; without this, each use would draw the noise again.
    one = opaque_one(sensors.noise.position)
    read = jax.tree.map(partial(_once, one), read)
    return replace(read, block_alive=o.block_alive)


def _once(one: jax.Array, leaf: jax.Array) -> jax.Array:
    """Materialise a reading; those of stacked blocks have a further axis."""
    stacked = jnp.ndim(one) and jnp.ndim(leaf) > jnp.ndim(one)
    return materialise(leaf, opaque_one(leaf) if stacked else one)


def _block(
    k: rng.Words, sensors: Sensors, number: Leaf, alive: jax.Array, p: Vector, v: Vector
) -> tuple[Vector, Vector]:
    """Readings of a block, or of stacked ones, whose slots are the last axis."""
    if jnp.ndim(number):
        k, sensors = jax.tree.map(lambda leaf: leaf[..., None], (k, sensors))
    errors = _errors(sensors)
    slot = _SLOT_BLOCKS + number * _SLOTS_PER_BLOCK
    place = _read(k, errors.position, slot, p)
    speed = _read(k, errors.velocity, slot + 3, v)
    return _where(alive, place), _where(alive, speed)


class _Error(NamedTuple):
    """Errors of the readings of one kind."""

    deviation: Scalar
    step: Scalar
    gain: Scalar
    offset: Scalar


class _Errors(NamedTuple):
    """Errors of the readings of each kind."""

    position: _Error
    velocity: _Error
    angle: _Error
    rate: _Error


def _errors(sensors: Sensors) -> _Errors:
    kinds = zip(sensors.noise, sensors.step, sensors.gain, sensors.offset, strict=True)
    return _Errors(*(_Error(*kind) for kind in kinds))


def _read(k: rng.Words, error: _Error, slot: Leaf, value: Vector) -> Vector:
    noise = _draw(k, slot, error.deviation)
    exact = (error.gain * a + error.offset for a in value)
    return Vector(*(_rounded(a + n, error.step) for a, n in zip(exact, noise, strict=True)))


def _draw(k: rng.Words, slot: Leaf, deviation: Scalar) -> Vector:
    """Three numbers of a normal distribution."""
    dtype = jnp.result_type(deviation)
    return Vector(*(deviation * rng.normal(k, slot + i, dtype) for i in range(3)))


def _rounded(value: Scalar, step: Scalar) -> jax.Array:
    """The nearest multiple of a step, or the value itself if the step is 0."""
    stepped = step > 0
    return jnp.where(stepped, jnp.round(value / jnp.where(stepped, step, 1.0)) * step, value)


def _level(value: Vector) -> Vector:
    return Vector(value.x, value.y, jnp.zeros_like(value.z))


def _where(alive: jax.Array, value: Vector) -> Vector:
    return Vector(*(jnp.where(alive, c, 0.0) for c in value))


def _orientation(k: rng.Words, error: _Error, q: Quaternion) -> Quaternion:
    """Multiply an orientation, turn it in the world frame, then round it; unit length.

    Gain and rounding apply to the components of the rotation vector (axis times angle, rad), so
    upright stays upright and a step is an angle. Offset and noise are a rotation.
    """
    gained = _quaternion(Vector(*(error.gain * c for c in _rotation_vector(q))))
    q = _chosen(error.gain != 1, gained, q)
    turn = Vector(*(error.offset + n for n in _draw(k, _SLOT_ANGLE, error.deviation)))
    noisy = _multiply(_quaternion(turn), q)
    vector = _rotation_vector(noisy)
    stepped = _quaternion(Vector(*(_rounded(c, error.step) for c in vector)))
    return _chosen(error.step > 0, stepped, noisy)


def _chosen(first: jax.Array | bool, a: Quaternion, b: Quaternion) -> Quaternion:
    """Orientation a where the condition holds, else b."""
    x, y, z, w = (jnp.where(first, c, d) for c, d in zip(a, b, strict=True))
    return x, y, z, w


def _quaternion(turn: Vector) -> Quaternion:
    """Quaternion (x, y, z, w) of a rotation vector, rad."""
    square = turn.x * turn.x + turn.y * turn.y + turn.z * turn.z
    turned = square > 0
    angle = jnp.sqrt(jnp.where(turned, square, 1.0))
    share = jnp.where(turned, jnp.sin(0.5 * angle) / angle, 0.5)
    return (
        turn.x * share,
        turn.y * share,
        turn.z * share,
        jnp.where(turned, jnp.cos(0.5 * angle), 1.0),
    )


def _rotation_vector(q: Quaternion) -> Vector:
    """Rotation vector of a unit quaternion, rad; its length is from 0 to 2 pi."""
    x, y, z, w = q
    square = x * x + y * y + z * z
    turned = square > 0
    size = jnp.sqrt(jnp.where(turned, square, 1.0))
    share = jnp.where(turned, 2 * jnp.arctan2(size, w) / size, 2.0)
    return Vector(x * share, y * share, z * share)


def _multiply(a: Quaternion, b: Quaternion) -> Quaternion:
    """Return the rotation b followed by a."""
    ax, ay, az, aw = a
    bx, by, bz, bw = b
    return (
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by + ay * bw + az * bx - ax * bz,
        aw * bz + az * bw + ax * by - ay * bx,
        aw * bw - ax * bx - ay * by - az * bz,
    )
