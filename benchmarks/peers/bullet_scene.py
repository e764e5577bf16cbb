"""The scene of CartPole3D in PyBullet: level 200 and level 208 hard, with a process for each core.

The episodes are those of the original, by seed. A step makes the same calls of PyBullet as the
original: the forces, one tick, and the state of cart, pole and blocks; then the rule of the `pd`
agent decides. Only steps are timed, not building the scene of an episode, which favours PyBullet.

    python -m benchmarks.peers.bullet_scene 2
"""

import math
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import cycle
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from evaluation.bench.program import missing, serve
from evaluation.bench.rate import Rate
from evaluation.bench.rule import pd
from evaluation.json_types import JsonObject
from jaxsim.pytrees import Params, State

CELLS = {"200": (200, "easy"), "208_hard": (208, "hard")}
EPISODES = 64  # of the original, played in a cycle
MAX_STEPS = 200
DIRECTIONS = ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1))  # of each action

Triple = Sequence[float]


@dataclass(frozen=True)
class Start:
    """The random numbers of one episode of the original, as plain numbers.

    Attributes:
      cart: (2,) m, position.
      push: (2,) N, force on the cart in the hidden first tick.
      pole: quaternion and angular velocity of the pole in the cart's frame.
      blocks: position in m and velocity in m/s of each block.
      later: the same for blocks that appear later, one every `period` ticks.
      period: ticks; 0 if no block appears later.
    """

    cart: Sequence[float]
    push: Sequence[float]
    pole: tuple[Triple, Triple]
    blocks: list[tuple[Triple, Triple]]
    later: list[tuple[Triple, Triple]]
    period: int


class BulletEpisode:
    """One episode of PyBullet.

    Args:
      params: physics, as plain numbers.
      start: its random numbers.
      folder: where the description of the scene is written.
    """

    def __init__(self, params: Params, start: Start, folder: Path) -> None:
        from tests.oracles import bullet_world

        self.world, self.params, self.start = bullet_world, params, start
        self.client = client = bullet_world.connect(params)
        self.cartpole = bullet_world.add_cartpole(client, params, start.cart, folder)
        client.resetJointStateMultiDof(self.cartpole, bullet_world.POLE, *start.pole)
        bullet_world.add_walls(client, params, params.restitution_wall)
        # Looked up once: the client makes a new function for each attribute access.
        self.push, self.advance = client.applyExternalForce, client.stepSimulation
        self.link, self.body = client.getLinkState, client.getBasePositionAndOrientation
        self.speed = client.getBaseVelocity
        self.blocks = [self._add_block(*block) for block in start.blocks]
        self.places = [p for p, _ in start.blocks]
        self.place: Triple = (*start.cart, 0.0)
        self.lift = (0.0, 0.0, params.block_buoyancy * params.block_mass * params.gravity)

    def close(self) -> None:
        """End the simulation."""
        self.client.disconnect()

    def play(self) -> int:
        """Play to the end; return the number of steps, not counting the hidden tick."""
        force: Triple = self.start.push
        for tick in range(MAX_STEPS + 1):
            quaternion, rate = self._tick(tick, force)
            if tick and has_fallen(quaternion, self.params.lean_limit):
                return tick
            x, y = DIRECTIONS[pd(quaternion, rate)]
            force = (self.params.force * x, self.params.force * y)
        return MAX_STEPS

    def _tick(self, tick: int, force: Triple) -> tuple[Triple, Triple]:
        """Advance by one tick; return the pole's orientation and angular velocity for the agent."""
        world, frame = self.world, self.world.WORLD_FRAME
        if self.start.period and (tick + 1) % self.start.period == 0:
            p, v = self.start.later[(tick + 1) // self.start.period - 1]
            self.blocks.append(self._add_block(p, v))
            self.places.append(p)
        self.push(self.cartpole, world.CART, (*force, 0.0), self.place, frame)
        for block, place in zip(self.blocks, self.places, strict=True):
            self.push(block, world.BASE, self.lift, place, frame)
        self.advance()
        cart = self.link(self.cartpole, world.CART, 1)
        pole = self.link(self.cartpole, world.POLE, 1)
        self.place = cart[0]
        self.places = [self.body(block)[0] for block in self.blocks]
        self.speeds = [self.speed(block)[0] for block in self.blocks]
        return pole[1], pole[7]

    def _add_block(self, position: Triple, velocity: Triple) -> int:
        bounce = self.params.restitution_block
        return self.world.add_sphere(self.client, self.params, position, velocity, bounce)


def has_fallen(quaternion: Triple, limit: float) -> bool:
    """Whether roll or pitch exceeds the limit."""
    x, y, z, w = quaternion
    roll = math.atan2(2 * (y * z + w * x), w * w - x * x - y * y + z * z)
    pitch = math.asin(max(-1.0, min(1.0, 2 * (w * y - x * z))))
    return abs(roll) > limit or abs(pitch) > limit


def play(params: Params, starts: Sequence[Start], connection: Connection) -> None:
    """Play episodes in a separate process: receive seconds and send a rate, until disconnected."""
    silence()
    episodes = cycle(starts)
    with tempfile.TemporaryDirectory() as folder:
        try:
            while True:
                connection.send(_play_for(connection.recv(), params, episodes, Path(folder)))
        except EOFError:
            return


def silence() -> None:
    """Discard what the engine prints on standard output for every scene, also from C code."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)


def _play_for(seconds: float, params: Params, starts: State, folder: Path) -> Rate:
    """Play whole episodes until their steps have taken so many seconds."""
    steps, wall, cpu = 0, 0.0, 0.0
    while wall < seconds:
        with closing(BulletEpisode(params, next(starts), folder)) as episode:
            wall, cpu = wall - time.perf_counter(), cpu - time.process_time()
            steps += episode.play()
            wall, cpu = wall + time.perf_counter(), cpu + time.process_time()
    return Rate(steps, wall, cpu)


@dataclass
class BulletPeer:
    """PyBullet on as many processes as there are cores."""

    processes: int
    crews: dict[str, list[Connection]] = field(default_factory=dict)

    def prepare(self, workload: str) -> JsonObject:
        """Start the processes of a workload."""
        try:
            import pybullet
        except ModuleNotFoundError as error:
            raise missing("pybullet", "parity") from error

        count = max(EPISODES, self.processes)  # one for each process at least
        params, starts = draw_episodes(*CELLS[workload], range(count))
        self.crews[workload] = [
            _start(params, starts[number :: self.processes]) for number in range(self.processes)
        ]
        return {"api_version": pybullet.getAPIVersion(), "mean_blocks": mean_blocks(starts)}

    def measure(self, workload: str, seconds: float) -> Rate:
        """Let all processes play at once."""
        crew = self.crews[workload]
        for process in crew:
            process.send(seconds)
        return Rate.together([process.recv() for process in crew])


def _start(params: Params, starts: Sequence[Start]) -> Connection:
    """Start a process, which ends with this one."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    context.Process(target=play, args=(params, starts, there), daemon=True).start()
    there.close()
    return here


def mean_blocks(starts: Sequence[Start]) -> float:
    """Mean number of blocks at the start of an episode."""
    return sum(len(start.blocks) for start in starts) / len(starts)


def draw_episodes(level: int, difficulty: str, seeds: Iterable[int]) -> tuple[Any, list[Start]]:
    """Physics of a level as plain numbers, and the starts of the original's episodes."""
    # Imported here, because the processes that play import this module as well.
    import jax

    import jaxsim

    _, params = jaxsim.make("CartPole3D-v0", level=level, difficulty=difficulty)
    return jax.tree.map(float, params), [
        _draw_start(seed, level, difficulty, int(params.spawn_period)) for seed in map(int, seeds)
    ]


def _draw_start(seed: int, level: int, difficulty: str, period: int) -> Start:
    from jaxsim.worlds.cartpole3d import generate, state_to_arrays, wsu_start

    start = wsu_start(seed, level, difficulty, dtype="float32")
    arrays = state_to_arrays(start)
    alive = arrays["block_alive"].astype(bool)
    later: Any = ([], [])
    if period:
        later = generate.wsu_spawns(seed, difficulty, (MAX_STEPS + 1) // period)
    return Start(
        tuple(map(float, arrays["cart_pos"])),
        (float(start.push.x), float(start.push.y)),
        (tuple(map(float, arrays["pole_jq"])), tuple(map(float, arrays["pole_jw"]))),
        _pairs(arrays["block_pos"][alive], arrays["block_vel"][alive]),
        _pairs(*later),
        period,
    )


def _pairs(positions: Any, velocities: Any) -> list[tuple[Triple, Triple]]:
    return [
        (tuple(map(float, p)), tuple(map(float, v)))
        for p, v in zip(positions, velocities, strict=True)
    ]


if __name__ == "__main__":
    serve(BulletPeer(int(sys.argv[1])))
