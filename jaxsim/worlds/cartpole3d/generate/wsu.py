"""Starts exactly as the original generator draws them, on the host.

The original seeds a NumPy `RandomState` per episode and draws in a fixed order; each level replaces
a part of it, see `STREAMS`. Levels that it does not list are rejected.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import rng
from jaxsim.pytrees import Leaf
from jaxsim.worlds.cartpole3d.blocks import spawn
from jaxsim.worlds.cartpole3d.blocks.placement import BLOCK_MIDDLE, BLOCK_SPREAD, CLEARANCE
from jaxsim.worlds.cartpole3d.generate import start as starts
from jaxsim.worlds.cartpole3d.generate.start import AIM_HEIGHT, LINE_REACH
from jaxsim.worlds.cartpole3d.levels import DIFFICULTIES, params_of
from jaxsim.worlds.cartpole3d.parameter_table import params_from_values, slots_for
from jaxsim.worlds.cartpole3d.types import (
    ENGINES,
    RESTING,
    Config,
    Params,
    Rail,
    Sphere,
    State,
    Vector,
)

Draws = np.random.RandomState
Places = list[np.ndarray]  # (3,) m each
Speeds = list[np.ndarray]  # (3,) m/s each


def wsu_start(
    seed: int,
    level: int = 200,
    difficulty: str = "easy",
    dtype: str = "float64",
    engine: str = "stock",
    *,
    start_zeroed_out: bool = False,
) -> State:
    """Draw the start of the original generator for a seed.

    Args:
      seed: the generator's episode seed, >= 0.
      level: of the catalogue.
      difficulty: "easy", "medium" or "hard".
      dtype: "float32" or "float64"; the latter needs `jax_enable_x64`.
      engine: "stock" or "tbplanar", see `Config`.
      start_zeroed_out: the generator's option of that name: the cart is in the middle without a
        push, the pole is upright and at rest. All numbers are drawn nevertheless; blocks keep clear
        of the middle.

    Returns:
      The state before the hidden first tick, scalar leaves, four block slots; `fitted` converts it
      to the form of an environment with more slots or optional parts.

    Raises:
      ValueError: a negative seed, an unknown level, difficulty or engine, or float64 without x64.
    """
    draws = _draw_episode((seed, level, difficulty), dtype, engine, start_zeroed_out)
    return _states([draws], lambda values: np.asarray(values[0]), dtype)


def wsu_starts(
    plans: Sequence[tuple[int, int, str]],
    dtype: str = "float64",
    engine: str = "stock",
    *,
    start_zeroed_out: bool = False,
) -> State:
    """Draw the starts of the original generator for many episodes.

    Args:
      plans: seed, level and difficulty of each of B episodes.
      dtype: as in `wsu_start`.
      engine: as in `wsu_start`.
      start_zeroed_out: as in `wsu_start`.

    Returns:
      The states before the hidden first tick, leaves (B,). If any level has blocks on lines, all
      blocks have a `Rail`, with direction (0, 0) for free blocks.

    Raises:
      ValueError: as `wsu_start`.
    """
    draws = [_draw_episode(plan, dtype, engine, start_zeroed_out) for plan in plans]
    return _states(draws, np.asarray, dtype)


def _draw_episode(
    plan: tuple[int, int, str], dtype: str, engine: str, zeroed: bool
) -> "_EpisodeDraws":
    seed, level, difficulty = plan
    _check(seed, level, difficulty, dtype, engine)
    stream = STREAMS[level]
    draws = generator(seed if stream.seed is None else stream.seed)
    # The constructor draws restitution or wind before all else.
    bounce = draws.random_sample() / 10 if stream.bounce else 0.0
    angle = 2 * np.pi * draws.random_sample() if stream.wind else 0.0
    return _EpisodeDraws(_draw_world(draws, level, difficulty, engine, zeroed), bounce, angle)


class _WorldDraws(NamedTuple):
    """Numbers that the original draws for its world."""

    xy: np.ndarray
    push: np.ndarray
    lean: np.ndarray
    blocks: list[Sphere]  # NumPy leaves


class _EpisodeDraws(NamedTuple):
    """Numbers that the original draws for an episode."""

    world: _WorldDraws
    bounce: float
    wind_angle: float


def _draw_world(
    draws: Draws, level: int, difficulty: str, engine: str = "stock", zeroed: bool = False
) -> _WorldDraws:
    """Draw cart, push, pole and blocks in the original's order."""
    xy = draws.uniform(-3.0, 3.0, 2)
    push = draws.uniform(-1.0, 1.0, 2)
    lean = draws.uniform(-0.01, 0.01, 6)
    if zeroed:
        xy, push, lean = 0 * xy, 0 * push, 0 * lean
    stream, params = STREAMS[level], params_of(level, difficulty, np.float64)
    count = draws.randint(3) + 2 if stream.blocks is None else stream.blocks
    if stream.lines:
        return _WorldDraws(xy, push, lean, _on_lines(draws, params, engine, count, xy, lean[0]))
    positions = [_position(draws, xy) for _ in range(count)]
    velocities = stream.velocities(draws, params, positions, xy)
    return _WorldDraws(xy, push, lean, list(map(_block, positions, velocities)))


def _block(p: np.ndarray, v: np.ndarray) -> Sphere:
    return Sphere(Vector(*p), Vector(*v), _flag(True))


def _flag(value: bool) -> Leaf:
    return np.bool_(value)


def _on_lines(
    draws: Draws, params: Params, engine: str, count: int, xy: np.ndarray, lean: float
) -> list[Sphere]:
    """Draw all lines, then the place and speed of each block on its line."""
    lines = [_line(draws, params, xy) for _ in range(count)]
    return [_place_on(draws, params, *line, lean, engine) for line in lines]


def _line(draws: Draws, params: Params, xy: np.ndarray) -> tuple[Vector, float]:
    """Draw a line: a point and an angle."""
    while True:
        angle = 2 * np.pi * draws.random_sample()
        p = draws.uniform(-BLOCK_SPREAD, BLOCK_SPREAD, 2)
        d = p - xy
        distance = abs(np.cos(angle) * d[1] - np.sin(angle) * d[0])
        if params.line_near <= distance <= params.line_far:
            return Vector(p[0], p[1], draws.uniform(-1.0, 1.0)), angle


def _place_on(
    draws: Draws, params: Params, base: Vector, angle: float, lean: float, engine: str
) -> Sphere:
    """Draw the place of a block on its line, and its speed."""
    while True:
        s = starts.joint_position(draws.uniform(-LINE_REACH, LINE_REACH), lean, engine)
        if starts.starts_inside(base, angle, s):
            break
    speed = draws.uniform(params.block_speed_min, params.block_speed_max)
    if draws.uniform() < 0.5:
        speed = -speed
    return starts.on_line(base, np.float64(angle), s, np.float64(speed))


def _check(seed: int, level: int, difficulty: str, dtype: str, engine: str) -> None:
    if seed < 0:
        raise ValueError(f"seed is {seed}; the original accepts whole numbers from 0")
    if level not in STREAMS:
        levels = ", ".join(map(str, STREAMS))
        raise ValueError(f"level is {level}; the original's random stream is known for: {levels}")
    if difficulty not in DIFFICULTIES:
        raise ValueError(f"difficulty is {difficulty!r}; it must be 'easy', 'medium' or 'hard'")
    if engine not in ENGINES:
        raise ValueError(f"engine is {engine!r}; it must be 'stock' or 'tbplanar'")
    if dtype == "float64" and not jax.config.read("jax_enable_x64"):
        raise ValueError('dtype is "float64"; set jax.config.update("jax_enable_x64", True) first')


def generator(seed: int) -> Draws:
    """Generator seeded as in Gym up to 0.21: first 8 bytes of SHA-512 of the decimal seed."""
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


def _nominal(draws: Draws, low: float = 6.0, high: float = 10.0) -> np.ndarray:
    v = draws.uniform(low, high, 3)
    for axis in range(3):
        if draws.uniform() < 0.5:
            v[axis] = -v[axis]
    return v


def _towards(p: np.ndarray, target: np.ndarray, speed: float) -> np.ndarray:
    d = target - p
    return d * (speed / np.linalg.norm(d))


def _usual(draws: Draws, params: Params, positions: Places, xy: np.ndarray) -> Speeds:
    return [_nominal(draws) for _ in positions]


def _at_rest(draws: Draws, params: Params, positions: Places, xy: np.ndarray) -> Speeds:
    return [np.zeros(3) for _ in positions]


def _gathered(draws: Draws, params: Params, positions: Places, xy: np.ndarray) -> Speeds:
    """All blocks fly towards one point at one speed."""
    point = draws.uniform(-BLOCK_SPREAD, BLOCK_SPREAD, 3) + np.array([0, 0, BLOCK_MIDDLE])
    speed = float(params.gather_speed_max) * draws.random_sample()
    return [_towards(p, point, speed) for p in positions]


def _at_cart(draws: Draws, params: Params, positions: Places, xy: np.ndarray) -> Speeds:
    """Every block flies towards the cart's origin."""
    low = np.array([*xy, 0.0])
    return [_towards(p, low, 2 + 2 * draws.random_sample()) for p in positions]


def _some_at_cart(draws: Draws, params: Params, positions: Places, xy: np.ndarray) -> Speeds:
    """A share of the blocks flies towards the cart; one drawn number is unused."""
    draws.random_sample()
    target = np.array([*xy, AIM_HEIGHT])

    def one(p: np.ndarray) -> np.ndarray:
        if draws.random_sample() < float(params.aim_share):
            return _towards(p, target, float(params.aim_speed_max) * draws.random_sample())
        return _nominal(draws)

    return [one(p) for p in positions]


def _scattered(draws: Draws, params: Params, positions: Places, xy: np.ndarray) -> Speeds:
    """A share of the blocks flies towards the cart at one speed, the others in any direction."""
    target = np.array([*xy, AIM_HEIGHT])

    def one(p: np.ndarray) -> np.ndarray:
        if draws.random_sample() < float(params.aim_share):
            return _towards(p, target, float(params.aim_speed_max))
        return draws.uniform(-1.0, 1.0, 3) * float(params.scatter_speed)

    return [one(p) for p in positions]


def _states(
    draws: Sequence[_EpisodeDraws], join: Callable[[Sequence[Leaf]], np.ndarray], dtype: str
) -> State:
    """Assemble the states of episodes, joined leaf by leaf."""

    def leaf(*values: Leaf) -> np.ndarray:
        joined = join(values)
        return joined if joined.dtype == bool else joined.astype(dtype)

    worlds = [one.world for one in draws]
    lines = any(world.blocks[0].rail is not None for world in worlds)
    slots = [_slots_of(world, lines) for world in worlds]
    blocks = tuple(jax.tree.map(leaf, *alike) for alike in zip(*slots, strict=True))
    x, y = (leaf(*(world.xy[axis] for world in worlds)) for axis in range(2))
    push = [leaf(*(world.push[axis] for world in worlds)) for axis in range(2)]
    lean = [leaf(*(world.lean[place] for world in worlds)) for place in range(6)]
    bounce = leaf(*(one.bounce for one in draws))
    angle = leaf(*(one.wind_angle for one in draws))
    # One transfer: a transfer for each leaf would take most of the time.
    return starts.initial(*jax.device_put((x, y, push, lean, blocks, bounce, angle)))


def _slots_of(world: _WorldDraws, lines: bool) -> list[Sphere]:
    """The blocks of a world in four slots, each with a `Rail` if any world has lines."""
    rest = Sphere(Vector(0.0, 0.0, RESTING), Vector(0.0, 0.0, 0.0), _flag(False))
    spare = [rest] * (Config().max_blocks - len(world.blocks))
    free = Rail(0.0, 0.0, 0.0, 0.0)
    return [replace(b, rail=b.rail or free) if lines else b for b in [*world.blocks, *spare]]


def wsu_shares(seed: int, count: int, *, start_zeroed_out: bool = False) -> np.ndarray:
    """Numbers in [0, 1) of level 105 by tick, the hidden tick first, (count,)."""
    draws = generator(seed)
    _draw_world(draws, 105, "easy", zeroed=start_zeroed_out)
    return draws.random_sample(count)


def wsu_spawns(
    seed: int, difficulty: str, count: int, *, start_zeroed_out: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Positions and velocities of the blocks that level 208 adds, (count, 3) m and m/s each."""
    params = params_of(208, difficulty, np.float64)
    low, high = float(params.spawn_speed_min), float(params.spawn_speed_max)
    draws = generator(seed)
    xy = _draw_world(draws, 208, difficulty, zeroed=start_zeroed_out).xy
    blocks = [(_position(draws, xy), _nominal(draws, low, high)) for _ in range(count)]
    positions, velocities = zip(*blocks, strict=True)
    return np.stack(positions), np.stack(velocities)


def wsu_distances(seed: int, count: int) -> np.ndarray:
    """Shares of the largest distance that level 108 draws one after the other, (count,).

    The original draws them from Python's own generator and never seeds it; these are from a
    generator seeded with the episode's seed.
    """
    # Python seeds the same generator as NumPy, with the 32-bit words of the number.
    words = [seed >> shift & 0xFFFFFFFF for shift in range(0, max(seed.bit_length(), 1), 32)]
    return np.random.RandomState(words).random_sample(count)


_begin = jax.jit(starts.begin, static_argnums=2)


def from_wsu_seed(
    seed: int,
    level: int = 200,
    difficulty: str = "easy",
    params: Params | None = None,
    dtype: str = "float64",
    engine: str = "stock",
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
      engine: "stock" or "tbplanar", see `Config`.
      start_zeroed_out: as in `wsu_start`.

    Returns:
      The state in the form of the environment of `jaxsim.make` with this level and difficulty.
      Random numbers of later ticks come from the keys of `step`.

    Raises:
      ValueError: as `wsu_start`.
    """
    start = wsu_start(seed, level, difficulty, dtype, engine, start_zeroed_out=start_zeroed_out)
    values = {"novelty/level": level, "novelty/difficulty": difficulty}
    slots = slots_for(values, Config().max_steps)
    usual, config = params_from_values(values, Config(max_blocks=slots, dtype=dtype, engine=engine))
    params = params or usual
    start = starts.fitted(start, config)
    if hidden := STREAMS[level].hidden:
        start, params = hidden(start, params, seed, difficulty, start_zeroed_out)
    key = rng.words(jax.random.key(seed))
    return _begin(start, params, config, key)


def _first_share(
    start: State, params: Params, seed: int, difficulty: str, zeroed: bool
) -> tuple[State, Params]:
    """Use the original's force in the hidden tick, instead of one from the key."""
    share = wsu_shares(seed, 1, start_zeroed_out=zeroed)[0]
    pull = params.pull_centroid + params.pull_centroid_random * share
    return start, replace(params, pull_centroid=pull, pull_centroid_random=jnp.zeros_like(pull))


def _first_spawn(
    start: State, params: Params, seed: int, difficulty: str, zeroed: bool
) -> tuple[State, Params]:
    """Add the original's block of the hidden tick, if there is one, instead of one from the key."""
    blocks = wsu_spawns(seed, difficulty, 1, start_zeroed_out=zeroed)
    dtype = jnp.result_type(start.pose.x)
    p, v = (Vector(*jnp.asarray(first[0], dtype)) for first in blocks)
    start = spawn.add_block(start, p, v, jnp.asarray(params.spawn_period == 1))
    return start, replace(params, spawn_period=jnp.zeros_like(params.spawn_period))


class LevelStream(NamedTuple):
    """Random draws of a level in the original, where they differ from the nominal level.

    Attributes:
      velocities: draws the blocks' velocities from params, positions and the cart's place.
      blocks: number of blocks; None to draw 2 to 4.
      seed: of all episodes; None for the seed of each episode.
      lines: blocks are drawn on lines.
      bounce: extra restitution is drawn first.
      wind: the wind's direction is drawn first.
      hidden: sets the original's draws of the hidden tick.
    """

    velocities: Callable[[Draws, Params, Places, np.ndarray], Speeds] = _usual
    blocks: int | None = None
    seed: int | None = None
    lines: bool = False
    bounce: bool = False
    wind: bool = False
    hidden: Callable[[State, Params, int, str, bool], tuple[State, Params]] | None = None


NOMINAL = LevelStream()
STREAMS: dict[int, LevelStream] = {
    101: NOMINAL,
    102: LevelStream(_at_rest),
    103: LevelStream(_gathered),
    104: NOMINAL,
    105: LevelStream(hidden=_first_share),
    106: NOMINAL,
    107: NOMINAL,
    108: NOMINAL,
    111: NOMINAL,
    112: LevelStream(_at_cart, blocks=1, seed=0),
    113: LevelStream(_gathered),
    114: LevelStream(_scattered),
    115: NOMINAL,
    200: NOMINAL,
    201: NOMINAL,
    202: LevelStream(lines=True),
    203: LevelStream(_some_at_cart),
    204: LevelStream(bounce=True),
    205: NOMINAL,
    206: LevelStream(wind=True),
    207: NOMINAL,
    208: LevelStream(hidden=_first_spawn),
}
"""Random stream of each level."""
