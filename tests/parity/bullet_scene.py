"""The scene of CartPole3D in PyBullet: cart, pole, room and blocks built from `Params`.

The cart slides and yaws on a planar joint of a base that is fixed where the episode starts; the
pole stands on a spherical joint. Inertias come from the colliders, whatever the URDF says.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pybullet
from pybullet_utils.bullet_client import BulletClient

from benchmarks.recordings import BLOCKS, CARTPOLE, KINDS, WALLS, hardness
from jaxsim.worlds.cartpole3d import Params, State, state_to_arrays
from jaxsim.worlds.cartpole3d.types import DT, Block
from tests.parity.bullet_blocks import Body, Motion, add_block, links
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
      start: before the hidden first tick, scalar leaves, a Block for each slot.
      folder: where the description of cart and pole is written for PyBullet to read.
      slots: for blocks, in what is read.

    Attributes:
      state: true state, named as `state_from_arrays` wants it.
      reported: what the sensors see, link poses as Bullet cached them when the last tick began.
      kind: class of the last tick, out of `KINDS`.
    """

    def __init__(self, params: Params, start: State, folder: Path, slots: int) -> None:
        self.params, self.slots = params, slots
        self.wind = np.array([start.wind.x, start.wind.y])
        arrays, bounce = state_to_arrays(start), float(start.extra_bounce)
        self.client: Any = BulletClient(pybullet.DIRECT)
        self.client.setTimeStep(DT)
        self.client.setGravity(0, 0, -float(params.gravity))
        self.cartpole = self._add_cartpole(arrays, folder)
        self.walls = self._add_walls(float(params.restitution_wall) + bounce)
        self.bounce = float(params.restitution_block) + bounce
        self.blocks: list[Body] = []
        for block in start.blocks:
            if block.alive:
                self.add(block)
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
        for link, bounce, friction in (
            (CART, p.restitution_cart, p.friction_cart),
            (POLE, p.restitution_pole, p.friction_pole),
        ):
            c.changeDynamics(body, link, restitution=float(bounce), lateralFriction=float(friction))
        drag = float(p.drag)
        c.changeDynamics(body, BASE, linearDamping=drag, angularDamping=drag)
        # PyBullet holds a spherical joint with a motor unless told that it has no strength.
        c.setJointMotorControlMultiDof(
            body, POLE, c.POSITION_CONTROL, targetPosition=[0, 0, 0, 1], force=[0, 0, 0]
        )
        c.resetJointStateMultiDof(body, POLE, list(start["pole_jq"]), list(start["pole_jw"]))
        return body

    def _add_walls(self, bounce: float) -> int:
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
        # Placed within its link, a shape becomes a compound, which tests bounding boxes without a
        # margin: a block touches a wall only once it reaches it.
        base, *shapes = [
            self.client.createCollisionShape(
                pybullet.GEOM_BOX, halfExtents=extents, collisionFramePosition=centre
            )
            for centre, extents in boxes
        ]
        # One body, as in the original: in which order contacts are solved depends on it.
        body = self.client.createMultiBody(
            0, base, **links(shapes, mass=0, joint=pybullet.JOINT_FIXED)
        )
        for link in range(BASE, len(shapes)):
            self.client.changeDynamics(body, link, lateralFriction=0, restitution=bounce)
        return int(body)

    # --- playing ------------------------------------------------------------------------------

    def add(self, block: Block) -> None:
        """Put a block (scalar leaves) into the next slot."""
        self.blocks.append(add_block(self.client, self.params, block, self.bounce))

    def tick(self, push: np.ndarray, share: float) -> None:
        """Advance by one tick and read everything.

        Args:
          push: (2,) N on the cart, world frame.
          share: number in [0, 1) that scales the random attraction.
        """
        push = push + wind_on_cart(float(self.params.wind_speed), self.wind, self.reported_yaw)
        place = self.client.getLinkState(self.cartpole, CART)[0]
        self.client.applyExternalForce(self.cartpole, CART, [*push, 0], place, pybullet.WORLD_FRAME)
        if np.isfinite(self.params.block_mass):
            cart = self.reported["cart_position"]
            forces = on_blocks(self.params, self.places, cart, self.wind, share)
            for block, force in zip(self.blocks, forces, strict=True):
                block.push(force)
        self.reported_yaw = self.state["cart_yaw"]
        self.client.stepSimulation()
        self.kind = self._contact_kind()
        # Reading the true state brings the cached link poses up to date, so it comes last.
        self.reported = self._read_reported()
        self.state = self._read_state()

    # --- reading ------------------------------------------------------------------------------

    @property
    def places(self) -> np.ndarray:
        """(n, 3) m, centres of the blocks."""
        return np.array([block.motion()[0] for block in self.blocks])

    def _contact_kind(self) -> str:
        """Class of the last tick: its hardest contact, as found at its start."""
        owner = {self.cartpole: CARTPOLE, self.walls: WALLS}
        touching = [
            {owner.get(contact[1], BLOCKS), owner.get(contact[2], BLOCKS)}
            for contact in self.client.getContactPoints()
        ]
        return KINDS[max(map(hardness, touching), default=0)]

    def _read_reported(self) -> dict[str, np.ndarray]:
        """What the sensors see: link poses as Bullet cached them at the start of the last tick."""
        cart, pole = (self.client.getLinkState(self.cartpole, link, 1) for link in (CART, POLE))
        position, velocity, alive = self._in_slots(block.reported() for block in self.blocks)
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
        position, velocity, alive = self._in_slots(block.motion() for block in self.blocks)
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

    def _in_slots(self, motions: Iterable[Motion]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Positions, velocities and presence of all slots; empty ones read zero."""
        numbers = np.zeros((self.slots, 2, 3))
        for slot, motion in zip(numbers, motions, strict=False):
            slot[:] = motion
        alive = np.arange(self.slots) < len(self.blocks)
        return numbers[:, 0], numbers[:, 1], alive.astype(float)
