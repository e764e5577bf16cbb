"""Limits of the errors of predictions, given the noise of the sensors."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp

from jaxsim.agents import bank, filtering, martingale, sight
from jaxsim.agents.detection import Transition
from jaxsim.agents.noise_scale import KINDS, NoiseScale
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d.types import DT, Params, Vector

FREE_LIMIT = 1e-5  # of every number of cart, pole and blocks that touch nothing: m, m/s, rad/s
NAMED_LIMIT = 1e-4  # the same, beyond which models are asked, and up to which one explains
LEARNING_MARGIN = 0.5  # m, from bodies and walls, while the noise is being learned
REACH = 1.0  # m, from the pole's joint to its far end
LARGE_LEAN = 1.1  # factor for what the motion about upright leaves out
CROSSED = 1e-3  # of the noise of any kind, in what another kind becomes in a tick, likewise


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class NoiseLimits:
    """Allowances for noise; all are zero where sensors are exact.

    Attributes:
      deviations: (4,) standard deviation of the noise by kind.
      noisy: () bool, whether any kind has noise.
      position: () m, of one reading.
      velocity: () m/s.
      angle: () rad.
      rate: () rad/s.
      place: () m, of the difference between a reading and its prediction from the one before.
      cart_speed: () m/s, likewise.
      block_speed: () m/s.
      turn: () of components of a quaternion.
      spin: () rad/s.
      blur: () m, added to distances at which bodies may touch.
    """

    deviations: jax.Array
    noisy: jax.Array
    position: jax.Array
    velocity: jax.Array
    angle: jax.Array
    rate: jax.Array
    place: jax.Array
    cart_speed: jax.Array
    block_speed: jax.Array
    turn: jax.Array
    spin: jax.Array
    blur: jax.Array

    @classmethod
    def none(cls) -> "NoiseLimits":
        """Return the allowances for exact sensors."""
        zero = jnp.float32(0)
        return cls(jnp.zeros(len(KINDS)), jnp.asarray(False), *[zero] * 10)


def of(noise: NoiseScale, nominal: jax.Array) -> NoiseLimits:
    """Return allowances.

    Args:
      noise: estimate so far.
      nominal: () bool, whether the episode is known not to be novel, so that it adds to estimates.
    """
    deviations = noise.deviations(filtering.rate_per_angle())
    position, velocity, angle, rate = (deviations[kind] for kind in range(4))
    motion = filtering.motion()
    sigmas = martingale.LIMIT
    # Every hit that is missed is an alarm, so distances have the limit that readings have. Cart
    # and pole are reported late, and moved on by reported speeds.
    tip = REACH**2 * (angle**2 + (DT * rate) ** 2)
    between_bodies = jnp.sqrt(2 * position**2 + (DT * velocity) ** 2 + tip)

    def spread(readings: float, row: int) -> jax.Array:
        """Allowance for the difference of two readings, with the noise that the motion adds."""
        terms = [readings * deviations[row] ** 2]
        for kind in range(4):
            factor = abs(float(motion[row, kind])) + CROSSED
            terms += [(factor * deviations[kind]) ** 2] if kind != row else []
        return LARGE_LEAN * sigmas * jnp.sqrt(sum(terms[1:], terms[0]))

    place, speed, turn, spin = (spread(2.0, row) for row in range(4))
    return NoiseLimits(
        deviations=deviations,
        noisy=jnp.any(deviations > 0),
        position=sigmas * position,
        velocity=sigmas * velocity,
        angle=sigmas * angle,
        rate=sigmas * rate,
        place=place,
        cart_speed=speed,
        block_speed=LARGE_LEAN * sigmas * jnp.sqrt(2.0) * velocity,
        turn=0.5 * turn,
        spin=spin,
        blur=jnp.where(nominal, LEARNING_MARGIN, sigmas * between_bodies),
    )


def differences(
    shown: Transition, learning: jax.Array, touched: jax.Array, free: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Squared differences that the size of the noise is estimated from; see `NoiseScale`.

    Args:
      shown: two observations.
      learning: () bool, whether they count.
      touched: () bool, whether cart or pole may have been hit.
      free: (4,) bool, blocks that touch nothing.

    Returns:
      Sums of squares by kind and their numbers of terms, (4,) each.
    """
    before, after = shown.before, shown.after
    pose, _ = sight.moving(before)
    nominal = Params()
    _, speed = sight.predicted(nominal, before, sight.push(nominal, shown.action))
    spin = geo.sub(sight.spin_of(pose, speed), after.spin)
    block = replace(before.block, alive=free)
    change = geo.sub(after.block.v, bank.blocks_after(nominal, block))
    moved = geo.sub(after.block.p, sight.place_next(block.p, after.block.v))
    tilt = filtering.tilt_between(pose, after.reported)
    place = jnp.stack([after.reported.x - pose.x, after.reported.y - pose.y])
    alone = ~touched
    sums = jnp.stack(
        [
            _square(moved, free) + jnp.where(alone, jnp.sum(place * place), 0.0),
            _square(change, free),
            jnp.where(alone, jnp.sum(tilt * tilt), 0.0),
            jnp.where(alone, spin.x * spin.x + spin.y * spin.y, 0.0),
        ]
    )
    blocks = 3.0 * jnp.sum(free)
    axes = 2.0 * alone
    counts = jnp.stack([blocks + axes, blocks, axes, axes])
    mask = learning & ~shown.first
    return jnp.where(mask, sums, 0.0), jnp.where(mask, counts, 0.0)


def _square(a: Vector, mask: jax.Array) -> jax.Array:
    return jnp.sum(jnp.where(mask, geo.dot(a, a), 0.0))
