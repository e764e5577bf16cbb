"""Errors of one-tick predictions under many hypotheses about the physics.

From each report the state is rebuilt, one tick is simulated with the parameters of a hypothesis,
and the next report is compared with the prediction. A report lacks the yaw of the cart, which is
zero until something hits cart or pole; what depends on it is left out afterwards.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.agents import sight, touch
from jaxsim.agents.hits import state_of
from jaxsim.agents.sight import SLOTS, Sighting
from jaxsim.pytrees import Observation
from jaxsim.worlds.cartpole3d import CartPole3D
from jaxsim.worlds.cartpole3d.terms.delays import MOST_PUSHES, MOST_READINGS
from jaxsim.worlds.cartpole3d.types import Config, Params, Scalar, Vector

TERMS = ("actions", "attraction", "bounce", "pole_wind", "wind")
ENV = CartPole3D(Config(max_blocks=SLOTS, terms=TERMS))
HIDDEN = ("wind_angle", "extra_bounce", "delay")
"""Numbers of an episode, beside `Params`: angle of the wind, rad; what is added to the bounce of
walls and blocks; ticks between an action and its push."""
MOST_LATE = MOST_PUSHES + MOST_READINGS
LANES = 2048  # predictions of a call
CARTPOLE = 10  # numbers of cart and pole: 2 places, 2 speeds, 3 of the tilt, 3 rates
NUMBERS = CARTPOLE + 6 * SLOTS  # then place and speed of each block

Columns = Mapping[str, np.ndarray]
"""Parameters and hidden numbers of hypotheses by field, (H,) each; missing ones are nominal."""


class ObservedEpisode(NamedTuple):
    """An episode as an agent observes it, T actions.

    Attributes:
      observations: leaves (T + 1, ...).
      actions: (T,) int32, codes of `ACTIONS`.
      to_its_end: whether the episode ended with the last observation.
    """

    observations: Observation
    actions: np.ndarray
    to_its_end: bool = True


class Ticks(NamedTuple):
    """Transitions of one or more episodes; leaves (T, ...)."""

    before: Sighting
    after: Sighting
    actions: np.ndarray  # (T, 12) codes that act if pushes are late by 0 to 11 ticks
    counts: np.ndarray  # (T, 34) bool, numbers that a report predicts
    episode: np.ndarray  # (T,) int32
    tick: np.ndarray  # (T,) int32, from 0 in each episode

    def at(self, index: np.ndarray) -> "Ticks":
        """Some of the transitions."""
        return jax.tree.map(lambda leaf: leaf[index], self)


def reports_of(episode: ObservedEpisode) -> Sighting:
    """Reports of an episode; leaves (T + 1, ...)."""
    reports: Sighting = jax.tree.map(np.asarray, _sightings(episode.observations))
    return reports


_sightings = jax.jit(jax.vmap(sight.see))


@jax.jit
@jax.vmap
def _near(report: Sighting) -> jax.Array:
    """Mask of the blocks that may touch cart or pole, (4,); all, for a cart at a wall."""
    pose, _ = sight.moving(report)
    return touch.near(Params(), pose, report.block) | touch.cart_at_wall(pose)


def ticks_of(reports: Sequence[Sighting], actions: Sequence[np.ndarray]) -> Ticks:
    """Transitions of some episodes."""
    pairs = zip(reports, actions, strict=True)
    parts = [_of_episode(*pair, number) for number, pair in enumerate(pairs)]
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)


def _of_episode(report: Sighting, actions: np.ndarray, episode: int) -> Ticks:
    before, after = (jax.tree.map(lambda leaf, s=s: leaf[s], report) for s in (_FIRST, _LAST))
    number = len(actions)
    padded = np.concatenate([np.zeros(MOST_LATE, np.int32), np.asarray(actions, np.int32)])
    late = [padded[MOST_LATE - d : MOST_LATE - d + number] for d in range(MOST_LATE + 1)]
    near = np.asarray(_near(before))
    hit = near.any(axis=1)
    turned = np.asarray(np.cumsum(hit) - hit > 0)  # by a hit before this tick
    alive = np.asarray(before.block.alive & after.block.alive)
    same = np.asarray(before.count == after.count)
    blocks = alive & ~(near & turned[:, None]) & same.reshape(-1, 1)
    counts = [np.repeat(~turned[:, None], CARTPOLE, axis=1), np.repeat(blocks, 6, axis=1)]
    return Ticks(
        before,
        after,
        np.stack(late, axis=1),
        np.concatenate(counts, axis=1),
        np.full(number, episode, np.int32),
        np.arange(number, dtype=np.int32),
    )


_FIRST, _LAST = slice(None, -1), slice(1, None)


def without_pole(ticks: Ticks) -> Ticks:
    """The same transitions, of which only blocks away from cart and pole count."""
    apart = ~np.asarray(_near(ticks.before))
    of_cartpole = np.zeros((len(ticks.tick), CARTPOLE), bool)
    counts = np.concatenate([of_cartpole, np.repeat(apart, 6, axis=1)], axis=1)
    return ticks._replace(counts=ticks.counts & counts)


def errors(columns: Columns, ticks: Ticks, index: np.ndarray) -> np.ndarray:
    """Errors of predictions.

    Args:
      columns: of H hypotheses.
      ticks: transitions.
      index: (H, K) int, the transitions that each hypothesis predicts.

    Returns:
      (H, K, 34) predictions less readings, m, m/s, rad and rad/s; 0 for what does not count.
    """
    size, each = index.shape
    flat = index.reshape(-1)
    parts = []
    for first in range(0, len(flat), LANES):
        lanes = np.minimum(np.arange(first, first + LANES), len(flat) - 1)
        rows = {name: column[lanes // each] for name, column in columns.items()}
        parts.append(_errors(*_full(rows), ticks.at(flat[lanes])))
    off = np.concatenate([np.asarray(part) for part in parts])
    return off[: len(flat)].reshape(size, each, NUMBERS)


def _full(rows: Columns) -> tuple[Params, dict[str, np.ndarray]]:
    """All parameters and all hidden numbers of lanes, from those that are not nominal."""
    fields = vars(Params()) | dict.fromkeys(HIDDEN, 0.0)
    filled: dict[str, Any] = {
        name: np.asarray(rows.get(name, np.full(LANES, value)), np.float32)
        for name, value in fields.items()
    }
    hidden = {name: filled.pop(name) for name in HIDDEN}
    return Params(**filled), hidden


@jax.jit
def _errors(params: Params, hidden: dict[str, jax.Array], ticks: Ticks) -> jax.Array:
    start, target = without_offsets(params, ticks.before), without_offsets(params, ticks.after)
    angle = hidden["wind_angle"]
    state = replace(
        state_of(start),
        extra_bounce=hidden["extra_bounce"],
        wind=Vector(-jnp.sin(angle), jnp.cos(angle), jnp.zeros_like(angle)),
    )
    late = jnp.round(hidden["delay"]).astype(jnp.int32)
    action = jnp.take_along_axis(ticks.actions, late[:, None], axis=1)[:, 0]
    keys = jax.random.split(jax.random.key(0), LANES)
    observation, *_ = ENV.step(keys, state, action, params)
    off = _numbers(jax.vmap(sight.see)(observation)) - _numbers(target)
    return jnp.where(ticks.counts, jnp.nan_to_num(off), 0.0)


def without_offsets(params: Params, report: Sighting) -> Sighting:
    """Readings as they would be without the offsets of the sensors."""
    p, r, block = params, report.reported, report.block
    x, y, z, w = _turned_back(p.offset_angle, (r.qx, r.qy, r.qz, r.qw))

    def less(vector: Vector, offset: Scalar) -> Vector:
        return Vector(*(c - offset for c in vector))

    place, speed = (jnp.asarray(o)[..., None] for o in (p.offset_position, p.offset_velocity))
    return replace(
        report,
        reported=replace(
            r, x=r.x - p.offset_position, y=r.y - p.offset_position, qx=x, qy=y, qz=z, qw=w
        ),
        vx=report.vx - p.offset_velocity,
        vy=report.vy - p.offset_velocity,
        spin=less(report.spin, p.offset_rate),
        block=replace(block, p=less(block.p, place), v=less(block.v, speed)),
    )


def _turned_back(offset: Scalar, q: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    """A quaternion without a turn of the world by the rotation vector (offset, offset, offset)."""
    half = 0.5 * jnp.sqrt(3.0) * offset
    s, c = -jnp.sin(half) / jnp.sqrt(3.0), jnp.cos(half)
    x, y, z, w = q
    return (
        c * x + s * (w + z - y),
        c * y + s * (w + x - z),
        c * z + s * (w + y - x),
        c * w - s * (x + y + z),
    )


def _numbers(report: Sighting) -> jax.Array:
    """All numbers of reports, (..., 34); angles from quaternions, rad."""
    r, block = report.reported, report.block
    twice = jnp.where(jnp.asarray(r.qw) < 0, -2.0, 2.0)
    of_pole = (twice * r.qx, twice * r.qy, twice * r.qz, *report.spin)
    whole = jnp.stack([r.x, r.y, report.vx, report.vy, *of_pole], axis=-1)
    of_blocks = jnp.stack([*block.p, *block.v], axis=-1)
    return jnp.concatenate([whole, of_blocks.reshape(*whole.shape[:-1], -1)], axis=-1)
