"""Starts by a seed, on the host, for levels 50 to 53.

The original never seeds its generator for these levels, so its episodes cannot be repeated. Here
the same distribution is drawn from the stream that the original seeds for its other levels. The
order is our own: the cart's place, one unused number, then twenty drags, of which the five
reachable ones are kept.
"""

import jax
import jax.numpy as jnp

from jaxsim.worlds.cartpole2d import generate
from jaxsim.worlds.cartpole2d.env import CartPole2D
from jaxsim.worlds.cartpole2d.levels import LEVELS, params_of
from jaxsim.worlds.cartpole2d.types import ZONES, Config, Params, State
from jaxsim.worlds.cartpole3d.generate.wsu import generator
from jaxsim.worlds.cartpole3d.levels import DIFFICULTIES

ALL_ZONES = 20  # zones that the original draws, from -10 m on


def start_from_seed(
    seed: int,
    level: int = 50,
    difficulty: str = "easy",
    params: Params | None = None,
    config: Config | None = None,
) -> State:
    """Draw the start of a seed.

    Args:
      seed: >= 0.
      level: of the catalogue.
      difficulty: "easy", "medium" or "hard".
      params: spread of the start and drags; the level's own if None.
      config: precision and engine; float64 needs `jax_enable_x64`.

    Returns:
      The state before the hidden first tick, scalar leaves.

    Raises:
      ValueError: a negative seed, an unknown level or difficulty, or float64 without x64.
    """
    config = config or Config()
    _check(seed, level, difficulty, config)
    params = params or params_of(level, difficulty, config.dtype)
    draws = generator(seed)
    x = draws.uniform(-1.0, 1.0) * float(params.start_spread)
    draws.uniform()
    drags = draws.uniform(float(params.drag_min), float(params.drag_max), ALL_ZONES)
    reachable = drags[ALL_ZONES // 2 + ZONES[0] :][: len(ZONES)]
    zone_drag = [jnp.asarray(drag, config.dtype) for drag in reachable]
    place = generate.engine_place(jnp.asarray(x, config.dtype), config.engine)
    return generate.initial(place, zone_drag, params)


def from_seed(
    seed: int,
    level: int = 50,
    difficulty: str = "easy",
    params: Params | None = None,
    config: Config | None = None,
) -> State:
    """State after the hidden first tick of the episode of a seed.

    Args:
      seed: >= 0.
      level: of the catalogue.
      difficulty: "easy", "medium" or "hard".
      params: physics; the level's own if None.
      config: precision and engine; float64 needs `jax_enable_x64`.

    Raises:
      ValueError: as `start_from_seed`.
    """
    config = config or Config()
    start = start_from_seed(seed, level, difficulty, params, config)
    params = params or params_of(level, difficulty, config.dtype)
    return CartPole2D(config).restart(jax.random.key(seed), start, params)[1]


def _check(seed: int, level: int, difficulty: str, config: Config) -> None:
    if seed < 0:
        raise ValueError(f"seed is {seed}; it must be a whole number from 0")
    if level not in LEVELS:
        raise ValueError(f"level is {level}; it must be one of {', '.join(map(str, LEVELS))}")
    if difficulty not in DIFFICULTIES:
        raise ValueError(f"difficulty is {difficulty!r}; it must be 'easy', 'medium' or 'hard'")
    if config.dtype == "float64" and not jax.config.read("jax_enable_x64"):
        raise ValueError('dtype is "float64"; set jax.config.update("jax_enable_x64", True) first')
