"""Ways in which a world may differ a little: what each does to the next state, by unit of size.

A direction is a derivative of one tick of the simulator, or of the sensors. Of cart and pole most
are quotients of differences between predictions with one parameter changed; of blocks they are
accelerations along known lines.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.agents import bank, sight
from jaxsim.agents.sight import SLOTS, Seen
from jaxsim.worlds.cartpole3d import geometry as geo
from jaxsim.worlds.cartpole3d.forces import TARGET_HEIGHT
from jaxsim.worlds.cartpole3d.types import DT, Params, Vector, Velocity

_STEP = 0.1  # relative change of a parameter whose effect is measured
_PARAMETERS = ("gravity", "cart_mass", "pole_mass", "pole_length", "pole_com")

OF_CARTPOLE: tuple[str, ...] = (
    *_PARAMETERS,
    "push_right",
    "push_forward",
    "push_turn",
    "push_delay",
    "force_right",
    "force_forward",
    "torque_right",
    "torque_forward",
)
"""Changes of the motion of cart and pole: sizes are relative, but for turns, rad, forces, N, and
torques, as an angular acceleration, rad/s^2."""

OF_BLOCKS: tuple[str, ...] = (
    "block_weight",
    "pull_origin",
    "pull_cart",
    "pull_centroid",
    "wind_x",
    "wind_y",
    "drag",
)
"""Changes of the motion of blocks: accelerations, m/s^2, of wind by its profile; drag is
relative."""

OF_SENSORS: tuple[str, ...] = (
    "offset_velocity",
    "offset_angle",
    "offset_rate",
    "gain_position",
    "gain_velocity",
    "gain_angle",
    "gain_rate",
)
"""Changes of readings: offsets in m/s, rad and rad/s; gains are relative."""

NAMES = OF_CARTPOLE + OF_SENSORS + OF_BLOCKS
"""Every direction, in the order of arrays. Sensors concern both kinds of bodies, so those of each
stand in a row."""

CARTPOLE = slice(0, len(OF_CARTPOLE) + len(OF_SENSORS))
"""Places of what concerns cart and pole."""
BLOCKS = slice(len(OF_CARTPOLE), len(NAMES))
"""Places of what concerns blocks."""


def models() -> Params:
    """Parameters whose predictions the directions of cart and pole come from, (9,)."""
    nominal = Params()
    count = 4 + len(_PARAMETERS)
    columns = {name: np.full(count, getattr(nominal, name), np.float32) for name in _PARAMETERS}
    for place, name in enumerate(_PARAMETERS):
        columns[name][1 + place] *= 1 + _STEP
    return Params(**{name: jnp.asarray(column) for name, column in columns.items()})


def pushes(action: jax.Array, last: jax.Array) -> Vector:
    """Force on the cart in each model, N, (9,): three differ by the push and not by the physics."""
    now, before = (sight.push(Params(), code) for code in (action, last))
    same = [now] * (1 + len(_PARAMETERS))
    more = [
        Vector((1 + _STEP) * now.x, now.y, now.z),
        Vector(now.x, (1 + _STEP) * now.y, now.z),
        Vector(now.x + _STEP * (before.x - now.x), now.y + _STEP * (before.y - now.y), now.z),
    ]
    return Vector(
        *(jnp.stack([jnp.float32(f) for f in axis]) for axis in zip(*same, *more, strict=True))
    )


def along_axes(velocity: Velocity, spin: Vector) -> tuple[jax.Array, jax.Array]:
    """Velocity of the cart and rate of the pole along two axes, (2, ...) each.

    A pole that leans ahead turns about -x, so the second axis has the sign that makes the two
    alike.
    """
    return jnp.stack([velocity.vx, velocity.vy]), jnp.stack([spin.y, -spin.x])


def of_motion(velocity: jax.Array, rate: jax.Array, action: jax.Array, response: Any) -> Any:
    """What each direction adds to cart and pole in a tick.

    Args:
      velocity: (2, 9) m/s, predictions of the models along two axes.
      rate: (2, 9) rad/s.
      action: () int32.
      response: change of velocity and rate in a tick for each N on the cart.

    Returns:
      Changes of velocity and of rate, (13, 2) each, in the order of `OF_CARTPOLE`.
    """
    changes = []
    push = sight.push(Params(), action)
    turned = jnp.stack([-push.y, push.x])
    for predictions, by_force, by_torque in (
        (velocity, response[0], 0.0),
        (rate, response[1], DT),
    ):
        change = (predictions[:, 1:] - predictions[:, :1]) / _STEP
        unit = jnp.eye(2)
        rows = [
            change[:, :-1].T,
            (by_force * turned)[None],
            change[:, -1:].T,
            by_force * unit,
            by_torque * unit,
        ]
        changes.append(jnp.concatenate(rows))
    return changes[0], changes[1]


def of_blocks(mean: Seen) -> jax.Array:
    """What each direction adds to the velocity of blocks in a tick, m/s, (7, 3, 4)."""
    p, v, alive = mean.block.p, mean.block.v, mean.block.alive
    zero = jnp.zeros_like(p.x)
    number = jnp.maximum(jnp.sum(alive), 1)
    centroid = Vector(*(jnp.sum(jnp.where(alive, c, 0.0)) / number for c in p))
    cart = Vector(mean.reported.x, mean.reported.y, zero + TARGET_HEIGHT)
    origin = Vector(zero, zero, zero)
    slab = bank.wind_on_block(p.z)
    speed = jnp.sqrt(geo.dot(v, v))
    slowing = DT * Params().drag
    rows = [
        Vector(zero, zero, zero - DT),
        *(geo.scale(bank.towards(target, p), DT) for target in (origin, cart, centroid)),
        Vector(slab * DT, zero, zero),
        Vector(zero, slab * DT, zero),
        geo.scale(v, -slowing * (1 + speed)),
    ]
    return jnp.stack([jnp.stack([jnp.broadcast_to(c, (SLOTS,)) for c in row]) for row in rows])


def of_readings(position: Any, velocity: Any, angle: Any, rate: Any, sign: Any) -> list[jax.Array]:
    """What each change of the sensors adds to readings of one kind, (7, ...) for each kind.

    Args:
      position: expected reading.
      velocity: expected reading.
      angle: expected reading; None for a body without one.
      rate: expected reading; None for a body without one.
      sign: (...) -1 where an axis of angle and rate is turned round, else 1.
    """
    like = jnp.zeros_like(position)
    unturned = like + sign
    added: dict[str, list[tuple[str, Any]]] = {
        "position": [("gain_position", position)],
        "velocity": [("offset_velocity", like + 1), ("gain_velocity", velocity)],
        "angle": [("offset_angle", unturned), ("gain_angle", angle)],
        "rate": [("offset_rate", unturned), ("gain_rate", rate)],
    }
    kinds = ("position", "velocity") if angle is None else ("position", "velocity", "angle", "rate")
    return [jnp.stack([dict(added[kind]).get(name, like) for name in OF_SENSORS]) for kind in kinds]
