"""Levels 50 to 53 of CartPole2D against recordings of the original.

A recording holds the true state (position, velocity, angle, angular velocity) in float32. The pole
amplifies what a start is off by up to a million times in 220 ticks, so a whole episode is played
from the state before the hidden tick, whose four numbers follow exactly from the first row.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxsim
from benchmarks.parity_cartpole import ERRORS
from evaluation.json_types import JsonObject
from jaxsim.pytrees import Params, State
from jaxsim.worlds import cartpole2d
from tests.oracles.twin_cartpole2d import Twin

TICKS = 220  # of a free run
POLICIES = ("pd", "random")
CASES = [
    (level, difficulty)
    for level in jaxsim.spec("CartPole2D").parameters["novelty/level"].choices
    for difficulty in jaxsim.spec("CartPole2D").parameters["novelty/difficulty"].choices
]

Zones = tuple[float, ...]


@dataclass(frozen=True)
class RecordedEpisode:
    """One recorded episode of n steps."""

    p1: np.ndarray  # (n + 1, 4) true states, the first after the hidden tick
    action: np.ndarray  # (n,)
    reward: np.ndarray  # (n,)
    done: np.ndarray  # (n,)

    @property
    def before(self) -> np.ndarray:
        """(4,) the state before the hidden tick."""
        return np.array([self.p1[0, 0] - 0.02 * self.p1[0, 1], 1.0, 0.0, 0.4])


def read(path: Path) -> list[RecordedEpisode]:
    """Read one file."""
    data = np.load(path)
    columns = [data[name] for name in ("p1", "action", "reward", "done")]
    cuts = np.cumsum(data["n_rows"])[:-1]
    parts = zip(*(np.split(column, cuts) for column in columns), strict=True)
    return [
        RecordedEpisode(p.astype(float), a[1:].astype(np.int32), r[1:], d[1:])
        for p, a, r, d in parts
    ]


def read_case(folder: Path, level: int, difficulty: str) -> list[RecordedEpisode]:
    """Episodes of a level and difficulty under every policy that the folder has."""
    paths = (folder / f"L{level}_{difficulty}_{policy}.npz" for policy in POLICIES)
    return [episode for path in paths if path.exists() for episode in read(path)]


def fit_zones(episode: RecordedEpisode) -> Zones:
    """Drag of the zones that an episode of level 52 medium visits, which was not recorded.

    Gauss-Newton on longer and longer parts: two or three numbers are fitted to up to 880. The
    physics is the twin's, so that nothing is fitted to this package.
    """
    zones = np.full(5, 0.05)
    for ticks in range(20, TICKS + 20, 20):
        rows, action = episode.p1[: ticks + 1], episode.action[:ticks]
        visited = sorted({int(x) + 2 for x in rows[:-1, 0]})
        nudge = 1e-7 if ticks < 100 else 1e-11
        for _ in range(2):
            errors = Twin(zone_drag=tuple(zones)).play(episode.before, action) - rows
            slopes = []
            for zone in visited:
                other = zones + nudge * (np.arange(5) == zone)
                moved = Twin(zone_drag=tuple(other)).play(episode.before, action) - rows
                slopes.append((moved - errors).ravel() / nudge)
            zones[visited] -= np.linalg.lstsq(np.array(slopes).T, errors.ravel(), rcond=None)[0]
    return tuple(zones)


def zones_of(level: int, difficulty: str, episode: RecordedEpisode) -> Zones:
    """Drag of the five zones in an episode."""
    if level != 52 or difficulty == "hard":
        return (0.0,) * 5
    return (0.125,) * 5 if difficulty == "easy" else fit_zones(episode)


@dataclass(frozen=True)
class FreeRuns:
    """Our free runs beside E recorded episodes; row 0 is after the hidden tick.

    Attributes:
      recorded: the E episodes.
      zones: drag of the five zones in each episode.
      path: (TICKS + 1, E, 4) position (m), velocity, angle (rad) and rate.
      reward: (TICKS + 1, E)
      terminated: (TICKS + 1, E) bool
      truncated: (TICKS + 1, E) bool
    """

    recorded: list[RecordedEpisode]
    zones: list[Zones]
    path: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray

    @property
    def errors(self) -> np.ndarray:
        """(E, 4) largest difference of each number of the state in each episode."""
        pairs = ((e.p1[: TICKS + 1], lane) for lane, e in enumerate(self.recorded))
        return np.array([np.abs(self.path[: len(p), k] - p).max(axis=0) for p, k in pairs])


def free_run(level: int, difficulty: str, recorded: list[RecordedEpisode]) -> FreeRuns:
    """Play the recorded actions from the state before the hidden tick, without corrections.

    In float64, which needs `jax_enable_x64`.
    """
    zones = [zones_of(level, difficulty, episode) for episode in recorded]
    actions = np.zeros((TICKS + 1, len(recorded)), np.int32)
    for lane, episode in enumerate(recorded):
        actions[1 : len(episode.action) + 1, lane] = episode.action[:TICKS]
    _, params = cartpole2d.make({}, level=level, difficulty=difficulty, dtype="float64")
    x = jnp.asarray([episode.before[0] for episode in recorded])
    start = cartpole2d.initial(x, [jnp.asarray(z) for z in np.transpose(zones)], params)
    motion, *rest = jax.tree.map(np.asarray, _play(start, actions, params))
    path = np.stack([motion.x, motion.v, motion.angle, motion.rate], axis=-1)
    return FreeRuns(recorded, zones, path, *rest)


@jax.jit
def _play(start: State, actions: jax.Array, params: Params) -> Any:
    env = cartpole2d.CartPole2D(cartpole2d.Config(dtype="float64"))
    key = jax.random.key(0)  # nothing is drawn in a step

    def step(state: State, action: jax.Array) -> Any:
        _, state, reward, terminated, truncated, _ = env.step(key, state, action, params)
        return state, (state.motion, reward, terminated, truncated)

    return jax.lax.scan(step, start, actions)[1]


def errors_by_level(folder: Path) -> JsonObject:
    """Largest errors of each level and difficulty in free runs.

    Needs `jax_enable_x64`.
    """
    cases = ((*case, read_case(folder, *case)) for case in CASES)
    rows = [
        {
            "level": level,
            "difficulty": difficulty,
            "episodes": len(recorded),
            "errors": dict(zip(ERRORS, _worst(level, difficulty, recorded), strict=True)),
        }
        for level, difficulty, recorded in cases
        if recorded
    ]
    missing = "the folder of recordings has none of levels 50 to 53"
    return {"rows": rows} if rows else {"missing": missing}


def _worst(level: int, difficulty: str, recorded: list[RecordedEpisode]) -> list[float]:
    return [float(error) for error in free_run(level, difficulty, recorded).errors.max(axis=0)]
