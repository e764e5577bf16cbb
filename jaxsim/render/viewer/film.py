"""An episode as the viewer shows it: places at every tick, and actions and predictions."""

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.env import Env
from jaxsim.json_types import JsonObject
from jaxsim.pytrees import Leaf, Params, Tree
from jaxsim.render.scene import Scene, scene
from jaxsim.render.viewer.contacts import CONTACTS, contacts
from jaxsim.worlds import cartpole2d, cartpole3d
from jaxsim.worlds.cartpole3d.types import Vector

MILLIMETRES = 1000
LEAN = 30000
FARTHEST = 32.0
"""m; places farther away are shown there."""
MOST_TICKS = 20_000
DIGITS = 4


class Predictions(NamedTuple):
    """An agent's novelty predictions after each observation, (T,) each."""

    level: Sequence[int]
    probability: Sequence[float]
    threshold: Sequence[float]


@dataclass(frozen=True)
class Film:
    """One episode of T ticks.

    Attributes:
      title: for people.
      facts: a line below it.
      note: a warning; "" for none.
      places: scene of every tick, leaves (T + 1,), blocks (T + 1, N), in NumPy.
      dt: simulated time of a tick, s.
      names: of the actions.
      action: (T,) codes.
      reward: (T,) sum of the rewards so far.
      predictions: of novelty; None for an agent that makes none.
      novel: whether the world is a novel one.
      truth: the same in words.
      walls: whether there are walls to touch; without them, `places.half_width` is the track's.
    """

    title: str
    places: Scene
    action: Sequence[int]
    reward: Sequence[float]
    names: Sequence[str]
    dt: float = 0.02
    facts: str = ""
    note: str = ""
    predictions: Predictions | None = None
    novel: bool = False
    truth: str = "not told"
    walls: bool = True

    @property
    def ticks(self) -> int:
        """Number of ticks, T."""
        return len(self.action)

    @property
    def touches(self) -> np.ndarray:
        """(T + 1,) contacts, bits of `CONTACTS`."""
        s = self.places
        return contacts(
            _rows(s.cart),
            _rows(s.foot),
            _rows(s.tip),
            np.stack(s.blocks, -1),
            np.asarray(s.alive),
            radius=_one(s.block_radius),
            half_width=_one(s.half_width) if self.walls else np.inf,
            floor=_one(s.floor),
            ceiling=_one(s.ceiling),
        )

    def to_json(self) -> JsonObject:
        """Return plain JSON values, as the page reads them."""
        s = self.places
        values: JsonObject = {
            "title": self.title,
            "facts": self.facts,
            "note": self.note,
            "ticks": self.ticks,
            "slots": int(s.alive.shape[-1]),
            "dt": round(float(self.dt), 6),
            "pole": _one(s.pole_length),
            "radius": _one(s.block_radius),
            "half": _one(s.half_width),
            "floor": _one(s.floor),
            "ceiling": _one(s.ceiling),
            "names": list(self.names),
            "action": [int(a) for a in self.action],
            "reward": _rounded(self.reward),
            "contacts": list(CONTACTS),
            "contact": self.touches.tolist(),
            "novel": bool(self.novel),
            "truth": self.truth,
            "data": _packed(s),
        }
        if self.predictions is not None:
            values["level"] = [int(level) for level in self.predictions.level]
            values["probability"] = _rounded(self.predictions.probability)
            values["threshold"] = _rounded(self.predictions.threshold)
        return values


def film(env: Env, params: Params, states: Tree, **fields: Any) -> Film:
    """Make a film of the states of an episode.

    Args:
      env: environment; see `jaxsim.env`.
      params: its parameters, leaves ().
      states: of the episode, leaves (T + 1,): from the first observation on.
      **fields: of `Film`; `names`, `dt` and `walls` are those of the environment unless given.

    Raises:
      ValueError: numbers of ticks differ, or there are too many.
    """
    places = poses(env, params, states)
    names = getattr(env, "actions", None) or [str(i) for i in range(env.num_actions)]
    defaults = {
        "places": places,
        "names": names,
        "dt": float(env.dt(params)),
        "walls": hasattr(params, "room_half_width"),
    }
    result = Film(**{**defaults, **fields})
    rows = len(np.asarray(places.cart.x))
    if not result.ticks + 1 == rows == len(result.reward) + 1:
        raise ValueError(
            f"a film of {rows} states needs {rows - 1} actions and rewards, and there are "
            f"{result.ticks} and {len(result.reward)}"
        )
    if result.ticks > MOST_TICKS:
        raise ValueError(f"a film has {result.ticks} ticks; it can have {MOST_TICKS:,} at most")
    return result


def poses(env: Any, params: Params, states: Tree) -> Scene:
    """Return the true places, not those that sensors report, of the bodies that exist.

    Args:
      env: environment.
      params: its parameters, leaves ().
      states: leaves (T,).
    """
    while hasattr(states, "inner"):  # the state of a wrapper
        env, states = env.env, states.inner
    if isinstance(states, cartpole3d.State):
        blocks = tuple(replace(block, rail=None) for block in states.blocks)
        states = replace(states, reported=states.pose, blocks=blocks, sensors=None, late=None)
    if isinstance(states, cartpole2d.State):
        states = replace(states, reported=states.motion)
    places = scene(env, params, states)
    if isinstance(states, cartpole2d.State):
        # Its sensors report blocks that do not exist.
        places = replace(places, alive=jnp.zeros_like(places.alive))
    rows = len(np.ravel(np.asarray(places.lean.z)))
    cart = Vector(*(jnp.broadcast_to(jnp.asarray(part), rows) for part in places.cart))
    return jax.tree.map(_plain, replace(places, cart=cart))


def _plain(leaf: Leaf) -> np.ndarray:
    value = np.asarray(leaf)
    return value if value.dtype == bool else value.astype(np.float64)


def _rows(points: Vector) -> np.ndarray:
    return np.stack(np.broadcast_arrays(*points), -1)


def _one(value: Leaf) -> float:
    """A size that is the same at every tick, as a number."""
    return round(float(np.ravel(np.asarray(value))[0]), 6)


def _rounded(values: Sequence[float]) -> list[float]:
    return [round(float(value), DIGITS) for value in values]


def _packed(places: Scene) -> str:
    """Differences from tick to tick of all columns, int16, compressed, as text.

    Columns: cart x, y (mm); lean x, y, z; for each block alive, x, y, z (mm).
    """
    far = FARTHEST * MILLIMETRES
    columns = [np.asarray(part) * MILLIMETRES for part in places.cart[:2]]
    columns += [np.asarray(part) * LEAN for part in places.lean]
    for slot in range(places.alive.shape[-1]):
        columns.append(np.asarray(places.alive)[:, slot].astype(float))
        columns += [np.asarray(part)[:, slot] * MILLIMETRES for part in places.blocks]
    finite = np.nan_to_num(np.stack(columns), posinf=far, neginf=-far)
    whole = np.clip(np.round(finite), -far, far).astype("<i2")
    steps = np.diff(whole, axis=1, prepend=np.zeros((len(whole), 1), "<i2"))
    return base64.b64encode(zlib.compress(steps.astype("<i2").tobytes(), 9)).decode()
