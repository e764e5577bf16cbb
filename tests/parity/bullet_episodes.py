"""Episodes played live in PyBullet, in the form of the recordings but in full precision."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import jax
import numpy as np

import jaxsim
from benchmarks import parity
from jaxsim.worlds import cartpole3d
from jaxsim.worlds.cartpole3d import Observation, State
from jaxsim.worlds.cartpole3d.generate.wsu import wsu_shares
from jaxsim.worlds.cartpole3d.types import Vector
from tests.oracles.recordings import Recording
from tests.parity.bullet_scene import Scene
from tests.parity.bullet_spawns import Spawns

MAX_STEPS = 200
DIRECTIONS = np.array([(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)])  # of each action

Reported = dict[str, np.ndarray]
Policy = Callable[[Reported, int, int], int]
"""Action from what was reported, the seed and the number of steps taken."""

_pd = jax.jit(parity.policy)


def pd(level: int, difficulty: str) -> Policy:
    """The proportional-derivative policy of the recordings."""
    gains = parity.gains_of(level, difficulty)
    return lambda reported, seed, step: int(_pd(_observation(reported), gains))


def at_random(reported: Reported, seed: int, step: int) -> int:
    """One of the five actions, uniformly."""
    return int(np.random.default_rng([seed, step]).integers(len(DIRECTIONS)))


def _observation(reported: Reported) -> Observation:
    return Observation(
        Vector(*reported["cart_position"]),
        Vector(*reported["cart_velocity"]),
        tuple(reported["pole_quaternion"]),
        Vector(*reported["pole_velocity"]),
        tuple(Vector(*row) for row in reported["block_position"]),
        tuple(Vector(*row) for row in reported["block_velocity"]),
        tuple(reported["block_alive"]),
    )


def play(
    level: int,
    difficulty: str,
    seeds: Iterable[int],
    folder: Path,
    policy: Policy | None = None,
    changes: Mapping[str, float] | None = None,
) -> parity.Case:
    """Play the original's episodes of some seeds; needs 64-bit types.

    Args:
      level: of the catalogue.
      difficulty: "easy", "medium" or "hard".
      seeds: of the original generator.
      folder: for the scene's files.
      policy: what acts; `pd` of this level if None.
      changes: parameters by path that differ from the level's.
    """
    changes = changes or {}
    values = {"novelty/level": level, "novelty/difficulty": difficulty, **changes}
    params = jaxsim.make("CartPole3D-v0", values, dtype="float64")[1]
    policy = policy or pd(level, difficulty)
    slots = parity.most_slots(level, difficulty)
    rows = []
    for index, seed in enumerate(map(int, seeds)):
        start = cartpole3d.wsu_start(seed, level, difficulty)
        spawns = Spawns(params, seed, difficulty, np.array([start.pose.x, start.pose.y]))
        with closing(Scene(params, start, folder, slots)) as scene:
            episode = _episode(scene, start, spawns, seed, policy)
            rows += [row | {"episode": index} for row in episode]
    columns = jax.tree.map(lambda *leaves: np.stack(leaves), *rows)
    lengths = np.bincount(columns["episode"]) - 1
    recording = Recording(f"L{level}_{difficulty}", np.array(list(seeds)), lengths, **columns)
    return parity.Case(level, difficulty, recording, changes)


def _episode(
    scene: Scene, start: State, spawns: Spawns, seed: int, policy: Policy
) -> Iterator[dict[str, Any]]:
    """Rows as in `Recording`: the reset, then one a step until the episode is done."""
    params, shares = scene.params, wsu_shares(seed, MAX_STEPS + 1)
    action, force = -1, np.array([start.push.x, start.push.y])
    for tick in range(MAX_STEPS + 1):
        spawned = spawns.due(tick, scene.places)
        if spawned is not None:
            scene.add(spawned)
        scene.tick(force, shares[tick])
        spawns.remember(scene.reported["cart_velocity"])
        fallen = _has_fallen(scene.reported["pole_quaternion"], float(params.lean_limit))
        done = tick > 0 and (fallen or tick == MAX_STEPS)
        yield {
            "state": scene.state,
            "reported": scene.reported,
            "tick": tick,
            "action": action,
            "reward": tick / MAX_STEPS,
            "done": done,
            "kind": scene.kind,
            "covered": True,
        }
        if done:
            break
        action = policy(scene.reported, seed, tick)
        force = float(params.force * params.action_sign) * DIRECTIONS[action]


def _has_fallen(q: np.ndarray, limit: float) -> bool:
    """Whether roll or pitch of a quaternion (x, y, z, w) passes the limit."""
    x, y, z, w = q
    roll = np.arctan2(2 * (y * z + w * x), w * w - x * x - y * y + z * z)
    pitch = np.arcsin(-2 * (x * z - w * y))
    return bool(max(abs(roll), abs(pitch)) > limit)
