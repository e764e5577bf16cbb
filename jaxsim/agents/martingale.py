"""A sequential test with a fixed rate of false alarms: a mixture of likelihood ratios.

Under the nominal world each likelihood ratio is a martingale with mean 1, and so is a weighted mean
of them over directions, sizes and episodes in which the world may have changed. By Ville's
inequality the probability that it ever exceeds 1 / a is at most a (Ville, 1939;
Robbins, Ann. Math. Stat. 41, 1970; for unknown times of change Shiryaev, 1963, and Shin, Ramdas and
Rinaldo, "E-detectors", 2022).
"""

from dataclasses import dataclass, replace
from statistics import NormalDist

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.agents.directions import NAMES
from jaxsim.agents.filtering import SPREADS, Scores

FALSE_ALARMS = 0.01
"""Probability that a lifetime has a false alarm, with up to `READINGS` single readings."""

OUTLIERS = 0.1  # share of it for single readings
PATIENCE = 30  # episodes after which a change is expected half the time
READINGS = 1e6  # in a lifetime, of single readings that are tested
FARTHEST = 40.0  # largest exponent of a ratio: float32 holds the product of two

_SIZES = 2.0 ** np.arange(4)
GRID = np.concatenate([-_SIZES[::-1], _SIZES]).astype(np.float32)
"""Sizes tested in every direction, in standard errors of an estimate from one episode."""

SPREAD_SHARE = 0.1  # of the mixture, for noise of another size

# Beyond which a single reading is an alarm, in standard deviations: a union bound over both tails.
LIMIT = -NormalDist().inv_cdf(OUTLIERS * FALSE_ALARMS / READINGS / 2)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Mixture:
    """Evidence of the episodes before the present one.

    Attributes:
      sizes: (J, G) by direction and size: weights of the changes so far times their likelihood
        ratios.
      spreads: (4, V) the same for noise of other sizes.
      episodes: () int32.
      information: (J,) sum over episodes that are known not to be novel; it scales the sizes.
      learned: () int32, number of these episodes.
    """

    sizes: jax.Array
    spreads: jax.Array
    episodes: jax.Array
    information: jax.Array
    learned: jax.Array

    @classmethod
    def none(cls) -> "Mixture":
        """Before any episode."""
        return cls(
            jnp.zeros((len(NAMES), len(GRID))),
            jnp.zeros((4, len(SPREADS))),
            jnp.int32(0),
            jnp.zeros(len(NAMES)),
            jnp.int32(0),
        )

    def learn(self, scores: Scores) -> "Mixture":
        """Add an episode that is known not to be novel to the scale of the sizes."""
        counts = jnp.any(scores.information > 0)
        return replace(
            self, information=self.information + scores.information, learned=self.learned + counts
        )

    def opened(self) -> "Mixture":
        """Add the weight of a change in the episode that begins."""
        weight = _weight(self.episodes)
        return replace(
            self,
            sizes=self.sizes + weight,
            spreads=self.spreads + weight,
            episodes=self.episodes + 1,
        )

    def ended(self, scores: Scores) -> "Mixture":
        """Multiply by the likelihood ratios of an episode."""
        sizes, spreads = self._earned(scores)
        highest = np.exp(np.float32(FARTHEST))
        return replace(
            self,
            sizes=jnp.minimum(self.sizes * sizes, highest),
            spreads=jnp.minimum(self.spreads * spreads, highest),
        )

    def strength(self, scores: Scores) -> jax.Array:
        """Log evidence so far divided by that of an alarm: () at least 0; 1 raises an alarm.

        A single outlier counts by its size relative to `LIMIT`, if that is more. Twice the strength
        is the square of the evidence.
        """
        sizes, spreads = self._earned(scores)
        total = (1 - SPREAD_SHARE) * jnp.mean(self.sizes * sizes)
        total = total + SPREAD_SHARE * jnp.mean(self.spreads * spreads)
        total = total + _rest(self.episodes)
        needed = np.log(1 / ((1 - OUTLIERS) * FALSE_ALARMS))
        return jnp.maximum(jnp.log(total) / needed, scores.largest / LIMIT)

    def _earned(self, scores: Scores) -> tuple[jax.Array, jax.Array]:
        """Likelihood ratios of one episode by size of direction, and by size of noise."""
        usual = self.information / jnp.maximum(self.learned, 1)
        unit = jnp.where(usual > 0, 1 / jnp.sqrt(jnp.where(usual > 0, usual, 1.0)), 0.0)
        sizes = jnp.asarray(GRID) * unit[:, None]
        log = sizes * scores.slope[:, None] - 0.5 * sizes * sizes * scores.information[:, None]
        return _exponential(log), _exponential(scores.surprise)


def _exponential(log: jax.Array) -> jax.Array:
    return jnp.exp(jnp.clip(log, -FARTHEST, FARTHEST))


def _weight(episode: jax.Array) -> jax.Array:
    """Probability that the world changes in an episode, counted from 0; all add up to 1."""
    k = episode.astype(jnp.float32)
    return PATIENCE / ((k + PATIENCE) * (k + PATIENCE + 1))


def _rest(episodes: jax.Array) -> jax.Array:
    """Probability that the world changes after some episodes."""
    return PATIENCE / (episodes.astype(jnp.float32) + PATIENCE)
