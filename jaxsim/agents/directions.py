"""Directions of small changes of the world: effect of each on the next state, by unit of size.

A direction is a derivative of one tick of the simulator, or of the sensors. For cart and pole, some
are finite differences of predictions with one parameter changed, and the rest are forces and
torques. For blocks they are accelerations along known lines. Directions need not match a novelty: a
change of gravity, for instance, is detected as a torque that leans with the pole.
"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.agents import bank, sight
from jaxsim.agents.sight import SLOTS, Sighting
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d.terms.attraction import TARGET_HEIGHT
from jaxsim.worlds.cartpole3d.types import DT, Params, Vector, Velocity

_STEP = 0.1  # relative change of a parameter whose effect is measured
_PARAMETERS = ("cart_mass", "pole_mass", "pole_length", "pole_com")

OF_CARTPOLE: tuple[str, ...] = (
    *_PARAMETERS,
    "push_size",
    "push_turn",
    "force_right",
    "force_forward",
    "torque_right",
    "torque_forward",
    "offset_angle",
)
"""Changes of cart and pole. Sizes are relative, except those of turns, rad, forces, N, torques, as
angular acceleration, rad/s^2, and of an offset of the readings of angles, rad."""

OF_BLOCKS: tuple[str, ...] = (
    "block_weight",
    "pull_origin",
    "pull_cart",
    "pull_centroid",
    "wind_x",
    "wind_y",
)
"""Changes of the motion of blocks: accelerations, m/s^2; wind is scaled by its profile."""

NAMES = OF_CARTPOLE + OF_BLOCKS
"""All directions, in the order of arrays."""


def models() -> Params:
    """Parameters of the models that give the directions of cart and pole, (5,).

    The first model is nominal.
    """
    nominal = Params()
    count = 1 + len(_PARAMETERS)
    columns = {name: np.full(count, getattr(nominal, name), np.float32) for name in _PARAMETERS}
    for place, name in enumerate(_PARAMETERS):
        columns[name][1 + place] *= 1 + _STEP
    return Params(**{name: jnp.asarray(column) for name, column in columns.items()})


def along_axes(velocity: Velocity, spin: Vector) -> tuple[jax.Array, jax.Array]:
    """Velocity of the cart and rate of the pole along two axes, (2, ...) each.

    A pole that leans ahead turns about -x, so the second axis has the sign that makes the two
    alike.
    """
    return jnp.stack([velocity.vx, velocity.vy]), jnp.stack([spin.y, -spin.x])


def of_motion(
    velocity: jax.Array, rate: jax.Array, action: jax.Array, response: np.ndarray
) -> tuple[jax.Array, jax.Array]:
    """Effect of each direction on cart and pole in a tick.

    Args:
      velocity: (2, 5) m/s, predictions of the models along two axes.
      rate: (2, 5) rad/s.
      action: () int32.
      response: (2,) change of velocity and rate in a tick for each N on the cart.

    Returns:
      Changes of velocity and of rate, (11, 2) each, in the order of `OF_CARTPOLE`.
    """
    push = sight.push(Params(), action)
    along, turned = jnp.stack([push.x, push.y]), jnp.stack([-push.y, push.x])
    unit = jnp.eye(2)
    changes = []
    for predictions, by_force, by_torque in (
        (velocity, float(response[0]), 0.0),
        (rate, float(response[1]), DT),
    ):
        rows = [
            (predictions[:, 1:] - predictions[:, :1]).T / _STEP,
            by_force * jnp.stack([along, turned]),
            by_force * unit,
            by_torque * unit,
            jnp.zeros((1, 2)),
        ]
        changes.append(jnp.concatenate(rows))
    return changes[0], changes[1]


def of_blocks(mean: Sighting) -> jax.Array:
    """Effect of each direction on the velocity of blocks in a tick, m/s, (6, 3, 4)."""
    p, alive = mean.block.p, mean.block.alive
    zero = jnp.zeros_like(p.x)
    number = jnp.maximum(jnp.sum(alive), 1)
    centroid = Vector(*(jnp.sum(jnp.where(alive, c, 0.0)) / number for c in p))
    cart = Vector(mean.reported.x, mean.reported.y, zero + TARGET_HEIGHT)
    origin = Vector(zero, zero, zero)
    slab = bank.wind_on_block(p.z)
    rows = [
        Vector(zero, zero, zero - DT),
        *(geo.scale(bank.towards(target, p), DT) for target in (origin, cart, centroid)),
        Vector(slab * DT, zero, zero),
        Vector(zero, slab * DT, zero),
    ]
    return jnp.stack([jnp.stack([jnp.broadcast_to(c, (SLOTS,)) for c in row]) for row in rows])


def of_angles() -> jax.Array:
    """Effect of each direction on readings of the pole's angles about the two axes, (11, 2)."""
    rows = np.zeros((len(OF_CARTPOLE), 2), np.float32)
    # One offset for the rotations about x and y, of which the second axis has the other sign.
    rows[OF_CARTPOLE.index("offset_angle")] = 1.0, -1.0
    return jnp.asarray(rows)
