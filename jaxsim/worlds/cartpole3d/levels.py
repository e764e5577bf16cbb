"""The novelty catalogue: the changes of each level, as data."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from jaxsim.json_types import JsonObject
from jaxsim.worlds.cartpole3d.original.hints import HINT_LEVELS, HINT_WORDS, NOTHING, hint
from jaxsim.worlds.cartpole3d.original.quirks import QUIRKS, Quirk
from jaxsim.worlds.cartpole3d.types import Params

DIFFICULTIES = ("easy", "medium", "hard")

Overrides = Mapping[str, float]
ByDifficulty = tuple[Overrides, Overrides, Overrides]


@dataclass(frozen=True)
class Level:
    """One entry of the novelty catalogue.

    Attributes:
      number: as in the original generator; its hundreds digit is the group.
      change: difference from level 200, or below 100 from level 50, in words.
      overrides: fields of the task's `Params` by difficulty, in the order of `DIFFICULTIES`.
      task: name of the level's task.
    """

    number: int
    change: str
    overrides: ByDifficulty
    task: str = "CartPole3D"

    @property
    def varies(self) -> bool:
        """Whether the level depends on the difficulty."""
        return any(other != self.overrides[0] for other in self.overrides)

    @property
    def hints(self) -> dict[int, list[JsonObject]]:
        """Hints of the first feature vector of an episode, by hint level; see `hints.hint`."""
        return {hint_level: hint(self.number, hint_level) for hint_level in HINT_LEVELS}

    @property
    def quirks(self) -> tuple[Quirk, ...]:
        """Behaviour of the original that looks like a mistake, and its repairs."""
        return QUIRKS.get(self.number, ())


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


def _lined(near: float, far: float) -> Overrides:
    return {"line_near": near, "line_far": far, "friction_block": 0.5}


def _supplied(period: int) -> Overrides:
    return {"spawn_period": period, "spawn_ahead": 1}


def _flooded(period: int) -> Overrides:
    return {"spawn_period": period, "spawn_speed_min": 3.0, "spawn_speed_max": 5.0}


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
        ),
        Level(106, "blocks fall", _same(block_buoyancy=0.0)),
        Level(
            107,
            "blocks are pulled to the world's origin",
            _each("pull_origin", 15.0, 25.0, 35.0),
        ),
        Level(
            108,
            "blocks appear at rest where the cart has been heading",
            (_supplied(50), _supplied(15), _supplied(7)),
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
            202,
            "blocks slide on lines that pass near the cart's start",
            (_lined(3.0, 4.0), _lined(2.0, 3.0), _lined(1.5, 2.0)),
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
        ),
        Level(
            205,
            "blocks are pushed away from their centroid",
            _each("pull_centroid", -1.0, -3.0, -5.0),
        ),
        Level(
            206,
            "wind blows across the room",
            _each("wind_speed", 16.0, 18.0, 20.0),
        ),
        Level(
            207,
            "blocks are pulled to where the cart was a tick ago",
            _each("pull_cart", 10.0, 20.0, 30.0),
        ),
        Level(
            208,
            "more and more blocks fly about",
            (_flooded(3), _flooded(2), _flooded(1)),
        ),
    )
}
LEVELS = tuple(CATALOGUE)
NOMINAL = 200
NAMED = tuple(number for number in LEVELS if HINT_WORDS[number] != NOTHING)
"""Levels that hints describe, so that agents can name them."""
EVALUATED = (NOMINAL, *sorted(NAMED, key=lambda number: (-(number // 100), number)))
"""Levels of a full evaluation: the nominal one, then those of phase 3 and those of phase 2."""
SAME_START = 112  # the level whose episodes are all the same


def params_of(level: int, difficulty: str, dtype: DTypeLike) -> Params:
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


def levels() -> tuple[Level, ...]:
    """Return every level of the catalogue."""
    return tuple(CATALOGUE.values())
