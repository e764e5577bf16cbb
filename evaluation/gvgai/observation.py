"""Observations of agents: `SerializableStateObservation`, JSON text with no forward model.

The field names are those of the framework; `FIELDS` says what each one holds over CartPole. Seen
from above, the cart is the avatar and the blocks are movable sprites: positions are metres from the
left and lower corner of the room (x to the right, y forward), so that they agree with
`worldDimension` and with the cells of `observationGrid`. Values without a place in the framework's
plane are in `cartpole`, in the world's frame.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from evaluation.gvgai.rules import SCORE_DISQUALIFIED
from evaluation.json_types import JsonMapping, JsonObject, JsonValue
from jaxsim.pytrees import Tree
from jaxsim.worlds.cartpole3d.types import Observation, Vector

Form = Literal["JSON", "IMAGE", "BOTH"]
FORMS: tuple[Form, ...] = ("JSON", "IMAGE", "BOTH")
"""Forms of observations: fields, a picture, or both."""

ACTIONS = (
    "ACTION_NIL",
    "ACTION_UP",
    "ACTION_LEFT",
    "ACTION_DOWN",
    "ACTION_RIGHT",
    "ACTION_USE",
    "ACTION_ESCAPE",
)
"""Actions of the framework; their indices are their codes in its Python client."""
NIL, UP, LEFT, DOWN, RIGHT, USE, ESCAPE = range(len(ACTIONS))

PUSHES = {UP: 3, LEFT: 2, DOWN: 4, RIGHT: 1}
"""Codes of CartPole3D's pushes (forward, left, backward, right); everything else is 0, nothing."""

WINNERS = {"PLAYER_DISQ": -100, "NO_WINNER": -1, "PLAYER_LOSES": 0, "PLAYER_WINS": 1}
"""Winners by name, with their codes in result lines."""

MOST_CELLS = 20  # of a side of the grid; larger rooms have larger cells

AVATAR, MOVABLE = 0, 6
"""Categories of the framework that occur here."""

_GROUPS = (
    "NPCPositions",
    "immovablePositions",
    "movablePositions",
    "resourcesPositions",
    "portalsPositions",
    "fromAvatarSpritesPositions",
)
BLOCKS = "movablePositions"


@dataclass(frozen=True)
class Field:
    """One field of an observation.

    Attributes:
      name: its key.
      kind: its JSON type.
      form: "always", or the form that it belongs to.
      meaning: its value in CartPole.
    """

    name: str
    kind: str
    form: Literal["always", "JSON", "IMAGE"]
    meaning: str


FIELDS = (
    Field("phase", "string", "always", "INIT, ACT, END or ABORT"),
    Field("isValidation", "boolean", "always", "whether the level is one of validation"),
    Field(
        "gameScore", "number", "always", "sum of the level's rewards so far; -1000 if disqualified"
    ),
    Field("gameTick", "integer", "always", "steps played so far; 0 in INIT and in the first ACT"),
    Field(
        "gameWinner",
        "string",
        "always",
        "PLAYER_WINS when the step limit is reached, PLAYER_LOSES when the pole has fallen, "
        "PLAYER_DISQ when disqualified, else NO_WINNER",
    ),
    Field("isGameOver", "boolean", "always", "whether the level ended by itself"),
    Field(
        "availableActions",
        "strings",
        "always",
        "actions that push the cart; ACTION_NIL (no push) and ACTION_ESCAPE are legal as well",
    ),
    Field(
        "worldDimension", "[w, h]", "JSON", "size of the room or of the track seen from above, m"
    ),
    Field("blockSize", "integer", "JSON", "side of a cell of the grid, m"),
    Field("noOfPlayers", "integer", "JSON", "1"),
    Field("avatarSpeed", "number", "JSON", "speed of the cart, m/s"),
    Field(
        "avatarOrientation", "[x, y]", "JSON", "horizontal part of the pole's unit axis: its lean"
    ),
    Field("avatarPosition", "[x, y]", "JSON", "position of the cart, m from the corner"),
    Field("avatarLastAction", "string", "JSON", "action that was played last"),
    Field("avatarType", "integer", "JSON", "1"),
    Field("avatarHealthPoints", "integer", "JSON", "0"),
    Field("avatarMaxHealthPoints", "integer", "JSON", "0"),
    Field("avatarLimitHealthPoints", "integer", "JSON", "1000"),
    Field("isAvatarAlive", "boolean", "JSON", "whether the pole has not fallen"),
    Field("avatarResources", "object", "JSON", "empty"),
    Field(
        "observationGrid",
        "objects by [x][y][k]",
        "JSON",
        "objects in each cell; those outside of the room are in none",
    ),
    Field("observationGridNum", "integer", "JSON", "cells along x"),
    Field("observationGridMaxRow", "integer", "JSON", "cells along y"),
    Field("observationGridMaxCol", "integer", "JSON", "most objects in one cell"),
    *(
        field
        for name in _GROUPS
        for field in (
            Field(
                name,
                "objects by [type][k]",
                "JSON",
                "the blocks; absent if there is none" if name == BLOCKS else "always absent",
            ),
            Field(f"{name}Num", "integer", "JSON", "types in the list above, 0 if it is absent"),
            Field(f"{name}MaxRow", "integer", "JSON", "most objects of one type"),
        )
    ),
    Field(
        "cartpole",
        "object",
        "JSON",
        "all that the sensors report, in the world's frame: `cart` (position, velocity), `pole` "
        "(quaternion x, y, z, w from pole to world, angularVelocity), `blocks` (position, "
        "velocity)",
    ),
    Field("imageArray", "integers", "IMAGE", "PNG of the room seen from above, as signed bytes"),
)
"""Every field, in the order in which it is written."""

OBJECT_FIELDS = {
    "category": "0 for the cart, 6 for a block",
    "itype": "1 for the cart, 2 for a block",
    "obsID": "0 for the cart, 1 and up for the blocks; the same as long as the object exists",
    "position": "x and y, m from the corner",
    "reference": "position of the cart",
    "sqDist": "squared distance between the two, m^2",
}
"""Fields of an object in the lists and in the grid."""

_NAMES = frozenset(field.name for field in FIELDS)


class SerializableStateObservation(str):
    """JSON text of an observation; its fields can be read as attributes too.

    It is data: nothing in it advances the game. A field of the framework that is absent reads None.
    """

    @cached_property
    def fields(self) -> JsonMapping:
        """The fields by name, parsed from the text at the first access."""
        return dict(json.loads(self))

    def __getattr__(self, name: str) -> Any:
        if name not in _NAMES:
            raise AttributeError(f"an observation has no field {name!r}")
        return self.fields.get(name)


@dataclass(frozen=True)
class View:
    """Data of an observation.

    Attributes:
      phase: INIT, ACT, END or ABORT.
      validation: value of `isValidation`.
      score: sum of rewards.
      tick: value of `gameTick`.
      winner: key of `WINNERS`.
      over: whether the level ended by itself.
      last_action: name of the last action.
      alive: whether the pole has not fallen.
      planar: whether the cart moves along x only.
      half_width: of the room or the track, m.
      observation: of the sensors, NumPy scalars.
    """

    phase: str
    validation: bool
    score: float
    tick: int
    winner: str
    over: bool
    last_action: str
    alive: bool
    planar: bool
    half_width: float
    observation: Observation

    @property
    def available(self) -> tuple[str, ...]:
        """Names of the actions that push the cart."""
        return tuple(ACTIONS[code] for code in available(self.planar))

    @property
    def cell(self) -> int:
        """Side of a cell of the grid, m."""
        return max(1, math.ceil(2 * self.half_width / MOST_CELLS))

    @property
    def cells(self) -> int:
        """Cells along each axis."""
        return math.ceil(2 * self.half_width / self.cell)

    def place(self, position: Vector) -> tuple[float, float]:
        """A position on the plane, m from the corner."""
        return float(position.x) + self.half_width, float(position.y) + self.half_width

    def blocks(self) -> Iterator[tuple[int, Vector, Vector]]:
        """Number of the slot, position and velocity of each block that exists."""
        alive = np.concatenate([np.atleast_1d(flag) for flag in self.observation.block_alive])
        positions = _rows(self.observation.block_position)
        velocities = _rows(self.observation.block_velocity)
        for slot in np.flatnonzero(alive):
            yield int(slot), positions[slot], velocities[slot]


def available(planar: bool) -> tuple[int, ...]:
    """Codes of the actions that push the cart, in the framework's order of such lists."""
    return (LEFT, RIGHT) if planar else (LEFT, RIGHT, UP, DOWN)


def push(action: int, planar: bool) -> int:
    """CartPole3D's code of an action; 0, nothing, for one that is not available."""
    return PUSHES[action] if action in available(planar) else 0


def disqualified(view: View) -> View:
    """The view of a level in which the agent was disqualified."""
    return View(**{**vars(view), "winner": "PLAYER_DISQ", "score": SCORE_DISQUALIFIED})


def serialise(view: View, form: Form, image: Any = None) -> SerializableStateObservation:
    """Write an observation as JSON text in one line, without "#" and "%".

    Args:
      view: data of the observation.
      form: of the observation.
      image: bytes of the picture; needed for "IMAGE" and "BOTH".
    """
    values: JsonObject = {
        "phase": view.phase,
        "isValidation": view.validation,
        "gameScore": float(view.score),
        "gameTick": view.tick,
        "gameWinner": view.winner,
        "isGameOver": view.over,
        "availableActions": list(view.available),
    }
    if form != "IMAGE":
        values |= _details(view)
    if form != "JSON":
        values["imageArray"] = np.frombuffer(image, np.int8).tolist()
    text = json.dumps(values, allow_nan=False, separators=(",", ":"))
    return SerializableStateObservation(text)


def _details(view: View) -> JsonObject:
    """The fields of the form JSON."""
    observation = view.observation
    qx, qy, qz, qw = (float(part) for part in observation.pole_quaternion)
    lean = [2 * (qx * qz + qw * qy), 2 * (qy * qz - qw * qx)]
    cart = view.place(observation.cart_position)
    blocks = list(view.blocks())
    objects = [_object(view, MOVABLE, 2, slot + 1, position) for slot, position, _ in blocks]
    return {
        "worldDimension": [2 * view.half_width] * 2,
        "blockSize": view.cell,
        "noOfPlayers": 1,
        "avatarSpeed": float(np.hypot(observation.cart_velocity.x, observation.cart_velocity.y)),
        "avatarOrientation": lean,
        "avatarPosition": list(cart),
        "avatarLastAction": view.last_action,
        "avatarType": 1,
        "avatarHealthPoints": 0,
        "avatarMaxHealthPoints": 0,
        "avatarLimitHealthPoints": 1000,
        "isAvatarAlive": view.alive,
        "avatarResources": {},
        **_grid(view, [_object(view, AVATAR, 1, 0, observation.cart_position), *objects]),
        **_groups(objects),
        "cartpole": {
            "cart": {
                "position": _numbers(observation.cart_position),
                "velocity": _numbers(observation.cart_velocity),
            },
            "pole": {
                "quaternion": [qx, qy, qz, qw],
                "angularVelocity": _numbers(observation.pole_velocity),
            },
            "blocks": [
                {"position": _numbers(position), "velocity": _numbers(velocity)}
                for _, position, velocity in blocks
            ],
        },
    }


def _object(view: View, category: int, itype: int, number: int, position: Vector) -> JsonObject:
    """One object, as the lists and the grid hold it."""
    x, y = view.place(position)
    cart_x, cart_y = view.place(view.observation.cart_position)
    return {
        "category": category,
        "itype": itype,
        "obsID": number,
        "position": {"x": x, "y": y},
        "reference": {"x": cart_x, "y": cart_y},
        "sqDist": (x - cart_x) ** 2 + (y - cart_y) ** 2,
    }


def _grid(view: View, objects: list[JsonObject]) -> JsonObject:
    """The cells with their objects."""
    side = range(view.cells)
    grid: list[list[list[JsonValue]]] = [[[] for _ in side] for _ in side]
    for each in objects:
        i, j = (math.floor(each["position"][axis] / view.cell) for axis in "xy")
        if i in side and j in side:
            grid[i][j].append(each)
    return {
        "observationGrid": grid,
        "observationGridNum": view.cells,
        "observationGridMaxRow": view.cells,
        "observationGridMaxCol": max(len(cell) for column in grid for cell in column),
    }


def _groups(blocks: list[JsonObject]) -> JsonObject:
    """The lists by category; one that is empty is left out, with zeros for its sizes."""
    values: JsonObject = {}
    for name in _GROUPS:
        members = blocks if name == BLOCKS else []
        if members:
            values[name] = [members]
        values |= {f"{name}Num": int(bool(members)), f"{name}MaxRow": len(members)}
    return values


def _rows(vectors: Tree) -> list[Vector]:
    """The vectors of all slots, one by one or stacked."""
    rows = []
    for vector in vectors:
        parts = np.stack([np.atleast_1d(part) for part in vector], axis=-1)
        rows += [type(vector)(*row) for row in parts]
    return rows


def _numbers(vector: Vector) -> list[float]:
    return [float(part) for part in vector]
