"""Feature vectors: the original generator's observations of each tick, as plain JSON values.

Nothing here reads a clock or a socket. Emitting takes an `Observation`; parsing returns one with
NumPy leaves, and the other fields as `Extras`.

Source: the WSU novelty generator's cartpole document. Its later editions send blocks as a list
with ids, its older one as fields block_0, block_1, ...; both forms are supported. Fields have the
order of the document: cart, pole, blocks, time_stamp, image; then walls and hint, in the first
vector of an episode only.
"""

import json
import math
import re
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import resources
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from jaxsim import parameters
from jaxsim.json_types import JsonMapping, JsonObject, JsonValue
from jaxsim.pytrees import Leaf
from jaxsim.worlds.cartpole3d.original import hints
from jaxsim.worlds.cartpole3d.types import Config, Observation, Vector

T = TypeVar("T")

POSITION = ("x_position", "y_position", "z_position")  # m
VELOCITY = ("x_velocity", "y_velocity", "z_velocity")  # m/s, of the pole rad/s
QUATERNION = ("x_quaternion", "y_quaternion", "z_quaternion", "w_quaternion")
CART = POSITION + VELOCITY
POLE = QUATERNION + VELOCITY
BLOCK = ("id", *POSITION, *VELOCITY)

WALLS = tuple((x, y, z) for z in (0, 10) for x, y in ((-5, -5), (5, -5), (5, 5), (-5, 5)))
"""Nominal corners of the room, m; blocks bounce off other faces, see `Params`."""

DIGITS = 6  # decimals of every position, velocity and quaternion
FLAT_CART_HEIGHT = 0.1
"""Height of the cart in the older form, m; in the later one it is 0."""
FIRST_ID = 3  # the original's simulator numbers cart, walls and a marker 0 to 2
UNIT_TOLERANCE = 1e-3  # of a quaternion's length; rounding to six decimals changes it by 1e-6
LARGEST = float(np.finfo(np.float32).max)  # of an observation in float32

BODY = 11  # numbers of cart and pole in a row
PER_BLOCK = 7  # numbers of a block in a row
SCALE = 10.0**DIGITS
FLOAT32 = {np.float32, np.bool_}
SCALARS = {np.float32, np.float64, np.bool_}  # types of an observation's leaves on the host
FLAT = re.compile(r"block_(0|[1-9][0-9]*)")


Hint = Sequence[JsonMapping]
Ids = Sequence[int]


@dataclass(frozen=True)
class Extras:
    """Content of a feature vector beside the observation.

    Attributes:
      time_stamp: s, the generator's clock at the start of the episode plus simulated time.
      image: encoded picture, or None.
      block_ids: one for each block, in spawn order; None in the flat form.
      walls: (8, 3) m, corners of the room; None except in the first vector of an episode.
      hint: see `hints.hint`; None except in the first vector of an episode.
    """

    time_stamp: float
    image: str | None = None
    block_ids: tuple[int, ...] | None = None
    walls: tuple[tuple[float, ...], ...] | None = None
    hint: tuple[JsonObject, ...] | None = None

    @property
    def first(self) -> bool:
        """Whether the vector is the first of its episode."""
        return self.walls is not None

    @property
    def flat_blocks(self) -> bool:
        """Whether the vector has the older form, with fields block_0, block_1, ..."""
        return self.block_ids is None


# Emit -------------------------------------------------------------------------------------------


def feature_vector(
    observation: Observation,
    *,
    first: bool,
    hint: Hint | None = None,
    time_stamp: float,
    block_ids: Ids | None = None,
    image: str | None = None,
    flat_blocks: bool = False,
) -> JsonObject:
    """Encode an observation as the original generator does.

    Args:
      observation: leaves of shape (); m, m/s and rad/s.
      first: whether it is the first of its episode, which adds walls and hint.
      hint: of the episode, from `hints.hint`; sent in the first vector only. None sends the hint of
        hint level -1, or nothing in the flat form, which is older than hints.
      time_stamp: s, sent unchanged.
      block_ids: one for each block, in spawn order; None counts up from 3. The flat form sends
        none.
      image: encoded picture; None sends null.
      flat_blocks: send the older form, with fields block_0, block_1, ... instead of a list.

    Returns:
      Dicts, lists, strings and numbers in the generator's order. Positions, velocities and
      quaternions are rounded to six decimals as by Python's `round`. The cart's z fields are 0; in
      the flat form its height is 0.1 m, as in that document.

    Raises:
      ValueError: leaves that have a batch axis, a number that is not finite, ids that do not fit
        the blocks, or a malformed hint.
    """
    lane = _Lane(first, hint, time_stamp, block_ids, image, flat_blocks)
    row = _row(observation)
    if row is not None:
        return _emit(row, lane, "")
    table = _table(observation)
    if table.ndim != 1:
        raise ValueError(
            f"the observation has batch shape {table.shape[:-1]}; feature_vector takes one lane, "
            "feature_vectors one leading axis"
        )
    return _emit(_rounded(table), lane, "")


def feature_vectors(
    observation: Observation,
    *,
    first: npt.ArrayLike,
    hint: Sequence[Hint | None] | None = None,
    time_stamp: npt.ArrayLike,
    block_ids: Sequence[Ids | None] | None = None,
    image: Sequence[str | None] | None = None,
    flat_blocks: bool = False,
) -> list[JsonObject]:
    """Encode a batch of observations, as `feature_vector` does, in one transfer.

    Args:
      observation: leaves of shape (B,).
      first: () or (B,) bool.
      hint: B hints, or None for all.
      time_stamp: () or (B,) s.
      block_ids: B sequences of ids, or None for all.
      image: B pictures, or None for all.
      flat_blocks: as in `feature_vector`, for all.

    Raises:
      ValueError: as `feature_vector`, with the lane; or an argument whose length is not B.
    """
    table = _table(observation)
    if table.ndim != 2:
        raise ValueError(
            f"the observation has batch shape {table.shape[:-1]}; it must be one leading axis"
        )
    count = len(table)
    lanes = zip(
        _spread("first", first, count),
        _listed("hint", hint, count),
        _spread("time_stamp", time_stamp, count),
        _listed("block_ids", block_ids, count),
        _listed("image", image, count),
        strict=True,
    )
    return [
        _emit(row, _Lane(*lane, flat_blocks), f"[{i}]")
        for i, (row, lane) in enumerate(zip(_rounded(table), lanes, strict=True))
    ]


@dataclass(frozen=True)
class _Lane:
    """The arguments of `feature_vector` beside the observation."""

    first: bool
    hint: Hint | None
    time_stamp: float
    block_ids: Ids | None
    image: str | None
    flat_blocks: bool


def _body(o: Observation) -> list[Leaf]:
    """The leaves of cart and pole, in the order of a row."""
    return [*o.cart_position[:2], *o.cart_velocity[:2], *o.pole_quaternion, *o.pole_velocity]


def _row(o: Observation) -> list[float] | None:
    """The rounded row of `_table` for NumPy scalars; None for other leaves."""
    leaves = _body(o)
    for alive, p, v in zip(o.block_alive, o.block_position, o.block_velocity, strict=True):
        leaves += (alive, *p, *v)
    if not SCALARS.issuperset(map(type, leaves)):
        return None
    narrow = FLOAT32.issuperset(map(type, leaves))
    row: list[float] = _rounded(np.array(leaves, np.float32 if narrow else np.float64))
    return row


def _rounded(numbers: np.ndarray) -> list[Any]:
    """Round as Python's `round` does, to lists of floats.

    Numbers of float32 are rounded all at once: times a million they are exact in float64, so halves
    go to the even neighbour, and the division gives the float nearest to the decimal number.
    """
    if numbers.dtype == np.float32:
        rounded = np.rint(numbers.astype(np.float64) * SCALE) / SCALE
    else:
        rounded = np.vectorize(partial(round, ndigits=DIGITS), otypes=[np.float64])(numbers)
    listed: list[Any] = rounded.tolist()
    return listed


def _table(o: Observation) -> np.ndarray:
    """(..., 11 + 7 N) numbers on the host: cart, pole, then per block alive, position, velocity."""
    leaves = _body(o)
    for alive, p, v in zip(o.block_alive, o.block_position, o.block_velocity, strict=True):
        each: list[Leaf] = [alive, *p, *v]
        if np.ndim(alive) > np.ndim(o.cart_position.x):
            # Stacked slots, one after the other.
            each = [leaf[..., i] for i in range(np.shape(alive)[-1]) for leaf in each]
        leaves += each
    arrays = [leaf if isinstance(leaf, jax.Array) else np.asarray(leaf) for leaf in leaves]
    # Outside 64-bit mode a compiled stack would round a float64 to float32.
    narrow = all(jax.dtypes.canonicalize_dtype(a.dtype) == a.dtype for a in arrays)
    if narrow and any(isinstance(a, jax.Array) for a in arrays):
        return np.asarray(_stack(arrays))
    return np.stack(np.broadcast_arrays(*jax.device_get(arrays)), axis=-1)


@jax.jit
def _stack(leaves: list[jax.Array]) -> jax.Array:
    return jnp.stack(jnp.broadcast_arrays(*leaves), axis=-1)


def _spread(name: str, value: npt.ArrayLike, count: int) -> list[Any]:
    values = np.asarray(value)
    if values.shape not in ((), (count,)):
        raise ValueError(f"{name} has shape {values.shape}; it must be () or ({count},)")
    return list(np.broadcast_to(values, (count,)).tolist())


def _listed(name: str, values: Sequence[T | None] | None, count: int) -> Sequence[T | None]:
    if values is None:
        return [None] * count
    if len(values) != count:
        raise ValueError(f"{name} has {len(values)} entries; it must be None or have {count}")
    return values


def _emit(row: list[float], lane: _Lane, place: str) -> JsonObject:
    """One vector from one row of `_table`, with the checks of parsing."""
    x, y, vx, vy, *pole = row[:BODY]
    height = FLAT_CART_HEIGHT if lane.flat_blocks else 0.0
    vector: JsonObject = {
        "cart": _named(CART, [x, y, height, vx, vy, 0.0], _join(place, "cart")),
        "pole": _named(POLE, pole, _join(place, "pole")),
        **_emit_blocks(row, lane, place),
    }
    vector["time_stamp"] = _number(lane.time_stamp, _join(place, "time_stamp"))
    vector["image"] = _image(lane.image, _join(place, "image"))
    if lane.first:
        vector["walls"] = [list(corner) for corner in WALLS]
    hint = lane.hint
    if hint is None and not lane.flat_blocks:
        hint = [dict.fromkeys(hints.FIELDS)]
    if lane.first and hint is not None:
        vector["hint"] = list(_hint(hint, _join(place, "hint")))
    return vector


def _emit_blocks(row: list[float], lane: _Lane, place: str) -> JsonObject:
    slots = [row[i + 1 : i + PER_BLOCK] for i in range(BODY, len(row), PER_BLOCK) if row[i]]
    if lane.flat_blocks:
        names = [f"block_{i}" for i in range(len(slots))]
        return {n: _named(CART, s, _join(place, n)) for n, s in zip(names, slots, strict=True)}
    path = _join(place, "blocks")
    numbers = lane.block_ids
    ids = range(FIRST_ID, FIRST_ID + len(slots)) if numbers is None else _ids(numbers, path)
    if len(ids) != len(slots):
        raise ValueError(f"{path!r}: {len(ids)} block_ids for {len(slots)} blocks")
    bodies = [_named(CART, slot, f"{path}[{i}]") for i, slot in enumerate(slots)]
    return {"blocks": [{"id": i, **body} for i, body in zip(ids, bodies, strict=True)]}


def _named(names: Sequence[str], values: Sequence[float], path: str) -> dict[str, float]:
    named = dict(zip(names, values, strict=True))
    if not math.isfinite(sum(values)):
        for name, value in named.items():
            _number(value, _join(path, name))
    return named


# Parse ------------------------------------------------------------------------------------------


def parse_feature_vector(
    mapping: JsonMapping, config: Config | None = None
) -> tuple[Observation, Extras]:
    """Read one feature vector, of either form.

    Args:
      mapping: the decoded JSON object; its fields may come in any order.
      config: capacity and precision of the observation.

    Returns:
      The observation, with NumPy leaves of shape (), as many block slots as `config.max_blocks`
      and empty slots last; and the extras. The cart's z fields are ignored, as an observation has
      none: they read 0.

    Raises:
      ValueError: a field that is missing, unknown, of the wrong type or not finite; more blocks
        than slots; an id twice; a quaternion whose length is not 1. The message gives the path of
        the field, such as 'blocks[1].x_velocity', and the allowed values.
    """
    config = config or Config()
    row, extras = _parse(mapping, "", config)
    return _observation(np.array(row), config), extras


def parse_feature_vectors(
    mappings: Sequence[JsonMapping], config: Config | None = None
) -> tuple[Observation, tuple[Extras, ...]]:
    """Read a batch of feature vectors, each as `parse_feature_vector` does.

    Returns:
      The observation, with NumPy leaves of shape (B,), and the extras of each lane.

    Raises:
      ValueError: as `parse_feature_vector`; the path begins with the lane, as in '[3].cart'.
    """
    config = config or Config()
    parsed = [_parse(mapping, f"[{i}]", config) for i, mapping in enumerate(mappings)]
    table = np.array([row for row, _ in parsed]).reshape(len(parsed), _width(config))
    return _observation(table, config), tuple(extras for _, extras in parsed)


def loads_feature_vector(
    text: str | bytes, config: Config | None = None
) -> tuple[Observation, Extras]:
    """Read one feature vector from JSON text; see `parse_feature_vector`.

    Raises:
      ValueError: as `parse_feature_vector`; text that is not JSON, with line and column of the
        error; an object that has a field twice.
    """
    try:
        mapping = json.loads(text, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ValueError(f"{place}: not JSON: {error.msg}") from error
    except RecursionError as error:
        raise ValueError("a feature vector is not nested that deeply") from error
    return parse_feature_vector(mapping, config)


def feature_vector_schema() -> JsonObject:
    """Return the JSON schema (draft 2020-12) of both forms of the feature vector.

    A schema cannot express that ids differ, that a quaternion has unit length or that block_0,
    block_1, ... leave no gap; `parse_feature_vector` checks these too.
    """
    return _shipped("feature_vector.schema.json")


def domain_specification() -> JsonObject:
    """Return the machine-readable domain: actions, sensors and their ranges on every level.

    `python -m tools.domain` generates the file, `cartpole.json`, by playing every level.
    """
    return _shipped("cartpole.json")


def _shipped(name: str) -> JsonObject:
    text = (resources.files("jaxsim.worlds.cartpole3d.original") / name).read_text(encoding="utf-8")
    values: JsonObject = json.loads(text)
    return values


def _width(config: Config) -> int:
    return BODY + PER_BLOCK * config.max_blocks


def _observation(table: np.ndarray, config: Config) -> Observation:
    """Inverse of `_table`: (..., 11 + 7 N) numbers to leaves of shape (...)."""
    columns = np.ascontiguousarray(np.moveaxis(table, -1, 0), dtype=config.dtype)

    # With the ellipsis the leaves of a single lane stay arrays.
    def leaf(i: int) -> Leaf:
        return columns[i, ...]

    def vector(i: int) -> Vector:
        return Vector(leaf(i), leaf(i + 1), leaf(i + 2))

    zero: Leaf = np.zeros_like(leaf(0))
    slots = [(leaf(i), vector(i + 1), vector(i + 4)) for i in range(BODY, len(columns), PER_BLOCK)]
    if config.stacked:
        slots = [jax.tree.map(lambda *leaves: np.stack(leaves, axis=-1), *slots)]
    return Observation(
        cart_position=Vector(leaf(0), leaf(1), zero),
        cart_velocity=Vector(leaf(2), leaf(3), zero),
        pole_quaternion=(leaf(4), leaf(5), leaf(6), leaf(7)),
        pole_velocity=vector(8),
        block_position=tuple(p for _, p, _ in slots),
        block_velocity=tuple(v for _, _, v in slots),
        block_alive=tuple(alive.astype(bool) for alive, _, _ in slots),
    )


def _parse(vector: object, place: str, config: Config) -> tuple[list[float], Extras]:
    """Check one vector; return its row, as in `_table`, and its extras."""
    fields = _top_level(vector, place)
    cart = _numbers(fields["cart"], CART, _join(place, "cart"))
    pole = _numbers(fields["pole"], POLE, _join(place, "pole"))
    length = math.hypot(*pole[:4])
    if abs(length - 1) > UNIT_TOLERANCE:
        path = _join(place, "pole")
        raise ValueError(
            f"the quaternion of {path!r} has length {length:g}; it must be 1 to within "
            f"{UNIT_TOLERANCE:g}"
        )
    blocks, ids = _parse_blocks(fields, place, config.max_blocks)
    x, y, _, vx, vy, _ = cart
    row = [x, y, vx, vy, *pole]
    for block in blocks:
        row += [1.0, *block]
    row += [0.0] * (_width(config) - len(row))
    extras = Extras(
        _number(fields["time_stamp"], _join(place, "time_stamp")),
        _image(fields["image"], _join(place, "image")),
        ids,
        _optional(_walls, fields, "walls", place),
        _optional(_hint, fields, "hint", place),
    )
    return row, extras


def _top_level(vector: object, place: str) -> JsonMapping:
    """Check the names of the outermost fields, in either form."""
    names = _object(vector, place or "the feature vector")
    flat = sum(1 for name in names if FLAT.fullmatch(str(name)))
    if flat and "blocks" in names:
        raise ValueError(
            f"{_join(place, 'blocks')!r} stands beside fields block_0, block_1, ...; "
            "a feature vector has one or the other"
        )
    # Without both it is the flat form of a room without blocks: that form is older than hints.
    empty = "blocks" not in names and "hint" not in names
    blocks = [f"block_{i}" for i in range(flat)] or ([] if empty else ["blocks"])
    walls = ["walls"] if "hint" in names else []  # a hint is in first vectors only
    needed = ["cart", "pole", *blocks, "time_stamp", "image", *walls]
    return _fields(vector, needed, place, optional=("walls", "hint"))


def _parse_blocks(
    fields: JsonMapping, place: str, most: int
) -> tuple[list[list[float]], tuple[int, ...] | None]:
    """Numbers of each block, in spawn order, and their ids, if the form has any."""
    if "blocks" not in fields:
        names = sorted((n for n in fields if FLAT.fullmatch(n)), key=lambda n: int(n[6:]))
        _check_count(len(names), most, _join(place, "block_0 ..."))
        return [_numbers(fields[n], CART, _join(place, n)) for n in names], None
    path = _join(place, "blocks")
    listed = _list(fields["blocks"], path)
    _check_count(len(listed), most, path)
    checked = [_fields(block, BLOCK, f"{path}[{i}]") for i, block in enumerate(listed)]
    ids = _ids([block["id"] for block in checked], path)
    bodies = [
        [_number(block[name], f"{path}[{i}].{name}") for name in CART]
        for i, block in enumerate(checked)
    ]
    return bodies, ids


def _check_count(count: int, most: int, path: str) -> None:
    if count > most:
        raise ValueError(f"{path!r} holds {count} blocks; Config.max_blocks is {most}")


# Checks of both directions ----------------------------------------------------------------------


def _join(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _wrong(path: str, value: object, expected: str) -> ValueError:
    return ValueError(f"{path!r} is {reprlib.repr(value)}; it must be {expected}")


def _object(value: object, path: str) -> JsonMapping:
    if not isinstance(value, Mapping):
        raise _wrong(path, value, "an object with named fields")
    return value


def _list(value: object, path: str) -> Sequence[JsonValue]:
    if not isinstance(value, list | tuple):
        raise _wrong(path, value, "a list")
    return value


def _fields(
    value: object, needed: Sequence[str], path: str, optional: Iterable[str] = ()
) -> JsonMapping:
    """Return `value` if it is an object with all of `needed` and nothing beyond `optional`."""
    fields = _object(value, path)
    allowed = dict.fromkeys([*needed, *optional])
    for name in fields:
        if name not in allowed:
            listed = [_join(path, each) for each in allowed]
            raise ValueError(parameters.unknown("field", _join(path, str(name)), listed))
    for name in needed:
        if name not in fields:
            raise ValueError(
                f"field {_join(path, name)!r} is missing (needed: {', '.join(needed)})"
            )
    return fields


def _numbers(value: object, names: Sequence[str], path: str) -> list[float]:
    fields = _fields(value, names, path)
    return [_number(fields[name], _join(path, name)) for name in names]


def _number(value: object, path: str) -> float:
    # Compared, not converted: a JSON integer may be too large for a float.
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and -LARGEST <= value <= LARGEST:  # type: ignore[operator]
        return float(value)  # type: ignore[arg-type]
    raise _wrong(path, value, "a finite number in the range of float32")


def _ids(values: Sequence[JsonValue], path: str) -> tuple[int, ...]:
    for i, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise _wrong(f"{path}[{i}].id", value, "a whole number from 0")
        if value in values[:i]:
            raise ValueError(f"'{path}[{i}].id' is {value}, as '{path}[{values.index(value)}].id'")
    return tuple(values)


def _image(value: object, path: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise _wrong(path, value, "null or a string, the encoded picture")
    return value


def _optional(
    read: Callable[[object, str], T], fields: JsonMapping, name: str, place: str
) -> T | None:
    return read(fields[name], _join(place, name)) if name in fields else None


def _walls(value: object, path: str) -> tuple[tuple[float, ...], ...]:
    corners = [_list(corner, f"{path}[{i}]") for i, corner in enumerate(_list(value, path))]
    if len(corners) != len(WALLS) or any(len(corner) != 3 for corner in corners):
        raise _wrong(path, value, "8 corners of 3 numbers each")
    return tuple(
        tuple(_number(number, f"{path}[{i}][{k}]") for k, number in enumerate(corner))
        for i, corner in enumerate(corners)
    )


def _hint(value: object, path: str) -> tuple[JsonObject, ...]:
    objects = _list(value, path)
    if not objects:
        raise _wrong(path, value, "a list of one or more objects")
    return tuple(_hint_object(one, f"{path}[{i}]") for i, one in enumerate(objects))


def _hint_object(value: object, path: str) -> JsonObject:
    fields = _fields(value, hints.FIELDS, path)
    for name in hints.FIELDS:
        kind, expected = (int, "a whole number") if name == "level" else (str, "a string")
        word = fields[name]
        if word is not None and (isinstance(word, bool) or not isinstance(word, kind)):
            raise _wrong(_join(path, name), word, f"null or {expected}")
    return {name: fields[name] for name in hints.FIELDS}


def _unique(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    """Build an object; reject duplicate fields, of which `json` would silently keep the last."""
    fields = dict(pairs)
    if len(fields) != len(pairs):
        names = [name for name, _ in pairs]
        duplicate = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"field {duplicate!r} stands twice in one object")
    return fields
