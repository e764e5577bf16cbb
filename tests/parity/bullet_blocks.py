"""Blocks of the live PyBullet scene: spheres that move freely, stand, or slide on lines."""

from typing import Any, Protocol

import numpy as np
import pybullet

from jaxsim.worlds.cartpole3d import Params
from jaxsim.worlds.cartpole3d.types import Sphere
from tests.oracles import bullet_world
from tests.oracles.bullet_world import BASE

SPHERE = 0  # link
HEIGHT = 1.0  # m, of a block above the base of its line

Motion = tuple[np.ndarray, np.ndarray]
"""Position (m) and velocity (m/s), (3,) each, world frame."""


class Body(Protocol):
    """What the scene asks of a block."""

    def push(self, force: np.ndarray) -> None:
        """Apply a force (3,), N, world frame, during the next tick."""

    def reported(self) -> Motion:
        """What the sensors see; only right if it is read before `motion`."""

    def motion(self) -> Motion:
        """How it really moves."""


class FreeBlock:
    """A sphere that moves freely, or stands if its mass is not finite."""

    def __init__(self, client: Any, params: Params, block: Sphere, bounce: float) -> None:
        self.client = client
        self.body = bullet_world.add_sphere(client, params, block.p, block.v, bounce)

    def push(self, force: np.ndarray) -> None:
        """Apply a force at the centre."""
        place, _ = self.client.getBasePositionAndOrientation(self.body)
        self.client.applyExternalForce(
            self.body, BASE, list(force), list(place), pybullet.WORLD_FRAME
        )

    def reported(self) -> Motion:
        """All as it is."""
        return self.motion()

    def motion(self) -> Motion:
        """Position and velocity."""
        place, _ = self.client.getBasePositionAndOrientation(self.body)
        return np.array(place), np.array(self.client.getBaseVelocity(self.body)[0])


class LineBlock:
    """A sphere on a prismatic joint, without drag.

    The base that carries the joint is turned by the quaternion (0, 0, a, 1), which Bullet
    normalises in its first tick.
    """

    def __init__(self, client: Any, params: Params, block: Sphere, bounce: float) -> None:
        self.client = client
        base, a, s, speed = _line_of(block)
        joint = bullet_world.links(
            [bullet_world.sphere_shape(client, params)],
            mass=float(params.block_mass),
            joint=pybullet.JOINT_PRISMATIC,
            height=HEIGHT,
        )
        self.body = client.createMultiBody(0, **joint)
        bullet_world.surface(client, self.body, SPHERE, float(params.friction_block), bounce)
        client.changeDynamics(self.body, BASE, linearDamping=0, angularDamping=0)
        # PyBullet brakes a joint with a motor unless told that it has no strength.
        client.setJointMotorControl2(self.body, SPHERE, client.VELOCITY_CONTROL, force=0)
        client.resetBasePositionAndOrientation(self.body, base, [0, 0, a, 1])
        client.resetJointState(self.body, SPHERE, s, speed)

    def push(self, force: np.ndarray) -> None:
        """Do nothing: the original pushes the base, which is fixed."""

    def reported(self) -> Motion:
        """The link's pose as Bullet cached it when the last tick began; the base's velocity."""
        return np.array(self.client.getLinkState(self.body, SPHERE)[0]), np.zeros(3)

    def motion(self) -> Motion:
        """Position and velocity of the sphere."""
        link = self.client.getLinkState(self.body, SPHERE, 1, 1)
        return np.array(link[0]), np.array(link[6])


def add_block(client: Any, params: Params, block: Sphere, bounce: float) -> Body:
    """Add a block of a start (scalar leaves) that bounces by `bounce`."""
    on_line = block.rail is not None and bool(block.rail.holds)
    return (LineBlock if on_line else FreeBlock)(client, params, block, bounce)


def _line_of(block: Sphere) -> tuple[list[float], float, float, float]:
    """Base of the line (m), number in its quaternion, place (m) and speed (m/s) on the line.

    Before the hidden tick a block stands (1 + a^2) times as far from its base as it should.
    """
    rail = block.rail
    assert rail is not None
    direction = np.array([float(rail.x), float(rail.y), 0])
    rise = -float(rail.drop)
    s = float(rail.lag) / float(rail.drop)
    centre = np.array(list(map(float, block.p)))
    base = centre - s * (1 + rise) * direction - [0, 0, HEIGHT * (1 + rise)]
    return base.tolist(), np.sqrt(rise), s, float(np.array(list(map(float, block.v))) @ direction)
