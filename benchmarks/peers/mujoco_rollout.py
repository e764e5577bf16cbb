"""The scene of CartPole3D level 200 in MuJoCo: `mujoco.rollout` with a thread for each core.

The state of all bodies is stored at every step. `rollout` gets its controls in advance, so there is
no policy in the loop: pushes are random, and an episode continues to its last step even if the
pole falls, which favours MuJoCo. Contacts are frictionless; blocks meet walls and other blocks as
springs without damping, MuJoCo's closest equivalent of a restitution of 1.

    python -m benchmarks.peers.mujoco_rollout 2
"""

import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evaluation.bench.program import missing, serve, timed
from evaluation.bench.rate import Rate
from evaluation.json_types import JsonObject

BLOCKS = (2, 3, 4)  # numbers of blocks in an episode, equally frequent
EPISODES, STEPS = 256, 200  # in parallel; steps of each
ROOM, FLOOR, CEILING = 4.95, -0.05, 9.95  # m, inner faces
FORCE = 10.0  # N

SCENE = """
<mujoco model="cartpole3d">
  <option timestep="0.02" gravity="0 0 -9.8"/>
  <default>
    <geom condim="1"/>
    <default class="elastic"><geom solref="-2000 0"/></default>
  </default>
  <worldbody>
    <body name="cart">
      <joint name="x" type="slide" axis="1 0 0" damping="0.04"/>
      <joint name="y" type="slide" axis="0 1 0" damping="0.04"/>
      <joint name="yaw" type="hinge" axis="0 0 1" damping="0.007"/>
      <inertial pos="0 0 0" mass="1" diaginertia="0.0879 0.0879 0.1687"/>
      <geom type="cylinder" size="0.5 0.1" pos="0 0 0.2"/>
      <body name="pole" pos="0 0 0.2">
        <joint name="pivot" type="ball" damping="0.0003"/>
        <inertial pos="0 0 1" mass="0.1" diaginertia="0.00847 0.00847 7.26e-5"/>
        <geom type="capsule" size="0.03" fromto="0 0 0.05 0 0 1.05"/>
      </body>
    </body>
{blocks}
    <geom class="elastic" type="plane" size="5 5 1" pos="0 0 {floor}"/>
    <geom class="elastic" type="plane" size="5 5 1" pos="0 0 {ceiling}" zaxis="0 0 -1"/>
    <geom class="elastic" type="plane" size="5 5 1" pos="{room} 0 5" zaxis="-1 0 0"/>
    <geom class="elastic" type="plane" size="5 5 1" pos="-{room} 0 5" zaxis="1 0 0"/>
    <geom class="elastic" type="plane" size="5 5 1" pos="0 {room} 5" zaxis="0 -1 0"/>
    <geom class="elastic" type="plane" size="5 5 1" pos="0 -{room} 5" zaxis="0 1 0"/>
  </worldbody>
  <contact><exclude body1="cart" body2="pole"/></contact>
  <actuator><motor joint="x"/><motor joint="y"/></actuator>
</mujoco>
"""
BLOCK = """    <body name="block{number}" pos="0 0 5" gravcomp="1">
      <joint type="free" damping="0.04"/>
      <geom class="elastic" type="sphere" size="0.5" mass="1"/>
    </body>"""


def scene(blocks: int) -> str:
    """Description of the scene with so many blocks."""
    bodies = "\n".join(BLOCK.format(number=number) for number in range(blocks))
    return SCENE.format(blocks=bodies, floor=FLOOR, ceiling=CEILING, room=ROOM)


@dataclass
class SceneBatch:
    """Episodes with the same number of blocks.

    Attributes:
      model: the compiled scene.
      starts: (E, S) full initial state of each episode.
      pushes: (E, T, 2) N, forces on the cart.
      states: (E, T, S) buffer for the state at every step.
    """

    model: Any
    starts: np.ndarray
    pushes: np.ndarray
    states: np.ndarray

    @classmethod
    def draw(cls, blocks: int, seed: int) -> "SceneBatch":
        """Draw episodes as level 200 does."""
        import mujoco

        draws = np.random.default_rng(seed)
        model = mujoco.MjModel.from_xml_string(scene(blocks))
        data = mujoco.MjData(model)
        size = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        starts = np.zeros((EPISODES, size))
        for start in starts:
            mujoco.mj_resetData(model, data)
            data.qpos[:2] = draws.uniform(-3, 3, 2)
            data.qpos[3:7] = 1, *draws.uniform(-0.01, 0.01, 3)
            data.qvel[3:5] = draws.uniform(-0.01, 0.01, 2)
            for number in range(blocks):
                p, v = 7 + 7 * number, 6 + 6 * number
                data.qpos[p : p + 3] = _clear_of(draws, data.qpos[:2])
                data.qvel[v : v + 3] = draws.uniform(6, 10, 3) * draws.choice((-1, 1), 3)
            mujoco.mj_getState(model, data, start, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        directions = np.array([(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)])
        pushes = FORCE * directions[draws.integers(len(directions), size=(EPISODES, STEPS))]
        return cls(model, starts, pushes, np.zeros((EPISODES, STEPS, size)))


def _clear_of(draws: np.random.Generator, cart: np.ndarray) -> np.ndarray:
    """Draw the position of a block at a horizontal distance of at least 1 m from the cart."""
    while True:
        place = draws.uniform(-4, 4, 3)
        if np.hypot(*(place[:2] - cart)) >= 1:
            return place + np.array([0, 0, 5])


@dataclass
class MujocoPeer:
    """MuJoCo on as many threads as there are cores."""

    threads: int
    batches: list[SceneBatch] = field(default_factory=list)

    def prepare(self, workload: str) -> JsonObject:
        """Build the scenes and draw the episodes."""
        try:
            import mujoco
            from mujoco.rollout import Rollout
        except ModuleNotFoundError as error:
            raise missing("mujoco", "bench") from error

        self.batches = [SceneBatch.draw(blocks, seed=blocks) for blocks in BLOCKS]
        # The calling thread does no work itself.
        self.pool = Rollout(nthread=self.threads)
        self.data = [
            [mujoco.MjData(batch.model) for _ in range(self.threads)] for batch in self.batches
        ]
        return {"batch": EPISODES, "steps": STEPS, "mean_blocks": float(np.mean(BLOCKS))}

    def measure(self, workload: str, seconds: float) -> Rate:
        """Play all batches repeatedly."""
        return timed(self._play, seconds, self.threads)

    def _play(self) -> int:
        for batch, data in zip(self.batches, self.data, strict=True):
            self.pool.rollout(batch.model, data, batch.starts, batch.pushes, state=batch.states)
        return len(BLOCKS) * EPISODES * STEPS


if __name__ == "__main__":
    serve(MujocoPeer(int(sys.argv[1])))
