"""Starts exactly as the original generator draws them, on the host.

The original seeds a NumPy `RandomState` per episode and draws in a fixed order; each level replaces
a part of it.
"""

import hashlib
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import rng
from jaxsim.worlds.cartpole3d import start as starts
from jaxsim.worlds.cartpole3d.levels import DIFFICULTIES, LEVELS, params_of
from jaxsim.worlds.cartpole3d.settings import params_from_values
from jaxsim.worlds.cartpole3d.start import (
    AIM_HEIGHT,
    BLOCK_MIDDLE,
    BLOCK_SPREAD,
    CLEARANCE,
    RESTING,
)
from jaxsim.worlds.cartpole3d.types import Block, Config, Params, State, Vector

Draws = np.random.RandomState


def wsu_start(
    seed: int,
    level: int = 200,
    difficulty: str = "easy",
    dtype: str = "float64",
    *,
    start_zeroed_out: bool = False,
) -> State:
    """Draw the start that the original generator draws for a seed.

    Args:
      seed: the generator's episode seed, >= 0.
      level: of the catalogue.
      difficulty: "easy", "medium" or "hard".
      dtype: "float32" or "float64"; the latter needs `jax_enable_x64`.
      start_zeroed_out: the generator's option of that name: the cart stands in the middle and
        unpushed, the pole is upright and at rest. Everything is drawn all the same; blocks keep
        clear of where the cart is.

    Returns:
      The state before the hidden first tick, scalar leaves, four block slots.

    Raises:
      ValueError: a negative seed, a level or difficulty that is not covered, or float64
        without x64.
    """
    _check(seed, level, difficulty, dtype)
    draws = generator(0 if level == 112 else seed)
    # The constructor draws restitution or wind before the world draws anything.
    bounce = draws.random_sample() / 10 if level == 204 else 0.0
    angle = 2 * np.pi * draws.random_sample() if level == 206 else 0.0
    world = _draw_world(draws, level, difficulty, start_zeroed_out)
    xy, push, lean, positions, velocities = world
    return _state(xy, push, lean, positions, velocities, (bounce, angle), dtype)


def _draw_world(draws: Draws, level: int, difficulty: str, zeroed: bool = False) -> tuple[Any, ...]:
    """Draw cart, push, pole, and the blocks' positions and velocities."""
    xy = draws.uniform(-3.0, 3.0, 2)
    push = draws.uniform(-1.0, 1.0, 2)
    lean = draws.uniform(-0.01, 0.01, 6)
    if zeroed:
        xy, push, lean = 0 * xy, 0 * push, 0 * lean
    count = 1 if level == 112 else draws.randint(3) + 2
    positions = [_position(draws, xy) for _ in range(count)]
    return xy, push, lean, positions, _velocities(draws, level, difficulty, positions, xy)


def _check(seed: int, level: int, difficulty: str, dtype: str) -> None:
    if seed < 0:
        raise ValueError(f"seed is {seed}; the original accepts whole numbers from 0")
    if level not in LEVELS:
        known = ", ".join(map(str, LEVELS))
        raise ValueError(f"level is {level}; the original's random stream is known for: {known}")
    if difficulty not in DIFFICULTIES:
        raise ValueError(f"difficulty is {difficulty!r}; it must be 'easy', 'medium' or 'hard'")
    if dtype == "float64" and not jax.config.read("jax_enable_x64"):
        raise ValueError('dtype is "float64"; set jax.config.update("jax_enable_x64", True) first')


def generator(seed: int) -> Draws:
    """Seed as Gym up to 0.21 does: the first 8 bytes of SHA-512 of the decimal seed."""
    digest = hashlib.sha512(str(seed).encode()).digest()[:8]
    low, high = int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:], "little")
    state = np.random.RandomState()
    state.seed([low, high])
    return state


def _position(draws: Draws, cart: np.ndarray) -> np.ndarray:
    while True:
        p = draws.uniform(-BLOCK_SPREAD, BLOCK_SPREAD, 3)
        p[2] += BLOCK_MIDDLE
        if np.linalg.norm(p[:2] - cart) >= CLEARANCE:
            return p


def _nominal(draws: Draws) -> np.ndarray:
    v = draws.uniform(6.0, 10.0, 3)
    for axis in range(3):
        if draws.uniform() < 0.5:
            v[axis] = -v[axis]
    return v


def _towards(p: np.ndarray, target: np.ndarray, speed: float) -> np.ndarray:
    d = target - p
    return d * (speed / np.linalg.norm(d))


def _velocities(
    draws: Draws, level: int, difficulty: str, positions: list[np.ndarray], xy: np.ndarray
) -> list[np.ndarray]:
    """Draw the blocks' velocities in the order of the level."""
    params = params_of(level, difficulty, np.float64)
    if level == 102:
        return [np.zeros(3) for _ in positions]
    if level in (103, 113):
        point = draws.uniform(-BLOCK_SPREAD, BLOCK_SPREAD, 3) + np.array([0, 0, BLOCK_MIDDLE])
        speed = float(params.gather_speed_max) * draws.random_sample()
        return [_towards(p, point, speed) for p in positions]
    if level == 203:
        draws.random_sample()
    if level in (112, 114, 203):
        return [_aimed(draws, level, params, p, xy) for p in positions]
    return [_nominal(draws) for _ in positions]


def _aimed(draws: Draws, level: int, params: Params, p: np.ndarray, xy: np.ndarray) -> np.ndarray:
    """Velocity of a block that may be aimed at the cart."""
    high = np.array([*xy, AIM_HEIGHT])
    if level == 112:
        return _towards(p, np.array([*xy, 0.0]), 2 + 2 * draws.random_sample())
    if draws.random_sample() < float(params.aim_share):
        if level == 114:
            return _towards(p, high, float(params.aim_speed_max))
        return _towards(p, high, float(params.aim_speed_max) * draws.random_sample())
    if level == 114:
        return draws.uniform(-1.0, 1.0, 3) * float(params.scatter_speed)
    return _nominal(draws)


def _state(
    xy: np.ndarray,
    push: np.ndarray,
    lean: np.ndarray,
    positions: list[np.ndarray],
    velocities: list[np.ndarray],
    episode: tuple[float, float],
    dtype: str,
) -> State:
    def number(value: float) -> jax.Array:
        return jnp.asarray(value, dtype)

    def block(index: int) -> Block:
        alive = index < len(positions)
        p = positions[index] if alive else np.array([0.0, 0.0, RESTING])
        v = velocities[index] if alive else np.zeros(3)
        return Block(Vector(*map(number, p)), Vector(*map(number, v)), jnp.asarray(alive))

    blocks = tuple(block(i) for i in range(Config().max_blocks))
    x, y = map(number, xy)
    forces, numbers = [number(f) for f in push], [number(r) for r in lean]
    return starts.initial(x, y, forces, numbers, blocks, *map(number, episode))


def wsu_shares(seed: int, count: int, *, start_zeroed_out: bool = False) -> np.ndarray:
    """Numbers in [0, 1) that level 105 draws tick by tick, the hidden tick first, (count,)."""
    draws = generator(seed)
    _draw_world(draws, 105, "easy", start_zeroed_out)
    return draws.random_sample(count)


_begin = jax.jit(starts.begin, static_argnums=2)


def from_wsu_seed(
    seed: int,
    level: int = 200,
    difficulty: str = "easy",
    params: Params | None = None,
    dtype: str = "float64",
    *,
    start_zeroed_out: bool = False,
) -> State:
    """State after the original generator's reset for a seed.

    Args:
      seed: the generator's episode seed, >= 0.
      level: of the catalogue.
      difficulty: "easy", "medium" or "hard".
      params: physics of the hidden first tick; the level's own if None.
      dtype: "float32" or "float64"; the latter needs `jax_enable_x64`.
      start_zeroed_out: as in `wsu_start`.

    Raises:
      ValueError: as `wsu_start`.
    """
    start = wsu_start(seed, level, difficulty, dtype, start_zeroed_out=start_zeroed_out)
    values = {"novelty/level": level, "novelty/difficulty": difficulty}
    own, config = params_from_values(values, Config(dtype=dtype))
    params = params or own
    if level == 105:
        # What the original draws in its hidden tick; nothing is left to draw from the key.
        share = wsu_shares(seed, 1, start_zeroed_out=start_zeroed_out)[0]
        pull = params.pull_centroid + params.pull_centroid_random * share
        params = replace(params, pull_centroid=pull, pull_centroid_random=jnp.zeros_like(pull))
    key = rng.words(jax.random.key(seed))
    return _begin(start, params, config, key)
