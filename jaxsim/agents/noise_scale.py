"""Estimate of sensor noise, from episodes that are known not to be novel.

Each kind of reading is compared with the nominal prediction from the reading before. The variances
of two independent errors add, so the mean square of the difference is twice the variance of the
noise, plus the noise of the other kinds through the motion.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from jaxsim.worlds.cartpole3d.types import DT

KINDS = ("position", "velocity", "angle", "rate")
"""Kinds of readings: m, m/s, rad, rad/s."""

NOISY = 3e-5  # size from which a kind of reading counts as noisy
FEWEST = 200  # numbers of each kind that estimates need
UPPER = 2.0  # standard errors that are added to an estimate


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class NoiseScale:
    """Squares of differences between readings and predictions, by kind."""

    squares: jax.Array  # (4,) sums
    counts: jax.Array  # (4,) numbers in these

    @classmethod
    def none(cls) -> "NoiseScale":
        """Before any episode."""
        return cls(jnp.zeros(len(KINDS)), jnp.zeros(len(KINDS)))

    def add(self, squares: jax.Array, counts: jax.Array) -> "NoiseScale":
        """Add the differences of one tick: (4,) sums of squares and their numbers of terms."""
        return NoiseScale(self.squares + squares, self.counts + counts)

    def deviations(self, rate_per_angle: float) -> jax.Array:
        """Standard deviation of the noise by kind, (4,); zero for kinds without noise.

        It is an upper confidence limit, so that a test that relies on it keeps its rate of false
        alarms.

        Args:
          rate_per_angle: change of the pole's rate in a tick for each radian that it leans, 1/s.
        """
        counts = jnp.maximum(self.counts, 1)
        mean = self.squares / counts
        # Differences of neighbours share an error, so a sum of squares varies 1.5 times as much.
        mean = mean * (1 + UPPER * jnp.sqrt(3 / counts))
        known = jnp.all(self.counts >= FEWEST)
        velocity, rate = mean[1] / 2, mean[3]
        position = jnp.maximum(mean[0] - DT**2 * velocity, 0) / 2
        # Angle and rate stand in each other's differences: two linear equations.
        factor = rate_per_angle**2
        angle = jnp.maximum(mean[2] - DT**2 * rate / 2, 0) / (2 - DT**2 * factor / 2)
        rate = jnp.maximum(rate - factor * angle, 0) / 2
        size = jnp.sqrt(jnp.stack([position, velocity, angle, rate]))
        return jnp.where(known & (size > NOISY), size, 0.0)
