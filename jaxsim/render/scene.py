"""The scene of a camera: places and sizes from an observation of any world."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from jaxsim.embedding import embed
from jaxsim.env import Env
from jaxsim.pytrees import Leaf, Params, State, Tree
from jaxsim.worlds import cartpole
from jaxsim.worlds.cartpole3d.types import PIVOT_HEIGHT, Observation, Scalar, Vector

CART_RADIUS = 0.5
CART_BOTTOM, CART_TOP = 0.1, 0.3
POLE_RADIUS = 0.03
POLE_GAP = 0.05
"""Sizes, m. The cart and the pole are cylinders around the 32-sided prisms of the physics; the
pole's lower end is `POLE_GAP` above the pivot."""
SIZES = ("pole_length", "block_radius", "half_width", "floor", "ceiling")
"""Fields of a scene that do not change in an episode."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Scene:
    """Places in the world frame and sizes, all m; leaves (...) of one batch shape or scalars.

    Attributes:
      cart: its place on the floor, z is 0.
      lean: unit vector along the pole.
      blocks: centres, leaves (..., N).
      alive: (..., N) bool, False for an empty slot.
      pole_length: from end to end.
      block_radius: of every block.
      half_width: from the middle of the room or the track to its side.
      floor: height of the floor.
      ceiling: height of the ceiling.
    """

    cart: Vector
    lean: Vector
    blocks: Vector
    alive: jax.Array
    pole_length: Scalar = 1.0
    block_radius: Scalar = 0.5
    half_width: Scalar = 4.95
    floor: Scalar = -0.05
    ceiling: Scalar = 9.95

    @property
    def foot(self) -> Vector:
        """Lower end of the pole."""
        return _along(self, POLE_GAP)

    @property
    def tip(self) -> Vector:
        """Upper end of the pole."""
        return _along(self, POLE_GAP + self.pole_length)


def _along(scene: Scene, distance: Scalar) -> Vector:
    """Point on the pole's axis at a distance from the pivot."""
    cart, lean = scene.cart, scene.lean
    return Vector(
        cart.x + distance * lean.x,
        cart.y + distance * lean.y,
        cart.z + PIVOT_HEIGHT + distance * lean.z,
    )


def scene(env: Env, params: Params, state: State) -> Scene:
    """Return the scene that the sensors of an environment report of a state.

    Args:
      env: CartPole3D, CartPole2D, CartPole, or a wrapper that passes their observations on.
      params: its parameters, leaves () or (L,).
      state: leaves () or (L,).

    Raises:
      TypeError: the observation is of another kind.
    """
    return scene_of(env, params, env.observe(state))


def scene_of(env: Env, params: Params, observation: Tree) -> Scene:
    """Return the scene of an observation of an environment; see `scene`."""
    while hasattr(observation, "observation"):  # of a wrapper that adds to it
        env, observation = getattr(env, "env", env), observation.observation
    if not isinstance(observation, Observation):
        lifted = getattr(embed(env), "lifted", None)
        if lifted is None:
            raise TypeError(f"an observation of {env.name} cannot be drawn")
        observation = lifted(observation)
    return observed(observation, params)


def observed(observation: Observation, params: Params = None) -> Scene:
    """Return the scene of one observation in CartPole3D's form, or of a batch.

    Args:
      observation: leaves () or (L,), blocks listed or stacked.
      params: for the sizes, leaves () or (L,); None for those of CartPole3D.
    """
    x, y, z, w = observation.pole_quaternion
    lean = Vector(2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y))
    blocks, alive = _blocks(observation)
    return Scene(observation.cart_position, lean, blocks, alive, **_sizes(params))


def _sizes(params: Params) -> dict[str, Leaf]:
    """Fields of a scene that parameters hold; a world without a room uses its track."""
    names = ("pole_length", "block_radius")
    sizes = {name: getattr(params, name) for name in names if hasattr(params, name)}
    if hasattr(params, "room_half_width"):
        sizes |= {
            "half_width": params.room_half_width,
            "floor": params.room_floor,
            "ceiling": params.room_ceiling,
        }
    elif hasattr(params, "position_limit"):
        limit = params.position_limit
        if isinstance(params, cartpole.Params):
            # The parameter is the distance to the centre of mass.
            sizes["pole_length"] = 2 * params.pole_length
        sizes |= {"half_width": limit, "floor": 0.0 * limit, "ceiling": 2 * limit}
    return sizes


def _blocks(observation: Observation) -> tuple[Vector, jax.Array]:
    """Centres of all slots, leaves (..., N), and the mask of those alive and finite."""
    lanes = jnp.ndim(observation.cart_position.x)
    slots = list(zip(observation.block_position, observation.block_alive, strict=True))
    none = jnp.zeros((*jnp.shape(observation.cart_position.x), 0), jnp.float32)
    columns: list[list[jax.Array]] = [[none], [none], [none], [none > 0]]
    for position, flag in slots:
        for column, part in zip(columns, (*position, flag), strict=True):
            leaf = jnp.asarray(part)
            # One block, or many behind one another.
            column.append(leaf if leaf.ndim > lanes else leaf[..., None])
    x, y, z, alive = (jnp.concatenate(column, axis=-1) for column in columns)
    alive = alive.astype(bool) & jnp.isfinite(x) & jnp.isfinite(y) & jnp.isfinite(z)
    return Vector(*(jnp.where(alive, part, 0.0) for part in (x, y, z))), alive
