"""Blocks of the live PyBullet scene: spheres that move freely, stand, or slide on lines."""

from typing import Any, Protocol

import numpy as np
import pybullet

from jaxsim.worlds.cartpole3d import Params
from jaxsim.worlds.cartpole3d.types import Block

BASE, SPHERE = -1, 0  # links
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

    def __init__(self, client: Any, params: Params, block: Block, bounce: float) -> None:
        self.client = client
        mass = float(params.block_mass) if np.isfinite(params.block_mass) else 0
        place = list(map(float, block.p))
        # It is made at the origin and then moved, as in the original: in which order contacts are
        # solved depends on it.
        self.body = client.createMultiBody(mass, _sphere(client, params))
        client.resetBasePositionAndOrientation(self.body, place, [0, 0, 1, 0])
        _surface(client, self.body, BASE, params, bounce)
        drag = float(params.drag)
        client.changeDynamics(self.body, BASE, linearDamping=drag, angularDamping=drag)
        client.resetBaseVelocity(self.body, list(map(float, block.v)))

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

    def __init__(self, client: Any, params: Params, block: Block, bounce: float) -> None:
        self.client = client
        base, a, s, speed = _line_of(block)
        joint = links(
            [_sphere(client, params)],
            mass=float(params.block_mass),
            joint=pybullet.JOINT_PRISMATIC,
            height=HEIGHT,
        )
        self.body = client.createMultiBody(0, **joint)
        _surface(client, self.body, SPHERE, params, bounce)
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


def links(shapes: list[int], mass: float, joint: int, height: float = 0.0) -> dict[str, list[Any]]:
    """Links of a body in the form that PyBullet wants: one a shape, all on the base.

    Args:
      shapes: collision shapes.
      mass: kg, of each.
      joint: type of their joints, along x.
      height: m, of the joints above the base.
    """
    count, still = len(shapes), [0, 0, 0, 1]
    return {
        "linkMasses": [mass] * count,
        "linkCollisionShapeIndices": shapes,
        "linkVisualShapeIndices": [-1] * count,
        "linkPositions": [[0, 0, height]] * count,
        "linkOrientations": [still] * count,
        "linkInertialFramePositions": [[0, 0, 0]] * count,
        "linkInertialFrameOrientations": [still] * count,
        "linkParentIndices": [0] * count,
        "linkJointTypes": [joint] * count,
        "linkJointAxis": [[1, 0, 0]] * count,
    }


def add_block(client: Any, params: Params, block: Block, bounce: float) -> Body:
    """Add a block of a start (scalar leaves) that bounces by `bounce`."""
    on_line = block.rail is not None and bool(block.rail.holds)
    return (LineBlock if on_line else FreeBlock)(client, params, block, bounce)


def _line_of(block: Block) -> tuple[list[float], float, float, float]:
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


def _sphere(client: Any, params: Params) -> int:
    radius = float(params.block_radius)
    return int(client.createCollisionShape(pybullet.GEOM_SPHERE, radius=radius))


def _surface(client: Any, body: int, link: int, params: Params, bounce: float) -> None:
    friction = float(params.friction_block)
    client.changeDynamics(body, link, lateralFriction=friction, restitution=bounce)
