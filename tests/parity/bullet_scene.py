"""The scene of CartPole3D in PyBullet: cart, pole, room and blocks built from `Params`.

The cart slides and yaws on a planar joint of a base that is fixed where the episode starts; the
pole stands on a spherical joint. Inertias come from the colliders, whatever the URDF says.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pybullet
from pybullet_utils.bullet_client import BulletClient

from benchmarks.recordings import BLOCKS, CARTPOLE, KINDS, WALLS, hardness
from jaxsim.worlds.cartpole3d import Params, State, state_to_arrays
from jaxsim.worlds.cartpole3d.types import DT
from tests.parity.bullet_forces import on_blocks, wind_on_cart

CART, POLE, BASE = 0, 1, -1  # links
WALL = 0.1  # m, thickness of walls, floor and ceiling

URDF = """<?xml version="1.0"?>
<robot name="cartpole">
  <link name="ground">
    <inertial><mass value="0"/><inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial>
  </link>
  <joint name="slide" type="planar">
    <parent link="ground"/><child link="cart"/><axis xyz="0 0 1"/>
  </joint>
  <link name="cart">
    <inertial>
      <mass value="{cart_mass!r}"/>
      <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>
    </inertial>
    <collision>
      <origin xyz="0 0 0.2"/>
      <geometry><cylinder radius="0.5" length="0.2"/></geometry>
    </collision>
  </link>
  <joint name="pivot" type="spherical">
    <origin xyz="0 0 0.2"/><parent link="cart"/><child link="pole"/><axis xyz="1 0 0"/>
  </joint>
  <link name="pole">
    <inertial>
      <origin xyz="0 0 {pole_com!r}"/>
      <mass value="{pole_mass!r}"/>
      <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>
    </inertial>
    <collision>
      <origin xyz="0 0 {pole_middle!r}"/>
      <geometry><cylinder radius="0.03" length="{pole_length!r}"/></geometry>
    </collision>
  </link>
</robot>
"""


class Scene:
    """One episode of PyBullet.

    Args:
      params: physics, scalar leaves.
      start: before the hidden first tick, scalar leaves.
      folder: where the description of cart and pole is written for PyBullet to read.

    Attributes:
      state: true state, named as `state_from_arrays` wants it.
      reported: what the sensors see, link poses as Bullet cached them when the last tick began.
      kind: class of the last tick, out of `KINDS`.
    """

    def __init__(self, params: Params, start: State, folder: Path) -> None:
        self.params = params
        self.wind = np.array([start.wind.x, start.wind.y])
        arrays, bounce = state_to_arrays(start), float(start.extra_bounce)
        self.alive = arrays["block_alive"]
        self.client: Any = BulletClient(pybullet.DIRECT)
        self.client.setTimeStep(DT)
        self.client.setGravity(0, 0, -float(params.gravity))
        self.cartpole = self._add_cartpole(arrays, folder)
        self.walls = self._add_walls(float(params.restitution_wall) + bounce)
        self.blocks = [
            self._add_block(p, v, float(params.restitution_block) + bounce)
            for p, v in zip(
                arrays["block_pos"][self.alive], arrays["block_vel"][self.alive], strict=True
            )
        ]
        self.kind = KINDS[0]
        self.reported = self._read_reported()
        self.state = self._read_state()
        self.reported_yaw = self.state["cart_yaw"]

    def close(self) -> None:
        """End the simulation."""
        self.client.disconnect()

    # --- building -----------------------------------------------------------------------------

    def _add_cartpole(self, start: dict[str, np.ndarray], folder: Path) -> int:
        p, c = self.params, self.client
        length = float(p.pole_length)
        numbers = {name: float(getattr(p, name)) for name in ("cart_mass", "pole_mass", "pole_com")}
        path = folder / "cartpole.urdf"
        path.write_text(URDF.format(pole_length=length, pole_middle=0.05 + 0.5 * length, **numbers))
        body = c.loadURDF(str(path), [*start["cart_pos"], 0], useFixedBase=True)
        for link, bounce in ((CART, p.restitution_cart), (POLE, p.restitution_pole)):
            c.changeDynamics(body, link, restitution=float(bounce))
        self._damp(body)
        # PyBullet holds a spherical joint with a motor unless told that it has no strength.
        c.setJointMotorControlMultiDof(
            body, POLE, c.POSITION_CONTROL, targetPosition=[0, 0, 0, 1], force=[0, 0, 0]
        )
        c.resetJointStateMultiDof(body, POLE, list(start["pole_jq"]), list(start["pole_jw"]))
        return body

    def _add_walls(self, bounce: float) -> list[int]:
        half, p = 0.5 * WALL, self.params
        side, outer = float(p.room_half_width) + half, float(p.room_half_width) + WALL
        floor, ceiling = float(p.room_floor), float(p.room_ceiling)
        # The side walls stand on the floor's upper face and end at the ceiling's upper face.
        middle, height = 0.5 * (floor + ceiling + WALL), 0.5 * (ceiling + WALL - floor)
        boxes = [
            ((0, -side, middle), (outer, half, height)),
            ((0, side, middle), (outer, half, height)),
            ((-side, 0, middle), (half, outer, height)),
            ((side, 0, middle), (half, outer, height)),
            ((0, 0, ceiling + half), (outer, outer, half)),
            ((0, 0, floor - half), (outer, outer, half)),
        ]
        return [self._add_box(*box, bounce) for box in boxes]

    def _add_box(self, centre: tuple[float, ...], extents: tuple[float, ...], bounce: float) -> int:
        # Placed within its body, a shape becomes a compound, which tests bounding boxes without a
        # margin: a block touches a wall only once it reaches it.
        shape = self.client.createCollisionShape(
            pybullet.GEOM_BOX, halfExtents=extents, collisionFramePosition=centre
        )
        body = self.client.createMultiBody(0, shape)
        self.client.changeDynamics(body, BASE, lateralFriction=0, restitution=bounce)
        return body

    def _add_block(self, position: np.ndarray, velocity: np.ndarray, bounce: float) -> int:
        c, p = self.client, self.params
        shape = c.createCollisionShape(pybullet.GEOM_SPHERE, radius=float(p.block_radius))
        mass = float(p.block_mass) if np.isfinite(p.block_mass) else 0
        body = c.createMultiBody(mass, shape, basePosition=list(position))
        c.changeDynamics(body, BASE, lateralFriction=0, restitution=bounce)
        self._damp(body)
        c.resetBaseVelocity(body, list(velocity))
        return body

    def _damp(self, body: int) -> None:
        drag = float(self.params.drag)
        self.client.changeDynamics(body, BASE, linearDamping=drag, angularDamping=drag)

    # --- playing ------------------------------------------------------------------------------

    def tick(self, push: np.ndarray, share: float) -> None:
        """Advance by one tick and read everything.

        Args:
          push: (2,) N on the cart, world frame.
          share: number in [0, 1) that scales the random attraction.
        """
        push = push + wind_on_cart(float(self.params.wind_speed), self.wind, self.reported_yaw)
        self._push(
            self.cartpole, CART, [*push, 0], self.client.getLinkState(self.cartpole, CART)[0]
        )
        if np.isfinite(self.params.block_mass):
            places, cart = self._places(), self.reported["cart_position"]
            forces = on_blocks(self.params, places, cart, self.wind, share)
            for block, place, force in zip(self.blocks, places, forces, strict=True):
                self._push(block, BASE, force, place)
        self.reported_yaw = self.state["cart_yaw"]
        self.client.stepSimulation()
        self.kind = self._contact_kind()
        # Reading the true state brings the cached link poses up to date, so it comes last.
        self.reported = self._read_reported()
        self.state = self._read_state()

    def _push(self, body: int, link: int, force: Sequence[float], place: Sequence[float]) -> None:
        """Apply a force in N at a place, both in the world frame, during the next tick."""
        self.client.applyExternalForce(body, link, list(force), list(place), pybullet.WORLD_FRAME)

    def _places(self) -> np.ndarray:
        """(n, 3) m, centres of the blocks."""
        return np.array([self.client.getBasePositionAndOrientation(b)[0] for b in self.blocks])

    # --- reading ------------------------------------------------------------------------------

    def _contact_kind(self) -> str:
        """Class of the last tick: its hardest contact, as found at its start."""
        owner = {self.cartpole: CARTPOLE} | dict.fromkeys(self.walls, WALLS)
        touching = [
            {owner.get(contact[1], BLOCKS), owner.get(contact[2], BLOCKS)}
            for contact in self.client.getContactPoints()
        ]
        return KINDS[max(map(hardness, touching), default=0)]

    def _read_reported(self) -> dict[str, np.ndarray]:
        """What the sensors see: link poses as Bullet cached them at the start of the last tick."""
        cart, pole = (self.client.getLinkState(self.cartpole, link, 1) for link in (CART, POLE))
        position, velocity, alive = self._read_blocks()
        return {
            "cart_position": np.array(cart[0]) * [1, 1, 0],
            "cart_velocity": np.array(cart[6]) * [1, 1, 0],
            "pole_quaternion": np.array(pole[1]),
            "pole_velocity": np.array(pole[7]),
            "block_position": position,
            "block_velocity": velocity,
            "block_alive": alive,
        }

    def _read_state(self) -> dict[str, np.ndarray]:
        """The true state, named as `state_from_arrays` wants it."""
        cart = self.client.getLinkState(self.cartpole, CART, 1, 1)
        rotation, rate, *_ = self.client.getJointStateMultiDof(self.cartpole, POLE)
        position, velocity, alive = self._read_blocks()
        return {
            "cart_pos": np.array(cart[0][:2]),
            "cart_yaw": np.array(2 * np.arctan2(cart[1][2], cart[1][3])),
            "cart_vel": np.array(cart[6][:2]),
            "cart_yaw_rate": np.array(cart[7][2]),
            "pole_jq": np.array(rotation),
            "pole_jw": np.array(rate),
            "block_pos": position,
            "block_vel": velocity,
            "block_alive": alive,
        }

    def _read_blocks(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Positions, velocities and presence of all slots; empty ones read zero."""
        position, velocity = np.zeros((2, len(self.alive), 3))
        position[self.alive] = self._places()
        velocity[self.alive] = [self.client.getBaseVelocity(block)[0] for block in self.blocks]
        return position, velocity, self.alive.astype(float)
