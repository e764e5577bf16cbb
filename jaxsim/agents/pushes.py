"""What pushes do to the cart, from the forces on it in free ticks.

Any push has a constant force and may act some ticks late. For each delay these forces follow by
least squares, with a weak prior of the nominal ones; the delay with the least error is chosen.
Sensors that report late look the same, and a planner can treat them in the same way.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from jaxsim.agents import sight
from jaxsim.agents.lookahead import Pushes
from jaxsim.agents.sight import Sighting
from jaxsim.worlds.cartpole3d.types import Params, Vector

NOMINAL = Params()
LATEST = 8  # ticks, longest delay that is considered
PRIOR = 1e-3  # ticks of nominal pushes that the prior is worth
LATE = 1e-3  # N^2, error that one tick of delay is worth
TURN = 55.0  # N s/rad, force whose effect on the pole in a tick equals that of an unexplained turn
UNMOVED = 1.0  # N, mean force along the pushes below which it is unclear what they do
SHARE = 0.03  # of the forces, error up to which they are explained
BACKWARD, SILENT = 2.0, 0.05  # N, mean force of pushes that work otherwise, and of none


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PushEvidence:
    """Evidence of an episode about its pushes; axes of pushes are right and forward."""

    actions: jax.Array  # (9,) int32, codes of the last actions, the newest first
    ticks: jax.Array  # () free ticks
    number: jax.Array  # (9, 2) of these with a push along each axis, by delay
    moment: jax.Array  # (9, 2, 2) N, sums of signed forces by delay, axis of the push, component
    square: jax.Array  # () N^2, sum of squared forces and turns

    @classmethod
    def none(cls) -> "PushEvidence":
        """Before any tick."""
        zero = jnp.float32(0)
        delays = LATEST + 1
        actions = jnp.zeros(delays, jnp.int32)
        return cls(actions, zero, jnp.zeros((delays, 2)), jnp.zeros((delays, 2, 2)), zero)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PushFit:
    """The pushes that explain an episode best."""

    delay: jax.Array  # () int32, ticks
    force: jax.Array  # (2, 2) N, of a push right and a push forward
    error: jax.Array  # () N, root mean square
    size: jax.Array  # () N, root mean square of the forces on the cart

    @property
    def explains(self) -> jax.Array:
        """Whether nothing is left to explain, () bool; the pole pulls at a heavier cart less."""
        return self.error < jnp.maximum(SHARE * self.size, SILENT)

    @property
    def pushes(self) -> Pushes:
        """The same for a planner."""
        return Pushes.of(*((self.force[axis, 0], self.force[axis, 1]) for axis in range(2)))


def force_between(before: Sighting, after: Sighting) -> tuple[jax.Array, jax.Array]:
    """Force on a nominal cart that explains a free tick.

    Returns:
      (2,) N, and () rad/s, the largest turn of the pole that this force leaves unexplained.
    """
    size, zero = NOMINAL.force, jnp.zeros(3)
    tried = Vector(zero.at[1].set(size), zero.at[2].set(size), zero)
    pose, velocity = sight.predicted(NOMINAL, before, tried)
    spin = sight.spin_of(pose, velocity)
    speeds, turns = jnp.stack([velocity.vx, velocity.vy]), jnp.stack([spin.x, spin.y])

    def by_force(rows: jax.Array) -> jax.Array:
        return (rows[:, 1:] - rows[:, :1]) / size

    (a, b), (c, d) = by_force(speeds)
    x, y = jnp.stack([after.vx, after.vy]) - speeds[:, 0]
    force = jnp.stack([d * x - b * y, a * y - c * x]) / (a * d - b * c)
    reported = jnp.stack([after.spin.x, after.spin.y])
    return force, jnp.max(jnp.abs(reported - turns[:, 0] - by_force(turns) @ force))


def add(
    evidence: PushEvidence, action: jax.Array, force: jax.Array, turn: jax.Array, free: jax.Array
) -> PushEvidence:
    """Add a tick.

    Args:
      evidence: so far.
      action: () int32 code of its action.
      force: (2,) N on the cart.
      turn: () rad/s, turn of the pole that is not explained.
      free: () bool, whether the tick shows the pushes.
    """
    actions = jnp.concatenate([action[None], evidence.actions[:-1]])
    signs, use = _signs(actions), free.astype(jnp.float32)
    return PushEvidence(
        actions,
        ticks=evidence.ticks + use,
        number=evidence.number + use * jnp.abs(signs),
        moment=evidence.moment + use * signs[:, :, None] * force,
        square=evidence.square + use * (force @ force + (TURN * turn) ** 2),
    )


def _signs(actions: jax.Array) -> jax.Array:
    """Signs, (D, 2), of actions along both axes."""
    push = sight.push(NOMINAL, actions)
    return jnp.stack([push.x, push.y], axis=1) / NOMINAL.force


def fitted(evidence: PushEvidence) -> PushFit:
    """The delay and the forces with the least error."""
    nominal = NOMINAL.force * jnp.eye(2)
    number = evidence.number[:, :, None]
    force = (evidence.moment + PRIOR * nominal) / (number + PRIOR)
    explained = jnp.sum(force * (2 * evidence.moment - number * force), axis=(1, 2))
    error = jnp.maximum(evidence.square - explained, 0.0)
    change = PRIOR * jnp.sum((force - nominal) ** 2, axis=(1, 2))
    delay = jnp.argmin(error + change + LATE * jnp.arange(LATEST + 1)).astype(jnp.int32)
    mean_squares = jnp.stack([error[delay], evidence.square]) / jnp.maximum(evidence.ticks, 1)
    return PushFit(delay, force[delay], *jnp.sqrt(mean_squares))


def missed(fit: PushFit, evidence: PushEvidence, force: jax.Array) -> jax.Array:
    """Distance, N, of a tick's force from that of the pushes; `evidence` has the tick."""
    sign = _signs(evidence.actions)[fit.delay]
    return jnp.max(jnp.abs(force - sign @ fit.force))


def unclear(evidence: PushEvidence) -> jax.Array:
    """Whether the cart does not move as it is pushed, () bool.

    Other pushes and a force besides explain it alike, until a tick without a push. A wind that is
    a little stronger than the pushes is no reason to wait for that: they must work backwards or
    sideways, or do nothing.
    """
    moment, number = evidence.moment[0], jnp.maximum(jnp.sum(evidence.number[0]), 1)
    along = (moment[0, 0] + moment[1, 1]) / number
    across = jnp.maximum(jnp.abs(moment[0, 1]), jnp.abs(moment[1, 0])) / number
    nothing = evidence.square < SILENT**2 * evidence.ticks
    odd = (along < -BACKWARD) | (across > BACKWARD) | nothing
    return (evidence.actions[0] != 0) & (evidence.number[0].sum() > 0) & (along < UNMOVED) & odd
