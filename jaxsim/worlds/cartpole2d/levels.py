"""Levels 50 to 53 and the parameters that a user may set by name."""

from dataclasses import replace

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from jaxsim.parameters import Parameter, RowMaker, Values
from jaxsim.worlds.cartpole2d.types import Config, Params
from jaxsim.worlds.cartpole3d.levels import DIFFICULTIES, Level

TASK = "CartPole2D"

CATALOGUE: dict[int, Level] = {
    level.number: level
    for level in (
        Level(50, "nominal", ({}, {}, {}), TASK),
        Level(
            51,
            "the pole is longer, and its centre of mass higher",
            ({"pole_length": 2.0}, {"pole_length": 4.0}, {"pole_length": 7.0}),
            TASK,
        ),
        Level(
            52,
            "drag on cart and pole (easy), drag that differs from metre to metre (medium), or a "
            "push away from the middle (hard)",
            (
                {"drag_min": 0.125, "drag_max": 0.125},
                {"drag_min": 0.0125, "drag_max": 0.1},
                {"side_push": 1.0},
            ),
            TASK,
        ),
        Level(
            53,
            "sensors report one of a few values, and the end test uses the reported ones",
            ({"bins": 30.0}, {"bins": 20.0}, {"bins": 10.0}),
            TASK,
        ),
    )
}
LEVELS = tuple(CATALOGUE)


def levels() -> tuple[Level, ...]:
    """Return levels 50 to 53."""
    return tuple(CATALOGUE.values())


def params_of(level: int, difficulty: str, dtype: DTypeLike) -> Params:
    """Parameters of a level.

    Args:
      level: of the catalogue.
      difficulty: "easy", "medium" or "hard".
      dtype: floating type of the leaves.
    """
    overrides = CATALOGUE[level].overrides[DIFFICULTIES.index(difficulty)]
    params = replace(Params(), **overrides, novelty_level=float(level))
    return jax.tree.map(lambda p: jnp.asarray(p, dtype), params)


_number = RowMaker(Params()).number

_ROWS = [
    _number("gravity", "gravity", "m/s^2", 0.0, 100.0, "downwards, on the pole"),
    _number("force", "force", "N", 0.0, 1000.0, "size of one push on the cart"),
    _number("side_push", "side_push", "N", -10.0, 10.0, "push away from the middle, level 52"),
    _number("drag_min", "drag/min", "1/s", 0.0, 10.0, "least drag of a metre of the track"),
    _number("drag_max", "drag/max", "1/s", 0.0, 10.0, "greatest drag of a metre of the track"),
    _number("cart_mass", "cart/mass", "kg", 0.01, 1000.0, "mass of the cart"),
    _number("pole_mass", "pole/mass", "kg", 0.001, 100.0, "mass of the pole"),
    _number(
        "pole_length",
        "pole/length",
        "m",
        0.1,
        10.0,
        "whole length of the pole; its centre of mass is in the middle",
    ),
    (
        "bins",
        Parameter(
            "sensors/bins", 0, "", 0, 1000, description="values a sensor can report; 0 for all"
        ),
    ),
    _number("position_limit", "position_limit", "m", 0.1, 2.9, "distance that ends an episode"),
    _number(
        "lean_limit",
        "lean_limit",
        "",
        0.01,
        1.0,
        "sine of half the angle that ends an episode",
    ),
    _number("start_spread", "start/spread", "m", 0.0, 2.0, "cart starts within +- this"),
    _number("start_velocity", "start/velocity", "m/s", -10.0, 10.0, "of the cart"),
    _number("start_rate", "start/rate", "rad/s", -10.0, 10.0, "angular velocity of the pole"),
]
FIELDS: dict[str, str] = {row.path: field for field, row in _ROWS}
PARAMETERS: dict[str, Parameter] = {
    "novelty/level": Parameter(
        "novelty/level", 50, choices=LEVELS, description="level of the novelty catalogue"
    ),
    "novelty/difficulty": Parameter(
        "novelty/difficulty", "easy", choices=DIFFICULTIES, description="difficulty of the level"
    ),
    **{row.path: row for _, row in _ROWS},
}
"""Parameters of syllabi and `jaxsim.make`, by path."""


def params_from_values(values: Values, config: Config) -> Params:
    """Convert values by path to traced parameters.

    Args:
      values: by path, checked one by one; missing ones take the level's values.
      config: precision.

    Raises:
      ValueError: values that contradict one another.
    """
    level = values.get("novelty/level", 50)
    difficulty = values.get("novelty/difficulty", "easy")
    params = params_of(level, difficulty, config.dtype)
    changed = {FIELDS[path]: value for path, value in values.items() if path in FIELDS}
    params = replace(params, **{f: jnp.asarray(v, config.dtype) for f, v in changed.items()})
    least, most = float(params.drag_min), float(params.drag_max)
    if least > most:
        raise ValueError(f"parameter 'drag/min' is {least:g}, above 'drag/max', which is {most:g}")
    return params
