"""One episode of CartPole3D in PyBullet, played tick by tick with everything read."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from jaxsim.worlds.cartpole3d import Params, State, state_to_arrays
from jaxsim.worlds.cartpole3d.types import Sphere
from tests.oracles import bullet_world
from tests.oracles.bullet_world import CART, POLE, WORLD_FRAME
from tests.oracles.recordings import BLOCKS, CARTPOLE, KINDS, WALLS, hardness
from tests.parity.bullet_blocks import Body, Motion, add_block
from tests.parity.bullet_forces import on_blocks, wind_on_cart


class Scene:
    """One episode of PyBullet.

    Args:
      params: physics, scalar leaves.
      start: before the hidden first tick, scalar leaves, a Sphere for each slot.
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
        self.client = bullet_world.connect(params)
        self.cartpole = bullet_world.add_cartpole(self.client, params, arrays["cart_pos"], folder)
        self.client.resetJointStateMultiDof(
            self.cartpole, POLE, list(arrays["pole_jq"]), list(arrays["pole_jw"])
        )
        self.walls = bullet_world.add_walls(
            self.client, params, float(params.restitution_wall) + bounce
        )
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

    # --- playing ------------------------------------------------------------------------------

    def add(self, block: Sphere) -> None:
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
        self.client.applyExternalForce(self.cartpole, CART, [*push, 0], place, WORLD_FRAME)
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
