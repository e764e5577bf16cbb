"""Metrics of blocks of a run."""

import jax.numpy as jnp
import numpy as np

from evaluation.metrics import DEFAULT_WINDOW, Numbers, Reason, block_metrics
from evaluation.records import Records


def lifetime_metrics(
    records: Records, measure: str = "performance", window: int = DEFAULT_WINDOW
) -> dict[str, Numbers]:
    """Every metric of every block of every lifetime.

    Args:
      records: of L lifetimes of B blocks.
      measure: column used as an episode's value, "performance", "reward" or "length".
      window: odd smoothing window, episodes.

    Returns:
      (L, B) `Numbers` by name; "mean", the plain mean of a block, comes first.

    Raises:
      ValueError: an unknown measure or a window that is even or not positive.
    """
    records = records.by_episode()
    values, counts = records.by_block(measure)
    metrics = {"mean": _block_means(values, counts)}
    return metrics | block_metrics(values, records.schedule.blocks, window)


def _block_means(values: np.ndarray, counts: np.ndarray) -> Numbers:
    """Plain mean of each block of each lifetime, (L, B)."""
    means = values.sum(axis=-1) / counts
    finite = np.isfinite(means)
    missing = np.where(finite, Reason.NONE, Reason.NON_FINITE_VALUE)
    return Numbers(jnp.asarray(np.where(finite, means, np.nan)), jnp.asarray(missing, jnp.int32))
