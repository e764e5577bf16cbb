"""Sensors that err: Gaussian noise on what they report, and readings in steps.

The physics and the end test never see either. Noise is counted from a key of the episode and the
number of the step, so a state always reads the same and no reading depends on its company. First
the noise is added, then readings are rounded. An empty block slot still reads zero, and so do the
cart's z fields, which are no readings.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxsim import rng
from jaxsim.backend import materialise, opaque_one
from jaxsim.worlds.cartpole3d.types import (
    Observation,
    Params,
    Scalar,
    Sensors,
    Sizes,
    State,
    Vector,
)

Quaternion = tuple[Scalar, Scalar, Scalar, Scalar]

_KEY = 2  # counter that tells the key of the sensors from the other uses of an episode's key
# Counter slots of one tick's readings.
_SLOT_PLACE, _SLOT_SPEED, _SLOT_ANGLE, _SLOT_RATE, _SLOT_BLOCKS = 0, 3, 6, 9, 12
_SLOTS_PER_BLOCK = 6


def sizes(params: Params) -> tuple[Scalar, ...]:
    """Return every number that makes sensors err: standard deviations, then steps."""
    return *_noise(params), *_steps(params)


def _noise(params: Params) -> Sizes:
    p = params
    return Sizes(p.noise_position, p.noise_velocity, p.noise_angle, p.noise_rate)


def _steps(params: Params) -> Sizes:
    p = params
    return Sizes(p.step_position, p.step_velocity, p.step_angle, p.step_rate)


def attach(state: State, key: jax.Array, params: Params) -> State:
    """Give a state sensors that err, with noise of their own for each key.

    Args:
      state: leaves () or (L,).
      key: () or (L,) typed key of the episode.
      params: sizes of noise and steps.
    """
    shape = jnp.shape(state.step)
    words = rng.fold(rng.words(key), _KEY)
    own = rng.Words(*(jnp.broadcast_to(word, shape) for word in words))
    return replace(state, sensors=_sensors(own, state, params))


def follow(state: State, params: Params) -> State:
    """Set the sensors of a state to the sizes that hold now.

    Raises:
      ValueError: a state without such sensors, from an environment that has none.
    """
    if state.sensors is None:
        raise ValueError(
            "this environment has sensors that err and the state has none; "
            "put it through env.adopt(state, key, params) first"
        )
    return replace(state, sensors=_sensors(state.sensors.key, state, params))


def _sensors(key: rng.Words, state: State, params: Params) -> Sensors:
    like = jnp.asarray(state.pose.x)

    def spread(given: Sizes) -> Sizes:
        return Sizes(*(jnp.broadcast_to(jnp.asarray(n, like.dtype), like.shape) for n in given))

    return Sensors(key, spread(_noise(params)), spread(_steps(params)))


def disturb(observation: Observation, sensors: Sensors, step: jax.Array) -> Observation:
    """Return what sensors that err make of an observation.

    Args:
      observation: as it would be without errors.
      sensors: key, standard deviations and steps.
      step: () int32, number of the step; every step has noise of its own.
    """
    o, noise, steps = observation, sensors.noise, sensors.step
    k = rng.fold(sensors.key, step)
    place = partial(_read, k, noise.position, steps.position)
    speed = partial(_read, k, noise.velocity, steps.velocity)
    stacked = jnp.ndim(o.block_alive[0]) > jnp.ndim(step)
    numbers: Iterable[Any] = range(len(o.block_alive))
    if stacked:
        numbers = [jnp.arange(o.block_alive[0].shape[-1])]
    each = zip(numbers, o.block_alive, o.block_position, o.block_velocity, strict=True)
    blocks = [_block(k, sensors, *block) for block in each]
    read = Observation(
        cart_position=_level(place(_SLOT_PLACE, o.cart_position)),
        cart_velocity=_level(speed(_SLOT_SPEED, o.cart_velocity)),
        pole_quaternion=_orientation(k, noise.angle, steps.angle, o.pole_quaternion),
        pole_velocity=_read(k, noise.rate, steps.rate, _SLOT_RATE, o.pole_velocity),
        block_position=tuple(p for p, _ in blocks),
        block_velocity=tuple(v for _, v in blocks),
        block_alive=(),
    )
    # Agents read these many times over; without this each reading would be drawn as often.
    one = opaque_one(noise.position)
    read = jax.tree.map(partial(_once, one), read)
    return replace(read, block_alive=o.block_alive)


def _once(one: jax.Array, leaf: jax.Array) -> jax.Array:
    """Materialise a reading; those of stacked blocks have an axis that the lanes' one has not."""
    stacked = jnp.ndim(one) and jnp.ndim(leaf) > jnp.ndim(one)
    return materialise(leaf, opaque_one(leaf) if stacked else one)


def _block(
    k: rng.Words, sensors: Sensors, number: Any, alive: jax.Array, p: Vector, v: Vector
) -> tuple[Vector, Vector]:
    """Readings of a block, or of stacked ones, whose slots are the last axis."""
    if jnp.ndim(number):
        k, sensors = jax.tree.map(lambda leaf: leaf[..., None], (k, sensors))
    noise, steps = sensors.noise, sensors.step
    slot = _SLOT_BLOCKS + number * _SLOTS_PER_BLOCK
    place = _read(k, noise.position, steps.position, slot, p)
    speed = _read(k, noise.velocity, steps.velocity, slot + 3, v)
    return _where(alive, place), _where(alive, speed)


def _read(k: rng.Words, deviation: Scalar, step: Scalar, slot: Any, value: Vector) -> Vector:
    noise = _draw(k, slot, deviation)
    return Vector(*(_rounded(a + n, step) for a, n in zip(value, noise, strict=True)))


def _draw(k: rng.Words, slot: Any, deviation: Scalar) -> Vector:
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


def _orientation(k: rng.Words, deviation: Scalar, step: Scalar, q: Quaternion) -> Quaternion:
    """Turn an orientation by a random rotation in the world frame, then round it; unit length.

    Rounded are the components of the rotation vector (axis times angle, rad), so that upright stays
    upright and a step is an angle.
    """
    noisy = _multiply(_quaternion(_draw(k, _SLOT_ANGLE, deviation)), q)
    vector = _rotation_vector(noisy)
    stepped = _quaternion(Vector(*(_rounded(c, step) for c in vector)))
    x, y, z, w = (jnp.where(step > 0, a, b) for a, b in zip(stepped, noisy, strict=True))
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
