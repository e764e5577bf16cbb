"""Generalised advantage estimation over episodes of different lengths."""

import jax
import jax.numpy as jnp


def advantages(
    rewards: jax.Array,
    values: jax.Array,
    final: jax.Array,
    length: jax.Array,
    terminated: jax.Array,
    discount: jax.Array,
    decay: jax.Array,
) -> jax.Array:
    """Estimate by how much each decision was better than what the critic expected.

    An episode that a limit ended goes on in the critic's eyes: its last value stands for what would
    have come. One that the task ended does not.

    Args:
      rewards: (W, T).
      values: (W, T) of the observations that the decisions were made on.
      final: (W,) value of the observation that the episode ended with.
      length: (W,) int32, steps of each episode; what is behind them means nothing.
      terminated: (W,) bool, whether the task ended it.
      discount: ().
      decay: () lambda.

    Returns:
      (W, T), 0 behind the end.

    Source: J. Schulman et al., "High-dimensional continuous control using generalized advantage
    estimation", 2016, equation 16.
    """
    step = jnp.arange(rewards.shape[1])
    mask, last = step < length[:, None], step == length[:, None] - 1
    beyond = jnp.where(terminated, 0.0, final)[:, None]
    following = jnp.where(last, beyond, jnp.roll(values, -1, axis=1))
    surprise = jnp.where(mask, rewards + discount * following - values, 0.0)

    def back(after: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        surprise, mask = now
        total = jnp.where(mask, surprise + discount * decay * after, 0.0)
        return total, total

    rows = (surprise.T, mask.T)
    return jax.lax.scan(back, jnp.zeros_like(final), rows, reverse=True)[1].T
