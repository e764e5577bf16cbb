"""Cart, pole, room and blocks of CartPole3D in PyBullet, built from the numbers of `Params`.

The cart slides and yaws on a planar joint of a base that is fixed where the episode starts; the
pole stands on a spherical joint. Inertias come from the colliders, whatever the URDF says.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pybullet
from pybullet_utils.bullet_client import BulletClient

from jaxsim.worlds.cartpole3d import Params
from jaxsim.worlds.cartpole3d.types import DT

CART, POLE, BASE = 0, 1, -1  # links
WORLD_FRAME = pybullet.WORLD_FRAME
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


def connect(params: Params) -> Any:
    """Start an engine of one's own, without bodies."""
    client: Any = BulletClient(pybullet.DIRECT)
    client.setTimeStep(DT)
    client.setGravity(0, 0, -float(params.gravity))
    return client


def add_cartpole(client: Any, params: Params, place: Iterable[float], folder: Path) -> int:
    """Add cart and pole, upright and at rest.

    Args:
      client: from `connect`.
      params: physics, scalar leaves.
      place: (2,) m, where the cart starts.
      folder: where their description is written for PyBullet to read.
    """
    length = float(params.pole_length)
    numbers = {
        name: float(getattr(params, name)) for name in ("cart_mass", "pole_mass", "pole_com")
    }
    path = folder / "cartpole.urdf"
    path.write_text(URDF.format(pole_length=length, pole_middle=0.05 + 0.5 * length, **numbers))
    body = client.loadURDF(str(path), [*place, 0], useFixedBase=True)
    for link, bounce, friction in (
        (CART, params.restitution_cart, params.friction_cart),
        (POLE, params.restitution_pole, params.friction_pole),
    ):
        surface(client, body, link, float(friction), float(bounce))
    _damp(client, params, body)
    # PyBullet holds a spherical joint with a motor unless told that it has no strength.
    client.setJointMotorControlMultiDof(
        body, POLE, pybullet.POSITION_CONTROL, targetPosition=[0, 0, 0, 1], force=[0, 0, 0]
    )
    return int(body)


def add_walls(client: Any, params: Params, bounce: float) -> int:
    """Add four walls, the ceiling and the floor, which bounce as told, as one body."""
    half = 0.5 * WALL
    side, outer = float(params.room_half_width) + half, float(params.room_half_width) + WALL
    floor, ceiling = float(params.room_floor), float(params.room_ceiling)
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
        client.createCollisionShape(
            pybullet.GEOM_BOX, halfExtents=extents, collisionFramePosition=centre
        )
        for centre, extents in boxes
    ]
    # One body, as in the original: in which order contacts are solved depends on it.
    body = client.createMultiBody(0, base, **links(shapes, mass=0, joint=pybullet.JOINT_FIXED))
    for link in range(BASE, len(shapes)):
        surface(client, body, link, 0, bounce)
    return int(body)


def add_sphere(
    client: Any,
    params: Params,
    position: Iterable[float],
    velocity: Iterable[float],
    bounce: float,
) -> int:
    """Add a block that moves freely, or stands if its mass is not finite.

    Args:
      client: from `connect`.
      params: physics, scalar leaves.
      position: (3,) m, its centre.
      velocity: (3,) m/s.
      bounce: its restitution.
    """
    mass = float(params.block_mass) if params.block_mass < float("inf") else 0
    # It is made at the origin and then moved, as in the original: in which order contacts are
    # solved depends on it.
    body = client.createMultiBody(mass, sphere_shape(client, params))
    client.resetBasePositionAndOrientation(body, list(map(float, position)), [0, 0, 1, 0])
    surface(client, body, BASE, float(params.friction_block), bounce)
    _damp(client, params, body)
    client.resetBaseVelocity(body, list(map(float, velocity)))
    return int(body)


def sphere_shape(client: Any, params: Params) -> int:
    """Add the collider of a block."""
    return int(client.createCollisionShape(pybullet.GEOM_SPHERE, radius=float(params.block_radius)))


def surface(client: Any, body: int, link: int, friction: float, bounce: float) -> None:
    """Set friction and restitution of a link."""
    client.changeDynamics(body, link, lateralFriction=friction, restitution=bounce)


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


def _damp(client: Any, params: Params, body: int) -> None:
    drag = float(params.drag)
    client.changeDynamics(body, BASE, linearDamping=drag, angularDamping=drag)
