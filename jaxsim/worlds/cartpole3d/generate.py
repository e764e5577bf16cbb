"""Where an episode starts: drawn on the device, or exactly as the original draws it.

The original executes one physics tick with the action "nothing" inside its reset, in which the
number it calls the cart's initial velocity acts as a force. The states made here are those before
that hidden tick (`step` is -1); the first step from them leads to the first observation.
"""

import hashlib

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import rng
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

CLEARANCE = 1.0  # m, blocks start at least this far from the cart, horizontally
BLOCK_SPREAD = 4.0  # m, blocks start at U(-spread, spread) in x and y
BLOCK_MIDDLE = 5.0  # m, and that far around this height
REDRAWS = 64  # most positions tried for one block; 0.05^64 is never
RESTING = 4.95  # m, height at which an empty block slot is kept, clear of floor and ceiling

# Counter slots of one episode's start.
_SLOT_CART, _SLOT_PUSH, _SLOT_POLE, _SLOT_COUNT, _SLOT_BLOCKS = 0, 2, 4, 10, 16
_SLOTS_PER_BLOCK = 8 + 3 * REDRAWS


def draw(key: jax.Array, params: Params, config: Config) -> State:
    """Draw the state before the hidden first tick, from the distribution of level 200.

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
    return _initial(x, y, push, lean, blocks)


def _draw_blocks(
    k: rng.Words, x: jax.Array, y: jax.Array, count: jax.Array, params: Params, config: Config
) -> tuple[Block, ...]:
    """Draw all blocks, clear of the cart at (x, y)."""
    number = config.max_blocks
    dtype = jnp.dtype(config.dtype)
    index = jnp.arange(number).reshape((number,) + (1,) * x.ndim)
    base = _SLOT_BLOCKS + index * _SLOTS_PER_BLOCK
    p = _clear_positions(k, base, x, y, dtype)
    low, high = params.block_speed_min, params.block_speed_max
    speeds = [rng.uniform(k, base + i, dtype=dtype) * (high - low) + low for i in range(3)]
    signs = [jnp.where(rng.bits(k, base + 3 + i) >> 31 == 1, -1.0, 1.0) for i in range(3)]
    alive = index < count
    v = [jnp.where(alive, s * sign, 0.0) for s, sign in zip(speeds, signs, strict=True)]
    rested = [jnp.where(alive, c, rest) for c, rest in zip(p, (0.0, 0.0, RESTING), strict=True)]
    return tuple(
        Block(Vector(*(c[i] for c in rested)), Vector(*(c[i] for c in v)), alive[i])
        for i in range(number)
    )


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


def _initial(
    x: jax.Array,
    y: jax.Array,
    push: list[jax.Array],
    lean: list[jax.Array],
    blocks: tuple[Block, ...],
) -> State:
    """Assemble a state before the hidden tick; the pole's quaternion is (r0, r1, r2, 1)."""
    r0, r1, r2, w0, w1, _ = lean
    zero, one = jnp.zeros_like(x), jnp.ones_like(x)
    size = jnp.sqrt(r0 * r0 + r1 * r1 + r2 * r2 + 1)
    pose = Pose(x, y, one, zero, r0 / size, r1 / size, r2 / size, 1 / size)
    velocity = Velocity(zero, zero, zero, w0, w1, zero)
    step = jnp.full(x.shape, -1, jnp.int32)
    push_at_start = Vector(push[0], push[1], zero)
    return State(pose, pose, velocity, blocks, push_at_start, step, step >= 0)


def wsu_start(
    seed: int, level: int = 200, difficulty: str = "easy", dtype: str = "float64"
) -> State:
    """Draw the start that the original generator draws for a seed, on the host.

    Args:
      seed: the generator's episode seed, >= 0.
      level: 200.
      difficulty: "easy", "medium" or "hard"; level 200 is the same at each.
      dtype: "float32" or "float64"; the latter needs `jax_enable_x64`.

    Returns:
      The state before the hidden first tick, scalar leaves, four block slots.

    Raises:
      ValueError: a negative seed, a level or difficulty that is not covered, or float64
        without x64.
    """
    if seed < 0:
        raise ValueError(f"seed is {seed}; the original accepts whole numbers from 0")
    if level != 200:
        raise ValueError(f"level is {level}; the original's random stream is known for: 200")
    if difficulty not in ("easy", "medium", "hard"):
        raise ValueError(f"difficulty is {difficulty!r}; it must be 'easy', 'medium' or 'hard'")
    if dtype == "float64" and not jax.config.read("jax_enable_x64"):
        raise ValueError('dtype is "float64"; set jax.config.update("jax_enable_x64", True) first')
    draws = _wsu_generator(seed)
    xy = draws.uniform(-3.0, 3.0, 2)
    push = draws.uniform(-1.0, 1.0, 2)
    lean = draws.uniform(-0.01, 0.01, 6)
    count = draws.randint(3) + 2
    positions = [_wsu_position(draws, xy) for _ in range(count)]
    velocities = [_wsu_velocity(draws) for _ in range(count)]

    def number(value: float) -> jax.Array:
        return jnp.asarray(value, dtype)

    def block(index: int) -> Block:
        if index < count:
            p, v = positions[index], velocities[index]
        else:
            p, v = np.array([0.0, 0.0, RESTING]), np.zeros(3)
        return Block(Vector(*map(number, p)), Vector(*map(number, v)), jnp.asarray(index < count))

    blocks = tuple(block(i) for i in range(Config().max_blocks))
    x, y = map(number, xy)
    return _initial(x, y, [number(f) for f in push], [number(r) for r in lean], blocks)


def _wsu_generator(seed: int) -> np.random.RandomState:
    """Seed as Gym up to 0.21 does: the first 8 bytes of SHA-512 of the decimal seed."""
    digest = hashlib.sha512(str(seed).encode()).digest()[:8]
    low, high = int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:], "little")
    state = np.random.RandomState()
    state.seed([low, high])
    return state


def _wsu_position(draws: np.random.RandomState, cart: np.ndarray) -> np.ndarray:
    while True:
        p = draws.uniform(-BLOCK_SPREAD, BLOCK_SPREAD, 3)
        p[2] += BLOCK_MIDDLE
        if np.linalg.norm(p[:2] - cart) >= CLEARANCE:
            return p


def _wsu_velocity(draws: np.random.RandomState) -> np.ndarray:
    v = draws.uniform(6.0, 10.0, 3)
    for axis in range(3):
        if draws.uniform() < 0.5:
            v[axis] = -v[axis]
    return v


def begin(start: State, params: Params) -> State:
    """Run the hidden first tick; the state behind the first observation."""
    return advance(params, start, start.push, jnp.ones_like(start.done))


_begin = jax.jit(begin)


def from_wsu_seed(
    seed: int,
    level: int = 200,
    difficulty: str = "easy",
    params: Params | None = None,
    dtype: str = "float64",
) -> State:
    """State after the original generator's reset for a seed.

    Args:
      seed: the generator's episode seed, >= 0.
      level: 200.
      difficulty: "easy", "medium" or "hard".
      params: physics of the hidden first tick; the level's own if None.
      dtype: "float32" or "float64"; the latter needs `jax_enable_x64`.

    Raises:
      ValueError: as `wsu_start`.
    """
    start = wsu_start(seed, level, difficulty, dtype)
    return _begin(start, jax.tree.map(lambda p: jnp.asarray(p, dtype), params or Params()))
