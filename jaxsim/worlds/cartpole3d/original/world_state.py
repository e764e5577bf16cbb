"""Episodes that start from a given world.

The original has an option for this, `start_world_state`, but it ends with an error.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import parameters
from jaxsim.json_types import JsonMapping
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d.arrays import SHAPES, state_from_arrays
from jaxsim.worlds.cartpole3d.original.messages import parse_feature_vector
from jaxsim.worlds.cartpole3d.types import Config, Observation, State, Vector

NAMES = (*SHAPES, "block_pos", "block_vel", "block_alive")
"""Names of the arrays of a world."""


def from_world_state(
    world: JsonMapping,
    config: Config | None = None,
    *,
    wind_angle: float = 0.0,
    extra_bounce: float = 0.0,
) -> State:
    """Start an episode in a given world, without a hidden first tick.

    `env.observe` of the result is the first observation and returns the given values; `env.step`
    continues from there, with all steps of an episode.

    Args:
      world: a feature vector, as agents get it (`messages`), or arrays by name, as for
        `state_from_arrays`. A feature vector has the pole's orientation in the room but not the
        cart's yaw: yaw and yaw rate are 0.
      config: capacity and precision.
      wind_angle: rad, direction of the wind of level 206, counter-clockwise from forward.
      extra_bounce: extra restitution of an episode of level 204, 0 to 0.1.

    Returns:
      The state. In an environment with noisy sensors, put it through `env.adopt` first.

    Raises:
      ValueError: as `parse_feature_vector` or `state_from_arrays`; an unknown name.
    """
    config = config or Config()
    if "cart" in world or "pole" in world:
        observation, _ = parse_feature_vector(world, config)
        world = _arrays(observation)
    for name in world:
        if name not in NAMES:
            raise ValueError(parameters.unknown("name", name, (*NAMES, "cart", "pole")))
    state = state_from_arrays(world, config)

    def spread(number: float) -> jax.Array:
        return jnp.full(state.step.shape, number, config.dtype)

    wind = Vector(spread(-np.sin(wind_angle)), spread(np.cos(wind_angle)), spread(0.0))
    return replace(state, wind=wind, extra_bounce=spread(extra_bounce))


def _arrays(observation: Observation) -> dict[str, np.ndarray]:
    """Arrays by name from the observation of a feature vector, for a cart that is not turned."""
    o = observation
    q = np.stack(o.pole_quaternion, dtype=np.float64)
    q /= np.linalg.norm(q)
    x, y, z, w = map(float, q)
    return {
        "cart_pos": np.stack(o.cart_position[:2]),
        "cart_yaw": np.zeros(()),
        "cart_vel": np.stack(o.cart_velocity[:2]),
        "cart_yaw_rate": np.zeros(()),
        "pole_jq": q,
        "pole_jw": np.stack(geo.rotate_back(geo.rotation(x, y, z, w), o.pole_velocity)),
        "block_pos": np.stack([np.stack(p) for p in o.block_position]),
        "block_vel": np.stack([np.stack(v) for v in o.block_velocity]),
        "block_alive": np.stack(o.block_alive),
    }
