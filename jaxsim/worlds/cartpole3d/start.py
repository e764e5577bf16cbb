"""Where an episode starts, drawn on the device.

The original executes one physics tick with the action "nothing" inside its reset, in which the
number it calls the cart's initial velocity acts as a force. The states made here are those before
that hidden tick (`step` is -1); the first step from them leads to the first observation.
"""

import jax
import jax.numpy as jnp

from jaxsim import rng
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d.tick import advance
from jaxsim.worlds.cartpole3d.types import (
    Block,
    Config,
    Params,
    Pose,
    Scalar,
    State,
    Vector,
    Velocity,
)

AIM_HEIGHT = 0.5  # m, height at which blocks are aimed at the cart
CLEARANCE = 1.0  # m, blocks start at least this far from the cart, horizontally
BLOCK_SPREAD = 4.0  # m, blocks start at U(-spread, spread) in x and y
BLOCK_MIDDLE = 5.0  # m, and that far around this height
REDRAWS = 64  # most positions tried for one block; 0.05^64 is never
RESTING = 4.95  # m, height at which an empty block slot is kept, clear of floor and ceiling

# Counter slots of one episode's start.
_SLOT_CART, _SLOT_PUSH, _SLOT_POLE, _SLOT_COUNT, _SLOT_POINT = 0, 2, 4, 10, 11
_SLOT_BOUNCE, _SLOT_WIND, _SLOT_BLOCKS = 15, 16, 20
_SLOTS_PER_BLOCK = 8 + 3 * REDRAWS


def draw(key: jax.Array, params: Params, config: Config) -> State:
    """Draw the state before the hidden first tick.

    Args:
      key: () or (L,) typed key of the episode.
      params: physics; leaves that broadcast with the key.
      config: capacity and precision.
    """
    k = rng.words(key)
    dtype = jnp.dtype(config.dtype)

    def within(slot: int, spread: Scalar) -> jax.Array:
        return rng.uniform(k, slot, -1.0, 1.0, dtype) * spread

    x, y = (within(_SLOT_CART + i, params.start_spread) for i in range(2))
    push = [within(_SLOT_PUSH + i, params.start_push) for i in range(2)]
    lean = [within(_SLOT_POLE + i, params.start_lean) for i in range(6)]
    span = params.block_count_max - params.block_count_min + 1
    share = rng.uniform(k, _SLOT_COUNT, dtype=dtype)
    count = params.block_count_min + jnp.minimum(jnp.floor(share * span), span - 1)
    blocks = _draw_blocks(k, x, y, count, params, config)
    bounce = rng.uniform(k, _SLOT_BOUNCE, dtype=dtype) * params.bounce_spread
    angle = rng.uniform(k, _SLOT_WIND, dtype=dtype) * (2 * jnp.pi)
    return initial(x, y, push, lean, blocks, bounce, angle)


def _draw_blocks(
    k: rng.Words, x: jax.Array, y: jax.Array, count: jax.Array, params: Params, config: Config
) -> tuple[Block, ...]:
    """Draw all blocks, clear of the cart at (x, y)."""
    number = config.max_blocks
    dtype = jnp.dtype(config.dtype)
    index = jnp.arange(number).reshape((number,) + (1,) * x.ndim)
    base = _SLOT_BLOCKS + index * _SLOTS_PER_BLOCK
    p = _clear_positions(k, base, x, y, dtype)
    v = _draw_velocities(k, base, p, Vector(x, y, jnp.zeros_like(x)), params, dtype)
    alive = index < count
    speeds = [jnp.where(alive, c, 0.0) for c in v]
    rest = (0.0, 0.0, RESTING)
    places = [jnp.where(alive, c, own) for c, own in zip(p, rest, strict=True)]
    return tuple(
        Block(Vector(*(c[i] for c in places)), Vector(*(c[i] for c in speeds)), alive[i])
        for i in range(number)
    )


def _draw_velocities(
    k: rng.Words, base: jax.Array, p: Vector, cart: Vector, params: Params, dtype: jnp.dtype
) -> Vector:
    """Initial velocities at positions p: nominal, scattered, aimed at the cart, or gathering."""

    def unit(slot: jax.Array | int) -> jax.Array:
        return rng.uniform(k, slot, dtype=dtype)

    low, high = params.block_speed_min, params.block_speed_max
    sizes = [unit(base + i) for i in range(3)]
    signs = [jnp.where(rng.bits(k, base + 3 + i) >> 31 == 1, -1.0, 1.0) for i in range(3)]
    nominal = [sign * (u * (high - low) + low) for u, sign in zip(sizes, signs, strict=True)]
    scattered = [params.scatter_speed * (2 * u - 1) for u in sizes]
    scatter = params.scatter_speed > 0
    v = Vector(*(jnp.where(scatter, a, b) for a, b in zip(scattered, nominal, strict=True)))
    target = Vector(cart.x, cart.y, cart.z + AIM_HEIGHT)
    low, high = params.aim_speed_min, params.aim_speed_max
    aimed = _at_speed(p, target, low + (high - low) * unit(base + 7))
    v = _either(unit(base + 6) < params.aim_share, aimed, v)
    point = _gathering_point(*(unit(_SLOT_POINT + i) for i in range(3)))
    gathering = _at_speed(p, point, params.gather_speed_max * unit(_SLOT_POINT + 3))
    return _either(jnp.asarray(params.gather_speed_max) > 0, gathering, v)


def _gathering_point(*units: Scalar) -> Vector:
    """Point that the blocks of levels 103 and 113 start towards, from numbers in [0, 1)."""
    x, y, z = (BLOCK_SPREAD * (2 * u - 1) for u in units)
    return Vector(x, y, z + BLOCK_MIDDLE)


def _at_speed(p: Vector, target: Vector, speed: Scalar) -> Vector:
    """Velocity of a given size from p towards a target."""
    d = geo.sub(target, p)
    return geo.scale(d, speed / jnp.sqrt(jnp.maximum(geo.dot(d, d), 1e-12)))


def _either(condition: jax.Array, a: Vector, b: Vector) -> Vector:
    return Vector(*(jnp.where(condition, x, y) for x, y in zip(a, b, strict=True)))


def _clear_positions(
    k: rng.Words, base: jax.Array, x: jax.Array, y: jax.Array, dtype: jnp.dtype
) -> Vector:
    """Draw until each block is clear of the cart; block i's slots start at `base[i]`."""

    def position(attempt: jax.Array | int) -> Vector:
        slot = base + 8 + 3 * attempt
        spread = BLOCK_SPREAD
        px, py, pz = (rng.uniform(k, slot + i, -spread, spread, dtype) for i in range(3))
        return Vector(px, py, pz + BLOCK_MIDDLE)

    def clear(p: Vector) -> jax.Array:
        return (p.x - x) ** 2 + (p.y - y) ** 2 >= CLEARANCE**2

    def redraw(carry: tuple[jax.Array, Vector]) -> tuple[jax.Array, Vector]:
        attempt, p = carry
        keep = clear(p)
        fresh = position(attempt)
        return attempt + 1, Vector(*(jnp.where(keep, a, b) for a, b in zip(p, fresh, strict=True)))

    def crowded(carry: tuple[jax.Array, Vector]) -> jax.Array:
        return (carry[0] < REDRAWS) & ~jnp.all(clear(carry[1]))

    return jax.lax.while_loop(crowded, redraw, (jnp.int32(1), position(0)))[1]


def initial(
    x: jax.Array,
    y: jax.Array,
    push: list[jax.Array],
    lean: list[jax.Array],
    blocks: tuple[Block, ...],
    bounce: jax.Array,
    wind_angle: jax.Array,
) -> State:
    """Assemble a state before the hidden tick; the pole's quaternion is (r0, r1, r2, 1)."""
    r0, r1, r2, w0, w1, _ = lean
    zero, one = jnp.zeros_like(x), jnp.ones_like(x)
    size = jnp.sqrt(r0 * r0 + r1 * r1 + r2 * r2 + 1)
    pose = Pose(x, y, one, zero, r0 / size, r1 / size, r2 / size, 1 / size)
    velocity = Velocity(zero, zero, zero, w0, w1, zero)
    step = jnp.full(x.shape, -1, jnp.int32)
    wind = Vector(-jnp.sin(wind_angle), jnp.cos(wind_angle), zero)
    push_at_start = Vector(push[0], push[1], zero)
    return State(pose, pose, velocity, blocks, bounce, wind, push_at_start, step, step >= 0)


def begin(start: State, params: Params, config: Config, key: rng.Words) -> State:
    """Run the hidden first tick; the state behind the first observation."""
    active = jnp.ones_like(start.done)
    return advance(params, config, key, start, start.push, active)
