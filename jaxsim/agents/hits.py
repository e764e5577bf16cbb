"""Nominal prediction of a tick in which something hits cart, pole or a block.

It is a whole tick of the simulator, contacts included, from an observation. An observation lacks
the yaw of the cart, which a hit may change. So only the first hit of an episode can be predicted,
and collisions of blocks that touch neither cart nor pole. Hits are rare: the lanes of a batch that
have one are computed one after the other.
"""

import jax
import jax.numpy as jnp

from jaxsim.agents import sight
from jaxsim.agents.sight import SLOTS, Sighting
from jaxsim.backend import batch_rule
from jaxsim.worlds.cartpole3d import CartPole3D, Params
from jaxsim.worlds.cartpole3d.types import Config, State, Vector

_NOMINAL = CartPole3D(Config(max_blocks=SLOTS))


def state_of(report: Sighting) -> State:
    """State of the nominal world that fits an observation, for a cart that is not turned."""
    pose, velocity = sight.moving(report)
    zero = jnp.zeros_like(report.vx)
    still = Vector(zero, zero, zero)
    blocks = tuple(jax.tree.map(lambda leaf, i=i: leaf[..., i], report.block) for i in range(SLOTS))
    step = jnp.ones_like(report.count)
    return State(
        pose,
        report.reported,
        velocity,
        blocks,
        zero,
        still,
        still,
        step,
        jnp.zeros_like(step, bool),
    )


def _after(report: Sighting, action: jax.Array) -> Sighting:
    params = jax.tree.map(lambda number: jnp.float32(number), Params())
    # The nominal world draws no random numbers in a tick, so any key will do.
    observation, *_ = _NOMINAL.step(jax.random.key(0), state_of(report), action, params)
    return sight.see(observation)


@jax.custom_batching.custom_vmap
def after(needed: jax.Array, report: Sighting, action: jax.Array) -> Sighting:
    """Predict the next observation of the nominal world.

    Args:
      needed: () bool; where it is False, `report` is returned.
      report: the present observation.
      action: () int32.
    """
    return jax.lax.cond(needed, _after, lambda report, action: report, report, action)


after.def_vmap(batch_rule(lambda *lanes: jax.lax.map(lambda lane: after(*lane), lanes)))


def errors(expected: Sighting, report: Sighting) -> tuple[jax.Array, jax.Array]:
    """Largest errors of the velocities of cart and pole, m/s or rad/s, and of blocks, m/s."""
    of_cartpole = [expected.vx - report.vx, expected.vy - report.vy]
    of_cartpole += [jnp.asarray(a - b) for a, b in zip(expected.spin, report.spin, strict=True)]
    both = expected.block.alive & report.block.alive
    of_blocks = [
        jnp.where(both, a - b, 0.0) for a, b in zip(expected.block.v, report.block.v, strict=True)
    ]
    return jnp.max(jnp.abs(jnp.stack(of_cartpole))), jnp.max(jnp.abs(jnp.stack(of_blocks)))
