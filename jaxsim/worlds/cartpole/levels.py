"""The parameters that a user may set by name. This world has no catalogue of levels."""

from dataclasses import replace

import jax
import jax.numpy as jnp

from jaxsim.parameters import Parameter, RowMaker, Values
from jaxsim.worlds.cartpole.types import Config, Params

_number = RowMaker(Params()).number

_ROWS = [
    _number("gravity", "gravity", "m/s^2", 0.0, 100.0, "downwards, on the pole"),
    _number("force", "force", "N", 0.0, 1000.0, "size of one push on the cart"),
    _number("cart_mass", "cart/mass", "kg", 0.01, 1000.0, "mass of the cart"),
    _number("pole_mass", "pole/mass", "kg", 0.001, 100.0, "mass of the pole"),
    _number(
        "pole_length",
        "pole/length",
        "m",
        0.05,
        10.0,
        "from the pivot to the centre of mass: half of the pole, as Gymnasium's length",
    ),
    _number("tau", "tau", "s", 0.0001, 0.1, "length of one step"),
    _number("position_limit", "position_limit", "m", 0.1, 100.0, "distance that ends an episode"),
    _number("lean_limit", "lean_limit", "rad", 0.01, 1.5, "angle that ends an episode"),
    _number("start_spread", "start/spread", "", 0.0, 0.2, "half width of the four first numbers"),
]
FIELDS: dict[str, str] = {row.path: field for field, row in _ROWS}
PARAMETERS: dict[str, Parameter] = {row.path: row for _, row in _ROWS}
"""Parameters of syllabi and `jaxsim.make`, by path."""


def params_from_values(values: Values, config: Config) -> Params:
    """Convert values by path to traced parameters.

    Args:
      values: by path, already checked; missing ones take their defaults.
      config: precision.
    """
    changed = {FIELDS[path]: value for path, value in values.items()}
    return jax.tree.map(lambda p: jnp.asarray(p, config.dtype), replace(Params(), **changed))
