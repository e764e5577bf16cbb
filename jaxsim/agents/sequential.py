"""Evidence that noise hides in single observations, summed over many.

A Kalman filter of the nominal world (`filtering`) and a sequential test of its innovations
(`martingale`). A batch of lanes without noisy sensors skips both.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from jaxsim.agents.filtering import FilterState, Scores
from jaxsim.agents.filtering import follow as take_in
from jaxsim.agents.martingale import Mixture
from jaxsim.agents.sight import Sighting
from jaxsim.backend import batch_rule
from jaxsim.pytrees import Tree

T = TypeVar("T")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Sequence:
    """Joint evidence of the observations of a lifetime."""

    track: FilterState
    scores: Scores  # of the present episode
    mixture: Mixture
    nominal: jax.Array  # () bool, whether the present episode is one to take usual values from

    @classmethod
    def none(cls) -> "Sequence":
        """Before any observation."""
        return cls(FilterState.none(), Scores.none(), Mixture.none(), jnp.asarray(False))


class Tick(NamedTuple):
    """One observation and its context."""

    deviations: jax.Array  # (4,) of the noise by kind
    action: jax.Array  # () int32, what was done before it
    after: Sighting
    first: jax.Array  # () bool, whether it is the first of its episode
    followed: jax.Array  # () bool, whether the nominal motion of cart and pole leads to it
    free: jax.Array  # (4,) bool, the same for blocks
    nominal: jax.Array  # () bool, whether its episode is known not to be novel


def _follow(sequence: Sequence, tick: Tick) -> tuple[Sequence, jax.Array]:
    ended = sequence.mixture.ended(sequence.scores)
    ended = _where(sequence.nominal, sequence.mixture.learn(sequence.scores), ended)
    ended = _where(tick.nominal, ended, ended.opened())
    mixture = _where(tick.first, ended, sequence.mixture)
    scores = _where(tick.first, Scores.none(), sequence.scores)
    track, scores = take_in(
        sequence.track,
        scores,
        tick.deviations,
        tick.action,
        tick.after,
        tick.followed,
        tick.free,
    )
    strength = jnp.where(tick.nominal, 0.0, mixture.strength(scores))
    # An episode in whose midst the noise becomes known says nothing of what is usual.
    nominal = jnp.where(tick.first, tick.nominal, sequence.nominal)
    return Sequence(track, scores, mixture, nominal), strength


def _skip(sequence: Sequence, tick: Tick) -> tuple[Sequence, jax.Array]:
    return sequence, jnp.zeros_like(tick.deviations[..., 0])


@jax.custom_batching.custom_vmap
def follow(needed: jax.Array, sequence: Sequence, tick: Tick) -> tuple[Sequence, jax.Array]:
    """Add an observation.

    Args:
      needed: () bool, whether sensors are noisy; if not, the strength is 0.
      sequence: of the lifetime so far.
      tick: the observation.

    Returns:
      The new sequence, and the strength of its evidence, 1 for an alarm.
    """
    return jax.lax.cond(needed, _follow, _skip, sequence, tick)


def _of_lanes(needed: jax.Array, sequence: Sequence, tick: Tick) -> tuple[Sequence, jax.Array]:
    lanes = jax.vmap(lambda mask, *lane: _where(mask, _follow(*lane), _skip(*lane)))

    def skip(needed: jax.Array, *lanes: Tree) -> tuple[Sequence, jax.Array]:
        return _skip(*lanes)

    return jax.lax.cond(jnp.any(needed), lanes, skip, needed, sequence, tick)


follow.def_vmap(batch_rule(_of_lanes))


def _where(mask: jax.Array, a: T, b: T) -> T:
    return jax.tree.map(partial(jnp.where, mask), a, b)
