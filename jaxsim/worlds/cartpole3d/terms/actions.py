"""Pushes that a novelty scales by axis or turns."""

import jax
import jax.numpy as jnp

from jaxsim.worlds.cartpole3d.types import Params, Scalar


def redirect(params: Params, x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Scale a push by axis, then turn it; a quarter turn is exact.

    Args:
      params: `action_scale_x`, `action_scale_y` and `action_turn`.
      x: () N, to the right.
      y: () N, forward.

    Returns:
      (x, y), N in the world frame. A turn by 90 degrees makes "right" push forward and "forward"
      push left; with `action_scale_y` -1 as well, right and forward change places.
    """
    x, y = x * params.action_scale_x, y * params.action_scale_y
    cos, sin = _direction(params.action_turn)
    return cos * x - sin * y, sin * x + cos * y


def _direction(degrees: Scalar) -> tuple[jax.Array, jax.Array]:
    """Cosine and sine of an angle, () degrees; the cosine of 90 is 0."""
    quarters = jnp.round(jnp.asarray(degrees) / 90)
    rest = jnp.deg2rad(degrees - 90 * quarters)
    cos, sin = jnp.cos(rest), jnp.sin(rest)
    odd = quarters % 2 == 1
    sign = jnp.where(quarters % 4 >= 2, -1.0, 1.0)
    return sign * jnp.where(odd, -sin, cos), sign * jnp.where(odd, cos, sin)
