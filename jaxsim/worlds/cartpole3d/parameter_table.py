"""The parameters that a user may set by name, and their conversion to `Params`."""

from dataclasses import replace
from functools import reduce
from typing import Any

import jax
import numpy as np

from jaxsim.parameters import Parameter, RowMaker, Values
from jaxsim.pytrees import Leaf
from jaxsim.worlds.cartpole3d.blocks.spawn import needed_slots
from jaxsim.worlds.cartpole3d.levels import CATALOGUE, DIFFICULTIES, LEVELS, SAME_START
from jaxsim.worlds.cartpole3d.terms import noise
from jaxsim.worlds.cartpole3d.terms.delays import MOST_PUSHES, MOST_READINGS
from jaxsim.worlds.cartpole3d.types import CAPACITIES, Config, Params

MOST = CAPACITIES[-1]  # blocks
PULL = "repairs/pull_to_centroid"

_READINGS = {
    "position": "the positions of cart and blocks",
    "velocity": "the velocities of cart and blocks",
    "angle": "the pole's rotation vector",
    "rate": "the pole's angular velocity",
}
_OFFSETS = {kind: f"added to {what}, each axis" for kind, what in _READINGS.items()} | {
    "angle": "by which the pole's orientation is turned about each axis of the world"
}
_UNITS = {"position": "m", "velocity": "m/s", "angle": "rad", "rate": "rad/s"}

_rows = RowMaker(Params())
_number, _whole, _switch = _rows.number, _rows.whole, _rows.switch

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
    _whole("block_count_min", "blocks/count_min", 0, MOST, "fewest blocks at the start"),
    _whole("block_count_max", "blocks/count_max", 0, MOST, "most blocks at the start"),
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
    _number("bounce_spread", "walls/bounce_spread", "", 0.0, 2.0, "extra bounce drawn per episode"),
    _number("action_sign", "actions/sign", "", -10.0, 10.0, "factor of every push; -1 swaps them"),
    _number("action_scale_x", "actions/scale_x", "", -10.0, 10.0, "factor of right and left"),
    _number("action_scale_y", "actions/scale_y", "", -10.0, 10.0, "factor of forward and backward"),
    _number(
        "action_turn",
        "actions/turn",
        "degrees",
        -360.0,
        360.0,
        "every push is turned by this, counter-clockwise seen from above",
    ),
    _whole("action_delay", "actions/delay", 0, MOST_PUSHES, "ticks by which every push acts late"),
    _number(
        "noise_position",
        "sensors/noise_position",
        "m",
        0.0,
        10.0,
        "standard deviation of the noise on positions of cart and blocks, each axis",
    ),
    _number(
        "noise_velocity",
        "sensors/noise_velocity",
        "m/s",
        0.0,
        10.0,
        "standard deviation of the noise on velocities of cart and blocks, each axis",
    ),
    _number(
        "noise_angle",
        "sensors/noise_angle",
        "rad",
        0.0,
        1.0,
        "standard deviation of a random rotation of the pole's orientation about each axis",
    ),
    _number(
        "noise_rate",
        "sensors/noise_rate",
        "rad/s",
        0.0,
        10.0,
        "standard deviation of the noise on the pole's angular velocity, each axis",
    ),
    _number(
        "step_position",
        "sensors/step_position",
        "m",
        0.0,
        10.0,
        "positions are rounded to multiples of this; 0 for no rounding",
    ),
    _number(
        "step_velocity",
        "sensors/step_velocity",
        "m/s",
        0.0,
        10.0,
        "velocities are rounded to multiples of this; 0 for no rounding",
    ),
    _number(
        "step_angle",
        "sensors/step_angle",
        "rad",
        0.0,
        1.0,
        "the pole's rotation vector is rounded to multiples of this; 0 for no rounding",
    ),
    _number(
        "step_rate",
        "sensors/step_rate",
        "rad/s",
        0.0,
        10.0,
        "the pole's angular velocity is rounded to multiples of this; 0 for no rounding",
    ),
    *(
        _number(
            f"gain_{kind}",
            f"sensors/gain_{kind}",
            "",
            -10.0,
            10.0,
            f"factor of {what}; 0 for sensors that read zero",
        )
        for kind, what in _READINGS.items()
    ),
    *(
        _number(
            f"offset_{kind}",
            f"sensors/offset_{kind}",
            _UNITS[kind],
            -10.0,
            10.0,
            text,
        )
        for kind, text in _OFFSETS.items()
    ),
    _whole(
        "sensor_delay",
        "sensors/delay",
        0,
        MOST_READINGS,
        "ticks by which the sensors report late, in addition to the original's one tick",
    ),
    _switch(
        "closed_room", "repairs/closed_room", "204 and 206: 1 for blocks that stay in the room"
    ),
    _switch("wind_on_pole", "repairs/wind_on_pole", "206: 1 for wind that also pushes the pole"),
    _number(
        "pole_drag",
        "wind/pole_drag",
        "",
        0.0,
        10.0,
        "drag coefficient of the pole, where the wind pushes it; 1.2 is that of a cylinder",
    ),
    _number("wind_speed", "wind/speed", "m/s", 0.0, 100.0, "greatest speed of the wind"),
    _number(
        "pull_centroid", "blocks/pull_centroid", "N", -200.0, 200.0, "towards their own centroid"
    ),
    _number(
        "pull_centroid_random",
        "blocks/pull_centroid_random",
        "N",
        -200.0,
        200.0,
        "the same, times a number in [0, 1) drawn each tick",
    ),
    _number("pull_cart", "blocks/pull_cart", "N", -200.0, 200.0, "towards where the cart was"),
    _number("pull_origin", "blocks/pull_origin", "N", -200.0, 200.0, "towards the world's origin"),
    _number("aim_share", "blocks/aim_share", "", 0.0, 1.0, "share that starts towards the cart"),
    _number("aim_speed_min", "blocks/aim_speed_min", "m/s", 0.0, 50.0, "their least speed"),
    _number("aim_speed_max", "blocks/aim_speed_max", "m/s", 0.0, 50.0, "their greatest speed"),
    _number(
        "scatter_speed",
        "blocks/scatter_speed",
        "m/s",
        0.0,
        50.0,
        "if above 0, others start with up to this along each axis",
    ),
    _number(
        "gather_speed_max",
        "blocks/gather_speed_max",
        "m/s",
        0.0,
        50.0,
        "if above 0, all start towards one point at up to this",
    ),
    _number(
        "line_near", "blocks/line_near", "m", 0.0, 5.0, "lines pass at least this far from the cart"
    ),
    _number(
        "line_far",
        "blocks/line_far",
        "m",
        0.0,
        5.0,
        "if above 0, blocks slide on lines that pass at most this far from the cart's start",
    ),
    _number(
        "friction_block",
        "blocks/friction",
        "",
        0.0,
        2.0,
        "of blocks on each other, and times that of cart or pole; blocks do not spin",
    ),
    _number("friction_cart", "cart/friction", "", 0.0, 2.0, "of the cart, against blocks"),
    _number("friction_pole", "pole/friction", "", 0.0, 2.0, "of the pole, against blocks"),
    _whole("spawn_period", "spawn/period", 0, 200, "if above 0, ticks between two new blocks"),
    _whole("spawn_ahead", "spawn/ahead", 0, 1, "1: they appear where the cart heads, 0: anywhere"),
    _number("spawn_speed_min", "spawn/speed_min", "m/s", 0.0, 50.0, "their least speed per axis"),
    _number("spawn_speed_max", "spawn/speed_max", "m/s", 0.0, 50.0, "their greatest speed"),
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
    PULL: Parameter(
        PULL,
        0,
        choices=(0, 1),
        description="205: 1 for blocks that are pulled to their centroid, regardless of the sign",
    ),
}
"""Parameters of syllabi and `jaxsim.make`, by path."""


_PATHS = {field: path for path, field in FIELDS.items()}
_RANGES = (
    ("blocks/count_min", "blocks/count_max"),
    ("blocks/speed_min", "blocks/speed_max"),
    ("blocks/aim_speed_min", "blocks/aim_speed_max"),
    ("blocks/line_near", "blocks/line_far"),
    ("spawn/speed_min", "spawn/speed_max"),
)
_OFF_AT_ZERO = ("blocks/line_far",)


def fill_values(values: Values) -> dict[str, Any]:
    """Complete values by path: missing ones take the values of their level."""
    table = {path: row.default for path, row in PARAMETERS.items()}
    level = CATALOGUE[values.get("novelty/level", table["novelty/level"])]
    difficulty = values.get("novelty/difficulty", table["novelty/difficulty"])
    overrides = level.overrides[DIFFICULTIES.index(difficulty)]
    return table | {_PATHS[field]: value for field, value in overrides.items()} | dict(values)


def check_values(values: Values) -> None:
    """Check that values do not contradict one another.

    Raises:
      ValueError: a least value above its greatest.
    """
    filled = fill_values(values)
    for low, high in _RANGES:
        off = high in _OFF_AT_ZERO and not filled[high]
        if filled[low] > filled[high] and not off:
            raise ValueError(
                f"parameter {low!r} is {filled[low]}, above {high!r}, which is {filled[high]}"
            )


def params_from_values(values: Values, config: Config, host: bool = False) -> tuple[Params, Config]:
    """Convert values by path to traced parameters and the configuration they need.

    Args:
      values: by path, checked one by one; missing ones take the level's values.
      config: capacity and precision.
      host: whether parameters stay NumPy arrays, for tables of many rows.

    Raises:
      ValueError: values that contradict one another, or more blocks than the capacity.
    """
    check_values(values)
    filled = fill_values(values)
    needed = most_blocks(filled, config.max_steps)
    if needed > config.max_blocks:
        raise ValueError(
            f"an episode may hold {needed} blocks ({_reason(filled)}); max_blocks is "
            f"{config.max_blocks}: leave that option out or raise it to {capacity(needed)}"
        )
    numbers = {field: filled[path] for path, field in FIELDS.items()}
    numbers["novelty_level"] = filled["novelty/level"]
    if filled[PULL]:
        numbers["pull_centroid"] = abs(numbers["pull_centroid"])
    params = Params(**numbers)
    terms = tuple(sorted({*config.terms, *terms_of(params)}))
    # Converted by NumPy: JAX takes thirty times as long for each number.
    numbers_only = jax.tree.map(lambda number: np.asarray(number, config.dtype), params)
    return numbers_only if host else jax.device_put(numbers_only), replace(config, terms=terms)


def most_blocks(filled: Values, max_steps: int) -> int:
    """Most blocks that an episode can hold.

    Args:
      filled: all values by path, see `fill_values`.
      max_steps: steps after which an episode is truncated.
    """
    return needed_slots(filled["blocks/count_max"], filled["spawn/period"], max_steps)


def slots_for(values: Values, max_steps: int) -> int:
    """Capacity of an environment without the option `max_blocks`.

    Args:
      values: by path; missing ones take the level's values.
      max_steps: steps after which an episode is truncated.
    """
    return capacity(most_blocks(fill_values(values), max_steps))


def capacity(needed: int) -> int:
    """The smallest usual capacity for a number of blocks, or that number if it is larger."""
    return next((size for size in CAPACITIES if size >= needed), needed)


def _reason(filled: Values) -> str:
    """Reason for the number of blocks of an episode."""
    at_start = f"parameter 'blocks/count_max' is {filled['blocks/count_max']}"
    period = filled["spawn/period"]
    return at_start + (f", and one appears every {period} ticks" if period else "")


def terms_of(params: Params) -> set[str]:
    """Optional parts of the physics that concrete parameters need, see `Config.terms`."""
    return {term for term, needed in needed_terms(params).items() if needed}


def needed_terms(params: Params) -> dict[str, np.ndarray]:
    """Whether concrete parameters need each optional part of the physics.

    Args:
      params: leaves () or (V,).

    Returns:
      () or (V,) bool by the name of the term.
    """
    p = params
    return {
        "actions": (p.action_scale_x != 1) | (p.action_scale_y != 1) | (p.action_turn != 0),
        "attraction": _any(p.pull_centroid, p.pull_centroid_random, p.pull_cart, p.pull_origin),
        "bounce": _any(p.bounce_spread),
        "closed_room": _any(p.closed_room),
        "late_pushes": _any(p.action_delay),
        "late_readings": _any(p.sensor_delay),
        "lines": _any(p.line_far, p.friction_block),
        "noise": _any(*noise.sizes(p)),
        "one_start": p.novelty_level == SAME_START,
        "pole_wind": _any(p.wind_on_pole) & _any(p.wind_speed),
        "spawn": _any(p.spawn_period),
        "wind": _any(p.wind_speed),
    }


def _any(*numbers: Leaf) -> np.ndarray:
    """Whether any of some numbers is not zero."""
    return reduce(np.logical_or, (np.asarray(number) != 0 for number in numbers))
