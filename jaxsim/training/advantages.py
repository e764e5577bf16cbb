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
    """Estimate by how much each decision was better than the critic expected.

    In an episode that a limit ended, the final value stands for the rewards that would follow. In
    one that the task ended, they are 0.

    Args:
      rewards: (W, T).
      values: (W, T) of the observations that the decisions were made on.
      final: (W,) value of the observation that the episode ended with.
      length: (W,) int32, steps of each episode; entries behind them are ignored.
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
    final_values = jnp.where(terminated, 0.0, final)[:, None]
    next_values = jnp.where(last, final_values, jnp.roll(values, -1, axis=1))
    error = jnp.where(mask, rewards + discount * next_values - values, 0.0)

    def back(after: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        error, mask = now
        total = jnp.where(mask, error + discount * decay * after, 0.0)
        return total, total

    rows = (error.T, mask.T)
    return jax.lax.scan(back, jnp.zeros_like(final), rows, reverse=True)[1].T
