"""Start states, drawn on the device.

The original never seeds its generator for these levels, so its episodes cannot be repeated. Here
the same distribution is drawn from the key, or from a seed by `wsu.from_seed`. The original's reset
runs one physics tick with the action "nothing"; the states here are those before that hidden tick
(`step` is -1).
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from jaxsim import rng
from jaxsim.worlds.cartpole.types import Motion, Scalar
from jaxsim.worlds.cartpole2d import sensors
from jaxsim.worlds.cartpole2d.types import ZONES, Config, Params, State

# Counter slots of one episode's start.
_SLOT_CART, _SLOT_ZONES = 0, 1


def draw(key: jax.Array, params: Params, config: Config) -> State:
    """Draw the state before the hidden first tick.

    Args:
      key: () or (L,) typed key of the episode.
      params: physics; leaves that broadcast with the key.
      config: precision and engine.
    """
    k = rng.words(key)
    dtype = jnp.dtype(config.dtype)
    x = rng.uniform(k, _SLOT_CART, -1.0, 1.0, dtype) * params.start_spread
    x = engine_place(x, config.engine)
    low, high = params.drag_min, params.drag_max
    slots = range(_SLOT_ZONES, _SLOT_ZONES + len(ZONES))
    # The original has 20 zones, up to 10 m; an episode ends before it leaves these five.
    zone_drag = [rng.uniform(k, slot, low, high, dtype) for slot in slots]
    return initial(x, zone_drag, params)


def engine_place(x: jax.Array, engine: str) -> jax.Array:
    """Position that an engine sets when it is asked for x, () m."""
    if engine == "stock":
        return x
    # The patched engine divides the position by its absolute value.
    return jnp.where(x < 0, -jnp.ones_like(x), jnp.ones_like(x))


def initial(x: jax.Array, zone_drag: Sequence[Scalar], params: Params) -> State:
    """State before the hidden first tick, for a given place of the cart.

    Args:
      x: () m, cart.
      zone_drag: coefficient of each of `ZONES`, () each.
      params: physics.
    """
    zero = jnp.zeros_like(x)
    motion = Motion(x, zero + params.start_velocity, zero, zero + params.start_rate)
    step = jnp.full(jnp.shape(x), -1, jnp.int32)
    drags = tuple(zero + drag for drag in zone_drag)
    return State(motion, sensors.report(params, motion), drags, step, step >= 0)
