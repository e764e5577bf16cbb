"""Levels and the parameters that a user may set by name."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import parameters
from jaxsim.parameters import Parameter
from jaxsim.worlds.cartpole3d.types import Config, Params

DIFFICULTIES = ("easy", "medium", "hard")

Overrides = Mapping[str, float]
ByDifficulty = tuple[Overrides, Overrides, Overrides]


@dataclass(frozen=True)
class Level:
    """One entry of the novelty catalogue.

    Attributes:
      number: as in the original generator; its hundreds tell the groups apart.
      change: what differs from level 200, in words.
      overrides: fields of `Params` by difficulty, in the order of `DIFFICULTIES`.
      terms: optional parts of the physics it needs, see `Config.terms`.
    """

    number: int
    change: str
    overrides: ByDifficulty
    terms: tuple[str, ...] = ()


def _same(**fields: float) -> ByDifficulty:
    """The same changes at every difficulty."""
    return fields, fields, fields


def _each(field: str, easy: float, medium: float, hard: float) -> ByDifficulty:
    """One field that changes with the difficulty."""
    return {field: easy}, {field: medium}, {field: hard}


def _aimed(share: float) -> Overrides:
    return {"aim_share": share, "aim_speed_max": 10.0}


def _scattered(speed: float) -> Overrides:
    return {
        "aim_share": 0.5,
        "aim_speed_min": speed,
        "aim_speed_max": speed,
        "scatter_speed": speed,
    }


def _bouncing(least: float) -> Overrides:
    return {"restitution_wall": least, "restitution_block": least, "bounce_spread": 0.1}


CATALOGUE: dict[int, Level] = {
    level.number: level
    for level in (
        Level(101, "the cart weighs ten times as much", _same(cart_mass=10.0)),
        Level(
            102,
            "blocks stand still and cannot be moved",
            _same(block_mass=math.inf, block_speed_min=0.0, block_speed_max=0.0),
        ),
        Level(
            103, "all blocks fly towards one point at up to 10 m/s", _same(gather_speed_max=10.0)
        ),
        Level(104, "blocks have twice the radius", _same(block_radius=1.0)),
        Level(
            105,
            "blocks attract one another, with up to 6 N drawn anew each tick",
            _same(pull_centroid_random=6.0),
            ("attraction",),
        ),
        Level(106, "blocks fall", _same(block_buoyancy=0.0)),
        Level(
            107,
            "blocks are pulled to the world's origin",
            _each("pull_origin", 15.0, 25.0, 35.0),
            ("attraction",),
        ),
        Level(
            111,
            "right and left are swapped, and so are forward and backward",
            _same(action_sign=-1.0),
        ),
        Level(
            112,
            "every episode is the same, with one block",
            _same(block_count_min=1.0, block_count_max=1.0),
            ("one_start",),
        ),
        Level(
            113,
            "all blocks fly towards one point, faster with the difficulty",
            _each("gather_speed_max", 7.5, 10.0, 12.5),
        ),
        Level(
            114,
            "half of the blocks fly at the cart, the others anywhere",
            (_scattered(2.0), _scattered(3.0), _scattered(4.0)),
        ),
        Level(115, "pushes are 5 to 15 times as strong", _each("force", 50.0, 100.0, 150.0)),
        Level(200, "nominal", _same()),
        Level(
            201,
            "the pole is longer; its mass and centre of mass stay",
            _each("pole_length", 3.0, 5.0, 8.0),
        ),
        Level(
            203,
            "some blocks start towards the cart",
            (_aimed(0.25), _aimed(0.5), _aimed(0.75)),
        ),
        Level(
            204,
            "walls and blocks bounce back faster than they are hit",
            (_bouncing(1.05), _bouncing(1.2), _bouncing(1.35)),
            ("bounce",),
        ),
        Level(
            205,
            "blocks are pushed away from their centroid",
            _each("pull_centroid", -1.0, -3.0, -5.0),
            ("attraction",),
        ),
        Level(
            206,
            "wind blows across the room",
            _each("wind_speed", 16.0, 18.0, 20.0),
            ("wind",),
        ),
        Level(
            207,
            "blocks are pulled to where the cart was a tick ago",
            _each("pull_cart", 10.0, 20.0, 30.0),
            ("attraction",),
        ),
    )
}
LEVELS = tuple(CATALOGUE)


def params_of(level: int, difficulty: str, dtype: Any) -> Params:
    """Parameters of a level.

    Args:
      level: of the catalogue.
      difficulty: "easy", "medium" or "hard".
      dtype: floating type of the leaves; NumPy's float64 keeps them on the host.
    """
    overrides = CATALOGUE[level].overrides[DIFFICULTIES.index(difficulty)]
    params = replace(Params(), **overrides, novelty_level=float(level))
    number = np.float64 if dtype is np.float64 else partial(jnp.asarray, dtype=dtype)
    return jax.tree.map(number, params)


def config_of(level: int, config: Config) -> Config:
    """Configuration that compiles what a level needs besides what it compiles already."""
    return replace(config, terms=tuple(sorted({*config.terms, *CATALOGUE[level].terms})))


def _number(field: str, path: str, unit: str, low: float, high: float, text: str) -> Any:
    default = float(getattr(Params(), field))
    return field, Parameter(path, default, unit, low, high, description=text)


def _whole(field: str, path: str, low: int, high: int, text: str) -> Any:
    default = int(getattr(Params(), field))
    return field, Parameter(path, default, "", low, high, description=text)


_ROWS = [
    _number("gravity", "gravity", "m/s^2", 0.0, 100.0, "downwards, on the pole and the blocks"),
    _number("force", "force", "N", 0.0, 1000.0, "size of one push on the cart"),
    _number("drag", "drag", "1/s", 0.0, 10.0, "linear and quadratic drag of every body"),
    _number("cart_mass", "cart/mass", "kg", 0.01, 1000.0, "mass of the cart"),
    _number("pole_mass", "pole/mass", "kg", 0.001, 100.0, "mass of the pole"),
    _number(
        "pole_length",
        "pole/length",
        "m",
        0.1,
        9.0,
        "length of the pole's collider and inertia; as in level 201 its centre of mass stays",
    ),
    _number("pole_com", "pole/com", "m", 0.05, 9.0, "centre of mass of the pole above the pivot"),
    _number("block_radius", "blocks/radius", "m", 0.05, 2.0, "radius of a block"),
    _number("block_mass", "blocks/mass", "kg", 0.001, 1000.0, "mass of a block"),
    _number(
        "block_buoyancy",
        "blocks/buoyancy",
        "",
        0.0,
        2.0,
        "share of a block's weight that is carried; 0 lets blocks fall",
    ),
    _whole("block_count_min", "blocks/count_min", 0, 4, "fewest blocks at the start"),
    _whole("block_count_max", "blocks/count_max", 0, 4, "most blocks at the start"),
    _number(
        "block_speed_min", "blocks/speed_min", "m/s", 0.0, 50.0, "least initial speed per axis"
    ),
    _number(
        "block_speed_max", "blocks/speed_max", "m/s", 0.0, 50.0, "greatest initial speed per axis"
    ),
    _number("restitution_wall", "walls/restitution", "", 0.0, 2.0, "bounce of the walls"),
    _number("restitution_block", "blocks/restitution", "", 0.0, 2.0, "bounce of the blocks"),
    _number("restitution_cart", "cart/restitution", "", 0.0, 2.0, "bounce of the cart"),
    _number("restitution_pole", "pole/restitution", "", 0.0, 2.0, "bounce of the pole"),
    _number("room_half_width", "room/half_width", "m", 4.5, 100.0, "inner faces of the side walls"),
    _number("room_floor", "room/floor", "m", -100.0, 0.0, "height of the floor"),
    _number("room_ceiling", "room/ceiling", "m", 9.5, 100.0, "height of the ceiling"),
    _number("start_spread", "start/spread", "m", 0.0, 4.0, "cart starts within +- this in x and y"),
    _number("start_push", "start/push", "N", 0.0, 100.0, "largest push in the hidden first tick"),
    _number("start_lean", "start/lean", "", 0.0, 0.1, "half width of the initial pole numbers"),
    _number("lean_limit", "lean_limit", "rad", 0.01, 1.5, "roll or pitch that ends an episode"),
]
FIELDS: dict[str, str] = {row.path: field for field, row in _ROWS}
PARAMETERS: dict[str, Parameter] = {
    "novelty/level": Parameter(
        "novelty/level", 200, choices=LEVELS, description="level of the novelty catalogue"
    ),
    "novelty/difficulty": Parameter(
        "novelty/difficulty", "easy", choices=DIFFICULTIES, description="difficulty of the level"
    ),
    **{row.path: row for _, row in _ROWS},
}
"""Everything a syllabus or `jaxsim.make` may set, by path."""


def params_from_values(values: Mapping[str, Any], config: Config) -> tuple[Params, Config]:
    """Turn values by path into traced parameters and the configuration they need.

    Args:
      values: by path; what is missing takes its level's value.
      config: capacity and precision.

    Raises:
      ValueError: an unknown path, a refused value, or values that contradict one another.
    """
    parameters.check(PARAMETERS, values)
    level = values.get("novelty/level", 200)
    difficulty = values.get("novelty/difficulty", "easy")
    params = params_of(level, difficulty, config.dtype)
    own = {FIELDS[path]: value for path, value in values.items() if path in FIELDS}
    params = replace(params, **{f: jnp.asarray(v, config.dtype) for f, v in own.items()})
    for low, high in (
        ("blocks/count_min", "blocks/count_max"),
        ("blocks/speed_min", "blocks/speed_max"),
    ):
        least, most = (float(getattr(params, FIELDS[path])) for path in (low, high))
        if least > most:
            raise ValueError(f"parameter {low!r} is {least:g}, above {high!r}, which is {most:g}")
    if params.block_count_max > config.max_blocks:
        raise ValueError(
            f"parameter 'blocks/count_max' is {int(params.block_count_max)}; this environment "
            f"holds {config.max_blocks} blocks (option max_blocks)"
        )
    return params, config_of(level, config)
